"""Check that a loss is what the training needs, one of prslib or of one's own."""

from collections.abc import Callable
from typing import Any

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


def _check(loss: Loss, options: dict[str, object], num_classes: int) -> None:
    function = loss.with_options(options)
    logits, targets = _tables(loss.one_label, num_classes)
    context = _context(loss, targets)
    _check_value(function(logits, targets, **context), "usual logits")
    _check_copies(function, logits, targets, context)
    _check_mean(function, logits, targets, context)
    if loss.takes_weights:
        _check_weights(function, logits, targets, context)
    _check_gradient(function, logits, targets, context)
    sure = LARGE * (2 * targets - 1)
    for name, extreme in {"right": sure, "wrong": -sure}.items():
        case = f"logits of ±{LARGE:g}, all {name}"
        value = function(extreme, targets, **context)
        advice = "use logsigmoid or log_softmax in place of log"
        _check_value(value, case, advice)
        advice = "clamp what is raised to a power between 0 and 1"
        _slope(function, extreme, targets, context, case, advice)
    for rows in (1, SAMPLES):
        empty = _context(loss, targets[:rows], class_freq=0, seen=rows)
        value = function(logits[:rows], targets[:rows], **empty)
        advice = "clamp counts to at least 1"
        _check_value(value, f"{rows} samples, classes without any so far", advice)
    _check_half(function, logits, targets, context)


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


def _check_value(value: Any, given: str, advice: str = "") -> None:
    if not isinstance(value, Tensor):
        came = f"{type(value).__name__}"
        advice = "compute in torch, without item(), float() or numpy"
        _expect(False, "a tensor", came, advice)
    came = f"shape {tuple(value.shape)}"
    _expect(
        value.ndim == 0, "one number, a tensor of shape ()", came, "end with .mean()"
    )
    finite = bool(torch.isfinite(value))
    _expect(finite, f"a finite loss for {given}", f"{value.item()}", advice)


def _check_copies(
    function: Callable, logits: Tensor, targets: Tensor, context: dict
) -> None:
    before = logits.clone(), targets.clone()
    function(logits, targets, **context)
    same = torch.equal(before[0], logits) and torch.equal(before[1], targets)
    what = "logits and targets to stay as they are"
    _expect(same, what, "others", "leave out methods that end with _")


def _check_mean(
    function: Callable, logits: Tensor, targets: Tensor, context: dict
) -> None:
    """Compare with the loss of every row twice; GSS and EWC take it as a mean."""
    value = function(logits, targets, **context).item()
    if "replayed" in context:
        context = context | {"replayed": context["replayed"].repeat(2)}
    twice = function(logits.repeat(2, 1), targets.repeat(2, 1), **context).item()
    near = abs(twice - value) <= SAME * max(abs(value), 1e-3)
    what = "a mean over samples, the same for every sample twice"
    _expect(near, what, f"{value:.4g} and {twice:.4g}", "divide by the samples")


def _check_weights(
    function: Callable, logits: Tensor, targets: Tensor, context: dict
) -> None:
    """Compare the sum of some rows, weighted to be their mean, with that mean."""
    some = torch.arange(len(logits))[:, None] % 3 > 0  # (B, 1)
    weights = some / (some.sum() * logits.shape[1])
    value = function(logits, targets, weights=weights, **context).item()
    rows = some.flatten()
    if "replayed" in context:
        context = context | {"replayed": context["replayed"][rows]}
    mean = function(logits[rows], targets[rows], **context).item()
    near = abs(value - mean) <= SAME * max(abs(mean), 1e-3)
    what = f"{mean:.4g} for weights that make a mean of some samples"
    _expect(near, what, f"{value:.4g}", "multiply each label's loss, then sum")


def _check_gradient(
    function: Callable, logits: Tensor, targets: Tensor, context: dict
) -> None:
    value = function(logits.clone().requires_grad_(), targets, **context)
    what = "a loss that depends on the logits"
    advice = "leave out detach(), argmax and thresholds"
    _expect(value.requires_grad, what, "one without gradient", advice)
    slope = _slope(function, logits, targets, context, "usual logits")
    falls = bool(slope[targets > 0].sum() < 0)
    what = "a loss that falls where the logits of positives rise"
    _expect(falls, what, "one that does not", "a minus may be missing")
    falls = bool(slope[targets == 0].sum() < 0)
    what = "a loss that does not fall where the logits of negatives rise"
    _expect(not falls, what, "one that does", "a minus may be missing")


def _slope(
    function: Callable,
    logits: Tensor,
    targets: Tensor,
    context: dict,
    case: str,
    advice: str = "",
) -> Tensor:
    """Return the gradient by logits (B, C); refuse one that is not finite."""
    logits = logits.clone().requires_grad_()
    value = function(logits, targets, **context)
    (slope,) = torch.autograd.grad(value, logits)
    finite = bool(torch.isfinite(slope).all())
    _expect(finite, f"a finite gradient for {case}", "NaN or infinity", advice)
    return slope


def _check_half(
    function: Callable, logits: Tensor, targets: Tensor, context: dict
) -> None:
    """Compare with the loss of logits that bfloat16 has rounded."""
    value = function(logits, targets, **context).item()
    context = {
        name: item.bfloat16()
        if isinstance(item, Tensor) and item.dtype.is_floating_point
        else item
        for name, item in context.items()
    }
    half = function(logits.bfloat16(), targets.bfloat16(), **context).float()
    advice = "keep weights below 1e38"
    _check_value(half, "logits in bfloat16", advice)
    near = abs(half.item() - value) <= HALF * max(abs(value), 1e-3)
    _expect(near, f"about {value:.4g} for logits in bfloat16", f"{half.item():.4g}")


def _expect(right: bool, what: str, came: str, advice: str = "") -> None:
    if not right:
        raise AssertionError(f"check_loss: {expected(what, came, advice)}")
