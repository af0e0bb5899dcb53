"""GSS-Greedy: a memory whose gradients point in different directions."""

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from prslib.checks import whole
from prslib.samplers.base import Counted, Seed, check_labels

FIRST_SCORE = 0.1  # of a sample that finds an empty memory


class GSS(Counted):
    """Replace samples whose gradients resemble the memory's (Aljundi et al. 2019, Alg. 2).

    Parameters
    ----------
    size, num_classes, seed
        As in `make_sampler`.
    subsets : int
        How many memory subsets a batch is compared with, "memory strength" (Appendix, "Baselines").
    subset_size : int
        Samples in each; fewer subsets, or one smaller one, while the memory holds too few.

    Notes
    -----
    A sample's score is the largest cosine similarity of its gradient to those of the subsets,
    plus 1: from 0 (opposed to all) to 2. Samples enter until the memory is full. Then a batch is
    considered if the similarity of its mean gradient is below 0 (``decides_by_batch``). Each of its
    samples draws a candidate from the memory with probability proportional to the candidate's
    score, and a coin decides which of the two goes, with odds (score of new) : (score of
    candidate): the one that resembles the others more is the likelier to go.

    What the paper leaves open, and what we chose. The gradient is that of the training loss, over
    all trained weights, whatever the number of labels. The subsets are disjoint, as in the method's
    own code. Candidates are drawn sample by sample, with the scores as they are then. Scores are
    divided by their sum, as printed; the method's code also subtracts the smallest. The
    first scores are 0.1, that of a similarity of -0.9. A gradient of zero resembles nothing:
    similarity 0. A sample with no label never enters, counts nowhere and has no part in the
    batch's gradient. A full memory compares with two subsets first; one that is similar decides.

    Examples
    --------
    >>> one = lambda subsets: np.ones((len(subsets) + 2,) * 2)  # all gradients alike
    >>> GSS(size=2, num_classes=3, seed=0).place(np.eye(3, dtype=bool)[:2], gradient_products=one)
    array([0, 1])
    """

    needs: ClassVar[frozenset[str]] = frozenset({"gradient_products"})
    decides_by_batch: ClassVar[bool] = True

    def __init__(
        self, size: int, num_classes: int, seed: Seed, *, subsets: int = 10, subset_size: int = 10
    ):
        super().__init__(size, num_classes, seed)
        self.subsets = whole("subsets", subsets, least=1)
        self.subset_size = whole("subset_size", subset_size, least=1)
        self._scores = np.zeros(self.size)

    @property
    def scores(self) -> np.ndarray:
        """Score of the sample in each slot; float64 (size,), a copy, 0 where none is."""
        return self._scores.copy()

    def place(
        self, labels: np.ndarray, *, gradient_products: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Take a batch of the stream and return the slot of each sample (Alg. 2).

        Parameters
        ----------
        labels : bool (B, C)
            As in `Sampler.place`, and so the slots that are returned.
        gradient_products : callable
            Takes K memory subsets, slots int64 (K, n); returns float (K + B, K + B): the inner
            products of the gradients of the subsets' mean losses and of the batch's B samples.
            Those of two different subsets are not used. One place may call it twice.

        Raises
        ------
        TypeError
            If ``labels`` is not boolean or ``gradient_products`` cannot be called.
        ValueError
            If ``labels`` or the products do not have the right shape, or a product is not finite.
        """
        labels = check_labels(labels, self.num_classes)
        if not callable(gradient_products):
            raise TypeError(
                "gradient_products: expected a function of memory subsets, got "
                f"{type(gradient_products).__name__}; see GSS.place"
            )
        slots = np.full(len(labels), -1, np.int64)
        rows = np.flatnonzero(labels.any(1))
        if len(rows):
            scores, batch_score = self._compare(len(labels), rows, gradient_products)
            for row, score in zip(rows, scores, strict=True):
                slots[row] = self._take(labels[row], score, batch_score)
            self._freq += labels.sum(0)
        return slots

    def _compare(
        self, length: int, rows: np.ndarray, gradient_products: Callable
    ) -> tuple[np.ndarray, float]:
        """Return the scores of the samples in ``rows`` and of their mean gradient."""
        if not self._count:
            return np.full(len(rows), FIRST_SCORE), FIRST_SCORE
        size = min(self.subset_size, self._count)
        drawn = min(self.subsets, self._count // size), size
        slots = self._rng.permutation(self._count)[: math.prod(drawn)]  # so they are disjoint
        full, scores, batch_score = self._count == self.size, np.zeros(len(rows)), 0.0
        for subsets in np.split(slots.reshape(drawn), [2] if full and drawn[0] > 2 else []):
            known, products = len(subsets), np.asarray(gradient_products(subsets), np.float64)
            if products.shape != (known + length,) * 2:
                raise ValueError(
                    f"gradient_products: expected shape {(known + length,) * 2}, {known} subsets "
                    f"and {length} samples, got {products.shape}"
                )
            if not np.isfinite(products).all():
                raise ValueError(
                    "gradient_products: expected finite numbers, got others, which would stay in "
                    "the scores; has the network diverged?"
                )
            new = known + rows
            across = products[:known, new]  # (K, B)
            norms = np.sqrt(products.diagonal().clip(0))
            similar = _ratio(across, np.outer(norms[:known], norms[new]))
            scores = np.maximum(scores, 1 + similar.max(0))
            norms = norms[:known] * np.sqrt(max(products[np.ix_(new, new)].mean(), 0))
            batch_score = max(batch_score, float(1 + _ratio(across.mean(1), norms).max()))
            if batch_score >= 1:  # turned away, whatever the other subsets are
                break
        return scores, batch_score

    def _take(self, labels: np.ndarray, score: float, batch_score: float) -> int:
        if self._count < self.size:
            slot = self._count
            self._count += 1
        elif batch_score >= 1:
            return -1
        else:
            slot = self._draw_candidate()
            odds = self._scores[slot] + score
            leaves = self._scores[slot] / odds if odds > 0 else 0.5
            if self._rng.random() >= leaves:
                return -1
        self._held += labels
        self._held -= self._labels[slot]
        self._labels[slot] = labels
        self._scores[slot] = score
        return slot

    def _draw_candidate(self) -> int:
        steps = self._scores.cumsum()
        if steps[-1] <= 0:
            return int(self._rng.integers(self.size))
        drawn = self._rng.random() * steps[-1]
        return int(min(np.searchsorted(steps, drawn, side="right"), self.size - 1))


def _ratio(products: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Divide, within -1 and 1; 0 where a gradient is zero."""
    ratio = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    return ratio.clip(-1, 1)
