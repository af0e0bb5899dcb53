"""From a NUS-WIDE folder to NUS-WIDEseq."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from real_folders import write_ids, write_nuswide

from prslib.cli import main
from prslib.datasets import load_dataset, nuswide
from prslib.datasets import prepare as command

# six tasks of eight classes, one with nine; a pair of neighbours occurs together twice
CLUSTERS = [nuswide.CLASSES[i * 8 : (i + 1) * 8 + (i == 5)] for i in range(6)]


def corpus_of(prefix):
    images = []
    for cluster in CLUSTERS:
        images += [[name] for name in cluster for _ in range(4)]
        images += [list(pair) for pair in pairwise(cluster)] * 2
    images += [["animal", "wedding"], []]
    return [(f"{prefix}/{i:04d}_{i}.jpg", found) for i, found in enumerate(images)]


EMPTY = len(corpus_of("")) - 1  # row of the image without a label


@pytest.fixture
def nus(tmp_path, monkeypatch):
    halves = {"Train": corpus_of("actor"), "Test": corpus_of("zebra")}
    write_nuswide(tmp_path / "nus", halves, nuswide.CLASSES)
    ids = {"train": [[0, 4], [46, EMPTY]], "test": [[0, 4], [46]]}
    ids["teorg"] = [[0, 1, 4], [46]]
    write_ids(tmp_path / "ids", ids, "nuswide")
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("PRSLIB_DATA", str(tmp_path / "data"))
    return tmp_path


def prepare(root, *more):
    folders = f"--annotations={root / 'nus'}", f"--images={root / 'nus/Flickr'}"
    return main(["prepare", "nuswideseq", "--workers", "1", *folders, *more])


def test_released_ids_are_rows_of_the_official_lists(nus):
    assert prepare(nus, "--ids", str(nus / "ids")) == 0
    dataset = load_dataset("nuswideseq")
    shown = [dataset.class_names.index(name) for name in ("animal", "beach", "clouds")]
    assert dataset.class_task[shown].tolist() == [0, 0, 1]
    groups = [dataset.class_group[column] for column in shown]
    assert groups == ["majority", "minority", "majority"]
    assert np.argwhere(dataset.train.labels).tolist() == [*map(list, enumerate(shown))]
    assert len(dataset.tests["balanced"]) == 3
    assert len(dataset.tests["imbalanced"]) == 4
    assert dataset.stands_for == "NUS-WIDEseq"


@pytest.mark.parametrize("halves", [False, True])
def test_derivation_takes_the_images_at_hand(nus, monkeypatch, halves):
    blank = np.zeros((256, 256, 3), dtype=np.uint8)
    monkeypatch.setattr(command, "read_image", lambda *_: blank)  # hundreds
    gone, listed = corpus_of("actor")[:2], corpus_of("actor")[2:-2]
    for file, _ in gone:
        (nus / "nus/Flickr" / file).unlink()
    few = replace(nuswide.PREPARED, per_class=4, balanced_halves=halves)
    monkeypatch.setitem(command.SETS, "nuswideseq", few)
    assert prepare(nus) == 0
    with pytest.warns(UserWarning, match="NUS-WIDEseq is our own derivation") as caught:
        dataset = load_dataset("nuswideseq")
    assert len(caught) == 1
    sizes = [len(cluster) for cluster in CLUSTERS]
    # the largest task, which holds the last classes, comes first
    assert dataset.class_task.tolist() == np.repeat([1, 2, 3, 4, 5, 0], sizes).tolist()
    assert dataset.tests["balanced"].labels.sum(axis=0).tolist() == [4] * 49
    names = [name for _, names in listed for name in names]
    expected = [names.count(name) - 2 * halves for name in dataset.class_names]
    assert dataset.class_freq.tolist() == expected
    assert dataset.train.inputs.shape[1:] == (256, 256, 3)


@pytest.mark.parametrize("content", ["0\n" * (EMPTY + 2), "7\n" * (EMPTY + 1)])
def test_label_files_of_other_length_or_other_digits(nus, capsys, content):
    file = nus / "nus/Groundtruth/TrainTestLabels/Labels_toy_Train.txt"
    file.write_text(content)
    assert prepare(nus, "--ids", str(nus / "ids")) == 1
    said = capsys.readouterr().err
    assert f"{EMPTY + 1} lines of 0 or 1 in {file}" in said
    assert "digits, or others" in said
    assert not (nus / "data/nuswideseq").exists()


LISTED = "actor\\0001_1.jpg\r\ncaf\u00e9\\0002_2.jpg\r\n\r\nactor\\0003_3.jpg\r\n\r\n"


def write_lists(folder, listed, column):
    (folder / "ImageList").mkdir(parents=True)
    (folder / "ImageList/TrainImagelist.txt").write_bytes(listed)
    labels_folder = folder / "Groundtruth/TrainTestLabels"
    labels_folder.mkdir(parents=True)
    for name in nuswide.CLASSES:
        (labels_folder / f"Labels_{name}_Train.txt").write_bytes(column)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_lists_are_read_in_any_common_encoding_and_with_blank_lines(tmp_path, encoding):
    column = "1\r\n0\r\n\r\n1\r\n".encode(encoding)
    write_lists(tmp_path, LISTED.encode(encoding), column)
    half = nuswide.read_half(tmp_path, is_test=False)
    names = ["actor/0001_1.jpg", "caf\u00e9/0002_2.jpg", "actor/0003_3.jpg"]
    assert half.files.tolist() == names
    assert half.labels[:, 0].tolist() == [True, False, True]


@pytest.mark.parametrize(
    "listed",
    [
        "\ufeffa.jpg\n\ufeffb \u2028.jpg\n",  # two files joined
        "a.jpg\rb \u2028.jpg\r",
        "a.jpg\r\nb \u2028.jpg\r\n\x1a",  # the end of a file of DOS
    ],
)
def test_only_line_ends_end_a_name(tmp_path, listed):
    write_lists(tmp_path, listed.encode(), b"1\n0\n")
    half = nuswide.read_half(tmp_path, is_test=False)
    assert half.files.tolist() == ["a.jpg", "b \u2028.jpg"]


def test_an_empty_list_is_named(tmp_path):
    write_lists(tmp_path, b"\r\n", b"1\n0\n")
    with pytest.raises(ValueError, match=r"TrainImagelist.*\.jpg, got none"):
        nuswide.read_half(tmp_path, is_test=False)


@pytest.mark.parametrize(
    "line", ["<html>", "# photos", '"actor/1.jpg"', "actor/1.jpg,1", "actor/1_23.j"]
)
def test_what_is_no_name_is_blamed_on_the_list(tmp_path, line):
    write_lists(tmp_path, f"{line}\n{LISTED}".encode(), b"1 0 1")
    with pytest.raises(ValueError, match=r"names of images in .*TrainImagelist") as it:
        nuswide.read_half(tmp_path, is_test=False)
    assert f"got {line!r}" in str(it.value)


@pytest.mark.parametrize(
    ("listed", "column", "file"),
    [
        (LISTED.encode("utf-16-le"), b"1 0 1", "TrainImagelist"),
        (b"actor\\1.jpg \x81\r\n", b"1", "TrainImagelist"),
        (LISTED.encode(), "1 0 1".encode("utf-32"), "Labels_animal"),
    ],
)
def test_a_list_in_another_encoding_is_named(tmp_path, listed, column, file):
    write_lists(tmp_path, listed, column)
    with pytest.raises(ValueError, match=rf"in .*{file}.*save it as UTF-8"):
        nuswide.read_half(tmp_path, is_test=False)


def test_a_file_that_is_not_there_is_named_with_what_to_unpack(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"TrainImagelist.*got none; unpack"):
        nuswide.read_half(tmp_path, is_test=False)
    write_lists(tmp_path, LISTED.encode(), b"1 0 1")
    (tmp_path / "Groundtruth/TrainTestLabels/Labels_toy_Train.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"Labels_toy.*got none; unpack"):
        nuswide.read_half(tmp_path, is_test=False)
