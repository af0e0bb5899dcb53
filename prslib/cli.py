"""Train runs, build the report, prepare data sets, and try samplers on your data."""

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from ast import literal_eval
from collections.abc import Callable
from pathlib import Path
from typing import Any

import prslib
from prslib.checks import expected, naming_extra, one_of
from prslib.datasets.prepare import add_command, add_prepare
from prslib.paths import (
    cache_dir,
    figures_dir,
    known_notebooks,
    known_profiles,
)
from prslib.rounding import set_deterministic

ERRORS = OSError, ValueError, TypeError, RuntimeError, ImportError, MemoryError
NOTEBOOKS = "names of notebooks; by default, all "
PROFILE = {
    "default": "quick",
    "help": "`%(default)s` (default), or the name of a folder in params/",
}
OPTION = (
    "another field of `RunConfig`, such as `memory_size=500`, or an option of the "
    "sampler; may be repeated"
)
SEED = "seed of all random decisions (default: %(default)s)"
RHO = "exponent rho in the target shares of PRS and OCDM"
DEVICE = (
    "`cpu`, `cuda`, `mps`, or `auto`, which is a GPU if there is one "
    "(default: `%(default)s`)"
)
SHARD = (
    "train only one part of the runs; for example, the third of 20 Slurm tasks uses "
    "`3/20`"
)
ABOUT = (
    "a CSV file with one row per sample; its column `task` or `order` sorts the stream, "
    "and samples with the same value in its column `group` are either all used for "
    "training or all used for testing"
)
REDRAW = "plot the tables in figures/PROFILE as they are, and train nothing"


def main(arguments: list[str] | None = None) -> int:
    """Run a subcommand and return the exit status: 0 on success, 1 on an error, 130 on Ctrl-C."""
    options = _parser().parse_args(arguments)
    set_deterministic()  # the same features and weights on all processors
    # child processes import nothing from the current folder
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    try:
        with naming_extra("report"):
            return options.command(options) or 0
    except ERRORS as error:
        print(error, file=sys.stderr)  # the message says what to do
        return 1
    except KeyboardInterrupt as error:
        print(str(error) or "stopped", file=sys.stderr)
        return 130  # as in a shell


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
    argument("notebook", nargs="*", help=NOTEBOOKS + "that are out of date")
    argument("--profile", **PROFILE)
    argument("--redraw", action="store_true", help=REDRAW)
    argument = add("run", train_run)
    argument("dataset", help="name of a data set, such as cocoseq-mini")
    argument("method", help="name of a method, such as PRS")
    argument("--seed", type=int, default=0, help=SEED)
    argument("--rho", type=float, help=RHO + "; by default, the value for the data set")
    argument("--option", action="append", default=[], type=setting, help=OPTION)
    argument("--device", default="cpu", help=DEVICE)
    argument = add("train", train_profile)
    argument("notebook", nargs="*", help=NOTEBOOKS + "in the profile")
    argument("--profile", **PROFILE)
    argument("--shard", type=shard, default=(1, 1), help=SHARD)
    argument = add("scores", write_profile)
    argument("--profile", **PROFILE)
    add_prepare(commands)
    argument = add("preview", show_preview)
    argument("file", type=Path, help="labels in the order of the stream")
    argument(
        "--size",
        type=int,
        default=2000,
        help="capacity of the memory (default: %(default)s)",
    )
    argument(
        "--picture",
        type=target,
        metavar="FILE",
        help="write a plot to this file, such as memory.png",
    )
    argument("--rho", type=float, default=0.0, help=RHO + " (default: %(default)s)")
    argument("--seed", type=int, default=0, help=SEED)
    argument = add("trial", try_samplers)
    argument(
        "inputs",
        type=Path,
        help="an npy, npz (array `inputs`), parquet or CSV file, or a folder of images",
    )
    argument("labels", type=Path, help="a file that `prslib preview` can read")
    argument("--about", type=Path, metavar="FILE", help=ABOUT)
    argument(
        "--size",
        type=int,
        nargs="+",
        help="one or more capacities of the memory; by default, 5.7 %% of the stream",
    )
    argument(
        "--seeds", type=int, default=5, help="number of seeds (default: %(default)s)"
    )
    argument(
        "--save", type=target, metavar="FILE", help="write all scores to this CSV file"
    )
    argument("--device", default="cpu", help=DEVICE)
    return parser


def shard(text: str) -> tuple[int, int]:
    """Parse "3/20", the number of a part and the number of parts."""
    number, _, count = text.partition("/")
    is_part = number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)
    if not is_part:
        raise ArgumentTypeError(expected("a part from 1/20 to 20/20", text))
    return int(number), int(count)


def target(text: str) -> Path:
    """Check that a file can be written, before any work starts."""
    file = Path(text)
    if file.is_dir() or not file.parent.is_dir():
        raise ArgumentTypeError(expected("a file in a folder that exists", text))
    return file


