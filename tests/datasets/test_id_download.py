import hashlib
import os
from http.client import BadStatusLine, IncompleteRead
from io import BytesIO
from pathlib import Path

import pytest

from prslib.datasets import prepare as id_download

FILES = {"train_task0_id_coco.json": b"[1, 2]", "test_task0_id_coco.json": b"[3]"}


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A folder in the place of the web, with the checksums of its own files."""
    folder = tmp_path / "server"
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    monkeypatch.setattr(id_download, "SOURCE", folder.as_uri())
    monkeypatch.setattr(id_download, "CHECKSUMS", sums)
    return folder


def test_files_are_fetched_once(server, tmp_path):
    folder = id_download.download_ids(tmp_path / "ids")
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == FILES
    for file in server.iterdir():
        file.unlink()  # nothing is asked for again
    assert id_download.download_ids(folder) == folder


def test_another_file_than_the_released_one_is_refused(server, tmp_path):
    (server / "test_task0_id_coco.json").write_bytes(b"[4]")
    with pytest.raises(ValueError, match="expected the released file with SHA-256"):
        id_download.download_ids(tmp_path / "ids")
    assert [file.name for file in (tmp_path / "ids").iterdir()] == ["train_task0_id_coco.json"]
    (tmp_path / "ids" / "train_task0_id_coco.json").write_bytes(b"[1, 2")
    with pytest.raises(ValueError, match=r"train_task0_id_coco\.json"):
        id_download.download_ids(tmp_path / "ids")


def test_without_a_network_the_error_says_what_to_do(server, tmp_path):
    (server / "test_task0_id_coco.json").unlink()
    with pytest.raises(OSError, match="by hand and name their folder with --ids"):
        id_download.download_ids(tmp_path / "ids")


@pytest.mark.parametrize(
    "error", [IncompleteRead(b"[1"), BadStatusLine("x"), ConnectionResetError(), TimeoutError()]
)
def test_a_download_that_breaks_off(server, tmp_path, monkeypatch, error):
    class Broken(BytesIO):
        def read(self):
            raise error

    monkeypatch.setattr(id_download.urllib.request, "urlopen", lambda *_, **__: Broken())
    with pytest.raises(OSError, match=r"cannot fetch .*json .*by hand and name their folder"):
        id_download.download_ids(tmp_path / "ids")
    assert not list((tmp_path / "ids").iterdir())


@pytest.mark.skipif(
    not (Path(os.environ.get("PRSLIB_DATA", "nowhere")) / "cocoseq_ids").is_dir(),
    reason="needs the released id files in $PRSLIB_DATA/cocoseq_ids",
)
def test_the_pinned_checksums_are_those_of_the_released_files(monkeypatch):
    monkeypatch.setattr(id_download, "SOURCE", "file:///nowhere")
    id_download.download_ids(Path(os.environ["PRSLIB_DATA"]) / "cocoseq_ids")
