# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Is it the memory or the loss?
#
# A balanced memory gives rare classes more of what is replayed. A loss can give them more weight
# instead, and leave the memory as it is. So can a *draw*: replay that takes its samples from the
# memory with the same chance for every class. Is the effect the same? The paper does not ask. Here
# samplers are trained with the plain loss and with others, and two kinds of scores are compared:
#
# - *mAP* depends on the **ranking** of the samples by each class's probability alone;
# - *C-F1* and *O-F1* also depend on the **threshold**: on how high the probabilities are. They are
#   given at 0.5 and at each run's own threshold. That one is chosen on training samples that a
#   second training leaves out.
#
# A change that raises C-F1 at 0.5, but neither mAP nor C-F1 at the own threshold, does no more than
# another threshold would. A threshold can be changed without training again.
#
# The strength of every loss was chosen on held-out training samples, by one rule for all
# (`studies/loss_strength.py`). The pages of `docs/losses` have their formulas. `cocoseq-mini` is
# scored here on the 816 images of the paper's two test lists. [`main_results`](main_results.ipynb)
# takes its differences on 3,199 other images, so its numbers are not these ([test
# sets](../docs/real_coco.md#test-sets)).
#
# *A minute on two cores for the quick profile.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds, laptop or paper
dataset: list[str] = ["reutersseq"]  # one or more data sets with several labels a sample
method: list[str] = ["CRS", "PRS"]  # the first is what the others are compared with, the second the balanced memory
loss: list[str] = ["multilabel_soft_margin", "asymmetric", "distribution_balanced"]  # the plain one and others
balanced: list[str] = ["multilabel_soft_margin"]  # losses with which replay is drawn balanced over classes, too
seeds: list[int] = [0, 1]  # one run of every sampler and loss for each
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% tags=["runs"]
from prslib import LOSSES
from prslib.checks import expected, one_of
from prslib.report.grids import check_labels, configs_of

PLAIN = "multilabel_soft_margin"
# chosen by studies/loss_strength.py, the loss with the highest score there first; other
# data sets take each loss's defaults
STRENGTHS = {
    "reutersseq": {
        "distribution_balanced": {"scale": 2.0, "gamma": 0.0, "kappa": 0.1},
        "asymmetric": {"gamma_neg": 2.0},
        "focal": {"alpha": 0.75, "gamma": 1.0},
        "inverse_frequency": {"power": 0.1},
    },
    "cocoseq-mini": {
        "distribution_balanced": {"scale": 2.0, "gamma": 0.0, "kappa": 0.1},
        "asymmetric": {"gamma_neg": 1.0},
        "inverse_frequency": {"power": 0.1},
        "focal": {"alpha": 0.5, "gamma": 1.0},
    },
}


def runs(settings):
    """List a run of every sampler with every loss, and with balanced draws."""
    check_labels(settings.dataset, one=False)
    if len(settings.method) < 2:
        raise ValueError(f"method: {expected('two or more', settings.method)}")
    for name in settings.balanced:
        one_of("loss", name, LOSSES)
    made = []
    for name in settings.dataset:
        for loss in settings.loss:
            draws = ["uniform", "balanced"] if loss in settings.balanced else ["uniform"]
            made += configs_of(
                settings.method,
                settings.seeds,
                dataset=name,
                loss=loss,
                loss_options=STRENGTHS.get(name, {}).get(loss, {}),
                draw=draws,
                own_threshold=True,
            )
    return made


# %%
from prslib.report.notebook import Settings
from prslib.report.grids import seeds_text

settings = Settings.read("memory_or_loss", globals())
planned = runs(settings)
settings

# %% [markdown]
# ## The rule
#
# It was fixed before the numbers were seen. The *loss* of a data set is the one with the highest
# score on the held-out training samples. Each change is made by itself, and the rest stays as it
# was:
#
# | change | from | to |
# | --- | --- | --- |
# | memory | CRS | PRS |
# | loss | the plain loss | the loss |
# | draw | uniform | balanced over classes |
#
# A change *moves the ranking* if the interval of its difference in overall mAP does not contain 0.
# It *moves the threshold* if two things are true. The interval of its difference in C-F1 at 0.5
# does not contain 0. And C-F1 at the runs' own threshold does not change clearly in the same
# direction. Intervals are of 95 %, over seeds and test samples, and take five seeds.

