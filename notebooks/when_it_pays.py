# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # When does a balanced memory pay?
#
# A balanced memory gives rare classes a larger share than they have in the stream, at the expense
# of the frequent classes. We test whether this exchange is worthwhile on four real streams:
# `cocoseq-mini` (COCO images), `reutersseq` (news articles), `mdiseq` (icons) and `clipartseq`
# (clip art). The [samplers](../docs/samplers/index.md) CBRS, PRS and OCDM, which balance the
# memory, are compared with CRS, which keeps the class mix of the stream.
#
# Every stream has two test sets. In the *balanced* test set, class sizes differ less than in the
# stream. The *imbalanced* test set has about the same class mix as the stream, except on
# [icons](../docs/other_streams.md). Frequent classes therefore dominate micro averages such as O-F1
# ([metrics](../docs/metrics.md)) on this test set.
#
# The paper has no such experiment. We fixed two hypotheses before the runs
# ([rules](../docs/what_holds.md)):
#
# - On the balanced test set, mAP and C-F1 are higher with a balanced memory than with CRS.
# - On the imbalanced test set, O-F1 is lower with a balanced memory than with CRS.
#
# *With the [profile](../docs/quickstart.md#profiles) `quick`, the notebook takes one minute on two
# cores.*

# %% tags=["parameters"]
profile: str = "quick"  # name of the profile; -f params/PROFILE/NOTEBOOK.yaml chooses another one
dataset: list[str] = ["cocoseq-mini", "reutersseq", "mdiseq", "clipartseq"]  # real streams
method: list[str] = ["CBRS", "PRS", "OCDM"]  # samplers that are compared with CRS, including CBRS
powers: list[float] = [0.5]  # further powers of allocation of PRS
shares: list[float] = []  # further memory sizes, as shares of the standard size, for the scores of classes
cuts: list[str] = ["cap30", "cap300", "part893", "part3292"]  # one or more subsampled streams of Reuters
draws: int = 1  # number of random draws of each cut, at most 3
tuned_threshold: list[str] = ["CRS", "PRS"]  # methods trained a second time to tune their threshold, as in main_results
seeds: list[int] = [0, 1]  # one run of every method for each seed
few_seeds: dict[str, int] = {}  # data sets that are run with only the first few seeds
varied_seeds: list[int] = [0, 1]  # seeds for other memory sizes and for the cuts
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["runs"]
from prslib import DATASETS
from prslib.report.grids import check_compared, check_labels, configs_of, sampler_runs


def runs(settings):
    """List all runs: on the streams, with other memories, and on the cuts."""
    return stream_runs(settings) + class_runs(settings) + cut_runs(settings)


def stream_runs(settings):
    """List a run of CRS and of every sampler on each stream."""
    check_labels(settings.dataset, one=False)
    check_compared(settings.method, "CBRS")
    return sampler_runs(settings, settings.dataset, settings.seeds)


def class_runs(settings):
    """List the runs of CRS and CBRS in which single classes are scored, at all memory sizes."""
    made = [run for run in stream_runs(settings) if run.method in ("CRS", "CBRS")]
    for name in settings.dataset:
        for share in settings.shares:
            size = round(share * DATASETS[name].recipe.memory_size)
            fixed = {"dataset": name, "memory_size": size}
            made += configs_of(["CRS", "CBRS"], settings.varied_seeds, **fixed)
    return made


def cut_names(settings):
    """List the names of the subsampled streams, one per random draw of a cut."""
    ends = ["", *(f"-{number}" for number in range(2, settings.draws + 1))]
    return [f"reutersseq-{cut}{end}" for cut in settings.cuts for end in ends]


def cut_runs(settings):
    """List a run of CRS, PRS and CBRS on each draw of each cut."""
    methods = ["CRS", "PRS", "CBRS"]
    return configs_of(methods, settings.varied_seeds, dataset=cut_names(settings))


# %% jupyter={"source_hidden": true} tags=["functions"]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import Markdown
from matplotlib.ticker import NullLocator
from scipy.stats import spearmanr

import prslib
from prslib.paths import project_root
from prslib.report import answers, measures, notebook, style, tables
from prslib.report.style import STYLE
from prslib.report.tables import BALANCED, F1_OTHERWISE, IMBALANCED, MAIN_METRICS, TEST_WORDS
from prslib.statistics import at_end, over_seeds

