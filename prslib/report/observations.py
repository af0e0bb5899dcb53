"""Gather what runs measured and the paper prints in rows of one shape; decide claims on them.

The columns:

- stands_for: the paper's data set; dataset, data: ours, and one of `KINDS`, what it is of the
  paper's; a small network makes it a stand-in, too;
- method, architecture (in the paper's words), memory (relative to the standard), schedule, epochs,
  test_set, rho, power ("own" for the standard's rho, otherwise its value);
- frozen (whether the first stages stay as they began, for every method alike);
- varied: which fields of the configuration differ from the standard, "" for none,
  "memory_size,schedule" for two;
- seed, run (the hash of its configuration);
- trained_tasks, last (whether all tasks are trained), task, group, measure, metric;
- value: in percent, or in the unit that the metric's name gives;
- draws: the value under each resample of the test images, an array or NaN; only where a run of the
  rows has some.

The standard of a data set is the first configuration that is asked for on it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pandas as pd

from prslib import published
from prslib.datasets import DATASETS, GROUPS, SequentialDataset, load_dataset
from prslib.metrics import forgetting
from prslib.models import MODELS
from prslib.models.weights import NONE
from prslib.report.feature_tsne import separation
from prslib.report.statistics import Effect, Interval, has_draws, interval, mean_draws
from prslib.report.tables import METRICS, with_draws
from prslib.report.tail_forgetting import class_forgetting, size_correlations
from prslib.training.config import Run, RunConfig
from prslib.training.methods import METHODS

# what a run may measure beside its scores, and the field that asks for it
EXTRAS = {"features": "features_per_class", "variance": "variance_points"}
KINDS = ("paper's", "part", "stand-in")  # of data; the first that was run counts
FIGURE_1 = ("CRS", "EWC")
SETTING = ["stands_for", "method", "architecture", "memory", "schedule", "epochs", "test_set"]
COLUMNS = ["dataset", "data", *SETTING, "frozen", "rho", "power", "varied", "seed", "run"]
CELL = ["trained_tasks", "last", "task", "group", "measure", "metric"]
# the rows that a claim is about, where it does not say otherwise
USUAL = {
    "varied": ("",),
    "power": ("", "own"),
    "measure": ("score",),
    "group": ("overall",),
    "metric": METRICS,
    "task": ("seen",),
    "last": (True,),
}


def settings_of(configs: Sequence[RunConfig]) -> pd.DataFrame:
    """Describe configurations in the paper's terms, a row each; the standards come first."""
    standards = {}
    for config in configs:
        standards.setdefault(config.dataset, config)
    rows = [_setting(config, standards[config.dataset]) for config in configs]
    return pd.DataFrame(rows, columns=COLUMNS)


@cache
def _setting(config: RunConfig, standard: RunConfig) -> dict:
    ours, recipe = config.identity, DATASETS[config.dataset].recipe
    usual = replace(standard, method=config.method, seed=config.seed)
    model, usual_model = ours["model"], usual.resolved["model"]
    usual = replace(usual, model=config.model).identity  # its own weights come with it
    varied = {k for k in ours if k not in EXTRAS.values() and ours[k] != usual.get(k)}
    varied |= {"model"} if model != usual_model else set()
    name = _labels(config.dataset).stands_for
    plain = standard_of(name)["architecture"]
    small = model != recipe.model and MODELS[model].default_weights == NONE
    memory = ours.get("memory_size", np.nan) / standard.resolved["memory_size"]
    drawn = recipe.schedule_drawn and "schedule" not in varied
    return {
        "stands_for": name,
        "dataset": config.dataset,
        "data": "stand-in" if small else DATASETS[config.dataset].relation,
        "method": config.method,
        "architecture": plain if model == recipe.model else MODELS[model].stands_for or model,
        "memory": np.round(20 * memory) / 20,  # a third or half of an odd size is rounded
        "schedule": "" if drawn else ",".join(map(str, ours.get("schedule", ()))),
        "epochs": ours.get("epochs", 1),
        "test_set": ours["test_set"],
        "frozen": config.frozen_stages > 0,
        "rho": ours.get("rho", np.nan),
        "power": "" if "rho" not in ours else f"{ours['rho']:g}" if "rho" in varied else "own",
        "varied": ",".join(sorted(varied)),
        "seed": config.seed,
        "run": config.hash,
    }


