"""Make the features of reutersseq again, from the texts of Reuters-21578.

Run ``python studies/embed_reuters.py --texts DIR``: the folder with reut2-000.sgm to
reut2-021.sgm of "Reuters-21578, Distribution 1.0"; a minute on one core. It counts the
bytes that differ from those that prslib brings, and writes the new ones to
reutersseq.npz here or, with ``--embed``, in their place. docs/reuters.md says where the
collection is and what is made of it.
"""

import argparse
import html
import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from threadpoolctl import threadpool_limits

from prslib.checks import expected
from prslib.datasets import curation, reuters
from prslib.datasets.arrays import read_arrays
from prslib.datasets.prepared import Selection

# the files, and how many documents each has
FILES = {f"reut2-{number:03d}.sgm": 1000 for number in range(21)}
FILES["reut2-021.sgm"] = 578
FIRST_LINE = b'<!DOCTYPE lewis SYSTEM "lewis.dtd">'
# what each attribute of a document may be; README.txt of the collection, section VI.A
NUMBER = re.compile("[0-9]+")
VALUES = {
    "TOPICS": re.compile("YES|NO|BYPASS"),
    "LEWISSPLIT": re.compile("TRAIN|TEST|NOT-USED"),
    "CGISPLIT": re.compile("TRAINING-SET|PUBLISHED-TESTSET"),
    "OLDID": NUMBER,
    "NEWID": NUMBER,
    "CSECS": NUMBER,
}
OPTIONAL = {"CSECS"}
DOCUMENT = re.compile(r"\s*<REUTERS([^>]*)>(.*?)</REUTERS>\s*", re.DOTALL)
ATTRIBUTE = re.compile(r'\s+([^\s=]+)="([^"]*)"')
TOPICS = re.compile(r"<TOPICS>((?:<D>[^<]+</D>)*)</TOPICS>")
TEXT = re.compile(r'<TEXT(?: TYPE="(?:NORM|BRIEF|UNPROC)")?>(.*)</TEXT>\s*$', re.DOTALL)
INNER_TAG = re.compile("</?(?:TITLE|AUTHOR|DATELINE|BODY)>")
ADVICE = "unpack Reuters-21578, Distribution 1.0 again"

COMPONENTS = 512
SVD_SEED = 0
# of the balanced test set
TEST_SEED = 20201126
PER_CLASS = 10
# documents that a class has at least, within one task
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

    number: int  # NEWID
    split: str  # "train" or "test" of ModApte's split, else ""
    topics: tuple[str, ...]
    text: str


def read_collection(folder: Path) -> list[Document]:
    """Read all documents; an error names the file or document that is not official."""
    documents = []
    for name, count in FILES.items():
        documents += read_file(folder / name, count, len(documents) + 1)
    return documents


def read_file(file: Path, count: int, first: int) -> list[Document]:
    """Read a file of `count` documents, whose numbers begin with `first`."""
    if not file.is_file():
        what = f"{', '.join(FILES)} in {file.parent}"
        raise FileNotFoundError(expected(what, f"no {file.name}", ADVICE))
    text = decoded(file)
    documents = []
    position = len(FIRST_LINE)
    while position < len(text):
        where = f"document {first + len(documents)} in {file}"
        found = DOCUMENT.match(text, position)
        if not found or "<REUTERS" in found[2]:
            what = f"{where} from <REUTERS> to </REUTERS>"
            raise ValueError(expected(what, "a part", ADVICE))
        documents.append(read_document(found[1], found[2], where))
        if documents[-1].number != first + len(documents) - 1:
            got = f'NEWID="{documents[-1].number}"'
            raise ValueError(expected(where, got, ADVICE))
        position = found.end()
    if len(documents) != count:
        what = f"{count} documents in {file}"
        raise ValueError(expected(what, len(documents), ADVICE))
    return documents


def decoded(file: Path) -> str:
    """Return a file's text; refuse another encoding than the official one."""
    content = file.read_bytes()
    what = f"Latin-1 text in {file} that begins with {FIRST_LINE.decode()}"
    if content.partition(b"\n")[0].rstrip() != FIRST_LINE:
        raise ValueError(expected(what, content[: len(FIRST_LINE)], ADVICE))
    if not content.isascii():
        # one official file has a byte above 127, which UTF-8 does not allow there
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            pass
        else:
            raise ValueError(expected(what, "UTF-8", ADVICE))
    if b"\0" in content:
        raise ValueError(expected(what, "bytes of 0", ADVICE))
    return content.decode("latin-1")


def read_document(attributes: str, content: str, where: str) -> Document:
    """Read what stands in a document's tag and between it and its end."""
    named = attributes_of(attributes, where)
    topics = TOPICS.findall(content)
    text = TEXT.search(content)
    if len(topics) != 1 or not text:
        what = f"one TOPICS and one TEXT in {where}"
        raise ValueError(expected(what, "none or several", ADVICE))
    topics = re.findall("<D>([^<]+)</D>", topics[0])
    # ModApte: documents that were indexed, with a topic
    is_used = topics and named["TOPICS"] == "YES"
    split = {"TRAIN": "train", "TEST": "test"}.get(named["LEWISSPLIT"], "")
    return Document(
        number=int(named["NEWID"]),
        split=split if is_used else "",
        topics=tuple(topics),
        text=html.unescape(INNER_TAG.sub(" ", text[1])),
    )


