"""The study of more streams: a made-up file of each format, and a made-up collection."""

import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from prslib import run
from prslib.paths import figures_dir


@pytest.fixture
def study(program):
    return program("more_streams")


def write(folder, **files):
    """Write files, whose names have a dot for each double underscore."""
    paths = [folder / name.replace("__", ".") for name in files]
    for path, text in zip(paths, files.values(), strict=True):
        path.write_text(text)
    return paths


def test_comments_keep_their_quotes_and_the_last_file_is_the_test(study, tmp_path):
    files = write(tmp_path, train__tsv='say "hi\t3,27\ta\n', test__tsv="NA\t3\tb\n")
    texts, labels, is_test = study.read_comments(*files)
    assert texts.tolist() == ['say "hi', "NA"]
    assert labels == [{"3", "27"}, {"3"}]
    assert is_test.tolist() == [False, True]


def test_calls_have_three_ranks(study, tmp_path):
    head = "MFCCs_1,MFCCs_2,Family,Genus,Species,RecordID\n"
    files = write(tmp_path, calls__csv=head + "1.0,0.5,Bufo,Bufo,small,7\n" * 400)
    values, labels, is_test = study.read_calls(*files)
    assert values.shape == (400, 2)
    assert labels[0] == {"Family Bufo", "Genus Bufo", "Species small"}
    assert 0.2 < is_test.mean() < 0.4


def test_words_and_tags_are_told_apart(study, tmp_path):
    header = '<labels xmlns="x"><label name="TAG_b"></label></labels>'
    arff = "@relation r\n@attribute an {0,1}\n@attribute 'of' {0,1}\n"
    arff += "@attribute TAG_b {0,1}\n\n@data\n"
    train, test = arff + "{0 1,1 1,2 1}\n", arff + "{1 1}\n{2 1}\n"
    files = write(tmp_path, b__xml=header, train__arff=train, test__arff=test)
    texts, labels, is_test = study.read_words(*files)
    assert texts.tolist() == ["an of", "of", ""]
    assert labels == [{"TAG_b"}, set(), {"TAG_b"}]
    assert is_test.tolist() == [False, True, True]


def test_a_sample_has_the_ancestors_of_its_classes(study, tmp_path):
    head = "@RELATION r\n@ATTRIBUTE a NUMERIC\n@ATTRIBUTE class hierarchical 1,1/2\n"
    rows = "@DATA\n0.5,1/2@3\n", "@DATA\n1,3\n"
    files = write(tmp_path, train__arff=head + rows[0], test__arff=head + rows[1])
    values, labels, is_test = study.read_hierarchy(*files)
    assert values.tolist() == [[0.5], [1.0]]
    assert labels == [{"1", "1/2", "3"}, {"3"}]
    assert is_test.tolist() == [False, True]


def test_sets_of_classes_that_share_samples_are_joined_to_four(study):
    # six families of 10 to 60 samples, each with a genus and two species
    family = np.repeat(np.arange(6), 10 * np.arange(1, 7))
    labels = np.zeros((len(family), 24), dtype=bool)
    for column in (0, 1):
        labels[np.arange(len(family)), 4 * family + column] = True
    labels[np.arange(len(family)), 4 * family + 2 + np.arange(len(family)) % 2] = True
    group = study.cluster(labels, tuple(map(str, range(24)))).reshape(6, 4)
    assert (group == group[:, :1]).all()
    joined = [set(np.flatnonzero(group[:, 0] == g)) for g in range(4)]
    assert sorted(map(sorted, joined)) == [[0, 1, 2], [3], [4], [5]]


@pytest.fixture
def collection(study, tmp_path, monkeypatch):
    """Return the folder of a made-up collection of texts with one or two labels."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(300)])
    texts = []
    for number in range(600):
        first = rng.integers(7)
        labels = f"{first},{first + 1}" if number % 3 else f"{first}"
        spoken = " ".join([*rng.choice(words, 9), f"about{first}"])
        texts.append(f"{spoken}\t{labels}\t{number}\n")
    texts += ["rare\t9\ta\n"] * 14
    (tmp_path / "made-up").mkdir()
    parts = {"train__tsv": "".join(texts[150:]), "test__tsv": "".join(texts[:150])}
    files = write(tmp_path / "made-up", **parts)
    sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    source = {"origin": "nowhere", "copy": "here", "terms": "none", "files": sums}
    monkeypatch.setitem(study.COLLECTIONS, "made-up", source | {"reader": "comments"})
    return tmp_path


def run_here(planned, jobs):
    """Train in this process, as others would have to start."""
    return [replace(run(config.to_train), config=config) for config in planned]


@pytest.mark.usefixtures("registers")
def test_a_collection_becomes_a_stream_and_two_tables(study, collection, monkeypatch):
    monkeypatch.setattr(study, "SEEDS", {1.0: range(2), 4.0: range(1)})
    monkeypatch.setattr(study, "COMPONENTS", 8)
    monkeypatch.setattr(study, "run_all", run_here)
    monkeypatch.setattr("sys.argv", ["more_streams.py", str(collection), "made-up"])
    study.main()
    data = study.load("made-up", collection)
    # 9 is too rare
    assert data.class_names == tuple("01234567")
    balanced, test = data.tests["balanced"], data.tests["imbalanced"]
    assert balanced.labels.sum(axis=0).min() >= study.LEAST_IN_TEST
    assert len(balanced) < len(test) <= 150
    assert 300 < len(data.train) < 450
    assert abs(data.train.inputs.mean()) < 1e-5
    folder = figures_dir("studies")
    table = pd.read_csv(folder / "more_streams.csv")
    assert len(table) == len(study.RIVALS) * len(study.CELLS)
    assert table["difference"].between(table["low"], table["high"]).all()
    assert table["samples"].eq(len(data.train)).all()
    classes = pd.read_csv(folder / "more_streams_classes.csv")
    assert classes["memory"].value_counts().to_dict() == {1.0: 8, 4.0: 8}
    assert classes.groupby("memory")["size"].mean().round(2).tolist() == [1, 1]


def test_another_file_and_a_missing_one_are_named(study, collection):
    study.check_files("made-up", collection)
    file = collection / "made-up" / "test.tsv"
    file.write_text("another")
    with pytest.raises(ValueError, match=r"test\.tsv with SHA-256 .*a copy is in here"):
        study.check_files("made-up", collection)
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"test\.tsv, got none; nowhere"):
        study.check_files("made-up", collection)
