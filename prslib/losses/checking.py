"""Check that a loss is what the training needs, one of prslib or of one's own."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from prslib.checks import expected, one_of
from prslib.losses import LOSSES, Loss

SAMPLES, CLASSES = 12, 5
LARGE = 80.0  # a logit whose exponential still fits float32
HALF = 0.05  # relative difference that bfloat16 may make
SAME = 1e-3  # relative difference of what is the same but for rounding


def check_loss(loss: Callable | Loss | str, **options: object) -> None:
    """Check that a loss is what the training needs, as `check_sampler` does for a sampler.

    Parameters
    ----------
    loss : callable, Loss or str
        A function of logits and targets, a row of `LOSSES` or the name of one. A
        function is checked on samples with several labels, `Loss(function,
        one_label=True)` on samples with one.
    **options
        Options of the loss.

    Raises
    ------
    AssertionError
        With what was expected and what came.
    TypeError
        If it takes other parameters than a loss does.

    Examples
    --------
    >>> check_loss("asymmetric", gamma_neg=2.0)
    >>> check_loss(lambda logits, targets: (logits - targets).square())
    Traceback (most recent call last):
    AssertionError: check_loss: expected one number, a tensor of shape (), got \
shape (12, 5); end with .mean()
    """
    if isinstance(loss, str):
        loss = LOSSES[one_of("loss", loss, LOSSES)]
    if not isinstance(loss, Loss):
        loss = Loss(loss)
    _check(loss, options, CLASSES)


def check_fits(loss: Loss, options: dict[str, object], num_classes: int) -> None:
    """Raise ValueError for a loss that breaks a promise with so many classes."""
    try:
        _check(loss, options, num_classes)
    except AssertionError as error:
        raise ValueError(str(error)) from None


class Call(NamedTuple):
    """A loss, and what it is called with."""

    function: Callable
    logits: Tensor  # (B, C)
    targets: Tensor  # (B, C)
    context: dict[str, Tensor]  # what the loss asks for

    def loss(self, **weights: Tensor) -> Any:
        """Return what the function gives."""
        return self.function(self.logits, self.targets, **weights, **self.context)

    def of_rows(self, rows: Tensor) -> Self:
        """Return the call on some samples."""
        context = dict(self.context)
        if "replayed" in context:
            context["replayed"] = context["replayed"][rows]
        logits = self.logits[rows]
        return self._replace(logits=logits, targets=self.targets[rows], context=context)


def _check(loss: Loss, options: dict[str, object], num_classes: int) -> None:
    logits, targets = _tables(loss.one_label, num_classes)
    function = loss.with_options(options)
    call = Call(function, logits, targets, _context(loss, targets))
    _check_value(call, "usual logits")
    _check_copies(call)
    _check_mean(call)
    if loss.takes_weights:
        _check_weights(call)
    _check_gradient(call)
    sure = LARGE * (2 * targets - 1)
    for name, extreme in {"right": sure, "wrong": -sure}.items():
        case = f"logits of ±{LARGE:g}, all {name}"
        large = call._replace(logits=extreme)
        _check_value(large, case, "use logsigmoid or log_softmax in place of log")
        advice = "clamp what is raised to a power between 0 and 1"
        _slope(large, case, advice)
    for rows in (1, SAMPLES):
        empty = _context(loss, targets[:rows], class_freq=0, seen=rows)
        first = Call(function, logits[:rows], targets[:rows], empty)
        case = f"{rows} samples, classes without any so far"
        _check_value(first, case, "clamp counts to at least 1")
    _check_half(call)


def _tables(one_label: bool, num_classes: int) -> tuple[Tensor, Tensor]:
    """Return logits and targets (B, C); the last class has no positive."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(SAMPLES, num_classes, generator=generator)
    label = torch.arange(SAMPLES) % max(num_classes - 1, 1)
    targets = torch.eye(num_classes)[label]
    if not one_label:
        targets[::2, 0] = 1
    return logits, targets


