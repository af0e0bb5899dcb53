"""Train whole runs of the paper profile on COCOseq, with drawn images for photographs.

Run ``PRSLIB_DATA=/path python bench/drawn_images.py --device cuda`` before the photographs are
there: the folder holds COCO's labels (`prslib prepare cocoseq --annotations DIR`, or the
table of them) and the released ids in ``cocoseq_ids``. In a folder of its own it writes
annotations and a JPEG file for every image of the released split, on which each label is
a patch of its class; it prepares them as a download, then trains and scores the methods,
ResNet-101 from random weights. It writes figures/bench/drawn_images_<device>.csv: of
each method the seconds of a run, of its share of a step, the largest memory on the GPU, whether
the memory holds the labels that the sampler keeps without training, and the scores after
the last task. The scores say that the networks learn; they say nothing of COCO.

The images take 12 GB. ``--share 0.01 --model convnet`` takes a part of the images and
a small network, to try this without a GPU.
"""

import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, cpu_count, delayed
from PIL import Image
from shared import device_name, parser, write

from prslib import Run, RunConfig, load_dataset, run
from prslib.cli import main as prslib_command
from prslib.datasets.arrays import RESOLUTION
from prslib.datasets.coco import PREPARED
from prslib.datasets.prepared import SPLITS, Corpus
from prslib.models.weights import NONE
from prslib.paths import data_dir
from prslib.report.measures import follows_from_labels, place_stream
from prslib.train import count_steps

HALVES = "train2014", "val2014"
PATCHES = 4  # colours to a side of a class's patch
SIDES = 64, 129  # smallest side of a patch on an image, and the first that is too large
MEASURES = (("overall", "mAP"), ("minority", "mAP"), ("overall", "C-F1"))


def released_ids() -> tuple[Path, np.ndarray]:
    """Return the folder of the released id files, and all ids in them."""
    folder = data_dir() / "cocoseq_ids"
    files = [file for split in SPLITS for file in PREPARED.id_files(folder, split)]
    return folder, np.concatenate([json.loads(file.read_bytes()) for file in files])


def write_annotations(corpus: Corpus, folder: Path) -> None:
    """Write COCO's two instances files: one annotation for each label of an image."""
    folder.mkdir()
    categories = [{"id": i, "name": name} for i, name in enumerate(corpus.names)]
    for is_test, half in enumerate(HALVES):
        rows = np.flatnonzero(corpus.is_test == is_test)
        keys = corpus.key[rows].tolist()
        images = [{"id": key, "file_name": f"{key:012d}.jpg"} for key in keys]
        pairs = zip(*np.nonzero(corpus.labels[rows]), strict=True)
        annotations = [{"image_id": keys[i], "category_id": int(c)} for i, c in pairs]
        content = {
            "images": images,
            "categories": categories,
            "annotations": annotations,
        }
        (folder / f"instances_{half}.json").write_text(json.dumps(content))


def draw(key: int, labels: np.ndarray, file: Path) -> None:
    """Draw an image: a dark blurred ground, and a patch for each of its labels."""
    rng = np.random.default_rng(key)
    ground = rng.integers(0, 128, (8, 8, 3), dtype=np.uint8)
    image = Image.fromarray(ground).resize((RESOLUTION, RESOLUTION))
    for label in np.flatnonzero(labels).tolist():
        shape = PATCHES, PATCHES, 3
        colours = np.random.default_rng(label).integers(0, 256, shape, dtype=np.uint8)
        side = int(rng.integers(*SIDES))
        patch = Image.fromarray(colours).resize((side, side), Image.Resampling.NEAREST)
        left, top = rng.integers(0, RESOLUTION - side, 2).tolist()
        image.paste(patch, (left, top))
    image.save(file, quality=90)


def prepare(share: float, folder: Path) -> dict[str, float]:
    """Draw and prepare the images; return the seconds that each took."""
    corpus = PREPARED.corpus()
    ids, released = released_ids()
    chosen = np.isin(corpus.key, released)
    corpus = Corpus(*(column[chosen] for column in corpus[:-1]), corpus.names)
    write_annotations(corpus, folder / "annotations")
    for half in HALVES:
        (folder / half).mkdir()
    drawn = np.random.default_rng(0).random(len(corpus.key)) < share
    halves = np.array(HALVES)[corpus.is_test.astype(int)]
    columns = corpus.key.tolist(), corpus.labels, halves, drawn
    tasks = (
        delayed(draw)(key, labels, folder / half / f"{key:012d}.jpg")
        for key, labels, half, is_drawn in zip(*columns, strict=True)
        if is_drawn
    )
    start = time.perf_counter()
    Parallel(cpu_count())(tasks)
    end = time.perf_counter()
    (folder / "data").mkdir()
    os.environ["PRSLIB_DATA"] = str(folder / "data")
    command = ["prepare", "cocoseq", "--images", folder, "--ids", ids]
    command += ["--annotations", folder / "annotations"]
    command += [] if share == 1 else ["--allow-missing"]
    if prslib_command(list(map(str, command))):
        raise SystemExit("the images were not prepared")
    prepared = time.perf_counter()
    return {"images": drawn.sum(), "draw_s": end - start, "prepare_s": prepared - end}


def last_scores(run: Run) -> dict[str, float]:
    """Return a run's scores after the last task, in points."""
    rows = run.scores[run.scores["task"] == "seen"]
    rows = rows[rows["test_set"] == "balanced"]
    rows = rows[rows["trained_tasks"] == rows["trained_tasks"].max()]
    values = rows.set_index(["group", "metric"])["value"]
    return {f"{group} {name}": 100 * values[group, name] for group, name in MEASURES}


def measure(config: RunConfig, device: str) -> dict[str, object]:
    """Train and score one run; return its row of the table."""
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    trained = run(config, device)
    seconds = time.perf_counter() - start
    memory = 0 if device == "cpu" else torch.cuda.max_memory_allocated()
    same = None
    if follows_from_labels(config.method):
        *_, (sampler, _, _) = place_stream(config)
        same = np.array_equal(sampler.labels, trained.memory_labels)
    steps = count_steps(config, load_dataset(config.dataset))
    return {
        "method": config.method,
        "steps": steps,
        "seconds": seconds,
        "ms_a_step": 1000 * seconds / steps,
        "GB": memory / 1e9,
        "same_memory": same,
        **last_scores(trained),
    }


def main() -> None:
    """Prepare, train, print the table and write it."""
    line = parser(__doc__)
    default = "cuda" if torch.cuda.is_available() else "cpu"
    line.add_argument("--device", default=default)
    line.add_argument("--methods", nargs="*", default=["PRS", "CRS"])
    line.add_argument("--model", default="resnet101")
    line.add_argument("--share", type=float, default=1.0)
    options = line.parse_args()
    name = device_name(torch.device(options.device))
    network = {"model": options.model, "weights": NONE}
    network["memory_size"] = round(options.share * PREPARED.recipe.memory_size)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        took = prepare(options.share, Path(folder))
        for method in options.methods:
            config = RunConfig("cocoseq", method, **network)
            row = measure(config, options.device)
            rows.append(row | {"device": name} | took)
            print(pd.DataFrame(rows[-1:]).to_string(index=False), flush=True)
            write(pd.DataFrame(rows), f"drawn_images_{name}", float_format="%.4g")


if __name__ == "__main__":
    main()
