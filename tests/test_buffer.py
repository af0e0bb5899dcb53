"""A buffer keeps sampler and memory in step, whatever comes."""

import copy

import numpy as np
import pytest

from prslib import Buffer, make_sampler

RNG = np.random.default_rng(0)
LABELS = RNG.random((300, 4)) < [0.6, 0.3, 0.1, 0.05]
LABELS[:, 0] |= ~LABELS.any(axis=1)
IMAGES = RNG.integers(0, 255, (300, 2, 2), np.uint8)


def make_buffer(name="prs", size=20, num_classes=4, seed=0):
    return Buffer(make_sampler(name, size, num_classes, seed))


def fill(buffer, stop=300, cut=10):
    for start in range(0, stop, cut):
        rows = slice(start, min(start + cut, stop))
        buffer.add(LABELS[rows], images=IMAGES[rows], index=np.arange(300)[rows])
    return buffer


def check_same(first, second):
    """Check that two buffers have the same state."""
    np.testing.assert_equal(first.state_dict(), second.state_dict())


@pytest.mark.parametrize("cut", [1, 10, 300])
@pytest.mark.parametrize("name", ["prs", "crs", "cbrs", "ocdm"])
def test_it_holds_what_the_sampler_keeps(name, cut):
    buffer = fill(make_buffer(name), cut=cut)
    stored = buffer.memory.read(buffer.memory.filled)
    index = stored["index"]
    assert len(buffer) == len(buffer.sampler) == 20
    assert (stored["labels"] == LABELS[index]).all()
    assert (stored["images"] == IMAGES[index]).all()
    assert (buffer.sampler.labels_of(buffer.memory.filled) == LABELS[index]).all()
    alone = make_sampler(name, 20, 4, 0)
    for start in range(0, 300, cut):
        alone.place(LABELS[start : start + cut])
    assert (alone.labels == buffer.sampler.labels).all()


@pytest.mark.parametrize(
    ("labels", "change"),
    [
        (LABELS[:10, :3], {}),
        (LABELS[:10].astype(float), {}),
        (LABELS[:10], {"images": IMAGES[:9]}),
    ],
)
@pytest.mark.parametrize("name", ["prs", "ocdm"])
def test_a_bad_batch_changes_nothing(name, labels, change):
    refuse(fill(make_buffer(name), 100), labels, change)


@pytest.mark.parametrize("images", [IMAGES[:9], None])
@pytest.mark.parametrize("stop", [0, 100])
def test_a_bad_batch_adds_no_classes(images, stop):
    buffer = fill(make_buffer(num_classes=None), stop)
    refuse(buffer, np.eye(7, dtype=bool)[:5].repeat(2, axis=0), {"images": images})
    fill(buffer, 50)
    assert buffer.sampler.num_classes == 4


def refuse(buffer, labels, change):
    before = copy.deepcopy(buffer)
    with pytest.raises((ValueError, TypeError)) as caught:
        buffer.add(labels, **{"images": IMAGES[:10], "index": np.arange(10)} | change)
    assert "\n" not in str(caught.value)
    check_same(buffer, before)


@pytest.mark.parametrize(
    "labels",
    [
        LABELS[:10],
        LABELS[:10].astype(np.float32),
        np.where(LABELS[:10], 1, np.nan),
        np.arange(4, dtype=np.int8),
    ],
)
def test_arrays_of_labels_come_back_as_they_were(labels):
    buffer = make_buffer()
    stored = buffer.memory.read(buffer.add(labels))["labels"]
    np.testing.assert_array_equal(stored, labels)
    assert stored.dtype == labels.dtype


def test_a_list_of_labels_comes_back_as_rows():
    buffer = make_buffer()
    stored = buffer.memory.read(buffer.add([1, 3]))["labels"]
    assert (stored == np.eye(4, dtype=bool)[[1, 3]]).all()


def test_an_empty_buffer_is_true_and_needs_an_empty_sampler():
    buffer = make_buffer()
    assert buffer and buffer.sampler and buffer.memory and len(buffer) == 0
    assert repr(buffer).startswith("<Buffer of <PRS")
    buffer.add(LABELS[:10])
    with pytest.raises(ValueError, match="an empty sampler, got <PRS"):
        Buffer(buffer.sampler)


@pytest.mark.parametrize("name", ["prs", "cbrs", "ocdm"])
@pytest.mark.parametrize("num_classes", [4, None])
def test_a_state_goes_on_as_the_buffer(tmp_path, name, num_classes):
    buffer = fill(make_buffer(name, num_classes=num_classes), 100)
    buffer.sample(3)
    np.savez(tmp_path / "buffer.npz", **buffer.state_dict())  # no pickled objects
    other = make_buffer(name, num_classes=num_classes, seed=5)
    other.load_state_dict(np.load(tmp_path / "buffer.npz"))
    check_same(other, buffer)
    np.testing.assert_equal(other.sample(7), buffer.sample(7))
    check_same(fill(other), fill(buffer))
    state = buffer.state_dict()
    del state["generator"]
    empty = make_buffer(name, num_classes=num_classes)
    with pytest.raises(KeyError):
        empty.load_state_dict(state)
    assert len(empty) == len(empty.sampler) == 0


def test_a_state_of_tensors_has_the_same_options():
    torch = pytest.importorskip("torch")
    buffer = fill(Buffer(make_sampler("prs", 20, 4, seed=0, rho=-0.03)))
    state = {name: torch.as_tensor(v) for name, v in buffer.state_dict().items()}
    other = Buffer(make_sampler("prs", 20, 4, seed=5, rho=-0.03))
    other.load_state_dict(state)
    check_same(other, buffer)


def test_means_of_samples_are_refused():
    with pytest.raises(TypeError, match="a sampler that keeps samples, got <ExStream"):
        make_buffer("exstream")


def test_a_first_batch_that_torch_cannot_write_changes_nothing():
    torch = pytest.importorskip("torch")
    buffer = make_buffer()
    before = copy.deepcopy(buffer)
    with pytest.raises(NotImplementedError, match="UInt16"):
        buffer.add(LABELS[:10], x=torch.zeros(10, dtype=torch.uint16))
    check_same(buffer, before)


def test_tensors_stay_tensors_with_their_labels():
    torch = pytest.importorskip("torch")
    x, y = torch.rand(50, 3), torch.from_numpy(LABELS[:50]).float()
    buffer = make_buffer()
    with torch.inference_mode():
        buffer.add(y[:10], x=x[:10])
    buffer.add(y[10:], x=x[10:])
    replay = buffer.sample(5)
    rows = [x.tolist().index(row) for row in replay["x"].tolist()]
    assert replay["labels"].equal(y[rows])
    with pytest.raises(ValueError, match=r"expected tensor of torch\.float32"):
        buffer.add(y[:10], x=x[:10].double())
    assert len(buffer.memory) == len(buffer.sampler)
