"""Choose the strength of each loss on held-out training images, by one rule for all.

Run ``python studies/loss_strength.py [DATASET ...]``; it takes about ten minutes on two
cores and writes figures/studies/loss_strength.csv, in which other data sets keep their
rows. It chooses where nothing is reported: on other seeds, and on a random fifth of the
training images, held out as the test set.

The rule: every loss has five settings, its paper's among them. A setting's score is the
mean of overall C-F1, O-F1 and mAP, each at the end of the stream, F1 at a threshold of
0.5, over CRS, PRS and CBRS and over the seeds. The setting with the highest score is
taken. Batches are drawn uniformly from the memory. The step size is the data set's own
for all losses. The plain loss stands beside them, and has nothing to choose.
`STRENGTHS` of the notebook memory_or_loss holds what is chosen.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

import pandas as pd
from joblib import Parallel, delayed

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ewc_strength import METRICS, SEEDS, held_out
from saving import save

from prslib import DATASETS, run
from prslib.datasets import Entry
from prslib.paths import figures_dir
from prslib.report.asked import Asked
from prslib.report.tables import final, scores_of

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


def tried(name: str, loss: str, options: dict, method: str) -> pd.DataFrame:
    """Train on the images that are left; return mean overall scores in percent."""
    import prslib  # in the worker: the names above are copies there

    entry = Entry(partial(held_out, name), DATASETS[name].recipe)
    prslib.DATASETS[f"{name}-held-out"] = entry
    config = partial(Asked, f"{name}-held-out", method, loss=loss)
    runs = [run(config(loss_options=options, seed=seed)) for seed in SEEDS]
    rows = final(scores_of(runs))
    overall = rows[(rows["group"] == "overall") & (rows["measure"] == "score")]
    means = overall.groupby("metric")["value"].mean()[METRICS].round(2)
    setting = " ".join(f"{option}={value:g}" for option, value in options.items())
    cells = {"dataset": name, "loss": loss, "setting": setting, "method": method}
    return pd.DataFrame([cells | dict(means)])


def with_choice(scores: pd.DataFrame) -> pd.DataFrame:
    """Mark the setting of each loss that the rule takes."""
    scores = scores.fillna({"setting": ""})
    scores["score"] = scores[METRICS].mean(axis=1)
    places = ["dataset", "loss", "setting"]
    means = scores.groupby(places, sort=False)["score"].mean()
    best = means.groupby(["dataset", "loss"], sort=False).idxmax()
    chosen = pd.MultiIndex.from_frame(scores[places]).isin(best)
    return scores.assign(score=scores["score"].round(2), chosen=chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", nargs="*", default=["reutersseq", "cocoseq-mini"])
    parser.add_argument(
        "--workers", type=int, default=-1, help="processes (one for each core)"
    )
    options = parser.parse_args()
    work = [
        delayed(tried)(name, loss, setting, method)
        for name in options.dataset
        for loss, settings in SETTINGS.items()
        for setting in settings
        for method in SAMPLERS
    ]
    scores = pd.concat(Parallel(n_jobs=options.workers)(work), ignore_index=True)
    path = figures_dir("studies") / "loss_strength.csv"
    if path.is_file():
        before = pd.read_csv(path)
        scores = pd.concat([before[~before["dataset"].isin(options.dataset)], scores])
    scores = with_choice(scores)
    save(scores, "loss_strength")
    places = ["dataset", "loss", "setting", "chosen"]
    print(scores.groupby(places, sort=False)[[*METRICS, "score"]].mean().round(1))


if __name__ == "__main__":
    main()
