"""From which imbalance on a balanced memory pays, and how streams are measured."""

import matplotlib.pyplot as plt
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


def frame_of(*datasets):
    """Differences of PRS from CRS on streams, each with an interval of its own."""
    rows = pd.DataFrame({"dataset": datasets})
    rows["imbalance"] = [10.0 ** (1 + k) for k in range(len(rows))]
    rows["difference"] = np.arange(len(rows)) - 1.0
    rows["low"] = rows["difference"] - 0.5
    rows["high"] = rows["difference"] + 2.0
    return rows.assign(method="PRS", metric="mAP", group="minority", samples=100)


def test_intervals_are_drawn_from_low_to_high_and_the_thinned_streams_joined():
    rows = frame_of("thin", "whole", "coco", "digits")
    figure, ax = plt.subplots()
    topic.plot_over_imbalance(rows, ax, ["thin", "whole"], ["digits"])
    (strokes,) = ax.collections
    ends = [(line[:, 1].min(), line[:, 1].max()) for line in strokes.get_segments()]
    assert ends == list(zip(rows["low"], rows["high"], strict=True))
    joined, filled, hollow = ax.lines[:3]
    assert joined.get_ydata().tolist() == [-1, 0]
    assert (filled.get_ydata().tolist(), hollow.get_ydata().tolist()) == ([1], [2])
    assert hollow.get_markerfacecolor() == "white" != filled.get_markerfacecolor()
    plt.close(figure)


def test_the_whole_stream_ends_both_the_thinned_ones_and_the_parts():
    rows = frame_of("cap", "part", "whole").assign(samples=[30, 30, 100])
    figure, ax = plt.subplots()
    topic.plot_over_length(rows, ax, ["part"])
    thinned, parts = ax.lines[:2]
    assert thinned.get_ydata().tolist() == [-1, 1]
    assert parts.get_ydata().tolist() == [0, 1]
    plt.close(figure)