SHOWN = [("mAP", BALANCED), ("O-F1", IMBALANCED)]

# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("when_it_pays", globals())
planned = runs(settings)
settings


# %% [markdown]
# ## The streams
#
# The columns of the table are:
#
# - `samples`: length of the stream;
# - `labels`: mean number of labels per sample;
# - `memory`: number of samples in a full memory;
# - `slots`: `memory` divided by the number of classes;
# - `largest` and `smallest`: sizes of the largest and the smallest class;
# - `max:min`: ratio of these two sizes;
# - `small`: share of classes that are smaller than half the mean class size.

# %% jupyter={"source_hidden": true} tags=["functions"]
def stream_sizes(names) -> pd.DataFrame:
    """Count samples and classes of streams."""
    rows = []
    for name in names:
        labels = tables.labels_of(name).train.labels
        freq = tables.labels_of(name).class_freq
        freq = freq[freq > 0]  # a small part may lack a class
        row = {"dataset": name, "samples": len(labels), "classes": len(freq)}
        row["labels"] = labels.sum() / len(labels)
        row["memory"] = DATASETS[name].recipe.memory_size
        row["slots"] = row["memory"] / len(freq)
        row |= {"largest": freq.max(), "smallest": freq.min(), "max:min": freq.max() / freq.min()}
        row["small"] = (freq < freq.mean() / 2).mean()
        rows.append(row)
    return pd.DataFrame(rows)


# %%
settings.write(stream_sizes(settings.dataset + cut_names(settings)), "streams")
sizes = settings.table("streams")
display(sizes[sizes["dataset"].isin(settings.dataset)].round(2))

# %% [markdown]
# ## Each sampler minus CRS
#
# The picture shows the score of each sampler minus the score of CRS. The left panel shows mAP on
# the balanced test set, and the right panel shows O-F1 on the imbalanced test set. Both scores are
# computed over all classes after the last task. Lines are 95 % intervals over seeds and test
# samples. Grey names mark further streams from [public
# collections](../docs/other_streams.md#further-public-collections), for which this repository
# contains only the results.

# %% tags=["compute"]
finished = prslib.run_all(stream_runs(settings), device=settings.device)
metrics = [*MAIN_METRICS, *F1_OTHERWISE[:2]]  # the latter at the tuned threshold
rows = tables.final(tables.scores_of(finished), metrics)
rows = tables.label_powers(rows, settings.powers)
groups = ["overall", "majority", "minority"]
others = [name for name in rows["method"].unique() if name != "CRS"]
gaps = tables.contrast_each(rows, others, "CRS", groups)
settings.write(gaps.drop(columns="sentence"), "minus_crs")


# %% jupyter={"source_hidden": true} tags=["functions"]
def further_streams(name: str) -> pd.DataFrame:
    """Read a table of `studies/more_streams.py`."""
    return pd.read_csv(project_root() / "figures" / "studies" / f"{name}.csv")


def draw_streams(frame: pd.DataFrame) -> plt.Figure:
    """Draw samplers minus CRS on each stream and both tests; the report's streams are in black."""
    height = 1.6 + 0.62 * frame["dataset"].nunique()
    figure, axes = plt.subplots(1, 2, figsize=(9, height), sharey=True)
    for ax, (metric, test_set) in zip(axes, SHOWN, strict=True):
        shown = frame[(frame["metric"] == metric) & (frame["test_set"] == test_set)]
        style.plot_samplers(shown, ax, "dataset")
        names = shown["dataset"].unique()
        for tick, name in zip(ax.yaxis.get_major_ticks(), names, strict=True):
            tick.label1.set_color("black" if name in DATASETS else "0.5")
        ax.set(title=f"{metric}, {TEST_WORDS[test_set]}", xlabel="sampler minus CRS (points)")
    return figure


# %%
gaps = settings.table("minus_crs")
overall = gaps[gaps["group"] == "overall"]
every = pd.concat([overall, further_streams("more_streams")], ignore_index=True)
every = every[every["method"].isin(overall["method"].unique())]
figure = draw_streams(every)
title = f"Each sampler minus CRS, {settings.say_seeds(intervals=True)}"
settings.show(figure, "minus_crs", title, narrow=1)

