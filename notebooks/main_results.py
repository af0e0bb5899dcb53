# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a partitioned memory keep the rare classes?
#
# In continual learning with replay, a learner sees the samples of a stream once, task after task.
# It keeps a few of these samples in a small memory and trains on them again later. In this
# notebook, samples have several labels, and class sizes are long-tailed. *Partitioning Reservoir
# Sampling* (PRS) allocates to class $i$ a share $p_i \propto n_i^{\rho}$ of the memory, where $n_i$
# is the number of samples of this class in the stream so far. With $\rho$ near 0, as in the paper's
# main table, the shares are about equal. The paper's main claim, based on its **Table 1**, is that
# PRS scores higher in C-F1, O-F1 and mAP ([metrics](../docs/metrics.md)) than Finetune, EWC,
# conventional reservoir sampling (CRS), GSS and ExStream, above all on the rare classes. The next
# section describes these methods.
#
# This notebook trains every method with several seeds and compares the scores with the paper's
# scores. The [profile](../docs/quickstart.md#profiles) `quick` runs on the first two of the
# following real data sets, and the profile `seeds` runs on all four:
#
# - `cocoseq-mini` (COCO in the tables), **the paper's own images**: 2,072 of COCOseq's 35,072
#   training images, as features of a frozen EfficientNet-Lite0. Each method trains a network of two
#   layers, the *head*, on these features, whereas the paper trains a ResNet-101 end to end on all
#   images. The tables show scores on 323 images of the paper's balanced test set and on 579 images
#   of its imbalanced test set ([test sets](../docs/real_coco.md#test-sets)).
# - `reutersseq` (Reuters), **another real stream**, which the paper does not use: news articles of
#   Reuters-21578 (7,471 for training and 2,909 for testing) with their topics, as features computed
#   from the words. The largest class has 219 times as many articles as the smallest.
# - `mdiseq` (icons with their tags) and `clipartseq` (clip art with its keywords), **two further
#   real streams**, which the paper does not use either.
#
# *With the profile `quick`, the notebook takes one minute on two cores.*

# %% tags=["parameters"]
profile: str = "quick"  # name of the profile; -f params/PROFILE/NOTEBOOK.yaml chooses another one
dataset: list[str] = ["cocoseq-mini", "reutersseq"]  # one or more data sets
rho: float = None  # power of allocation of PRS and OCDM, None for each data set's default
method: list[str] = ["Multitask", "Finetune", "EWC", "CRS", "GSS", "ExStream", "PRS", "CBRS", "OCDM"]  # must include CRS and PRS
memory_size: int = None  # samples in memory, None for each data set's default
tuned_threshold: list[str] = ["CRS", "PRS"]  # methods whose threshold is also tuned, by a second training
seeds: list[int] = [0, 1]  # one run of every method for each seed
few_seeds: dict[str, int] = {}  # methods and data sets that are run with only the first few seeds
metrics: list[str] = ["C-F1", "O-F1", "mAP"]  # columns of Table 1; C-P, C-R, O-P and O-R are possible, too
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["runs"]
from prslib.checks import one_of
from prslib.metrics import GROUP_METRICS
from prslib.report.grids import main_runs


def runs(settings):
    """List a run of every method and seed on each data set."""
    for name in settings.metrics:
        one_of("metric", name, GROUP_METRICS)
    return main_runs(settings)

# %% jupyter={"source_hidden": true} tags=["functions"]
from functools import partial

import ipywidgets
import matplotlib.pyplot as plt
import pandas as pd

import prslib
from prslib import METHODS
from prslib.report import answers, notebook, style, tables
from prslib.report.style import HOLLOW, STYLE
from prslib.report.tables import ALL_GROUPS, BALANCED, F1_OTHERWISE, TEST_WORDS

# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("main_results", globals())
planned = runs(settings)
settings

