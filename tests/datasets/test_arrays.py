"""Rows go on wherever work was killed, and files are read only as they were written."""

import numpy as np
import pytest
from PIL import Image

from prslib.datasets import arrays
from prslib.datasets.arrays import (
    fill_rows,
    open_rows,
    read_arrays,
    read_image,
    write_arrays,
)

ROW = np.dtype((np.uint8, (3,)))
ITEMS = range(7)
MADE = [n for n in ITEMS if n != 4]


def make(number):
    return None if number == 4 else np.full(3, number)


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "CHUNK", 2)
    return tmp_path / "rows.bin"


def fill(file, make=make):
    fill_rows(file, ROW, ITEMS, make, 1)
    return open_rows(file, len(MADE), ROW)[:, 0].tolist()


def test_rows_go_on_after_a_kill_wherever_it_was(file):
    """Rows are on the disk before their checksums, and either may be torn."""
    assert fill(file) == fill(file, lambda _: pytest.fail("made again")) == MADE
    rows, sums_file = file.read_bytes(), file.with_suffix(".sums")
    sums = sums_file.read_bytes()
    for end in range(len(sums) + 1):
        done = np.count_nonzero(np.frombuffer(sums[: end // 8 * 8], "u8"))
        for more in (0, 2, 4):
            file.unlink()
            file.with_suffix(".part").write_bytes(rows[: 3 * done + more])
            sums_file.write_bytes(sums[:end])
            assert fill(file) == MADE
            assert sums_file.read_bytes() == sums


def test_other_rows_of_a_large_array_are_compared_at_each_opening(file, monkeypatch):
    fill(file)
    content = bytearray(file.read_bytes())
    content[10] ^= 1
    file.write_bytes(content)
    monkeypatch.setattr(arrays, "SAMPLE", 6)  # two rows of six
    noticed = 0
    for _ in range(200):
        try:
            open_rows(file, len(MADE), ROW)
        except ValueError as error:
            assert "row 3 has changed" in str(error)
            noticed += 1
    assert 35 < noticed < 100  # 67 are expected
    with pytest.raises(ValueError, match="row 3 has changed"):
        open_rows(file, len(MADE), ROW, whole=True)


def test_a_table_of_another_shape_is_damaged(tmp_path):
    """A reader that stops where the header says never looks at the checksum."""
    file = tmp_path / "table.npz"
    np.savez(file, value=np.zeros((838, 3072), np.uint8))
    content = file.read_bytes()
    assert content.count(b"(838, 3072)") == 1
    file.write_bytes(content.replace(b"(838, 3072)", b"(138, 3072)"))
    with pytest.raises(ValueError, match=rf"{file}, but .*; make, download"):
        read_arrays(file, "value")


def test_what_is_no_whole_jpeg_gives_no_image(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (90, 400, 3), dtype=np.uint8)
    picture = Image.fromarray(pixels)
    picture.save(tmp_path / "whole.jpg")
    picture.save(tmp_path / "png.jpg", format="PNG")
    (tmp_path / "cut.jpg").write_bytes((tmp_path / "whole.jpg").read_bytes()[:5000])
    assert read_image(tmp_path, "whole.jpg").shape == (256, 256, 3)
    for name in ("png.jpg", "cut.jpg", "none.jpg"):
        assert read_image(tmp_path, name) is None


def test_no_changed_header_byte_loses_an_array(tmp_path):
    file = tmp_path / "arrays.npz"
    wide = {f"array_{number}": np.arange(number + 3) for number in range(6)}
    write_arrays(file, **wide)
    content = file.read_bytes()
    headers = content.index(b"PK\x01\x02")
    refused = 0
    for position in range(headers, len(content)):
        for bits in (0x01, 0xFF):
            changed = bytearray(content)
            changed[position] ^= bits
            file.write_bytes(changed)
            try:
                arrays = read_arrays(file)
            except ValueError:
                refused += 1
                continue
            assert arrays.keys() == wide.keys()
            assert all(np.array_equal(arrays[name], wide[name]) for name in wide)
    assert refused > 100
