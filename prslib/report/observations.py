"""Gather what runs measured and the paper prints in rows of one shape.

The columns:

- stands_for: the paper's data set; dataset, data: ours, and one of `RELATIONS`, what
  it is of the paper's; a small network makes it a stand-in, too;
- method, architecture (in the paper's words), memory (relative to the standard),
  schedule, epochs, test_set, rho, power ("own" for the standard's rho, otherwise its
  value);
- frozen (whether the first stages stay as they began, for every method alike);
- varied: which fields of the configuration differ from the standard, "" for none,
  "memory_size,schedule" for two;
- seed, run (the hash of its configuration);
- trained_tasks, last (whether all tasks are trained), task, group, measure, metric;
- value: in percent, or in the unit that the metric's name gives;
- draws: the value under each resample (`with_draws` of tables), an array or NaN.

The standard of a data set is the first configuration that is asked for on it.
"""

from collections.abc import Sequence
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
SETTING = ["stands_for", "method", "architecture", "memory", "schedule"]
SETTING += ["epochs", "test_set"]
COLUMNS = ["dataset", "data", *SETTING, "frozen", "rho", "power", "varied"]
COLUMNS += ["seed", "run"]
CELL = ["trained_tasks", "last", "task", "group", "measure", "metric"]


def settings_of(configs: Sequence[RunConfig]) -> pd.DataFrame:
    """Describe configurations in the paper's terms, a row each; standards come first."""
    standards = {}
    for config in configs:
        standards.setdefault(config.dataset, config)
    rows = [_setting(config, standards[config.dataset]) for config in configs]
    return pd.DataFrame(rows, columns=COLUMNS)


@cache
def _setting(config: RunConfig, standard: RunConfig) -> dict:
    identity, entry = config.identity, DATASETS[config.dataset]
    model, usual_model = config.resolved["model"], standard.resolved["model"]
    usual = replace(standard, method=config.method, seed=config.seed)
    usual = replace(usual, model=config.model).identity  # its own weights come with it
    varied = {k for k in identity if k not in EXTRAS and identity[k] != usual.get(k)}
    if model != usual_model:
        varied.add("model")
    power = "" if "rho" not in identity else "own"
    if "rho" in varied:
        power = f"{identity['rho']:g}"
    stands_for = labels_of(config.dataset).stands_for
    architecture, data = MODELS[model].stands_for or model, entry.relation
    if model == entry.recipe.model:
        architecture = standard_of(stands_for)["architecture"]
    elif MODELS[model].default_weights == NONE:
        data = "stand-in"
    drawn = entry.recipe.schedule_drawn and "schedule" not in varied
    memory = identity.get("memory_size", np.nan) / standard.resolved["memory_size"]
    return {
        "stands_for": stands_for,
        "dataset": config.dataset,
        "data": data,
        "method": config.method,
        "architecture": architecture,
        # a third or half of an odd size is rounded
        "memory": np.round(20 * memory) / 20,
        "schedule": "" if drawn else ",".join(map(str, identity.get("schedule", ()))),
        "epochs": identity.get("epochs", 1),
        "test_set": identity["test_set"],
        "frozen": config.frozen_stages > 0,
        "rho": identity.get("rho", np.nan),
        "power": power,
        "varied": ",".join(sorted(varied)),
        "seed": config.seed,
        "run": config.hash,
    }


def relation(name: str) -> str:
    """Return what a data set is to the paper's, one of `RELATIONS`."""
    return DATASETS[name].relation


@cache
def standard_of(stands_for: str) -> dict:
    """Return the paper's setting on a data set: its first row with a memory."""
    cells = published.load(dataset=stands_for)
    return cells[cells["memory_size"].notna()].iloc[0].to_dict()


def observe(runs: Sequence[Run], configs: Sequence[RunConfig]) -> pd.DataFrame:
    """Gather what runs measured; `configs` are all that were asked for, standards first."""
    settings = settings_of(configs).drop_duplicates("run")
    if not runs:
        return pd.DataFrame(columns=[*COLUMNS, *CELL, "value"])
    by_hash = {run.config.hash: run for run in runs}
    frames = [_scores(by_hash)]
    for name, run in by_hash.items():
        more = [_memory(run), _order(run), _features(run), _variance(run)]
        trained = run.scores["trained_tasks"].max()
        end = {"task": "seen", "last": True, "trained_tasks": trained, "run": name}
        frames += [rows.assign(**end) for rows in more if rows is not None]
    rows = pd.concat(frames, ignore_index=True).merge(settings, on="run")
    # a run with features measures the same scores as the run without
    key = ["dataset", *SETTING, "power", "varied", "seed", *CELL]
    return rows.drop_duplicates(key, ignore_index=True)


def _scores(runs: dict[str, Run]) -> pd.DataFrame:
    frames = [run.scores.assign(run=name) for name, run in runs.items()]
    rows = with_draws(pd.concat(frames, ignore_index=True), runs)
    values = [name for name in ("value", "draws") if name in rows]
    rows = rows[rows["group"].isin([*GROUPS, "overall"])]
    rows = rows[
        ["run", "schedule", "trained_tasks", "task", "group", "metric", *values]
    ]
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


