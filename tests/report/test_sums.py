"""Committed numbers are those that a command has written: digests tell."""

from multiprocessing import get_context

import pytest

from prslib.paths import SUMS, project_root
from prslib.report.build import digest, read_sums, write_sums

ROOT = project_root()
WRITTEN = {
    **{file.parent: ".csv .xz" for file in ROOT.glob(f"figures/*/{SUMS}")},
    ROOT / "data": ".npz .pth",
    ROOT / "docs" / "report": ".md",
    ROOT / "prslib" / "published": ".csv",
}


@pytest.mark.parametrize("folder", WRITTEN, ids=lambda folder: folder.name)
def test_committed_files_are_those_that_were_written(folder):
    kinds = WRITTEN[folder].split()
    files = [file for file in folder.iterdir() if file.suffix in kinds]
    sums = {file.name: digest(file) for file in files if file.name != "README.md"}
    assert len(sums) > 0 and sums == read_sums(folder)


def test_a_list_keeps_the_others_and_forgets_what_is_gone(tmp_path):
    a, b = tmp_path / "a.csv", tmp_path / "b.csv"
    for file in (a, b):
        file.write_text("1")
    write_sums(tmp_path, [a, b])
    a.write_text("2")  # by hand
    before = read_sums(tmp_path)
    write_sums(tmp_path, [b])
    assert read_sums(tmp_path) == before and before["a.csv"] != digest(a)
    a.unlink()
    write_sums(tmp_path, [])
    assert read_sums(tmp_path) == {"b.csv": digest(b)}


def list_forty(folder, letter, barrier):
    barrier.wait()
    for number in range(40):
        file = folder / f"{letter}{number}.csv"
        file.write_text(letter)
        write_sums(folder, [file])


def test_two_processes_lose_no_line_of_each_other(tmp_path):
    context = get_context("spawn")
    barrier = context.Barrier(2)
    arguments = [(tmp_path, letter, barrier) for letter in "ab"]
    processes = [context.Process(target=list_forty, args=each) for each in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert len(read_sums(tmp_path)) == 80
