"""Conventional reservoir sampling: every sample survives with the same chance."""

import numpy as np

from prslib.samplers import books
from prslib.samplers.base import Sampler
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
    >>> stream = np.repeat(np.eye(3, dtype=bool), [900, 90, 10], axis=0)
    >>> sampler = CRS(size=100, num_classes=3, seed=0)
    >>> _ = sampler.place(np.random.default_rng(0).permutation(stream))
    >>> print(sampler.class_freq, sampler.class_counts)
    [900  90  10] [88 11  1]
    """

    def _decide(
        self, labels: np.ndarray, uniforms: np.ndarray, slots: np.ndarray
    ) -> None:
        self._run(place, labels, uniforms, slots)


@entry
def place(arrays, begin, labels, uniforms, slots):
    """Write the slots from ``begin`` on; return where a class has no room, else -1."""
    state = books.state_of(arrays)
    scratch = np.empty(labels.shape[1] + 1, np.int64)
    for b in range(begin, len(labels)):
        slots[b] = -1
        classes = books.list_classes(labels[b], scratch)
        if len(classes) > 0:
            if not books.has_room(state, classes):
                return b
            books.count(state, classes)
            slots[b] = choose(state, uniforms[b])
            if slots[b] >= 0:
                books.store(state, classes, slots[b])
    return -1


@compiled
def choose(state, u):
    """Return the slot of item t, which is counted already; -1 for none."""
    t = state.seen[0]
    j = t - 1 if t <= len(state.classes) else int(u[0] * t)
    return j if j < len(state.classes) else -1
