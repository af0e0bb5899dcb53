# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Where does F1 come from, precision or recall?
#
# C-F1 and O-F1 of the main table are harmonic means of a precision and a recall. The appendix
# prints these by group (its **tables "CP, CR, OP, OR"** for COCOseq and NUS-WIDEseq). C-P and C-R
# are means over classes. O-P and O-R pool the decisions of all classes. A method that seldom
# predicts a rare class can be precise, but its recall is low.
#
# This notebook reads the runs of `main_results`. `cocoseq-mini` is 6 % of the real COCOseq, as
# features of a frozen network. `reutersseq` has the articles of Reuters-21578, which the paper does
# not have. The tables and the first picture of `cocoseq-mini` are on the paper's balanced test set.
# All differences are on 3,199 other images of COCO ([test sets](../docs/real_coco.md#test-sets)).
#
# *A minute on two cores after `main_results`, whose runs it shares.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds, laptop or paper
dataset: list[str] = ["cocoseq-mini", "reutersseq"]  # one or more data sets
rho: float = None  # power of allocation of PRS and OCDM, None for each data set's own
method: list[str] = ["Multitask", "Finetune", "EWC", "CRS", "GSS", "ExStream", "PRS", "CBRS", "OCDM"]
memory_size: int = None  # samples in memory, None for each data set's own
own_threshold: list[str] = ["CRS", "PRS"]  # methods with F1 at a threshold of their own, too, by a second training
seeds: list[int] = [0, 1, 2, 3, 4]  # one run of every method for each
few_seeds: dict[str, int] = {}  # methods and data sets that take only so many of the seeds
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% tags=["runs"]
from prslib.report.grids import main_runs


def runs(settings):
    """List the runs of `main_results`, on the open images and the paper's."""
    return main_runs(settings)


# %%
from prslib.report.notebook import Settings

settings = Settings.read("precision_recall", globals())
planned = runs(settings)
settings

# %% [markdown]
# ## The tables
#
# Mean and standard deviation over seeds, in percent, after the last task. The paper
# prints no overall columns. On the paper's balanced test set every class has as many positives, so
# its O-R equals its C-R. Here a class has one to ten test images, so the two differ.
#
# On `cocoseq-mini` C-R and C-F1 of the minority are near 0 for every method: after one pass over
# 2,072 images hardly any rare class has a probability above 0.5.

# %%
import matplotlib.pyplot as plt

from prslib.report.asked import run_all
from prslib.report.grids import BALANCED, runs_on
from prslib.report.style import STYLE
from prslib.report.tables import PRECISION_RECALL, merge_published, final, scores_of

plt.style.use(STYLE)
finished = run_all(planned, device=settings.device)
scores = scores_of(runs_on(finished))
in_tables = scores_of(runs_on(finished, BALANCED))


def beside_papers(scores):
    """Return precision and recall at the end, with the paper's."""
    rows = final(scores, PRECISION_RECALL)
    rows = rows[rows["measure"] == "score"]
    return merge_published(rows, "coco_precision_recall", "nus_precision_recall")


rows = beside_papers(scores)

# %%
from IPython.display import Markdown, display

from prslib.report.notebook import heading
from prslib.report.tables import average, main_tables

cells = average(beside_papers(in_tables))
settings.write(cells, "table")
for name in settings.dataset:
    display(heading(name))
    display(*main_tables(cells, name, PRECISION_RECALL))

# %% [markdown]
# ## Precision against recall
#
# Every method in every group: ours filled, the paper's hollow. An arrow leads from CRS to each other
# method, and shows what the method changes. Finetune and EWC lie far below and are left out; the table
# above has them. Both axes have a square-root scale, as rare classes lie near 0, and each panel its
# own range. The grey curves join points of the same F1, which is written on them. Below the dashed
# line a method predicts a class too often, above it too seldom.

# %% jupyter={"source_hidden": true} tags=["functions"]
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from prslib.report.style import HOLLOW, draw_legend, styles_of

LEVELS = (5, 10, 20, 30, 40, 50, 60, 70)  # F1 in percent

TICKS = (0, 1, 3, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)


