"""Train what is missing, draw the report, and look after its runs and data."""

import sys
from argparse import ArgumentParser, Namespace
from ast import literal_eval
from collections.abc import Callable
from contextlib import suppress
from pkgutil import resolve_name
from typing import Any

import prslib
from prslib.checks import VARIANTS, expected, naming_extra, one_of
from prslib.datasets.prepare import add_command, add_prepare
from prslib.paths import known_notebooks, known_profiles
from prslib.report.build import execute, stale
from prslib.training import round_alike

PROFILE = {"default": "quick", "help": "a folder in params/ (%(default)s)"}
OPTION = "another field of RunConfig, such as memory_size=500; may be repeated"
REMOVE = "runs, states such as failed or interrupted, or all; running ones stay"
VARIANT = "authors compares with the slots of the released code (%(default)s)"


def main(arguments: list[str] | None = None) -> int:
    """Run a subcommand and return the exit status, 0 on success and 1 on an error."""
    options = _parser().parse_args(arguments)
    round_alike()  # features and weights are the same then on all processors
    try:
        with naming_extra("report"):
            return options.command(options) or 0
    except (OSError, ValueError, TypeError, RuntimeError, ImportError) as error:
        print(error, file=sys.stderr)  # it says what to do
        return 1


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        "prslib",
        description=__doc__,
        epilog="example: prslib figures rho_sweep --profile smoke",
    )
    version = f"prslib {prslib.__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, run: Callable) -> Callable:
        return add_command(commands, name, run).add_argument

    argument = add("figures", execute_notebooks)
    argument("notebook", nargs="*", help="by default all that are not up to date")
    argument("--profile", **PROFILE)
    argument = add("run", train_run)
    argument("dataset")
    argument("method")
    argument("--seed", type=int, default=0)
    argument("--rho", type=float, default=0.0)
    argument("--option", action="append", default=[], metavar="NAME=VALUE", help=OPTION)
    argument("--device", default="cpu", help="cpu or cuda (%(default)s)")
    argument = add("runs", list_or_remove)
    argument("--remove", nargs="+", metavar="WHAT", help=REMOVE)
    argument = add("plan", show_plan)
    argument("notebook", nargs="*", help="by default all of the profile")
    argument("--profile", **PROFILE)
    add_prepare(commands)
    argument = add("conformance", find_departures)
    argument("sampler", nargs="?", default="prslib.samplers:PRS")
    argument("--seeds", type=int, default=5, help="runs a stream (%(default)s)")
    argument("--variant", default="paper", choices=VARIANTS, help=VARIANT)
    return parser


def execute_notebooks(options: Namespace) -> int:
    """Execute notebooks: train what is missing, draw.

    Example: prslib figures rho_sweep --profile smoke
    """
    names = _notebooks(options.profile, options.notebook)
    if not options.notebook:
        names = [name for name in names if stale(options.profile, name)]
    if not names:
        print(f"nothing to draw: all of profile {options.profile!r} is up to date")
        return 0
    errors = execute(options.profile, names)
    for name, error in errors.items():  # its last line says why
        print(f"{name} stopped: {error}", file=sys.stderr)
    return 1 if errors else 0


def train_run(options: Namespace) -> None:
    """Train one run if it is not stored, and print its final scores.

    Example: prslib run cocoseq-mini PRS --seed 0 --rho 0
    """
    from prslib.experiments.store import Store
    from prslib.experiments.sweep import run_all
    from prslib.training.config import RunConfig

    fields: dict[str, Any] = {"seed": options.seed, "rho": options.rho, "options": {}}
    for text in options.option:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(expected("--option NAME=VALUE", repr(text)))
        with suppress(ValueError, SyntaxError):  # else it is text
            value = literal_eval(value)
        is_field = name in RunConfig.__dataclass_fields__  # else of the sampler
        (fields if is_field else fields["options"])[name] = value
    config = RunConfig(options.dataset, options.method, **fields)
    store = Store()
    (run,) = run_all([config], store, device=options.device)
    last = run.scores.query("task == 'seen' and trained_tasks == trained_tasks.max()")
    rows = last[last["metric"].isin(["mAP", "C-F1", "O-F1", "accuracy"])]
    table = 100 * rows.pivot_table("value", "group", "metric", sort=False)
    table = table.rename_axis(columns=None)
    print(table.to_string(float_format="{:.1f}".format, na_rep=""))
    print(f"in percent after the last task, stored in {store.path(config)}")


def list_or_remove(options: Namespace) -> None:
    """List what is stored, running and failed, and how large it is.

    The store is runs/ of the cache or of $PRSLIB_CACHE.

    Example: prslib runs --remove failed
    """
    from prslib.experiments.inventory import list_runs, remove
    from prslib.experiments.store import Store

    store = Store()
    runs = remove(store, options.remove) if options.remove else list_runs(store)
    if len(runs):
        print(runs.to_string(index=False, float_format="{:.2f}".format))
    counts = runs["state"].value_counts().items()
    text = ", ".join(f"{count} {state}" for state, count in counts) or "no runs"
    where = "removed from" if options.remove else "in"
    print(f"{text}, {runs['MB'].sum():.2f} MB {where} {store.folder}")


def show_plan(options: Namespace) -> int:
    """Tell which runs are missing, their steps, and their hours on this machine.

    For every notebook of a profile: its runs, those that are not stored yet, and how
    long they take, one after another, without scores and gradient variances, from a
    few real steps of each kind. The labels of its data sets suffice: their annotations,
    or a prepared set.

    Example: prslib plan --profile paper
    """
    from prslib.experiments.cost import plan
    from prslib.experiments.store import Store
    from prslib.report.topics import all_runs_of, device_of

    profile = options.profile
    notebooks = []
    status = 0
    for name in _notebooks(profile, options.notebook):
        try:
            if runs := all_runs_of(profile, name):
                notebooks.append((name, runs, device_of(profile, name)))
        except FileNotFoundError as error:
            print(f"left out: {name}: {error}", file=sys.stderr)
            status = 1
    print(plan(notebooks, Store()) if notebooks else "no runs")
    return status


def find_departures(options: Namespace) -> int:
    """Check an implementation of PRS against the paper's equations.

    Let a sampler of PRS decide the embedded streams; say whether it decides as
    Algorithm 1 does, or at which equation, stream and sample it first departs. It is
    made as Class(size, num_classes, seed, rho=rho) and asked place(labels), or
    place(labels, uniforms=...) if it has this parameter.

    Example: prslib conformance my_module:MyPRS
    """
    from prslib import conformance  # which loads numba

    sys.path.insert(0, "")  # a module in the working directory
    try:
        make = resolve_name(options.sampler)
    except (ImportError, AttributeError, ValueError) as error:
        got = f"{options.sampler!r} ({error})"
        raise ValueError(expected("package.module:Class", got)) from error
    shown = sys.stderr.isatty()
    answer = conformance.check_prs(make, options.seeds, options.variant, progress=shown)
    print(options.sampler, answer)
    return 1 if answer.departures else 0


def _notebooks(profile: str, names: list[str]) -> list[str]:
    """Return the notebooks that a command names, by default all of the profile."""
    one_of("profile", profile, known_profiles())  # none outside a checkout
    notebooks = known_notebooks(profile)
    for name in names:
        one_of("notebook", name, notebooks)
    return names or notebooks
