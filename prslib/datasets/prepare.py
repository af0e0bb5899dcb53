"""Add the command ``python -m prslib prepare``: data sets from downloaded files."""

from __future__ import annotations

import argparse
import hashlib
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import numpy as np

from prslib.checks import expected
from prslib.datasets import coco, features, nuswide, single_label
from prslib.datasets.arrays import PIXELS, fill_rows, open_rows, read_image, read_sums
from prslib.datasets.prepared import SPLITS, PreparedSet, Selection, not_prepared
from prslib.paths import data_dir, replacing

SETS = {prepared.name: prepared for prepared in (coco.PREPARED, nuswide.PREPARED)}
# share of the images that may be left out without --allow-missing
MOST_LOST = 0.01
# a fixed state of the authors' repository, github.com/cdjkim/PRS
ID_ADDRESS = (
    "https://raw.githubusercontent.com/cdjkim/PRS/"
    "a29a99567663365116d5dd58ae7414b6cfe9d94a/dataset/data_source"
)


def add_command(
    commands: argparse._SubParsersAction, name: str, run: Callable, *settings: object
) -> argparse.ArgumentParser:
    """Add a command, which its function's docstring explains."""
    # without docstrings where PYTHONOPTIMIZE is 2
    text, _, example = inspect.cleandoc(run.__doc__ or "").partition("\n\nExample: ")
    summary, _, _ = text.partition("\n")
    parser = commands.add_parser(name, description=text, help=summary)
    parser.epilog = f"example: {example}" if example else None
    parser.set_defaults(command=partial(run, *settings))
    return parser


def add_prepare(commands: argparse._SubParsersAction) -> None:
    """Make a real data set from what you downloaded, or check it.

    Choose a set's images, decode them once to 256 x 256 pixels and keep them in
    $PRSLIB_DATA/<name>. Interrupted, the same command goes on where it stopped. MNIST
    and SVHN stay the files they are: they are checked, and fetched where asked to.

    Example: prslib prepare cocoseq --images DIR --annotations DIR --download-ids
    """
    prepare = add_command(commands, "prepare", add_prepare)
    names = prepare.add_subparsers(required=True, metavar="NAME")
    for name, prepared in SETS.items():
        option = add_command(names, name, prepare_set, prepared).add_argument
        option("--annotations", type=Path, required=True, help=prepared.annotations)
        option("--images", type=Path, help=f"{prepared.images}; else only labels")
        option("--ids", type=Path, help="released id files; else a split is derived")
        if prepared.id_digest:
            option("--download-ids", action="store_true", help="fetch these files")
        more = "leave out more than 1 %% of the images"
        option("--allow-missing", action="store_true", help=more)
        option("--workers", type=int, help="processes")
    option = add_command(names, "features", prepare_features).add_argument
    option("name", choices=list(SETS))
    option("--backbone", default=features.DEFAULT, help="a network (%(default)s)")
    option("--workers", type=int, help="processes")
    for name, source in single_label.SOURCES.items():
        option = add_command(names, name, prepare_source, source).add_argument
        option("--download", action="store_true", help=f"fetch {source.original}")


