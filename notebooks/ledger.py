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
# has a row, with ours beside it. Every claim has a row for each data set, with the test that
# decides it. Code writes the verdicts. Real images come first; stand-ins are counted apart.
#
# It has no runs of its own. It takes those of the other notebooks of the profile from the cache.
# Missing runs are trained; with `missing` set to "leave" their cells stay "not run". Another real
# stream, Reuters-21578, has rows of its own. The same functions decide them, and they are never
# mixed with the paper's data. **Stand-ins** are small data sets with a small network in place of
# the paper's. There compare the order of the methods, not the height of the scores.
#
# *Half a minute once the runs are there.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds, laptop or paper: whose runs
level: float = 0.95  # of the intervals, between 0 and 1
missing: str = "train"  # train or leave: what to do with runs that are not stored
device: str = "cpu"  # cpu or cuda, for what is not trained yet
save: str = ""  # folder for the pictures and tables, "" to write none

# %%
from prslib.checks import one_of
from prslib.report import ledger, topics
from prslib.report.notebook import Settings

settings = Settings.read("ledger", globals())
one_of("value of missing", settings.missing, ["train", "leave"])
if not 0 < settings.level < 1:
    raise ValueError(f"level must be between 0 and 1, got {settings.level}")
configs, errors = topics.runs(settings.profile)
print("left out, files missing:", errors or "none")
settings

# %% [markdown]
# ## Every number
#
# Ours is the mean over seeds of the runs with the same method, architecture, schedule, number of
# epochs, test set, group and metric. Their memory is the same share of the standard one: half of
# 500 samples stands for 1000 of 2000. On `cocoseq-mini` it is measured on the paper's balanced test
# images where there are such runs, else on other images of COCO. The CSV, `ledger_cells.csv`, has a
# row for each number, with the spread, the seeds, the data set, and "not run" where ours is
# missing.
#
# The summary below has a row for each table of the paper. It has the number of cells that were run,
# how many of those are stand-ins, and the mean absolute difference of the scores in points. It also
# has Spearman's rank correlation of the methods, ours against the paper's, averaged over the
# columns of the table. A correlation of 1 means the same order.

# %% jupyter={"source_hidden": true} tags=["functions"]
import numpy as np
import pandas as pd

from prslib.report.claims import SETTINGS
from prslib.report.grids import BALANCED, OPEN
from prslib.report.results import CELL, PRINTED, STAND_IN, data_sources_of, printed_rows
from prslib.report.tables import PRECISION_RECALL, labels_of

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
    ours = on_papers_test(results).merge(theirs[MATCH].drop_duplicates(), on=MATCH)
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


def on_papers_test(results: pd.DataFrame) -> pd.DataFrame:
    """Take scores on open images for the balanced test set's, the paper's, if it has none."""
    cell = [name for name in MATCH if name != "test_set"] + ["dataset"]
    is_open = results["test_set"] == OPEN
    places = pd.MultiIndex.from_frame(results[cell].astype(object).fillna(""))
    again = is_open & places.isin(places[results["test_set"] == BALANCED])
    rows = results.assign(test_set=results["test_set"].mask(is_open, BALANCED))
    return rows[~again]


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


# %%
import matplotlib.pyplot as plt
from IPython.display import Markdown, display

from prslib.report.style import STYLE, join_panels
from prslib.report.tables import MAIN_METRICS

plt.style.use(STYLE)
results = ledger.gather(configs, settings.missing, device=settings.device)
rows = cells(results, settings.profile)
settings.write(rows, "cells")
tables = by_table(rows)
settings.write(tables, "tables")
display(tables.round(2))

# %% [markdown]
# Does PRS lead by as much as in the paper? Each mark is PRS minus another method in one cell of the
# paper's tables, on real images alone: our difference over the paper's. On the dashed line both are
# equal. To the right of 0 PRS is ahead in the paper, above 0 in our runs. Multitask and Finetune
# are left out, because they are bounds.

# %% jupyter={"source_hidden": true} tags=["functions"]
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from prslib.report.style import styles_of

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


