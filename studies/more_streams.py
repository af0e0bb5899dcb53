"""Compare the samplers with CRS on more public collections, from their official files.

Run ``python studies/more_streams.py DIR [NAME ...]``, where DIR has a folder for each
collection of more_streams.toml, such as DIR/frogs with Frogs_MFCCs.csv. It trains CRS,
CBRS, OCDM and PRS (rho 0 and 0.5) in about an hour on one core, and needs
``pip install -e '.[data,training]'``. It writes figures/studies/more_streams.csv, with a
row per stream, sampler, test set and metric, and more_streams_classes.csv, with a row per
class and memory size. Neither contains data of the collections.

These rules were fixed before any run was scored:

- **Split.** The official test split, or a random 30 % if there is none (frogs, where
  calls of one recording can therefore be on both sides). Official validation parts belong
  to the stream.
- **Classes.** A class needs `LEAST_IN_STREAM` samples in the stream and `LEAST_IN_TEST` in
  the test, before and after samples that span tasks are removed. In hierarchies, a sample
  also has the ancestors of its classes. Classes with the same samples are merged.
- **Tasks.** Algorithm 2, with settings searched as for mdiseq. It cannot start if no sample
  has labels of exactly two classes, as in hierarchies of three levels. Tasks are then the
  sets of classes that share samples, and the smallest sets are joined until four are left,
  as many as in COCOseq. The task with the most classes comes first.
- **Features.** Numbers are used as they are. Words become TF-IDF (sublinear, words of
  three or more samples), reduced to 256 components by a truncated SVD; both are fitted on
  the stream. All features are standardised as on cocoseq-mini.
- **Tests.** "imbalanced" is the test as it comes. "balanced" has ten samples of that test
  per class, or all if a class has fewer, and few further samples of any class
  (`curation.draw_even`).
- **Training.** As for cocoseq-mini; the memory has the paper's share of the stream. Ten
  seeds are used, but only five for a quarter of the memory and for four times the memory.

Three more collections were examined, without scoring a run, and left out: the classes of
FunCat's genes (cellcycle) are all connected by shared samples, and in tmc2007-500 and Enron
99 % of the samples would be in one task.
"""

import argparse
import csv
import hashlib
import tomllib
from functools import partial
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pandas as pd
from choosing import save
from clusters import choose_clusters, keep_in_tasks, number_by_size, search_clusters
from scipy.sparse.csgraph import connected_components
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from threadpoolctl import threadpool_limits

from prslib import configs, register, run_all
from prslib.checks import expected
from prslib.datasets import Entry, Recipe, SequentialDataset, Split, curation
from prslib.datasets.features import HEAD, memory_size_of, standardise
from prslib.report.tables import final, label_powers, leads, scores_of
from prslib.statistics import at_end, over_seeds

LEAST_IN_STREAM = 15
LEAST_IN_TEST = 3
PER_CLASS = 10
TEST_SHARE = 0.3
NUM_TASKS = 4
COMPONENTS = 256
SEED = 20201126
# for each multiple of the standard memory size
SEEDS = {0.25: range(5), 1.0: range(10), 4.0: range(5)}
# the paper's 200 and 900 of 35,072
MINORITY_BELOW = 200 / 35072
MAJORITY_FROM = 900 / 35072
# test sets and metrics that are reported
CELLS = [
    ("balanced", "mAP"),
    ("balanced", "C-F1"),
    ("imbalanced", "O-F1"),
    ("imbalanced", "mAP"),
    ("imbalanced", "C-F1"),
]
POWER = 0.5  # of PRS, besides 0
RIVALS = ["CBRS", "OCDM", "PRS", f"PRS, rho {POWER}"]
COLLECTIONS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())


class Samples(NamedTuple):
    """The samples of a collection, as in its files."""

    values: np.ndarray  # numbers (N, D), or texts (N,)
    labels: list[set[str]]
    is_test: np.ndarray  # bool (N,)


def read_comments(*files: Path) -> Samples:
    """Read texts with the numbers of their labels; the last file is the test (GoEmotions)."""
    read = partial(pd.read_csv, sep="\t", names=["text", "labels", "id"], dtype=str)
    read = partial(read, quoting=csv.QUOTE_NONE, keep_default_na=False)
    rows = pd.concat([read(file).assign(test=file is files[-1]) for file in files])
    labels = [set(numbers.split(",")) for numbers in rows["labels"]]
    return Samples(rows["text"].to_numpy(object), labels, rows["test"].to_numpy())


