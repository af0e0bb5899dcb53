"""Gradient variances from runs."""

import dataclasses

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
