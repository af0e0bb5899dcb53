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
# This notebook compares the numbers in the paper's tables with our numbers. It also tests the
# claims in the paper's text, with one statistical test for each claim and data set.
#
# The notebook reads the stored runs of the other notebooks with the same
# [profile](../docs/quickstart.md#profiles). Missing runs are trained unless the parameter
# `missing` is "leave". In this case, claims that need missing runs are marked as "not run". Results
# are reported separately for three kinds of data:
#
# - `cocoseq-mini` is **a part of the paper's own data**: 2,072 of COCOseq's 35,072 training images,
#   as features of a frozen network. Each method trains a network of two layers on these features.
# - `reutersseq` (news), `mdiseq` (icons) and `clipartseq` (clip art) are **other real streams**.
#   The paper does not use these streams, but its claims about samplers can also be tested on them.
# - **Synthetic data** are small data sets of handwritten digits, on which a small network is
#   trained. The order of the methods on these data can be compared with the paper, but not the
#   scores themselves.
#
# *With the profile `quick`, the notebook takes half a minute if all runs are stored.*

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
from prslib.report.tables import PRECISION_RECALL
from prslib.rounding import versions

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
# The table shows the verdict on each of the paper's main claims for each real stream. The verdicts
# are corrected for the number of claims. The [summary](../docs/report/README.md#summary) explains
# PRS, CRS and the scores. The power $\rho$ of PRS determines the class shares of its memory: with
# $\rho = 0$ the shares are equal, and with $\rho = 1$ they are the same as in the stream. In a
# *balanced* test set, class sizes differ much less than in the stream; the paper's tables use such
# a test set unless they state otherwise. An *imbalanced* test set has about the same class mix as
# the stream, except on [icons](../docs/other_streams.md). Only the profile `paper` trains the
# paper's network end to end on all of the paper's images.

# %%
decided = settings.table("claims")
display(Markdown(ledger.list_main_claims(decided)), Markdown(ledger.say_untested(decided)))

# %% [markdown]
# ## Every number
#
# Each number in the paper's tables is compared with our mean over seeds for the same metric, class
# group and kind of test set. For each number, our runs use the same method, architecture, order of
# the tasks and number of epochs as the paper. Memory sizes are matched by their ratio to the
# standard size. For example, a memory of 60 samples on `cocoseq-mini` (half of our standard size of
# 120) is compared with the paper's memory of 1000 (half of 2000). The file `ledger_cells.csv` has
# one row per number of the paper. The row contains our mean and standard deviation over seeds, the
# number of seeds and our data set, or "not run" if we have no counterpart.
#
# Each row below summarises one table of the paper:
#
# - `cells` is the number of cells in the paper's table.
# - `run` is the number of these cells for which we have a counterpart.
# - `synthetic` is the number of counterparts that were measured on synthetic data.
# - `mean_difference` is the mean absolute difference between our scores and the paper's, in points.
# - `rank_correlation` is Spearman's rank correlation between the methods' scores in our runs and in
#   the paper. It is computed separately for each column in which at least three methods can be
#   compared, and then averaged over these columns. A value of 1 means that the order of the methods
#   is the same.
# - `columns` is the number of columns over which the rank correlation is averaged.

# %% jupyter={"source_hidden": true} tags=["functions"]
MATCH = ["stands_for", "method", "setting", "test_set", "trained_tasks", "task"]
MATCH += ["group", "measure", "metric"]
# columns of `cells`: the setting, the place in the table, the numbers and their source
PLACE = ["table", "stands_for", "method", "architecture", "memory_size", "schedule"]
PLACE += ["epochs", "test_set", "trained_tasks", "group", "measure", "metric"]
CELLS = [*PLACE, "kind", "theirs", "ours", "sd", "seeds", "difference", "status"]
CELLS += ["dataset", "data", "profile", "note"]


