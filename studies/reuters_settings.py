"""Choose the components and the step size of reutersseq by a vote of all methods.

Run ``python studies/reuters_settings.py``, which takes about ten minutes on one core. It
writes figures/studies/reuters_settings.csv. A method's score for a setting is the mean of
its overall C-F1, O-F1 and mAP over the seeds, on held-out training documents. Each method
ranks all settings, and the setting with the lowest mean rank is chosen; the mean score
breaks ties. With fewer components, features are the first columns of the embedded truncated
SVD. EWC votes with the strength of cocoseq-mini; afterwards,
`studies/ewc_strength.py reutersseq` chooses its strength for the selected setting.
"""

import argparse
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from choosing import VOTERS, load_held_out, save, score
from tqdm import tqdm

from prslib import DATASETS, register
from prslib.datasets import Entry, SequentialDataset, Split

DATA = "reutersseq"
COMPONENTS = (256, 512)
STEPS = (0.0005, 0.001, 0.002, 0.004, 0.008)


def cut(dataset: SequentialDataset, components: int) -> SequentialDataset:
    """Keep only the first components of every document, and standardise them again."""
    train = dataset.train.inputs[:, :components]
    mean, sd = train.mean(dtype=np.float64), train.std(dtype=np.float64)

    def cut_split(split: Split) -> Split:
        inputs = (split.inputs[:, :components] - mean) / sd
        return replace(split, inputs=inputs.astype(np.float32))

    tests = {name: cut_split(split) for name, split in dataset.tests.items()}
    return replace(dataset, train=cut_split(dataset.train), tests=tests)


def main() -> None:
    """Train, and write every method's score for every setting, the best setting first."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.set_num_threads(1)
    recipe = replace(DATASETS[DATA].recipe, test_resamples=0)
    whole = load_held_out(DATA, images=True)
    rows = []
    for components in COMPONENTS:
        data = cut(whole, components)
        register(f"{DATA}-held-out", Entry(lambda images, data=data: data, recipe))
        for step in tqdm(STEPS, f"{components} components", unit="step size"):
            fields = {"learning_rate": step, "ewc_lambda": 1500.0}
            scores = {name: score(DATA, name, **fields).mean() for name in VOTERS}
            rows.append({"components": components, "learning_rate": step} | scores)
    table = pd.DataFrame(rows)
    table["mean_rank"] = table[VOTERS].rank(ascending=False).mean(axis=1)
    table["mean"] = table[VOTERS].mean(axis=1)
    table = table.sort_values(["mean_rank", "mean"], ascending=[True, False])
    scored = [*VOTERS, "mean_rank", "mean"]
    save(table.round(dict.fromkeys(scored, 2)), "reuters_settings")


if __name__ == "__main__":
    main()