def describe_leads(frame: pd.DataFrame, metric: str) -> str:
    """Say how often ours of `leads_of_prs` agree with the paper's."""
    same = ((frame["ours"] > 0) == (frame["theirs"] > 0)).sum()
    smaller = (frame["ours"] < frame["theirs"]).sum()
    return (
        f"In {metric} the sign is the paper's in {same} of {len(frame)} cells, "
        f"and PRS's lead is smaller than the paper's in {smaller}."
    )


def plot_agreement(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw `leads_of_prs`, ours over the paper's; on the dashed line they are equal."""
    for method, style in styles_of(frame["than"]).items():
        rows = frame[frame["than"] == method]
        about = {"label": f"PRS minus {method}", "linestyle": "", "markersize": 4.5}
        ax.plot(rows["theirs"], rows["ours"], alpha=0.7, **about | style)
    values = frame[["theirs", "ours"]].to_numpy()
    # equal scales, as the dashed line is the diagonal
    low, high = min(0.0, values.min()) - 2, max(0.0, values.max()) + 2
    ax.plot([low, high], [low, high], color="0.35", linewidth=1, linestyle="--")
    ax.axhline(0, color="black", linewidth=0.8, zorder=1)
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    ax.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    ax.set(xlabel="paper (points)", ylabel="ours (points)")
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.yaxis.set_major_locator(MaxNLocator(5))
    return ax


# %%
leads = leads_of_prs(rows)
figure, axes = plt.subplots(1, 3, figsize=(10, 4.4))
sentences = []
for ax, metric in zip(axes, MAIN_METRICS, strict=True):
    shown = leads[leads["kind"] == metric]
    plot_agreement(shown, ax).set_title(f"{metric}: {len(shown)} cells")
    sentences.append(describe_leads(shown, metric))
names = ", ".join(leads["dataset"].unique())
seeds = " or ".join(map(str, sorted(rows.loc[rows["status"] == "run", "seeds"].unique())))
join_panels(figure, f"{names}: PRS minus each rival, means over {seeds} seeds")
settings.show(figure, leads, "agreement", narrow=1)
display(Markdown(" ".join(sentences)))

# %% [markdown]
# ## Every claim
#
# Each claim is turned into one number that is above 0 where the claim is right. A claim about all
# metrics, all methods or all schedules is measured where it is weakest, so that it has to be right
# everywhere. The same number is computed from the paper's own tables, if they print enough for it.
#
# How sure is that? The runs of one seed share the order of the stream and the initial weights. All
# cells of a seed stay together, and the interval is Student's t over the seeds' own effects. On
# real data the interval also covers the chance in which samples are tested, from resamples of the
# test set. Claims about `cocoseq-mini` are decided on 3,199 other images of COCO. With so many
# images this chance is the smaller part of the interval. A claim that names a test set is decided
# on that one. The claim about features is decided on images with one label ([test
# sets](../docs/real_coco.md#test-sets)).
#
# By itself a claim *holds* if the whole interval is above 0. It does *not hold* if the interval is
# below 0, which shows the opposite. An interval within 2 points of 0 shows that there is *no
# difference* larger than its ends. For effects in square points the limit is half of the paper's
# own effect. Otherwise the claim is *undecided*. It is also undecided with fewer than five seeds,
# or if a seed never learned what the row measures. The column `would show` has the difference that
# an undecided row could have shown. It is half the width of its interval; if the correction alone
# leaves the row open, it is half the width of the corrected interval. Intervals and the column
# `uncorrected` are about one row each. Many rows are tested at once, so the column `after Holm` is
# corrected for the number of claims on one data set. Claims that imply others are not counted. Such
# a claim does not hold where one of them does not. It holds where all of them hold and its own
# interval is above 0 at the level divided by the number of claims. A constant, such as a share of
# the data, is a fact and has no verdict.
#
# A claim about many cells is measured in the weakest, which has the least evidence of being above
# 0. Effect and interval are that cell's; the upper end is at a level corrected for the number of
# cells. The claim does not hold if one cell is clearly below 0. It holds if every cell is clearly
# above 0, which needs no correction. The table names the weakest cell and counts the cells that are
# clear. C-F1, O-F1 and mAP have a column each. If runs have a threshold of their own, the table has
# F1 at that threshold, too. An effect in F1 that is clear at 0.5, but not at the own threshold,
# comes from calibration: it *turns*.

# %%
decided = ledger.decide(results, settings.level)
display(ledger.counts(decided))

# %% jupyter={"source_hidden": true} tags=["functions"]
from prslib.report.claims import FACT
from prslib.statistics import VERDICTS

VERDICT_STYLES = {  # colour and what to look for without colours
    "holds": {"color": "#0072B2", "marker": "o"},
    "does not hold": {"color": "#D55E00", "marker": "v"},
    "no difference": {"color": "#009E73", "marker": "s"},
    "undecided": {"color": "#777777", "marker": "D"},
    "not run": {"color": "#bbbbbb", "marker": ""},
    FACT: {"color": "black", "marker": "x"},
}
HOLLOW = {"markerfacecolor": "white"}


def _explain(ax: Axes, name: str, linestyle: str = "", **style: str) -> None:
    """Give the legend a mark of its own."""
    ax.plot([], [], label=name, linestyle=linestyle, markersize=5, **style)


def plot_claims(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw each effect of `decide`, its interval and verdict; a tick is the paper's."""
    places = np.arange(len(frame))
    paper = {"color": "black", "marker": "|", "linestyle": ""}
    ax.plot(frame["published"], places, zorder=2, markersize=9, **paper)
    for y, row in zip(places, frame.itertuples(), strict=True):
        style = VERDICT_STYLES[row.verdict] | (HOLLOW if row.seeds == 1 else {})
        ax.plot([row.low, row.high], [y, y], color=style["color"], linewidth=2, zorder=3)
        ax.plot(row.effect, y, zorder=4, markersize=5, **style)
    claims = frame.assign(place=places).groupby("claim", sort=False)["place"]
    for begin, end in zip(claims.min()[::2], claims.max()[::2], strict=True):
        ax.axhspan(begin - 0.5, end + 0.5, color="0.95", zorder=0, linewidth=0)
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    ax.set(ylim=(len(frame) - 0.5, -0.5))
    names = frame["statement"].mask(frame["claim"].duplicated(), "")
    ax.set_yticks(places, names + "   " + frame["dataset"])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("against the claim < 0 < for it (points)")
    ax.grid(axis="x")
    ax.grid(axis="y", visible=False)
    for name in VERDICTS:
        if name in set(frame["verdict"]):
            _explain(ax, name, "-", **VERDICT_STYLES[name])
    if (frame["seeds"] == 1).any():
        _explain(ax, "open: one seed", **VERDICT_STYLES["undecided"] | HOLLOW)
    if frame["published"].notna().any():
        ax.plot([], [], label="paper's own numbers", **paper)
    return ax


# %%
from prslib.report.claims import CLAIMS

most = f"{settings.level:.0%} intervals, {decided['seeds'].max()} seeds at most; Holm"
headlines = [name for name, claim in CLAIMS.items() if claim.headline]
chosen = decided[decided["claim"].isin(headlines)]
chosen = chosen[chosen["data"].isin(["paper's", "part", "other"])]  # real data
chosen = chosen[chosen["verdict"] != "not run"]
figure, ax = plt.subplots(figsize=(10, 1.6 + 0.24 * len(chosen)))
plot_claims(chosen, ax)
join_panels(figure, f"The paper's main claims on real data ({most})")
settings.show(figure, chosen, "headlines")

# %% [markdown]
# Now all of them, a row for each claim, a column for each data set. The colour is the verdict: blue
# holds, orange does not hold, green shows no difference, grey is undecided, black is a fact. The
# number is the effect, in the unit above each block; below 0 it speaks against the claim. An empty
# cell was not run.

# %% jupyter={"source_hidden": true} tags=["functions"]
import textwrap
from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from prslib.report.ledger import IMAGES, digits_of
from prslib.report.style import join_panels


def plot_verdicts(frame: pd.DataFrame, names: Sequence[str], ax: Axes) -> Axes:
    """Draw the verdicts of `decide` in a grid, claims by data sets, with the effects."""
    statements = list(frame["statement"].unique())
    for verdict, rows in frame.groupby("verdict"):
        x = rows["dataset"].map(names.index)
        y = rows["statement"].map(statements.index)
        ax.barh(y, 0.96, left=x - 0.48, height=0.9, **_cell_style(str(verdict)))
    text = {"ha": "center", "va": "center", "fontsize": 9}
    for row in frame[frame["effect"].notna()].to_dict("records"):
        place = names.index(row["dataset"]), statements.index(row["statement"])
        colour = "black" if row["verdict"] == "undecided" else "white"
        effect = f"{row['effect']:+.{digits_of(row['unit'])}f}"
        ax.text(*place, effect, color=colour, **text)
    ax.set_xticks(range(len(names)), [])
    ax.set_yticks(range(len(statements)), map(_wrapped, statements))
    ax.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(statements) - 0.5, -0.5))
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    return ax


