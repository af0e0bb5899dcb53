# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What do shortcuts in PRS cost?
#
# Papers that compare their methods with Partitioning Reservoir Sampling (PRS) reimplement PRS, and
# most of these implementations take shortcuts. They depart from [Algorithm 1](walkthrough.ipynb) of
# the PRS paper in one or more of its steps. These *departures* are:
#
# - the slot to overwrite is drawn from the whole memory instead of from the slots of one class;
# - the exponential of Eq. (2), which gives nearly all the weight to the rarest label of a sample,
#   is softened or underflows;
# - the class that loses a sample is drawn with a probability equal to its target share $p$ of the
#   memory, instead of according to its surplus above this share;
# - the absolute value in Eq. (5) is omitted, so that positive and negative differences from the
#   target shares cancel;
# - among equally good slots, the slot with the lowest index is overwritten instead of a random
#   slot;
# - the class counts of a task are known before the task begins;
# - a whole batch is processed at once instead of sample by sample.
#
# The paper itself mentions one more departure, which the tables call *several classes shrink*. To
# make room for a new sample, PRS draws one of the classes whose surplus $\delta_i$ is positive and
# removes a sample of this class. This departure instead considers the samples of all classes with a
# positive surplus. The paper explains why PRS draws only one class (Sec. 3.4): "We found this to be
# more robust in practice than considering multiple classes with $\delta_i > 0$".
#
# This notebook replaces one step of PRS at a time and measures how the memory and the mAP change.
# Conventional reservoir sampling (CRS), which assigns no shares of the memory to classes, serves as
# a reference. To compare your implementation of PRS with the one in prslib, use
# `examples/check_your_prs.py`.
#
# The paper reports no experiment with these departures. The
# [profile](../docs/quickstart.md#profiles) `quick` computes the memories for two streams,
# `cocoseq-mini` (COCO images) and `reutersseq` (news articles), but trains networks only on
# `cocoseq-mini`. Scores are measured on a *balanced* test set, in which class sizes differ much
# less than in the stream. For `cocoseq-mini`, 323 images of the paper's balanced test set are
# used.
#
# *With the profile `quick`, the notebook takes half a minute on two cores. A second run takes 15
# seconds.*

# %% tags=["parameters"]
profile: str = "quick"  # name of the profile; -f params/PROFILE/NOTEBOOK.yaml chooses another one
dataset: list[str] = ["cocoseq-mini", "reutersseq"]  # data sets on whose labels the memories are tracked
trained: list[str] = ["cocoseq-mini"]  # data sets to train on
rho: float = None  # power of allocation, None for each data set's default
seeds: list[int] = [0, 1]  # one run of every departure for each seed
varied_seeds: list[int] = [0]  # one memory of every departure for each seed
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["runs"]
from prslib.report.deviations import EVERY, deviation_configs


def runs(settings):
    """List the runs of PRS, each deviation, CRS and the published re-implementations."""
    return deviation_configs(settings.trained, settings.seeds, settings.rho, EVERY)


# %% jupyter={"source_hidden": true} tags=["functions"]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import prslib
from prslib.report import answers, measures, notebook, style, tables
from prslib.report.deviations import ALL, CONTEST, DEVIATIONS, SOURCES, WORDS
from prslib.report.style import STYLE
from prslib.report.tables import ALL_GROUPS, BALANCED, FULL
from prslib.statistics import DECIDING, interval

# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("deviations", globals())
planned = runs(settings)
settings

# %% [markdown]
# ## The departures

# %%
pd.set_option("display.max_colwidth", None)
texts = {WORDS[name]: sampler.__doc__ for name, sampler in DEVIATIONS.items()}
texts["CRS"] = "Keep every sample of the stream with the same probability, without a partition."
pd.Series(texts, name="what it does").rename_axis("departure").to_frame()

# %% [markdown]
# ## What the memory holds
#
# The memory is filled without training, because the samplers use only labels. *Distance to target*
# is the total variation distance between the class distribution of the memory and the target shares
# $p$. *Share of minority classes* is the share of the rare classes among the labels in memory.
# *Mean age* is the mean distance of the samples in memory from the end of the stream, in percent of
# the length of the stream; with CRS, its expected value is 50 %. Marks are means over seeds, and
# horizontal lines are 95 % intervals. Vertical lines show the means of PRS and CRS for reference.

# %% jupyter={"source_hidden": true} tags=["functions"]
MIX_LABELS = {
    # total variation between the class shares in memory and p_i
    "distance": "distance to target (%)",
    "minority": "share of minority classes (%)",  # of the labels in memory
    "age": "mean age (% of stream)",  # of the samples in memory; 50 in a reservoir
}