# %% [markdown]
# ## Which classes gain
#
# The first panel shows the average precision (AP) of single classes with CBRS minus their AP with
# CRS. Classes are sorted into bins by their size relative to the mean class size of their stream.
# The bins were fixed before the runs. In each bin, the differences are averaged first over the
# classes of each stream and then over all streams, including the streams with grey names in the
# picture above. Lines are 95 % intervals over streams.
#
# The second panel covers only the four streams of the introduction. Its bins are thirds of the
# stream, and each class is assigned to a bin by the position of its task in the stream. Classes
# are scored on the balanced test set, except for `cocoseq-mini`, which is scored on further
# images of COCO.

# %% jupyter={"source_hidden": true} tags=["functions"]
EDGES = [0, 1 / 4, 1 / 2, 1, 2, np.inf]
BINS = ["below 1/4", "1/4 to 1/2", "1/2 to 1", "1 to 2", "above 2"]
PLACES = ["first third", "second third", "last third"]
COLOURS = ("0.1", "0.5", "0.75")


def class_changes(finished) -> pd.DataFrame:
    """Return the AP of each class with CBRS minus its AP with CRS, by stream and memory size."""
    frames = []
    for run in finished:
        size = run.config.resolved["memory_size"]
        share = round(size / DATASETS[run.config.dataset].recipe.memory_size, 2)
        rows = at_end(run.scores).assign(share=share)
        is_read = rows["test_set"] == measures.class_test(run.config.dataset)
        frames.append(rows[is_read & (rows["metric"] == "AP")])
    rows = pd.concat(frames, ignore_index=True)
    keys = ["dataset", "test_set", "share", "group"]
    means = rows.pivot_table("value", [*keys, "seed"], "method")
    change = 100 * (means["CBRS"] - means["CRS"])
    table = change.groupby(keys, sort=False).mean().rename("change").reset_index()
    about = [class_places(name) for name in table["dataset"].unique()]
    return table.rename(columns={"group": "class"}).merge(pd.concat(about))


def class_places(name: str) -> pd.DataFrame:
    """Return each class's size relative to the mean, and its task's position from 0 to 1."""
    data = tables.labels_of(name)
    order = list(DATASETS[name].recipe.schedule)
    places = [order.index(task) / (len(order) - 1) for task in data.class_task]
    ratio = data.class_freq / data.class_freq.mean()
    columns = {"dataset": name, "class": data.class_names, "ratio": ratio, "place": places}
    return pd.DataFrame(columns)


def by_bin(classes: pd.DataFrame, column: str) -> pd.DataFrame:
    """In each bin, average the change over the classes of each stream, then over streams."""
    means = classes.groupby(["share", column, "dataset"], observed=True)["change"].mean()
    means = means.rename("value").reset_index().astype({column: str})
    table = over_seeds(means, ["share", column])
    table = table.rename(columns={"difference": "change", "seeds": "streams"})
    return table[["share", column, "change", "low", "high", "streams"]]


def plot_changes(frame: pd.DataFrame, ax: plt.Axes, column: str) -> plt.Axes:
    """Draw the change in AP over bins, with a colour for each memory size."""
    order = [name for name in (*BINS, *PLACES) if name in set(frame[column])]
    shares = sorted(frame["share"].unique())
    for number, share in enumerate(shares):
        cells = frame[frame["share"] == share]
        x = cells[column].map(order.index) + 0.12 * (number - (len(shares) - 1) / 2)
        colour = COLOURS[number % len(COLOURS)]
        ax.vlines(x, cells["low"], cells["high"], colour, linewidth=1.5)
        ax.plot(x, cells["change"], "o", color=colour, label=f"{share:g} x standard memory")
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_xticks(range(len(order)), order)
    return ax


# %% tags=["compute"]
classes = class_changes(prslib.run_all(class_runs(settings), device=settings.device))
further = further_streams("more_streams_classes")
further = further.rename(columns={"memory": "share", "size": "ratio"})
further = further[further["share"].isin(classes["share"])]
classes = pd.concat([classes, further.drop(columns="seeds")], ignore_index=True)
classes["bin"] = pd.cut(classes["ratio"], EDGES, right=False, labels=BINS).astype(str)
classes["third"] = pd.cut(classes["place"], [-1, 1 / 3, 2 / 3, 1], labels=PLACES)
settings.write(classes, "classes")
settings.write(by_bin(classes, "bin"), "bins")
settings.write(by_bin(classes.dropna(subset="place"), "third"), "places")

