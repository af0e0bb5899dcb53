import pandas as pd
from cells import functions_of

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