def verdict_panels(frame: pd.DataFrame, title: str) -> Figure:
    """Draw `plot_verdicts` as a figure, a panel for each unit, real data on the left."""
    frame = frame[frame["verdict"] != "not run"]
    data_sources = data_sources_of(frame["dataset"].unique())
    names = sorted(data_sources, key=lambda name: data_sources[name] == STAND_IN)
    units = list(frame["unit"].unique())
    rows = [frame.loc[frame["unit"] == unit, "statement"].nunique() for unit in units]
    height = 1.8 + 0.29 * sum(rows) + 0.5 * len(rows)
    figure, axes = plt.subplots(
        len(units),
        1,
        figsize=(5.2 + 0.75 * len(names), height),
        height_ratios=[count + 0.2 for count in rows],
        squeeze=False,
    )
    for ax, unit in zip(axes[:, 0], units, strict=True):
        plot_verdicts(frame[frame["unit"] == unit], names, ax)
        ax.set_title(f"in {unit}", fontsize=10, loc="center")
    top = axes[0, 0]
    about = [f"{name}\n({IMAGES[data_sources[name]]})" for name in names]
    top.xaxis.tick_top()
    top.set_xticks(range(len(names)), about, rotation=50, ha="left")
    for name in (*VERDICTS, FACT):
        if name in set(frame["verdict"]):
            top.bar(0, 0, label=name, **_cell_style(name))
    join_panels(figure, title)
    return figure


