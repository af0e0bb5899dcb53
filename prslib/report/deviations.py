"""Depart from PRS in one step at a time, as other implementations do, and measure what it costs."""

from collections.abc import Iterable

import numpy as np

from prslib import register
from prslib.report.asked import Asked, configs
from prslib.report.style import METHOD_STYLES
from prslib.report.tables import labels_of
from prslib.samplers.reference import ReferencePRS, Seed

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

    def __init__(
        self, size: int, num_classes: int, seed: Seed, *, rho: float = 0.0, dataset: str
    ):
        super().__init__(size, num_classes, seed, rho=rho)
        self.task = labels_of(dataset).class_task  # of each class
        self.total = labels_of(dataset).class_freq  # in the whole stream

    def counted(self, y: np.ndarray) -> np.ndarray:
        seen_tasks = np.bincount(self.task, self.class_freq + y) > 0
        return np.where(seen_tasks[self.task], self.total, 0)


class _BatchAtOnce(ReferencePRS):
    """Count a whole batch, then decide all of it on the memory before the batch."""

    def counted(self, y: np.ndarray) -> np.ndarray:
        return self.class_freq + getattr(self, "_batch", y)

    def choose_batch(self, labels: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        if len(self) < self.size:
            return super().choose_batch(labels, uniforms)
        self._batch = labels.sum(axis=0)
        pairs = zip(labels, uniforms, strict=True)
        return np.array([self.choose(y, u) for y, u in pairs])


# each with one of Paul Tol's muted colours, which the colour-blind can tell apart
_DEPARTURES = (
    ("uniform victim", _UniformVictim, "#332288"),
    ("softened exp", _SoftenedExp, "#88CCEE"),
    ("underflowing exp", _UnderflowingExp, "#44AA99"),
    ("class from p", _ClassFromP, "#117733"),
    ("signed distances", _SignedDistances, "#DDCC77"),
    ("ties by slot", _TiesBySlot, "#CC6677"),
    ("counts known ahead", _CountsAhead, "#882255"),
    ("batch at once", _BatchAtOnce, "#AA4499"),
)
DEVIATIONS = {name: sampler for name, sampler, _ in _DEPARTURES}
COLOURS = {name: colour for name, _, colour in _DEPARTURES}
COLOURS |= {name: METHOD_STYLES[name]["color"] for name in ("PRS", "CRS")}
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

    def __init__(
        self, size: int, num_classes: int, seed: Seed, *, rho: float = 0.0, dataset: str
    ):
        super().__init__(size, num_classes, seed, dataset=dataset)

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


def deviation_configs(
    names: list[str], seeds: list[int], rho: float | None, deviations: Iterable[str]
) -> list[Asked]:
    """Make the runs of PRS, of CRS and of deviations on data sets.

    Each deviation becomes a method of its name.
    """
    for deviation in deviations:
        register(deviation, EVERY[deviation])
    made = configs(dataset=names, method=["PRS", "CRS"], seed=seeds, rho=rho)
    for name in names:
        for deviation in deviations:
            knows_ahead = issubclass(EVERY[deviation], _CountsAhead)
            options = {"dataset": name} if knows_ahead else {}
            fields = {"dataset": name, "seed": seeds, "rho": rho, "options": options}
            made += configs(method=deviation, **fields)
    return made
