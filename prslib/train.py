"""Train a method on a stream and score it after every task: the protocol on a page.

From top to bottom, the module defines the methods (Table 1), the configuration of a run
(`RunConfig`), the run (`run`), the order of the stream, and the step on one batch
(`Trainer.step`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from functools import lru_cache, partial
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.utils import clip_grad_value_

from prslib.checks import check_int, expected, finite, flag, one_of, power
from prslib.datasets import DATASETS, SequentialDataset, fingerprint, load_dataset
from prslib.datasets.base import (
    draw_schedule,
    schedule_text,
    task_name,
    tasks_together,
    validate_schedule,
)
from prslib.datasets.curation import feature_rows
from prslib.device import (
    Captured,
    check_device,
    describe_device,
    has_room,
    put,
    run_settings,
    send,
    take,
)
from prslib.gradients import (
    EWC,
    gradient_products,
    gradient_variance,
    sample_gradients,
)
from prslib.losses import LOSSES, Stream
from prslib.memory import Memory
from prslib.metrics import best_thresholds
from prslib.models import MODELS
from prslib.models.networks import Staged, make_model
from prslib.models.weights import (
    EMBEDDED,
    NONE,
    check_weights,
    file_of,
    identity_of,
    weights_for_seed,
)
from prslib.rounding import set_deterministic
from prslib.samplers import SAMPLERS
from prslib.scoring import keeps_draws, score_batch, score_test

set_deterministic()  # before the first sum: whoever trains imports this module

HELD_OUT = 5  # one in five samples is held out to choose thresholds
HELD_OUT_KEY = 1001  # spawns the generator that draws them
TESTED_AT_ONCE = 256  # images; with 256x256 pixels, their activations fill a few GB
# fields of `RunConfig` that are at least 1; other numbers except `rho` are at least 0
COUNTS = {"memory_size", "tasks_at_once", "epochs", "updates"}
COUNTS |= {"batch_size", "replay_batch_size"}
Groups = list[tuple[int, ...]]  # of tasks that are trained together


@dataclass(frozen=True, kw_only=True)
class Method:
    """A training method: a sampler, and the way a step uses its memory (Table 1).

    Parameters
    ----------
    sampler : str or None
        Key of `SAMPLERS`; None for a method without a memory.
    offline : bool
        Whether all tasks are shuffled and trained together.
    frozen : str or None
        Name of the field of `RunConfig` that sets how many stages of the network are
        not trained: "pretrained_stages" or "vector_stages". None if the method trains
        all stages.
    ewc : bool
        Whether EWC's penalty is added to the loss.
    rehearsal : str
        How the losses of new and replayed samples are combined: "mean", "der++" or
        "er-ace".

    Raises
    ------
    ValueError
        If ``rehearsal`` or ``frozen`` is unknown.

    See Also
    --------
    prslib.register : Registers a method under a name.

    Examples
    --------
    >>> Method(sampler="prs", rehearsal="der++").takes_rho
    True
    """

    sampler: str | None = None
    offline: bool = False
    frozen: str | None = None
    ewc: bool = False
    rehearsal: str = "mean"

    def __post_init__(self) -> None:
        """Refuse unknown names; a sampler may be registered later."""
        one_of("rehearsal", self.rehearsal, ["mean", "der++", "er-ace"])
        if self.frozen is not None:
            one_of("frozen", self.frozen, ["pretrained_stages", "vector_stages"])

    @property
    def takes_rho(self) -> bool:
        """Whether the sampler has the power of allocation rho, Eq. (1)."""
        if self.sampler is None:
            return False
        return "rho" in options_of(SAMPLERS[self.sampler])

    @property
    def options(self) -> set[str]:
        """The sampler's options that `RunConfig.options` accepts: not rho or unlabelled."""
        if self.sampler is None:
            return set()
        return {*options_of(SAMPLERS[self.sampler])} - {"rho", "unlabelled"}

    @property
    def reads(self) -> set[str]:
        """Fields of `RunConfig` that this method reads and some other methods do not."""
        memory = {"memory_size", "replay_batch_size", "variance_points", "draw"}
        names = memory | {"options"} if self.sampler else set()
        names |= {"rho"} if self.takes_rho else set()
        names |= {self.frozen} if self.frozen else set()
        names |= {"ewc_lambda"} if self.ewc else set()
        names |= {"alpha", "beta"} if self.rehearsal == "der++" else set()
        return names if self.offline else names | {"schedule"}


# The paper freezes its network for two methods. For EWC, it is frozen up to the
# penultimate layer, because "otherwise, it works poorly". The frozen stages were
# trained on ImageNet; because random weights are not worth keeping, only stages with
# learned weights are frozen here. For ExStream, the network is frozen through the
# second residual block, whatever its weights, because stored vectors go stale when the
# layers below them learn.
METHODS = {
    "Multitask": Method(offline=True),
    "Finetune": Method(),
    "EWC": Method(ewc=True, frozen="pretrained_stages"),
    "CRS": Method(sampler="crs"),
    "GSS": Method(sampler="gss"),
    "ExStream": Method(sampler="exstream", frozen="vector_stages"),
    "PRS": Method(sampler="prs"),
    "CBRS": Method(sampler="cbrs"),
    "OCDM": Method(sampler="ocdm"),
    "DER++": Method(sampler="crs", rehearsal="der++"),
    "ER-ACE": Method(sampler="crs", rehearsal="er-ace"),
}


