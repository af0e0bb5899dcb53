"""Gather what runs measured and the paper prints in rows of one shape.

The columns:

- stands_for, dataset: the paper's data set and ours;
- method, setting (how the run differs from the standard in the paper's words, "" where
  it does not, "memory_size=0.5" or "rho=0.5;test_set=imbalanced"), rho;
- seed, run (the hash of its configuration);
- trained_tasks, task, group, measure, metric;
- value: in percent, or in the unit that the metric's name gives;
- draws: the value under each resample (`tables.scores_of`), an array or NaN.

The standard of a data set is the first configuration that is asked for on it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from prslib import METHODS, MODELS, Run, RunConfig, published
from prslib.datasets import DATASETS, GROUPS
from prslib.report import tables
from prslib.report.feature_tsne import neighbour_votes
from prslib.report.tables import labels_of
from prslib.report.tail_forgetting import run_forgetting, size_correlations
from prslib.resamples import resampled_mean

# what a run may measure beside its scores, and the field that asks for it
EXTRAS = ("features_per_class", "class_draws", "variance_points")
RELATIONS = ("paper's", "part", "stand-in")  # of data to the paper's
STAGES = {"frozen_stages", "pretrained_stages"}
FIGURE_1 = ("CRS", "EWC")
ORDERS = {"normalised": "order", "plain": "order_lost"}  # of forgetting by class size
COLUMNS = ["stands_for", "dataset", "method", "setting", "rho", "seed", "run"]
CELL = ["trained_tasks", "task", "group", "measure", "metric"]


def settings_in_words(configs: Sequence[RunConfig]) -> pd.DataFrame:
    """Describe configurations in the paper's terms, a row each; standards come first."""
    standards = {}
    rows = []
    for config in configs:
        setting = _setting(config, standards.setdefault(config.dataset, config))
        place = labels_of(config.dataset).stands_for, config.dataset, config.method
        rho = config.identity.get("rho", np.nan)
        rows.append((*place, setting, rho, config.seed, config.hash))
    return pd.DataFrame(rows, columns=COLUMNS)


def _setting(config: RunConfig, standard: RunConfig) -> str:
    """Say how a configuration differs from the standard."""
    fields = {"method": config.method, "seed": config.seed, "model": config.model}
    alike = replace(standard, **fields).identity
    identity = config.identity
    names = [name for name in identity if identity[name] != alike.get(name)]
    varied = {name: identity[name] for name in names if name not in EXTRAS}
    model = config.resolved["model"]
    usual = standard.resolved
    if model != usual["model"]:  # which may have a step size of its own
        varied["model"] = MODELS[model].stands_for or model
        varied.pop("learning_rate", None)
    if "memory_size" in varied:  # half of an odd size is rounded
        share = identity["memory_size"] / usual["memory_size"]
        varied["memory_size"] = round(20 * share) / 20
    if "schedule" in varied:
        varied["schedule"] = ",".join(map(str, identity["schedule"]))
    return _in_words(varied)


def _in_words(varied: dict[str, object]) -> str:
    alike = dict.fromkeys(varied.keys() & STAGES, "some")  # networks have other numbers
    return ";".join(
        f"{name}={value}" for name, value in sorted((varied | alike).items())
    )


def in_turn(names: Iterable[str]) -> dict[str, str]:
    """Return what data sets are to the paper's: its own first, then parts, then stand-ins."""
    relations = {name: DATASETS[name].relation for name in names}
    return dict(sorted(relations.items(), key=lambda item: RELATIONS.index(item[1])))


def observe(runs: Sequence[Run], configs: Sequence[RunConfig]) -> pd.DataFrame:
    """Gather what runs measured; `configs` are all that were asked for, standards first."""
    settings = settings_in_words(configs).drop_duplicates("run")
    if not runs:
        return pd.DataFrame(columns=[*COLUMNS, *CELL, "value"])
    by_hash = {run.config.hash: run for run in runs}
    at_the_end = []
    for name, run in by_hash.items():
        place = {"run": name, "task": "seen", "group": "overall"}
        place["trained_tasks"] = run.scores["trained_tasks"].max()
        rows = [*_shares(run), *_orders(run), *_features(run), *_variance(run)]
        at_the_end += [place | row for row in rows]
    frames = [_scores(by_hash.values()), pd.DataFrame(at_the_end)]
    rows = pd.concat(frames, ignore_index=True).merge(settings, on="run")
    # a run with features measures the same scores as the run without
    key = ["dataset", "method", "setting", "seed", *CELL]
    return rows.drop_duplicates(key, ignore_index=True)


