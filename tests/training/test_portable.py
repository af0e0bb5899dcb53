"""One order of rounding, for those who train, and light imports."""

import os
import subprocess
import sys

import pytest
from llvmlite.binding import get_host_cpu_features

from prslib.training import portable
from prslib.training.portable import CHOICES, round_alike

needs_avx2 = pytest.mark.skipif(
    not get_host_cpu_features().get("avx2", False), reason="the processor has no AVX2"
)


@pytest.fixture
def nothing_chosen(monkeypatch):
    for name in CHOICES:
        monkeypatch.setenv(name, "")  # to be put back afterwards
        monkeypatch.delenv(name)


def on_a_processor(monkeypatch, **features):
    monkeypatch.setattr(portable, "get_host_cpu_features", lambda: features)


def fresh_process(code):
    """Run code where nothing is chosen yet; return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name not in CHOICES}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_one_order_of_sums_is_chosen_for_all_processors(monkeypatch, nothing_chosen):
    on_a_processor(monkeypatch, avx2=True, avx512f=True)
    round_alike()
    assert {name: os.environ[name] for name in CHOICES} == CHOICES


def test_what_the_environment_says_stays(monkeypatch, nothing_chosen):
    on_a_processor(monkeypatch, avx2=True)
    monkeypatch.setenv("MKL_CBWR", "AUTO")
    round_alike()
    assert {name: os.environ[name] for name in CHOICES} == CHOICES | {"MKL_CBWR": "AUTO"}


@pytest.mark.parametrize("features", [{}, {"avx2": False, "sse4.2": True}, {"neon": True}])
def test_other_processors_keep_their_own_order(monkeypatch, nothing_chosen, features):
    on_a_processor(monkeypatch, **features)
    round_alike()
    assert not CHOICES.keys() & os.environ.keys()


@needs_avx2
def test_who_trains_rounds_alike():
    code = (
        "from prslib import run_all; import prslib.experiments.workers, os, torch;"
        "print(os.environ['MKL_CBWR'], torch.backends.cpu.get_cpu_capability())"
    )
    assert fresh_process(code) == ["COMPATIBLE", "AVX2"]


def test_who_only_takes_a_sampler_or_a_configuration_is_left_alone_and_waits_for_no_torch():
    code = (
        "import os, sys, prslib; prslib.make_sampler('prs', size=2, num_classes=3, seed=0);"
        "prslib.Memory(2); prslib.RunConfig().hash; prslib.MODELS;"
        "print('MKL_CBWR' in os.environ, 'torch' in sys.modules)"
    )
    assert fresh_process(code) == ["False", "False"]
