"""Make NUS-WIDEseq from NUS-WIDE's lists and label files, or a table of labels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from prslib.checks import readable
from prslib.datasets.arrays import EMBEDDED
from prslib.datasets.prepared import Corpus, PreparedSet

# The released groups; they are not those of one pair of thresholds.
GROUP = json.loads((EMBEDDED / "nuswide_groups.json").read_text())
CLASSES = tuple(sorted(GROUP))


def read_half(folder: Path, is_test: bool) -> Corpus:
    """Read an image list and the label files of the 49 concepts; Sec. 4.2."""
    half = "Test" if is_test else "Train"
    listed = folder / "ImageList" / f"{half}Imagelist.txt"
    lines = listed.read_text(encoding="utf-8").replace("\\", "/").splitlines()
    files = np.array([line.strip() for line in lines])
    columns = []
    for name in CLASSES:
        file = folder / "Groundtruth" / "TrainTestLabels" / f"Labels_{name}_{half}.txt"
        what = f"{len(files)} lines of 0 or 1 in {file}"
        with readable(what, "unpack Groundtruth.zip again"):
            digits = b"".join(file.read_bytes().split())
            if len(digits) != len(files) or set(digits) - set(b"01"):
                raise ValueError(f"{len(digits)} digits, or others")
        columns.append(np.frombuffer(digits, dtype=np.uint8) == ord("1"))
    # ids are rows of the list
    keys = np.arange(len(files))
    halves = np.full(len(files), is_test)
    return Corpus(keys, halves, files, np.stack(columns, axis=1), CLASSES)


# The derivation does not find the published tasks. They rest on the images whose links
# were alive when the authors fetched them, and which those were is not published.
PREPARED = PreparedSet(
    name="nuswideseq",
    stands_for="NUS-WIDEseq",
    read_half=read_half,
    annotations="ImageList/ and Groundtruth/TrainTestLabels/",
    images="a folder a concept",
    table="nuswide_labels.npz",
    group_of=GROUP,
    num_tasks=6,
    beta=1e-4,
    min_classes=4,
    per_class=50,
    schedule=(3, 1, 0, 5, 4, 2),
    seed=20200825,
    rho=0.02,
    some_images_lost=True,
)
