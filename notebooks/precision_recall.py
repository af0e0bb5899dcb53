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
# C-F1 and O-F1 in the [main table](main_results.ipynb) are each the harmonic mean of a precision
# and a recall. C-F1 combines the precision C-P and the recall C-R, which are means over classes.
# O-F1 combines the precision O-P and the recall O-R, which pool the predictions for all classes.
# The paper's appendix reports these four scores for each class group of COCOseq and NUS-WIDEseq
# (**tables "CP, CR, OP, OR"**). A method that seldom predicts a rare class can have a high
# precision on this class, but its recall is low.
#
# This notebook evaluates the runs of `main_results` on two test sets per stream. In the *balanced*
# test set, as in the test for the paper's tables, class sizes differ much less than in the stream.
# The *imbalanced* test set has about the same class mix as the stream, except on
# [icons](../docs/other_streams.md). Do not compare precision between the two test sets, because
# precision depends on the class mix: if a class has few test samples, it can have only few true
# positives, but many false positives.
#
# *With the profile `quick`, the notebook takes one minute on two cores if it is run after
# `main_results`.*

# %% tags=["parameters"]
profile: str = "quick"  # name of the profile; -f params/PROFILE/NOTEBOOK.yaml chooses another one
dataset: list[str] = ["cocoseq-mini", "reutersseq"]  # one or more data sets
rho: float = None  # power of allocation of PRS and OCDM, None for each data set's default
method: list[str] = ["Multitask", "Finetune", "EWC", "CRS", "GSS", "ExStream", "PRS", "CBRS", "OCDM"]  # must include CRS and PRS
memory_size: int = None  # samples in memory, None for each data set's default
tuned_threshold: list[str] = ["CRS", "PRS"]  # methods whose F1 is also measured at a tuned threshold, by a second training
seeds: list[int] = [0, 1]  # one run of every method for each seed
few_seeds: dict[str, int] = {}  # methods and data sets that are run with only the first few seeds
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["runs"]
from dataclasses import replace

from prslib.report.grids import main_runs, standard_runs


def runs(settings):
    """List the runs of `main_results`, and one run each of CRS and PRS with predictions."""
    first = settings.dataset[0], settings.seeds[0]
    kept = [
        replace(config, predictions=True, test_resamples=0)
        for config in standard_runs(settings)
        if (config.dataset, config.seed) == first and config.method in ("CRS", "PRS")
    ]
    return main_runs(settings) + kept

# %% jupyter={"source_hidden": true} tags=["functions"]
from functools import partial
from itertools import product

import ipywidgets
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import prslib
from prslib.report import answers, notebook, style, tables
from prslib.report.style import HOLLOW, HUES, STYLE
from prslib.report.tables import ALL_GROUPS, BALANCED, IMBALANCED, MAIN_METRICS, PRECISION_RECALL, TEST_WORDS

# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("precision_recall", globals())
planned = runs(settings)
settings

# %% [markdown]
# ## Precision and recall, method by method
#
# Each row shows the precision C-P and the recall C-R of one method after the last task. Both are
# means over seeds, and a line joins them. The upper panels are for the balanced test set and also
# show the paper's scores if there are any. The lower panels are for the imbalanced test set.
#
# In the profile `seeds`, methods with a memory have a far lower recall than precision on the
# minority classes of most streams. After one pass over the stream, they seldom predict a
# probability above 0.5 for a rare class.

# %% jupyter={"source_hidden": true} tags=["functions"]
COLOURS = {"C-P": ("precision", HUES[0]), "C-R": ("recall", HUES[2])}


def plot_dumbbells(frame: pd.DataFrame, ax: plt.Axes, order: list[str]) -> plt.Axes:
    """Draw each method's precision and recall, joined by a line (Appendix, "CP, CR")."""
    values = ["value", "published"]
    cells = frame.pivot(index="method", columns="metric", values=values).reindex(order)
    place = np.arange(len(order))
    ends = cells["value", "C-P"], cells["value", "C-R"]
    ax.hlines(place, *ends, "0.8", linewidth=3, zorder=1)
    for metric, (word, colour) in COLOURS.items():
        ax.plot(cells["value", metric], place, "o", color=colour, label=f"{word} {metric}")
        theirs = HOLLOW | {"linestyle": "", "marker": "o", "color": colour}
        ax.plot(cells["published", metric], place, **theirs)
    if frame["published"].notna().any():
        ax.plot([], [], label="paper", **theirs | {"color": "0.3"})
    style.name_rows(ax, order)
    ax.grid(axis="x")
    return ax

# %% tags=["compute"]
trained = prslib.run_all(planned, device=settings.device)
with_predictions = [run for run in trained if run.config.predictions]
finished = [run for run in trained if not run.config.predictions]
history = tables.scores_of(finished)  # after each task
rows = tables.final(history, PRECISION_RECALL)
rows = rows[rows["measure"] == "score"]
rows = tables.merge_published(rows, "coco_precision_recall", "nus_precision_recall")
averages = tables.average(rows)
settings.write(averages, "table")
for name in settings.dataset:
    of_classes = averages["metric"].isin(list(COLOURS))
    settings.write(averages[of_classes & (averages["dataset"] == name)], name)

