"""Train runs of one shape together: their networks are stacked, one row of every weight a run."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from prslib.datasets import SequentialDataset, load_dataset
from prslib.datasets.base import tasks_together
from prslib.models import MODELS
from prslib.training.checkpoint import Progress
from prslib.training.config import Run, RunConfig
from prslib.training.device import place
from prslib.training.learner import Learner, score_tasks
from prslib.training.methods import METHODS
from prslib.training.replay import Part, make_replay, stream_of
from prslib.training.run import conditions, finished, make_learner, shown_images


class Stack(nn.Module):
    """Hold networks of one architecture as one; every weight has one more dimension, the run."""

    def __init__(self, models: Sequence[nn.Module], norm_penalty: float):
        super().__init__()
        weights, state = stack_module_state(list(models))
        if state:
            raise ValueError(
                f"expected networks that are their weights and no more, got {', '.join(state)} "
                "besides; train such runs one by one"
            )
        self.names, self.count, self.norm_penalty = list(weights), len(models), norm_penalty
        self.rows = nn.ParameterList(weights.values())
        self._pattern = (models[0],)  # in a tuple: its weights are not ours

    def weights_of(self, run: int) -> dict[str, Tensor]:
        """Return one network's weights, as its ``state_dict`` has them."""
        return {name: rows[run].detach() for name, rows in zip(self.names, self.rows, strict=True)}

    def objective(self, inputs: Tensor, targets: Tensor, loss: Callable) -> Tensor:
        """Return the sum of all runs' losses; inputs (K * B, ...), the first run's batch first."""

        def one(weights: dict[str, Tensor], inputs: Tensor, targets: Tensor) -> Tensor:
            value = loss(functional_call(self._pattern[0], weights, (inputs,)), targets)
            return value + self.norm_penalty * sum(w.square().sum() for w in weights.values())

        weights = dict(zip(self.names, self.rows, strict=True))
        batches = (tensor.unflatten(0, (self.count, -1)) for tensor in (inputs, targets))
        return vmap(one)(weights, *batches).sum()


def shape(config: RunConfig) -> tuple | None:
    """Return what runs trained together must share; None for a run that must be trained alone."""
    settings, method = config.resolved, METHODS[config.method]
    watched = config.variance_points or config.frozen_stages
    if method.looks_at_model or method.ewc or watched or not MODELS[settings["model"]].stacks:
        return None
    common = ("dataset", "model", "test_set", "learning_rate", "batch_size", "precision")
    replayed = min(settings["memory_size"], settings["replay_batch_size"]) if method.sampler else 0
    return (*(settings[name] for name in common), replayed, settings["epochs"] * method.offline)


def run_stacked(configs: Sequence[RunConfig], device: str = "cpu") -> list[Run]:
    """Train runs of one shape together and score each; results differ from `run` by rounding."""
    shapes = {shape(config) for config in configs}
    if len(shapes) != 1 or None in shapes:
        raise ValueError(
            "run_stacked: expected runs of one shape (prslib.experiments.stacked.shape), got "
            f"{len(shapes)} shapes; train them with run_all, which sorts them"
        )
    dataset = load_dataset(configs[0].dataset)
    for config in configs:
        config.check(dataset)
    with conditions(configs[0]):
        return _run_stacked(configs, dataset, device)


def _run_stacked(
    configs: Sequence[RunConfig], dataset: SequentialDataset, device: str
) -> list[Run]:
    settings, train = configs[0].resolved, dataset.train
    test = dataset.tests[settings["test_set"]]
    shown = [shown_images(config, dataset) for config in configs]
    images, test_images = place(train.images, device), place(test.images, device)
    labels = torch.from_numpy(train.labels).float().to(device)
    runs = [Progress(make_learner(c, dataset, device), make_replay(c, dataset)) for c in configs]
    streams = [stream_of(c, dataset, run.replay) for c, run in zip(configs, runs, strict=True)]
    stack = Stack([run.learner.model for run in runs], settings["norm_penalty"])
    training = ("optimizer", "learning_rate", "loss", "clip_value", "precision")
    learner = Learner(stack, **{name: settings[name] for name in training}, device=device)
    ends = [np.cumsum([len(part.batches) for part in stream]) for stream in streams]
    plan, taken = side_by_side(streams), 0
    for end in np.unique(np.concatenate(ends)):
        learner.fit(images, labels, plan[taken:end])
        taken = end
        for k, run in enumerate(runs):
            for i in np.flatnonzero(ends[k] == end):
                run.learner.model.load_state_dict(stack.weights_of(k))
                groups = tasks_together(streams[k][i].seen, settings["tasks_at_once"])
                more = groups, settings["test_resamples"], configs[k].macro_auc
                scores = score_tasks(run.learner, test_images, test, dataset, *more)
                run.finish_part({settings["test_set"]: scores})
    each = zip(configs, runs, shown, strict=True)
    return [finished(config, dataset, run, test_images, rows) for config, run, rows in each]


def side_by_side(streams: Sequence[Sequence[Part]]) -> list[np.ndarray]:
    """Join the batches (K * B,) of every step; a run that has ended repeats its last batch."""
    plans = [[batch for part in stream for batch in part.batches] for stream in streams]
    return [
        np.concatenate([plan[min(step, len(plan) - 1)] for plan in plans])
        for step in range(max(map(len, plans)))
    ]
