"""GSS-Greedy: a memory whose gradients point in different directions."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from prslib.checks import Seed, check_int, expected, finite_array
from prslib.samplers.base import Sampler

Products = Callable[[np.ndarray], np.ndarray]  # inner products of gradients
FIRST_SCORE = 0.1  # of a sample that finds an empty memory


class GSS(Sampler):
    """Replace what resembles the memory's gradients (Aljundi et al. 2019, Alg. 2).

    Parameters
    ----------
    size, num_classes, seed, unlabelled
        As in `make_sampler`.
    subsets : int
        How many memory subsets a batch is compared with, "memory strength" (Appendix,
        "Baselines").
    subset_size : int
        Samples in each; fewer subsets, or one smaller one, while the memory holds too
        few.

    Raises
    ------
    TypeError
        By `place`, if ``gradient_products`` is no function.
    ValueError
        By `place`, if the products have another shape, or one is not finite.

    Notes
    -----
    A sample's score is the largest cosine similarity of its gradient to those of the
    subsets, plus 1: from 0 (opposed to all) to 2. Samples enter until the memory is
    full. Then a batch is considered if the similarity of its mean gradient is below 0.
    Each of its samples draws a candidate from the memory with
    probability proportional to the candidate's score, and a coin decides which of the
    two goes, with odds (score of new) : (score of candidate): the one that resembles
    the others more is the likelier to go.

    `place` takes ``gradient_products`` with the labels, a function: it gets K memory
    subsets, slots int64 (K, n), and returns float (K + B, K + B), the inner products of
    the gradients of the subsets' mean losses and of the batch's B samples. Products of
    two different subsets are not used. One place may call it twice.

    What the paper leaves open, and what we chose. The gradient is that of the training
    loss, over all trained weights, whatever the number of labels. The subsets are
    disjoint, as in the method's own code. Candidates are drawn sample by sample, with
    the scores as they are then. Scores are divided by their sum, as printed; the
    method's code also subtracts the smallest. The first scores are 0.1, that of a
    similarity of -0.9. A gradient of zero resembles nothing: similarity 0. A sample
    with no label never enters, counts nowhere and has no part in the batch's gradient.
    A full memory compares with two subsets first; one that is similar decides.

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
    draws = 0  # it draws from ``rng`` as it goes

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

    def _prepare(
        self, rows: np.ndarray, *, gradient_products: Products
    ) -> dict[str, Any]:
        """Compare the batch with subsets of the memory."""
        if not callable(gradient_products):
            got = type(gradient_products).__name__
            text = expected("a function of memory subsets", got)
            raise TypeError(f"gradient_products: {text}")
        scores, batch_score = self._compare(rows, gradient_products)
        return {"scores": scores, "batch_score": batch_score}

    def choose_batch(
        self,
        labels: np.ndarray,
        uniforms: np.ndarray,
        *,
        scores: np.ndarray,
        batch_score: float,
    ) -> np.ndarray:
        """Return the slot of each sample, by its score and the batch's (Alg. 2)."""
        slots = np.full(len(labels), -1, np.int64)
        filled = len(self)
        for (b, _), score in zip(self._taking_part(labels), scores, strict=True):
            if filled < self.size:
                slots[b] = filled
                filled += 1
            elif batch_score < 1:
                slots[b] = self._replace(score)
            if slots[b] >= 0:
                self.scores[slots[b]] = score
        return self.follow(labels, slots)

    def _compare(
        self, labels: np.ndarray, gradient_products: Products
    ) -> tuple[np.ndarray, float]:
        """Return the scores of the samples that take part, and of their mean gradient."""
        rows = [b for b, _ in self._taking_part(labels)]
        if not rows:
            return np.zeros(0), 0.0
        filled = len(self)
        if filled == 0:
            return np.full(len(rows), FIRST_SCORE), FIRST_SCORE
        n = min(self.subset_size, filled)
        number = min(self.subsets, filled // n)
        slots = self.rng.permutation(filled)[: number * n]  # so they are disjoint
        # a full memory looks at two first: one that is similar turns the batch away
        first = 2 if filled == self.size and number > 2 else number
        scores, batch_score = np.zeros(len(rows)), 0.0
        for subsets in np.split(slots.reshape(number, n), [first]):
            k = len(subsets)
            if k == 0 or batch_score >= 1:
                continue
            products = gradient_products(subsets)
            size = k + len(labels)
            name = f"gradient_products of {k} subsets and {len(labels)} samples"
            products = finite_array(name, products, (size, size), np.float64)
            new = k + np.array(rows)
            across = products[:k, new]  # (K, B)
            norms = np.sqrt(products.diagonal().clip(0))
            similar = ratio(across, np.outer(norms[:k], norms[new]))
            scores = np.maximum(scores, 1 + similar.max(axis=0))
            batch_norm = np.sqrt(max(products[np.ix_(new, new)].mean(), 0))
            similar = ratio(across.mean(axis=1), norms[:k] * batch_norm)
            batch_score = max(batch_score, float(1 + similar.max()))
        return scores, batch_score

    def _replace(self, score: float) -> int:
        """Draw a candidate from a full memory; return its slot if it goes, else -1."""
        total = self.scores.sum()
        slot = self.rng.choice(self.size, p=self.scores / total if total > 0 else None)
        odds = self.scores[slot] + score
        goes = self.scores[slot] / odds if odds > 0 else 0.5
        return slot if self.rng.random() < goes else -1


def ratio(products: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Divide, within -1 and 1; 0 where a gradient is zero."""
    quotient = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    return quotient.clip(-1, 1)
