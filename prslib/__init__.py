"""Imbalanced continual learning with Partitioning Reservoir Sampling (ECCV 2020).

Names load on first use: ``from prslib import make_sampler`` does not wait for torch.

Examples
--------
>>> import numpy as np, prslib
>>> sampler = prslib.make_sampler("prs", size=2, num_classes=3, seed=0, rho=0.0)
>>> sampler.place(np.eye(3, dtype=bool)[:2])
array([0, 1])
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"
# the module of each public name, as the stub also shows it to editors and type checkers
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOME = {
    name: module for module, name in re.findall(r"from \.(\S+) import (\w+)", _STUB)
}
WITHOUT_TORCH = ("compare", "evaluate", "scores")
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'prslib' has no attribute {name!r}")
    from prslib.checks import naming_extra

    with naming_extra("data" if name in WITHOUT_TORCH else "training"):
        return getattr(import_module(f"prslib.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
