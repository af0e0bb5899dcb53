"""The classes' shares of memory, planned or trained."""

import numpy as np
import pytest
from cells import functions_of

from prslib import Buffer, configs, make_sampler
from prslib.datasets import load_dataset
from prslib.report import measures
from prslib.train import run, spawn_seeds, stream

topic = functions_of("memory_distribution")

LOOKING = {"GSS", "ExStream"}


def test_memories_come_from_runs_or_follow_from_labels():
    methods = ["CRS", "GSS", "ExStream", "PRS"]
    asked = configs(dataset="imbal-digits-tiny", method=methods, batch_size=40)
    runs = [run(config) for config in asked]
    trained = [r for r in runs if r.config.method in LOOKING]
    shares = measures.memory_shares(asked, trained)
    shares = shares.set_index(["method", "class"])["share"].unstack()
    for finished in runs:  # classes are digits, in their order
        counts = finished.memory_labels.sum(0)
        ours = shares.loc[finished.config.method]
        np.testing.assert_allclose(ours, 100 * counts / counts.sum())


def test_ages_are_those_of_the_samples_that_a_sampler_kept():
    """By hand: the labels of a stream in its order, and a sampler that is told them."""
    asked = configs(dataset="cocoseq-tiny", method=["CRS", "GSS", "CBRS"], seed=[3])
    ages = measures.memory_ages(asked)
    assert ages["method"].unique().tolist() == ["CRS", "CBRS"]  # GSS needs a network
    data = load_dataset("cocoseq-tiny", images=False)
    for config in (asked[0], asked[2]):
        _, seed, *_ = spawn_seeds(config)
        size = config.resolved["memory_size"]
        sampler = make_sampler(config.method, size, data.num_classes, seed)
        buffer = Buffer(sampler)
        for _, batches, _ in stream(config, data.train.task):
            total = batches.size
            for start, rows in zip(range(0, total, 10), batches, strict=True):
                quarter = 4 * np.arange(start, start + 10) // total
                buffer.add(data.train.labels[rows], quarter=quarter)
        kept = buffer.sample(size)["quarter"]
        shares = ages[ages["method"] == config.method]["share"]
        by_hand = [100 * np.mean(kept == number) for number in range(4)]
        np.testing.assert_allclose(shares, by_hand)


def test_distances_put_each_memory_where_it_belongs():
    asked = configs(dataset="digits70seq", method=["CRS", "PRS"])
    shares = measures.memory_shares(asked, [])
    dataset = load_dataset("digits70seq", images=False)
    stream = shares[shares["method"] == "Stream"].set_index("class")["share"]
    expected = 100 * dataset.class_freq / dataset.class_freq.sum()
    np.testing.assert_allclose(stream[list(dataset.class_names)], expected)
    assert (stream.diff().dropna() <= 0).all()  # groups from frequent to rare
    totals = shares.groupby("method")["share"].sum()
    np.testing.assert_allclose(totals, [100] * 3)
    table = topic.distances_to_targets(shares).set_index("method")
    to_equal, to_stream = table["to equal"], table["to stream"]
    assert to_stream["Stream"] == pytest.approx(0)
    assert to_equal["Stream"] == pytest.approx(np.abs(expected - 100 / 70).sum() / 2)
    assert to_equal["PRS"] < 0.5 * to_equal["CRS"]
    assert to_stream["CRS"] < 0.5 * to_stream["PRS"]