@lru_cache
def options_of(sampler: type) -> tuple[str, ...]:
    """Return the parameters of a sampler except size, number of classes and seed."""
    return tuple(signature(sampler).parameters)[3:]


def unread_fields(method: str) -> set[str]:
    """Return fields that other methods read and this one does not, such as rho for CRS."""
    read = set().union(*(row.reads for row in METHODS.values()))
    return read - METHODS[method].reads


@dataclass
class RunConfig:
    """Configuration of a training run (Sec. 6.1).

    On one device, two runs with equal configurations, data and code give identical
    results. Values are validated on creation. A field that is None has the value in the
    data set's `prslib.datasets.Recipe`.

    Parameters
    ----------
    dataset, method : str
        Keys of `DATASETS` and `METHODS`.
    seed : int
        Seed for the order of the stream, the sampler, the replay batches and the
        initial weights.
    rho : float or None
        Power of allocation of PRS and OCDM, Eq. (1).
    memory_size : int or None
        Capacity of the memory m, in samples.
    schedule : tuple of int or None
        Order of the tasks. On single-label data sets, every class is a task, and two
        classes are trained at a time. By default, the seed determines a random order of
        these tasks, because the paper does not publish the order that it used.
    tasks_at_once : int or None
        Number of tasks that are trained together.
    epochs : int
        Number of passes over each task. The sampler receives the samples only in the
        first pass.
    model : str or None
        Key of `MODELS`.
    weights : str or None
        Initial weights of the model: "none" for random weights, one of the model's
        `Architecture.published_weights`, or a file with a state dict. "digits" stands for
        five pretrained networks, which the seeds use in rotation. Models without
        published weights ignore this field.
    frozen_stages : int
        Number of stages of the model that are frozen for every method. A method may
        freeze further stages.
    pretrained_stages, vector_stages : int or None
        Number of stages that EWC freezes, and number of stages that ExStream freezes;
        by default, these numbers depend on the model.
    optimizer : {"adam", "sgd"} or None
        Optimizer; "sgd" has a momentum of 0.9.
    learning_rate : float or None
        Step size of the optimizer.
    adam_eps : float
        Epsilon of Adam.
    clip_value : float or None
        Bound on the absolute value of each entry of the gradient.
    norm_penalty : float or None
        Weight of the sum of the parameters' squared 2-norms in the loss.
    loss : str or None
        Key of `LOSSES`.
    loss_options : dict
        Options of the loss.
    batch_size, replay_batch_size : int or None
        Number of new samples and number of replayed samples per step.
    updates : int
        Number of gradient steps per batch, each of which uses a new replay batch.
    draw : {"uniform", "balanced"}
        Whether each replay batch is drawn uniformly from all samples or balanced over
        classes.
    precision : {"fp32", "bf16"} or None
        Arithmetic of the forward pass.
    options : dict
        Options of the method's sampler other than ``rho``.
    ewc_lambda : float or None
        Strength of EWC's penalty.
    alpha, beta : float
        Weights of DER++: ``alpha`` is the weight of the distance between logits, and
        ``beta`` the weight of the loss of the second replay batch.
    test_resamples : int or None
        Number of bootstrap resamples of each test set, for intervals.
    tuned_threshold : bool
        Whether F1 is also scored at tuned thresholds. If so, a second model is trained
        on 80 % of the stream. After each task, the other 20 % are used to select the
        threshold with the highest overall C-F1 of this model, and the threshold with
        its highest overall O-F1. This almost doubles the training time.
    variance_points : int
        Number of points in the stream at which the gradient variance is measured.
    features_per_class : int
        Maximum number of test samples per class whose features are stored in
        `Run.features`.
    predictions : bool
        Whether the probabilities of all test samples are stored in `Run.predictions`.
    prequential : bool
        Whether each batch is scored before the network is trained on it.

    Raises
    ------
    ValueError
        If a name or an option is unknown, if a number is out of range, or if the model,
        the loss, the sampler and the method cannot be combined.
    TypeError
        If a value is not a number where a number is expected.
    FileNotFoundError
        If ``weights`` is neither a known name nor a file.

    See Also
    --------
    run : Trains a configuration.
    configs : Makes the configurations of a grid.

    Examples
    --------
    >>> config = RunConfig("digits70tiny", "CRS", epochs=2)
    >>> config.resolved["memory_size"], config.resolved["epochs"]
    (50, 2)
    """

    dataset: str = "digits70seq"
    method: str = "PRS"
    seed: int = 0
    rho: float | None = None
    memory_size: int | None = None
    schedule: tuple[int, ...] | None = None
    tasks_at_once: int | None = None
    epochs: int = 1
    model: str | None = None
    weights: str | None = None
    frozen_stages: int = 0
    pretrained_stages: int | None = None
    vector_stages: int | None = None
    optimizer: str | None = None
    learning_rate: float | None = None
    adam_eps: float = 1e-8
    clip_value: float | None = None
    norm_penalty: float | None = None
    loss: str | None = None
    loss_options: dict[str, Any] = field(default_factory=dict)
    batch_size: int | None = None
    replay_batch_size: int | None = None
    updates: int = 1
    draw: str = "uniform"
    precision: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    ewc_lambda: float | None = None
    alpha: float = 0.1
    beta: float = 0.5
    test_resamples: int | None = None
    tuned_threshold: bool = False
    variance_points: int = 0
    features_per_class: int = 0
    predictions: bool = False
    prequential: bool = False

    def __post_init__(self) -> None:
        """Refuse unknown names, and values that would silently give wrong results."""
        one_of("dataset", self.dataset, DATASETS)
        one_of("method", self.method, METHODS)
        sampler = METHODS[self.method].sampler
        if sampler is not None:
            one_of("sampler", sampler, SAMPLERS)
        for row in fields(self):
            value = getattr(self, row.name)
            if value is None:
                continue
            if row.type in (int, int | None):
                least = 1 if row.name in COUNTS else 0
                value = check_int(row.name, value, least=least)
            elif row.name == "rho":
                value = power("rho", value)
            elif row.type in (float, float | None):
                value = finite(row.name, value, least=0)
            elif row.type is bool:
                value = flag(row.name, value)
            setattr(self, row.name, value)  # 1, 1.0 and numpy's 1 are the same
        if self.schedule is not None:
            tasks = len(DATASETS[self.dataset].recipe.schedule)
            self.schedule = validate_schedule(self.schedule, tasks)
        settings = self.resolved
        one_of("model", settings["model"], MODELS)
        one_of("loss", settings["loss"], LOSSES)
        one_of("optimizer", settings["optimizer"], ["adam", "sgd"])
        one_of("precision", settings["precision"], ["fp32", "bf16"])
        one_of("draw", self.draw, ["uniform", "balanced"])
        for name in self.loss_options:
            one_of("loss option", name, LOSSES[settings["loss"]].options)
        for name in self.options:
            one_of("option", name, METHODS[self.method].options)
        self._check_model(settings)

    def _check_model(self, settings: dict[str, Any]) -> None:
        """Refuse a network, weights or a loss that are not made for each other."""
        name, weights = settings["model"], settings["weights"]
        model, method = MODELS[name], METHODS[self.method]
        check_weights(name, weights, model.published_weights)
        first_weights = file_of(weights_for_seed(weights, self.seed))
        tests_on_them = DATASETS[self.dataset].tests_on_pretrained
        if tests_on_them and first_weights in EMBEDDED.values():
            what = f"weights that have not learned from test images of {self.dataset}"
            raise ValueError(expected(what, weights, f"choose {NONE!r}"))
        sampler = SAMPLERS[method.sampler] if method.sampler else None
        if method.rehearsal == "der++" and hasattr(sampler, "vectors"):
            what = f"a sampler that stores samples for {self.method}"
            advice = "logits of samples do not belong to merged vectors"
            raise ValueError(expected(what, method.sampler, advice))
        rehearses = method.rehearsal != "mean"
        if rehearses and settings["loss"].startswith("weighted_replay"):
            what = f"a loss of new and replayed samples alike for {method.rehearsal}"
            raise ValueError(expected(what, settings["loss"]))
        if model.objective_for is None:
            return
        if settings["loss"] != model.objective_for:
            what = f"a data set trained with {model.objective_for} for model {name}"
            raise ValueError(expected(what, settings["loss"]))
        if rehearses or method.ewc or method.sampler == "gss" or self.variance_points:
            what = f"a network whose loss is a sum over samples for {self.method}"
            raise ValueError(expected(what, name, "leave out variance_points, too"))

    @property
    def resolved(self) -> dict[str, Any]:
        """Values of all fields; values of the data set's recipe replace None."""
        recipe = dict(vars(DATASETS[self.dataset].recipe))
        if recipe["schedule_drawn"]:
            recipe["schedule"] = draw_schedule(len(recipe["schedule"]), self.seed)
        own = {k: value for k, value in vars(self).items() if value is not None}
        model = MODELS[one_of("model", own.get("model", recipe["model"]), MODELS)]
        weights = own.get("weights", model.begins_with(recipe["weights"]))
        weights = weights if model.published_weights else NONE
        recipe["pretrained_stages"] = model.pretrained_stages(weights)
        recipe["vector_stages"] = model.vector_stages
        values = recipe | own | {"weights": weights}
        return {row.name: values[row.name] for row in fields(RunConfig)}

    @property
    def identity(self) -> dict[str, Any]:
        """Values of the fields that the method reads; the run's key depends on them."""
        unread = unread_fields(self.method)
        values = {k: value for k, value in self.resolved.items() if k not in unread}
        values["weights"] = identity_of(weights_for_seed(values["weights"], self.seed))
        return values

    @property
    def columns(self) -> dict[str, Any]:
        """Values of the columns of `Run.scores` that identify the run."""
        identity = self.identity
        schedule = identity.get("schedule", ())
        return {
            "dataset": self.dataset,
            "method": self.method,
            "rho": identity.get("rho", np.nan),
            "memory_size": identity.get("memory_size", 0),
            "schedule": schedule_text(schedule, identity["tasks_at_once"]),
            "seed": self.seed,
        }

    def __str__(self) -> str:
        """Return text such as "PRS rho=0.1 on cocoseq-mini, seed 2"."""
        rho = f" rho={self.resolved['rho']:g}" if METHODS[self.method].takes_rho else ""
        return f"{self.method}{rho} on {self.dataset}, seed {self.seed}"


