# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Which of the paper's claims hold?
#
# This notebook compares the numbers in the paper's tables with our numbers, and turns the claims in
# the paper's text into statistical tests, one for each claim and data set.
#
# The notebook reads the stored runs of the other notebooks with the same profile. Missing runs are
# trained or, if the parameter `missing` is "leave", marked as "not run". The data are of three
# kinds, which are never pooled:
#
# - `cocoseq-mini` is **a part of the paper's own data**: 2,072 of COCOseq's 35,072 training images,
#   as features of a frozen network. Each method trains a network of two layers on these features.
# - `reutersseq` (news), `mdiseq` (icons) and `clipartseq` (clip art) are **other real streams**.
#   The paper reports no numbers for them, but its claims about samplers can be tested on them, too.
# - **Synthetic data** are small data sets of handwritten digits that are used with a small network.
#   On them, the order of the methods can be compared with the paper, but not the scores themselves.
#
# *The notebook takes half a minute if all runs are stored.*

# %% tags=["parameters"]
profile: str = "quick"  # profile whose runs are read: smoke, quick, seeds, laptop or paper
level: float = 0.95  # confidence level of the intervals, between 0 and 1
missing: str = "train"  # train or leave: what to do with runs that are not stored
device: str = "cpu"  # cpu or cuda, for runs that are not trained yet
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["functions"]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import Markdown

from prslib.checks import one_of
from prslib.paths import project_root
from prslib.report import answers, ledger, notebook, style, tables, topics
from prslib.report.claims import CLAIMS
from prslib.report.results import STAND_IN, data_sources_of, printed_rows
from prslib.report.style import STYLE
from prslib.rounding import versions
from prslib.report.tables import PRECISION_RECALL

# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("ledger", globals())
one_of("value of missing", settings.missing, ["train", "leave"])
if not 0 < settings.level < 1:
    raise ValueError(f"level must be between 0 and 1, got {settings.level}")
settings

# %% tags=["compute"]
configs, errors = topics.runs(settings.profile)
print("left out, files missing:", errors or "none")
results = ledger.gather(configs, settings.missing, device=settings.device)
settings.write(ledger.decide(results, settings.level), "claims")

# %% [markdown]
# ## What was replicated, and what was not
#
# The table shows how the paper's main claims fare on real data. The verdicts are corrected for the
# number of claims. The [summary](../docs/report/README.md#summary) explains PRS, CRS and the
# scores. The power $\rho$ of PRS determines the class shares of its memory: with 0 they are equal,
# and with 1 they are as in the stream. In a test set with *classes alike*, the kind that the paper
# uses, all classes are about equally frequent, whereas a test set *as the stream comes* has the
# class mix of the stream. None of these runs trains the paper's network end to end on all of the
# paper's images; only the profile `paper` does.

# %%
decided = settings.table("claims")
display(Markdown(ledger.list_main_claims(decided)), Markdown(ledger.say_untested(decided)))

# %% [markdown]
# ## Every number
#
# Each number of the paper is compared with the mean over seeds of our runs with the same method,
# architecture, order of the tasks, number of epochs, kind of test set, class group and metric.
# Memory sizes are matched as fractions of the standard size: 60 of 120 samples corresponds to 1000
# of 2000. The file `ledger_cells.csv` has one row per number of the paper, with our standard
# deviation, seeds and data set, or "not run" if our number is missing.
#
# Each row below is about one table of the paper:
#
# - `cells` counts the numbers in the table, `run` the numbers for which we have a counterpart, and
#   `synthetic` the counterparts on synthetic data.
# - `mean_difference` is the mean absolute difference between our scores and the paper's, in points.
# - `rank_correlation` is Spearman's rank correlation between our scores of the methods and the
#   paper's, averaged over the columns of the paper's table, which `columns` counts. It is 1 if the
#   order of the methods is the same.

# %% jupyter={"source_hidden": true} tags=["functions"]
MATCH = ["stands_for", "method", "setting", "test_set", "trained_tasks", "task"]
MATCH += ["group", "measure", "metric"]
# columns of `cells`: the setting, the place in the table, the numbers and their source
PLACE = ["table", "stands_for", "method", "architecture", "memory_size", "schedule"]
PLACE += ["epochs", "test_set", "trained_tasks", "group", "measure", "metric"]
CELLS = [*PLACE, "kind", "theirs", "ours", "sd", "seeds", "difference", "status"]
CELLS += ["dataset", "data", "profile", "note"]