# %%
bins, places = settings.table("bins"), settings.table("places")
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, width_ratios=[5, 3])
plot_changes(bins, axes[0], "bin")
axes[0].set_xlabel("class size relative to the mean class size")
axes[0].set_ylabel("AP, CBRS minus CRS (points)")
plot_changes(places, axes[1], "third").set_xlabel("position of the class's task in the stream")
counts = pd.concat([bins["streams"], places["streams"]])
low, high = counts.min(), counts.max()
count = f"{low} to {high}" if low < high else f"{high}"
title = f"AP of single classes, CBRS minus CRS: mean over {count} streams, 95 % intervals"
settings.show(figure, "bins", title, narrow=1)
by_size = bins.pivot_table("change", "share", "bin").reindex(columns=BINS)
gain, lose = (by_size[BINS[0]] > 0).sum(), (by_size[BINS[-1]] < 0).sum()
shrink = (by_size.diff(axis=1).iloc[:, 1:] < 0).all(axis=1).sum()
text = "For every memory size, we expected that the classes in the lowest bin gain, that the gain"
text += " shrinks from bin to bin, and that the classes in the highest bin lose. Judged by the means,"
text += f" the first expectation was met at {gain} of {len(by_size)} memory sizes, the second at {shrink}"
text += f" and the third at {lose}."
display(Markdown(text))

# %% [markdown]
# ## Reuters, subsampled
#
# Does the difference between CBRS and CRS depend on the imbalance of the stream or on its length?
# To separate these effects, Reuters is subsampled in two ways:
#
# - In a *cap*, the size of the largest classes is limited, which reduces `max:min` and shortens
#   the stream. The imbalanced test set is limited in the same proportion, so that it has about
#   the class mix of the shortened stream.
# - A *part* is as long as a cap, but keeps the class mix of the whole stream.
#
# The memory always has the same size as for the whole stream. In the profile `seeds`, each cap and
# each part is drawn at random three times. Large marks are means over these random draws, and small
# dots are single draws.

# %% tags=["compute"]
finished = prslib.run_all(cut_runs(settings), device=settings.device)
rows = tables.final(tables.scores_of(finished))
cut_gaps = tables.contrast_each(rows, ["PRS", "CBRS"], "CRS")
cut_gaps = cut_gaps.merge(sizes[["dataset", "samples", "max:min"]])
cut_gaps["cut"] = cut_gaps["dataset"].str.split("-").str[1]
settings.write(cut_gaps.drop(columns="sentence"), "cuts")


# %% jupyter={"source_hidden": true} tags=["functions"]
def plot_cuts(frame: pd.DataFrame, ax: plt.Axes) -> plt.Axes:
    """Draw CBRS minus CRS over the stream length, with one line for caps and one for parts."""
    kinds = {
        "cap": ("large classes subsampled: imbalance falls", "#332288"),
        "part": ("all classes subsampled: imbalance stays", "#882255"),
    }
    for kind, (label, colour) in kinds.items():
        cells = frame[frame["cut"].str.startswith(kind)]
        means = cells.groupby("cut")[["samples", "difference"]].mean().sort_values("samples")
        ax.plot(cells["samples"], cells["difference"], ".", color=colour, markersize=4, alpha=0.6)
        ax.plot(means["samples"], means["difference"], "o-", color=colour, label=label)
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set(xscale="log", xlabel="samples in the stream (log scale)")
    ax.set_xticks(means["samples"], [f"{n:,.0f}" for n in means["samples"]])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_ylabel("CBRS minus CRS (points)")
    return ax


# %%
cut_gaps = settings.table("cuts")
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8))
for ax, (metric, test_set) in zip(axes, SHOWN, strict=True):
    shown = cut_gaps[(cut_gaps["metric"] == metric) & (cut_gaps["test_set"] == test_set)]
    plot_cuts(shown[shown["method"] == "CBRS"], ax)
    ax.set_title(f"{metric}, {TEST_WORDS[test_set]}")
