"""How a memory is divided among the classes, beside the stream."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from prslib.batches import plan
from prslib.config import RunConfig
from prslib.datasets import SequentialDataset, load_dataset
from prslib.methods import METHODS
from prslib.store import Store
from prslib.sweep import run_all


def memory_shares(
    configs: Sequence[RunConfig], store: Store | None = None, device: str = "cpu"
) -> pd.DataFrame:
    """Count the classes in the memory of every run (Figure 6).

    Parameters
    ----------
    configs : sequence of RunConfig
        Runs of methods with a memory, on one data set or several.
    store : Store, optional
        Where finished runs are kept, by default the cache.
    device : str
        Where to train, "cpu" or "cuda".

    Returns
    -------
    DataFrame
        One row for each data set, method, seed and class: dataset, method, seed, class,
        class_rank (0 for the most frequent class of the stream), group, task, share (of all
        labels, in percent). The method "Stream" is the stream itself.

    Raises
    ------
    ValueError
        If a method has no memory.

    Notes
    -----
    What a method keeps that looks at labels alone is recomputed here, without training. Where the
    model has a say, the stored run is asked; what is not stored is trained.

    Examples
    --------
    >>> shares = memory_shares([RunConfig(dataset="digits70tiny", method="PRS")])
    >>> float(round(shares[shares["method"] == "PRS"]["share"].sum(), 6))
    100.0
    """
    without = sorted({c.method for c in configs if METHODS[c.method].sampler is None})
    if without:
        known = ", ".join(name for name, row in METHODS.items() if row.sampler)
        raise ValueError(
            f"memory_shares: expected methods with a memory ({known}), got {', '.join(without)}"
        )
    look = [config for config in configs if METHODS[config.method].looks_at_model]
    runs = run_all(look, store, device=device)
    trained = {run.config.hash: run.memory_labels for run in runs}
    frames = []
    for name in dict.fromkeys(config.dataset for config in configs):
        dataset = load_dataset(name, images=False)
        frames.append(_frame(dataset, dataset.class_freq, "Stream", seed=0))
        for config in configs:
            if config.dataset == name:
                known = config.hash in trained
                labels = trained[config.hash] if known else plan(config, dataset)[1]
                frames.append(_frame(dataset, labels.sum(axis=0), config.method, config.seed))
    return pd.concat(frames, ignore_index=True)


def _frame(dataset: SequentialDataset, counts: np.ndarray, method: str, seed: int) -> pd.DataFrame:
    # groups first, so that a tie in frequency cannot mix them; then from frequent to rare
    order = np.argsort(-dataset.class_freq, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    columns = {
        "dataset": dataset.name,
        "method": method,
        "seed": seed,
        "class": dataset.class_names,
        "class_rank": rank,
        "group": dataset.class_group,
        "task": dataset.class_task,
        "share": 100 * counts / counts.sum(),
    }
    return pd.DataFrame(columns).sort_values("class_rank", ignore_index=True)


def group_shares(shares: pd.DataFrame) -> pd.DataFrame:
    """Add up the shares of each group's classes (Figure 6).

    Parameters
    ----------
    shares : DataFrame
        As `memory_shares` gives them.

    Returns
    -------
    DataFrame
        dataset, method, seed, group, share (percent), classes (how many the group has).
    """
    cells = shares.groupby(["dataset", "method", "seed", "group"], sort=False)["share"]
    return cells.agg(share="sum", classes="count").reset_index()


def distance_to(shares: pd.DataFrame, target: str) -> pd.DataFrame:
    """Measure how far each memory is from equal shares or from the stream (Eq. 1).

    Parameters
    ----------
    shares : DataFrame
        As `memory_shares` gives them.
    target : str
        "equal" (the target partition at rho 0) or "stream" (at rho 1).

    Returns
    -------
    DataFrame
        dataset, method, seed, total_variation: half the sum of absolute differences of the shares,
        in percent; 0 for the same shares, 100 for memories that have no class in common.
    """
    if target == "equal":
        aim = 100 / shares.groupby(["dataset", "method", "seed"])["share"].transform("count")
    else:
        stream = shares[shares["method"] == "Stream"].set_index(["dataset", "class"])["share"]
        aim = stream.loc[list(zip(shares["dataset"], shares["class"], strict=True))].to_numpy()
    gaps = shares.assign(total_variation=(shares["share"] - aim).abs() / 2)
    cells = gaps.groupby(["dataset", "method", "seed"], sort=False)["total_variation"]
    return cells.sum().reset_index()
