"""The methods of the main table: how each trains, which sampler keeps its memory."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any

from prslib.checks import check_text, expected, one_of
from prslib.datasets import DATASETS, Entry, fingerprint
from prslib.losses import LOSSES, Loss
from prslib.models import MODELS, Architecture
from prslib.samplers import SAMPLERS
from prslib.samplers.exstream import ExStream
from prslib.training.rehearsal import REHEARSALS, Rehearsal

SAMPLER_FIELDS = ("rho", "variant")  # of `RunConfig`, which a sampler may take
FROZEN = ("pretrained_stages", "vector_stages")  # what a method may freeze
NEEDS = frozenset({"features", "gradient_products"})  # what a training run computes


@dataclass(frozen=True, kw_only=True)
class Method:
    """A row of the main table (Table 1)."""

    sampler: str | None = None  # a key of `SAMPLERS`; None without a memory
    offline: bool = False  # all tasks at once, shuffled, for ``epochs`` epochs
    frozen: str | None = None  # the model's "pretrained_stages" or "vector_stages"
    ewc: bool = False  # `prslib.training.ewc.EWC` pulls the weights back
    rehearsal: str | None = None  # a key of `REHEARSALS`; None for the mean loss alone

    def __post_init__(self) -> None:
        """Refuse stages that no model names."""
        if self.frozen is not None:
            one_of("value of frozen", self.frozen, FROZEN)

    @cached_property
    def options(self) -> tuple[str, ...]:
        """Those of `SAMPLER_FIELDS` that the sampler takes."""
        taken = signature(SAMPLERS[self.sampler]).parameters if self.sampler else ()
        return tuple(name for name in SAMPLER_FIELDS if name in taken)

    @property
    def reads(self) -> tuple[str, ...]:
        """Fields of `RunConfig` that change this method's result, not every one's."""
        always = ("memory_size", "replay_batch_size", "variance_points", "draw")
        memory = (*always, *self.options) if self.sampler else ()
        frozen = (self.frozen,) if self.frozen else ()
        ewc = ("ewc_lambda",) if self.ewc else ()
        return (*memory, *frozen, *ewc, "epochs" if self.offline else "schedule")

    @property
    def merges_samples(self) -> bool:
        """Tell if its memory holds vectors of several samples, in place of samples."""
        return self.sampler is not None and issubclass(SAMPLERS[self.sampler], ExStream)

    @property
    def looks_at_gradients(self) -> bool:
        """Tell if it needs the gradient of every single sample."""
        needs = SAMPLERS[self.sampler].needs if self.sampler else ()
        return self.ewc or "gradient_products" in needs

    @property
    def looks_at_model(self) -> bool:
        """Tell if its memory depends on the model, not on labels alone."""
        return self.sampler is not None and bool(SAMPLERS[self.sampler].needs)


# The paper freezes its network for two methods. EWC: up to the penultimate layer,
# "otherwise, it works poorly". There the frozen stages have learned from ImageNet;
# random weights are nothing to keep, so only stages that begin with learned weights are
# frozen. ExStream: through the second residual block, because stored vectors go stale
# when the layers below them learn. That is true of random weights too, so those stages
# are frozen whatever their weights.
METHODS = {
    "Multitask": Method(offline=True),
    "Finetune": Method(),
    "EWC": Method(ewc=True, frozen="pretrained_stages"),
    "CRS": Method(sampler="crs"),
    "GSS": Method(sampler="gss"),
    "ExStream": Method(sampler="exstream", frozen="vector_stages"),
    "PRS": Method(sampler="prs"),
    "CBRS": Method(sampler="cbrs"),
    "OCDM": Method(sampler="ocdm"),
    "DER++": Method(sampler="crs", rehearsal="der++"),
    "ER-ACE": Method(sampler="crs", rehearsal="er-ace"),
}


def unread_fields(method: str) -> set[str]:
    """Return the fields that other methods alone read, such as rho in a run of CRS."""
    read = {name for other in METHODS.values() for name in other.reads}
    return read - set(METHODS[method].reads)


# of what can be registered; a class is a sampler
TABLES: dict = {
    type: SAMPLERS,
    Method: METHODS,
    Entry: DATASETS,
    Architecture: MODELS,
    Loss: LOSSES,
    Rehearsal: REHEARSALS,
}
ADDED: dict[tuple[type, str], object] = {}  # by kind and name


def register(name: str, thing: object) -> None:
    """Add a sampler, loss, method, data set or network beside those of Table 1.

    Parameters
    ----------
    name : str
        What `RunConfig`, `make_sampler`, `load_dataset` and the figures call it.
    thing : class, function, Loss, Method, Entry or Architecture
        A subclass of `prslib.Sampler`, which becomes a method of that name, too; or a
        row of `METHODS`, `DATASETS`, `MODELS` or `LOSSES`; or a loss's function
        (`prslib.losses.Loss`); or a `prslib.training.rehearsal.Rehearsal`. Keyword-only
        parameters of a sampler's ``__init__`` are options: ``rho`` and ``variant``
        are fields of `RunConfig`, others go into its ``options``.

    Raises
    ------
    TypeError
        If it is none of these, or the name is no text.
    ValueError
        If prslib itself has the name.

    Notes
    -----
    Worker processes and the machines of a cluster know what a script or a notebook
    registers. The cells of a notebook may run again. The command line and the notebooks that it
    executes import the modules that the environment variable ``PRSLIB_PLUGINS`` names,
    with commas between. Runs are stored under names: give what you have changed another
    one, or remove its runs.

    Examples
    --------
    >>> register("CRS, frozen", Method(sampler="crs", frozen="vector_stages"))
    >>> METHODS.pop("CRS, frozen").looks_at_model
    False
    """
    check_text("name", name)
    for kind, row in _rows_of(name, thing).items():
        if name in TABLES[kind] and (kind, name) not in ADDED:
            raise ValueError(expected("another name than prslib's own", name))
        TABLES[kind][name] = ADDED[kind, name] = row
    fingerprint.cache_clear()


def _rows_of(name: str, thing: object) -> dict[type, object]:
    """Return the rows of `TABLES` that a registered thing makes."""
    is_class = isinstance(thing, type)
    if is_class and issubclass(thing, Rehearsal):
        return {Rehearsal: thing}
    if is_class and hasattr(thing, "place"):
        return {Method: Method(sampler=name), type: thing}
    if not is_class and type(thing) in TABLES:
        return {type(thing): thing}
    if not is_class and callable(thing):
        return {Loss: Loss(thing)}
    what = f"a sampler's class, a loss, Entry, Architecture or Method as {name}"
    raise TypeError(expected(what, thing))


def registered() -> bytes:
    """Pickle what `register` has added, by value where a script or notebook did."""
    import cloudpickle

    return cloudpickle.dumps(ADDED)


def with_registered(added: bytes, task: Callable, *arguments: Any) -> Any:
    """Call a task in another process, with what was `registered` in this one."""
    for (kind, name), row in pickle.loads(added).items():
        if (kind, name) not in ADDED:  # else this is the process that registered it
            TABLES[kind][name] = row
    return task(*arguments)
