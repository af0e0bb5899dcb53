"""The network and its optimiser: one step on every batch of a plan, and the scores."""

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": partial(torch.optim.Adam, fused=True),
}

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "multilabel_soft_margin": F.multilabel_soft_margin_loss,
}

EVALUATION_BATCH = 512  # images at once when nothing is learned


class Learner:
    """A network and its optimiser, trained one joined batch at a time (section "Baselines").

    Parameters
    ----------
    model : torch.nn.Module
        Maps float images in [0, 1], (B, channels, H, W), to logits (B, C).
    optimizer : str
        A key of `OPTIMIZERS`.
    learning_rate : float
        Step size.
    loss : str
        A key of `LOSSES`.
    clip_value : float
        Every component of the gradient is clipped to [-clip_value, clip_value].
    device : str
        Where to compute, "cpu" or "cuda".
    """

    def __init__(self, model: nn.Module, optimizer, learning_rate, loss, clip_value, device="cpu"):
        self.device = torch.device(device)
        self.model = model.to(self.device)
        self.parameters = list(self.model.parameters())
        self.optimizer = OPTIMIZERS[optimizer](self.parameters, lr=learning_rate)
        self.loss = LOSSES[loss]
        self.clip_value = clip_value

    def fit(self, images: Tensor, labels: Tensor, plan: Iterable[np.ndarray]) -> None:
        """Take one step on every batch of a plan.

        Parameters
        ----------
        images : Tensor
            uint8 (N, H, W, channels), on the learner's device.
        labels : Tensor
            Float multi-hot (N, C), on the learner's device.
        plan : iterable of ndarray of int64
            Indices of each step's batch.
        """
        self.model.train()
        for indices in plan:
            batch = torch.from_numpy(indices).to(self.device)
            loss = self.loss(self.model(as_input(images[batch])), labels[batch])
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(self.parameters, self.clip_value)
            self.optimizer.step()

    @torch.no_grad()
    def probabilities(self, images: Tensor) -> np.ndarray:
        """Return the sigmoid of the scores, the network's probability of every label.

        Parameters
        ----------
        images : Tensor
            uint8 (N, H, W, channels), on the learner's device.

        Returns
        -------
        ndarray of float32, (N, C)
            Between 0 and 1.
        """
        self.model.eval()
        batches = images.split(EVALUATION_BATCH)
        scores = [torch.sigmoid(self.model(as_input(batch))) for batch in batches]
        return torch.cat(scores).cpu().numpy()


def as_input(images: Tensor) -> Tensor:
    """Turn uint8 images (B, H, W, channels) into float ones in [0, 1], (B, channels, H, W)."""
    return images.permute(0, 3, 1, 2).float().div_(255)
