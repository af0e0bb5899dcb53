"""Why the stand-ins' EWC has a strength of its own: the last section of `main_results`."""

from prose import evidence
from prslib.datasets import DATASETS
from prslib.report.strengths import PAPERS

rows, number, mean = evidence.of("seeds")
DOCUMENT = "notebooks/main_results.py"
SECTION = ("## EWC: what it freezes, and how hard it holds on\n", "")
SETS = ("digits70seq", "digits49seq")


def scores(metric):
    """Return EWC's mean over sets and seeds by strength, in percent."""
    found = rows("main_ewc_strengths", method="EWC", metric=metric)
    assert set(found["dataset"]) == set(SETS)
    return found.groupby("ewc_lambda")["value"].mean()


def best_of_five():
    tried = [PAPERS / 10**step for step in range(5)]
    found = {metric: scores(metric) for metric in ("C-F1", "O-F1", "mAP")}
    best = {float(by_strength[tried].idxmax()) for by_strength in found.values()}
    return best == {DATASETS[name].recipe.ewc_lambda for name in SETS}


SAID = {
    "the stand-ins take the best of five from 15,000 downwards": best_of_five,
}
FREE = ('"optimized among 5 order of magnitudes and tuned to 15k"', "At 0 nothing is held")
