"""Add the command ``python -m prslib prepare``: data sets from downloaded files."""

from __future__ import annotations

import argparse
import csv
import hashlib
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.client import HTTPException
from itertools import chain
from pathlib import Path

import numpy as np

from prslib.checks import whole
from prslib.datasets import coco, features, nuswide, single_label
from prslib.datasets.arrays import PIXELS, RowFile, open_rows
from prslib.datasets.images import read_image
from prslib.datasets.prepared import PARTS, PreparedSet, Selection, not_prepared
from prslib.paths import data_dir, replacing

SETS = {prepared.name: prepared for prepared in (coco.PREPARED, nuswide.PREPARED)}
MOST_MISSING = 0.01  # share of the images that may be left out without --allow-missing
TIMEOUT = 60  # seconds
HELP = {
    "cocoseq": "COCOseq of COCO 2014: --images has train2014/ and val2014/, "
    "--annotations the instances files",
    "nuswideseq": "NUS-WIDEseq: --images has a folder a concept, as in the image "
    "lists, --annotations ImageList/ and Groundtruth/",
    features.MINI: "make the features again that come with prslib",
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
    workers = {"type": int, "metavar": "N", "help": "processes (one for each core)"}
    for name, prepared in SETS.items():
        parser = add(name, partial(prepare_set, prepared), HELP[name], FOLDERS)
        parser.add_argument("--annotations", required=True, **folder)
        parser.add_argument(
            "--images", help="without it only the labels are prepared", **folder
        )
        ids = parser.add_mutually_exclusive_group()
        ids.add_argument(
            "--ids", help="released id files; else a split is derived", **folder
        )
        if prepared.id_digest:
            ids.add_argument(
                "--download-ids",
                action="store_true",
                help="fetch released id files into $PRSLIB_DATA/<name>_ids, use them",
            )
        parser.add_argument(
            "--test-per-class",
            type=int,
            default=prepared.per_class,
            metavar="N",
            help="balanced test images of each class in a derived split (%(default)s)",
        )
        parser.add_argument(
            "--allow-missing",
            action="store_true",
            help="go on where more than 1 %% of the images are missing or broken",
        )
        parser.add_argument("--workers", **workers)
    parser = add(features.MINI, prepare_mini, HELP[features.MINI], FOLDERS)
    parser.add_argument("--annotations", required=True, **folder)
    parser.add_argument("--images", required=True, **folder)
    parser.add_argument("--embed", action="store_true", help="replace those of prslib")
    example = "cocoseq --backbone resnet50"
    parser = add("features", prepare_features, HELP["features"], example)
    parser.add_argument("name", choices=list(SETS))
    text = "this or a classifier of torchvision, such as resnet50 (%(default)s)"
    parser.add_argument(
        "--backbone", default=features.DEFAULT, metavar="NETWORK", help=text
    )
    parser.add_argument(
        "--weights", metavar="FILE", help="in place of the published ones"
    )
    parser.add_argument("--workers", **workers)
    for source in single_label.SOURCES.values():
        text = f"{source.stands_for}, in $PRSLIB_DATA: {source.files}"
        parser = add(source.name, partial(prepare_source, source), text, "--download")
        text = "fetch with torchvision what lacks"
        parser.add_argument("--download", action="store_true", help=text)


def prepare_set(prepared: PreparedSet, options: argparse.Namespace) -> None:
    """Write labels.npz, images.bin and left_out.csv into ``$PRSLIB_DATA/<name>``."""
    images, ids = options.images, options.ids
    per_class = whole("--test-per-class", options.test_per_class, least=1)
    folder = data_dir() / prepared.name
    if getattr(options, "download_ids", False):
        ids = data_dir() / f"{prepared.name}_ids"
        download_ids(prepared, ids)
    corpus = prepared.read(options.annotations)
    if ids is None and images is not None and prepared.some_images_lost:
        corpus = corpus.keep(files_in(images, corpus.files), "without an image file")
    selection, left_out = prepared.select(corpus, ids, per_class)
    print(f"{prepared.name}: the {selection.origin} split, {describe(selection)}")
    for reason, count in (corpus.left_out | left_out).items():
        print(f"  {count} images {reason}")
    file = folder / "images.bin"
    if file.is_file():
        stored = Selection.load(folder / "labels.npz")
        if not np.isin(stored.files, selection.files).all():
            raise ValueError(
                f"expected these images in {folder}, got those of another selection "
                "(other ids or other annotations); move it away or delete it"
            )
        open_rows(file, len(stored), PIXELS, whole=True)
        print(f"nothing to do: {file} is whole; delete {folder} to make it again")
        return
    problems = {}
    if images is not None:
        there = files_in(images, selection.files)
        problems = dict.fromkeys(selection.files[~there].tolist(), "missing")
        check_share(problems, len(selection), options.allow_missing)
        selection = selection.keep(there)
    folder.mkdir(exist_ok=True)
    with alone_in(folder):
        if images is not None:
            rows = RowFile(file, selection.files.tolist(), PIXELS)
        corpus.save(folder / "corpus.npz")
        selection.save(folder / "labels.npz")  # studies of labels can begin
        if images is None:
            print(f"labels only, in {folder}; give --images to decode the images")
            return
        decode = partial(read_images, images)
        broken = rows.fill(rows.sources, decode, options.workers, "decoding")
        problems |= {rows.sources[row]: reason for row, reason in broken.items()}
        with open(folder / "left_out.csv", "w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([("file", "reason"), *problems.items()])
        check_share(problems, len(selection), options.allow_missing)
        selection = selection.keep(~np.isin(selection.files, list(problems)))
        selection.save(folder / "labels.npz")
        rows.finish()
    print(
        f"{folder}: {describe(selection)}; {len(problems)} left out, see left_out.csv"
    )


def read_images(root: Path, names: Sequence[str]) -> list[np.ndarray | str]:
    """Read images; of one that cannot be read, say why."""
    images: list[np.ndarray | str] = []
    for name in names:
        try:
            images.append(read_image(root, name))
        except FileNotFoundError:
            images.append("missing")
        except (OSError, ValueError) as error:
            images.append(f"broken: {error}")
    return images


def files_in(root: Path, files: np.ndarray) -> np.ndarray:
    """Tell which files are in a folder, bool (N,); FileNotFoundError where none is."""
    there = np.array([(root / name).is_file() for name in files], dtype=bool)
    if not there.any():
        raise FileNotFoundError(
            f"expected images in {root}, got none of {len(files)}, the first tried is "
            f"{root / files[0]}; --images names the folder that such paths begin in"
        )
    return there


def check_share(problems: dict[str, str], count: int, allowed: bool) -> None:
    """Raise ValueError where too many images would be left out."""
    if len(problems) > MOST_MISSING * count and not allowed:
        listed = "".join(f"\n  {name}: {why}" for name, why in [*problems.items()][:10])
        raise ValueError(
            f"expected at most {MOST_MISSING:.0%} of the images missing or broken, got "
            f"{len(problems)} of {count}; put them in place and run the command again, "
            f"or pass --allow-missing:{listed}"
        )


def describe(selection: Selection) -> str:
    """Count the images of a selection."""
    counts = zip(np.ptp(selection.bounds, axis=1), PARTS, strict=True)
    sizes = ", ".join(f"{count} {split}" for count, split in counts)
    return f"{len(selection)} images ({sizes}), {len(selection.class_names)} classes"


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other processes from writing into a folder."""
    from filelock import FileLock, Timeout  # the command line names what is missing

    try:
        with FileLock(folder / "prepare.lock", timeout=0):
            yield
    except Timeout as error:
        raise TimeoutError(
            f"another prepare is at work in {folder}; run the command when it has ended"
        ) from error


def download_ids(prepared: PreparedSet, folder: Path) -> None:
    """Fetch the released id files that a folder lacks, and check all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    for file in chain(*prepared.id_files(folder).values()):
        address = f"{prepared.id_address}/{file.name}"
        try:
            if not file.is_file():
                with (
                    urllib.request.urlopen(address, timeout=TIMEOUT) as answer,
                    replacing(file) as stream,
                ):
                    stream.write(answer.read())
        except (OSError, HTTPException) as error:
            raise OSError(
                f"cannot fetch {address} ({error}); get the files by hand and name "
                "their folder with --ids, or leave both out to derive a split"
            ) from error
        digest.update(file.read_bytes())
    if digest.hexdigest() != prepared.id_digest:
        raise ValueError(
            f"expected the released id files in {folder}, got others (SHA-256 "
            f"{digest.hexdigest()[:12]}…); delete them and run the command again, or "
            "name a folder of your own with --ids"
        )


def prepare_mini(options: argparse.Namespace) -> None:
    """Make the embedded features again and, where asked to, put them in their place."""
    made = features.remake_mini(options.annotations, options.images)
    print(made)
    if options.embed:
        with replacing(features.EMBEDDED) as file:
            file.write(made.read_bytes())


def prepare_features(options: argparse.Namespace) -> None:
    """Compute the features of a prepared set."""
    folder = data_dir() / options.name
    if not (folder / "labels.npz").is_file():
        raise not_prepared(folder)
    backbone = features.Backbone(options.backbone, options.weights)
    with alone_in(folder):
        features.extract_prepared(folder, backbone, options.workers)


def prepare_source(source: single_label.Source, options: argparse.Namespace) -> None:
    """Download where asked to, check the files and print the counts."""
    dataset = single_label.load_source(source, images=True, download=options.download)
    counts = " ".join(map(str, dataset.class_freq.tolist()))
    tests = len(dataset.tests["full"])
    print(f"{source.name}: {len(dataset.train)} training images, {counts} of 0 to 9")
    print(f"{source.name}: {tests} test images")