def cells(results: pd.DataFrame, profile: str) -> pd.DataFrame:
    """Join every published cell with our corresponding mean over seeds, in percent."""
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
    """Summarise each table of `cells`: cells run, mean absolute difference, rank correlation."""
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
    """Return Spearman's rank correlation of methods in each column with three or more of them."""
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
# Each claim is reduced to one statistic that is positive if the claim is true. If the paper's
# tables contain the necessary numbers, the same statistic is also computed from these numbers.
#
# Claims are tested on a balanced test set, with three exceptions:
#
# - Claims that the paper makes about an imbalanced test set are tested on an imbalanced one.
# - Claims that compare the two kinds of test set are tested on both kinds.
# - On `cocoseq-mini`, claims about scores of single classes are tested on further images ([test
#   sets](../docs/real_coco.md#test-sets)).
#
# The column `test` names the test set.
#
# All runs with the same seed use the same order of the stream and the same initial weights. The
# statistic is therefore computed separately for each seed, and its interval is Student's t
# interval over seeds. On real data, the interval also accounts for the sampling error of the test
# set, which is estimated by resampling. On icons and clip art, whole families of pictures, such as
# an icon and its outline, are resampled.
#
# Before correction, a claim
#
# - *holds* if the whole interval is above 0;
# - does *not hold* if the whole interval is below 0;
# - shows *no difference* if the interval contains 0 and lies between -2 and +2 points;
# - is *undecided* in all other cases.
#
# A claim is also undecided if it has fewer than five seeds, or if its statistic is undefined for
# one of its seeds. A claim that *holds* or does *not hold* before correction becomes undecided if
# it is no longer significant after correction.
#
# On each data set, the verdicts are corrected for the number of claims by Holm's method. All tested
# claims except sensitivities (see below) are counted, including claims that imply another claim,
# such as "PRS outperforms all five baselines". The intervals are not corrected for the number of
# claims.
#
# In the tables, a row that begins with *sensitivity* repeats a claim with another measure, method
# or setting. Its verdict is neither corrected nor counted. A *fact* follows from the labels or from
# the design of a sampler. For example, a memory is balanced if its sampler is designed to
# balance it. The tables show the statistic of a fact, but no verdict.
#
# A claim about all metrics, all methods or all schedules covers several numbers (cells). Such a
# claim holds if every cell is significantly above 0, and does not hold if any cell is
# significantly below 0. The first of these two rules needs no correction for the number of cells,
# because every cell must pass. The tables show the effect and the interval of the *weakest* cell,
# which has the least evidence of being above 0. Because intervals differ in width, the weakest
# cell is not always the cell with the smallest effect. The upper end of the weakest cell's interval
# is corrected for the number of cells. A claim shows *no difference* only if the uncorrected 95 %
# intervals of all cells also lie between -2 and +2 points. Statistics in other units, such as rank
# correlations, cannot show *no difference*.
#
# The next table counts the verdicts after correction; each claim is counted once per data set.

# %%
display(ledger.counts(decided))

# %% jupyter={"source_hidden": true} tags=["functions"]
VERDICT_STYLES = {  # colour, and a marker that is clear without colours
    "holds": {"color": "#0072B2", "marker": "o"},
    "does not hold": {"color": "#D55E00", "marker": "v"},
    "no difference": {"color": "#009E73", "marker": "s"},
    "undecided": {"color": "#777777", "marker": "D"},
}


def plot_claim(frame: pd.DataFrame, ax: plt.Axes) -> plt.Axes:
    """Plot one claim of `decide`, with one row per data set and one tick for the paper's number."""
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
settings.show(figure, "headlines", f"{title}; verdicts after Holm's correction")

# %% [markdown]
# The following tables list all claims that were tested, question by question. Each entry contains
# the verdict and the effect with its interval. The unit of the effect is at the end of the claim's
# description, and a negative effect contradicts the claim. A verdict can be *undecided* although
# the interval excludes 0, because only the verdict is corrected for the number of claims. If the
# verdict is not *holds*, parentheses describe the weakest cell: its score, the two methods that are
# compared, and its class group or setting if the claim covers several. If an entry is empty, the
# claim was not tested on this data set. The file `ledger_claims.csv` has one row per claim and data
# set.

# %%
questions = decided["claim"].map(lambda name: CLAIMS[name].question)
for question, rows in decided.groupby(questions, sort=False):
    if (rows["verdict"] != "not run").any():
        table = ledger.as_markdown(ledger.lay_out(rows))
        display(Markdown(f"**{question}**\n\n{table}"))