def _memory(run: Run) -> pd.DataFrame | None:
    if len(run.memory_labels) == 0:
        return None
    dataset = labels_of(run.config.dataset)
    counts = run.memory_labels.sum(axis=0)
    memory = 100 * counts / counts.sum()
    stream = 100 * dataset.class_freq / dataset.class_freq.sum()
    equal = np.full_like(stream, 100 / len(stream))
    largest = np.argsort(-stream, kind="stable")[: len(stream) // 5]
    rows = [
        ("overall", "to equal", np.abs(memory - equal).sum() / 2),  # total variation
        ("overall", "to stream", np.abs(memory - stream).sum() / 2),
        ("overall", "largest fifth", memory[largest].sum()),
        ("overall", "largest fifth of stream", stream[largest].sum()),
    ]
    groups = np.array(dataset.class_group)
    rows += [(group, "memory", memory[groups == group].sum()) for group in GROUPS]
    table = pd.DataFrame(rows, columns=["group", "metric", "value"])
    return table.assign(measure="share")


def _order(run: Run) -> pd.DataFrame | None:
    """Correlate forgetting with class size over tasks, for the methods of Figure 1."""
    several = run.config.resolved["tasks_at_once"] > 1
    if run.config.method not in FIGURE_1 or several:
        return None
    weights, keys = _weights(run), ["measure", "metric"]
    rows = size_correlations(run_forgetting(run), weights)
    table = rows.groupby(keys)["correlation"].mean().to_frame("value")
    if weights is not None:
        draws = rows.dropna(subset="correlation").groupby(keys)["draws"]
        table["draws"] = draws.apply(lambda several: np.mean(list(several), axis=0))
    table = table.reset_index()
    names = {"normalised": "order", "plain": "order lost"}
    return table.assign(measure=table["measure"].map(names), group="overall")


def _weights(run: Run) -> pd.DataFrame | None:
    """Return resamples of the classes (columns) where there are few test images."""
    draws = run.config.resolved["test_resamples"]
    dataset = labels_of(run.config.dataset)
    weights = class_weights(dataset.class_group, draws)
    return pd.DataFrame(weights, columns=dataset.class_names) if draws else None


def _features(run: Run) -> pd.DataFrame | None:
    if run.features is None:
        return None
    images = labelled_images(run.config)
    classes = images["class"].to_numpy()
    neighbours = min(5, len(run.features) - 1)
    hits = 100.0 * neighbour_hits(run.features, classes, neighbours)
    weights = _weights(run)
    rows = []
    for group in [*GROUPS, "overall"]:
        used = (images["group"] == group).to_numpy() | (group == "overall")
        if not used.any():
            continue
        row = {"group": group, "value": hits[used].mean()}
        if weights is not None:
            of_images = weights.to_numpy()[:, classes[used]]  # (draws, images)
            row["draws"] = of_images @ hits[used] / of_images.sum(axis=1)
        rows.append(row)
    return pd.DataFrame(rows).assign(metric="kNN accuracy", measure="features")


def _variance(run: Run) -> pd.DataFrame | None:
    if run.gradient_variance is None:
        return None
    row = {"group": "overall", "metric": "gradient variance", "measure": "variance"}
    values = run.gradient_variance["value"]  # they move by orders of magnitude
    return pd.DataFrame([row | {"value": np.exp(np.log(values[values > 0]).mean())}])


@cache
def published_observations() -> pd.DataFrame:
    """Return every printed cell in the shape of our rows, in the order of `published.load`."""
    cells = published.load().rename(columns={"dataset": "stands_for"})
    standard = pd.DataFrame(list(map(standard_of, cells["stands_for"])))
    methods = cells["method"].map(METHODS)
    reads = {
        field: methods.map(lambda method, field=field: field in method.reads)
        for field in ("memory_size", "schedule", "rho")
    }
    memory = (cells["memory_size"] / standard["memory_size"]).astype(float)
    halved = cells["note"] == "rho 0.5"
    trained = cells.groupby("stands_for")["trained_tasks"].transform("max")
    cells = cells.assign(
        cell=range(len(cells)),
        seed=0,
        rho=np.nan,  # printed only as a range
        task=np.where(cells["metric"] == "accuracy", "all", "seen"),
        last=cells["trained_tasks"] == trained,
        memory=memory.where(reads["memory_size"]),
        schedule=cells["schedule"].where(reads["schedule"], ""),
        frozen=cells["note"].str.startswith("first residual block frozen"),
        power=np.where(halved, "0.5", np.where(reads["rho"], "own", "")),
    )
    names = ["epochs", "schedule", "test_set", "architecture"]
    usual = (cells[names] == standard[names]).rename(columns={"architecture": "model"})
    usual["memory_size"] = cells["memory"].isna() | (cells["memory"] == 1)
    usual["schedule"] |= ~reads["schedule"]
    usual["frozen_stages"] = ~cells["frozen"]
    flags = ~usual.assign(rho=~halved).sort_index(axis=1)
    varied = [",".join(flags.columns[row]) for row in flags.to_numpy()]
    return cells.assign(varied=varied)