def attributes_of(text: str, where: str) -> dict[str, str]:
    """Return a document's attributes, all of them known and with a known value."""
    if ATTRIBUTE.sub("", text).strip():
        what = f'attributes as NAME="value" of {where}'
        raise ValueError(expected(what, text, ADVICE))
    named = dict(ATTRIBUTE.findall(text))
    for name in [*named, *VALUES]:
        if name not in VALUES:
            known = ", ".join(sorted(VALUES))
            what = f"attributes {known} of {where}"
            raise ValueError(expected(what, name, ADVICE))
        if name not in named and name not in OPTIONAL:
            what = f"attribute {name} of {where}"
            raise ValueError(expected(what, "none", ADVICE))
        if name in named and not VALUES[name].fullmatch(named[name]):
            what = f"{name} of {where} as {VALUES[name].pattern}"
            raise ValueError(expected(what, repr(named[name]), ADVICE))
    return named


def embed_texts(unlabelled: list[str], texts: list[str], components: int) -> np.ndarray:
    """Return features, float64 (N, components), of texts that the fit has not seen."""
    words = TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=3)
    # The exact decomposition does not depend on a random start, and one thread adds in
    # one order.
    svd = TruncatedSVD(components, algorithm="arpack", random_state=SVD_SEED)
    with threadpool_limits(1):
        svd.fit(words.fit_transform(unlabelled))
        return svd.transform(words.transform(texts))


def to_bytes(values: np.ndarray, train: slice) -> tuple[np.ndarray, np.ndarray]:
    """Round features to whole multiples of their columns' scale: int8 (N, D), (D,)."""
    # the largest of the stream fits, and test documents beyond it are cut
    scale = (np.abs(values[train]).max(axis=0) / LARGEST).astype(np.float32)
    rounded = np.rint(values / scale).clip(-LARGEST, LARGEST)
    return rounded.astype(np.int8), scale


def select(documents: list[Document]) -> tuple[Selection, dict[str, np.ndarray]]:
    """Choose classes, tasks and splits; the corpus is what classes are clustered from."""
    splits = np.array([document.split for document in documents])
    topics = sorted({t for document in documents for t in document.topics})
    labels = np.array([[t in d.topics for t in topics] for d in documents])  # (N, C)
    is_train, is_test = splits == "train", splits == "test"
    candidates = is_frequent(labels[is_train], labels[is_test])
    names = np.array(topics)[candidates]
    labels = labels[:, candidates]
    corpus = labels[is_train & labels.any(axis=1)]
    group = curation.cluster_classes(reuters.clustering_of(corpus, tuple(names)))
    # documents across tasks leave, then classes that are too small without them, then
    # documents that had no other class
    task = np.full(len(labels), -1)
    labelled = labels.any(axis=1)
    task[labelled] = curation.tasks_of_images(labels[labelled], group)
    stays = is_frequent(labels[is_train & (task >= 0)], labels[is_test & (task >= 0)])
    class_task = curation.number_by_size(group, stays)[stays]
    labels = labels[:, stays]
    used = (task >= 0) & labels.any(axis=1)
    train, test = np.flatnonzero(used & is_train), np.flatnonzero(used & is_test)
    rng = np.random.default_rng(TEST_SEED)
    drawn = curation.draw_balanced(labels[test], PER_CLASS, rng)
    order = np.concatenate([train, test[drawn], np.delete(test, drawn)])
    end = len(train) + len(drawn)
    bounds = [[0, len(train)], [len(train), end], [len(train), len(order)]]
    groups = curation.class_groups(
        labels[train].sum(axis=0), reuters.MINORITY_BELOW, reuters.MAJORITY_FROM
    )
    selection = Selection(
        origin=np.array("derived"),
        files=np.array([str(documents[row].number) for row in order]),
        labels=labels[order],
        task=class_task[labels[order].argmax(axis=1)],
        bounds=np.array(bounds),
        class_names=names[stays],
        class_task=class_task,
        class_group=np.array(groups),
    )
    return selection, {"corpus": corpus, "corpus_names": names}


def is_frequent(train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Tell which classes have enough documents in stream and test, bool (C,)."""
    in_stream = train.sum(axis=0) >= LEAST_IN_STREAM
    return in_stream & (test.sum(axis=0) >= LEAST_IN_TEST)


def make(texts: Path, made: Path, components: int = COMPONENTS) -> None:
    """Write the embedded file from the collection in a folder."""
    documents = read_collection(texts)
    selection, corpus = select(documents)
    text_of = {str(document.number): document.text for document in documents}
    unlabelled = [document.text for document in documents if not document.topics]
    chosen = [text_of[number] for number in selection.files.tolist()]
    values = embed_texts(unlabelled, chosen, components)
    features, scale = to_bytes(values, selection.rows("train"))
    about = np.array(json.dumps(ABOUT))
    selection.save(made, features=features, scale=scale, about=about, **corpus)


def differing(made: Path, stored: Path) -> int:
    """Count the bytes in which the arrays of two files differ."""
    first, second = read_arrays(made), read_arrays(stored)
    if first.keys() != second.keys():
        what = f"arrays {', '.join(second)} in {made}"
        raise ValueError(expected(what, ", ".join(first)))
    count = 0
    for name, array in second.items():
        pair = [np.frombuffer(a.tobytes(), np.uint8) for a in (first[name], array)]
        length = min(map(len, pair))
        count += abs(len(pair[0]) - len(pair[1]))
        count += int((pair[0][:length] != pair[1][:length]).sum())
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--embed", action="store_true", help="replace those of prslib")
    options = parser.parse_args()
    made = Path(reuters.FILE.name)
    make(options.texts, made)
    if reuters.FILE.is_file():
        print(f"{differing(made, reuters.FILE)} bytes differ from those embedded")
    if options.embed:
        made = made.replace(reuters.FILE)
    print(made)


if __name__ == "__main__":
    main()
