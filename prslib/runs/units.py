"""Runs that one process trains as one: those of one training, and on a GPU those of one shape."""

from collections.abc import Sequence
from os import PathLike

from prslib.config import RunConfig
from prslib.experiment import run_at_once
from prslib.results import Run
from prslib.runs.stacked import run_stacked, shape
from prslib.store import SAVE_EVERY

# Stacked, a run gives other bytes in other company. On a CPU it must not, and thousands of runs at
# once are `prslib.runs.mlp_loop`'s, which is faster there (bench/many.py).
STACKED_ON = ("cuda",)
AT_ONCE = 64  # runs in a unit, the largest stack that bench/many.py measures


def units_of(configs: Sequence[RunConfig], device: str) -> list[tuple[RunConfig, ...]]:
    """Cut runs into those that one process trains as one.

    Parameters
    ----------
    configs : sequence of RunConfig
        What is to be trained.
    device : str
        Where to compute, "cpu" or "cuda".

    Returns
    -------
    list of tuple of RunConfig
        Up to `AT_ONCE` in one: on a GPU those of the same `prslib.runs.stacked.shape`, elsewhere
        those of the same `RunConfig.training`, which then is gone through once.

    Examples
    --------
    >>> plain, watched, other = RunConfig(), RunConfig(variance_points=8), RunConfig(seed=1)
    >>> [len(unit) for unit in units_of([plain, other, watched], "cpu")]
    [2, 1]
    """
    groups = {}
    for config in configs:
        key = shape(config) if device.split(":")[0] in STACKED_ON else None
        groups.setdefault(key or config.training, []).append(config)
    return [
        tuple(group[start : start + AT_ONCE])
        for group in groups.values()
        for start in range(0, len(group), AT_ONCE)
    ]


def train(
    unit: Sequence[RunConfig],
    device: str,
    checkpoint: str | PathLike | None = None,
    save_every: float = SAVE_EVERY,
) -> list[Run]:
    """Train runs as one.

    Parameters
    ----------
    unit : sequence of RunConfig
        Of one training or one shape.
    device : str
        Where to compute, "cpu" or "cuda".
    checkpoint, save_every
        As for `prslib.run`; runs of several trainings save no state on the way.

    Returns
    -------
    list of Run
        One for each.

    Raises
    ------
    ValueError
        If a run does not fit its data set, or they cannot be trained as one.
    """
    if len({config.training for config in unit}) == 1:
        return run_at_once(unit, device, checkpoint, save_every)
    return run_stacked(unit, device)
