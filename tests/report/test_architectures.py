"""The table of base architectures: which runs it takes, and which numbers stand beside them."""

from itertools import product

import pytest
from fake_runs import fake_run

from prslib.report import architectures
from prslib.training.config import RunConfig

CONSISTENCY, RECURRENT = "convnet_attention_consistency", "convnet_rnn_attention"


def finished(score, **fields):
    return fake_run(RunConfig(dataset="digits70tiny", **fields), score)


def test_costly_networks_take_few_epochs_and_the_plain_one_is_frozen_among_networks():
    settings = architectures.Settings(
        dataset=["digits70tiny"],
        model=["convnet", CONSISTENCY],
        frozen_stages=[1, 1],
        learning_rates=[None, None],
        costly_models=[CONSISTENCY],
        epochs=[1, 3],
    )
    online, offline = [], []
    for config in architectures.runs(settings):
        row = (config.model, config.method, config.frozen_stages)
        table = online if row[1] != "Multitask" or not row[2] else offline
        table.append((*row, config.epochs, config.test_set))
    plain = [("convnet", method, 0, 1, None) for method in ("CRS", "PRS", "Multitask")]
    assert online == plain + [(CONSISTENCY, m, 1, 1, None) for m in ("CRS", "PRS")]
    epochs = [("convnet", 3), ("convnet", 1), (CONSISTENCY, 1)]
    cells = product(epochs, ("balanced", "imbalanced"))
    expected = [(model, "Multitask", 1, n, test_set) for (model, n), test_set in cells]
    assert sorted(offline) == sorted(expected)


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


def test_the_table_of_networks_has_their_numbers_the_plain_one_and_one_epoch_first(
    rows,
):
    offline = architectures.beside_offline(rows)
    table = architectures.offline_table(offline)
    assert table["C-F1", "paper"].to_dict() == {  # from the paper's table, COCOseq
        ("convnet [ResNet101]", "1 epoch, balanced"): 55.3,
        ("convnet [ResNet101]", "2 epochs (paper 10), imbalanced"): 61.7,
        ("convnet with Attention Consistency", "1 epoch, balanced"): 42.5,
        ("convnet with Attention Consistency", "2 epochs (paper 10), imbalanced"): 65.8,
        ("convnet with RNN-Attention", "1 epoch, balanced"): 39.2,
        ("convnet with RNN-Attention", "2 epochs (paper 10), imbalanced"): 70.2,
    }
    assert table.iloc[0].tolist() == [50.0, 55.3, 50.0, 54.7, 50.0, 56.8]


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