@cache
def _labels(name: str) -> SequentialDataset:
    return load_dataset(name, images=False)


@cache
def standard_of(stands_for: str) -> dict:
    """Return the setting in which the paper trains a data set: its first row with a memory."""
    cells = published.load(dataset=stands_for)
    return cells[cells["memory_size"].notna()].iloc[0].to_dict()


def observe(runs: Sequence[Run], wanted: Sequence[RunConfig]) -> pd.DataFrame:
    """Gather what finished runs measured; `wanted` are all that were asked for, standards first."""
    settings = settings_of(wanted).drop_duplicates("run")
    found = {run.config.hash: run for run in runs}
    if not found:
        return pd.DataFrame(columns=[*COLUMNS, *CELL, "value"])
    parts = [_scores(found)]
    for name, run in found.items():
        frames = [_memory(run), _order(run), _features(run), _variance(run)]
        trained = run.scores["trained_tasks"].max()
        extra = {"task": "seen", "last": True, "trained_tasks": trained, "run": name}
        parts += [frame.assign(**extra) for frame in frames if frame is not None]
    rows = pd.concat(parts, ignore_index=True).merge(settings, on="run")
    # a run with features measures the same scores as the run without
    key = ["dataset", *SETTING, "power", "varied", "seed", *CELL]
    return rows.drop_duplicates(key, ignore_index=True)


def _scores(runs: dict[str, Run]) -> pd.DataFrame:
    columns = ["schedule", "trained_tasks", "task", "group", "metric", "value"]
    columns += ["draws"] if any(run.resampled is not None for run in runs.values()) else []
    parts = [
        with_draws(run).reindex(columns=columns).assign(run=name) for name, run in runs.items()
    ]
    rows = pd.concat(parts, ignore_index=True)
    rows = rows[rows["group"].isin([*GROUPS, "overall"])]
    trained = rows.groupby("run")["trained_tasks"].max()
    online = rows[rows["schedule"] != ""]  # Multitask has no earlier tasks to forget
    online = online.drop(columns="draws", errors="ignore")
    rows = rows.assign(measure="score", last=rows["trained_tasks"] == rows["run"].map(trained))
    rows = rows[rows["last"] | rows["task"].isin(["seen", "all"])]
    if len(online):
        lost = forgetting(online).assign(measure="forget", last=True, task="seen")
        lost["trained_tasks"] = lost["run"].map(trained)
        rows = pd.concat([rows, lost], ignore_index=True)
    values = [name for name in ("value", "draws") if name in rows]
    return rows[["run", *CELL]].join(100 * rows[values])


def _memory(run: Run) -> pd.DataFrame | None:
    if len(run.memory_labels) == 0:
        return None
    dataset = _labels(run.config.dataset)
    counts = run.memory_labels.sum(axis=0), dataset.class_freq
    held, stream = (100 * count / count.sum() for count in counts)
    equal = np.full_like(stream, 100 / len(stream))
    rows = [
        ("overall", "to equal", np.abs(held - equal).sum() / 2),  # total variation
        ("overall", "to stream", np.abs(held - stream).sum() / 2),
        ("overall", "labels", run.memory_labels.sum(axis=1).mean()),  # a held sample
    ]
    groups = np.array(dataset.class_group)
    rows += [(group, "memory", held[groups == group].sum()) for group in GROUPS]
    return pd.DataFrame(rows, columns=["group", "metric", "value"]).assign(measure="share")


def _order(run: Run) -> pd.DataFrame | None:
    """Correlate forgetting with class size for the methods of Figure 1 (`size_correlations`)."""
    if run.config.method not in FIGURE_1 or run.config.resolved["tasks_at_once"] > 1:
        return None
    found = size_correlations(class_forgetting([run]))
    found = found[found["measure"] == "normalised"].groupby("metric")["correlation"].mean()
    return found.rename("value").reset_index().assign(group="overall", measure="order")


def _features(run: Run) -> pd.DataFrame | None:
    if run.features is None:
        return None
    found = separation([run], neighbours=min(5, len(run.features) - 1))
    return found[["group", "metric", "value"]].assign(measure="features")


