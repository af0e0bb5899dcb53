"""Add the command ``python -m prslib prepare``, which makes data sets from downloads."""

from __future__ import annotations

import argparse
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import numpy as np

from prslib.checks import expected
from prslib.datasets import coco, features, nuswide, single_label
from prslib.datasets.arrays import check_made, read_image, write_images
from prslib.datasets.prepared import SPLITS, PreparedSet
from prslib.paths import data_dir, replacing

# share of the images that may be left out without --allow-missing
MOST_LOST = 0.01
# number of images that each process decodes before all are written; otherwise, joblib's
# processes would not wait for a slow disk, and their images would fill the memory
BLOCK = 100
WORKERS = "number of processes; by default, one per core"
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
    parser.epilog = f"example: {example.replace('NAME', name)}" if example else None
    # argparse's own pattern lacks exponents and mistakes -1e-3 for an option
    parser._negative_number_matcher = re.compile(r"-\.?\d")
    parser.set_defaults(command=partial(run, *settings))
    return parser


def add_prepare(commands: argparse._SubParsersAction) -> None:
    """Prepare a real data set from downloaded files, or fetch it.

    The images of COCOseq and NUS-WIDEseq are selected, decoded once to 256 x 256 pixels
    and stored in $PRSLIB_DATA/<name>. If decoding is interrupted, it has to start again.
    MNIST and SVHN are fetched and used as they are.

    Example: prslib prepare cocoseq --images DIR --annotations DIR
    """
    prepare = add_command(commands, "prepare", add_prepare)
    names = prepare.add_subparsers(required=True, metavar="NAME")
    for prepared in (coco.PREPARED, nuswide.PREPARED):
        option = add_command(names, prepared.name, prepare_set, prepared).add_argument
        words = "folder of the annotations"
        option("--annotations", type=Path, required=True, help=words)
        words = "folder of the images; without it, only labels are prepared"
        option("--images", type=Path, help=words)
        words = "allow more than 1 %% of the images to be missing or broken"
        option("--allow-missing", action="store_true", help=words)
        option("--workers", type=int, default=os.cpu_count(), help=WORKERS)
    option = add_command(names, "features", prepare_features).add_argument
    sets = [coco.PREPARED.name, nuswide.PREPARED.name]
    option("name", choices=sets, help=" or ".join(sets))
    option("--workers", type=int, default=os.cpu_count(), help=WORKERS)
    for name, source in single_label.SOURCES.items():
        add_command(names, name, prepare_source, source)


def prepare_set(prepared: PreparedSet, options: argparse.Namespace) -> None:
    """Prepare a set of photographs from downloaded files.

    For COCO, the folder given by --annotations contains instances_train2014.json and
    instances_val2014.json, and the folder given by --images contains train2014/ and
    val2014/. For NUS-WIDE, the folder given by --annotations contains ImageList/ and
    Groundtruth/TrainTestLabels/, and the folder given by --images one folder per
    concept. The authors of the PRS paper released lists of the ids of their images.
    These lists are downloaded to $PRSLIB_DATA/<name>_ids, unless this folder already
    contains them.

    The files labels.npz, images.npy and left_out.csv are written to $PRSLIB_DATA/<name>.
    Missing or broken images are left out. If more than 1 % are left out, an error is
    raised unless --allow-missing is given.

    Example: prslib prepare NAME --images DIR --annotations DIR
    """
    folder, name = prepared.file.parent, prepared.name
    if (folder / "images.npy").is_file():
        advice = "delete it to decode them again"
        raise FileExistsError(expected(f"no images in {folder}", "images.npy", advice))
    corpus = prepared.read(options.annotations)
    selection = prepared.select(corpus, find_ids(prepared))
    # raises an error if the ids belong to other annotations
    selection.dataset(name, prepared.stands_for, inputs=None)
    print(f"{name}: the released split, {len(selection)} images")
    labelled = corpus.labels.any(axis=1) & ~corpus.is_test
    clustered = {"corpus": corpus.labels[labelled], "corpus_names": corpus.names}
    if not options.images:
        selection.save(prepared.file, **clustered)
        print(f"labels only, in {folder}; give --images to decode the images")
        return
    files = [options.images / file for file in selection.files]
    lost = np.array([not file.is_file() for file in files])
    check_lost(lost, selection.files, options.allow_missing)
    # features of images that were prepared earlier
    (folder / features.FILE).unlink(missing_ok=True)
    with replacing(folder / "images.npy") as stream:
        images = make_rows(read_image, files, options.workers)
        lost, digest = write_images(stream, images, len(files))
        check_lost(lost, selection.files, options.allow_missing)
        left_out = "\n".join(["file", *selection.files[lost]])
        (folder / "left_out.csv").write_text(left_out)
        # before the images appear, so that they always have their labels
        clustered["pixels"] = np.array(digest)
        selection.keep(~lost).save(prepared.file, **clustered)
    print(f"{folder}: {(~lost).sum()} images; left_out.csv lists {lost.sum()} others")


