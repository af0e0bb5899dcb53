"""Losses of any number of labels an image: of the logistic function, class by class.

Each is a mean over samples and classes, so that strengths compare and clipping is the
same. Where a paper sums instead, the mean is the only difference.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def inverse_frequency(
    logits: Tensor,
    targets: Tensor,
    *,
    class_freq: Tensor,
    seen: int,
    power: float = 1.0,
) -> Tensor:
    """Weigh a class's positives and negatives to be equal; King and Zeng 2001, Eq. (7).

    Parameters
    ----------
    logits, targets : tensor of float, shape (B, C)
        Scores, and 0 or 1 for each label.
    class_freq : tensor of float, shape (C,)
        Samples of each class so far, n_i.
    seen : int
        Samples so far, N.
    power : float
        Of the weights: 0 is plain cross-entropy, 1 is equal weight.

    Returns
    -------
    tensor of float, shape ()
        Mean over samples and classes.

    Notes
    -----
    A positive weighs (N / 2 n_i) ** power, a negative (N / 2 (N - n_i)) ** power. A
    count of 0 is taken as 1. The paper has one class, and its frequency is that of all
    samples; here it is that of the stream so far.

    Examples
    --------
    >>> logits, targets = torch.zeros(2, 1), torch.tensor([[1.0], [0.0]])
    >>> inverse_frequency(logits, targets, class_freq=torch.tensor([1.0]), seen=4)
    tensor(0.9242)
    """
    positive = (seen / (2 * class_freq.clamp(min=1))) ** power  # (C,)
    negative = (seen / (2 * (seen - class_freq).clamp(min=1))) ** power  # (C,)
    weight = torch.lerp(negative, positive, targets)  # (B, C)
    return F.binary_cross_entropy_with_logits(logits, targets, weight)


def focal(
    logits: Tensor, targets: Tensor, *, alpha: float = 0.25, gamma: float = 2.0
) -> Tensor:
    """Weigh labels that are predicted well less; Lin et al. 2017, Eq. (5).

    Parameters
    ----------
    logits, targets : tensor of float, shape (B, C)
        Scores, and 0 or 1 for each label.
    alpha : float
        Weight of positives, 1 - alpha that of negatives; -1 for none.
    gamma : float
        Power of what is missing to a sure prediction.

    Returns
    -------
    tensor of float, shape ()
        Mean over samples and classes.

    Notes
    -----
    torchvision's. The paper divides the sum by the number of positives.

    Examples
    --------
    >>> focal(torch.zeros(1, 1), torch.ones(1, 1))  # 0.25 * 0.5 ** 2 * log 2
    tensor(0.0433)
    """
    from torchvision.ops import sigmoid_focal_loss  # a second to load

    return sigmoid_focal_loss(logits, targets, alpha, gamma, reduction="mean")


def asymmetric(
    logits: Tensor,
    targets: Tensor,
    *,
    gamma_neg: float = 4.0,
    gamma_pos: float = 0.0,
    margin: float = 0.05,
) -> Tensor:
    """Focus negatives more than positives, and drop easy ones; Ridnik et al. 2021.

    Parameters
    ----------
    logits, targets : tensor of float, shape (B, C)
        Scores, and 0 or 1 for each label.
    gamma_neg, gamma_pos : float
        Focusing powers of negatives and of positives, Eq. (7).
    margin : float
        Probability up to which a negative counts as right, Eq. (5).

    Returns
    -------
    tensor of float, shape ()
        Mean over samples and classes.

    Notes
    -----
    The gradient goes through the focusing weights, as in the paper's Eq. (8). The
    released code sums over samples and classes, and has 1 for the positives' power.

    Examples
    --------
    >>> asymmetric(torch.zeros(1, 1), torch.ones(1, 1))  # log 2
    tensor(0.6931)
    """
    probability = torch.sigmoid(logits)
    shifted = (probability - margin).clamp(min=0)
    of_positives = F.logsigmoid(logits)
    if gamma_pos:
        of_positives = of_positives * (1 - probability) ** gamma_pos
    of_negatives = torch.log1p(-shifted)
    if gamma_neg:
        of_negatives = of_negatives * shifted**gamma_neg
    return -torch.lerp(of_negatives, of_positives, targets).mean()


def distribution_balanced(
    logits: Tensor,
    targets: Tensor,
    *,
    class_freq: Tensor,
    seen: int,
    alpha: float = 0.1,
    beta: float = 10.0,
    mu: float = 0.2,
    kappa: float = 0.05,
    scale: float = 2.0,
) -> Tensor:
    """Rebalance weights and tolerate negatives; Wu et al. 2020, Eq. (9).

    Parameters
    ----------
    logits, targets : tensor of float, shape (B, C)
        Scores, and 0 or 1 for each label.
    class_freq : tensor of float, shape (C,)
        Samples of each class so far, n_i.
    seen : int
        Samples so far, N.
    alpha, beta, mu : float
        Lift, slope and middle of the smoothed weights, Eq. (4).
    kappa : float
        Scale of the bias of a class's logit, Eq. (7).
    scale : float
        How much sooner negatives count as right: lambda of Eq. (6).

    Returns
    -------
    tensor of float, shape ()
        Mean over samples and classes.

    Notes
    -----
    A count of 0 is taken as 1. The released code divides kappa by lambda, and has a
    focal weight on top, which the paper reports as a variant.

    Examples
    --------
    >>> logits, targets = torch.zeros(1, 2), torch.tensor([[1.0, 0.0]])
    >>> class_freq = torch.tensor([2.0, 2.0])
    >>> distribution_balanced(logits, targets, class_freq=class_freq, seen=4)
    tensor(0.5717)
    """
    inverse = 1 / class_freq.clamp(min=1)  # (C,)
    repeats = (targets * inverse).sum(1, keepdim=True)  # (B, 1)
    weight = alpha + torch.sigmoid(beta * (inverse / repeats - mu))  # (B, C), Eq. (4)
    odds = (seen * inverse - 1).clamp(min=1 / seen)  # not 0 where all have the class
    moved = logits - kappa * torch.log(odds)  # Eq. (7)
    of_positives = F.softplus(-moved)
    of_negatives = F.softplus(scale * moved) / scale
    return (weight * torch.lerp(of_negatives, of_positives, targets)).mean()


def weighted_replay(
    logits: Tensor, targets: Tensor, *, class_freq: Tensor, replayed: Tensor
) -> Tensor:
    """Weigh replayed samples by 1 / n_c; Chrysakis and Moens 2020.

    Parameters
    ----------
    logits, targets : tensor of float, shape (B, C)
        Scores, and 0 or 1 for each label.
    class_freq : tensor of float, shape (C,)
        Samples of each class so far, n_i.
    replayed : tensor of bool, shape (B,)
        Which rows are replayed.

    Returns
    -------
    tensor of float, shape ()
        Mean over samples of their weighted losses.

    Notes
    -----
    The weights of a step's replayed samples have the mean 1, and new samples weigh 1.
    Of several labels the one that is rarest so far counts, as in `CBRS`; the paper has
    one label a sample (`prslib.losses.one_label.weighted_replay`).

    Examples
    --------
    >>> logits, targets = torch.zeros(2, 2), torch.eye(2)
    >>> n, old = torch.tensor([1.0, 3.0]), torch.tensor([True, True])
    >>> weighted_replay(logits, targets, class_freq=n, replayed=old)
    tensor(0.6931)
    """
    losses = F.multilabel_soft_margin_loss(logits, targets, reduction="none")  # (B,)
    return (row_weights(targets, class_freq, replayed) * losses).mean()


def row_weights(targets: Tensor, class_freq: Tensor, replayed: Tensor) -> Tensor:
    """Return 1 for new rows, and 1 / n_c over its mean for replayed ones; (B,)."""
    counts = class_freq.clamp(min=1).expand_as(targets)
    inverse = 1 / counts.masked_fill(targets == 0, torch.inf).amin(1)  # (B,)
    inverse = torch.where(replayed, inverse, 0)
    mean = inverse.sum() / replayed.sum()
    return torch.where(replayed, inverse / mean, 1)
