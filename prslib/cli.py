"""Train what is missing, draw the report, and look after its runs and data."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from ast import literal_eval
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from inspect import signature
from io import TextIOWrapper
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import prslib
from prslib.checks import VARIANTS, expected, naming_extra, one_of
from prslib.datasets.prepare import add_command, add_prepare
from prslib.paths import (
    known_notebooks,
    known_profiles,
    params_file,
    project_root,
)
from prslib.training import set_deterministic

ERRORS = OSError, ValueError, TypeError, RuntimeError, ImportError, MemoryError
PROFILE = {"default": "quick", "help": "a folder in params/ (%(default)s)"}
OPTION = "another field of RunConfig, such as memory_size=500; may be repeated"
DEVICE = "cpu, cuda, mps, or auto: a GPU where there is one (%(default)s)"
REMOVE = "runs, states such as failed or interrupted, or all; running ones stay"
CHECK = "check the results in a folder, such as one from someone else"
TFLOPS = "hours of a card that computes at this rate, such as 40, in 10^12 a second"
VARIANT = "authors compares with the slots of the released code (%(default)s)"


def main(arguments: list[str] | None = None) -> int:
    """Run a subcommand and return the exit status: 0 on success, 1 on an error, 130 on Ctrl-C."""
    options = _parser().parse_args(arguments)
    if isinstance(sys.stdout, TextIOWrapper):  # names of any letters on any terminal
        sys.stdout.reconfigure(errors="backslashreplace")
    set_deterministic()  # features and weights are the same then on all processors
    try:
        with naming_extra("report"):
            return options.command(options) or 0
    except ERRORS as error:
        print(error, file=sys.stderr)  # it says what to do
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command goes on where it can", file=sys.stderr)
        return 130  # as a shell says it


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
    argument("--rho", type=float, help="power of allocation; 0 by default")
    argument("--option", action="append", default=[], metavar="NAME=VALUE", help=OPTION)
    argument("--device", default="cpu", help=DEVICE)
    argument = add("runs", list_or_remove)
    argument("--remove", nargs="+", metavar="WHAT", help=REMOVE)
    argument("--check", metavar="FOLDER", help=CHECK)
    argument = add("plan", show_plan)
    argument("notebook", nargs="*", help="by default all of the profile")
    argument("--profile", **PROFILE)
    argument("--tflops", type=_rate, help=TFLOPS)
    add_prepare(commands)
    argument = add("preview", show_preview)
    argument("file", type=Path, help="labels in the order of the stream")
    argument("--size", type=int, default=2000, help="of the memory (%(default)s)")
    argument("--picture", type=Path, metavar="FILE", help="draw it, such as memory.png")
    argument("--rho", type=float, default=0.0, help="of PRS and OCDM (%(default)s)")
    argument("--seed", type=int, default=0)
    argument = add("conformance", find_departures)
    argument("sampler", nargs="?", default="prslib.samplers:PRS")
    argument("--seeds", type=int, default=5, help="runs a stream (%(default)s)")
    argument("--variant", default="paper", choices=VARIANTS, help=VARIANT)
    return parser


def _rate(text: str) -> float:
    """Return a rate above 0."""
    with suppress(ValueError):
        if 0 < (value := float(text)) < 1e6:
            return value
    raise ArgumentTypeError(expected("TFLOP/s above 0, such as 40", text))


def execute_notebooks(options: Namespace) -> int:
    """Execute notebooks: train what is missing, draw.

    Example: prslib figures rho_sweep --profile smoke
    """
    names = _notebooks(options.profile, options.notebook)
    from prslib.report.build import execute, stale  # in a checkout alone

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
    from prslib.training.methods import METHODS, unread_fields

    fields: dict[str, Any] = {"options": {}}
    if options.rho is not None:
        fields["rho"] = options.rho
    for text in options.option:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(expected("--option NAME=VALUE", repr(text)))
        if name in ("dataset", "method", "seed") or name in fields | fields["options"]:
            what = (
                "each setting once, data set and method before it, --seed for the seed"
            )
            raise ValueError(expected(what, f"{name} again"))
        with suppress(ValueError, SyntaxError):  # else it is text
            value = literal_eval(value)
        is_field = name in RunConfig.__dataclass_fields__  # else of the sampler
        near = get_close_matches(name, RunConfig.__dataclass_fields__, n=1)
        if near and not is_field:
            raise ValueError(f"unknown option {name!r}; did you mean {near[0]!r}?")
        (fields if is_field else fields["options"])[name] = value
    one_of("method", options.method, METHODS)
    if unread := sorted(unread_fields(options.method) & fields.keys()):
        what = f"options that {options.method} has"
        raise TypeError(expected(what, ", ".join(unread), "leave them out"))
    fields = {"seed": options.seed} | fields
    config = RunConfig(options.dataset, options.method, **fields)
    store = Store()
    (run,) = run_all([config], store, device=options.device)
    last = run.scores.query("task == 'seen' and trained_tasks == trained_tasks.max()")
    rows = last[last["metric"].isin(["mAP", "C-F1", "O-F1", "accuracy"])]
    table = 100 * rows.pivot_table("value", "group", "metric", sort=False)
    table = table.rename_axis(columns=None)
    print(table.to_string(float_format="{:.1f}".format, na_rep=""))
    print(f"in percent after the last task, stored in {store.path(config)}")


def list_or_remove(options: Namespace) -> int:
    """List what is stored, running and failed, how large it is and how long it took.

    The store is runs/ of the cache or of $PRSLIB_CACHE. With --check, say of every
    result in a folder, such as one from someone else, whether it is what its name and
    its configuration say, and whether it is equal to that of this store.

    Example: prslib runs --remove failed
    """
    from prslib.experiments.inventory import check_folder, list_runs, remove
    from prslib.experiments.store import Store, mixture

    store = Store()
    if options.check is not None:
        results = check_folder(options.check, store)
        for row in results.to_dict("records"):
            print(f"{row['run']}  {row['what'] or 'unknown'}: {row['verdict']}")
        right = results["verdict"].str.startswith("right")
        if mixed := mixture(results["on"]):
            print(mixed)
        print(f"{right.sum()} of {len(results)} results are right in {options.check}")
        return 0 if right.all() else 1
    runs = remove(store, options.remove) if options.remove else list_runs(store)
    if len(runs):
        print(runs.to_string(index=False, float_format="{:.2f}".format, na_rep=""))
    counts = runs["state"].value_counts().items()
    text = ", ".join(f"{count} {state}" for state, count in counts) or "no runs"
    if mixed := mixture(on for on in runs["on"] if on):
        print(mixed)
    where = "removed from" if options.remove else "in"
    print(f"{text}, {runs['MB'].sum():.2f} MB {where} {store.folder}")
    return 0


def show_plan(options: Namespace) -> int:
    """Tell which runs are missing, their steps, and their hours on this machine.

    For every notebook of a profile: its runs, those that are not stored yet, and how
    long they take, one after another: by stored runs of the same kind or, without
    scores and gradient variances, by a few real steps of each kind. With --tflops the
    hours are those of a card that computes at this rate. The labels of its data sets
    suffice: their annotations, or a prepared set.

    Example: prslib plan --profile paper
    """
    profile = options.profile
    names = _notebooks(profile, options.notebook)
    from yaml import YAMLError

    from prslib.experiments.cost import plan
    from prslib.experiments.store import Store
    from prslib.report.topics import device_of, runs_of  # in a checkout alone

    notebooks = []
    status = 0
    for name in names:
        try:
            if runs := runs_of(profile, name):
                notebooks.append((name, runs, device_of(profile, name)))
        except (*ERRORS, YAMLError) as error:
            missing = isinstance(error, FileNotFoundError)
            file = name if missing else params_file(profile, name)
            print(f"left out: {file}: {error}", file=sys.stderr)
            status = 1
    tflops = options.tflops
    print(plan(notebooks, Store(), tflops) if notebooks else "no runs")
    return status


def show_preview(options: Namespace) -> None:
    """Show what each sampler's memory would hold of your labels, without training.

    The file is a CSV with a header: columns of 0 and 1, a class each, or one column
    called labels with class names, several in a cell divided by | or ;. Or it is an npz
    file with the array labels, rows of 0 and 1 or class numbers, and maybe names; or
    annotations in COCO's format.

    Example: prslib preview labels.csv --size 2000
    """
    from prslib.previews import preview, read_labels

    picture = options.picture
    if picture and not (picture.suffix and picture.parent.is_dir()):
        what = "--picture as a file such as memory.png in a folder that is there"
        raise ValueError(expected(what, picture))
    labels, names = read_labels(options.file)
    result = preview(
        labels, options.size, rho=options.rho, seed=options.seed, class_names=names
    )
    print(result)
    if options.picture:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10, 5), layout="constrained")
        result.plot(figure.subplots())
        figure.savefig(options.picture)


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
        signature(make).bind(1, 1, 0)  # size, classes, seed
    except Exception as error:  # whatever a module leads to
        what = "package.module:Class, made as Class(size, num_classes, seed)"
        raise ValueError(expected(what, f"{options.sampler!r} ({error})")) from error
    shown = sys.stderr.isatty()
    answer = conformance.check_prs(make, options.seeds, options.variant, progress=shown)
    print(options.sampler, answer)
    return 1 if answer.departures else 0


def _notebooks(profile: str, names: list[str]) -> list[str]:
    """Return the notebooks that a command names, by default all of the profile."""
    one_of("profile", profile, known_profiles())
    notebooks = known_notebooks(profile)
    if not notebooks:
        what = "the notebooks of a checkout of prslib"
        advice = "clone the repository and work there"
        raise FileNotFoundError(expected(what, project_root(), advice))
    for name in names:
        one_of("notebook", name, notebooks)
    return names or notebooks
