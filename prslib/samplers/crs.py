"""Conventional reservoir sampling: every sample survives with the same probability."""

import numpy as np

from prslib.samplers.base import Sampler


class CRS(Sampler):
    """Conventional reservoir sampling (Vitter 1985; Sec. 3.2).

    Each sample of the stream so far is in memory with the same probability.

    Parameters
    ----------
    size : int
        Capacity of the memory m, in samples.
    num_classes : int or None
        Number of classes C. If it is None, classes are added when they first occur.
    seed : int, SeedSequence or Generator
        Source of every random decision.
    unlabelled : {"drop", "class"}
        Whether samples without a label are dropped or form an additional class.

    Notes
    -----
    Samples are counted from 1, and the first m of them fill the memory. For each later
    sample t, j is drawn uniformly from 0 .. t - 1, and the sample is stored in slot j if
    j < m. The released code of the PRS authors draws j before it counts the sample, so that the
    first m samples are kept less often than later samples.

    Examples
    --------
    >>> import numpy as np
    >>> stream = np.repeat(np.eye(3, dtype=bool), [900, 90, 10], axis=0)
    >>> sampler = CRS(size=100, num_classes=3, seed=0)
    >>> _ = sampler.place(np.random.default_rng(0).permutation(stream))
    >>> print(sampler.class_freq, sampler.class_counts)
    [900  90  10] [88 11  1]
    """

    def choose(self, y: np.ndarray, u: np.ndarray) -> int:
        """Return the slot of sample t, or -1 if it is not stored."""
        t = self.seen
        j = t - 1 if t <= self.size else int(u[0] * t)
        return j if j < self.size else -1
