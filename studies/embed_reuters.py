"""Make the features of reutersseq again, from the texts of Reuters-21578.

Run ``python studies/embed_reuters.py --texts DIR``, where DIR contains the files
reut2-000.sgm to reut2-021.sgm of "Reuters-21578, Distribution 1.0". In a minute on one
core, it makes the file, counts the entries that differ from the embedded file, and writes
the new file to reutersseq.npz in the working directory. docs/reuters.md describes the
source of the collection and the construction of the stream.
"""

import argparse
import html
import json
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from clusters import keep_in_tasks, number_by_size
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from threadpoolctl import threadpool_limits

from prslib.checks import expected
from prslib.datasets import curation, reuters
from prslib.datasets.arrays import read_arrays
from prslib.datasets.base import Clustering
from prslib.datasets.prepared import Selection, order_splits

DOCUMENTS = 21_578
DOCUMENT = re.compile("<REUTERS([^>]*)>(.*?)</REUTERS>", re.DOTALL)
ATTRIBUTE = re.compile(r'([A-Z]+)="([^"]*)"')
TOPICS = re.compile("<TOPICS>(.*)</TOPICS>")
TEXT = re.compile("<TEXT[^>]*>(.*)</TEXT>", re.DOTALL)
INNER_TAG = re.compile("</?(?:TITLE|AUTHOR|DATELINE|BODY)>")

COMPONENTS = 512
SVD_SEED = 0
# of the balanced test set
TEST_SEED = 20201126
PER_CLASS = 10
# minimum number of a class's documents that do not span tasks
LEAST_IN_STREAM = 10
LEAST_IN_TEST = 8
LARGEST = 127  # of int8
ABOUT = {
    "source": "Reuters-21578, Distribution 1.0, at archive.ics.uci.edu/dataset/137; "
    "for research purposes only, copyright Reuters Ltd.; without the texts",
    "split": "ModApte",
    "features": "TF-IDF (sublinear, without English stop words, of words in three or "
    f"more documents) and a truncated SVD to {COMPONENTS} components; both fitted on "
    "the documents without a topic",
}


class Document(NamedTuple):
    """One document of the collection."""

    number: str  # NEWID
    split: str  # "train" or "test" of ModApte's split, else ""
    topics: tuple[str, ...]
    text: str


def read_collection(folder: Path) -> list[Document]:
    """Read all documents."""
    texts = [file.read_text("latin-1") for file in sorted(folder.glob("reut2-*.sgm"))]
    tags = [tag for text in texts for tag in DOCUMENT.findall(text)]
    if len(tags) != DOCUMENTS:
        raise ValueError(expected(f"{DOCUMENTS} documents in {folder}", len(tags)))
    return [read_document(*tag) for tag in tags]


def read_document(attributes: str, content: str) -> Document:
    """Read a document from the attributes and the content of its tag."""
    named = dict(ATTRIBUTE.findall(attributes))
    topics = re.findall("<D>([^<]+)</D>", TOPICS.search(content)[1])
    # ModApte's split uses documents that were indexed and have a topic
    is_used = topics and named["TOPICS"] == "YES"
    split = {"TRAIN": "train", "TEST": "test"}.get(named["LEWISSPLIT"], "")
    return Document(
        number=named["NEWID"],
        split=split if is_used else "",
        topics=tuple(topics),
        text=html.unescape(INNER_TAG.sub(" ", TEXT.search(content)[1])),
    )


def embed_texts(unlabelled: list[str], texts: list[str], components: int) -> np.ndarray:
    """Fit on unlabelled texts; return the features of texts, float64 (N, components)."""
    words = TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=3)
    # the exact decomposition does not depend on a random start, and one thread adds in a
    # fixed order
    svd = TruncatedSVD(components, algorithm="arpack", random_state=SVD_SEED)
    with threadpool_limits(1):
        svd.fit(words.fit_transform(unlabelled))
        return svd.transform(words.transform(texts))


