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
# # Does it depend on the order of the tasks, or on the size of the memory?
#
# The paper trains COCOseq in five schedules and NUS-WIDEseq in four, and both with memories of
# 1000, 2000 and 3000 (**Table 2** and four tables of the appendix, with forgetting for
# NUS-WIDEseq). It claims that CRS, GSS and ExStream fluctuate "depending on the permuted schedule,
# while our PRS is comparatively robust", and that "PRS outperforms all the baselines with multiple
# memory sizes".
#
# The quick profile runs on `cocoseq-mini`: **real COCOseq images**, 6 % of them, as features of a
# frozen EfficientNet-Lite0 on which each method trains a small head. It is the paper's data, not
# the paper's table: that has a ResNet-101, trained end to end on all images.
# Its standard memory is 120, and 60 and 180 stand beside it. The seeds profile adds `digits49seq`,
# a **stand-in** for NUS-WIDEseq.
#
# *About a minute on two cores after `main_results`; the second time nothing is trained.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds, laptop or paper: whose folder the figures go to
dataset: list = ["cocoseq-mini"]  # one or more data sets
rhos: list = [-0.03]  # power of allocation of PRS, one for each data set
method: list = ["CRS", "GSS", "ExStream", "PRS"]  # methods with a memory
sized: list = ["CRS", "GSS", "ExStream", "PRS"]  # those that get other memories
schedules: int = 4  # schedules beside the standard one, Table 2's first
shares: list = [0.5, 1.5]  # memories beside the standard one, as shares of it
seeds: list = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]  # of the standard setting, as in main_results
varied_seeds: list = [0]  # of every other schedule and memory, some of those above
costly: list = []  # methods and data sets that take the following seeds instead, in every setting
costly_seeds: list = [0, 1, 2, 3, 4]  # one run of every costly method for each
device: str = "cpu"  # cpu or cuda

# %%
from prslib.report import schedules_and_memory

settings = schedules_and_memory.Settings.read(globals())
configs = schedules_and_memory.runs(settings)
settings

# %% [markdown]
# ## Schedules
#
# Overall and by group after the last task, in percent, for each schedule. *paper* is the appendix's
# number for the data set that ours stands in for. The appendix prints forgetting for NUS-WIDEseq
# alone.

# %%
from prslib import run_all
from prslib.report.schedules_and_memory import scores_by_memory, scores_by_schedule
from prslib.report.tables import scores_of

runs = run_all(configs, device=settings.device)
scores = scores_of(runs)
by_schedule, by_memory = scores_by_schedule(scores), scores_by_memory(scores)

# %%
from IPython.display import Markdown, display

from prslib.report.tables import average, main_tables

settings.save(None, by_schedule, "schedules")
cells = average(by_schedule)
for name in settings.dataset:
    display(Markdown(f"**{name}** in the paper's schedules"))
    display(*main_tables(cells, name, by=["schedule"]))

# %%
import matplotlib.pyplot as plt

from prslib.report.style import STYLE

plt.style.use(STYLE)
counts = [f"{len(settings.varied_seeds)} for the others"]
counts += [f"{name} {len(settings.costly_seeds)}" for name in settings.costly]
seed_text = f"{len(settings.seeds)} seeds"
if settings.varied_seeds != settings.seeds or settings.costly:
    seed_text += " for the {} one, " + ", ".join(counts)
overall = by_schedule[(by_schedule["measure"] == "score") & (by_schedule["group"] == "overall")]

# %%
from prslib.report.style import contrast_panels, join_panels, plot_variations

figure, axes = plt.subplots(2, len(settings.dataset), figsize=(11, 6.6), squeeze=False)
for column, name in zip(axes.T, settings.dataset, strict=True):
    for ax, metric in zip(column, ["C-F1", "mAP"], strict=True):
        shown = overall[(overall["dataset"] == name) & (overall["metric"] == metric)]
        plot_variations(shown, ax, "schedule", metric).set_title(name)
    ax.set_xlabel("schedule, the standard one first")
