"""The runs that a profile's notebooks still miss, and the hours that they take here."""

import math
import multiprocessing
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from prslib.config import RunConfig
from prslib.datasets.blank import NOTHING, blanks_for_missing
from prslib.notebook import given, wanted
from prslib.runs.cluster import gpu_share
from prslib.runs.estimate import Pace, image_shape, kind_of, measure, work_of
from prslib.runs.pool import side_by_side
from prslib.store import Store

COLUMNS = ["notebook", "wanted", "missing", "steps", "hours"]
SAID = {
    NOTHING: "labels and images missing; all its runs count as missing, at the published size",
    "images": "images missing, so that its runs cannot be trained yet",
}


def plan(profile: str, names: Sequence[str], store: Store) -> tuple[pd.DataFrame, list[str]]:
    """Count a profile's missing runs and estimate how long they take; our own.

    Parameters
    ----------
    profile : str
        "smoke", "quick", "seeds" or "paper".
    names : sequence of str
        Notebooks of the profile.
    store : Store
        Where finished runs are.

    Returns
    -------
    DataFrame
        A row a notebook and one for all together, in which a run that several notebooks want
        counts once, and so do steps and hours of runs that are trained as one: notebook, wanted,
        missing, steps of training, hours (one run after another).
    list of str
        What a reader should know beside it: the hours side by side, missing data, notebooks that
        cannot say what they want, what could not be measured.
    """
    rows, remarks, missing, every, used, on = [], [], {}, {}, {}, {}
    with Paces() as paces, blanks_for_missing() as absent:
        for name in names:
            try:
                device = given(profile, name).get("device", "cpu")
                runs = {config.hash: config for config in wanted(name, profile)}
            except Exception as error:  # whatever is wrong with it, the others can be counted
                remarks.append(f"{name} cannot say what it wants: {type(error).__name__}: {error}")
                continue
            missing[name] = (
                len(runs),
                {
                    key: (config, device)
                    for key, config in runs.items()
                    if absent.get(config.dataset) == NOTHING or not store.path(config).exists()
                },
            )
            used |= {key: config.dataset for key, config in runs.items()}
        paces.measure([run for _, runs in missing.values() for run in runs.values()])
        for name, (count, runs) in missing.items():
            costs = {key: (run[0].training, paces.cost(*run)) for key, run in runs.items()}
            rows.append((name, count, len(costs), *_in_all(costs.values())))
            every |= costs
            on |= {key: (paces.here(device), config) for key, (config, device) in runs.items()}
    rows.append(("all, each run once", len(used), len(every), *_in_all(every.values())))
    named = set(used.values())
    remarks += [f"{name}: {SAID[what]}" for name, what in absent.items() if name in named]
    together = [_together(every, on)] if every else []
    remarks = [*together, *remarks, *dict.fromkeys(paces.remarks)]
    return pd.DataFrame(rows, columns=COLUMNS), remarks


def _in_all(costs: Iterable[tuple[str, tuple[int, float]]]) -> tuple[int, float]:
    """Add up steps and hours, of runs that are trained as one those of the longest."""
    trainings = {}
    for training, cost in costs:
        trainings[training] = np.maximum(trainings.get(training, 0), cost)
    steps, hours = sum(trainings.values(), np.zeros(2))
    return int(steps), hours


def _together(
    costs: dict[str, tuple[str, tuple[int, float]]], on: dict[str, tuple[str, RunConfig]]
) -> str:
    """Say how long all take with as many processes on each device as a sweep begins there."""
    hours, said = 0.0, []
    for device, name in (("cpu", "the CPU"), ("cuda", "the GPU")):
        configs = {key: config for key, (where, config) in on.items() if where == device}
        if configs:
            at_once = side_by_side(gpu_share(list(configs.values()), device))
            at_once = min(at_once, len({costs[key][0] for key in configs}))
            hours += _in_all(costs[key] for key in configs)[1] / at_once
            said.append(f"{at_once} side by side on {name}")
    return (
        f"Hours are for one run after another; with {' and then '.join(said)}, in all: "
        f"{in_hours(hours)}."
    )


