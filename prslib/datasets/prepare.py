"""The command ``python -m prslib prepare``: from what a user downloads to a prepared set."""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from prslib.datasets import coco, nuswide, single_label
from prslib.datasets import coco as cocoseq
from prslib.datasets import nuswide as nuswideseq
from prslib.datasets.arrays import ImageArray, require_an_image
from prslib.datasets.prepared import PARTS, Corpus, Selection
from prslib.datasets.single_label import load_source
from prslib.paths import data_dir

MOST_MISSING = 0.01  # share of the images that may be left out without --allow-missing

HELP = {
    "cocoseq": (
        "COCOseq of COCO 2014: --images has train2014/ and val2014/, --annotations the instances "
        "files"
    ),
    "nuswideseq": (
        "NUS-WIDEseq: --images has a folder a concept, as in the image lists, --annotations "
        "ImageList/ and Groundtruth/"
    ),
}


@dataclass(frozen=True)
class Source:
    """Hold how a set's labels are read and its images chosen; our own.

    Parameters
    ----------
    read : callable
        Takes the folder of annotations, returns a `Corpus`.
    select : callable
        Takes the corpus, the folder of ids or None and the test images a class, returns a
        `Selection` and counts of what it left out.
    folders : tuple of str
        Folders that must be among the images.
    per_class : int
        Test images of each class, as published.
    at_hand : callable or None
        Takes the corpus and the folder of images; what it returns is what a derived split is made
        of. None where all images can be had.
    download_ids : callable or None
        Takes a folder and puts the released id files there; None where they are got by hand.
    """

    read: Callable[[Path], Corpus]
    select: Callable[[Corpus, Path | None, int], tuple[Selection, dict[str, int]]]
    folders: tuple[str, ...]
    per_class: int
    at_hand: Callable[[Corpus, Path], Corpus] | None = None
    download_ids: Callable[[Path], Path] | None = None


SOURCE = (
    "https://raw.githubusercontent.com/cdjkim/PRS/a29a99567663365116d5dd58ae7414b6cfe9d94a/"
    "dataset/data_source/COCOseq/ids"
)
CHECKSUMS = {  # SHA-256
    "train_task0_id_coco.json": "6609034efbccb21d70f8ea237ddfb75e945aeaddedebb7b69f72743bbb5c4fd6",
    "train_task1_id_coco.json": "48a85b0971dae0dcbd9eaedbc99616381ea669c546eb1daf8924454a7ee84655",
    "train_task2_id_coco.json": "75c357e8561c99b89cb6bab0569255e5f58e9eecbe205c7e5dbd8c0f7ea82b99",
    "train_task3_id_coco.json": "be947d39532ca588fcb19df281353badaed17aa8158dda9c2b2aeab4ed465286",
    "test_task0_id_coco.json": "2d14db294fe52061e9f930986ab62e6969f4e81ee201efb21566ca66971c6105",
    "test_task1_id_coco.json": "8b34d7201202dc23cf43f65c460b3485e44dfa395485c499ffe5f280a777aa56",
    "test_task2_id_coco.json": "b5fc303c07a71ef2c12860230e3760155882ee7e20421f3937b894738616d49d",
    "test_task3_id_coco.json": "8270e24ab2c4f719b260b518f1f7197929160b3026c4febe73e0a8f0099d11c4",
    "teorg_task0_id_coco.json": "436afb97657eefddc390f5259ad1aa2a916d244cbd190d32c141f2c8f5bc2d87",
    "teorg_task1_id_coco.json": "06330b7c9456cbfec9bd03dbbf4a3af30bd2be8206319c236e85335fdf65ebc6",
    "teorg_task2_id_coco.json": "75850691619e56e383d3fe6f6f5b20b4a6e59602674ea8fefa369736a9b5423e",
    "teorg_task3_id_coco.json": "f6b394274c45842a180fb934e09774fec59d041bf7b87c48d82f0f23aac134e5",
}
TIMEOUT = 60  # seconds


