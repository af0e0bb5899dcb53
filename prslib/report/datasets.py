"""What a data set is made of, as tidy frames: frequencies, co-occurrences, steps of clustering."""

import textwrap

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import PercentFormatter

from prslib.datasets import GROUPS, SequentialDataset
from prslib.datasets.base import Clustering
from prslib.datasets.curation import class_merges


def class_statistics(dataset: SequentialDataset) -> pd.DataFrame:
    """Count the images of every class in the stream (Figures "COCOseq", "NUS-WIDEseq").

    Parameters
    ----------
    dataset : SequentialDataset
        Labels suffice.

    Returns
    -------
    DataFrame
        dataset, task, class, group, images; task by task, the most frequent class first.

    Examples
    --------
    >>> from prslib.datasets import load_dataset
    >>> class_statistics(load_dataset("digits70tiny", images=False))["images"].max()
    np.int64(45)
    """
    columns = {
        "dataset": dataset.name,
        "task": dataset.class_task,
        "class": dataset.class_names,
        "group": dataset.class_group,
        "images": dataset.class_freq,
    }
    frame = pd.DataFrame(columns)
    return frame.sort_values(
        ["task", "images"], ascending=[True, False], kind="stable", ignore_index=True
    )


def labels_per_image(dataset: SequentialDataset) -> pd.DataFrame:
    """Count the images with 1, 2, 3, ... labels, task by task (section "Datasets").

    Parameters
    ----------
    dataset : SequentialDataset
        Labels suffice.

    Returns
    -------
    DataFrame
        dataset, task, labels, images, share (of the task's images, in percent).
    """
    counted = pd.DataFrame({"task": dataset.train.task, "labels": dataset.train.labels.sum(axis=1)})
    frame = counted.groupby(["task", "labels"]).size().rename("images").reset_index()
    frame["share"] = 100 * frame["images"] / frame.groupby("task")["images"].transform("sum")
    return frame.assign(dataset=dataset.name)[["dataset", "task", "labels", "images", "share"]]


def cooccurrence(dataset: SequentialDataset, clustering: Clustering) -> pd.DataFrame:
    """Count the images that show two classes together, before any image is dropped (Algorithm 2).

    Parameters
    ----------
    dataset : SequentialDataset
        Gives tasks and order.
    clustering : Clustering
        Labels of all images; classes that the data set does not keep are left out.

    Returns
    -------
    DataFrame, (C, C)
        Images with both classes, a class's own images on the diagonal; rows and columns in the
        order of `class_statistics`.
    """
    names = class_statistics(dataset)["class"].tolist()
    columns = [clustering.class_names.index(name) for name in names]
    labels = clustering.labels[:, columns].astype(np.float32)  # exact: counts below 2 ** 24
    return pd.DataFrame((labels.T @ labels).astype(np.int64), index=names, columns=names)


def clustering_steps(clustering: Clustering) -> pd.DataFrame:
    """Follow the clustering merge by merge (Appendix, Algorithm 2).

    Parameters
    ----------
    clustering : Clustering
        What is clustered.

    Returns
    -------
    DataFrame
        A row a merge: groups (left after it), first and second (the classes joined), together
        (images that only the joined group holds), apart (images that one of the two holds), score,
        kept (share of all images that lie within one group now, in percent).

    Examples
    --------
    >>> labels = np.array([[1, 1, 0], [0, 0, 1]], dtype=bool)
    >>> clustering_steps(Clustering(labels, ("a", "b", "c"), 2, 1.0))["kept"].tolist()
    [100.0]
    """
    settings = (clustering.n_groups, clustering.beta, clustering.min_classes)
    merges = class_merges(clustering.labels, *settings)
    single = int((clustering.labels.sum(axis=1) == 1).sum())
    kept = single + np.cumsum([merge.together for merge in merges])
    frame = pd.DataFrame(
        {
            "groups": len(clustering.class_names) - 1 - np.arange(len(merges)),
            "first": [_listed(merge.first, clustering) for merge in merges],
            "second": [_listed(merge.second, clustering) for merge in merges],
            "together": [merge.together for merge in merges],
            "apart": [merge.apart for merge in merges],
            "score": [merge.score for merge in merges],
        }
    )
    return frame.assign(kept=100 * kept / len(clustering.labels))


