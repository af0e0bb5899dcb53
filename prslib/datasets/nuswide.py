"""Make NUS-WIDEseq from NUS-WIDE's lists and label files, or a table of labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from prslib.datasets.base import Entry, Recipe
from prslib.datasets.curation import balanced_test
from prslib.datasets.prepared import Corpus, PreparedSet, check_inside

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
CLASSES = tuple(sorted(GROUP))
PER_CLASS = 50  # images of each class in the balanced test set


def read_annotations(folder: Path) -> Corpus:
    """Read the image lists and the label files of the 49 concepts; Sec. 4.2."""
    places = [folder / "Groundtruth" / "TrainTestLabels", folder / "TrainTestLabels"]
    labels_folder = next((place for place in places if place.is_dir()), None)
    if labels_folder is None:
        raise FileNotFoundError(
            f"expected NUS-WIDE's label files in {places[0]} or {places[1]}, got "
            "neither; --annotations names the folder with Groundtruth and ImageList"
        )
    files, columns, is_test = [], [], []
    for half in HALVES:
        listed = _read_list(folder / "ImageList" / f"{half}Imagelist.txt")
        files += listed
        is_test.append(np.full(len(listed), half == "Test"))
        names = [labels_folder / f"Labels_{concept}_{half}.txt" for concept in CLASSES]
        columns.append(
            np.stack([_read_labels(name, len(listed)) for name in names], axis=1)
        )
    return Corpus(
        key=np.concatenate([np.arange(len(half)) for half in is_test]),
        is_test=np.concatenate(is_test),
        files=np.array(files),
        labels=np.concatenate(columns),
        names=CLASSES,
    )


def _read_list(file: Path) -> list[str]:
    if not file.is_file():
        raise FileNotFoundError(
            f"expected NUS-WIDE's image list {file}, got none; --annotations names the "
            "folder with Groundtruth and ImageList"
        )
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"expected names in UTF-8 in {file}, got other bytes ({error}); unpack it "
            "again"
        ) from error
    names = [line.strip().replace("\\", "/") for line in lines if line.strip()]
    check_inside(file, names)
    return names


def _read_labels(file: Path, length: int) -> np.ndarray:
    if not file.is_file():
        raise FileNotFoundError(
            f"expected the label file {file}, got none; unpack Groundtruth.zip again"
        )
    digits = np.frombuffer(b"".join(file.read_bytes().split()), dtype=np.uint8) - ord(
        "0"
    )
    if len(digits) != length or (digits > 1).any():
        what = "others" if (digits > 1).any() else f"{len(digits)} of them"
        raise ValueError(
            f"expected {length} lines of 0 or 1 in {file}, one an image of the list, "
            f"got {what}; the file is cut off or of another version, unpack "
            "Groundtruth.zip again"
        )
    return digits.astype(bool)


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
    classes=lambda names: CLASSES,
    num_tasks=6,
    beta=1e-4,
    min_classes=4,
    per_class=PER_CLASS,
    draw_balanced=draw_balanced,
    groups=lambda names, class_freq: [GROUP[name] for name in names],
    seed=20200825,
    id_ending="nuswide",
    id_halves={"train": (False,), "balanced": (True,), "imbalanced": (True,)},
    id_source="dataset/data_source/NUSWIDEseq/ids of github.com/cdjkim/PRS",
    ids_are_rows=True,
    ids_without_class=True,
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
