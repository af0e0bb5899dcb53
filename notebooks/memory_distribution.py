# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What is in the memory when the stream has ended?
#
# With its **Figure "memory distribution"**, the paper explains the scores in its main table.
# Conventional reservoir sampling (CRS) keeps every *sample* with the same probability, so that its
# memory is on average as imbalanced as the stream. Partitioning Reservoir Sampling (PRS) allocates
# a share of the memory to every *class*, "without any auxiliary task information".
#
# CRS and PRS use only labels, as do CBRS and OCDM, two further samplers that balance the memory.
# The memories of these four samplers are therefore computed without training, and contain the
# same samples as in the runs of [`main_results`](main_results.ipynb). GSS needs gradients and
# ExStream needs features, so the memories of these two samplers are read from the runs of that
# notebook. The [profile](../docs/quickstart.md#profiles) `quick` shows 6 % of the real COCOseq
# (`cocoseq-mini`) and another real stream, Reuters-21578 (`reutersseq`). If the labels of the
# paper's data sets are available, `make figures PROFILE=paper DATA=/path` shows the paper's
# complete streams.
#
# *With the profile `quick`, the notebook takes two minutes, or some seconds if it is run after
# `main_results`.*

# %% tags=["parameters"]
profile: str = "quick"  # name of the profile; -f params/PROFILE/NOTEBOOK.yaml chooses another one
dataset: list[str] = ["cocoseq-mini", "reutersseq"]  # one or more data sets
age_dataset: list[str] = ["cocoseq-mini", "reutersseq", "clipartseq", "imbal-digits"]  # one or more data sets of the last section
method: list[str] = ["CRS", "GSS", "ExStream", "PRS", "CBRS", "OCDM"]  # methods with a memory, which must include CRS and PRS
rho: float = None  # power of allocation of PRS and OCDM, None for each data set's default
memory_size: int = None  # samples in memory, None for each data set's default
seeds: list[int] = [0, 1]  # one memory of every method for each seed
few_seeds: dict[str, int] = {}  # methods and data sets that are run with only the first few seeds
device: str = "cpu"  # cpu or cuda, for runs that are not trained yet
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["runs"]
from prslib.report.measures import follows_from_labels
from prslib.report.grids import check_compared, check_memory, configs_of, standard_runs


def memories(settings):
    """List a memory of every method and seed."""
    check_memory(settings.method)
    check_compared(settings.method, "CRS", "PRS")
    return standard_runs(settings)


def runs(settings):
    """List the runs whose memories depend on the network; `memories` lists all runs."""
    return [c for c in memories(settings) if not follows_from_labels(c.method)]

# %% jupyter={"source_hidden": true} tags=["functions"]
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.patheffects import Normal, Stroke

import prslib
from prslib.report import answers, measures, notebook, style
from prslib.report.style import STYLE

# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("memory_distribution", globals())
planned = memories(settings)
settings

# %% [markdown]
# ## Class by class
#
# The pictures show the share of every class among the labels in memory. Classes are sorted by
# group, from majority (frequent) to moderate and minority (rare) classes, and within each group
# from frequent to rare. Grey bars show the share of every class in the stream. The target shares of
# PRS are proportional to the class frequencies to the power $\rho$; with $\rho$ near 0, all classes
# have about the same target share. ExStream divides its memory among the classes in advance. Each
# vector in its memory can be the mean of several similar samples, but counts as only one sample in
# the pictures.
#
# The page [Which samples stay in memory?](../docs/memories.html), which opens in any browser, has
# sliders for $\rho$, the size of the memory and the imbalance of the stream.

# %% tags=["compute"]
finished = prslib.run_all(runs(settings), device=settings.device)
by_class = measures.memory_shares(planned, finished)
for name in settings.dataset:
    settings.write(by_class[by_class["dataset"] == name], name)

# %% jupyter={"source_hidden": true} tags=["functions"]
def plot_class_shares(frame: pd.DataFrame, ax: plt.Axes) -> plt.Axes:
    """Draw each class's share of one method's memory as a line, and of the stream as bars."""
    stream = frame[frame["method"] == "Stream"]
    ax.bar(stream["class_rank"], stream["share"], 1.0, color="0.82", label="stream")
    ((method, look),) = style.styles_of(set(frame["method"]) - {"Stream"}).items()
    memories = frame[frame["method"] == method]
    shares = memories.groupby("class_rank")["share"]
    mean, sd = shares.mean(), shares.std().fillna(0)
    ax.plot(mean, color=look["color"], drawstyle="steps-mid")
    # the panels have different colours but share the legend
    if memories["seed"].nunique() > 1:
        band = {"alpha": 0.25, "linewidth": 0, "step": "mid"}
        ax.fill_between(mean.index, mean - sd, mean + sd, color=look["color"], **band)
        halo = [Stroke(linewidth=9, alpha=band["alpha"]), Normal()]
        label = "memory, mean and standard deviation over seeds"
        ax.plot([], color="0.2", path_effects=halo, label=label)
    else:
        ax.plot([], color="0.2", label="memory")
    text = {"ha": "center", "va": "top", "color": "0.35", "fontsize": 9}
    for group, ranks in stream.groupby("group", sort=False)["class_rank"]:
        if ranks.max() < stream["class_rank"].max():
            ax.axvline(ranks.max() + 0.5, color="0.55", linewidth=0.8, linestyle="--")
        ax.text(ranks.mean(), 0.99, group, transform=ax.get_xaxis_transform(), **text)
    # room for the names of the groups; axes may share their scale
    top = max(ax.get_ylim()[1], 1.2 * max(stream["share"].max(), (mean + sd).max()))
    ax.set(xlabel="class (frequent to rare within each group)", title=method)
    ax.set(ylabel="share of labels (%)", ylim=(0, top))
    ax.margins(x=0.005)
    ax.label_outer()
    return ax


