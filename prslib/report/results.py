"""Gather the measurements of runs and the paper's numbers in rows of the same form.

The columns:

- stands_for, dataset: the paper's data set ("" for another real stream) and the report's;
- method;
- setting: how the run differs from the standard, a frozenset of names (`SETTINGS`) and
  values;
- standard_rho: PRS's rho in the standard setting;
- seed;
- test_set, trained_tasks, task, group, measure, metric;
- value: in percent, or in another unit that the metric's name states;
- draws: the value under each resample (`tables.scores_of`), an array or NaN.

The first configuration requested for a data set is its standard.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import cast

import numpy as np
import pandas as pd

from prslib import METHODS, MODELS, Run, RunConfig, published
from prslib.datasets import DATASETS, GROUPS
from prslib.datasets.base import schedule_text
from prslib.report.claims.scores import KEY, OTHER, SETTINGS
from prslib.report.measures import (
    features_of,
    run_forgetting,
    separation,
    size_correlations,
)
from prslib.report.tables import labels_of, scores_of

# fields that request further measurements of a run
EXTRAS = {"features_per_class", "predictions", "tuned_threshold", "variance_points"}
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


def data_sources_of(names: Iterable[str]) -> dict[str, str]:
    """Return the data source of each data set, in the order of `DATA_SOURCES`."""
    data_sources = {name: DATASETS[name].data_source for name in names}
    order = sorted(data_sources, key=lambda n: [*DATA_SOURCES].index(data_sources[n]))
    return {name: data_sources[name] for name in order}


def results_of(
    runs: Iterable[Run],
    standards: dict[str, RunConfig],
    in_figure_1: Collection[str] = (),
) -> pd.DataFrame:
    """Gather the measurements of runs.

    `standards` are the standard configurations by data set. Runs that differ from them in
    fields other than `SETTINGS` are omitted. Forgetting by class size is measured if the
    run's identity, as text, is among `in_figure_1`.
    """
    columns = ["stands_for", "dataset", *KEY, "standard_rho", "value"]
    frames = [pd.DataFrame(columns=columns)]
    for run in runs:
        config = run.config
        standard = standards[config.dataset]
        setting = setting_of(config, standard)
        if not setting.keys() <= SETTINGS:
            continue
        rows = measure(run, repr(config.identity) in in_figure_1)
        rows = rows.assign(
            stands_for=labels_of(config.dataset).stands_for or "",
            setting=[frozenset(setting.items())] * len(rows),
            standard_rho=standard.resolved["rho"],
        )
        frames.append(rows)
    table = pd.concat(frames[1:] or frames, ignore_index=True)
    # runs that differ only in further measurements have the same memory
    return table.drop_duplicates(["dataset", *KEY], ignore_index=True)


def setting_of(config: RunConfig, standard: RunConfig) -> dict[str, object]:
    """Return the fields in which a configuration differs, in the paper's terms."""
    fields = {"method": config.method, "seed": config.seed, "model": config.model}
    alike = replace(standard, **fields).identity
    varied = {
        name: value
        for name, value in config.identity.items()
        if value != alike.get(name) and name not in EXTRAS
    }
    model = config.resolved["model"]
    usual = standard.resolved
    if model != usual["model"]:  # which may have another step size
        varied["model"] = MODELS[model].stands_for or model
        varied.pop("learning_rate", None)
    if "memory_size" in varied:  # half of an odd size is rounded
        share = varied["memory_size"] / usual["memory_size"]
        varied["memory_size"] = round(20 * share) / 20
    if "schedule" in varied:
        varied["schedule"] = schedule_text(varied["schedule"])
    for name in STAGES & varied.keys():
        varied[name] = OTHER
    return varied


def measure(run: Run, in_figure_1: bool) -> pd.DataFrame:
    """Return the scores of a run, and what else was measured at its end."""
    config = run.config
    rows = [*_shares(run), *_features(run)]
    if run.gradient_variance is not None:
        values = run.gradient_variance["value"]  # these vary by orders of magnitude
        mean = np.exp(np.log(values[values > 0]).mean())
        rows.append(
            {"measure": "variance", "metric": "gradient variance", "value": mean}
        )
    if in_figure_1:
        rows += _orders(run)
    usual = config.columns | {"task": "seen", "group": "overall"}
    usual["trained_tasks"] = run.scores["trained_tasks"].max()
    usual["test_set"] = DATASETS[config.dataset].recipe.test_set
    table = pd.DataFrame([usual | row for row in rows])
    if config.features_per_class or config.predictions or config.variance_points:
        return table  # the run with these scores is another one
    return pd.concat([scores_of([run]), table], ignore_index=True)


def _shares(run: Run) -> Iterator[dict]:
    """Measure the groups' shares of a memory, and its distances from two targets."""
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


def _orders(run: Run) -> Iterator[dict]:
    """Average the correlation of forgetting with class size over the tasks (Fig. 1)."""
    if run.config.method not in FIGURE_1:
        return
    rows = size_correlations(run_forgetting(run))
    for place, tasks in rows.groupby(level=[0, 1, 2]):
        test_set, measure, metric = cast(tuple, place)
        # without NaN of a task, or of a resample, in which all classes forget alike
        tasks = tasks.dropna(subset="value")
        draws = tasks.drop(columns="value").mean().to_numpy()
        row = {"test_set": test_set, "measure": ORDERS[measure], "metric": metric}
        row["value"] = tasks["value"].mean()
        yield row | {"draws": draws if draws.size else np.nan}


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
        frozenset(_printed_setting(cell, standards[cell["stands_for"]]).items())
        for cell in cells.to_dict("records")
    ]
    schedule = cells["schedule"].mask(cells["method"] == "Multitask", "")
    task = np.where(cells["metric"] == "accuracy", "all", "seen")
    cells = cells.assign(schedule=schedule, task=task, setting=settings)
    return cells.assign(standard_rho=np.nan, seed=0)


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
