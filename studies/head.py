"""Choose the step size and the optimiser of the head on frozen features.

Run ``python studies/head.py``, which writes figures/studies/head_choice.csv. The score of a
setting is the mAP on held-out training images at the end of the stream of cocoseq-mini,
averaged over all methods and two seeds; the setting with the highest score is best. An
earlier search with only Multitask and CRS included other widths and raw features: wider
heads scored higher, but a run needs two to three times as long, and raw features scored
lower than standardised ones at every width. docs/real_coco.md compares both choices.
"""

import argparse

import pandas as pd
import torch
from choosing import SEEDS, VOTERS, save, score
from tqdm import tqdm

STEPS = {"adam": (0.0005, 0.001, 0.002, 0.003, 0.004, 0.006), "sgd": (0.1, 0.3, 1.0)}


def main() -> None:
    """Train with each setting, print the table and write it."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.set_num_threads(1)
    steps = [(name, step) for name, steps in STEPS.items() for step in steps]
    rows = []
    for optimizer, step in tqdm(steps, unit="setting"):
        fields = {"optimizer": optimizer, "learning_rate": step}
        scores = {
            method: score("cocoseq-mini", method, SEEDS[:2], **fields)["mAP"]
            for method in VOTERS
        }
        rows.append(fields | scores)
    table = pd.DataFrame(rows)
    table["mean"] = table[VOTERS].mean(axis=1)
    table = table.round(dict.fromkeys([*VOTERS, "mean"], 2))
    save(table.sort_values("mean", ascending=False, ignore_index=True), "head_choice")


if __name__ == "__main__":
    main()
