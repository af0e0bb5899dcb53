"""Train a network one batch at a time, and score it; answer what samplers ask of it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from prslib.training.device import Captured, Graphs, Images, Precision
from prslib.training.replay import VectorBatch

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": partial(torch.optim.Adam, fused=True, capturable=True),
    "sgd": partial(torch.optim.SGD, momentum=0.9),
}


class Loss(NamedTuple):
    """A training loss, and how the logits it asks for become probabilities."""

    of: Callable[[Tensor, Tensor], Tensor]  # logits (B, C) and multi-hot labels (B, C) to a scalar
    activation: Callable[[Tensor], Tensor]  # logits (B, C) to probabilities (B, C)


LOSSES: dict[str, Loss] = {
    "multilabel_soft_margin": Loss(F.multilabel_soft_margin_loss, torch.sigmoid),
    "cross_entropy": Loss(F.cross_entropy, partial(torch.softmax, dim=1)),  # labels are one-hot
}

EVALUATION_BATCH = 256  # images at once in evaluation,
EVALUATION_PIXELS = 2**24  # and pixels: 256 images of 256x256, a few GB of activations


class Learner:
    """A network and its optimiser, trained one joined batch at a time (section "Baselines")."""

    # The model maps float images in [0, 1], (B, channels, H, W), to logits (B, C). `Recipe` has the
    # settings. A GPU's steps are captured as a CUDA graph. EWC, whose penalty grows, goes without.

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
        self.precision = Precision(precision)
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
        plan: Iterable[np.ndarray | VectorBatch],
        after_step: Callable[[], None] = lambda: None,
    ) -> None:
        """Take one step on every batch of a plan; images and float labels (N, C) on the device."""
        # Nothing waits between the steps of a list or an array of indices. An iterator is asked for
        # a batch after the step on the last one and ``after_step``.
        listed = isinstance(plan, list) and not any(isinstance(b, VectorBatch) for b in plan)
        if listed or isinstance(plan, np.ndarray):
            for pixels, rows in _as_images(images).feed(plan):
                self._step(pixels, labels[rows])
                after_step()
            return
        for batch in plan:
            self.learn(*self.join(images, labels, batch))
            after_step()

    def state_dict(self) -> dict:
        """Return all that training changes: weights, the optimiser's state, and EWC's."""
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        return state | ({"ewc": self.ewc.state_dict()} if self.ewc else {})

    def load_state_dict(self, state: dict) -> None:
        """Go back to what `state_dict` returned, in place."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.ewc:
            self.ewc.load_state_dict(state["ewc"])

    def step(self, pixels: Tensor, targets: Tensor) -> None:
        """Take one step on uint8 images (B, H, W, channels) without reading any value."""
        self.learn(self.below(pixels), targets)

    def learn(self, inputs: Tensor, targets: Tensor) -> None:
        """Take one step on inputs of the trained part of the network and targets (B, C)."""
        loss = self.objective(inputs, targets)
        self.optimizer.zero_grad()
        loss.backward()
        if self.ewc:
            self.ewc.pull()
        nn.utils.clip_grad_value_(self.parameters, self.clip_value)
        self.optimizer.step()
        if self.ewc:
            self.ewc.observe(gradients.squared_gradients(self.upper, self.loss, inputs, targets))

    def objective(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return what a step lowers: the network's objective or its loss, plus the norm penalty."""
        with self.precision.forward(self.device):
            if hasattr(self.upper, "objective"):
                loss = self.upper.objective(inputs, targets, self._loss_of)
            else:
                loss = self._loss_of(self.upper(inputs), targets)
        if self.norm_penalty:
            loss = loss + self.norm_penalty * sum(p.square().sum() for p in self.parameters)
        return loss

    def _loss_of(self, logits: Tensor, targets: Tensor) -> Tensor:
        return self.loss(logits.float(), targets)

    @torch.no_grad()
    def below(self, pixels: Tensor) -> Tensor:
        """Return the trained part's inputs for uint8 images: float (B, ...)."""
        with self.precision.forward(self.device):
            return self.lower(self._laid_out(pixels)).float()

    def inputs(self, images: Images | Tensor, indices: np.ndarray) -> Tensor:
        """Return the trained part's inputs for some images: float (B, ...)."""
        return self.below(images[torch.from_numpy(indices).to(self.device)])

    def join(
        self, images: Images | Tensor, labels: Tensor, batch: np.ndarray | VectorBatch
    ) -> tuple[Tensor, Tensor]:
        """Return the trained part's inputs (B, ...) for a step's batch, and the targets (B, C)."""
        new = batch.new if isinstance(batch, VectorBatch) else batch
        inputs = self.inputs(images, new)
        targets = labels[torch.from_numpy(new).to(self.device)]
        if isinstance(batch, VectorBatch):
            vectors = torch.from_numpy(batch.vectors).to(self.device)
            inputs = torch.cat([inputs, vectors.view(-1, *inputs.shape[1:])])
            targets = torch.cat([targets, torch.from_numpy(batch.labels).to(targets)])
        return inputs, targets

    def probabilities(
        self, images: Images | Tensor, indices: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the probability of every label, float32 (K, C), for all images or some."""
        found = self._see(self.model, images, indices)
        return torch.cat([self.activation(logits) for logits in found]).cpu().numpy()

    def features(self, images: Images | Tensor, indices: np.ndarray | None = None) -> np.ndarray:
        """Return what the head sees, float32 (K, D), of all images or some (Figure "t-SNE")."""
        return torch.cat(self._see(self.model.features, images, indices)).cpu().numpy()

    def _laid_out(self, pixels: Tensor) -> Tensor:
        """Return the network's input, on a GPU in the weights' memory format."""
        images = as_input(pixels)
        if self.device.type == "cuda" and images.ndim == 4:
            # cuDNN follows either; other images would make it turn the weights around
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


def _as_images(images: Images | Tensor) -> Images:
    return Images(images) if isinstance(images, Tensor) else images


def _in_batches(indices: np.ndarray, size: tuple[int, int]) -> Sequence[np.ndarray]:
    """Cut indices into the largest batches that evaluation takes of images of this size."""
    length = max(1, min(EVALUATION_BATCH, EVALUATION_PIXELS // math.prod(size)))
    return [indices[start : start + length] for start in range(0, len(indices), length)]


def as_input(images: Tensor) -> Tensor:
    """Turn uint8 images (B, H, W, channels) into float ones in [0, 1], (B, channels, H, W)."""
    if images.is_floating_point():  # features, which stay as they are
        return images
    return images.permute(0, 3, 1, 2).float().div_(255)


class EWC:
    """Pull weights back to where the stream needed them (Kirkpatrick et al. 2017, Eq. 3)."""

    # The penalty is strength / 2 * sum of fisher * (weight - anchor) ** 2. The original method adds
    # one at the end of every task. The paper's learner is not told where a task ends, and the paper
    # does not say how its EWC comes to know. Here every batch is a task: after its step it adds a
    # penalty with its Fisher information at the new weights. Up to a constant the sum of these is
    # one penalty: its Fisher is the sum, its anchor the mean of the past weights, weighted by their
    # batches' Fisher. The sum is divided by the number of batches, so that lambda weighs a Fisher
    # of one sample, as in a single task. The Fisher is the empirical one: the mean of each sample's
    # squared gradient of the loss with its own labels. Lambda is the paper's (Appendix).

    def __init__(self, parameters: Iterable[tuple[str, Tensor]], strength: float):
        self.strength = strength
        self.batches = 0
        self._parameters = {name: weight for name, weight in parameters if weight.requires_grad}
        self._total = {name: torch.zeros_like(w) for name, w in self._parameters.items()}
        self._anchor = {name: w.detach().clone() for name, w in self._parameters.items()}

    @torch.no_grad()
    def pull(self) -> None:
        """Add the penalty's gradient to the weights' ``grad``; none before the first batch."""
        if self.batches == 0:
            return
        scale = self.strength / self.batches
        for name, weight in self._parameters.items():
            weight.grad.addcmul_(self._total[name], weight - self._anchor[name], value=scale)

    @torch.no_grad()
    def observe(self, squares: Mapping[str, Tensor]) -> None:
        """Add a batch's penalty at the present weights, given its Fisher for every weight."""
        self.batches += 1
        for name, weight in self._parameters.items():
            total, anchor = self._total[name].add_(squares[name]), self._anchor[name]
            share = torch.where(total > 0, squares[name] / total, 0)
            anchor.addcmul_(share, weight - anchor)

    def state_dict(self) -> dict:
        """Return the penalty of the stream so far."""
        return {"batches": self.batches, "total": self._total, "anchor": self._anchor}

    @torch.no_grad()
    def load_state_dict(self, state: dict) -> None:
        """Go back to what `state_dict` returned, in place."""
        self.batches = state["batches"]
        for name in self._parameters:
            self._total[name].copy_(state["total"][name])
            self._anchor[name].copy_(state["anchor"][name])


def features(
    learner: Learner, images: Images, _labels: Tensor, batch: np.ndarray, _memory: Memory
) -> np.ndarray:
    """Return the frozen part's output for a batch, float32 (B, D) (ExStream)."""
    return learner.inputs(images, batch).flatten(1).cpu().numpy()


def gradient_products(
    learner: Learner, images: Images, labels: Tensor, batch: np.ndarray, memory: Memory
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function of memory subsets, slots (K, n), as `GSS.place` wants it for a batch."""

    def products(subsets: np.ndarray) -> np.ndarray:
        known = memory.read(subsets.ravel())["index"]
        indices = np.concatenate([known, batch])
        targets = labels[torch.from_numpy(indices).to(labels.device)]
        given = learner.inputs(images, indices), targets, subsets.shape
        table = gradients.gradient_products(learner.upper, learner.loss, *given)
        return table.cpu().numpy()

    return products


SAMPLER_NEEDS: dict[str, Callable[..., Any]] = {  # by the names in a sampler's ``needs``
    "features": features,
    "gradient_products": gradient_products,
}


def score_tasks(
    learner: Learner,
    images: Images,
    test: Split,
    dataset: SequentialDataset,
    groups: Sequence,
    resamples: int = 0,
    auc: bool = False,
) -> pd.DataFrame:
    """Score the test sets of the tasks seen so far, joined and one by one (Table 1)."""
    # Tasks that are trained together form one of the groups. A row's task is "seen" for the joined
    # sets, "1" or "1+2". Single-label data add their accuracy, also on the whole test set, "all",
    # with tasks yet to come (Appendix). With resamples the column draws holds what each gives for
    # the class groups on the joined sets.
    parts = {task_name(group): np.isin(test.task, group) for group in sorted(groups)}
    parts = {"seen": np.isin(test.task, [task for group in groups for task in group])} | parts
    wanted = np.flatnonzero(parts["seen"] | test.single_label)
    probabilities = learner.probabilities(images, wanted)
    frames = []
    for name, part in parts.items():
        scored = probabilities[part[wanted]], test.labels[part]
        frame = metrics.evaluate(*scored, dataset.class_names, dataset.class_group)
        if resamples and name == "seen":
            weights = metrics.image_weights(len(test), resamples)[:, part]
            found = metrics.resampled(*scored, dataset.class_group, weights)
            # rounded, as the order of a product's sums is the processor's; classes have none
            frame["draws"] = pd.Series(found.round(6).tolist())
        frames.append(frame.assign(task=name))
        if auc:
            rows = metrics.macro_auc(*scored, dataset.class_group)
            frame = pd.DataFrame(rows, columns=["group", "metric", "value"])
            frames.append(frame.assign(task=name))
    if test.single_label:
        parts["all"] = np.ones(len(test), bool)
        rows = [
            ("overall", "accuracy", metrics.accuracy(probabilities[part], test.labels[part]), name)
            for name, part in parts.items()
        ]
        frames.append(pd.DataFrame(rows, columns=["group", "metric", "value", "task"]))
    frame = pd.concat(frames, ignore_index=True).assign(trained_tasks=len(groups))
    columns = ["trained_tasks", "task", "group", "metric", "value"]
    return frame[[*columns, "draws"] if resamples else columns]


def with_run_columns(config: RunConfig, scores: pd.DataFrame) -> pd.DataFrame:
    """Add the columns of `Run.scores` that name the run."""
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
