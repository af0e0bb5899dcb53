"""Registered samplers, methods, data sets and networks, here and in workers."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pandas as pd
import pytest
from torch import nn

from prslib import DATASETS, METHODS, SAMPLERS, RunConfig, load_dataset, register, run
from prslib.models import Architecture
from prslib.models.networks import mlp
from prslib.paths import project_root
from prslib.training import methods
from prslib.training.methods import Method, registered, with_registered

TINY, EXAMPLES, CRS = "imbal-digits-tiny", project_root() / "examples", SAMPLERS["crs"]
pytestmark = pytest.mark.usefixtures("registers")


def test_what_is_registered_trains_as_what_comes_with_prslib():
    assert pickle.dumps(DATASETS)  # workers are told what is registered
    load = partial(load_dataset, TINY)
    register("own", CRS)
    register("own", CRS)  # a cell that runs again
    register("own", replace(DATASETS[TINY], load=load, identity=lambda: "own"))
    register("own", Architecture(lambda shape, classes: mlp(shape, classes), stages=3))
    ours = run(RunConfig("own", "own", model="own", batch_size=30))
    theirs = run(RunConfig(TINY, "CRS", batch_size=30))
    scores = ours.scores.assign(dataset=TINY, method="CRS")
    pd.testing.assert_frame_equal(scores, theirs.scores)
    register("own", Architecture(lambda *_: nn.Flatten(), stages=1))
    with pytest.raises(TypeError, match=r"Staged for model 'own', got Flatten"):
        run(RunConfig("own", "own", model="own"))
    told = registered()
    methods.ADDED.clear()
    del METHODS["own"], DATASETS["own"]
    assert with_registered(told, RunConfig, "own", "own").hash  # as in another process


def test_names_that_are_taken_and_other_things_are_refused():
    with pytest.raises(ValueError, match="another name than prslib's own, got PRS"):
        register("PRS", Method())
    with pytest.raises(TypeError, match=r"class, .* or Method as own, got 3"):
        register("own", 3)


class Newest(CRS):
    """A sampler with options."""

    def __init__(self, size, num_classes, seed, *, alpha: float, rho: float = 0.0):
        super().__init__(size, num_classes, seed)
        self.alpha, self.rho = alpha, rho


def test_options_of_a_registered_sampler_are_its_keyword_only_parameters():
    register("own", Newest)
    with pytest.raises(TypeError, match=r"missing a required .*'alpha'"):
        RunConfig(TINY, "own")
    config = RunConfig(TINY, "own", rho=0.5, options={"alpha": 2})
    sampler = config.sampler_for(load_dataset(TINY, images=False), 0)
    assert (sampler.alpha, sampler.rho) == (2, 0.5)
    register("PRS, frozen", Method(sampler="prs", frozen="vector_stages"))
    assert RunConfig(TINY, "PRS, frozen", rho=0.5).identity["rho"] == 0.5


@pytest.mark.parametrize(
    ("plugins", "said"),
    [(" own_sampler , ", ""), ("nosuch", "No module named 'nosuch'")],
)
def test_plugins_are_there_in_every_process_or_named(plugins, said):
    path = os.pathsep.join([str(EXAMPLES), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "PRSLIB_PLUGINS": plugins}
    command = [sys.executable, "-c", "import prslib; prslib.RunConfig(method='Newest')"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert said in done.stderr.strip().rpartition("\n")[2]
    assert bool(done.returncode) == bool(said)
