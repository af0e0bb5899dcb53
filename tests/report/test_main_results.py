"""PRS beside CRS by the number of images: which rows are compared."""

import numpy as np
from fake_runs import fake_run

from prslib.report.main_results import Settings, by_images, runs
from prslib.report.tables import final, scores_of
from prslib.training.grids import configs
from prslib.training.methods import METHODS

NAMES = ["cocoseq-mini-25", "cocoseq-mini-50", "cocoseq-mini"]


def test_the_gap_is_told_by_images():
    leads = dict(zip(NAMES, (0.01, 0.02, 0.03), strict=True))
    methods = ["CRS", "PRS", "EWC"]
    runs = [
        fake_run(config, 0.5 + leads[config.dataset] * (config.method == "PRS"))
        for config in configs(dataset=NAMES[::-1], method=methods, seed=range(5))
    ]
    table = by_images(final(scores_of(runs)))
    shown = table[table["metric"] == "mAP"]
    assert shown["dataset"].tolist() == NAMES
    assert shown["images"].is_monotonic_increasing and shown["images"].iloc[-1] == 2072
    np.testing.assert_allclose(shown["difference"], [1, 2, 3])


def test_costly_data_sets_take_their_own_seeds():
    costly = {"costly": ["digits49tiny"], "costly_seeds": [2]}
    names = ["digits70tiny", "digits49tiny"]
    made = runs(Settings(dataset=names, rho=[0.0], seeds=[0, 1], **costly))
    seeds = {(config.dataset, config.seed) for config in made}
    assert seeds == {("digits70tiny", 0), ("digits70tiny", 1), ("digits49tiny", 2)}
    assert len(made) == 3 * len(METHODS)
