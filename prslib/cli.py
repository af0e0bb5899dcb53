"""The command line: ``prslib --help``."""

import argparse
import inspect
import sys
from argparse import ArgumentParser
from ast import literal_eval
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

import prslib
from prslib import conformance
from prslib.checks import expected, naming_extra, one_of, whole
from prslib.datasets import prepare
from prslib.paths import known_notebooks, known_profiles, project_root
from prslib.report.build import execute, stale
from prslib.training import round_alike


def main(arguments: list[str] | None = None) -> int:
    """Run a subcommand and return the exit status, 0 on success and 1 on an error."""
    options = _parser().parse_args(arguments)
    round_alike()  # features and weights are the same then on all processors
    try:
        if getattr(options, "workers", None) is not None:
            whole("--workers", options.workers, least=1)
        with naming_extra(getattr(options, "extra", "report")):
            return options.command(options) or 0
    except (
        OSError,
        ValueError,
        RuntimeError,
        ImportError,
    ) as error:  # it says what to do
        print(error, file=sys.stderr)
        return 1


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        "prslib",
        description="Train what is missing, draw the report, and look after its runs "
        "and data.",
        epilog="example: prslib figures rho_sweep --profile smoke",
    )
    parser.add_argument(
        "--version", action="version", version=f"prslib {prslib.__version__}"
    )
    with suppress(ModuleNotFoundError):
        import shtab

        shtab.add_argument_to(
            parser, help='for bash: eval "$(prslib --print-completion bash)"'
        )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, run: Callable, extra: str = "report") -> ArgumentParser:
        """Add a command, which its function's docstring explains."""
        text, _, example = (inspect.getdoc(run) or "").partition("\n\nExample: ")
        first = text.partition("\n")[0].rstrip(".")
        command = commands.add_parser(
            name,
            help=first[:1].lower() + first[1:],
            description=text,
            epilog=f"example: {example or f'prslib {name}'}",
        )
        command.set_defaults(command=run, notebook=[], extra=extra)
        return command

    figures = add("figures", execute_notebooks)
    figures.add_argument(
        "notebook", nargs="*", help="names; by default all that are not up to date"
    )
    one = add("run", train_run, "training")
    one.add_argument("dataset")
    one.add_argument("method")
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--rho", type=float, default=0.0)
    one.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another field of RunConfig, such as memory_size=500; may be repeated",
    )
    one.add_argument("--device", default="cpu", help="cpu or cuda (%(default)s)")
    runs = add("runs", list_or_remove)
    runs.add_argument(
        "--remove",
        nargs="+",
        metavar="WHAT",
        help="remove runs instead: hashes or their first letters, states such as "
        "failed or interrupted, or all; running ones stay",
    )
    plan = add("plan", show_plan)
    plan.add_argument(
        "notebook", nargs="*", help="names; by default all of the profile"
    )
    check = add("verify", verify_results)
    for command in (figures, plan, check):
        command.add_argument(
            "--profile", default="quick", help="a folder in params/ (%(default)s)"
        )
    prepare.add_command(commands)
    conform = add("conformance", find_departures, "data")
    default = "prslib.samplers:PRS"
    conform.add_argument(
        "sampler", nargs="?", default=default, help="package.module:Class"
    )
    conform.add_argument(
        "--seeds", type=int, default=5, help="runs a stream (%(default)s)"
    )
    conform.add_argument(
        "--variant",
        default="paper",
        choices=("paper", "authors"),
        help="authors compares with the slots of the released code (%(default)s)",
    )
    return parser


def execute_notebooks(options: argparse.Namespace) -> int:
    """Execute notebooks: train what is missing, draw.

    Example: prslib figures rho_sweep --profile smoke
    """
    names = _notebooks(options)
    if not options.notebook:
        names = [name for name in names if stale(options.profile, name)]
    if not names:
        print(f"nothing to draw: all of profile {options.profile!r} is up to date")
        return 0
    errors = execute(options.profile, names)
    if stopped := [name for name in errors if name in names]:
        print(
            f"{len(stopped)} notebooks stopped: {', '.join(stopped)}", file=sys.stderr
        )
    for name, error in errors.items():  # its last line says why
        print(f"{name} stopped: {error}", file=sys.stderr)
    return 1 if errors else 0


