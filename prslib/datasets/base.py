"""Define what a data set is: inputs, multi-hot labels and the task of each class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache, wraps
from operator import index
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from prslib.checks import check_names, expected, one_of

GROUPS = ("majority", "moderate", "minority")
# spawn key of the drawn task order, far from the keys of a run's other generators
ORDER_STREAM = 1000


@dataclass(frozen=True, eq=False)
class Split:
    """Inputs of a stream or a test set with their labels and tasks (Sec. 5).

    Parameters
    ----------
    inputs : ndarray of shape (n_samples, ...) or None
        Images of type uint8, (n_samples, height, width, channels), or features of type
        float32, (n_samples, n_features); None if only labels are used.
    labels : ndarray of bool of shape (n_samples, n_classes)
        Multi-hot labels; each sample has at least one.
    task : ndarray of int64 of shape (n_samples,)
        Task of each sample, or -1 in a test set if its labels belong to several tasks.
        Such a sample is scored as soon as one of its classes has been trained, but only
        for the classes that have been trained.
    unit : ndarray of shape (n_samples,) or None
        Number or name of the group of each sample, such as an icon and its outline. Bootstrap
        resamples of a test set draw whole groups. None if there are no groups.

    Raises
    ------
    TypeError
        If an array has another type.
    ValueError
        If the shapes do not fit together, or a sample has no label.

    Examples
    --------
    >>> len(Split(None, np.eye(3, dtype=bool), np.zeros(3, dtype=np.int64)))
    3
    """

    inputs: np.ndarray | None
    labels: np.ndarray
    task: np.ndarray
    unit: np.ndarray | None = None

    def __post_init__(self) -> None:
        """Check types and shapes."""
        _check_array("labels", self.labels, np.bool_, 2)
        if len(empty := np.flatnonzero(~self.labels.any(axis=1))):
            raise ValueError(expected("a label in each row", f"none in row {empty[0]}"))
        _check_array("task", self.task, np.int64, 1)
        for array in (self.task, self.inputs, self.unit):
            if array is not None and len(array) != len(self.labels):
                what = f"{len(self)} tasks, inputs and units"
                raise ValueError(expected(what, len(array)))
        if self.inputs is not None and self.inputs.ndim == 2:
            _check_array("features", self.inputs, np.float32, 2)
        elif self.inputs is not None:
            _check_array("images", self.inputs, np.uint8, 4)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.labels)

    @property
    def loaded_inputs(self) -> np.ndarray:
        """The inputs; ValueError if only labels were loaded."""
        if self.inputs is None:
            raise ValueError(expected("a data set with inputs", "labels only"))
        return self.inputs

    @property
    def units(self) -> np.ndarray:
        """Groups numbered from 0, int64 (N,); without groups, each sample by itself."""
        unit = np.arange(len(self)) if self.unit is None else self.unit
        return np.unique(unit, return_inverse=True)[1]

    def take(self, rows: np.ndarray | slice) -> Split:
        """Return some of the samples, by their numbers or as a mask."""
        inputs = None if self.inputs is None else self.inputs[rows]
        unit = None if self.unit is None else self.unit[rows]
        return Split(inputs, self.labels[rows], self.task[rows], unit)

    @property
    def single_label(self) -> bool:
        """Whether every sample has exactly one label."""
        return bool((self.labels.sum(axis=1) == 1).all())


@dataclass(frozen=True, eq=False)
class SequentialDataset:
    """A data set whose classes are divided into tasks, which come one by one (Sec. 5).

    Parameters
    ----------
    name : str
        Key of `prslib.datasets.DATASETS`.
    train : Split
        Samples of the stream, in any order; a schedule orders the tasks.
    tests : dict of str to Split
        Test sets by name, such as "balanced" and "imbalanced".
    class_names : tuple of str of length n_classes
        Names of the classes.
    class_task : ndarray of int64 of shape (n_classes,)
        Task of each class, from 0 to n_tasks - 1.
    class_group : tuple of str of length n_classes
        "majority", "moderate" or "minority" for each class.
    stands_for : str or None
        Data set of the paper with which this data set is compared, if any.

    Raises
    ------
    TypeError
        If an array has another type.
    ValueError
        If the numbers of classes differ, task ids are not 0 to n_tasks - 1, a group is
        unknown, class names are repeated, or a sample has a label outside its task.

    Examples
    --------
    >>> split = Split(None, np.eye(2, dtype=bool), np.array([0, 1]))
    >>> groups = ("majority", "minority")
    >>> task = np.array([0, 1])
    >>> tests = {"full": split}
    >>> data = SequentialDataset("ab", split, tests, ("a", "b"), task, groups)
    >>> data.num_tasks
    2
    """

    name: str
    train: Split
    tests: dict[str, Split]
    class_names: tuple[str, ...]
    class_task: np.ndarray
    class_group: tuple[str, ...]
    stands_for: str | None = None

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        _check_array("class_task", self.class_task, np.int64, 1)
        tasks = np.unique(self.class_task).tolist()
        if not tasks or tasks != list(range(len(tasks))):
            raise ValueError(expected("task ids 0 to T-1 in class_task", tasks))
        counts = {name: split.labels.shape[1] for name, split in self.splits.items()}
        counts["class_names"] = len(self.class_names)
        counts["class_group"] = len(self.class_group)
        for name, count in counts.items():
            if count != self.num_classes:
                what = f"{self.num_classes} classes in {name!r}"
                raise ValueError(expected(what, count))
        for group in self.class_group:
            one_of("class group", group, GROUPS)
        check_names([*GROUPS, "overall", *self.class_names])  # a score has one name
        for name, split in self.splits.items():
            # also finds samples whose task is not one of 0 to T-1
            foreign = split.labels & (self.class_task != split.task[:, None])  # (N, C)
            if split is not self.train:
                foreign &= split.task[:, None] != -1
            if foreign.any():
                sample, column = np.argwhere(foreign)[0]
                what = f"only labels of a sample's task in {name!r}"
                got = f"sample {sample} with label {self.class_names[column]!r}"
                raise ValueError(expected(what, got))

    @property
    def splits(self) -> dict[str, Split]:
        """The stream as "train", and the test sets by name."""
        return {"train": self.train, **self.tests}

    @property
    def num_classes(self) -> int:
        """Number of classes C."""
        return len(self.class_task)

    @property
    def num_tasks(self) -> int:
        """Number of tasks T."""
        return int(self.class_task.max()) + 1

    @property
    def class_freq(self) -> np.ndarray:
        """Samples of each class in the training stream, int64 (C,): n_i of Sec. 3."""
        return self.train.labels.sum(axis=0, dtype=np.int64)


@dataclass(frozen=True)
class Recipe:
    """Defaults of a run on a data set (Sec. 6.1 and the appendix).

    Parameters
    ----------
    model : str
        Key of `prslib.models.MODELS`.
    memory_size : int
        Capacity of the memory, in samples.
    schedule : tuple of int of length n_tasks
        Order of the tasks.
    optimizer : str
        "adam" or "sgd".
    learning_rate : float
        Step size of the optimizer.
    clip_value : float
        Bound on the absolute value of each entry of the gradient.
    loss : str
        Key of `prslib.losses.LOSSES`.
    batch_size, replay_batch_size : int
        Number of new samples and number of replayed samples per step.
    norm_penalty : float
        Weight of the squared 2-norms of all parameters in the loss.
    tasks_at_once : int
        Number of tasks that are trained together; it is 2 if every class is a task.
    schedule_drawn : bool
        Whether a run whose configuration has no schedule draws the order of the tasks
        from its seed.
    precision : str
        "fp32" or "bf16".
    test_set : str
        Name of the test set on which runs are compared by default.
    weights : str or None
        Name of the initial weights; None for the default of the model.
    ewc_lambda : float
        Strength of EWC's penalty: the value in the paper or, for other data, the value
        that was chosen by `studies/ewc_strength.py`. This study uses neither test
        samples nor the seeds of the report.
    rho : float
        Power of allocation, which PRS and OCDM use. It is the value in the authors' code,
        or 0 if there is no such value.
    test_resamples : int
        Number of bootstrap resamples of each test set, or 0 for none. They allow
        intervals to account for test sampling.

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
    rho: float = 0.0
    test_resamples: int = 0


