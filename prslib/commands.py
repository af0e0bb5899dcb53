"""The commands ``runs`` and ``plan``: what is stored, and what is missing and how long it takes."""

import argparse
import sys


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add ``runs`` and ``plan`` to the command line."""
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


def list_or_remove(options: argparse.Namespace) -> int:
    """List the store's runs or remove some; 1 where what to remove is unclear or cannot be."""
    from prslib.inventory import in_bytes, inventory, remove, select, table
    from prslib.store import Store

    store = Store()
    kept = inventory(store)
    if not options.remove:
        print(f"{table(kept)} in {store.folder}")
        return 0
    try:
        chosen = select(kept, options.remove)
        remove(store, chosen)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"removed {len(chosen)} runs, {in_bytes(sum(one.size for one in chosen))}")
    return 0
