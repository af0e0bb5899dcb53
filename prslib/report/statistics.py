"""What a data set is made of, as tidy frames: frequencies, co-occurrences, steps of clustering."""

import numpy as np
import pandas as pd

from prslib.datasets import GROUPS, SequentialDataset
from prslib.datasets.clustering import class_merges
from prslib.datasets.recipe import Clustering


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
