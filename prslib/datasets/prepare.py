"""Add the command ``python -m prslib prepare``: data sets from downloaded files."""

from __future__ import annotations

import argparse
import hashlib
import urllib.request
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from prslib.checks import expected, whole
from prslib.datasets import coco, features, nuswide, single_label
from prslib.datasets.arrays import PIXELS, fill_rows, open_rows, read_sums
from prslib.datasets.images import read_image
from prslib.datasets.prepared import PreparedSet, Selection, not_prepared
from prslib.paths import data_dir, replacing

SETS = {prepared.name: prepared for prepared in (coco.PREPARED, nuswide.PREPARED)}
MOST_LOST = 0.01  # share of the images that may be left out without --allow-missing
TIMEOUT = 60  # seconds
HELP = {
    "cocoseq": "COCOseq of COCO 2014: --images has train2014/ and val2014/",
    "nuswideseq": "NUS-WIDEseq: --images has a folder a concept, as the image lists",
    "features": "what a frozen network sees in a prepared set",
}
FOLDERS = "--images DIR --annotations DIR"


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``prepare`` to the command line."""
    prepare = commands.add_parser(
        "prepare",
        help="make a real data set from what you downloaded, or check it",
        description="Choose a set's images, decode them once to 256 x 256 pixels and "
        "keep them in $PRSLIB_DATA/<name>. Interrupted, the same command goes on where "
        "it stopped. MNIST and SVHN stay the files they are: they are checked, and "
        "fetched where asked to.",
        epilog=f"example: prslib prepare cocoseq {FOLDERS} --download-ids",
    )
    names = prepare.add_subparsers(required=True, metavar="NAME")

    def add(
        name: str, run: Callable, text: str, example: str
    ) -> argparse.ArgumentParser:
        example = f"example: prslib prepare {name} {example}"
        parser = names.add_parser(name, help=text, description=text, epilog=example)
        parser.set_defaults(command=run)
        return parser

    folder = {"type": Path, "metavar": "DIR"}
    switch = {"action": "store_true"}
    workers = {"type": int, "metavar": "N", "help": "processes (one for each core)"}
    for name, prepared in SETS.items():
        parser = add(name, partial(prepare_set, prepared), HELP[name], FOLDERS)
        files, per_class = prepared.annotations, prepared.per_class
        parser.add_argument("--annotations", required=True, help=files, **folder)
        text = "without it only the labels are prepared"
        parser.add_argument("--images", help=text, **folder)
        text = "released id files; else a split is derived"
        parser.add_argument("--ids", help=text, **folder)
        text = "balanced test images of each class in a derived split (%(default)s)"
        parser.add_argument("--test-per-class", type=int, default=per_class, help=text)
        text = "go on where more than 1 %% of the images are missing or broken"
        parser.add_argument("--allow-missing", help=text, **switch)
        parser.add_argument("--workers", **workers)
        parser.set_defaults(download_ids=False)
        if prepared.id_digest:
            text = "fetch released id files into $PRSLIB_DATA/<name>_ids, use them"
            parser.add_argument("--download-ids", help=text, **switch)
    example = "cocoseq --backbone resnet50"
    parser = add("features", prepare_features, HELP["features"], example)
    parser.add_argument("name", choices=list(SETS))
    text = "this or a classifier of torchvision, such as resnet50 (%(default)s)"
    parser.add_argument("--backbone", default=features.DEFAULT, help=text)
    parser.add_argument("--weights", help="a file, in place of the published ones")
    parser.add_argument("--workers", **workers)
    for source in single_label.SOURCES.values():
        text = f"{source.stands_for}, in $PRSLIB_DATA: {source.place}"
        parser = add(source.name, partial(prepare_source, source), text, "--download")
        text = "fetch with torchvision what lacks"
        parser.add_argument("--download", help=text, **switch)


def prepare_set(prepared: PreparedSet, options: argparse.Namespace) -> None:
    """Write labels.npz, images.bin and left_out.csv into ``$PRSLIB_DATA/<name>``."""
    from filelock import FileLock  # the command line names what is missing

    root, ids, allowed = options.images, options.ids, options.allow_missing
    folder = data_dir() / prepared.name
    file, labels = folder / "images.bin", folder / "labels.npz"
    if options.download_ids:
        ids = download_ids(prepared, data_dir() / f"{prepared.name}_ids")
    corpus = prepared.corpus(options.annotations)
    if root and not ids and prepared.some_images_lost:
        missing = missing_files(root, corpus.files, allowed=True)
        corpus.labels[missing] = False  # which leaves them out
    per_class = whole("--test-per-class", options.test_per_class, least=1)
    selection = prepared.select(corpus, ids, per_class)
    # refuses ids of other annotations
    selection.dataset(prepared.name, prepared.stands_for, inputs=None)
    if root and not file.is_file():
        missing_files(root, selection.files, allowed)
    print(f"{prepared.name}: the {selection.origin} split, {len(selection)} images")
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "prepare.lock", timeout=0):
        stored = Selection.load(labels) if labels.is_file() else selection
        made = np.isin(selection.files, stored.files) | (not file.is_file())
        if not stored.equals(selection.keep(made)):
            advice = "other ids or annotations; move it away or delete it"
            what = f"these images in {folder}"
            raise ValueError(expected(what, "those of another selection", advice))
        if file.is_file() and np.count_nonzero(read_sums(file)) == len(stored):
            open_rows(file, len(stored), PIXELS, whole=True)
            print(f"nothing to do: {file} is whole; delete {folder} to make it again")
            return
        corpus.save(folder / "corpus.npz")
        selection.save(labels)  # studies of labels can begin
        if root is None:
            print(f"labels only, in {folder}; give --images to decode the images")
            return
        read = partial(read_images, root)
        fill_rows(file, PIXELS, selection.files, read, options.workers, "decoding")
        lost = read_sums(file) == 0
        refuse_lost(lost, root, selection.files, allowed)
        selection.keep(~lost).save(labels)
    (folder / "left_out.csv").write_text("\n".join(["file", *selection.files[lost]]))
    print(f"{folder}: {(~lost).sum()} images; left_out.csv lists {lost.sum()} others")


def read_images(root: Path, names: Sequence[str]) -> list[np.ndarray | None]:
    """Read images, None for each that is missing or broken."""
    images: list[np.ndarray | None] = []
    for name in names:
        try:
            images.append(read_image(root, name))
        except (OSError, ValueError):
            images.append(None)
    return images


def missing_files(root: Path, files: np.ndarray, allowed: bool) -> np.ndarray:
    """Tell which files a folder lacks, bool (N,); refuse too many."""
    missing = np.array([not (root / name).is_file() for name in files])
    refuse_lost(missing, root, files, allowed)
    return missing


def refuse_lost(lost: np.ndarray, root: Path, files: np.ndarray, allowed: bool) -> None:
    """Raise ValueError where too many images would be left out."""
    if lost.all() or (lost.mean() > MOST_LOST and not allowed):
        what = f"at most {MOST_LOST:.0%} of {len(files)} images missing or broken"
        got = f"{lost.sum()}, such as {root / files[lost][0]}"
        advice = "--images names the folder that such paths begin in; put the images "
        advice += "there or pass --allow-missing"
        raise ValueError(expected(what, got, advice))


def download_ids(prepared: PreparedSet, folder: Path) -> Path:
    """Fetch the released id files that a folder lacks, and check all of them."""
    digest = hashlib.sha256()
    for file in chain(*prepared.id_files(folder)):
        if not file.is_file():
            address = f"{prepared.id_address}/{file.name}"
            with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
                content = answer.read()
            with replacing(file) as stream:
                stream.write(content)
        digest.update(file.read_bytes())
    if digest.hexdigest() != prepared.id_digest:
        advice = "delete them and run the command again"
        raise ValueError(
            expected(f"the released id files in {folder}", "others", advice)
        )
    return folder


def prepare_features(options: argparse.Namespace) -> None:
    """Compute the features of a prepared set."""
    from filelock import FileLock

    folder = data_dir() / options.name
    if not (folder / "images.bin").is_file():
        raise not_prepared(folder)
    with FileLock(folder / "prepare.lock", timeout=0):
        features.extract(folder, options.backbone, options.weights, options.workers)


def prepare_source(source: single_label.Source, options: argparse.Namespace) -> None:
    """Download where asked to, check the files and print the counts."""
    dataset = single_label.load_source(source, images=True, download=options.download)
    counts = " ".join(map(str, dataset.class_freq.tolist()))
    print(f"{source.name}: {len(dataset.train)} training images, {counts} of 0 to 9")