def download_ids(folder: Path) -> Path:
    """Fetch the id files that are not there yet; Sec. 4.1, the released split.

    Parameters
    ----------
    folder : Path
        Where they are put.

    Returns
    -------
    Path
        The folder, with all files of `CHECKSUMS`.

    Raises
    ------
    OSError
        If a file cannot be fetched, with what to do instead.
    ValueError
        If a file, fetched or found, is not the released one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, checksum in CHECKSUMS.items():
        file = folder / name
        if not file.is_file():
            content = _fetch(f"{SOURCE}/{name}")
            _check(f"{SOURCE}/{name}", content, checksum)
            partial = file.with_suffix(".part")
            partial.write_bytes(content)
            os.replace(partial, file)
        _check(file, file.read_bytes(), checksum)
    return folder


def _fetch(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
            return answer.read()
    except (OSError, HTTPException) as error:
        raise OSError(
            f"cannot fetch {address} ({error}); get the files from there by hand and name their "
            "folder with --ids, or leave both out to derive a split"
        ) from error


def _check(where: Path | str, content: bytes, checksum: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != checksum:
        raise ValueError(
            f"expected the released file with SHA-256 {checksum[:12]}… at {where}, got "
            f"{found[:12]}…; delete it if it is yours and run the command again, or name a folder "
            "of your own with --ids"
        )


SOURCES = {
    "cocoseq": Source(
        coco.read_annotations,
        cocoseq.select,
        coco.HALVES,
        cocoseq.PER_CLASS,
        download_ids=download_ids,
    ),
    "nuswideseq": Source(
        lambda folder: nuswide.read_annotations(folder, nuswideseq.CLASSES),
        nuswideseq.select,
        (),
        nuswideseq.PER_CLASS,
        nuswide.at_hand,
    ),
}


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``prepare`` to the command line."""
    prepare = commands.add_parser(
        "prepare",
        help="make a real data set from what you downloaded, or check it",
        description="Choose a set's images, decode them once to 256 x 256 pixels and keep them in "
        "$PRSLIB_DATA/<name>. Interrupted, the same command goes on where it stopped. MNIST and "
        "SVHN stay the files they are: they are checked, and fetched where asked to.",
    )
    names = prepare.add_subparsers(required=True, metavar="NAME")
    for name, source in SOURCES.items():
        parser = names.add_parser(name, help=HELP[name], description=HELP[name])
        parser.add_argument("--annotations", type=Path, required=True, metavar="DIR")
        parser.add_argument(
            "--images", type=Path, metavar="DIR", help="without it only the labels are prepared"
        )
        ids = parser.add_mutually_exclusive_group()
        ids.add_argument(
            "--ids", type=Path, metavar="DIR", help="released id files; else a split is derived"
        )
        if source.download_ids is not None:
            ids.add_argument(
                "--download-ids", action="store_true",
                help="fetch the released id files into $PRSLIB_DATA/<name>_ids and use them",
            )  # fmt: skip
        parser.add_argument(
            "--test-per-class", type=int, default=source.per_class, metavar="N",
            help="balanced test images of each class in a derived split (%(default)s)",
        )  # fmt: skip
        parser.add_argument(
            "--allow-missing", action="store_true",
            help="go on where more than 1 %% of the images are missing or broken",
        )  # fmt: skip
        parser.add_argument(
            "--workers", type=int, metavar="N", help="processes (one for each core)"
        )
        parser.set_defaults(command=run_command, name=name)
    add_commands(names)


