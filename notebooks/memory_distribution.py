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
# The paper's Figure "memory distribution" explains its main table: conventional reservoir sampling
# (CRS) keeps every *sample* with the same probability, so its memory is as skewed as the stream,
# while PRS gives every *class* its share, "without any auxiliary task information".
#
# For CRS, PRS, CBRS and OCDM it depends on the labels alone which samples stay, so no network is
# trained for them: their memories are those of the runs of `main_results`, sample for sample,
# recomputed from the labels. GSS looks at gradients and ExStream at features; their memories are
# taken from the runs of `main_results`, and trained where there are none yet. With COCOseq's labels
# at hand the same figure is drawn of the paper's own stream: `make figures PROFILE=paper
# DATA=/path`.
#
# *A few seconds; two minutes where none of its runs is trained yet.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds or paper: whose folder the figures go to
dataset: list = ["digits70seq", "digits49seq"]  # one or more data sets
method: list = ["CRS", "GSS", "ExStream", "PRS", "CBRS", "OCDM"]  # methods with a memory
rho: float = 0.0  # power of allocation of PRS, any finite number
memory_size: int = None  # samples in memory, None for each data set's own
seeds: list = [0, 1, 2]  # one memory of every method for each
costly: list = ["GSS"]  # methods that run with the first seed only
device: str = "cpu"  # cpu or cuda, for what is not trained yet

# %%
from prslib import METHODS, configs
from prslib.report import notebook
from prslib.training.config import seeds_told

settings = notebook.settings("memory_distribution", globals())
fixed = {"dataset": settings.dataset, "rho": settings.rho, "memory_size": settings.memory_size}
usual = [name for name in settings.method if name not in settings.costly]
memories = configs(**fixed, method=usual, seed=settings.seeds)
memories += configs(**fixed, method=settings.costly, seed=settings.seeds[:1])
told = seeds_told(settings.seeds, settings.costly, settings.seeds[:1])
wanted = [config for config in memories if METHODS[config.method].looks_at_model]
settings

# %% [markdown]
# ## Class by class
#
# The share of every class among the labels in memory, from the stream's most frequent class to its
# rarest; the grey bars are the stream. With $\rho = 0$ the target partition is one and the same
# share for every class. ExStream parts its memory by class in advance; its vectors count once
# each, however many images are merged in them. Where the line of PRS rises above it stand classes
# that keep company: an image with several labels takes a place in several classes' shares, and a
# rare label holds it in.

# %%
import matplotlib.pyplot as plt

from prslib import plots
from prslib.report import memory_distribution as shares

plt.style.use(plots.STYLE)
by_class = shares.memory_shares(memories, device=settings.device)

# %%
for name in settings.dataset:
    shown = by_class[by_class["dataset"] == name]
    rows = -(-len(settings.method) // 2)
    shape = {"figsize": (11, 2.4 * rows), "sharex": True, "sharey": True, "squeeze": False}
    figure, axes = plt.subplots(rows, 2, **shape)
    for ax, kind in zip(axes.flat, settings.method, strict=False):
        plots.plot_class_shares(shown[shown["method"].isin(["Stream", kind])], ax)
    for ax in axes.flat[len(settings.method) :]:
        ax.remove()
    plots.share_legend(figure)
    figure.suptitle(f"{name}: the memory class by class, {told}")
    settings.save(figure, shown, name)

# %% [markdown]
# ## Group by group
#
# The same memories, added up over the majority, moderate and minority classes.

# %%
by_group = shares.group_shares(by_class)
figure, axes = plt.subplots(1, len(settings.dataset), figsize=(11, 3.6), squeeze=False)
for ax, name in zip(axes[0], settings.dataset, strict=True):
    plots.plot_group_shares(by_group[by_group["dataset"] == name], ax).set_title(name)
plots.share_legend(figure)
figure.suptitle(f"the memory by class group, {told}")
settings.save(figure, by_group, "groups")

# %% [markdown]
# ## How far from the target?
#
# Total variation distance between a memory's shares and two targets: equal shares ($\rho = 0$) and
# the stream's own shares ($\rho = 1$). 0 % means the same, 100 % nothing in common. The paper
# prints no number for it; its figure shows CRS on the stream's shares and PRS near equal ones.

# %%
from IPython.display import Markdown, display

distances = shares.distance_to(by_class, "equal").rename(columns={"total_variation": "to equal"})
distances["to stream"] = shares.distance_to(by_class, "stream")["total_variation"]
settings.save(None, distances, "distance")
means = distances.groupby(["dataset", "method"])[["to equal", "to stream"]].mean()
display(means.round(1))

# %%
lines = [
    f"- {name}: the memory of {kind} is {row['to equal']:.1f} % away from equal shares and "
    f"{row['to stream']:.1f} % from the stream's."
    for (name, kind), row in means.iterrows()
]
display(Markdown("\n".join(lines)))
