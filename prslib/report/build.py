"""Execute notebooks and tell which are out of date.

What is slow to load is loaded where it is needed.
"""

import hashlib
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path

from prslib.paths import (
    PACKAGE,
    cache_dir,
    figures_dir,
    known_notebooks,
    notebook_file,
    params_file,
    project_root,
)

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
    """Train the runs of notebooks in one sweep, execute them, return errors by name."""
    from tqdm.contrib.concurrent import thread_map

    errors = train(profile, names)

    def attempt(name: str) -> None:
        try:
            draw(profile, name)
        except Exception as error:  # a cell's, its kernel's or of its parameters
            kind = getattr(error, "ename", type(error).__name__)
            errors[name] = f"{kind}: {getattr(error, 'evalue', error)}"

    at_once = min(DRAWN_AT_ONCE, os.cpu_count() or 1)
    thread_map(attempt, names, max_workers=at_once, desc="drawing", unit="notebook")
    return errors


def train(profile: str, names: Sequence[str]) -> dict[str, str]:
    """Train what is missing, one sweep a device, and return the errors."""
    from prslib.experiments.store import Store
    from prslib.experiments.sweep import train_all
    from prslib.report.topics import device_of, runs_of

    store = Store()
    errors = {}
    sweeps = defaultdict(list)
    for name in names:
        with suppress(Exception):  # drawing it tells the error
            sweeps[device_of(profile, name)] += runs_of(profile, name)
    for device, configs in sweeps.items():
        # to read those that are stored takes long
        by_hash = {config.hash: config for config in configs}
        missing = [c for c in by_hash.values() if not store.path(c).exists()]
        try:
            if missing:
                train_all(missing, store, device=device)
        except Exception as error:  # notebooks whose runs are stored can still be drawn
            errors[f"training on {device}"] = f"{type(error).__name__}: {error}"
    return errors


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
