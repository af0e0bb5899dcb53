"""What a network began with: the methods' scores by weights, and the distances between methods."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from prslib import report
from prslib.datasets import load_dataset, pretraining
from prslib.results import Run

SEED = 0  # of the example scenes


def rows_of(runs: Sequence[Run]) -> pd.DataFrame:
    """Take the final scores of runs that began with several weights, beside the paper's (Table 1).

    Parameters
    ----------
    runs : sequence of Run
        Finished runs.

    Returns
    -------
    DataFrame
        As `report.final` gives them, with weights, stands_for and published; the paper's numbers
        are those of a network pretrained on ImageNet, and stand beside all weights.
    """
    return report.beside(report.final(report.scores_of(runs, "weights")), "main")


def seed_gaps(rows: pd.DataFrame, method: str, than: str) -> pd.DataFrame:
    """Subtract one method's scores from another's, seed by seed, for each weights (Table 1).

    Parameters
    ----------
    rows : DataFrame
        As `rows_of` gives them.
    method, than : str
        The difference is ``method`` minus ``than``.

    Returns
    -------
    DataFrame
        dataset, stands_for, weights, measure ("score"), group, metric, seed, value and published
        in points: one row for each seed that both have.
    """
    keys = ["dataset", "stands_for", "weights", "measure", "group", "metric", "seed"]
    scores = rows[rows["measure"] == "score"]
    first, second = (
        scores[scores["method"] == name].set_index(keys)[["value", "published"]]
        for name in (method, than)
    )
    gaps = (first - second).reindex(first.index)
    return gaps.dropna(subset="value").reset_index()


def shifts(gaps: pd.DataFrame, cells: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Say how far the distance between two methods moves from the first weights to the others.

    Parameters
    ----------
    gaps : DataFrame
        As `seed_gaps` gives them.
    cells : sequence of (group, metric)
        Which scores.

    Returns
    -------
    DataFrame
        As `report.contrasts` gives it, with the column weights; published is NaN, as the paper has
        one beginning only.
    """
    first, *others = gaps["weights"].unique()
    distances = gaps.assign(method=gaps["weights"], published=np.nan)
    found = [
        report.contrasts(distances, name, first, cells).assign(weights=name) for name in others
    ]
    return pd.concat(found, ignore_index=True)


def with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """Set the paper's numbers apart, as weights of their own after ours (Table 1).

    Parameters
    ----------
    rows : DataFrame
        As `rows_of` gives them.

    Returns
    -------
    DataFrame
        The rows without published, and for each number of the paper one without value, whose
        weights are "ImageNet [paper]".
    """
    cells = ["dataset", "method", "measure", "group", "metric"]
    theirs = rows.dropna(subset="published").drop_duplicates(cells)
    theirs = theirs.assign(weights="ImageNet [paper]", value=np.nan)
    return pd.concat([rows.assign(published=np.nan), theirs], ignore_index=True)


def example_scenes(
    begun_with: Sequence[str], dataset: str, count: int
) -> tuple[pd.DataFrame, list[np.ndarray]]:
    """Draw a few images of a stream, and of what the embedded weights have learned (our own).

    Parameters
    ----------
    begun_with : sequence of str
        Weights; those that are not embedded in the package are passed over.
    dataset : str
        A key of `DATASETS`.
    count : int
        Images of each.

    Returns
    -------
    frame : DataFrame
        source (the data set or the weights) and labels (names of the classes), a row an image.
    images : list of ndarray of uint8, (H, W, channels)
        The images, in the frame's order.
    """
    data, rng = load_dataset(dataset), np.random.default_rng(SEED)
    rows = np.sort(rng.choice(len(data.train), count, replace=False))
    drawn = [(dataset, data.class_names, data.train.images[rows], data.train.labels[rows])]
    for name in begun_with:
        if name in pretraining.TURNS:
            scenes, labels = pretraining.draw_scenes(name, count, rng)
            drawn.append((name, pretraining.CLASS_NAMES, scenes, labels))
    told = [
        (source, ", ".join(names[i] for i in np.flatnonzero(row)))
        for source, names, _, labels in drawn
        for row in labels
    ]
    images = [image for _, _, scenes, _ in drawn for image in scenes]
    return pd.DataFrame(told, columns=["source", "labels"]), images