@dataclass
class Run:
    """Result of a training run: scores, memory and further measurements (Table 1).

    Parameters
    ----------
    config : RunConfig
        Configuration of the run.
    scores : DataFrame
        One row per score after each task. The columns dataset, method, rho, memory_size,
        schedule and seed identify the run. They are followed by test_set, trained_tasks
        (number of tasks trained so far), task ("seen" for all tasks so far), group,
        metric and value in [0, 1]. A method without a memory has memory_size 0. A
        schedule is written "0,3,1,2", or "1+2,3+4" for tasks that are trained together.
    memory_labels : ndarray of bool of shape (memory_size, n_classes)
        Labels in memory after the last task; no rows for a method without a memory. A
        vector of ExStream is one row with one label.
    resampled : DataFrame or None
        Scores on bootstrap resamples of the test sets, float16 in [0, 1]. There is one
        column per resample and one row per main score of a group or class. The row of a
        score has the same index as in ``scores``. None if `RunConfig.test_resamples` is
        0.
    features : dict of str to ndarray of float32 of shape (n_samples, n_features)
        Input of the head after the last task, by test set, for the samples that
        `prslib.datasets.curation.feature_rows` selects. Empty unless
        `RunConfig.features_per_class` is set.
    predictions : dict of str to ndarray of float32 of shape (n_samples, n_classes)
        Probability of every class for every sample after the last task, by test set.
        Empty unless `RunConfig.predictions` is set.
    gradient_variance : DataFrame or None
        Columns that identify the run, followed by images (number of images in the
        stream so far), samples (number of samples in memory) and value. None unless
        `RunConfig.variance_points` is set.
    prequential : DataFrame or None
        Columns that identify the run, followed by images (number of images in the
        stream before the batch), metric and value. None unless `RunConfig.prequential`
        is set.
    record : dict of str to str
        Device; name of the GPU, or kind of CPU; versions of PyTorch and NumPy.

    See Also
    --------
    scores : Final scores of runs in one frame, in percent.
    compare : Difference of two methods with its interval.
    """

    config: RunConfig
    scores: pd.DataFrame
    memory_labels: np.ndarray
    resampled: pd.DataFrame | None = None
    features: dict[str, np.ndarray] = field(default_factory=dict)
    predictions: dict[str, np.ndarray] = field(default_factory=dict)
    gradient_variance: pd.DataFrame | None = None
    prequential: pd.DataFrame | None = None
    record: dict[str, str] = field(default_factory=dict)


