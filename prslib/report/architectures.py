"""List the runs on the paper's base architectures, and set their scores beside its tables."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from prslib import MODELS, Run, RunConfig, configs, paired
from prslib.report.notebook import Trained, several
from prslib.report.tables import MAIN_METRICS, beside, final, scores_of

OFFLINE = "Multitask"


class Settings(Trained):
    """Parameters of the notebook, which explains them."""

    dataset: list[str] = several("digits70seq")
    model: list[str] = several("convnet", "convnet_rnn_attention")
    frozen_stages: list[int] = several(1, 0)
    learning_rates: list[float | None] = several(None, 0.0005)
    costly_models: list[str] = several("convnet_rnn_attention")
    weights: str | None = None
    epochs: list[int] = several(1, 2)
    method: list[str] = several("CRS", "PRS")
    rho: float = 0.0
    seeds: list[int] = several(0)


def runs(settings: Settings) -> list[RunConfig]:
    """List runs of methods one epoch long, and of Multitask on both test sets.

    Costly models take the fewest epochs alone.
    """
    networks = paired(
        model=settings.model,
        frozen_stages=settings.frozen_stages,
        learning_rate=settings.learning_rates,
    )
    fixed = {
        "dataset": settings.dataset,
        "weights": settings.weights,
        "seed": settings.seeds,
        "rho": settings.rho,
    }
    plain, *others = networks
    # the tables of methods have the plain network not frozen, that of networks frozen
    also = [OFFLINE] if plain["frozen_stages"] else []
    thawed = plain | {"frozen_stages": 0}
    made = configs(method=[*settings.method, *also], **thawed, **fixed)
    for network in others:
        made += configs(method=settings.method, **network, **fixed)
    for epochs in sorted(settings.epochs, reverse=True):
        fewest = epochs == min(settings.epochs)
        for test_set, network in product(["balanced", "imbalanced"], networks):
            if fewest or network["model"] not in settings.costly_models:
                fields = {"epochs": epochs, "test_set": test_set} | network
                made += configs(method=OFFLINE, **fields, **fixed)
    return made


def rows_of(runs: Sequence[Run]) -> pd.DataFrame:
    """Take the final scores of runs on several networks (Appendix, "Base Architectures")."""
    rows = final(scores_of(runs, "model", "epochs", "test_set", "frozen_stages"))
    many = rows["epochs"] > 1
    paper = np.where(many, 10, 1)
    ours = rows["epochs"].astype(str) + np.where(many, " epochs", " epoch")
    theirs = np.where(rows["epochs"] != paper, " (paper 10)", "")
    return rows.assign(
        architecture=rows["model"].map(lambda name: MODELS[name].stands_for),
        network=rows["model"].map(_network),
        paper_epochs=paper,
        setting=ours + theirs + ", " + rows["test_set"],
    )


def _network(model: str) -> str:
    """Name a network, what is built upon it, and the paper's that it stands for."""
    plain, _, built = model.partition("_")
    theirs = MODELS[model].stands_for
    return f"{plain} with {theirs}" if built else f"{plain} [{theirs}]"


def beside_offline(rows: pd.DataFrame) -> pd.DataFrame:
    """Set the paper's table of base architectures beside Multitask's overall scores (Appendix)."""
    rows = rows[(rows["method"] == OFFLINE) & (rows["group"] == "overall")]
    chosen = _frozen(rows, "max")
    asked = chosen.assign(epochs=chosen["paper_epochs"])
    table = beside(asked, "architectures", also=["architecture", "epochs", "test_set"])
    return table.assign(epochs=chosen["epochs"].to_numpy())


def beside_methods(rows: pd.DataFrame) -> pd.DataFrame:
    """Set the paper's tables of methods beside ours, network by network (Appendix)."""
    rows = rows[(rows["epochs"] == 1) & (rows["test_set"] == "balanced")]
    tables = ("main", "attention_consistency", "rnn_attention")
    return beside(_frozen(rows, "min"), *tables, also=["architecture"])


def _frozen(rows: pd.DataFrame, which: str) -> pd.DataFrame:
    """Choose each network's rows with the most ("max") or the fewest ("min") frozen stages."""
    count = rows["frozen_stages"]
    return rows[count == count.groupby(rows["model"]).transform(which)]


def plain_first(rows: pd.DataFrame) -> pd.DataFrame:
    """Sort rows as in the paper's tables: the plain network and one epoch first."""
    models = [row.stands_for for row in MODELS.values()]
    rows = rows.assign(place=rows["architecture"].map(models.index))
    rows = rows.sort_values(["place", "epochs", "test_set"], kind="stable")
    return rows.drop(columns="place").reset_index(drop=True)


def offline_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Lay out the table of base architectures, ours and the paper's numbers (Appendix)."""
    cells = plain_first(rows).rename(columns={"value": "ours", "published": "paper"})
    by = cells.groupby(["network", "setting", "metric"], sort=False)
    table = by[["ours", "paper"]].mean().unstack("metric", sort=False)
    return table.swaplevel(axis=1)[[*product(MAIN_METRICS, ("ours", "paper"))]].round(1)
