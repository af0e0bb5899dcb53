"""PRS beside CRS by the number of images."""

import pytest
from cells import functions_of
from fake_runs import fake_run

from prslib.report.tables import final, scores_of
from prslib.training.grids import configs

main_results = functions_of("main_results")


def test_the_gap_is_told_by_images():
    leads = {"cocoseq-mini": 0.03, "cocoseq-mini-25": 0.01, "cocoseq-mini-50": 0.02}
    methods = ["CRS", "PRS", "EWC"]
    runs = [
        fake_run(config, 0.5 + leads[config.dataset] * (config.method == "PRS"))
        for config in configs(dataset=list(leads), method=methods)
    ]
    table = main_results.by_images(final(scores_of(runs)))
    shown = table[table["metric"] == "mAP"]
    assert shown["difference"].tolist() == pytest.approx([1, 2, 3])
    assert shown["images"].is_monotonic_increasing and shown["images"].iloc[-1] == 2072
