# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What came out, and what did not?
#
# The paper prints numbers in its tables and makes claims in words. Here every number of the paper
# has a row, with ours beside it, and every claim is turned into a test that is decided on each data
# set. Code writes the verdicts, on the top as well as in the tables.
#
# The notebook has no runs of its own. It takes those of the other notebooks of the profile from the
# cache. Missing runs are trained; with `missing` set to "leave" their cells stay "not run". The
# data are of three kinds, which are never mixed:
#
# - `cocoseq-mini` is **a part of the paper's own data**: 2,072 of COCOseq's 35,072 training images,
#   as features of a frozen network on which each method trains a small head.
# - `reutersseq` (news), `mdiseq` (icons) and `clipartseq` (clip art) are **other real streams**. The
#   paper has no number for them, but what it says of samplers can be tried there, too.
# - **Stand-ins** are small data sets of digits, with a small network. There compare the order of the
#   methods, not the height of the scores.
#
# *Half a minute once the runs are there.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds, laptop or paper: whose runs
level: float = 0.95  # of the intervals, between 0 and 1
missing: str = "train"  # train or leave: what to do with runs that are not stored
device: str = "cpu"  # cpu or cuda, for what is not trained yet
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["functions"]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import Markdown
from matplotlib.axes import Axes

from prslib.checks import one_of
from prslib.paths import project_root
from prslib.report import ledger, topics
from prslib.report.answers import join_words, write_answer
from prslib.report.claims import CLAIMS, SETTINGS
from prslib.report.notebook import Settings
from prslib.report.results import CELL, OTHER_STREAM, PRINTED, STAND_IN, data_sources_of
from prslib.report.results import printed_rows
from prslib.report.style import STYLE, join_panels, styles_for
from prslib.report.tables import MAIN_METRICS, PRECISION_RECALL, labels_of
from prslib.rounding import versions

# %%
settings = Settings.read("ledger", globals())
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
# The paper's main claims on real data, corrected for the number of claims. *Classes alike* is the
# paper's kind of test; *as the stream comes* has the mix of the stream. The paper's network, trained
# end to end on all of its images, is not among these runs: the profile `paper` trains it.

# %%
plt.style.use(STYLE)
decided = settings.table("claims")
display(Markdown(ledger.summarise(decided)))

# %% [markdown]
# ## Every number
#
# Ours is the mean over seeds of the runs with the same method, architecture, schedule, number of
# epochs, kind of test set, group and metric. Their memory is the same share of the standard one:
# half of 120 samples stands for 1000 of 2000. The CSV, `ledger_cells.csv`, has a row for each
# number, with the spread, the seeds, the data set, and "not run" where ours is missing.
#
# The summary below has a row for each table of the paper. It has the number of cells that were run,
# how many of those are stand-ins, and the mean absolute difference of the scores in points. It also
# has Spearman's rank correlation of the methods, ours against the paper's, averaged over the
# columns of the table. A correlation of 1 means the same order.

# %% jupyter={"source_hidden": true} tags=["functions"]
BOTH = "precision and recall"
MATCH = ["stands_for", "method", "test_set", *SETTINGS, *CELL]
# of `cells`: the setting, the place in the table, the numbers, where ours are from
PLACE = ["table", "stands_for", "method", "architecture", "memory_size", "schedule"]
PLACE += ["epochs", "test_set", "trained_tasks", "group", "measure", "metric"]
CELLS = [*PLACE, "kind", "theirs", "ours", "sd", "seeds", "difference", "status"]
CELLS += ["dataset", "data", "profile", "note"]


def cells(results: pd.DataFrame, profile: str) -> pd.DataFrame:
    """Set the mean over seeds of our alike runs beside every published cell, in percent."""
    theirs = printed_rows().rename(columns={"value": "theirs"})
    ours = results.merge(theirs[MATCH].drop_duplicates(), on=MATCH)
    data_sources = data_sources_of(ours["dataset"].unique())
    first = {labels_of(name).stands_for: name for name in reversed(data_sources)}
    ours = ours[ours["dataset"].isin(first.values())]
    means = ours.groupby([*MATCH, "dataset"], dropna=False)["value"]
    means = (
        means.agg(ours="mean", sd="std", seeds="count").reset_index().astype(SETTINGS)
    )
    both = theirs.merge(means, how="left", on=MATCH).drop(columns=list(SETTINGS))
    both = both.rename(columns={name: printed for printed, name in PRINTED.items()})
    kinds = both["metric"].replace(dict.fromkeys(PRECISION_RECALL, BOTH))
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
display(settings.table("tables").round(2))

