"""Registered samplers, methods, data sets and networks, here and in workers."""

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial

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
    load = {
        "load": lambda images: load_dataset(TINY, images),
        "identity": lambda: "own",
    }
    register("own", CRS)
    register("own", CRS)  # a cell that runs again
    register("own", replace(DATASETS[TINY], **load))
    register("own", Architecture(lambda shape, classes: MLP(shape, classes), stages=3))
    ours = run(RunConfig("own", "own", model="own", batch_size=30))
    theirs = run(RunConfig(TINY, "CRS", batch_size=30))
    pd.testing.assert_frame_equal(
        ours.scores.assign(dataset=TINY, method="CRS"), theirs.scores
    )
    told = registered()
    methods._added.clear()
    del METHODS["own"], DATASETS["own"]
    assert with_registered(told, RunConfig, "own", "own").hash  # as in another process


@pytest.mark.parametrize(
    ("name", "thing", "error", "message"),
    [
        ("PRS", Method(), ValueError, "another name than prslib's methods, got PRS"),
        ("other", 3, TypeError, "a sampler's class, .* or Method as other, got 3"),
    ],
)
def test_names_that_are_taken_and_other_things_are_refused(name, thing, error, message):
    with pytest.raises(error, match=message):
        register(name, thing)


def test_the_example_trains_a_class_of_a_script_in_worker_processes(tmp_path):
    command = [sys.executable, EXAMPLES / "own_sampler.py", tmp_path / "newest.png"]
    told = subprocess.check_output(command, text=True).splitlines()[2:]
    overall = {line.split()[0]: float(line.split()[-1]) for line in told}
    assert overall["Newest"] < overall["CRS"] < overall["PRS"]
    assert (tmp_path / "newest.png").stat().st_size > 10_000


class Newest(CRS):
    """A sampler with options."""

    def __init__(self, size, num_classes, seed, *, alpha: float, rho: float = 0.0):
        super().__init__(size, num_classes, seed)
        self.alpha, self.rho = alpha, rho


def test_options_of_a_registered_sampler_are_its_keyword_only_parameters():
    register("own", Newest)
    with pytest.raises(TypeError, match=r"missing a required .*'alpha'"):
        RunConfig(TINY, "own")
    with pytest.raises(ValueError, match="alpha must be finite"):
        RunConfig(TINY, "own", options={"alpha": float("nan")})
    config = RunConfig(TINY, "own", rho=0.5, options={"alpha": 2})
    sampler = config.sampler_for(load_dataset(TINY, images=False), 0)
    assert (sampler.alpha, sampler.rho) == (2, 0.5)
    told, fields = registered(), {"method": "own", "options": {"alpha": 2.5}}
    methods._added.clear()
    del METHODS["own"]
    make = partial(RunConfig, TINY, **fields)
    assert with_registered(told, make).identity["options"] == {"alpha": 2.5}


def imported(plugins, folder):
    """Import prslib in a new process; return its exit code and last line of errors."""
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PRSLIB_PLUGINS": plugins, "PYTHONPATH": path}
    command = [sys.executable, "-c", "import prslib; prslib.RunConfig(method='Newest')"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return done.returncode, done.stderr.strip().splitlines()[-1:]


def test_plugins_are_there_in_every_process():
    assert imported(" own_sampler , ", EXAMPLES) == (0, [])


def test_a_plugin_that_is_not_there_is_named():
    code, lines = imported("own_sampler,nosuch", EXAMPLES)
    assert (code, lines) == (1, ["ModuleNotFoundError: No module named 'nosuch'"])
