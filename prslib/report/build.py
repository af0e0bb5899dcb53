"""Execute notebooks and tell which are out of date.

What is slow to load is loaded where it is needed.
"""

import hashlib
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from prslib.paths import (
    PACKAGE,
    cache_dir,
    figures_dir,
    known_notebooks,
    notebook_file,
    params_file,
    project_root,
)

if TYPE_CHECKING:
    from prslib.train import RunConfig

LEDGER = "ledger"

# notebooks; each keeps about one core busy once its runs are stored
DRAWN_AT_ONCE = 4
COMPILED = (".pyc", ".nbc", ".nbi")  # files of the package that are no source


def executed_file(profile: str, name: str) -> Path:
    """Return where a notebook's executed copy is kept."""
    return cache_dir() / "executed" / profile / f"{name}.ipynb"


def stale(profile: str, name: str) -> bool:
    """Tell whether what a notebook reads changed since it was last executed."""
    file = digest_file(profile, name)
    drawn = file.is_file() and figures_dir(profile).is_dir()
    return not drawn or file.read_text() != digest_of(profile, name)


def digest_file(profile: str, name: str) -> Path:
    """Return the file with the digest of what an executed notebook has read."""
    return executed_file(profile, name).with_suffix(".sha256")


def digest_of(profile: str, name: str) -> str:
    """Hash what a notebook reads: the package, itself, its parameters.

    The ledger reads the runs of all notebooks.
    """
    names = known_notebooks(profile) if name == LEDGER else [name]
    files = [notebook_file(one) for one in names]
    files += [params_file(profile, one) for one in names]
    whole = hashlib.sha256(package_digest().encode())
    for file in filter(Path.is_file, files):
        whole.update(file.name.encode() + file.read_bytes())
    return whole.hexdigest()


@lru_cache
def package_digest() -> str:
    """Hash the package with its embedded data."""
    whole = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*")):
        if file.is_file() and file.suffix not in COMPILED:
            whole.update(str(file.relative_to(PACKAGE)).encode() + file.read_bytes())
    return whole.hexdigest()


def execute(profile: str, names: Sequence[str]) -> dict[str, str]:
    """Train the runs of notebooks, execute them, and return errors by name."""
    from tqdm.contrib.concurrent import thread_map

    errors = {}
    listed = {}
    for name in names:
        with suppress(Exception):  # drawing it tells the error
            listed |= list_runs(profile, name)
    try:
        train_listed(listed.values())
    except Exception as error:  # notebooks whose runs are stored can still be drawn
        errors["training"] = f"{type(error).__name__}: {error}"

    def attempt(name: str) -> None:
        try:
            draw(profile, name)
        except Exception as error:  # a cell's, its kernel's or of its parameters
            kind = getattr(error, "ename", type(error).__name__)
            errors[name] = f"{kind}: {getattr(error, 'evalue', error)}"

    at_once = min(DRAWN_AT_ONCE, os.cpu_count() or 1)
    thread_map(attempt, names, max_workers=at_once, desc="drawing", unit="notebook")
    return errors


def train(profile: str, names: Sequence[str], shard: tuple[int, int] = (1, 1)) -> None:
    """Train the missing runs of notebooks, or a part of them.

    Part (3, 20) has every twentieth run in the order of their keys, from the third on.
    Stored runs are counted, too, so that parts never overlap, whenever they start.
    """
    listed = {}
    for name in names:
        listed |= list_runs(profile, name)
    number, parts = shard
    chosen = set(sorted(listed)[number - 1 :: parts])
    train_listed(listed[key] for key in listed if key in chosen)


def list_runs(profile: str, name: str) -> dict[str, tuple[str, "RunConfig"]]:
    """Return the runs of a notebook by key, each with the device that trains it."""
    from prslib.report.topics import device_of, runs_of
    from prslib.runs import key_of

    device = device_of(profile, name)
    configs = [config.to_train for config in runs_of(profile, name)]
    return {key_of(config): (device, config) for config in configs}


def train_listed(runs: Iterable[tuple[str, "RunConfig"]]) -> None:
    """Train the runs that are missing, device by device."""
    from prslib.runs import train

    by_device = defaultdict(list)
    for device, config in runs:
        by_device[device].append(config)
    for device, configs in by_device.items():
        train(configs, device=device)


def draw(profile: str, name: str) -> None:
    """Execute a notebook."""
    import papermill
    from jupyter_core.utils import ensure_event_loop

    from prslib.report.notebook import profile_values

    executed = executed_file(profile, name)
    executed.parent.mkdir(parents=True, exist_ok=True)
    partial = executed.with_suffix(".partial.ipynb")  # after an error it stays
    with closing(ensure_event_loop()):  # of this thread
        papermill.execute_notebook(
            notebook_file(name),
            partial,
            profile_values(profile, name),
            cwd=project_root(),
            progress_bar=False,
            stderr_file=sys.stderr,
            extra_arguments=["--log-level=CRITICAL"],  # it warns of how it is reached
        )
    partial.replace(executed)
    digest_file(profile, name).write_text(digest_of(profile, name))
