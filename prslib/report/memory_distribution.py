"""Measure and draw the classes' shares in the memory beside those in the stream (Figure 6)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from prslib.datasets import SequentialDataset, load_dataset
from prslib.experiments.store import Store
from prslib.experiments.sweep import run_all
from prslib.report.style import COLOURS, in_order
from prslib.training.config import RunConfig
from prslib.training.methods import METHODS
from prslib.training.replay import plan


def memory_shares(
    configs: Sequence[RunConfig], store: Store | None = None, device: str = "cpu"
) -> pd.DataFrame:
    """Compute each class's share of the labels in each memory and in the stream, in percent."""
    without = sorted({c.method for c in configs if METHODS[c.method].sampler is None})
    if without:
        known = ", ".join(name for name, row in METHODS.items() if row.sampler)
        raise ValueError(
            f"memory_shares: expected methods with a memory ({known}), got {', '.join(without)}"
        )
    # the others follow from labels alone and are recomputed without training
    need_model = [config for config in configs if METHODS[config.method].looks_at_model]
    runs = run_all(need_model, store, device=device)
    trained = {run.config.hash: run.memory_labels for run in runs}
    frames = []
    for name in dict.fromkeys(config.dataset for config in configs):
        dataset = load_dataset(name, images=False)
        frames.append(_shares(dataset, dataset.class_freq, "Stream", seed=0))
        for config in configs:
            if config.dataset == name:
                known = config.hash in trained
                labels = trained[config.hash] if known else plan(config, dataset)[1]  # (m, C)
                frames.append(_shares(dataset, labels.sum(axis=0), config.method, config.seed))
    return pd.concat(frames, ignore_index=True)


def _shares(dataset: SequentialDataset, counts: np.ndarray, method: str, seed: int) -> pd.DataFrame:
    """Lay out one memory's shares, from the most frequent class of the stream to the rarest."""
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
    """Add up the shares of each group's classes, and count the classes."""
    cells = shares.groupby(["dataset", "method", "seed", "group"], sort=False)["share"]
    return cells.agg(share="sum", classes="count").reset_index()


def distance_to(shares: pd.DataFrame, target: str) -> pd.DataFrame:
    """Measure each memory's total variation distance to "equal" or "stream" shares, in percent."""
    if target == "equal":
        aim = 100 / shares.groupby(["dataset", "method", "seed"])["share"].transform("count")
    else:
        stream = shares[shares["method"] == "Stream"].set_index(["dataset", "class"])["share"]
        aim = stream.loc[list(zip(shares["dataset"], shares["class"], strict=True))].to_numpy()
    gaps = shares.assign(total_variation=(shares["share"] - aim).abs() / 2)
    cells = gaps.groupby(["dataset", "method", "seed"], sort=False)["total_variation"]
    return cells.sum().reset_index()


def plot_class_shares(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw each class's share on one data set, from frequent to rare; the stream as bars."""
    stream = frame[frame["method"] == "Stream"]
    ax.bar(stream["class_rank"], stream["share"], color="0.82", width=1.0, label="Stream")
    for name in in_order(frame["method"]):
        if name != "Stream":
            shares = frame[frame["method"] == name].groupby("class_rank")["share"]
            mean, sd = shares.mean(), shares.std().fillna(0)
            ax.plot(mean, color=COLOURS[name], drawstyle="steps-mid", label=name)
            band = {"color": COLOURS[name], "alpha": 0.2, "linewidth": 0, "step": "mid"}
            ax.fill_between(mean.index, mean - sd, mean + sd, **band)
    ends = stream.groupby("group", sort=False)["class_rank"].max()
    starts = stream.groupby("group", sort=False)["class_rank"].min()
    for group, end in ends.items():
        if end < stream["class_rank"].max():
            ax.axvline(end + 0.5, color="0.55", linewidth=0.8, linestyle="--")
        ax.text(
            (starts[group] + end) / 2, 0.99, group, ha="center", va="top", color="0.4", fontsize=8,
            transform=ax.get_xaxis_transform(),
        )  # fmt: skip
    top = max(ax.get_ylim()[1], 1.1 * frame["share"].max())  # axes may share their scale
    ax.set(xlabel="class, from frequent to rare", ylabel="share of labels (%)", ylim=(0, top))
    ax.margins(x=0.005)
    ax.label_outer()
    ax.legend(title="")
    return ax


def plot_group_shares(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw each group's share of the labels: bars are means over seeds, dots the seeds."""
    methods = in_order(frame["method"])
    place = {"x": "group", "y": "share", "hue": "method", "hue_order": methods}
    sns.barplot(frame, **place, palette=COLOURS, errorbar=None, ax=ax)
    sns.stripplot(
        frame, **place, palette=dict.fromkeys(methods, "white"), dodge=True, jitter=False, size=3.2,
        linewidth=0.8, edgecolor="black", legend=False, ax=ax,
    )  # fmt: skip
    ax.set(xlabel="", ylabel="share of labels (%)")
    ax.legend(title="")
    return ax
