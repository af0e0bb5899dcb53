"""What a network sees in test images: which ones are kept, and how well classes stand apart."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from threadpoolctl import threadpool_limits

from prslib.datasets import GROUPS, SequentialDataset, load_dataset
from prslib.datasets.curation import feature_rows
from prslib.training.config import RunConfig


def labelled_images(config: RunConfig, dataset: SequentialDataset) -> pd.DataFrame:
    """Return what is known of the images whose features a run leaves, row by row.

    Parameters
    ----------
    config : RunConfig
        The run; it asks for features.
    dataset : SequentialDataset
        Its data set; labels suffice.

    Returns
    -------
    DataFrame
        dataset, method, seed, image (index in the test set), class (index), class_name, group.
    """
    test = dataset.tests[config.resolved["test_set"]]
    rows = feature_rows(test, config.features_per_class)
    classes = test.labels[rows].argmax(axis=1)
    columns = {
        "dataset": config.dataset,
        "method": config.method,
        "seed": config.seed,
        "image": rows,
        "class": classes,
        "class_name": np.array(dataset.class_names)[classes],
        "group": np.array(dataset.class_group)[classes],
    }
    return pd.DataFrame(columns)


def neighbour_hits(features: np.ndarray, classes: np.ndarray, neighbours: int) -> np.ndarray:
    """Say for each sample whether its nearest neighbours would class it right.

    Parameters
    ----------
    features : ndarray of float, (N, D)
        One vector a sample.
    classes : ndarray of int, (N,)
        Their classes.
    neighbours : int
        How many of the other samples vote, each with the inverse of its Euclidean distance.

    Returns
    -------
    ndarray of bool, (N,)
        Whether the vote of the others is the sample's own class.

    Examples
    --------
    >>> points = np.array([[0.0], [0.1], [5.0], [5.1], [0.2]])
    >>> neighbour_hits(points, np.array([0, 0, 1, 1, 1]), neighbours=1)
    array([ True,  True,  True,  True, False])
    """
    from sklearn.neighbors import KNeighborsClassifier

    vote = KNeighborsClassifier(n_neighbors=neighbours, weights="distance")
    return vote.fit(features, classes).predict(None) == classes


def separation(runs: Sequence, neighbours: int) -> pd.DataFrame:
    """Measure how well classes stand apart in the features (section "Feature Analysis").

    Parameters
    ----------
    runs : sequence of Run
        Runs that left features.
    neighbours : int
        Voters of the k-nearest-neighbour accuracy, fewer than there are images.

    Returns
    -------
    DataFrame
        dataset, stands_for, method, seed, measure, group (overall too), metric, value in percent,
        published (NaN: the paper prints no number), as `prslib.report` compares them. "kNN
        accuracy": share of images that their nearest others, of all classes, put into the right
        class. "silhouette": mean of (b - a) / max(a, b), a the mean distance to the own class, b to
        the nearest other one; 100 for classes far apart, 0 for classes that overlap, below 0 for
        images nearer to another class.

    Raises
    ------
    ValueError
        If a run left no features.

    Notes
    -----
    Both look at the feature space itself, with Euclidean distances, as t-SNE does; neither sees the
    picture. A class with a single image has silhouette 0, as scikit-learn defines it.
    """
    from sklearn.metrics import silhouette_samples

    frames = []
    for run in runs:
        features, images = _of(run)
        stands_for = load_dataset(run.config.dataset, images=False).stands_for
        hits = neighbour_hits(features, images["class"].to_numpy(), neighbours)
        values = {
            "kNN accuracy": hits.astype(float),
            "silhouette": silhouette_samples(features, images["class"]),
        }
        for metric, value in values.items():
            rows = images.assign(metric=metric, value=100 * value, stands_for=stands_for)
            frames += [rows, rows.assign(group="overall")]
    keys = ["dataset", "stands_for", "method", "seed", "group", "metric"]
    means = pd.concat(frames).groupby(keys, sort=False, dropna=False)["value"].mean()
    return means.reset_index().assign(measure="score", published=np.nan)


def embed(
    runs: Sequence, shown: Sequence[str] | None = None, others: int = 0, seed: int = 0
) -> pd.DataFrame:
    """Lay the penultimate features out in the plane with t-SNE (Figure "t-SNE").

    Parameters
    ----------
    runs : sequence of Run
        Runs that left features; each is laid out on its own.
    shown : sequence of str, optional
        Names of the classes of which all images take part, by default all classes.
    others : int
        Images of every other class that take part, the first ones.
    seed : int
        For t-SNE's own chance.

    Returns
    -------
    DataFrame
        dataset, method, seed, image, class, class_name, group, x, y: t-SNE's coordinates, which
        have no unit.

    Raises
    ------
    ValueError
        If a run left no features.

    Notes
    -----
    The start is the plane of the two largest principal components, which keeps the picture's large
    shape from hanging on chance (scikit-learn's default). One thread: the same picture every time,
    and notebooks side by side do not stand in each other's way.
    """
    from sklearn.manifold import TSNE

    frames = []
    for run in runs:
        features, images = _of(run)
        first = images.groupby("class").cumcount() < others
        drawn = images["class_name"].isin(images["class_name"] if shown is None else shown) | first
        features, images = features[drawn], images[drawn]
        perplexity = min(30.0, (len(images) - 1) / 3)  # scikit-learn's default, and for few images
        with threadpool_limits(1):
            tsne = TSNE(init="pca", perplexity=perplexity, random_state=seed)
            plane = tsne.fit_transform(features)
        frames.append(images.assign(x=plane[:, 0], y=plane[:, 1]))
    return pd.concat(frames, ignore_index=True)


def shown_classes(config: RunConfig, per_group: int) -> list[str]:
    """Return the classes that a run's picture tells apart, as `typical_classes` picks them.

    Parameters
    ----------
    config : RunConfig
        The run; it asks for features.
    per_group : int
        Classes of every group at most, where there are too many for all.

    Returns
    -------
    list of str
        Names, by falling frequency in the stream.
    """
    dataset = load_dataset(config.dataset, images=False)
    return typical_classes(labelled_images(config, dataset), dataset.class_freq, per_group)


def _of(run) -> tuple[np.ndarray, pd.DataFrame]:
    if run.features is None:
        raise ValueError(
            f"expected a run that left features, got {run.config.method} on {run.config.dataset} "
            "without; ask for features_per_class"
        )
    return run.features, labelled_images(run.config, load_dataset(run.config.dataset, False))


def typical_classes(
    images: pd.DataFrame, class_freq: np.ndarray, per_group: int, few: int = 10
) -> list[str]:
    """Pick a few classes of every group to be told apart in a picture; our own choice.

    Parameters
    ----------
    images : DataFrame
        Columns class, class_name, group.
    class_freq : ndarray of int64, (C,)
        How frequent each class is in the stream.
    per_group : int
        How many at most.
    few : int
        Where there are no more classes than this, all of them are picked.

    Returns
    -------
    list of str
        Names, by falling frequency: of the majority the most frequent classes, of the minority the
        rarest, of the moderate those in the middle, so that no one chooses by looking.
    """
    known = images[["class", "class_name", "group"]].drop_duplicates()
    known = known.assign(freq=class_freq[known["class"]])
    known = known.sort_values(["freq", "class"], ascending=[False, True])
    if len(known) <= few:
        return known["class_name"].tolist()
    picked = []
    for group, share in zip(GROUPS, (0.0, 0.5, 1.0), strict=True):
        names = known.loc[known["group"] == group, "class_name"].tolist()
        start = round(share * max(len(names) - per_group, 0))
        picked += names[start : start + per_group]
    return picked


# Tol's "muted" colours and black: ten classes that the colour-blind can tell apart
CLASS_COLOURS = (
    "#332288", "#88CCEE", "#CC6677", "#117733", "#DDCC77",
    "#882255", "#44AA99", "#AA4499", "#999933", "#000000",
)  # fmt: skip
GROUP_MARKERS = {"majority": "o", "moderate": "^", "minority": "*"}
SIZES = {"majority": 22, "moderate": 24, "minority": 55}  # points squared, equal to the eye


def plot_features(frame: pd.DataFrame, ax: Axes, shown: list[str]) -> Axes:
    """Draw images where t-SNE puts their features (Figure "t-SNE").

    Parameters
    ----------
    frame : DataFrame
        Columns x, y, class_name, group; one run.
    ax : Axes
        Where to draw.
    shown : list of str
        The classes to tell apart, ten at most, in the order of the legend; the others are grey.

    Returns
    -------
    Axes
        A class has a colour and its group a marker.

    Raises
    ------
    ValueError
        If there are more classes to tell apart than colours.
    """
    if len(shown) > len(CLASS_COLOURS):
        raise ValueError(
            f"shown: expected at most {len(CLASS_COLOURS)} classes, as many as it has "
            f"colours, got {len(shown)}; show fewer of each group"
        )
    rest = frame[~frame["class_name"].isin(shown)]
    if len(rest):
        ax.scatter(rest["x"], rest["y"], s=5, color="0.8", linewidth=0, label="other classes")
    for name, colour in zip(shown, CLASS_COLOURS, strict=False):
        part = frame[frame["class_name"] == name]
        group = part["group"].iloc[0]
        ax.scatter(
            part["x"], part["y"], s=SIZES[group], marker=GROUP_MARKERS[group], color=colour,
            edgecolor="white", linewidth=0.4, label=f"{name} ({group})",
        )  # fmt: skip
    ax.set(xlabel="t-SNE axis 1 (no unit)", ylabel="t-SNE axis 2 (no unit)", xticks=[], yticks=[])
    ax.set_aspect("equal", adjustable="datalim")
    ax.legend(fontsize=8)
    return ax