join_panels(figure, f"Schedules, overall: {seed_text.format('first')}")
settings.save(figure, overall, "schedules_overall")

# %% [markdown]
# ## Is PRS more robust?
#
# `sd` is the standard deviation of each method's overall scores over the schedules, with the same
# seeds, and `published_sd` that of the paper's own means over five seeds. With few seeds chance
# moves a schedule's score as well: `seed_sd` is the spread over seeds at the standard schedule.

# %%
from prslib.report.schedules_and_memory import schedule_spread

spread = schedule_spread(by_schedule)
settings.save(None, spread, "schedules_spread")
spread.round(1)

# %% [markdown]
# PRS against CRS in each schedule, seed by seed:

# %%
from prslib.report.tables import MAIN_METRICS, contrasts, in_short

pairs = [("overall", metric) for metric in MAIN_METRICS]
gaps = contrasts(by_schedule, "PRS", "CRS", pairs, by=["schedule"])
figure = contrast_panels(gaps, "Overall, PRS minus CRS by schedule", "schedule")
settings.save(figure, gaps, "schedules_prs_minus_crs")
display(Markdown(in_short(gaps)))

# %% [markdown]
# ## Memory sizes
#
# Our sizes, and in brackets the paper's sizes that they stand for.

# %%
settings.save(None, by_memory, "sizes")
cells = average(by_memory)
for name in settings.dataset:
    display(Markdown(f"**{name}** with memories of several sizes"))
    display(*main_tables(cells, name, by=["memory"]))

# %%
overall = by_memory[(by_memory["measure"] == "score") & (by_memory["group"] == "overall")]
figure, axes = plt.subplots(2, len(settings.dataset), figsize=(11, 6.6), squeeze=False)
for column, name in zip(axes.T, settings.dataset, strict=True):
    for ax, metric in zip(column, ["C-F1", "mAP"], strict=True):
        shown = overall[(overall["dataset"] == name) & (overall["metric"] == metric)]
        plot_variations(shown, ax, "memory", metric).set_title(name)
    ax.set_xlabel("samples in memory [the paper's]")
join_panels(figure, f"Memory sizes, overall: {seed_text.format('standard')}")
settings.save(figure, overall, "sizes_overall")

# %% [markdown]
# ## Table 2
#
# The overall scores of COCOseq's schedules and memories beside the numbers of the main text. Its
# numbers for PRS differ from the appendix's.

# %%
import pandas as pd

both = pd.concat([by_schedule, by_memory]).drop(columns=["published", "draws"], errors="ignore")
both = both.rename(columns={"table_2": "published"}).dropna(subset="published")
cells = average(both[both["measure"] == "score"].drop_duplicates())
settings.save(None, cells, "table_2")
for name in cells["dataset"].unique():
    display(Markdown(f"**{name}**, beside Table 2"))
    display(*main_tables(cells, name, by=["schedule", "memory"]))

# %% [markdown]
# ## Is PRS best at every size, and does the gain narrow?
#
# The appendix notes "a large jump in performance from 1000 to 2000 memory size, but the gap
# quickly narrows when the memory grows from 2000 to 3000". The table has what each larger memory
# adds, in points, ours and the paper's: the gain narrows where the second step adds less.

# %%
from prslib.report.schedules_and_memory import memory_gains

gaps = contrasts(by_memory, "PRS", "CRS", pairs, by=["memory"])
figure = contrast_panels(gaps, "Overall, PRS minus CRS by memory size", "memory")
settings.save(figure, gaps, "sizes_prs_minus_crs")
display(Markdown(in_short(gaps)))
gains, keys = memory_gains(by_memory), ["dataset", "metric", "method"]
settings.save(None, gains, "sizes_gains")
step = gains["memory_from"] + " to " + gains["memory_to"]
gains.assign(step=step).pivot_table(["gain", "published_gain"], keys, "step", sort=False).round(1)