# %%
for name in settings.dataset:
    shown = settings.table(name).rename(columns={"mean": "value"})
    shown = style.without_far_numbers(shown)
    order, tests = list(shown["method"].unique()), shown["test_set"].unique()
    shape = {"figsize": (11, 0.8 + 2.7 * len(tests)), "sharey": True, "squeeze": False}
    figure, axes = plt.subplots(len(tests), len(ALL_GROUPS), **shape)
    for ax, (test, group) in zip(axes.flat, product(tests, ALL_GROUPS), strict=True):
        cells = shown[(shown["test_set"] == test) & (shown["group"] == group)]
        plot_dumbbells(cells, ax, order).set_title(f"{group},\n{TEST_WORDS[test]}")
    plt.setp(axes[-1], xlabel="C-P and C-R (%)")
    title = f"{name}: precision and recall of the classes"
    settings.show(figure, name, f"{title}, {settings.say_seeds(name)}", narrow=2)

# %% [markdown]
# ## What a balanced memory changes
#
# Partitioning Reservoir Sampling (PRS) balances the memory, whereas conventional reservoir sampling
# (CRS) keeps the class mix of the stream. The table shows the scores of PRS minus the scores of CRS
# in percentage points, with 95 % intervals over seeds and test samples. Significant differences are
# in bold, without correction for multiple testing. With fewer than five seeds, no difference is
# called significant.

# %% tags=["compute"]
settings.write(tables.contrasts(rows, "PRS", "CRS", ALL_GROUPS), "prs_minus_crs")

# %%
gaps = settings.table("prs_minus_crs")
wide = tables.pivot_differences(gaps, ["dataset", "test"], ["group", "metric"])
wide[[*product(ALL_GROUPS[:3], COLOURS), ("overall", "O-P"), ("overall", "O-R")]].style

# %% [markdown]
# ## What a threshold does
#
# By default, a label is predicted if its probability is above 0.5. In the profile `seeds`, the
# predicted probabilities of rare classes are usually far below 0.5 after one pass over the stream,
# so that F1 at this threshold largely measures calibration. The same models are therefore scored
# with two other rules:
#
# - The *tuned threshold* is the same for all classes, but is chosen separately for each run and for
#   each of the scores C-F1 and O-F1. To choose it, we train the method a second time on four fifths
#   of the training samples and select the threshold with the highest score on the remaining fifth.
# - *Top 3* predicts the three most probable classes of each sample.
#
# If PRS and CRS differ at the threshold of 0.5 but not at the tuned threshold, the difference is
# due to calibration. If you run the notebook, menus select the class group and the test set of each
# panel.

# %% jupyter={"source_hidden": true} tags=["functions"]
WAYS = {"threshold of 0.5": "", "tuned threshold": " (tuned threshold)", "top 3": " (top 3)"}


def draw_ways(frame: pd.DataFrame, group: str, left: str, right: str) -> plt.Figure:
    """Draw PRS minus CRS in both F1 scores of a class group, each on one test set."""
    names = frame["dataset"].unique()
    figure, axes = plt.subplots(1, 2, figsize=(11, 1.4 + 0.7 * len(names)), sharey=True)
    for ax, (f1, test) in zip(axes, [("C-F1", left), ("O-F1", right)], strict=True):
        chosen = (frame["f1"] == f1) & (frame["test_set"] == test) & (frame["group"] == group)
        style.plot_samplers(frame[chosen], ax, "dataset", "way")
        ax.set(title=f"{f1}, {TEST_WORDS[test]}", xlabel="PRS minus CRS (points)")
    where = "" if group == "overall" else f" on the {group} classes"
    title = f"F1{where}: PRS minus CRS by decision rule"
    ends = "95 % intervals" if frame["seeds"].max() > 1 else "1 seed"
    style.join_panels(figure, f"{title}, {ends}")
    return figure

# %% tags=["compute"]
f1s = [f"{f1}{how}" for f1, how in product(MAIN_METRICS[:2], WAYS.values())]
decided = tables.final(history, f1s)
settings.write(tables.contrasts(decided, "PRS", "CRS", ALL_GROUPS), "thresholds")

# %%
ways = settings.table("thresholds")
parts = ways["metric"].str.extract(r"^(?P<f1>\S+)(?P<how>.*)$")
ways = ways.assign(f1=parts["f1"], way=parts["how"].map({how: way for way, how in WAYS.items()}))
ways = ways.sort_values("way", key=lambda names: names.map(list(WAYS).index), kind="stable")
tests = [(TEST_WORDS[name], name) for name in (BALANCED, IMBALANCED)]
controls = {
    "group": ipywidgets.Dropdown(options=ALL_GROUPS, value="overall"),
    "left": ipywidgets.Dropdown(options=tests, value=BALANCED),
    "right": ipywidgets.Dropdown(options=tests, value=IMBALANCED),
}
figure = draw_ways(ways, "overall", BALANCED, IMBALANCED)
settings.show(figure, "thresholds", narrow=1, redraw=partial(draw_ways, ways), **controls)

