import pandas as pd
import pytest
from cells import functions_of

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


def test_a_reservoir_holds_a_tenth_from_the_first_tenth_of_the_stream():
    more = {"dataset": ["digits70seq"], "seeds": list(range(8)), "memory_size": 2000}
    settings = Settings.of("quick", "rho_sweep", **more)
    early = rho_sweep.beside_crs(settings).groupby("method")["early"].mean()
    assert early["CRS"] == pytest.approx(10, abs=0.5)
