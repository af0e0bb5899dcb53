"""Make COCOseq from the annotations of MS COCO 2014, or a table of its labels."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np

from prslib.datasets import curation
from prslib.datasets.base import Entry, Recipe
from prslib.datasets.prepared import Corpus, PreparedSet, check_inside

HALVES = ("train2014", "val2014")
IGNORED = "person"  # left out before the clustering
DROPPED = (  # clustered with the others, but no classes of the data set
    *("cell phone", "hair drier", "mouse", "keyboard", "wine glass"),
    *("cup", "knife", "microwave", "toaster"),
)
PER_CLASS = 100  # images of each class in the balanced test set
ID_ADDRESS = (  # a fixed state of the authors' repository, github.com/cdjkim/PRS
    "https://raw.githubusercontent.com/cdjkim/PRS/"
    "a29a99567663365116d5dd58ae7414b6cfe9d94a/dataset/data_source/COCOseq/ids"
)
ID_SHA256 = """
train_task0 6609034efbccb21d70f8ea237ddfb75e945aeaddedebb7b69f72743bbb5c4fd6
train_task1 48a85b0971dae0dcbd9eaedbc99616381ea669c546eb1daf8924454a7ee84655
train_task2 75c357e8561c99b89cb6bab0569255e5f58e9eecbe205c7e5dbd8c0f7ea82b99
train_task3 be947d39532ca588fcb19df281353badaed17aa8158dda9c2b2aeab4ed465286
test_task0 2d14db294fe52061e9f930986ab62e6969f4e81ee201efb21566ca66971c6105
test_task1 8b34d7201202dc23cf43f65c460b3485e44dfa395485c499ffe5f280a777aa56
test_task2 b5fc303c07a71ef2c12860230e3760155882ee7e20421f3937b894738616d49d
test_task3 8270e24ab2c4f719b260b518f1f7197929160b3026c4febe73e0a8f0099d11c4
teorg_task0 436afb97657eefddc390f5259ad1aa2a916d244cbd190d32c141f2c8f5bc2d87
teorg_task1 06330b7c9456cbfec9bd03dbbf4a3af30bd2be8206319c236e85335fdf65ebc6
teorg_task2 75850691619e56e383d3fe6f6f5b20b4a6e59602674ea8fefa369736a9b5423e
teorg_task3 f6b394274c45842a180fb934e09774fec59d041bf7b87c48d82f0f23aac134e5
"""
ID_CHECKSUMS = {  # by file name
    f"{name}_id_coco.json": digest
    for name, digest in map(str.split, ID_SHA256.strip().splitlines())
}


def read_annotations(folder: Path) -> Corpus:
    """Read the annotated images of both instances files of COCO; Sec. 4.1."""
    files = [folder / f"instances_{half}.json" for half in HALVES]
    halves = [_read_half(*pair) for pair in zip(files, HALVES, strict=True)]
    both = " and ".join(map(str, files))
    if len(shared := np.intersect1d(halves[0].key, halves[1].key)):
        raise ValueError(
            f"expected no image in both {both}, got {len(shared)}, the first with id "
            f"{shared[0]}; download the annotations again"
        )
    if halves[0].names != halves[1].names:
        raise ValueError(
            f"expected the same categories in {both}, got {len(halves[0].names)} and "
            f"{len(halves[1].names)} that differ; download the annotations again"
        )
    left_out = Counter(halves[0].left_out) + Counter(halves[1].left_out)
    columns = {
        name: np.concatenate([getattr(half, name) for half in halves])
        for name in ("key", "is_test", "files", "labels")
    }
    return Corpus(**columns, names=halves[0].names, left_out=dict(left_out))


def _read_half(file: Path, half: str) -> Corpus:
    try:
        return _parse(_read_instances(file), file, half)
    except (AttributeError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(
            f"expected annotations in {file}, got other JSON ({error!r})"
        ) from error


def _parse(content: dict, file: Path, half: str) -> Corpus:
    categories = {entry["id"]: entry["name"] for entry in content["categories"]}
    names = tuple(sorted(categories.values()))
    column = {number: names.index(name) for number, name in categories.items()}
    images: dict[int, str] = {}
    for entry in content["images"]:
        if images.setdefault(entry["id"], entry["file_name"]) != entry["file_name"]:
            raise ValueError(
                f"expected one image for each id in {file}, got {images[entry['id']]} "
                f"and {entry['file_name']} for {entry['id']}; download the annotations "
                "again"
            )
    check_inside(file, images.values())
    row = {number: i for i, number in enumerate(images)}
    labels = np.zeros((len(images), len(names)), dtype=bool)
    for entry in content["annotations"]:
        if entry["image_id"] not in row or entry["category_id"] not in column:
            what = "image" if entry["image_id"] not in row else "category"
            raise ValueError(
                f"expected every annotation of {file} to be of an image and a category "
                f"that it lists, got annotation {entry.get('id')} of the unknown "
                f"{what} {entry[what + '_id']}; download the annotations again"
            )
        labels[row[entry["image_id"]], column[entry["category_id"]]] = True
    has_any = labels.any(axis=1)
    return Corpus(
        key=np.fromiter(images, dtype=np.int64, count=len(images))[has_any],
        is_test=np.full(int(has_any.sum()), half == HALVES[1]),
        files=np.array([f"{half}/{name}" for name in images.values()], dtype=np.str_)[
            has_any
        ],
        labels=labels[has_any],
        names=names,
        left_out={
            "without annotation": int((~has_any).sum()),
            "listed twice": len(content["images"]) - len(images),
        },
    )


def _read_instances(file: Path) -> dict:
    try:
        content = json.loads(file.read_bytes())
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"expected COCO's annotations in {file}, got none; --annotations names the "
            "folder with both instances files (annotations_trainval2014.zip)"
        ) from error
    except ValueError as error:
        raise ValueError(
            f"expected whole JSON in {file}, got {error}; the file is cut off or "
            "spoilt, download it again"
        ) from error
    if missing := [
        k for k in ("images", "annotations", "categories") if k not in content
    ]:
        raise ValueError(
            f"expected images, annotations and categories in {file}, got no "
            f"{', '.join(missing)}; take the instances files, not those of captions or "
            "key points"
        )
    return content


def draw_balanced(
    labels: np.ndarray, names: list[str], is_test: np.ndarray, per_class: int, rng
) -> np.ndarray:
    """Draw half of each class's test images from val2014 and half from train2014."""
    # The paper does not say where its test images come from; in the released files it
    # is so.
    drawn = []
    for half, share in ((True, (per_class + 1) // 2), (False, per_class // 2)):
        rows = np.flatnonzero(is_test == half)
        if share:
            drawn.append(
                rows[curation.balanced_test(labels[rows], share, rng, None, names)]
            )
    return np.concatenate(drawn)


PREPARED = PreparedSet(
    name="cocoseq",
    stands_for="COCOseq",
    read=read_annotations,
    table="coco2014_labels.npz",
    classes=lambda names: tuple(name for name in names if name != IGNORED),
    dropped=DROPPED,
    num_tasks=4,
    beta=1.0,
    per_class=PER_CLASS,
    draw_balanced=draw_balanced,
    groups=lambda names, class_freq: curation.class_groups(class_freq),
    seed=20200824,
    id_ending="coco",
    id_halves={"train": (False,), "balanced": (True, False), "imbalanced": (True,)},
    id_source="dataset/data_source/COCOseq/ids of github.com/cdjkim/PRS",
    id_address=ID_ADDRESS,
    id_checksums=ID_CHECKSUMS,
)
COCOSEQ = Entry(
    PREPARED.load,
    Recipe(
        model="resnet101",
        memory_size=2000,
        schedule=(0, 3, 1, 2),
        learning_rate=1e-4,
        precision="bf16",  # the paper does not say what its runs computed in
    ),
    PREPARED.load_clustering,
    relation="paper's",
)
