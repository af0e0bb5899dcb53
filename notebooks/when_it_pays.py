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
# PRS gives rare classes more of the memory than they have of the stream, and takes it from the
# frequent ones. Whether that pays depends on the stream. Is it the stream's *imbalance* that
# decides, or its *length*? The imbalance is the number of samples of the largest class over that of
# the smallest. The length is the number of samples.
#
# The data are **Reuters-21578**, a real stream, whole: news articles of 50 topics, a few of them
# large and most of them small. Its largest classes are subsampled towards 30, 100, 300 and 1,000
# articles (30 and 300 in the quick profile), so that the imbalance falls. Articles that smaller
# classes need stay, so the largest classes may keep more. Subsampling also shortens the stream. So
# each subsampled stream is compared with a random part of the whole one, which has the same length
# and about the imbalance of the whole. The test articles are the same everywhere.
#
# The paper has no such experiment. Its own two streams and parts of COCO are further points. The
# profile `seeds` adds two stand-ins made of digits. Data with one label a sample are left out,
# because they are scored by accuracy alone.
#
# *A minute on two cores for the quick profile; the second time nothing is trained.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds, laptop or paper
dataset: list[str] = ["reutersseq-cap30", "reutersseq-cap300", "reutersseq"]
parts: list[str] = ["reutersseq-part893", "reutersseq-part3292"]
others: list[str] = ["cocoseq-mini"]  # further points, of real data
stand_ins: list[str] = []  # further points, made of digits, for PRS alone
method: list[str] = ["PRS"]  # compared with CRS; CBRS and OCDM too
rho: float = None  # power of allocation of PRS and OCDM, None for each data set's own
seeds: list[int] = [0, 1, 2, 3, 4]  # one run of every method for each
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% tags=["runs"]
from prslib import METHODS
from prslib.report.grids import check_compared, check_labels, configs_of, tested_on
from prslib.checks import one_of


def runs(settings):
    """List a run of CRS and of every method on each stream."""
    streams = settings.dataset + settings.parts + settings.others
    check_labels(streams + settings.stand_ins, one=False)
    check_compared(settings.method, "PRS")
    others = [name for name in METHODS if name != "CRS"]
    for name in settings.method:
        one_of("method beside CRS", name, others)
    methods = ["CRS", *settings.method]
    fixed = {"seeds": settings.seeds, "rho": settings.rho}
    made = configs_of(methods, dataset=streams, **fixed)
    for name in settings.stand_ins:
        made += configs_of(["CRS", "PRS"], dataset=name, **fixed)
    return tested_on(made)


# %%
from prslib.report.notebook import Settings

settings = Settings.read("when_it_pays", globals())
planned = runs(settings)
settings

# %% [markdown]
# ## The streams
#
# `samples` is the length of the stream. `imbalance` is the largest class over the smallest.

# %% jupyter={"source_hidden": true} tags=["functions"]
import json

import pandas as pd

from prslib.paths import project_root
from prslib.report.tables import labels_of


def stream_sizes(names) -> pd.DataFrame:
    """Count samples and classes of streams, and compute their imbalance."""
    rows = []
    for name in names:
        freq = labels_of(name).class_freq
        freq = freq[freq > 0]  # a small part of a stream may lack a class
        row = {"dataset": name, "samples": len(labels_of(name).train), "classes": len(freq)}
        row |= {"largest": freq.max(), "smallest": freq.min()}
        rows.append(row)
    table = pd.DataFrame(rows)
    return table.assign(imbalance=table["largest"] / table["smallest"])


def papers_imbalance() -> dict[str, float]:
    """Return the imbalance of the paper's own two streams, counted from the released splits."""
    file = project_root() / "studies" / "stream_profiles.json"
    table = {}
    for name, tasks in json.loads(file.read_text()).items():
        freq = [count for task in tasks for count in task["class_freq"]]
        table[name] = max(freq) / min(freq)
    return table


# %%
sizes = stream_sizes(settings.dataset + settings.parts + settings.others + settings.stand_ins)
settings.write(sizes, "streams")
sizes.round(1)

# %% [markdown]
# ## Imbalance
#
# The pictures show balanced samplers minus CRS, overall, after the last task, with 95 % intervals
# over seeds and test samples.

# %%
import matplotlib.pyplot as plt

from prslib.report.asked import run_all
from prslib.report.style import STYLE
from prslib.report.tables import MAIN_METRICS, merge_published, contrasts, final, scores_of

plt.style.use(STYLE)
finished = run_all(planned, device=settings.device)
rows = merge_published(final(scores_of(finished)), "main")
groups = ["overall", "majority", "moderate", "minority"]
cells = [(group, metric) for group in groups for metric in MAIN_METRICS]
every = [contrasts(rows, name, "CRS", cells).assign(method=name) for name in settings.method]
gaps = pd.concat(every, ignore_index=True).merge(sizes, on="dataset")
settings.write(gaps, "minus_crs")

# %% [markdown]
# PRS alone first. Above 0 PRS scores higher, below it CRS. The bands are 95 % intervals.

