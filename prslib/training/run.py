"""Train and score a run, from its configuration to its result."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike

import numpy as np
import pandas as pd
import torch
from threadpoolctl import threadpool_limits

from prslib.datasets import SequentialDataset, load_dataset
from prslib.datasets.base import tasks_together
from prslib.datasets.curation import feature_rows
from prslib.memory import Memory
from prslib.models.networks import make_model
from prslib.models.weights import of_seed
from prslib.training import round_alike
from prslib.training.checkpoint import Checkpoint, Progress
from prslib.training.config import SAVE_EVERY, Run, RunConfig
from prslib.training.device import Images, Precision, check_device, place
from prslib.training.gradients import measured, memory_variance
from prslib.training.learner import SAMPLER_NEEDS, Learner, score_tasks, with_run_columns
from prslib.training.methods import METHODS
from prslib.training.replay import labels_in, make_replay, new_samples, seeds_of, stream_of

RESAMPLED = ["trained_tasks", "task", "group", "metric", "draws"]  # columns of `Run.resampled`

round_alike()  # before the first sum: whoever trains loads this module


def run(
    config: RunConfig,
    device: str = "cpu",
    checkpoint: str | PathLike | None = None,
    save_every: float = SAVE_EVERY,
) -> Run:
    """Train and score one configuration (section "Experimental Design").

    Parameters
    ----------
    config : RunConfig
        The configuration.
    device : str
        Where to compute, "cpu" or "cuda".
    checkpoint : path-like, optional
        The file in which the run saves its state. If it exists, the run goes on from that state,
        with the result of one without interruption. Deleting it is left to the caller.
    save_every : float
        Seconds from one checkpoint to the next.

    Returns
    -------
    Run
        Scores after every task and the memory at the end.

    Raises
    ------
    ValueError
        Before any training, if the configuration does not fit the data set, the device is not
        there, ``save_every`` is not above 0 or the checkpoint is another run's.

    Notes
    -----
    A run takes one thread. On a CPU the same configuration gives the same bytes on every machine
    with the same packages (`prslib.training.round_alike`), and many runs side by side are faster in
    total than one run on all cores.
    """
    return run_at_once([config], device, checkpoint, save_every)[0]


def run_at_once(
    configs: Sequence[RunConfig],
    device: str = "cpu",
    checkpoint: str | PathLike | None = None,
    save_every: float = SAVE_EVERY,
) -> list[Run]:
    """Train once for several runs of one `RunConfig.training`; each gets the bytes of `run`."""
    check_device(device)
    dataset, trainings = load_dataset(configs[0].dataset), {c.training for c in configs}
    if len(trainings) != 1:
        raise ValueError(
            "run_at_once: expected runs that train alike (RunConfig.training), got "
            f"{len(trainings)} trainings; train them with run_all, which sorts them"
        )
    for config in configs:
        config.check(dataset)
    hashes = {config.hash for config in configs}
    saved = Checkpoint(checkpoint, configs[0].training, save_every, hashes)
    with conditions(configs[0]):
        return _run(configs, dataset, device, saved)


@contextmanager
def conditions(config: RunConfig) -> Iterator[None]:
    """Hold the process at one thread and a run's precision; what was set before comes back."""
    if torch.cuda.is_initialized():  # earlier learners are cycles: let them leave the GPU
        gc.collect()
        torch.cuda.empty_cache()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        # threads of numpy's library wait for work on the cores of other runs
        with threadpool_limits(1, "blas"), Precision(config.resolved["precision"]).in_force():
            yield
    finally:
        torch.set_num_threads(threads)