# %% jupyter={"source_hidden": true} tags=["functions"]
import pandas as pd

from prslib.report.tables import contrasts

OWN = "C-F1 (own threshold)"
WAYS = ["C-F1", OWN, "O-F1", "O-F1 (own threshold)", "mAP"]
UNIFORM, BALANCED = "uniform", "balanced"
RANKS = {
    "both": "Both move",
    "the memory": "Only the memory moves",
    "the loss": "Only the loss moves",
    "neither": "Neither moves",
}


def arm(method: str, loss: str, draw: str = UNIFORM) -> str:
    """Name a combination: "PRS, plain loss" or "CRS, asymmetric loss, balanced draw"."""
    words = "plain" if loss == PLAIN else loss.replace("_", " ")
    return f"{method}, {words} loss" + (", balanced draw" if draw == BALANCED else "")


def best_loss(settings, dataset: str) -> str:
    """Return the loss with the highest score on held-out samples, of those that are trained."""
    order = [*STRENGTHS.get(dataset, {}), *settings.loss]
    return next(name for name in order if name in settings.loss and name != PLAIN)


def changes(settings, dataset: str) -> dict[str, tuple[str, str]]:
    """Return the two combinations that each change compares, after and before."""
    usual, memory = settings.method[:2]
    loss = best_loss(settings, dataset)
    begin = arm(usual, PLAIN)
    both = arm(memory, loss)
    return {
        "memory": (arm(memory, PLAIN), begin),
        "loss": (arm(usual, loss), begin),
        "draw": (arm(usual, PLAIN, BALANCED), begin),
        "memory and loss": (both, begin),
        "memory, with the loss": (both, arm(usual, loss)),
        "loss, with the memory": (both, arm(memory, PLAIN)),
    }


def differences(rows: pd.DataFrame, settings) -> pd.DataFrame:
    """Return what each change moves, with intervals, in every metric and group."""
    cells = [(group, metric) for group in rows["group"].unique() for metric in WAYS]
    rows = rows.assign(method=rows["arm"])
    frames = []
    for name in settings.dataset:
        of_set = rows[rows["dataset"] == name]
        for change, (after, before) in changes(settings, name).items():
            if {after, before} <= set(of_set["arm"]):
                gaps = contrasts(of_set, after, before, cells)
                frames.append(gaps.assign(change=change, after=after, before=before))
    return pd.concat(frames, ignore_index=True)


def moved(clearly: pd.Series) -> str:
    """Say what a change moves, from which metrics' differences are clear."""
    ranking = bool(clearly["mAP"])
    threshold = clearly["C-F1"] not in ("", clearly[OWN])
    if ranking and threshold:
        return "ranking and threshold"
    if ranking or threshold:
        return "the ranking" if ranking else "the threshold"
    return "F1 at any threshold" if clearly["C-F1"] else "neither ranking nor threshold clearly"


def numbers(gaps: pd.DataFrame, dataset: str) -> list[str]:
    """Say what each change moves: overall C-F1, at both thresholds, and mAP, with intervals."""
    overall = gaps[(gaps["dataset"] == dataset) & (gaps["group"] == "overall")]
    lines = []
    for change, cells in overall.groupby("change", sort=False):
        cells = cells.set_index("metric").loc[["C-F1", OWN, "mAP"]]
        parts = [
            f"{metric} {row['difference']:+.1f} ({row['low']:+.1f} to {row['high']:+.1f})"
            for metric, row in cells.iterrows()
        ]
        lines.append(f"- {change}: {', '.join(parts)}. It moves {moved(cells['clearly'])}.")
    return lines


