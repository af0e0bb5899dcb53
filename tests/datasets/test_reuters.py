"""Reuters-21578: its tasks and test sets, and the subsampled streams."""

import numpy as np
import pytest

from prslib.datasets import load_dataset, reuters

CAPS = {f"reutersseq-cap{cap}": cap for cap in reuters.CAPS[:-1]}
CAPS["reutersseq-tiny"] = reuters.CAPS[-1]
# documents of the first draw
PARTS = {f"reutersseq-part{length}": length for length in reuters.PARTS}


def stream(name):
    return load_dataset(name, images=False).train.labels


@pytest.mark.parametrize("name", reuters.ENTRIES)
def test_the_imbalanced_test_has_the_mix_of_the_stream(name):
    """To two points of the share of the largest class; also where it is thinned."""
    data = load_dataset(name)
    values = data.train.inputs.astype(np.float64)
    np.testing.assert_allclose([values.mean(), values.std()], [0, 1], atol=1e-5)
    freq = data.class_freq
    test = data.tests["imbalanced"].labels.sum(axis=0)
    share, share_test = 100 * freq / freq.sum(), 100 * test / test.sum()
    assert abs(share[freq.argmax()] - share_test[freq.argmax()]) < 2


@pytest.mark.parametrize("draw", range(reuters.DRAWS))
@pytest.mark.parametrize(
    ("thin", "sizes"),
    [(reuters.thin_largest, reuters.CAPS), (reuters.thin_evenly, reuters.PARTS)],
)
def test_a_smaller_stream_is_part_of_a_larger_one(thin, sizes, draw):
    labels = stream("reutersseq")
    larger = np.ones(len(labels), dtype=bool)
    for size in sizes:
        kept = thin(labels, size, draw)
        assert (kept <= larger).all() and kept.sum() < larger.sum()
        larger = kept


@pytest.mark.parametrize("name", [*CAPS, "reutersseq-cap30-2", "reutersseq-cap30-3"])
def test_a_cap_thins_no_class_below_it_and_none_that_it_could_thin_more(name):
    labels, subsampled = stream("reutersseq"), stream(name)
    cap = CAPS[name.removesuffix("-2").removesuffix("-3")]
    counts = subsampled.sum(axis=0)
    assert (counts >= np.minimum(labels.sum(axis=0), cap)).all()
    # every document that stays has a class of at most so many
    assert (np.where(subsampled, counts, len(labels)).min(axis=1) <= cap).all()


def test_a_part_is_as_long_as_a_cap_and_keeps_the_mix_of_classes():
    whole = stream("reutersseq").sum(axis=0)
    for part, cap in zip(PARTS, CAPS, strict=False):
        labels = stream(part)
        assert len(labels) == len(stream(cap)) == PARTS[part]
        share = len(labels) / len(stream("reutersseq"))
        apart = np.abs(labels.sum(axis=0) - share * whole)
        # a few more or less, where a class shares documents with smaller ones
        assert (apart <= 3 + 0.03 * whole).all()