def _listed(classes: tuple[int, ...], clustering: Clustering) -> str:
    return ", ".join(clustering.class_names[c] for c in sorted(classes))


def sample_images(dataset: SequentialDataset, count: int, seed: int) -> pd.DataFrame:
    """Draw some training images of every task (Figure "COCOseq").

    Parameters
    ----------
    dataset : SequentialDataset
        With images, unless `count` is 0.
    count : int
        Images of each task.
    seed : int
        Source of the draw.

    Returns
    -------
    DataFrame
        dataset, task, row (of the training images), labels (names).
    """
    rng, frames = np.random.default_rng(seed), []
    for task in range(dataset.num_tasks):
        rows = np.flatnonzero(dataset.train.task == task)
        rows = np.sort(rng.choice(rows, size=min(count, len(rows)), replace=False))
        names = [np.array(dataset.class_names)[dataset.train.labels[row]] for row in rows]
        frames.append(pd.DataFrame({"task": task, "row": rows, "labels": map(", ".join, names)}))
    return pd.concat(frames, ignore_index=True).assign(dataset=dataset.name)


def sizes(dataset: SequentialDataset) -> pd.DataFrame:
    """Count images, classes and groups of a data set (section "Datasets").

    Parameters
    ----------
    dataset : SequentialDataset
        Labels suffice.

    Returns
    -------
    DataFrame
        One row: dataset, stands_for, tasks, classes, train, a column for each test set, and the
        number of classes in each group.
    """
    counts = {f"{name} test": len(split) for name, split in dataset.tests.items()}
    groups = {group: dataset.class_group.count(group) for group in GROUPS}
    row = {
        "dataset": dataset.name,
        "stands_for": dataset.stands_for,
        "tasks": dataset.num_tasks,
        "classes": dataset.num_classes,
        "train": len(dataset.train),
    }
    return pd.DataFrame([row | counts | groups])


def tell(steps: pd.DataFrame) -> list[str]:
    """Put merges into sentences (Appendix, Algorithm 2).

    Parameters
    ----------
    steps : DataFrame
        Rows of `clustering_steps`.

    Returns
    -------
    list of str
        A Markdown bullet for each.
    """
    return [
        f"- {row.groups + 1} groups: {_in_short(row.first)} joins {_in_short(row.second)}; "
        f"{row.together} images show both sides, {row.apart} only one; score {row.score:.4g}. "
        f"{row.kept:.1f} % of the images lie within one group now."
        for row in steps.itertuples()
    ]


def _in_short(classes: str) -> str:
    names = classes.split(", ")
    return classes if len(names) <= 6 else f"{', '.join(names[:4])} and {len(names) - 4} more"


GROUP_COLOURS = {"majority": "#0072B2", "moderate": "#E69F00", "minority": "#CC79A7"}


