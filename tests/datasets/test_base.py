"""The shape of every data set, schedules, and what a set is told apart by."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from prslib.datasets import (
    DATASETS,
    Recipe,
    SequentialDataset,
    Split,
    fingerprint,
    load_dataset,
)
from prslib.datasets.base import (
    Entry,
    schedule_of,
    schedule_text,
    validate_schedule,
)
from prslib.runs import key_of
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
    "got list": lambda: Split(None, [[True]], np.arange(1)),
    "task .* int64": lambda: Split(None, np.eye(2, dtype=bool), np.zeros(2)),
    "images .* uint8": lambda: split(inputs=np.zeros((2, 4, 4, 3))),
    "labels with 2 axes": lambda: Split(None, np.ones(2, dtype=bool), np.arange(2)),
    "for each of 2 rows of labels, got 3": lambda: split(task=(0, 1, 1)),
    "images with 4 axes": lambda: split(inputs=np.zeros((2, 4, 4), "uint8")),
    "for each of 2 rows of labels, got 1": lambda: split(inputs=np.zeros((1, 4), "f4")),
    "1 without any, the first at index 1": lambda: split([(1, 0), (0, 0)]),
    "sample 1 .* label 'b'": lambda: dataset(split(task=(0, 0))),
    "sample 1 of task -1": lambda: dataset(split(task=(0, -1))),
    "in 'balanced'": lambda: dataset(tests={"balanced": split(task=(1, 1))}),
    "only test on open images": lambda: dataset(replace(split(), is_open=True)),
    r"got \[0, 2\]": lambda: dataset(class_task=np.array([0, 2])),
    "2 classes in 'class_names'": lambda: dataset(class_names=("a",)),
    r"'tail'; known": lambda: dataset(class_group=("tail", "minority")),
    "unknown dataset 'x'; known datasets: cocoseq, ": lambda: load_dataset("x"),
    "2 classes in 'train', .* got 3": lambda: dataset(split([(1, 0, 0)], (0,))),
}


def test_test_images_of_several_tasks_need_an_open_test_set():
    spans = split([(1, 1), (0, 1)], (-1, 1))
    with pytest.raises(ValueError, match="sample 0 of task -1 with label 'a'"):
        dataset(tests={"all": spans})
    made = dataset(tests={"all": replace(spans, is_open=True)})
    assert made.tests["all"].is_open and not made.train.is_open


@pytest.mark.parametrize("message", REFUSED)
def test_refuses(message):
    with pytest.raises((TypeError, ValueError), match=message):
        REFUSED[message]()


def test_schedule():
    assert validate_schedule(np.array([2, 0, 1]), 3) == (2, 0, 1)
    assert all(type(task) is int for task in validate_schedule(np.array([1, 0]), 2))
    for wrong in ([0, 0, 1], [0, 1, 2, 7], []):
        with pytest.raises(ValueError, match="tasks 0 to 2 once in the schedule, got"):
            validate_schedule(wrong, 3)
    with pytest.raises(ValueError, match="schedule must be at least 0, got -1"):
        validate_schedule([0, -1, 1], 3)
    with pytest.raises(TypeError, match="must be a whole number, got"):
        validate_schedule([0, 1.0], 2)
    assert schedule_text((0, 3, 1, 2)) == "0,3,1,2"
    assert schedule_text((2, 1, 0, 3), at_once=2) == "1+2,0+3"
    assert schedule_of("1+2,0+3") == (1, 2, 0, 3)
    assert schedule_text(()) == ""


def test_another_making_of_a_set_has_another_identity(monkeypatch):
    plain, other = split(task=(0, 0)), split([(1, 0), (1, 1)], (0, 0))
    one_task = partial(dataset, class_task=np.array([0, 0]))
    made = {
        "plain": one_task(plain, tests={"balanced": plain}),
        "train": one_task(other, tests={"balanced": plain}),
        "test": one_task(plain, tests={"balanced": other}),
        "two tasks": dataset(),
    }
    for name, data in made.items():
        schedule = tuple(range(data.num_tasks))
        recipe = Recipe("convnet", memory_size=1, schedule=schedule, batch_size=1)
        identity = str  # of the inputs, which there are none of
        entry = Entry(lambda _, data=data: data, recipe, identity=identity)
        monkeypatch.setitem(DATASETS, name, entry)
    assert len({fingerprint(name) for name in made}) == 4
    assert len({key_of(RunConfig(dataset=name)) for name in made}) == 4
