"""What memory and loss move, decided by the rule that stands in the notebook."""

import pandas as pd
import pytest
from cells import functions_of

from prslib.paths import project_root
from prslib.report.topics import definitions

notebook = functions_of("memory_or_loss")
CHOSEN = definitions("memory_or_loss")["STRENGTHS"]


@pytest.mark.parametrize("dataset", CHOSEN)
def test_strengths_are_those_of_the_study_best_first(dataset):
    table = pd.read_csv(project_root() / "figures" / "studies" / "loss_strength.csv")
    table = table[(table["dataset"] == dataset) & table["chosen"]].fillna(
        {"setting": ""}
    )
    means = table.groupby(["loss", "setting"])["score"].mean().reset_index()
    means = means[means["loss"] != notebook.PLAIN].sort_values("score", ascending=False)
    pairs = means.set_index("loss")["setting"]
    settings = {
        loss: {k: float(v) for k, v in (pair.split("=") for pair in text.split())}
        for loss, text in pairs.items()
    }
    assert CHOSEN[dataset] == settings
    assert list(CHOSEN[dataset]) == list(settings)


@pytest.mark.parametrize(
    ("f1", "own", "ranking", "moves"),
    [
        ("above", "", "", "the threshold"),
        ("above", "below", "", "the threshold"),
        ("above", "above", "above", "the ranking"),
        ("", "", "above", "the ranking"),
        ("above", "", "below", "ranking and threshold"),
        ("above", "above", "", "F1 at any threshold"),
        ("", "above", "", "neither ranking nor threshold clearly"),
    ],
)
def test_what_moves_the_threshold_alone_is_gone_at_the_own_one(f1, own, ranking, moves):
    clearly = pd.Series({"C-F1": f1, notebook.OWN: own, "mAP": ranking})
    assert notebook.moved(clearly) == moves
