"""Depart from PRS in one step at a time, as other implementations do, and measure what it costs."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from prslib import RunConfig, configs
from prslib.datasets import SequentialDataset
from prslib.report.notebook import Trained, several
from prslib.report.style import LOOKS
from prslib.report.tables import ALL_GROUPS, MAIN_METRICS, contrasts, labels_of
from prslib.samplers.books import Batch
from prslib.samplers.reference import ReferencePRS, Seed
from prslib.statistics import DECIDING
from prslib.training.replay import make_replay, stream


class Settings(Trained):
    """Parameters of the notebook, which explains them."""

    dataset: list[str] = several("cocoseq-mini", "digits49seq")
    trained: list[str] = several("cocoseq-mini")
    rho: float = -0.03
    varied_seeds: list[int] = several(0)


def runs(settings: Settings) -> list[RunConfig]:
    """List the runs of PRS, each deviation, CRS and the published re-implementations."""
    return deviation_configs(settings.trained, settings.seeds, settings.rho, EVERY)


# PRS with one step replaced; the first line of each says what it does instead


class _UniformVictim(ReferencePRS):
    """Overwrite a random slot."""

    def choose(self, y: np.ndarray, u: np.ndarray) -> int:
        full = len(self) == self.size
        slot = super().choose(y, u)
        return int(u[2] * self.size) if full and slot >= 0 else slot


class _SoftenedExp(ReferencePRS):
    """Divide n_i by the mean over classes in e^(-n_i)."""

    def weights(self, y: np.ndarray) -> np.ndarray:
        n = self.counted(y)
        weight = y * np.exp(-n / n[n > 0].mean())
        return weight / weight.sum()


class _UnderflowingExp(ReferencePRS):
    """Compute e^(-n_i) as it is written."""

    def weights(self, y: np.ndarray) -> np.ndarray:
        weight = y * np.exp(-self.counted(y).astype(float))
        return weight / (weight.sum() or 1.0)  # 0 for every label where all underflow


class _ClassFromP(ReferencePRS):
    """Draw the class to shrink from p_i."""

    def surplus(self, p: np.ndarray) -> np.ndarray:
        self._p = p
        return super().surplus(p)

    def class_probability(self, delta: np.ndarray) -> np.ndarray:
        weight = self._p * (self.class_counts > 0)
        return weight / weight.sum()


class _SignedDistances(ReferencePRS):
    """Add up the differences of Eq. (5) with their signs: 0 for every candidate."""

    def distances(self, k: np.ndarray, p: np.ndarray) -> np.ndarray:
        counts = self.class_counts - self.labels_of(k)  # (K, C)
        gaps = counts - p * counts.sum(axis=1, keepdims=True)
        return gaps.sum(axis=1)  # rounding alone


class _TiesBySlot(ReferencePRS):
    """Overwrite the lowest of equally good slots."""

    def leaving(self, k: np.ndarray, distances: np.ndarray) -> np.ndarray:
        return super().leaving(k, distances).min(keepdims=True)


class _CountsAhead(ReferencePRS):
    """Know the counts of a task's classes when its first sample comes."""

    task: np.ndarray  # of each class
    total: np.ndarray  # of each class in the whole stream

    def counted(self, y: np.ndarray) -> np.ndarray:
        seen_tasks = np.bincount(self.task, self.class_freq + y) > 0
        return np.where(seen_tasks[self.task], self.total, 0)


class _BatchAtOnce(ReferencePRS):
    """Count a whole batch, then decide all of it on the memory before the batch."""

    def counted(self, y: np.ndarray) -> np.ndarray:
        return self.class_freq + getattr(self, "_batch", y)

    def _decide(self, batch: Batch) -> None:
        if len(self) < self.size:
            return super()._decide(batch)
        labels, uniforms, slots = batch
        self._batch = labels.sum(axis=0)
        slots[:] = [self.choose(y, u) for y, u in zip(labels, uniforms, strict=True)]
        for y, slot in zip(labels, slots, strict=True):
            self.follow(y, slot)


