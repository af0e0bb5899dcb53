"""Add the command ``python -m prslib prepare``, which makes data sets from downloaded files."""

from __future__ import annotations

import argparse
import csv
import hashlib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

import numpy as np

from prslib.checks import naming_extra
from prslib.datasets import coco, features, nuswide, single_label
from prslib.datasets.arrays import ImageArray, require_an_image
from prslib.datasets.prepared import PARTS, PreparedSet, Selection
from prslib.paths import data_dir, replacing

SETS = {prepared.name: prepared for prepared in (coco.PREPARED, nuswide.PREPARED)}
MOST_MISSING = 0.01  # share of the images that may be left out without --allow-missing
TIMEOUT = 60  # seconds
WORKERS = {"type": int, "metavar": "N", "help": "processes (one for each core)"}
HELP = {
    "cocoseq": "COCOseq of COCO 2014: --images has train2014/ and val2014/, --annotations the "
    "instances files",
    "nuswideseq": "NUS-WIDEseq: --images has a folder a concept, as in the image lists, "
    "--annotations ImageList/ and Groundtruth/",
}


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``prepare`` to the command line."""
    prepare = commands.add_parser(
        "prepare",
        help="make a real data set from what you downloaded, or check it",
        description="Choose a set's images, decode them once to 256 x 256 pixels and keep them in "
        "$PRSLIB_DATA/<name>. Interrupted, the same command goes on where it stopped. MNIST and "
        "SVHN stay the files they are: they are checked, and fetched where asked to.",
        epilog="example: prslib prepare cocoseq --images DIR --annotations DIR --download-ids",
    )
    names = prepare.add_subparsers(required=True, metavar="NAME")
    for name, prepared in SETS.items():
        parser = names.add_parser(name, help=HELP[name], description=HELP[name])
        parser.add_argument("--annotations", type=Path, required=True, metavar="DIR")
        parser.add_argument(
            "--images", type=Path, metavar="DIR", help="without it only the labels are prepared"
        )
        ids = parser.add_mutually_exclusive_group()
        ids.add_argument(
            "--ids", type=Path, metavar="DIR", help="released id files; else a split is derived"
        )
        if prepared.id_address:
            ids.add_argument(
                "--download-ids", action="store_true",
                help="fetch the released id files into $PRSLIB_DATA/<name>_ids and use them",
            )  # fmt: skip
        parser.add_argument(
            "--test-per-class", type=int, default=prepared.per_class, metavar="N",
            help="balanced test images of each class in a derived split (%(default)s)",
        )  # fmt: skip
        parser.add_argument(
            "--allow-missing", action="store_true",
            help="go on where more than 1 %% of the images are missing or broken",
        )  # fmt: skip
        parser.add_argument("--workers", **WORKERS)
        parser.set_defaults(command=run_command, name=name)
    parser = names.add_parser(features.MINI, help="make the features again that come with prslib")
    for option in ("--annotations", "--images"):
        parser.add_argument(option, type=Path, required=True, metavar="DIR")
    parser.add_argument("--embed", action="store_true", help="replace those of prslib")
    parser.add_argument("--workers", **WORKERS)
    parser.set_defaults(command=run_mini)
    parser = names.add_parser("features", help="what a frozen network sees in a prepared set")
    parser.add_argument("name", choices=list(SETS))
    parser.add_argument(
        "--backbone", default=features.DEFAULT, metavar="NETWORK",
        help="this or a classifier of torchvision, such as resnet50 (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--weights", metavar="FILE", help="in place of the published ones")
    parser.add_argument("--workers", **WORKERS)
    parser.set_defaults(command=run_features)
    for source in single_label.SOURCES.values():
        text = f"{source.stands_for} of {source.torchvision}, in $PRSLIB_DATA: {source.files}"
        parser = names.add_parser(source.name, help=text, description=text)
        parser.add_argument(
            "--download", action="store_true", help="fetch with torchvision what is not there"
        )
        parser.set_defaults(command=run_single_label, source=source)
    given = dict.fromkeys((*SETS, features.MINI), "--images DIR --annotations DIR")
    given["features"] = "cocoseq --backbone resnet50"
    for name, parser in names.choices.items():
        parser.epilog = f"example: prslib prepare {name} {given.get(name, '--download')}"


def run_command(options: argparse.Namespace) -> None:
    """Prepare a set and print what was made."""
    ids = options.ids
    if getattr(options, "download_ids", False):
        ids = data_dir() / f"{options.name}_ids"
        download_ids(SETS[options.name], ids)
    prepare(
        SETS[options.name],
        options.annotations,
        options.images,
        ids,
        per_class=options.test_per_class,
        allow_missing=options.allow_missing,
        workers=options.workers,
    )


def run_mini(options: argparse.Namespace) -> None:
    """Make the embedded features again and, where asked to, put them in their place."""
    _check_folders(coco.PREPARED, options.annotations, options.images, None)
    made = features.remake_mini(options.annotations, options.images, options.workers)
    print(made)
    if options.embed:
        with replacing(features.EMBEDDED) as file:
            file.write(made.read_bytes())


def run_features(options: argparse.Namespace) -> None:
    """Compute the features of a prepared set."""
    folder = data_dir() / options.name
    if not (folder / "labels.npz").is_file():
        raise SETS[options.name].not_prepared()
    backbone = features.Backbone(options.backbone, options.weights)
    with _alone(folder):
        features.extract_prepared(folder, backbone, options.workers)


def download_ids(prepared: PreparedSet, folder: Path) -> None:
    """Fetch the released id files that a folder lacks, and check all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, checksum in prepared.id_checksums.items():
        file, address = folder / name, f"{prepared.id_address}/{name}"
        if not file.is_file():
            content = _fetch(address)
            _check(address, content, checksum)
            with replacing(file) as target:
                target.write(content)
        _check(file, file.read_bytes(), checksum)


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


