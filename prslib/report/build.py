"""Execute notebooks whose pictures and tables are not up to date.

Slow imports are inside the functions that need them.
"""

import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from prslib.checks import one_line
from prslib.paths import (
    PACKAGE,
    SUMS,
    cache_dir,
    figures_dir,
    known_notebooks,
    notebook_file,
    params_file,
    project_root,
    replacing,
)

if TYPE_CHECKING:
    from prslib.train import RunConfig

LEDGER = "ledger"
PARAMETERS = "parameters"  # tag of the cell that declares parameters
COMPUTE = "compute"  # tag of cells that a redraw skips

# notebooks at a time; each keeps about one core busy once its runs are stored
DRAWN_AT_ONCE = 4
FORKS = sys.platform == "linux"  # elsewhere a fork of a process with torch is not safe


def executed_file(profile: str, name: str) -> Path:
    """Return the path of a notebook's executed copy."""
    return cache_dir() / "executed" / profile / f"{name}.ipynb"


def record_file(profile: str, name: str) -> Path:
    """Return the record of an execution: digests of what it has read and written."""
    return executed_file(profile, name).with_suffix(".json")


def is_stale(profile: str, name: str) -> bool:
    """Return whether a notebook's inputs or outputs have changed since its execution."""
    try:
        record = json.loads(record_file(profile, name).read_text())
        if record["inputs"] != digest_inputs(profile, name):
            return True
        outputs = record["outputs"].items()
        return any(digest(output(profile, file)) != was for file, was in outputs)
    except Exception:  # executing it reports the error
        return True


def digest_inputs(profile: str, name: str) -> str:
    """Hash the package, a notebook, its parameters and the keys of its runs.

    The ledger reads the runs of all notebooks.
    """
    whole = sha256(digest_package().encode())
    for each in known_notebooks(profile) if name == LEDGER else [name]:
        notebook = notebook_file(each)
        form = notebook.with_suffix(".py")
        for file in (notebook, form, params_file(profile, each)):
            whole.update(file.read_bytes() if file.is_file() else b"")
        whole.update(repr(sorted(list_runs(profile, each))).encode())
    return whole.hexdigest()


@lru_cache
def digest_package() -> str:
    """Hash the package and the embedded data."""
    whole = sha256()
    for folder in (PACKAGE, project_root() / "data"):
        for file in sorted(folder.rglob("*")):
            if file.is_file() and file.suffix != ".pyc":
                whole.update(str(file.relative_to(folder)).encode())
                whole.update(file.read_bytes())
    return whole.hexdigest()


def digest(file: Path) -> str:
    """Hash a file."""
    return sha256(file.read_bytes()).hexdigest()


def read_sums(folder: Path) -> dict[str, str]:
    """Return the digests that a folder's `SUMS` lists, by the file's name."""
    file = folder / SUMS
    lines = file.read_text().splitlines() if file.is_file() else []
    return {name: listed for listed, name in map(str.split, lines)}


def write_sums(folder: Path, files: Iterable[Path]) -> None:
    """Write digests of some files to their folder's `SUMS`; keep those of other files.

    Pictures are left out, because their bytes depend on the version of matplotlib.
    """
    from filelock import FileLock

    numbers = [file for file in files if file.suffix != ".png"]
    with FileLock(cache_dir() / "sums.lock"):  # threads and processes write one list
        sums = read_sums(folder) | {file.name: digest(file) for file in numbers}
        names = [name for name in sorted(sums) if (folder / name).is_file()]
        with replacing(folder / SUMS) as file:
            file.write("".join(f"{sums[name]}  {name}\n" for name in names).encode())


def execute(profile: str, names: Sequence[str], redraw: bool = False) -> dict[str, str]:
    """Train the runs of notebooks, execute the notebooks, and return errors by name.

    A redraw uses the tables in the profile's folder as they are, and trains nothing.
    """
    from tqdm.contrib.concurrent import thread_map

    digest_package()  # cached now, before the code is imported and may be edited
    if FORKS:
        from prslib.report.kernels import prepare

        prepare()
    errors = {}
    listed = {}
    for name in [] if redraw else names:
        with suppress(Exception):  # executing it reports the error
            listed |= list_runs(profile, name)
    try:
        train_listed(listed.values())
    except Exception as error:  # notebooks whose runs are stored can still be executed
        errors["training"] = f"{type(error).__name__}: {error}"

    def attempt(name: str) -> None:
        try:
            draw(profile, name, redraw)
        except Exception as error:  # of a cell, the kernel or the parameters
            kind = getattr(error, "ename", type(error).__name__)
            errors[name] = f"{kind}: {one_line(getattr(error, 'evalue', error))}"

    at_once = min(DRAWN_AT_ONCE, os.cpu_count() or 1)
    thread_map(attempt, names, max_workers=at_once, desc="drawing", unit="notebook")
    return errors


