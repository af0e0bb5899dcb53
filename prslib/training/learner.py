"""Train a network batch by batch, score it, compute what samplers need from it."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prslib import metrics
from prslib.datasets import SequentialDataset, Split
from prslib.datasets.base import task_name
from prslib.models.networks import Staged
from prslib.resamples import image_weights, resampled
from prslib.training import gradients
from prslib.training.config import RunConfig
from prslib.training.device import Inputs
from prslib.training.ewc import EWC
from prslib.training.replay import Replay
from prslib.training.validation import run_columns

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": partial(torch.optim.Adam, fused=True),
    "sgd": partial(torch.optim.SGD, momentum=0.9),
}
LOSSES: dict[str, tuple[Callable, Callable]] = {  # and what makes logits probabilities
    "multilabel_soft_margin": (F.multilabel_soft_margin_loss, torch.sigmoid),
    "cross_entropy": (F.cross_entropy, partial(torch.softmax, dim=1)),  # one-hot
}

EVALUATION_BATCH = 256  # inputs at once: of 256x256 pixels, a few GB of activations


class Learner:
    """A network and its optimiser (section "Baselines"); `Recipe` has the settings.

    The lower stages of the network may be frozen. A step trains the upper ones on what
    the lower ones give for a batch, or on vectors that a memory has kept of that.
    """

    def __init__(
        self,
        model: Staged,
        optimizer: str,
        learning_rate: float,
        loss: str,
        clip_value: float,
        norm_penalty: float = 0.0,
        frozen_stages: int = 0,
        ewc_lambda: float | None = None,
        device: torch.device | str = "cpu",
        precision: str = "fp32",
    ):
        self.device = torch.device(device)
        self.is_half = precision == "bf16"
        # a GPU computes half precision fastest with the channels last in memory
        self.layout = torch.channels_last if self.is_half else torch.contiguous_format
        self.model = model.to(self.device, memory_format=self.layout)
        self.lower, self.upper = self.model.split(frozen_stages)
        self.lower.eval().requires_grad_(False)  # batch norm is frozen, too
        self.upper.train()
        self.parameters = list(self.upper.parameters())
        self.ewc = None
        if ewc_lambda is not None:
            self.ewc = EWC(self.upper.named_parameters(), ewc_lambda)
        self.optimizer = OPTIMIZERS[optimizer](self.parameters, lr=learning_rate)
        self.loss, self.activation = LOSSES[loss]
        self.clip_value = clip_value
        self.norm_penalty = norm_penalty

    def step(self, inputs: Tensor, targets: Tensor) -> None:
        """Take one step on the upper stages' inputs (B, ...) and targets (B, C)."""
        loss = self.objective(inputs, targets)
        self.optimizer.zero_grad()
        loss.backward()
        if self.ewc:
            self.ewc.pull()
        nn.utils.clip_grad_value_(self.parameters, self.clip_value)
        self.optimizer.step()
        if self.ewc:
            fisher = gradients.squared_gradients(self.upper, self.loss, inputs, targets)
            self.ewc.observe(fisher)

    def autocast(self) -> torch.autocast:
        """Return the context of a forward pass."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.is_half)

    def objective(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return what a step lowers: the network's loss and the penalty on norms."""
        with self.autocast():
            if hasattr(self.upper, "objective"):  # the network adds terms of its own
                loss = self.upper.objective(inputs, targets, self._loss_of)
            else:
                loss = self._loss_of(self.upper(inputs), targets)
        if self.norm_penalty:
            norms = sum(p.square().sum() for p in self.parameters)
            loss = loss + self.norm_penalty * norms
        return loss

    def _loss_of(self, logits: Tensor, targets: Tensor) -> Tensor:
        return self.loss(logits.float(), targets)

    @torch.no_grad()
    def encode(self, inputs: Tensor) -> Tensor:
        """Return what the lower stages give for images or features: float (B, ...)."""
        with self.autocast():
            return self.lower(self._as_floats(inputs)).float()

    def join(
        self,
        inputs: Inputs,
        labels: Inputs,
        new: np.ndarray,
        replayed: np.ndarray | None = None,
        replay: Replay | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Join new rows (B,) with replayed slots (R,): what `step` takes."""
        if replayed is None or len(replayed) == 0:
            return self.encode(inputs[new]), labels[new]
        if not hasattr(replay.sampler, "vectors"):
            rows = np.concatenate([new, replay.memory.read(replayed)["index"]])
            return self.encode(inputs[rows]), labels[rows]
        # ExStream replays what the lower stages gave, in place of inputs
        encoded, targets = self.encode(inputs[new]), labels[new]
        vectors = torch.from_numpy(replay.sampler.vectors(replayed)).to(encoded)
        vectors = vectors.view(-1, *encoded.shape[1:])
        vector_labels = torch.from_numpy(replay.sampler.labels[replayed]).to(targets)
        return torch.cat([encoded, vectors]), torch.cat([targets, vector_labels])

    def probabilities(
        self, inputs: Inputs, rows: np.ndarray | None = None
    ) -> np.ndarray:
        """Return every label's probability, float32 (K, C), for all inputs or some."""
        seen = self._see(self.model, inputs, rows)
        return torch.cat([self.activation(logits) for logits in seen]).cpu().numpy()

    def features(self, inputs: Inputs, rows: np.ndarray | None = None) -> np.ndarray:
        """Return what the head sees, float32 (K, D) (Figure "t-SNE")."""
        return torch.cat(self._see(self.model.features, inputs, rows)).cpu().numpy()

    @torch.no_grad()
    def _see(
        self, network: Callable, inputs: Inputs, rows: np.ndarray | None
    ) -> list[Tensor]:
        """Apply the network, or a part of it, to inputs in evaluation mode."""
        rows = np.arange(len(inputs)) if rows is None else rows
        outputs = []
        self.model.eval()
        for start in range(0, len(rows), EVALUATION_BATCH):
            batch = inputs[rows[start : start + EVALUATION_BATCH]]
            with self.autocast():
                outputs.append(network(self._as_floats(batch)).float())
        self.upper.train()
        return outputs

    def _as_floats(self, inputs: Tensor) -> Tensor:
        floats = as_input(inputs)
        if self.device.type == "cuda" and floats.ndim == 4:
            # cuDNN follows either layout; another one would turn the weights around
            floats = floats.contiguous(memory_format=self.layout)
        return floats


def as_input(inputs: Tensor) -> Tensor:
    """Turn uint8 (B, H, W, channels) into float (B, channels, H, W) in [0, 1]."""
    if inputs.is_floating_point():  # features, which stay as they are
        return inputs
    return inputs.permute(0, 3, 1, 2).float().div_(255)


def context_of(
    replay: Replay, learner: Learner, inputs: Inputs, labels: Inputs, rows: np.ndarray
) -> dict[str, Any]:
    """Return what a sampler needs beside the labels of new samples, rows (B,)."""
    context = {}
    if "features" in replay.sampler.needs:  # the frozen stages' output (B, D): ExStream
        context["features"] = learner.encode(inputs[rows]).flatten(1).cpu().numpy()
    if "gradient_products" in replay.sampler.needs:

        def products(subsets: np.ndarray) -> np.ndarray:
            """Compare memory subsets, slots (K, n), and the new samples (`GSS`)."""
            replayed = replay.memory.read(subsets.ravel())["index"]
            both = np.concatenate([replayed, rows])
            batch = learner.encode(inputs[both]), labels[both]
            network = learner.upper, learner.loss
            table = gradients.gradient_products(*network, *batch, subsets.shape)
            return table.cpu().numpy()

        context["gradient_products"] = products
    return context


def score_tasks(
    learner: Learner,
    inputs: Inputs,
    test: Split,
    dataset: SequentialDataset,
    groups: Sequence[tuple[int, ...]],
    resamples: int = 0,
) -> pd.DataFrame:
    """Score the test sets of the tasks seen so far, joined and one by one (Table 1)."""
    # Tasks that are trained together form one of the groups. A row's task is "seen" for
    # the joined sets, "1" or "1+2". Single-label data add their accuracy, also on the
    # whole test set, "all", with tasks yet to come (Appendix). With resamples the
    # column draws holds what each gives for the class groups on the joined sets.
    seen = np.isin(test.task, [task for group in groups for task in group])
    subsets = {"seen": seen}
    subsets |= {task_name(group): np.isin(test.task, group) for group in sorted(groups)}
    rows = np.flatnonzero(seen | test.single_label)
    probabilities = learner.probabilities(inputs, rows)
    frames = []
    for name, subset in subsets.items():
        scored = probabilities[subset[rows]], test.labels[subset]
        frame = metrics.evaluate(*scored, dataset.class_names, dataset.class_group)
        if resamples and name == "seen":
            weights = image_weights(len(test), resamples)[:, subset]
            draws = resampled(*scored, dataset.class_group, weights)
            # rounded, as a product's sums depend on the processor; classes have none
            frame["draws"] = pd.Series(list(draws.round(6).astype(np.float32)))
        frames.append(frame.assign(task=name))
    if test.single_label:
        subsets["all"] = np.ones(len(test), bool)
        row = {"group": "overall", "metric": "accuracy"}
        for name, subset in subsets.items():
            scored = probabilities[subset[rows]], test.labels[subset]
            value = metrics.accuracy(*scored)
            frames.append(pd.DataFrame([row | {"value": value, "task": name}]))
    frame = pd.concat(frames, ignore_index=True).assign(trained_tasks=len(groups))
    columns = ["trained_tasks", "task", "group", "metric", "value"]
    return frame[[*columns, "draws"] if resamples else columns]


def with_run_columns(config: RunConfig, scores: pd.DataFrame) -> pd.DataFrame:
    """Add the columns of `Run.scores` that name the run."""
    columns = run_columns(config)
    return pd.concat([pd.DataFrame(columns, index=scores.index), scores], axis=1)