def _context(loss: Loss, targets: Tensor, **values: int) -> dict:
    """Return what a loss asks for, as it is after some samples."""
    class_freq = targets.sum(0) * values.get("class_freq", 3)
    context = {
        "class_freq": class_freq,
        "class_counts": class_freq / 2,
        "seen": values.get("seen", 3 * len(targets)),
        "replayed": torch.arange(len(targets)) >= len(targets) / 2,
    }
    return {name: context[name] for name in loss.asks}


def _check_value(call: Call, case: str, advice: str = "") -> float:
    """Return the loss as a number; refuse what is none, or not finite."""
    value = call.loss()
    if not isinstance(value, Tensor):
        in_torch = "compute in torch, without item(), float() or numpy"
        _expect(False, "a tensor", type(value).__name__, in_torch)
    what = "one number, a tensor of shape ()"
    _expect(value.ndim == 0, what, f"shape {tuple(value.shape)}", "end with .mean()")
    number = value.item()
    _expect(math.isfinite(number), f"a finite loss for {case}", f"{number}", advice)
    return number


def _check_copies(call: Call) -> None:
    before = call.logits.clone(), call.targets.clone()
    call.loss()
    same = torch.equal(before[0], call.logits) and torch.equal(before[1], call.targets)
    what = "logits and targets to stay as they are"
    _expect(same, what, "others", "leave out methods that end with _")


def _check_mean(call: Call) -> None:
    """Compare with the loss of every row twice; GSS and EWC take it as a mean."""
    value = call.loss().item()
    twice = call.of_rows(torch.arange(SAMPLES).repeat(2)).loss().item()
    what = "a mean over samples, the same for every sample twice"
    got = f"{value:.4g} and {twice:.4g}"
    _expect(_near(twice, value), what, got, "divide by the samples")


def _check_weights(call: Call) -> None:
    """Compare the sum of some rows, weighted to be their mean, with that mean."""
    some = torch.arange(SAMPLES) % 3 > 0  # (B,)
    weights = some[:, None] / (some.sum() * call.logits.shape[1])
    value = call.loss(weights=weights).item()
    mean = call.of_rows(some).loss().item()
    what = f"{mean:.4g} for weights that make a mean of some samples"
    advice = "multiply each label's loss, then sum"
    _expect(_near(value, mean), what, f"{value:.4g}", advice)


def _check_gradient(call: Call) -> None:
    value = call._replace(logits=call.logits.clone().requires_grad_()).loss()
    what = "a loss that depends on the logits"
    advice = "leave out detach(), argmax and thresholds"
    _expect(value.requires_grad, what, "one without gradient", advice)
    slope = _slope(call, "usual logits")
    falls = bool(slope[call.targets > 0].sum() < 0)
    what = "a loss that falls where the logits of positives rise"
    _expect(falls, what, "one that does not", "a minus may be missing")
    falls = bool(slope[call.targets == 0].sum() < 0)
    what = "a loss that does not fall where the logits of negatives rise"
    _expect(not falls, what, "one that does", "a minus may be missing")


def _slope(call: Call, case: str, advice: str = "") -> Tensor:
    """Return the gradient by logits (B, C); refuse one that is not finite."""
    logits = call.logits.clone().requires_grad_()
    (slope,) = torch.autograd.grad(call._replace(logits=logits).loss(), logits)
    finite = bool(torch.isfinite(slope).all())
    _expect(finite, f"a finite gradient for {case}", "NaN or infinity", advice)
    return slope


def _check_half(call: Call) -> None:
    """Compare with the loss of logits that bfloat16 has rounded."""
    context = {
        name: item.bfloat16()
        if isinstance(item, Tensor) and item.is_floating_point()
        else item
        for name, item in call.context.items()
    }
    half = Call(call.function, call.logits.bfloat16(), call.targets.bfloat16(), context)
    came = _check_value(half, "logits in bfloat16", "keep weights below 1e38")
    value = call.loss().item()
    what = f"about {value:.4g} for logits in bfloat16"
    _expect(_near(came, value, HALF), what, f"{came:.4g}")


def _near(value: float, usual: float, tolerance: float = SAME) -> bool:
    return abs(value - usual) <= tolerance * max(abs(usual), 1e-3)


def _expect(right: bool, what: str, got: str, advice: str = "") -> None:
    if not right:
        raise AssertionError(f"check_loss: {expected(what, got, advice)}")
