"""Train the MLP in plain numpy, for the search over thousands of class orders.

`prslib.run` takes about five times as long on one core, stacked runs about twice as long
(`bench/many.py`).
"""

import os
from collections.abc import Sequence

import numpy as np
import pandas as pd
from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor
from threadpoolctl import threadpool_limits

from prslib.datasets import SequentialDataset, load_dataset
from prslib.datasets.base import task_name, tasks_together
from prslib.paths import ending_with_us
from prslib.training import CHOICES
from prslib.training.config import RunConfig, check_all
from prslib.training.replay import plan
from prslib.training.run import initial_model

MOMENTUM = 0.9  # as OPTIMIZERS["sgd"] has it
CHUNK = 50  # runs a process takes at once
KNOWN = {"model": "mlp", "optimizer": "sgd", "loss": "cross_entropy", "precision": "fp32"}


class Network:
    """A fully connected ReLU network in float32 and its SGD; all weights lie in one vector."""

    def __init__(self, tensors: Sequence[np.ndarray], learning_rate, clip_value, norm_penalty):
        self.flat = np.concatenate([t.ravel() for t in tensors]).astype(np.float32)
        self.gradient, self.velocity = np.zeros_like(self.flat), np.zeros_like(self.flat)
        ends = np.cumsum([t.size for t in tensors])[:-1]
        self.tensors, self.gradients = (
            [part.reshape(t.shape) for part, t in zip(np.split(flat, ends), tensors, strict=True)]
            for flat in (self.flat, self.gradient)  # views
        )
        self.learning_rate = np.float32(learning_rate)
        self.clip_value, self.norm_penalty = np.float32(clip_value), np.float32(norm_penalty)

    def activations(self, images: np.ndarray) -> list[np.ndarray]:
        """Return what each layer gives, images (B, D) first and logits (B, C) last."""
        layers = [images]
        for i in range(0, len(self.tensors), 2):
            values = layers[-1] @ self.tensors[i].T
            values += self.tensors[i + 1]
            if i + 2 < len(self.tensors):
                np.maximum(values, 0, out=values)
            layers.append(values)
        return layers

    def step(self, images: np.ndarray, classes: np.ndarray) -> None:
        """Take one step on a batch: float32 images (B, D), int64 classes (B,)."""
        *layers, error = self.activations(images)
        error -= error.max(axis=1, keepdims=True)
        np.exp(error, out=error)
        error /= error.sum(axis=1, keepdims=True)
        error[np.arange(len(classes)), classes] -= 1
        error /= len(classes)  # gradient of the mean cross-entropy at the logits
        for i in range(len(self.tensors) - 2, -1, -2):
            np.matmul(error.T, layers[-1], out=self.gradients[i])
            error.sum(axis=0, out=self.gradients[i + 1])
            if i:
                error = (error @ self.tensors[i]) * (layers.pop() > 0)
        self.gradient += (2 * self.norm_penalty) * self.flat
        np.clip(self.gradient, -self.clip_value, self.clip_value, out=self.gradient)
        self.velocity *= np.float32(MOMENTUM)
        self.velocity += self.gradient
        self.flat -= self.learning_rate * self.velocity


class Loop:
    """Train runs on one data set; runs that begin with the same steps share them."""

    def __init__(self, dataset: SequentialDataset):
        self.dataset = dataset
        self.train = _as_vectors(dataset.train.images)
        self.tests = {name: _as_vectors(split.images) for name, split in dataset.tests.items()}
        self.classes = dataset.train.labels.argmax(axis=1)
        self._start, self._trail = None, []  # of the run before: its beginning, state after a task

    def accuracies(self, config: RunConfig) -> np.ndarray:
        """Train and return the accuracy on the whole test set after every task."""
        settings = config.resolved
        for name, known in ({"dataset": self.dataset.name} | KNOWN).items():
            if settings[name] != known:
                raise ValueError(
                    f"expected {name} {known!r}, which is all this loop knows, got "
                    f"{settings[name]!r}; train it with prslib.run"
                )
        state = initial_model(config, self.dataset).state_dict()
        training = {k: settings[k] for k in ("learning_rate", "clip_value", "norm_penalty")}
        network = Network([tensor.numpy() for tensor in state.values()], **training)
        start = training, settings["test_set"], network.flat.tobytes()
        if start != self._start:
            self._start, self._trail = start, []
        at_once = settings["tasks_at_once"]
        values = np.full(len(tasks_together(settings["schedule"], at_once)), np.nan)
        for depth, part in enumerate(plan(config, self.dataset)[0]):
            values[len(tasks_together(part.seen, at_once)) - 1] = self._fit(
                network, depth, part.batches, settings["test_set"]
            )
        return values

    def _fit(self, network: Network, depth: int, batches, test_set: str) -> float:
        """Take the steps of one part, or take over what the run before reached by the same ones."""
        steps = [len(batch) for batch in batches], np.concatenate(batches, axis=None).tobytes()
        if depth < len(self._trail) and self._trail[depth][0] == steps:
            _, network.flat[:], network.velocity[:], value = self._trail[depth]
            return value
        for batch in batches:
            network.step(self.train[batch], self.classes[batch])
        predicted = network.activations(self.tests[test_set])[-1].argmax(axis=1)
        value = (predicted == self.dataset.tests[test_set].labels.argmax(axis=1)).mean()
        kept = steps, network.flat.copy(), network.velocity.copy(), value
        self._trail = [*self._trail[:depth], kept]
        return value


def _as_vectors(images: np.ndarray) -> np.ndarray:
    """Return images as float32 (N, D) in [0, 1], channels first."""
    vectors = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    return np.divide(vectors, 255, dtype=np.float32)


def progressions(configs: Sequence[RunConfig], workers: int | None = None) -> pd.DataFrame:
    """Return the accuracy of many runs on one data set after every task, in percent."""
    check_all(configs)
    rows = []
    for config, run in zip(configs, _train(configs, workers or cpu_count()), strict=True):
        settings, variant = config.resolved, config.identity.get("variant", "")
        groups = tasks_together(settings["schedule"], settings["tasks_at_once"])
        schedule = ",".join(map(task_name, groups))
        rows += [
            (config.dataset, config.method, variant, schedule, config.seed, i + 1, 100 * value)
            for i, value in enumerate(run)
            if np.isfinite(value)
        ]
    columns = ["dataset", "method", "variant", "schedule", "seed", "trained_tasks", "value"]
    return pd.DataFrame(rows, columns=columns)


def _train(configs: Sequence[RunConfig], workers: int) -> np.ndarray:
    chunks = [configs[start : start + CHUNK] for start in range(0, len(configs), CHUNK)]
    # numpy's products round as its variable says when numpy is loaded: only in new processes
    chosen = {name: os.environ[name] for name in CHOICES if name in os.environ}
    workers = min(workers, len(chunks))
    with ProcessPoolExecutor(workers, env=chosen, **ending_with_us()) as pool:
        return np.concatenate(list(pool.map(_train_chunk, chunks)))


def _train_chunk(configs: list[RunConfig]) -> np.ndarray:
    with threadpool_limits(1):  # many runs side by side are faster than one on all cores
        loop = Loop(load_dataset(configs[0].dataset))
        return np.stack([loop.accuracies(config) for config in configs])
