"""Losses: functions of logits and targets; some also depend on the stream so far.

A loss for several labels per sample is a mean over samples and classes, even if the
code of its paper uses a sum. The strengths of these losses are therefore comparable,
and gradient clipping has the same effect on each of them. Parameters with a default are
options (`RunConfig.loss_options`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

LEAST = 1e-12  # below it, the gradient of a power would be infinite


class Stream(NamedTuple):
    """Counts of the stream; a loss receives them as its parameter ``stream``.

    Parameters
    ----------
    class_freq : tensor of float of shape (n_classes,)
        Number n_i of samples of each class in the stream so far, including the new
        samples of the current step.
    seen : int
        Number N of samples in the stream so far.
    replayed : tensor of bool of shape (n_samples,)
        Whether each row of the batch is a replayed sample, as opposed to a new one.

    Examples
    --------
    >>> stream = Stream(torch.tensor([3.0, 1.0]), 4, torch.tensor([False, True]))
    >>> stream.class_freq / stream.seen
    tensor([0.7500, 0.2500])
    """

    class_freq: Tensor
    seen: int
    replayed: Tensor


@dataclass(frozen=True)
class Loss:
    """A loss function, and the way probabilities are computed from its logits.

    Parameters
    ----------
    function : callable
        ``function(logits, targets, **options)`` or ``function(logits, targets, stream,
        **options)``. It receives tensors of float of shape (n_samples, n_classes) and
        returns a mean over samples as a tensor of shape (). Parameters with a default are
        options.
    one_label : bool
        Whether every sample has exactly one label. If so, the softmax of the logits
        gives the probabilities; otherwise, the logistic function does.

    See Also
    --------
    prslib.register : Registers a loss under a name.

    Examples
    --------
    >>> LOSSES["focal"].options
    ['alpha', 'gamma']
    """

    function: Callable
    one_label: bool = False

    @property
    def reads_stream(self) -> bool:
        """Whether the function has the parameter ``stream``."""
        return "stream" in signature(self.function).parameters

    @property
    def options(self) -> list[str]:
        """Names of the function's options."""
        names = list(signature(self.function).parameters)
        return names[3:] if self.reads_stream else names[2:]


def multilabel_soft_margin(logits: Tensor, targets: Tensor) -> Tensor:
    """Compute the binary cross-entropy, a mean over samples and classes.

    Parameters
    ----------
    logits, targets : tensor of float of shape (n_samples, n_classes)
        Logits, and 0 or 1 for each label.

    Returns
    -------
    tensor of float of shape ()
        Mean over samples and classes.

    Notes
    -----
    The loss of a label is -log sigmoid(z) for a positive and -log sigmoid(-z) for a
    negative, where z is the logit. The value and the gradient equal the results of
    torch's ``multilabel_soft_margin_loss`` to the last bit, with half the operations.

    Examples
    --------
    >>> multilabel_soft_margin(torch.zeros(1, 1), torch.ones(1, 1))  # log 2
    tensor(0.6931)
    """
    right = F.logsigmoid((2 * targets - 1) * logits)  # (B, C)
    return (right.sum(1) / -logits.shape[1]).mean()


def inverse_frequency(
    logits: Tensor, targets: Tensor, stream: Stream, power: float = 1.0
) -> Tensor:
    """Give a class's positives and negatives equal total weight (King and Zeng 2001).

    Parameters
    ----------
    logits, targets : tensor of float of shape (n_samples, n_classes)
        Logits, and 0 or 1 for each label.
    stream : Stream
        Counts of the stream so far.
    power : float
        Power of the weights: 0 for plain cross-entropy, 1 for equal total weight.

    Returns
    -------
    tensor of float of shape ()
        Mean over samples and classes.

    Notes
    -----
    A positive is weighted by (N / (2 n_i)) ** power and a negative by
    (N / (2 (N - n_i))) ** power, which is scikit-learn's ``class_weight="balanced"``
    applied to each class. A count of 0 is replaced by 1. The paper counts all samples,
    whereas prslib counts only those that have come so far.

    Examples
    --------
    >>> logits, targets = torch.zeros(2, 1), torch.tensor([[1.0], [0.0]])
    >>> stream = Stream(torch.tensor([1.0]), seen=4, replayed=torch.zeros(2).bool())
    >>> inverse_frequency(logits, targets, stream)
    tensor(0.9242)
    """
    class_freq, seen = stream.class_freq, stream.seen
    positive = (seen / (2 * class_freq.clamp(min=1))) ** power  # (C,)
    negative = (seen / (2 * (seen - class_freq).clamp(min=1))) ** power  # (C,)
    weight = torch.lerp(negative, positive, targets)  # (B, C)
    return F.binary_cross_entropy_with_logits(logits, targets, weight)


