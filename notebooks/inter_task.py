# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What becomes of the smallest task?
#
# Tasks, like classes, differ in size: in the paper's stream NUS-WIDEseq, Task 3 has about a tenth
# as many training images as Task 1. The paper's **Figure "Inter-task imbalance"** compares all
# [methods](main_results.ipynb) on Task 3 only, at the end of the stream. According to the paper,
# Partitioning Reservoir Sampling (PRS), which balances the memory, "performs overwhelmingly better
# than the other baselines in all the metrics". Because the paper prints no numbers with the figure,
# we can compare only the order of the methods with the paper.
#
# The [profile](../docs/quickstart.md#profiles) `seeds` runs on `digits49seq`, a **synthetic data
# set** of handwritten digits with NUS-WIDEseq's class frequencies divided by 6. The profile
# `quick` runs on a tiny part of this data set with a single seed, so that no conclusion is
# possible. As in the paper, the smallest task, Task 3, comes first, so that it is also the oldest
# task at the end of the stream.
#
# Every run is scored on two test sets. In the *balanced* test, which the paper uses, class sizes
# differ much less than in the stream. The *imbalanced* test has about the class mix of the
# stream.
#
# *With the profile `quick`, the notebook takes half a minute on two cores.*

# %% tags=["parameters"]
profile: str = "quick"  # name of the profile; -f params/PROFILE/NOTEBOOK.yaml chooses another one
dataset: list[str] = ["digits49tiny"]  # one or more data sets with unequal tasks
rho: float = None  # power of allocation of PRS and OCDM, None for each data set's default
method: list[str] = ["Multitask", "Finetune", "EWC", "CRS", "GSS", "ExStream", "PRS", "CBRS", "OCDM"]  # must include CRS and PRS
memory_size: int = None  # samples in memory, None for each data set's default
seeds: list[int] = [0]  # one run of every method for each seed
few_seeds: dict[str, int] = {}  # methods and data sets that are run with only the first few seeds
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["runs"]
from prslib import configs
from prslib.report.grids import check_compared, check_labels, standard_runs


def runs(settings):
    """List a run of every method for each seed, and of ExStream with trained features.

    The ledger compares these features with ExStream's usual features, which are frozen.
    """
    check_labels(settings.dataset, one=False)
    check_compared(settings.method, "CRS", "PRS")
    fields = {"dataset": settings.dataset, "seed": settings.seeds}
    trained = configs(**fields, method="ExStream", vector_stages=0)
    return standard_runs(settings) + trained

# %% jupyter={"source_hidden": true} tags=["functions"]
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns

import prslib
from prslib import METHODS
from prslib.report import answers, notebook, style, tables
from prslib.report.style import STYLE
from prslib.report.tables import BALANCED, MAIN_METRICS, TEST_WORDS


def task_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return final overall scores in percent on each task's test samples, large tasks first."""
    rows = scores[scores["at_end"] & (scores["task"] != "seen")]
    rows = rows[(rows["group"] == "overall") & rows["metric"].isin(MAIN_METRICS)]
    rows = rows.drop(columns=["trained_tasks", "at_end", "draws"], errors="ignore")
    tasks = zip(rows["dataset"], rows["task"].astype(int), strict=True)
    images = [(tables.labels_of(name).train.task == task).sum() for name, task in tasks]
    place = rows.columns.get_loc("measure")
    rows.insert(place, "images", images)
    labels = "task " + rows["task"] + " (" + rows["images"].astype(str) + ")"
    rows.insert(place + 1, "label", labels)
    return rows.sort_values("images", ascending=False, kind="stable", ignore_index=True)


def pick_smallest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each data set's smallest task."""
    return rows[rows["images"] == rows.groupby("dataset")["images"].transform("min")]


def pick_methods(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of CRS, of PRS and of the online method that is best on the smallest task."""
    ends = pick_smallest(rows)
    is_online = ~ends["method"].map(lambda name: METHODS[name].offline)
    ends = ends[is_online & (ends["metric"] == "mAP") & (ends["test_set"] == BALANCED)]
    best = ends.groupby("method")["value"].mean().idxmax()
    return rows[rows["method"].isin(["CRS", "PRS", best])]

def plot_tasks(frame: pd.DataFrame, ax: plt.Axes) -> plt.Axes:
    """Plot each task's mean scores over seeds, with a line from the lowest to the highest score."""
    looks = style.styles_of(frame["method"])
    options = {"hue": "method", "hue_order": list(looks), "errorbar": ("pi", 100)}
    options["palette"] = [look["color"] for look in looks.values()]
    options["markers"] = [look["marker"] for look in looks.values()]
    sns.pointplot(
        frame, x="label", y="value", dodge=0.3, linestyle="none", linewidth=2, ax=ax, **options
    )
    ax.plot([], [], "0.3", label="lowest to highest seed")
    ax.set(xlabel="task (training samples)", ylabel="mAP (%)")
    return ax

# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("inter_task", globals())
planned = runs(settings)
settings

# %% tags=["compute"]
finished = prslib.run_all(planned, device=settings.device)
standard = [run for run in finished if run.config.vector_stages is None]
rows = task_scores(tables.scores_of(standard))
for name in settings.dataset:
    settings.write(pick_methods(rows[rows["dataset"] == name]), name)

# %% [markdown]
# ## Task by task
#
# For each task, the picture shows the mAP over all classes of the task after the whole stream,
# measured on the test samples of the task. It compares PRS, conventional reservoir sampling (CRS)
# and the method with the highest mAP on the smallest task (balanced test, Multitask excluded).
# Tasks are sorted by their number of training samples, which is given in parentheses; the smallest
# task is on the right. Marks are means over seeds, and lines extend from the lowest to the highest
# score. Compare methods only within a task, because tasks differ in their number of classes and in
# their position in the stream.

# %%
for name in settings.dataset:
    shown = settings.table(name).query("metric == 'mAP'")
    tests = shown["test_set"].unique()
    figure, axes = plt.subplots(len(tests), 1, figsize=(8, 6), sharex=True, squeeze=False)
    for ax, test_set in zip(axes.flat, tests, strict=True):
        plot_tasks(shown[shown["test_set"] == test_set], ax).set_title(TEST_WORDS[test_set])
    title = f"{name}: mAP on each task after the whole stream"
    settings.show(figure, name, f"{title}, {settings.say_seeds()}")

# %% [markdown]
# ## PRS against each other method on the smallest task
#
# Differences are computed between runs with the same seed. A difference is significant if its whole
# 95 % interval is on one side of 0. The intervals are not corrected for the number of claims,
# whereas the [`ledger`](ledger.ipynb) tests the paper's claim with such a correction. The claim
# does not include Multitask, which sees all tasks at once, or the samplers CBRS and OCDM, which are
# not in the paper.

# %% tags=["compute"]
ends = pick_smallest(rows)
others = [name for name in settings.method if name != "PRS"]
gaps = tables.contrast_each(ends, "PRS", others, by=["label"])
settings.write(gaps.assign(published=float("nan")), "prs_minus_others")

# %%
title = "The smallest task, PRS minus each other method"
against = settings.show_contrasts("prs_minus_others", title, "than")

# %% jupyter={"source_hidden": true} tags=["answer"]
row = answers.find_smallest(against, metric="mAP", than="CRS", test_set=BALANCED)
what = f"On the smallest task of {row['dataset']}, mAP on the balanced test"
sentence = answers.describe_difference(row, what=what)
settings.write_answer(sentence, row["dataset"])