def prepare_set(prepared: PreparedSet, options: argparse.Namespace) -> None:
    """Make a set of photographs from what you downloaded.

    The files labels.npz, images.bin and left_out.csv are written into
    $PRSLIB_DATA/<name>, released ids that are fetched into $PRSLIB_DATA/cocoseq_ids.
    Images that are missing or broken are left out; more than 1 % of them only with
    --allow-missing.

    Example: prslib prepare cocoseq --images DIR --annotations DIR
    """
    # the command line names what is missing
    from filelock import FileLock

    root, ids = options.images, options.ids
    folder = data_dir() / prepared.name
    file = folder / "images.bin"
    labels = folder / "labels.npz"
    left_out = folder / "left_out.csv"
    if getattr(options, "download_ids", False):
        ids = download_ids(prepared, data_dir() / f"{prepared.name}_ids")
    corpus = prepared.corpus(options.annotations)
    if not ids and corpus.files[0].startswith("train2017/"):
        what = "released ids, which name the halves that COCO 2017 cut otherwise"
        raise ValueError(expected(what, "none", "give --ids or --download-ids"))
    if root and not ids and prepared.some_images_lost:
        missing = missing_files(root, corpus.files, allowed=True)
        # which leaves them out
        corpus = corpus._replace(labels=corpus.labels & ~missing[:, None])
    selection = prepared.select(corpus, ids)
    # refuses ids of other annotations
    selection.dataset(prepared.name, prepared.stands_for, inputs=None)
    if root and not file.is_file():
        missing_files(root, selection.files, options.allow_missing)
    print(f"{prepared.name}: the {selection.origin} split, {len(selection)} images")
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "prepare.lock", timeout=0):
        stored = Selection.load(labels) if labels.is_file() else selection
        if not np.array_equal(stored.files, selection.files):
            advice = "other ids or annotations; move it away or delete it"
            what = f"these images in {folder}"
            raise ValueError(expected(what, "those of another selection", advice))
        if not file.is_file():
            corpus.save(folder / "corpus.npz")
            # studies of labels can begin
            selection.save(labels)
            if root is None:
                print(f"labels only, in {folder}; give --images to decode the images")
                return
            # of images that were here before
            for name in (features.RECORD, left_out.name):
                (folder / name).unlink(missing_ok=True)
            read = partial(read_image, root)
            fill_rows(file, PIXELS, selection.files, read, options.workers)
        lost = read_sums(file) == 0
        if not left_out.is_file():  # not yet allowed
            advice = f"mend them and delete {folder / 'images'}.*"
            refuse_lost(lost, selection.files, options.allow_missing, advice)
        open_rows(file, (~lost).sum(), PIXELS, whole=True)
    left_out.write_text("\n".join(["file", *selection.files[lost]]))
    print(f"{folder}: {(~lost).sum()} images; left_out.csv lists {lost.sum()} others")


def missing_files(root: Path, files: np.ndarray, allowed: bool) -> np.ndarray:
    """Tell which files a folder lacks, bool (N,); refuse too many."""
    missing = np.array([not (root / name).is_file() for name in files])
    advice = f"put them into {root}, name another --images"
    refuse_lost(missing, files, allowed, advice)
    return missing


def refuse_lost(
    lost: np.ndarray, files: np.ndarray, allowed: bool, advice: str
) -> None:
    """Raise ValueError where too many images would be left out."""
    if lost.all() or (lost.mean() > MOST_LOST and not allowed):
        what = f"at most {MOST_LOST:.0%} of {len(files)} images missing or broken"
        got = f"{lost.sum()}, such as {files[lost][0]}"
        raise ValueError(expected(what, got, f"{advice} or pass --allow-missing"))


def download_ids(prepared: PreparedSet, folder: Path) -> Path:
    """Fetch the released id files that a folder lacks, and check all of them."""
    digest = hashlib.sha256()
    files = [file for split in SPLITS for file in prepared.id_files(folder, split)]
    for file in files:
        if not file.is_file():
            address = f"{ID_ADDRESS}/{prepared.stands_for}/ids/{file.name}"
            with urlopen(address, timeout=60) as answer, replacing(file) as stream:
                stream.write(answer.read())
        digest.update(file.read_bytes())
    if digest.hexdigest() != prepared.id_digest:
        advice = "delete them and run the command again"
        what = f"the released id files in {folder}"
        raise ValueError(expected(what, "others", advice))
    return folder


def prepare_features(options: argparse.Namespace) -> None:
    """Keep what a frozen network sees in every image of a prepared set.

    The network is EfficientNet-Lite0 or one of torchvision's classifiers.

    Example: prslib prepare features cocoseq --backbone resnet50
    """
    from filelock import FileLock

    folder = data_dir() / options.name
    if not (folder / "images.bin").is_file():
        raise not_prepared(folder)
    with FileLock(folder / "prepare.lock", timeout=0):
        features.extract(folder, options.backbone, options.workers)


def prepare_source(source: single_label.Source, options: argparse.Namespace) -> None:
    """Check single-label data, or fetch them, and count their images.

    They are looked for in $PRSLIB_DATA: mnist.npz or MNIST/raw; train_32x32.mat and
    test_32x32.mat.

    Example: prslib prepare imbal-mnistseq --download
    """
    dataset = single_label.load_source(source, images=True, download=options.download)
    counts = " ".join(map(str, dataset.class_freq.tolist()))
    print(f"{source.name}: {len(dataset.train)} training images, {counts} of 0 to 9")
