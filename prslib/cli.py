"""The command line: ``python -m prslib --help``."""

import argparse
import sys
from functools import partial

from prslib.datasets import prepare
from prslib.models.weights import EMBEDDED
from prslib.paths import known_notebooks, known_profiles
from prslib.report.build import compiling, stale

DESCRIPTION = "Train what is missing, draw the report, and look after its runs, data and weights."


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
    parser = argparse.ArgumentParser("python -m prslib", description=DESCRIPTION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    figures = commands.add_parser("figures", help="execute notebooks: train what is missing, draw")
    figures.add_argument(
        "notebook", nargs="*", help="names; by default all that are not up to date"
    )
    figures.add_argument("--profile", default="quick", help="a folder in params/ (%(default)s)")
    figures.set_defaults(command=execute_notebooks)
    report = commands.add_parser(
        "report",
        help="turn executed notebooks into web pages",
        description="Write the notebooks that `figures` has executed, and the README, as pages "
        "that a browser shows, into cache/report/PROFILE or $PRSLIB_CACHE/report/PROFILE.",
    )
    report.add_argument("--profile", default="quick", help="a folder in params/ (%(default)s)")
    report.set_defaults(command=make_pages, notebook=[])
    readme = commands.add_parser("readme", help="renew what the README says in numbers")
    readme.set_defaults(command=renew_readme)
    add_commands(commands)
    prepare.add_command(commands)
    options = parser.parse_args(arguments)
    return options.command(options)


def execute_notebooks(options: argparse.Namespace) -> int:
    """Execute notebooks with a profile's parameters; progress and errors go to the terminal."""
    names = notebooks(options)
    if names is None:
        return 1
    if not options.notebook:
        names = [name for name in names if stale(options.profile, name)]
    if not names:
        print(f"nothing to draw: all of profile {options.profile!r} is up to date")
        return 0
    with compiling():  # the samplers, while this process loads the rest
        from prslib.report import build as execution

        errors = execution.execute(options.profile, names)
    for name, error in errors.items():
        print(f"{name} stopped: {error}", file=sys.stderr)
    stopped = [name for name in errors if name in names]
    if stopped:
        print(f"{len(stopped)} notebooks stopped: {', '.join(stopped)}", file=sys.stderr)
    return 1 if errors else 0


def make_pages(options: argparse.Namespace) -> int:
    """Write the pages of a profile and say where they are; 1 where there is nothing to show."""
    from prslib.report.build import FIRST, report_dir, write_report

    names = notebooks(options)
    if names is None:
        return 1
    try:
        left_out = write_report(options.profile, names)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    if left_out:
        print(f"not executed yet, and so without a page: {', '.join(left_out)}", file=sys.stderr)
    print(report_dir(options.profile) / f"{FIRST}.html")
    return 0


def renew_readme(options: argparse.Namespace) -> int:
    """Write what figures/seeds says into the README; 1 where it has not been drawn."""
    from prslib.report.readme import renew

    try:
        renew()
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add ``runs``, ``plan`` and ``pretrain`` to the command line."""
    runs = commands.add_parser(
        "runs",
        help="what is stored, running and failed, and how large it is",
        description="List the runs in the store, cache/runs or $PRSLIB_CACHE/runs.",
    )
    runs.add_argument(
        "--remove", nargs="+", metavar="WHAT",
        help="remove runs instead: hashes or their beginnings, states such as failed or "
        "interrupted, or all; what is running stays",
    )  # fmt: skip
    runs.set_defaults(command=list_or_remove)
    plan = commands.add_parser(
        "plan",
        help="which runs are missing, their steps, and the hours they take on this machine",
        description="For every notebook of a profile: the runs it wants, those that are not stored "
        "yet, and how long they take, from a few real steps of each kind on random images.",
    )
    plan.add_argument("notebook", nargs="*", help="names; by default all of the profile")
    plan.add_argument("--profile", default="quick", help="a folder in params/ (%(default)s)")
    plan.set_defaults(command=show_plan)
    pretrain = commands.add_parser(
        "pretrain",
        help="learn again the weights that the small network can begin with",
        description="Train the small network on scenes that no stream has, and put its weights "
        "where runs look for them, prslib/models/embedded; about a minute each. Another version "
        "of PyTorch may give other last digits; runs that begin with them are other runs then.",
    )
    pretrain.add_argument("name", nargs="*", help=f"by default all: {', '.join(EMBEDDED)}")
    pretrain.set_defaults(command=write_weights)


def list_or_remove(options: argparse.Namespace) -> int:
    """List the store's runs or remove some; 1 where what to remove is unclear or cannot be."""
    from prslib.experiments.store import Store, in_bytes, inventory, remove, select, table

    store = Store()
    kept = inventory(store)
    if not options.remove:
        print(f"{table(kept)} in {store.folder}")
        return 0
    try:
        chosen = select(kept, options.remove)
        removed = remove(store, chosen)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"removed {len(removed)} runs, {in_bytes(sum(one.size for one in removed))}")
    if stays := [one.hash for one in chosen if one not in removed]:
        print(f"another process has changed {', '.join(stays)} meanwhile: left as it is")
    return 0


def show_plan(options: argparse.Namespace) -> int:
    """Print what is missing under a profile and how long it takes; 1 for an unknown notebook."""
    from prslib.experiments.cost import as_text, plan
    from prslib.experiments.store import Store

    names = notebooks(options)
    if names is None:
        return 1
    print(as_text(*plan(options.profile, names, Store())))
    return 0


def write_weights(options: argparse.Namespace) -> int:
    """Learn weights again and write them, with a progress bar; 1 for an unknown name."""
    unknown = [name for name in options.name if name not in EMBEDDED]
    if unknown:
        print(f"unknown weights {unknown[0]!r}; known: {', '.join(EMBEDDED)}", file=sys.stderr)
        return 1
    import torch
    from tqdm import tqdm

    from prslib.report.pretraining import embed

    torch.set_num_threads(1)
    for name in options.name or EMBEDDED:
        print(embed(name, partial(tqdm, desc=name, unit="step")))
    return 0


def notebooks(options: argparse.Namespace) -> list[str] | None:
    """Return the notebooks that a command names, all of the profile's by default.

    Parameters
    ----------
    options : Namespace
        With ``profile`` and ``notebook``.

    Returns
    -------
    list of str or None
        None, and an error on the terminal, where the profile is unknown or there are no
        parameters for one.
    """
    profiles = known_profiles()
    if options.profile not in profiles:
        print(
            f"unknown profile {options.profile!r}; known profiles: {', '.join(profiles)}",
            file=sys.stderr,
        )
        return None
    known = known_notebooks(options.profile)
    for name in options.notebook:
        if name not in known:
            print(
                f"no parameters for notebook {name!r} under profile {options.profile!r}: expected "
                f"params/{options.profile}/{name}.yaml; known notebooks: {', '.join(known)}",
                file=sys.stderr,
            )
            return None
    return options.notebook or known