@dataclass(frozen=True, eq=False)
class Clustering:
    """Input of Algorithm 2, which clusters the classes of a data set into tasks.

    Parameters
    ----------
    labels : ndarray of bool of shape (n_samples, n_classes)
        Labels of all samples, including samples that the clustering leaves out. Each
        sample has at least one label.
    class_names : tuple of str of length n_classes
        Names of the classes, including classes that are left out later.
    n_groups : int
        Number of groups into which the classes are clustered.
    beta : float
        Weight of the sizes of the groups, Eq. (7).
    min_classes : int
        Minimum number of classes in a group.
    """

    labels: np.ndarray
    class_names: tuple[str, ...]
    n_groups: int
    beta: float
    min_classes: int = 1


@dataclass(frozen=True)
class Entry:
    """Data set as a row of `prslib.datasets.DATASETS`.

    Parameters
    ----------
    load : callable
        ``load(images)`` returns the `SequentialDataset`, without inputs if ``images`` is
        False.
    recipe : Recipe
        Defaults of a run.
    clustering : callable, optional
        Function that returns the `Clustering` from which the tasks come.
    identity : callable, optional
        Function that returns a digest of the inputs, if the digest is known without
        reading all inputs.
    tests_on_pretrained : bool
        Whether the embedded weights were trained on some of the test images.
    data_source : {"paper's", "part", "stand-in", "other"}
        Whether the samples are the paper's samples, a part of them, a synthetic
        substitute, or another real stream.

    See Also
    --------
    prslib.register : Registers a data set under a name.
    """

    load: Callable[[bool], SequentialDataset]
    recipe: Recipe
    clustering: Callable[[], Clustering] | None = None
    identity: Callable[[], str] | None = None
    tests_on_pretrained: bool = False
    data_source: Literal["paper's", "part", "stand-in", "other"] = "stand-in"