def focal(
    logits: Tensor, targets: Tensor, alpha: float = 0.25, gamma: float = 2.0
) -> Tensor:
    """Down-weight labels that are predicted well (Lin et al. 2017, Sec. 3.2).

    Parameters
    ----------
    logits, targets : tensor of float of shape (n_samples, n_classes)
        Logits, and 0 or 1 for each label.
    alpha : float
        Weight of positives; negatives have the weight 1 - alpha.
    gamma : float
        Focusing power of 1 - p.

    Returns
    -------
    tensor of float of shape ()
        Mean over samples and classes.

    Notes
    -----
    The loss of a label is -alpha (1 - p) ** gamma log p, where p is the probability of
    the correct answer; for negatives, 1 - alpha replaces alpha. For a ``gamma`` between
    0 and 1, the gradient is not finite if p is rounded to 1. Instead of taking the
    mean, the paper divides the sum of the losses by the number of positives.

    Examples
    --------
    >>> focal(torch.zeros(1, 1), torch.ones(1, 1))  # 0.25 * 0.5 ** 2 * log 2
    tensor(0.0433)
    """
    entropy = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    probability = logits.sigmoid()
    right = probability * targets + (1 - probability) * (1 - targets)
    weight = alpha * targets + (1 - alpha) * (1 - targets)
    return (weight * (entropy * (1 - right) ** gamma)).mean()


def asymmetric(
    logits: Tensor,
    targets: Tensor,
    gamma_neg: float = 4.0,
    gamma_pos: float = 0.0,
    margin: float = 0.05,
) -> Tensor:
    """Down-weight easy negatives, and ignore very easy ones (Ridnik et al. 2021).

    Parameters
    ----------
    logits, targets : tensor of float of shape (n_samples, n_classes)
        Logits, and 0 or 1 for each label.
    gamma_neg, gamma_pos : float
        Focusing powers of negatives and of positives ("Asymmetric Focusing").
    margin : float
        Probability up to which a negative is ignored, m ("Asymmetric Probability
        Shifting").

    Returns
    -------
    tensor of float of shape ()
        Mean over samples and classes.

    Notes
    -----
    Let p be the probability of the label and p_m = max(p - m, 0). The loss is
    -(1 - p) ** gamma_pos log p for a positive and -p_m ** gamma_neg log(1 - p_m) for a
    negative. The gradient passes through the focusing weights. In contrast to prslib,
    the released code sums over samples and classes, uses 1 as the default of
    ``gamma_pos``, and clips probabilities at 1e-8 before the logarithm.

    Examples
    --------
    >>> asymmetric(torch.zeros(1, 1), torch.ones(1, 1))  # log 2
    tensor(0.6931)
    """
    probability = torch.sigmoid(logits)
    shifted = (probability - margin).clamp(min=LEAST)
    of_positives = F.logsigmoid(logits)
    of_negatives = torch.log1p(-shifted) if margin else F.logsigmoid(-logits)
    if gamma_pos:
        missing = (1 - probability).clamp(min=LEAST)
        of_positives = of_positives * missing**gamma_pos
    if gamma_neg:
        of_negatives = of_negatives * shifted**gamma_neg
    return -torch.lerp(of_negatives, of_positives, targets).mean()


def distribution_balanced(
    logits: Tensor,
    targets: Tensor,
    stream: Stream,
    alpha: float = 0.1,
    beta: float = 10.0,
    mu: float = 0.2,
    kappa: float = 0.05,
    scale: float = 2.0,
    gamma: float = 0.0,
) -> Tensor:
    """Up-weight labels that are rare in their image (Wu et al. 2020).

    Parameters
    ----------
    logits, targets : tensor of float of shape (n_samples, n_classes)
        Logits, and 0 or 1 for each label.
    stream : Stream
        Counts of the stream so far.
    alpha, beta, mu : float
        Lift, slope and middle of the smoothed weights ("Re-balanced Weighting").
    kappa : float
        Scale of the bias of a class's logit ("Negative-Tolerant Regularization").
    scale : float
        Slope of the loss of negatives, the paper's lambda. Larger values penalise
        negatives less once they are classified correctly.
    gamma : float
        Focusing power, as in `focal`; 0 for no focusing.

    Returns
    -------
    tensor of float of shape ()
        Mean over samples and classes.

    Notes
    -----
    :doc:`/losses/distribution_balanced` explains the weights and the bias. A count of 0
    is replaced by 1. The released code divides kappa by lambda, focuses with a power of 2
    and doubles the loss; the paper reports the loss with and without focusing.

    Examples
    --------
    >>> logits, targets = torch.zeros(1, 2), torch.tensor([[1.0, 0.0]])
    >>> stream = Stream(torch.tensor([2.0, 2.0]), 4, torch.zeros(1).bool())
    >>> distribution_balanced(logits, targets, stream)
    tensor(0.5717)
    """
    inverse = 1 / stream.class_freq.clamp(min=1)  # (C,)
    repeats = (targets * inverse).sum(1, keepdim=True)  # (B, 1)
    weight = alpha + torch.sigmoid(beta * (inverse / repeats - mu))  # (B, C)
    odds = stream.seen * inverse - 1
    odds = odds.clamp(min=1 / stream.seen)  # not 0 if all samples have the class
    moved = logits - kappa * torch.log(odds)
    slope = torch.where(targets > 0, -1.0, scale)  # (B, C)
    losses = F.softplus(slope * moved) / slope.abs()
    if gamma:
        missing = torch.sigmoid(slope * moved)
        losses = losses * missing.clamp(min=LEAST) ** gamma
    return (weight * losses).mean()