def make_rows(make: Callable, items: Sequence, workers: int) -> Iterable:
    """Apply a function to items in parallel, with a progress bar; return the results."""
    from joblib import delayed
    from tqdm import tqdm

    from prslib.processes import spread

    workers = max(workers, 1)
    block = BLOCK * workers

    def rows() -> Iterator:
        for start in range(0, len(items), block):
            tasks = (delayed(make)(item) for item in items[start : start + block])
            yield from spread(tasks, workers, return_as="generator", batch_size=8)

    return tqdm(rows(), total=len(items), unit="image")


def check_lost(lost: np.ndarray, files: np.ndarray, allowed: bool) -> None:
    """Raise ValueError if too many images would be left out."""
    if lost.all() or (lost.mean() > MOST_LOST and not allowed):
        what = f"at most {MOST_LOST:.0%} of {len(files)} images missing or broken"
        got = f"{lost.sum()}, such as {files[lost][0]}"
        raise ValueError(
            expected(what, got, "pass another --images, or --allow-missing")
        )


def find_ids(prepared: PreparedSet) -> Path:
    """Return the folder of the released id files; fetch missing files."""
    folder = data_dir() / f"{prepared.name}_ids"
    name = prepared.stands_for.replace("-", "")
    for file in [file for split in SPLITS for file in prepared.id_files(folder, split)]:
        if not file.is_file():
            address = f"{ID_ADDRESS}/{name}/ids/{file.name}"
            print(f"fetching {address}")
            with urlopen(address, timeout=60) as answer, replacing(file) as stream:
                stream.write(answer.read())
    return folder


def prepare_features(options: argparse.Namespace) -> None:
    """Store the features that EfficientNet-Lite0 computes from a prepared set's images.

    The features are written to $PRSLIB_DATA/<name>/features.npy, with one row per
    image.

    Example: prslib prepare features cocoseq
    """
    folder = data_dir() / options.name
    images = folder / "images.npy"
    check_made(images)
    features.frozen_network()  # raises an error before work starts
    count = len(np.load(images, mmap_mode="r"))
    make = partial(features.embed_row, images)
    rows = list(make_rows(make, range(count), options.workers))
    with replacing(folder / features.FILE) as stream:
        np.save(stream, np.array(rows))
    print(folder / features.FILE)


def prepare_source(source: single_label.Source, _options: argparse.Namespace) -> None:
    """Fetch the images of a single-label data set if necessary, and count them.

    The files are stored in $PRSLIB_DATA: for MNIST in the folder MNIST/raw, and for
    SVHN as train_32x32.mat and test_32x32.mat.

    Example: prslib prepare NAME
    """
    dataset = single_label.load_source(source, images=True, download=True)
    counts = " ".join(map(str, dataset.class_freq.tolist()))
    print(f"{source.name}: {len(dataset.train)} training images, {counts} of 0 to 9")
