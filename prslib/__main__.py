"""The command line: ``python -m prslib --help``."""

import argparse
import sys

from prslib import commands as run_commands
from prslib.datasets import prepare
from prslib.runs.executed import stale
from prslib.samplers.compiling import compiling

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
    run_commands.add_commands(commands)
    prepare.add_command(commands)
    options = parser.parse_args(arguments)
    return options.command(options)


def execute_notebooks(options: argparse.Namespace) -> int:
    """Execute notebooks with a profile's parameters; progress and errors go to the terminal."""
    names = run_commands.notebooks(options)
    if names is None:
        return 1
    if not options.notebook:
        names = [name for name in names if stale(options.profile, name)]
    if not names:
        print(f"nothing to draw: all of profile {options.profile!r} is up to date")
        return 0
    with compiling():  # the samplers, while this process loads the rest
        from prslib.runs import execution

        errors = execution.execute(options.profile, names)
    for name, error in errors.items():
        print(f"{name} stopped: {error}", file=sys.stderr)
    stopped = [name for name in errors if name in names]
    if stopped:
        print(f"{len(stopped)} notebooks stopped: {', '.join(stopped)}", file=sys.stderr)
    return 1 if errors else 0


def make_pages(options: argparse.Namespace) -> int:
    """Write the pages of a profile and say where they are; 1 where there is nothing to show."""
    from prslib.report.pages import FIRST, report_dir, write_report

    names = run_commands.notebooks(options)
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
