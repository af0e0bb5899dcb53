"""Imbalanced continual learning with Partitioning Reservoir Sampling (ECCV 2020).

Names load on first use: ``from prslib import make_sampler`` does not wait for torch.

Examples
--------
>>> import numpy as np, prslib
>>> sampler = prslib.make_sampler("prs", size=2, num_classes=3, seed=0, rho=0.0)
>>> sampler.place(np.eye(3, dtype=bool)[:2])
array([0, 1])
"""

import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"
# the module of each public name, as editors see it
_STUB = Path(__file__).with_suffix(".pyi").read_text("utf-8")
_HOME = {name: module for module, name in re.findall(r"from (\S+) import (\w+)", _STUB)}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'prslib' has no attribute {name!r}")
    from prslib.checks import naming_extra

    with naming_extra("data" if name == "compare" else "training"):
        return getattr(import_module(_HOME[name], "prslib"), name)


def __dir__() -> list[str]:
    return __all__


# modules that register samplers, data sets, ... in every process that loads this
for _name in os.environ.get("PRSLIB_PLUGINS", "").replace(",", " ").split():
    import_module(_name)
