"""List the methods of the main table: how each trains and which sampler keeps its memory."""

import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

from prslib.datasets import DATASETS, Entry, fingerprint
from prslib.models import MODELS, Architecture
from prslib.samplers import SAMPLERS


@dataclass(frozen=True)
class Method:
    """A row of the main table (Table 1)."""

    sampler: str | None = None  # a key of `SAMPLERS`; None for a method without a memory
    options: tuple[str, ...] = ()  # fields of `RunConfig` that the sampler takes
    offline: bool = False  # all tasks at once, shuffled, for ``epochs`` epochs
    frozen: str | None = None  # "pretrained_stages" or "vector_stages": those of the model
    ewc: bool = False  # `prslib.training.learner.EWC` holds the weights

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields of `RunConfig` that change this method's result and not every method's."""
        always = ("memory_size", "replay_batch_size", "variance_points")
        memory = (*always, *self.options) if self.sampler else ()
        frozen = (self.frozen,) if self.frozen else ()
        ewc = ("ewc_lambda",) if self.ewc else ()
        return (*memory, *frozen, *ewc, "epochs" if self.offline else "schedule")

    @property
    def looks_at_gradients(self) -> bool:
        """Tell whether it needs the gradient of every single sample."""
        needs = SAMPLERS[self.sampler].needs if self.sampler else ()
        return self.ewc or "gradient_products" in needs

    @property
    def looks_at_model(self) -> bool:
        """Tell whether its memory depends on the model, so that it is known only after training."""
        return self.sampler is not None and bool(SAMPLERS[self.sampler].needs)


# The paper freezes its network for two methods. EWC: up to the penultimate layer, "otherwise, it
# works poorly". There the frozen part has learned from ImageNet; random weights hold nothing to
# keep, so only stages that begin with learned weights are frozen. ExStream: through the second
# residual block, because stored vectors go stale when the layers below them learn. That holds for
# random weights too, so those stages are frozen whatever their weights.
METHODS = {
    "Multitask": Method(offline=True),
    "Finetune": Method(),
    "EWC": Method(ewc=True, frozen="pretrained_stages"),
    "CRS": Method(sampler="crs"),
    "GSS": Method(sampler="gss"),
    "ExStream": Method(sampler="exstream", frozen="vector_stages"),
    "PRS": Method(sampler="prs", options=("rho", "variant")),
    "CBRS": Method(sampler="cbrs"),
    "OCDM": Method(sampler="ocdm", options=("rho",)),
}
OPTIONS = {"rho", "variant"}  # fields of `RunConfig` that a sampler can take
TABLES: Any = {"sampler": SAMPLERS, "method": METHODS, "dataset": DATASETS, "model": MODELS}
KINDS: dict[type, str] = {Method: "method", Entry: "dataset", Architecture: "model"}
_added: dict[tuple[str, str], tuple[object, str]] = {}  # by table and name: what, and from where


def register(name: str, thing: object) -> None:
    """Add a sampler, method, data set or network of one's own (a row beside those of Table 1).

    Parameters
    ----------
    name : str
        What `RunConfig`, `make_sampler`, `load_dataset` and the figures call it.
    thing : class, Method, Entry or Architecture
        A sampler's class (`prslib.samplers.Sampler`), which becomes a method of that name, too; or
        a row of `METHODS`, `DATASETS` or `MODELS`.

    Raises
    ------
    TypeError
        If it is none of these, or a method's options are not fields of `RunConfig` for samplers.
    ValueError
        If the name is taken.

    Notes
    -----
    Worker processes and the machines of a cluster are told what a script or a notebook registers;
    its cells may run again. The command line and the notebooks that it executes import the modules
    that the environment variable ``PRSLIB_PLUGINS`` names, with commas between. Runs are stored
    under names: give what you have changed another one, or remove its runs.

    Examples
    --------
    >>> register("CRS, frozen", Method(sampler="crs", frozen="vector_stages"))
    >>> METHODS.pop("CRS, frozen").looks_at_model
    False
    """
    module, rows = sys._getframe(1).f_globals["__name__"], {KINDS.get(type(thing), ""): thing}
    if isinstance(thing, type) and callable(getattr(thing, "place", None)):
        options = tuple(sorted(OPTIONS & set(signature(thing).parameters)))
        rows = {"method": Method(name, options), "sampler": thing}
    for kind, row in rows.items():
        if kind not in TABLES or not OPTIONS.issuperset(getattr(row, "options", ())):
            raise TypeError(
                f"{name}: expected a sampler's class with `place`, an Entry, an Architecture or a "
                f"Method with options among {', '.join(sorted(OPTIONS))}, got {thing!r}"
            )
        owner = _added.get((kind, name), (None, "prslib"))[1]
        if name in TABLES[kind] and owner != module:
            raise ValueError(f"{kind} {name!r} is taken, by {owner}; choose another name")
        TABLES[kind][name], _added[kind, name] = row, (row, module)
    fingerprint.cache_clear()


def registered() -> bytes:
    """Pickle what `register` has added, by value where a script or notebook defines it."""
    import cloudpickle

    return cloudpickle.dumps(_added)


def with_registered(added: bytes, task: Callable, *arguments):
    """Call a task in another process, where what was `registered` is known then, too."""
    for (kind, name), (row, _) in pickle.loads(added).items():
        if (kind, name) not in _added:  # else this is the process that registered it
            TABLES[kind][name] = row
    return task(*arguments)
