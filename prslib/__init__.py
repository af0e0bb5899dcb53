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
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"
# the module of each public name; __init__.pyi shows them to editors and type checkers
_HOME = {
    "DATASETS": "datasets",
    "load_dataset": "datasets",
    "Store": "experiments.store",
    "run_all": "experiments.sweep",
    "LOSSES": "losses",
    "Loss": "losses",
    "check_loss": "losses.checking",
    "Buffer": "buffer",
    "Memory": "memory",
    "MODELS": "models",
    "make_model": "models.networks",
    "compare": "statistics",
    "preview": "previews",
    "SAMPLERS": "samplers",
    "Sampler": "samplers",
    "make_sampler": "samplers",
    "Run": "training.config",
    "RunConfig": "training.config",
    "configs": "training.grids",
    "configs_of": "training.grids",
    "paired": "training.grids",
    "METHODS": "training.methods",
    "register": "training.methods",
    "run": "training.run",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'prslib' has no attribute {name!r}")
    from prslib.checks import naming_extra

    with naming_extra("data" if name == "compare" else "training"):
        return getattr(import_module(f"prslib.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__


def _load_plugins(names: str) -> None:
    """Import modules that register samplers, data sets, ... in every such process."""
    for name in names.replace(",", " ").split():
        try:
            import_module(name)
        except (Exception, SystemExit) as error:
            what = "modules in the environment variable PRSLIB_PLUGINS"
            text = f"expected {what}, got {name!r} ({type(error).__name__}: {error})"
            is_command = sys.orig_argv[1:3] == ["-m", "prslib"]
            if is_command or Path(sys.argv[0]).stem == "prslib":
                sys.exit(text)  # a sentence, where others see where it comes from
            raise ImportError(text) from error


_load_plugins(os.environ.get("PRSLIB_PLUGINS", ""))
