"""No array is read but with the bytes that were written: caches, tables, rows."""

import os
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from prslib.datasets import arrays, digits, load_dataset, scenes
from prslib.datasets.arrays import RowFile, cached_arrays, open_rows, read_arrays
from prslib.paths import replacing

MAKER = (SimpleNamespace(__file__=__file__),)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    return tmp_path / "datasets"


def cached():
    made = {"value": np.arange(1000), "other": np.arange(9)}
    return cached_arrays("made", made, MAKER, lambda: made)["value"]


@pytest.mark.parametrize("damage", ["another shape", "cut"])
def test_a_table_that_is_damaged_is_named(tmp_path, damage):
    """A reader that stops where the header says never looks at the checksum."""
    file = tmp_path / "table.npz"
    np.savez(file, value=np.zeros((838, 3072), np.uint8))
    content = file.read_bytes()
    assert content.count(b"(838, 3072)") == 1
    changed = content.replace(b"(838, 3072)", b"(138, 3072)")
    file.write_bytes(content[:-40] if damage == "cut" else changed)
    with pytest.raises(ValueError, match=rf"{file} as a table, but .*; delete it"):
        read_arrays(file, ["value"], "a table", "delete it")


def test_a_cache_of_other_code_is_not_read(cache, tmp_path):
    source = tmp_path / "maker.py"
    maker = (SimpleNamespace(__file__=str(source)),)
    for code, value in (("one", 1), ("two", 2), ("one", 1)):
        source.write_text(code)
        made = {"value": np.array(value)}
        assert cached_arrays("made", made, maker, lambda m=made: m)["value"] == value
    assert len(list(cache.iterdir())) == 2


def test_names_of_caches_tell_the_code_that_draws_them(cache, monkeypatch):
    first = load_dataset("digits49tiny")
    load_dataset("imbal-digits-tiny")
    makers = {
        "digits49tiny": (digits.curation, scenes, digits),
        "imbal-digits-tiny": (scenes,),
    }
    assert {path.name for path in cache.iterdir()} == {
        f"{name}-{arrays.source_digest(modules)}.npz"
        for name, modules in makers.items()
    }
    monkeypatch.setattr(digits, "_render", lambda *_: pytest.fail("drawn again"))
    second = load_dataset("digits49tiny")
    np.testing.assert_array_equal(first.train.images, second.train.images)


def test_a_cache_in_which_any_byte_is_changed_is_made_again_or_the_same(cache):
    """Among them are other compressions and a directory without an array."""
    made = {"value": np.arange(9, dtype=np.uint8), "other": np.arange(5)}
    load = partial(cached_arrays, "made", made, MAKER, lambda: made)
    load()
    (path,) = cache.iterdir()
    whole, again = path.read_bytes(), 0
    for position in range(0, len(whole), 2):
        for rest in (bytes([whole[position] ^ 1]), b"c", b""):
            path.write_bytes(
                whole[:position] + rest + whole[position + 1 :] * bool(rest)
            )
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                loaded = load()
            again += len(said)
            assert said or rest
            assert not said or path.read_bytes() == whole
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


def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("PRSLIB_CACHE", str(blocked))
    with pytest.warns(UserWarning) as caught:
        assert len(cached()) == 1000
    assert "set PRSLIB_CACHE" in str(caught[-1].message)


# rows of prepared sets

ROW = np.dtype((np.uint8, (3,)))


def make(numbers):
    lacking = () if os.path.exists("mended") else (4,)
    return ["no row" if n in lacking else np.full(3, n, np.uint8) for n in numbers]


@pytest.fixture
def whole(tmp_path, monkeypatch):
    """The file of rows, in a folder where every row can be read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mended").touch()
    return tmp_path / "rows.bin"


def fill(file, make=make):
    rows = RowFile(file, list(map(str, range(7))), ROW)
    return rows, rows.fill(range(7), make, 1, "rows")


def test_rows_that_failed_take_no_place_and_are_tried_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(arrays, "CHUNK", 3)
    file = tmp_path / "rows.bin"
    rows, problems = fill(file)
    assert problems == {4: "no row"}
    rows.finish()
    opened = open_rows(file, 6, ROW)
    assert opened[:, 0].tolist() == [0, 1, 2, 3, 5, 6]
    file.rename(rows.part)  # as if it were not finished
    (tmp_path / "mended").touch()
    tried = []
    rows, problems = fill(file, lambda some: tried.extend(some) or make(some))
    rows.finish()
    assert (tried, problems) == ([4, 5, 6], {})
    assert open_rows(file, 7, ROW)[:, 0].tolist() == list(range(7))


def test_rows_go_on_after_a_kill_wherever_it_was(whole, monkeypatch):
    monkeypatch.setattr(arrays, "CHUNK", 2)
    real, writes = arrays._append, []

    def append(path, content, kill_at):
        writes.append(path)
        if len(writes) == kill_at:
            real(path, content[: len(content) // 2])
            raise KeyboardInterrupt
        real(path, content)

    for kill_at in range(1, 9):
        writes.clear()
        monkeypatch.setattr(arrays, "_append", partial(append, kill_at=kill_at))
        with pytest.raises(KeyboardInterrupt):
            fill(whole)
        monkeypatch.setattr(arrays, "_append", real)
        rows, _ = fill(whole)
        rows.finish()
        assert open_rows(whole, 7, ROW)[:, 0].tolist() == list(range(7))
        for made in whole.parent.glob("rows.*"):
            made.unlink()


def test_every_changed_byte_of_rows_and_checksums_is_named(whole):
    rows, _ = fill(whole)
    rows.finish()
    for damaged in (whole, rows.sums):
        content = damaged.read_bytes()
        for position in range(len(content)):
            flipped = bytes([content[position] ^ 4])
            for rest in (flipped + content[position + 1 :], b""):
                damaged.write_bytes(content[:position] + rest)
                with pytest.raises(
                    ValueError, match=rf"{whole}.*delete .*prslib prepare"
                ):
                    open_rows(whole, 7, ROW)
        damaged.write_bytes(content)
    with pytest.raises(ValueError, match="expected 6 rows"):
        open_rows(whole, 6, ROW)


def test_other_rows_of_a_large_array_are_compared_at_each_opening(whole, monkeypatch):
    fill(whole)[0].finish()
    content = bytearray(whole.read_bytes())
    content[10] ^= 1
    whole.write_bytes(content)
    monkeypatch.setattr(arrays, "SAMPLE", 6)  # two rows of seven
    noticed = 0
    for _ in range(200):
        try:
            open_rows(whole, 7, ROW)
        except ValueError as error:
            assert "such as row 3" in str(error)
            noticed += 1
    assert 25 < noticed < 95  # 57 are expected
    with pytest.raises(ValueError, match="1 of 7 have changed, such as row 3"):
        open_rows(whole, 7, ROW, whole=True)


def test_too_little_disk_is_an_error_before_work(tmp_path, monkeypatch):
    free = SimpleNamespace(free=7 * 3 - 1)
    monkeypatch.setattr(arrays.shutil, "disk_usage", lambda _: free)
    with pytest.raises(OSError, match=r"GB free for 7 images .* set PRSLIB_DATA"):
        fill(tmp_path / "rows.bin", make=lambda _: pytest.fail("worked"))


def test_killed_when_the_list_of_sources_is_written_it_begins_again(
    tmp_path, monkeypatch
):
    file = tmp_path / "rows.bin"

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", killed)
        fill(file)
    monkeypatch.chdir(tmp_path)
    rows, _ = fill(file)
    rows.finish()
    assert len(open_rows(file, 6, ROW)) == 6
