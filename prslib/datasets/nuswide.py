"""Make NUS-WIDEseq from NUS-WIDE's lists and label files, or a table of labels."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np

from prslib.checks import decoded, expected, readable
from prslib.datasets.prepared import Corpus, PreparedSet
from prslib.paths import PACKAGE

# The released groups; they are not those of one pair of thresholds.
GROUP = json.loads((PACKAGE / "datasets" / "nuswide_groups.json").read_text())
CLASSES = tuple(sorted(GROUP))


def read_halves(folder: Path) -> list[Corpus]:
    """Read the training and the test half."""
    return [read_half(folder, is_test) for is_test in (False, True)]


def read_half(folder: Path, is_test: bool) -> Corpus:
    """Read an image list and the label files of the 49 concepts; Sec. 4.2."""
    half = "Test" if is_test else "Train"
    listed = folder / "ImageList" / f"{half}Imagelist.txt"
    label_files = [
        folder / "Groundtruth" / "TrainTestLabels" / f"Labels_{name}_{half}.txt"
        for name in CLASSES
    ]
    for file in (listed, *label_files):
        if not file.is_file():
            advice = "unpack ImageList.zip and Groundtruth.zip there"
            raise FileNotFoundError(expected(f"a file {file}", "none", advice))
    with readable(f"names of images in {listed}", "unpack ImageList.zip again"):
        text = decoded(listed.read_bytes()).replace("\\", "/")
        lines = [line.strip(" \t\x1a") for line in re.split(r"[\r\n]+", text)]
        files = np.array([line for line in lines if line])
        others = [name for name in files if not name.lower().endswith(".jpg")]
        if others or len(files) == 0:
            got = repr(str(others[0])) if others else "none"
            raise ValueError(expected("names that end with .jpg", got))
    columns = []
    for file in label_files:
        lines_of_labels = f"{len(files)} lines of 0 or 1 in {file}"
        what = f"{lines_of_labels}, one for each name in {listed}"
        with readable(what, "unpack Groundtruth.zip again"):
            digits = "".join(decoded(file.read_bytes()).split())
            if len(digits) != len(files) or set(digits) - set("01"):
                raise ValueError(f"{len(digits)} digits, or others")
        columns.append(np.frombuffer(digits.encode(), dtype=np.uint8) == ord("1"))
    # ids are rows of the list
    keys = np.arange(len(files))
    halves = np.full(len(files), is_test)
    return Corpus(keys, halves, files, np.stack(columns, axis=1), CLASSES)


# The derivation does not find the published tasks. They rest on the images whose links
# were alive when the authors fetched them, and which those were is not published.
PREPARED = PreparedSet(
    name="nuswideseq",
    stands_for="NUS-WIDEseq",
    read_halves=read_halves,
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
