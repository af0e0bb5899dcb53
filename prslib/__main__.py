"""The command line: ``python -m prslib --help``."""

import argparse
import sys
import time

from prslib.datasets import prepare
from prslib.paths import cache_dir, params_file, project_root


def main(arguments: list[str] | None = None) -> int:
    """Run a subcommand and return the exit status.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of the command line.

    Returns
    -------
    int
        0 on success, 1 when a notebook stopped with an error.
    """
    parser = argparse.ArgumentParser("python -m prslib", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    figures = commands.add_parser("figures", help="execute notebooks: train what is missing, draw")
    figures.add_argument("notebook", nargs="*", help="names; all of the profile's by default")
    figures.add_argument("--profile", default="quick", help="a folder in params/ (%(default)s)")
    figures.set_defaults(command=execute_notebooks)
    readme = commands.add_parser("readme", help="renew the README's tables from figures/quick")
    readme.set_defaults(command=renew_readme)
    prepare.add_command(commands)
    options = parser.parse_args(arguments)
    return options.command(options)


def execute_notebooks(options: argparse.Namespace) -> int:
    """Execute notebooks with a profile's parameters; progress and errors go to the terminal."""
    import papermill
    import yaml
    from traitlets.config import Config

    folder = params_file(options.profile, "any").parent
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    for name in options.notebook or known or ["any"]:
        if name not in known:
            print(
                f"no parameters for notebook {name!r} under profile {options.profile!r}: expected "
                f"params/{options.profile}/{name}.yaml; known notebooks: {', '.join(known)}",
                file=sys.stderr,
            )
            return 1
    executed = cache_dir() / "executed" / options.profile
    executed.mkdir(parents=True, exist_ok=True)
    for name in options.notebook or known:
        start = time.perf_counter()
        print(f"{name} ({options.profile})", flush=True)
        partial = executed / f"{name}.partial.ipynb"
        try:
            papermill.execute_notebook(
                project_root() / "notebooks" / f"{name}.ipynb",
                partial,
                yaml.safe_load(params_file(options.profile, name).read_text()),
                kernel_name="python3",
                cwd=project_root(),
                progress_bar=False,
                stderr_file=sys.stderr,
                config=Config({"KernelManager": {"transport": "ipc"}}),  # nothing over the network
            )
        except papermill.PapermillExecutionError as error:
            print(f"{error}\nthe notebook as far as it came: {partial}", file=sys.stderr)
            return 1
        partial.replace(executed / f"{name}.ipynb")
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    return 0


def renew_readme(options: argparse.Namespace) -> int:
    """Write the tables of figures/quick into the README, between their markers."""
    from prslib.readme import renew

    renew()
    return 0


if __name__ == "__main__":
    sys.exit(main())
