"""The command line: ``python -m prslib --help``."""

import argparse
import sys

from prslib.datasets import prepare


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
    figures.add_argument(
        "notebook", nargs="*", help="names; by default all that are not up to date"
    )
    figures.add_argument("--profile", default="quick", help="a folder in params/ (%(default)s)")
    figures.set_defaults(command=execute_notebooks)
    readme = commands.add_parser("readme", help="renew the README's tables from figures/quick")
    readme.set_defaults(command=renew_readme)
    prepare.add_command(commands)
    options = parser.parse_args(arguments)
    return options.command(options)


def execute_notebooks(options: argparse.Namespace) -> int:
    """Execute notebooks with a profile's parameters; progress and errors go to the terminal."""
    from prslib import execution

    known = execution.known_notebooks(options.profile)
    for name in options.notebook or known or ["any"]:
        if name not in known:
            print(
                f"no parameters for notebook {name!r} under profile {options.profile!r}: expected "
                f"params/{options.profile}/{name}.yaml; known notebooks: {', '.join(known)}",
                file=sys.stderr,
            )
            return 1
    stale = [name for name in known if execution.stale(options.profile, name)]
    errors = execution.execute(options.profile, options.notebook or stale)
    for name, error in errors.items():
        print(f"{name} stopped: {error}", file=sys.stderr)
    if errors:
        print(f"{len(errors)} notebooks stopped: {', '.join(errors)}", file=sys.stderr)
    return 1 if errors else 0


def renew_readme(options: argparse.Namespace) -> int:
    """Write the tables of figures/quick into the README, between their markers."""
    from prslib.readme import renew

    renew()
    return 0


if __name__ == "__main__":
    sys.exit(main())
