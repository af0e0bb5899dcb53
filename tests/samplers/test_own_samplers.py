"""A sampler that a user writes: one method, an option, features, a batch."""

import numpy as np
import pytest

from prslib.samplers import CBRS, CRS, PRS, Sampler, check_sampler
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
def test_it_passes_the_estimator_checks(sampler):
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


@pytest.mark.parametrize("slot", [-2, 4, 1.0, True, None])
def test_a_slot_that_cannot_be_is_named(slot):
    class Wrong(Sampler):
        def choose(self, y, u):
            return slot if len(self) == 3 else len(self)

    message = rf"Wrong: expected a whole number from -1 to 3, got {slot!r}"
    with pytest.raises(ValueError, match=message):
        Wrong(10, 5, 0).place(np.ones((4, 5), bool))


def test_a_wrong_slot_leaves_the_sampler_as_it_was():
    class Wrong(Sampler):
        """Give the fourth sample a slot that cannot be."""

        def __init__(self, size, num_classes, seed):
            super().__init__(size, num_classes, seed)
            self.turns = np.zeros(1, int)

        def choose(self, y, u):
            self.turns += 1
            return len(self) if self.turns != 4 else self.rng.integers(50, 60)

    class WrongBatch(Sampler):
        """Give the last sample of a batch of four a slot that cannot be."""

        def choose_batch(self, labels, uniforms):
            return [*range(len(labels) - 1), 7 if len(labels) == 4 else -1]

    for sampler in (Wrong(10, 5, 0), WrongBatch(10, 5, 0)):
        before = sampler.state_dict()
        with pytest.raises(ValueError, match="expected a whole number from -1 to 3"):
            sampler.place(np.ones((4, 5), bool))
        assert sampler.state_dict()["checksum"] == before["checksum"]
        sampler.place(np.ones((3, 5), bool))
        assert sampler.seen == 3


def test_slots_of_a_batch_may_be_a_list_also_an_empty_one():
    class Nothing(Sampler):
        def choose_batch(self, labels, uniforms):
            return [-1] * len(labels)

    sampler = Nothing(10, 5, 0)
    for count in (0, 3):
        slots = sampler.place(np.ones((count, 5), bool))
        assert slots.dtype == np.int64
        assert slots.tolist() == [-1] * count


class Drops(PRS):
    def acceptance(self, y, p):
        return 0.0


class Never(CRS):
    def choose(self, y, u):
        return len(self) if len(self) < self.size else -1


class AllAtOnce(CBRS):
    choose_batch = First.choose_batch


class NeverAccepts:
    acceptance = Drops.acceptance


class DropsByAnotherBase(NeverAccepts, PRS):
    pass


@pytest.mark.parametrize("sampler", [Drops, Never, AllAtOnce, DropsByAnotherBase])
def test_a_method_of_a_compiled_sampler_can_be_replaced(sampler):
    slots = sampler(5, 3, 0).place(np.ones((20, 3), bool))
    assert slots.tolist() == [*range(5), *[-1] * 15]
    check_sampler(sampler)


def test_a_compiled_sampler_calls_a_method_follow_of_ones_own():
    class Logs(PRS):
        def follow(self, y, slot):
            super().follow(y, slot)
            log.append(slot)

    log = []
    slots = Logs(5, 3, 0).place(np.ones((20, 3), bool))
    assert log == slots.tolist()


def test_own_classes_grow():
    class Last(Sampler):
        """Remember when each class came last."""

        by_class = ("last",)

        def __init__(self, size, num_classes, seed):
            super().__init__(size, num_classes, seed)
            self.last = np.zeros((2, self.num_classes))

        def choose(self, y, u):
            self.last[:, y] = self.seen + 1
            return self.seen % self.size

    sampler = Last(3, None, 0)
    sampler.place([1, 0, 4])
    assert sampler.last.tolist() == [[2, 1, 0, 0, 3]] * 2
    assert sampler.labels.shape == (3, 5)


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


class Positional(Forgetful):
    def __init__(self, size, num_classes, seed, chance):
        super().__init__(size, num_classes, seed)


class NoName(Forgetful):
    def __init__(self, size, num_classes, seed, *, chance=0.5):
        super().__init__(size, num_classes, seed)


class NoBase(Sampler):
    def __init__(self, size, num_classes, seed):
        self.size = size


class TwoNumbers(Sampler):
    def choose(self, y, u):
        return int(u[1] * len(self)) if len(self) == self.size else len(self)


