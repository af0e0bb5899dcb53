"""What a data set brings along besides its images: how to load it, and a run's defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

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
    norm_penalty : float
        Weight of the sum of the parameters' 2-norms, which is added to the loss.
    tasks_at_once : int
        Tasks that are trained together, one after another in the schedule: 2 where every class is
        a task of its own and the paper trains pairs.
    schedule_drawn : bool
        Whether a run that names no schedule draws one from its seed, instead of taking `schedule`.
    precision : str
        Name in `prslib.precision.PRECISIONS`.
    test_set : str
        Name of the test set that runs are scored on.
    weights : str or None
        What a network begins with that has weights of this name; None for its own default.
    ewc_lambda : float
        Strength of EWC's penalty, the paper's or, on our own data, the best that was tried.

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
    norm_penalty: float = 0.0
    tasks_at_once: int = 1
    schedule_drawn: bool = False
    precision: str = "fp32"
    test_set: str = "balanced"
    weights: str | None = None
    ewc_lambda: float = 15000.0


@dataclass(frozen=True, eq=False)
class Clustering:
    """Hold what the classes of a data set were clustered from; Appendix, Algorithm 2.

    Parameters
    ----------
    labels : numpy.ndarray of bool, shape (N, C)
        Labels of all images, also of those that the split drops; each has at least one.
    class_names : tuple of str, length C
        Names of the classes, also of those that are dropped later.
    n_groups, beta, min_classes
        As in `prslib.datasets.clustering.cluster_classes`.

    Examples
    --------
    >>> Clustering(np.ones((1, 2), dtype=bool), ("a", "b"), n_groups=1, beta=1.0).min_classes
    1
    """

    labels: np.ndarray
    class_names: tuple[str, ...]
    n_groups: int
    beta: float
    min_classes: int = 1


@dataclass(frozen=True)
class Entry:
    """Hold one line of the table `prslib.datasets.DATASETS`; our own choice.

    Parameters
    ----------
    load : callable
        Takes ``images`` (bool) and returns the `SequentialDataset`, without images if False.
    recipe : Recipe
        Defaults of a run on it.
    clustering : callable or None
        Returns the `Clustering` that its tasks come from; None where they come from none.

    Examples
    --------
    >>> from prslib.datasets import DATASETS
    >>> DATASETS["digits70seq"].recipe.memory_size
    500
    """

    load: Callable[[bool], SequentialDataset]
    recipe: Recipe
    clustering: Callable[[], Clustering] | None = None