# %% jupyter={"source_hidden": true} tags=["functions"]
from matplotlib.axes import Axes

from prslib.report.style import styles_for
from prslib.report.tables import MAIN_METRICS


def plot_in_short(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw PRS minus CRS in each metric over the imbalance of the thinned streams."""
    for metric, style in styles_for(MAIN_METRICS).items():
        cells = frame[frame["metric"] == metric].sort_values("imbalance")
        ax.plot(cells["imbalance"], cells["difference"], label=metric, **style)
        low, high = cells["low"], cells["high"]
        ax.fill_between(cells["imbalance"], low, high, color=style["color"], alpha=0.15, linewidth=0)
    ax.axhline(0, color="black", linewidth=1)
    text = {"transform": ax.get_yaxis_transform(), "fontsize": 12, "color": "0.35"}
    ax.text(0.98, 0.4, "PRS scores higher", va="bottom", ha="right", **text)
    ax.text(0.98, -0.4, "CRS scores higher", va="top", ha="right", **text)
    ax.set(xscale="log", xlabel="largest class over smallest (log scale)")
    ax.set_ylabel("PRS minus CRS (points)")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.fill_between([], [], [], color="0.5", alpha=0.3, linewidth=0, label="95 % interval")
    return ax


# %%
from prslib.report.style import join_panels

overall = gaps[(gaps["group"] == "overall") & ~gaps["dataset"].isin(settings.parts)]
in_short = overall[(overall["method"] == "PRS") & overall["dataset"].isin(settings.dataset)]
figure, ax = plt.subplots(figsize=(5.6, 4.2))
plot_in_short(in_short, ax)
join_panels(figure, f"When PRS pays: Reuters, {len(settings.seeds)} seeds")
settings.show(figure, in_short, "in_short")

# %% [markdown]
# Each balanced sampler is next. Lines join the subsampled streams and the whole one. Single marks are
# other data sets. Filled ones are parts of COCO. Hollow ones are stand-ins, on which a network
# learns the pixels of digits. Dashes are the paper's own differences of PRS and CRS, for which it
# prints no interval.

# %% jupyter={"source_hidden": true} tags=["functions"]
from prslib.report.style import styles_of


def plot_over_imbalance(frame: pd.DataFrame, ax: Axes, line, stand_ins) -> Axes:
    """Draw methods minus CRS over the imbalance; data sets of `line` are joined, stand-ins hollow."""
    for name, style in styles_of(frame["method"]).items():
        cells = frame[frame["method"] == name].sort_values("imbalance")
        joined = cells["dataset"].isin(line)
        mark = {"color": style["color"], "marker": style["marker"]}
        ax.plot(cells["imbalance"][joined], cells["difference"][joined], label=name, **mark)
        hollow = cells["dataset"].isin(stand_ins)
        for others, face in [(~joined & ~hollow, style["color"]), (hollow, "white")]:
            marks = cells["imbalance"][others], cells["difference"][others]
            ax.plot(*marks, linestyle="", markerfacecolor=face, **mark, zorder=3)
        ax.vlines(cells["imbalance"], cells["low"], cells["high"], style["color"], linewidth=1.3)
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set(xscale="log", xlabel="imbalance (log scale)")
    ax.xaxis.set_major_formatter("{x:g}")
    return ax


# %%
from prslib import published

printed = published.load("main")
printed = printed[(printed["group"] == "overall") & (printed["measure"] == "score")]
figure, axes = plt.subplots(1, 3, figsize=(11, 4), sharex=True, sharey=True)
for ax, metric in zip(axes, MAIN_METRICS, strict=True):
    of_metric = overall[overall["metric"] == metric]
    plot_over_imbalance(of_metric, ax, settings.dataset, settings.stand_ins)
    table = printed[printed["metric"] == metric].pivot(index="dataset", columns="method", values="value")
    for (name, x), colour in zip(papers_imbalance().items(), ("black", "0.55"), strict=True):
        dash = {"color": colour, "markersize": 14, "markeredgewidth": 2, "linestyle": ""}
        theirs = table.loc[name, "PRS"] - table.loc[name, "CRS"]
        ax.plot(x, theirs, "_", **dash, label=f"PRS in the paper, {name}")
    if settings.others:
        ax.plot([], [], "D", color="0.3", label="single marks: parts of COCO")
    if settings.stand_ins:
        hollow = styles_of(["PRS"])["PRS"] | {"linestyle": "", "markerfacecolor": "white"}
        ax.plot([], [], label="PRS on handwritten digits", **hollow)
    ax.set(title=metric, ylabel="minus CRS (points)")
join_panels(figure, f"Overall, each sampler minus CRS, {len(settings.seeds)} seeds")
settings.show(figure, overall, "imbalance")


# %% [markdown]
# ## From what imbalance on?
#
# The rule was fixed before the numbers were seen. A sampler *pays* from an imbalance on if its
# interval is above 0 there and on every stream with a larger imbalance. The column `from` has the
# smallest such imbalance, `not at` the next one below it. Both are empty where a sampler never pays.

# %% jupyter={"source_hidden": true} tags=["functions"]
def pays_from(gaps: pd.DataFrame) -> pd.DataFrame:
    """Return from which imbalance on each method is clearly above CRS, overall."""
    rows = []
    for (method, metric), cells in gaps.groupby(["method", "metric"], sort=False):
        cells = cells.sort_values("imbalance", ascending=False)
        clear = (cells["clearly"] == "above").cumprod().astype(bool)
        start = cells.loc[clear, "imbalance"].min()
        below = cells.loc[cells["imbalance"] < start, "imbalance"].max()
        rows.append({"method": method, "metric": metric, "from": start, "not at": below})
    return pd.DataFrame(rows)


# %%
from IPython.display import display

line = overall[overall["dataset"].isin(settings.dataset)]
starts = pays_from(line)
settings.write(starts, "pays_from")
display(starts.round(0))

# %% [markdown]
# ## What the frequent classes pay, and what the rare ones get
#
# PRS minus CRS on the classes of each group, over the imbalance.

# %% jupyter={"source_hidden": true} tags=["functions"]
from prslib.report.style import GROUP_COLOURS, GROUP_MARKERS


def plot_groups(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw PRS minus CRS in each class group over the imbalance, with intervals."""
    for group, colour in GROUP_COLOURS.items():
        cells = frame[frame["group"] == group].sort_values("imbalance")
        ax.plot(cells["imbalance"], cells["difference"], GROUP_MARKERS[group] + "-", color=colour, label=group)
        ax.fill_between(cells["imbalance"], cells["low"], cells["high"], color=colour, alpha=0.15, linewidth=0)
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set(xscale="log", xlabel="imbalance (log scale)", ylabel="PRS minus CRS (points)")
    ax.xaxis.set_major_formatter("{x:g}")
    return ax


# %%
prs = gaps[(gaps["method"] == "PRS") & gaps["dataset"].isin(settings.dataset)]
figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), sharex=True, sharey=True)
for ax, metric in zip(axes, MAIN_METRICS, strict=True):
    plot_groups(prs[prs["metric"] == metric], ax).set_title(metric)
