"""The key of a run: it changes with the code that the run executes, and with no other."""

import linecache
import os
import shutil
import sys
from functools import cache, partial
from importlib.util import module_from_spec, spec_from_file_location

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from registered import execute_cell

from prslib import RunConfig, register, sources
from prslib.paths import PACKAGE
from prslib.runs import code_of, key_of

TINY, FEATURES = "digits70tiny", "cocoseq-tiny"
RUNS = {
    "CRS": RunConfig(TINY, "CRS"),
    "asymmetric": RunConfig(TINY, "CRS", loss="asymmetric"),
    "PRS": RunConfig(TINY, "PRS"),
    "GSS": RunConfig(TINY, "GSS"),
    "ExStream": RunConfig(TINY, "ExStream"),
    "mlp": RunConfig(TINY, "CRS", model="mlp"),
    "attention": RunConfig(TINY, "CRS", model="convnet_rnn_attention"),
}


@cache
def keys():
    return {name: key_of(config) for name, config in RUNS.items()}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A copy of the package, whose source is hashed in place of its own."""
    folder = tmp_path / "prslib"
    no_cache = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, folder, ignore=no_cache)
    monkeypatch.setattr(sources, "PACKAGE", folder)
    sources.file_of.cache_clear()
    yield folder
    sources.file_of.cache_clear()


def edit(file, old, new):
    text = file.read_text("utf-8")
    assert old in text, f"{old} is no longer in {file.name}"
    file.write_text(text.replace(old, new), "utf-8")


WORDS = [  # and code that no run executes
    ("losses.py", "Down-weight labels that", "Weigh labels that"),
    ("train.py", "# Caccia et al. 2022", "# 2022"),
    ("train.py", '"lower learning_rate, or check the inputs"', '"go slower"'),
    ("cli.py", "import sys", "import sys, os"),
    ("datasets/coco.py", "import", "import os; import"),
    ("train.py", '"Finetune": Method(),', '"Other": Method(),'),
    ("losses.py", '"focal": Loss', '"other": Loss'),
]
ALL = set(RUNS)
EDITS = {
    "a sampler": ("samplers/prs.py", "acceptance", "admission", {"PRS"}),
    "a loss's constant": ("losses.py", "= 1e-12", "= 1e-6", ALL),
    "a network": ("models/attention.py", "forward", "onward", {"attention"}),
    "vectors": ("samplers/exstream.py", "argmin", "argmax", {"ExStream"}),
    "the scores": ("scoring.py", "argmax", "argmin", ALL),
    "in place": ("train.py", "HELD_OUT = 5", "HELD_OUT = 5\nHELD_OUT += 1", ALL),
}


def test_edited_words_change_no_key(tree):
    before = keys()
    for file, old, new in WORDS:
        edit(tree / file, old, new)
    assert keys.__wrapped__() == before


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_changes_the_keys_of_the_runs_that_execute_it(tree, name):
    file, old, new, changed = EDITS[name]
    before = keys()
    edit(tree / file, old, new)
    after = keys.__wrapped__()
    assert {run for run in RUNS if before[run] != after[run]} == changed


SYNTAX = """
from dataclasses import dataclass
@dataclass(frozen=True)
class Row(dict, metaclass=type):
    x: int | None = None
    def name(self, first, /, *rest, a=1, **more) -> str:
        return f"{self.x!r:>8} it's {rest}" + "".join(y for y in rest if y)
    async def wait(self):
        return lambda x, z=(1, *[]): [z for _ in ...]
match x:
    case {"a": [1, *_]} | Row(x=2):
        x, *z = 1e-8, -0.0, 3j, b"0", None
with open(x) as f, f:
    pass
"""


def test_every_python_hashes_alike():
    """This file is run with every Python that prslib supports."""
    assert sources.hash_source(SYNTAX)[:16] == "6bbb4fc9413cfe7e"


# what a user defines

OWN = """
import torch.nn.functional as F
from prslib import SAMPLERS

def half(x):
    return x / 2

class Own(SAMPLERS["crs"]):
    limit = 2

    def choose_batch(self, labels, uniforms):
        return super().choose_batch(labels, half(uniforms))  # sooner

def loss(logits, targets):
    return F.binary_cross_entropy_with_logits(logits, targets)
"""


def module_of(file):
    spec = spec_from_file_location(file.stem, file)
    module = module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.usefixtures("registers")
def test_a_file_of_ones_own_counts_as_a_whole(tmp_path):
    file = tmp_path / "own_sampler_of_a_test.py"
    found = []
    plain = key_of(RUNS["PRS"])
    for old, new in (("", ""), ("# sooner", "# later"), ("/ 2", "/ 3"), ("= 2", "= 3")):
        file.write_text(OWN.replace(old, new) if old else OWN)
        os.utime(file, (1, len(found)))
        module = module_of(file)
        register("Own", module.Own)
        register("own loss", module.loss)
        runs = RunConfig(TINY, "Own"), RunConfig(TINY, "CRS", loss="own loss")
        found.append([key_of(config) for config in runs])
    assert found[0] == found[1]
    assert len({key for pair in found for key in pair}) == 6
    assert key_of(RUNS["PRS"]) == plain
    del sys.modules[file.stem]


@pytest.mark.usefixtures("registers")
def test_an_executed_cell_counts_as_a_file():
    found = []
    for source in (OWN, OWN.replace("/ 2", "/ 3"), OWN):
        register("Own", execute_cell(source)["Own"])
        found.append(key_of(RunConfig(TINY, "Own")))
    assert found[0] == found[2] != found[1]
    linecache.cache.pop("<cell 1 of a test>")
    lost = execute_cell(OWN, "<lost>")["Own"]
    linecache.cache.pop("<lost>")
    with pytest.raises(ValueError, match="Own has no source; define it in a file"):
        register("Own", lost)


def scaled(scale):
    def loss(logits, targets):
        return scale * F.binary_cross_entropy_with_logits(logits, targets)

    return loss


def weighted(logits, targets, weight=1.0, by=None):
    return (weight * F.mse_loss(logits, targets, reduction="none")).mean()


def flat(middle):
    values = np.zeros(5000, np.float32)
    values[2500] = middle
    return values


@pytest.mark.usefixtures("registers")
@pytest.mark.parametrize(
    ("first", "same", "other"),
    [
        (scaled(1.0), scaled(1.0), scaled(2.0)),
        (partial(weighted, by=1), partial(weighted, by=1), partial(weighted, by=2)),
        (scaled(flat(1)), scaled(flat(1)), scaled(flat(2))),  # "[0. 0. ... 0. 0.]"
    ],
    ids=["closure", "partial", "array"],
)
def test_what_a_function_has_been_given_counts(first, same, other):
    found = []
    for function in (first, same, other):
        register("own", function)
        found.append(code_of("CRS", "own", "mlp", sources.stamp_package()))
    assert found[0] == found[1] != found[2]


def test_an_object_that_is_called_is_refused_because_its_attributes_are_not_hashed():
    loss = torch.nn.MultiLabelSoftMarginLoss()
    for thing in (loss, loss.forward, partial(weighted, by=loss)):
        with pytest.raises(TypeError, match="expected a function or class"):
            register("own", thing)


def test_settings_are_part_of_the_key():
    """Also where they are the data set's; tests of configurations go field by field."""
    plain = key_of(RunConfig(FEATURES))
    same = RunConfig(FEATURES, memory_size=20, rho=-0.03, schedule=[0, 3, 1, 2])
    assert key_of(same) == plain and len(plain) == 16
    assert key_of(RunConfig(FEATURES, seed=1)) != plain
