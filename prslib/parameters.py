"""The parameters that notebooks may have, each with the check that its value must pass."""

from collections.abc import Callable, Iterable
from functools import partial

import yaml

from prslib.checks import finite, one_of, power, whole
from prslib.datasets import DATASETS
from prslib.methods import METHODS
from prslib.models import MODELS
from prslib.report.class_orders import schedule_of

PROFILES = ("smoke", "quick", "seeds", "paper")


def _name(known: Iterable[str]) -> Callable:
    def check(name, value):
        one_of(name, value, known)
        return value

    return check


def _integer(least: int) -> Callable:
    return partial(whole, least=least)


def _fraction(name, value):
    value = finite(name, value)
    if not 0 < value < 1:
        raise ValueError(f"{name} must be above 0 and below 1, got {value}")
    return value


def _text(name, value):
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, got {value!r}")
    return value


def _share(name, value):
    if finite(name, value) <= 0:
        raise ValueError(f"{name} must be above 0, got {value}")
    return float(value)


def _order(name, value):
    """Read "drawn" as None and "1+2,0+3" as the schedule it names."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text such as '1+2,0+3' or 'drawn', got {value!r}")
    return None if value == "drawn" else schedule_of(value)


def _optional(check: Callable) -> Callable:
    return lambda name, value: None if value is None else check(name, value)


def _read(text: str) -> str | float | None:
    """Read "None" and numbers such as "1e-3", which YAML takes for text."""
    if text.strip() == "None":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _several(check: Callable, least: int = 1) -> Callable:
    """Accept a list, one value, or (from a command line) text with commas: "0,1,2"."""

    def check_all(name, value):
        if isinstance(value, str):
            value = [yaml.safe_load(part) for part in value.strip("[]").split(",") if part]
        values = list(value) if isinstance(value, list | tuple) else [value]
        values = [_read(item) if isinstance(item, str) else item for item in values]
        if len(values) < least:
            raise ValueError(f"{name} must hold at least one value, got none")
        return [check(name, item) for item in values]

    return check_all


def _one_or_several(check: Callable) -> Callable:
    """Accept one value as it is, or a list of them."""
    several = _several(check)

    def check_either(name, value):
        listed = isinstance(value, list) or (isinstance(value, str) and "," in value)
        return several(name, value) if listed else check(name, value)

    return check_either


# every parameter that a notebook may have, with the check that its value must pass
PARAMETERS: dict[str, Callable] = {
    "profile": _name(PROFILES),
    "dataset": _several(_name(DATASETS)),
    "method": _several(_name(METHODS)),
    "costly": _several(_name(METHODS), least=0),
    "costly_seeds": _several(_integer(least=0), least=0),
    "model": _several(_name(MODELS)),
    "costly_models": _several(_name(MODELS), least=0),
    "frozen_stages": _several(_integer(least=0)),
    "learning_rates": _several(_optional(_share)),
    "weights": _optional(_text),
    "begun_with": _several(_text),
    "epochs": _several(_integer(least=1)),
    "rho": _one_or_several(power),
    "balanced_rho": power,
    "unbalanced_rho": _optional(power),
    "rhos": _several(power),
    "memory_size": _optional(_integer(least=1)),
    "ewc_lambdas": _several(finite),
    "samples": _integer(least=0),
    "per_class": _integer(least=1),
    "neighbours": _integer(least=1),
    "shown": _integer(least=1),
    "others": _integer(least=0),
    "points": _several(_integer(least=1)),
    "single_label_only": _several(_name(METHODS), least=0),
    "seed": _integer(least=0),
    "seeds": _several(_integer(least=0)),
    "varied_seeds": _several(_integer(least=0)),
    "schedules": _integer(least=1),
    "permuted": _integer(least=0),
    "sized": _several(_name(METHODS)),
    "shares": _several(_share),
    "orders": _several(_order),
    "spread": _integer(least=2),
    "search": _optional(_several(_integer(least=1))),
    "level": _fraction,
    "missing": _name(("train", "leave")),
    "device": _name(("cpu", "cuda")),
}
