"""Losses of any number of labels an image: of the logistic function, class by class.

Each is a mean over samples and classes, so that strengths compare and clipping is the
same. Where a paper's code sums instead, the mean is the only difference.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

LEAST = 1e-12  # of what is raised to a power: below it the gradient would be infinite


def multilabel_soft_margin(
    logits: Tensor, targets: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Take binary cross-entropy, label by label, as the paper does (Sec. 5).

    Parameters
    ----------
    logits, targets : tensor of float, shape (B, C)
        Scores, and 0 or 1 for each label.
    weights : tensor of float, shape (B, C) or (B, 1), optional
        Of each label in a sum, by default 1 / (B C).

    Returns
    -------
    tensor of float, shape ()
        The weighted sum, by default the mean over samples and classes.

    Notes
    -----
    The mean and its gradient are those of torch's ``multilabel_soft_margin_loss``, to
    the last bit, in half the operations: a target of 0 turns the logit's sign around.

    Examples
    --------
    >>> multilabel_soft_margin(torch.zeros(1, 1), torch.ones(1, 1))  # log 2
    tensor(0.6931)
    """
    right = F.logsigmoid((2 * targets - 1) * logits)  # (B, C)
    if weights is not None:
        return (right * -weights).sum()
    return (right.sum(1) / -logits.shape[1]).mean()


def inverse_frequency(
    logits: Tensor,
    targets: Tensor,
    *,
    class_freq: Tensor,
    seen: int,
    power: float = 1.0,
) -> Tensor:
    """Weigh a class's positives and negatives to be equal; King and Zeng 2001.

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
    A positive weighs (N / 2 n_i) ** power, a negative (N / 2 (N - n_i)) ** power:
    scikit-learn's ``class_weight="balanced"``, class by class. A count of 0 is taken as
    1. The paper counts all samples, here the stream so far counts.

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
    """Weigh labels that are predicted well less; Lin et al. 2017, Sec. 3.2.

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
    torchvision's. Its gradient is not finite for a ``gamma`` between 0 and 1. The paper
    divides the sum by the number of positives.

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
        Focusing powers of negatives and of positives ("Asymmetric Focusing").
    margin : float
        Probability up to which a negative counts as right ("Asymmetric Probability
        Shifting").

    Returns
    -------
    tensor of float, shape ()
        Mean over samples and classes.

    Notes
    -----
    The gradient goes through the focusing weights. The released code sums over samples
    and classes, takes 1 for the positives' power by default, and keeps logarithms above
    that of 1e-8.

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
        missed = (1 - probability).clamp(min=LEAST)
        of_positives = of_positives * missed**gamma_pos
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
    gamma: float = 0.0,
) -> Tensor:
    """Weigh labels that are rare in their image, tolerate negatives; Wu et al. 2020.

    Parameters
    ----------
    logits, targets : tensor of float, shape (B, C)
        Scores, and 0 or 1 for each label.
    class_freq : tensor of float, shape (C,)
        Samples of each class so far, n_i.
    seen : int
        Samples so far, N.
    alpha, beta, mu : float
        Lift, slope and middle of the smoothed weights ("Re-balanced Weighting").
    kappa : float
        Scale of the bias of a class's logit ("Negative-Tolerant Regularization").
    scale : float
        How much sooner negatives count as right: the paper's lambda.
    gamma : float
        Focusing power of both, 0 for none.

    Returns
    -------
    tensor of float, shape ()
        Mean over samples and classes.

    Notes
    -----
    A count of 0 is taken as 1. The released code divides kappa by lambda. It focuses
    with a power of 2 and doubles the loss; the paper reports the loss with and without.

    Examples
    --------
    >>> logits, targets = torch.zeros(1, 2), torch.tensor([[1.0, 0.0]])
    >>> class_freq = torch.tensor([2.0, 2.0])
    >>> distribution_balanced(logits, targets, class_freq=class_freq, seen=4)
    tensor(0.5717)
    """
    inverse = 1 / class_freq.clamp(min=1)  # (C,)
    repeats = (targets * inverse).sum(1, keepdim=True)  # (B, 1)
    weight = alpha + torch.sigmoid(beta * (inverse / repeats - mu))  # (B, C)
    odds = (seen * inverse - 1).clamp(min=1 / seen)  # not 0 where all have the class
    moved = logits - kappa * torch.log(odds)
    slope = torch.where(targets > 0, -1.0, scale)  # (B, C)
    losses = F.softplus(slope * moved) / slope.abs()
    if gamma:
        missed = torch.sigmoid(slope * moved)
        losses = losses * missed.clamp(min=LEAST) ** gamma
    return (weight * losses).mean()


def weighted_replay(
    logits: Tensor, targets: Tensor, *, class_freq: Tensor, replayed: Tensor
) -> Tensor:
    """Let the new samples weigh 1 / n_c, the replayed the rest; Chrysakis & Moens 2020.

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
        1 / n_c times the mean loss of the new samples and 1 - 1 / n_c times that of the
        replayed, where n_c is the number of classes so far. Without a replayed row it is
        the mean loss.

    Examples
    --------
    >>> logits, targets = torch.zeros(2, 2), torch.eye(2)
    >>> n, old = torch.tensor([1.0, 3.0]), torch.tensor([False, True])
    >>> weighted_replay(logits, targets, class_freq=n, replayed=old)
    tensor(0.6931)
    """
    signs = 2 * targets - 1
    losses = -F.logsigmoid(signs * logits).sum(1) / logits.shape[1]  # (B,)
    return (row_weights(class_freq, replayed) * losses).sum()


def row_weights(class_freq: Tensor, replayed: Tensor) -> Tensor:
    """Return each row's part of the loss of a step, new and replayed, float (B,)."""
    count = replayed.sum()
    share = 1 / torch.count_nonzero(class_freq).clamp(min=1)  # of the new samples
    share = torch.where(count > 0, share, 1.0)  # else a step would be shorter
    of_new = share / (len(replayed) - count).clamp(min=1)
    of_replayed = (1 - share) / count.clamp(min=1)
    return torch.where(replayed, of_replayed, of_new)