# %% [markdown]
# ## Training
#
# Every step updates the network once, on a batch of 10 new samples and, if the method has a memory,
# 10 samples drawn from the memory. Afterwards the method's *sampler* chooses which of the new
# samples to store in the memory.
#
# - *Finetune* has no memory. *Multitask* has no memory either, and sees the samples of all tasks
#   once, shuffled together.
# - *EWC* replaces the memory by a penalty on changes to weights that were important for earlier
#   tasks. Because the strength of this penalty in the paper does not suit other networks, we tuned
#   the strength for each data set on held-out training samples, with seeds that are not used here
#   (`studies/ewc_strength.py`, `figures/studies/ewc_strength.csv`).
# - *CRS* keeps every sample of the stream with the same probability.
# - *GSS* keeps samples whose gradients differ from each other.
# - *ExStream* freezes the lower part of the network and stores, for each class, means of similar
#   feature vectors.
# - *CBRS* and *OCDM*, which are not in the paper, balance the memory, as PRS does.
#
# The paper's network starts from ImageNet weights. EWC trains only the last layer of this network,
# ExStream trains its upper half, and all other methods train all layers. On the four streams above,
# by contrast, every method trains the whole head on fixed features, and ExStream stores means of
# these features. In [`inter_task`](inter_task.ipynb), the network learns from pixels, and EWC and
# ExStream freeze layers as in the paper.

# %% tags=["compute"]
finished = prslib.run_all(planned, device=settings.device)
scores = prslib.scores(finished)  # which the menus select from
history = tables.scores_of(finished)  # after each task
rows = tables.merge_published(tables.final(history), "main")

# %% [markdown]
# ## Table 1
#
# The tables show scores and forgetting in percent, as means and standard deviations over seeds. The
# scores are measured after the last task on the test samples of all tasks. They are computed over
# all classes (*overall*) and over three [groups of classes](../docs/metrics.md#groups-of-classes):
# frequent (majority), moderate and rare (minority) classes. For each data set, the tables show the
# scores on two test sets. In the *balanced* test, class sizes differ much less than in the stream,
# as in the test for the paper's Table 1. The *imbalanced* test has about the same class mix as the
# stream, except on [icons](../docs/other_streams.md). Because micro averages such as O-F1 depend on
# the class mix of the test set, a method can score higher than another method on one test set and
# lower on the other. `cocoseq-mini` has a third test set, [`open`](../docs/real_coco.md#test-sets),
# which is not used in these tables.
#
# *Forgetting* compares the score on a task at the end of the stream with the highest earlier
# score on this task. The drop is divided by the highest earlier score and averaged over all tasks
# but the last. It is negative if the score rose. In each column, the best number is in bold.
# Multitask is left out of this comparison because it sees all tasks at once.
#
# In the profile `seeds`, ExStream has about the same overall mAP as PRS on the balanced test of
# `cocoseq-mini`. One reason is that ExStream replaces two close feature vectors by their mean. A
# variant that instead keeps the older of the two vectors has a lower mAP than PRS on the test set
# `open` (`studies/exstream_merging.py`, `figures/studies/exstream_merging.csv`).

# %% tags=["compute"]
averages = tables.average(tables.final(history, settings.metrics))
settings.write(tables.merge_published(averages, "main"), "table")

# %%
settings.show_tables("table")

# %% [markdown]
# In the tables above, a label is predicted if its probability is above 0.5. The tables below show
# F1 with two other ways to predict labels. With the *tuned threshold*, 0.5 is replaced by a
# threshold that is chosen for each run on a fifth of its training samples. With *top 3*, the three
# most probable classes are predicted for every sample. For details, see
# [`precision_recall`](precision_recall.ipynb). The parameter `tuned_threshold` lists the methods
# whose threshold is tuned.

# %% tags=["compute"]
decided = tables.final(history, F1_OTHERWISE)
decided = tables.average(decided[decided["measure"] == "score"])
settings.write(decided.assign(published=float("nan")), "thresholds")

# %%
settings.show_tables("thresholds")

