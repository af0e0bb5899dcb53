"""GSS-Greedy: a memory whose gradients point in different directions."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from prslib.checks import Seed, check_int, finite_array
from prslib.samplers.base import Sampler

Products = Callable[[np.ndarray], np.ndarray]  # inner products of gradients
FIRST_SCORE = 0.1  # of the samples that enter an empty memory


class GSS(Sampler):
    """Gradient-based sample selection, GSS-Greedy (Aljundi et al. 2019, Alg. 2).

    A stored sample is likely to be replaced if its gradient resembles the gradients of
    other samples in memory.

    Parameters
    ----------
    size : int
        Capacity of the memory m, in samples.
    num_classes : int or None
        Number of classes C. If it is None, classes are added when they first occur.
    seed : int, SeedSequence or Generator
        Source of every random decision.
    subsets : int
        Number of subsets of the memory with which a batch is compared. The PRS paper
        calls this number "memory strength" (Appendix, "Baselines").
    subset_size : int
        Number of samples in each subset. While the memory holds fewer than ``subsets``
        times ``subset_size`` samples, there are fewer subsets, or a single smaller
        subset.
    unlabelled : {"drop", "class"}
        Whether samples without a label are dropped or form an additional class.

    Raises
    ------
    ValueError
        If `place` receives inner products of gradients that have another shape or are
        not finite.

    Notes
    -----
    The score of a sample is 1 plus the largest cosine similarity of its gradient to the
    gradients of the subsets. It is between 0 and 2, and it is 0 if the gradient is
    opposed to all subsets. Samples are stored until the memory is full. From then on, a
    batch is considered only if its mean gradient has a similarity below 0 to every
    subset. For each sample of such a batch, a candidate is drawn from the memory with a
    probability proportional to the candidate's score. The sample replaces the candidate
    with probability (score of the candidate) / (sum of both scores).

    `place` receives the labels and a function ``gradient_products``. The argument of
    this function contains the slots of K subsets of the memory, int64 (K, n). The
    function returns the inner products of K + B gradients, float (K + B, K + B): first
    the gradient of the mean loss of each subset, then the gradient of each of the B
    samples in the batch. Products of two different subsets are not used. One call of
    `place` may call the function twice: if the memory is full, a batch is first
    compared with only two subsets. If its mean gradient has a similarity of at least 0
    to one of them, the batch is rejected without a second call.

    The paper leaves some details open, which are settled as follows:

    - The gradient is the gradient of the training loss with respect to all trained
      weights.
    - The subsets are disjoint, as in the authors' code.
    - Candidates are drawn for one sample after the other. Their probabilities are the
      current scores divided by the sum of these scores, whereas the authors' code first
      subtracts the smallest score.
    - Samples that enter an empty memory have a score of 0.1, as for a similarity of
      -0.9.
    - A gradient of zero has a similarity of 0.
    - The mean gradient of the batch does not include samples without a label.

    Examples
    --------
    >>> stream = np.repeat(np.eye(3, dtype=bool), [900, 90, 10], axis=0)
    >>> stream = np.random.default_rng(0).permutation(stream)
    >>> sampler = GSS(size=30, num_classes=3, seed=0)
    >>> def opposed(subsets):  # every gradient is opposed to the memory's
    ...     sign = [1] * len(subsets) + [-1] * 10
    ...     return np.outer(sign, sign)
    >>> for y in np.split(stream, 100):
    ...     _ = sampler.place(y, gradient_products=opposed)
    >>> print(sampler.class_freq, sampler.class_counts)
    [900  90  10] [26  4  0]
    """

    needs: ClassVar[frozenset[str]] = frozenset({"gradient_products"})
    draws = 0  # it uses ``rng`` instead, when it needs random numbers

    def __init__(
        self,
        size: int,
        num_classes: int | None,
        seed: Seed,
        *,
        subsets: int = 10,
        subset_size: int = 10,
        unlabelled: str = "drop",
    ):
        super().__init__(size, num_classes, seed, unlabelled=unlabelled)
        self.subsets = check_int("subsets", subsets, least=1)
        self.subset_size = check_int("subset_size", subset_size, least=1)
        self.scores = np.zeros(self.size)

    def choose_batch(
        self, labels: np.ndarray, uniforms: np.ndarray, *, gradient_products: Products
    ) -> np.ndarray:
        """Return slots, which depend on the scores of samples and batch (Alg. 2)."""
        slots = np.full(len(labels), -1)
        rows = np.array([b for b, _ in self._taking_part(labels)], np.int64)
        scores, batch_score = self._compare(rows, len(labels), gradient_products)
        filled = len(self)
        for b, score in zip(rows, scores, strict=True):
            if filled < self.size:
                slots[b] = filled
                filled += 1
            elif batch_score < 1:
                slots[b] = self._replace(score)
            if slots[b] >= 0:
                self.scores[slots[b]] = score
        return self.follow(super()._widen(labels), slots)

    def _widen(self, rows: np.ndarray) -> np.ndarray:
        """Leave new classes to `choose_batch`, which may refuse the batch."""
        return rows

    def _compare(
        self, rows: np.ndarray, batch: int, gradient_products: Products
    ) -> tuple[np.ndarray, float]:
        """Return the scores of rows of a batch and the score of their mean gradient."""
        filled = len(self)
        if filled == 0 or len(rows) == 0:
            return np.full(len(rows), FIRST_SCORE), FIRST_SCORE
        n = min(self.subset_size, filled)
        number = min(self.subsets, filled // n)
        slots = self.rng.permutation(filled)[: number * n]  # disjoint subsets
        # with a full memory, one similar subset is enough to reject the batch
        first = 2 if filled == self.size and number > 2 else number
        scores, batch_score = np.zeros(len(rows)), 0.0
        for subsets in np.split(slots.reshape(number, n), [first]):
            k = len(subsets)
            if k == 0 or batch_score >= 1:
                continue
            products = gradient_products(subsets)
            name = f"gradient_products of {k} subsets and {batch} samples"
            products = finite_array(name, products, (k + batch, k + batch), np.float64)
            new = k + rows
            across = products[:k, new]  # (K, B)
            norms = np.sqrt(products.diagonal().clip(0))
            similar = ratio(across, np.outer(norms[:k], norms[new]))
            scores = np.maximum(scores, 1 + similar.max(axis=0))
            batch_norm = np.sqrt(max(products[np.ix_(new, new)].mean(), 0))
            similar = ratio(across.mean(axis=1), norms[:k] * batch_norm)
            batch_score = max(batch_score, float(1 + similar.max()))
        return scores, batch_score

    def _replace(self, score: float) -> int:
        """Draw a candidate from a full memory; return its slot if it is replaced, else -1."""
        total = self.scores.sum()
        slot = self.rng.choice(self.size, p=self.scores / total if total > 0 else None)
        odds = self.scores[slot] + score
        goes = self.scores[slot] / odds if odds > 0 else 0.5
        return slot if self.rng.random() < goes else -1


def ratio(products: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Divide products by norms, and clip to [-1, 1]; return 0 if a gradient is zero."""
    quotient = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    return quotient.clip(-1, 1)
