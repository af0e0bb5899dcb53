"""The table of base architectures: which runs it takes, and which numbers stand beside them."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from fake_runs import fake_run

from prslib.report import architectures
from prslib.report.architectures import plot_architectures
from prslib.report.tables import average, main_table
from prslib.training.config import RunConfig

CONSISTENCY, RECURRENT = "convnet_attention_consistency", "convnet_rnn_attention"
NETWORKS = [
    {"model": name, "frozen_stages": 0} for name in ("convnet", CONSISTENCY, RECURRENT)
]
SETS = ["balanced", "imbalanced"]


def finished(score, **fields):
    config = RunConfig(dataset="digits70tiny", **fields)
    return fake_run(config, lambda cells: np.full(len(cells), score))


def test_costly_networks_take_the_fewest_epochs_and_the_others_all():
    fixed = {"dataset": "digits70tiny", "seed": [0, 1]}
    made = architectures.offline_configs(NETWORKS, [3, 1], SETS, [CONSISTENCY], **fixed)
    assert {config.method for config in made} == {"Multitask"}
    settings = {}
    for config in made:
        row = config.epochs, config.test_set, config.seed
        settings.setdefault(config.model, []).append(row)
    every = set(product((1, 3), SETS, (0, 1)))
    assert set(settings["convnet"]) == set(settings[RECURRENT]) == every
    assert set(settings[CONSISTENCY]) == set(product((1,), SETS, (0, 1)))
    assert len({config.hash for config in made}) == len(made) == 20


def test_the_plain_network_is_frozen_in_the_table_of_networks_alone():
    names = ("convnet", CONSISTENCY)
    networks = [{"model": name, "frozen_stages": 1} for name in names]
    fixed = {"dataset": "digits70tiny", "seed": [0]}
    online = architectures.online_configs(networks, ["CRS", "PRS"], **fixed)
    assert [(config.model, config.method, config.frozen_stages) for config in online] == [
        ("convnet", "CRS", 0), ("convnet", "PRS", 0), ("convnet", "Multitask", 0),
        (CONSISTENCY, "CRS", 1), (CONSISTENCY, "PRS", 1),
    ]  # fmt: skip
    # Table 1's
    assert online[0].hash == RunConfig(dataset="digits70tiny", method="CRS").hash
    runs = [
        finished(
            0.6 - 0.1 * frozen, method="Multitask", model=name, frozen_stages=frozen
        )
        for name, frozen in (("convnet", 0), ("convnet", 1), (CONSISTENCY, 1))
    ]
    rows = architectures.rows_of(runs)
    plain = {architectures.beside_offline: 50, architectures.beside_methods: 60}
    for beside, expected in plain.items():
        cells = beside(rows)
        cells = cells[(cells["metric"] == "mAP") & (cells["group"] == "overall")]
        cells = cells[cells["measure"] == "score"]
        scores = cells.groupby("model")["value"].mean().to_dict()
        assert scores == pytest.approx({"convnet": expected, CONSISTENCY: 50})


@pytest.fixture(scope="module")
def rows():
    values = {"convnet": 0.5, CONSISTENCY: 0.4, RECURRENT: 0.3}
    runs = []
    for model, value in reversed(values.items()):
        for epochs, test_set in ((2, "imbalanced"), (1, "balanced")):
            setting = {"model": model, "epochs": epochs, "test_set": test_set}
            score = value + 0.05 * (epochs > 1)
            runs.append(finished(score, method="Multitask", **setting))
    for model, value in values.items():
        runs.append(finished(value, method="CRS", model=model))
        runs.append(finished(value + 0.1, method="PRS", model=model))
    return architectures.rows_of(runs)


def test_every_network_stands_beside_its_own_numbers(rows):
    offline = architectures.beside_offline(rows)
    found = offline[offline["metric"] == "C-F1"].set_index(["architecture", "setting"])
    expected = {  # from the paper's table, COCOseq
        ("ResNet101", "1 epoch, balanced"): 55.3,
        ("ResNet101", "2 epochs (paper 10), imbalanced"): 61.7,
        ("Attention Consistency", "1 epoch, balanced"): 42.5,
        ("Attention Consistency", "2 epochs (paper 10), imbalanced"): 65.8,
        ("RNN-Attention", "1 epoch, balanced"): 39.2,
        ("RNN-Attention", "2 epochs (paper 10), imbalanced"): 70.2,
    }
    assert found["published"].to_dict() == expected
    assert (
        found.loc[("ResNet101", "2 epochs (paper 10), imbalanced"), "epochs"] == 2
    )  # ours


def test_methods_stand_beside_their_network_s_table(rows):
    online = architectures.beside_methods(rows)
    scores = online[(online["measure"] == "score") & (online["group"] == "overall")]
    theirs = scores[scores["metric"] == "C-F1"].pivot(
        index="architecture", columns="method", values="published"
    )
    assert theirs[["Multitask", "CRS", "PRS"]].T.to_dict("list") == {
        "ResNet101": [51.2, 47.5, 53.2],
        "Attention Consistency": [42.5, 43.8, 51.4],
        "RNN-Attention": [33.0, 46.4, 52.5],
    }
    cells = average(architectures.in_order(online))
    table = main_table(cells, "digits70tiny", by=["network"])
    cell = table.loc[("convnet [ResNet101]", "PRS", "ours"), ("overall", "mAP")]
    assert cell.startswith("60.0")


def test_the_table_begins_with_the_plain_network_and_one_epoch(rows):
    table = architectures.offline_table(architectures.beside_offline(rows))
    assert list(table.index[:3]) == [
        ("convnet [ResNet101]", "1 epoch, balanced"),
        ("convnet [ResNet101]", "2 epochs (paper 10), imbalanced"),
        ("convnet with Attention Consistency", "1 epoch, balanced"),
    ]
    assert list(table.columns[:2]) == [("C-F1", "ours"), ("C-F1", "paper")]
    assert table.iloc[0].tolist() == [50.0, 55.3, 50.0, 54.7, 50.0, 56.8]


def test_networks_are_compared_in_the_same_setting(rows):
    gaps = architectures.between_architectures(architectures.beside_offline(rows))
    one = gaps[(gaps["setting"] == "1 epoch, balanced") & (gaps["metric"] == "C-F1")]
    np.testing.assert_allclose(one["difference"], [-10, -20])
    np.testing.assert_allclose(one["published"], [42.5 - 55.3, 39.2 - 55.3])
    assert "Attention Consistency is" in one["sentence"].iloc[0]
    assert "is 10.0 points behind ResNet101 (one seed)" in one["sentence"].iloc[0]


def test_networks_are_drawn_by_setting_of_which_there_are_colours(ax):
    frame = pd.DataFrame(
        {"network": ["plain"] * 3 + ["other"], "value": [40, 44, 60, 30]}
    )
    frame = frame.assign(setting=["1 epoch"] * 2 + ["2 epochs"] * 2)
    drawn = {
        line.get_label(): line for line in plot_architectures(frame, ax, "mAP").lines
    }
    assert list(drawn["1 epoch"].get_ydata()) == [42]
    assert list(drawn["2 epochs"].get_ydata()) == [60, 30]
    many = pd.concat([frame.assign(setting=str(number)) for number in range(6)])
    with pytest.raises(ValueError, match="expected at most 5 settings, got 6"):
        plot_architectures(many, ax, "mAP")
