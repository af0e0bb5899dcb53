"""Conventional reservoir sampling: every sample survives with the same chance."""

import numpy as np

from prslib.samplers.base import Sampler


class CRS(Sampler):
    """Keep item t of the stream with probability m / t (Vitter 1985; Sec. 3.2).

    Parameters
    ----------
    size, num_classes, seed, unlabelled
        As in `make_sampler`.

    Notes
    -----
    Item t, counted from 1, draws j uniformly from 0 .. t - 1 and takes slot j if j < m.
    The authors' released code draws before it counts and is one step late, so that its
    first m items survive less often than the rest; this one is not.

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
        """Return the slot of item t, -1 for none."""
        t = self.seen
        j = t - 1 if t <= self.size else int(u[0] * t)
        return j if j < self.size else -1
