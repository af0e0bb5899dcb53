"""Measure and draw how far apart the classes lie in the penultimate features of a network."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from threadpoolctl import threadpool_limits

from prslib.datasets import GROUPS, load_dataset
from prslib.datasets.curation import feature_rows
from prslib.report import notebook
from prslib.report.notebook import several
from prslib.report.style import GROUP_MARKERS
from prslib.training.config import Run, RunConfig
from prslib.training.grids import configs, paired

# Tol's "muted" colours and black: ten classes that the colour-blind can tell apart
CLASS_COLOURS = (
    "#332288", "#88CCEE", "#CC6677", "#117733", "#DDCC77",
    "#882255", "#44AA99", "#AA4499", "#999933", "#000000",
)  # fmt: skip
# points squared, equal to the eye
SIZES = {"majority": 22, "moderate": 24, "minority": 55}
ENOUGH = 5  # test images of a class that show where it lies


@dataclass(frozen=True)
class Settings(notebook.Settings):
    """Parameters of the notebook, which explains them."""

    dataset: list[str] = several("imbal-digits", "cocoseq-mini")
    rhos: list[float] = several(0.0, -0.03)
    method: list[str] = several("CRS", "PRS")
    seeds: list[int] = several(0, 1, 2, 3, 4)
    per_class: int = 20
    neighbours: int = 5
    shown: int = 3
    others: int = 5
    device: str = "cpu"


def runs(settings: Settings) -> list[RunConfig]:
    """List runs that keep the features of their test images."""
    fields = {
        "method": settings.method,
        "features_per_class": settings.per_class,
        "seed": settings.seeds,
    }
    pairs = paired(dataset=settings.dataset, rho=settings.rhos)
    return [config for pair in pairs for config in configs(**pair, **fields)]


def labelled_images(config: RunConfig) -> pd.DataFrame:
    """Return class and group of every image whose features a run stores, in the same order."""
    dataset = load_dataset(config.dataset, images=False)
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


def neighbour_hits(
    features: np.ndarray, classes: np.ndarray, neighbours: int
) -> np.ndarray:
    """Say for each sample whether its nearest others vote for its class, by inverse distance."""
    from sklearn.neighbors import KNeighborsClassifier

    vote = KNeighborsClassifier(n_neighbors=neighbours, weights="distance")
    return vote.fit(features, classes).predict(None) == classes


def separation(runs: Sequence[Run], neighbours: int) -> pd.DataFrame:
    """Measure how far apart the classes lie, in percent, by group (section "Feature Analysis")."""
    from sklearn.metrics import silhouette_samples

    frames = []  # distances are Euclidean and between features, as in t-SNE
    for run in runs:
        features, images = run.features, labelled_images(run.config)
        stands_for = load_dataset(run.config.dataset, images=False).stands_for
        hits = neighbour_hits(features, images["class"].to_numpy(), neighbours)
        values = {
            "kNN accuracy": hits.astype(float),
            # 1 for classes far apart, 0 where they overlap
            "silhouette": silhouette_samples(features, images["class"]),
        }
        for metric, value in values.items():
            cells = {"stands_for": stands_for, "metric": metric, "value": 100 * value}
            rows = images.assign(**cells)
            frames += [rows, rows.assign(group="overall")]
    keys = ["dataset", "stands_for", "method", "seed", "group", "metric"]
    means = pd.concat(frames).groupby(keys, sort=False, dropna=False)["value"].mean()
    return means.reset_index().assign(measure="score", published=np.nan)


def embed(
    runs: Sequence[Run],
    shown: Sequence[str] | None = None,
    others: int = 0,
    seed: int = 0,
) -> pd.DataFrame:
    """Map features to the plane with t-SNE, all of classes ``shown`` and the first of others."""
    from sklearn.manifold import TSNE

    frames = []
    for run in runs:
        features, images = run.features, labelled_images(run.config)
        drawn = images.groupby("class").cumcount() < others
        drawn |= shown is None or images["class_name"].isin(shown)
        features, images = features[drawn], images[drawn]
        # scikit-learn's default, and for few images
        perplexity = min(30.0, (len(images) - 1) / 3)
        # the first two principal components as a start: the large shape is not random
        tsne = TSNE(init="pca", perplexity=perplexity, random_state=seed)
        with threadpool_limits(1):  # the same picture every time
            plane = tsne.fit_transform(features)
        frames.append(images.assign(x=plane[:, 0], y=plane[:, 1]))
    return pd.concat(frames, ignore_index=True)


def shown_classes(config: RunConfig, per_group: int) -> list[str]:
    """Return the names of the classes that get a colour in the picture of a run."""
    dataset = load_dataset(config.dataset, images=False)
    return typical_classes(labelled_images(config), dataset.class_freq, per_group)


def typical_classes(
    images: pd.DataFrame, class_freq: np.ndarray, per_group: int, few: int = 10
) -> list[str]:
    """Pick each group's most frequent, middle and rarest classes; of a ``few`` classes all."""
    classes = images[["class", "class_name", "group"]].drop_duplicates()
    classes = classes.assign(freq=class_freq[classes["class"]])
    classes = classes.sort_values(["freq", "class"], ascending=[False, True])
    if len(classes) <= few:
        return classes["class_name"].tolist()
    counts = images["class_name"].value_counts()
    picked = []
    for group, share in zip(GROUPS, (0.0, 0.5, 1.0), strict=True):
        names = classes.loc[classes["group"] == group, "class_name"].tolist()
        drawable = [name for name in names if counts[name] >= ENOUGH]
        names = drawable if len(drawable) >= per_group else names
        start = round(share * max(len(names) - per_group, 0))
        picked += names[start : start + per_group]
    return picked


def plot_features(frame: pd.DataFrame, ax: Axes, shown: list[str]) -> Axes:
    """Draw images at their t-SNE coordinates, ``shown`` classes in colour, others in grey."""
    if len(shown) > len(CLASS_COLOURS):
        raise ValueError(
            f"shown: expected at most {len(CLASS_COLOURS)} classes, as many as it has "
            f"colours, got {len(shown)}; show fewer of each group"
        )
    others = frame[~frame["class_name"].isin(shown)]
    if len(others):
        look = {"s": 5, "color": "0.8", "linewidth": 0, "label": "other classes"}
        ax.scatter(others["x"], others["y"], **look)
    for name, colour in zip(shown, CLASS_COLOURS, strict=False):
        dots = frame[frame["class_name"] == name]
        group = dots["group"].iloc[0]
        look = {"s": SIZES[group], "marker": GROUP_MARKERS[group], "color": colour}
        look |= {"edgecolor": "white", "linewidth": 0.4, "label": f"{name} ({group})"}
        ax.scatter(dots["x"], dots["y"], **look)
    ax.set(xlabel="t-SNE axis 1 (no unit)", ylabel="t-SNE axis 2 (no unit)")
    ax.set(xticks=[], yticks=[])
    ax.set_aspect("equal", adjustable="datalim")
    ax.legend(fontsize=8)
    return ax
