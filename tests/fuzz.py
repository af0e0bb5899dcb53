"""Damage 500 files of each kind at random and read them.

``python tests/fuzz.py [FILES] [SEED]``. A file that has checksums gives what was written
or is refused; one without (annotations, photographs) may give something else. Either is
refused with an error that names the file. ``tests/test_fuzz.py`` damages a few of each.
"""

import os
import pickle
import random
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from helpers.interrupted import stopped_at
from helpers.real_folders import write_coco
from tqdm import tqdm

from prslib import RunConfig
from prslib.datasets import features, load_dataset
from prslib.datasets.arrays import RowFile, open_rows
from prslib.datasets.coco import read_annotations
from prslib.datasets.images import read_image
from prslib.experiments.store import CHECKPOINT, Store
from prslib.models.weights import read_state
from prslib.training.run import run

CONFIG = RunConfig(dataset="imbal-digits-tiny", method="PRS", batch_size=40)
REFUSED = ValueError, OSError


class Fault(Exception):  # noqa: N818
    """A damaged file was read wrongly, or refused without its name."""


def damaged(content, rng):
    """Return other bytes: bits flipped, a run of zeros, cut, doubled or exchanged."""
    content, kind = bytearray(content), rng.randrange(5)
    first, second = sorted(rng.randrange(len(content)) for _ in range(2))
    if kind == 0:
        for _ in range(rng.choice((1, 1, 1, 20))):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        length = min(60, len(content) - first)
        content[first : first + length] = bytes(length)
    elif kind == 2:
        del content[first:]
    elif kind == 3:
        content[second:second] = content[first:second]
    else:
        digits = [i for i, byte in enumerate(content) if 48 <= byte < 58]
        if digits:
            content[rng.choice(digits)] = rng.randrange(48, 58)
    return bytes(content)


def kinds(root):
    """Return for each kind a file, how it is read, and whether it has checksums."""
    os.environ["PRSLIB_CACHE"] = str(root / "cache")
    store = Store(root / "runs")
    result = store.save(run(CONFIG))

    stopped_at(8, [CONFIG], half_way := Store(root / "half"))
    checkpoint = half_way.path(CONFIG, CHECKPOINT)

    def read_cache():
        return load_dataset(CONFIG.dataset).train.images.tobytes()

    read_cache()
    (cached,) = (root / "cache/datasets").iterdir()

    items, rows = range(7), root / "rows.bin"
    row = np.dtype(("u1", (3,)))
    writer = RowFile(rows, [str(i) for i in items], row)
    writer.fill(items, _rows, 1, "rows")
    writer.finish()

    def read_rows():
        return open_rows(rows, 7, row).tobytes()

    weights = root / "weights.pth"
    torch.save({"a": torch.arange(30.0), "b": torch.ones(3, 3)}, weights)

    def read_weights():
        return {name: value.tolist() for name, value in read_state(weights).items()}

    embedded = root / "cocoseq_mini.npz"
    embedded.write_bytes(features.EMBEDDED.read_bytes())
    features.EMBEDDED = embedded

    images = [(n, ["apple" if n % 2 else "bear"]) for n in range(1, 6)]
    halves = {"train2014": images, "val2014": [(201, ["apple"]), (202, ["bear"])]}
    write_coco(root / "coco", halves, ("apple", "bear"))
    annotations = root / "coco/annotations/instances_train2014.json"
    photograph = root / "coco/train2014/COCO_train2014_000000000003.jpg"

    return {
        "result": (result, lambda: _scores(store.load(CONFIG)), True),
        "checkpoint": (
            checkpoint,
            lambda: _scores(run(CONFIG, checkpoint=checkpoint)),
            True,
        ),
        "data set's cache": (cached, read_cache, True),
        "prepared rows": (rows, read_rows, True),
        "their checksums": (rows.with_suffix(".sums"), read_rows, True),
        "weights": (weights, read_weights, True),
        "embedded features": (embedded, features.mini_identity, True),
        "annotations": (
            annotations,
            lambda: read_annotations(annotations.parent),
            False,
        ),
        "photograph": (
            photograph,
            lambda: read_image(root / "coco", f"train2014/{photograph.name}"),
            False,
        ),
    }


def _rows(numbers):
    return np.outer(numbers, [1, 2, 3])


def _scores(result):
    return None if result is None else result.scores.to_csv()


def fuzz(kind, file, read, has_checksums, count, rng):
    """Damage a file `count` times; count what was refused, made again and the same."""
    whole, expected, ends = file.read_bytes(), pickle.dumps(read()), Counter()
    for _ in tqdm(range(count), kind, disable=None):
        file.write_bytes(content := damaged(whole, rng))
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                got = read()
        except REFUSED as error:
            if str(file.with_suffix("")) not in str(error):
                raise Fault(f"{kind}: an error without the file: {error!r}") from error
            ends["refused"] += 1
        except Exception as error:
            raise Fault(f"{kind}: a raw error: {error!r}") from error
        else:
            warned = any(str(file) in str(warning.message) for warning in said)
            same = pickle.dumps(got) == expected
            if has_checksums and not same and not (got is None and warned):
                path = file.with_name(f"{file.name}.wrong")
                path.write_bytes(content)
                raise Fault(f"{kind}: other content without an error: {path}")
            ends["made again" if warned else "same" if same else "other"] += 1
        file.write_bytes(whole)
    return ends


def main(count=500, seed=0):
    """Damage `count` files of each kind and print how they were read."""
    with tempfile.TemporaryDirectory() as folder:
        for kind, (file, read, has_checksums) in kinds(Path(folder)).items():
            rng = random.Random(f"{seed} {kind}")
            ends = fuzz(kind, file, read, has_checksums, count, rng)
            print(f"{kind}: {dict(ends)}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