def memory_mix(settings) -> pd.DataFrame:
    """Compute the measures `MIX_LABELS` of memories at the end of the stream, without training."""
    rows = []
    fields = settings.dataset, settings.varied_seeds, settings.rho
    for config in deviation_configs(*fields, DEVIATIONS):
        rare = np.array(tables.labels_of(config.dataset).class_group) == "minority"
        *_, (sampler, slots, samples) = measures.place_stream(config)
        n = sampler.class_freq
        p = np.where(n > 0, np.maximum(n, 1.0) ** config.resolved["rho"], 0.0)
        mix = sampler.class_counts / sampler.class_counts.sum()
        distance = np.abs(mix - p / p.sum()).sum() / 2
        age = 1 - slots.mean() / samples
        place = config.dataset, WORDS[config.method], config.seed
        values = 100 * distance, 100 * mix[rare].sum(), 100 * age
        rows += [(*place, *row) for row in zip(MIX_LABELS, values, strict=True)]
    columns = ["dataset", "departure", "seed", "measure", "value"]
    return pd.DataFrame(rows, columns=columns)


def plot_ends(frame: pd.DataFrame, ax: plt.Axes, order: list[str]) -> plt.Axes:
    """Plot one measure of the memories at the end of the stream, with intervals over seeds."""
    for place, name in enumerate(order):
        seeds = frame.loc[frame["departure"] == name, "value"].to_numpy()
        row = interval(seeds[:, None, None])
        ax.plot([row.low, row.high], [place, place], color="0.35", linewidth=1.8)
        ax.plot(row.effect, place, "o", color="0.1")
        if name in ("PRS", "CRS"):
            ax.axvline(row.effect, color="0.75", linewidth=1, zorder=0)
    style.name_rows(ax, order)
    ax.set_xlabel(MIX_LABELS[frame["measure"].iloc[0]])
    ax.label_outer()
    return ax


# %% tags=["compute"]
settings.write(memory_mix(settings), "memory")

# %%
mix = settings.table("memory")
grid = {"figsize": (11, 3.3 * len(settings.dataset)), "squeeze": False, "sharex": "col"}
figure, axes = plt.subplots(len(settings.dataset), 3, **grid)
for row, name in zip(axes, settings.dataset, strict=True):
    of_set = mix[mix["dataset"] == name]
    far = of_set[of_set["measure"] == "distance"].groupby("departure")["value"].mean()
    order = list(far.sort_values().index)
    for ax, measure in zip(row, MIX_LABELS, strict=True):
        plot_ends(of_set[of_set["measure"] == measure], ax, order).set_title(name)
axes[0, 0].plot([], [], color="0.35", linewidth=1.8, label="95 % interval over seeds")
axes[0, 0].plot([], [], color="0.75", linewidth=1, label="PRS and CRS, for reference")
seeds = settings.say_seeds(seeds=settings.varied_seeds)
title = f"Content of the memory at the end of the stream, {seeds}"
settings.show(figure, "memory", title, narrow=1)


# %% [markdown]
# ## What the departures cost
#
# The picture shows the mAP of each departure minus the mAP of PRS with the same seed. The mAP is
# measured after the last task on the balanced test, over all classes and separately for the
# majority (frequent) and the minority (rare) classes. Lines are 95 % intervals over seeds and
# test samples.

# %% jupyter={"source_hidden": true} tags=["functions"]
def against_prs(rows: pd.DataFrame) -> pd.DataFrame:
    """Compare every deviation and CRS with PRS, and add a verdict to each comparison."""
    rows = rows[rows["metric"] == "mAP"]
    table = tables.contrast_each(rows, ALL[1:], "PRS", ALL_GROUPS)
    table["departure"] = table.pop("method").map(WORDS)
    lead = table["difference"].abs().where(table["departure"] == "CRS")
    lead = lead.groupby([table["dataset"], table["group"]]).transform("max")
    # a departure does not matter if its interval is within half of PRS's lead over CRS
    inside = table[["low", "high"]].abs().max(axis=1) <= 0.5 * lead
    table["verdict"] = "undecided"
    table.loc[inside, "verdict"] = "does not matter"
    table.loc[table["clearly"] == "above", "verdict"] = "gains"
    table.loc[table["clearly"] == "below", "verdict"] = "costs"
    table.loc[table["seeds"] < DECIDING, "verdict"] = "too few seeds"
    overall = table[table["group"] == "overall"].set_index(["dataset", "departure"])
    table = table.join(overall["difference"].rename("place"), on=["dataset", "departure"])
    order = {"by": ["dataset", "place"], "ascending": [True, False], "kind": "stable"}
    return table.sort_values(**order, ignore_index=True).drop(columns="place")


