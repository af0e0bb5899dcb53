"""Every batch of a run: what it trains on, step by step, and what its memory keeps of it."""

from collections.abc import Callable
from functools import partial

import numpy as np

from prslib.config import RunConfig
from prslib.datasets import SequentialDataset
from prslib.memory import Memory
from prslib.methods import METHODS
from prslib.samplers import make_sampler
from prslib.stream import Part, Replay, after, offline_stream, online_stream, replay_plan


def plan(config: RunConfig, dataset: SequentialDataset) -> tuple[list[Part], np.ndarray]:
    """Compute every batch of a run and its memory at the end, without training (Algorithm 1).

    Samplers that look at labels alone do not depend on the model, so that their whole replay plan
    is known before the first step; images are not needed.

    Parameters
    ----------
    config : RunConfig
        The run, of a method that does not look at the model.
    dataset : SequentialDataset
        Its data set; labels suffice.

    Returns
    -------
    list of Part
        The joined batches (new and replayed indices) of every step, part by part.
    ndarray of bool, (memory_size, C)
        Labels in memory at the end; (0, C) for a method without a memory.

    Raises
    ------
    ValueError
        If the method looks at the model.

    Examples
    --------
    >>> from prslib import load_dataset
    >>> dataset = load_dataset("digits70tiny", images=False)
    >>> plan(RunConfig(dataset="digits70tiny", method="CRS"), dataset)[1].shape
    (50, 70)
    """
    if METHODS[config.method].looks_at_model:
        known = ", ".join(name for name, row in METHODS.items() if not row.looks_at_model)
        raise ValueError(
            f"plan: expected a method that looks at labels alone ({known}), got {config.method}, "
            "whose memory depends on the model; train it with run"
        )
    replay = make_replay(config, dataset)
    return stream_of(config, dataset, replay), labels_in(replay, dataset)


def make_replay(config: RunConfig, dataset: SequentialDataset) -> Replay | None:
    """Make a run's empty memory, its sampler and the generator that draws from it (Sec. 3).

    Parameters
    ----------
    config : RunConfig
        The run.
    dataset : SequentialDataset
        Its data set; labels suffice.

    Returns
    -------
    Replay or None
        None for a method without a memory.
    """
    settings, method, seeds = config.resolved, METHODS[config.method], seeds_of(config)
    if method.sampler is None:
        return None
    size, options = settings["memory_size"], {name: settings[name] for name in method.options}
    sampler = make_sampler(method.sampler, size, dataset.num_classes, seeds["sampler"], **options)
    return Replay(sampler, Memory(size), np.random.default_rng(seeds["replay"]))


def new_samples(config: RunConfig, dataset: SequentialDataset) -> list[Part]:
    """Return a run's stream as it comes, before anything is replayed (Sec. "Experiments").

    Parameters
    ----------
    config : RunConfig
        The run.
    dataset : SequentialDataset
        Its data set; labels suffice.

    Returns
    -------
    list of Part
        The indices of every step's new samples, part by part.
    """
    settings, method = config.resolved, METHODS[config.method]
    train, schedule, batch_size = dataset.train, settings["schedule"], settings["batch_size"]
    rng = np.random.default_rng(seeds_of(config)["stream"])
    if method.offline:
        return offline_stream(train, sorted(schedule), batch_size, settings["epochs"], rng)
    return online_stream(train, schedule, batch_size, rng, settings["tasks_at_once"])


def stream_of(
    config: RunConfig,
    dataset: SequentialDataset,
    replay: Replay | None,
    supply: Callable | None = None,
    position: tuple[int, int] = (0, 0),
    stepwise: bool = False,
) -> list[Part]:
    """Make the batches of a run: ahead of training, or for some methods step by step.

    Parameters
    ----------
    config : RunConfig
        The run.
    dataset : SequentialDataset
        Its data set; labels suffice.
    replay : Replay or None
        As `make_replay` gives it; filled as the batches are made.
    supply : callable, optional
        What `replay_plan` asks for a sampler that looks at the model.
    position : tuple of int
        Where an interrupted run goes on: parts of the stream that are finished, and steps taken in
        the next one. Of a stepwise stream, ``replay`` must be as it was then.
    stepwise : bool
        Whether to make the batches step by step: needed where the sampler looks at the model, or
        someone wants to look at the memory on the way.

    Returns
    -------
    list of Part
        The joined batches of every step from there on, part by part. Of a stepwise stream they are
        iterators, to be taken in order, each batch after the step on the one before.
    """
    parts, train = new_samples(config, dataset), dataset.train
    if replay is None:
        return after(parts, position)
    planned = partial(
        replay_plan, labels=train.labels, **replay._asdict(),
        replay_batch_size=config.resolved["replay_batch_size"],
    )  # fmt: skip
    if not stepwise:
        return after([Part(part.seen, list(planned(part.batches))) for part in parts], position)
    finished, steps = position
    unplaced = after(parts, (finished, max(steps - 1, 0)))
    return [
        Part(part.seen, planned(part.batches, supply=supply, begun=steps > 0 and i == 0))
        for i, part in enumerate(unplaced)
    ]


def seeds_of(config: RunConfig) -> dict[str, np.random.SeedSequence]:
    """Return where a run's generators for stream, sampler, replay and model begin."""
    names = ("stream", "sampler", "replay", "model")
    return dict(zip(names, np.random.SeedSequence(config.seed).spawn(len(names)), strict=True))


def labels_in(replay: Replay | None, dataset: SequentialDataset) -> np.ndarray:
    """Return the labels in memory, bool (memory_size, C); (0, C) without a memory."""
    if replay is None:
        return np.zeros((0, dataset.num_classes), bool)
    return replay.sampler.labels.copy()
