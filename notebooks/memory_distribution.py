# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,-all
#     formats: ipynb,py:percent
#     notebook_metadata_filter: kernelspec,jupytext,-all
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What is in the memory when the stream has ended?
#
# The paper's **Figure "memory distribution"** explains its main table. Conventional reservoir
# sampling (CRS) keeps every *sample* with the same probability, so its memory is as skewed as the
# stream. PRS gives every *class* its share, "without any auxiliary task information".
#
# CRS, PRS, CBRS and OCDM look at labels alone, so their memories are recomputed without training.
# They are those of the runs of `main_results`, sample for sample. GSS looks at gradients and
# ExStream at features, so their memories come from the runs of `main_results`, trained where there
# are none yet. The quick profile shows 6 % of the real COCOseq (`cocoseq-mini`) and a stand-in for
# NUS-WIDEseq. With all labels the same figure shows the paper's own stream: `make figures
# PROFILE=paper DATA=/path`.
#
# *A few seconds after `main_results`, two minutes without its runs.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds, laptop or paper: whose folder the figures go to
dataset: list = ["cocoseq-mini", "digits49seq"]  # one or more data sets
method: list = ["CRS", "GSS", "ExStream", "PRS", "CBRS", "OCDM"]  # methods with a memory
rhos: list = [-0.03, 0.0]  # power of allocation of PRS, one for each data set
memory_size: int = None  # samples in memory, None for each data set's own
seeds: list = [0, 1, 2, 3, 4]  # one memory of every method for each
costly: list = ["digits49seq"]  # methods and data sets that take the following seeds instead
costly_seeds: list = [0]  # one memory of every costly method for each
device: str = "cpu"  # cpu or cuda, for what is not trained yet

# %%
from prslib.report import memory_distribution
from prslib.training.grids import seeds_told

settings = memory_distribution.Settings.read(globals())
memories = memory_distribution.memories(settings)
seed_text = seeds_told(settings.seeds, settings.costly, settings.costly_seeds)
settings

# %% [markdown]
# ## Class by class
#
# The share of every class among the labels in memory, group by group, in each from the stream's
# most frequent class to its rarest. The grey bars are the stream. With $\rho$ near 0 the target
# partition is about the same share for every class. ExStream divides its memory among the classes
# in advance; its vectors count once each, however many images are merged in them. PRS exceeds the
# target at classes that occur together with others: an image with several labels counts for several
# classes, and its rare label keeps it in memory.

# %%
import matplotlib.pyplot as plt

from prslib import run_all
from prslib.report.memory_distribution import memory_shares
from prslib.report.style import STYLE, join_panels

plt.style.use(STYLE)
runs = run_all(memory_distribution.runs(settings), device=settings.device)
by_class = memory_shares(memories, runs)
rows = -(-len(settings.method) // 2)
shape = {"figsize": (11, 2.4 * rows), "sharex": True, "sharey": True, "squeeze": False}

# %%
from prslib.report.memory_distribution import plot_class_shares

for name in settings.dataset:
    shown = by_class[by_class["dataset"] == name]
    figure, axes = plt.subplots(rows, 2, **shape)
    for ax, method in zip(axes.flat, settings.method, strict=False):
        plot_class_shares(shown[shown["method"].isin(["Stream", method])], ax)
    for ax in axes.flat[len(settings.method) :]:
        ax.remove()
    join_panels(figure, f"{name}: the memory class by class, {seed_text}")
    settings.save(figure, shown, name)

# %% [markdown]
# ## Group by group
#
# The same memories, added up over the majority, moderate and minority classes. The dashed lines are
# equal shares for all classes.

# %%
from prslib.report.memory_distribution import plot_group_shares

keys = ["dataset", "method", "seed", "group"]
shares = by_class.groupby(keys, sort=False)["share"]
by_group = shares.agg(share="sum", classes="count").reset_index()
figure, axes = plt.subplots(1, len(settings.dataset), figsize=(11, 3.6), squeeze=False)
for ax, name in zip(axes[0], settings.dataset, strict=True):
    plot_group_shares(by_group[by_group["dataset"] == name], ax).set_title(name)
join_panels(figure, f"The memory by class group, {seed_text}")
settings.save(figure, by_group, "groups")

# %% [markdown]
# ## How far from the target?
#
# The total variation distance between a memory's shares and two targets: equal shares ($\rho = 0$)
# and the stream's own shares ($\rho = 1$). 0 % means the same shares, 100 % no class in common. The
# paper prints no number for it. Its figure shows CRS at the stream's shares and PRS near equal
# ones.

# %%
from prslib.report.memory_distribution import distances_to_targets

to_targets = distances_to_targets(by_class)
settings.save(None, to_targets, "distance")
to_targets.groupby(["dataset", "method"], sort=False)[["to equal", "to stream"]].mean().round(1)