# %% [markdown]
# Does PRS lead by as much as in the paper? For each table of the paper the picture has our lead of
# PRS over another method less the paper's lead, with classes alike unless the table is about the
# imbalanced test: the mean over the cells, and strokes from the lowest to the highest cell. Left of
# 0 our lead is smaller. Only real data are shown, and Multitask and Finetune are left out, because
# they are bounds.

# %% jupyter={"source_hidden": true} tags=["functions"]
BOUNDS = ("Multitask", "Finetune")  # no rivals of PRS


def leads_of_prs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return PRS minus each rival of `cells` on real data, ours and the paper's."""
    is_real = (frame["status"] == "run") & (frame["data"] != STAND_IN)
    frame = frame[is_real & ~frame["method"].isin(BOUNDS)]
    by = [name for name in PLACE if name != "method"]
    by += ["kind", "dataset", "data"]
    scores = ["theirs", "ours"]
    table = frame[["method", *by, *scores]]
    is_prs = table["method"] == "PRS"
    prs = table[is_prs].drop(columns="method")
    others = table[~is_prs].rename(columns={"method": "than"})
    both = others.merge(prs, on=by, suffixes=("_than", ""))
    for name in scores:
        both[name] -= both[f"{name}_than"]
    return both[["than", *by, *scores]]


def by_lead(leads: pd.DataFrame) -> pd.DataFrame:
    """Average `leads_of_prs` by table and metric: ours less the paper's, and signs alike."""
    leads = leads[leads["kind"].isin(MAIN_METRICS)]
    leads = leads.assign(
        difference=leads["ours"] - leads["theirs"],
        same_sign=(leads["ours"] > 0) == (leads["theirs"] > 0),
    )
    by = leads.groupby(["dataset", "table", "test_set", "kind"], sort=False)
    return by.agg(
        cells=("difference", "size"),
        ours=("ours", "mean"),
        theirs=("theirs", "mean"),
        difference=("difference", "mean"),
        lowest=("difference", "min"),
        highest=("difference", "max"),
        same_sign=("same_sign", "sum"),
    ).reset_index()


def describe_leads(frame: pd.DataFrame) -> str:
    """Say of `by_lead` how often the sign is the paper's, metric by metric."""
    sums = frame.groupby("kind")[["same_sign", "cells"]].sum()
    texts = [
        f"in {metric} in {sums.at[metric, 'same_sign']} of {sums.at[metric, 'cells']} cells"
        for metric in MAIN_METRICS
        if metric in sums.index
    ]
    return (
        f"The sign of PRS's lead is the paper's {join_words(texts)}." if texts else ""
    )