# %% [markdown]
# One more claim is about runtime: in Table 1, the paper uses fewer seeds for GSS than for other
# methods "due to its computational complexity". We therefore measured how long the paper's network
# takes on a GPU for one training step with ten new and ten replayed images.

# %%
card = pd.read_csv(project_root() / "figures" / "bench" / "card_h100.csv")
card = card.set_index("kind").loc[["GSS", "ExStream", "EWC", "PRS", "Finetune"], "ms"]
times = answers.join_words(f"{time:.0f} ms with {name}" for name, time in card.items())
text = f"GSS is the slowest method. On one H100, a step takes {times}"
display(Markdown(f"{text} (`figures/bench/card_h100.csv`)."))

# %% [markdown]
# ## When the paper's images and synthetic data differ
#
# Two of our data sets can stand for the same data set of the paper: `cocoseq-mini` and the
# synthetic `digits70seq`, for example, both stand for COCOseq. The verdicts on a claim can then
# differ between the two. The table below lists the claims whose verdicts differ before correction
# for the number of claims, and shows their verdicts after correction. Three properties distinguish
# `cocoseq-mini` from the synthetic data:
#
# - **The number of images.** Because `cocoseq-mini` has few images, its network is trained for only
#   about 200 steps. In the profile `seeds`, the predicted probability of a rare class therefore
#   seldom reaches the threshold of 0.5, so that F1 is less informative than mAP.
# - **A frozen or a trained network.** The features of `cocoseq-mini` come from a frozen network,
#   whereas the networks for synthetic data learn from pixels. [`pretraining`](pretraining.ipynb)
#   compares frozen with trained networks on synthetic data.
# - **The test images.** Intervals on `cocoseq-mini` account for the sampling error of the test
#   images. Intervals on synthetic data ignore this error, because these data have many test images.

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
# - A failure on synthetic data is only weak evidence against a claim, because the claim may require
#   a property that these data lack. Conversely, if a claim holds on synthetic data, the only reason
#   may be that the network was pretrained on digits and sees the same digits again in new colours.
#   [`pretraining`](pretraining.ipynb) compares PRS with CRS for other initial weights.
# - The paper's tables contradict some of its claims. Multitask, which the paper calls the upper
#   bound, has a lower C-F1 than PRS. After two and after three tasks of NUS-WIDEseq, PRS has a
#   lower O-F1 than GSS, although the paper claims that PRS outperforms its baselines at any time.
#   In these cases, the effect in the column `paper` is negative.
# - In the profile `seeds`, mainly two kinds of claims are *not run*. The profile `paper` tests them
#   on the paper's data.
#   - The claims about NUS-WIDEseq that concern schedules, memory sizes and networks can only be
#     tested on a data set with six tasks. The data set that we use for these claims is synthetic,
#     and networks learn from its pixels. The runs would therefore take longer than all runs on real
#     data together.
#   - Claims about networks that learn from pixels cannot be tested on `cocoseq-mini`, which
#     contains only features.
# - With other versions of the packages, the numbers of a run can change, and so can a verdict that
#   depends on a small margin. `make verify` reports how much the numbers change.
# - Intervals account for the variance over seeds and, on real data, over test samples. They do not
#   account for the variation between data sets or settings.
# - After correction, the probability of at least one wrong "holds" or "does not hold" is at most
#   about 5 % on each data set. Over all data sets together, it can be several times as large. The
#   verdicts of sensitivities are only suggestive, because they are not corrected.

# %% jupyter={"source_hidden": true} tags=["answer"]
texts = []
for name, row in ledger.counts(decided).iterrows():
    verb = "does" if row["does not hold"] == 1 else "do"
    text = f"On {name}, {row['holds']} of {row['rows']} claims hold"
    texts.append(f"{text} and {row['does not hold']} {verb} not hold.")
sentence = f"Each claim is counted once per data set. {' '.join(texts)}"
settings.write_answer(f"{sentence} All other claims are undecided or show no difference.")
