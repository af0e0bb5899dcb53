"""A preview counts what a sampler keeps; its label files are read and checked."""

import gzip
import json
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from real_folders import coco_json

import prslib
from prslib.cli import main
from prslib.previews import METHODS, read_labels
from prslib.samplers import make_sampler

RNG = np.random.default_rng(0)
LABELS = RNG.random((3000, 4)) < [0.5, 0.3, 0.02, 0.0]
NAMES = ("cat", "dog", "eel", "fly")


@pytest.mark.filterwarnings("ignore:.*without a label")
def test_it_holds_what_the_samplers_hold():
    result = prslib.preview(LABELS, 100, rho=0.5, seed=3, class_names=NAMES)
    assert result.class_counts.keys() == set(METHODS) == {"cbrs", "crs", "ocdm", "prs"}
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
    assert result.unlabelled == (~LABELS.any(axis=1)).sum()


def test_its_table_is_a_data_frame_and_its_text_adds_the_groups():
    result = prslib.preview(LABELS, 100, ["prs"], class_names=NAMES)
    frame = pd.DataFrame(result.table)
    assert frame["class"].tolist() == list(NAMES)
    assert frame["group"].tolist() == ["majority", "moderate", *["minority"] * 2]
    assert (np.diff(frame["stream"]) <= 0).all()
    lines = str(result).splitlines()
    assert lines[1].split() == ["class", "group", "stream", "quota", "prs"]
    minority = frame[frame["group"] == "minority"]
    cells = lines[-1].split()
    assert cells[:3] == ["all", "minority", "minority"]
    assert cells[-1] == str(minority["prs"].sum())


@pytest.mark.parametrize(
    "labels", [LABELS.astype(int), LABELS.astype(float), pd.DataFrame(LABELS * 1)]
)
def test_labels_of_any_number_type_are_the_same(labels):
    results = [prslib.preview(rows, 50, ["prs"]) for rows in (LABELS, labels)]
    assert str(results[0]) == str(results[1])


def test_samples_without_a_label_may_be_a_class():
    with warnings.catch_warnings(record=True) as told:  # the text tells how many
        dropped = prslib.preview(LABELS, 100, seed=3, class_names=NAMES)
        kept = prslib.preview(
            LABELS, 100, seed=3, class_names=NAMES, unlabelled="class"
        )
    assert not told
    empty = (~LABELS.any(axis=1)).sum()
    assert dropped.unlabelled == kept.unlabelled == empty
    assert f"3000 samples, {empty} of them without a label" in str(dropped)
    assert kept.class_names == (*NAMES, "(no label)")
    assert kept.class_freq.tolist() == [*dropped.class_freq.tolist(), empty]
    sampler = make_sampler("prs", 100, 4, 3, rho=0.0, unlabelled="class")
    sampler.place(LABELS)
    stored = sampler.labels.any(axis=1)
    counts = [*sampler.class_counts.tolist(), (~stored).sum()]
    assert kept.class_counts["prs"].tolist() == counts
    assert counts[-1] > 20
    np.testing.assert_allclose(kept.quota, [25, 25, 25, 0, 25])


def test_class_numbers_are_labels_too():
    numbers = LABELS.argmax(axis=1)
    one_hot = np.eye(4, dtype=bool)[numbers]
    results = [
        prslib.preview(rows, 50, ["prs"], class_names=NAMES)
        for rows in (numbers, one_hot)
    ]
    assert str(results[0]) == str(results[1])