def plot_leads(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw `by_lead`, a row for each table, a mark for each metric."""
    tables = list(frame["table"].unique())
    for number, (metric, style) in enumerate(styles_for(MAIN_METRICS).items()):
        rows = frame[frame["kind"] == metric]
        places = rows["table"].map(tables.index) + 0.2 * (number - 1)
        ax.hlines(places, rows["lowest"], rows["highest"], style["color"], alpha=0.5)
        ax.plot(rows["difference"], places, linestyle="", label=metric, **style)
    ax.hlines([], [], [], "0.5", label="lowest to highest cell")
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    counts = frame.groupby("table")["cells"].sum()
    names = [f"{name.replace('_', ' ')} ({counts[name]} cells)" for name in tables]
    ax.set_yticks(range(len(tables)), names)
    ax.set(
        ylim=(len(tables) - 0.5, -0.5),
        xlabel="PRS's lead, ours less the paper's (points)",
    )
    ax.grid(axis="x")
    return ax


# %% tags=["compute"]
settings.write(by_lead(leads_of_prs(rows)), "agreement")

# %%
shown = settings.table("agreement")
figure, ax = plt.subplots(figsize=(8, 1.8 + 0.5 * shown["table"].nunique()))
plot_leads(shown, ax)
names = ", ".join(shown["dataset"].unique())
join_panels(figure, f"{names}: PRS's leads against the paper's, on its kind of test")
settings.show(figure, "agreement")
display(Markdown(describe_leads(shown)))

# %% [markdown]
# ## Every claim
#
# Each claim is turned into one number that is above 0 where the claim is right. A claim about all
# metrics, all methods or all schedules is measured where it is weakest, so that it has to be right
# everywhere. The same number is computed from the paper's own tables, if they print enough for it.
#
# A claim of the paper is decided with classes alike, which is the paper's kind of test, and a claim
# about an unbalanced test on the test that is as the stream comes. Scores of single classes are read
# on further images where there are any, which only `cocoseq-mini` has ([test
# sets](../docs/real_coco.md#test-sets)). The column `test` names the test set.
#
# How sure is that? The runs of one seed share the order of the stream and the initial weights. All
# cells of a seed stay together, and the interval is Student's t over the seeds' own effects. On
# real data the interval also covers the chance in which samples are tested, from resamples of the
# test set.
#
# By itself a claim *holds* if the whole interval is above 0. It does *not hold* if the interval is
# below 0, which shows the opposite. An interval within 2 points of 0 shows that there is *no
# difference* larger than its ends. For effects in square points the limit is half of the paper's
# own effect, for a rank correlation 0.1. Otherwise the claim is *undecided*. It is also undecided
# with fewer than five seeds, or if a seed never learned what the row measures. Many claims are
# tested at once, so verdicts are corrected for the number of claims on one data set (Holm); the
# intervals are about one row each. Claims that imply others are not counted. Such a claim does not
# hold where one of them does not. It holds where all of them hold and its own interval is above 0
# at the level divided by the number of claims.
#
# Two kinds of rows have no such verdict. A *sensitivity* is the claim above it by another measure;
# its verdict is uncorrected, and it is counted nowhere. A *fact* is so by construction, such as the
# shares of a memory that is built to have them: it has a number and no verdict.
#
# A claim about many cells is measured in the weakest, which has the least evidence of being above
# 0. Effect and interval are that cell's; the upper end is at a level corrected for the number of
# cells. The claim does not hold if one cell is clearly below 0. It holds if every cell is clearly
# above 0, which needs no correction. The tables name the weakest cell of a claim that does not hold
# everywhere.

# %%
display(ledger.counts(decided))

# %% jupyter={"source_hidden": true} tags=["functions"]
VERDICT_STYLES = {  # colour and what to look for without colours
    "holds": {"color": "#0072B2", "marker": "o"},
    "does not hold": {"color": "#D55E00", "marker": "v"},
    "no difference": {"color": "#009E73", "marker": "s"},
    "undecided": {"color": "#777777", "marker": "D"},
}


def plot_claim(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw one claim of `decide`: a row for each data set, a tick for the paper's number."""
    places = np.arange(len(frame))
    paper = {"color": "black", "marker": "|", "linestyle": "", "markersize": 12}
    if frame["published"].notna().any():
        ax.plot(frame["published"], places, label="paper", **paper)
    for verdict, style in VERDICT_STYLES.items():
        is_so = (frame["verdict"] == verdict).to_numpy()
        rows = frame[is_so]
        if len(rows):
            ax.hlines(
                places[is_so], rows["low"], rows["high"], style["color"], linewidth=2
            )
            ax.plot(rows["effect"], places[is_so], linestyle="", label=verdict, **style)
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    ax.set_yticks(places, frame["dataset"])
    ax.set(ylim=(len(frame) - 0.5, -0.5), xlabel=f"effect ({frame['unit'].iloc[0]})")
    ax.set_title(f"{frame['statement'].iloc[0]} ({ledger.say_tests(frame)})")
    ax.grid(axis="x")
    return ax


# %% tags=["compute"]
headlines = [name for name, claim in CLAIMS.items() if claim.headline]
chosen = decided[decided["claim"].isin(headlines) & decided["data"].isin(ledger.REAL)]
settings.write(chosen[chosen["verdict"] != "not run"], "headlines")

# %%
chosen = settings.table("headlines")
panels = [rows for _, rows in chosen.groupby("claim", sort=False)]
heights = [1.4 + len(rows) for rows in panels]
size = (8, 1.2 + 0.33 * sum(heights))
figure, axes = plt.subplots(
    len(panels), 1, figsize=size, height_ratios=heights, squeeze=False
)
for rows, ax in zip(panels, axes[:, 0], strict=True):
    plot_claim(rows, ax)
for ax in axes[:-1, 0]:
    ax.set_xlabel("")
seeds = chosen["seeds"].max()
title = (
    f"The paper's main claims: {settings.level:.0%} intervals, {seeds} seeds at most"
)
join_panels(figure, f"{title}; verdicts after Holm's correction")
settings.show(figure, "headlines")


# %% [markdown]
# Now all of them, question by question. A cell has the verdict and the effect with its interval, in
# the unit that is named behind the claim; below 0 it speaks against the claim. An empty cell was not
# run. The CSV, `ledger_claims.csv`, has more columns: the effect in each of C-F1, O-F1 and mAP, also
# at the runs' tuned threshold, how many cells are clear, and how large a difference an undecided row
# could have shown.

# %%
questions = decided["claim"].map(lambda name: CLAIMS[name].question)
for question, rows in decided.groupby(questions, sort=False):
    if (rows["verdict"] != "not run").any():
        table = ledger.as_markdown(ledger.lay_out(rows))
        display(Markdown(f"**{question}**\n\n{table}"))

# %% [markdown]
# One more claim is about time: Table 1 has fewer seeds of GSS "due to its computational complexity".
# Time is no score of a run. It was measured with the paper's network on graphics cards, a step of
# ten new and ten replayed images.

# %%
card = pd.read_csv(project_root() / "figures" / "bench" / "card_h100.csv").set_index(
    "kind"
)["ms"]
times = ", ".join(
    f"{name} {card[name]:.0f}" for name in ("GSS", "ExStream", "EWC", "PRS", "Finetune")
)
display(
    Markdown(
        f"*Fact:* GSS takes the longest. Milliseconds a step on one H100: {times} (`figures/bench/card_h100.csv`)."
    )
)


# %% [markdown]
# ## Where the paper's images and stand-ins differ
#
# The table has the claims with different verdicts on two data sets that stand for the same one of
# the paper. Each is decided by itself. The data sets differ in three things that are measured:
#
# - **The number of images.** [`when_it_pays`](when_it_pays.ipynb) draws PRS minus CRS for a quarter
#   to all of the training images of `cocoseq-mini`. Its head takes about 200 steps, so few rare
#   classes reach the threshold of 0.5 and F1 says less than mAP.
# - **A frozen network or a trained one.** [`pretraining`](pretraining.ipynb) trains the stand-in's
#   network end to end, and its head alone.
# - **The test images.** Intervals on `cocoseq-mini` cover the chance in which images are tested.
#   Stand-ins have many test images, so their intervals leave this chance out.


# %% jupyter={"source_hidden": true} tags=["functions"]
def disagreements(decided: pd.DataFrame) -> pd.DataFrame:
    """Lay out the claims that data sets for the same one of the paper decide differently."""
    run = decided[(decided["alone"] != "not run") & (decided["data"] != OTHER_STREAM)]
    several = run.groupby(["claim", "stands_for"])["alone"].transform("nunique") > 1
    columns = ["claim", "data", "test", "uncorrected", "effect", "paper", "seeds"]
    return ledger.account(run[several])[columns]


# %%
display(Markdown(ledger.as_markdown(disagreements(decided))))

# %% [markdown]
# All of it was drawn with:

# %% tags=["compute"]
settings.write(versions(), "versions")

# %%
display(settings.table("versions"))

# %% [markdown]
# ## How to read it
#
# - A row that does not hold on a stand-in does not refute the paper. The claim may need something
#   that the stand-in lacks. A row that holds there may need something that only the stand-in has:
#   its network has learned digits before and meets them in new colours.
#   [`pretraining`](pretraining.ipynb) tests the claims about Table 1 with other initial weights.
# - Some claims fail in the paper's own tables, too. Its upper bound, Multitask, has a lower C-F1
#   than PRS, and after some tasks its PRS is not ahead of ExStream. The column `paper` of the table
#   shows these.
# - Two kinds of claims are *not run*. NUS-WIDEseq's claims about schedules, sizes of the memory and
#   networks need six tasks. Its stand-in learns pixels, and 240 more runs on it would take longer
#   than all runs on real data together. No smaller data set has six tasks and enough of its rare
#   classes. Claims about networks that learn pixels cannot be run on features, so `cocoseq-mini`
#   has none. The paper profile runs both on the paper's data.
# - Other versions of the packages round the last digit differently. Then a run's numbers change,
#   and so may the verdict of a claim near its limit. `make verify` says by how much.
# - Intervals are over seeds, and on real data over test samples. They say nothing of other data
#   sets, sizes or settings.
# - By chance, at most about one of twenty such ledgers has a wrong "holds" or "does not hold" after
#   correction on a data set. Sensitivities are not corrected, so one that holds is a hint.

# %% jupyter={"source_hidden": true} tags=["answer"]
texts = [
    f"on {name} {row['holds']} of {row['rows']} hold and {row['does not hold']} do not"
    for name, row in ledger.counts(decided).iterrows()
]
sentence = f"Of the paper's claims, decided on each data set, {join_words(texts)}"
write_answer(settings, f"{sentence}; the others are undecided or show no difference.")
