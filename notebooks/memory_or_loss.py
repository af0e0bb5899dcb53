# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Can a loss replace a balanced memory?
#
# A balanced memory contains a larger share of rare classes than the stream, so that rare classes
# are replayed more often. Rare classes can also be given more weight by another loss, or by a
# balanced *draw*: for each replayed sample, first a class in memory is drawn at random, and then
# one of the samples of this class. Do these changes have the same effect as a balanced memory? The
# paper does not investigate this question. This notebook trains networks with the balanced memory
# of Partitioning Reservoir Sampling (PRS) and with the memory of conventional reservoir sampling
# (CRS), which has the class mix of the stream. Each memory is combined with the plain loss
# (`multilabel_soft_margin`) and with other losses. Two kinds of [scores](../docs/metrics.md) are
# compared:
#
# - *mAP* depends only on how the samples are **ranked** by their predicted probability for each
#   class.
# - *C-F1* and *O-F1* also depend on the **threshold** above which a label is predicted. Both are
#   reported at a threshold of 0.5 and at the *tuned threshold* of each run. To choose the tuned
#   threshold, a second network is trained without a part of the training samples, and the threshold
#   with the highest score on this held-out part is selected.
#
# Suppose that a change raises C-F1 at the threshold of 0.5, but raises neither mAP nor C-F1 at the
# tuned threshold. Another threshold could then have had the same effect without this change.
#
# The parameters of all losses were chosen by the same rule on held-out training samples
# (`studies/loss_strength.py`). See [Loss functions](../docs/losses/index.md) for the formulas.
#
# *With the [profile](../docs/quickstart.md#profiles) `quick`, the notebook takes one minute on two
# cores.*

# %% tags=["parameters"]
profile: str = "quick"  # name of the profile; -f params/PROFILE/NOTEBOOK.yaml chooses another one
dataset: list[str] = ["reutersseq"]  # one or more data sets with several labels per sample
method: list[str] = ["CRS", "PRS"]  # the first is the reference, the second the balanced memory
loss: list[str] = ["multilabel_soft_margin", "asymmetric", "distribution_balanced"]  # the plain loss and others
balanced: list[str] = ["multilabel_soft_margin"]  # losses that are also trained with a balanced draw
seeds: list[int] = [0, 1]  # one run of every sampler and loss for each seed
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["runs"]
from prslib import LOSSES
from prslib.checks import one_of
from prslib.report.grids import check_labels, configs_of

PLAIN = "multilabel_soft_margin"
# chosen by studies/loss_strength.py; the loss with the highest score there comes first.
# Data sets that are not listed use the default parameters of each loss
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
        "focal": {"alpha": 0.75, "gamma": 1.0},
    },
}


def runs(settings):
    """List a run of every sampler with every loss, and further runs with balanced draws."""
    check_labels(settings.dataset, one=False)
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
                tuned_threshold=True,
            )
    return made


# %% jupyter={"source_hidden": true} tags=["functions"]
import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import Markdown

import prslib
from prslib.report import answers, notebook, tables
from prslib.report.style import HUES, STYLE
from prslib.report.tables import BALANCED, IMBALANCED

# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("memory_or_loss", globals())
planned = runs(settings)
settings

# %% [markdown]
# ## The rule
#
# The following rule was fixed before the results were known. We change one of three things at a
# time:
#
# | change | from | to |
# | --- | --- | --- |
# | memory | CRS | PRS |
# | loss | the plain loss | the chosen loss |
# | draw | uniform | balanced over classes |
#
# The *chosen loss* of a data set is the loss with the highest mean of C-F1, O-F1 and mAP on the
# held-out training samples. A difference is significant if its 95 % interval over seeds and test
# samples does not contain 0, and if there are at least five seeds. A change moves
#
# - *the ranking* if it changes the overall mAP significantly;
# - *the threshold* if it changes C-F1 significantly at the threshold of 0.5, but C-F1 at the tuned
#   threshold does not change significantly in the same direction;
# - *F1 at any threshold* if it changes C-F1 significantly and in the same direction at both
#   thresholds, but does not change mAP significantly.
#
# To apply this rule, mAP and C-F1 are measured on a *balanced* test, in which class sizes differ
# much less than in the stream.

# %% jupyter={"source_hidden": true} tags=["functions"]
OWN = "C-F1 (tuned threshold)"
WAYS = ["C-F1", OWN, "O-F1", "O-F1 (tuned threshold)", "mAP"]
# the columns of the tables, and their names
SHOWN = {
    (BALANCED, "mAP"): "mAP, balanced test",
    (BALANCED, "C-F1"): "C-F1 at 0.5, balanced test",
    (BALANCED, OWN): "C-F1 at the tuned threshold, balanced test",
    (IMBALANCED, "O-F1"): "O-F1 at 0.5, imbalanced test",
    (IMBALANCED, "O-F1 (tuned threshold)"): "O-F1 at the tuned threshold, imbalanced test",
}


