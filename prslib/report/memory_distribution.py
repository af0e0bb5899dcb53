"""Measure and draw the classes' shares in the memory beside those in the stream (Figure 6)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from prslib import METHODS, Run, RunConfig
from prslib.checks import one_of
from prslib.datasets import GROUPS, SequentialDataset
from prslib.report.main_results import Comparison
from prslib.report.notebook import several
from prslib.report.style import HUES, looks_of, plot_variations
from prslib.report.tables import labels_of
from prslib.training.replay import without_training


class Settings(Comparison):
    """Parameters of the notebook, which explains them."""

    one_label = None
    dataset: list[str] = several("cocoseq-mini", "digits49seq")
    method: list[str] = several("CRS", "GSS", "ExStream", "PRS", "CBRS", "OCDM")
    rhos: list[float] = several(-0.03, 0.0)
    costly: list[str] = several("digits49seq")


def runs(settings: Settings) -> list[RunConfig]:
    """List the runs whose memories depend on the network; `memories` are all."""
    return [c for c in memories(settings) if METHODS[c.method].looks_at_model]


def memories(settings: Settings) -> list[RunConfig]:
    """List a memory of every method and seed."""
    check_memory(settings.method)
    return settings.configs(settings.method, settings.rhos)


def check_memory(methods: Sequence[str]) -> None:
    """Raise ValueError for a method without a memory."""
    with_memory = [name for name, row in METHODS.items() if row.sampler]
    for name in methods:
        one_of("method", name, with_memory)


def memory_shares(configs: Sequence[RunConfig], runs: Sequence[Run]) -> pd.DataFrame:
    """Compute each class's share of the labels in each memory and in the stream, in percent."""
    # memories of which there is no run follow from labels alone
    trained = {run.config.hash: run.memory_labels.sum(axis=0) for run in runs}
    frames = []
    for name in dict.fromkeys(config.dataset for config in configs):
        dataset = labels_of(name)
        frames.append(_class_shares(dataset, dataset.class_freq, "Stream", 0))
        for config in [config for config in configs if config.dataset == name]:
            counts = trained.get(config.hash)
            if counts is None:
                counts = without_training(config, dataset).sampler.class_counts
            frames.append(_class_shares(dataset, counts, config.method, config.seed))
    return pd.concat(frames, ignore_index=True)


def _class_shares(
    dataset: SequentialDataset, counts: np.ndarray, method: str, seed: int
) -> pd.DataFrame:
    """Lay out one memory's shares, group by group, each from its most frequent class on."""
    rank = [GROUPS.index(group) for group in dataset.class_group]
    columns = {
        "dataset": dataset.name,
        "method": method,
        "seed": seed,
        "class": dataset.class_names,
        "class_rank": np.lexsort([-dataset.class_freq, rank]).argsort(),
        "group": dataset.class_group,
        "task": dataset.class_task,
        "share": 100 * counts / counts.sum(),
    }
    return pd.DataFrame(columns).sort_values("class_rank")


def distances_to_targets(shares: pd.DataFrame) -> pd.DataFrame:
    """Measure each memory's total variation distance to two targets, in percent."""
    equal = 100 / shares.groupby("dataset")["class"].transform("nunique")
    classes = shares.groupby(["dataset", "class"])["share"]
    stream = classes.transform("first")  # the stream's rows come first
    gaps = {"to equal": shares["share"] - equal, "to stream": shares["share"] - stream}
    memories = [shares[name] for name in ("dataset", "method", "seed")]
    totals = pd.DataFrame(gaps).abs().groupby(memories, sort=False).sum() / 2
    return totals.reset_index()


def plot_class_shares(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw one memory's share of each class on one data set, group by group; the stream as bars."""
    stream = frame[frame["method"] == "Stream"]
    ax.bar(stream["class_rank"], stream["share"], 1.0, color="0.82", label="stream")
    ((method, look),) = looks_of(set(frame["method"]) - {"Stream"}).items()
    shares = frame[frame["method"] == method].groupby("class_rank")["share"]
    mean, sd = shares.mean(), shares.std().fillna(0)
    ax.plot(mean, color=look["color"], drawstyle="steps-mid")
    band = {"alpha": 0.25, "linewidth": 0, "step": "mid"}
    ax.fill_between(mean.index, mean - sd, mean + sd, color=look["color"], **band)
    # the legend is of all panels, each with a colour of its own
    ax.plot([], color=HUES[0], label="memory, mean over seeds")
    ax.fill_between([], [], [], color=HUES[0], label="one standard deviation", **band)
    text = {"ha": "center", "va": "top", "color": "0.35", "fontsize": 9}
    for group, ranks in stream.groupby("group", sort=False)["class_rank"]:
        if ranks.max() < stream["class_rank"].max():
            ax.axvline(ranks.max() + 0.5, color="0.55", linewidth=0.8, linestyle="--")
        ax.text(ranks.mean(), 0.99, group, transform=ax.get_xaxis_transform(), **text)
    # room for the names of the groups; axes may share their scale
    top = max(ax.get_ylim()[1], 1.2 * max(stream["share"].max(), (mean + sd).max()))
    ax.set(xlabel="class, each group from frequent to rare", title=method)
    ax.set(ylabel="share of labels (%)", ylim=(0, top))
    ax.margins(x=0.005)
    ax.label_outer()
    return ax


def plot_group_shares(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw each group's share of the labels, and its share of the classes as a line."""
    looks = looks_of(frame["method"])
    looks["Stream"] |= {"marker": "_", "markersize": 14, "markeredgewidth": 2}
    classes = frame.groupby("group", sort=False)["classes"].first()
    shares = frame.rename(columns={"share": "value"})
    plot_variations(shares, ax, "group", "share of labels", looks=looks)
    equal = 100 * classes / classes.sum()
    place = np.arange(len(classes))
    ax.hlines(equal, place - 0.45, place + 0.45, "0.4", "--", label="equal shares")
    ax.set_ylim(0, None)
    ax.legend()
    return ax
