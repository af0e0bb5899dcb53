"""Make NUS-WIDEseq from NUS-WIDE's lists and label files, or a table of labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from prslib.checks import readable
from prslib.datasets.base import Entry, Recipe
from prslib.datasets.prepared import Corpus, PreparedSet

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


def read_annotations(folder: Path) -> Corpus:
    """Read the image lists and the label files of the 49 concepts; Sec. 4.2."""
    key, is_test, files, labels = [], [], [], []
    for half in ("Train", "Test"):
        listed = folder / "ImageList" / f"{half}Imagelist.txt"
        names = listed.read_text(encoding="utf-8").split()
        files += [name.replace("\\", "/") for name in names]
        key += range(len(names))
        is_test += [half == "Test"] * len(names)
        columns = []
        for concept in CLASSES:
            file = folder / "Groundtruth" / "TrainTestLabels"
            file = file / f"Labels_{concept}_{half}.txt"
            what = f"{len(names)} lines of 0 or 1 in {file}"
            with readable(what, "unpack Groundtruth.zip again"):
                digits = b"".join(file.read_bytes().split())
                column = np.frombuffer(digits, dtype=np.uint8) - ord("0")
                if len(column) != len(names) or column.max() > 1:
                    raise ValueError(f"{len(column)} digits, or others")
            columns.append(column == 1)
        labels.append(np.stack(columns, axis=1))
    return Corpus(
        key=np.array(key, dtype=np.int64),
        is_test=np.array(is_test),
        files=np.array(files),
        labels=np.concatenate(labels),
        names=CLASSES,
    )


# The derivation does not find the published tasks. They rest on the images whose links
# were alive when the authors fetched them, and which those were is not published.
PREPARED = PreparedSet(
    name="nuswideseq",
    stands_for="NUS-WIDEseq",
    read=read_annotations,
    annotations="ImageList/ and Groundtruth/TrainTestLabels/",
    table="nuswide_labels.npz",
    group_of=GROUP,
    num_tasks=6,
    beta=1e-4,
    min_classes=4,
    per_class=50,
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
