"""Make COCOseq from the annotations of MS COCO 2014, which pycocotools reads."""

import json
from contextlib import redirect_stdout
from io import StringIO
from itertools import product
from pathlib import Path

import numpy as np

from prslib.checks import check_names, expected, naming_extra, read_text, readable
from prslib.datasets.prepared import Corpus, PreparedSet

# clustered with the others, but no classes of the data set
DROPPED = (
    *("cell phone", "hair drier", "mouse", "keyboard", "wine glass"),
    *("cup", "knife", "microwave", "toaster"),
)


def read_halves(folder: Path) -> list[Corpus]:
    """Read the training and the test half, which must have the same categories."""
    train, test = find_instances(folder)
    halves = [read_half(train, is_test=False), read_half(test, is_test=True)]
    first, second = (set(half.names) for half in halves)
    if first != second:
        what = "the same categories in both of COCO's instances files"
        raise ValueError(expected(what, f"{sorted(first ^ second)} in one"))
    return halves


def read_half(file: Path, is_test: bool) -> Corpus:
    """Read one of COCO's two instances files; Sec. 4.1."""
    images, labels, names = read_instances(file)
    half = file.name.removeprefix("instances_").split(".")[0]
    files = [f"{half}/{image['file_name']}" for image in images.values()]
    return Corpus(
        key=np.array(list(images)),
        is_test=np.full(len(images), is_test),
        files=np.array(files),
        labels=labels,
        names=names,
    )


def read_instances(file: Path) -> tuple[dict, np.ndarray, tuple[str, ...]]:
    """Read a file in COCO's format: images by id, labels bool (N, C), class names."""
    with naming_extra("data"):
        from pycocotools.coco import COCO

    # COCO prints what it does
    with (
        readable(f"COCO's instances in {file}"),
        redirect_stdout(StringIO()),
    ):
        coco = COCO()
        coco.dataset = json.loads(read_text(file))
        coco.createIndex()
        if unknown := set(coco.catToImgs) - set(coco.cats):
            what = "annotations of listed categories"
            raise ValueError(expected(what, f"category_id {min(unknown)!r}"))
        images = coco.dataset["images"]
        row = {image["id"]: number for number, image in enumerate(images)}
        names = check_names(category["name"] for category in coco.cats.values())
        order = sorted(names)
        labels = np.zeros((len(row), len(names)), dtype=bool)
        for name, category in zip(names, coco.cats, strict=True):
            rows = [row[image] for image in coco.catToImgs[category]]
            labels[rows, order.index(name)] = True
    return coco.imgs, labels, tuple(order)


def find_instances(folder: Path) -> list[Path]:
    """Find the files of the training and of the test half, of 2014 or else of 2017."""
    # 2017 has the images of 2014 with their ids, cut into other halves
    places = folder, folder / "annotations"
    for year, place, ending in product((2014, 2017), places, ("json", "json.gz")):
        files = [
            place / f"instances_{half}{year}.{ending}" for half in ("train", "val")
        ]
        if all(file.is_file() for file in files):
            return files
    what = f"instances_train2014.json and instances_val2014.json in {folder}"
    advice = "unpack annotations_trainval2014.zip there"
    got = "neither both nor those of 2017, also not as .json.gz"
    raise FileNotFoundError(expected(what, got, advice))


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
