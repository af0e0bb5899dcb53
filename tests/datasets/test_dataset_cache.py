"""What is drawn once is the same for ever, and a spoilt file is no harm."""

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from prslib.datasets import digits, load_dataset
from prslib.datasets.arrays import cached_arrays


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    return tmp_path / "datasets"


def test_generation_gives_the_same_bytes(cache, tmp_path, monkeypatch):
    first = load_dataset("digits70tiny")
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path / "other"))
    second = load_dataset("digits70tiny")
    assert first.train.images.tobytes() == second.train.images.tobytes()
    for part in first.tests:
        assert first.tests[part].images.tobytes() == second.tests[part].images.tobytes()
        assert first.tests[part].labels.tobytes() == second.tests[part].labels.tobytes()


def test_second_load_reads_the_cache(cache, monkeypatch):
    first = load_dataset("digits49tiny")
    monkeypatch.setattr(digits, "_render", lambda *_: pytest.fail("drawn again"))
    second = load_dataset("digits49tiny")
    np.testing.assert_array_equal(first.train.images, second.train.images)
    assert [path.suffix for path in cache.iterdir()] == [".npz"]


def test_cache_of_other_code_is_not_read(cache, tmp_path):
    source = tmp_path / "maker.py"
    maker = (SimpleNamespace(__file__=str(source)),)
    for code, value in (("one", 1), ("two", 2), ("one", 1)):
        source.write_text(code)
        arrays = cached_arrays("made", maker, lambda value=value: {"value": np.array(value)})
        assert arrays["value"] == value
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("share", [0, 0.5, 0.999])
def test_cut_cache_is_made_again(cache, share):
    first = load_dataset("digits70tiny")
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.warns(UserWarning, match="making it again"):
        second = load_dataset("digits70tiny")
    np.testing.assert_array_equal(first.train.images, second.train.images)
    assert len(path.read_bytes()) == len(whole)


def test_altered_cache_is_made_again(cache):
    load_dataset("digits70tiny")
    (path,) = cache.iterdir()
    spoilt = bytearray(path.read_bytes())
    spoilt[len(spoilt) // 2] ^= 255
    path.write_bytes(spoilt)
    with pytest.warns(UserWarning, match="making it again"):
        load_dataset("digits70tiny")


def test_cache_that_cannot_be_written_is_no_obstacle(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("PRSLIB_CACHE", str(blocked))
    with pytest.warns(UserWarning) as caught:
        assert load_dataset("digits70tiny").train.images is not None
    assert "set PRSLIB_CACHE" in str(caught[-1].message)


def test_labels_alone_need_neither_cache_nor_torch(tmp_path):
    code = (
        "import sys; from prslib.datasets import load_dataset;"
        "load_dataset('digits70tiny', images=False);"
        "assert not {'torch', 'sklearn'} & set(sys.modules)"
    )
    environment = {**os.environ, "PRSLIB_CACHE": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert not (tmp_path / "cache").exists()