class Paces:
    """The paces of this machine, each measured once.

    Notes
    -----
    Measuring is left to a process of its own: where the memory does not suffice, the system may
    kill it, and the plan goes on without this pace. It ends with this process, however that ends.
    """

    def __init__(self):
        self.known: dict[tuple, Pace | None] = {}
        self.remarks: list[str] = []
        self._process: ProcessPoolExecutor | None = None

    def __enter__(self):
        """Return itself."""
        return self

    def __exit__(self, *_error) -> None:
        """End the process."""
        if self._process is not None:
            self._process.shutdown()

    def measure(self, runs: Iterable[tuple[RunConfig, str]]) -> None:
        """Measure a pace for every kind among runs and their devices, with a progress bar."""
        kinds = {}
        for config, device in runs:
            if self.here(device) != device:
                self.remarks.append("there is no GPU here: measured on the CPU instead, one thread")
            kinds.setdefault(self._kind(config, device), (config, self.here(device)))
        with tqdm(kinds.items(), desc="measuring", unit="kind", disable=not kinds) as bar:
            for kind, run in bar:
                bar.set_postfix_str(_in_words(run[0]))
                pace = self.known[kind] = self._measure(*run)
                if pace is not None:
                    said = f"{1000 * pace.step:,.0f} ms a step ({run[1]})"
                    bar.write(f"{_in_words(run[0])}: {said}", file=sys.stderr)

    def cost(self, config: RunConfig, device: str) -> tuple[int, float]:
        """Return a run's steps and its hours; NaN where its pace could not be measured."""
        pace, work = self.known[self._kind(config, device)], work_of(config)
        return work.steps, math.nan if pace is None else pace.seconds(work) / 3600

    def here(self, device: str) -> str:
        """Return the device that stands for another on this machine: the CPU without a GPU."""
        return device if device == "cpu" or torch.cuda.is_available() else "cpu"

    def _kind(self, config: RunConfig, device: str) -> tuple:
        return *kind_of(config), self.here(device)

    def _measure(self, config: RunConfig, device: str) -> Pace | None:
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._process = ProcessPoolExecutor(1, context, initializer=_end_with_parent)
        try:
            pace = self._process.submit(_measure_on_blanks, config, device).result()
        except BrokenProcessPool:
            self._process = None
            self.remarks.append(f"{_in_words(config)}: not measured, the memory does not suffice")
            return None
        except (RuntimeError, ImportError) as error:  # the GPU's memory; no torchvision
            self.remarks.append(f"{_in_words(config)}: not measured, {error}")
            return None
        return pace


def _in_words(config: RunConfig) -> str:
    shape = "x".join(map(str, image_shape(config.dataset)))
    return f"{config.method}, {config.resolved['model']} on {shape}"


def _end_with_parent() -> None:
    """End this process when the one that began it is gone, killed too; a pool's own stays."""

    def watch() -> None:
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _measure_on_blanks(config: RunConfig, device: str) -> Pace:
    with blanks_for_missing():
        return measure(config, device)


def as_text(table: pd.DataFrame, remarks: Sequence[str]) -> str:
    """Return a plan as text: the table and the remarks."""
    lines = [
        table.to_string(
            index=False,
            float_format=in_hours,
            na_rep="unknown",
            formatters={"steps": "{:,}".format},
        ),
        "",
        *remarks,
    ]
    return "\n".join(lines)


def in_hours(hours: float) -> str:
    """Return hours with three digits, or all of them where there are more; NaN is unknown.

    Examples
    --------
    >>> in_hours(0.0542), in_hours(12.345), in_hours(1264.4), in_hours(math.nan)
    ('0.0542', '12.3', '1,264', 'unknown')
    """
    if math.isnan(hours):
        return "unknown"
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"
