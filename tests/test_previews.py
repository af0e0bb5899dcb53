"""A preview counts what a sampler keeps; its label files are read and checked."""

import gzip
import json
import re

import numpy as np
import pandas as pd
import pytest
from real_folders import coco_json

import prslib
from prslib.cli import main
from prslib.label_files import read_labels
from prslib.labels import multi_hot
from prslib.previews import BY_LABELS
from prslib.samplers import SAMPLERS, make_sampler

RNG = np.random.default_rng(0)
LABELS = RNG.random((3000, 4)) < [0.5, 0.3, 0.02, 0.0]
NAMES = ("cat", "dog", "eel", "fly")


@pytest.mark.filterwarnings("ignore:.*without a label")
def test_it_holds_what_the_samplers_hold():
    result = prslib.preview(LABELS, 100, rho=0.5, seed=3, class_names=NAMES)
    assert (
        result.class_counts.keys() == set(BY_LABELS) == {"cbrs", "crs", "ocdm", "prs"}
    )
    for name, counts in result.class_counts.items():
        rho = {"rho": 0.5} if name in ("prs", "ocdm") else {}
        sampler = make_sampler(name, 100, 4, 3, **rho)
        for start in range(0, 3000, 10):
            sampler.place(LABELS[start : start + 10])
        assert counts.tolist() == sampler.class_counts.tolist()
    freq = LABELS.sum(axis=0)
    assert result.class_freq.tolist() == freq.tolist()
    np.testing.assert_allclose(result.quota, 100 * freq**0.5 / (freq**0.5).sum())
    assert result.imbalance == freq[0] / freq[2]
    empty = (~LABELS.any(axis=1)).sum()
    assert result.unlabelled == empty
    assert f"3000 samples, {empty} of them without a label" in str(result)


@pytest.mark.parametrize(
    ("small", "recommended"),
    [(0, "No class is smaller"), (3, "use CRS.\nOnly one"), (4, "C-F1, use CBRS")],
)
def test_a_balanced_memory_is_recommended_for_more_than_a_few_small_classes(
    small, recommended
):
    sizes = np.where(np.arange(25) < small, 2, 20)
    text = str(prslib.preview(np.repeat(np.arange(25), sizes), 50))
    assert recommended in text
    assert f"{small} of 25" in text or small == 0


def test_nothing_is_recommended_for_a_memory_that_keeps_the_whole_stream():
    labels = np.repeat([0, 1, 2], [40, 40, 2])
    assert "smaller size" in prslib.preview(labels, 82).advice
    assert "use CBRS" in prslib.preview(labels, 81).advice


@pytest.mark.usefixtures("registers")
def test_it_knows_registered_samplers_that_need_only_labels():
    prslib.register("Newest", type("Newest", (SAMPLERS["crs"],), {}))
    result = prslib.preview(LABELS, 100, ["Newest", "CRS"])
    counts = [counts.tolist() for counts in result.class_counts.values()]
    assert counts[0] == counts[1]
    with pytest.raises(ValueError, match="a sampler that needs only labels, got GSS"):
        prslib.preview(LABELS, 100, ["GSS"])


ROWS = np.array([[1, 0], [1, 1], [0, 0]], dtype=bool)
COCO = coco_json([5, 7, 9], "abc", ROWS, ["cat", "dog"])
# the same labels of two classes in each form that is read
CSV = {
    "columns.csv": "cat,dog\n1,0\n1,1\n0,0\n",
    "named.csv": "\ufeffimage;cat;dog\r\na;1;0\r\nb;1;1\r\nc;0;0\r\n\r\n",
    "single.csv": 'labels\ncat\ncat|dog\n""\n',
    "unknown.csv": "image,cat,dog\na,1,\nb,1.0,1\nc,nan,-1\n",
    "unknown_by_r.csv": '"","cat","dog"\n"1",1,NA\n"2",1,1\n"3",NA,0\n',
    "labels.csv": "image,labels\na,cat\nb,cat; dog\nc,\n",
    "boxes.csv": "image,width,label\na,9,cat\nb,8,cat|dog\nc,9,\n",
    "dates.csv": "image,date,cat,dog\n1,May,1,0\n2,May,1,1\n3,June,0,0\n",
    "index.csv": ",cat,dog\n7,1,0\n8,1,1\n9,0,0\n",
    "piped.csv": "cat|dog\n1|0\n1|1\n0|0\n",
    "empty.csv": "cat,dog,note,day\n1,0,,May\n1,1,,\n0,0,,June\n",
    "words.csv": "cat,dog\ntrue,false\nTRUE,True\nFalse,False\n",
}
FILES = {name: text.encode() for name, text in CSV.items()}
FILES["zipped.csv.gz"] = gzip.compress(FILES["columns.csv"])
FILES["coco.json"] = json.dumps(COCO).encode()