def setting(text: str) -> tuple[str, Any]:
    """Parse "name=value"; the value is text unless it is a Python literal."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ArgumentTypeError(expected("NAME=VALUE", text))
    try:
        return name, literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def execute_notebooks(options: Namespace) -> int:
    """Execute notebooks: train the missing runs, and make figures and tables.

    Example: prslib figures rho_sweep --profile smoke
    """
    names = _notebooks(options.profile, options.notebook)
    from prslib.report.build import execute, is_stale  # only in a checkout

    if not options.notebook and not options.redraw:
        names = [name for name in names if is_stale(options.profile, name)]
    if not names:
        print(f"nothing to draw: all of profile {options.profile!r} is up to date")
        return 0
    errors = execute(options.profile, names, options.redraw)
    for error in dict.fromkeys(errors.values()):  # notebooks may share an error
        stopped = ", ".join(name for name in errors if errors[name] == error)
        print(f"{stopped} stopped: {error}", file=sys.stderr)
    print(f"pictures and tables are in {figures_dir(options.profile)}")
    return 1 if errors else 0


def train_run(options: Namespace) -> None:
    """Train one run if it is not stored, and print its final scores.

    Example: prslib run cocoseq-mini PRS --seed 0 --rho 0
    """
    with naming_extra("training"):
        from prslib.runs import path_of, run_all
        from prslib.train import METHODS, RunConfig, unread_fields

    method = one_of("method", options.method, METHODS)
    reads = RunConfig.__dataclass_fields__.keys() - unread_fields(method)
    fields = reads - {"dataset", "method", "seed", "rho", "options"}
    values: dict[str, Any] = {"seed": options.seed, "options": {}}
    if options.rho is not None:
        values[one_of(f"field of {method}", "rho", reads)] = options.rho
    for name, value in options.option:
        one_of(f"option of {method}", name, fields | METHODS[method].options)
        (values if name in fields else values["options"])[name] = value
    config = RunConfig(options.dataset, method, **values)
    (run,) = run_all([config], device=options.device)
    rows = prslib.scores(run).query("metric in ['mAP', 'C-F1', 'O-F1', 'accuracy']")
    table = rows.pivot_table("value", ["test_set", "group"], "metric", sort=False)
    table = table.rename_axis(columns=None)
    print(table.to_string(float_format="{:.1f}".format, na_rep=""))
    print(f"in percent after the last task, stored in {path_of(config)}")


def train_profile(options: Namespace) -> None:
    """Train the runs that a profile's notebooks need and that are not stored yet.

    Example: prslib train --profile paper --shard 3/20
    """
    names = _notebooks(options.profile, options.notebook)
    from prslib.report.build import train  # only in a checkout

    train(options.profile, names, options.shard)
    number, count = options.shard
    print(f"part {number} of {count}: all runs are stored in {cache_dir() / 'runs'}")


def write_profile(options: Namespace) -> None:
    """Write the final scores and forgetting of a profile's stored runs into scores.csv.xz.

    Example: prslib scores --profile seeds
    """
    names = _notebooks(options.profile, [])
    from prslib.report.all_scores import write_scores  # only in a checkout

    print(write_scores(options.profile, names))


def show_preview(options: Namespace) -> None:
    """Show what CRS, PRS, CBRS and OCDM would keep from your labels, without training.

    The file can be a CSV with a header. Such a CSV has either one column per class, with
    0s and 1s, or a single column `labels`, in which `|` or `;` separates the class names
    of a sample. An npy file contains rows of 0 and 1, or class numbers. An npz file
    contains such an array, called `labels`, and optionally an array `names` with the
    names of the classes. A JSON file contains annotations in COCO's format.

    Example: prslib preview labels.csv --size 2000
    """
    result = prslib.preview(
        options.file, options.size, rho=options.rho, seed=options.seed
    )
    print(result)
    if options.picture:
        result.plot().figure.savefig(options.picture, bbox_inches="tight")


def try_samplers(options: Namespace) -> None:
    """Compare CRS, CBRS, PRS and OCDM by training a small network on your stream with each.

    Labels are read as in `prslib preview`, and inputs have one row per sample. Without
    --about, samples come in the order of the rows.

    Example: prslib trial features.npy labels.csv --about tasks.csv
    """
    from prslib.label_files import read_about, read_inputs, read_labels

    labels, names = read_labels(options.labels)
    inputs = read_inputs(options.inputs, options.labels)
    about = read_about(options.about) if options.about else {}
    result = prslib.trial(
        inputs,
        labels,
        class_names=names,
        memory_size=options.size,
        seeds=range(options.seeds),
        device=options.device,
        **about,
    )
    print(result)
    if options.save:
        result.scores.to_csv(options.save, index=False, float_format="%.6g")


def _notebooks(profile: str, names: list[str]) -> list[str]:
    """Check and return names of notebooks, by default all notebooks of the profile."""
    one_of("profile", profile, known_profiles())
    notebooks = known_notebooks(profile)
    if not notebooks:
        raise FileNotFoundError(
            "notebooks need a checkout of prslib, because pip install leaves them out; "
            "clone the repository and run pip install -e '.[report]' there"
        )
    for name in names:
        one_of("notebook", name, notebooks)
    return names or notebooks