def read_calls(file: Path) -> Samples:
    """Read frogs' calls with family, genus and species (Anuran Calls)."""
    rows = pd.read_csv(file)
    ranks = rows[["Family", "Genus", "Species"]].to_dict("records")
    labels = [{f"{rank} {name}" for rank, name in row.items()} for row in ranks]
    is_test = np.random.default_rng(SEED).random(len(rows)) < TEST_SHARE
    return Samples(rows.filter(like="MFCCs_").to_numpy(), labels, is_test)


def read_words(header: Path, train: Path, test: Path) -> Samples:
    """Read the words and the labels of samples (sparse ARFF of Mulan)."""
    tags = {label.attrib["name"] for label in ElementTree.parse(header).getroot()}
    texts, labels, is_test = [], [], []
    for file in (train, test):
        attributes, rows = read_arff(file)
        for row in rows:
            cells = row.strip("{}").split(",")
            present = {attributes[int(cell.split()[0])] for cell in cells}
            texts.append(" ".join(sorted(present - tags)))
            labels.append(present & tags)
            is_test.append(file is test)
    return Samples(np.array(texts, object), labels, np.array(is_test))


def read_hierarchy(train: Path, test: Path) -> Samples:
    """Read numbers, and paths of classes after them: ``1.5,2@2/1`` (ARFF of Clus)."""
    values, labels, is_test = [], [], []
    for file in (train, test):
        for row in read_arff(file)[1]:
            *numbers, paths = row.split(",")
            values.append([float(number) for number in numbers])
            labels.append(set().union(*map(list_ancestors, paths.split("@"))))
            is_test.append(file is test)
    return Samples(np.array(values), labels, np.array(is_test))


def list_ancestors(path: str) -> list[str]:
    """List a class and its ancestors: for 2/1/3, also 2/1 and 2."""
    steps = path.split("/")
    return ["/".join(steps[:end]) for end in range(1, len(steps) + 1)]


def read_arff(file: Path) -> tuple[list[str], list[str]]:
    """Read the names of the attributes, and the rows of data."""
    lines = [line.strip() for line in file.read_text("latin-1").split("\n")]
    start = [line.lower() for line in lines].index("@data")
    header = [line for line in lines[:start] if line.lower().startswith("@attribute")]
    names = [line.split()[1].strip("'\"") for line in header]
    return names, [line for line in lines[start + 1 :] if line]


READERS = {
    "comments": read_comments,
    "calls": read_calls,
    "words": read_words,
    "hierarchy": read_hierarchy,
}


def load(name: str, folder: Path) -> SequentialDataset:
    """Read a collection and make its stream; refuse files that have changed."""
    source = COLLECTIONS[name]
    files = [folder / name / file for file in source["files"]]
    for file in files:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        if digest != source["files"][file.name]:
            raise ValueError(expected(f"the file of {source['copy']}", file))
    return make_stream(name, READERS[source["reader"]](*files))


def make_stream(name: str, samples: Samples) -> SequentialDataset:
    """Choose classes, tasks and tests, and embed the samples."""
    names = np.array(sorted(set().union(*samples.labels)))
    labels = np.array([[name in of for name in names] for of in samples.labels])
    distinct = np.sort(np.unique(labels, axis=1, return_index=True)[1])
    names, labels = names[distinct], labels[:, distinct]

    def is_large(rows: np.ndarray) -> np.ndarray:
        of_test = labels[rows[samples.is_test[rows]]].sum(axis=0)
        in_stream = labels[rows].sum(axis=0) - of_test
        return (in_stream >= LEAST_IN_STREAM) & (of_test >= LEAST_IN_TEST)

    stays = is_large(np.arange(len(labels)))
    names, labels = names[stays], labels[:, stays]
    stream = labels[labels.any(axis=1) & ~samples.is_test]
    group = cluster(stream, tuple(names.tolist()))
    rows, stays = keep_in_tasks(labels, group, is_large)

    labels, is_test = labels[rows][:, stays], samples.is_test[rows]
    class_task = number_by_size(group, stays)[stays]
    inputs = embed(samples.values[rows], ~is_test)
    whole = Split(inputs, labels, class_task[labels.argmax(axis=1)])
    train, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    rng = np.random.default_rng(SEED)
    reserve = np.zeros(len(test), dtype=np.int64)
    even = test[curation.draw_even(labels[test], PER_CLASS, rng, reserve)]
    bounds = len(train) * MINORITY_BELOW, len(train) * MAJORITY_FROM
    data = SequentialDataset(
        name=name,
        train=whole.take(train),
        tests={"balanced": whole.take(even), "imbalanced": whole.take(test)},
        class_names=tuple(names[stays].tolist()),
        class_task=class_task,
        class_group=curation.class_groups(labels[train].sum(axis=0), *bounds),
    )
    return standardise(data)