def to_bytes(values: np.ndarray, train: slice) -> tuple[np.ndarray, np.ndarray]:
    """Round features to whole multiples of their columns' scale: int8 (N, D), (D,)."""
    # the scale fits the stream's largest value; larger ones in tests are clipped
    scale = (np.abs(values[train]).max(axis=0) / LARGEST).astype(np.float32)
    rounded = np.rint(values / scale).clip(-LARGEST, LARGEST)
    return rounded.astype(np.int8), scale


def select(documents: list[Document]) -> tuple[Selection, dict[str, np.ndarray]]:
    """Choose classes, tasks and splits; also return the corpus for the clustering."""
    splits = np.array([document.split for document in documents])
    topics = sorted({t for document in documents for t in document.topics})
    labels = np.array([[t in d.topics for t in topics] for d in documents])  # (N, C)
    is_train, is_test = splits == "train", splits == "test"

    def is_frequent(rows: np.ndarray) -> np.ndarray:
        in_stream = labels[rows[is_train[rows]]].sum(axis=0) >= LEAST_IN_STREAM
        return in_stream & (labels[rows[is_test[rows]]].sum(axis=0) >= LEAST_IN_TEST)

    candidates = is_frequent(np.arange(len(labels)))
    names, labels = np.array(topics)[candidates], labels[:, candidates]
    corpus = labels[is_train & labels.any(axis=1)]
    settings = reuters.NUM_TASKS, reuters.BETA, reuters.MIN_CLASSES
    group = curation.cluster_classes(Clustering(corpus, tuple(names), *settings))
    rows, stays = keep_in_tasks(labels, group, is_frequent)
    class_task = number_by_size(group, stays)[stays]
    labels = labels[:, stays]
    train, test = rows[is_train[rows]], rows[is_test[rows]]
    rng = np.random.default_rng(TEST_SEED)
    drawn = draw_balanced(labels[test], PER_CLASS, rng)
    order, bounds = order_splits(train, test[drawn], test)
    limits = reuters.MINORITY_BELOW, reuters.MAJORITY_FROM
    groups = curation.class_groups(labels[train].sum(axis=0), *limits)
    selection = Selection(
        files=np.array([documents[row].number for row in order]),
        labels=labels[order],
        task=class_task[labels[order].argmax(axis=1)],
        bounds=bounds,
        class_names=names[stays],
        class_task=class_task,
        class_group=np.array(groups),
    )
    return selection, {"corpus": corpus, "corpus_names": names}


def draw_balanced(
    labels: np.ndarray,
    per_class: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw the indices of `per_class` images of every class, or all if it has fewer."""
    # The paper does not describe its draw. Here classes are filled one after another,
    # rarest first, with random images that have no label of a full class.
    order = rng.permutation(len(labels))
    counts = np.zeros(labels.shape[1], dtype=np.int64)
    drawn = np.zeros(len(labels), dtype=bool)
    for c in np.argsort(labels.sum(axis=0), kind="stable"):
        for image in order[labels[order, c]]:
            if counts[c] == per_class:
                break
            if not drawn[image] and (counts[labels[image]] < per_class).all():
                counts += labels[image]
                drawn[image] = True
    return np.flatnonzero(drawn)


def make(texts: Path, made: Path, components: int = COMPONENTS) -> None:
    """Write the data file from the collection in a folder."""
    documents = read_collection(texts)
    selection, corpus = select(documents)
    text_of = {document.number: document.text for document in documents}
    unlabelled = [document.text for document in documents if not document.topics]
    chosen = [text_of[number] for number in selection.files.tolist()]
    values = embed_texts(unlabelled, chosen, components)
    features, scale = to_bytes(values, selection.rows("train"))
    about = np.array(json.dumps(ABOUT))
    selection.save(made, features=features, scale=scale, about=about, **corpus)


def count_differing(made: Path, stored: Path) -> int:
    """Count the entries in which the arrays of a new file differ from the stored ones."""
    first, second = read_arrays(made), read_arrays(stored)
    return sum(int((array != second[name]).sum()) for name, array in first.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--texts", type=Path, required=True)
    made = Path(reuters.FILE.name)
    make(parser.parse_args().texts, made)
    print(f"{count_differing(made, reuters.FILE)} entries differ from {reuters.FILE}")
    print(made)


if __name__ == "__main__":
    main()
