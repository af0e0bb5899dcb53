"""Folders that the environment names."""

import pytest

from prslib import paths
from prslib.paths import cache_dir, data_dir, figures_dir, project_root


def test_relative_folders_are_the_same_from_everywhere(tmp_path, monkeypatch):
    names = {
        "PRSLIB_CACHE": "my cache",
        "PRSLIB_FIGURES": "my figures",
        "PRSLIB_DATA": "tests",
    }
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    for folder in (project_root(), project_root() / "notebooks", tmp_path):
        monkeypatch.chdir(folder)
        assert cache_dir() == project_root() / "my cache"
        assert figures_dir("smoke") == project_root() / "my figures" / "smoke"
        assert data_dir() == project_root() / "tests"


def test_absolute_folders_are_as_named(tmp_path, monkeypatch):
    for name in ("PRSLIB_CACHE", "PRSLIB_FIGURES", "PRSLIB_DATA"):
        monkeypatch.setenv(name, str(tmp_path))
    assert cache_dir() == data_dir() == tmp_path
    assert figures_dir("quick") == tmp_path / "quick"
    monkeypatch.setenv("PRSLIB_DATA", "no such folder")
    with pytest.raises(FileNotFoundError, match=r"PRSLIB_DATA .* got no such folder"):
        data_dir()


def test_an_installed_wheel_has_its_cache_in_the_users(tmp_path, monkeypatch):
    monkeypatch.delenv("PRSLIB_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_dir() == project_root() / "cache"
    monkeypatch.setattr(paths, "PACKAGE", tmp_path / "site-packages" / "prslib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / ".cache" / "prslib"
