"""Gradient variances from runs, and how methods compare."""

import dataclasses

import pandas as pd
import pytest
from cells import functions_of

from prslib import RunConfig, run

gradient_variance = functions_of("gradient_variance")

ONE_LABEL = "imbal-digits-tiny"


def test_points_are_shares_of_the_stream_whatever_was_dropped_of_it():
    fields = {"dataset": ONE_LABEL, "batch_size": 40, "variance_points": 4}
    one = run(RunConfig(method="CRS", **fields))
    variance = one.gradient_variance
    longer = variance.assign(images=variance["images"] + 10, seed=1)
    rows = gradient_variance.variances_of(
        [one, dataclasses.replace(one, gradient_variance=longer)]
    )
    images = rows.pivot(index="seen", columns="seed", values="images")
    assert images.index.tolist() == [25, 50, 75, 100]
    assert (images[1] - images[0] == 10).all()


def contrasts(values):
    """PRS minus the others: {(method, seed): a variance at each point}."""
    cells = [
        (method, seed, 10.0 * point, value)
        for (method, seed), points in values.items()
        for point, value in enumerate(points)
    ]
    rows = pd.DataFrame(cells, columns=["method", "seed", "seen", "value"])
    table = gradient_variance.variance_contrasts(rows.assign(dataset=ONE_LABEL))
    return table.set_index("than")


def test_contrasts_compare_logarithms_seed_by_seed():
    values = {("PRS", 0): [10.0, 100.0], ("CRS", 0): [1.0, 1.0]}  # 1.5 decades above
    values |= {("PRS", 1): [10.0, 1.0], ("CRS", 1): [1.0, 0.0]}  # 1, where both vary
    for seed in (3, 4, 5):
        values |= {("PRS", seed): [10.0, 100.0], ("CRS", seed): [1.0, 10.0]}  # 1
    values |= {("ExStream", 0): [20.0, 200.0], ("GSS", 2): [1.0, 1.0]}
    table = contrasts(values)
    assert list(table.index) == ["CRS", "ExStream"]  # GSS has no seed in common
    crs = table.loc["CRS"]
    assert crs["difference"] == pytest.approx(5.5 / 5)
    assert crs["sd"] == pytest.approx(0.5 / 5**0.5)
    assert crs["ratio"] == pytest.approx(10 ** (5.5 / 5))
    assert table["seeds"].tolist() == [5, 1]
    assert table["points_above"].tolist() == [100, 0]
    assert table["clearly"].tolist() == ["above", ""]
