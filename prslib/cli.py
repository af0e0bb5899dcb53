"""The command line: ``python -m prslib --help``."""

import argparse
import sys
from functools import partial

from prslib import conformance
from prslib.datasets import prepare
from prslib.models.weights import EMBEDDED
from prslib.paths import known_notebooks, known_profiles
from prslib.report.build import FIRST, compiling, execute, report_dir, stale, write_report
from prslib.training.portable import round_alike


def main(arguments: list[str] | None = None) -> int:
    """Run a subcommand and return the exit status, 0 on success and 1 on an error."""
    options = _parser().parse_args(arguments)
    round_alike()  # features and weights are the same then on all processors
    return options.command(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m prslib",
        description="Train what is missing, draw the report, and look after its runs, data and "
        "weights.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    figures = commands.add_parser("figures", help="execute notebooks: train what is missing, draw")
    figures.add_argument(
        "notebook", nargs="*", help="names; by default all that are not up to date"
    )
    figures.set_defaults(command=execute_notebooks)
    report = commands.add_parser(
        "report",
        help="turn executed notebooks into web pages",
        description="Write the notebooks that `figures` has executed, and the README, as pages "
        "that a browser shows, into cache/report/PROFILE or $PRSLIB_CACHE/report/PROFILE.",
    )
    report.set_defaults(command=make_pages, notebook=[])
    readme = commands.add_parser("readme", help="renew what the README says in numbers")
    readme.set_defaults(command=renew_readme)
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
    plan.set_defaults(command=show_plan)
    check = commands.add_parser(
        "verify",
        help="train a few runs anew and compare them, and what was drawn, with the commit",
        description="Train a handful of a profile's runs in a folder that is removed again, a "
        "minute or two. Compare their scores and the profile's CSV files with the committed ones.",
    )
    check.set_defaults(command=verify_results)
    for command in (figures, report, plan, check):
        command.add_argument("--profile", default="quick", help="a folder in params/ (%(default)s)")
    pretrain = commands.add_parser(
        "pretrain",
        help="learn again the weights that the small network can begin with",
        description="Train the small network on scenes that no stream has, and put its weights "
        "where runs look for them, prslib/models/embedded; about a minute each. Another version "
        "of PyTorch may give other last digits; runs that begin with them are other runs then.",
    )
    pretrain.add_argument("name", nargs="*", help=f"by default all: {', '.join(EMBEDDED)}")
    pretrain.set_defaults(command=write_weights)
    prepare.add_command(commands)
    conformance.add_command(commands)
    return parser


def execute_notebooks(options: argparse.Namespace) -> int:
    """Execute notebooks with a profile's parameters; progress and errors go to the terminal."""
    names = _notebooks(options)
    if names is None:
        return 1
    if not options.notebook:
        names = [name for name in names if stale(options.profile, name)]
    if not names:
        print(f"nothing to draw: all of profile {options.profile!r} is up to date")
        return 0
    with compiling():  # the samplers, while this process loads the rest
        errors = execute(options.profile, names)
    for name, error in errors.items():
        print(f"{name} stopped: {error}", file=sys.stderr)
    stopped = [name for name in errors if name in names]
    if stopped:
        print(f"{len(stopped)} notebooks stopped: {', '.join(stopped)}", file=sys.stderr)
    return 1 if errors else 0


def make_pages(options: argparse.Namespace) -> int:
    """Write a profile's pages and print where they are; 1 where no notebook has been executed."""
    names = _notebooks(options)
    if names is None:
        return 1
    try:
        left_out = write_report(options.profile, names)
    except FileNotFoundError as error:
        return _error(error)
    if left_out:
        print(f"not executed yet, and so without a page: {', '.join(left_out)}", file=sys.stderr)
    print(report_dir(options.profile) / f"{FIRST}.html")
    return 0


def renew_readme(_options: argparse.Namespace) -> int:
    """Write the numbers of figures/seeds into the README; 1 where they have not been drawn."""
    from prslib.report.readme import renew

    try:
        renew()
    except FileNotFoundError as error:
        return _error(error)
    return 0


def list_or_remove(options: argparse.Namespace) -> int:
    """List the store's runs or remove some; 1 where what to remove is unclear or cannot be."""
    from prslib.experiments.store import Store, in_bytes, inventory, remove, select, table

    store = Store()
    entries = inventory(store)
    if not options.remove:
        print(f"{table(entries)} in {store.folder}")
        return 0
    try:
        chosen = select(entries, options.remove)
        removed = remove(store, chosen)
    except (ValueError, OSError) as error:
        return _error(error)
    print(f"removed {len(removed)} runs, {in_bytes(sum(entry.size for entry in removed))}")
    if stays := [entry.hash for entry in chosen if entry not in removed]:
        print(f"another process has changed {', '.join(stays)} meanwhile: left as it is")
    return 0


def show_plan(options: argparse.Namespace) -> int:
    """Print what is missing under a profile and how long it takes; 1 for an unknown notebook."""
    from prslib.experiments.cost import as_text, plan
    from prslib.experiments.store import Store
    from prslib.report.notebook import given, wanted

    names = _notebooks(options)
    if names is None:
        return 1

    def runs_and_device(name: str) -> tuple[list, str]:
        device = given(options.profile, name).get("device", "cpu")
        return wanted(name, options.profile), device

    print(as_text(*plan(names, runs_and_device, Store())))
    return 0


def verify_results(options: argparse.Namespace) -> int:
    """Print how far results are from the committed ones; 1 beyond the limit or without them."""
    from prslib.report.verify import verify

    options.notebook = []
    if _notebooks(options) is None:
        return 1
    try:
        lines, within = verify(options.profile)
    except FileNotFoundError as error:
        return _error(error)
    print("\n".join(lines))
    return 0 if within else 1


def write_weights(options: argparse.Namespace) -> int:
    """Learn weights again and write them, with a progress bar; 1 for an unknown name."""
    unknown = [name for name in options.name if name not in EMBEDDED]
    if unknown:
        return _error(f"unknown weights {unknown[0]!r}; known: {', '.join(EMBEDDED)}")
    import torch
    from tqdm import tqdm

    from prslib.report.pretraining import embed

    torch.set_num_threads(1)
    for name in options.name or EMBEDDED:
        print(embed(name, partial(tqdm, desc=name, unit="step")))
    return 0


def _notebooks(options: argparse.Namespace) -> list[str] | None:
    """Return the notebooks that a command names, by default the profile's; None after an error."""
    profiles = known_profiles()
    if options.profile not in profiles:
        known = f"known profiles: {', '.join(profiles)}"
        return _error(f"unknown profile {options.profile!r}; {known}", None)
    known = known_notebooks(options.profile)
    for name in options.notebook:
        if name not in known:
            return _error(
                f"no parameters for notebook {name!r} under profile {options.profile!r}: expected "
                f"params/{options.profile}/{name}.yaml; known notebooks: {', '.join(known)}",
                None,
            )
    return options.notebook or known


def _error(message: object, status: int | None = 1) -> int | None:
    print(message, file=sys.stderr)
    return status