def which(memory: str, loss: str) -> str:
    """Name which of memory and loss makes a clear difference."""
    if memory and loss:
        return "both"
    if memory or loss:
        return "the memory" if memory else "the loss"
    return "neither"


def answer(gaps: pd.DataFrame, dataset: str) -> str:
    """Say which of memory and loss helps C-F1 beside the other, by how much, and what moves mAP."""
    overall = gaps[(gaps["dataset"] == dataset) & (gaps["group"] == "overall")]
    cells = overall.set_index(["change", "metric"])
    clearly = cells["clearly"]
    beside = ("memory, with the loss", "loss, with the memory")
    helps = which(*(clearly[change, "C-F1"] == "above" for change in beside))
    ranks = which(clearly["memory", "mAP"], clearly["loss", "mAP"])
    c_f1 = cells["difference"].xs("C-F1", level="metric").map("{:+.1f}".format)
    return (
        f"{helps.capitalize()}, on {dataset}: C-F1 changes by {c_f1['memory']} points with the "
        f"memory, {c_f1['loss']} with the loss, {c_f1['memory and loss']} with both. "
        f"{RANKS[ranks]} mAP clearly."
    )


# %% [markdown]
# ## The answer

# %%
import matplotlib.pyplot as plt
from IPython.display import Markdown, display

from prslib.report.asked import run_all
from prslib.report.style import STYLE
from prslib.report.tables import final, scores_of

plt.style.use(STYLE)
scores = scores_of(run_all(planned, device=settings.device), "loss", "draw")
rows = final(scores, WAYS)
rows = rows[rows["measure"] == "score"]
names = [arm(*key) for key in rows[["method", "loss", "draw"]].itertuples(index=False)]
rows = rows.assign(arm=names)
gaps = differences(rows, settings)
answers = pd.DataFrame([{"dataset": name, "sentence": answer(gaps, name)} for name in settings.dataset])
settings.write(gaps, "changes")
settings.write(answers, "answer")
for name, sentence in answers.itertuples(index=False):
    display(Markdown("\n".join([sentence, "", *numbers(gaps, name)])))

# %% [markdown]
# ## What moves what
#
# The picture shows every sampler with every loss: C-F1 upwards, mAP to the right, overall, after
# the last task, means over seeds. One panel of a data set predicts labels at 0.5, the other at each
# run's own threshold. Each arrow starts at CRS with the plain loss and ends where one change leads.
# A change of the threshold points straight up at 0.5 and is gone at the own threshold. A change of
# the ranking points to the right in both panels.

# %% jupyter={"source_hidden": true} tags=["functions"]
from matplotlib.axes import Axes

from prslib.report.style import HUES, styles_of

MARKERS = "os^DPv"  # of losses, the plain one first
ARROWS = dict(zip(("memory", "loss", "draw", "memory and loss"), HUES, strict=False))


def plot_changes(cells: pd.DataFrame, ax: Axes, f1: str, settings, dataset: str) -> Axes:
    """Draw C-F1 over mAP of every combination, and arrows for the changes."""
    points = cells.pivot(index=["method", "loss", "draw", "arm"], columns="metric", values="value")
    places = points.droplevel([0, 1, 2])
    for change, (after, before) in changes(settings, dataset).items():
        if change in ARROWS and {after, before} <= set(places.index):
            ends = [tuple(places.loc[name, ["mAP", f1]]) for name in (after, before)]
            line = {"arrowstyle": "-|>", "color": ARROWS[change], "linewidth": 1.6}
            ax.annotate("", *ends, arrowprops=line | {"shrinkA": 5, "shrinkB": 5})
    colours = styles_of(settings.method)
    for (method, loss, draw, _), row in points.iterrows():
        style = {"color": colours[method]["color"], "marker": MARKERS[settings.loss.index(loss)]}
        style["markerfacecolor"] = "white" if draw == BALANCED else style["color"]
        ax.plot(row["mAP"], row[f1], linestyle="", markersize=7, **style)
    ax.set(xlabel="mAP (%)", ylabel="C-F1 (%)")
    ax.margins(0.08)
    return ax


