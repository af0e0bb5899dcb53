"""Estimator checks: what every sampler does, one of prslib or of one's own."""

import inspect
from collections.abc import Callable, Set
from typing import Any, NoReturn

import numpy as np

from prslib.checks import expected
from prslib.samplers import states
from prslib.samplers.base import Sampler


def check_sampler(make: Callable, context: Callable | None = None) -> None:
    """Check what every sampler does, as scikit-learn's `check_estimator` does.

    Parameters
    ----------
    make : callable
        ``make(size, num_classes, seed)`` returns an empty sampler, as its class does.
    context : callable, optional
        ``context(sampler, labels, start)`` returns the keyword arguments that ``place``
        needs for the labels, which are the stream's from row ``start`` on. By default a
        sampler that needs ``features`` gets random ones.

    Raises
    ------
    AssertionError
        With what was expected, what came and what to do.
    AttributeError
        If the sampler lacks an attribute that all have: place, needs, class_freq,
        class_counts or labels.

    Examples
    --------
    >>> from prslib.samplers import SAMPLERS
    >>> check_sampler(SAMPLERS["cbrs"])
    """
    context = context or _features
    rng = np.random.default_rng(0)
    stream = rng.random((400, 8)) < [0.5, 0.4, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1]
    stream[:200, 7] = False
    stream[5] = False
    stream.flags.writeable = False
    before = str(np.random.get_state())
    for batch in (1, 1000):
        _run(make, context, stream, batch)
    first, second = (_run(make, context, stream, batch=7) for _ in range(2))
    _run(make, context, np.ones((50, 1), bool), 10, size=1)
    advice = "draw all numbers from self.rng or take them from u"
    same = np.array_equal(first, second)
    _expect(same, "equal slots from equal seeds", f"others; {advice}")
    same = str(np.random.get_state()) == before
    _expect(same, "numpy's global generator not to be used", f"its use; {advice}")
    sampler = make(25, 8, 7)
    if hasattr(sampler, "add_classes"):
        _check_growth(make, context, stream)
    if hasattr(sampler, "load_state_dict"):
        restored = _run(make, context, stream, 7, restored_at=196)
        advice = _to_save(sampler)
        same = np.array_equal(first, restored)
        _expect(same, "equal slots after restoring", f"others; {advice}")


def _check_growth(make: Callable, context: Callable, stream: np.ndarray) -> None:
    """Check that a sampler decides alike when it learns of its last class late."""
    advice = "name its arrays with an entry a class in by_class"
    answers = []
    for late in (0, 1):
        sampler = _made(make, 25, 8 - late, 7)
        slots = []
        for start in range(0, len(stream), 7):
            if start == 196 and late:
                try:
                    sampler.add_classes(1)
                except Exception as error:
                    if type(sampler).add_classes is not Sampler.add_classes:
                        return  # it refuses, as ExStream does
                    _fail("add_classes to add a class", error, advice)
            rows = stream[start : start + 7, : sampler.num_classes]
            try:
                slots.extend(sampler.place(rows, **context(sampler, rows, start)))
            except Exception as error:
                _fail("place to return slots after add_classes", error, advice)
        answers.append(slots)
    same = answers[0] == answers[1]
    _expect(same, "equal slots where a class is added late", f"others; {advice}")


def _features(sampler: Any, labels: np.ndarray, start: int) -> dict:
    if "features" not in sampler.needs:
        return {}
    features = np.random.default_rng(1).normal(size=(start + len(labels), 4))
    return {"features": features[start:].astype(np.float32)}


def _to_save(sampler: Any) -> str:
    """Return what to do where a state lacks something, and what it lacks."""
    advice = "keep all of the state in arrays and numbers without a leading _"
    if not isinstance(sampler, Sampler):
        return advice
    usual = vars(Sampler(1, 1, 0)).keys() | states.extras(sampler).keys()
    unsaved = sorted(vars(sampler).keys() - usual)
    return f"{advice}; not saved: {', '.join(unsaved)}" if unsaved else advice


