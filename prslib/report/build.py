"""Execute notebooks and tell which are out of date.

What is slow to load is loaded where it is needed.
"""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from prslib.paths import PACKAGE, figures_dir, params_file, project_root
from prslib.report import articles
from prslib.report.articles import executed_file

DRAWN_AT_ONCE = 4  # notebooks; each keeps about one core busy once its runs are stored
# begun first, so that no core waits for the last of them
LONGEST = ["deviations", "single_label", "ledger", "datasets", "feature_tsne"]
LONGEST += ["main_results", "walkthrough"]


def stale(profile: str, name: str) -> bool:
    """Tell whether what a notebook reads changed since it was last executed."""
    executed = executed_file(profile, name)
    if not (executed.is_file() and figures_dir(profile).is_dir()):
        return True
    has_article = articles.profile_of(name) == profile
    if has_article and not articles.article_file(name).is_file():
        return True
    read = (".py", ".csv", ".mplstyle", ".pth")
    sources = [file for file in PACKAGE.rglob("*") if file.suffix in read]
    sources.append(project_root() / "notebooks" / f"{name}.ipynb")
    sources.append(params_file(profile, name))
    return max(file.stat().st_mtime for file in sources) > executed.stat().st_mtime


def execute(profile: str, names: Sequence[str]) -> dict[str, str]:
    """Train the runs of notebooks in one sweep, execute them, return errors by name."""
    from tqdm import tqdm
    from tqdm.contrib.concurrent import thread_map

    from prslib.training import round_alike

    round_alike()  # before the notebooks' processes load numpy
    errors = _train(profile, names)

    def draw(name: str) -> None:
        try:
            seconds = _draw(profile, name)
        except Exception as error:  # its own, its kernel's or of its parameters
            errors[name] = _message(error, _partial(profile, name))
        else:
            tqdm.write(f"{name}: {seconds:.0f} s", file=sys.stderr)
            errors.pop(name, None)  # what stopped its training did not come back

    in_order = sorted(names, key=[*LONGEST, *names].index)
    at_once = min(DRAWN_AT_ONCE, os.cpu_count() or 1)
    thread_map(draw, in_order, max_workers=at_once, desc="drawing", unit="notebook")
    return errors


def _train(profile: str, names: Sequence[str]) -> dict[str, str]:
    """Train what is missing, one sweep a device, and return the errors."""
    from prslib.experiments.store import Store
    from prslib.experiments.sweep import run_all
    from prslib.report.topics import device_of, runs_of

    store = Store()
    errors, by_device = {}, {}
    for name in names:
        try:
            runs = runs_of(profile, name)
            by_device.setdefault(device_of(profile, name), []).extend(runs)
        except Exception as error:  # told when it is drawn, if it still cannot then
            errors[name] = _message(error)
    for device, configs in by_device.items():
        # a file that cannot be read is found, and trained again, by its notebook
        missing = [config for config in configs if not store.path(config).exists()]
        try:
            run_all(missing, device=device)
        except Exception as error:  # notebooks whose runs are stored can still be drawn
            errors[f"training on {device}"] = _message(error)
    return errors


def _message(error: Exception, partial: Path | None = None) -> str:
    """Return an error's message as the last line, and which file has the traceback."""
    from papermill import PapermillExecutionError

    if isinstance(error, PapermillExecutionError):
        where = f"in cell {error.exec_count} of {partial}, with the traceback"
        return f"{where}\n{error.ename}: {error.evalue}"
    return f"{type(error).__name__}: {error}"


def _partial(profile: str, name: str) -> Path:
    return executed_file(profile, name).with_suffix(".partial.ipynb")


def _draw(profile: str, name: str) -> float:
    """Execute a notebook and return the seconds it took."""
    import papermill
    from jupyter_core.utils import ensure_event_loop
    from traitlets.config import Config

    from prslib.report.notebook import parameters

    start, partial = time.perf_counter(), _partial(profile, name)
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(
            f"expected a folder for executed notebooks, got {error}; set PRSLIB_CACHE "
            "to a folder that can be written"
        ) from error
    with closing(ensure_event_loop()), tempfile.TemporaryDirectory() as sockets:
        # sockets of its own for each kernel, and nothing over the network
        ipc = {"transport": "ipc", "ip": f"{sockets}/kernel"}
        papermill.execute_notebook(
            project_root() / "notebooks" / f"{name}.ipynb",
            partial,
            parameters(profile, name),
            kernel_name="python3",
            cwd=project_root(),
            progress_bar=False,
            shutdown_kernel="immediate",  # nothing is left to tidy up
            stderr_file=sys.stderr,
            # a kernel that is told to end while idle logs the interrupt as an error
            extra_arguments=["--log-level=CRITICAL"],
            config=Config({"KernelManager": ipc}),
        )
    partial.replace(executed_file(profile, name))
    if articles.profile_of(name) == profile:
        articles.write(profile, name)
    return time.perf_counter() - start