def run_command(options: argparse.Namespace) -> int:
    """Prepare a set and say what came of it; 1 where something is wrong with the input."""
    try:
        ids = options.ids
        if getattr(options, "download_ids", False):
            ids = SOURCES[options.name].download_ids(data_dir() / f"{options.name}_ids")
        prepare(
            options.name,
            options.annotations,
            options.images,
            ids,
            per_class=options.test_per_class,
            allow_missing=options.allow_missing,
            workers=options.workers,
        )
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def prepare(
    name: str,
    annotations: Path,
    images: Path | None = None,
    ids: Path | None = None,
    *,
    per_class: int | None = None,
    allow_missing: bool = False,
    workers: int | None = None,
) -> Selection:
    """Prepare a data set in ``$PRSLIB_DATA/<name>``: labels.npz, images.npy and what was left out.

    Parameters
    ----------
    name : str
        "cocoseq" or "nuswideseq".
    annotations : Path
        Folder of the annotations.
    images : Path, optional
        Folder of the images; without it the labels alone are prepared.
    ids : Path, optional
        Folder of the released id files; without it a split is derived.
    per_class : int, optional
        Balanced test images of each class in a derived split.
    allow_missing : bool
        Go on where more than 1 % of the images are missing or broken.
    workers : int, optional
        Processes that decode.

    Returns
    -------
    Selection
        What was prepared.

    Raises
    ------
    FileNotFoundError
        If a folder, a file or every image is missing.
    OSError
        If the disk is too small.
    TimeoutError
        If another process prepares the set.
    ValueError
        If `per_class` is below 1, the files contradict each other or what was prepared before, or
        too many images are missing or broken. Images that were decoded stay.
    """
    source = SOURCES[name]
    per_class = source.per_class if per_class is None else per_class
    if per_class < 1:
        raise ValueError(f"expected --test-per-class of 1 or more, got {per_class}")
    folder = data_dir() / name
    _check_folders(source, annotations, images, ids)
    corpus = source.read(annotations)
    if ids is None and images is not None and source.at_hand is not None:
        corpus = source.at_hand(corpus, images)
    selection, left_out = source.select(corpus, ids, per_class)
    print(f"{name}: the {selection.origin} split, {_describe(selection)}")
    for reason, count in (corpus.left_out | left_out).items():
        print(f"  {count} images {reason}")
    folder.mkdir(exist_ok=True)
    try:
        with FileLock(folder / "prepare.lock", timeout=0):
            return _make(folder, corpus, selection, images, allow_missing, workers)
    except Timeout as error:
        raise TimeoutError(
            f"another prepare is at work in {folder}; run the command again when it has ended"
        ) from error


def _make(
    folder: Path,
    corpus: Corpus,
    selection: Selection,
    images: Path | None,
    allow_missing: bool,
    workers: int | None,
) -> Selection:
    """Write labels and images into a folder that no other process writes to."""
    _check_origin(folder, selection)
    array = ImageArray(folder, selection.files.tolist())
    if array.is_finished:
        print(f"nothing to do: {array.finished} is there; delete {folder} to make it again")
        return Selection.load(folder / "labels.npz")
    if images is not None and len(array.waiting) == len(selection):
        require_an_image(images, array.files)
    corpus.save(folder / "corpus.npz")
    selection.save(folder / "labels.npz")  # studies of labels can begin
    if images is None:
        print(f"labels only, in {folder}; give --images to decode the images")
        return selection
    problems = array.decode(images, workers)
    if not array.is_closing:
        _report(folder, selection, problems)
        _check_problems(folder, problems, len(selection), allow_missing)
    prepared = selection.keep(array.close())
    prepared.save(folder / "labels.npz")
    array.publish()
    print(f"{folder}: {_describe(prepared)}")
    return prepared


def _check_folders(
    source: Source, annotations: Path, images: Path | None, ids: Path | None
) -> None:
    given = {"--annotations": annotations, "--images": images, "--ids": ids}
    for option, folder in given.items():
        if folder is not None and not folder.is_dir():
            raise FileNotFoundError(
                f"expected a folder after {option}, got {folder}, which is none"
            )
    absent = [part for part in source.folders if images and not (images / part).is_dir()]
    if absent:
        held = sorted(path.name for path in images.iterdir())[:5]
        raise FileNotFoundError(
            f"expected the folders {' and '.join(source.folders)} in {images}, got "
            f"{', '.join(held) or 'an empty folder'}; --images names the folder that holds both"
        )