def _made(make: Callable, size: int, num_classes: int, seed: int) -> Any:
    """Make a sampler; say what is wrong with its class or its ``__init__``."""
    if not callable(make):
        what = "the class of a sampler, or a function that makes one"
        _fail(what, repr(make), "write check_sampler(MySampler)")
    try:
        sampler = make(size, num_classes, seed)
    except TypeError as error:
        advice = "options are keyword-only and have a default: *, chance=0.5"
        _fail("make(size, num_classes, seed) to return a sampler", error, advice)
    except AttributeError as error:
        advice = "call super().__init__(size, num_classes, seed) first, and leave the "
        advice += "base's own attributes, such as seen and labels, to it"
        _fail("make(size, num_classes, seed) to return a sampler", error, advice)
    if not isinstance(sampler, Sampler):
        if not hasattr(sampler, "place"):
            what = "make(size, num_classes, seed) to return a sampler"
            _fail(what, repr(sampler), "it needs a method place(labels)")
        return sampler
    if not hasattr(sampler, "_arrays"):
        what = "__init__ to call super().__init__(size, num_classes, seed)"
        _fail(what, "none of the base's attributes")
    if not isinstance(sampler.needs, Set):
        is_list = isinstance(sampler.needs, list | tuple)
        names = sampler.needs if is_list else filter(None, [sampler.needs])
        advice = f"write frozenset({{{', '.join(map(repr, names))}}})"
        _fail("needs as a set of names", repr(sampler.needs), advice)
    if not isinstance(sampler.draws, int) or sampler.draws < 0:
        _fail("draws as a whole number", repr(sampler.draws), "write draws = 1")
    for name, parameter in inspect.signature(type(sampler)).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            advice = "write def __init__(self, size, num_classes, seed, *, chance=0.5)"
            _fail("__init__ to name its parameters", str(parameter), advice)
        if name != "seed" and not hasattr(sampler, name):
            what = f"the option {name} as an attribute"
            _fail(what, "none", f"write self.{name} = {name} in __init__")
    return sampler


def _placed(
    place: Callable, sampler: Any, rows: np.ndarray, more: dict, restored: bool
) -> np.ndarray:
    """Place a batch; say what is wrong with ``choose`` where it raises."""
    try:
        return np.asarray(place(rows, **more))
    except Exception as error:
        if not restored:
            _fail_to_place(sampler, more, error)
        _fail("place to return slots after restoring", error, _to_save(sampler))


def _fail_to_place(sampler: Any, more: dict, error: Exception) -> NoReturn:
    """Say what is wrong with ``choose``."""
    needs = getattr(sampler, "needs", frozenset())
    advice = ""
    if needs - more.keys():
        advice = "pass check_sampler(make, context) a function that returns "
        advice += ", ".join(sorted(needs))
    elif isinstance(error, AttributeError):
        if not isinstance(sampler, Sampler):
            raise error
        advice = "make every attribute in __init__"
    elif isinstance(error, TypeError):
        advice = "it is called as choose(y, u), or choose_batch(labels, uniforms)"
    elif isinstance(error, IndexError):
        draws = getattr(sampler, "draws", 1)
        advice = f"u has {draws} numbers: write draws = 2 in the class for two"
    _fail("place to return slots", error, advice)


def _run(
    make: Callable,
    context: Callable,
    stream: np.ndarray,
    batch: int,
    size: int = 25,
    restored_at: int | None = None,
) -> np.ndarray:
    """Let a new sampler decide a stream, check every batch, and return all slots."""
    sampler = _made(make, size, stream.shape[1], 7)
    memory = np.zeros((size, stream.shape[1]), bool)
    answers = []
    for start in (0, *range(0, len(stream), batch)):  # an empty batch comes first
        if start == restored_at:
            state = sampler.state_dict()  # a run goes on from it after a kill
            sampler = _made(make, size, stream.shape[1], 8)
            try:
                sampler.load_state_dict(state)
            except Exception as error:
                advice = "make every array and number in __init__"
                _fail("a sampler to take its own state", error, advice)
        rows = stream[start : start + batch] if answers else stream[:0]
        place = sampler.place
        restored = restored_at is not None and start >= restored_at
        more = context(sampler, rows, start)
        slots = _placed(place, sampler, rows, more, restored)
        fit = slots.shape == (len(rows),) and slots.dtype.kind == "i"
        _expect(fit, f"{len(rows)} whole numbers as slots", repr(slots))
        inside = ((slots >= -1) & (slots < size)).all()
        _expect(inside, f"slots from -1 to {size - 1}", str(slots))
        unlabelled = slots[~rows.any(axis=1)]
        _expect((unlabelled == -1).all(), "-1 for a sample without label", "a slot")
        answers.append(slots)
        for row, slot in zip(rows, slots, strict=True):
            if slot >= 0:
                memory[slot] = row
        if hasattr(sampler, "vectors"):  # it merges samples
            memory = sampler.labels
        freq = stream[: start + len(rows)].sum(axis=0)
        counts = {"class_freq": freq, "class_counts": memory.sum(axis=0)}
        for name, value in (counts | {"labels": memory}).items():
            came = getattr(sampler, name)
            _expect(np.array_equal(came, value), f"{value} as {name}", str(came))
        filled = np.count_nonzero(memory.any(axis=1))
        _expect(len(sampler) == filled, f"a length of {filled}", str(len(sampler)))
    _expect(filled == size, f"all {size} slots to be filled at the end", str(filled))
    return np.concatenate(answers)


def _expect(right: bool | np.bool_, what: str, came: str) -> None:
    if not right:
        _fail(what, came)


def _fail(what: str, came: str | Exception, advice: str = "") -> NoReturn:
    """Raise AssertionError with what was expected, what came and what to do."""
    cause = came if isinstance(came, Exception) else None
    if cause is not None:
        came = f"{type(cause).__name__}: {cause}"
    text = expected(what, came, advice or "see prslib.Sampler")
    raise AssertionError(f"check_sampler: {text}") from cause
