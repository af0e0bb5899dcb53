"""What memory and loss move, decided by the rule that stands in the notebook."""

import re

import numpy as np
import pandas as pd
import pytest
from cells import functions_of

from prslib.paths import project_root
from prslib.report.notebook import Settings
from prslib.report.topics import definitions

notebook = functions_of("memory_or_loss")
CHOSEN = definitions("memory_or_loss")["STRENGTHS"]
OWN = notebook.OWN


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


def of(f1, own, ranking):
    return notebook.moved(pd.Series({"C-F1": f1, OWN: own, "mAP": ranking}))


def test_what_moves_the_threshold_alone_is_gone_at_the_own_threshold():
    assert of("above", "", "") == "the threshold"
    assert of("above", "below", "") == "the threshold"
    assert of("below", "", "") == "the threshold"


def test_what_moves_map_moves_the_ranking_and_perhaps_the_threshold_too():
    assert of("above", "above", "above") == "the ranking"
    assert of("above", "", "below") == "ranking and threshold"
    assert of("", "", "above") == "the ranking"


def test_what_is_unclear_is_said_to_be():
    assert (
        of("", "", "") == of("", "above", "") == "neither ranking nor threshold clearly"
    )
    assert of("above", "above", "") == "F1 at any threshold"


def rows_of(shifts, seeds=6):
    """Scores of a data set by arm and metric, with a little noise."""
    rng = np.random.default_rng(0)
    rows = []
    for arm, by_metric in shifts.items():
        for metric in notebook.WAYS:
            for seed in range(seeds):
                value = 40 + by_metric.get(metric, 0) + rng.normal(0, 0.2)
                cells = {"dataset": "reutersseq", "stands_for": "", "arm": arm}
                cells |= {"measure": "score", "group": "overall", "metric": metric}
                rows.append(cells | {"seed": seed, "value": value})
    return pd.DataFrame(rows)


def test_the_answer_names_what_each_moves_and_what_both_do():
    settings = Settings.of(
        "quick", "memory_or_loss", loss=[notebook.PLAIN, "asymmetric"]
    )
    loss = {"C-F1": 8}
    memory = {"C-F1": 5, OWN: 5, "mAP": 4}
    arms = {
        notebook.arm("CRS", notebook.PLAIN): {},
        notebook.arm("PRS", notebook.PLAIN): memory,
        notebook.arm("CRS", "asymmetric"): loss,
        notebook.arm("PRS", "asymmetric"): memory | {"C-F1": 13},
    }
    gaps = notebook.differences(rows_of(arms), settings)
    changes = set(gaps["change"])
    assert changes == {
        "memory",
        "loss",
        "memory and loss",
        "memory, with the loss",
        "loss, with the memory",
    }
    said = notebook.answer(gaps, "reutersseq")
    assert re.fullmatch(
        r"Both, on reutersseq: C-F1 changes by \+[45]\.\d points with the memory, "
        r"\+[78]\.\d with the loss, \+1[23]\.\d with both\. Only the memory moves mAP clearly\.",
        said,
    )
    unclear = gaps.assign(clearly="", difference=0.4)
    assert notebook.answer(unclear, "reutersseq") == (
        "Neither, on reutersseq: C-F1 changes by +0.4 points with the memory, "
        "+0.4 with the loss, +0.4 with both. Neither moves mAP clearly."
    )
    first = notebook.numbers(gaps, "reutersseq")[0]
    assert first.startswith("- memory: C-F1 +5") and ", mAP +" in first
    assert first.endswith("It moves the ranking.")
