"""From a profile to its figures: train what all notebooks want, then execute them side by side."""

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import papermill
from jupyter_core.utils import ensure_event_loop
from tqdm import tqdm
from traitlets.config import Config

from prslib.notebook import given, wanted
from prslib.paths import project_root
from prslib.portable import round_alike
from prslib.runs.executed import executed_file
from prslib.sweep import run_all

DRAWN_AT_ONCE = 4  # notebooks; each keeps about one core busy once its runs are stored
# begun first, so that no core waits for the last of them
LONGEST = ("single_label", "ledger", "datasets", "feature_tsne", "main_results", "walkthrough")


def execute(profile: str, names: Sequence[str]) -> dict[str, str]:
    """Train the runs of several notebooks in one sweep and execute the notebooks.

    Parameters
    ----------
    profile : str
        "smoke", "quick", "seeds" or "paper".
    names : sequence of str
        Notebooks of the profile.

    Returns
    -------
    dict of str to str
        The error of each notebook that stopped with one, under its name, and under "training on
        DEVICE" what ended a sweep; the others are executed all the same.
    """
    round_alike()  # before the notebooks' processes load numpy
    errors = _train(profile, names)
    with ThreadPoolExecutor(min(DRAWN_AT_ONCE, os.cpu_count() or 1)) as pool:
        in_order = [name for name in LONGEST if name in names]
        in_order += [name for name in names if name not in LONGEST]
        under_way = {pool.submit(_draw, profile, name): name for name in in_order}
        bar = tqdm(as_completed(under_way), total=len(names), desc="drawing", unit="notebook")
        for done in bar:
            name = under_way[done]
            try:
                bar.write(f"{name}: {done.result():.0f} s", file=sys.stderr)
            except Exception as error:  # its own, its kernel's or of its parameters
                partial = _partial(profile, name)
                reached = f"\nas far as it came: {partial}" if partial.exists() else ""
                errors[name] = _said(error) + reached
            else:
                errors.pop(name, None)  # what stopped its training did not come back
    return errors


def _train(profile: str, names: Sequence[str]) -> dict[str, str]:
    """Train what is missing, one sweep a device; a notebook that cannot say what it wants waits."""
    errors, by_device = {}, {}
    for name in names:
        try:
            runs = wanted(name, profile)
            by_device.setdefault(given(profile, name).get("device", "cpu"), []).extend(runs)
        except Exception as error:  # told when it is drawn, if it still cannot then
            errors[name] = _said(error)
    for device, configurations in by_device.items():
        try:
            run_all(configurations, device=device)
        except Exception as error:  # notebooks whose runs are stored can be drawn all the same
            errors[f"training on {device}"] = _said(error)
    return errors


def _said(error: Exception) -> str:
    told = isinstance(error, papermill.PapermillExecutionError)  # it names the notebook's error
    return str(error) if told else f"{type(error).__name__}: {error}"


def _partial(profile: str, name: str) -> Path:
    return executed_file(profile, name).with_suffix(".partial.ipynb")


def _draw(profile: str, name: str) -> float:
    """Execute a notebook and return the seconds it took."""
    start, partial, loop = time.perf_counter(), _partial(profile, name), ensure_event_loop()
    partial.parent.mkdir(parents=True, exist_ok=True)
    partial.unlink(missing_ok=True)
    with contextlib.closing(loop), tempfile.TemporaryDirectory() as sockets:
        papermill.execute_notebook(
            project_root() / "notebooks" / f"{name}.ipynb",
            partial,
            given(profile, name),
            kernel_name="python3",
            cwd=project_root(),
            progress_bar=False,
            stderr_file=sys.stderr,
            # a kernel that is told to end while idle logs the interrupt as an error
            extra_arguments=["--log-level=CRITICAL"],
            # sockets of its own for each kernel, and nothing over the network
            config=Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}}),
        )
    partial.replace(executed_file(profile, name))
    return time.perf_counter() - start
