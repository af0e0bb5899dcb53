"""One order of rounding, for those who train, and light imports."""

import os
import subprocess
import sys

import pytest

from prslib import rounding
from prslib.rounding import CHOICES, CPU_INFO, set_deterministic


def fresh_process(code):
    """Run code where nothing is chosen yet; return what it prints."""
    environment = {k: text for k, text in os.environ.items() if k not in CHOICES}
    command = [sys.executable, "-c", code]
    return subprocess.check_output(command, env=environment, text=True).split()


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


@pytest.mark.skipif(
    not CPU_INFO.is_file() or " avx2 " not in CPU_INFO.read_text(),
    reason="the processor has no AVX2",
)
def test_who_trains_rounds_alike():
    code = (
        "from prslib import run_all; import os, torch;"
        "print(os.environ['MKL_CBWR'], torch.backends.cpu.get_cpu_capability())"
    )
    assert fresh_process(code) == ["COMPATIBLE", "AVX2"]