def add_legend(ax: Axes, settings) -> None:
    """Name the samplers by their colours, the losses by their marks, and the arrows."""
    for name, style in styles_of(settings.method).items():
        ax.plot([], [], "-", color=style["color"], linewidth=5, label=name)
    for name, mark in zip(settings.loss, MARKERS, strict=False):
        label = "plain loss" if name == PLAIN else name.replace("_", " ")
        ax.plot([], [], mark, color="0.3", label=label)
    ax.plot([], [], "o", color="0.3", markerfacecolor="white", label="balanced draw")
    for change, colour in ARROWS.items():
        ax.plot([], [], color=colour, marker=">", markevery=[1], label=change if " and " in change else f"{change} alone")


# %%
import numpy as np

from prslib.report.style import join_panels

keys = ["dataset", "method", "loss", "draw", "arm", "group", "metric"]
means = rows.groupby(keys, sort=False)["value"].agg(value="mean", sd="std", seeds="count").reset_index()
shown = means[means["group"] == "overall"]
count = len(settings.dataset)
figure, axes = plt.subplots(count, 2, figsize=(8.5, 4.4 * count + 0.6), squeeze=False)
for row, name in zip(axes, settings.dataset, strict=True):
    for ax, f1, title in zip(row, ("C-F1", OWN), ("at 0.5", "own threshold"), strict=True):
        plot_changes(shown[shown["dataset"] == name], ax, f1, settings, name).set_title(f"{name}, {title}")
add_legend(axes[0, 0], settings)
join_panels(figure, f"What memory, loss and draw move, {seeds_text(settings.seeds)}")
for row in axes:  # one range a data set
    ends = np.array([ax.dataLim.intervaly for ax in row])
    room = 0.12 * (ends.max() - ends.min())
    plt.setp(row, ylim=(ends.min() - room, ends.max() + room))
settings.show(figure, means, "scores", narrow=1)

# %% [markdown]
# ## Group by group
#
# Each change in points, with its interval, on the classes of each group.

# %%
cell = gaps["difference"].map("{:+.1f}".format)
cell += " (" + gaps["low"].map("{:+.1f}".format) + " to " + gaps["high"].map("{:+.1f}".format) + ")"
table = gaps.assign(cell=cell)
for name in settings.dataset:
    of_set = table[table["dataset"] == name]
    wide = of_set.pivot(index=["change", "group"], columns="metric", values="cell")
    order = [(change, group) for change in changes(settings, name) for group in ("overall", "majority", "moderate", "minority")]
    wide = wide.reindex([key for key in order if key in wide.index])[WAYS]
    display(Markdown(f"**{name}**, the loss is {best_loss(settings, name)}"), wide)

# %% [markdown]
# ## Every loss
#
# Each loss minus the plain one, with each sampler and a uniform draw, overall. A loss that is clearly
# above in F1 at 0.5 and not at the own threshold has moved the threshold.

# %%
frames = []
for name in settings.dataset:
    of_set = rows[rows["dataset"] == name].assign(method=rows["arm"])
    for sampler in settings.method:
        for loss_name in [one for one in settings.loss if one != PLAIN]:
            cells = [("overall", metric) for metric in WAYS]
            pair = contrasts(of_set, arm(sampler, loss_name), arm(sampler, PLAIN), cells)
            frames.append(pair.assign(method=sampler, loss=loss_name))
by_loss = pd.concat(frames, ignore_index=True)
settings.write(by_loss, "losses")
words = by_loss["difference"].map("{:+.1f}".format) + by_loss["clearly"].map(" {}".format)
wide = by_loss.assign(cell=words.str.strip())
wide.pivot(index=["dataset", "loss", "method"], columns="metric", values="cell")[WAYS]

# %% jupyter={"source_hidden": true} tags=["answer"]
from prslib.report.answers import write_answer

write_answer(settings, answers["sentence"].iloc[0], settings.dataset[0])
