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
from prslib import checks, label_files
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
    assert lines[1].split() == [
        "class",
        "group",
        "stream",
        "of",
        "mean",
        "quota",
        "prs",
    ]
    minority = frame[frame["group"] == "minority"]
    (line,) = [line for line in lines if line.startswith("all minority")]
    cells = line.split()
    assert cells[:3] == ["all", "minority", "minority"]
    assert cells[-1] == str(minority["prs"].sum())


def test_its_advice_follows_classes_below_half_of_the_mean():
    rare = np.arange(120) % 10 == 0
    some = prslib.preview(np.stack([~rare, rare], axis=1), 10)
    assert "1 of 2" in some.advice and "CBRS" in some.advice
    alike = prslib.preview(np.arange(120) % 3, 10)
    assert "take CRS" in alike.advice and str(alike).endswith(alike.advice)


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


NUMBERS = LABELS.argmax(axis=1)


@pytest.mark.parametrize(
    ("labels", "rows"),
    [
        (LABELS.astype(float), LABELS),
        (pd.DataFrame(LABELS * 1, columns=NAMES), LABELS),
        (NUMBERS, np.eye(4, dtype=bool)[NUMBERS]),
    ],
)
def test_labels_of_any_form_are_the_same(labels, rows):
    made = [prslib.preview(each, 50, class_names=NAMES) for each in (labels, rows)]
    assert str(made[0]) == str(made[1])