def _check_origin(folder: Path, selection: Selection) -> None:
    file = folder / "labels.npz"
    held = Selection.load(file).origin if file.is_file() else selection.origin
    if held != selection.origin:
        before = "pass --ids DIR" if held == "released" else "leave the ids out"
        raise ValueError(
            f"expected the {selection.origin} split in {file}, as asked for, got the {held} one; "
            f"{before}, as before, to go on with it, or delete {folder}"
        )


def _describe(selection: Selection) -> str:
    sizes = [
        f"{np.ptp(bounds)} {part}" for part, bounds in zip(PARTS, selection.bounds, strict=True)
    ]
    return f"{len(selection)} images ({', '.join(sizes)}), {len(selection.class_names)} classes"


def _report(folder: Path, selection: Selection, problems: dict[int, str]) -> None:
    """Write left_out.csv, an image a row, and counts.csv, a part and task a row."""
    with open(folder / "left_out.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "part", "task", "reason"])
        for row, reason in problems.items():
            parts = [name for name in PARTS if row in range(*selection.part(name).indices(10**9))]
            writer.writerow([selection.files[row], "+".join(parts), selection.task[row], reason])
    kept = np.ones(len(selection), dtype=bool)
    kept[list(problems)] = False
    with open(folder / "counts.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["part", "task", "before", "after"])
        for part in PARTS:
            rows = selection.part(part)
            for task in range(selection.class_task.max() + 1):
                of_task = selection.task[rows] == task
                writer.writerow([part, task, of_task.sum(), (of_task & kept[rows]).sum()])


def _check_problems(
    folder: Path, problems: dict[int, str], count: int, allow_missing: bool
) -> None:
    if not problems:
        return
    missing = sum(reason == "missing" for reason in problems.values())
    said = (
        f"{len(problems)} of {count} images left out, {missing} missing and "
        f"{len(problems) - missing} broken: {folder / 'left_out.csv'}"
    )
    if len(problems) > MOST_MISSING * count and not allow_missing:
        raise ValueError(
            f"expected at most {MOST_MISSING:.0%} of the images missing or broken, got {said}; put "
            "them in place and run the command again (what is decoded stays), or pass "
            "--allow-missing"
        )
    print(said)


# a fixed state of the authors' repository, github.com/cdjkim/PRS
def add_commands(names: argparse._SubParsersAction) -> None:
    """Add a command for each data set to the names that ``prepare`` knows."""
    for source in single_label.SOURCES.values():
        text = f"{source.stands_for} of {source.torchvision}, in $PRSLIB_DATA: {source.files}"
        parser = names.add_parser(source.name, help=text, description=text)
        parser.add_argument(
            "--download", action="store_true", help="fetch with torchvision what is not there"
        )
        parser.set_defaults(command=run_single_label, source=source)


def run_single_label(options: argparse.Namespace) -> int:
    """Download where asked to, check the files and say what the stream holds; 1 on bad input."""
    source = options.source
    try:
        if options.download:
            download(source, data_dir(f"{source.name}: {source.files}"))
        dataset = load_source(source, images=True)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1
    counts = " ".join(map(str, dataset.class_freq.tolist()))
    print(f"{source.name}: {len(dataset.train)} training images, {counts} of the classes 0 to 9")
    print(f"{source.name}: {len(dataset.tests['full'])} test images")
    return 0


def download(source: single_label.Source, folder: Path) -> None:
    """Fetch the original files with torchvision, which checks their sums.

    Parameters
    ----------
    source : single_label.Source
        Which data set.
    folder : Path
        Where torchvision keeps it.

    Raises
    ------
    ImportError
        If torchvision is not installed.
    RuntimeError
        If a file cannot be fetched.
    """
    try:
        from torchvision import datasets
    except ImportError as error:
        raise ImportError(
            "the download needs torchvision, which is not installed; `pip install torchvision`, or "
            f"put there yourself {source.files}"
        ) from error
    for part in source.parts:
        getattr(datasets, source.torchvision)(folder, download=True, **part)
