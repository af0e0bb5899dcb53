"""The study that reads Reuters-21578 and embeds it: small collections in its format."""

import numpy as np
import pytest

from prslib.datasets import reuters
from prslib.datasets.arrays import read_arrays
from prslib.datasets.prepared import Selection

HEAD = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'
NAMES = [f"reut2-{number:03d}.sgm" for number in range(2)]
TOPIC = [f"topic-{letter}" for letter in "abcdefghijklmnopqrst"]
# documents of one topic, in the stream and in the test set; every second of them also
# has the next topic of its task
TRAIN, TEST = 14, 9


def document(number, topics=(), split="TRAIN", text="a text", indexed="YES"):
    marked = "".join(f"<D>{topic}</D>" for topic in topics)
    return (
        f'<REUTERS TOPICS="{indexed}" LEWISSPLIT="{split}" '
        f'CGISPLIT="TRAINING-SET" OLDID="{number + 7}" NEWID="{number}">\n'
        f"<DATE>26-FEB-1987</DATE>\n<TOPICS>{marked}</TOPICS>\n"
        f"<TEXT>&#2;\n<TITLE>TITLE {number}</TITLE>\n"
        f"<BODY>{text}\n&#3;</BODY></TEXT>\n</REUTERS>\n"
    )


def write(folder, study, monkeypatch, documents):
    """Write a collection of two files, and let the study expect their documents."""
    folder.mkdir(exist_ok=True)
    half = len(documents) // 2
    contents = documents[:half], documents[half:]
    for name, content in zip(NAMES, contents, strict=True):
        (folder / name).write_text(HEAD + "".join(content), encoding="latin-1")
    counts = map(len, contents)
    monkeypatch.setattr(study, "FILES", dict(zip(NAMES, counts, strict=True)))
    return folder


@pytest.fixture
def study(program):
    return program("embed_reuters")


@pytest.fixture
def four(study, tmp_path, monkeypatch):
    """Return a folder with four documents in two files."""
    documents = [
        document(1, ["grain", "wheat"], text="corn &lt;up> &amp; more"),
        document(2, ["gold"], split="TEST"),
        document(3),
        document(4, ["gold"], split="NOT-USED"),
    ]
    return write(tmp_path / "four", study, monkeypatch, documents)


def test_a_collection_is_read(study, four):
    first, second, third, fourth = study.read_collection(four)
    assert first.topics == ("grain", "wheat")
    assert first.text.split() == ["TITLE", "1", "corn", "<up>", "&", "more"]
    documents = first, second, third, fourth
    assert [d.number for d in documents] == [1, 2, 3, 4]
    assert [d.split for d in documents] == ["train", "test", "", ""]


@pytest.mark.parametrize("indexed", ["NO", "BYPASS"])
def test_what_was_not_indexed_is_in_neither_stream_nor_test(
    study, tmp_path, monkeypatch, indexed
):
    documents = [document(n, ["gold"], indexed=indexed) for n in (1, 2)]
    folder = write(tmp_path, study, monkeypatch, documents)
    assert [d.split for d in study.read_collection(folder)] == ["", ""]


DAMAGE = {
    "no id": ('NEWID="3"', "", "NEWID of document 3 in .*reut2-001.sgm, got none"),
    "another id": ('NEWID="4"', 'NEWID="5"', 'document 4 in .*got NEWID="5"'),
    "id of letters": ('NEWID="4"', 'NEWID="x"', "NEWID of document 4 .* got 'x'"),
    "unknown value": ('SPLIT="TRAIN"', 'SPLIT="LEARN"', "document 3 .*NOT-USED.*LEARN"),
    "unknown attribute": ("OLDID", "OLDERID", "document 3 in .*, got OLDERID"),
    "unquoted attribute": ('NEWID="4"', "NEWID=4", "document 4 in .* got .*NEWID=4"),
    "end of a document": ("</REUTERS>\n<REU", "<REU", "document 3 .* to </REUTERS>"),
    "end of the file": ("</BODY></TEXT>\n</REUTERS>\n", "", "document 3 .*got a part"),
    "no text": ("<TEXT>", "<TXT>", "one TOPICS and one TEXT in document 3"),
    "topics cut": ("<TOPICS></TOPICS>", "", "one TOPICS and one TEXT in document 3"),
    "text between documents": (
        "</REUTERS>\n<",
        "</REUTERS>\nx<",
        "document 4 .*a part",
    ),
    "other first line": ("lewis.dtd", "other.dtd", "Latin-1 text in .*reut2-001.sgm"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_an_error_that_names_it(study, four, kind, tmp_path):
    before, after, message = DAMAGE[kind]
    file = four / NAMES[1]
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))
    made = tmp_path / "made" / "reutersseq.npz"
    with pytest.raises(ValueError, match=message):
        study.make(four, made)
    assert not made.parent.exists()


ENCODED = {
    "utf-16": lambda text: text.encode("utf-16"),
    "utf-8 with a mark": lambda text: text.encode("utf-8-sig"),
    "utf-8": lambda text: text.replace("a text", "f\u00fcr").encode(),
    "zeros": lambda text: text.encode() + bytes(1),
    "empty": lambda text: b"",
}


