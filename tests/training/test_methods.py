"""Samplers, methods, data sets and networks of one's own, in this process and in others."""

import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest

from prslib import DATASETS, METHODS, SAMPLERS, RunConfig, load_dataset, register, run
from prslib.models import Architecture
from prslib.models.networks import MLP
from prslib.paths import project_root
from prslib.training import methods
from prslib.training.methods import Method, registered, with_registered

TINY, EXAMPLES, CRS = "imbal-digits-tiny", project_root() / "examples", SAMPLERS["crs"]


@pytest.fixture(autouse=True)
def forget():
    yield
    for table in (*methods.TABLES.values(), methods._added):
        for key in [key for key in table if "own" in key]:
            del table[key]


def test_what_is_registered_trains_as_what_comes_with_prslib():
    load = {"load": lambda images: load_dataset(TINY, images), "identity": lambda: "own"}
    register("own", CRS)
    register("own", replace(DATASETS[TINY], **load))
    register("own", Architecture(lambda shape, classes: MLP(shape, classes), stages=3))
    ours = run(RunConfig("own", "own", model="own", batch_size=30))
    theirs = run(RunConfig(TINY, "CRS", batch_size=30))
    pd.testing.assert_frame_equal(ours.scores.assign(dataset=TINY, method="CRS"), theirs.scores)
    told = registered()
    methods._added.clear()
    del METHODS["own"], DATASETS["own"]
    assert with_registered(told, RunConfig, "own", "own").hash  # as in another process


def test_names_that_are_taken_and_other_things_are_refused():
    register("own", CRS)
    register("own", CRS)  # a cell that runs again
    methods._added["sampler", "own"] = CRS, "another_module"
    for name, thing, error, message in (
        ("own", CRS, ValueError, "sampler 'own' is taken, by another_module; choose another name"),
        ("PRS", Method(), ValueError, "method 'PRS' is taken, by prslib; choose another name"),
        ("other", 3, TypeError, "other: expected a sampler's class with `place`, .*, got 3"),
        ("other", Method("crs", ("seed",)), TypeError, "options among rho, variant, got Method"),
    ):
        with pytest.raises(error, match=message):
            register(name, thing)


def test_the_example_trains_a_class_of_a_script_in_worker_processes(tmp_path):
    command = [sys.executable, EXAMPLES / "own_sampler.py", tmp_path / "newest.png"]
    told = subprocess.check_output(command, text=True)
    overall = {line.split()[0]: float(line.split()[-1]) for line in told.splitlines()[2:]}
    assert overall["Newest"] < overall["CRS"] < overall["PRS"]
    assert (tmp_path / "newest.png").stat().st_size > 10_000


def test_plugins_are_there_in_every_process(monkeypatch):
    monkeypatch.setenv("PRSLIB_PLUGINS", "own_sampler")
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES), prepend=":")
    code = "import prslib; prslib.RunConfig(method='Newest')"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
