"""Choose the strength of EWC's penalty for a network that the paper does not have.

Run ``python studies/ewc_strength.py [DATASET ...]``; it takes about two minutes a data
set and writes figures/studies/ewc_strength.csv, in which other data sets keep their
rows. The strength with the highest mean of overall C-F1, O-F1 and mAP on held-out
training images is the `Recipe.ewc_lambda` of the data set.
"""

import argparse
from itertools import product

import pandas as pd
from choosing import METRICS, SEEDS, save, score
from joblib import Parallel, delayed

# five orders of magnitude, as in the paper
STRENGTHS = [0.15, 1.5, 15.0, 150.0, 1500.0, 15000.0]


def score_row(name: str, strength: float, seed: int) -> dict:
    """Train EWC once; return its row of the table."""
    scores = score(name, "EWC", [seed], ewc_lambda=strength).round(2)
    return {"dataset": name, "ewc_lambda": strength, "seed": seed, **scores}


def main() -> None:
    """Train, write the table and print the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", nargs="*", default=["digits70seq", "digits49seq"])
    grid = product(parser.parse_args().dataset, STRENGTHS, SEEDS)
    table = pd.DataFrame(Parallel(-1)(delayed(score_row)(*place) for place in grid))
    save(table, "ewc_strength")
    means = table.groupby(["dataset", "ewc_lambda"], sort=False)[METRICS].mean()
    print(means.assign(mean=means.mean(axis=1)).round(1))


if __name__ == "__main__":
    main()
