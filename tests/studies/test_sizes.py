"""Sizes of data sets and settings of runs on pages are those of files and recipes."""

from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from told import ROOT, contains, fill, table_of, the_only

from prslib import DATASETS, SAMPLERS, load_dataset
from prslib.datasets import curation, reuters
from prslib.models import networks
from prslib.report.answers import STREAMS
from prslib.report.tables import labels_of
from prslib.train import RunConfig

SENTENCES = Path(__file__).with_name("sizes.md")
RECIPES = {name: entry.recipe for name, entry in DATASETS.items()}
MEMORY = {name: recipe.memory_size for name, recipe in RECIPES.items()}
DIGITS = {"digits70seq": "digits70tiny", "digits49seq": "digits49tiny"}
DIGITS |= {name: f"{name}-tiny" for name in ("imbal-digits", "imbal-colour-digits")}
CUTS = [name for name in DATASETS if name.startswith("reutersseq")]


def sizes():
    """Return the sizes of the paper's streams and of our part of COCOseq."""
    papers = table_of("datasets_sizes", "paper").set_index("dataset").to_dict("index")
    table = table_of("datasets_sizes", "seeds").set_index("dataset")
    mini = table.to_dict("index")["cocoseq-mini"]
    coco, nus = papers["cocoseq"], papers["nuswideseq"]
    table = table_of("memory_distribution_distance", "paper")
    seeds = table.query("method == 'PRS'").groupby("dataset")["seed"].nunique()
    return {
        "coco": coco,
        "nus": nus,
        "mini": mini,
        "open": int(mini["further images"]),
        "share": f"{100 * mini['stream'] / coco['stream']:.0f}",
        "rounded_stream": round(coco["stream"], -3),
        "paper_share": 100 * MEMORY["cocoseq"] / coco["stream"],
        "paper_seeds": seeds,
        "away": table.pivot_table("to equal", "dataset", "method").round(1),
    }


def settings():
    """Return settings of runs, which recipes and tables know."""
    rho = {name: recipe.rho for name, recipe in RECIPES.items()}
    assert {rho[name] for name in STREAMS if name != "cocoseq-mini"} == {0}
    (width,) = networks.head.keywords["widths"]
    recipe = RECIPES["cocoseq-mini"]
    batches = {(RECIPES[n].batch_size, RECIPES[n].replay_batch_size) for n in STREAMS}
    batch, replay = the_only(batches)
    memory_share = the_only(
        f"{100 * MEMORY[name] / len(labels_of(name).train):.0f}" for name in STREAMS
    )
    cut = labels_of("reutersseq-cap30").train
    assert 0.45 < MEMORY["reutersseq"] / len(cut) < 0.55
    table = table_of("schedules_and_memory_sizes", "seeds").set_index("dataset")
    memories = sorted(set(table.loc["cocoseq-mini", "memory_size"]))
    assert memories[1] == MEMORY["cocoseq-mini"]
    labels = labels_of("cocoseq-mini").train.labels
    return {
        "memory": MEMORY,
        "rho": rho,
        "streams": len(STREAMS),
        "others": len(SAMPLERS) - 1,
        "width": width,
        "learning_rate": recipe.learning_rate,
        "resamples": recipe.test_resamples,
        "batch": batch,
        "replay": replay,
        "memory_share": memory_share,
        "underflows": int((np.exp(-np.arange(2000.0)) == 0).argmax()),
        "draws": reuters.DRAWS,
        "memories": memories,
        "half": MEMORY["cocoseq"] * memories[0] // memories[1],
        "half_mini": memories[1] // 2,
        "steps": round(len(labels) / recipe.batch_size, -2),
        "coco_classes": labels.shape[1],
        "labels_per_class": round(memories[1] * labels.sum() / labels.size),
        "config": RunConfig,
    }


