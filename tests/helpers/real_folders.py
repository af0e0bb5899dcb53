"""Small folders in the form in which COCO and NUS-WIDE are downloaded."""

import json
import os

import numpy as np
from PIL import Image

from prslib.cli import main

SIZES = [(31, 17), (256, 256), (60, 40), (5, 100), (320, 240)]  # width, height


def coco_json(ids, files, labels, names):
    """Return the content of an instances file; labels bool (N, C)."""
    pairs = enumerate(np.argwhere(labels).tolist())
    return {
        "images": [
            {"id": int(i), "file_name": str(f)} for i, f in zip(ids, files, strict=True)
        ],
        "annotations": [
            {"id": n, "image_id": int(ids[row]), "category_id": c + 1, "iscrowd": 0}
            for n, (row, c) in pairs
        ],
        "categories": [{"id": c, "name": str(n)} for c, n in enumerate(names, start=1)],
    }


def write_image(file, index):
    """Write a JPEG in one of `SIZES`, every third one in shades of grey."""
    file.parent.mkdir(parents=True, exist_ok=True)
    width, height = SIZES[index % len(SIZES)]
    pixels = np.full((height, width, 3), [index * 9 % 256, 128, 200], dtype=np.uint8)
    image = Image.fromarray(pixels)
    (image.convert("L") if index % 3 == 2 else image).save(file, quality=95)


def write_coco(folder, halves, names):
    """Write images and annotations; halves maps "train2014" to [(id, [names]), ...]."""
    (folder / "annotations").mkdir(parents=True)
    for half, images in halves.items():
        ids = [number for number, _ in images]
        files = [f"COCO_{half}_{number:012d}.jpg" for number in ids]
        for number, file in zip(ids, files, strict=True):
            write_image(folder / half / file, number)
        labels = np.array([[name in shown for name in names] for _, shown in images])
        content = json.dumps(coco_json(ids, files, labels, names))
        (folder / "annotations" / f"instances_{half}.json").write_text(content)


def write_ids(folder, ids, ending):
    """Write id files; ids maps "train", "test", "teorg" to lists of the first tasks."""
    folder.mkdir(parents=True)
    tasks = {"coco": 4, "nuswide": 6}[ending]
    for split, lists in ids.items():
        for task, numbers in enumerate([*lists, *[[]] * (tasks - len(lists))]):
            file = folder / f"{split}_task{task}_id_{ending}.json"
            file.write_text(json.dumps(numbers))


def prepare_coco(root, *more):
    """Prepare COCOseq from the folder coco in `root`."""
    folders = f"--images={root}/coco", f"--annotations={root}/coco/annotations"
    return main(["prepare", "cocoseq", *folders, "--workers", "1", *more])


def write_nuswide(folder, halves, names):
    """Write lists, label files and one image under many names.

    halves maps "Train" to [(file, [names]), ...].
    """
    write_image(folder / "image.jpg", 0)
    (folder / "ImageList").mkdir(parents=True)
    labels_folder = folder / "Groundtruth" / "TrainTestLabels"
    labels_folder.mkdir(parents=True)
    for half, images in halves.items():
        listed = "".join(file.replace("/", "\\") + "\r\n" for file, _ in images)
        (folder / "ImageList" / f"{half}Imagelist.txt").write_text(listed, newline="")
        for name in names:
            column = "".join(f"{int(name in shown)}\n" for _, shown in images)
            (labels_folder / f"Labels_{name}_{half}.txt").write_text(column)
        for file, _ in images:
            (folder / "Flickr" / file).parent.mkdir(parents=True, exist_ok=True)
            os.link(folder / "image.jpg", folder / "Flickr" / file)