def train_run(options: argparse.Namespace) -> None:
    """Train one run if it is not stored, and print its final scores.

    Example: prslib run cocoseq-mini PRS --seed 0 --rho 0
    """
    from prslib.experiments.store import Store, final_table
    from prslib.experiments.sweep import run_all
    from prslib.training.config import RunConfig

    fields = {"seed": options.seed, "rho": options.rho}
    for text in options.option:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(expected("--option NAME=VALUE", repr(text)))
        with suppress(ValueError, SyntaxError):  # else it is text
            value = literal_eval(value)
        if name in RunConfig.__dataclass_fields__:
            fields[name] = value
        else:  # of a sampler
            fields["options"] = fields.get("options", {}) | {name: value}
    try:
        config = RunConfig(options.dataset, options.method, **fields)
    except TypeError as error:  # of a value that came as text
        raise ValueError(str(error)) from error
    store = Store()
    (run,) = run_all([config], store, device=options.device)
    print(final_table(run).to_string(float_format="{:.1f}".format, na_rep=""))
    print(f"in percent after the last task, stored in {store.path(config)}")


def list_or_remove(options: argparse.Namespace) -> None:
    """List what is stored, running and failed, and how large it is.

    The store is runs/ of the cache or of $PRSLIB_CACHE.

    Example: prslib runs --remove failed
    """
    from prslib.experiments import inventory
    from prslib.experiments.store import Store

    store = Store()
    entries = inventory.list_runs(store)
    if not options.remove:
        return print(f"{inventory.as_text(entries)} in {store.folder}")
    chosen = inventory.select(entries, options.remove)
    removed = inventory.remove(store, chosen)
    size = inventory.in_bytes(sum(entry.size for entry in removed))
    print(f"removed {len(removed)} runs, {size}")
    if stays := [entry.hash for entry in chosen if entry not in removed]:
        print(
            f"another process has changed {', '.join(stays)} meanwhile: left as it is"
        )


def show_plan(options: argparse.Namespace) -> None:
    """Tell which runs are missing, their steps, and their hours on this machine.

    For every notebook of a profile: its runs, those that are not stored yet, and how
    long they take, from a few real steps of each kind.

    Example: prslib plan --profile paper
    """
    from prslib.experiments.cost import plan
    from prslib.experiments.store import Store
    from prslib.report.topics import device_of, runs_of

    def runs_and_device(name: str) -> tuple[list, str]:
        return runs_of(options.profile, name), device_of(options.profile, name)

    print(plan(_notebooks(options), runs_and_device, Store()))


def verify_results(options: argparse.Namespace) -> int:
    """Train a few runs anew; compare them, and what was drawn, with the commit.

    The runs are trained in a temporary folder, for a minute or two. What is compared:
    their scores, the profile's CSV files and its articles.

    Example: prslib verify --profile seeds
    """
    from prslib.report.verify import verify

    _notebooks(options)
    lines, within = verify(options.profile)
    print("\n".join(lines))
    return 0 if within else 1


def find_departures(options: argparse.Namespace) -> int:
    """Check an implementation of PRS against the paper's equations.

    Let a sampler of PRS decide the embedded streams; say whether it decides as
    Algorithm 1 does, or at which equation, stream and sample it first departs. It is
    made as Class(size, num_classes, seed, rho=rho) and asked place(labels), or
    place(labels, uniforms=...) if it has this parameter.

    Example: prslib conformance my_module:MyPRS
    """
    module, _, name = options.sampler.partition(":")
    sys.path.insert(0, "")  # a module in the working directory
    try:
        make = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        said = f"expected package.module:Class, got {options.sampler!r} ({error})"
        raise ValueError(said) from error
    answer = conformance.check_prs(make, options.seeds, options.variant)
    print(options.sampler, answer)
    return 1 if answer.departures else 0


def _notebooks(options: argparse.Namespace) -> list[str]:
    """Return the notebooks that a command names, by default all of the profile."""
    if not (profiles := known_profiles()):
        raise ValueError(
            f"expected notebooks of prslib, in a checkout, got {project_root()}"
        )
    one_of("profile", options.profile, profiles)
    notebooks = known_notebooks(options.profile)
    for name in options.notebook:
        if name not in notebooks:
            raise ValueError(
                f"no parameters for notebook {name!r} under profile "
                f"{options.profile!r}: expected params/{options.profile}/{name}.yaml; "
                f"known notebooks: {', '.join(notebooks)}"
            )
    return options.notebook or notebooks