def _variance(run: Run) -> pd.DataFrame | None:
    if run.gradient_variance is None:
        return None
    row = {"group": "overall", "metric": "gradient variance", "measure": "variance"}
    values = run.gradient_variance["value"]  # over the stream they move by orders of magnitude
    return pd.DataFrame([row | {"value": np.exp(np.log(values[values > 0]).mean())}])


@cache
def published_observations() -> pd.DataFrame:
    """Return every printed cell in the shape of our own rows, in the order of `published.load`."""
    cells = published.load().rename(columns={"dataset": "stands_for"})
    standard = pd.DataFrame(list(map(standard_of, cells["stands_for"])))
    fields = ("memory_size", "schedule", "rho")
    reads = {f: np.array([f in METHODS[name].reads for name in cells["method"]]) for f in fields}
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
    usual = {name: cells[name] == standard[name] for name in ("epochs", "schedule", "test_set")}
    usual["memory_size"] = cells["memory"].isna() | (cells["memory"] == 1)
    usual["model"] = cells["architecture"] == standard["architecture"]
    usual["schedule"] |= ~reads["schedule"]
    usual["frozen_stages"] = ~cells["frozen"]
    flags = ~pd.DataFrame(usual | {"rho": ~halved}).sort_index(axis=1)
    return cells.assign(varied=[",".join(flags.columns[row]) for row in flags.to_numpy()])


@dataclass(frozen=True)
class Claim:
    """A claim, where it stands in the paper, and what decides it."""

    statement: str  # in words of our own
    source: str  # section, table or figure of the paper
    test: str  # what is measured, in words; above 0 speaks for the claim
    effect: Effect  # the same as a function of a table (seeds, cells), in `unit`
    on: tuple[str, ...] = ("COCOseq", "NUS-WIDEseq")  # the paper's data sets
    # columns of the observations that tell the cells apart; the first is what is compared
    columns: tuple[str, ...] = ("method", "metric")
    # column to the values that count, over `USUAL`, None for any; of one of `columns` all that
    # are named must have been run
    where: dict[str, tuple | None] = field(default_factory=dict)
    several: str = ""  # one of `columns` of which at least two values must have been run
    unit: str = "points"

    def select(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows that the claim is about; columns that are not there do not count."""
        kept = rows["stands_for"].isin(self.on)
        for name, values in (USUAL | self.where).items():
            if values is not None and name in rows:
                kept &= rows[name].isin(values)
        return rows[kept]

    def needs(self, wanted: Sequence[RunConfig]) -> list[RunConfig]:
        """Return those of a profile's runs that the claim looks at; the standards come first."""
        rows = self.select(settings_of(wanted).drop_duplicates("run"))
        extras = [EXTRAS[name] for name in self.where.get("measure", ()) if name in EXTRAS]
        needed = [wanted[row] for row in rows.index]
        return [config for config in needed if all(getattr(config, extra) for extra in extras)]

    def table(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Lay out one data set as (seeds, cells), without rows where a cell has not been run."""
        selected, columns = self.select(rows), list(self.columns)
        selected = selected.dropna(subset=[*columns, "value"])
        if selected.empty:
            return pd.DataFrame()
        table = selected.pivot_table(index="seed", columns=columns, values="value")
        if self.several:  # of these, whatever all the others have
            levels = table.columns.get_level_values(self.several)
            counts = levels.map(levels.value_counts())
            table = table.loc[:, counts == counts.max()]
        levels = {name: set(table.columns.get_level_values(name)) for name in columns}
        named = {"metric": METRICS} | self.where
        missing = any(set(named.get(name, ())) - found for name, found in levels.items())
        gaps = len(table.columns) < math.prod(map(len, levels.values()))
        single = self.several and len(levels[self.several]) < 2
        return table.iloc[:0] if missing or gaps or single else table

    def interval(self, rows: pd.DataFrame, level: float = 0.95) -> Interval:
        """Return the effect on one data set, with the chance of its test images if it is known."""
        table, draws = self.table(rows).dropna(), None
        rows = self.select(rows)
        rows = rows[rows["seed"].isin(table.index)]
        if len(table) > 1 and has_draws(rows):
            cells = dict(list(rows.groupby(list(self.columns))))
            draws = pd.DataFrame({cell: mean_draws(cells[cell]) for cell in table})
            draws.columns = table.columns
        return interval(table, self.effect, level, draws)
