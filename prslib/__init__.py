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
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what editors and type checkers see
    # isort: off
    from prslib.datasets import DATASETS as DATASETS, load_dataset as load_dataset
    from prslib.experiments.store import Store as Store
    from prslib.experiments.sweep import run_all as run_all
    from prslib.memory import Memory as Memory
    from prslib.models import MODELS as MODELS
    from prslib.models.networks import make_model as make_model
    from prslib.report.statistics import compare as compare
    from prslib.samplers import SAMPLERS as SAMPLERS, Sampler as Sampler
    from prslib.samplers import make_sampler as make_sampler
    from prslib.training.config import Run as Run, RunConfig as RunConfig
    from prslib.training.grids import configs as configs, configs_of as configs_of
    from prslib.training.grids import paired as paired
    from prslib.training.methods import METHODS as METHODS, register as register
    from prslib.training.run import run as run

__version__ = "0.1.0"
_NAMES = {
    "prslib.datasets": ("DATASETS", "load_dataset"),
    "prslib.experiments.store": ("Store",),
    "prslib.experiments.sweep": ("run_all",),
    "prslib.memory": ("Memory",),
    "prslib.models": ("MODELS",),
    "prslib.models.networks": ("make_model",),
    "prslib.report.statistics": ("compare",),
    "prslib.samplers": ("SAMPLERS", "Sampler", "make_sampler"),
    "prslib.training.config": ("Run", "RunConfig"),
    "prslib.training.grids": ("configs", "configs_of", "paired"),
    "prslib.training.methods": ("METHODS", "register"),
    "prslib.training.run": ("run",),
}
_HOME = {name: home for home, names in _NAMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'prslib' has no attribute {name!r}")
    from prslib.checks import naming_extra

    with naming_extra("data" if name == "compare" else "training"):
        return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__


# modules that register samplers, data sets, ... in every process that loads this
for _name in os.environ.get("PRSLIB_PLUGINS", "").replace(",", " ").split():
    import_module(_name)
