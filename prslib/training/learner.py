"""Train a network batch by batch, score it, compute what samplers need from it."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from prslib import metrics
from prslib.checks import expected
from prslib.datasets import GROUPS, SequentialDataset, Split
from prslib.datasets.base import task_name
from prslib.losses import LOSSES
from prslib.models.networks import Staged
from prslib.resamples import image_draws, weighted_mean
from prslib.training import gradients
from prslib.training.config import RunConfig
from prslib.training.device import Captured, Inputs, is_apart, to_device
from prslib.training.ewc import EWC
from prslib.training.exstream_gpu import features_for
from prslib.training.rehearsal import Rehearsal, Rows, StepLoss
from prslib.training.replay import Replay
from prslib.training.validation import OWN, run_columns

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": partial(torch.optim.Adam, fused=True),
    "sgd": partial(torch.optim.SGD, momentum=0.9),
}

BY_CLASS = {"class_freq", "class_counts"}  # of `prslib.losses.CONTEXT`
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
        loss_options: dict[str, object] | None = None,
        rehearsal: Rehearsal | None = None,
    ):
        self.device = torch.device(device)
        self.is_half = precision == "bf16"
        # a GPU computes half precision fastest with the channels last in memory
        self.layout = torch.channels_last if self.is_half else torch.contiguous_format
        # torch's types leave memory_format out
        layout: Any = {"memory_format": self.layout}
        self.model = model.to(self.device, **layout)
        self.lower, self.upper = self.model.split(frozen_stages)
        self.lower.eval().requires_grad_(False)  # batch norm is frozen, too
        self.upper.train()
        self.parameters = list(self.upper.parameters())
        self.ewc = None
        if ewc_lambda is not None:
            self.ewc = EWC(self.upper.named_parameters(), ewc_lambda)
        make_optimizer = OPTIMIZERS[optimizer]
        if optimizer == "adam" and self.device.type == "cuda":
            make_optimizer = partial(make_optimizer, capturable=True)
        self.optimizer = make_optimizer(self.parameters, lr=learning_rate)
        row = LOSSES[loss]
        self._loss = row.with_options(loss_options or {})
        self._loss_asks = set(row.asks)
        self._counts = self._loss_asks - {"replayed"}  # known before the rows
        self._takes_weights = row.takes_weights
        self.activation = (
            partial(torch.softmax, dim=1) if row.one_label else torch.sigmoid
        )
        self.rehearsal = rehearsal  # None for the mean loss of all rows
        self._rehearsal_asks = set(rehearsal.asks if rehearsal else ())
        self.asks = self._loss_asks | self._rehearsal_asks
        self.context: dict[str, Any] = {}  # what is asked for, as of this step
        self.clip_value = clip_value
        self.norm_penalty = norm_penalty
        # steps that do the same every time
        self.captured = None
        if self.device.type == "cuda" and not (self.ewc or rehearsal or self.asks):
            self.captured = Captured(self._take_step, self.device)

    def step(
        self,
        inputs: Tensor,
        targets: Tensor,
        new: int | None = None,
        kept: dict[str, Tensor] | None = None,
    ) -> dict[str, Tensor]:
        """Take one step on the upper stages' inputs (B, ...) and targets (B, C).

        The first ``new`` rows are new, by default all. ``kept`` is what the memory
        keeps of the others beside their index; what it shall keep of the new ones is
        returned.
        """
        if self.captured:
            self.captured(inputs, targets)
            return {}
        return self._take_step(inputs, targets, new, kept)

    def _take_step(
        self, inputs: Tensor, targets: Tensor, *replay: Any
    ) -> dict[str, Tensor]:
        loss, columns = self.objective(inputs, targets, *replay)
        self.optimizer.zero_grad()
        loss.backward()
        if self.ewc:
            self.ewc.pull()
        self._clip()
        self.optimizer.step()
        if self.ewc:
            fisher = gradients.squared_gradients(self.upper, self.loss, inputs, targets)
            self.ewc.observe(fisher)
        return columns

    def _clip(self) -> None:
        """Clip every gradient at both sides."""
        if is_apart(self.device):
            nn.utils.clip_grad_value_(self.parameters, self.clip_value)
            return
        # on the host one pass over each is faster than two over all
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad.clamp_(-self.clip_value, self.clip_value)

    def autocast(self) -> torch.autocast:
        """Return the context of a forward pass."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.is_half)

    def objective(
        self,
        inputs: Tensor,
        targets: Tensor,
        new: int | None = None,
        kept: dict[str, Tensor] | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return what a step lowers, and what the memory shall keep of the new rows."""
        columns = {}
        if hasattr(self.upper, "objective"):  # the network adds terms of its own
            with self.autocast():
                network: Any = self.upper
                loss = network.objective(inputs, targets, self._loss_of)
        else:
            with self.autocast():
                logits = self.upper(inputs)
            logits = logits.float()  # losses are sums of small numbers
            new = len(logits) if new is None else new
            if self.rehearsal:
                rehearsal = self.rehearsal
                loss, columns = self._rehearse(
                    rehearsal, logits, targets, new, kept or {}
                )
            else:
                replayed = False
                if "replayed" in self._loss_asks:
                    replayed = torch.arange(len(logits), device=self.device) >= new
                loss = self.loss(logits, targets, replayed=replayed)
        if self.norm_penalty:
            norms = sum(p.square().sum() for p in self.parameters)
            loss = loss + self.norm_penalty * norms
        return loss, columns

    def loss(
        self,
        logits: Tensor,
        targets: Tensor,
        classes: Tensor | None = None,
        replayed: Tensor | bool = False,
    ) -> Tensor:
        """Return the loss of rows (B, C), as of this step's point of the stream.

        ``classes``, bool (C,), are those that it looks at, by default all; ``replayed``
        is bool (B,). A GPU is not waited for if ``classes`` lie on the host.
        """
        context = self._context_of(self._counts)
        if classes is not None:
            columns = to_device(classes.nonzero().flatten(), logits.device)
            logits = logits.index_select(1, columns)
            targets = targets.index_select(1, columns)
            for name in BY_CLASS & context.keys():
                context[name] = context[name][columns]
        if "replayed" in self._loss_asks:
            if isinstance(replayed, bool):  # filled there, as a copy would wait
                replayed = torch.full((), replayed, device=logits.device)
            context["replayed"] = replayed.expand(len(logits))
        return self._loss(logits, targets, **context)

    def _context_of(self, names: set[str]) -> dict[str, Any]:
        """Return what is asked for, as of this step; refuse to go on without it."""
        if not names:
            return {}
        if missing := names - self.context.keys():
            what = f"{', '.join(sorted(missing))} in the learner's context"
            raise ValueError(expected(what, "none", "set context before a step"))
        return {name: self.context[name] for name in names}

    def _loss_of(self, logits: Tensor, targets: Tensor) -> Tensor:
        return self.loss(logits.float(), targets)

    def _rehearse(
        self,
        rehearsal: Rehearsal,
        logits: Tensor,
        targets: Tensor,
        new: int,
        kept: dict[str, Tensor],
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the rehearsal's objective, and columns to keep of the new rows."""
        size = (len(logits) - new) // rehearsal.batches
        sizes = [size] * rehearsal.batches if size else []  # of the replay batches
        logits_of = logits.split_with_sizes([new, *sizes])
        targets_of = targets.split_with_sizes([new, *sizes])
        kept_of: list[dict[str, Tensor]] = [{} for _ in (new, *sizes)]
        for name, column in kept.items():
            parts = column.split_with_sizes(sizes)
            for rows, part in zip(kept_of[1:], parts, strict=True):
                rows[name] = part
        new_rows, *replays = map(Rows, logits_of, targets_of, kept_of)
        context = self._context_of(self._rehearsal_asks)
        at_once = None
        if self._takes_weights:
            at_once = partial(self._loss_at_once, logits, targets, [new, *sizes])
        step_loss = StepLoss(self.loss, [new_rows, *replays], at_once)
        loss = rehearsal.objective(step_loss, new_rows, replays, **context)
        return loss, rehearsal.columns(new_rows)

    def _loss_at_once(
        self,
        logits: Tensor,
        targets: Tensor,
        sizes: list[int],
        weights: Sequence[float],
        new_classes: Tensor | None = None,
    ) -> Tensor:
        """Return the weighted sum of the mean losses of batches of these sizes (K,)."""
        table = _label_weights(tuple(sizes), tuple(weights), logits.shape[1])
        if new_classes is not None:
            is_open = new_classes.numpy()
            of_row = np.float32(weights[0]) / np.float32(sizes[0])
            table = np.repeat(table, len(is_open), axis=1)  # (B, C)
            table[: sizes[0]] = is_open * (of_row / np.float32(max(is_open.sum(), 1)))
        of_label = to_device(torch.from_numpy(table), logits.device)
        context = self._context_of(self._counts)
        return self._loss(logits, targets, weights=of_label, **context)

    def blank_columns(self, count: int, num_classes: int) -> dict[str, Tensor]:
        """Return columns as the memory keeps of so many samples, of scores of 0."""
        if self.rehearsal is None:
            return {}
        zeros = torch.zeros(count, num_classes, device=self.device)
        return self.rehearsal.columns(Rows(zeros, zeros, {}))

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
        if replay is None or replayed is None or len(replayed) == 0:
            return self.encode(inputs[new]), labels[new]
        return replay.join(self.encode, inputs, labels, new, replayed)

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
        if is_apart(self.device) and floats.ndim == 4:
            # cuDNN follows either layout; another one would turn the weights around
            floats = floats.contiguous(memory_format=self.layout)
        return floats


@lru_cache(8)
def _label_weights(
    sizes: tuple[int, ...], weights: tuple[float, ...], num_classes: int
) -> np.ndarray:
    """Return each label's weight (B, 1) in the weighted sum of batches' means.

    Divided in the order of a mean's gradient, so that the last bit is the same.
    """
    of_row = np.array(weights, np.float32) / np.array(sizes, np.float32)  # (K,)
    return np.repeat(of_row / np.float32(num_classes), sizes)[:, None]


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
        encoded = learner.encode(inputs[rows])
        context["features"] = features_for(replay.sampler, encoded)
    if "gradient_products" in replay.sampler.needs:

        def products(subsets: np.ndarray) -> np.ndarray:
            """Compare memory subsets, slots (K, n), and the new samples (`GSS`)."""
            replayed = replay.memory.read(subsets.ravel())["index"]
            both = np.concatenate([replayed, rows])
            batch = learner.encode(inputs[both]), labels[both]
            network = learner.upper, learner.loss
            shape = subsets.shape
            table = gradients.gradient_products(
                *network, *batch, shape, learner.autocast
            )
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
    thresholds: dict[str, float] | None = None,
) -> pd.DataFrame:
    """Score the test sets of the tasks seen so far, joined and one by one (Table 1)."""
    # Tasks that are trained together form one of the groups. A row's task is "seen" for
    # the joined sets, "1" or "1+2". Some tasks' test set are the images with a label
    # among their classes, and those classes alone are scored: in an open test set an
    # image may count for several tasks. Single-label data add their accuracy, also on
    # the whole test set, "all", with tasks yet to come (Appendix).
    seen = tuple(task for group in groups for task in group)
    named = {"seen": seen} | {task_name(group): group for group in sorted(groups)}
    classes = {
        name: np.isin(dataset.class_task, group) for name, group in named.items()
    }
    subsets: dict[str, Any] = {
        name: test.labels[:, mask].any(axis=1) for name, mask in classes.items()
    }
    rows = np.flatnonzero(subsets["seen"] | test.single_label)
    probabilities = learner.probabilities(inputs, rows)
    # the test set itself, then its resamples
    weights = np.ones((1, len(test)))
    weights = np.concatenate([weights, image_draws(len(test), resamples)])
    frames = []
    for name, subset in subsets.items():
        scored = probabilities[subset[rows]]
        labels = test.labels[subset] & classes[name]
        decisions = []
        if resamples and name == "seen" and not test.single_label:
            decisions = further_decisions(scored, classes[name], thresholds)
        frame = metrics.evaluate_draws(
            scored,
            labels,
            dataset.class_names,
            dataset.class_group,
            weights[:, subset],
            decisions,
        )
        frames.append(frame.assign(task=name))
    if test.single_label:
        subsets["all"] = np.ones(len(test), bool)
        right = probabilities.argmax(axis=1) == test.labels[rows].argmax(axis=1)
        for name, subset in subsets.items():
            drawn = weighted_mean(right[subset], weights[:, subset])
            row = {"group": "overall", "metric": "accuracy", "task": name}
            frames.append(pd.DataFrame([row | {"draws": drawn}]))
    frame = pd.concat(frames, ignore_index=True).assign(trained_tasks=len(groups))
    frame["value"] = frame["draws"].map(lambda drawn: float(drawn[0]))
    return frame[["trained_tasks", "task", "group", "metric", "value", "draws"]]


