"""Files offered to other libraries: as prslib decides, and by their tests."""

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from prslib.paths import project_root
from prslib.samplers import make_sampler

PEERS = project_root() / "examples" / "peers"


@pytest.mark.parametrize("rho", [-0.5, 0.0, 1.0])
@pytest.mark.parametrize("several", [False, True])
def test_prs_for_peers_selects_the_slots_of_prslib(several, rho, monkeypatch):
    monkeypatch.syspath_prepend(PEERS)
    from prs_sampling import PRSSampling

    rng = np.random.default_rng(0)
    targets = rng.choice(6, 800, p=[0.5, 0.2, 0.15, 0.1, 0.04, 0.01])
    rows = np.eye(6, dtype=bool)[targets] | (several & (rng.random((800, 6)) < 0.2))
    select = PRSSampling(30, rho, seed=np.random.default_rng(1))
    labels = rows if several else targets  # class numbers appear as they come
    slots = [select(seen, y) for seen, y in enumerate(labels)]
    sampler = make_sampler("prs", 30, 6, np.random.default_rng(1), rho=rho)
    assert slots == sampler.place(rows).tolist()


@pytest.mark.parametrize(
    ("module", "files"),
    [
        ("avalanche", ["test_avalanche.py"]),
        ("river", ["test_river.py", "river_replay.py"]),
        ("utils.buffer", ["test_mammoth.py"]),  # a checkout on PYTHONPATH
    ],
)
def test_the_tests_for_a_peer_pass_with_it(module, files):
    top = module.partition(".")[0]
    if find_spec(top) is None or find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, *files]
    command += ["--doctest-modules", "--rootdir=.", "-p", "no:cacheprovider"]
    subprocess.run(command, cwd=PEERS, check=True)


def test_the_multi_label_example_runs_with_avalanche():
    pytest.importorskip("avalanche")
    subprocess.run([sys.executable, "avalanche_multilabel.py"], cwd=PEERS, check=True)
