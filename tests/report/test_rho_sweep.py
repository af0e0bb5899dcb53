import numpy as np
import pandas as pd
import pytest
from cells import functions_of

from prslib.datasets import load_dataset
from prslib.report.notebook import Settings

rho_sweep = functions_of("rho_sweep")


def test_the_best_rho_is_that_of_the_mean_over_seeds():
    values = [10.0, 30.0, 31.0, 20.0]
    rows = pd.DataFrame({"rho": [-1.0, 0.0, 0.4, 1.0] * 2, "seed": [0] * 4 + [1] * 4})
    rows = rows.assign(
        dataset="d", metric="mAP", value=values + [v + 2 for v in values]
    )
    best = rho_sweep.best_rho(rows).iloc[0]
    assert (best["best_rho"], best["best"]) == (0.4, 32)
    assert (best["at_lowest"], best["at_highest"]) == (11, 21)


def test_each_rho_is_compared_with_the_same_runs_of_crs():
    keys = {"dataset": "d", "metric": "mAP", "group": "minority", "measure": "score"}
    values = [("CRS", np.nan, 40.0), ("PRS", -1.0, 43.0), ("PRS", 1.0, 39.0)]
    rows = pd.DataFrame(values, columns=["method", "rho", "value"])
    rows = pd.concat([rows.assign(seed=seed, **keys) for seed in range(2)])
    gaps = rho_sweep.minus_crs(rows)
    assert gaps[["rho", "difference"]].to_numpy().tolist() == [[-1, 3], [1, -1]]


def test_a_reservoir_holds_a_tenth_from_the_first_tenth_of_the_stream():
    more = {"dataset": ["digits70seq"], "seeds": list(range(8)), "memory_size": 2000}
    settings = Settings.of("quick", "rho_sweep", **more)
    memories = rho_sweep.beside_crs(settings).groupby("method").mean(numeric_only=True)
    assert memories.loc["CRS", "early"] == pytest.approx(10, abs=0.5)
    of_stream = load_dataset("digits70seq", images=False).train.labels.sum(axis=1)
    assert memories.loc["CRS", "labels"] == pytest.approx(of_stream.mean(), abs=0.02)
