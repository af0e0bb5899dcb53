"""List the runs on the paper's base architectures, and set their scores beside its tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import pandas as pd
from matplotlib.axes import Axes

from prslib.models import MODELS
from prslib.report import notebook
from prslib.report.notebook import several
from prslib.report.style import plot_variations
from prslib.report.tables import METRICS, beside, contrasts, final, scores_of
from prslib.training.config import Run, RunConfig
from prslib.training.grids import configs, paired
from prslib.training.methods import METHODS

OFFLINE = next(name for name, method in METHODS.items() if method.offline)


@dataclass(frozen=True)
class Settings(notebook.Settings):
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
    device: str = "cpu"


def runs(settings: Settings) -> list[RunConfig]:
    """List runs of methods one epoch long, and of Multitask on both test sets.

    Costly models take the fewest epochs alone.
    """
    networks = paired(
        model=settings.model,
        frozen_stages=settings.frozen_stages,
        learning_rate=settings.learning_rates,
    )
    fixed = {"dataset": settings.dataset, "weights": settings.weights}
    fixed["seed"] = settings.seeds
    plain, *others = networks
    # the tables of methods have the plain network not frozen, that of networks frozen
    also = [OFFLINE] if plain["frozen_stages"] else []
    made = configs(
        method=[*settings.method, *also],
        rho=settings.rho,
        **plain | {"frozen_stages": 0},
        **fixed,
    )
    for network in others:
        made += configs(method=settings.method, rho=settings.rho, **network, **fixed)
    for epochs in sorted(settings.epochs, reverse=True):
        cheap = [n for n in networks if n["model"] not in settings.costly_models]
        trained = networks if epochs == min(settings.epochs) else cheap
        for test_set, network in product(["balanced", "imbalanced"], trained):
            fields = {"epochs": epochs, "test_set": test_set} | network
            made += configs(method=OFFLINE, **fields, **fixed)
    return made


def rows_of(runs: Sequence[Run]) -> pd.DataFrame:
    """Take the final scores of runs on several networks (Appendix, "Base Architectures")."""
    rows = final(scores_of(runs, "model", "epochs", "test_set", "frozen_stages"))
    names = rows["model"].map(lambda name: MODELS[name].stands_for)
    paper = rows["epochs"].map(lambda epochs: 10 if epochs > 1 else 1)
    ours = rows["epochs"].map(lambda n: f"{n} epochs" if n > 1 else "1 epoch")
    theirs = paper.map(" (paper {})".format).where(rows["epochs"] != paper, "")
    return rows.assign(
        architecture=names,
        network=rows["model"].map(_network),
        paper_epochs=paper,
        setting=ours + theirs + ", " + rows["test_set"],
    )


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
    chosen = _frozen(rows, "min")
    tables = ("main", "attention_consistency", "rnn_attention")
    return beside(chosen, *tables, also=["architecture"])


def _frozen(rows: pd.DataFrame, which: str) -> pd.DataFrame:
    """Choose each network's rows with the most ("max") or the fewest ("min") frozen stages."""
    count = rows["frozen_stages"]
    return rows[count == count.groupby(rows["model"]).transform(which)]


def _network(model: str) -> str:
    """Name a network, what is built upon it, and the paper's that it stands for."""
    plain, _, built = model.partition("_")
    theirs = MODELS[model].stands_for
    return f"{plain} with {theirs}" if built else f"{plain} [{theirs}]"


def _rank(architecture: str) -> int:
    """Return an architecture's place in the table of networks."""
    return [row.stands_for for row in MODELS.values()].index(architecture)


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Sort rows as in the paper's tables: the plain network and one epoch first."""
    keys = rows.assign(architecture=rows["architecture"].map(_rank))
    keys = keys.sort_values(["architecture", "epochs", "test_set"], kind="stable")
    return rows.loc[keys.index].reset_index(drop=True)


def offline_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Lay out the table of base architectures, ours and the paper's numbers (Appendix)."""
    cells = in_order(rows).rename(columns={"value": "ours", "published": "paper"})
    index = ["network", "setting"]
    values = {"columns": "metric", "values": ["ours", "paper"]}
    table = cells.pivot_table(index=index, **values, sort=False, dropna=False)
    order = cells[index].drop_duplicates()
    columns = [(source, metric) for metric in METRICS for source in ("ours", "paper")]
    table = table.reindex(pd.MultiIndex.from_frame(order))
    return table.reindex(columns=columns).swaplevel(axis=1).round(1)


def between_architectures(rows: pd.DataFrame) -> pd.DataFrame:
    """Subtract the plain network's overall scores from the others' (Appendix)."""
    plain = min(rows["architecture"], key=_rank)
    renamed = rows.assign(method=rows["architecture"])
    cells = [("overall", metric) for metric in METRICS]
    others = sorted(set(rows["architecture"]) - {plain}, key=_rank)
    gaps = [contrasts(renamed, name, plain, cells, by=["setting"]) for name in others]
    return pd.concat(gaps, ignore_index=True)


def plot_architectures(frame: pd.DataFrame, ax: Axes, metric: str) -> Axes:
    """Draw one metric by network and setting, as `style.draw_marks` does."""
    return plot_variations(frame, ax, "network", metric, hue="setting")
