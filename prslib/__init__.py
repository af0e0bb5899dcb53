"""Imbalanced continual learning with Partitioning Reservoir Sampling (Kim et al., ECCV 2020).

Names load on first use, so that ``from prslib import make_sampler`` does not wait for torch.

Examples
--------
>>> import numpy as np, prslib
>>> sampler = prslib.make_sampler("prs", size=2, num_classes=3, seed=0, rho=0.0)
>>> sampler.place(np.eye(3, dtype=bool)[:2])
array([0, 1])
"""

from importlib import import_module

_HOME = {
    "DATASETS": "prslib.datasets",
    "METHODS": "prslib.training.methods",
    "MODELS": "prslib.models",
    "Memory": "prslib.memory",
    "Run": "prslib.training.config",
    "RunConfig": "prslib.training.config",
    "SAMPLERS": "prslib.samplers",
    "Store": "prslib.experiments.store",
    "configs": "prslib.training.config",
    "configs_of": "prslib.training.config",
    "load_dataset": "prslib.datasets",
    "make_model": "prslib.models.networks",
    "make_sampler": "prslib.samplers",
    "paired": "prslib.training.config",
    "run": "prslib.training.run",
    "run_all": "prslib.experiments.sweep",
}

__all__ = sorted(_HOME)


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'prslib' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
