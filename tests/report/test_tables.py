import numpy as np
import pandas as pd
import pytest
from fake_runs import fake_run

from prslib.report import tables
from prslib.train import RunConfig

CELLS = {"majority": 0.5, "moderate": 0.4, "minority": 0.2, "overall": 0.4}


def run_of(method, seed, gain=0.0, tests=("balanced",)):
    """A run whose tasks fall from 0.8 to 0.6 in every group."""

    def value(cells):
        of_task = np.where(cells["trained_tasks"] == 4, 0.6, 0.8)
        seen = cells["group"].map(CELLS) + gain
        return np.where(cells["task"] == "seen", seen, of_task)

    return fake_run(RunConfig("digits70tiny", method, seed), value, tests)


@pytest.fixture(scope="module")
def scores():
    runs = [run_of("CRS", seed, gain=0.01 * seed) for seed in (0, 1, 2)]
    runs += [run_of("PRS", seed, gain=0.1 + 0.02 * seed) for seed in (0, 1, 2)]
    return tables.scores_of([*runs, run_of("Multitask", 0)])


@pytest.fixture(scope="module")
def averages(scores):
    return tables.merge_published(tables.average(tables.final(scores)), "main")


def test_final_holds_the_last_scores_and_the_forgetting(scores):
    rows = tables.final(scores)
    assert set(rows["metric"]) == set(tables.MAIN_METRICS)
    one = rows.query("method == 'PRS' and group == 'minority' and metric == 'mAP'")
    values = one[one["seed"] == 1].set_index("measure")["value"].to_dict()
    assert values == pytest.approx({"score": 100 * (0.2 + 0.12), "forget": 25})
    assert set(rows.loc[rows["method"] == "Multitask", "measure"]) == {"score"}


def test_average_is_mean_and_sample_deviation_in_the_papers_order(scores, averages):
    assert averages["method"].unique().tolist() == ["Multitask", "CRS", "PRS"]
    assert len(averages) == len(tables.average(tables.final(scores)))
    cells = averages[averages["metric"] == "mAP"]
    cells = cells.set_index(["method", "group", "measure"]).sort_index()
    cell = cells.loc["CRS", "overall", "score"]
    assert cell[["mean", "sd", "seeds"]].tolist() == pytest.approx([41, 1, 3])
    published = cells.loc["PRS", "minority"]["published"].to_dict()
    assert published == {"score": 39.7, "forget": 10.5}


def test_bold_is_the_best_to_the_printed_digit_in_each_block():
    rows = pd.DataFrame({"mean": [1, 1.04, 0.9, 1, 1.04, 3], "published": 1.0})
    rows = rows.assign(method=["CRS", "PRS", "GSS"] * 2, block=[*"aaabbb"])
    rows = rows.assign(group="overall", metric="mAP")
    for lowest, where in (
        (False, [("a", "CRS"), ("a", "PRS"), ("b", "GSS")]),
        (True, [("a", "GSS"), ("b", "CRS"), ("b", "PRS")]),
    ):
        averages = rows.assign(measure="forget" if lowest else "score", sd=np.nan)
        (table,) = tables.main_tables(averages, by=["block"])
        cells = table.data["overall", "mAP"].xs("ours", level="source")
        assert set(cells[cells.str.startswith("<b>")].index) == set(where)


def test_contrasts_are_taken_seed_by_seed(scores):
    rows = tables.merge_published(tables.final(scores, ["mAP"]), "main")
    (gap,) = tables.contrasts(rows, "PRS", "CRS", ["minority"]).to_dict("records")
    row = [gap[name] for name in ("difference", "sd", "published")]
    assert row == pytest.approx([11, 1, 39.7 - 26.9])
    place = "digits70tiny, minority mAP, balanced test: PRS minus CRS: +11.0 ("
    assert gap["sentence"].startswith(place)
    assert gap["sentence"].endswith("; paper: +12.8.")


def test_the_test_set_is_a_column_that_joins():
    run = run_of("CRS", 0, tests=["open", "imbalanced", "balanced"])
    rows = tables.final(tables.scores_of([run]))
    cells = rows[(rows["measure"] == "score") & (rows["group"] == "overall")]
    assert cells["test_set"].tolist() == ["balanced"] * 3 + ["imbalanced"] * 3
    table = tables.merge_published(cells, "main", "imbalanced_test")
    shown = table[table["metric"] == "mAP"].set_index("test_set")["published"]
    assert shown.to_dict() == {"imbalanced": 55.3, "balanced": 50.2}
