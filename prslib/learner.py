"""The network and its optimiser: one step on every batch of a plan, and the scores."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": partial(torch.optim.Adam, fused=True),
    "sgd": partial(torch.optim.SGD, momentum=0.9),
}


class Loss(NamedTuple):
    """What a network is trained with, and how its logits are read as probabilities."""

    of: Callable[[Tensor, Tensor], Tensor]  # logits (B, C) and multi-hot labels (B, C) to a scalar
    activation: Callable[[Tensor], Tensor]  # logits (B, C) to probabilities (B, C)


LOSSES: dict[str, Loss] = {
    "multilabel_soft_margin": Loss(F.multilabel_soft_margin_loss, torch.sigmoid),
    "cross_entropy": Loss(F.cross_entropy, partial(torch.softmax, dim=1)),  # labels are one-hot
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
    norm_penalty : float
        Weight of the sum of the parameters' 2-norms, added to the loss.
    device : str
        Where to compute, "cpu" or "cuda".
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer,
        learning_rate,
        loss,
        clip_value,
        norm_penalty=0.0,
        device="cpu",
    ):
        self.device = torch.device(device)
        self.model = model.to(self.device)
        self.parameters = list(self.model.parameters())
        self.optimizer = OPTIMIZERS[optimizer](self.parameters, lr=learning_rate)
        self.loss, self.activation = LOSSES[loss]
        self.clip_value = clip_value
        self.norm_penalty = norm_penalty

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
            if self.norm_penalty:
                loss = loss + self.norm_penalty * sum(p.norm() for p in self.parameters)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(self.parameters, self.clip_value)
            self.optimizer.step()

    @torch.no_grad()
    def probabilities(self, images: Tensor) -> np.ndarray:
        """Return the network's probability of every label: sigmoid or softmax, as the loss says.

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
        scores = [self.activation(self.model(as_input(batch))) for batch in batches]
        return torch.cat(scores).cpu().numpy()


def as_input(images: Tensor) -> Tensor:
    """Turn uint8 images (B, H, W, channels) into float ones in [0, 1], (B, channels, H, W)."""
    return images.permute(0, 3, 1, 2).float().div_(255)