def validate_schedule(schedule: ArrayLike, num_tasks: int) -> tuple[int, ...]:
    """Return a schedule as a tuple; raise ValueError unless each task occurs exactly once."""
    tasks = tuple(index(task) for task in np.atleast_1d(schedule).tolist())
    if sorted(tasks) != list(range(num_tasks)):
        raise ValueError(expected(f"tasks 0 to {num_tasks - 1}, each once", tasks))
    return tasks


def draw_schedule(num_tasks: int, seed: int) -> tuple[int, ...]:
    """Draw an order of the tasks from a run's seed; Appendix, single-label data."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(ORDER_STREAM,)))
    return tuple(rng.permutation(num_tasks).tolist())


def tasks_together(schedule: Sequence[int], at_once: int) -> list[tuple[int, ...]]:
    """Divide a schedule into groups of tasks that are trained together, each sorted."""
    starts = range(0, len(schedule), at_once)
    return [tuple(sorted(schedule[start : start + at_once])) for start in starts]


def task_name(group: Iterable[int]) -> str:
    """Name tasks that are trained together as in the scores: "1", or "1+2"."""
    return "+".join(map(str, group))


def schedule_text(schedule: Sequence[int], at_once: int = 1) -> str:
    """Return a schedule as text, as in the scores: "0,3,1,2" or "1+2,0+3"."""
    return ",".join(map(task_name, tasks_together(schedule, at_once)))


def schedule_of(text: str) -> tuple[int, ...]:
    """Parse a schedule that `schedule_text` wrote, such as "1+2,0+3"."""
    return tuple(int(task) for task in text.replace("+", ",").split(","))


def keep_loaded(load: Callable) -> Callable:
    """Cache the last four data sets of a loader, and return copies.

    The cache is useful because consecutive runs often use the same data set. A caller
    may change its copy.
    """
    kept = lru_cache(maxsize=4)(load)
    return wraps(load)(lambda *args, **named: deepcopy(kept(*args, **named)))


def _check_array(what: str, array: np.ndarray, dtype: type, axes: int) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        got = getattr(array, "dtype", type(array).__name__)
        raise TypeError(expected(f"{what} as a numpy array of {np.dtype(dtype)}", got))
    if array.ndim != axes:
        raise ValueError(expected(f"{what} with {axes} axes", f"shape {array.shape}"))
