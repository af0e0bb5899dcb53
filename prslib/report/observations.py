"""Gather what runs measured and the paper prints in rows of one shape.

The columns:

- stands_for: the paper's data set; dataset, data: ours, and one of `RELATIONS`, what
  it is of the paper's; a small network makes it a stand-in, too;
- method, setting (how the run differs from the standard in the paper's words, "" where
  it does not, "memory_size=0.5" or "rho=0.5;test_set=imbalanced"), rho;
- seed, run (the hash of its configuration);
- trained_tasks, last (whether all tasks are trained), task, group, measure, metric;
- value: in percent, or in the unit that the metric's name gives;
- draws: the value under each resample (`with_draws` of tables), an array or NaN.

The standard of a data set is the first configuration that is asked for on it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from prslib import published
from prslib.datasets import DATASETS, GROUPS
from prslib.metrics import forgetting
from prslib.models import MODELS
from prslib.models.weights import NONE
from prslib.report.feature_tsne import labelled_images, neighbour_hits
from prslib.report.tables import labels_of, with_draws
from prslib.report.tail_forgetting import run_forgetting, size_correlations
from prslib.resamples import class_weights
from prslib.training.config import Run, RunConfig
from prslib.training.methods import METHODS

# what a run may measure beside its scores, and the field that asks for it
EXTRAS = ("features_per_class", "variance_points")
RELATIONS = ("paper's", "part", "stand-in")  # of data to the paper's
FIGURE_1 = ("CRS", "EWC")
FORGETTING = {"forget": True, "lost": False}  # measure, and whether it is normalised
ORDERS = {"normalised": "order", "plain": "order_lost"}  # of forgetting by class size
COLUMNS = ["stands_for", "dataset", "data", "method", "setting", "rho", "seed", "run"]
CELL = ["trained_tasks", "last", "task", "group", "measure", "metric"]


def settings_of(configs: Sequence[RunConfig]) -> pd.DataFrame:
    """Describe configurations in the paper's terms, a row each; standards come first."""
    standards = {}
    for config in configs:
        standards.setdefault(config.dataset, config)
    rows = [_described(config, standards[config.dataset]) for config in configs]
    return pd.DataFrame(rows, columns=COLUMNS)


def _described(config: RunConfig, standard: RunConfig) -> dict:
    identity, entry = config.identity, DATASETS[config.dataset]
    fields = {"method": config.method, "seed": config.seed, "model": config.model}
    usual = replace(standard, **fields).identity
    varied = {k for k in identity if k not in EXTRAS and identity[k] != usual.get(k)}
    model = config.resolved["model"]
    if model != standard.resolved["model"]:  # which may have a step size of its own
        varied = varied - {"learning_rate"} | {"model"}
    data = entry.relation
    if model != entry.recipe.model and MODELS[model].default_weights == NONE:
        data = "stand-in"
    memory = identity.get("memory_size", np.nan) / standard.resolved["memory_size"]
    words = {
        "model": MODELS[model].stands_for or model,
        # a third or half of an odd size is rounded
        "memory_size": f"{np.round(20 * memory) / 20:g}",
        "schedule": ",".join(map(str, identity.get("schedule", ()))),
        "rho": f"{identity.get('rho', np.nan):g}",
        # other networks have other numbers of stages
        "frozen_stages": "",
        "pretrained_stages": "",
    }
    return {
        "stands_for": labels_of(config.dataset).stands_for,
        "dataset": config.dataset,
        "data": data,
        "method": config.method,
        "setting": _in_words({n: words.get(n, identity[n]) for n in varied}),
        "rho": identity.get("rho", np.nan),
        "seed": config.seed,
        "run": config.hash,
    }


def _in_words(varied: dict[str, object]) -> str:
    """Name how a run differs from the standard."""
    return ";".join(f"{name}={varied[name]}".rstrip("=") for name in sorted(varied))


def relation(name: str) -> str:
    """Return what a data set is to the paper's, one of `RELATIONS`."""
    return DATASETS[name].relation


def observe(runs: Sequence[Run], configs: Sequence[RunConfig]) -> pd.DataFrame:
    """Gather what runs measured; `configs` are all that were asked for, standards first."""
    settings = settings_of(configs).drop_duplicates("run")
    if not runs:
        return pd.DataFrame(columns=[*COLUMNS, *CELL, "value"])
    by_hash = {run.config.hash: run for run in runs}
    measured = []
    for name, run in by_hash.items():
        end = {"run": name, "task": "seen", "last": True, "group": "overall"}
        end["trained_tasks"] = run.scores["trained_tasks"].max()
        measured += [end | row for row in _at_the_end(run)]
    frames = [_scores(by_hash), pd.DataFrame(measured)]
    rows = pd.concat(frames, ignore_index=True).merge(settings, on="run")
    # a run with features measures the same scores as the run without
    key = ["dataset", "method", "setting", "seed", *CELL]
    return rows.drop_duplicates(key, ignore_index=True)