def run(config: RunConfig, device: str = "cpu") -> Run:
    """Train on a stream, and score on every test set after every task (Algorithm 1).

    Nothing is stored; `run_all` stores runs and trains only missing ones.

    Parameters
    ----------
    config : RunConfig
        Configuration of the run.
    device : str
        "cpu", "cuda", "cuda:1" for the second GPU, "mps", or "auto" for a GPU if there
        is one.

    Returns
    -------
    Run
        Scores after every task, and the memory at the end.

    Raises
    ------
    ValueError
        Before any training, if the configuration does not fit its data set or the device
        is not available.
    FloatingPointError
        If the loss is no longer finite.

    See Also
    --------
    run_all : Trains several configurations in parallel and stores the runs.

    Notes
    -----
    A run uses one thread, because many runs in parallel are faster in total than one
    run on all cores. On a CPU, the same configuration gives the same bytes on every
    x86-64 machine with AVX2, if the packages have the same versions. On a GPU, float32
    is never rounded to TF32.

    Examples
    --------
    >>> result = run(RunConfig("digits70tiny", "PRS", seed=0))
    >>> result.memory_labels.shape
    (50, 70)
    >>> final = result.scores.query("task == 'seen' and group == 'overall'")
    >>> sorted(final["test_set"].unique())
    ['balanced', 'imbalanced']
    """
    place = torch.device(check_device(str(device)))
    set_deterministic()
    data, inputs = load_inputs(config.dataset, fingerprint(config.dataset), place)
    check(config, data)
    with run_settings(place), torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)  # for random layers, such as dropout
        return train_and_score(config, data, inputs, place)


