"""A sampler that a user writes: one method, an option, features, a batch."""

import numpy as np
import pytest

from prslib.samplers import PRS, Sampler, check_sampler


class Newest(Sampler):
    """Overwrite the oldest sample."""

    def choose(self, y, u):
        return (self.seen - 1) % self.size


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
        slots = np.where(labelled & (slots < self.size), slots, -1)
        return self.follow(labels, slots)


@pytest.mark.parametrize("sampler", [Newest, Smallest, First])
def test_it_passes_the_checks(sampler):
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
    for wrong in (features[:7], features[:9]):
        with pytest.raises(ValueError, match="features: expected 8 rows"):
            sampler.place(labels[:8], features=wrong)
    assert sampler.seen == 50


def test_own_classes_grow():
    class Last(Newest):
        """Remember when each class came last."""

        by_class = ("last",)

        def __init__(self, size, num_classes, seed):
            super().__init__(size, num_classes, seed)
            self.last = np.zeros((2, self.num_classes))

        def choose(self, y, u):
            self.last[:, y] = self.seen
            return super().choose(y, u)

    sampler = Last(3, None, 0)
    sampler.place([1, 0, 4])
    assert sampler.last.tolist() == [[2, 1, 0, 0, 3]] * 2
    assert sampler.labels.shape == (3, 5)
    check_sampler(Last)


# samplers that are wrong


def test_a_slot_that_is_not_there_is_refused():
    class Far(Newest):
        def choose(self, y, u):
            return 5

    with pytest.raises(ValueError, match="a slot from -1 to 0, got 5"):
        Far(10, 3, 0).place([1])


class Nothing(Sampler):
    pass


class Forgetful(Newest):
    """Keep what it decides by where no state is looked for."""

    def __init__(self, size, num_classes, seed):
        super().__init__(size, num_classes, seed)
        self.turns = [0]

    def choose(self, y, u):
        self.turns[0] += 1
        return (self.turns[0] - 1) % self.size


class DrawsGlobally(PRS):
    def draw_class(self, chance, u):
        return np.random.choice(len(chance), p=chance)


class TouchesGlobally(Newest):
    def choose(self, y, u):
        np.random.random()
        return super().choose(y, u)


class ByCount(Newest):
    """Decide otherwise where more classes are known."""

    def choose(self, y, u):
        return super().choose(y, u) if len(y) < 8 or self.seen < 26 else -1


@pytest.mark.parametrize(
    ("sampler", "error", "match"),
    [
        (Nothing, TypeError, r"Nothing: expected a method choose\(self, y, u\)"),
        (Forgetful, AssertionError, "other slots after load_state_dict"),
        (DrawsGlobally, AssertionError, "the same seed gives other slots"),
        (TouchesGlobally, AssertionError, "numpy's global generator is used"),
        (ByCount, AssertionError, "other slots when a class is added late"),
    ],
)
def test_the_checks_find_what_is_wrong(sampler, error, match):
    with pytest.raises(error, match=match):
        check_sampler(sampler)
