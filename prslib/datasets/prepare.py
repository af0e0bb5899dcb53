"""Add the command ``python -m prslib prepare``: data sets from downloaded files."""

from __future__ import annotations

import argparse
import hashlib
import inspect
import os
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import numpy as np

from prslib.checks import expected
from prslib.datasets import coco, features, nuswide, single_label
from prslib.datasets.arrays import read_image, write_rows
from prslib.datasets.prepared import (
    SPLITS,
    PreparedSet,
    Selection,
    open_images,
)
from prslib.paths import data_dir, end_with, replacing

SETS = {prepared.name: prepared for prepared in (coco.PREPARED, nuswide.PREPARED)}
# share of the images that may be left out without --allow-missing
MOST_LOST = 0.01
BATCH = 32  # items that a worker process makes at a time
# a fixed commit of the authors' repository, github.com/cdjkim/PRS
ID_ADDRESS = (
    "https://raw.githubusercontent.com/cdjkim/PRS/"
    "a29a99567663365116d5dd58ae7414b6cfe9d94a/dataset/data_source"
)


def add_command(
    commands: argparse._SubParsersAction, name: str, run: Callable, *settings: object
) -> argparse.ArgumentParser:
    """Add a command that is described by its function's docstring."""
    # docstrings are missing if PYTHONOPTIMIZE is 2
    text, _, example = inspect.cleandoc(run.__doc__ or "").partition("\n\nExample: ")
    summary, _, _ = text.partition("\n")
    parser = commands.add_parser(name, description=text, help=summary)
    parser.epilog = f"example: {example}" if example else None
    # argparse's own pattern lacks exponents and mistakes -1e-3 for an option
    parser._negative_number_matcher = re.compile(r"-\.?\d")
    parser.set_defaults(command=partial(run, *settings))
    return parser


def add_prepare(commands: argparse._SubParsersAction) -> None:
    """Prepare a real data set from downloaded files, or check it.

    The images of a set are selected, decoded once to 256 x 256 pixels and stored in
    $PRSLIB_DATA/<name>. If decoding is interrupted, it has to start again. The files of
    MNIST and SVHN are used as they are; they are checked and, with --download, fetched.

    Example: prslib prepare cocoseq --images DIR --annotations DIR --download-ids
    """
    prepare = add_command(commands, "prepare", add_prepare)
    names = prepare.add_subparsers(required=True, metavar="NAME")
    for name, prepared in SETS.items():
        option = add_command(names, name, prepare_set, prepared).add_argument
        words = f"folder with {prepared.annotations}"
        option("--annotations", type=Path, required=True, help=words)
        words = f"folder with {prepared.images}; without it, only labels are prepared"
        option("--images", type=Path, help=words)
        group = names.choices[name].add_mutually_exclusive_group(required=True)
        either = group.add_argument
        either(
            "--ids",
            type=Path,
            help="folder with the id files that the paper's authors released",
        )
        words = "fetch these id files"
        either("--download-ids", action="store_true", help=words)
        words = "allow more than 1 %% of the images to be missing or broken"
        option("--allow-missing", action="store_true", help=words)
        option("--workers", type=int, help="number of processes")
    option = add_command(names, "features", prepare_features).add_argument
    option("name", choices=list(SETS))
    words = "network that computes the features (default: %(default)s)"
    option("--backbone", default=features.DEFAULT, help=words)
    option("--workers", type=int, help="number of processes")
    for name, source in single_label.SOURCES.items():
        option = add_command(names, name, prepare_source, source).add_argument
        option("--download", action="store_true", help=f"fetch {source.original}")


def prepare_set(prepared: PreparedSet, options: argparse.Namespace) -> None:
    """Prepare a set of photographs from downloaded files.

    The files labels.npz, images.npy and left_out.csv are written to $PRSLIB_DATA/<name>,
    and fetched ids to $PRSLIB_DATA/<name>_ids. Missing or broken images are left out. If
    more than 1 % are left out, an error is raised unless --allow-missing is given.

    Example: prslib prepare cocoseq --images DIR --annotations DIR --download-ids
    """
    root, ids = options.images, options.ids
    folder = data_dir() / prepared.name
    left_out = folder / "left_out.csv"  # written last
    if (folder / "images.npy").is_file() and left_out.is_file():
        advice = "delete it to decode them again"
        raise FileExistsError(expected(f"no images in {folder}", "images.npy", advice))
    if options.download_ids:
        ids = download_ids(prepared, data_dir() / f"{prepared.name}_ids")
    corpus = prepared.corpus(options.annotations)
    selection = prepared.select(corpus, ids)
    # raises an error if the ids belong to other annotations
    selection.dataset(prepared.name, prepared.stands_for, inputs=None)
    if root:
        there = find_files(root, selection.files, options.allow_missing)
    print(f"{prepared.name}: the released split, {len(selection)} images")
    corpus.save(folder / "corpus.npz")
    # studies of the labels do not need images
    selection.save(folder / "labels.npz")
    # features of images that were prepared earlier
    (folder / features.FILE).unlink(missing_ok=True)
    if root:
        decode_images(selection, there, folder, options)
    else:
        print(f"labels only, in {folder}; give --images to decode the images")


