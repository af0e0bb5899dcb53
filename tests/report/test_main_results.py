"""EWC by strength beside Finetune: which rows stand where."""

import numpy as np
import pandas as pd
from fake_runs import fake_run

from prslib.datasets import DATASETS
from prslib.paths import PACKAGE
from prslib.report.main_results import PAPER_STRENGTH, scores_by_strength
from prslib.report.tables import beside, final, scores_of
from prslib.training.config import RunConfig, configs

TINY = {"dataset": "digits70tiny", "seed": [0, 1]}


def made(config, value):
    return fake_run(config, lambda cells: np.full(len(cells), value))


def test_finetune_stands_beside_every_strength_and_the_paper_at_its_own():
    tried = configs(method="EWC", ewc_lambda=[15000.0, 0.0, 1.5], **TINY)
    runs = [made(config, 0.2 + 0.1 * (config.ewc_lambda == 1.5)) for config in tried]
    finetune = configs(method="Finetune", dataset="digits70tiny", seed=[0, 1, 2])
    rows = final(scores_of([made(config, 0.1) for config in finetune]))
    found = scores_by_strength(runs, beside(rows, "main"))
    assert list(dict.fromkeys(found["strength"])) == ["0", "1.5", "15000"]
    assert set(found["seed"]) == {0, 1}
    assert set(found["group"]) == {"overall"}
    table = found[found["metric"] == "mAP"].pivot_table("value", "strength", "method")
    assert table.round(6).loc["1.5"].to_dict() == {"EWC": 30, "Finetune": 10}
    assert table.round(6).loc["15000"].to_dict() == {"EWC": 20, "Finetune": 10}
    printed = found[(found["metric"] == "mAP") & found["published"].notna()]
    assert set(printed["ewc_lambda"]) == {PAPER_STRENGTH} == {15000.0}
    theirs = printed.set_index("method")["published"].to_dict()
    assert theirs == {"EWC": 46.6, "Finetune": 16.4}


def test_the_papers_strength_is_that_of_its_own_data():
    assert DATASETS["cocoseq"].recipe.ewc_lambda == PAPER_STRENGTH
    given = RunConfig(dataset="digits70tiny", method="EWC", ewc_lambda=PAPER_STRENGTH)
    usual = RunConfig(dataset="digits70tiny", method="EWC")
    assert usual.hash != given.hash


def test_other_strengths_are_those_chosen_elsewhere():
    tried = pd.read_csv(PACKAGE.parent / "figures" / "bench" / "ewc_strength.csv")
    means = tried.groupby(["dataset", "ewc_lambda"])[["C-F1", "O-F1", "mAP"]].mean().mean(axis=1)
    for name, best in means.groupby("dataset").idxmax().items():
        assert DATASETS[name].recipe.ewc_lambda == best[1]
