"""One order of rounding on all processors with AVX2; test_installed.py sees it chosen."""

import os

import pytest

from prslib import rounding
from prslib.rounding import CHOICES, set_deterministic


@pytest.mark.parametrize("flags", ["sse4_2 avx2 fma", "sse4_2 avx fma", None])
def test_one_order_of_sums_is_chosen_for_all_processors_with_avx2(
    monkeypatch, tmp_path, flags
):
    file = tmp_path / "cpuinfo"
    if flags is not None:  # other systems have no such file
        file.write_text(f"processor : 0\nflags : fpu {flags} bmi2\n")
    monkeypatch.setattr(rounding, "CPU_INFO", file)
    monkeypatch.setattr("os.environ", {"MKL_CBWR": "AUTO"})
    set_deterministic()
    chosen = CHOICES if flags and "avx2" in flags else {}
    assert os.environ == chosen | {"MKL_CBWR": "AUTO"}  # what is set already stays
