"""What a data set brings along besides its images: how to load it, and a run's defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from prslib.datasets.sequential import SequentialDataset


@dataclass(frozen=True)
class Recipe:
    """Hold the defaults of a run on one data set; Sec. 6.1 and the appendix's training details.

    Parameters
    ----------
    model : str
        Name in `prslib.models.MODELS`.
    memory_size : int
        Samples the memory can hold.
    schedule : tuple of int, length T
        Order of the tasks.
    optimizer : str
        "adam" or "sgd".
    learning_rate : float
        Step size of the optimizer.
    clip_value : float
        Largest absolute value of a gradient's entry.
    loss : str
        Name of the training loss.
    batch_size, replay_batch_size : int
        New and replayed samples of a step.
    pretrained_stages : int
        How many of the model's stages, counted from the image, come with learned weights.
    vector_stages : int
        After how many of them ExStream takes its vectors, and up to where it freezes the model.

    Examples
    --------
    >>> Recipe(model="convnet", memory_size=50, schedule=(1, 0)).batch_size
    10
    """

    model: str
    memory_size: int
    schedule: tuple[int, ...]
    optimizer: str = "adam"
    learning_rate: float = 0.002
    clip_value: float = 5.0
    loss: str = "multilabel_soft_margin"
    batch_size: int = 10
    replay_batch_size: int = 10
    pretrained_stages: int = 0
    vector_stages: int = 1


@dataclass(frozen=True)
class Entry:
    """Hold one line of the table `prslib.datasets.DATASETS`; our own choice.

    Parameters
    ----------
    load : callable
        Takes ``images`` (bool) and returns the `SequentialDataset`, without images if False.
    recipe : Recipe
        Defaults of a run on it.

    Examples
    --------
    >>> from prslib.datasets import DATASETS
    >>> DATASETS["digits70seq"].recipe.memory_size
    500
    """

    load: Callable[[bool], SequentialDataset]
    recipe: Recipe