def decode_images(
    selection: Selection, there: np.ndarray, folder: Path, options: argparse.Namespace
) -> None:
    """Decode the images whose files exist, `there` bool (N,), and leave out broken ones."""
    left_out = folder / "left_out.csv"
    left_out.unlink(missing_ok=True)
    whole = there.copy()
    rows = np.flatnonzero(there)
    files = [options.images / name for name in selection.files[rows]]

    def decode() -> Iterator[np.ndarray]:
        images = make_rows(read_image, files, options.workers)
        for row, image in zip(rows, images, strict=True):
            whole[row] = image is not None
            if image is not None:
                yield image
        check_lost(~whole, selection.files, options.allow_missing)

    digest = write_rows(folder / "images.npy", decode())
    selection.keep(whole).save(folder / "labels.npz", pixels=np.array(digest))
    with replacing(left_out) as file:
        file.write("\n".join(["file", *selection.files[~whole]]).encode())
    print(f"{folder}: {whole.sum()} images; left_out.csv lists {(~whole).sum()} others")


def make_rows(make: Callable, items: Sequence, workers: int | None) -> Iterator:
    """Apply a function to items in parallel, with a progress bar; yield the results."""
    from torch.utils.data import DataLoader
    from tqdm import tqdm

    workers = workers or os.cpu_count() or 1
    batches = DataLoader(
        # a list is enough: only a length and an index are needed
        items,  # ty: ignore[invalid-argument-type]
        batch_size=BATCH,
        num_workers=0 if workers == 1 else workers,
        # runs in the workers
        collate_fn=partial(make_each, make),
        worker_init_fn=partial(begin_worker, os.getpid()),
    )
    rows = (row for batch in batches for row in batch)
    yield from tqdm(rows, total=len(items), unit="image")


def begin_worker(parent: int, _number: int) -> None:
    """Leave Ctrl-C to the parent process, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent)  # which may have ended already


def make_each(make: Callable, items: Sequence) -> list:
    """Apply a function to each item."""
    return [make(item) for item in items]


def find_files(root: Path, files: np.ndarray, may_miss: bool) -> np.ndarray:
    """Return which files exist, bool (N,); raise ValueError if too many are missing."""
    there = np.array([(root / name).is_file() for name in files])
    check_lost(~there, files, may_miss)
    return there


def check_lost(lost: np.ndarray, files: np.ndarray, allowed: bool) -> None:
    """Raise ValueError if too many images would be left out."""
    if lost.all() or (lost.mean() > MOST_LOST and not allowed):
        what = f"at most {MOST_LOST:.0%} of {len(files)} images missing or broken"
        got = f"{lost.sum()}, such as {files[lost][0]}"
        advice = "put them there, pass another --images or --allow-missing"
        raise ValueError(expected(what, got, advice))


def download_ids(prepared: PreparedSet, folder: Path) -> Path:
    """Fetch the released id files that are missing in a folder, and check all of them."""
    digest = hashlib.sha256()
    files = [file for split in SPLITS for file in prepared.id_files(folder, split)]
    for file in files:
        if not file.is_file():
            name = prepared.stands_for.replace("-", "")
            address = f"{ID_ADDRESS}/{name}/ids/{file.name}"
            with urlopen(address, timeout=60) as answer, replacing(file) as stream:
                stream.write(answer.read())
        digest.update(file.read_bytes())
    if digest.hexdigest() != prepared.id_digest:
        advice = "delete them and run the command again"
        what = f"the released id files in {folder}"
        raise ValueError(expected(what, "other files", advice))
    return folder


def prepare_features(options: argparse.Namespace) -> None:
    """Store the features that a frozen network computes from a prepared set's images.

    The network is EfficientNet-Lite0 or one of torchvision's classifiers.

    Example: prslib prepare features cocoseq --backbone resnet50
    """
    folder = data_dir() / options.name
    selection = Selection.load(folder / "labels.npz")
    # raise errors before work starts
    open_images(folder, selection)
    features.frozen_network(options.backbone)
    make = partial(features.embed_row, folder / "images.npy", options.backbone)
    rows = make_rows(make, range(len(selection)), options.workers)
    write_rows(folder / features.FILE, rows)
    print(folder / features.FILE)


def prepare_source(source: single_label.Source, options: argparse.Namespace) -> None:
    """Check a single-label data set, or fetch it, and count its images.

    The files are searched for in $PRSLIB_DATA: mnist.npz or MNIST/raw for MNIST,
    train_32x32.mat and test_32x32.mat for SVHN.

    Example: prslib prepare imbal-mnistseq --download
    """
    dataset = single_label.load_source(source, images=True, download=options.download)
    counts = " ".join(map(str, dataset.class_freq.tolist()))
    print(f"{source.name}: {len(dataset.train)} training images, {counts} of 0 to 9")
