"""Each loss equals its formula, written out label by label on small tables."""

import math

import numpy as np
import pytest
import torch

from prslib.losses import LOSSES, Stream

# three samples, four classes; the last class has no positive so far
LOGITS = [[0.0, 1.5, -2.0, 0.3], [-0.7, 0.2, 3.0, -1.0], [2.2, -0.4, 0.6, -3.0]]
TARGETS = [[1, 0, 1, 0], [0, 1, 0, 0], [1, 1, 0, 0]]
COUNTS, SEEN = [30, 8, 2, 0], 40


def sigmoid(z):
    return 1 / (1 + math.exp(-z))


def cells(formula):
    """Return the mean over samples and classes of formula(z, y, i, row of labels)."""
    values = [
        formula(z, y, i, TARGETS[b])
        for b in range(len(LOGITS))
        for i, (z, y) in enumerate(zip(LOGITS[b], TARGETS[b], strict=True))
    ]
    return sum(values) / len(values)


def stream(counts=COUNTS, seen=SEEN, replayed=(False, True, True)):
    return Stream(torch.tensor(counts).float(), seen, torch.tensor(replayed))


def ours(name, logits=LOGITS, targets=TARGETS, replayed=(False, True, True), **options):
    loss = LOSSES[name]
    tables = [torch.tensor(logits), torch.tensor(targets, dtype=torch.float32)]
    if loss.reads_stream:
        tables.append(stream(replayed=replayed))
    return loss.function(*tables, **options).item()


def cross_entropy(z, y, *_):
    return -math.log(sigmoid(z)) if y else -math.log(1 - sigmoid(z))


@pytest.mark.parametrize("scale", [0.1, 3.0, 200.0])
def test_soft_margin_is_torch_s_to_the_last_bit(scale):
    rng = np.random.default_rng(int(scale))
    theirs = torch.nn.functional.multilabel_soft_margin_loss
    for rows, classes in [(1, 1), (10, 70), (20, 81), (256, 50)]:
        logits = torch.tensor(rng.normal(0, scale, (rows, classes)).astype("f4"))
        targets = torch.tensor((rng.random((rows, classes)) < 0.2).astype("f4"))
        both = []
        for loss in (theirs, LOSSES["multilabel_soft_margin"].function):
            leaf = logits.clone().requires_grad_()
            value = loss(leaf, targets)
            both.append((value, *torch.autograd.grad(value, leaf)))
        (expected, slope), (value, our_slope) = both
        assert value.equal(expected) and our_slope.equal(slope)


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_inverse_frequency(power):
    def formula(z, y, i, _):
        n = max(COUNTS[i], 1)
        weight = SEEN / (2 * n) if y else SEEN / (2 * (SEEN - COUNTS[i]))
        return weight**power * cross_entropy(z, y)

    assert ours("inverse_frequency", power=power) == pytest.approx(cells(formula))
    assert ours("inverse_frequency", power=0.0) == pytest.approx(cells(cross_entropy))


@pytest.mark.parametrize(("alpha", "gamma"), [(0.25, 2.0), (0.6, 1.0)])
def test_focal(alpha, gamma):
    """FL(p_t) = -alpha_t (1 - p_t)^gamma log p_t, Sec. 3.2 of Lin et al. 2017."""

    def formula(z, y, *_):
        right = sigmoid(z) if y else 1 - sigmoid(z)
        weight = alpha if y else 1 - alpha
        return -weight * (1 - right) ** gamma * math.log(right)

    value = ours("focal", alpha=alpha, gamma=gamma)
    assert value == pytest.approx(cells(formula))