def train_and_score(
    config: RunConfig,
    data: SequentialDataset,
    inputs: dict[str, Tensor],
    device: torch.device,
) -> Run:
    """Train, measure and score one configuration."""
    resamples = config.resolved["test_resamples"]
    thresholds: dict[int, dict[str, float]] = {}
    if config.tuned_threshold:
        thresholds = choose_thresholds(config, data, inputs, device)
    trainer = Trainer(config, data, inputs["train"], device)
    segments = list(stream(config, data.train.task))
    steps = sum(len(batches) for _, batches, _ in segments)
    points = np.linspace(0, steps, config.variance_points + 1).round().astype(int)[1:]
    rows, variances, prequential = [], [], []
    for groups, batches, in_first in segments:
        for new, is_first in zip(batches, in_first, strict=True):
            if config.prequential and is_first:
                probabilities = trainer.probabilities(inputs["train"], new)
                scored = score_batch(probabilities, data.train.labels[new], data)
                prequential += [(trainer.seen, *row) for row in scored]
            trainer.step(new, is_first)
            if trainer.sampler is not None and trainer.steps in points:
                variances.append(trainer.variance())
        for name, test in data.tests.items():
            predict = partial(trainer.probabilities, inputs[name])
            chosen = thresholds.get(len(groups), {}).items()
            scored = score_test(predict, test, data, groups, resamples, chosen)
            rows += [(name, len(groups), *row) for row in scored]
    columns = ["test_set", "trained_tasks", "task", "group", "metric", "draws"]
    scores = pd.DataFrame(rows, columns=columns)
    draws = scores.pop("draws")
    scores["value"] = [float(values[0]) for values in draws]
    run = Run(config, name_rows(config, scores), trainer.memory_labels())
    run.record = describe_device(str(device))
    if resamples:
        drawn = draws[keeps_draws(scores)]
        # float16 rounds by at most 0.02 points; the first draw is the score itself
        values = np.stack(drawn)[:, 1:].astype(np.float16)
        run.resampled = pd.DataFrame(values, drawn.index)
    if config.features_per_class:
        for name, test in data.tests.items():
            kept = feature_rows(test, config.features_per_class)
            features = trainer.predict(trainer.model.features, inputs[name], kept)
            run.features[name] = features.numpy()
    if config.predictions:
        for name, test in data.tests.items():
            everything = np.arange(len(test))
            run.predictions[name] = trainer.probabilities(inputs[name], everything)
    if variances:
        table = pd.DataFrame(variances, columns=["images", "samples", "value"])
        run.gradient_variance = name_rows(config, table)
    if prequential:
        table = pd.DataFrame(prequential, columns=["images", "metric", "value"])
        run.prequential = name_rows(config, table)
    return run


def name_rows(config: RunConfig, rows: pd.DataFrame) -> pd.DataFrame:
    """Add the columns that identify the run."""
    names = pd.DataFrame(config.columns, index=rows.index)
    return pd.concat([names, rows], axis=1)


def check(config: RunConfig, data: SequentialDataset) -> None:
    """Raise ValueError if a configuration does not fit its data set."""
    settings = config.resolved
    one_label = LOSSES[settings["loss"]].one_label
    if one_label and not data.train.single_label:
        what = f"a loss of several labels per sample for {config.dataset}"
        raise ValueError(expected(what, settings["loss"]))
    validate_schedule(settings["schedule"], data.num_tasks)
    left_out = draw_held_out(config, data) if config.tuned_threshold else ()
    for groups, batches, _ in stream(config, data.train.task, left_out):
        if len(batches) == 0:
            what = f"batch_size up to the samples of task {task_name(groups[-1])}"
            raise ValueError(expected(what, settings["batch_size"]))
        for name, test in data.tests.items():
            for group in groups:
                classes = np.isin(data.class_task, group)
                if not test.labels[:, classes].any():
                    what = f"a sample of task {task_name(group)} in the test set {name}"
                    raise ValueError(expected(what, "none"))


def spawn_seeds(config: RunConfig) -> list[np.random.SeedSequence]:
    """Return the seeds of a run's stream, sampler, replay and model."""
    return np.random.SeedSequence(config.seed).spawn(4)


def stream(
    config: RunConfig, task: np.ndarray, left_out: Sequence[int] | np.ndarray = ()
) -> Iterator[tuple[Groups, np.ndarray, np.ndarray]]:
    """Shuffle a run's stream into full batches (Sec. "Experiments").

    For each task, yield three things: the groups of tasks so far; the batches as rows
    of the training set, (steps, B); and whether each batch belongs to the first epoch,
    bool (steps,). Samples in the rows ``left_out`` are not in the stream.
    """
    settings = config.resolved
    size = settings["batch_size"]
    task = task.copy()
    task[list(left_out)] = -1  # in no task
    rng = np.random.default_rng(spawn_seeds(config)[0])
    schedule, at_once = settings["schedule"], settings["tasks_at_once"]
    if METHODS[config.method].offline:
        parts = [tasks_together(sorted(schedule), at_once)]  # all of them at once
    else:
        parts = [[group] for group in tasks_together(schedule, at_once)]
    seen: Groups = []
    for groups in parts:
        seen = seen + groups
        rows = np.flatnonzero(np.isin(task, np.concatenate(groups)))
        steps = len(rows) // size
        epochs = [rng.permutation(rows)[: steps * size] for _ in range(config.epochs)]
        in_first = np.arange(config.epochs * steps) < steps
        yield seen, np.concatenate(epochs).reshape(-1, size), in_first