# %% [markdown]
# ## The groups
#
# The pictures show the scores of every method on the balanced test, for each class group and
# overall. Filled marks are means over seeds, lines extend from the lowest to the highest score, and
# hollow marks are the paper's numbers. CRS, PRS and the method with the highest overall mAP,
# Multitask excluded, are in colour. In the profile `seeds`, the difference in mAP between PRS and
# CRS is largest on the minority classes of every stream. On `cocoseq-mini`, the mean C-F1 of the
# minority classes is below 6 % for every method in this profile, because after one pass over only
# 2,072 images, rare classes are hardly ever predicted. On these classes, methods differ more in
# mAP, which needs no threshold, than in C-F1. If you run the notebook, you can select another test
# set or metric in menus.

# %% jupyter={"source_hidden": true} tags=["functions"]
SHOWN = ["C-F1", "mAP"]


def plot_methods(frame: pd.DataFrame, ax: plt.Axes, order: list[str], coloured: list[str]):
    """Draw the methods' scores in one group and metric, in a given order from the top."""
    styles = style.styles_of(order)
    for place, name in enumerate(order):
        cells = frame[frame["method"] == name]
        if cells.empty:
            continue
        colour = styles[name]["color"] if name in coloured else "0.6"
        mark = {"marker": styles[name]["marker"], "color": colour}
        ends = cells["value"].min(), cells["value"].max()
        ax.plot(ends, [place, place], color=colour)
        ax.plot(cells["value"].mean(), place, **mark)
        ax.plot(cells["published"].iloc[0], place, **mark | HOLLOW)
    if frame["published"].notna().any():
        grey = {"marker": "o", "color": "0.3", "linestyle": ""}
        ax.plot([], [], label="paper", **HOLLOW | grey)
    ax.plot([], [], "0.3", label="lowest to highest seed")
    style.name_rows(ax, order)


def draw_groups(shown: pd.DataFrame, metrics: list[str]) -> plt.Figure:
    """Draw the methods in the order of their overall mAP, with a panel per group and metric."""
    overall = shown[(shown["group"] == "overall") & (shown["metric"] == "mAP")]
    means = overall.groupby("method")["value"].mean().sort_values(ascending=False)
    best = next(one for one in means.index if not METHODS[one].offline)
    near = style.without_far_numbers(shown)
    shape = {"figsize": (11, 3 * len(metrics)), "sharey": True, "squeeze": False}
    figure, axes = plt.subplots(len(metrics), 4, **shape)
    for line, metric in zip(axes, metrics, strict=True):
        for ax, group in zip(line, ALL_GROUPS, strict=True):
            cells = near[(near["metric"] == metric) & (near["group"] == group)]
            plot_methods(cells, ax, list(means.index), ["CRS", "PRS", best])
            ax.set(title=group, xlabel=f"{metric} (%)")
    return figure


def draw_again(dataset: str, test_set: str, metric: list[str]) -> plt.Figure:
    """Draw one or more metrics on a test set."""
    chosen = (scores["dataset"] == dataset) & (scores["test_set"] == test_set)
    chosen &= scores["group"].isin(ALL_GROUPS) & scores["metric"].isin([*metric, "mAP"])
    shown = tables.merge_published(scores[chosen].assign(measure="score"), "main")
    figure = draw_groups(shown, metric)
    style.join_panels(figure, f"{dataset}, {TEST_WORDS[test_set]}: scores by class group")
    return figure


def make_menus(tests: list[str]) -> dict[str, ipywidgets.Dropdown]:
    """Return menus of test sets and of metrics."""
    tests = [(TEST_WORDS[name], name) for name in tests]
    metrics = [(name, [name]) for name in (*GROUP_METRICS, *F1_OTHERWISE)]
    return {
        "test_set": ipywidgets.Dropdown(options=tests),
        "metric": ipywidgets.Dropdown(options=[(" and ".join(SHOWN), SHOWN), *metrics]),
    }

# %% tags=["compute"]
for name in settings.dataset:
    of_set = (rows["dataset"] == name) & (rows["test_set"] == BALANCED)
    settings.write(rows[of_set & (rows["measure"] == "score")], f"groups_{name}")

