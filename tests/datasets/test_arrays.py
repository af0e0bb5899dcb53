"""The cache: drawn once, the same for ever, and made again where the file is broken."""

import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from prslib.datasets import arrays, digits, load_dataset, scenes
from prslib.datasets.arrays import cached_arrays
from prslib.paths import replacing


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    return tmp_path / "datasets"


def cached():
    made = {"value": np.arange(1000), "other": np.arange(9)}
    return cached_arrays("made", made, (arrays,), lambda: made)["value"]


def test_scenes_are_drawn_once(cache, monkeypatch):
    first = load_dataset("digits49tiny")
    monkeypatch.setattr(digits, "_render", lambda *_: pytest.fail("drawn again"))
    second = load_dataset("digits49tiny")
    assert [path.suffix for path in cache.iterdir()] == [".npz"]
    np.testing.assert_array_equal(first.train.images, second.train.images)
    for part, split in first.tests.items():
        np.testing.assert_array_equal(split.images, second.tests[part].images)


def test_cache_of_other_code_is_not_read(cache, tmp_path):
    source = tmp_path / "maker.py"
    maker = (SimpleNamespace(__file__=str(source)),)
    for code, value in (("one", 1), ("two", 2), ("one", 1)):
        source.write_text(code)
        made = cached_arrays(
            "made", ["value"], maker, lambda value=value: {"value": np.array(value)}
        )
        assert made["value"] == value
    assert len(list(cache.iterdir())) == 2


def test_names_of_caches_tell_the_code_that_draws_them(cache):
    load_dataset("digits49tiny")
    load_dataset("imbal-digits-tiny")
    made = {path.name for path in cache.iterdir()}
    expected = {"digits49tiny": (digits.curation, scenes, digits), "imbal-digits-tiny": (scenes,)}
    assert made == {
        f"{name}-{arrays._fingerprint(makers)}.npz" for name, makers in expected.items()
    }


def test_a_cache_that_is_cut_or_in_which_a_byte_is_flipped_is_made_again_or_the_same(cache):
    """Among them are other compressions, encryption and a directory that lacks an array."""
    maker = (SimpleNamespace(__file__=__file__),)
    made = {"value": np.arange(9, dtype=np.uint8), "other": np.arange(5)}
    load = partial(cached_arrays, "made", made, maker, lambda: made)
    load()
    (path,) = cache.iterdir()
    whole, again = path.read_bytes(), 0
    for position in range(0, len(whole), 2):
        for rest in (bytes([whole[position] ^ 1]), b"c", b""):
            path.write_bytes(whole[:position] + rest + whole[position + 1 :] * bool(rest))
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                loaded = load()
            again += len(said)
            assert said or rest
            assert not said or (path.read_bytes() == whole and "making it again" in str(said[0]))
            assert [*map(bytes, loaded.values())] == [*map(bytes, made.values())]
    assert again > len(whole)


def test_what_killed_writing_left_goes_with_the_next_look(cache):
    cached()
    (path,) = cache.iterdir()
    part = path.with_name(f"{path.name}.01234567.part")
    part.write_bytes(b"half")
    with replacing(path) as beside:  # another process, at work
        beside.write(b"all")
        cached()
        assert not part.exists()
        assert len(list(cache.iterdir())) == 2
    assert path.read_bytes() == b"all"


def test_cache_that_cannot_be_written_is_no_obstacle(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("PRSLIB_CACHE", str(blocked))
    with pytest.warns(UserWarning) as caught:
        assert len(cached()) == 1000
    assert "set PRSLIB_CACHE" in str(caught[-1].message)


def test_images_are_scaled_as_pillow_does_by_bicubic_interpolation(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (90, 400, 3), dtype=np.uint8)
    original = Image.fromarray(pixels)
    original.save(tmp_path / "noise.png")
    bicubic = original.resize((256, 256), Image.Resampling.BICUBIC)
    np.testing.assert_array_equal(arrays.read_image(tmp_path / "noise.png"), np.asarray(bicubic))


def test_a_warning_on_opening_is_no_error(tmp_path, monkeypatch):
    Image.new("RGB", (40, 40)).save(tmp_path / "large.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)  # it warns from here, refuses from twice
    assert arrays.read_image(tmp_path / "large.png").shape == (256, 256, 3)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 700)
    with pytest.raises(OSError, match=r"cannot decode .*large.png"):
        arrays.read_image(tmp_path / "large.png")
