"""Make NUS-WIDEseq from NUS-WIDE's lists and label files, or a table of labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from prslib.checks import readable
from prslib.datasets.base import Entry, Recipe
from prslib.datasets.curation import balanced_test
from prslib.datasets.prepared import Corpus, PreparedSet

HALVES = ("Train", "Test")
# The released groups; they are not those of one pair of thresholds.
MEMBERS = {
    "majority": "flowers animal person grass buildings plants sky window water clouds",
    "moderate": "ocean rocks boats toy tree snow food vehicle leaf reflection birds "
    "coral lake cars road nighttime sign statue",
    "minority": "beach book bridge computer fire fish flags frost garden house "
    "military plane police railroad sand sports street temple tower train wedding",
}
GROUP = {name: group for group, names in MEMBERS.items() for name in names.split()}
GROUP = dict(sorted(GROUP.items()))
CLASSES = tuple(GROUP)
PER_CLASS = 50  # images of each class in the balanced test set


def read_annotations(folder: Path) -> Corpus:
    """Read the image lists and the label files of the 49 concepts; Sec. 4.2."""
    beside = folder / "TrainTestLabels"
    labels_folder = beside if beside.is_dir() else folder / "Groundtruth" / beside.name
    files, labels, is_test = [], [], []
    try:
        for half in HALVES:
            listed = _read_list(folder / "ImageList" / f"{half}Imagelist.txt")
            label_files = [labels_folder / f"Labels_{c}_{half}.txt" for c in CLASSES]
            columns = [_read_labels(file, len(listed)) for file in label_files]
            files += listed
            labels.append(np.stack(columns, axis=1))
            is_test.append(np.full(len(listed), half == "Test"))
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"expected NUS-WIDE's image lists and label files, got no {error.filename}; "
            "--annotations names the folder with ImageList and Groundtruth"
        ) from error
    return Corpus(
        key=np.concatenate([np.arange(len(half)) for half in is_test]),
        is_test=np.concatenate(is_test),
        files=np.array(files),
        labels=np.concatenate(labels),
        names=CLASSES,
    )


def _read_list(file: Path) -> list[str]:
    with readable(f"names in UTF-8 in {file}", "unpack it again"):
        lines = file.read_text(encoding="utf-8").splitlines()
    return [line.strip().replace("\\", "/") for line in lines if line.strip()]


def _read_labels(file: Path, length: int) -> np.ndarray:
    digits = b"".join(file.read_bytes().split())
    if len(digits) != length or set(digits) - set(b"01"):
        raise ValueError(
            f"expected {length} lines of 0 or 1 in {file}, one an image of the list, "
            f"got {len(digits)} or others; the file is cut off or of another version, "
            "unpack Groundtruth.zip again"
        )
    return np.frombuffer(digits, dtype=np.uint8) == ord("1")


def draw_balanced(
    labels: np.ndarray, names: list[str], is_test: np.ndarray, per_class: int, rng
) -> np.ndarray:
    """Draw from the official test list, then where too few from the training list."""
    return balanced_test(labels, per_class, rng, ~is_test, names)


# The derivation does not find the published tasks. They rest on the images whose links
# were alive when the authors fetched them, and which those were is not published.
PREPARED = PreparedSet(
    name="nuswideseq",
    stands_for="NUS-WIDEseq",
    read=read_annotations,
    table="nuswide_labels.npz",
    group_of=GROUP,
    num_tasks=6,
    beta=1e-4,
    min_classes=4,
    per_class=PER_CLASS,
    draw_balanced=draw_balanced,
    seed=20200825,
    ids_are_rows=True,
    some_images_lost=True,
)
NUSWIDESEQ = Entry(
    PREPARED.load,
    Recipe(
        model="resnet101",
        memory_size=2000,
        schedule=(3, 1, 0, 5, 4, 2),
        learning_rate=1e-4,
        precision="bf16",  # the paper does not say what its runs computed in
    ),
    PREPARED.load_clustering,
    relation="paper's",
)
