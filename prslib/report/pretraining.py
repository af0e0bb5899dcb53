"""Compare methods by the weights that the network starts from."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from prslib import Run, RunConfig, configs, load_dataset, paired
from prslib.datasets.scenes import CLASS_NAMES, TURNS, draw_scenes
from prslib.models.weights import NONE
from prslib.report import ledger
from prslib.report.notebook import Trained, several
from prslib.report.results import results_of


class Settings(Trained):
    """Parameters of the notebook, which explains them."""

    one_label = False
    dataset: list[str] = several("digits70seq")
    rhos: list[float] = several(0.0)
    begun_with: list[str] = several("none", "digits", "digits")
    frozen_stages: list[int] = several(0, 0, 3)
    method: list[str] = several("CRS", "PRS", "EWC")
    seeds: list[int] = several(0)


def runs(settings: Settings) -> list[RunConfig]:
    """List a run of every method and seed from each of the initial weights."""
    starts = paired(weights=settings.begun_with, frozen_stages=settings.frozen_stages)
    pairs = paired(dataset=settings.dataset, rho=settings.rhos)
    made = []
    for pair, start in product(pairs, starts):
        fields = pair | start | {"method": settings.method, "seed": settings.seeds}
        # EWC freezes no more than the others
        made += configs(**fields, pretrained_stages=0)
    return made


def beginning(config: RunConfig) -> str:
    """Name what a run's network begins with, and whether all but its head stays as it began."""
    settings = config.resolved
    name = settings["weights"].replace("_", " ")
    frozen = ", frozen" if settings["frozen_stages"] else ""
    return ("random" if name == NONE else name) + frozen


def by_weights(runs: Sequence[Run], configs: Sequence[RunConfig]) -> pd.DataFrame:
    """Decide the paper's claims under each weights; leave out claims without runs."""
    tables = []
    for weights in dict.fromkeys(map(beginning, configs)):
        alike = [config for config in configs if beginning(config) == weights]
        of_weights = [run for run in runs if beginning(run.config) == weights]
        decided = ledger.decide(results_of(of_weights, alike))
        tables.append(decided.assign(weights=weights))
    decided = pd.concat(tables)
    return decided[decided["verdict"] != "not run"].reset_index(drop=True)


def differing_verdicts(decided: pd.DataFrame) -> pd.DataFrame:
    """Lay out the claims whose verdict differs between weights: effect, interval and verdict."""
    account = ledger.account(decided).assign(weights=decided["weights"])
    verdicts = account.groupby(["claim", "data"])["after Holm"]
    rows = account[verdicts.transform("nunique") > 1]
    cells = rows["effect"] + ": " + rows["after Holm"]
    keys = ["claim", "data", "paper"]
    weights = decided["weights"].unique()
    rows = rows.assign(cell=cells).set_index([*keys, "weights"])
    wide = rows["cell"].unstack(sort=False)
    wide = wide.reindex(columns=weights).fillna("not run").reset_index()
    return wide[["claim", "data", *weights, "paper"]]


def example_scenes(
    weights: Sequence[str], dataset: str, count: int
) -> tuple[pd.DataFrame, list[np.ndarray]]:
    """Draw a few images of a stream, and of the scenes behind each of the embedded weights."""
    data = load_dataset(dataset)
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(len(data.train), count, replace=False))
    stream = data.train.inputs[rows], data.train.labels[rows]
    drawn = {dataset: (data.class_names, *stream)}
    for name in dict.fromkeys(weights):
        if name in TURNS:
            scenes = draw_scenes(name, count, rng)
            drawn[name.replace("_", " ")] = (CLASS_NAMES, *scenes)
    frame, images = [], []
    for source, (names, pictures, labels) in drawn.items():
        for picture, row in zip(pictures, labels.astype(bool), strict=True):
            images.append(picture)
            frame.append((source, ", ".join(np.array(names)[row])))
    return pd.DataFrame(frame, columns=["source", "labels"]), images
