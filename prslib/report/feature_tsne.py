"""Measure and draw how far apart the classes lie in the penultimate features of a network."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from threadpoolctl import threadpool_limits

from prslib import Run, RunConfig, configs_of, paired
from prslib.checks import expected
from prslib.datasets import GROUPS
from prslib.datasets.curation import feature_rows
from prslib.report.notebook import Trained, several
from prslib.report.style import GROUP_MARKERS
from prslib.report.tables import labels_of
from prslib.resamples import resampled_mean

# Tol's "muted" colours and black: ten classes that the colour-blind can tell apart
CLASS_COLOURS = (
    "#332288", "#88CCEE", "#CC6677", "#117733", "#DDCC77",
    "#882255", "#44AA99", "#AA4499", "#999933", "#000000",
)  # fmt: skip
# points squared, equal to the eye
SIZES = {"majority": 22, "moderate": 24, "minority": 55}
ENOUGH = 5  # test images of a class that show where it lies


class Settings(Trained):
    """Parameters of the notebook, which explains them."""

    dataset: list[str] = several("imbal-digits", "cocoseq-mini")
    rhos: list[float] = several(0.0, -0.03)
    method: list[str] = several("CRS", "PRS")
    per_class: int = 20
    neighbours: int = 5
    shown: int = 3
    others: int = 5


def runs(settings: Settings) -> list[RunConfig]:
    """List runs that keep the features of their test images."""
    made = []
    for pair in paired(dataset=settings.dataset, rho=settings.rhos):
        fields = pair | {"features_per_class": settings.per_class}
        made += configs_of(settings.method, settings.seeds, **fields)
    return made


def labelled_images(config: RunConfig) -> pd.DataFrame:
    """Return class and group of every image whose features a run stores, in the same order."""
    dataset = labels_of(config.dataset)
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


def neighbour_votes(run: Run, neighbours: int) -> pd.DataFrame:
    """Add the kNN accuracy of each image: 100 where its nearest others vote for its class."""
    from sklearn.neighbors import KNeighborsClassifier

    images = labelled_images(run.config)
    vote = KNeighborsClassifier(n_neighbors=neighbours, weights="distance")
    voted = vote.fit(run.features, images["class"].to_numpy()).predict(None)
    return images.assign(**{"kNN accuracy": 100.0 * (voted == images["class"])})


def separation(runs: Sequence[Run], neighbours: int) -> pd.DataFrame:
    """Measure how far apart the classes lie, in percent, by group (section "Feature Analysis")."""
    from sklearn.metrics import silhouette_samples

    table = []  # distances are Euclidean and between features, as in t-SNE
    for run in runs:
        images = neighbour_votes(run, neighbours)
        # 1 for classes far apart, 0 where they overlap
        silhouettes = silhouette_samples(run.features, images["class"].to_numpy())
        images["silhouette"] = 100 * silhouettes
        dataset = labels_of(run.config.dataset)
        settings = run.config.resolved
        tested = len(dataset.tests[settings["test_set"]])
        place = {"dataset": run.config.dataset, "stands_for": dataset.stands_for}
        place |= {"method": run.config.method, "seed": run.config.seed}
        both = pd.concat([images, images.assign(group="overall")])
        for group, used in both.groupby("group", sort=False):
            for metric in ("kNN accuracy", "silhouette"):
                values = used[metric].to_numpy()
                row = place | {"group": group, "metric": metric, "measure": "score"}
                row |= {"value": values.mean(), "published": np.nan}
                if draws := settings["test_resamples"]:
                    rows = used["image"].to_numpy()
                    row["draws"] = resampled_mean(values, rows, tested, draws)
                table.append(row)
    return pd.DataFrame(table)


def embed(runs: Sequence[Run], shown: Sequence[str], others: int) -> pd.DataFrame:
    """Map features to the plane with t-SNE, all of classes ``shown`` and the first of others."""
    from sklearn.manifold import TSNE

    frames = []
    for run in runs:
        images = labelled_images(run.config)
        first = images.groupby("class").cumcount() < others
        drawn = first | images["class_name"].isin(shown)
        # the first two principal components as a start: the large shape is not random
        tsne = TSNE(init="pca", random_state=0)
        with threadpool_limits(1):  # the same picture every time
            plane = tsne.fit_transform(run.features[drawn])
        frames.append(images[drawn].assign(x=plane[:, 0], y=plane[:, 1]))
    return pd.concat(frames, ignore_index=True)


def shown_classes(config: RunConfig, per_group: int) -> list[str]:
    """Pick each group's most frequent, middle and rarest classes; of ten classes all."""
    freq = labels_of(config.dataset).class_freq
    classes = labelled_images(config)
    classes = classes.value_counts(["class", "class_name", "group"]).reset_index()
    classes = classes.assign(freq=freq[classes["class"]])
    classes = classes.sort_values(["freq", "class"], ascending=[False, True])
    if len(classes) <= len(CLASS_COLOURS):
        return classes["class_name"].tolist()
    picked = []
    for group, share in zip(GROUPS, (0.0, 0.5, 1.0), strict=True):
        rows = classes[classes["group"] == group]
        clear = rows[rows["count"] >= ENOUGH]
        names = (clear if len(clear) >= per_group else rows)["class_name"].tolist()
        start = round(share * max(len(names) - per_group, 0))
        picked += names[start : start + per_group]
    return picked


def plot_features(frame: pd.DataFrame, ax: Axes, shown: list[str]) -> Axes:
    """Draw images at their t-SNE coordinates, ``shown`` classes in colour, others in grey."""
    if len(shown) > len(CLASS_COLOURS):
        what = f"at most {len(CLASS_COLOURS)} classes, as many as there are colours"
        raise ValueError(expected(what, len(shown), "show fewer of each group"))
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
    return ax
