import numpy as np
import pandas as pd
from cells import functions_of

rho_sweep = functions_of("rho_sweep")


def test_each_rho_is_compared_with_the_same_runs_of_crs_on_the_same_test():
    keys = {"dataset": "d", "metric": "mAP", "group": "minority", "measure": "score"}
    values = [("CRS", np.nan, 40.0), ("PRS", -1.0, 43.0), ("PRS", 1.0, 39.0)]
    rows = pd.DataFrame(values, columns=["method", "rho", "value"])
    rows = pd.concat([rows.assign(seed=seed, **keys) for seed in range(2)])
    stream = rows.assign(value=rows["value"] * ([1, 0.5, 1] * 2))
    stream = stream.assign(test_set="imbalanced")
    gaps = rho_sweep.minus_crs(pd.concat([rows.assign(test_set="balanced"), stream]))
    gaps = gaps.set_index(["test_set", "rho"])["difference"].to_dict()
    assert gaps == {
        ("balanced", -1): 3,
        ("balanced", 1): -1,
        ("imbalanced", -1): -18.5,
        ("imbalanced", 1): -1,
    }
