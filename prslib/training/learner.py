"""The network and its optimiser: one step on every batch of a plan, and the scores."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prslib import metrics
from prslib.datasets import SequentialDataset, Split
from prslib.datasets.base import task_name, tasks_together
from prslib.memory import Memory
from prslib.models.networks import split
from prslib.training import gradients
from prslib.training.config import RunConfig
from prslib.training.device import PRECISIONS, Captured, Graphs, Images, Resident
from prslib.training.ewc import EWC
from prslib.training.gradients import squared_gradients
from prslib.training.replay import Joined

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": partial(torch.optim.Adam, fused=True, capturable=True),
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

EVALUATION_BATCH = 256  # images at once when nothing is learned,
EVALUATION_PIXELS = 2**24  # and pixels: 256 images of 256x256, a few GB of activations


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
        How many of the model's stages stay as they are (`prslib.models.networks.split`).
    ewc_lambda : float or None
        Strength of `EWC`; None for a learner without it.
    device : str
        Where to compute, "cpu" or "cuda".
    precision : str
        A key of `prslib.training.device.PRECISIONS`.

    Notes
    -----
    On a GPU the step is captured as a CUDA graph where it is the same work every time; EWC, whose
    penalty grows, and samplers that look at the model between two steps go without.
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
        precision="fp32",
    ):
        self.device = torch.device(device)
        self.precision = PRECISIONS[precision]
        self.model = model.to(self.device, memory_format=self.precision.memory_format)
        self.lower, self.upper = split(self.model, frozen_stages)
        self.upper.train()
        self.parameters = list(self.upper.parameters())
        self.ewc = None
        if ewc_lambda is not None:
            self.ewc = EWC(self.upper.named_parameters(), ewc_lambda)
        self.optimizer = OPTIMIZERS[optimizer](self.parameters, lr=learning_rate)
        self.loss, self.activation = LOSSES[loss]
        self.clip_value = clip_value
        self.norm_penalty = norm_penalty
        self._step = self.step
        if self.device.type == "cuda" and not self.ewc:
            self._step = Captured(self.step, Graphs(self.device))
            self.optimizer.register_load_state_dict_post_hook(lambda _: self._step.forget())

    def fit(
        self,
        images: Images | Tensor,
        labels: Tensor,
        plan: Iterable[np.ndarray | Joined],
        after_step: Callable[[], None] = lambda: None,
    ) -> None:
        """Take one step on every batch of a plan.

        Parameters
        ----------
        images : Images or Tensor
            uint8 (N, H, W, channels); a tensor on the learner's device.
        labels : Tensor
            Float multi-hot (N, C), on the learner's device.
        plan : iterable of ndarray of int64, or Joined
            Indices of each step's batch. An array or a list of indices is known ahead, and nothing
            waits between its steps; an iterator is asked for a batch after the step on the last.
        after_step : callable
            Called when a step is taken, before the plan is asked for the next batch.
        """
        if _known_ahead(plan):
            for pixels, rows in _as_images(images).feed(plan):
                self._step(pixels, labels[rows])
                after_step()
            return
        for batch in plan:
            self.learn(*self.join(images, labels, batch))
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

    def step(self, pixels: Tensor, targets: Tensor) -> None:
        """Take one step on a batch of images, without a look at any value.

        Parameters
        ----------
        pixels : Tensor
            uint8 (B, H, W, channels), on the learner's device.
        targets : Tensor
            Float multi-hot (B, C), on the learner's device.
        """
        self.learn(self.below(pixels), targets)

    def learn(self, inputs: Tensor, targets: Tensor) -> None:
        """Take one step on what the trained part of the network gets.

        Parameters
        ----------
        inputs, targets : Tensor
            As `join` returns them.
        """
        loss = self.objective(inputs, targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.update()
        if self.ewc:
            self.ewc.observe(squared_gradients(self.upper, self.loss, inputs, targets))

    def objective(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return what a step lowers: the network's own objective or its loss, and the penalty.

        Parameters
        ----------
        inputs, targets : Tensor
            As `join` returns them.

        Returns
        -------
        Tensor
            A scalar, with the penalty on the parameters' norms.
        """
        with self.precision.forward(self.device):
            if hasattr(self.upper, "objective"):
                loss = self.upper.objective(inputs, targets, self._loss_of)
            else:
                loss = self._loss_of(self.upper(inputs), targets)
        if self.norm_penalty:
            loss = loss + self.norm_penalty * sum(p.norm() for p in self.parameters)
        return loss

    def _loss_of(self, logits: Tensor, targets: Tensor) -> Tensor:
        return self.loss(logits.float(), targets)

    def update(self) -> None:
        """Change the weights by the gradients that they have."""
        if self.ewc:
            self.ewc.pull()
        nn.utils.clip_grad_value_(self.parameters, self.clip_value)
        self.optimizer.step()

    @torch.no_grad()
    def below(self, pixels: Tensor) -> Tensor:
        """Return what the trained part of the network gets for uint8 images: float (B, ...)."""
        with self.precision.forward(self.device):
            return self.lower(self._laid_out(pixels)).float()

    def inputs(self, images: Images | Tensor, indices: np.ndarray) -> Tensor:
        """Return what the trained part of the network gets for some images.

        Parameters
        ----------
        images : Images or Tensor
            uint8 (N, H, W, channels); a tensor on the learner's device.
        indices : ndarray of int64, (B,)
            Which of them.

        Returns
        -------
        Tensor
            Float (B, ...): the images themselves where nothing is frozen.
        """
        return self.below(images[torch.from_numpy(indices).to(self.device)])

    def join(
        self, images: Images | Tensor, labels: Tensor, batch: np.ndarray | Joined
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

    def probabilities(
        self, images: Images | Tensor, indices: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the network's probability of every label: sigmoid or softmax, as the loss says.

        Parameters
        ----------
        images : Images or Tensor
            uint8 (N, H, W, channels); a tensor on the learner's device.
        indices : ndarray of int64, (K,), optional
            Which of them, by default all.

        Returns
        -------
        ndarray of float32, (K, C)
            Between 0 and 1.
        """
        found = self._see(self.model, images, indices)
        return torch.cat([self.activation(logits) for logits in found]).cpu().numpy()

    def features(self, images: Images | Tensor, indices: np.ndarray | None = None) -> np.ndarray:
        """Return what the network's head sees of some images (Figure "t-SNE").

        Parameters
        ----------
        images, indices
            As for `probabilities`.

        Returns
        -------
        ndarray of float32, (K, D)
            One vector an image, in evaluation mode.
        """
        return torch.cat(self._see(self.model.features, images, indices)).cpu().numpy()

    def _laid_out(self, pixels: Tensor) -> Tensor:
        """Return what the network gets, on a GPU in the weights' memory format.

        cuDNN follows either, and images that lie otherwise would have it turn the weights around.
        """
        images = as_input(pixels)
        if self.device.type == "cuda":
            images = images.contiguous(memory_format=self.precision.memory_format)
        return images

    @torch.no_grad()
    def _see(self, network: Callable, images, indices: np.ndarray | None) -> list[Tensor]:
        """Apply the network, or a part of it, to images in evaluation mode."""
        wanted = np.arange(len(images)) if indices is None else indices
        seen = []
        self.model.eval()
        try:
            for pixels, _ in _as_images(images).feed(_in_batches(wanted, images.shape[1:3])):
                with self.precision.forward(self.device):
                    seen.append(network(self._laid_out(pixels)).float())
        finally:
            self.upper.train()
        return seen


def _known_ahead(plan: Iterable[np.ndarray | Joined]) -> bool:
    if isinstance(plan, list):
        return not any(isinstance(batch, Joined) for batch in plan)
    return isinstance(plan, np.ndarray)


def _as_images(images: Images | Tensor) -> Images:
    return Resident(images) if isinstance(images, Tensor) else images


def _in_batches(indices: np.ndarray, size: tuple[int, int]) -> Sequence[np.ndarray]:
    """Cut into the largest batches that evaluation takes of images of this height and width."""
    length = max(1, min(EVALUATION_BATCH, EVALUATION_PIXELS // math.prod(size)))
    return [indices[start : start + length] for start in range(0, len(indices), length)]


def as_input(images: Tensor) -> Tensor:
    """Turn uint8 images (B, H, W, channels) into float ones in [0, 1], (B, channels, H, W)."""
    return images.permute(0, 3, 1, 2).float().div_(255)


def features(
    learner: Learner, images: Images, labels: Tensor, batch: np.ndarray, memory: Memory
) -> np.ndarray:
    """Return what the frozen part of the network makes of a batch (ExStream).

    Parameters
    ----------
    learner : Learner
        The network.
    images : Images
        The training images.
    labels : Tensor
        Their labels, on the learner's device.
    batch : ndarray of int64, (B,)
        Indices of the new samples.
    memory : Memory
        Not looked at.

    Returns
    -------
    ndarray of float32, (B, D)
        One flat vector a sample.
    """
    return learner.inputs(images, batch).flatten(1).cpu().numpy()


def gradient_products(
    learner: Learner, images: Images, labels: Tensor, batch: np.ndarray, memory: Memory
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that compares a batch's gradients with those of memory subsets (GSS).

    Parameters
    ----------
    learner, images, labels, batch
        As for `features`.
    memory : Memory
        Where the subsets' samples are, in the column "index".

    Returns
    -------
    callable
        Takes slots int64 (K, n); returns float64 (K + B, K + B): inner products of the gradients
        of the subsets' mean losses and of each new sample's loss, over all trained weights.
    """

    def products(subsets: np.ndarray) -> np.ndarray:
        known = memory.read(subsets.ravel())["index"]
        indices = np.concatenate([known, batch])
        targets = labels[torch.from_numpy(indices).to(labels.device)]
        sizes = [subsets.shape[1]] * len(subsets) + [1] * len(batch)
        inputs = learner.inputs(images, indices)
        table = gradients.gradient_products(learner.upper, learner.loss, inputs, targets, sizes)
        return table.cpu().numpy()

    return products


# by the name that a sampler's ``needs`` gives it
SUPPLIES: dict[str, Callable[..., Any]] = {
    "features": features,
    "gradient_products": gradient_products,
}


def score_tasks(
    learner: Learner, images: Images, test: Split, dataset: SequentialDataset, groups
) -> pd.DataFrame:
    """Score the test sets of the tasks seen so far, joined and one by one (Table 1).

    Single-label data have their accuracy beside these scores, and on the whole test set too, tasks
    yet to come included (Appendix, Tables of Imbal-MNISTseq and Imbal-SVHNseq).

    Parameters
    ----------
    learner : Learner
        The trained network.
    images : Images or Tensor
        The test images, uint8 (N, H, W, channels); a tensor on the learner's device.
    test : Split
        The test set.
    dataset : SequentialDataset
        Gives classes and groups their names.
    groups : sequence of tuple of int
        The tasks trained so far, in order, those that are trained together in one tuple.

    Returns
    -------
    DataFrame
        Columns trained_tasks, task ("seen" for the joined sets, "all" for the whole test set, "1"
        or "1+2" for one task or a pair), group, metric, value.
    """
    parts = {task_name(group): np.isin(test.task, group) for group in sorted(groups)}
    parts = {"seen": np.isin(test.task, [task for group in groups for task in group])} | parts
    wanted = np.flatnonzero(parts["seen"] | test.single_label)
    probabilities = learner.probabilities(images, wanted)
    frames = []
    for name, part in parts.items():
        scored = probabilities[part[wanted]], test.labels[part]
        frame = metrics.evaluate(*scored, dataset.class_names, dataset.class_group)
        frames.append(frame.assign(task=name))
    if test.single_label:
        parts["all"] = np.ones(len(test), bool)
        rows = [
            ("overall", "accuracy", metrics.accuracy(probabilities[part], test.labels[part]), name)
            for name, part in parts.items()
        ]
        frames.append(pd.DataFrame(rows, columns=["group", "metric", "value", "task"]))
    frame = pd.concat(frames, ignore_index=True).assign(trained_tasks=len(groups))
    return frame[["trained_tasks", "task", "group", "metric", "value"]]


def with_run_columns(config: RunConfig, scores: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the columns that say which run they are of, as `Run.scores` has them."""
    identity = config.identity
    groups = tasks_together(identity.get("schedule", ()), config.resolved["tasks_at_once"])
    columns = {
        "dataset": config.dataset,
        "method": config.method,
        "rho": identity.get("rho", np.nan),
        "memory_size": identity.get("memory_size", 0),
        "schedule": ",".join(map(task_name, groups)),
        "seed": config.seed,
    }
    return pd.concat([pd.DataFrame(columns, index=scores.index), scores], axis=1)