@pytest.mark.parametrize(
    ("gamma_neg", "gamma_pos", "margin"),
    [(4.0, 0.0, 0.05), (3.0, 1.0, 0.2), (2.0, 0.5, 0.0), (0.5, 0.0, 0.05)],
)
def test_asymmetric(gamma_neg, gamma_pos, margin):
    """Asymmetric focusing and probability shifting of Ridnik et al. 2021."""

    def formula(z, y, *_):
        p = sigmoid(z)
        if y:
            return -((1 - p) ** gamma_pos) * math.log(p)
        shifted = max(p - margin, 0)
        return -(shifted**gamma_neg) * math.log(1 - shifted)

    options = {"gamma_neg": gamma_neg, "gamma_pos": gamma_pos, "margin": margin}
    assert ours("asymmetric", **options) == pytest.approx(cells(formula))
    plain = ours("asymmetric", gamma_neg=0.0, gamma_pos=0.0, margin=0.0)
    assert plain == pytest.approx(cells(cross_entropy))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 0.3, "beta": 5.0, "mu": 0.4, "kappa": 0.1, "scale": 5.0},
        {"gamma": 2.0},
    ],
)
def test_distribution_balanced(options):
    """Re-balanced weighting and negative-tolerant regularization of Wu et al. 2020."""
    names = {"alpha": 0.1, "beta": 10.0, "mu": 0.2, "kappa": 0.05, "scale": 2.0}
    alpha, beta, mu, kappa, scale, gamma = (names | {"gamma": 0} | options).values()
    counts = [max(n, 1) for n in COUNTS]

    def formula(z, y, i, labels):
        repeats = sum(1 / counts[j] for j, has in enumerate(labels) if has)
        weight = alpha + sigmoid(beta * (1 / counts[i] / repeats - mu))
        prior = counts[i] / SEEN
        bias = kappa * math.log(1 / prior - 1)
        if y:
            right = sigmoid(z - bias)
            return weight * (1 - right) ** gamma * -math.log(right)
        right = sigmoid(-scale * (z - bias))
        return weight / scale * (1 - right) ** gamma * -math.log(right)

    value = ours("distribution_balanced", **options)
    assert value == pytest.approx(cells(formula), rel=1e-5)


ONE_HOT = [[1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]]


@pytest.mark.parametrize("tau", [1.0, 0.5, 0.0])
def test_logit_adjustment(tau):
    """-log softmax of f_y(x) + tau log pi_y; Menon et al. 2021."""
    prior = np.maximum(COUNTS, 1) / SEEN
    losses = []
    for row, labels in zip(LOGITS, ONE_HOT, strict=True):
        terms = np.exp(np.array(row) + tau * np.log(prior))
        losses.append(-math.log(terms[labels.index(1)] / terms.sum()))
    value = ours("logit_adjustment", targets=ONE_HOT, tau=tau)
    assert value == pytest.approx(np.mean(losses), rel=1e-5)


def parts_of_step(rows, replayed):
    """1 / n_c of the new samples' mean and the rest of the replayed ones'; n_c is 3."""
    rows, replayed = np.array(rows), np.array(replayed)
    if not replayed.any():
        return rows.mean()
    of_new = 0 if replayed.all() else rows[~replayed].mean()
    return of_new / 3 + rows[replayed].mean() * 2 / 3


@pytest.mark.parametrize("replayed", [(False, True, True), (True,) * 3, (False,) * 3])
def test_new_samples_weigh_as_one_class_of_those_seen(replayed):
    several, one_label = [], []
    for row, labels, one_hot in zip(LOGITS, TARGETS, ONE_HOT, strict=True):
        pairs = zip(row, labels, strict=True)
        several.append(np.mean([cross_entropy(z, y) for z, y in pairs]))
        terms = np.exp(row)
        one_label.append(-math.log(terms[one_hot.index(1)] / terms.sum()))
    value = ours("weighted_replay", replayed=replayed)
    assert value == pytest.approx(parts_of_step(several, replayed))
    value = ours("weighted_replay_one_label", targets=ONE_HOT, replayed=replayed)
    assert value == pytest.approx(parts_of_step(one_label, replayed))


POWERS = [("asymmetric", "gamma_pos"), ("asymmetric", "gamma_neg")]
POWERS += [("distribution_balanced", "gamma"), *((name, "") for name in LOSSES)]


@pytest.mark.parametrize(("name", "power"), POWERS)
def test_a_sure_prediction_has_a_finite_gradient(name, power):
    """Also where a power below 1 has an infinite slope, and without a replayed row."""
    options = {power: 0.5} if power else {}
    logits = (80 * (1 - 2 * torch.eye(4))[:3]).requires_grad_()
    for targets in (torch.tensor(ONE_HOT).float(), torch.eye(4)[:3]):
        tables = [logits, targets]
        if LOSSES[name].reads_stream:
            tables.append(stream(replayed=[False] * 3))
        value = LOSSES[name].function(*tables, **options)
        (slope,) = torch.autograd.grad(value, logits)
        assert value.isfinite() and value >= 0 and slope.isfinite().all()
