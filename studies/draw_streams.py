"""Draw the labels of the synthetic digits: streams with the paper's class statistics.

Run ``python studies/draw_streams.py``, which takes a second. It reports whether each set
equals the embedded one, and writes the sets to the working directory. Different bytes
change the results of all runs on these sets.
"""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from prslib.datasets import curation, scenes
from prslib.datasets.prepared import Selection
from prslib.paths import DATA

# counted in the released splits of the paper's two data sets, training images only: for
# each task, the images of each class in descending order, and the images with 1, 2, ...
# labels
PROFILES = json.loads(Path(__file__).with_name("stream_profiles.json").read_text())
# number of images of the corpus that span tasks, as a share of the stream
BRIDGE_SHARE = 0.15


class Plan(NamedTuple):
    """The settings of one digits data set."""

    name: str
    stands_for: str  # the data set with the same statistics
    divisor: int  # how many times smaller the stream is
    test_per_class: int  # images of every class in the balanced test set

    @property
    def profile(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Both counts of each task."""
        tasks = PROFILES[self.stands_for]
        return [tuple(map(np.array, task.values())) for task in tasks]

    @property
    def class_task(self) -> np.ndarray:
        """Task of each class, int64 (C,)."""
        sizes = [len(class_freq) for class_freq, _ in self.profile]
        return np.repeat(np.arange(len(sizes)), sizes)


PLANS = (
    Plan("digits70seq", "COCOseq", 4, test_per_class=50),
    Plan("digits49seq", "NUS-WIDEseq", 6, test_per_class=50),
    Plan("digits70tiny", "COCOseq", 40, test_per_class=4),
    Plan("digits49tiny", "NUS-WIDEseq", 60, test_per_class=4),
)


def scale_counts(plan: Plan, divisor: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return both counts of each task for a stream that is `divisor` times smaller."""
    return [
        # halves are rounded up
        (np.maximum(1, class_freq // divisor), (2 * counts + divisor) // (2 * divisor))
        for class_freq, counts in plan.profile
    ]


def balance_counts(plan: Plan) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return both counts of each task for a test set with equal classes; Sec. 5.1."""
    tasks = []
    for class_freq, counts in plan.profile:
        even = np.full(len(class_freq), plan.test_per_class)
        share = even.sum() / class_freq.sum()
        tasks.append((even, np.floor(counts * share + 0.5).astype(np.int64)))
    return tasks


def draw_labels(
    class_freq: np.ndarray,
    labels_per_image: np.ndarray,
    rng: np.random.Generator,
    connected: bool = False,
) -> np.ndarray:
    """Draw labels, bool (N, C), with these class frequencies and labels per image.

    The number of images with one label follows from the frequencies. `connected` joins
    the classes, for their clustering, by a tree of C - 1 images with two labels.
    """
    # Images with many labels are drawn first. An image's classes are drawn without
    # replacement, weighted by the number of images that each class still lacks. The
    # rest of each class are images with one label.
    counts = labels_per_image.copy()
    edges = draw_tree(class_freq, rng) if connected else []
    counts[1] = max(counts[1], len(edges))
    several = np.repeat(np.arange(2, len(counts) + 1), counts[1:])[::-1]
    labels = np.zeros((class_freq.sum() - (several - 1).sum(), len(class_freq)), bool)
    for row, edge in zip(labels, edges, strict=False):
        row[edge] = True
    shortage = class_freq - labels.sum(axis=0)  # (C,) images that each class lacks
    sizes = several[: len(several) - len(edges)].tolist()
    for row, size in zip(labels[len(edges) :], sizes, strict=False):
        classes = draw_classes(shortage, size, rng)
        row[classes] = True
        shortage[classes] -= 1
    singles = np.repeat(np.arange(len(shortage)), shortage)
    labels[np.arange(-len(singles), 0), singles] = True
    return rng.permutation(labels)


def draw_classes(
    shortage: np.ndarray, size: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw distinct classes, weighted by the images that each still lacks."""
    # the smallest of exponential times with rates `shortage` are a weighted draw without
    # replacement
    with np.errstate(divide="ignore"):
        times = rng.standard_exponential(len(shortage)) / shortage
    return np.argpartition(times, size - 1)[:size]


def draw_tree(class_freq: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Return edges of a random tree that uses no class more often than it occurs."""
    order = rng.permutation(len(class_freq))
    # classes that occur once come last, as leaves
    order = order[np.argsort(class_freq[order] == 1, kind="stable")]
    open_ends = np.zeros_like(class_freq)
    open_ends[order[0]] = class_freq[order[0]]
    edges = []
    for new in order[1:]:
        parent = draw_classes(open_ends, 1, rng)[0]
        open_ends[parent] -= 1
        open_ends[new] = class_freq[new] - 1
        edges.append(np.array([parent, new]))
    return edges


def draw_tasks(
    counts: list[tuple[np.ndarray, np.ndarray]],
    rng: np.random.Generator,
    connected: bool = False,
) -> np.ndarray:
    """Draw the labels of all tasks, one after another, into one shuffled matrix."""
    blocks = [draw_labels(*of_task, rng, connected) for of_task in counts]
    return rng.permutation(block_diag(*blocks).astype(bool))


def draw_bridges(
    class_freq: np.ndarray, class_task: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw the labels of images that span three or four tasks, which no split contains."""
    num_tasks = int(class_task.max()) + 1
    members = [np.flatnonzero(class_task == task) for task in range(num_tasks)]
    picks = [
        rng.choice(m, size=count, p=class_freq[m] / class_freq[m].sum())
        for m in members
    ]
    spans = rng.integers(3, min(num_tasks, 4) + 1, size=count)
    ranks = rng.random((count, num_tasks)).argsort(axis=1).argsort(axis=1)
    rows, tasks = np.nonzero(ranks < spans[:, None])
    labels = np.zeros((count, len(class_task)), dtype=bool)
    labels[rows, np.stack(picks, axis=1)[rows, tasks]] = True
    return labels


def draw(plan: Plan) -> tuple[Selection, np.ndarray]:
    """Draw a set without its pictures, and the labels of its corpus, bool (N, C)."""
    rng = scenes.generator(0)
    class_task = plan.class_task
    stream = draw_tasks(scale_counts(plan, plan.divisor), rng, connected=True)
    count = round(BRIDGE_SHARE * len(stream))
    bridges = draw_bridges(stream.sum(axis=0), class_task, count, rng)
    corpus = rng.permutation(np.concatenate([stream, bridges]))
    # the clustering finds the planted tasks
    train = corpus[curation.tasks_of_images(corpus, class_task) >= 0]
    balanced = draw_tasks(balance_counts(plan), rng)
    imbalanced = draw_tasks(scale_counts(plan, 2 * plan.divisor), rng)
    labels = np.concatenate([train, balanced, imbalanced])
    starts = np.cumsum([0, len(train), len(balanced), len(imbalanced)])
    names = [f"{colour} {digit}" for digit in range(10) for colour in scenes.COLOURS]
    order = scenes.generator(1).permutation(len(class_task))
    thresholds = 200 / plan.divisor, 900 / plan.divisor
    groups = curation.class_groups(train.sum(axis=0), *thresholds)
    selection = Selection(
        files=np.full(len(labels), ""),
        labels=labels,
        task=curation.tasks_of_images(labels, class_task),
        bounds=np.stack([starts[:-1], starts[1:]], axis=1),
        class_names=np.array(names)[order],
        class_task=class_task,
        class_group=np.array(groups),
    )
    return selection, corpus


def main() -> None:
    argparse.ArgumentParser(description=__doc__.split("\n\n")[0]).parse_args()
    for plan in PLANS:
        selection, corpus = draw(plan)
        file = DATA / f"{plan.name}.npz"
        same = np.array_equal(selection.labels, Selection.load(file).labels)
        print(plan.name, "as embedded" if same else "with other labels")
        selection.save(Path(file.name), corpus=corpus)


if __name__ == "__main__":
    main()
