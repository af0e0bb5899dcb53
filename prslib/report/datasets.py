"""Describe data sets: class frequencies, labels per image, co-occurrence, steps of clustering."""

import textwrap

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator

from prslib.datasets import GROUPS, SequentialDataset
from prslib.datasets.base import Clustering
from prslib.datasets.curation import class_merges
from prslib.report.notebook import Parameters, several
from prslib.report.style import GROUP_COLOURS, GROUP_MARKERS, HUES, write_above

# has the last of the colours, which are the same on every data set
LAST_TASK = 5
FRAME = "#E8000B"  # of a task, visible on all of viridis


class Settings(Parameters):
    """Parameters of the notebook, which explains them."""

    one_label = False
    dataset: list[str] = several("cocoseq-mini", "digits70seq", "digits49seq")
    samples: int = 8
    seed: int = 0


def class_statistics(dataset: SequentialDataset) -> pd.DataFrame:
    """Count the images of every class in the stream (Figures "COCOseq", "NUS-WIDEseq")."""
    columns = {
        "dataset": dataset.name,
        "task": dataset.class_task,
        "class": dataset.class_names,
        "group": dataset.class_group,
        "images": dataset.class_freq,
    }
    frame = pd.DataFrame(columns).sort_values("images", ascending=False, kind="stable")
    return frame.sort_values("task", kind="stable", ignore_index=True)


def labels_per_image(dataset: SequentialDataset) -> pd.DataFrame:
    """Count the images with 1, 2, 3, ... labels, task by task (section "Datasets")."""
    labels = dataset.train.labels.sum(axis=1)
    images = pd.DataFrame({"task": dataset.train.task, "labels": labels})
    images["dataset"] = dataset.name
    counts = images.groupby(["dataset", "task", "labels"]).size()
    frame = counts.rename("images").reset_index()
    of_task = frame.groupby("task")["images"].transform("sum")
    return frame.assign(share=100 * frame["images"] / of_task)


def cooccurrence(dataset: SequentialDataset, clustering: Clustering) -> pd.DataFrame:
    """Count the images with both of two classes, dropped images included, as (C, C)."""
    names = class_statistics(dataset)["class"].tolist()
    columns = [clustering.class_names.index(name) for name in names]
    # exact: counts below 2 ** 24
    labels = clustering.labels[:, columns].astype(np.float32)
    counts = (labels.T @ labels).astype(np.int64)
    return pd.DataFrame(counts, index=names, columns=names)


def clustering_steps(clustering: Clustering) -> pd.DataFrame:
    """Describe each merge of the clustering, and the share of images kept (Algorithm 2)."""
    frame = pd.DataFrame(class_merges(clustering))
    names = np.array(clustering.class_names)
    for group in ("first", "second"):
        frame[group] = [", ".join(names[sorted(classes)]) for classes in frame[group]]
    # images within one group, before and after each merge
    before = (clustering.labels.sum(axis=1) == 1).sum()
    kept = before + frame["together"].cumsum()
    frame.insert(0, "groups", len(names) - 1 - frame.index)  # after the merge
    return frame.assign(kept=100 * kept / len(clustering.labels))


def sample_images(dataset: SequentialDataset, count: int, seed: int) -> pd.DataFrame:
    """Draw some training images of every task (Figure "COCOseq")."""
    rng = np.random.default_rng(seed)
    samples = []
    for task in range(dataset.num_tasks):
        rows = np.flatnonzero(dataset.train.task == task)
        rows = np.sort(rng.choice(rows, size=min(count, len(rows)), replace=False))
        for row in rows:
            names = np.array(dataset.class_names)[dataset.train.labels[row]]
            samples.append({"task": task, "row": row, "labels": ", ".join(names)})
    return pd.DataFrame(samples).assign(dataset=dataset.name)


def sizes(dataset: SequentialDataset) -> pd.DataFrame:
    """Count images, classes and groups of a data set (section "Datasets")."""
    row = {
        "dataset": dataset.name,
        "stands_for": dataset.stands_for,
        "tasks": dataset.num_tasks,
        "classes": dataset.num_classes,
        "train": len(dataset.train),
    }
    row |= {f"{name} test": len(split) for name, split in dataset.tests.items()}
    row |= {group: dataset.class_group.count(group) for group in GROUPS}
    return pd.DataFrame([row])


