"""The network and its optimiser: one step on every batch of a plan, and the scores."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prslib.ewc import EWC
from prslib.gradients import squared_gradients
from prslib.models import split
from prslib.stream import Joined

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
    frozen_stages : int
        How many of the model's stages stay as they are (`prslib.models.split`).
    ewc_lambda : float or None
        Strength of `EWC`; None for a learner without it.
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
        frozen_stages=0,
        ewc_lambda=None,
        device="cpu",
    ):
        self.device = torch.device(device)
        self.model = model.to(self.device)
        self.lower, self.upper = split(self.model, frozen_stages)
        self.parameters = list(self.upper.parameters())
        self.ewc = None
        if ewc_lambda is not None:
            self.ewc = EWC(self.upper.named_parameters(), ewc_lambda)
        self.optimizer = OPTIMIZERS[optimizer](self.parameters, lr=learning_rate)
        self.loss, self.activation = LOSSES[loss]
        self.clip_value = clip_value
        self.norm_penalty = norm_penalty

    def fit(
        self,
        images: Tensor,
        labels: Tensor,
        plan: Iterable[np.ndarray | Joined],
        after_step: Callable[[], None] = lambda: None,
    ) -> None:
        """Take one step on every batch of a plan.

        Parameters
        ----------
        images : Tensor
            uint8 (N, H, W, channels), on the learner's device.
        labels : Tensor
            Float multi-hot (N, C), on the learner's device.
        plan : iterable of ndarray of int64, or Joined
            Indices of each step's batch; may be made step by step.
        after_step : callable
            Called when a step is taken, before the plan is asked for the next batch.
        """
        for batch in plan:
            inputs, targets = self.join(images, labels, batch)
            self.upper.train()
            loss = self.loss(self.upper(inputs), targets)
            if self.norm_penalty:
                loss = loss + self.norm_penalty * sum(p.norm() for p in self.parameters)
            self.optimizer.zero_grad()
            loss.backward()
            if self.ewc:
                self.ewc.pull()
            nn.utils.clip_grad_value_(self.parameters, self.clip_value)
            self.optimizer.step()
            if self.ewc:
                self.ewc.observe(squared_gradients(self.upper, self.loss, inputs, targets))
            after_step()

    def state_dict(self) -> dict:
        """Return all that training changes: weights, optimiser, what EWC keeps."""
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        return state | ({"ewc": self.ewc.state_dict()} if self.ewc else {})

    def load_state_dict(self, state: dict) -> None:
        """Go back to what `state_dict` returned, in place."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.ewc:
            self.ewc.load_state_dict(state["ewc"])

    def inputs(self, images: Tensor, indices: np.ndarray) -> Tensor:
        """Return what the trained part of the network gets for some images.

        Parameters
        ----------
        images : Tensor
            uint8 (N, H, W, channels), on the learner's device.
        indices : ndarray of int64, (B,)
            Which of them.

        Returns
        -------
        Tensor
            Float (B, ...): the images themselves where nothing is frozen.
        """
        with torch.no_grad():
            return self.lower(as_input(images[torch.from_numpy(indices).to(self.device)]))

    def join(
        self, images: Tensor, labels: Tensor, batch: np.ndarray | Joined
    ) -> tuple[Tensor, Tensor]:
        """Return what the trained part of the network gets for a batch, and the targets.

        Parameters
        ----------
        images, labels
            As for `fit`.
        batch : ndarray of int64, or Joined
            A step's batch.

        Returns
        -------
        inputs : Tensor
            Float (B, ...).
        targets : Tensor
            Float multi-hot (B, C).
        """
        new = batch.new if isinstance(batch, Joined) else batch
        inputs = self.inputs(images, new)
        targets = labels[torch.from_numpy(new).to(self.device)]
        if isinstance(batch, Joined):
            vectors = torch.from_numpy(batch.vectors).to(self.device)
            inputs = torch.cat([inputs, vectors.view(-1, *inputs.shape[1:])])
            targets = torch.cat([targets, torch.from_numpy(batch.labels).to(targets)])
        return inputs, targets

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
