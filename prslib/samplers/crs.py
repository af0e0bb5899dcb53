"""Conventional reservoir sampling: every sample survives with the same chance."""

from prslib.samplers import books
from prslib.samplers.base import Sampler
from prslib.samplers.books import Array, Arrays, Batch, State
from prslib.samplers.compiling import compiled, entry


class CRS(Sampler):
    """Keep item t of the stream with probability m / t (Vitter 1985; Sec. 3.2).

    Parameters
    ----------
    size, num_classes, seed
        As in `make_sampler`.

    Notes
    -----
    Item t, counted from 1 over the samples that have a label, draws j uniformly from 0
    .. t - 1 and takes slot j if j < m. The authors' released code draws before it
    counts and is one step late, so that its first m items survive less often than the
    rest; this one is not.

    Examples
    --------
    >>> import numpy as np
    >>> stream = np.repeat(np.eye(3, dtype=bool), [900, 90, 10], axis=0)
    >>> sampler = CRS(size=100, num_classes=3, seed=0)
    >>> _ = sampler.place(np.random.default_rng(0).permutation(stream))
    >>> print(sampler.class_freq, sampler.class_counts)
    [900  90  10] [88 11  1]
    """

    _compiled = True

    def choose_batch(self, labels: Array, uniforms: Array) -> Array:
        """Return the slots of a batch, one sample after the other."""
        return self._run(place, labels, uniforms)


@entry
def place(arrays: Arrays, begin: int, batch: Batch) -> int:
    """Place a batch as `books.place` does."""
    return books.place(arrays, begin, batch, choose, ())


@compiled
def choose(state: State, classes: Array, u: Array) -> int:
    """Return the slot of item t, which is counted already; -1 for none."""
    t = state.seen[0]
    j = t - 1 if t <= len(state.classes) else int(u[0] * t)
    return j if j < len(state.classes) else -1