def cells(results: pd.DataFrame, profile: str) -> pd.DataFrame:
    """Join every published cell and the mean over seeds of our corresponding runs, in percent."""
    theirs = printed_rows().rename(columns={"value": "theirs"})
    ours = results.merge(theirs[MATCH].drop_duplicates(), on=MATCH)
    data_sources = data_sources_of(ours["dataset"].unique())
    first = {tables.labels_of(name).stands_for: name for name in reversed(data_sources)}
    ours = ours[ours["dataset"].isin(first.values())]
    means = ours.groupby([*MATCH, "dataset"], sort=False)["value"]
    means = means.agg(ours="mean", sd="std", seeds="count").reset_index()
    both = theirs.merge(means, how="left", on=MATCH)
    kinds = both["metric"].replace(dict.fromkeys(PRECISION_RECALL, "precision and recall"))
    both = both.assign(
        seeds=both["seeds"].fillna(0).astype(int),
        difference=both["ours"] - both["theirs"],
        status=np.where(both["ours"].notna(), "run", "not run"),
        data=both["dataset"].map(data_sources),
        profile=profile,
        kind=kinds.mask(both["measure"] == "forget", "forgetting"),
    )
    return both[CELLS]


def by_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Sum up the tables of `cells`: how much was run, how far off, in which order."""
    table = []
    for name, printed in rows.groupby("table", sort=False):
        run = printed[printed["status"] == "run"]
        scores = run[run["measure"] == "score"]
        correlations = rank_correlations(scores)
        row = {"table": name, "cells": len(printed), "run": len(run)}
        row["stand_ins"] = (run["data"] == STAND_IN).sum()
        row["mean_difference"] = scores["difference"].abs().mean()
        row["rank_correlation"] = correlations.mean()
        row["columns"] = len(correlations)
        table.append(row)
    return pd.DataFrame(table)


def rank_correlations(rows: pd.DataFrame) -> pd.Series:
    """Return Spearman's correlation of the methods' order in columns with three or more."""
    by = [name for name in PLACE if name != "method"]
    correlations = [
        column[["ours", "theirs"]].corr("spearman").iloc[0, 1]
        for _, column in rows.groupby(by, dropna=False, sort=False)
        if column["method"].nunique() > 2
    ]
    return pd.Series(correlations, dtype=float).dropna()  # NaN if all tie

# %% tags=["compute"]
rows = cells(results, settings.profile)
settings.write(rows, "cells")
settings.write(by_table(rows), "tables")

# %%
display(settings.table("tables").rename(columns={"stand_ins": "synthetic"}).round(2))

# %% [markdown]
# ## Every claim
#
# Each claim is reduced to one statistic that is positive if the claim is true. The same statistic
# is computed from the paper's tables if they contain the necessary numbers.
#
# Claims are tested on a test set with classes alike, with two exceptions: claims about an
# imbalanced test set are tested on a test set as the stream comes, and claims that compare both
# kinds of test set are tested on both. For `cocoseq-mini`, scores of single classes are measured on
# further images ([test sets](../docs/real_coco.md#test-sets)). The column `test` names the test
# set.
#
# The runs of one seed share the order of the stream and the initial weights. The statistic is
# therefore computed for each seed, and its interval is Student's t interval over seeds. On real
# data the interval also accounts for the sampling error of the test set, which is estimated by
# resampling.
#
# Before correction, a claim
#
# - *holds* if the whole interval is above 0;
# - does *not hold* if the whole interval is below 0;
# - shows *no difference* if the interval contains 0 and is within 2 points of it (instead of 2
#   points: 0.1 for rank correlations, and half of the paper's effect for variances and other
#   units);
# - is *undecided* in all other cases, and also with fewer than five seeds or if one of its runs
#   never learned a task (its score is 0 throughout).
#
# Holm's method corrects the verdicts for the number of claims on one data set. The intervals are
# not corrected. Some claims imply others: "PRS outperforms all five baselines" implies "PRS
# outperforms CRS". A claim that implies others is not included in the number of claims. It holds
# only if all implied claims hold and its own p value is significant after Bonferroni's correction
# for the number of claims. It does not hold if an implied claim does not hold.
#
# A *sensitivity* repeats the claim above it with another measure. Its verdict is not corrected and
# is excluded from all counts. A *fact* follows from the labels or from the design of a
# sampler, such as the class shares of a memory that is designed to have these shares. It has a
# number but no verdict.
#
# A claim about all metrics, all methods or all schedules covers several numbers (cells). It holds
# if every cell is significantly above 0, which needs no correction for the number of cells, and
# does not hold if any cell is significantly below 0. The tables show the effect and the interval of
# the *weakest* cell, the one with the least evidence of being above 0. Because intervals differ in
# width, this is not always the cell with the smallest number. The upper end of its interval is
# corrected for the number of cells.

# %%
display(ledger.counts(decided))

# %% jupyter={"source_hidden": true} tags=["functions"]
VERDICT_STYLES = {  # colour and what to look for without colours
    "holds": {"color": "#0072B2", "marker": "o"},
    "does not hold": {"color": "#D55E00", "marker": "v"},
    "no difference": {"color": "#009E73", "marker": "s"},
    "undecided": {"color": "#777777", "marker": "D"},
}


def plot_claim(frame: pd.DataFrame, ax: plt.Axes) -> plt.Axes:
    """Draw one claim of `decide`: a row for each data set, a tick for the paper's number."""
    places = np.arange(len(frame))
    paper = {"color": "black", "marker": "|", "linestyle": "", "markersize": 12}
    if frame["published"].notna().any():
        ax.plot(frame["published"], places, label="paper", **paper)
    frame = frame.assign(place=places)
    for verdict, look in VERDICT_STYLES.items():
        rows = frame[frame["verdict"] == verdict]
        if len(rows):
            ax.hlines(rows["place"], rows["low"], rows["high"], look["color"], linewidth=2)
            ax.plot(rows["effect"], rows["place"], linestyle="", label=verdict, **look)
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    style.name_rows(ax, list(frame["dataset"]))
    ax.set_xlabel(f"effect ({frame['unit'].iloc[0]})")
    ax.set_title(f"{frame['statement'].iloc[0]} ({ledger.say_tests(frame)})")
    ax.grid(axis="x")
    return ax

