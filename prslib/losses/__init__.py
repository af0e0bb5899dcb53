"""Losses by name; torch and a loss's own module load when it is first used."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

from prslib.checks import expected, one_of, plain_options

# What a loss may ask for, by a keyword-only parameter of that name.
CONTEXT = {
    "class_freq": "samples of each class in the stream so far, n_i; float (C,)",
    "class_counts": "samples of each class in the memory, l_i; float (C,)",
    "seen": "samples in the stream so far; int",
    "replayed": "which rows are replayed; bool (B,)",
}


@dataclass(frozen=True)
class Loss:
    """A row of `LOSSES`.

    Parameters
    ----------
    made_by : callable or str
        A function of logits (B, C) and targets (B, C), which returns a tensor of one
        number; or "module:name" of one. Its keyword-only parameters are what it asks
        for, by the names in `CONTEXT`, and its options, each with a default. With a
        third parameter, ``weights=None``, it returns the sum of labels by weights
        (B, C) where they are given, for methods that train several batches at once.
    one_label : bool
        Whether every image has exactly one label. Softmax then turns logits into
        probabilities, else the logistic function does.

    Raises
    ------
    TypeError
        If a function takes other parameters.

    Examples
    --------
    >>> LOSSES["focal"].options
    {'alpha': 0.25, 'gamma': 2.0}
    """

    made_by: Callable | str
    one_label: bool = False

    def __post_init__(self) -> None:
        """Check what a function takes; one of prslib's own is not loaded for that."""
        if not isinstance(self.made_by, str):
            self._check_parameters()

    @cached_property
    def function(self) -> Callable:
        """The function itself."""
        if not isinstance(self.made_by, str):
            return self.made_by
        module, name = self.made_by.split(":")
        return getattr(import_module(module), name)

    @property
    def asks(self) -> tuple[str, ...]:
        """The names in `CONTEXT` that it takes; logits and targets it always takes."""
        return tuple(name for name in self._keywords if name in CONTEXT)

    @property
    def options(self) -> dict[str, object]:
        """Its options and their defaults."""
        rows = self._keywords.items()
        return {name: row.default for name, row in rows if name not in CONTEXT}

    @property
    def takes_weights(self) -> bool:
        """Whether it has a third parameter, ``weights``, for a sum over labels."""
        return "weights" in signature(self.function).parameters.keys() - self._keywords

    def with_options(self, options: dict[str, object]) -> Callable:
        """Return the function with its options set, and the shapes checked."""
        return partial(_call, partial(self.function, **options))

    @cached_property
    def _keywords(self) -> dict[str, Parameter]:
        parameters = signature(self.function).parameters
        return {
            name: parameter
            for name, parameter in parameters.items()
            if parameter.kind is Parameter.KEYWORD_ONLY
        }

    def _check_parameters(self) -> None:
        if not callable(self.made_by):
            raise TypeError(expected("a function of logits and targets", self.made_by))
        advice = "write def loss(logits, targets, *, gamma=2.0)"
        asked = dict.fromkeys(self.asks)
        try:
            signature(self.made_by).bind(None, None, **asked)
        except TypeError as error:
            what = "logits, targets and, after *, options with defaults"
            raise TypeError(
                expected(what, f"a function with {error}", advice)
            ) from None


def _call(function: Callable, logits: Any, targets: Any, **context: Any) -> Any:
    """Call a loss; tables that broadcast would give a number, too."""
    if logits.shape != targets.shape or logits.ndim != 2:
        what = "logits and targets of one shape (B, C)"
        got = f"{tuple(logits.shape)} and {tuple(targets.shape)}"
        raise ValueError(expected(what, got))
    return function(logits, targets, **context)


_TORCH = "torch.nn.functional"
_MULTI_LABEL = "prslib.losses.multi_label"
_ONE_LABEL = "prslib.losses.one_label"
LOSSES: dict[str, Loss] = {
    "multilabel_soft_margin": Loss(f"{_MULTI_LABEL}:multilabel_soft_margin"),
    "inverse_frequency": Loss(f"{_MULTI_LABEL}:inverse_frequency"),
    "focal": Loss(f"{_MULTI_LABEL}:focal"),
    "asymmetric": Loss(f"{_MULTI_LABEL}:asymmetric"),
    "distribution_balanced": Loss(f"{_MULTI_LABEL}:distribution_balanced"),
    "weighted_replay": Loss(f"{_MULTI_LABEL}:weighted_replay"),
    "cross_entropy": Loss(f"{_TORCH}:cross_entropy", one_label=True),
    "logit_adjustment": Loss(f"{_ONE_LABEL}:logit_adjustment", one_label=True),
    "weighted_replay_one_label": Loss(f"{_ONE_LABEL}:weighted_replay", one_label=True),
}


def check_loss_options(name: str, options: dict[str, object]) -> dict[str, object]:
    """Return a loss's options in Python's types; refuse those that it does not take."""
    if not options:
        return {}  # without a look at the function, which loads torch
    one_of("loss", name, LOSSES)
    return plain_options(name, LOSSES[name].options, options)