# %%
averages = settings.table("table")
for name in settings.dataset:
    figure = draw_groups(settings.table(f"groups_{name}"), SHOWN)
    title = f"{name}, balanced test: scores by class group, {settings.say_seeds(name)}"
    tests = averages.loc[averages["dataset"] == name, "test_set"].unique()
    controls = make_menus(list(tests))
    redraw = partial(draw_again, name)
    settings.show(figure, f"groups_{name}", title, narrow=2, redraw=redraw, **controls)

# %% [markdown]
# ## PRS against CRS
#
# Differences are computed between runs with the same seed, which have the same stream and the same
# initial weights. The 95 % interval of a difference is Student's t interval over seeds and also
# accounts for the sampling error of the test set. We call a difference significant if its whole
# interval is on one side of 0 and if there are at least five seeds. The file
# `main_results_prs_minus_crs.csv` lists all differences.

# %% tags=["compute"]
settings.write(tables.contrasts(rows, "PRS", "CRS", ALL_GROUPS), "prs_minus_crs")

# %%
title = "Scores of Table 1: PRS minus CRS"
against_crs = settings.show_contrasts("prs_minus_crs", title, "group")

# %% [markdown]
# ## PRS against each other method
#
# The paper claims that PRS has higher overall scores than every other method except Multitask.

# %% tags=["compute"]
others = [name for name in settings.method if name != "PRS"]
gaps = tables.contrast_each(rows, "PRS", others)
settings.write(gaps, "prs_minus_others")

# %%
title = "Overall scores: PRS minus each other method"
against = settings.show_contrasts("prs_minus_others", title, "than")

# %% [markdown]
# The paper calls Multitask the upper bound, although it reports a lower C-F1 for Multitask than for
# PRS. A possible reason is that Multitask sees every rare image only once, whereas a balanced
# memory replays the same image many times.
#
# ## Task by task
#
# The picture compares the methods with CRS after each task. It shows the overall mAP of each method
# on the test samples of all tasks so far, minus the mAP of CRS with the same seed. Vertical lines
# extend from the mean by one standard deviation over seeds in both directions. A separate panel
# shows the numbers from the paper's appendix "Task Progression Results". Multitask has only one
# score, measured after training on all tasks. A dashed line shows this score. Finetune and EWC are
# omitted from the picture. In the profile `seeds`, all other methods have a higher mAP at the end
# of every stream. The file `main_results_progression.csv` contains the scores of all methods.

# %% tags=["compute"]
steps = history[(history["task"] == "seen") & (history["group"] == "overall")]
steps = steps[(steps["test_set"] == BALANCED) & (steps["metric"] == "mAP")]
steps = steps[steps["measure"] == "score"].drop(columns=["task", "at_end"])
steps = tables.merge_published(steps, "coco_progression", "nus_progression")
settings.write(steps, "progression")

# %%
steps = settings.table("progression")
drawn = [name for name in settings.method if name not in ("CRS", "EWC", "Finetune")]
leads = tables.leads(steps, drawn, "CRS", ["trained_tasks"]).dropna(subset="value")
printed = leads.assign(value=leads["published"]).dropna(subset="value")
panels = [(name, leads[leads["dataset"] == name]) for name in settings.dataset]
panels += [(f"paper, {name}", of_set) for name, of_set in printed.groupby("stands_for")]
figure, axes = style.panel_grid(len(panels), 3, top=0.6, height=3.4)
for ax, (name, shown) in zip(axes, panels, strict=True):
    style.plot_progression(shown.drop(columns="published"), ax, "mAP").set_title(name)
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_ylabel("mAP minus CRS (points)")
title = "Overall mAP of each method minus CRS after each task, balanced test"
settings.show(figure, "progression", f"{title}, {settings.say_seeds()}")

# %% jupyter={"source_hidden": true} tags=["answer"]
where = {"test_set": BALANCED, "group": "minority", "metric": "mAP"}
row = answers.find_smallest(against_crs, **where)
what = f"On the balanced test of {row['dataset']}, mAP of the minority classes"
sentence = answers.describe_difference(row, what=what)
settings.write_answer(sentence, row["dataset"])