def _cell_style(verdict: str) -> dict:
    """Return the colour of a verdict; undecided is paler, also without colours."""
    alpha = 0.4 if verdict == "undecided" else 1
    return {"color": VERDICT_STYLES[verdict]["color"], "alpha": alpha}


def _wrapped(statement: str) -> str:
    return "\n".join(textwrap.wrap(statement, 56))


# %%
figure = verdict_panels(decided, f"The paper's claims in our runs ({most})")
settings.show(figure, decided, "claims")

# %% [markdown]
# The table has the place of each claim in the paper. Behind a data set, in brackets, is the paper's
# data set that it stands for, or is a part of.

# %%
display(Markdown(ledger.as_markdown(ledger.account(decided))))

# %% [markdown]
# ## Where real images and stand-ins differ
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
from prslib.report import ledger
from prslib.report.results import OTHER_STREAM


def disagreements(decided: pd.DataFrame) -> pd.DataFrame:
    """Lay out the claims that data sets for the same one of the paper decide differently."""
    run = decided[(decided["alone"] != "not run") & (decided["data"] != OTHER_STREAM)]
    several = run.groupby(["claim", "stands_for"])["alone"].transform("nunique") > 1
    columns = ["claim", "data", "uncorrected", "effect", "paper", "seeds"]
    return ledger.account(run[several])[columns]


# %%
display(Markdown(ledger.as_markdown(disagreements(decided))))

# %% [markdown]
# All of it was drawn with:

# %%
from prslib.rounding import versions

settings.write(versions(), "versions")
display(versions())

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
#   correction on a data set. A claim that holds *uncorrected* alone is a hint.

# %% jupyter={"source_hidden": true} tags=["answer"]
from prslib.report.answers import write_answer

total = ledger.counts(decided).iloc[0]
sentence = f"On {total.name}, of {total['rows']} claims {total['holds']} hold and {total['does not hold']} do not;"
write_answer(settings, f"{sentence} the others are undecided or show no difference.")
