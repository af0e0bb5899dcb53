"""Choose the head of frozen features, and measure what a run costs.

Run ``python studies/head.py``. It chooses step size and optimiser on the training
stream of cocoseq-mini alone: a fifth of its images is held out as a test set, and the
seeds are none of the report's. The rule: every method votes with its mAP at the end of
the stream, the mean over the seeds, and the setting with the highest mean over all
methods is chosen. It writes figures/studies/head_choice.csv. All settings have width
256. Before, Multitask and CRS alone had chosen, among other widths and raw features, too:
wider heads scored higher, but a run takes two and three times as long, and raw features
scored lower than standardised ones at every width.
`bench/whole.py` times a run beside a bare loop of PyTorch.
"""

import argparse
import dataclasses
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ewc_strength import held_out
from saving import save
from tqdm import tqdm

from prslib import METHODS, RunConfig, run
from prslib.datasets import DATASETS, Entry
from prslib.models import MODELS, networks

DATA = "cocoseq-mini"
WIDTH = 256
STEPS = {"adam": (0.0005, 0.001, 0.002, 0.003, 0.004, 0.006), "sgd": (0.1, 0.3, 1.0)}
SEEDS = (100, 101)
# of the main table; not the methods that rehearse otherwise
VOTERS = [name for name, row in METHODS.items() if row.rehearsal == "mean"]


def choice() -> pd.DataFrame:
    """Return the mean mAP of every setting on what is held out, the best first."""
    plain = {"test_resamples": 0}
    recipe = dataclasses.replace(DATASETS[DATA].recipe, **plain)
    dataset = held_out(DATA, images=True)
    steps = [(name, step) for name, steps in STEPS.items() for step in steps]
    networks.tried = partial(networks.mlp, widths=(WIDTH,))
    rows = []
    for optimizer, step in tqdm(steps, unit="setting"):
        MODELS["tried"] = dataclasses.replace(MODELS["head"], made_by="networks:tried")
        fields = {"optimizer": optimizer, "learning_rate": step}
        tried = dataclasses.replace(recipe, model="tried", **fields)
        DATASETS["held-out"] = Entry(lambda images: dataset, tried)
        votes = {method: mean_score(method) for method in VOTERS}
        row = {**fields, **votes}
        rows.append(row | {"mean": np.mean(list(votes.values()))})
    scored = {name: 2 for name in (*VOTERS, "mean")}
    table = pd.DataFrame(rows).round(scored)
    return table.sort_values("mean", ascending=False, ignore_index=True)


def mean_score(method: str) -> float:
    """Return a method's mean mAP in percent over the seeds, on what is held out."""
    overall = "task == 'seen' and group == 'overall' and metric == 'mAP'"
    values = []
    for seed in SEEDS:
        scores = run(RunConfig("held-out", method, seed)).scores
        end = scores[scores["trained_tasks"] == scores["trained_tasks"].max()]
        values.append(end.query(overall)["value"].item())
    return 100 * float(np.mean(values))


def main() -> None:
    """Choose, print and write the table."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    torch.set_num_threads(1)
    save(choice(), "head_choice")


if __name__ == "__main__":
    main()
