"""Samplers that depart from PRS in one step, as other implementations do."""

from collections.abc import Iterable, Sequence

import numpy as np

from prslib import configs, register
from prslib.checks import Seed
from prslib.datasets import load_dataset
from prslib.samplers import PRS
from prslib.samplers.label_sets import NONE
from prslib.samplers.prs import powers_of
from prslib.train import RunConfig

# PRS with one step replaced, which the first line of each docstring describes


class _UniformVictim(PRS):
    """Overwrite a random slot."""

    def choose(self, y: np.ndarray, u: np.ndarray) -> int:
        full = len(self) == self.size
        slot = super().choose(y, u)
        return int(u[2] * self.size) if full and slot >= 0 else slot


class _SoftenedExp(PRS):
    """Replace e^(-n_i) by e^(-n_i / mean of n_i over classes)."""

    def weights(self, n: Sequence[int]) -> list[float]:
        mean = self._freq[self._freq > 0].mean()
        weight = np.exp(-np.array(n) / mean)
        return (weight / weight.sum()).tolist()


class _UnderflowingExp(PRS):
    """Compute e^(-n_i) literally, so that it underflows for a large n_i."""

    def weights(self, n: Sequence[int]) -> list[float]:
        weight = np.exp(-np.array(n, float))
        return (weight / (weight.sum() or 1.0)).tolist()  # 0 if all underflow


class _ClassFromP(PRS):
    """Draw the class to shrink with probability p_i."""

    def class_probability(self, delta: np.ndarray) -> np.ndarray:
        weight = self.partition() * (self._counts > 0)
        return weight / weight.sum()


class _SignedDistances(PRS):
    """Sum the signed differences of Eq. (5), which gives 0 for every candidate."""

    def distances(self, k: np.ndarray, p: np.ndarray) -> np.ndarray:
        counts = self._counts - self._sets.rows(k, len(p))  # (K, C)
        gaps = counts - p * counts.sum(axis=1, keepdims=True)
        return gaps.sum(axis=1)  # 0 up to rounding


class _TiesBySlot(PRS):
    """Overwrite the slot with the lowest number among equally good slots."""

    def choose(self, y: np.ndarray, u: np.ndarray) -> int:
        return super().choose(y, np.append(u[:2], 0.0))


class _CountsAhead(PRS):
    """Use the final counts of a task's classes from its first sample on."""

    def __init__(
        self, size: int, num_classes: int, seed: Seed, *, rho: float = 0.0, dataset: str
    ):
        super().__init__(size, num_classes, seed, rho=rho)
        data = load_dataset(dataset, images=False)
        self.task = data.class_task  # of each class
        self.total = data.class_freq  # in the whole stream

    def _count(self, classes: Sequence[int]) -> None:
        self.seen += 1
        if (self._freq[classes] == 0).any():
            of_tasks = np.isin(self.task, self.task[classes])
            self._freq[:-1] = np.where(of_tasks, self.total, self._freq[:-1])
            self.powers = powers_of(self._freq, self.rho)


class _BatchAtOnce(PRS):
    """Count a whole batch, then choose slots in the memory as it was before the batch."""

    def choose_batch(self, labels: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        if len(self) < self.size:
            return super().choose_batch(labels, uniforms)
        for y in labels:
            self._count(self.classes_of(y))
        pairs = zip(labels, uniforms, strict=True)
        slots = np.array([self.choose(y, u) for y, u in pairs])
        for y, slot in zip(labels, slots.tolist(), strict=True):
            if slot >= 0:
                self._store(self.classes_of(y), slot)
        return slots


class _SeveralClasses(PRS):
    """Choose candidates from all classes above their target instead of one drawn class."""

    def candidates(self, c: int, q: np.ndarray) -> np.ndarray:
        k = self._sets.all()
        classes = self._sets.classes[k]  # (K, W)
        is_class = classes != NONE
        is_above = (is_class & ~q[classes]).any(axis=1)
        if not is_above.any():  # every class is at its target
            return super().candidates(c, q)
        number = (is_class & q[classes]).sum(axis=1)[is_above]  # y.q, Eq. (4)
        return k[is_above][number == number.min()]


# method, sampler, and name in the pictures
_DEPARTURES = (
    ("uniform victim", _UniformVictim, "random slot overwritten"),
    ("softened exp", _SoftenedExp, "softened exponential"),
    ("underflowing exp", _UnderflowingExp, "underflowing exponential"),
    ("class from p", _ClassFromP, "class drawn by target share"),
    ("signed distances", _SignedDistances, "signed distances"),
    ("ties by slot", _TiesBySlot, "ties to the lowest slot"),
    ("counts known ahead", _CountsAhead, "class counts known ahead"),
    ("batch at once", _BatchAtOnce, "whole batch at once"),
    ("several classes", _SeveralClasses, "several classes shrink"),
)
DEVIATIONS = {name: sampler for name, sampler, _ in _DEPARTURES}
WORDS = {name: words for name, _, words in _DEPARTURES} | {"PRS": "PRS", "CRS": "CRS"}
ALL = ("PRS", *DEVIATIONS, "CRS")

# reimplementations of what published code calls PRS


class _Cuter(_UniformVictim):
    """Accept with probability exp(-0.01 n) for the rarest label's n; overwrite a random slot."""

    def acceptance(self, y: np.ndarray, p: np.ndarray) -> float:
        return float(np.exp(-0.01 * self._freq[self.classes_of(y)].min()))


class _MacroAucCl(PRS):
    """Never change a full memory, and thus keep the first m samples of the stream."""

    def acceptance(self, y: np.ndarray, p: np.ndarray) -> float:
        return 0.0


class _EmoGrowth(_CountsAhead, _UnderflowingExp, _TiesBySlot):
    """Know counts ahead, let e^(-n) underflow, shrink the largest surplus, break ties by slot."""

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
) -> list[RunConfig]:
    """Make the runs of PRS, of CRS and of deviations on data sets.

    Each deviation is registered as a method of that name.
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