def resampled_rows(scores: pd.DataFrame, class_draws: bool) -> pd.Series:
    """Tell which rows keep their resamples, which take most of a run's bytes."""
    task_by_task = scores["task"] != "seen"
    of_group = scores["group"].isin(["overall", *GROUPS])
    main = scores["metric"].isin([*metrics.MAIN_METRICS, "accuracy"])
    kept = of_group & (main | ~task_by_task)
    if class_draws:  # of a class on its own task's test set
        of_class = ~of_group & scores["metric"].isin(["F1", "AP"])
        kept |= of_class & task_by_task & scores["value"].notna()
    return kept


def further_decisions(
    probabilities: np.ndarray,
    classes: np.ndarray,
    thresholds: dict[str, float] | None,
) -> list[metrics.Decision]:
    """Predict labels (N, C) at other thresholds, and as the top of some classes."""
    top = metrics.top_classes(probabilities, classes)
    decisions = [(name, f"top {metrics.TOP}", top) for name in metrics.OWN_METRICS]
    for name, threshold in (thresholds or {}).items():
        decisions.append((name, OWN, probabilities > threshold))
    return decisions


def with_run_columns(config: RunConfig, scores: pd.DataFrame) -> pd.DataFrame:
    """Add the columns of `Run.scores` that name the run."""
    columns = run_columns(config)
    return pd.concat([pd.DataFrame(columns, index=scores.index), scores], axis=1)