def files():
    """Return what the embedded files contain."""
    shapes = {}
    for name in ("cocoseq_mini", "cocoseq_open", "reutersseq", "mdiseq", "clipartseq"):
        with np.load(ROOT / "data" / f"{name}.npz") as file:
            shapes[name] = file["features"].shape
    rows = {name: number for name, (number, _) in shapes.items()}
    tests = labels_of("cocoseq-mini").tests
    per_class = tests["balanced"].labels.sum(axis=0)
    icons, clip_art = (labels_of(name) for name in ("mdiseq", "clipartseq"))
    medians = [
        int(np.median(data.tests["balanced"].labels.sum(axis=0)))
        for data in (icons, clip_art)
    ]
    digits = {name: labels_of(name) for name in DIGITS}
    # pictures of the same size, which take less time to draw
    tiny = {name: load_dataset(tiny) for name, tiny in DIGITS.items()}
    return {
        "files": rows,
        "features": {name: width for name, (_, width) in shapes.items()},
        "coco_files": rows["cocoseq_mini"] + rows["cocoseq_open"],
        "originals": len(load_digits().target),
        "fewest": per_class.min(),
        "most": per_class.max(),
        "labels_of_open": round(tests["open"].labels.sum(axis=1).mean()),
        "tasks_of_icons": icons.num_tasks,
        "tasks_of_clip_art": clip_art.num_tasks,
        "pictures_per_class": the_only(medians),
        "icons_in_test": share_of_majority(icons, icons.tests["imbalanced"].labels),
        "icons_in_stream": share_of_majority(icons, icons.train.labels),
        "side": {name: data.train.inputs.shape[1] for name, data in tiny.items()},
        "classes": {name: data.num_classes for name, data in digits.items()},
        "digits_in_stream": [len(digits[name].train) for name in list(DIGITS)[2:]],
    }


def count_left_out(name):
    """Return how many of a stream's samples fill no batch, as a page writes it."""
    tasks = np.bincount(labels_of(name).train.task)
    return f"{(tasks % RECIPES[name].batch_size).sum()} of {tasks.sum():,}"


def imbalances():
    """Return the samples without a batch, and largest to smallest class of stream and test."""
    names = [*STREAMS, "reutersseq-cap30"]
    data = {name: labels_of(name) for name in names}
    tests = {n: of.tests["balanced"].labels.sum(axis=0) for n, of in data.items()}
    return {
        "left_out": {name: count_left_out(name) for name in STREAMS},
        "stream_ratio": {
            name: of.class_freq.max() / of.class_freq.min() for name, of in data.items()
        },
        "test_ratio": {name: n.max() / n.min() for name, n in tests.items()},
    }


def share_of_majority(data, labels):
    """Return the share of the labels that belong to majority classes, in percent."""
    counts = labels.sum(axis=0)
    is_frequent = np.array(data.class_group) == "majority"
    return 100 * counts[is_frequent].sum() / counts.sum()


def describe_cut(name):
    """Return the cells of a row on Reuters: sizes of the stream, two classes and a test."""
    data = labels_of(name)
    counts = data.train.labels.sum(axis=0)
    stream, test = len(data.train), len(data.tests["imbalanced"])
    return f"{stream:,} | {counts.max():,} | {counts.min()} | {test:,}"


def news():
    """Return what the streams of Reuters contain."""
    data = labels_of("reutersseq")
    alike, as_it_comes = data.tests["balanced"], data.tests["imbalanced"]
    return {
        "cut": {name: describe_cut(name) for name in CUTS},
        "caps": reuters.CAPS,
        "tasks": data.num_tasks,
        "classes_of": np.bincount(data.class_task),
        "documents_of": np.bincount(data.train.task),
        "limits": curation.class_groups.__defaults__,
        "reuters_limits": (reuters.MINORITY_BELOW, reuters.MAJORITY_FROM),
        "groups": Counter(data.class_group),
        "official": len(as_it_comes),
        "reuters_stream": len(data.train),
        "alike": len(alike),
        "topics_of_alike": alike.labels.sum(axis=0).max(),
        "ratio": data.class_freq.max() / data.class_freq.min(),
        "topics": data.num_classes,
        "majority_in_test": share_of_majority(data, as_it_comes.labels),
    }


def sentences():
    """Return pages and a sentence of each."""
    return fill(SENTENCES, sizes() | settings() | files() | news() | imbalances())


def test_pages_say_what_the_data_are():
    assert [pair for pair in sentences() if not contains(*pair)] == []