def _scores(runs: Iterable[Run]) -> pd.DataFrame:
    rows = tables.scores_of(runs, run=lambda config: config.hash)
    rows = rows[rows["group"].isin(tables.ALL_GROUPS)]
    rows = tables.with_forgetting(rows, {"forget": True, "lost": False})
    return tables.in_percent(rows, ["run", *CELL])


def _shares(run: Run) -> Iterator[dict]:
    """Measure the memory's shares of the labels in percent, and its distances to others."""
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
        values = run.gradient_variance["value"]  # they move by orders of magnitude
        mean = np.exp(np.log(values[values > 0]).mean())
        yield {"measure": "variance", "metric": "gradient variance", "value": mean}


def _orders(run: Run) -> Iterator[dict]:
    """Correlate forgetting with class size, the mean over tasks (Fig. 1)."""
    if run.config.method not in FIGURE_1 or not run.config.class_draws:
        return
    rows = size_correlations(run_forgetting(run))
    for (measure, metric), tasks in rows.groupby(["measure", "metric"]):
        tasks = tasks.dropna(subset="correlation")
        row = {"measure": ORDERS[measure], "metric": metric}
        row["value"] = tasks["correlation"].mean()
        if len(tasks) and "draws" in tasks:
            # NaN in a resample where all classes of a task forget alike
            row["draws"] = pd.DataFrame(list(tasks["draws"])).mean().to_numpy()
        yield row


def _features(run: Run) -> Iterator[dict]:
    """Measure how many test images of each group have neighbours of their class."""
    if run.features is None:
        return
    images = neighbour_votes(run, min(5, len(run.features) - 1))
    settings = run.config.resolved
    draws = settings["test_resamples"]
    test = labels_of(run.config.dataset).tests[settings["test_set"]]
    for group, used in images.groupby("group", sort=False):
        hits = used["kNN accuracy"].to_numpy()
        row = {"group": group, "measure": "features", "metric": "kNN accuracy"}
        row["value"] = hits.mean()
        if draws:
            rows = used["image"].to_numpy()
            row["draws"] = resampled_mean(hits, rows, len(test), draws)
        yield row


@cache
def printed_rows() -> pd.DataFrame:
    """Return every printed cell in the shape of our rows, in the order of `published.load`."""
    cells = published.load().rename(columns={"dataset": "stands_for"})
    with_memory = cells.dropna(subset="memory_size").drop_duplicates("stands_for")
    standards = with_memory.set_index("stands_for").to_dict("index")
    return cells.assign(
        seed=0,
        rho=np.nan,
        task=np.where(cells["metric"] == "accuracy", "all", "seen"),
        schedule=cells["schedule"].mask(cells["method"] == "Multitask", ""),
        setting=[
            _printed_setting(cell, standards[cell["stands_for"]])
            for cell in cells.to_dict("records")
        ],
    )


def _printed_setting(cell: dict, usual: dict) -> str:
    """Say how a printed cell's setting differs from the data set's first with a memory."""
    reads = {"memory_size", "schedule"} & set(METHODS[cell["method"]].reads)
    names = {"architecture", "epochs", "test_set"} | reads
    varied = {name: cell[name] for name in names if cell[name] != usual[name]}
    if "architecture" in varied:
        varied["model"] = varied.pop("architecture")
    if "memory_size" in varied:
        varied["memory_size"] /= usual["memory_size"]
    if cell["note"] == "rho 0.5":
        varied["rho"] = 0.5
    if cell["note"].startswith("first residual block frozen"):
        varied["frozen_stages"] = 1
    return _in_words(varied)
