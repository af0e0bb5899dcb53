"""From which imbalance on a balanced memory pays, and how streams are measured."""

import numpy as np
import pandas as pd
import pytest
from cells import functions_of

from prslib.datasets import load_dataset

topic = functions_of("when_it_pays")


@pytest.mark.parametrize(
    ("clearly", "start", "below"),
    [
        (["", "above", "above"], 100, 10),
        (["above", "", "above"], 1000, 100),  # on every stream with a larger one, too
        (["above", "above", "above"], 10, np.nan),
        (["above", "above", "below"], np.nan, np.nan),
        (["above", "above", ""], np.nan, np.nan),
    ],
)
def test_a_sampler_pays_from_where_it_is_above_on_all_larger(clearly, start, below):
    rows = pd.DataFrame({"imbalance": [10.0, 100.0, 1000.0], "clearly": clearly})
    rows = rows.assign(method="PRS", metric="mAP").sample(frac=1, random_state=0)
    (found,) = topic.pays_from(rows)[["from", "not at"]].to_numpy()
    np.testing.assert_array_equal(found, [start, below])


def test_a_stream_is_measured_by_its_largest_and_smallest_class_that_it_has():
    row = topic.stream_sizes(["cocoseq-tiny"]).iloc[0]
    train = load_dataset("cocoseq-tiny", images=False).train
    freq = train.labels.sum(axis=0)
    freq = freq[freq > 0]
    assert (row["samples"], row["classes"]) == (len(train), len(freq))
    assert len(freq) < train.labels.shape[1]
    assert row["imbalance"] == freq.max() / freq.min()


def test_the_papers_own_streams_have_the_imbalance_of_their_released_splits():
    expected = {"COCOseq": 1827 / 49, "NUS-WIDEseq": 14453 / 45}
    assert topic.papers_imbalance() == pytest.approx(expected)