# %% tags=["compute"]
headlines = [name for name, claim in CLAIMS.items() if claim.headline]
chosen = ledger.on_real_data(decided)
settings.write(chosen[chosen["claim"].isin(headlines)], "headlines")

# %%
chosen = settings.table("headlines")
panels = [rows for _, rows in chosen.groupby("claim", sort=False)]
heights = [1.4 + len(rows) for rows in panels]
size = (8, 1.2 + 0.33 * sum(heights))
shape = {"figsize": size, "height_ratios": heights, "squeeze": False}
figure, axes = plt.subplots(len(panels), 1, **shape)
for rows, ax in zip(panels, axes[:, 0], strict=True):
    plot_claim(rows, ax)
for ax in axes[:-1, 0]:
    ax.set_xlabel("")
seeds = chosen["seeds"].max()
title = f"The paper's main claims: {100 * settings.level:.0f} % intervals, up to {seeds} seeds"
style.join_panels(figure, f"{title}; verdicts after Holm's correction")
settings.show(figure, "headlines")

# %% [markdown]
# The following tables list all claims that were run, question by question. Each entry contains the
# verdict and the effect with its interval, in the unit at the end of the claim's description; a
# negative effect contradicts the claim. A verdict can be *undecided* although the interval excludes
# 0, because only the verdict is corrected for the number of claims. Unless the claim holds, the
# weakest cell is named in parentheses: its score, its class group or setting if there are several,
# and the method that it is compared with, after "vs.". If an entry is empty, the claim was not
# tested on this data set. The file `ledger_claims.csv` has one row per claim and data set.