@pytest.mark.parametrize(
    ("labels", "options", "match"),
    [
        (LABELS * 2, {}, "labels: expected 0 and 1, .*, got 2"),
        ([-1, 0], {}, "labels: expected class numbers from 0 to 999999, got -1"),
        (np.zeros((0, 3)), {}, "a sample with a label, got 0 samples without any"),
        ([[0, 1], [1, 0]], {}, "labels: .*got a list of list; scikit-learn"),
        (["cat"], {}, "labels: .*got a list of str"),
        (np.zeros((5, 3)), {}, "a sample with a label, got 5 samples without any"),
        (LABELS, {"class_names": ["cat"]}, "expected 4 class names, got 1"),
        (LABELS, {"class_names": ["a", "b", "c", "a"]}, "each class, got 'a' repeated"),
        (LABELS, {"class_names": ["a", "b", "c", np.nan]}, "got an empty one"),
        (LABELS, {"class_names": ["a", "b", "c", pd.NA]}, "got an empty one"),
        (LABELS, {"class_names": ["a b", "a  b", "c", "d"]}, "'a b' repeated"),
        (LABELS, {"methods": [None]}, "unknown method 'none'"),
        (
            LABELS,
            {"methods": ["gss"]},
            "unknown method 'gss'; known methods: cbrs, crs",
        ),
        (LABELS, {"size": 0}, "size must be at least 1"),
        (LABELS, {"unlabelled": "keep"}, "unknown unlabelled 'keep'"),
    ],
)
def test_other_arguments_are_refused(labels, options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        prslib.preview(labels, **{"size": 10} | options)


ABOUT = "class", "group"  # columns that are no numbers
ROWS = np.array([[1, 0], [1, 1], [0, 0]], dtype=bool)


def files(folder):
    """Write the same labels of two classes in each form that is read."""
    csvs = {
        "columns.csv": "cat,dog\n1,0\n1,1\n0,0\n",
        "named.csv": "\ufeffimage;cat;dog\r\na;1;0\r\nb;1;1\r\nc;0;0\r\n\r\n",
        "words.tsv": "cat\tdog\nTrue\tFalse\nTrue\tTrue\nFalse\tFalse\n",
        "single.csv": 'category\ncat\ncat|dog\n""\n',
        "unknown.csv": "image,cat,dog\na,1,\nb,1.0,1\nc,nan,-1\n",
        "frame.csv": ",cat,dog\n0,1,0\n1,1,1\n0,0,0\n",
        "labels.csv": "image,labels\na,cat\nb,cat; dog\nc,\n",
        "unknown_labels.csv": "image,labels\na,cat\nb,cat; dog\nc,nan\n",
        "mac.csv": "cat,dog\r1,0\r1,1\r0,0\r",
        "piped.csv": "cat|dog\n1|0\n1|1\n0|0\n",
        "commas_at_ends.csv": "cat,dog,\n1,0,\n1,1,\n0,0,\n",
        "savetxt.csv": "# cat,dog\n1.000e+00,0.000e+00\n+1,01\n-0.0,0\n",
        "quoted.csv": 'cat,"dog"\n1,0\n1,1\n0,0\n',
        "read_again.csv": "Unnamed: 0,cat,dog\n0,1,0\n1,1,1\n0,0,0\n",
    }
    for name, text in csvs.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    (folder / "utf16.csv").write_text(csvs["columns.csv"], encoding="utf-16")
    (folder / "zipped.csv.gz").write_bytes(gzip.compress(csvs["columns.csv"].encode()))
    np.savez(folder / "labels.npz", labels=ROWS, names=["cat", "dog"])
    np.savez(folder / "bytes.npz", labels=ROWS, names=np.array([b"cat", b"dog"]))
    content = coco_json([5, 7, 9], "abc", ROWS, ["cat", "dog"])
    (folder / "coco.json").write_text(json.dumps(content))
    return [
        folder / name
        for name in (
            *csvs,
            "utf16.csv",
            "zipped.csv.gz",
            "labels.npz",
            "bytes.npz",
            "coco.json",
        )
    ]


def test_labels_are_read_from_csv_npz_and_coco(tmp_path):
    for file in files(tmp_path):
        labels, names = read_labels(str(file))
        assert names == ("cat", "dog"), file
        assert (labels == ROWS).all(), file
    (tmp_path / "windows.csv").write_bytes("caf\u00e9,dog\n1,0\n".encode("cp1252"))
    assert read_labels(tmp_path / "windows.csv")[1] == ("caf\u00e9", "dog")
    # what a file holds decides, not its ending
    for save, endings in ((np.save, ("npy", "npz")), (np.savez, ("npz", "npy"))):
        for ending in endings:
            with open(tmp_path / f"numbers.{ending}", "wb") as stream:
                save(stream, [0, 2, 0])
            labels, names = read_labels(tmp_path / f"numbers.{ending}")
            assert labels.tolist() == [0, 2, 0] and names is None


def test_accents_in_one_or_two_characters_are_one_class(tmp_path):
    file = tmp_path / "y.csv"
    file.write_text("labels\ncaf\u00e9\ncafe\u0301\n", encoding="utf-8")
    labels, names = read_labels(file)
    assert names == ("caf\u00e9",) and labels.all()


def test_names_in_quotes_may_hold_lines_and_delimiters(tmp_path):
    file = tmp_path / "quoted.csv"
    file.write_text('"cat\n(big); or lynx;",dog\n1,0\n0,1\n')
    labels, names = read_labels(file)
    assert labels.tolist() == [[True, False], [False, True]]
    table = prslib.preview(labels, 2, "prs", class_names=names).table
    assert table["class"] == ["cat (big); or lynx;", "dog"]


def test_what_was_understood_is_told(tmp_path, capsys):
    file = tmp_path / "y.csv"
    file.write_text('labels\nNA|cat\n""\nnull\n')
    labels, names = read_labels(file)
    assert names == ("NA", "cat", "null")
    assert labels.tolist() == [[True, True, False], [False] * 3, [False, False, True]]
    told = "one column, class names in 'labels'; 3 rows, 1 without a label; "
    told += "3 classes: NA, cat, null\n"
    assert capsys.readouterr() == ("", f"{file}: {told}")
    file.write_text("id;a;b\x1b[31m\nx;1;\ny;0;1\n")
    read_labels(file)
    assert capsys.readouterr().err.endswith(
        "separated by ';', 2 of them with 0 and 1; 2 rows, 0 without a label; "
        "2 classes: a, b?[31m\n"
    )
    assert "\x1b" not in str(prslib.preview(labels, 2, class_names=["a", "b\x1b", "c"]))


def test_files_with_columns_need_pandas_and_arrays_do_not(tmp_path, monkeypatch):
    (tmp_path / "y.csv").write_text("cat,dog\n1,0\n")
    np.save(tmp_path / "y.npy", LABELS)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert read_labels(tmp_path / "y.npy")[0].shape == (3000, 4)
    with pytest.raises(ModuleNotFoundError, match=r"package pandas, .*'\.\[data\]'"):
        read_labels(tmp_path / "y.csv")


def test_names_come_from_a_data_frame():
    frame = pd.DataFrame(LABELS, columns=NAMES)
    result = prslib.preview(frame, 50, "prs")
    assert str(result) == str(prslib.preview(LABELS, 50, ["prs"], class_names=NAMES))
    of_index = prslib.preview(LABELS, 50, "prs", class_names=frame.columns)
    assert str(of_index) == str(result)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.csv", None, "expected a file"),
        ("labels.xlsx", b"", "expected a file that ends with .csv"),
        ("empty.csv", b"", "expected a header and a row per sample, got 0 rows"),
        ("short.csv", b"cat,dog\n1,0\n1\n", "expected 2 cells in row 2, got 1"),
        ("numbers.csv", b"1,0\n1,1\n", "expected a header that names the classes"),
        ("scores.csv", b"cat,dog\n1,0.3\n1,1\n", "called labels with class names"),
        ("gap.csv", b"id,cat,dog,eel\na,1,,0\n", "others in 'id', 'dog'; leave"),
        ("twice.csv", b"cat,cat\n1,0\n", "a name for each class, got 'cat' repeat"),
        ("unnamed.csv", b"cat,,dog\n1,0,1\n", "for each class, got an empty one"),
        ("list.csv", b"cat\ndog\ncat\n", "one called labels with class names, got"),
        ("blanks.csv", b"cat dog\n1 0\n", "called labels .*, got cat dog"),
        ("commas.csv", b'labels\n"cat,dog"\n', r"separated by \| or ;, got 'cat,dog'"),
        ("lists.csv", b"labels\n['cat']\n", r"write '\|'.join\(names\)"),
        ("utf16.csv", "cat,dog\n1,0\n".encode("utf-16-le"), "save it as UTF-8"),
        (
            "rows.csv",
            b"id,label\na,cat\na,dog\n",
            "one row per sample in 'id', got 'a'",
        ),
        ("space.csv", b"tags\nx\ny\nx y\n", r"separated by \| or ;, got 'x y'"),
        ("yes.csv", b"id,cat,dog\nx,0,yes\n", "got id, cat, dog, with 'yes'"),
        ("one.csv", b"cat\n1\n0\n", "called labels with class names, got cat"),
        ("cut.csv.gz", gzip.compress(b"cat,dog\n1,0\n", mtime=0)[:-9], "EOFError"),
        ("quote.csv", b'label\n"cat\n', "unexpected end of data"),
        ("broken.npz", b"PK", "labels in .*ValueError"),
        ("broken.npy", b"\x93NUMPY", "labels in .*ValueError"),
        ("broken.json", b"{", "COCO's instances in"),
        ("list.json", b"[]", "COCO's instances in .* lists images, categories, ann"),
    ],
)
def test_a_broken_file_gives_one_sentence(tmp_path, capsys, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main(["preview", str(tmp_path / name)]) == 1
    error = capsys.readouterr().err
    assert re.search(said, error) and error.count("\n") == 1


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"labels": ROWS * 2}, "expected 0 and 1, and NaN for unknown labels, got 2"),
        ({"labels": np.array(3)}, "got int64 ()"),
        ({"labels": np.array(["cat"])}, "class numbers"),
        ({"labels": np.array([10**12])}, "class numbers from 0 to 999999"),
        ({"labels": ROWS, "names": np.array(7)}, "expected 2 class names, got 1"),
        ({"labels": ROWS, "names": np.array(["a", "a"])}, "got 'a' repeated"),
        (
            {"labels": ROWS, "names": np.array(["a", "b"], object)},
            "Object arrays cannot be loaded",
        ),
        ({"labels": ROWS, "names": np.array(["a", "b", "c"])}, "expected 2 class nam"),
    ],
)
def test_arrays_that_are_no_labels_are_refused_by_their_file(
    tmp_path, capsys, arrays, said
):
    file = tmp_path / "y.npz"
    np.savez(file, **arrays)
    assert main(["preview", str(file)]) == 1
    error = capsys.readouterr().err
    assert said in error and str(file) in error and error.count("\n") == 1