def plot_class_statistics(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the classes of every task by frequency, coloured by group (Figure "COCOseq")."""
    frame = frame.assign(place=np.arange(len(frame)) + 1.5 * frame["task"])
    for group, colour in GROUP_COLOURS.items():
        rows = frame[frame["group"] == group]
        label = f"{group} ({len(rows)})"
        look = {"color": colour, "markersize": 7, "label": label}
        ax.plot(rows["place"], rows["images"], GROUP_MARKERS[group], **look)
    ax.set_xticks(frame["place"], frame["class"], rotation=90, fontsize=9)
    for task, positions in frame.groupby("task")["place"]:
        write_above(ax, positions.mean(), f"task {task}")
    ax.set(xlabel="class", ylabel="training images, log scale", yscale="log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.margins(x=0.01)
    return ax


def plot_labels_per_image(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw which share of each task's images carries 1, 2, 3, ... labels (section "Datasets")."""
    import seaborn as sns  # which takes half a second to load

    named = frame.assign(task="task " + frame["task"].astype(str))
    viridis = colormaps["viridis"]
    tasks = {f"task {task}": viridis(task / LAST_TASK) for task in set(frame["task"])}
    sns.barplot(named, x="labels", y="share", hue="task", palette=tasks, ax=ax)
    ax.set(xlabel="labels of an image", ylabel="share of the task's images (%)")
    return ax


def plot_cooccurrence(matrix: pd.DataFrame, task: np.ndarray, ax: Axes) -> Axes:
    """Draw how many images show two classes together, a frame around each task (Algorithm 2)."""
    counts = matrix.to_numpy(float, copy=True)
    np.fill_diagonal(counts, 0)
    counts[counts == 0] = np.nan
    shown = ax.imshow(counts, norm="log", vmin=1, cmap="viridis_r")
    text = {"ha": "left", "va": "center", "fontsize": 9, "color": FRAME, "rotation": 90}
    frame = {"fill": False, "edgecolor": FRAME, "linewidth": 1.6, "clip_on": False}
    for number in np.unique(task):
        rows = np.flatnonzero(task == number)
        corner = rows[0] - 0.5, rows[0] - 0.5
        ax.add_patch(Rectangle(corner, len(rows), len(rows), **frame))
        ax.text(len(task), rows.mean(), f"task {number}", **text)
    ax.set_xticks(range(len(matrix)), matrix.index, rotation=90, fontsize=8)
    ax.set_yticks(range(len(matrix)), matrix.index, fontsize=8)
    ax.tick_params(length=0)
    ax.grid(False)
    ax.set(xlabel="class", ylabel="class")
    label = "images with both classes, log scale; blank: none"
    ax.figure.colorbar(shown, ax=ax, label=label, shrink=0.7, format="{x:g}")
    return ax


def plot_clustering_steps(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw which share of the images lies within one group, merge by merge (Algorithm 2)."""
    merges = np.arange(1, len(frame) + 1)
    groups, kept = frame[["groups", "kept"]].iloc[-1]
    ax.plot(merges, frame["kept"], color=HUES[0], drawstyle="steps-post")
    ax.plot(merges[-1], kept, "o", color=HUES[1])
    text = {"ha": "right", "va": "bottom", "color": HUES[1]}
    place = {"xytext": (-8, 4), "textcoords": "offset points"}
    label = f"{groups:.0f} tasks keep {kept:.0f} %"
    ax.annotate(label, (merges[-1], kept), **place, **text)
    ax.set_ylim(0, 100)
    ax.set(xlabel="merges done", ylabel="images within one group (%)")
    return ax


def plot_sample(image: np.ndarray, labels: str, ax: Axes) -> Axes:
    """Draw one image with its labels below (Figure "COCOseq")."""
    ax.imshow(image.squeeze(), cmap="gray", vmin=0, vmax=255)
    ax.set_xlabel("\n".join(textwrap.wrap(labels, 18)), fontsize=7, labelpad=2)
    ax.set(xticks=[], yticks=[])
    return ax
