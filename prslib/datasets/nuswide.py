"""Make NUS-WIDEseq from NUS-WIDE's lists and label files, or a table of labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from prslib.checks import readable
from prslib.datasets.prepared import Half, PreparedSet

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


def read_half(folder: Path, is_test: bool) -> Half:
    """Read an image list and the label files of the 49 concepts; Sec. 4.2."""
    half = "Test" if is_test else "Train"
    listed = folder / "ImageList" / f"{half}Imagelist.txt"
    lines = listed.read_text(encoding="utf-8").replace("\\", "/").splitlines()
    files = [line.strip() for line in lines]
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
    return list(range(len(files))), files, np.stack(columns, axis=1), CLASSES


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
    some_images_lost=True,
)
NUSWIDESEQ = PREPARED.entry()
