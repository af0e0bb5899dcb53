"""NUS-WIDE's labels, from its image lists and label files or from one small table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from prslib.datasets.images import require_an_image
from prslib.datasets.selection import Corpus, read_table

HALVES = ("Train", "Test")


def read_annotations(folder: Path, concepts: tuple[str, ...]) -> Corpus:
    """Read the image lists and the label files of some concepts; Sec. 4.2.

    Parameters
    ----------
    folder : Path
        With ``ImageList/{Train,Test}Imagelist.txt`` and, there or in ``Groundtruth/``,
        ``TrainTestLabels/Labels_<concept>_{Train,Test}.txt``, as NUS-WIDE is distributed.
    concepts : tuple of str
        Concepts to read.

    Returns
    -------
    Corpus
        All images of the lists; `key` is an image's row in its list, from 0.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a label file has another length than the list or holds anything but 0 and 1.
    """
    places = [folder / "Groundtruth" / "TrainTestLabels", folder / "TrainTestLabels"]
    labels_folder = next((place for place in places if place.is_dir()), None)
    if labels_folder is None:
        raise FileNotFoundError(
            f"expected NUS-WIDE's label files in {places[0]} or {places[1]}, got neither; "
            "--annotations names the folder with Groundtruth and ImageList"
        )
    files, columns, is_test = [], [], []
    for half in HALVES:
        listed = _read_list(folder / "ImageList" / f"{half}Imagelist.txt")
        files += listed
        is_test += [np.full(len(listed), half == "Test")]
        names = [labels_folder / f"Labels_{concept}_{half}.txt" for concept in concepts]
        columns.append(np.stack([_read_labels(name, len(listed)) for name in names], axis=1))
    return Corpus(
        key=np.concatenate([np.arange(len(half)) for half in is_test]),
        is_test=np.concatenate(is_test),
        files=np.array(files),
        labels=np.concatenate(columns),
        names=concepts,
        left_out={},
    )


def _read_list(file: Path) -> list[str]:
    if not file.is_file():
        raise FileNotFoundError(
            f"expected NUS-WIDE's image list {file}, got none; --annotations names the folder with "
            "Groundtruth and ImageList"
        )
    lines = file.read_text(encoding="utf-8").splitlines()
    return [line.strip().replace("\\", "/") for line in lines if line.strip()]


def _read_labels(file: Path, length: int) -> np.ndarray:
    if not file.is_file():
        raise FileNotFoundError(
            f"expected the label file {file}, got none; unpack Groundtruth.zip again"
        )
    digits = np.frombuffer(b"".join(file.read_bytes().split()), dtype=np.uint8) - ord("0")
    if len(digits) != length or (digits > 1).any():
        what = "others" if (digits > 1).any() else f"{len(digits)} of them"
        raise ValueError(
            f"expected {length} lines of 0 or 1 in {file}, one an image of the list, got {what}; "
            "the file is cut off or of another version, unpack Groundtruth.zip again"
        )
    return digits.astype(bool)


def at_hand(corpus: Corpus, root: Path) -> Corpus:
    """Return the part of a corpus whose image files are there; our own.

    Parameters
    ----------
    corpus : Corpus
        All images.
    root : Path
        Folder of the images.

    Returns
    -------
    Corpus
        Without the others, which `left_out` counts.

    Raises
    ------
    FileNotFoundError
        If none is there.
    """
    require_an_image(root, corpus.files)
    there = np.array([(root / name).is_file() for name in corpus.files], dtype=bool)
    return replace(
        corpus,
        key=corpus.key[there],
        is_test=corpus.is_test[there],
        files=corpus.files[there],
        labels=corpus.labels[there],
        left_out=corpus.left_out | {"without an image file": int((~there).sum())},
    )


def read_label_table(file: Path) -> Corpus:
    """Read NUS-WIDE's labels from one small npz file in place of the lists; our own.

    Parameters
    ----------
    file : Path
        With split (N,) with 0 for the training list, labels (N, 81) and names (81,), the rows of
        each split in the order of its official list.

    Returns
    -------
    Corpus
        Without image files.

    Raises
    ------
    ValueError
        If the file cannot be read.
    """
    stored = read_table(file, ("split", "labels", "names"))
    is_test = stored["split"] == 1
    return Corpus(
        key=np.where(is_test, is_test.cumsum(), (~is_test).cumsum()).astype(np.int64) - 1,
        is_test=is_test,
        files=np.full(len(is_test), ""),
        labels=stored["labels"].astype(bool),
        names=tuple(stored["names"].tolist()),
        left_out={},
    )