# each with a colour, and dashes for a line that another would hide; the colours are the
# muted ones of Paul Tol, which the colour-blind can tell apart
_DEPARTURES = (
    ("uniform victim", _UniformVictim, "#332288", "-"),
    ("softened exp", _SoftenedExp, "#88CCEE", "--"),
    ("underflowing exp", _UnderflowingExp, "#44AA99", ":"),
    ("class from p", _ClassFromP, "#117733", "-"),
    ("signed distances", _SignedDistances, "#DDCC77", "-"),
    ("ties by slot", _TiesBySlot, "#CC6677", "-."),
    ("counts known ahead", _CountsAhead, "#882255", "--"),
    ("batch at once", _BatchAtOnce, "#AA4499", ":"),
)
DEVIATIONS = {name: sampler for name, sampler, _, _ in _DEPARTURES}
LOOK = {name: (colour, dash) for name, _, colour, dash in _DEPARTURES}
LOOK |= {name: (LOOKS[name]["color"], "-") for name in ("PRS", "CRS")}
ALL = ("PRS", *DEVIATIONS, "CRS")

# what published code calls PRS; written from what the code does


class _Cuter(_UniformVictim):
    """Accept with chance exp(-0.01 n), n of the rarest label; overwrite a random slot."""

    def acceptance(self, y: np.ndarray, p: np.ndarray) -> float:
        return float(np.exp(-0.01 * self.counted(y)[y].min()))


class _MacroAucCl(ReferencePRS):
    """Never change a full memory: what is in it are the first m samples of the stream."""

    def acceptance(self, y: np.ndarray, p: np.ndarray) -> float:
        return 0.0


class _EmoGrowth(_CountsAhead, _UnderflowingExp, _TiesBySlot):
    """Count tasks ahead, let e^(-n) underflow, shrink the largest surplus; ties by slot."""

    def __init__(self, size: int, num_classes: int, seed: Seed, *, rho: float):
        super().__init__(size, num_classes, seed)

    def class_probability(self, delta: np.ndarray) -> np.ndarray:
        return np.eye(len(delta))[delta.argmax()]


CONTEST = {"CUTER": _Cuter, "Macro-AUC-CL": _MacroAucCl, "EmoGrowth": _EmoGrowth}
EVERY = DEVIATIONS | CONTEST
SOURCES = {
    "PRS": "the paper's Algorithm 1",
    "CUTER": "ICML 2025; github.com/wxr99/Cut-Replay, CUTER.zip",
    "Macro-AUC-CL": "github.com/ML-Group-SDU/Macro-AUC-CL, a7c973d, avalanche/training/"
    "storage_policy.py: BasePRSBuffer.remove_sample",
    "EmoGrowth": "ICML 2025; github.com/ChangdeDu/EmoGrowth, 39534ff, models/base.py: "
    "_construct_exemplar_unified_ml_prs",
    "CRS": "reservoir sampling",
}
MIX_LABELS = {
    # total variation between the mix of classes and p_i
    "distance": "distance to target (%)",
    "minority": "share of minority (%)",  # of the labels in memory
    "age": "mean age (% of stream)",  # of the held samples; 50 in a reservoir
}


@dataclass(frozen=True)
class DeviationConfig(RunConfig):
    """Configuration of a run of PRS with one deviation."""

    deviation: str = "ties by slot"

    def sampler_for(self, dataset: SequentialDataset, seed: np.random.SeedSequence):
        """Make the sampler that departs."""
        size = self.resolved["memory_size"]
        sampler_class = EVERY[self.deviation]
        sampler = sampler_class(size, dataset.num_classes, seed, rho=self.rho)
        if isinstance(sampler, _CountsAhead):
            sampler.task, sampler.total = dataset.class_task, dataset.class_freq
        return sampler


def deviation_configs(
    names: list[str], seeds: list[int], rho: float, deviations: Iterable[str]
) -> list[RunConfig]:
    """Make the runs of PRS, of CRS and of deviations on data sets."""
    made = configs(dataset=names, method=["PRS", "CRS"], seed=seeds, rho=rho)
    for name, deviation, seed in product(names, deviations, seeds):
        fields = {"dataset": name, "seed": seed, "rho": rho}
        made.append(DeviationConfig(**fields, method="PRS", deviation=deviation))
    return made


def name_of(config: RunConfig) -> str:
    """Return the deviation of a run, or its method."""
    return getattr(config, "deviation", config.method)