def draw_held_out(config: RunConfig, data: SequentialDataset) -> np.ndarray:
    """Draw the training samples, int64 rows, on which thresholds are chosen."""
    seed = np.random.SeedSequence(config.seed, spawn_key=(HELD_OUT_KEY,))
    order = np.random.default_rng(seed).permutation(len(data.train))
    return np.sort(order[: len(order) // HELD_OUT])


def choose_thresholds(
    config: RunConfig,
    data: SequentialDataset,
    inputs: dict[str, Tensor],
    device: torch.device,
) -> dict[int, dict[str, float]]:
    """Train without the held-out samples, and choose thresholds on them after each task."""
    left_out = draw_held_out(config, data)
    trainer = Trainer(config, data, inputs["train"], device)
    thresholds = {}
    for groups, batches, in_first in stream(config, data.train.task, left_out):
        for new, is_first in zip(batches, in_first, strict=True):
            trainer.step(new, is_first)
        rows = left_out[np.isin(data.train.task[left_out], np.concatenate(groups))]
        probabilities = trainer.probabilities(trainer.inputs, rows)
        chosen = best_thresholds(probabilities, data.train.labels[rows])
        thresholds[len(groups)] = chosen
    return thresholds


@lru_cache(1)
def load_inputs(
    dataset: str, _fingerprint: str, device: torch.device
) -> tuple[SequentialDataset, dict[str, Tensor]]:
    """Load a data set and put its inputs on a device; cache both for the next run."""
    data = load_dataset(dataset)
    splits = data.splits.items()
    inputs = {name: put(split.loaded_inputs, device) for name, split in splits}
    return data, inputs


def make_network(
    config: RunConfig, data: SequentialDataset, seed: np.random.SeedSequence
) -> Staged:
    """Make a run's network with its initial weights."""
    settings = config.resolved
    weights = weights_for_seed(settings["weights"], config.seed)
    shape = data.train.loaded_inputs.shape[1:]
    return make_model(settings["model"], shape, data.num_classes, seed, weights)


class Trainer:
    """Network, optimizer, sampler and memory of a run (Algorithm 1).

    `run` makes a trainer and calls `step` for each batch of the stream. To combine losses
    in a new way, add a branch to `combine_losses`.

    Parameters
    ----------
    config : RunConfig
        Configuration of the run.
    data : SequentialDataset
        Data set with the labels of the stream.
    inputs : tensor of shape (n_samples, ...)
        Inputs of the stream, uint8 images or float features, on any device.
    device : torch.device
        Device on which the network is trained.
    """

    def __init__(
        self,
        config: RunConfig,
        data: SequentialDataset,
        inputs: Tensor,
        device: torch.device,
    ):
        self.settings = config.resolved
        self.method = METHODS[config.method]
        self.device = device
        _, sampler_seed, replay_seed, model_seed = spawn_seeds(config)
        self.inputs = inputs
        self.labels = data.train.labels  # bool (N, C)
        self.targets = put(self.labels.astype(np.float32), device)
        self.class_freq = np.zeros(data.num_classes, np.float32)  # n_i
        self.seen = 0
        self.steps = 0
        self.is_half = self.settings["precision"] == "bf16"
        # a GPU computes half precision fastest with the channels last in memory
        self.layout = torch.channels_last if self.is_half else torch.contiguous_format
        self.make_stages(make_network(config, data, model_seed))
        loss = LOSSES[self.settings["loss"]]
        self.loss_function = partial(loss.function, **config.loss_options)
        self.reads_stream = loss.reads_stream
        self.one_label = loss.one_label
        self.ewc = None
        if self.method.ewc:
            self.ewc = EWC(self.upper, self.settings["ewc_lambda"])
        self.is_finite = torch.ones((), dtype=torch.bool, device=device)
        self.make_memory(data, sampler_seed)
        self.replay_rng = np.random.default_rng(replay_seed)
        self.captured = None
        depends_on_rows = self.reads_stream or self.method.rehearsal != "mean"
        if self.device.type == "cuda" and not (self.ewc or depends_on_rows):
            self.captured = Captured(self.descend, device)

    def make_stages(self, network: Staged) -> None:
        """Split a network into frozen and trained stages, and make the optimizer."""
        settings = self.settings
        layout: Any = {"memory_format": self.layout}  # missing in torch's types
        self.model = network.to(self.device, **layout)
        frozen = settings["frozen_stages"]
        if self.method.frozen:
            frozen = max(frozen, settings[self.method.frozen])
        self.lower, self.upper = self.model.split(frozen)
        self.lower.eval().requires_grad_(False)  # batch norm is frozen, too
        self.upper.train()
        self.parameters = list(self.upper.parameters())
        rate = settings["learning_rate"]
        if settings["optimizer"] == "sgd":
            self.optimizer = torch.optim.SGD(self.parameters, lr=rate, momentum=0.9)
        else:
            is_gpu = self.device.type == "cuda"
            eps = settings["adam_eps"]
            self.optimizer = torch.optim.Adam(
                self.parameters, lr=rate, eps=eps, fused=True, capturable=is_gpu
            )

    def make_memory(
        self, data: SequentialDataset, seed: np.random.SeedSequence
    ) -> None:
        """Make the empty memory, and the sampler that selects its samples."""
        settings = self.settings
        size = settings["memory_size"]
        self.memory = Memory(size)
        self.sampler: Any = None
        self.keeps_features = False
        if self.method.sampler is None:
            return
        options = dict(settings["options"])
        if self.method.takes_rho:
            options["rho"] = settings["rho"]
        sampler_class = SAMPLERS[self.method.sampler]
        self.sampler = sampler_class(size, data.num_classes, seed, **options)
        self.keeps_features = "features" in self.sampler.needs
        self.vectors_fit = False
        if hasattr(self.sampler, "vectors"):
            vector = self.encode(take(self.inputs, np.zeros(1, np.int64), self.device))
            self.vectors_fit = has_room(self.device, size * vector.nbytes)

    def step(self, new: np.ndarray, is_first: bool = True) -> None:
        """Train on new samples, rows (B,), and replayed ones; then place the new ones.

        In later epochs, ``is_first`` is False, and samples are neither counted nor
        placed again.
        """
        count = len(new)
        if is_first:
            self.class_freq += self.labels[new].sum(axis=0, dtype=np.float32)
            self.seen += count
        columns = {}
        encoded = None
        for update in range(self.settings["updates"]):
            replayed = self.draw()  # slots (R,)
            x, y = self.join(new, replayed)  # (B + R, ...), (B + R, C)
            if self.keeps_features:
                encoded = x[:count].clone()  # a layer may change x in place
            if self.captured:
                self.captured(x, y)
                continue
            logits = self.descend(x, y, new, replayed)
            if update == 0 and self.method.rehearsal == "der++":
                columns["logits"] = logits[:count].detach()
        self.steps += 1
        if self.sampler is not None and is_first:
            needs = self.compute_needs(new, encoded)
            slots = self.sampler.place(self.labels[new], **needs)
            self.memory.store(slots, {"index": new} | columns)

    def descend(self, x: Tensor, y: Tensor, new: Any = (), replayed: Any = ()) -> Any:
        """Take a gradient step; return the logits of a plain network (B + R, C).

        If a GPU captures the step, the rows ``new`` (B,) and the slots ``replayed``
        (R,) are not passed, and the step must not depend on them.
        """
        logits = None
        if hasattr(self.upper, "objective"):  # the network computes its loss
            with self.autocast():
                network: Any = self.upper
                loss = network.objective(x, y, self.loss)
        else:
            with self.autocast():
                logits = self.upper(x)
            logits = logits.float()  # losses are sums of small numbers
            loss = self.combine_losses(logits, y, new, replayed)
        if self.settings["norm_penalty"]:
            norms = sum(weight.square().sum() for weight in self.parameters)
            loss = loss + self.settings["norm_penalty"] * norms
        self.is_finite.logical_and_(loss.detach().isfinite())
        self.upper.zero_grad()
        loss.backward()
        if self.ewc:
            self.ewc.pull()
        clip_grad_value_(self.parameters, self.settings["clip_value"])
        self.optimizer.step()
        if self.ewc:
            self.ewc.observe(sample_gradients(self.upper, self.loss, x, y))
        return logits

    def combine_losses(
        self,
        logits: Tensor,
        y: Tensor,
        new: Any,
        replayed: Any,
    ) -> Tensor:
        """Return the mean loss of all rows, or the loss of DER++ or ER-ACE."""
        count = len(new)
        if self.method.rehearsal == "mean":
            return self.loss(logits, y, new_count=count)
        of_new, of_old = logits[:count], logits[count:]
        if self.method.rehearsal == "er-ace":  # Caccia et al. 2022
            # new samples do not lower the logits of old classes
            is_open = self.labels[new].any(axis=0) | (self.class_freq == 0)
            loss = self.loss(of_new, y[:count], classes=np.flatnonzero(is_open))
            if len(replayed):
                loss = loss + self.loss(of_old, y[count:], new_count=0)
            return loss
        loss = self.loss(of_new, y[:count])
        if len(replayed):  # two batches (Buzzega et al. 2020, Eq. 6)
            half = len(replayed) // 2
            past = self.memory.read(replayed[:half], "logits")["logits"]
            distance = (of_old[:half] - past).square().mean()
            second = self.loss(of_old[half:], y[count + half :], new_count=0)
            loss = loss + self.settings["beta"] * second
            loss = loss + self.settings["alpha"] * distance
        return loss

    def loss(
        self,
        logits: Tensor,
        targets: Tensor,
        new_count: int | None = None,
        classes: np.ndarray | None = None,
    ) -> Tensor:
        """Return the mean loss of rows (B, C); the first ``new_count`` rows are new.

        ``classes`` are the numbers of the classes to include; by default, all are
        included.
        """
        logits = logits.float()
        class_freq = self.class_freq
        if classes is not None:
            columns = send(torch.from_numpy(classes), logits.device)
            logits = logits.index_select(1, columns)
            targets = targets.index_select(1, columns)
            class_freq = class_freq[classes]
        if not self.reads_stream:
            return self.loss_function(logits, targets)
        count = len(logits) if new_count is None else new_count
        replayed = torch.arange(len(logits), device=self.device) >= count
        freq = send(torch.tensor(class_freq), self.device)
        return self.loss_function(logits, targets, Stream(freq, self.seen, replayed))

    def draw(self) -> np.ndarray:
        """Draw the slots that a step replays (R,): one batch, or two for DER++."""
        size, rng = self.settings["replay_batch_size"], self.replay_rng
        filled = self.memory.filled
        drawn = []
        for _ in range(2 if self.method.rehearsal == "der++" else 1):
            if self.settings["draw"] == "balanced" and self.sampler is not None:
                labels = self.sampler.labels[filled]
                drawn.append(filled[balanced_draw(labels, size, rng)])
            else:
                drawn.append(self.memory.draw(size, rng))
        return np.concatenate(drawn)

    def look_up(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return the trained stages' input and targets for training samples."""
        x = self.encode(take(self.inputs, rows, self.device))
        return x, take(self.targets, rows, self.device)

    def join(self, new: np.ndarray, replayed: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return the trained stages' input and targets for new and replayed samples."""
        if len(replayed) == 0:
            return self.look_up(new)
        if not hasattr(self.sampler, "vectors"):
            stored = self.memory.read(replayed, "index")["index"]
            return self.look_up(np.concatenate([new, stored]))
        # ExStream replays vectors that it has merged, each with one label
        x, y = self.look_up(new)
        vectors = send(torch.as_tensor(self.sampler.vectors(replayed)), self.device)
        labels = torch.from_numpy(self.sampler.labels_of(replayed)).to(y.dtype)
        x = torch.cat([x, vectors.view(-1, *x.shape[1:])])
        return x, torch.cat([y, send(labels, self.device)])

    def compute_needs(self, new: np.ndarray, encoded: Any) -> dict[str, Any]:
        """Return what a sampler needs besides the labels of new samples."""
        needs: dict[str, Any] = {}
        if self.keeps_features:  # the output of the frozen stages, for ExStream
            vectors = encoded.flatten(1)
            needs["features"] = vectors if self.vectors_fit else vectors.cpu().numpy()
        if "gradient_products" in self.sampler.needs:

            def products(subsets: np.ndarray) -> np.ndarray:
                """Compare memory subsets, slots (K, n), with the new samples (GSS)."""
                stored = self.memory.read(subsets.ravel(), "index")["index"]
                x, y = self.look_up(np.concatenate([stored, new]))
                network = self.upper, self.loss
                table = gradient_products(*network, x, y, subsets.shape, self.autocast)
                return table.cpu().numpy()

            needs["gradient_products"] = products
        return needs

    def variance(self, at_once: int = 20) -> tuple[int, int, float]:
        """Return samples seen and stored, and the gradient variance over those stored."""
        slots = self.memory.filled
        parts = [slots[i : i + at_once] for i in range(0, len(slots), at_once)]
        batches = (self.join(slots[:0], part) for part in parts)
        value = gradient_variance(self.upper, self.loss, batches)
        return self.seen, len(slots), value

    def memory_labels(self) -> np.ndarray:
        """Return the labels in memory, bool (m, C); (0, C) without a memory."""
        if self.sampler is None:
            return np.zeros((0, self.labels.shape[1]), bool)
        return self.sampler.labels.copy()

    def autocast(self) -> AbstractContextManager:
        """Return the context of a forward pass."""
        if not self.is_half:
            return nullcontext()
        # within another autocast, such as a run's, torch's cache would return the weights
        # of the first step
        return torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False)

    @torch.no_grad()
    def encode(self, inputs: Tensor) -> Tensor:
        """Apply the frozen stages to pixels or features; return float (B, ...)."""
        with self.autocast():
            return self.lower(self.as_input(inputs)).float()

    @torch.no_grad()
    def predict(self, network: Callable, inputs: Tensor, rows: np.ndarray) -> Tensor:
        """Apply a network to rows in evaluation mode; float32 (K, D) on the CPU."""
        outputs = []
        self.model.eval()
        for start in range(0, len(rows), TESTED_AT_ONCE):
            batch = take(inputs, rows[start : start + TESTED_AT_ONCE], self.device)
            with self.autocast():
                outputs.append(network(self.as_input(batch)).float())
        self.upper.train()
        return torch.cat(outputs).cpu()

    def probabilities(self, inputs: Tensor, rows: np.ndarray) -> np.ndarray:
        """Return every class's probability for some rows, float32 (K, C).

        Raises FloatingPointError if the loss of a step was not finite.
        """
        logits = self.predict(self.model, inputs, rows)
        if not self.is_finite or logits.isnan().any():
            what = f"finite losses and weights up to step {self.steps}"
            raise FloatingPointError(
                expected(what, "others", "lower learning_rate, or check the inputs")
            )
        return (logits.softmax(1) if self.one_label else logits.sigmoid()).numpy()

    def as_input(self, inputs: Tensor) -> Tensor:
        """Turn uint8 (B, H, W, channels) into float (B, channels, H, W) in [0, 1]."""
        if inputs.is_floating_point():
            return inputs
        images = inputs.permute(0, 3, 1, 2).float().div_(255)
        # cuDNN would convert weights whose layout differs from the images'
        is_gpu = self.device.type == "cuda"
        return images.contiguous(memory_format=self.layout) if is_gpu else images


def balanced_draw(
    labels: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw samples balanced over classes: first a class, then one of its samples.

    Parameters
    ----------
    labels : ndarray of bool of shape (n_samples, n_classes)
        Labels of the samples in memory.
    count : int
        Number of samples to draw.
    rng : Generator
        Source of the random numbers.

    Returns
    -------
    ndarray of int64 of shape (count,)
        Distinct rows of ``labels``. If there are fewer than ``count`` rows, all rows
        are drawn.

    Notes
    -----
    Samples are drawn without replacement, in proportion to the sum of 1 / l_i over the
    labels of a sample, where l_i is the number of samples of class i in memory. To this
    end, each sample receives an exponentially distributed time with this sum as its
    rate, and the samples with the shortest times are drawn (Efraimidis and Spirakis
    2006).

    Examples
    --------
    >>> labels = np.array([[True, False]] * 99 + [[False, True]])
    >>> 99 in balanced_draw(labels, 10, np.random.default_rng(0))
    True
    """
    class_counts = labels.sum(axis=0)  # l_i (C,)
    rates = labels @ (1 / np.maximum(class_counts, 1))  # (M,)
    times = rng.exponential(size=len(labels)) / rates
    return np.argsort(times)[:count]
