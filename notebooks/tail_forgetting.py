# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Are the rare classes forgotten first?
#
# The paper's **Figure 1** shows how much two methods forget of every class "over three sequential
# tasks". The first method is conventional reservoir sampling (CRS) with "a memory size of 1000".
# The second is EWC, which has no memory, but penalises changes of important weights. The paper
# states: "More severe forgetting occurs for the minority classes in each task."
#
# The paper uses two measures of forgetting:
#
# - The **plain** difference is the best score before the end minus the score at the end, in points.
#   This measure was proposed by Chaudhry et al., whom the caption of Figure 1 cites.
# - The **normalised** difference is the plain difference as a share of the best score. Table 1
#   reports this measure.
#
# The two measures can disagree, because a rare class that was never learned well has few points to
# lose, but may lose all of them.
#
# The caption of Figure 1 does not state which score is plotted or for which three of COCOseq's four
# tasks. We plot the first three tasks after training on the fourth, because forgetting is not
# defined for the last task. Our score is average precision (AP), which needs no threshold.
#
# The [profile](../docs/quickstart.md#profiles) `quick` runs on `cocoseq-mini`, 6 % of the real
# COCOseq images, represented by features of a frozen network. The memory of 60 samples is half of
# the standard size for this stream, just as 1000 is half of the paper's standard size of 2000.
# The profile `seeds` adds `reutersseq`, a real stream of news articles from Reuters-21578.
#
# Groups of classes are scored on two test sets. In the *balanced* test set, as in the test for
# the paper's Table 1, class sizes differ much less than in the stream. The *imbalanced* test set
# has about the class mix of the stream. Single classes are scored only on the balanced test set,
# except for `cocoseq-mini`, which has too few positives per class in this test set. On this
# stream, the AP of a class is measured on 3,199 further images of COCO ([test
# sets](../docs/real_coco.md#test-sets)).
#
# *With the profile `quick`, the notebook takes about half a minute on four cores if it is run after
# `main_results`.*

# %% tags=["parameters"]
profile: str = "quick"  # name of the profile; -f params/PROFILE/NOTEBOOK.yaml chooses another one
dataset: list[str] = ["cocoseq-mini"]  # one or more data sets
method: list[str] = ["CRS", "EWC", "PRS"]  # methods that see one task after the other, which must include CRS
rho: float = None  # power of allocation of PRS and OCDM, None for each data set's default
memory_share: float = 0.5  # size of the memory, as a share of each data set's standard size
seeds: list[int] = [0, 1]  # one run of every method for each seed
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["runs"]
from prslib import DATASETS
from prslib.report.grids import check_compared, check_labels, configs_of


def runs(settings):
    """List a run of every method and seed."""
    check_labels(settings.dataset, one=False)
    check_compared(settings.method, "CRS")
    made = []
    for name in settings.dataset:
        size = memory_size(name, settings.memory_share)
        fields = {"dataset": name, "rho": settings.rho, "memory_size": size}
        made += configs_of(settings.method, settings.seeds, **fields)
    return made


def memory_size(name, share):
    """Return a share of a data set's standard memory size."""
    return round(share * DATASETS[name].recipe.memory_size)

# %% jupyter={"source_hidden": true} tags=["functions"]
import matplotlib.pyplot as plt
import pandas as pd

import prslib
from prslib.report import answers, measures, notebook, tables
from prslib.report.style import GROUP_COLOURS, STYLE
from prslib.report.tables import BALANCED, TEST_WORDS

# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("tail_forgetting", globals())
planned = runs(settings)
settings

# %% tags=["compute"]
finished = prslib.run_all(planned, device=settings.device)
by_class = pd.concat(map(measures.run_forgetting, finished), ignore_index=True)
keys = ["dataset", "test_set", "method", "task", "class", "class_group", "images", "place"]
drawn = by_class[(by_class["metric"] == "AP") & (by_class["measure"] == "plain")]
means = drawn.groupby(keys, sort=False)["value"].mean().reset_index()
for name in settings.dataset:
    settings.write(means[means["dataset"] == name], name)

# %% [markdown]
# ## Class by class
#
# The pictures correspond to the paper's Figure 1. They show the plain difference, because the
# caption of Figure 1 cites this measure. Each bar shows how many points of AP a class has lost by
# the end of the stream, averaged over seeds. A bar below 0 means that the class has gained. Classes
# are sorted by size within each task, and the green line shows their sizes. If small classes were
# forgotten more than large ones, the bars would rise within each task as the line falls. The panel
# for the paper's own method, Partitioning Reservoir Sampling (PRS), is not in the paper. The
# memories of PRS and CRS have the same size.

# %% jupyter={"source_hidden": true} tags=["functions"]
SIZE_COLOUR = "#117733"