def memory_mix(settings: Settings, points: int = 20) -> pd.DataFrame:
    """Follow `MIX_LABELS` of what the memory holds over the stream, without training."""
    names = settings.dataset
    seeds = settings.varied_seeds
    rho = settings.rho
    rows = []
    for config in deviation_configs(names, seeds, rho, DEVIATIONS):
        dataset = labels_of(config.dataset)
        rare = np.array(dataset.class_group) == "minority"
        batches = np.concatenate([s.batches for s in stream(config, dataset)])
        times = np.arange(batches.size).reshape(batches.shape)
        marks = np.linspace(0, len(batches), points + 1).astype(int)[1:]
        replay = make_replay(config, dataset)
        sampler = replay.sampler
        for step, (batch, time) in enumerate(zip(batches, times, strict=True), 1):
            # the memory keeps when an image came in place of its row
            replay.offer(time, dataset.train.labels[batch])
            if step not in marks or len(sampler) < sampler.size:
                continue
            n = sampler.class_freq
            p = np.where(n > 0, np.maximum(n, 1.0) ** rho, 0.0)
            mix = sampler.class_counts / sampler.class_counts.sum()
            distance = np.abs(mix - p / p.sum()).sum() / 2
            came = replay.memory.read(replay.memory.filled)["index"]
            age = 1 - came.mean() / (step * len(batch))
            percent = 100 * np.array([distance, mix[rare].sum(), age])
            place = config.dataset, name_of(config), config.seed
            images = 100 * (step / len(batches))
            for measure, value in zip(MIX_LABELS, percent, strict=True):
                rows.append((*place, images, measure, value))
    columns = ["dataset", "deviation", "seed", "images", "measure", "value"]
    return pd.DataFrame(rows, columns=columns)


def against_prs(rows: pd.DataFrame) -> pd.DataFrame:
    """Compare every deviation, and CRS, with PRS at the end: `contrasts`, and a verdict each."""
    cells = [(group, "mAP") for group in ALL_GROUPS]
    gaps = [contrasts(rows, one, "PRS", cells).assign(deviation=one) for one in ALL[1:]]
    table = pd.concat(gaps, ignore_index=True)
    lead = table["difference"].abs().where(table["deviation"] == "CRS")
    lead = lead.groupby([table["dataset"], table["group"]]).transform("max")
    # what does not matter moves less than half of the lead that PRS has on CRS
    inside = table[["low", "high"]].abs().max(axis=1) <= 0.5 * lead
    table["verdict"] = "cannot be told"
    table.loc[inside, "verdict"] = "does not matter"
    table.loc[table["clearly"] == "above", "verdict"] = "gains"
    table.loc[table["clearly"] == "below", "verdict"] = "costs"
    table.loc[table["seeds"] < DECIDING, "verdict"] = "too few seeds"
    return table


def contest(rows: pd.DataFrame) -> pd.DataFrame:
    """Score what is called PRS, PRS and CRS: overall, and how far they are from PRS."""
    cells = [("overall", metric) for metric in MAIN_METRICS]
    rivals = [*CONTEST, "CRS"]
    gaps = [contrasts(rows, one, "PRS", cells).assign(method=one) for one in rivals]
    keys = ["dataset", "method", "metric"]
    gaps = pd.concat(gaps).set_index(keys)[["difference", "low", "high"]]
    rows = rows[(rows["measure"] == "score") & (rows["group"] == "overall")]
    scores = rows.groupby(keys, sort=False)["value"]
    table = scores.agg(mean="mean", sd="std", seeds="count").join(gaps)
    table = table.reindex(SOURCES, level="method").reset_index()
    return table.assign(source=table["method"].map(SOURCES))


def plot_mix(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw one measure of the memories of one data set over the stream, means over seeds."""
    means = frame.groupby(["deviation", "images"], sort=False)["value"].mean()
    for name in ["PRS", "CRS", *DEVIATIONS]:
        colour, dash = LOOK[name]
        line = {"color": colour, "linestyle": dash, "linewidth": 1.4}
        if name in LOOKS:  # broad and pale, so that what runs along it shows
            line |= {"linewidth": 7, "alpha": 0.35, "solid_capstyle": "butt"}
        ax.plot(means[name], label=name, **line)
    ax.set(xlabel="images of the stream (%)", ylim=(0, None))
    ax.set_ylabel(MIX_LABELS[frame["measure"].iloc[0]])
    return ax


def plot_costs(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw each deviation's difference from PRS in one group, with its interval."""
    rows = frame.set_index("deviation").reindex(list(ALL[1:]))
    places = np.arange(len(rows))[::-1]
    for place, (name, row) in zip(places, rows.iterrows(), strict=True):
        colour, _ = LOOK[name]
        ax.plot([row["low"], row["high"]], [place, place], color=colour, linewidth=2)
        ax.plot(row["difference"], place, "o", color=colour)
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set_yticks(places, rows.index)
    ax.set(xlabel=f"{frame['metric'].iloc[0]} minus that of PRS (points)")
    return ax
