"""Gather the measurements of runs and the paper's numbers in rows of one form.

The columns:

- stands_for, dataset: the paper's data set ("" for another real stream) and the report's;
- method;
- test_set: test set of the scores;
- the columns of `SETTINGS`: differences of the run from the standard, missing if none;
- standard_rho: PRS's rho in the standard setting;
- seed, run (its configuration as text);
- trained_tasks, task, group, measure, metric;
- value: in percent, or in another unit that the metric's name states;
- draws: the value under each resample (`tables.scores_of`), an array or NaN.

The first configuration requested for a data set is its standard.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from prslib import METHODS, MODELS, Run, RunConfig, published
from prslib.datasets import DATASETS, GROUPS
from prslib.datasets.base import schedule_text
from prslib.report import tables
from prslib.report.asked import identify
from prslib.report.claims import SETTINGS
from prslib.report.claims.scores import OTHER
from prslib.report.measures import (
    features_of,
    run_forgetting,
    separation,
    size_correlations,
)
from prslib.report.tables import labels_of

# fields that request further measurements of a run
EXTRAS = ("features_per_class", "predictions", "class_forgetting", "tuned_threshold")
EXTRAS += ("variance_points",)
STAND_IN = "stand-in"
DATA_SOURCES = {  # and their names, closest to the paper first
    "paper's": "the paper's images",
    "part": "the paper's images",
    "other": "other real streams",
    STAND_IN: "synthetic data",
}
STAGES = {"frozen_stages", "pretrained_stages", "vector_stages"}
FIGURE_1 = ("CRS", "EWC")
# measures for the correlation of forgetting with class size
ORDERS = {"normalised": "order", "plain": "order_lost"}
COLUMNS = ["stands_for", "dataset", "method", "test_set", *SETTINGS, "standard_rho"]
COLUMNS += ["seed", "run"]
# columns of `published.load` that are renamed, because `SETTINGS` has the same names
PRINTED = {name: f"printed_{name}" for name in ("memory_size", "schedule", "epochs")}
CELL = ["trained_tasks", "task", "group", "measure", "metric"]
KEY = ["dataset", "method", "test_set", *SETTINGS, "seed", *CELL]  # identifies a row


def run_settings(configs: Sequence[RunConfig]) -> pd.DataFrame:
    """Return how configurations differ from the standard, in the columns `COLUMNS`.

    The first configuration of a data set is its standard. Runs that differ from it in any
    other field are omitted.
    """
    standards = {}
    rows = []
    for config in configs:
        standard = standards.setdefault(config.dataset, config)
        setting = _setting(config, standard)
        if not setting.keys() <= SETTINGS.keys():
            continue
        row = {
            "stands_for": labels_of(config.dataset).stands_for or "",
            "dataset": config.dataset,
            "method": config.method,
            "test_set": config.resolved["test_set"],
            "standard_rho": standard.resolved["rho"],
            "seed": config.seed,
            "run": identify(config),
        }
        rows.append(row | setting)
    table = pd.DataFrame(rows, columns=COLUMNS).astype(SETTINGS)
    return table.drop_duplicates("run")


def _setting(config: RunConfig, standard: RunConfig) -> dict[str, object]:
    """Return the fields in which a configuration differs, in the paper's terms."""
    fields = {"method": config.method, "seed": config.seed, "model": config.model}
    alike = replace(standard, **fields).identity
    settings = config.identity
    names = [name for name in settings if settings[name] != alike.get(name)]
    left_out = {*EXTRAS, "test_set"}
    varied = {name: settings[name] for name in names if name not in left_out}
    model = config.resolved["model"]
    usual = standard.resolved
    if model != usual["model"]:  # which may have another step size
        varied["model"] = MODELS[model].stands_for or model
        varied.pop("learning_rate", None)
    if "memory_size" in varied:  # half of an odd size is rounded
        share = settings["memory_size"] / usual["memory_size"]
        varied["memory_size"] = round(20 * share) / 20
    if "schedule" in varied:
        varied["schedule"] = schedule_text(settings["schedule"])
    for name in STAGES & varied.keys():
        varied[name] = OTHER
    return varied


def data_sources_of(names: Iterable[str]) -> dict[str, str]:
    """Return the data source of each data set, in the order of `DATA_SOURCES`."""
    data_sources = {name: DATASETS[name].data_source for name in names}
    order = sorted(data_sources, key=lambda n: [*DATA_SOURCES].index(data_sources[n]))
    return {name: data_sources[name] for name in order}