def _run(
    configs: Sequence[RunConfig], dataset: SequentialDataset, device: str, saved: Checkpoint
) -> list[Run]:
    config, train = configs[0], dataset.train
    settings, marks = config.resolved, variance_marks(configs, dataset)
    tests = {name: dataset.tests[name] for name in {c.resolved["test_set"] for c in configs}}
    shown = [shown_images(config, dataset) for config in configs]
    learner = make_learner(config, dataset, device)
    images = place(train.images, device)
    test_images = {name: place(test.images, device) for name, test in tests.items()}
    labels = torch.from_numpy(train.labels).float().to(device)
    progress = Progress(learner, make_replay(config, dataset), len(marks) > 0)
    saved.resume(progress)

    def ask_model(name: str, batch: np.ndarray, memory: Memory):
        return SAMPLER_NEEDS[name](learner, images, labels, batch, memory)

    def measure(step: int) -> None:
        sampler, memory, _ = progress.replay
        value = memory_variance(learner, images, labels, memory, sampler)
        row = {"images": step * settings["batch_size"], "samples": len(memory), "value": value}
        progress.variances.append(row)

    parts = stream_of(
        config, dataset, progress.replay, ask_model, progress.position, progress.stepwise
    )
    known = max((row["images"] for row in progress.variances), default=0)
    left = marks[marks * settings["batch_size"] > known] if progress.replay else ()
    finished_parts, steps = progress.position
    taken = sum(_lengths(config, dataset)[:finished_parts]) + steps
    for part in measured(parts, left, measure, taken):
        learner.fit(images, labels, part.batches, partial(saved.after_step, progress))
        groups = tasks_together(part.seen, settings["tasks_at_once"])
        more = groups, settings["test_resamples"], any(config.macro_auc for config in configs)
        progress.finish_part(
            {
                name: score_tasks(learner, test_images[name], test, dataset, *more)
                for name, test in tests.items()
            }
        )
        saved.save_if_due(progress)
    return [
        finished(config, dataset, progress, test_images[config.resolved["test_set"]], rows)
        for config, rows in zip(configs, shown, strict=True)
    ]


def shown_images(config: RunConfig, dataset: SequentialDataset) -> np.ndarray | None:
    """Return the rows of the test images whose features a run keeps; None for none."""
    test, per_class = (config.resolved[name] for name in ("test_set", "features_per_class"))
    return feature_rows(dataset.tests[test], per_class) if per_class else None


def finished(
    config: RunConfig,
    dataset: SequentialDataset,
    progress: Progress,
    test_images: Images,
    shown: np.ndarray | None,
) -> Run:
    """Return the result of a run whose last part is scored; `shown_images` gives ``shown``."""
    extras, test_set = {}, config.resolved["test_set"]
    scores = pd.concat([part[test_set] for part in progress.scores], ignore_index=True)
    if not config.macro_auc:  # another run of the training may ask for it
        scores = scores[scores["metric"] != "AUC"].reset_index(drop=True)
    if "draws" in scores:
        rows = scores[RESAMPLED].dropna().reset_index(drop=True)
        draws = list(np.array(rows["draws"].tolist(), np.float32))
        extras["resampled"] = rows.assign(draws=draws)
        scores = scores.drop(columns="draws")
    frame = with_run_columns(config, scores)
    if shown is not None:
        extras["features"] = progress.learner.features(test_images, shown)
    asked = set(variance_marks([config], dataset) * config.resolved["batch_size"])
    if variances := [row for row in progress.variances if row["images"] in asked]:
        extras["gradient_variance"] = with_run_columns(config, pd.DataFrame(variances))
    return Run(config, frame, labels_in(progress.replay, dataset), **extras)


def make_learner(
    config: RunConfig,
    dataset: SequentialDataset,
    device: str = "cpu",
    model: torch.nn.Module | None = None,
) -> Learner:
    """Make a run's untrained network, by default `initial_model`, and its optimiser."""
    settings, method = config.resolved, METHODS[config.method]
    training = ("optimizer", "learning_rate", "loss", "clip_value", "norm_penalty", "precision")
    return Learner(
        initial_model(config, dataset) if model is None else model,
        **{name: settings[name] for name in training},
        frozen_stages=max(settings["frozen_stages"], settings.get(method.frozen, 0)),
        ewc_lambda=settings["ewc_lambda"] if method.ewc else None,
        device=device,
    )


def variance_marks(configs: Sequence[RunConfig], dataset: SequentialDataset) -> np.ndarray:
    """Return the steps, rising, after which one of the runs measures the gradient variance."""
    steps = sum(_lengths(configs[0], dataset))
    marks = [np.linspace(0, steps, c.variance_points + 1).round().astype(int)[1:] for c in configs]
    return np.unique(np.concatenate(marks))


def _lengths(config: RunConfig, dataset: SequentialDataset) -> list[int]:
    return [len(part.batches) for part in new_samples(config, dataset)]


def initial_model(config: RunConfig, dataset: SequentialDataset) -> torch.nn.Module:
    """Build a run's network: the same weights for the same seed, whatever the method."""
    shape, seed = dataset.train.images.shape[1:], seeds_of(config)["model"]
    settings = config.resolved
    weights = of_seed(settings["weights"], config.seed)
    return make_model(settings["model"], shape, dataset.num_classes, seed, weights)
