"""The table of base architectures: which numbers stand beside ours."""

from cells import functions_of
from fake_runs import fake_run

from prslib.train import RunConfig

architectures = functions_of("architectures")

CONSISTENCY, RECURRENT = "convnet_attention_consistency", "convnet_rnn_attention"


def test_numbers_of_a_network_and_of_methods_on_it_stand_beside_ours():
    names = {"convnet": 0.5, CONSISTENCY: 0.4, RECURRENT: 0.3}
    runs = []
    for name, score in reversed(names.items()):
        network = {"dataset": "digits70tiny", "model": name}
        longer = RunConfig(**network, method="Multitask", epochs=2)
        runs.append(fake_run(longer, score + 0.05, ["imbalanced"]))
        for method in ("Multitask", "CRS", "PRS"):
            runs.append(fake_run(RunConfig(**network, method=method), score))
    rows = architectures.rows_of(runs)
    table = architectures.plain_first(architectures.beside_offline(rows))
    table = architectures.offline_table(table)
    assert table["C-F1", "paper"].to_dict() == {  # of COCOseq, on both test sets
        ("convnet [ResNet101]", "1 epoch"): 55.3,
        ("convnet [ResNet101]", "2 epochs (paper 10)"): 61.7,
        ("convnet with Attention Consistency", "1 epoch"): 42.5,
        ("convnet with Attention Consistency", "2 epochs (paper 10)"): 65.8,
        ("convnet with RNN-Attention", "1 epoch"): 39.2,
        ("convnet with RNN-Attention", "2 epochs (paper 10)"): 70.2,
    }
    assert table.iloc[0].tolist() == [50.0, 55.3, 50.0, 54.7, 50.0, 56.8]
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


def test_a_network_that_replaces_none_of_the_papers_is_sorted_last():
    names = ["resnet18", CONSISTENCY, "convnet"]
    configs = [RunConfig(dataset="digits70tiny", model=name) for name in names]
    rows = architectures.rows_of([fake_run(config, 0.5) for config in configs])
    networks = architectures.plain_first(rows)["network"].unique().tolist()
    names = ["convnet [ResNet101]", "convnet with Attention Consistency", "resnet18"]
    assert networks == names
