"""A sampler that a user writes: one method, an option, features, a batch."""

import numpy as np
import pytest

from prslib.samplers import Sampler, check_sampler
from prslib.samplers.reference import ReferencePRS


class Newest(Sampler):
    """Overwrite the oldest sample."""

    def choose(self, y, u):
        return self.seen % self.size


class Sometimes(Sampler):
    """Overwrite a random sample with a fixed chance."""

    draws = 2

    def __init__(self, size, num_classes, seed, *, chance=0.5):
        super().__init__(size, num_classes, seed)
        self.chance = chance
        self.writes = np.zeros(self.size, np.int64)

    def choose(self, y, u):
        if len(self) < self.size:
            slot = len(self)
        elif u[0] < self.chance:
            slot = int(u[1] * self.size)
        else:
            return -1
        self.writes[slot] += 1
        return slot


class Smallest(Sampler):
    """Keep the samples with the smallest first feature."""

    needs = frozenset({"features"})

    def __init__(self, size, num_classes, seed):
        super().__init__(size, num_classes, seed)
        self.values = np.zeros(self.size)

    def choose(self, y, u, *, features):
        slot = len(self) if len(self) < self.size else int(self.values.argmax())
        if len(self) == self.size and features[0] >= self.values[slot]:
            return -1
        self.values[slot] = features[0]
        return slot


class LastOfBatch(Sampler):
    """Let the last labelled sample of each batch take the oldest slot."""

    decides_by_batch = True

    def choose_batch(self, labels, uniforms):
        slots = np.full(len(labels), -1)
        rows = np.flatnonzero(labels.any(axis=1))
        free = np.arange(len(self), self.size)[: len(rows)]
        slots[rows[: len(free)]] = free
        if len(rows) > len(free):
            slots[rows[-1]] = self.seen % self.size
        return slots


def stream(length=200, classes=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((length, classes)) < [0.5, 0.3, 0.2, 0.1, 0.05]


@pytest.mark.parametrize("sampler", [Newest, Sometimes, Smallest, LastOfBatch])
def test_it_keeps_every_promise(sampler):
    check_sampler(sampler)


def test_each_sample_gets_its_row_of_features():
    labels = np.ones((50, 5), bool)
    features = np.random.default_rng(0).random((50, 3))
    sampler = Smallest(10, 5, 0)
    for start in range(0, 50, 7):
        rows = slice(start, start + 7)
        sampler.place(labels[rows], features=features[rows])
    assert np.allclose(np.sort(sampler.values), np.sort(features[:, 0])[:10])
    with pytest.raises(TypeError, match=r"place: expected the keywords \['features'\]"):
        sampler.place(labels)
    with pytest.raises(TypeError, match="keywords none, got"):
        Newest(10, 5, 0).place(labels, features=features)


def test_options_and_further_arrays_belong_to_the_state():
    sampler = Sometimes(10, 5, 0, chance=0.25)
    sampler.place(stream())
    shown = "<Sometimes(size=10, num_classes=5, chance=0.25), 10 slots filled>"
    assert repr(sampler) == shown
    state = sampler.state_dict()
    other = Sometimes(10, 5, 1, chance=0.25)
    other.load_state_dict(state)
    assert (other.writes == sampler.writes).all()
    assert (other.place(stream(seed=1)) == sampler.place(stream(seed=1))).all()
    with pytest.raises(ValueError, match=r"expected chance 0.5, got 0.25"):
        Sometimes(10, 5, 1).load_state_dict(state)


@pytest.mark.parametrize("slot", [-2, 4, 99, 1.0, None])
def test_a_slot_that_cannot_be_is_named(slot):
    class Wrong(Sampler):
        def choose(self, y, u):
            return slot if len(self) == 3 else len(self)

    message = rf"Wrong: expected a whole number from -1 to 3, got {slot!r}"
    with pytest.raises(ValueError, match=message):
        Wrong(10, 5, 0).place(np.ones((4, 5), bool))


class Forgetful(Newest):
    """Keep what it decides by where no state is looked for."""

    def __init__(self, size, num_classes, seed):
        super().__init__(size, num_classes, seed)
        self.turns = [0]

    def choose(self, y, u):
        self.turns[0] += 1
        return (self.turns[0] - 1) % self.size


class Late(Newest):
    """Make an array at the first sample."""

    def choose(self, y, u):
        self.late = np.zeros(3)
        return super().choose(y, u)


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
    ],
)
def test_a_broken_sampler_is_told_what_it_breaks(sampler, match):
    with pytest.raises(AssertionError, match=match):
        check_sampler(sampler)


def test_a_sampler_that_lacks_an_attribute_or_refuses_its_state_is_told_so():
    with pytest.raises(AttributeError, match="no attribute 'place'"):
        check_sampler(lambda *options: object())
    with pytest.raises(ValueError, match=r"expected entries .* got .*'late'"):
        check_sampler(Late)
