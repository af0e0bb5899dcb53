"""`check_loss` accepts sound losses, and names the fault of the others."""

import pytest
import torch
import torch.nn.functional as F

from prslib import LOSSES, Loss, check_loss

plain = F.binary_cross_entropy_with_logits


@pytest.mark.parametrize("name", LOSSES)
def test_those_of_prslib_keep_every_promise(name):
    check_loss(name)


def rewrites(logits, targets):
    logits += 0 * targets
    logits *= 2
    return plain(logits, targets)


MISTAKES = {
    "one number.*end with .mean": lambda z, y: plain(z, y, reduction="none"),
    "a tensor, got float; compute in torch": lambda z, y: plain(z, y).item(),
    "depends on the logits.*without gradient": lambda z, y: plain(z.detach(), y),
    "a minus may be missing": lambda z, y: -plain(z, y),
    "a mean over samples.*divide": lambda z, y: plain(z, y, reduction="sum"),
    "to stay as they are": rewrites,
    r"finite loss for logits of ±80.*use logsigmoid": (
        lambda z, y: -(y * z.sigmoid().log() + (1 - y) * (1 - z.sigmoid()).log()).mean()
    ),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_beginners_mistake_gets_a_sentence(message):
    with pytest.raises(AssertionError, match=f"check_loss: expected .*{message}"):
        check_loss(MISTAKES[message])


def test_a_power_below_one_of_what_may_be_zero_gets_a_sentence():
    with pytest.raises(
        AssertionError, match=r"finite gradient for logits of ±80.*clamp"
    ):
        check_loss("focal", gamma=0.5)
    for name in ("asymmetric", "distribution_balanced"):
        powers = [power for power in LOSSES[name].options if power.startswith("gamma")]
        for power in powers:
            check_loss(name, **{power: 0.5})
    check_loss("asymmetric", margin=0.0)


def test_a_class_without_positives_and_large_weights_get_a_sentence():
    def inverse(logits, targets, *, class_freq):
        return plain(logits, targets, weight=1 / class_freq)

    with pytest.raises(
        AssertionError, match=r"clamp counts to at least 1|usual logits"
    ):
        check_loss(inverse)

    def steep(logits, targets, *, class_freq, power=60.0):
        weight = (10 / class_freq.clamp(min=1)) ** power
        return plain(logits, targets, weight=weight)

    with pytest.raises(AssertionError, match="a finite loss for"):
        check_loss(steep)
    check_loss(steep, power=1.0)


def test_a_loss_whose_weights_bfloat16_cannot_tell_apart_is_refused():
    def rounded(logits, targets, *, seen):
        weight = torch.tensor(1000.0 + seen, dtype=logits.dtype) - 1000
        return weight * plain(logits, targets)

    with pytest.raises(AssertionError, match="for logits in bfloat16"):
        check_loss(rounded)


@pytest.mark.parametrize(
    "function",
    [
        lambda logits: logits.mean(),
        lambda logits, targets, gamma: plain(logits, targets),
        lambda logits, targets, *, gamma: plain(logits, targets),
    ],
)
def test_other_parameters_than_a_loss_has_are_refused(function):
    with pytest.raises(
        TypeError, match=r"after \*, options with defaults, got .*write"
    ):
        check_loss(function)
    with pytest.raises(TypeError, match="a function of logits and targets, got 3"):
        Loss(3)


@pytest.mark.parametrize("shape", [(4, 1), (4,), (4, 6)])
@pytest.mark.parametrize("name", ["multilabel_soft_margin", "asymmetric"])
def test_tables_of_other_shapes_are_refused(name, shape):
    loss = LOSSES[name].with_options({})
    with pytest.raises(ValueError, match=r"of one shape \(B, C\), got \(4, 5\) and"):
        loss(torch.zeros(4, 5), torch.zeros(shape))


def test_weights_that_are_not_of_a_sum_get_a_sentence():
    def mean(logits, targets, weights=None):
        return plain(logits, targets, weight=weights)

    def total(logits, targets, weights=None):
        if weights is None:
            return plain(logits, targets)
        return plain(logits, targets, weight=weights, reduction="sum")

    check_loss(total)
    assert Loss(total).takes_weights and not Loss(plain).takes_weights
    with pytest.raises(AssertionError, match=r"a mean of some samples.*then sum"):
        check_loss(mean)