def prepare(
    prepared: PreparedSet,
    annotations: Path,
    images: Path | None,
    ids: Path | None,
    *,
    per_class: int,
    allow_missing: bool = False,
    workers: int | None = None,
) -> Selection:
    """Write labels.npz, images.npy and what was left out into ``$PRSLIB_DATA/<name>``."""
    if per_class < 1:
        raise ValueError(f"expected --test-per-class of 1 or more, got {per_class}")
    folder = data_dir() / prepared.name
    _check_folders(prepared, annotations, images, ids)
    corpus = prepared.read(annotations)
    if ids is None and images is not None and prepared.some_images_lost:
        corpus = corpus.with_files_in(images)
    selection, left_out = prepared.select(corpus, ids, per_class)
    print(f"{prepared.name}: the {selection.origin} split, {_describe(selection)}")
    for reason, count in (corpus.left_out | left_out).items():
        print(f"  {count} images {reason}")
    folder.mkdir(exist_ok=True)
    with _alone(folder):
        labels = folder / "labels.npz"
        held = Selection.load(labels).origin if labels.is_file() else selection.origin
        if held != selection.origin:
            before = "pass --ids DIR" if held == "released" else "leave the ids out"
            raise ValueError(
                f"expected the {selection.origin} split in {labels}, as asked for, got the {held} "
                f"one; {before}, as before, to go on with it, or delete {folder}"
            )
        array = ImageArray(folder, selection.files.tolist())
        if array.is_finished:
            print(f"nothing to do: {array.finished} is there; delete {folder} to make it again")
            return Selection.load(labels)
        if images is not None and len(array.waiting) == len(selection):
            require_an_image(images, array.files)
        corpus.save(folder / "corpus.npz")
        selection.save(labels)  # studies of labels can begin
        if images is None:
            print(f"labels only, in {folder}; give --images to decode the images")
            return selection
        problems = array.decode(images, workers)
        if not array.is_decoded:
            _report(folder, selection, problems, allow_missing)
        kept = selection.keep(array.move_together())
        kept.save(labels)
        array.finish()
    print(f"{folder}: {_describe(kept)}")
    return kept


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes from writing into a folder."""
    from filelock import FileLock, Timeout  # here, as the command line names what is missing

    try:
        with FileLock(folder / "prepare.lock", timeout=0):
            yield
    except Timeout as error:
        raise TimeoutError(
            f"another prepare is at work in {folder}; run the command again when it has ended"
        ) from error


def _check_folders(
    prepared: PreparedSet, annotations: Path, images: Path | None, ids: Path | None
) -> None:
    given = {"--annotations": annotations, "--images": images, "--ids": ids}
    for option, folder in given.items():
        if folder is not None and not folder.is_dir():
            raise FileNotFoundError(
                f"expected a folder after {option}, got {folder}, which is none"
            )
    absent = [part for part in prepared.folders if images and not (images / part).is_dir()]
    if absent:
        held = sorted(path.name for path in images.iterdir())[:5]
        raise FileNotFoundError(
            f"expected the folders {' and '.join(prepared.folders)} in {images}, got "
            f"{', '.join(held) or 'an empty folder'}; --images names the folder that holds both"
        )


def _describe(selection: Selection) -> str:
    counts = zip(np.ptp(selection.bounds, axis=1), PARTS, strict=True)
    sizes = ", ".join(f"{count} {part}" for count, part in counts)
    return f"{len(selection)} images ({sizes}), {len(selection.class_names)} classes"


def _report(
    folder: Path, selection: Selection, problems: dict[int, str], allow_missing: bool
) -> None:
    """Write left_out.csv and counts.csv; raise ValueError where too many images are left out."""
    with open(folder / "left_out.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "part", "task", "reason"])
        for row, reason in problems.items():
            inside = (selection.bounds[:, 0] <= row) & (row < selection.bounds[:, 1])
            parts = "+".join(np.array(PARTS)[inside])
            writer.writerow([selection.files[row], parts, selection.task[row], reason])
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
    missing, count = sum(reason == "missing" for reason in problems.values()), len(selection)
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
    if problems:
        print(said)


def run_single_label(options: argparse.Namespace) -> None:
    """Download where asked to, check the files and print the counts."""
    source = options.source
    if options.download:
        download(source, data_dir(f"{source.name}: {source.files}"))
    dataset = single_label.load_source(source, images=True)
    counts = " ".join(map(str, dataset.class_freq.tolist()))
    print(f"{source.name}: {len(dataset.train)} training images, {counts} of the classes 0 to 9")
    print(f"{source.name}: {len(dataset.tests['full'])} test images")


def download(source: single_label.Source, folder: Path) -> None:
    """Fetch the original files with torchvision, which checks their sums."""
    with naming_extra("training", f", or put there yourself {source.files}"):
        from torchvision import datasets
    for part in source.parts:
        getattr(datasets, source.torchvision)(folder, download=True, **part)