@pytest.mark.parametrize("name", FILES)
def test_labels_are_read_from_csv_and_coco(tmp_path, capsys, name):
    (tmp_path / name).write_bytes(FILES[name])
    labels, names = read_labels(tmp_path / name)
    assert names == ["cat", "dog"]
    assert (multi_hot(labels) == ROWS).all()
    assert np.isnan(labels.astype(float)).any() == name.startswith("unknown")
    told = "1 without a label, 2 with unknown labels; 2 classes"
    assert (told in capsys.readouterr().err) == name.startswith("unknown")


def test_arrays_and_names_that_are_numbers_are_read(tmp_path):
    np.savez(tmp_path / "y.npz", labels=ROWS, names=[b"cat", b"dog"])
    labels, names = read_labels(str(tmp_path / "y.npz"))
    assert (labels == ROWS).all() and names == ["cat", "dog"]
    np.save(tmp_path / "y.npy", [0, 2, 0])
    labels, names = read_labels(tmp_path / "y.npy")
    assert labels.tolist() == [0, 2, 0] and names is None
    (tmp_path / "y.csv").write_text('label\n3\n""\n2\n')
    labels, names = read_labels(tmp_path / "y.csv")
    assert labels.tolist() == [[0, 1], [0, 0], [1, 0]] and names == ["2", "3"]
    (tmp_path / "y.csv").write_text("x,label\na,NA\nb,-1\nc,None\nd,nan\n")
    labels, names = read_labels(tmp_path / "y.csv")
    assert labels.tolist() == [[1, 0], [0, 0], [0, 1], [0, 0]]
    assert names == ["NA", "None"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.csv", None, "No such file .*none.csv"),
        ("labels.txt", b"cat", "a csv, npz, npy or json file, got .txt"),
        ("scores.csv", b"cat,dog\n1,0.3\n1,1\n", "{'dog': '0.3'}"),
        ("comma.csv", b"cat,red,dog,cow\n1,0,1\n0,1,0\n", "none below 'cow'"),
        ("camera.csv", b"id,cat,dog,camera\n1,0,1,3\n", "{'camera': '3'}"),
        ("yes.csv", b"cat,dog\nyes,no\n", "{'cat': 'yes', 'dog': 'no'}"),
        ("typo.csv", b"cat,dog\n1,0\n1,O\n", "{'dog': 'O'}"),
        ("more.csv", b"cat,dog\n1,0,1\n", "saw 3; the first line is 'cat,dog'"),
        ("numbers.csv", b"1,0\n0,1\n", "a header that names the classes"),
        ("two.csv", b"a,1,0\nb,0,1\n", "a header that names the classes"),
        ("classes.csv", b"y\n3\n2\n3\n", "or one called labels with class names"),
        ("lists.csv", b"labels\n['cat']\n", r"separated by \| or ;, got"),
        ("rows.csv", b"id,label\na,cat\na,dog\n", "one row per sample in 'id'"),
        ("twice.csv", b"cat,cat\n1,0\n", r"unique, not empty, got \['cat'\]"),
        (
            "nameless.csv",
            b"a.jpg,1,0,0\nb.jpg,0,1,0\n",
            r"unique, not empty, got \['0'\]",
        ),
        ("lone.csv", b"cat\n1\n0\n", "two or more columns of 0 and 1, .*'cat': '1'"),
    ],
)
def test_a_broken_file_gives_one_sentence(tmp_path, capsys, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main(["preview", str(tmp_path / name)]) == 1
    error = capsys.readouterr().err
    assert re.search(said, error) and error.count("\n") == 1, error


def test_the_command_prints_the_table_and_draws_it(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    file, picture = tmp_path / "labels.csv", tmp_path / "memory.png"
    pd.DataFrame(LABELS, columns=NAMES).to_csv(file, index=False)
    options = ["--size", "100", "--rho", "0.5", "--picture"]
    assert main(["preview", str(file), *options, str(picture)]) == 0
    options = {"rho": 0.5, "class_names": NAMES}
    assert capsys.readouterr().out == f"{prslib.preview(LABELS, 100, **options)}\n"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_file_is_previewed_under_the_names_of_its_classes(tmp_path):
    file = tmp_path / "labels.csv"
    file.write_text("cat,dog\n1,0\n0,1\n1,0\n")
    assert prslib.preview(str(file), 1).class_names == ("cat", "dog")
    for names in (["a", "b"], np.array(["a", "b"])):
        assert prslib.preview(file, 1, class_names=names).class_names == ("a", "b")