def plot_class_statistics(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the classes of every task by frequency, coloured by group (Figure "COCOseq").

    Parameters
    ----------
    frame : DataFrame
        Columns task, class, group, images, in the order in which they are drawn; one data set.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With a bar a class on a logarithmic scale and a gap between the tasks.
    """
    place = range(len(frame)) + 1.5 * frame["task"].to_numpy()
    ax.bar(place, frame["images"], color=frame["group"].map(GROUP_COLOURS), width=0.85)
    ax.set_xticks(place, frame["class"], rotation=90, fontsize=6.5)
    for task, positions in pd.Series(place).groupby(frame["task"].to_numpy()):
        ax.text(
            positions.mean(), 1.0, f"task {task}", ha="center", va="bottom",
            transform=ax.get_xaxis_transform(),
        )  # fmt: skip
    ax.set(xlabel="class", ylabel="training images", yscale="log")
    ax.margins(x=0.005)
    handles = [
        Patch(color=colour, label=f"{group} ({(frame['group'] == group).sum()})")
        for group, colour in GROUP_COLOURS.items()
    ]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def plot_labels_per_image(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw which share of each task's images carries 1, 2, 3, ... labels (section "Datasets").

    Parameters
    ----------
    frame : DataFrame
        Columns task, labels, share (percent); one data set.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With a group of bars for each number of labels, a bar a task.
    """
    sns.barplot(frame, x="labels", y="share", hue="task", palette="viridis", ax=ax)
    ax.set(xlabel="labels of an image", ylabel="share of the task's images (%)")
    ax.legend(title="task")
    return ax


def plot_cooccurrence(matrix: pd.DataFrame, task: np.ndarray, ax: Axes) -> Axes:
    """Draw how many images show two classes together, a frame around each task (Algorithm 2).

    Parameters
    ----------
    matrix : DataFrame, (C, C)
        Images with both classes; rows and columns ordered by task.
    task : ndarray of int, (C,)
        Task of each row.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With a colour bar; white where two classes never meet.
    """
    counts = matrix.to_numpy().astype(float)
    counts[counts == 0] = np.nan
    np.fill_diagonal(counts, np.nan)
    shown = ax.imshow(counts, norm=LogNorm(vmin=1, vmax=np.nanmax(counts)), cmap="viridis_r")
    for number in np.unique(task):
        rows = np.flatnonzero(task == number)
        corner, side = (rows[0] - 0.5, rows[0] - 0.5), len(rows)
        frame = Rectangle(corner, side, side, fill=False, edgecolor="#D55E00", linewidth=1.6)
        ax.add_patch(frame).set_clip_on(False)
        ax.text(
            len(task), rows.mean(), f"task {number}", ha="left", va="center",
            fontsize=8, color="#D55E00",
        )  # fmt: skip
    ax.set_xticks([])
    ax.set_yticks(range(len(matrix)), matrix.index, fontsize=min(9, 330 / len(matrix)))
    ax.tick_params(length=0)
    ax.grid(False)
    ax.set(xlabel="class, in the order of the rows", ylabel="class")
    ax.figure.colorbar(shown, ax=ax, label="images with both classes", shrink=0.7, pad=0.09)
    return ax


def plot_clustering_steps(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw which share of the images lies within one group, merge by merge (Algorithm 2).

    Parameters
    ----------
    frame : DataFrame
        Columns groups (left after the merge), kept (percent).
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With the number of groups falling from left to right, and the last share written down.
    """
    ax.plot(frame["groups"], frame["kept"], color="#0072B2", drawstyle="steps-post")
    last = frame.iloc[-1]
    ax.plot(last["groups"], last["kept"], "o", color="#D55E00")
    ax.annotate(
        f"{last['groups']:.0f} tasks keep {last['kept']:.0f} %", (last["groups"], last["kept"]),
        xytext=(-8, 4), textcoords="offset points", ha="right", va="bottom", color="#D55E00",
    )  # fmt: skip
    ax.invert_xaxis()
    ax.yaxis.set_major_formatter(PercentFormatter(decimals=0))
    ax.set(xlabel="groups left", ylabel="images within one group")
    ax.set_ylim(0, min(112, 1.2 * last["kept"]))
    ax.margins(x=0.04)
    return ax


def plot_sample(image: np.ndarray, labels: str, ax: Axes) -> Axes:
    """Draw one image with its labels below (Figure "COCOseq").

    Parameters
    ----------
    image : ndarray of uint8, (H, W, channels)
        Pixels; one channel is drawn in grey.
    labels : str
        The names of its classes.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        Without ticks.
    """
    ax.imshow(image.squeeze(), cmap="gray", vmin=0, vmax=255)
    ax.set_xlabel("\n".join(textwrap.wrap(labels, 18)), fontsize=7, labelpad=2)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.grid(False)
    return ax
