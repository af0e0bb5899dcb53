"""What memory and loss move, decided by the rule that stands in the notebook."""

from itertools import product

import pandas as pd
import pytest
from cells import functions_of

from prslib.paths import project_root
from prslib.report.notebook import Settings
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


@pytest.fixture
def rows():
    """Return made-up scores: the loss adds 10 points at 0.5 and nothing at the tuned one."""
    made = []
    for method, gain in (("CRS", 0.0), ("PRS", 5.0)):
        for loss in (notebook.PLAIN, "asymmetric"):
            for test_set, seed in product(("balanced", "imbalanced"), range(5)):
                for metric in notebook.WAYS:
                    at_half = metric == "C-F1" and loss != notebook.PLAIN
                    value = gain + 10 * at_half + seed
                    arm = notebook.name_arm(method, loss)
                    made.append((test_set, arm, seed, metric, value))
    rows = pd.DataFrame(made, columns=["test_set", "method", "seed", "metric", "value"])
    return rows.assign(dataset="reutersseq", measure="score", group="overall")


def test_a_loss_that_only_calibrates_adds_nothing_at_the_tuned_threshold(rows):
    values = {"loss": [notebook.PLAIN, "asymmetric"], "dataset": ["reutersseq"]}
    settings = Settings.of("quick", "memory_or_loss", **values)
    gaps = notebook.compare_changes(rows, settings)
    alike = gaps[gaps["test_set"] == "balanced"].set_index(["change", "metric"])
    points = alike["difference"]
    assert points["memory", "C-F1"] == points["memory", notebook.OWN] == 5
    assert points["loss, with the memory", "C-F1"] == 10
    assert points["loss, with the memory", notebook.OWN] == 0
    assert "draw" not in set(gaps["change"])  # it was not trained
    losses = notebook.compare_losses(rows, settings)
    table = notebook.lay_out(losses, ["loss", "method"])
    assert list(table.columns) == list(notebook.SHOWN.values())
    assert len(table) == 2