def _scores(runs: dict[str, Run]) -> pd.DataFrame:
    frames = [run.scores.assign(run=name) for name, run in runs.items()]
    rows = with_draws(pd.concat(frames, ignore_index=True), runs)
    rows = rows[rows["group"].isin([*GROUPS, "overall"])]
    values = [name for name in ("value", "draws") if name in rows]
    columns = ["run", "schedule", "trained_tasks", "task", "group", "metric", *values]
    rows = rows[columns]
    trained = rows.groupby("run")["trained_tasks"].max()
    last = rows["trained_tasks"] == rows["run"].map(trained)
    scores = rows.assign(measure="score", last=last)
    frames = [scores[last | rows["task"].isin(["seen", "all"])]]
    # Multitask has no earlier tasks to forget
    online = rows[rows["schedule"] != ""]
    if len(online):
        both = [forgetting(online, f).assign(measure=m) for m, f in FORGETTING.items()]
        lost = pd.concat(both, ignore_index=True).assign(last=True, task="seen")
        frames.append(lost.assign(trained_tasks=lost["run"].map(trained)))
    rows = pd.concat(frames, ignore_index=True)
    return rows[["run", *CELL]].join(100 * rows[values])


def _at_the_end(run: Run) -> Iterator[dict]:
    """Measure what a run has beside its scores."""
    if len(run.memory_labels):
        shares = _shares(run)
        yield from ({"measure": "share", "metric": n, "value": v} for n, v in shares)
    several = run.config.resolved["tasks_at_once"] > 1
    if run.config.method in FIGURE_1 and not several:
        yield from _orders(run)
    if run.features is not None:
        yield from _features(run)
    if run.gradient_variance is not None:
        values = run.gradient_variance["value"]  # they move by orders of magnitude
        mean = np.exp(np.log(values[values > 0]).mean())
        yield {"measure": "variance", "metric": "gradient variance", "value": mean}


def _shares(run: Run) -> list[tuple[str, float]]:
    """Return the memory's shares of the labels in percent, and its distances to others."""
    dataset = labels_of(run.config.dataset)
    counts = run.memory_labels.sum(axis=0)
    memory = 100 * counts / counts.sum()
    stream = 100 * dataset.class_freq / dataset.class_freq.sum()
    equal = np.full_like(stream, 100 / len(stream))
    largest = np.argsort(-stream, kind="stable")[: len(stream) // 5]
    groups = np.array(dataset.class_group)
    return [
        ("to equal", np.abs(memory - equal).sum() / 2),  # total variation
        ("to stream", np.abs(memory - stream).sum() / 2),
        ("largest fifth", memory[largest].sum()),
        ("largest fifth of stream", stream[largest].sum()),
        *((group, memory[groups == group].sum()) for group in GROUPS),
    ]


def _orders(run: Run) -> Iterator[dict]:
    """Correlate forgetting with class size, the mean over tasks (Fig. 1)."""
    rows = size_correlations(run_forgetting(run), _weights(run))
    for (measure, metric), tasks in rows.groupby(["measure", "metric"]):
        tasks = tasks.dropna(subset="correlation")
        row = {"measure": ORDERS[measure], "metric": metric}
        row["value"] = tasks["correlation"].mean()
        if len(tasks) and "draws" in tasks:
            row["draws"] = np.mean(list(tasks["draws"]), axis=0)
        yield row


def _weights(run: Run) -> pd.DataFrame | None:
    """Return resamples of the classes (columns) where there are few test images."""
    draws = run.config.resolved["test_resamples"]
    dataset = labels_of(run.config.dataset)
    weights = class_weights(dataset.class_group, draws)
    return pd.DataFrame(weights, columns=dataset.class_names) if draws else None


def _features(run: Run) -> Iterator[dict]:
    """Measure how many test images have neighbours of their class, by group."""
    images = labelled_images(run.config)
    classes = images["class"].to_numpy()
    neighbours = min(5, len(run.features) - 1)
    hits = 100.0 * neighbour_hits(run.features, classes, neighbours)
    weights = _weights(run)
    for group in [*images["group"].unique(), "overall"]:
        used = (images["group"] == group).to_numpy() | (group == "overall")
        row = {"group": group, "measure": "features", "metric": "kNN accuracy"}
        row["value"] = hits[used].mean()
        if weights is not None:
            of_images = weights.to_numpy()[:, classes[used]]  # (draws, images)
            row["draws"] = of_images @ hits[used] / of_images.sum(axis=1)
        yield row


@cache
def published_observations() -> pd.DataFrame:
    """Return every printed cell in the shape of our rows, in the order of `published.load`."""
    cells = published.load().rename(columns={"dataset": "stands_for"})
    trained = cells.groupby("stands_for")["trained_tasks"].transform("max")
    return cells.assign(
        seed=0,
        task=np.where(cells["metric"] == "accuracy", "all", "seen"),
        last=cells["trained_tasks"] == trained,
        schedule=cells["schedule"].mask(cells["method"] == "Multitask", ""),
        setting=[_printed_setting(cell) for cell in cells.to_dict("records")],
    )


def _printed_setting(cell: dict) -> str:
    """Say how a printed cell differs from the first with a memory of its data set."""
    usual, varied = _standard(cell["stands_for"]), {}
    unread = {"memory_size", "schedule"} - set(METHODS[cell["method"]].reads)
    for name in {
        "architecture",
        "epochs",
        "memory_size",
        "schedule",
        "test_set",
    } - unread:
        if cell[name] != usual[name]:
            varied[name] = cell[name]
    if "architecture" in varied:
        varied["model"] = varied.pop("architecture")
    if "memory_size" in varied:
        varied["memory_size"] /= usual["memory_size"]
    if cell["note"] == "rho 0.5":
        varied["rho"] = 0.5
    if cell["note"].startswith("first residual block frozen"):
        varied["frozen_stages"] = ""
    return _in_words(varied)


@cache
def _standard(stands_for: str) -> dict:
    cells = published.load(dataset=stands_for)
    return cells[cells["memory_size"].notna()].iloc[0].to_dict()