@pytest.mark.parametrize("kind", ENCODED)
def test_another_encoding_is_refused(study, four, kind):
    file = four / NAMES[1]
    file.write_bytes(ENCODED[kind](file.read_text()))
    with pytest.raises(ValueError, match=r"Latin-1 text in .*reut2-001.sgm"):
        study.read_collection(four)


def test_latin_1_is_the_official_encoding(study, four):
    file = four / NAMES[1]
    file.write_text(file.read_text().replace("a text", "f\u00fcr"), encoding="latin-1")
    assert "f\u00fcr" in study.read_collection(four)[2].text


def test_a_missing_file_is_named(study, four):
    (four / NAMES[1]).unlink()
    with pytest.raises(FileNotFoundError, match=r"got no reut2-001.sgm; unpack"):
        study.read_collection(four)


def test_a_document_that_is_missing_or_too_much_is_an_error(study, four, monkeypatch):
    for count in (1, 3):
        monkeypatch.setitem(study.FILES, NAMES[1], count)
        with pytest.raises(ValueError, match=f"{count} documents in .*reut2-001.sgm"):
            study.read_collection(four)


@pytest.fixture
def collection(study, tmp_path, monkeypatch):
    """Return a collection of four tasks of five topics each, and documents without."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(60)])

    def text_of(topics):
        spoken = rng.choice(words, 8).tolist() + [f"about{t[-1]}" for t in topics]
        return " ".join(spoken)

    labelled = []
    for task in range(4):
        topics = TOPIC[5 * task : 5 * task + 5]
        for number, topic in enumerate(topics):
            also = topics[(number + 1) % 5]
            for row in range(TRAIN + TEST):
                split = "TRAIN" if row < TRAIN else "TEST"
                labelled.append(([topic, also][: 1 + row % 2], split))
    # across tasks; of a topic that is too small; and beside one of these
    labelled += [(["topic-a", "topic-t"], "TRAIN"), (["rare"], "TRAIN")]
    labelled += [(["rare", "topic-c"], "TRAIN")]
    unlabelled = [(TOPIC[k % 20 : k % 20 + 1], "NOT-USED", True) for k in range(60)]
    documents = []
    for topics, split, *hidden in [*labelled, *unlabelled]:
        number = len(documents) + 1
        marked = [] if hidden else topics
        documents.append(document(number, marked, split, text_of(topics)))
    return write(tmp_path / "collection", study, monkeypatch, documents)


def test_made_twice_the_file_has_the_same_bytes(study, collection, tmp_path):
    files = [tmp_path / f"{name}.npz" for name in ("first", "second")]
    for file in files:
        study.make(collection, file, components=4)
    first, second = (file.read_bytes() for file in files)
    assert first == second
    assert study.differing(*files) == 0
    stored = read_arrays(files[0])
    assert stored["features"].dtype == np.int8
    assert stored["features"].shape == (len(stored["labels"]), 4)
    assert "word1" not in str(list(stored.values()))


def test_bytes_that_differ_are_counted(study, tmp_path):
    files = [tmp_path / f"{name}.npz" for name in ("first", "second")]
    for file, last in zip(files, (3, 4), strict=True):
        np.savez(file, a=np.array([1, 2, last], np.uint8))
    assert study.differing(*files) == 1


def test_classes_tasks_and_test_sets(study, collection):
    selection, corpus = study.select(study.read_collection(collection))
    assert selection.class_names.tolist() == TOPIC
    tasks = selection.class_task.reshape(4, 5)
    assert (tasks == tasks[:, :1]).all()
    # the document across tasks and that of the rare topic alone are left out
    assert np.diff(selection.bounds[0]) == 20 * TRAIN + 1
    assert np.diff(selection.bounds[2]) == 20 * TEST
    assert corpus["corpus_names"].tolist() == TOPIC
    assert len(corpus["corpus"]) == 20 * TRAIN + 2
    balanced = selection.labels[selection.rows("balanced")].sum(axis=0)
    assert balanced.max() <= study.PER_CLASS
    assert len(set(selection.files.tolist())) == len(selection)


def test_features_of_a_text_do_not_depend_on_other_labelled_texts(study):
    unlabelled = [f"word{k % 7} word{k % 5} word{k % 3}" for k in range(40)]
    texts = ["word1 word2", "word3 other"]
    both = study.embed_texts(unlabelled, texts, components=3)
    alone = study.embed_texts(unlabelled, texts[1:], components=3)
    np.testing.assert_array_equal(both[1:], alone)


def test_a_byte_is_the_nearest_multiple_of_its_column_s_scale(study):
    values = np.array([[1.0, -0.2], [-0.5, 0.1], [3.0, 0.05]])
    rounded, scale = study.to_bytes(values, slice(0, 2))
    assert (np.abs(rounded * scale - values)[:2] <= 0.51 * scale).all()
    # beyond what the stream has
    assert rounded[2, 0] == study.LARGEST


def test_the_embedded_file_is_about_the_collection():
    stored = read_arrays(reuters.FILE, "about")["about"].item()
    assert "Reuters-21578, Distribution 1.0" in stored
    assert len(Selection.load(reuters.FILE)) == 10_380
