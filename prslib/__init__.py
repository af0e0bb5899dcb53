"""Imbalanced continual learning with Partitioning Reservoir Sampling (ECCV 2020).

Names are loaded on first use: ``from prslib import make_sampler`` does not wait for
torch.

Examples
--------
>>> import numpy as np, prslib
>>> sampler = prslib.make_sampler("prs", size=2, num_classes=3, seed=0, rho=0.0)
>>> sampler.place(np.eye(3, dtype=bool)[:2])
array([0, 1])
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
# the module of each public name; __init__.pyi shows them to editors and type checkers
_HOME = {
    "DATASETS": "datasets",
    "load_dataset": "datasets",
    "LOSSES": "losses",
    "Buffer": "buffer",
    "Memory": "memory",
    "evaluate": "metrics",
    "MODELS": "models",
    "make_model": "models.networks",
    "preview": "previews",
    "configs": "runs",
    "register": "runs",
    "run_all": "runs",
    "SAMPLERS": "samplers",
    "Sampler": "samplers",
    "check_sampler": "samplers",
    "make_sampler": "samplers",
    "compare": "statistics",
    "scores": "statistics",
    "METHODS": "train",
    "Run": "train",
    "RunConfig": "train",
    "run": "train",
    "trial": "trials",
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