# %%
overall = ways[ways["group"] == "overall"]
wide = tables.pivot_differences(overall, ["dataset", "test"], ["f1", "way"])
wide.reindex(columns=product(MAIN_METRICS[:2], WAYS)).style

# %% [markdown]
# ## Every threshold
#
# The curves show F1 at thresholds from 0.02 to 0.98 for one run of CRS and one run of PRS on the
# first data set. If the curve of one model has a higher maximum, this model ranks the samples
# better. If its curve is higher near 0.5 but does not have a higher maximum, the model is only
# better calibrated. Each legend shows F1 at one threshold. If you run the notebook, you can
# select this threshold with a slider and the class group in a menu.

# %% jupyter={"source_hidden": true} tags=["functions"]
GRID = np.arange(0.02, 0.99, 0.02).round(2)


def score_thresholds(run: prslib.Run) -> pd.DataFrame:
    """Return both F1 scores of a run (%) at each threshold on both kinds of test set."""
    data = prslib.load_dataset(run.config.dataset)
    parts = []
    for test, threshold in product([BALANCED, IMBALANCED], GRID):
        labels = (run.predictions[test] > threshold).astype(float)
        names = data.class_names, data.class_group
        frame = prslib.evaluate(labels, data.tests[test].labels, *names)
        frame = frame[frame["metric"].isin(MAIN_METRICS[:2]) & frame["group"].isin(ALL_GROUPS)]
        frame = frame.assign(value=100 * frame["value"])
        parts.append(frame.assign(test_set=test, threshold=threshold))
    table = pd.concat(parts).assign(dataset=run.config.dataset, method=run.config.method)
    return table[["dataset", "method", "test_set", "group", "metric", "threshold", "value"]]


def draw_thresholds(frame: pd.DataFrame, threshold: float, group: str) -> plt.Figure:
    """Draw both F1 scores over the threshold; legends show their values at one threshold."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), sharey=True)
    cells = [("C-F1", BALANCED), ("O-F1", IMBALANCED)]
    for ax, (f1, test) in zip(axes, cells, strict=True):
        chosen = frame[(frame["test_set"] == test) & (frame["metric"] == f1)]
        chosen = chosen[chosen["group"] == group]
        for method, rows in chosen.groupby("method"):
            value = rows["value"][np.isclose(rows["threshold"], threshold)].item()
            look = {"color": style.styles_of([method])[method]["color"]}
            ax.plot("threshold", "value", data=rows, label=f"{method}: {value:.1f}", **look)
        ax.axvline(threshold, color="0.4", linestyle=":")
        ax.set(title=f"{f1}, {TEST_WORDS[test]}", xlabel="threshold", ylabel=f"{f1} (%)")
        ax.legend(title=f"at {threshold:.2f}")
    where = "" if group == "overall" else f" of the {group} classes"
    title = f"{frame['dataset'].iloc[0]}: F1{where} at every threshold, one seed"
    figure.suptitle(title)
    return figure

# %% tags=["compute"]
settings.write(pd.concat(map(score_thresholds, with_predictions)), "curves")

# %%
curves = settings.table("curves")
controls = {
    "threshold": ipywidgets.SelectionSlider(options=list(GRID), value=0.5),
    "group": ipywidgets.Dropdown(options=ALL_GROUPS, value="overall"),
}
figure = draw_thresholds(curves, 0.5, "overall")
settings.show(figure, "curves", narrow=1, redraw=partial(draw_thresholds, curves), **controls)

# %% [markdown]
# ## The tables
#
# The tables show scores after the last task in percent, as means and standard deviations over
# seeds. The paper's tables give scores for each class group, but not for all classes together. In
# the paper's tables, O-R equals C-R, because every class has the same number of positives in the
# paper's balanced test set. In our test sets, this number differs between classes, so that O-R and
# C-R differ.

# %%
settings.show_tables("table")

# %% jupyter={"source_hidden": true} tags=["answer"]
alike = answers.first_set(gaps)
alike = alike[alike["test_set"] == BALANCED].set_index(["group", "metric"])["difference"]
name = answers.first_set(gaps)["dataset"].iloc[0]
sentences = []
for group, where in {"majority": f" of {name} (balanced test)", "minority": ""}.items():
    points = [f"{alike[group, metric]:+.1f} points in {word}" for metric, (word, _) in COLOURS.items()]
    difference = f"PRS minus CRS is {answers.join_words(points)}"
    sentences.append(f"On the {group} classes{where}, {difference}.")
gains = answers.first_set(overall[overall["test_set"] == BALANCED])
gains = gains.query("f1 == 'C-F1' and way != 'top 3'")
points = [f"{row.difference:+.1f} points at the {row.way}" for row in gains.itertuples()]
sentences.append(f"In overall C-F1, PRS minus CRS is {answers.join_words(points)}.")
settings.write_answer(" ".join(sentences), name)
