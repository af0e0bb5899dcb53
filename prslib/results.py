"""What a run leaves."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from prslib.config import RunConfig


@dataclass(frozen=True)
class Run:
    """The scores of a run, its memory at the end, and what else was looked at.

    Parameters
    ----------
    config : RunConfig
        What was asked for.
    scores : DataFrame
        Tidy: dataset, method, rho, memory_size, schedule, seed, trained_tasks, task, group, metric,
        value; rho is NaN and memory_size 0 where the method has none. A schedule reads "0,3,1,2",
        and "1+2,3+4" where tasks are trained together.
    memory_labels : ndarray of bool, (memory_size, C)
        Labels in memory at the end; (0, C) for a method without one. ExStream's vectors count
        once each, whatever the number of samples merged in them, for the one label they stand for.
    features : ndarray of float32, (N, D), or None
        What the head sees at the end, of the test images that `prslib.features.feature_rows`
        names; None where the configuration does not ask for it.
    gradient_variance : DataFrame or None
        Tidy: the run's columns as in the scores, images (of the stream, so far), samples (in
        memory), value (`prslib.variance.gradient_variance` over them); None where the configuration
        does not ask for it or the method has no memory.
    """

    config: RunConfig
    scores: pd.DataFrame
    memory_labels: np.ndarray
    features: np.ndarray | None = None
    gradient_variance: pd.DataFrame | None = None
