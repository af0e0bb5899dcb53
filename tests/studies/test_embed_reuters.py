"""The study that reads Reuters-21578 and embeds it: small collections in its format."""

import numpy as np
import pytest

from prslib.datasets.arrays import read_arrays, write_arrays

HEAD = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'
TOPIC = [f"topic-{letter}" for letter in "abcdefghijklmnopqrst"]
# documents of one topic, in the stream and in the test set; every second of them also
# has the next topic of its task
TRAIN, TEST = 14, 9


def document(number, topics, split, text):
    marked = "".join(f"<D>{topic}</D>" for topic in topics)
    return (
        f'<REUTERS TOPICS="YES" LEWISSPLIT="{split}" '
        f'CGISPLIT="TRAINING-SET" OLDID="{number + 7}" NEWID="{number}">\n'
        f"<DATE>26-FEB-1987</DATE>\n<TOPICS>{marked}</TOPICS>\n"
        f"<TEXT>&#2;\n<TITLE>TITLE {number}</TITLE>\n"
        f"<BODY>{text}\n&#3;</BODY></TEXT>\n</REUTERS>\n"
    )


@pytest.fixture
def study(program):
    return program("embed_reuters")


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
    half = len(documents) // 2
    parts = {"reut2-000.sgm": documents[:half], "reut2-001.sgm": documents[half:]}
    for name, part in parts.items():
        (tmp_path / name).write_text(HEAD + "".join(part), encoding="latin-1")
    monkeypatch.setattr(study, "DOCUMENTS", len(documents))
    return tmp_path


def test_made_twice_the_file_has_the_same_bytes(study, collection, tmp_path):
    files = [tmp_path / f"{name}.npz" for name in ("first", "second")]
    for file in files:
        study.make(collection, file, components=4)
    first, second = (file.read_bytes() for file in files)
    assert first == second
    assert study.count_differing(*files) == 0
    stored = read_arrays(files[0])
    # as the embedded file has an array that nothing writes any more
    write_arrays(files[1], **stored | {"origin": np.array("derived")})
    assert study.count_differing(*files) == 0
    assert stored["features"].dtype == np.int8
    assert stored["features"].shape == (len(stored["labels"]), 4)
    assert "word1" not in str(list(stored.values()))


def test_a_balanced_draw_takes_all_of_a_class_that_is_short_and_no_image_twice(
    study,
):
    labels = np.array([[1, 1, 0], [0, 1, 0], [0, 1, 1], [0, 1, 0], [1, 0, 0]]) == 1
    drawn = study.draw_balanced(labels, 3, np.random.default_rng(0))
    assert len(set(drawn.tolist())) == len(drawn)
    # the first and last class are short; the middle one is filled up
    np.testing.assert_array_equal(labels[drawn].sum(axis=0), [2, 3, 1])
