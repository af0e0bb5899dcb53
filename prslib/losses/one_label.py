"""Losses of one label an image: of the softmax over classes."""

import torch
import torch.nn.functional as F
from torch import Tensor

from prslib.losses.multi_label import row_weights


def logit_adjustment(
    logits: Tensor, targets: Tensor, *, class_freq: Tensor, tau: float = 1.0
) -> Tensor:
    """Add the log of a class's frequency to its logit; Menon et al. 2021.

    Parameters
    ----------
    logits, targets : tensor of float, shape (B, C)
        Scores, and one-hot labels.
    class_freq : tensor of float, shape (C,)
        Samples of each class so far, n_i.
    tau : float
        Strength; 0 is plain cross-entropy, 1 the paper's.

    Returns
    -------
    tensor of float, shape ()
        Mean over samples.

    Notes
    -----
    Predictions are made of the logits as they are. A count of 0 is taken as 1. The
    paper has frequencies of the whole training set; these are of the stream so far.

    Examples
    --------
    >>> logits, targets = torch.zeros(1, 2), torch.tensor([[1.0, 0.0]])
    >>> logit_adjustment(logits, targets, class_freq=torch.tensor([3.0, 1.0]))
    tensor(0.2877)
    """
    adjusted = logits + tau * torch.log(class_freq.clamp(min=1))
    return F.cross_entropy(adjusted, targets)


def weighted_replay(
    logits: Tensor, targets: Tensor, *, class_freq: Tensor, replayed: Tensor
) -> Tensor:
    """Let the new samples weigh 1 / n_c, the replayed the rest; Chrysakis & Moens 2020.

    Parameters and result are those of `prslib.losses.multi_label.weighted_replay`; the
    targets are one-hot.

    Examples
    --------
    >>> logits, targets = torch.zeros(2, 2), torch.eye(2)
    >>> n, old = torch.tensor([1.0, 3.0]), torch.tensor([False, True])
    >>> weighted_replay(logits, targets, class_freq=n, replayed=old)
    tensor(0.6931)
    """
    losses = F.cross_entropy(logits, targets, reduction="none")  # (B,)
    return (row_weights(class_freq, replayed) * losses).sum()
