"""The shape of every data set, schedules, and what a set is told apart by."""

from functools import partial

import numpy as np
import pytest

from prslib.datasets import (
    Recipe,
    SequentialDataset,
    Split,
    fingerprint,
)
from prslib.datasets.base import (
    Entry,
    schedule_of,
    schedule_text,
    validate_schedule,
)
from prslib.runs import key_of, register
from prslib.train import RunConfig


def split(labels=((1, 0), (0, 1)), task=(0, 1), inputs=None):
    return Split(inputs, np.array(labels, dtype=bool), np.array(task, dtype=np.int64))


def dataset(train=None, **changes):
    columns = {
        "tests": {"balanced": split()},
        "class_names": ("a", "b"),
        "class_task": np.array([0, 1]),
        "class_group": ("majority", "minority"),
    }
    return SequentialDataset("two", train or split(), **{**columns, **changes})


REFUSED = {
    "labels .* bool, got float64": lambda: Split(None, np.eye(2), np.arange(2)),
    "labels with 2 axes": lambda: Split(None, np.ones(2, dtype=bool), np.arange(2)),
    "features .* float32, got float64": lambda: split(inputs=np.eye(2)),
    "images .* uint8, got float32": lambda: split(inputs=np.ones((2, 4, 4, 3), "f4")),
    "expected 1 tasks, inputs and units, got 2": lambda: split([(1, 0)]),
    "with inputs, got labels only": lambda: split().loaded_inputs,
    "3 classes in 'train', got 2": lambda: dataset(class_task=np.arange(3)),
    "none in row 1": lambda: split([(1, 0), (0, 0)]),
    "sample 1 .* label 'b'": lambda: dataset(split(task=(0, 0))),
    "in 'balanced'": lambda: dataset(tests={"balanced": split(task=(1, 1))}),
    r"got \[0, 2\]": lambda: dataset(class_task=np.array([0, 2])),
    r"unique, not empty, got \['a'\]": lambda: dataset(class_names=("a", "a")),
    r"'tail'; known": lambda: dataset(class_group=("tail", "minority")),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refuses(message):
    with pytest.raises((TypeError, ValueError), match=message):
        REFUSED[message]()


def test_schedule():
    assert validate_schedule(np.array([2, 0, 1]), 3) == (2, 0, 1)
    assert all(type(task) is int for task in validate_schedule(np.array([1, 0]), 2))
    for wrong in ([0, 0, 1], [0, 1, 2, 7], [0, -1, 1], []):
        with pytest.raises(ValueError, match="tasks 0 to 2, each once, got"):
            validate_schedule(wrong, 3)
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        validate_schedule([0, 1.0], 2)
    assert schedule_text((0, 3, 1, 2)) == "0,3,1,2"
    assert schedule_text((2, 1, 0, 3), at_once=2) == "1+2,0+3"
    assert schedule_of("1+2,0+3") == (1, 2, 0, 3)
    assert schedule_text(()) == ""


@pytest.mark.usefixtures("registers")
def test_whatever_a_set_gives_a_run_is_in_its_fingerprint_and_the_runs_key():
    def one(labels=((1, 0), (0, 1)), pixel=0):
        return split(labels, (0, 0), np.full((2, 4, 4, 3), pixel, np.uint8))

    one_task = partial(dataset, one(), class_task=np.array([0, 0]))
    test = {"balanced": one()}
    two_tasks = split(inputs=one().inputs)
    made = {
        "plain": one_task(tests=test),
        "labels": dataset(
            one([(1, 0), (1, 1)]), class_task=np.array([0, 0]), tests=test
        ),
        "inputs": dataset(one(pixel=1), class_task=np.array([0, 0]), tests=test),
        "labels of a test set": one_task(tests={"balanced": one([(1, 0), (1, 1)])}),
        "inputs of a test set": one_task(tests={"balanced": one(pixel=1)}),
        "another test set": one_task(tests={"full": one()}),
        "tasks": dataset(two_tasks, tests={"balanced": two_tasks}),
        "class names": one_task(tests=test, class_names=("a", "c")),
        "groups": one_task(tests=test, class_group=("majority", "moderate")),
    }
    keys = set()
    for data in made.values():  # under one name, which is in the key, too
        schedule = tuple(range(data.num_tasks))
        recipe = Recipe("convnet", memory_size=1, schedule=schedule, batch_size=1)
        register("made", Entry(lambda images=True, data=data: data, recipe))
        config = RunConfig("made", schedule=schedule)
        keys.add((fingerprint("made"), key_of(config)))
    fingerprints, keys = zip(*keys, strict=True)
    assert len(set(fingerprints)) == len(set(keys)) == len(made)