def plot_tail_forgetting(frame: pd.DataFrame, ax: plt.Axes) -> plt.Axes:
    """Draw forgetting as bars and class sizes as a line, with tasks from left to right."""
    frame = frame.assign(at=frame["place"] + 1.5 * pd.factorize(frame["task"])[0])
    for group, colour in GROUP_COLOURS.items():
        rows = frame[frame["class_group"] == group]
        ax.bar(rows["at"], rows["value"], 0.85, color=colour, label=group)
    sizes = ax.twinx()
    frame = frame[frame["images"] > 0]  # zero cannot be drawn on a log scale
    for task, rows in frame.groupby("task", sort=False):
        sizes.plot(rows["at"], rows["images"], color=SIZE_COLOUR, linewidth=1.5)
        middle = rows["at"].mean()
        ax.text(middle, 0.99, f"task {task}", ha="center", va="top", transform=ax.get_xaxis_transform())
    ax.plot([], [], color=SIZE_COLOUR, linewidth=1.5, label="training samples of the class")
    ax.axhline(0, color="0.35", linewidth=0.8)
    ax.set(xticks=[], ylabel="points of AP lost")
    ax.margins(x=0.02)
    sizes.set_yscale("log")
    sizes.set_ylabel("training samples (log scale)", color=SIZE_COLOUR)
    sizes.tick_params(colors=SIZE_COLOUR)
    sizes.yaxis.set_major_formatter("{x:g}")
    sizes.spines["right"].set_visible(True)
    sizes.grid(False)
    return ax

# %%
for name in settings.dataset:
    classes = settings.table(name)
    shape = {"figsize": (10, 7), "sharex": True, "sharey": True, "squeeze": False}
    figure, axes = plt.subplots(len(settings.method), 1, **shape)
    for ax, one in zip(axes.flat, settings.method, strict=True):
        plot_tail_forgetting(classes[classes["method"] == one], ax).set_title(one)
    memory = f"memory of {memory_size(name, settings.memory_share)}"
    words = TEST_WORDS[classes["test_set"].iloc[0]]
    title = f"{name}, {words}: forgetting by class, {memory}"
    settings.show(figure, name, f"{title}, {settings.say_seeds()}")

# %% [markdown]
# ## Minority against majority
#
# This section compares the forgetting of the minority classes with the forgetting of the majority
# classes. The closest published numbers are the *forget* rows of Table 1. They show, for each group
# of classes, what share of its best score has been lost. They were measured with a memory of 2000
# samples, which is twice as large as our memory relative to the length of the stream. We therefore
# expect more forgetting in our runs.
#
# The picture shows, for both measures, the forgetting of mAP on the minority classes minus the
# forgetting of mAP on the majority classes. Lines are 95 % intervals over seeds and test samples. A
# difference above 0 means that the minority classes are forgotten more than the majority classes,
# as in the paper for CRS and EWC on COCOseq. The [`ledger`](ledger.ipynb) tests this claim on the
# runs of `main_results`, which have the standard memory size. Within each task, it also tests the
# rank correlation between the size of a class and its forgetting.

# %% jupyter={"source_hidden": true} tags=["functions"]
LOST = {"forget": "share of the best mAP", "lost": "points of mAP"}


def minority_minus_majority(scores: pd.DataFrame) -> pd.DataFrame:
    """Return how much more mAP the minority has lost than the majority, by method."""
    is_compared = scores["group"].isin(["minority", "majority"]) & (scores["metric"] == "mAP")
    rows = scores[is_compared & scores["measure"].isin(LOST)]
    rows = rows.drop(columns=["trained_tasks", "task", "at_end"])
    rows = tables.merge_published(rows, "main")
    rows = rows.assign(lost=rows["measure"].map(LOST), measure="score")
    # the two groups are compared in the same way as two methods
    rows = rows.rename(columns={"method": "group", "group": "method"})
    groups = rows["group"].unique()
    gaps = tables.contrasts(rows, "minority", "majority", groups, by=["lost"])
    return gaps.rename(columns={"group": "method"})

# %% tags=["compute"]
settings.write(minority_minus_majority(tables.scores_of(finished)), "groups")

# %%
title = "Forgetting of mAP: minority minus majority classes"
title += f", {100 * settings.memory_share:g} % of the standard memory"
gaps = settings.show_contrasts("groups", title, "method", across="lost")

# %% jupyter={"source_hidden": true} tags=["answer"]
alike = answers.first_set(gaps)
alike = alike[(alike["test_set"] == BALANCED) & (alike["method"] == "CRS")].set_index("lost")
share, points = (alike.loc[LOST[measure]] for measure in ("forget", "lost"))
where = f"With CRS on {share['dataset']} (balanced test)"
groups = {"method": "minority classes", "than": "majority classes"}
what = f"{where}, forgetting as a share of the best mAP"
sentence = answers.describe_difference(share, what=what, **groups)
what = "Measured in points of mAP, forgetting"
sentence += f" {answers.describe_difference(points, what=what, **groups)}"
sentence += f" The memory has {100 * settings.memory_share:g} % of the standard size."
if share["seeds"] > 1:
    sentence += f" The intervals are from {share['seeds']} seeds and not corrected for multiple testing."
settings.write_answer(sentence, share["dataset"])