def name_arm(method: str, loss: str, draw: str = "uniform") -> str:
    """Name a combination: "PRS, plain loss" or "CRS, asymmetric loss, balanced draw"."""
    words = "plain" if loss == PLAIN else loss.replace("_", " ")
    return f"{method}, {words} loss" + (", balanced draw" if draw == "balanced" else "")


def choose_loss(settings, dataset: str) -> str:
    """Return which of the losses in the settings has the highest score on held-out samples."""
    order = [*STRENGTHS.get(dataset, {}), *settings.loss]
    return next(name for name in order if name in settings.loss and name != PLAIN)


def name_bars(settings, dataset: str) -> dict[str, str]:
    """Return the four combinations of the picture: neither, memory, loss, both."""
    without, memory = settings.method[:2]
    loss = choose_loss(settings, dataset)
    return {
        "neither": name_arm(without, PLAIN),
        "memory": name_arm(memory, PLAIN),
        "loss": name_arm(without, loss),
        "both": name_arm(memory, loss),
    }


def list_changes(settings, dataset: str) -> dict[str, tuple[str, str]]:
    """Return the combinations after and before each change."""
    bars = name_bars(settings, dataset)
    return {
        "memory": (bars["memory"], bars["neither"]),
        "loss": (bars["loss"], bars["neither"]),
        "draw": (name_arm(settings.method[0], PLAIN, "balanced"), bars["neither"]),
        "memory and loss": (bars["both"], bars["neither"]),
        "memory, with the loss": (bars["both"], bars["loss"]),
        "loss, with the memory": (bars["both"], bars["memory"]),
    }


def compare_changes(rows: pd.DataFrame, settings) -> pd.DataFrame:
    """Return by how much each change moves every overall score, with intervals."""
    frames = []
    for name in settings.dataset:
        of_set = rows[rows["dataset"] == name]
        for change, (after, before) in list_changes(settings, name).items():
            if {after, before} <= set(of_set["method"]):
                gaps = tables.contrasts(of_set, after, before)
                frames.append(gaps.assign(change=change))
    return pd.concat(frames, ignore_index=True)


def compare_losses(rows: pd.DataFrame, settings) -> pd.DataFrame:
    """Compare each loss with the plain loss overall, for each sampler and uniform draws."""
    frames = []
    for method in settings.method:
        plain = name_arm(method, PLAIN)
        for loss in [name for name in settings.loss if name != PLAIN]:
            gaps = tables.contrasts(rows, name_arm(method, loss), plain)
            frames.append(gaps.assign(method=method, loss=loss))
    return pd.concat(frames, ignore_index=True)


def say_moved(clearly: pd.Series) -> str:
    """Say what a change moves, given the metrics in which its difference is significant."""
    ranking = bool(clearly["mAP"])
    threshold = clearly["C-F1"] not in ("", clearly[OWN])
    if ranking and threshold:
        return "ranking and threshold"
    if ranking or threshold:
        return "the ranking" if ranking else "the threshold"
    return "F1 at any threshold" if clearly["C-F1"] else "neither ranking nor threshold"


def lay_out(gaps: pd.DataFrame, rows: list[str]) -> pd.DataFrame:
    """Lay out differences with intervals in the columns of `SHOWN`."""
    keys = pd.Series(zip(gaps["test_set"], gaps["metric"], strict=True), gaps.index)
    shown = gaps.assign(column=keys.map(SHOWN)).dropna(subset="column")
    wide = tables.pivot_differences(shown, rows, "column")
    return wide.reindex(columns=list(SHOWN.values())).dropna(axis="columns", how="all")


# %% [markdown]
# ## Neither, one or both
#
# Bars are overall scores after the last task on the balanced test, averaged over seeds. *Neither*
# is CRS with the plain loss, *memory* is PRS with the plain loss, *loss* is CRS with the chosen
# loss, and *both* is PRS with the chosen loss.

# %% jupyter={"source_hidden": true} tags=["functions"]
BARS = dict(zip(("neither", "memory", "loss", "both"), ("0.45", *HUES[:3]), strict=True))


def plot_bars(frame: pd.DataFrame, ax: plt.Axes) -> plt.Axes:
    """Draw the mean of each of `BARS`, and one standard deviation above and below it."""
    cells = frame.set_index("bar").reindex(list(BARS))
    bars = ax.bar(list(BARS), cells["value"], color=list(BARS.values()), width=0.65)
    ax.bar_label(bars, fmt="%.1f", label_type="center", color="white", fontweight="bold")
    ax.vlines(range(len(BARS)), *(cells["value"] + k * cells["sd"] for k in (-1, 1)), "black")
    if cells["sd"].notna().any():
        ax.vlines([], [], [], "black", label="one standard deviation over seeds")
    return ax