def weighted_replay(logits: Tensor, targets: Tensor, stream: Stream) -> Tensor:
    """Weight new samples by 1 / n_c (Chrysakis and Moens 2020).

    Parameters
    ----------
    logits, targets : tensor of float of shape (n_samples, n_classes)
        Logits, and 0 or 1 for each label.
    stream : Stream
        Counts of the stream so far, and which rows are replayed.

    Returns
    -------
    tensor of float of shape ()
        1 / n_c times the mean loss of the new samples plus (1 - 1 / n_c) times the mean
        loss of the replayed samples, where n_c is the number of classes so far. If no
        row is replayed, the mean loss of all rows.

    Examples
    --------
    >>> logits, targets = torch.zeros(2, 2), torch.eye(2)
    >>> stream = Stream(torch.tensor([1.0, 3.0]), 4, torch.tensor([False, True]))
    >>> weighted_replay(logits, targets, stream)
    tensor(0.6931)
    """
    signs = 2 * targets - 1
    losses = -F.logsigmoid(signs * logits).sum(1) / logits.shape[1]  # (B,)
    return (weigh_rows(stream) * losses).sum()


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Compute the cross-entropy of the softmax, for one label per sample.

    Parameters
    ----------
    logits, targets : tensor of float of shape (n_samples, n_classes)
        Logits, and one-hot labels.

    Returns
    -------
    tensor of float of shape ()
        Mean over samples.

    Examples
    --------
    >>> cross_entropy(torch.zeros(1, 4), torch.eye(4)[:1])  # log 4
    tensor(1.3863)
    """
    return F.cross_entropy(logits, targets)


def logit_adjustment(
    logits: Tensor, targets: Tensor, stream: Stream, tau: float = 1.0
) -> Tensor:
    """Add the log of a class's frequency to its logit (Menon et al. 2021).

    Parameters
    ----------
    logits, targets : tensor of float of shape (n_samples, n_classes)
        Logits, and one-hot labels.
    stream : Stream
        Counts of the stream so far.
    tau : float
        Strength: 0 for plain cross-entropy, 1 for the paper's value.

    Returns
    -------
    tensor of float of shape ()
        Mean over samples.

    Notes
    -----
    The term is not added for predictions. A count of 0 is replaced by 1. The paper uses
    the frequencies in the training set, whereas prslib uses the frequencies in the
    stream so far.

    Examples
    --------
    >>> logits, targets = torch.zeros(1, 2), torch.tensor([[1.0, 0.0]])
    >>> stream = Stream(torch.tensor([3.0, 1.0]), 4, torch.zeros(1).bool())
    >>> logit_adjustment(logits, targets, stream)
    tensor(0.2877)
    """
    adjusted = logits + tau * torch.log(stream.class_freq.clamp(min=1))
    return F.cross_entropy(adjusted, targets)


def weighted_replay_one_label(
    logits: Tensor, targets: Tensor, stream: Stream
) -> Tensor:
    """Weight rows as `weighted_replay` does, for one label per sample.

    Parameters
    ----------
    logits, targets : tensor of float of shape (n_samples, n_classes)
        Logits, and one-hot labels.
    stream : Stream
        Counts of the stream so far, and which rows are replayed.

    Returns
    -------
    tensor of float of shape ()
        Weighted sum of the two means, as in `weighted_replay`.

    Examples
    --------
    >>> logits, targets = torch.zeros(2, 2), torch.eye(2)
    >>> stream = Stream(torch.tensor([1.0, 3.0]), 4, torch.tensor([False, True]))
    >>> weighted_replay_one_label(logits, targets, stream)
    tensor(0.6931)
    """
    losses = F.cross_entropy(logits, targets, reduction="none")  # (B,)
    return (weigh_rows(stream) * losses).sum()


def weigh_rows(stream: Stream) -> Tensor:
    """Return each row's weight in `weighted_replay`, float (B,)."""
    count = stream.replayed.sum()
    share = 1 / torch.count_nonzero(stream.class_freq).clamp(min=1)  # of new samples
    share = torch.where(count > 0, share, 1.0)  # else a step would be smaller
    of_new = share / (len(stream.replayed) - count).clamp(min=1)
    of_replayed = (1 - share) / count.clamp(min=1)
    return torch.where(stream.replayed, of_replayed, of_new)


LOSSES: dict[str, Loss] = {
    "multilabel_soft_margin": Loss(multilabel_soft_margin),
    "inverse_frequency": Loss(inverse_frequency),
    "focal": Loss(focal),
    "asymmetric": Loss(asymmetric),
    "distribution_balanced": Loss(distribution_balanced),
    "weighted_replay": Loss(weighted_replay),
    "cross_entropy": Loss(cross_entropy, one_label=True),
    "logit_adjustment": Loss(logit_adjustment, one_label=True),
    "weighted_replay_one_label": Loss(weighted_replay_one_label, one_label=True),
}