def cluster(labels: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """Cluster classes, int64 (C,), by Algorithm 2 or else by shared samples."""
    if settings := search_clusters(labels, names):
        return choose_clusters(settings).group_of_class
    counts = labels.astype(np.int64)
    group = connected_components(counts.T @ counts)[1].astype(np.int64)
    while group.max() >= NUM_TASKS:
        sizes = [labels[:, group == g].any(axis=1).sum() for g in np.unique(group)]
        first, second = np.argsort(sizes, kind="stable")[:2]
        group[group == second] = first
        group = np.unique(group, return_inverse=True)[1]
    return group


def embed(values: np.ndarray, in_stream: np.ndarray) -> np.ndarray:
    """Return features, float32 (N, D), which are fitted on the stream if it has texts."""
    if values.ndim == 1:
        words = TfidfVectorizer(sublinear_tf=True, min_df=3)
        svd = TruncatedSVD(COMPONENTS, algorithm="arpack", random_state=SEED)
        with threadpool_limits(1):
            svd.fit(words.fit_transform(values[in_stream]))
            values = svd.transform(words.transform(values))
    return values.astype(np.float32)


def add_stream(data: SequentialDataset) -> int:
    """Register a stream, and return the size of its memory."""
    memory = memory_size_of(len(data.train))
    schedule = tuple(range(data.num_tasks))
    recipe = Recipe(memory_size=memory, schedule=schedule, **HEAD)
    register(data.name, Entry(lambda images: data, recipe, data_source="other"))
    return memory


def compare(data: SequentialDataset, memory: int) -> pd.DataFrame:
    """Return each sampler minus CRS in overall scores at the end of the stream."""
    fixed = {"dataset": data.name, "seed": SEEDS[1.0]}
    planned = configs(**fixed, method=["CRS", "CBRS", "OCDM"])
    planned += configs(**fixed, method="PRS", rho=[0.0, POWER])
    scores = label_powers(final(scores_of(run_all(planned))), [POWER])
    scores = scores[scores["group"] == "overall"]
    gaps = leads(scores, RIVALS, "CRS", [])
    gaps = gaps[gaps.set_index(["test_set", "metric"]).index.isin(CELLS)]
    keys = ["dataset", "test_set", "group", "metric", "method"]
    table = over_seeds(gaps, keys).drop(columns="sd")
    freq = data.class_freq
    # columns of the notebook when_it_pays
    stream = {"samples": len(data.train), "memory": memory, "tasks": data.num_tasks}
    stream |= {"classes": data.num_classes, "labels": freq.sum() / len(data.train)}
    stream |= {"max:min": freq.max() / freq.min()}
    stream |= {"small": (freq < freq.mean() / 2).mean()}
    return table.assign(**stream)


def compare_classes(data: SequentialDataset, memory: int) -> pd.DataFrame:
    """Return by how much CBRS changes the AP of each class on the balanced test set."""
    size = data.class_freq / data.class_freq.mean()
    tables = []
    for share, seeds in SEEDS.items():
        fixed = {"dataset": data.name, "memory_size": round(memory * share)}
        runs = run_all(configs(**fixed, method=["CRS", "CBRS"], seed=seeds))
        scores = at_end(pd.concat([run.scores for run in runs]))
        scores = scores.query("test_set == 'balanced' and metric == 'AP'")
        means = scores.pivot_table("value", "group", "method")
        change = 100 * (means["CBRS"] - means["CRS"])[list(data.class_names)]
        columns = {"dataset": data.name, "memory": share, "seeds": len(seeds)}
        columns |= {"size": size, "change": change.to_numpy()}
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path, help="with a folder for each collection")
    parser.add_argument("name", nargs="*", help="collections, all by default")
    options = parser.parse_args()
    for name in options.name or COLLECTIONS:
        data = load(name, options.folder)
        memory = add_stream(data)
        save(compare(data, memory).round(3), "more_streams")
        save(compare_classes(data, memory).round(3), "more_streams_classes")


if __name__ == "__main__":
    main()