def test_an_npz_file_without_labels_is_told_what_it_has(tmp_path, capsys):
    np.savez(tmp_path / "y.npz", y=ROWS, x=ROWS)
    assert main(["preview", str(tmp_path / "y.npz")]) == 1
    assert "expected an array 'labels', got y, x" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"annotations": [{"image_id": 99, "category_id": 1}]}, "annotation of 99"),
        ({"annotations": [{"image_id": "5", "category_id": 1}]}, "annotation of '5'"),
        ({"annotations": [{"image_id": 5, "category_id": 9}]}, "category_id among"),
        ({"annotations": [{"image_id": 5, "caption": "x"}]}, "category_id among"),
        ({"categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "a "}]}, "repeated"),
        ({"categories": [{"id": 1, "name": None}]}, "got an empty one"),
        ({"annotations": None}, "got no ['annotations']"),
    ],
)
def test_what_cocos_file_lacks_is_said(tmp_path, capsys, change, said):
    content = coco_json([5, 7, 9], "abc", ROWS, ["cat", "dog"]) | change
    (tmp_path / "y.json").write_text(json.dumps(content))
    assert main(["preview", str(tmp_path / "y.json")]) == 1
    error = capsys.readouterr().err
    assert said in error and "y.json" in error and error.count("\n") == 1


