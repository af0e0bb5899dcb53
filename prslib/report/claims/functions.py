"""Compute the numbers that test claims, from one seed's scores in one metric.

Each function returns numbers by name, which are above 0 if the claim is true.
``claims.toml`` names the functions and their arguments. A number is an array
(1 + draws,): the value, and the values on resampled test images.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from prslib.report.claims.scores import Seed

Cells = dict[str, np.ndarray]  # by name: (1 + draws,)
Place = dict[str, Any]  # arguments of `Seed.score`


def lead(
    seed: Seed,
    over: list[str],
    method: str = "PRS",
    setting: Place | None = None,  # of the method, but not of `over`
    at: dict[str, Place] | None = None,
    **place: Any,
) -> Cells:
    """Return a method's score minus other methods' scores, in one setting or several."""
    cells = {}
    places = {"": {}} if at is None else at
    for name, where in places.items():
        score = seed.score(method, **place | where | (setting or {}))
        for rival in over:
            theirs = seed.score(rival, **place | where)
            cells[f"{method} minus {rival}, {name}".strip(", ")] = score - theirs
    return cells


def lead_in_schedules(seed: Seed, over: list[str]) -> Cells:
    """Return PRS's leads in every schedule with which all methods were run."""
    schedules = seed.levels("schedule", "PRS", *over)
    at = {f"schedule {s or 'of Table 1'}": {"schedule": s} for s in schedules}
    return lead(seed, over, at=at)


def lead_after_tasks(seed: Seed, over: list[str]) -> Cells:
    """Return PRS's leads after each task but the first."""
    # if the first task fits into the memory, all methods keep the same samples
    later = seed.times("PRS")[1:]
    at = {f"after {time} tasks": {"after": time} for time in later}
    return lead(seed, over, at=at)


def gap(seed: Seed, **arguments: Any) -> Cells:
    """Return one score minus another; the arguments are those of `subtract`."""
    return {"": subtract(seed, **arguments)}


def gaps(seed: Seed, **cells: dict) -> Cells:
    """Return several gaps by name."""
    return {name: subtract(seed, **arguments) for name, arguments in cells.items()}


def difference(seed: Seed, first: dict, second: dict) -> Cells:
    """Return how much larger one gap is than another."""
    return {"": subtract(seed, **first) - subtract(seed, **second)}


def subtract(
    seed: Seed,
    high: Place | None = None,
    low: Place | None = None,
    plus: float = 0.0,
    **place: Any,  # of both scores
) -> np.ndarray:
    """Return one score minus another, plus a constant; an omitted score counts as 0."""
    value = np.array(plus)
    if high is not None:
        value = value + seed.score(**place | high)
    if low is not None:
        value = value - seed.score(**place | low)
    return value


def percent(seed: Seed, high: Place, low: Place, **place: Any) -> Cells:
    """Return by how many percent one score exceeds another."""
    ratio = seed.score(**place | high) / seed.score(**place | low)
    return {"": 100 * (ratio - 1)}


def decline(seed: Seed, method: str, tasks: list[str]) -> Cells:
    """Return minus the rank correlation between the order of tasks and their scores."""
    scores = pd.DataFrame([seed.score(method, task=task) for task in tasks])
    ranks = scores.rank()  # (tasks, 1 + draws)
    return {"": -ranks.corrwith(ranks.index.to_series()).to_numpy()}


def rho_near_over_far(seed: Seed, near: float) -> Cells:
    """Return the mean score over rho within `near`, minus the score at each far end."""
    scores = by_rho(seed)
    within = [scores[rho] for rho in scores if abs(rho) <= near]
    ends = dict.fromkeys([min(scores), max(scores)])
    far = [rho for rho in ends if abs(rho) > near and within]
    return {
        f"rho near 0 minus rho {rho:g}": np.mean(within, axis=0) - scores[rho]
        for rho in far
    }


def rho_steps(seed: Seed) -> Cells:
    """Return the loss of score with each step of rho away from 0."""
    scores = by_rho(seed)
    up = [rho for rho in scores if rho >= 0]
    down = [rho for rho in reversed(scores) if rho <= 0]
    steps = [*pairwise(up), *pairwise(down)]
    return {f"rho {a:g} minus rho {b:g}": scores[a] - scores[b] for a, b in steps}


def by_rho(seed: Seed) -> dict[float, np.ndarray]:
    """Return PRS's scores by rho, from the lowest to the highest."""
    scores = {}
    for rho in seed.levels("rho", "PRS"):
        value = seed.scores.rho if rho is None else rho
        scores[float(value)] = seed.score("PRS", rho=rho)
    return dict(sorted(scores.items()))


def scores_by_schedule(seed: Seed, methods: list[str]) -> Cells:
    """Return the scores of methods in all schedules, (schedules, methods, 1 + draws)."""
    schedules = seed.levels("schedule", *methods)
    scores = [
        [seed.score(method, schedule=schedule) for method in methods]
        for schedule in schedules
    ]
    return {"": np.array(scores)}


def spare_variance(scores: np.ndarray) -> np.ndarray:
    """Return the first method's variance over schedules minus the second's, by seed.

    `scores` are (seeds, metrics, schedules, methods, 1 + draws). A variance is estimated
    from all seeds together; the jackknife's pseudo-values give one number per seed,
    (seeds, metrics, 1 + draws).
    """
    variances = by_seed(schedule_variance, scores)
    return variances[:, :, 0] - variances[:, :, 1]


def schedule_variance(scores: np.ndarray) -> np.ndarray:
    """Average the covariances over schedules of all pairs of different seeds."""
    seeds, _, schedules = scores.shape[:3]  # (seeds, metrics, schedules, ...)
    scores = scores - scores.mean(axis=2, keepdims=True)
    total = (scores.sum(axis=0) ** 2).sum(axis=1)
    pairs = seeds**2
    if seeds > 1:  # only pairs of a seed with itself contain its noise
        total = total - (scores**2).sum(axis=(0, 2))
        pairs = seeds * (seeds - 1)
    return total / pairs / (schedules - 1)


def by_seed(statistic: Callable, scores: np.ndarray) -> np.ndarray:
    """Return the jackknife's pseudo-values of a statistic, one per seed."""
    count = len(scores)
    whole = statistic(scores)
    if count == 1:
        return whole[None]
    without = [statistic(np.delete(scores, seed, axis=0)) for seed in range(count)]
    return count * whole - (count - 1) * np.stack(without)


# functions that turn the scores of all seeds into one number per seed
STATISTICS = {scores_by_schedule: spare_variance}