title = f"Reuters, PRS minus CRS by class group, {len(settings.seeds)} seeds, 95 % intervals"
join_panels(figure, title)
settings.show(figure, prs[prs["group"] != "overall"], "groups")


# %% [markdown]
# ## Imbalance or length?
#
# Two streams of each length are compared: a subsampled one, whose imbalance is small, and a random
# part of the whole one, whose imbalance is large. If length were the cause, both would gain the
# same. They do not: with the profile `seeds` the part gains more C-F1 and more mAP at every length.
# So the imbalance decides.

# %% jupyter={"source_hidden": true} tags=["functions"]
def plot_over_length(frame: pd.DataFrame, ax: Axes, parts) -> Axes:
    """Draw PRS minus CRS over the length, thinned streams and random parts apart."""
    series = {"thinned: imbalance falls": ~frame["dataset"].isin(parts)}
    series |= {"part: imbalance stays": frame["dataset"].isin(parts) | (frame["samples"] == frame["samples"].max())}
    for (label, chosen), (colour, marker) in zip(series.items(), [("#332288", "o"), ("#882255", "s")], strict=True):
        cells = frame[chosen].sort_values("samples")
        ax.plot(cells["samples"], cells["difference"], marker + "-", color=colour, label=label)
        ax.vlines(cells["samples"], cells["low"], cells["high"], colour, linewidth=1.3)
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set(xscale="log", xlabel="samples of the stream (log scale)", ylabel="PRS minus CRS (points)")
    return ax


# %%
from matplotlib.ticker import NullLocator

reuters = gaps[(gaps["method"] == "PRS") & (gaps["group"] == "overall")]
reuters = reuters[reuters["dataset"].isin(settings.dataset + settings.parts)]
figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), sharex=True, sharey=True)
for ax, metric in zip(axes, MAIN_METRICS, strict=True):
    plot_over_length(reuters[reuters["metric"] == metric], ax, settings.parts).set_title(metric)
    ticks = sorted(sizes.loc[sizes["dataset"].isin(reuters["dataset"]), "samples"])
    ax.set_xticks(ticks, [f"{n:,}" for n in ticks], rotation=60, fontsize=8)
    ax.xaxis.set_minor_locator(NullLocator())
join_panels(figure, f"Reuters, overall: imbalance or length? {len(settings.seeds)} seeds")
settings.show(figure, reuters, "length")

# %% jupyter={"source_hidden": true} tags=["answer"]
from prslib.report.answers import write_answer

pays = []
for row in starts[starts["method"] == "PRS"].sort_values("from").to_dict("records"):
    rounded = float(f"{row['from']:.2g}")
    start = "never" if pd.isna(rounded) else f"from {rounded:.0f}:1 on"
    pays.append(f"{start} in {row['metric']}")
write_answer(settings, f"Imbalance decides: on Reuters PRS is ahead of CRS {', '.join(pays)}.")
