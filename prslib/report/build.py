"""Execute notebooks and tell which are out of date.

What is slow to load is loaded where it is needed.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import numpy as np

from prslib.paths import PACKAGE, figures_dir, params_file, project_root
from prslib.report import articles
from prslib.report.articles import executed_file
from prslib.samplers import SAMPLERS, make_sampler

DRAWN_AT_ONCE = 4  # notebooks; each keeps about one core busy once its runs are stored
# begun first, so that no core waits for the last of them
LONGEST = (
    *(
        "deviations",
        "single_label",
        "ledger",
        "datasets",
        "feature_tsne",
        "main_results",
    ),
    "walkthrough",
)


def stale(profile: str, name: str) -> bool:
    """Tell whether what a notebook reads changed since it was last executed."""
    executed = executed_file(profile, name)
    if not (executed.is_file() and figures_dir(profile).is_dir()):
        return True
    if (
        articles.profile_of(name) == profile
        and not articles.article_file(name).is_file()
    ):
        return True
    read = (".py", ".csv", ".mplstyle", ".pth")
    sources = [file for file in PACKAGE.rglob("*") if file.suffix in read]
    sources += [
        project_root() / "notebooks" / f"{name}.ipynb",
        params_file(profile, name),
    ]
    return max(file.stat().st_mtime for file in sources) > executed.stat().st_mtime


def compile_sampler(name: str) -> None:
    """Let a sampler that looks at labels alone decide once, which compiles it."""
    make_sampler(name, size=1, num_classes=1, seed=0).place(np.ones((2, 1), dtype=bool))


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Compile samplers in other processes during a block; PRS takes seconds."""
    with contextlib.ExitStack() as running:
        for name in [name for name, sampler in SAMPLERS.items() if not sampler.needs]:
            command = [sys.executable, "-m", "prslib.report.build", name]
            running.enter_context(subprocess.Popen(command))
        yield


def execute(profile: str, names: Sequence[str]) -> dict[str, str]:
    """Train the runs of notebooks in one sweep, execute them, return errors by name."""
    from tqdm import tqdm

    from prslib.training import round_alike

    round_alike()  # before the notebooks' processes load numpy
    errors = _train(profile, names)
    with ThreadPoolExecutor(min(DRAWN_AT_ONCE, os.cpu_count() or 1)) as pool:
        in_order = sorted(names, key=[*LONGEST, *names].index)
        under_way = {pool.submit(_draw, profile, name): name for name in in_order}
        bar = tqdm(
            as_completed(under_way), total=len(names), desc="drawing", unit="notebook"
        )
        for done in bar:
            name = under_way[done]
            try:
                bar.write(f"{name}: {done.result():.0f} s", file=sys.stderr)
            except Exception as error:  # its own, its kernel's or of its parameters
                errors[name] = _message(error, _partial(profile, name))
            else:
                errors.pop(name, None)  # what stopped its training did not come back
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
    for device, configurations in by_device.items():
        # a file that cannot be read is found, and trained again, by its notebook
        missing = [run for run in configurations if not store.path(run).exists()]
        try:
            run_all(missing, device=device)
        except (
            Exception
        ) as error:  # notebooks whose runs are stored can be drawn all the same
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
    loop = ensure_event_loop()
    with contextlib.closing(loop), tempfile.TemporaryDirectory() as sockets:
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
            # sockets of its own for each kernel, and nothing over the network
            config=Config(
                {"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}}
            ),
        )
    partial.replace(executed_file(profile, name))
    if articles.profile_of(name) == profile:
        articles.write(profile, name)
    return time.perf_counter() - start


if __name__ == "__main__":
    compile_sampler(sys.argv[1])
