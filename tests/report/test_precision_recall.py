"""The curves of F1 over the threshold."""

import pytest
from cells import functions_of

from prslib import RunConfig, run
from prslib.statistics import scores


def test_a_curve_has_the_scores_of_its_run_at_half():
    finished = run(RunConfig("cocoseq-tiny", "PRS", predictions=True))
    cells = ["test_set", "group", "metric"]
    curves = functions_of("precision_recall").score_thresholds(finished)
    at_half = curves[curves["threshold"] == 0.5].set_index(cells)["value"]
    assert at_half.notna().any() and len(at_half) == 2 * 4 * 2  # tests, groups, F1
    expected = scores([finished]).set_index(cells)["value"]
    assert at_half.to_dict() == pytest.approx(
        expected[at_half.index].to_dict(), nan_ok=True
    )