class OneArgument(Sampler):
    def choose(self, y):
        return 0


class Nothing(Sampler):
    pass


class NoSlot(Sampler):
    def choose(self, y, u):
        self.turns = 1


class Late(Sampler):
    def choose(self, y, u):
        return len(self.kept)


class Newest(Sampler):
    def choose(self, y, u):
        return self.seen % self.size


class LateBase(Sampler):
    def __init__(self, size, num_classes, seed):
        self.last = np.zeros(self.size)
        super().__init__(size, num_classes, seed)


class OwnCount(Sampler):
    def __init__(self, size, num_classes, seed):
        super().__init__(size, num_classes, seed)
        self.seen = 0


class LateNumber(Newest):
    def choose(self, y, u):
        self.turns = getattr(self, "turns", 0) + 1
        return super().choose(y, u)


class PerClass(Newest):
    """Keep a number a class, and forget to say so."""

    def __init__(self, size, num_classes, seed):
        super().__init__(size, num_classes, seed)
        self.last = np.zeros(num_classes)

    def choose(self, y, u):
        self.last += y
        return super().choose(y, u)


class Misspelt(Newest):
    by_class = ("lost",)


class Letters(Newest):
    needs = "features"


class Changes(Newest):
    def choose(self, y, u):
        y[:] = True
        return super().choose(y, u)


class ByCount(Newest):
    """Decide otherwise where more classes are known."""

    def choose(self, y, u):
        return super().choose(y, u) if len(y) < 8 or self.seen < 25 else -1


class ListedArguments(Newest):
    def __init__(self, *arguments):
        super().__init__(*arguments)


class Listed(Newest):
    needs = ["loss"]  # noqa: RUF012


class Loss(Newest):
    needs = frozenset({"loss"})


class HalfADraw(Newest):
    draws = 1.5


class Queue(Newest):
    def __init__(self, size, num_classes, seed):
        super().__init__(size, num_classes, seed)
        self.queue = []

    def choose(self, y, u):
        slot = len(self) if len(self) < self.size else self.queue.pop(0)
        self.queue.append(slot)
        return slot


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
        (Forgetful, "equal slots after restoring, got others; .* not saved: turns"),
        (Positional, r"make\(.*\) to return a sampler, .*; options are keyword-only"),
        (NoName, "the option chance as an attribute, got none; write self.chance ="),
        (NoBase, r"__init__ to call super\(\).__init__\(size, num_classes, seed\)"),
        (TwoNumbers, "IndexError: .*; u has 1 numbers: write draws = 2 in the class"),
        (OneArgument, r"TypeError: .*; it is called as choose\(y, u\)"),
        (Nothing, "TypeError: Nothing: expected a method choose"),
        (NoSlot, "ValueError: NoSlot: expected a whole number from -1 to 0, got None"),
        (Late, "AttributeError: .*'kept'; make every attribute in __init__"),
        (lambda *options: object(), r"got <object .*; it needs a method place\("),
        (lambda *options: None, r"to return a sampler, got None; it needs a method"),
        (Newest(3, 3, 0), r"the class of a sampler, .*; write check_sampler\(MySampl"),
        (ListedArguments, r"__init__ to name its parameters, got \*arguments; write"),
        (Listed, r"needs as a set of names, got \['loss'\]; write frozenset\({'loss"),
        (Loss, r"check_sampler\(make, context\) a function that returns loss"),
        (HalfADraw, "draws as a whole number, got 1.5; write draws = 1"),
        (
            Queue,
            "after restoring, got IndexError: pop from empty list; .* saved: queue",
        ),
        (LateBase, r"no attribute 'size'; call super\(\).__init__\(.*\) first"),
        (OwnCount, "property 'seen'.*leave the base's own attributes"),
        (LateNumber, "to take its own state, .*; make every array and number in __i"),
        (PerClass, "place to return slots after add_classes, .*entry a class in by_cl"),
        (Misspelt, "add_classes to add a class, .*'lost'; name its arrays"),
        (broken(needs=None), r"needs as a set of names, got None; write frozenset\("),
        (Letters, "needs as a set of names, got 'features'; write frozenset"),
        (Changes, "ValueError: assignment destination is read-only"),
        (ByCount, "equal slots where a class is added late"),
    ],
)
def test_a_broken_sampler_is_told_what_it_breaks(sampler, match):
    with pytest.raises((AssertionError, AttributeError), match=match):
        check_sampler(sampler)