# %% tags=["compute"]
finished = prslib.run_all(planned, device=settings.device)
rows = tables.final(tables.scores_of(finished, "loss", "draw"), WAYS)
rows = rows[(rows["measure"] == "score") & (rows["group"] == "overall")]
arms = [name_arm(*key) for key in rows[["method", "loss", "draw"]].itertuples(index=False)]
rows = rows.assign(method=arms)
means = rows.groupby(["dataset", "test_set", "method", "metric"], sort=False)["value"]
settings.write(means.agg(value="mean", sd="std", seeds="count").reset_index(), "scores")
settings.write(compare_changes(rows, settings), "changes")
settings.write(compare_losses(rows, settings), "losses")

# %%
means = settings.table("scores")
count = len(settings.dataset)
shape = {"figsize": (11, 0.9 + 2.6 * count), "sharex": True, "squeeze": False}
figure, axes = plt.subplots(count, 3, **shape)
for line, name in zip(axes, settings.dataset, strict=True):
    bars = {arm: bar for bar, arm in name_bars(settings, name).items()}
    alike = means[(means["dataset"] == name) & (means["test_set"] == BALANCED)]
    alike = alike.assign(bar=alike["method"].map(bars)).dropna(subset="bar")
    for ax, metric in zip(line, ("mAP", "C-F1", OWN), strict=True):
        plot_bars(alike[alike["metric"] == metric], ax)
        title = SHOWN[BALANCED, metric].removesuffix(", balanced test")
        ax.set(title=f"{name}:\n{title}", ylabel="score (%)")
without, memory = settings.method[:2]
title = f"Overall scores with {memory} instead of {without}, another loss or both, balanced test"
settings.show(figure, "scores", f"{title}, {settings.say_seeds()}", narrow=1)

# %% [markdown]
# ## What each change moves
#
# Each row of the tables shows by how many points a change raises or lowers the overall scores, with
# 95 % intervals. Significant differences are in bold. Three rows involve two changes:
#
# - *memory and loss* changes both the memory and the loss;
# - *memory, with the loss* changes the memory from CRS to PRS, with the chosen loss both before and
#   after;
# - *loss, with the memory* changes the loss from the plain loss to the chosen loss, with the memory
#   of PRS both before and after.
#
# In these tables, mAP and C-F1 are measured on a balanced test, whereas O-F1 is measured on an
# *imbalanced* test, which has about the same class mix as the stream, except on
# [icons](../docs/other_streams.md). Because the majority classes dominate O-F1 on the imbalanced
# test, a change that helps rare classes can lower O-F1.

# %%
changes = settings.table("changes")
for name in settings.dataset:
    of_set = changes[changes["dataset"] == name]
    table = lay_out(of_set, ["change"])
    alike = of_set[of_set["test_set"] == BALANCED]
    clearly = alike.pivot(index="change", columns="metric", values="clearly")
    table["the change moves"] = [say_moved(clearly.loc[change]) for change in table.index]
    text = f"**{name}**, chosen loss: {choose_loss(settings, name)}"
    display(Markdown(answers.name_streams(text)), table.style)

# %% [markdown]
# ## Every loss
#
# The table shows, for each sampler, by how many points the overall scores change if the plain loss
# is replaced by another loss. Replayed samples are drawn uniformly from the memory.

# %%
lay_out(settings.table("losses"), ["dataset", "loss", "method"]).style

# %% jupyter={"source_hidden": true} tags=["answer"]
alike = changes[changes["test_set"] == BALANCED]
cells = alike.set_index(["dataset", "change", "metric"])
gain = cells["difference"].map("{:+.1f}".format)


def say_gains(change: str, metric: str) -> str:
    """Say how many points a change gains in a metric on each data set."""
    gains = [f"{gain[name, change, metric]} points on {name}" for name in settings.dataset]
    return f"by {answers.join_words(gains)}"


without, memory = settings.method[:2]
losses = sorted({choose_loss(settings, name) for name in settings.dataset})
sentences = [
    f"On the balanced test, replacing the memory of {without} by the memory of {memory} changes C-F1 at the tuned threshold {say_gains('memory', OWN)}.",
    f"The chosen loss ({answers.join_words(losses)}) changes this score {say_gains('loss', OWN)}.",
    f"Memory and loss together change this score {say_gains('memory and loss', OWN)}.",
    f"At the threshold of 0.5, the memory changes C-F1 {say_gains('memory', 'C-F1')}.",
    f"At this threshold, the loss changes C-F1 {say_gains('loss', 'C-F1')}.",
]
settings.write_answer(" ".join(sentences), answers.first_set(changes)["dataset"].iloc[0])