def contest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return overall scores of PRS, CRS and published implementations, and their gaps to PRS."""
    gaps = tables.contrast_each(rows, [*CONTEST, "CRS"], "PRS")
    keys = ["dataset", "method", "metric"]
    gaps = gaps.set_index(keys)[["difference", "low", "high"]]
    rows = rows[(rows["measure"] == "score") & (rows["group"] == "overall")]
    scores = rows.groupby(keys, sort=False)["value"]
    table = scores.agg(mean="mean", sd="std", seeds="count").join(gaps)
    table = table.reindex(SOURCES, level="method").reset_index()
    return table.assign(source=table["method"].map(SOURCES))


# %% tags=["compute"]
finished = prslib.run_all(planned, device=settings.device)
rows = tables.final(tables.scores_of(finished, tests=[BALANCED, FULL])).assign(published=np.nan)
settings.write(against_prs(rows), "costs")
settings.write(contest(rows), "contest")

# %%
costs = settings.table("costs")
shown = costs[costs["group"] != "moderate"]
figure = style.contrast_panels(shown, "mAP, departure minus PRS", "departure", "group")
settings.show(figure, "costs", narrow=1)

# %% [markdown]
# ## Which departures matter?
#
# The verdict on a departure depends on the 95 % interval of its difference from PRS in overall mAP:
#
# - The departure *costs* mAP if the whole interval is below 0, and *gains* mAP if the whole
#   interval is above 0.
# - Otherwise, the departure *does not matter* if the whole interval is within $\pm d/2$, where $d$
#   is the difference between PRS and CRS.
# - In all other cases, the verdict is *undecided*.
#
# The verdicts apply only to these data. For example, the exponential $e^{-n}$ of Eq. (2) underflows
# only if a class has at least 746 samples, and no class of `cocoseq-mini` is so large.
#
# The complete COCOseq and NUS-WIDEseq contain classes with at least 746 samples. For these two data
# sets, we also computed the contents of the memories from the labels only (profile `paper`, one
# seed, `figures/paper/deviations_memory`). The class shares in memory are about the same with
# underflow as without underflow. As on `cocoseq-mini` and `reutersseq` in the profile `seeds`, the
# memory misses the target if the slot is drawn from the whole memory, or if the class is drawn by
# its target share $p$. If the class counts of a task are known in advance, the final memory is
# farther from the target than the memory of PRS.

# %%
columns = ["dataset", "departure", "difference", "low", "high", "seeds", "verdict"]
costs.loc[costs["group"] == "overall", columns].round(1).reset_index(drop=True)


# %% [markdown]
# ## What other papers call PRS
#
# Three published papers compare their methods with an implementation of PRS. We wrote samplers
# that behave like these three implementations, and trained networks with each of them, using the
# same data, memory size and settings as for our PRS. Each cell contains the mean overall score in
# percent after the last task, on the balanced test. Parentheses contain the difference from our
# PRS in points, with the 95 % interval of this difference.

# %%
best = settings.table("contest")
gaps = best.apply(" ({difference:+.1f} [{low:+.1f}, {high:+.1f}])".format_map, axis=1)
gaps = gaps.where(best["low"].notna(), "")  # empty for PRS itself and for a single seed
best["score"] = best["mean"].map("{:.1f}".format) + gaps
keys = ["dataset", "method", "source"]
best.pivot(index=keys, columns="metric", values="score").reindex(best[keys].drop_duplicates())

# %% [markdown]
# The papers CUTER, Macro-AUC-CL and EmoGrowth use the name "PRS" for three different samplers. The
# following comparisons are from the profile `seeds`. CUTER's sampler overwrites random slots and
# scores lower than CRS on `cocoseq-mini`. Macro-AUC-CL's sampler keeps the first samples of the
# stream and scores lower than CRS on `cocoseq-mini` and `reutersseq`. EmoGrowth's sampler knows the
# class counts of a task in advance and scores about as high as our PRS. However, EmoGrowth's
# sampler rejects every sample whose classes all have 746 images or more, and the complete COCOseq
# contains such samples.

# %% jupyter={"source_hidden": true} tags=["answer"]
row = answers.find_smallest(settings.table("costs"), group="overall", metric="mAP")
shortcut = f"the costliest shortcut (\"{row['departure']}\")"
sentence = answers.describe_difference(
    row,
    above=f"On {row['dataset']}, even {shortcut} raises the mAP of PRS by {{effect}} points {{interval}}.",
    below=f"On {row['dataset']}, {shortcut} lowers the mAP of PRS by {{effect}} points {{interval}}.",
    unclear=f"On {row['dataset']}, even {shortcut} does not change the mAP of PRS significantly: "
    "{effect} points {interval}.",
)
settings.write_answer(sentence, row["dataset"])
