"""Choose the strength of each loss on held-out training images, by one rule for all.

Run ``python studies/loss_strength.py [DATASET ...]``, which takes about ten minutes on two
cores. It writes figures/studies/loss_strength.csv and keeps the rows of other data sets.

Every loss has five settings, including the one of its paper. The score of a setting is the
mean of overall C-F1, O-F1 and mAP at the end of the stream, averaged over CRS, PRS, CBRS
and the seeds; both F1 scores use the threshold of 0.5. The setting with the highest score
is chosen. Batches are drawn uniformly from the memory, and all losses have the step size of
the data set. The plain loss is included for comparison. The choices are `STRENGTHS` of the
notebook memory_or_loss.
"""

import argparse

import pandas as pd
from choosing import METRICS, save, score
from joblib import Parallel, delayed

SAMPLERS = ["CRS", "PRS", "CBRS"]
PLAIN = "multilabel_soft_margin"
SETTINGS = {
    PLAIN: [{}],
    "inverse_frequency": [{"power": power} for power in (0.1, 0.25, 0.5, 0.75, 1.0)],
    "focal": [
        {"alpha": 0.25, "gamma": 2.0},
        {"alpha": 0.5, "gamma": 1.0},
        {"alpha": 0.5, "gamma": 2.0},
        {"alpha": 0.75, "gamma": 1.0},
        {"alpha": 0.75, "gamma": 2.0},
    ],
    "asymmetric": [{"gamma_neg": power} for power in (1.0, 2.0, 3.0, 4.0, 6.0)],
    "distribution_balanced": [
        {"scale": 2.0, "gamma": 0.0},
        {"scale": 2.0, "gamma": 2.0},
        {"scale": 5.0, "gamma": 0.0},
        {"scale": 5.0, "gamma": 2.0},
        {"scale": 2.0, "gamma": 0.0, "kappa": 0.1},
    ],
}


def score_row(name: str, loss: str, options: dict, method: str) -> dict:
    """Train with a loss; return its row of the table."""
    scores = score(name, method, loss=loss, loss_options=options).round(2)
    setting = " ".join(f"{option}={value:g}" for option, value in options.items())
    cells = {"dataset": name, "loss": loss, "setting": setting, "method": method}
    return cells | dict(scores)


def mark_choice(scores: pd.DataFrame) -> pd.DataFrame:
    """Mark the best setting of each loss."""
    scores["score"] = scores[METRICS].mean(axis=1)
    places = ["dataset", "loss", "setting"]
    means = scores.groupby(places, sort=False)["score"].mean()
    best = means.groupby(["dataset", "loss"], sort=False).idxmax()
    chosen = pd.MultiIndex.from_frame(scores[places]).isin(best)
    return scores.assign(score=scores["score"].round(2), chosen=chosen)


def main() -> None:
    """Train and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", nargs="*", default=["reutersseq", "cocoseq-mini"])
    work = [
        delayed(score_row)(name, loss, setting, method)
        for name in parser.parse_args().dataset
        for loss, settings in SETTINGS.items()
        for setting in settings
        for method in SAMPLERS
    ]
    save(mark_choice(pd.DataFrame(Parallel(-1)(work))), "loss_strength")


if __name__ == "__main__":
    main()
