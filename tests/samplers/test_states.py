"""Saved states: the same decisions go on, and a changed state is refused as a whole."""

import copy
import io
import pickle

import numpy as np
import pytest
from sampler_runs import NUM_CLASSES, SIZE, context, run, stream

from prslib.samplers import SAMPLERS, make_sampler

CASES = [(name, {}) for name in sorted(SAMPLERS)] + [("prs", {"variant": "authors"})]
ALL = pytest.mark.parametrize(("name", "options"), CASES)


def restored(sampler, state):
    """Return a sampler of another seed that goes on from the state."""
    options = {"variant": "authors"} if state.get("variant") == "authors" else {}
    name = type(sampler).__name__.lower()
    twin = make_sampler(name, sampler.size, sampler.num_classes, 99, **options)
    twin.load_state_dict(state)
    return twin


def through_numpy(sampler):
    state, file = sampler.state_dict(), io.BytesIO()
    arrays = {name: v for name, v in state.items() if isinstance(v, np.ndarray)}
    np.savez(file, **arrays)
    file.seek(0)
    return restored(sampler, state | dict(np.load(file, allow_pickle=False)))


def by_column_and_read_only(sampler):
    state = sampler.state_dict()
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            state[name] = np.asfortranarray(value)
            state[name].flags.writeable = False
    return restored(sampler, state)


COPIES = [
    copy.deepcopy,
    lambda sampler: pickle.loads(pickle.dumps(sampler)),
    through_numpy,
    by_column_and_read_only,
]


@pytest.mark.parametrize("renew", COPIES)
@ALL
def test_a_copy_goes_on_alike(name, options, renew):
    rows = stream()
    sampler = make_sampler(name, SIZE, NUM_CLASSES, 4, **options)
    run(sampler, rows[:150])
    twin = renew(sampler)
    assert run(sampler, rows[150:]).tolist() == run(twin, rows[150:]).tolist()
    assert (sampler.labels == twin.labels).all() and len(sampler) == len(twin)
    assert repr(sampler) == repr(twin) and f"num_classes={NUM_CLASSES}" in repr(twin)


@ALL
def test_a_state_is_not_the_sampler_itself(name, options):
    sampler = make_sampler(name, SIZE, NUM_CLASSES, 4, **options)
    run(sampler, stream(60))
    state = sampler.state_dict()
    before = copy.deepcopy(state)
    twin = make_sampler(name, SIZE, NUM_CLASSES, 5, **options)
    twin.load_state_dict(state)
    run(sampler, stream(60, seed=1))
    run(twin, stream(60, seed=1))
    np.testing.assert_equal(state, before)


@ALL
def test_every_entry_counts(name, options):
    """Each array, number and text of a state, those of its generator included."""
    sampler = make_sampler(name, SIZE, NUM_CLASSES, 4, **options)
    run(sampler, stream(60))
    changes = []
    for entry, value in sampler.state_dict().items():
        if isinstance(value, np.ndarray):
            assert value.size
            other = value.copy()
            other.flat[-1] = not other.flat[-1]
            changes += [{entry: other}, {entry: value[None]}]
        elif isinstance(value, dict):
            numbers = value["state"] | {"state": value["state"]["state"] + 1}
            changes.append({entry: value | {"state": numbers}})
        else:
            changes.append({entry: value * 2 or 1})
    for change in changes:
        with pytest.raises(ValueError, match="expected "):
            sampler.load_state_dict(sampler.state_dict() | change)


def test_the_state_of_another_sampler_is_refused():
    state = make_sampler("prs", 4, 3, 0).state_dict()
    for other, options, message in (
        (("prs", 5, 3), {}, "expected size 5, got 4"),
        (("prs", 4, 2), {}, "expected num_classes 2, got 3"),
        (("prs", 4, 3), {"rho": 1}, r"expected rho 1\.0, got 0\.0"),
        (("crs", 4, 3), {}, "expected sampler 'CRS', got PRS"),
    ):
        with pytest.raises(ValueError, match=message):
            make_sampler(*other, 0, **options).load_state_dict(state)
    with pytest.raises(ValueError, match="expected entries"):
        make_sampler("prs", 4, 3, 0).load_state_dict(state | {"more": np.zeros(3)})


@ALL
def test_labels_of_class_counts_and_members_agree(name, options):
    sampler = make_sampler(name, SIZE, NUM_CLASSES, 4, **options)
    rows = stream()
    sampler.place(rows[:100], **context(sampler, rows[:100]))
    for c in range(NUM_CLASSES):
        assert (
            sorted(sampler.members(c)) == np.flatnonzero(sampler.labels[:, c]).tolist()
        )
