"""Make COCOseq from the annotations of MS COCO 2014, or a table of its labels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from prslib.checks import checked_names, expected, readable, unzipped
from prslib.datasets.prepared import Corpus, PreparedSet

# clustered with the others, but no classes of the data set
DROPPED = (
    *("cell phone", "hair drier", "mouse", "keyboard", "wine glass"),
    *("cup", "knife", "microwave", "toaster"),
)


def read_halves(folder: Path) -> list[Corpus]:
    """Read both of COCO's instances files, which must have the same categories."""
    files = instances_files(folder)
    halves = [read_half(folder, is_test) for is_test in (False, True)]
    for is_test in (False, True):
        names = halves[is_test].names
        others = halves[not is_test].names
        if missing := [name for name in others if name not in names]:
            what = f"the categories of {files[not is_test]} in {files[is_test]}"
            got = f"none called {', '.join(map(repr, missing))}"
            raise ValueError(expected(what, got, "give both files the same names"))
    both = np.intersect1d(halves[0].key, halves[1].key)
    if both.size:
        what = f"other image ids in {files[1]} than in {files[0]}"
        raise ValueError(expected(what, f"{both[0]} in both", "download them again"))
    return halves


def read_half(folder: Path, is_test: bool) -> Corpus:
    """Read one of COCO's two instances files; Sec. 4.1."""
    file = instances_files(folder)[is_test]
    half = file.name.removeprefix("instances_").split(".")[0]
    images, labels, names = read_instances(file)
    if None in images.values():
        what = f"a file_name of every image in {file}"
        raise ValueError(expected(what, "images without"))
    return Corpus(
        key=np.array(list(images)),
        is_test=np.full(len(images), is_test),
        files=np.array([f"{half}/{name}" for name in images.values()]),
        labels=labels,
        names=names,
    )


def read_instances(
    file: Path,
) -> tuple[dict[Any, str | None], np.ndarray, tuple[str, ...]]:
    """Read a file in COCO's format: images by id, labels bool (N, C), class names."""
    with readable(f"COCO's instances in {file}", "correct it, or download it again"):
        content = json.loads(unzipped(file.read_bytes()))
        lists = "images", "categories", "annotations"
        if missing := [name for name in lists if not _has_list(content, name)]:
            raise ValueError(expected(f"the lists {', '.join(lists)}", f"no {missing}"))
        ids = [entry["id"] for entry in content["images"]]
        _refuse_repeated("image id", ids)
        files = [entry.get("file_name") for entry in content["images"]]
        numbers = [entry["id"] for entry in content["categories"]]
        _refuse_repeated("category id", numbers)
        texts = checked_names(entry["name"] for entry in content["categories"])
        names = sorted(texts)
        row = {image: i for i, image in enumerate(ids)}
        columns = [names.index(text) for text in texts]
        column = dict(zip(numbers, columns, strict=True))
        labels = np.zeros((len(ids), len(names)), dtype=bool)
        for entry in content["annotations"]:
            for key, known in (("image_id", row), ("category_id", column)):
                if entry.get(key) not in known:
                    got = f"an annotation of {entry.get(key)!r}"
                    advice = "leave it out; 1 and '1' are different ids"
                    raise ValueError(expected(f"{key} among those listed", got, advice))
            labels[row[entry["image_id"]], column[entry["category_id"]]] = True
    return dict(zip(ids, files, strict=True)), labels, tuple(names)


def _has_list(content: Any, name: str) -> bool:
    return isinstance(content, dict) and isinstance(content.get(name), list)


def _refuse_repeated(what: str, values: Iterable) -> None:
    """Raise ValueError where two entries have one value."""
    ((value, count),) = Counter(values).most_common(1) or [(None, 1)]
    if count > 1:
        raise ValueError(f"the {what} {value!r} stands there {count} times")


def instances_files(folder: Path) -> list[Path]:
    """Find the files of the training and of the test half, of 2014 or else of 2017."""
    # 2017 has the images of 2014 with their ids, cut into other halves
    folder = folder.parent if folder.is_file() else folder
    places = folder, folder / "annotations"
    for place in places:
        for year in (2014, 2017):
            files = [
                _plain_or_zipped(place / f"instances_{half}{year}.json")
                for half in ("train", "val")
            ]
            if all(file.is_file() for file in files):
                return files
    advice = "unpack annotations_trainval2014.zip there"
    what = f"instances_train2014.json and instances_val2014.json in {folder}"
    there = [file.name for place in places for file in place.glob("instances_*")]
    got = " and ".join(sorted(there)) or "neither"
    raise FileNotFoundError(expected(f"{what}, or those of 2017, or .gz", got, advice))


def _plain_or_zipped(file: Path) -> Path:
    """Return the file, or where it is not there the one with .gz after its name."""
    zipped = file.with_name(f"{file.name}.gz")
    return zipped if zipped.is_file() and not file.is_file() else file


PREPARED = PreparedSet(
    name="cocoseq",
    stands_for="COCOseq",
    read_halves=read_halves,
    annotations="instances_train2014.json and instances_val2014.json",
    images="train2014/ and val2014/",
    table="coco2014_labels.npz",
    ignored=("person",),
    dropped=DROPPED,
    num_tasks=4,
    beta=1.0,
    per_class=100,
    schedule=(0, 3, 1, 2),
    # The paper does not say where its test images come from; in the released files
    # half of each class's are of either half.
    balanced_halves=True,
    seed=20200824,
    rho=-0.03,
    # SHA-256 of the released id files, one after another
    id_digest="2e6aa6bc058f341c6a2d5972c826b6ec39040e2e50f247aefc7c1bfde02b3630",
)