# %%
questions = decided["claim"].map(lambda name: CLAIMS[name].question)
for question, rows in decided.groupby(questions, sort=False):
    if (rows["verdict"] != "not run").any():
        table = ledger.as_markdown(ledger.lay_out(rows))
        display(Markdown(f"**{question}**\n\n{table}"))

# %% [markdown]
# One more claim is about runtime: in Table 1, the paper uses fewer seeds for GSS "due to its
# computational complexity". We measured the time of training steps of the paper's network on a GPU,
# with ten new and ten replayed images per step.

# %%
card = pd.read_csv(project_root() / "figures" / "bench" / "card_h100.csv")
card = card.set_index("kind").loc[["GSS", "ExStream", "EWC", "PRS", "Finetune"], "ms"]
times = answers.join_words(f"{time:.0f} ms with {name}" for name, time in card.items())
text = f"GSS is the slowest method. On one H100, a step takes {times}"
display(Markdown(f"{text} (`figures/bench/card_h100.csv`)."))

# %% [markdown]
# ## When the paper's images and synthetic data differ
#
# If two of our data sets represent the same data set of the paper, their verdicts on a claim can
# differ. The table lists the claims whose uncorrected verdicts differ, and shows the corrected
# verdicts. Three properties distinguish the data sets:
#
# - **The number of images.** Because `cocoseq-mini` has few images, its network is trained for only
#   about 200 steps. Rare classes therefore seldom reach the threshold of 0.5, so that F1 is less
#   informative than mAP.
# - **A frozen or a trained network.** The features of `cocoseq-mini` come from a frozen network,
#   whereas the networks for synthetic data learn from pixels. [`pretraining`](pretraining.ipynb)
#   compares both ways on synthetic data.
# - **The test images.** Intervals on `cocoseq-mini` account for the sampling error of the test
#   images. Intervals on synthetic data, which have many test images, ignore it.

# %%
run = decided[(decided["alone"] != "not run") & (decided["data"] != "other")]
several = run.groupby(["claim", "stands_for"])["alone"].transform("nunique") > 1
display(Markdown(ledger.as_markdown(ledger.lay_out(run[several]))))

# %% [markdown]
# All tables and pictures were made with these versions of packages:

# %% tags=["compute"]
settings.write(versions(), "versions")

# %%
display(settings.table("versions"))

# %% [markdown]
# ## How to read the verdicts
#
# - A claim that does not hold on synthetic data is not thereby refuted, because it may require a
#   property that these data lack. Conversely, a claim may hold only because the network was
#   pretrained on digits and sees the same digits again in new colours.
#   [`pretraining`](pretraining.ipynb) compares PRS with CRS for other initial weights.
# - Some claims are contradicted by the paper's own tables: Multitask, which the paper calls the
#   upper bound, has a lower C-F1 than PRS, and after some tasks PRS is not ahead of ExStream. The
#   column `paper` shows these cases.
# - Mainly two kinds of claims are *not run*, which the profile `paper` tests on the paper's data.
#   First, claims about schedules, memory sizes and networks on NUS-WIDEseq require a data set with
#   six tasks. Ours is synthetic, and its networks learn from pixels, so that runs for these claims
#   would take longer than all runs on real data together. Second,
#   claims about networks that learn from pixels cannot be tested on `cocoseq-mini`, which contains
#   only features.
# - With other versions of the packages, the numbers of a run and the verdict of a claim near a
#   limit can change. `make verify` reports how much the numbers change.
# - Intervals account for the variance over seeds and, on real data, over test samples. They do not
#   account for the variation between data sets, sizes or settings.
# - After correction, the probability of at least one wrong "holds" or "does not hold" on a data set
#   is at most about 5 %. Sensitivities are not corrected, so their verdicts are only suggestive.

# %% jupyter={"source_hidden": true} tags=["answer"]
texts = []
for name, row in ledger.counts(decided).iterrows():
    verb = "does" if row["does not hold"] == 1 else "do"
    text = f"On {name}, {row['holds']} of {row['rows']} hold"
    texts.append(f"{text} and {row['does not hold']} {verb} not.")
sentence = f"Each claim is counted once per data set. {' '.join(texts)}"
settings.write_answer(f"{sentence} All other claims are undecided or show no difference.")
