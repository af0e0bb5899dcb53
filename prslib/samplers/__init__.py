"""Samplers, which select the samples of a stream to keep; one file per method."""

from typing import Any

from prslib.checks import Seed, one_of
from prslib.samplers.base import Sampler
from prslib.samplers.cbrs import CBRS
from prslib.samplers.checking import check_sampler
from prslib.samplers.crs import CRS
from prslib.samplers.exstream import ExStream
from prslib.samplers.gss import GSS
from prslib.samplers.ocdm import OCDM
from prslib.samplers.prs import PRS

SAMPLERS: dict[str, type[Sampler]] = {
    "cbrs": CBRS,
    "crs": CRS,
    "exstream": ExStream,
    "gss": GSS,
    "ocdm": OCDM,
    "prs": PRS,
}
__all__ = ["SAMPLERS", "Sampler", "check_sampler", "make_sampler"]


def make_sampler(
    name: str, size: int, num_classes: int | None, seed: Seed, **options: Any
) -> Sampler:
    """Make an empty sampler by its name in ``SAMPLERS`` (Sec. 3).

    Parameters
    ----------
    name : str
        A key of ``SAMPLERS``, in upper or lower case.
    size : int
        Capacity of the memory m, in samples.
    num_classes : int or None
        Number of classes C. If it is None, classes are added when they first occur.
    seed : int, SeedSequence or Generator
        Source of every random decision.
    **options
        Options of the sampler, such as ``rho`` of PRS. All samplers of prslib have the
        option ``unlabelled``, which determines whether samples without a label are dropped
        ("drop") or form an additional class ("class").

    Returns
    -------
    Sampler
        A sampler with an empty memory.

    Raises
    ------
    ValueError
        If the name is unknown or a value is out of range.
    TypeError
        If an option is unknown or a value has the wrong type.

    Examples
    --------
    >>> make_sampler("PRS", size=2000, num_classes=70, seed=0, rho=-0.03)
    <PRS(size=2000, num_classes=70, rho=-0.03, unlabelled='drop'), 0 slots filled>
    """
    if isinstance(name, str) and name not in SAMPLERS:
        name = name.lower()
    one_of("sampler", name, SAMPLERS)
    return SAMPLERS[name](size, num_classes, seed, **options)
