"""The commands ``runs``, ``plan`` and ``pretrain``: what is stored, what is missing, weights."""

import argparse
import sys
from functools import partial

from prslib.models.weights import EMBEDDED
from prslib.paths import known_notebooks, known_profiles


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
    from prslib.runs.inventory import in_bytes, inventory, remove, select, table
    from prslib.store import Store

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
    from prslib.runs.plan import as_text, plan
    from prslib.store import Store

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

    from prslib.pretraining import embed

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