def results_of(runs: Sequence[Run], settings: pd.DataFrame) -> pd.DataFrame:
    """Gather the measurements of runs, whose `run_settings` are given."""
    if not runs:
        return pd.DataFrame(columns=[*COLUMNS, *CELL, "value"])
    by_key = {identify(run.config): run for run in runs}
    at_the_end = []
    for name, run in by_key.items():
        place = {"run": name, "task": "seen", "group": "overall"}
        place["trained_tasks"] = run.scores["trained_tasks"].max()
        rows = [*_shares(run), *_orders(run), *_features(run), *_variance(run)]
        at_the_end += [place | row for row in rows]
    frames = [pd.DataFrame(at_the_end)]
    only_measured = ("features_per_class", "predictions", "variance_points")
    scored = [
        run
        for run in by_key.values()
        if not any(run.config.resolved[name] for name in only_measured)
    ]
    if scored:
        frames.insert(0, _scores(scored))
    rows = pd.concat(frames, ignore_index=True).merge(settings, on="run")
    # runs that share a training have the same memory
    return rows.drop_duplicates(KEY, ignore_index=True)


def _scores(runs: Sequence[Run]) -> pd.DataFrame:
    rows = tables.scores_of(runs, run=identify)
    rows = rows[rows["group"].isin(tables.ALL_GROUPS)]
    rows = tables.with_forgetting(rows, {"forget": True, "lost": False})
    return tables.in_percent(rows, ["run", *CELL])


def _shares(run: Run) -> Iterator[dict]:
    """Measure the groups' shares of the memory in percent, and its distances to others."""
    if not len(run.memory_labels):
        return
    dataset = labels_of(run.config.dataset)
    counts = run.memory_labels.sum(axis=0)
    memory = 100 * counts / counts.sum()
    stream = 100 * dataset.class_freq / dataset.class_freq.sum()
    largest = np.argsort(-stream, kind="stable")[: len(stream) // 5]
    groups = np.array(dataset.class_group)
    shares = {group: memory[groups == group].sum() for group in GROUPS}
    # total variation distances
    shares["to equal"] = np.abs(memory - 100 / len(stream)).sum() / 2
    shares["to stream"] = np.abs(memory - stream).sum() / 2
    shares["largest fifth"] = memory[largest].sum()
    shares["largest fifth of stream"] = stream[largest].sum()
    for name, value in shares.items():
        yield {"measure": name, "metric": "memory", "value": value}


def _variance(run: Run) -> Iterator[dict]:
    if run.gradient_variance is not None:
        values = run.gradient_variance["value"]  # these vary by orders of magnitude
        mean = np.exp(np.log(values[values > 0]).mean())
        yield {"measure": "variance", "metric": "gradient variance", "value": mean}


def _orders(run: Run) -> Iterator[dict]:
    """Correlate forgetting with class size, the mean over tasks (Fig. 1)."""
    is_asked = run.config.resolved["class_forgetting"]
    if run.config.method not in FIGURE_1 or not is_asked:
        return
    rows = size_correlations(run_forgetting(run))
    for _, tasks in rows.groupby(["measure", "metric"]):
        measure, metric = tasks[["measure", "metric"]].iloc[0]
        tasks = tasks.dropna(subset="correlation")
        row = {"measure": ORDERS[measure], "metric": metric}
        row["value"] = tasks["correlation"].mean()
        if len(tasks) and "draws" in tasks:
            # NaN in a resample in which all classes of a task forget alike
            row["draws"] = pd.DataFrame(list(tasks["draws"])).mean().to_numpy()
        yield row


def _features(run: Run) -> list[dict]:
    """Measure the kNN accuracy of each group's test images in the feature space."""
    if not run.features:
        return []
    rows = separation(run, min(5, len(features_of(run)) - 1))
    rows = rows[(rows["metric"] == "kNN accuracy") & rows["group"].isin(GROUPS)]
    return rows.assign(measure="features").to_dict("records")


@cache
def printed_rows() -> pd.DataFrame:
    """Return every printed cell in the shape of our rows, in the order of `published.load`."""
    cells = published.load().rename(columns={"dataset": "stands_for"})
    with_memory = cells.dropna(subset="memory_size").drop_duplicates("stands_for")
    standards = with_memory.set_index("stands_for").to_dict("index")
    settings = [
        _printed_setting(cell, standards[cell["stands_for"]])
        for cell in cells.to_dict("records")
    ]
    columns = pd.DataFrame(settings, columns=list(SETTINGS)).astype(SETTINGS)
    # the printed settings, besides their differences from the standard
    schedule = cells["schedule"].mask(cells["method"] == "Multitask", "")
    rows = cells.assign(schedule=schedule).rename(columns=PRINTED)
    task = np.where(cells["metric"] == "accuracy", "all", "seen")
    return rows.assign(standard_rho=np.nan, seed=0, task=task).join(columns)


def _printed_setting(cell: dict, usual: dict) -> dict[str, object]:
    """Return how a printed cell differs from the data set's first cell with a memory."""
    reads = {"memory_size", "schedule"} & set(METHODS[cell["method"]].reads)
    names = {"architecture", "epochs"} | reads
    varied = {name: cell[name] for name in names if cell[name] != usual[name]}
    if "architecture" in varied:
        varied["model"] = varied.pop("architecture")
    if "memory_size" in varied:
        varied["memory_size"] /= usual["memory_size"]
    if cell["note"] == "rho 0.5":
        varied["rho"] = 0.5
    if cell["note"].startswith("first residual block frozen"):
        varied["frozen_stages"] = OTHER
    return varied
