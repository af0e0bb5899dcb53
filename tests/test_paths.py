"""Folders that the environment names."""

from pathlib import Path

import pytest

from prslib import paths
from prslib.datasets.arrays import read_arrays
from prslib.models import weights
from prslib.paths import (
    DATA,
    cache_dir,
    data_dir,
    figures_dir,
    project_root,
)

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
    with pytest.raises(FileNotFoundError, match=r"PRSLIB_DATA .* got .*no such folder"):
        data_dir()


@pytest.mark.parametrize(
    "text", ['"/x"', "'/x'", "/x\r", "/x\n", " /x", "$HOME/x", " "]
)
def test_a_path_that_no_shell_has_read_is_refused(monkeypatch, text):
    for name, read in zip(
        FOLDERS, [cache_dir, lambda: figures_dir("a"), data_dir], strict=True
    ):
        monkeypatch.setenv(name, text)
        with pytest.raises(ValueError, match=f"{name} with no quote, blank or"):
            read()
        monkeypatch.setenv(name, "~/x")
    assert cache_dir() == Path.home() / "x"


def test_an_installed_wheel_has_its_cache_in_the_users(tmp_path, monkeypatch):
    monkeypatch.delenv("PRSLIB_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_dir() == project_root() / "cache"
    monkeypatch.setattr(paths, "PACKAGE", tmp_path / "site-packages" / "prslib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / ".cache" / "prslib"


def test_an_embedded_file_needs_a_checkout_and_a_damaged_one_is_named(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(paths, "DATA", tmp_path)
    monkeypatch.setitem(weights.EMBEDDED, "digits-0", tmp_path / "convnet_digits-0.pth")
    with pytest.raises(FileNotFoundError, match=r"^convnet_digits-0.pth needs a check"):
        weights.file_of("digits-0")
    name = "digits70tiny.npz"
    content = bytearray((DATA / name).read_bytes())
    with pytest.raises(FileNotFoundError, match=f"^{name} needs a checkout"):
        read_arrays(tmp_path / name)
    content[len(content) // 2] ^= 1
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"whole arrays in .*{name}"):
        read_arrays(tmp_path / name)
