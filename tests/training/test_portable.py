"""One order of rounding, for those who train, and light imports."""

import os
import subprocess
import sys

import pytest
from llvmlite.binding import get_host_cpu_features

from prslib.training import CHOICES, round_alike

needs_avx2 = pytest.mark.skipif(
    not get_host_cpu_features().get("avx2", False), reason="the processor has no AVX2"
)


def fresh_process(code):
    """Run code where nothing is chosen yet; return what it prints."""
    environment = {
        name: value for name, value in os.environ.items() if name not in CHOICES
    }
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("features", "said", "left"),
    [
        ({"avx2": True}, {}, CHOICES),
        ({"avx2": True}, {"MKL_CBWR": "AUTO"}, CHOICES | {"MKL_CBWR": "AUTO"}),
        ({"neon": True}, {}, {}),
    ],
)
def test_one_order_of_sums_is_chosen_for_all_processors_with_avx2(
    monkeypatch, features, said, left
):
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: features)
    for name in CHOICES:
        monkeypatch.setenv(name, "")  # to be put back afterwards
        monkeypatch.delenv(name)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    round_alike()
    assert {name: os.environ[name] for name in CHOICES if name in os.environ} == left


@needs_avx2
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