@pytest.mark.parametrize(
    ("labels", "options", "match"),
    [
        (LABELS * 2, {}, "labels: expected 0 and 1, .*, got 2"),
        (np.zeros((5, 3)), {}, "a sample with a label, got 5 samples without any"),
        (LABELS, {"class_names": ["cat"]}, "expected 4 class names, got 1"),
        (LABELS, {"class_names": ["a", "b", "c", "a"]}, "each class, got 'a' repeated"),
        (LABELS, {"class_names": ["a", "b", "c", pd.NA]}, "got an empty one"),
        (LABELS, {"methods": ["gss"]}, "unknown method 'gss'; known methods: cbrs, c"),
        (LABELS, {"size": 0}, "size must be at least 1"),
        (LABELS, {"unlabelled": "keep"}, "unknown unlabelled 'keep'"),
    ],
)
def test_other_arguments_are_refused(labels, options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        prslib.preview(labels, **{"size": 10} | options)


ROWS = np.array([[1, 0], [1, 1], [0, 0]], dtype=bool)
COCO = coco_json([5, 7, 9], "abc", ROWS, ["cat", "dog"])
# the same labels of two classes in each form that is read
CSV = {
    "columns.csv": "cat,dog\n1,0\n1,1\n0,0\n",
    "named.csv": "\ufeffimage;cat;dog\r\na;1;0\r\nb;1;1\r\nc;0;0\r\n\r\n",
    "words.tsv": "cat\tdog\nTrue\tFalse\nTrue\tTrue\nFalse\tFalse\n",
    "single.csv": 'category\ncat\ncat|dog\n""\n',
    "unknown.csv": "image,cat,dog\na,1,\nb,1.0,1\nc,nan,-1\n",
    "frame.csv": ",cat,dog\n0,1,0\n1,1,1\n0,0,0\n",
    "labels.csv": "image,labels\na,cat\nb,cat; dog\nc,\n",
    "unknown_labels.csv": "image,labels\na,cat\nb,cat; dog\nc,nan\n",
    "boxes.csv": "image,width,class\na,9,cat\nb,8,cat|dog\nc,9,\n",
    "mac.csv": "cat,dog\r1,0\r1,1\r0,0\r",
    "piped.csv": "cat|dog\n1|0\n1|1\n0|0\n",
    "savetxt.csv": "# cat,dog\n1.000e+00,0.000e+00\n+1,01\n-0.0,0\n",
    "excel.csv": "sep=;\ncat;dog\n1;0\n1;1\n0;0\n",
    "comment.csv": "# made by me\ncat,dog\n1,0\n1,1\n0,0\n",
    "quoted.csv": 'cat,"dog"\n1,0\n1,1\n0,0\n',
}
FILES = {name: text.encode() for name, text in CSV.items()}
FILES["utf16.csv"] = CSV["columns.csv"].encode("utf-16")
FILES["zipped.csv.gz"] = gzip.compress(FILES["columns.csv"])
FILES["coco.json"] = json.dumps(COCO).encode()


@pytest.mark.parametrize("name", FILES)
def test_labels_are_read_from_csv_and_coco(tmp_path, name):
    (tmp_path / name).write_bytes(FILES[name])
    labels, names = read_labels(tmp_path / name)
    assert names == ("cat", "dog")
    assert (labels == ROWS).all()


def test_arrays_are_read_and_what_a_file_holds_decides_not_its_ending(tmp_path):
    np.savez(tmp_path / "y.npz", labels=ROWS, names=[b"cat", b"dog"])
    labels, names = read_labels(str(tmp_path / "y.npz"))
    assert (labels == ROWS).all() and names == ("cat", "dog")
    for save, ending in ((np.save, "npz"), (np.savez, "npy")):
        with open(tmp_path / f"numbers.{ending}", "wb") as stream:
            save(stream, [0, 2, 0])
        labels, names = read_labels(tmp_path / f"numbers.{ending}")
        assert labels.tolist() == [0, 2, 0] and names is None


def test_names_in_quotes_may_hold_lines_separators_and_accents(tmp_path):
    file = tmp_path / "y.csv"
    file.write_text('"cat\n(big); or lynx;",dog\n1,0\n0,1\n')
    assert read_labels(file)[1] == ("cat (big); or lynx;", "dog")
    file.write_text("labels\ncaf\u00e9\ncafe\u0301\n", encoding="utf-8")
    assert read_labels(file)[1] == ("caf\u00e9",)
    file.write_bytes("caf\u00e9,dog\n1,0\n".encode("cp1252"))
    assert read_labels(file)[1] == ("caf\u00e9", "dog")


def test_what_was_understood_is_told(tmp_path, capsys):
    file = tmp_path / "y.csv"
    file.write_text('labels\nNA|cat\n""\nnull\n')
    assert read_labels(file)[1] == ("NA", "cat", "null")
    told = "class names in 'labels'; 3 rows, 1 without a label; 3 classes: NA, cat, nul"
    assert told in capsys.readouterr().err
    file.write_text("id;a;b\x1b[31m\nx;1;\ny;0;1\n")
    labels, names = read_labels(file)
    assert names == ("a", "b?[31m")
    told = "separated by ';', 2 of them with 0 and 1; 2 rows, 0 without a label; 2 clas"
    assert told in capsys.readouterr().err
    assert prslib.preview(labels, 2, class_names=["a", "b\x1b"]).class_names[1] == "b?"


def test_files_with_columns_need_pandas_and_arrays_do_not(tmp_path, monkeypatch):
    (tmp_path / "y.csv").write_text("cat,dog\n1,0\n")
    np.save(tmp_path / "y.npy", LABELS)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert read_labels(tmp_path / "y.npy")[0].shape == (3000, 4)
    with pytest.raises(ModuleNotFoundError, match=r"package pandas, .*'\.\[data\]'"):
        read_labels(tmp_path / "y.csv")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.csv", None, "expected a file"),
        ("labels.xlsx", b"", "expected a file that ends with .csv"),
        ("header.csv", b"cat,dog\n", "expected a header and a row per sample"),
        ("short.csv", b"cat,dog\n1,0\n1\n", "of 2 cells each, got fewer in row 2"),
        ("long.csv", b"cat,dog\n1,0\n1,0,1\n", "Expected 2 fields in line 3, saw 3"),
        ("numbers.csv", b"1,0\n1,1\n", "expected a header that names the classes"),
        ("scores.csv", b"cat,dog\n1,0.3\n1,1\n", "with '0.3'"),
        ("gap.csv", b"id,cat,dog,eel\na,1,x,0\n", "cat, dog, eel with 'x'"),
        ("twice.csv", b"cat,cat\n1,0\n", "a name for each class, got 'cat' repeat"),
        ("unnamed.csv", b"cat,,dog\n1,0,1\n", "for each class, got an empty one"),
        ("list.csv", b"cat\ndog\ncat\n", "one called labels with class names, got"),
        ("commas.csv", b'labels\n"cat,dog"\n', r"separated by \| or ;, got 'cat,dog'"),
        ("lists.csv", b"labels\n['cat']\n", r"'\|'.join\(names\)"),
        ("space.csv", b"tags\nx\ny\nx y\n", r"separated by \| or ;, got 'x y'"),
        ("rows.csv", b"id,label\na,cat\na,dog\n", r"got 'a' in .*frame.groupby\('id'"),
        ("utf16.csv", "cat,dog\n1,0\n".encode("utf-16-le"), "save it as UTF-8"),
        ("cut.csv.gz", gzip.compress(b"cat,dog\n1,0\n", mtime=0)[:-9], "EOFError"),
        ("quote.csv", b'label\n"cat\n', "unexpected end of data"),
        ("broken.npz", b"PK", "labels in .*ValueError"),
        ("broken.npy", b"\x93NUMPY", "labels in .*ValueError"),
        ("broken.json", b"{", "COCO's instances in"),
        ("list.json", b"[]", "COCO's instances in"),
        ("other.json", b'{"images": [], "annotations": []}', "'categories'"),
    ],
)
def test_a_broken_file_gives_one_sentence(tmp_path, capsys, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main(["preview", str(tmp_path / name)]) == 1
    error = capsys.readouterr().err
    assert re.search(said, error) and error.count("\n") == 1, error


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"labels": ROWS * 2}, "expected 0 and 1, and NaN for unknown labels, got 2"),
        ({"labels": np.array(["cat"])}, "class numbers"),
        ({"labels": ROWS, "names": np.array(7)}, "expected 2 class names, got 1"),
        ({"labels": ROWS, "names": np.array(["a", "a"])}, "got 'a' repeated"),
        ({"labels": ROWS, "names": np.array(["a", "b"], object)}, "Object arrays can"),
        ({"y": ROWS, "x": ROWS}, "expected an array 'labels', got y, x"),
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


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "npy", "npz"])
def test_a_gigabyte_at_most_is_read(tmp_path, capsys, monkeypatch, ending):
    for module in (checks, label_files):
        monkeypatch.setattr(module, "LARGEST_FILE", 1000)
    file = tmp_path / f"y.{ending}"
    if ending == "npz":
        np.savez_compressed(file, np.zeros(2000))
    else:
        pack = gzip.compress if ending == "csv.gz" else bytes
        file.write_bytes(pack(b"cat,dog\n" + b"1,0\n" * 1000))
    assert main(["preview", str(file)]) == 1
    assert "a gigabyte at most" in capsys.readouterr().err