def test_ids_of_coco_have_gaps_or_are_text_and_images_need_no_file(tmp_path):
    content = coco_json([5, 7, 9], "abc", ROWS, ["cat", "dog"])
    for entry in content["categories"]:
        entry["id"] = str(10 * entry["id"])
    for entry in content["annotations"]:
        entry["category_id"] = str(10 * entry["category_id"])
        entry["iscrowd"] = 1
    for entry in content["images"]:
        del entry["file_name"]
    (tmp_path / "y.json").write_text(json.dumps(content))
    labels, names = read_labels(tmp_path / "y.json")
    assert (labels == ROWS).all() and names == ("cat", "dog")


def test_the_command_prints_the_table(tmp_path, capsys):
    pd.DataFrame(LABELS[:, :3], columns=NAMES[:3]).to_csv(
        tmp_path / "labels.csv", index=False
    )
    command = ["preview", str(tmp_path / "labels.csv"), "--size", "100", "--rho", "0.5"]
    assert main(command) == 0
    result = prslib.preview(LABELS[:, :3], 100, rho=0.5, class_names=NAMES[:3])
    assert capsys.readouterr().out == f"{result}\n"


PICTURE = "--picture as a file such as memory.png in a folder that is there"


def test_the_picture_shows_the_columns_of_the_table(tmp_path, capsys):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    result = prslib.preview(LABELS, 50, class_names=NAMES)
    ax = result.plot(figure.subplots())
    drawn = {line.get_label(): line.get_ydata().tolist() for line in ax.lines}
    table = result.table
    assert drawn == {name: table[name] for name in table if name not in ABOUT}
    assert [text.get_text() for text in ax.get_xticklabels()] == table["class"]
    pd.DataFrame(LABELS, columns=NAMES).to_csv(tmp_path / "labels.csv", index=False)
    picture = tmp_path / "memory.png"
    command = ["preview", str(tmp_path / "labels.csv"), "--picture", str(picture)]
    assert main(command) == 0 and picture.read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    for wrong in (tmp_path, tmp_path / "none" / "memory.png"):  # before any work
        assert main([*command[:-1], str(wrong)]) == 1
        assert capsys.readouterr() == ("", f"expected {PICTURE}, got {wrong}\n")


def test_the_command_prints_names_that_the_terminal_cannot_show(tmp_path):
    file = tmp_path / "labels.csv"
    file.write_text("café,dog\n1,0\n0,1\n", encoding="utf-8")
    command = [sys.executable, "-m", "prslib", "preview", str(file), "--size", "2"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert "caf\\xe9" in done.stdout
