"""Make COCOseq from the annotations of MS COCO 2014, which pycocotools reads."""

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np

from prslib.checks import check_names, naming_extra, readable
from prslib.datasets.prepared import Corpus, PreparedSet

# categories that are clustered into tasks, but are not in the data set
DROPPED = (
    *("cell phone", "hair drier", "mouse", "keyboard", "wine glass"),
    *("cup", "knife", "microwave", "toaster"),
)


def read_half(folder: Path, is_test: bool) -> Corpus:
    """Read the training or test half of COCO 2014 or, if it is missing, of 2017; Sec. 5.1."""
    # 2017 has the same images and ids, but splits them differently
    halves = ("val2014", "val2017") if is_test else ("train2014", "train2017")
    stored = [half for half in halves if (folder / f"instances_{half}.json").is_file()]
    half = (stored or halves)[0]
    images, labels, names = read_instances(folder / f"instances_{half}.json")
    stays = np.array(names) != "person"  # neither clustered nor in the data set
    return Corpus(
        key=np.array([image["id"] for image in images]),
        is_test=np.full(len(images), is_test),
        files=np.array([f"{half}/{image['file_name']}" for image in images]),
        labels=labels[:, stays],
        names=np.array(names)[stays],
    )


def read_instances(file: Path) -> tuple[list[dict], np.ndarray, list[str]]:
    """Read a file in COCO's format: images, labels bool (N, C), class names."""
    with naming_extra("data"):
        from pycocotools.coco import COCO

    # pycocotools prints its progress
    with readable(f"COCO's instances in {file}"), redirect_stdout(StringIO()):
        coco = COCO(file)
        names = check_names(category["name"] for category in coco.cats.values())
        order = sorted(names)
        column = dict(zip(coco.cats, map(order.index, names), strict=True))
        images = coco.dataset["images"]
        row = {image["id"]: number for number, image in enumerate(images)}
        labels = np.zeros((len(row), len(names)), dtype=bool)
        for shown in coco.dataset["annotations"]:
            labels[row[shown["image_id"]], column[shown["category_id"]]] = True
    return images, labels, order


PREPARED = PreparedSet(
    name="cocoseq",
    stands_for="COCOseq",
    read_half=read_half,
    dropped=DROPPED,
    num_tasks=4,
    beta=1.0,
    schedule=(0, 3, 1, 2),
    rho=-0.03,
)