def plot_precision_recall(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw precision over recall of "C" or "O" with lines of equal F1 (Appendix, "CP, CR")."""
    # their square roots, so that rare classes are not one heap at 0
    roots = (
        lambda score: np.sign(score) * np.sqrt(np.abs(score)),
        lambda root: np.sign(root) * root**2,
    )
    ax.set_xscale("function", functions=roots)
    ax.set_yscale("function", functions=roots)
    values = frame[["mean", "published"]].stack()
    low = max(0.85 * values.min() - 1, -0.3)  # room for marks at 0
    high = min(1.1 * values.max() + 1, 103)
    ticks = [tick for tick in TICKS if low < tick < high]
    if low < 1:  # they would touch
        ticks = ticks[::2]
    ax.set(xticks=ticks, yticks=ticks, xlim=(low, high), ylim=(low, high), box_aspect=1)
    scores = np.linspace(max(low, 0.1), high, 300)
    recall, precision = np.meshgrid(scores, scores)
    f1 = 2 * recall * precision / (recall + precision)
    levels = [level for level in LEVELS if f1.min() < level < f1.max()]
    lines = ax.contour(recall, precision, f1, levels, colors="0.82", linewidths=0.8)
    # clear of the diagonal and of the frame
    beside = [(1.35 * level, level * 1.35 / 1.7) for level in levels]
    beside = [(x, y) for x, y in beside if x < 0.93 * high and y > 1.1 * low]
    ax.clabel(lines, fontsize=8, fmt="F1 %d", colors="0.4", manual=beside)
    ax.plot([0, 103], [0, 103], color="0.7", linewidth=0.8, linestyle="--")
    cells = frame.pivot(index="method", columns="metric", values=["mean", "published"])
    begin = cells.loc["CRS"].unstack().loc["mean", ["C-R", "C-P"]] if "CRS" in cells.index else None
    for method, style in styles_of(frame["method"]).items():
        pair = cells.loc[method].unstack()[["C-R", "C-P"]]
        if begin is not None and method != "CRS":  # what the method changes
            line = {"arrowstyle": "->", "color": style["color"], "linewidth": 1.3}
            ax.annotate("", pair.loc["mean"], begin, arrowprops=line)
        ax.plot(*pair.loc["published"], **style | HOLLOW | {"linestyle": ""})
        ax.plot(*pair.loc["mean"], **style, linestyle="", markersize=7, label=method)
    ax.set(xlabel="recall C-R (%, root scale)", ylabel="precision C-P (%, root scale)")
    ax.grid(False)
    draw_legend(frame, ax, "")
    return ax


# %%
from prslib.report.style import contrast_panels, join_panels
from prslib.report.grids import seeds_text

for name in settings.dataset:
    figure, axes = plt.subplots(1, 3, figsize=(11, 4.5))
    near = cells[(cells["dataset"] == name) & ~cells["method"].isin(["EWC", "Finetune"])]
    for ax, group in zip(axes, ["majority", "moderate", "minority"], strict=True):
        shown = near[near["group"] == group]
        plot_precision_recall(shown, ax).set_title(group)
    caption = seeds_text(settings.seeds, settings.few_seeds, name)
    join_panels(figure, f"{name}: means over classes, {caption}")
    settings.show(figure, cells[cells["dataset"] == name], name, narrow=1)

# %% [markdown]
# ## What a balanced memory changes
#
# The picture shows PRS minus CRS, taken seed by seed. "Clearly" means that the whole interval of
# the difference is on one side of 0, as in `ledger`.

# %%
from prslib.report.tables import contrasts, in_short

groups = ["majority", "moderate", "minority"]
pairs = [(group, metric) for group in groups for metric in PRECISION_RECALL]
gaps = contrasts(rows, "PRS", "CRS", pairs)
figure = contrast_panels(gaps, "Precision and recall, PRS minus CRS", "group")
settings.show(figure, gaps, "prs_minus_crs")
display(Markdown(in_short(gaps)))

# %% [markdown]
# ## What a threshold does
#
# A label is predicted where its probability is above 0.5. After one pass the probabilities of rare
# classes are far below how often they occur, so F1 at 0.5 is mostly about calibration. Here the
# same predictions are scored in two more ways. *Own threshold*: each run has one threshold for all
# classes. It is chosen on a fifth of the training samples, by a second training without them. Test
# samples choose nothing. *Top 3*: the three most probable classes of each sample. A difference that
# is clear at 0.5, but not at the own threshold, comes from calibration.

# %%
from prslib.report.tables import ALL_GROUPS, turned

WAYS = [f"{name}{way}" for name in ("C-F1", "O-F1") for way in ("", " (own threshold)", " (top 3)")]
decided = merge_published(final(scores, WAYS), "main")
pairs = [(group, metric) for group in ALL_GROUPS for metric in WAYS]
by_threshold = contrasts(decided, "PRS", "CRS", pairs)
title = "F1 by how labels are decided, PRS minus CRS"
short = by_threshold["metric"].str.replace(r" \((.*)\)", r",\n\1", regex=True)
figure = contrast_panels(by_threshold.assign(metric=short), title, "group")
settings.show(figure, by_threshold, "thresholds")
lines = turned(by_threshold) or ["No clear difference at 0.5 turns with the threshold."]
display(Markdown("\n".join(f"- {line}" for line in lines)))

# %% jupyter={"source_hidden": true} tags=["answer"]
from prslib.report.answers import first_set, write_answer

names = {"C-P": "precision", "C-R": "recall"}
shares = first_set(gaps).set_index(["group", "metric"])["difference"]
changes = []
for group in ("majority", "minority"):
    metric = shares[group][list(names)].abs().idxmax()
    points = f"({shares[group, metric]:+.1f} points)"
    changes.append(f"mostly {names[metric]} {points} on the {group} classes")
name = settings.dataset[0]
write_answer(settings, f"Against CRS on {name}, PRS changes {', '.join(changes)}.", name)
