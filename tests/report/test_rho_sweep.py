import pandas as pd

from prslib.datasets import load_dataset
from prslib.report.rho_sweep import Settings, beside_crs, best_rho
from prslib.training.config import RunConfig
from prslib.training.replay import without_training


def test_the_best_rho_is_that_of_the_mean_over_seeds():
    values = [10.0, 30.0, 31.0, 20.0]
    rows = pd.DataFrame({"rho": [-1.0, 0.0, 0.4, 1.0] * 2, "seed": [0] * 4 + [1] * 4})
    rows = rows.assign(
        dataset="d", metric="mAP", value=values + [v + 2 for v in values]
    )
    best = best_rho(rows).iloc[0]
    assert (best["best_rho"], best["best"]) == (0.4, 32)
    assert (best["at_lowest"], best["at_highest"]) == (11, 21)


def test_the_memory_beside_crs_is_that_of_a_run():
    rows = beside_crs(Settings(dataset=["digits70tiny"], seeds=[0, 1], memory_size=40))
    assert rows["method"].tolist() == ["CRS", "CRS", "PRS", "PRS"]
    for row in rows.itertuples():
        fields = {"method": row.method, "seed": row.seed, "rho": 1.0, "memory_size": 40}
        config = RunConfig(dataset=row.dataset, **fields)
        data = load_dataset(row.dataset, images=False)
        labels = without_training(config, data).sampler.labels
        assert row.labels == labels.sum(axis=1).mean()
    assert rows["early"].between(0, 60).all() and (rows["early"] > 0).any()