count = f"{settings.say_seeds(seeds=settings.varied_seeds)}, {settings.draws} draw{'s' if settings.draws > 1 else ''}"
settings.show(figure, "cuts", f"Reuters, subsampled: CBRS minus CRS, {count}", narrow=1)


# %% [markdown]
# ## Can the labels predict the gain?
#
# The *gain* is the difference CBRS minus CRS in mAP on the balanced test set. The first row of
# the table is about the *constant* rule, which predicts a positive gain on every stream; the
# column `right` counts the streams on which this prediction is right.
#
# The other rows are about two properties of the labels, `max:min` and `small`. A property
# *predicts* the gain if its rank correlation with the gain is significantly above 0, that is, if
# the whole 95 % interval (Fisher's z) of the correlation is above 0. Because we chose these
# properties after seeing results on Reuters, Reuters is excluded from the correlations.

# %% jupyter={"source_hidden": true} tags=["functions"]
def forecasts(gaps: pd.DataFrame) -> pd.DataFrame:
    """Correlate CBRS's gain in mAP with properties of the labels; also test the constant rule."""
    cells = gaps[(gaps["method"] == "CBRS") & (gaps["group"] == "overall")]
    cells = cells[(cells["metric"] == "mAP") & (cells["test_set"] == BALANCED)]
    right = f"{(cells['difference'] > 0).sum()} of {len(cells)}"
    table = [{"rule": "constant", "right": right, "streams": len(cells)}]
    others = cells[cells["dataset"] != "reutersseq"]
    for name in ("max:min", "small"):
        streams = others.dropna(subset=name)
        row = {"rule": name, "right": "", "streams": len(streams)}
        if len(streams) > 3:
            row["correlation"] = spearmanr(streams[name], streams["difference"]).statistic
            z, error = np.arctanh(row["correlation"]), 1.96 / np.sqrt(len(streams) - 3)
            row |= {"low": np.tanh(z - error), "high": np.tanh(z + error)}
            row["predicts"] = bool(row["low"] > 0)
        table.append(row)
    return pd.DataFrame(table)


# %%
every = pd.concat([gaps.merge(sizes), further_streams("more_streams")], ignore_index=True)
settings.write(forecasts(every), "forecasts")
display(settings.table("forecasts").round(2))


# %% [markdown]
# ## Which sampler to use
#
# For each sampler, the table shows the mean, the lowest and the highest difference from CRS over
# the four streams, in points. `above` and `below` count the streams on which the whole 95 %
# interval of the difference is above or below 0. By default, labels with a probability above 0.5
# are predicted. The *tuned threshold* is chosen for each run on a held-out fifth of its stream. If
# a difference in F1 vanishes at the tuned threshold, it is due to calibration.

# %% jupyter={"source_hidden": true} tags=["functions"]
def ranges(gaps: pd.DataFrame) -> pd.DataFrame:
    """Summarise the differences between samplers and CRS over streams."""
    keys = ["test_set", "group", "metric", "method"]
    cells = gaps.groupby(keys, sort=False)
    table = cells["difference"].agg(streams="count", mean="mean", lowest="min", highest="max")
    for side in ("above", "below"):
        table[side] = (gaps["clearly"] == side).groupby([gaps[key] for key in keys]).sum()
    return table.reset_index()


# %%
settings.write(ranges(gaps), "ranges")
shown = settings.table("ranges").replace({"test_set": TEST_WORDS})
display(shown[shown["group"] == "overall"].drop(columns="group").round(1))

# %% jupyter={"source_hidden": true} tags=["answer"]
signs = []
of_cbrs = overall[overall["method"] == "CBRS"].set_index(["metric", "test_set"])
for cell, word, side in zip(SHOWN, ["higher", "lower"], ["above", "below"], strict=True):
    gains = of_cbrs.loc[[cell]]
    sign = 1 if side == "above" else -1
    count = f"{(sign * gains['difference'] > 0).sum()} of {len(gains)} streams"
    if gains["seeds"].min() >= answers.DECIDING:
        count += f" (significantly on {(gains['clearly'] == side).sum()})"
    signs.append(f"a {word} {cell[0]} ({TEST_WORDS[cell[1]]}) than CRS on {count}")
sentence = "It depends on the test and the score. CBRS has"
settings.write_answer(f"{sentence} {' and '.join(signs)}.")
