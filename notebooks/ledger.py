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
# # What came out, and what did not?
#
# The paper prints 2220 numbers in its tables and makes some fifty claims in words. This
# notebook is the account of both: one row for each number, theirs and ours, and one row for each
# claim and data set, with the test that decides it. A verdict is computed, never typed.
#
# It asks for no runs of its own. What the other notebooks of the profile ask for is taken from the
# cache; where a run is missing it is trained, or, with `missing` set to "leave", its cells stay
# "not run". The quick profile runs on **stand-ins**, small data sets and a small network in place
# of the paper's. Their heights say little; order and direction are what can be compared.
#
# *Half a minute once the runs are there.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds or paper: whose runs and whose folder
level: float = 0.95  # share of the resamples that an interval holds, between 0 and 1
missing: str = "train"  # train or leave: what to do with runs that are not stored
device: str = "cpu"  # cpu or cuda, for what is not trained yet

# %%
from prslib.report import ledger, notebook
from prslib.report import ledger as numbers

settings = notebook.settings("ledger", globals())
asked, left_out = ledger.all_wanted(settings.profile)
wanted = asked if settings.missing == "train" else []
print("left out, files missing:", left_out or "none")
settings

# %% [markdown]
# ## Every number
#
# Ours is the mean over seeds of the runs with the same method, architecture, schedule, number of
# epochs, test set, group and metric, and with the same memory relative to the standard: half of
# 500 samples stands for 1000 of 2000. The CSV, `ledger_cells.csv`, has a row for each of the 2220,
# with the spread, the seeds, the data set, and "not run" where there is none.
#
# Below, table by table: how many of its cells were run, how many of those are stand-ins, the mean
# absolute difference of the scores in points, and Spearman's rank correlation of the methods, ours
# against theirs, averaged over the columns of the table. 1 means the same order.

# %%
import matplotlib.pyplot as plt
from IPython.display import Markdown, display

from prslib import plots

plt.style.use(plots.STYLE)
observations = ledger.gather(asked, settings.missing, device=settings.device)
rows = numbers.cells(observations, settings.profile)
settings.save(None, rows, "cells")
tables = numbers.summary(rows)
settings.save(None, tables, "tables")
display(tables.round(2))

# %%
run = rows[rows["status"] == "run"]
figure, axes = plt.subplots(2, 3, figsize=(10, 7.8))
for ax, kind in zip(axes.flat, numbers.KINDS, strict=True):
    shown = run[run["kind"] == kind]
    plots.plot_agreement(shown, ax).set_title(f"{kind}: {len(shown)} cells")
plots.share_legend(figure)
seeds = f"means over {run['seeds'].min()} to {run['seeds'].max()} seeds"
figure.suptitle(f"{len(run)} of {len(rows)} published cells, ours against the paper's, {seeds}")
settings.save(figure, run, "agreement")

# %% [markdown]
# ## Every claim
#
# Each claim is turned into one number that is above 0 where the claim is right. A claim about all
# metrics, all methods or all schedules is measured where it is weakest, so that it has to be right
# everywhere. The same number is computed from the paper's own tables, where they print what it
# takes.
#
# How sure? The runs of one seed share the order of the stream and the initial weights, so seeds are
# resampled and all cells of a seed stay together (a paired bootstrap). Of few seeds all resamples
# can be listed, 27 of three, which draws nothing. It is also weak: the range of three seeds holds
# the median of all seeds with a probability of 75 % at most, that of two with 50 %, whatever the
# nominal level says (column `coverage`). A claim *holds* if the whole interval is above 0, does
# *not hold* if it is below, and is *undecided* otherwise, or where there are fewer than three
# seeds, as for the methods that are costly to train.
#
# The weakest of many noisy cells lies low even where all are right. The upper end of
# such a claim's interval is therefore the lowest of the cells' own upper ends, each at a level
# corrected for the number of cells: it does not hold where one cell by itself shows it.

# %%
decided = ledger.decide(observations, asked, settings.level)
counts = decided.groupby(["stands_for", "verdict"]).size().unstack(fill_value=0)
display(counts)

# %%
figure, ax = plt.subplots(figsize=(9, 2.2 + 0.23 * decided["claim"].nunique()))
plots.plot_claims(decided, ax)
data = "on stand-ins" if decided["stand_in"].any() else "on the paper's data"
most = f"{settings.level:.0%} intervals, {decided['seeds'].max()} seeds at most"
figure.suptitle(f"The paper's claims in our runs {data}: {most}")
settings.save(figure, decided, "claims")

# %% [markdown]
# What holds in our runs, what does not, and by how much; the claims themselves stand below, with
# their place in the paper. In brackets behind a data set the one that it stands for.

# %%
display(Markdown("\n".join(f"- {sentence}" for sentence in ledger.sentences(decided))))

# %%
display(Markdown(ledger.as_markdown(ledger.account(decided))))

# %% [markdown]
# All of it was drawn with:

# %%
from prslib.training.portable import versions

settings.save(None, versions(), "versions")
display(versions())

# %% [markdown]
# ## How to read it
#
# - A row that does not hold on a stand-in does not refute the paper. It says that the claim needs
#   something the stand-in lacks, and a row that holds there may need something it has: its network
#   has learned digits before and meets them in new colours, and scores higher than the paper's.
#   [`pretraining`](pretraining.ipynb) tests the claims about Table 1 under other beginnings too.
# - Some claims fail in the paper's own tables too. Multitask is called the upper bound and has a
#   lower C-F1 than PRS; and just after a task PRS is not always ahead of ExStream. The ticks in the
#   picture show these.
# - The runs are meant to come out to the byte with the same packages (`versions.csv`, above), on
#   any x86-64 processor that has AVX2 (`prslib.training.portable`). With others the last digit is rounded
#   otherwise, every run drifts apart from its twin, and a claim near its limit may be decided
#   otherwise.
# - Intervals are over seeds. They say nothing of other data sets, other sizes or other settings,
#   nor of the chance in what the stand-ins' network has learned before: all seeds begin with the
#   same weights.
# - Some fifty claims are tested at once, on few seeds each. Of the intervals over three seeds up to
#   one in four may miss by chance alone.
