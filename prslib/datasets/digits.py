"""Make stand-ins for the two multi-label streams: digits of the same statistics."""

import json
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from prslib.datasets import curation, scenes
from prslib.datasets.base import Clustering, Entry, Recipe, SequentialDataset, Split
from prslib.paths import PACKAGE

PROFILES_FILE = PACKAGE / "datasets" / "embedded" / "profiles.json"

# images of the corpus across tasks, as a share of the stream
BRIDGE_SHARE = 0.15


# images of each class, and with 1, 2, 3, ... labels
Counts = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class TaskProfile:
    """Class frequencies and labels per image of one task's stream; Sec. 5."""

    # images of each class, in descending order
    class_freq: list[int]
    # images with 1, 2, 3, ... labels
    labels_per_image: list[int]

    def scaled(self, divisor: int) -> Counts:
        """Return both counts of a stream that is `divisor` times smaller."""
        class_freq = np.maximum(1, np.array(self.class_freq, dtype=np.int64) // divisor)
        counts = np.array(self.labels_per_image, dtype=np.int64)
        # halves upwards
        return class_freq, (2 * counts + divisor) // (2 * divisor)

    def balanced(self, per_class: int) -> Counts:
        """Return both counts of a test set of `per_class` images a class; Sec. 5.1."""
        class_freq = np.full(len(self.class_freq), per_class, dtype=np.int64)
        share = class_freq.sum() / sum(self.class_freq)
        counts = np.floor(np.array(self.labels_per_image) * share + 0.5)
        return class_freq, counts.astype(np.int64)


# Counted from the released splits of the paper's two data sets, training images only.
PROFILES = {
    name: [TaskProfile(**task) for task in tasks]
    for name, tasks in json.loads(PROFILES_FILE.read_text()).items()
}


@dataclass(frozen=True)
class Plan:
    """The settings of one digits data set."""

    name: str
    stands_for: str  # a key of `PROFILES`
    divisor: int  # how many times smaller the stream is
    beta: float  # balance of the clustering, in 1 / images squared
    min_classes: int  # least number of classes a task
    # images of every class in the balanced test set
    test_per_class: int
    memory_size: int

    @property
    def profile(self) -> list[TaskProfile]:
        """What its tasks are like."""
        return PROFILES[self.stands_for]

    @property
    def planted_task(self) -> np.ndarray:
        """Task of each class in the corpus, int64 (C,)."""
        sizes = [len(task.class_freq) for task in self.profile]
        return np.repeat(np.arange(len(sizes)), sizes)


def draw_labels(
    class_freq: np.ndarray,
    labels_per_image: np.ndarray,
    rng: np.random.Generator,
    connected: bool = False,
) -> np.ndarray:
    """Draw labels, bool (N, C), with these class frequencies and labels per image.

    As many images have one label as the frequencies leave. `connected` joins the
    classes, for their clustering, by a tree of C - 1 images with two labels.
    """
    # Images with many labels are drawn first. An image's classes are drawn without
    # replacement, weighted by the images that each class still lacks; those with one
    # label take what is left.
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
    # The smallest of exponential times with rates `shortage` are a weighted draw without
    # replacement.
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
    """Draw the labels of images that span three or four tasks, which no split keeps."""
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
    scaled = [task.scaled(plan.divisor) for task in plan.profile]
    stream = draw_tasks(scaled, rng, connected=True)
    bridges = draw_bridges(
        stream.sum(axis=0), plan.planted_task, round(BRIDGE_SHARE * len(stream)), rng
    )
    return rng.permutation(np.concatenate([stream, bridges]))


def _draw_all(plan: Plan) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the labels of the corpus, and those of each split."""
    rng = np.random.default_rng(np.random.SeedSequence(scenes.SCENE_SEED).spawn(1)[0])
    corpus = draw_corpus(plan, rng)
    # the clustering finds the planted tasks
    alone = curation.tasks_of_images(corpus, plan.planted_task) >= 0
    balanced = [task.balanced(plan.test_per_class) for task in plan.profile]
    imbalanced = [task.scaled(2 * plan.divisor) for task in plan.profile]
    drawn = {
        "train": corpus[alone],
        "balanced": draw_tasks(balanced, rng),
        "imbalanced": draw_tasks(imbalanced, rng),
    }
    return corpus, drawn


@lru_cache(maxsize=2)
def _draw_scenes(plan: Plan) -> dict[str, np.ndarray]:
    """Draw the scenes of every split, training and test from different originals."""
    originals, rng = scenes.scene_originals()
    digit, colour = _classes(plan)
    palette = np.array(list(scenes.COLOURS.values()), dtype=np.uint8)[colour]
    pictures = {}
    for name, labels in _draw_all(plan)[1].items():
        source = originals["train" if name == "train" else "test"]
        pictures[name] = scenes.render_scenes(labels, digit, palette, source, rng)
    return pictures


def load_digits_dataset(plan: Plan, images: bool) -> SequentialDataset:
    """Make a digits data set."""
    _, drawn = _draw_all(plan)
    class_task = plan.planted_task
    pictures = deepcopy(_draw_scenes(plan)) if images else {}
    splits = {}
    for name, labels in drawn.items():
        task = curation.tasks_of_images(labels, class_task)
        splits[name] = Split(pictures.get(name), labels, task)
    class_freq = drawn["train"].sum(axis=0)
    thresholds = 200 / plan.divisor, 900 / plan.divisor
    return SequentialDataset(
        name=plan.name,
        train=splits.pop("train"),
        tests=splits,
        class_names=_names(plan),
        class_task=class_task,
        class_group=curation.class_groups(class_freq, *thresholds),
        stands_for=plan.stands_for,
    )


def load_clustering(plan: Plan) -> Clustering:
    """Return the corpus that a digits data set is clustered from."""
    corpus, _ = _draw_all(plan)
    return Clustering(
        corpus, _names(plan), len(plan.profile), plan.beta, plan.min_classes
    )


def _classes(plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Return the digit of each class and the number of its colour, int64 (C,)."""
    name_seed = np.random.SeedSequence(scenes.SCENE_SEED).spawn(2)[1]
    order = np.random.default_rng(name_seed).permutation(len(plan.planted_task))
    return np.divmod(order, len(scenes.COLOURS))


def _names(plan: Plan) -> tuple[str, ...]:
    colours = np.array(list(scenes.COLOURS))
    digit, colour = _classes(plan)
    return tuple(f"{colours[c]} {d}" for d, c in zip(digit, colour, strict=True))


SCHEDULES = {"COCOseq": (0, 3, 1, 2), "NUS-WIDEseq": (3, 1, 0, 5, 4, 2)}
PLANS = (
    Plan("digits70seq", "COCOseq", 4, 1.0, 1, 50, memory_size=500),
    Plan("digits49seq", "NUS-WIDEseq", 6, 1e-4, 4, 50, memory_size=333),
    Plan("digits70tiny", "COCOseq", 40, 1.0, 1, 4, memory_size=50),
    Plan("digits49tiny", "NUS-WIDEseq", 60, 1e-4, 4, 4, memory_size=33),
)


def _entry(plan: Plan) -> Entry:
    recipe = Recipe(
        model="convnet",
        weights="digits",  # where the paper's has learned ImageNet
        memory_size=plan.memory_size,
        schedule=SCHEDULES[plan.stands_for],
        # the best of 15000, 1500, ... 0.15 in figures/studies/ewc_strength.csv
        ewc_lambda=0.15,
    )
    load = partial(load_digits_dataset, plan)
    return Entry(load, recipe, partial(load_clustering, plan))


ENTRIES = {plan.name: _entry(plan) for plan in PLANS}
