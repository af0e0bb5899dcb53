"""Imbalanced continual learning with Partitioning Reservoir Sampling (Kim et al., ECCV 2020).

Names load on first use, so that ``from prslib import make_sampler`` does not wait for torch.

Examples
--------
>>> import numpy as np, prslib
>>> sampler = prslib.make_sampler("prs", size=2, num_classes=3, seed=0, rho=0.0)
>>> sampler.place(np.eye(3, dtype=bool)[:2])
array([0, 1])
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what editors and type checkers see
    from prslib.datasets import DATASETS as DATASETS
    from prslib.datasets import load_dataset as load_dataset
    from prslib.experiments.store import Store as Store
    from prslib.experiments.sweep import run_all as run_all
    from prslib.memory import Memory as Memory
    from prslib.models import MODELS as MODELS
    from prslib.models.networks import make_model as make_model
    from prslib.samplers import SAMPLERS as SAMPLERS
    from prslib.samplers import make_sampler as make_sampler
    from prslib.training.config import Run as Run
    from prslib.training.config import RunConfig as RunConfig
    from prslib.training.config import configs as configs
    from prslib.training.config import configs_of as configs_of
    from prslib.training.config import paired as paired
    from prslib.training.methods import METHODS as METHODS
    from prslib.training.methods import register as register
    from prslib.training.run import run as run

__version__ = "0.1.0"
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
    "register": "prslib.training.methods",
    "run": "prslib.training.run",
    "run_all": "prslib.experiments.sweep",
}

__all__ = sorted(_HOME)


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'prslib' has no attribute {name!r}")
    from prslib.checks import naming_extra

    with naming_extra("training"):
        return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__


# modules that register samplers, methods, data sets or networks: in every process that loads this
for _module in filter(None, os.environ.get("PRSLIB_PLUGINS", "").split(",")):
    import_module(_module.strip())