# %%
shape = {"top": 0, "height": 2.4, "sharex": True, "sharey": True}
for name in settings.dataset:
    shown = settings.table(name)
    figure, axes = style.panel_grid(len(settings.method), 2, **shape)
    for ax, sampler in zip(axes, settings.method, strict=True):
        plot_class_shares(shown[shown["method"].isin(["Stream", sampler])], ax)
    title = f"{name}: share of each class in the memory, {settings.say_seeds(name)}"
    settings.show(figure, name, title, narrow=1)

# %% [markdown]
# ## How far from the target?
#
# The table shows the total variation distance of the class shares in each memory from two targets:
# equal shares ($\rho = 0$) and the shares in the stream ($\rho = 1$). A distance of 0 % means that
# the class shares equal the target, and 100 % would mean that memory and target have no class in
# common. The rows *Stream* show the distances of the class shares in the stream from the same
# targets. The paper reports no distances, but in its figure the class shares of CRS match the
# stream, and the class shares of PRS are nearly equal.

# %% jupyter={"source_hidden": true} tags=["functions"]
def distances_to_targets(shares: pd.DataFrame) -> pd.DataFrame:
    """Measure each memory's total variation distance to two targets, in percent."""
    equal = 100 / shares.groupby("dataset")["class"].transform("nunique")
    classes = shares.groupby(["dataset", "class"])["share"]
    stream = classes.transform("first")  # the stream's rows come first
    gaps = {"to equal": shares["share"] - equal, "to stream": shares["share"] - stream}
    memories = [shares[name] for name in ("dataset", "method", "seed")]
    totals = pd.DataFrame(gaps).abs().groupby(memories, sort=False).sum() / 2
    return totals.reset_index()

# %% tags=["compute"]
settings.write(distances_to_targets(by_class), "distance")

# %%
to_targets = settings.table("distance")
means = to_targets.groupby(["dataset", "method"], sort=False)[["to equal", "to stream"]].mean()
means.set_axis(["to equal shares (%)", "to the shares in the stream (%)"], axis=1).round(1)

# %% [markdown]
# ## From which part of the stream?
#
# Each task is divided into quarters in the order of its samples in the stream. The pictures show
# what share of the samples in memory comes from the first, second, third and fourth quarter of the
# tasks. If a sampler keeps early and late samples with the same probability, each share is about
# 25 % (dashed line). In single-label streams such as `imbal-digits`, each sample has one label. In
# the other streams, a sample may have several labels. The memories of GSS and ExStream are not
# shown here, because they cannot be computed from the labels alone.
#
# The following holds in the profiles `quick`, `seeds` and `paper`, in which $\rho$ has its default
# value. CRS and CBRS are about equally likely to keep early and late samples. OCDM prefers late
# samples: of several samples that are equally good to remove, it removes one at random, and early
# samples are exposed to this draw more often. If some samples have several labels, PRS prefers
# early samples. The paper does not mention this preference. With one label per sample
# (`imbal-digits`), PRS is nearly equally likely to keep early and late samples.

# %% tags=["compute"]
fixed = {"rho": settings.rho, "memory_size": settings.memory_size}
configs = configs_of(settings.method, settings.seeds, dataset=settings.age_dataset, **fixed)
settings.write(measures.memory_ages(configs), "age")

# %% jupyter={"source_hidden": true} tags=["functions"]
def plot_ages(frame: pd.DataFrame, ax: plt.Axes) -> plt.Axes:
    """Draw what share of each memory comes from each quarter of the tasks, on one data set."""
    ax.axhline(25, color="0.55", linewidth=0.8, linestyle="--")
    for method, look in style.styles_of(frame["method"]).items():
        memories = frame[frame["method"] == method]
        ax.plot(memories.groupby("quarter")["share"].mean(), label=method, **look)
    ax.set(title=frame["dataset"].iloc[0], ylabel="share of memory (%)")
    ax.set(xlabel="quarter of the task, early to late", xticks=range(1, 5))
    ax.label_outer()
    return ax

# %%
ages = settings.table("age")
shape = {"top": 0, "height": 3, "sharey": True}
figure, axes = style.panel_grid(len(settings.age_dataset), 2, **shape)
for ax, name in zip(axes, settings.age_dataset, strict=True):
    plot_ages(ages[ages["dataset"] == name], ax)
axes[0].set_ylim(0)
title = f"Quarter of the task from which the samples in memory come, {settings.say_seeds()}"
settings.show(figure, "age", title, narrow=1)

# %% jupyter={"source_hidden": true} tags=["answer"]
means = answers.first_set(to_targets).groupby("method")[["to equal", "to stream"]].mean()
prs, crs = means.loc["PRS"], means.loc["CRS"]
sentence = f"On {settings.dataset[0]}, the class shares in the memory of PRS are {prs['to equal']:.0f} points away from equal"
sentence += f" shares and {prs['to stream']:.0f} points from the shares in the stream (total variation distance)."
sentence += f" For the memory of CRS, these distances are {crs['to equal']:.0f} and {crs['to stream']:.0f} points."
first = ages[(ages["quarter"] == 1) & (ages["dataset"] == settings.age_dataset[0])]
first = first.groupby("method")["share"].mean()
sentence += f" On {settings.age_dataset[0]}, {first['PRS']:.0f} % of the samples in the memory of PRS and"
sentence += f" {first['CRS']:.0f} % of the samples in the memory of CRS come from the first quarter of their task."
settings.write_answer(sentence, settings.dataset[0])
