"""One order of rounding, for those who train, and light imports."""

import os
import subprocess
import sys

import pytest
from llvmlite.binding import get_host_cpu_features

from prslib.training import CHOICES, set_deterministic


def fresh_process(code):
    """Run code where nothing is chosen yet; return what it prints."""
    environment = {k: text for k, text in os.environ.items() if k not in CHOICES}
    command = [sys.executable, "-c", code]
    return subprocess.check_output(command, env=environment, text=True).split()


@pytest.mark.parametrize("avx2", [True, False])
def test_one_order_of_sums_is_chosen_for_all_processors_with_avx2(monkeypatch, avx2):
    features = {"avx2": avx2, "sse4.2": True}
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: features)
    monkeypatch.setattr("os.environ", {"MKL_CBWR": "AUTO"})
    set_deterministic()
    chosen = CHOICES if avx2 else {}
    assert os.environ == chosen | {"MKL_CBWR": "AUTO"}  # what is set already stays


@pytest.mark.skipif(
    not get_host_cpu_features().get("avx2", False), reason="the processor has no AVX2"
)
def test_who_trains_rounds_alike():
    code = (
        "from prslib import run_all; import prslib.training.run, os, torch;"
        "print(os.environ['MKL_CBWR'], torch.backends.cpu.get_cpu_capability())"
    )
    assert fresh_process(code) == ["COMPATIBLE", "AVX2"]


def test_who_takes_only_a_sampler_or_configuration_waits_for_no_torch():
    code = (
        "import os, sys, prslib; prslib.make_sampler('prs', 2, 3, seed=0);"
        "prslib.Memory(2); prslib.RunConfig().hash; prslib.MODELS;"
        "print('MKL_CBWR' in os.environ, 'torch' in sys.modules)"
    )
    assert fresh_process(code) == ["False", "False"]
