"""Folders that the environment names."""

import pytest

from prslib import paths
from prslib.paths import cache_dir, data_dir, figures_dir, project_root

FOLDERS = ("PRSLIB_CACHE", "PRSLIB_FIGURES", "PRSLIB_DATA")


def test_folders_are_the_same_from_everywhere(tmp_path, monkeypatch):
    for named, folder in (("tests", project_root() / "tests"), (tmp_path, tmp_path)):
        for name in FOLDERS:
            monkeypatch.setenv(name, str(named))
        for place in (project_root(), project_root() / "notebooks", tmp_path):
            monkeypatch.chdir(place)
            assert cache_dir() == data_dir() == folder
            assert figures_dir("smoke") == folder / "smoke"
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
