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
# # How much balance is best?
#
# The power of allocation $\rho$ sets the target partition $p_i \propto n_i^{\rho}$: at 1 the target
# is the stream's own mix, at 0 every class has the same share, below 0 the rare classes get more
# than the frequent ones. At 1, the paper says, this "is identical to the conventional sampling".
# The paper's **Figure "power of allocation"** sweeps it from $-1$ to $1$ on COCOseq and finds that
# "as $\rho$ moves away from the vicinity of balance, the performance gradually declines in all
# metrics". It tunes $\rho$ within $[-0.2, 0.2]$ and trains COCOseq with $-0.03$.
#
# The quick profile runs on `cocoseq-mini`: **real COCOseq images**, 6 % of them, as features of a
# frozen EfficientNet-Lite0 on which each method trains a small head. It is the paper's data, not
# the paper's table: that has a ResNet-101, trained end to end on all images.
#
# *About half a minute on two cores for the quick profile; the second time nothing is trained.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds, laptop or paper: whose folder the figures go to
dataset: list = ["cocoseq-mini"]  # one or more data sets
rhos: list = [-1.0, -0.5, -0.2, -0.03, 0.0, 0.2, 0.5, 1.0]  # powers of allocation
memory_size: int = None  # samples in memory, None for each data set's own
seeds: list = [0, 1, 2, 3, 4]  # one run of every rho for each
device: str = "cpu"  # cpu or cuda

# %%
from prslib.report import rho_sweep

settings = rho_sweep.Settings.read(globals())
configs = rho_sweep.runs(settings)
settings

# %% [markdown]
# ## Overall
#
# C-F1, O-F1 and mAP after the last task: mean over seeds, a band of one standard deviation, and a
# ring at the best $\rho$ of each metric.

# %%
import matplotlib.pyplot as plt

from prslib import run_all
from prslib.report.style import STYLE
from prslib.report.tables import final, scores_of

plt.style.use(STYLE)
rows = final(scores_of(run_all(configs, device=settings.device)))
rows = rows[rows["measure"] == "score"]

# %%
from prslib.report.rho_sweep import plot_sweep
from prslib.report.style import join_panels
from prslib.training.grids import seeds_told

for name in settings.dataset:
    shown = rows[(rows["dataset"] == name) & (rows["group"] == "overall")]
    figure, ax = plt.subplots()
    plot_sweep(shown, ax)
    join_panels(figure, f"{name}: PRS overall, {seeds_told(settings.seeds)}")
    settings.save(figure, shown, name)

# %% [markdown]
# ## By group
#
# The panels show what balance costs the frequent classes and what the rare ones gain.

# %%
for name in settings.dataset:
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4))
    for ax, group in zip(axes, ["majority", "moderate", "minority"], strict=True):
        shown = rows[(rows["dataset"] == name) & (rows["group"] == group)]
        plot_sweep(shown, ax).set_title(group)
    join_panels(figure, f"{name}: PRS by class group, {seeds_told(settings.seeds)}")
    settings.save(figure, rows[rows["dataset"] == name], f"groups_{name}")

# %% [markdown]
# ## Is the vicinity of balance best?
#
# The paper draws the curve and prints no numbers beside it, so only its shape can be compared. A
# `best_rho` inside $[-0.2, 0.2]$ agrees with the paper's claim. `best` is the score there in percent,
# and the last columns have the scores at both ends of the sweep. `ledger` decides whether the
# difference to values outside is more than chance.

# %%
from prslib.report.rho_sweep import best_rho

best = best_rho(rows[rows["group"] == "overall"])
settings.save(None, best, "best")
best.round(2)

# %% [markdown]
# ## Is $\rho = 1$ conventional sampling?
#
# The target is the same, but PRS still chooses by labels which samples come and go. The table has
# the labels of a held sample, and the percentage of the memory from the first tenth of the stream,
# which is 10 in a memory drawn evenly. No training is needed: the samplers see labels alone.
# `ledger` decides the claim.

# %%
from prslib.report.rho_sweep import beside_crs

memories = beside_crs(settings)
settings.save(None, memories, "beside_crs")
memories.groupby(["dataset", "method"], sort=False).mean().drop(columns="seed").round(2)
