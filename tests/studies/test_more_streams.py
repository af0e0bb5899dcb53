"""The study of more streams: a made-up file of each format, and a made-up collection."""

import hashlib

import numpy as np
import pandas as pd
import pytest

from prslib.paths import figures_dir


@pytest.fixture
def study(program):
    return program("more_streams")


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
    folder = tmp_path / "made-up"
    folder.mkdir()
    sums = {}
    for name, part in {"train.tsv": texts[150:], "test.tsv": texts[:150]}.items():
        content = "".join(part).encode()
        (folder / name).write_bytes(content)
        sums[name] = hashlib.sha256(content).hexdigest()
    source = {"origin": "nowhere", "copy": "here", "terms": "none", "files": sums}
    monkeypatch.setitem(study.COLLECTIONS, "made-up", source | {"reader": "comments"})
    return tmp_path


@pytest.mark.usefixtures("registers", "trains_here")
def test_a_collection_becomes_a_stream_and_two_tables(study, collection, monkeypatch):
    monkeypatch.setattr(study, "SEEDS", {1.0: range(2), 4.0: range(1)})
    monkeypatch.setattr(study, "COMPONENTS", 8)
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
