"""Drawing notebooks, some of which stop."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from prslib import paths
from prslib.cli import main
from prslib.paths import cache_dir, figures_dir, known_notebooks, project_root
from prslib.report import build
from prslib.report.topics import runs_of
from prslib.runs import key_of


@pytest.fixture(autouse=True)
def listed_anew(tmp_path, monkeypatch):
    """Other tests' runs and drawings are not here."""
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path / "figures"))
    build.list_runs.cache_clear()
    yield
    build.list_runs.cache_clear()


@pytest.fixture
def tables(monkeypatch):
    """Names of the tables that a notebook writes, which is not executed."""
    tables = ["{}.csv"]

    def run_notebook(_profile, name, executed, save, redraw):
        executed.touch()
        for table in tables:
            (save / table.format(name)).touch()

    monkeypatch.setattr(build, "run_notebook", run_notebook)
    return tables


def test_two_drawings_at_once_leave_whole_files(monkeypatch):
    both = Barrier(2)

    def run_notebook(_profile, name, executed, save, redraw):
        both.wait()
        executed.touch()
        (save / f"{name}.csv").write_text("value")

    monkeypatch.setattr(build, "run_notebook", run_notebook)
    with ThreadPoolExecutor() as pool:
        list(pool.map(build.draw, ["smoke"] * 2, ["datasets"] * 2))
    assert not build.is_stale("smoke", "datasets")
    assert set(build.read_sums(figures_dir("smoke"))) == {"datasets.csv"}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A file of a package that is hashed in place of prslib."""
    file = tmp_path / "package" / "style.py"
    file.parent.mkdir()
    file.write_text("colour = 1")
    monkeypatch.setattr(build, "PACKAGE", file.parent)
    build.digest_package.cache_clear()
    yield file
    build.digest_package.cache_clear()


@pytest.mark.usefixtures("tables")
def test_code_that_is_edited_during_training_is_not_what_was_drawn(
    package, monkeypatch
):
    def edit(_configs, device):
        package.write_text("colour = 2")

    monkeypatch.setattr("prslib.runs.train", edit)
    monkeypatch.setattr(build, "FORKS", False)
    assert build.execute("smoke", ["datasets", "rho_sweep"]) == {}
    build.digest_package.cache_clear()  # as in the next process
    assert build.is_stale("smoke", "rho_sweep")


def test_a_table_that_is_drawn_no_more_goes(tables):
    for table in ("{}_before.csv", "{}_after.csv"):
        tables[0] = table
        build.draw("smoke", "datasets")
    (file,) = figures_dir("smoke").glob("*.csv")
    assert file.name == "datasets_after.csv"
    assert set(build.read_sums(file.parent)) == {file.name}


@pytest.mark.usefixtures("tables")
def test_two_checkouts_with_one_cache_draw_and_keep_their_own(tmp_path, monkeypatch):
    build.draw("smoke", "datasets")
    first = figures_dir("smoke") / "datasets.csv"
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path / "other"))
    assert build.is_stale("smoke", "datasets")
    build.draw("smoke", "datasets")
    assert not build.is_stale("smoke", "datasets") and first.is_file()


def test_a_redraw_trains_nothing_keeps_the_tables_and_leaves_no_record(
    monkeypatch, asked
):
    """What it has drawn is not up to date, as the tables may be of other runs."""

    def run_notebook(_profile, name, executed, save, redraw):
        executed.touch()
        (save / f"{name}.png").write_bytes(b"redrawn" if redraw else b"drawn")
        if not redraw:
            (save / f"{name}.csv").touch()

    monkeypatch.setattr(build, "run_notebook", run_notebook)
    build.draw("smoke", "rho_sweep")
    command = ["figures", "--profile", "smoke", "rho_sweep", "--redraw"]
    assert main(command) == 0
    assert asked == []
    assert list(build.read_sums(figures_dir("smoke"))) == ["rho_sweep.csv"]
    picture = figures_dir("smoke") / "rho_sweep.png"
    assert picture.read_bytes() == b"redrawn"
    assert build.is_stale("smoke", "rho_sweep")
    assert not build.record_file("smoke", "rho_sweep").exists()


@pytest.fixture
def asked(monkeypatch):
    """Lists of runs that are to be trained, and are not."""
    asked = []
    monkeypatch.setattr(
        "prslib.runs.train", lambda configs, device: asked.append(configs)
    )
    return asked


def test_the_runs_of_all_notebooks_are_one_sweep(asked):
    names = ["main_results", "imbalanced_test", "rho_sweep"]
    build.train("smoke", names)
    (configs,) = asked
    keys = [key_of(config) for config in configs]
    needed = {key_of(config) for name in names for config in runs_of("smoke", name)}
    assert set(keys) == needed
    assert len(keys) == len(needed)  # each once


def test_shards_are_cut_from_all_runs_whatever_is_stored(asked):
    build.train("smoke", ["main_results"])
    every = sorted(map(key_of, asked.pop()))
    runs = cache_dir() / "runs"
    runs.mkdir(parents=True)
    (runs / f"{every[0]}.npz").touch()
    for number in (1, 2, 3):
        build.train("smoke", ["main_results"], (number, 3))
        assert sorted(map(key_of, asked.pop())) == every[number - 1 :: 3]


def test_other_files_among_the_notebooks_do_not_count(tmp_path, monkeypatch):
    notebooks = tmp_path / "notebooks"
    shutil.copytree(project_root() / "notebooks", notebooks)
    (tmp_path / "params").mkdir()
    (notebooks / "._rho_sweep.ipynb").write_bytes(b"\0\5\26\7")
    (notebooks / "Untitled.ipynb").write_text('{"cells": []}')
    shutil.copy(notebooks / "rho_sweep.ipynb", notebooks / "rho_sweep-Copy1.ipynb")
    before = known_notebooks("quick")
    monkeypatch.setattr(paths, "project_root", lambda: tmp_path)
    assert known_notebooks("quick") == before


def test_what_was_tried_in_jupyterlab_is_no_commands_setting(tmp_path, monkeypatch):
    shutil.copytree(project_root() / "notebooks", tmp_path / "notebooks")
    file = tmp_path / "notebooks" / "rho_sweep.ipynb"
    before = list(map(key_of, runs_of("quick", "rho_sweep")))
    monkeypatch.setattr(paths, "project_root", lambda: tmp_path)
    text = file.read_text("utf-8")
    file.write_text(text.replace("memory_size: int = None", "memory_size: int = 7"))
    assert file.read_text("utf-8") != text
    assert list(map(key_of, runs_of("quick", "rho_sweep"))) == before

    def execute_notebook(source, *_, **__):
        assert "memory_size: int = None" in source.read_text("utf-8")

    monkeypatch.setattr("papermill.execute_notebook", execute_notebook)
    build.run_notebook("quick", "rho_sweep", tmp_path / "executed.ipynb", tmp_path)
