"""Draw the labels of the synthetic digits: streams with the paper's class statistics.

Run ``python studies/draw_streams.py``, which takes a second. It reports whether each set
equals the embedded one, and writes the sets to the working directory or, with
``--embed``, over the embedded files. Different bytes change the results of all runs on
these sets.
"""

import argparse
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from prslib.datasets import coco, curation, nuswide, scenes
from prslib.datasets.prepared import PreparedSet, Selection
from prslib.paths import DATA

PROFILES_FILE = Path(__file__).with_name("stream_profiles.json")

# number of images of the corpus that span tasks, as a share of the stream
BRIDGE_SHARE = 0.15


# numbers of a task's images: of each class, in descending order; with 1, 2, 3, ... labels
Counts = tuple[np.ndarray, np.ndarray]

# counted in the released splits of the paper's two data sets, training images only
PROFILES: dict[str, list[Counts]] = {
    name: [tuple(map(np.array, task.values())) for task in tasks]
    for name, tasks in json.loads(PROFILES_FILE.read_text()).items()
}


def scale_counts(profile: Counts, divisor: int) -> Counts:
    """Return both counts of a stream that is `divisor` times smaller."""
    class_freq, counts = profile
    # halves are rounded up
    counts = (2 * counts + divisor) // (2 * divisor)
    return np.maximum(1, class_freq // divisor), counts


def balance_counts(profile: Counts, per_class: int) -> Counts:
    """Return both counts of a test set of `per_class` images per class; Sec. 5.1."""
    class_freq, counts = profile
    even = np.full(len(class_freq), per_class)
    share = even.sum() / class_freq.sum()
    return even, np.floor(counts * share + 0.5).astype(np.int64)


@dataclass(frozen=True)
class Plan:
    """The settings of one digits data set."""

    name: str
    original: PreparedSet  # the data set with the same statistics
    divisor: int  # how many times smaller the stream is
    # images of every class in the balanced test set
    test_per_class: int

    @property
    def profile(self) -> list[Counts]:
        """Counts of each task."""
        return PROFILES[self.original.stands_for]

    @property
    def planted_task(self) -> np.ndarray:
        """Task of each class in the corpus, int64 (C,)."""
        sizes = [len(class_freq) for class_freq, _ in self.profile]
        return np.repeat(np.arange(len(sizes)), sizes)


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
    edges = _draw_tree(class_freq, rng) if connected else []
    counts[1] = max(counts[1], len(edges))
    several = np.repeat(np.arange(2, len(counts) + 1), counts[1:])[::-1]
    labels = np.zeros((class_freq.sum() - (several - 1).sum(), len(class_freq)), bool)
    for row, edge in zip(labels, edges, strict=False):
        row[edge] = True
    # (C,) images that each class lacks
    shortage = class_freq - labels.sum(axis=0)
    sizes = several[: len(several) - len(edges)].tolist()
    for row, size in zip(labels[len(edges) :], sizes, strict=False):
        classes = _draw_classes(shortage, size, rng)
        row[classes] = True
        shortage[classes] -= 1
    singles = np.repeat(np.arange(len(shortage)), shortage)
    labels[np.arange(-len(singles), 0), singles] = True
    return rng.permutation(labels)


def _draw_classes(
    shortage: np.ndarray, size: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw distinct classes, weighted by the images that each still lacks."""
    # the smallest of exponential times with rates `shortage` are a weighted draw without
    # replacement
    with np.errstate(divide="ignore"):
        times = rng.standard_exponential(len(shortage)) / shortage
    return np.argpartition(times, size - 1)[:size]


def _draw_tree(class_freq: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Return edges of a random tree that uses no class more often than it occurs."""
    order = rng.permutation(len(class_freq))
    # classes that occur once come last, as leaves
    order = order[np.argsort(class_freq[order] == 1, kind="stable")]
    open_ends = np.zeros_like(class_freq)
    open_ends[order[0]] = class_freq[order[0]]
    edges = []
    for new in order[1:]:
        parent = _draw_classes(open_ends, 1, rng)[0]
        open_ends[parent] -= 1
        open_ends[new] = class_freq[new] - 1
        edges.append(np.array([parent, new]))
    return edges


def draw_tasks(
    counts: Iterable[Counts], rng: np.random.Generator, connected: bool = False
) -> np.ndarray:
    """Draw the labels of all tasks, one after another, into one shuffled matrix."""
    blocks = [draw_labels(*of_task, rng, connected) for of_task in counts]
    widths, rows = [block.shape[1] for block in blocks], []
    for task, block in enumerate(blocks):
        beside = sum(widths[:task]), sum(widths[task + 1 :])
        rows.append(np.pad(block, ((0, 0), beside)))
    return rng.permutation(np.concatenate(rows))


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


def draw_corpus(plan: Plan, rng: np.random.Generator) -> np.ndarray:
    """Draw the labels of all images before any split, bool (N, C)."""
    counts = [scale_counts(profile, plan.divisor) for profile in plan.profile]
    stream = draw_tasks(counts, rng, connected=True)
    bridges = draw_bridges(
        stream.sum(axis=0), plan.planted_task, round(BRIDGE_SHARE * len(stream)), rng
    )
    return rng.permutation(np.concatenate([stream, bridges]))


def draw_splits(plan: Plan) -> dict[str, np.ndarray]:
    """Draw the labels of each split, and of the corpus that contains the stream."""
    rng = scenes.generator(0)
    corpus = draw_corpus(plan, rng)
    # the clustering finds the planted tasks
    alone = curation.tasks_of_images(corpus, plan.planted_task) >= 0
    even = [balance_counts(profile, plan.test_per_class) for profile in plan.profile]
    imbalanced = [scale_counts(profile, 2 * plan.divisor) for profile in plan.profile]
    return {
        "corpus": corpus,
        "train": corpus[alone],
        "balanced": draw_tasks(even, rng),
        "imbalanced": draw_tasks(imbalanced, rng),
    }


def class_names(plan: Plan) -> np.ndarray:
    """Name the classes: digits and colours in a random order."""
    names = [f"{colour} {digit}" for digit in range(10) for colour in scenes.COLOURS]
    order = scenes.generator(1).permutation(len(plan.planted_task))
    return np.array(names)[order]


def draw(plan: Plan) -> tuple[Selection, np.ndarray]:
    """Draw a set without its pictures, and the labels of its corpus, bool (N, C)."""
    drawn = draw_splits(plan)
    corpus = drawn.pop("corpus")
    labels = np.concatenate(list(drawn.values()))
    ends = np.cumsum([len(split) for split in drawn.values()])
    thresholds = 200 / plan.divisor, 900 / plan.divisor
    groups = curation.class_groups(drawn["train"].sum(axis=0), *thresholds)
    selection = Selection(
        files=np.full(len(labels), ""),
        labels=labels,
        task=curation.tasks_of_images(labels, plan.planted_task),
        bounds=np.stack([np.append(0, ends[:-1]), ends], axis=1),
        class_names=class_names(plan),
        class_task=plan.planted_task,
        class_group=np.array(groups),
    )
    return selection, corpus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--embed", action="store_true", help="replace prslib's files")
    embed = parser.parse_args().embed
    for plan in PLANS:
        selection, corpus = draw(plan)
        file = DATA / f"{plan.name}.npz"
        if file.is_file():
            before = Selection.load(file)
            same = np.array_equal(selection.labels, before.labels)
            print(plan.name, "as embedded" if same else "with other labels")
        selection.save(file if embed else Path(file.name), corpus=corpus)


PLANS = (
    Plan("digits70seq", coco.PREPARED, 4, test_per_class=50),
    Plan("digits49seq", nuswide.PREPARED, 6, test_per_class=50),
    Plan("digits70tiny", coco.PREPARED, 40, test_per_class=4),
    Plan("digits49tiny", nuswide.PREPARED, 60, test_per_class=4),
)


if __name__ == "__main__":
    main()
