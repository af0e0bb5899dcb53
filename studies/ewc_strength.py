"""Choose the strength of EWC's penalty for networks that the paper does not use.

Run ``python studies/ewc_strength.py [DATASET ...]``, which takes one to five minutes per
data set. It writes figures/studies/ewc_strength.csv and keeps the rows of other data sets.
The strength with the highest overall mAP on held-out training samples is the
`Recipe.ewc_lambda` of the data set. mAP does not depend on a threshold, and it depends
little on the class mix of the test. The grid is so wide that no choice is at its edge.
"""

import argparse
from itertools import product

import pandas as pd
from choosing import METRICS, SEEDS, save, score
from joblib import Parallel, delayed

# the paper's five orders of magnitude, and three more on either side
STRENGTHS = [1.5 * 10.0**power for power in range(-4, 8)]


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
    print(means.round(1))


if __name__ == "__main__":
    main()
