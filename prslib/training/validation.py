"""Check that a run is what its configuration says: columns, cells, shapes and ranges."""

from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from prslib import metrics
from prslib.checks import expected
from prslib.datasets import GROUPS, fingerprint, load_dataset
from prslib.datasets.base import schedule_text, task_name, tasks_together
from prslib.datasets.curation import feature_rows
from prslib.training.config import Run, RunConfig
from prslib.training.methods import METHODS

CELL = ["trained_tasks", "task", "group", "metric"]
OWN = "own threshold"  # in the names of F1 at it, in brackets
ROUNDING = 1e-9  # by which a mean of scores may exceed 1
Groups = list[tuple[int, ...]]  # tasks, together as they were trained


class Facts(NamedTuple):
    """The properties of a test set that decide the form of a run's scores."""

    num_classes: int
    cells: list[tuple[str, str]]  # group and metric
    single_label: bool


def run_columns(config: RunConfig) -> dict:
    """Return the columns of `Run.scores` that name the run, one value each."""
    identity = config.identity
    schedule = identity.get("schedule", ())
    return {
        "dataset": config.dataset,
        "method": config.method,
        "rho": identity.get("rho", np.nan),
        "memory_size": identity.get("memory_size", 0),
        "schedule": schedule_text(schedule, config.resolved["tasks_at_once"]),
        "seed": config.seed,
    }


def evaluations(config: RunConfig) -> list[Groups]:
    """Return which tasks each evaluation of a run scores."""
    settings = config.resolved
    schedule = settings["schedule"]
    at_once = settings["tasks_at_once"]
    if METHODS[config.method].offline:
        return [tasks_together(sorted(schedule), at_once)]
    groups = tasks_together(schedule, at_once)
    return [groups[:count] for count in range(1, len(groups) + 1)]


def score_cells(
    config: RunConfig, groups: Groups, test_set: str, own_threshold: bool
) -> set[tuple]:
    """Return the cells of the scores of an evaluation, as tuples of `CELL`."""
    facts = _facts(config.dataset, fingerprint(config.dataset), test_set)
    tasks = ["seen", *(task_name(group) for group in groups)]
    cells = {(len(groups), task, *cell) for task, cell in product(tasks, facts.cells)}
    ways = [f"top {metrics.TOP}"] if config.resolved["test_resamples"] else []
    ways += [OWN] if own_threshold and ways else []
    if not facts.single_label:
        places = product(("overall", *GROUPS), metrics.OWN_METRICS, ways)
        cells |= {
            (len(groups), "seen", g, f"{name} ({way})") for g, name, way in places
        }
    if facts.single_label:
        cells |= {
            (len(groups), task, "overall", "accuracy") for task in [*tasks, "all"]
        }
    return cells


@lru_cache
def _facts(name: str, _fingerprint: str, test_set: str) -> Facts:
    dataset = load_dataset(name, images=False)
    classes = dataset.num_classes
    example = np.zeros((1, classes)), np.ones((1, classes), bool)
    frame = metrics.evaluate(*example, dataset.class_names, dataset.class_group)
    cells = list(frame[["group", "metric"]].itertuples(index=False, name=None))
    return Facts(classes, cells, dataset.tests[test_set].single_label)


def check_scores(scores: pd.DataFrame, cells: set[tuple]) -> None:
    """Raise ValueError unless each cell has one score, in [0, 1] or NaN."""
    rows = list(zip(*(scores[name].tolist() for name in CELL), strict=True))
    if len(rows) != len(cells) or set(rows) != cells:
        different = min(cells ^ set(rows), key=str, default="one of them twice")
        text = f"{len(rows)}; the first difference is {different}"
        raise ValueError(expected(f"scores in {len(cells)} cells", text))
    _check_range("scores", scores["value"].to_numpy())


def _check_range(name: str, values: np.ndarray) -> None:
    """Refuse what is no share; NaN stands for a group without a class."""
    wrong = (values < 0) | (values > 1 + ROUNDING)
    if values.dtype.kind != "f" or wrong.any():
        got = values[wrong][0] if wrong.any() else values.dtype
        raise ValueError(expected(f"{name} in [0, 1]", got))


def check_run(run: Run) -> None:
    """Raise ValueError where a run is not what its configuration says."""
    config = run.config
    settings = config.resolved
    memory_size = config.identity.get("memory_size", 0)
    test_set = settings["test_set"]
    _check_columns(config, run.scores)
    own = config.own_threshold
    cells = [score_cells(config, each, test_set, own) for each in evaluations(config)]
    check_scores(run.scores, set().union(*cells))
    facts = _facts(config.dataset, fingerprint(config.dataset), test_set)
    labels = run.memory_labels
    _check_array("memory_labels", labels, bool, (memory_size, facts.num_classes))

    asked = {
        "features": config.features_per_class,
        "resampled": settings["test_resamples"],
        "gradient_variance": memory_size and config.variance_points,
    }
    for name, number in asked.items():
        if bool(number) != (getattr(run, name) is not None):
            what = f"{name} as the configuration asks for them ({number})"
            raise ValueError(expected(what, "others"))
    if run.features is not None:
        test = load_dataset(config.dataset, images=False).tests[test_set]
        rows = len(feature_rows(test, config.features_per_class))
        width = run.features.shape[-1]
        _check_array("features", run.features, np.float32, (rows, width))
    if run.resampled is not None:
        draws = run.resampled.to_numpy()  # (rows, draws)
        known = run.resampled.index.isin(run.scores.index).all()
        if draws.shape[1] != settings["test_resamples"] or not known:
            what = f"{settings['test_resamples']} resamples of rows of the scores"
            raise ValueError(expected(what, draws.shape))
        _check_range("resampled scores", draws)
    if run.gradient_variance is not None:
        _check_columns(config, run.gradient_variance)
        _check_variances(run.gradient_variance, memory_size)


def _check_columns(config: RunConfig, rows: pd.DataFrame) -> None:
    """Refuse rows of another run."""
    for name, value in run_columns(config).items():
        if name not in rows or not len(rows):
            raise ValueError(expected(f"rows with a column {name}", "none"))
        column = rows[name]
        same = column.isna() if pd.isna(value) else column == value
        if not same.all():
            raise ValueError(expected(f"{name} {value!r}", repr(column[~same].iloc[0])))


def _check_variances(rows: pd.DataFrame, memory_size: int) -> None:
    images = rows["images"]
    if not images.is_monotonic_increasing or not images.is_unique:
        what = "gradient variances at growing numbers of images"
        raise ValueError(expected(what, images.tolist()))
    samples = rows["samples"]
    if not samples.between(0, memory_size).all():
        what = f"gradient variances over 0 to {memory_size} samples"
        raise ValueError(expected(what, samples.tolist()))
    if (rows["value"] < 0).any():
        what = "gradient variances of 0 or more"
        raise ValueError(expected(what, rows["value"].min()))


def _check_array(name: str, array: np.ndarray, dtype: type, shape: tuple) -> None:
    if array.dtype != dtype or array.shape != shape:
        what = f"{name} as {np.dtype(dtype)} {shape}"
        raise ValueError(expected(what, f"{array.dtype} {array.shape}"))
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(expected(f"finite {name}", "others"))
