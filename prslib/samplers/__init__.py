"""Samplers: which samples of the stream the memory keeps, one file a method."""

import inspect
from typing import Any

from prslib.checks import one_of
from prslib.samplers.base import Sampler, Seed
from prslib.samplers.cbrs import CBRS
from prslib.samplers.crs import CRS
from prslib.samplers.exstream import ExStream
from prslib.samplers.gss import GSS
from prslib.samplers.ocdm import OCDM
from prslib.samplers.prs import PRS

SAMPLERS: dict[str, type[Any]] = {
    "cbrs": CBRS,
    "crs": CRS,
    "exstream": ExStream,
    "gss": GSS,
    "ocdm": OCDM,
    "prs": PRS,
}

__all__ = ["SAMPLERS", "Sampler", "make_sampler"]


def make_sampler(name: str, size: int, num_classes: int, seed: Seed, **options: object) -> Sampler:
    """Make an empty sampler by its name in ``SAMPLERS`` (Sec. 3).

    Parameters
    ----------
    name : str
        A key of ``SAMPLERS``.
    size : int
        Capacity of the memory m, in samples.
    num_classes : int
        Number of classes C.
    seed : int, SeedSequence or Generator
        Source of every random decision.
    **options
        What the sampler itself offers beyond that, such as ``rho`` of PRS.

    Returns
    -------
    Sampler
        With an empty memory.

    Raises
    ------
    ValueError
        If the name is unknown or a value is out of range.
    TypeError
        If an option is unknown or a value has the wrong type.

    Examples
    --------
    >>> import numpy as np
    >>> make_sampler("crs", size=2, num_classes=3, seed=0).place(np.eye(3, dtype=bool)[:2])
    array([0, 1])
    """
    one_of("sampler", name, SAMPLERS)
    parameters = inspect.signature(SAMPLERS[name]).parameters.values()
    known = sorted(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    for option in options:
        if option not in known:
            raise TypeError(
                f"unknown option {option!r} of sampler {name!r}; "
                f"known options: {', '.join(known) or 'none'}"
            )
    return SAMPLERS[name](size, num_classes, seed, **options)