def train(profile: str, names: Sequence[str], shard: tuple[int, int] = (1, 1)) -> None:
    """Train the missing runs of notebooks, or a part of them.

    Part (3, 20) is every twentieth run in the order of keys, from the third on. Stored
    runs are counted, too, so that parts never overlap, whenever they start.
    """
    listed = {}
    for name in names:
        listed |= list_runs(profile, name)
    number, parts = shard
    chosen = set(sorted(listed)[number - 1 :: parts])
    train_listed(listed[key] for key in listed if key in chosen)


@lru_cache
def list_runs(profile: str, name: str) -> dict[str, tuple[str, "RunConfig"]]:
    """Return the runs of a notebook by key, each with the device that trains it."""
    from prslib.report.notebook import Settings
    from prslib.report.topics import runs_of
    from prslib.runs import key_of

    device = getattr(Settings.of(profile, name), "device", "cpu")
    return {key_of(config): (device, config) for config in runs_of(profile, name)}


def train_listed(runs: Iterable[tuple[str, "RunConfig"]]) -> None:
    """Train the missing runs, one device after the other."""
    from prslib.runs import train

    by_device = defaultdict(list)
    for device, config in runs:
        by_device[device].append(config)
    for device, configs in by_device.items():
        train(configs, device=device)


def draw(profile: str, name: str, redraw: bool = False) -> None:
    """Execute a notebook, then put its pictures and tables into the profile's folder.

    Files are first written to a temporary folder, so that simultaneous executions leave
    complete files. A redraw leaves no record, because its tables may be of other runs.
    """
    record = record_file(profile, name)
    before = []  # outputs of the last execution
    if record.is_file() and not redraw:
        before = json.loads(record.read_text())["outputs"]
    record.unlink(missing_ok=True)
    inputs = "" if redraw else digest_inputs(profile, name)
    figures = figures_dir(profile)
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder, "figures")
        drawn.mkdir()
        executed = Path(folder, "executed.ipynb")
        run_notebook(profile, name, executed, drawn, redraw)
        text = executed.read_text(encoding="utf-8").replace(
            str(drawn), f"figures/{profile}"
        )
        written = {executed_file(profile, name): text.encode()}
        for file in sorted(drawn.iterdir()):
            written[figures / file.name] = file.read_bytes()
    for file, content in written.items():
        with replacing(file) as opened:
            opened.write(content)
    for file in {output(profile, old) for old in before} - written.keys():
        file.unlink(missing_ok=True)  # a table or picture that is no longer made
    write_sums(figures, [file for file in written if file.parent == figures])
    if redraw:
        return
    outputs = {file.name: digest(file) for file in written}
    with replacing(record) as opened:
        opened.write(json.dumps({"inputs": inputs, "outputs": outputs}).encode())


def output(profile: str, name: str) -> Path:
    """Return the path of an output: a notebook in the cache, other files in the checkout."""
    executed = executed_file(profile, name).parent
    folder = executed if name.endswith(".ipynb") else figures_dir(profile)
    return folder / name


def run_notebook(
    profile: str, name: str, executed: Path, save: Path, redraw: bool = False
) -> None:
    """Execute a notebook, which writes its pictures and tables into a folder.

    Parameters are read from its .py form, whatever was saved in JupyterLab. A redraw
    replaces the cells that compute tables by ``settings.redraw = True``.
    """
    import nbformat
    import papermill
    from jupyter_core.utils import ensure_event_loop

    from prslib.report.native import Manager
    from prslib.report.notebook import cells_with, profile_values

    manager = Manager
    # ignores a user's startup files and display settings
    alone = f"--ipython-dir={executed.parent}"
    options = {"extra_arguments": ["--log-level=CRITICAL", alone]}
    if FORKS:
        from prslib.report.kernels import ForkManager

        manager = ForkManager
        options["shutdown_kernel"] = "immediate"
    content = nbformat.read(notebook_file(name), as_version=4)
    for cell in content.cells:
        tags = cell.metadata.get("tags", [])
        if PARAMETERS in tags:
            (cell.source,) = cells_with(PARAMETERS, name)
        if COMPUTE in tags and redraw:
            cell.source = "settings.redraw = True"
    nbformat.write(content, executed)
    with closing(ensure_event_loop()):  # of this thread
        papermill.execute_notebook(
            executed,
            executed,
            profile_values(profile, name) | {"save": str(save)},
            kernel_manager_class=manager,
            kernel_name="python3",  # also if a notebook names another environment
            cwd=project_root(),
            progress_bar=False,
            stderr_file=sys.stderr,
            **options,
        )
