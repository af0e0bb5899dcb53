"""Choose the components and the step size of reutersseq by all methods' vote.

Run ``python studies/reuters_settings.py``; it takes about ten minutes on one core and
writes figures/studies/reuters_settings.csv. It chooses where nothing is reported: on
other seeds, and on a random fifth of the training documents, held out as the test set.
The rule: a method's score of a setting is its mean of overall C-F1, O-F1 and mAP over
the seeds. Each method ranks all settings, and the setting with the lowest mean rank is
taken; of equal ones the one with the higher mean score. The first components of a
truncated SVD are those of a shorter one, so fewer are the first columns of the embedded
features. EWC votes with the strength of cocoseq-mini; `studies/ewc_strength.py
reutersseq` chooses its own afterwards, in the setting that has won here.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ewc_strength import METRICS, SEEDS, held_out
from saving import save
from tqdm import tqdm

from prslib import DATASETS, METHODS, run
from prslib.datasets import Entry, SequentialDataset, Split
from prslib.report.asked import Asked
from prslib.report.tables import final, scores_of

DATA = "reutersseq"
COMPONENTS = (256, 512)
STEPS = (0.0005, 0.001, 0.002, 0.004, 0.008)
# of the main table; not the methods that rehearse otherwise
VOTERS = [name for name, row in METHODS.items() if row.rehearsal == "mean"]
VOTES_WITH = {"ewc_lambda": 1500.0}


def cut(dataset: SequentialDataset, components: int) -> SequentialDataset:
    """Leave the first components of every document, standardised anew."""
    train = dataset.train.inputs[:, :components]
    mean, sd = train.mean(dtype=np.float64), train.std(dtype=np.float64)

    def of_split(split: Split) -> Split:
        inputs = (split.inputs[:, :components] - mean) / sd
        return replace(split, inputs=inputs.astype(np.float32))

    tests = {name: of_split(split) for name, split in dataset.tests.items()}
    return replace(dataset, train=of_split(dataset.train), tests=tests)


def score(dataset: str, method: str, step: float) -> float:
    """Return a method's score in percent, on what is held out."""
    config = partial(Asked, dataset, method, learning_rate=step, **VOTES_WITH)
    rows = final(scores_of([run(config(seed=seed)) for seed in SEEDS]))
    overall = rows[(rows["group"] == "overall") & (rows["measure"] == "score")]
    return float(overall[overall["metric"].isin(METRICS)]["value"].mean())


def always(dataset: SequentialDataset) -> Callable[[bool], SequentialDataset]:
    return lambda images: dataset


def votes() -> pd.DataFrame:
    """Return every method's score of every setting, the setting that wins first."""
    recipe = replace(DATASETS[DATA].recipe, test_resamples=0)
    whole = held_out(DATA, images=True)
    rows = []
    for components in COMPONENTS:
        name = f"{DATA}-{components}"
        DATASETS[name] = Entry(always(cut(whole, components)), recipe)
        for step in tqdm(STEPS, name, unit="step size"):
            scores = {method: score(name, method, step) for method in VOTERS}
            rows.append({"components": components, "learning_rate": step} | scores)
    table = pd.DataFrame(rows)
    methods = list(VOTERS)
    table["mean_rank"] = table[methods].rank(ascending=False).mean(axis=1)
    table["mean"] = table[methods].mean(axis=1)
    table = table.sort_values(["mean_rank", "mean"], ascending=[True, False])
    scored = [*methods, "mean_rank", "mean"]
    return table.round(dict.fromkeys(scored, 2))


def main() -> None:
    torch.set_num_threads(1)
    save(votes(), "reuters_settings")


if __name__ == "__main__":
    main()
