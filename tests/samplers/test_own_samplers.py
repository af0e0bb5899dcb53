"""A sampler that a user writes: one method, an option, features, a batch."""

import numpy as np
import pytest

from prslib.samplers import Sampler, check_sampler
from prslib.samplers.reference import ReferencePRS


class Smallest(Sampler):
    """Keep the samples with the smallest first feature."""

    needs = frozenset({"features"})

    def __init__(self, size, num_classes, seed, *, column=0):
        super().__init__(size, num_classes, seed)
        self.column = column
        self.values = np.zeros(self.size)

    def choose(self, y, u, *, features):
        slot = len(self) if len(self) < self.size else int(self.values.argmax())
        if len(self) == self.size and features[self.column] >= self.values[slot]:
            return -1
        self.values[slot] = features[self.column]
        return slot


class First(Sampler):
    """Keep the first samples, and decide a batch at once."""

    def choose_batch(self, labels, uniforms):
        labelled = labels.any(axis=1)
        slots = len(self) + labelled.cumsum() - 1
        return np.where(labelled & (slots < self.size), slots, -1)


@pytest.mark.parametrize("sampler", [ReferencePRS, Smallest, First])
def test_it_keeps_every_promise(sampler):
    check_sampler(sampler)


def test_each_sample_gets_its_row_of_features():
    labels = np.ones((50, 5), bool)
    features = np.random.default_rng(0).random((50, 3))
    sampler = Smallest(10, 5, 0, column=1)
    for start in range(0, 50, 7):
        rows = slice(start, start + 7)
        sampler.place(labels[rows], features=features[rows])
    assert np.allclose(np.sort(sampler.values), np.sort(features[:, 1])[:10])
    with pytest.raises(TypeError, match=r"place: expected the keywords \['features'\]"):
        sampler.place(labels)
    with pytest.raises(TypeError, match="keywords none, got"):
        ReferencePRS(10, 5, 0).place(labels, features=features)


@pytest.mark.parametrize("slot", [-2, 4, 1.0])
def test_a_slot_that_cannot_be_is_named(slot):
    class Wrong(Sampler):
        def choose(self, y, u):
            return slot if len(self) == 3 else len(self)

    message = rf"Wrong: expected a whole number from -1 to 3, got {slot!r}"
    with pytest.raises(ValueError, match=message):
        Wrong(10, 5, 0).place(np.ones((4, 5), bool))


class Forgetful(Sampler):
    """Keep what it decides by where no state is looked for."""

    def __init__(self, size, num_classes, seed):
        super().__init__(size, num_classes, seed)
        self.turns = [0]

    def choose(self, y, u):
        self.turns[0] += 1
        return (self.turns[0] - 1) % self.size


def count_and_draw(self, y):
    """Count as the reference does; draw a number that decides nothing."""
    np.random.random()
    return ReferencePRS.counted(self, y)


def draw_globally(self, chance, u):
    return np.random.choice(len(chance), p=chance)


def broken(**methods):
    return type("Broken", (ReferencePRS,), methods)


@pytest.mark.parametrize(
    ("sampler", "match"),
    [
        (broken(place=lambda self, y: np.full(len(y), 99)), "slots from -1 to 24"),
        (broken(place=lambda self, y: [0, 0]), "0 whole numbers as slots"),
        (broken(class_freq=property(lambda self: self.class_counts)), "as class_freq"),
        (broken(__len__=lambda self: 3), "expected a length of"),
        (broken(draw_class=draw_globally), "equal slots from equal seeds, got others"),
        (broken(counted=count_and_draw), "global generator not to be used"),
        (Forgetful, "equal slots after restoring"),
        (lambda *options: object(), "no attribute 'place'"),
    ],
)
def test_a_broken_sampler_is_told_what_it_breaks(sampler, match):
    with pytest.raises((AssertionError, AttributeError), match=match):
        check_sampler(sampler)