def test_the_command_prints_the_table_and_draws_it(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    file, picture = tmp_path / "labels.csv", tmp_path / "memory.png"
    pd.DataFrame(LABELS, columns=NAMES).to_csv(file, index=False)
    options = ["--size", "100", "--rho", "0.5", "--unlabelled", "class", "--picture"]
    assert main(["preview", str(file), *options, str(picture)]) == 0
    options = {"rho": 0.5, "class_names": NAMES, "unlabelled": "class"}
    assert capsys.readouterr().out == f"{prslib.preview(LABELS, 100, **options)}\n"
    assert picture.read_bytes().startswith(b"\x89PNG")
    for wrong in (tmp_path, tmp_path / "none" / "memory.png"):  # before any work
        assert main(["preview", str(file), "--picture", str(wrong)]) == 1
        out, error = capsys.readouterr()
        assert not out and error.endswith(f"got {wrong}\n")


def test_the_picture_shows_the_columns_of_the_table():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    result = prslib.preview(LABELS, 50, class_names=NAMES)
    ax = result.plot(figure.subplots())
    drawn = {line.get_label(): line.get_ydata().tolist() for line in ax.lines}
    table = result.table
    classes = table.pop("class")
    assert table.pop("group") and table.pop("of mean")
    assert drawn == table
    assert [text.get_text() for text in ax.get_xticklabels()] == classes


def test_the_command_prints_names_that_the_terminal_cannot_show(tmp_path):
    file = tmp_path / "labels.csv"
    file.write_text("café,dog\n1,0\n0,1\n", encoding="utf-8")
    command = [sys.executable, "-m", "prslib", "preview", str(file), "--size", "2"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    assert b"caf\\xe9" in subprocess.check_output(command, env=environment)


def test_a_row_per_label_is_refused_wherever_the_label_stands(tmp_path):
    file = tmp_path / "y.csv"
    for header in ("label,file", "file,label", ",file,label"):
        columns = header.split(",")
        rows = [
            {"file": "a", "label": name, "": str(n)} for n, name in enumerate("xyz")
        ]
        lines = [",".join(row[name] for name in columns) for row in rows]
        file.write_text("\n".join([header, *lines]))
        with pytest.raises(ValueError, match="one row per sample in 'file'"):
            read_labels(file)


def test_names_of_several_words_are_classes_if_separators_are_used(tmp_path):
    file = tmp_path / "y.csv"
    file.write_text("# one\n# two\nlabels\nhot dog|dog \nhot\n\ndog\n")
    labels, names = read_labels(file)
    assert names == ("dog", "hot", "hot dog") and len(labels) == 4
