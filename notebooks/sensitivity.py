# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do the findings survive other settings?
#
# The [main results](main_results.ipynb) use one value of each setting. This notebook changes one
# setting at a time:
#
# | setting | standard | changed to |
# | --- | --- | --- |
# | step size | as in the main results | 1/3 or 3 times as large |
# | memory size | as in the main results | 1/4 or 4 times as large |
# | updates per batch | 1 | 3 |
# | epochs | 1 | 3, with samples stored only in the first epoch |
# | replayed samples per step | 10 | 50 |
# | epsilon of Adam | 1e-8, as in the released code | 1e-4, as in the paper |
#
# In each setting, the samplers CBRS, PRS and OCDM, which balance the memory, are compared with CRS,
# which keeps the class mix of the stream.
#
# A difference between a sampler and CRS *survives* a changed setting if the mean difference has
# the same sign as in the standard setting. This rule was fixed before the runs were made
# ([rules](../docs/what_holds.md)). The [profile](../docs/quickstart.md#profiles) `quick` tests
# two of these settings on `reutersseq`, a stream of news articles.
#
# *With the profile `quick`, the notebook takes half a minute on two cores.*

# %% tags=["parameters"]
profile: str = "quick"  # name of the profile; -f params/PROFILE/NOTEBOOK.yaml chooses another one
dataset: list[str] = ["reutersseq"]  # one or more data sets
method: list[str] = ["CBRS", "PRS"]  # samplers that are compared with CRS
powers: list[float] = []  # further powers of allocation of PRS
settings_changed: list[str] = ["step size x 3", "memory x 1/4"]  # keys of SETTINGS below
tuned_threshold: list[str] = ["CRS", "PRS"]  # methods trained a second time to tune their threshold, as in main_results
seeds: list[int] = [0, 1]  # one run of every method and setting for each seed
few_seeds: dict[str, int] = {}  # methods and data sets that are run with only the first few seeds
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["runs"]
from itertools import chain

from prslib import DATASETS
from prslib.checks import one_of
from prslib.report.grids import check_labels, sampler_runs

# a field of RunConfig for each setting, with its new value or, if the name contains " x ",
# the factor by which the data set's standard value is multiplied
SETTINGS = {
    "step size x 1/3": ("learning_rate", 1 / 3),
    "step size x 3": ("learning_rate", 3),
    "memory x 1/4": ("memory_size", 1 / 4),
    "memory x 4": ("memory_size", 4),
    "3 updates per batch": ("updates", 3),
    "3 epochs": ("epochs", 3),
    "50 replayed samples": ("replay_batch_size", 50),
    "Adam's epsilon 1e-4": ("adam_eps", 1e-4),
}
STANDARD = "standard"


def changed(dataset: str, setting: str) -> dict:
    """Return the field that a setting changes, and its value on a data set."""
    if setting == STANDARD:
        return {}
    field, value = SETTINGS[one_of("setting", setting, SETTINGS)]
    if " x " in setting:
        value *= getattr(DATASETS[dataset].recipe, field)
    return {field: round(value) if field == "memory_size" else value}


def runs_by_setting(settings):
    """List the runs of each setting, the standard setting first."""
    check_labels(settings.dataset, one=False)
    return {
        setting: [
            config
            for name in settings.dataset
            for config in sampler_runs(settings, [name], settings.seeds, **changed(name, setting))
        ]
        for setting in [STANDARD, *settings.settings_changed]
    }


def runs(settings):
    """List the runs of all settings."""
    return list(chain(*runs_by_setting(settings).values()))


# %% jupyter={"source_hidden": true} tags=["functions"]
from functools import partial

import ipywidgets
import matplotlib.pyplot as plt
import pandas as pd

import prslib
from prslib.report import answers, notebook, style, tables
from prslib.report.style import HUES, STYLE, styles_of
from prslib.report.tables import BALANCED, IMBALANCED, TEST_WORDS

# the scores that this notebook shows
CELLS = [("mAP", BALANCED), ("C-F1", BALANCED), ("O-F1", IMBALANCED)]

# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("sensitivity", globals())
planned = runs_by_setting(settings)
settings

# %% [markdown]
# ## Each sampler minus CRS, setting by setting
#
# Differences are computed between runs with the same seed, and their 95 % intervals account for
# the variance over seeds and test samples. mAP and C-F1 ([metrics](../docs/metrics.md)) are
# measured on a *balanced* test set, in which class sizes differ much less than in the stream.
# O-F1 is measured on an *imbalanced* test set, which has about the class mix of the stream,
# except on [icons](../docs/other_streams.md). The picture shows the first sampler of the
# parameter `method`. If you run the notebook, a menu selects another sampler.

# %% tags=["compute"]
frames = []
for setting, configs in planned.items():
    finished = prslib.run_all(configs, device=settings.device)
    rows = tables.final(tables.scores_of(finished))
    rows = tables.label_powers(rows, settings.powers)
    others = [name for name in rows["method"].unique() if name != "CRS"]
    gaps = tables.contrast_each(rows, others, "CRS")
    frames.append(gaps.assign(setting=setting))
gaps = pd.concat(frames, ignore_index=True)
gaps = gaps[gaps.set_index(["metric", "test_set"]).index.isin(CELLS)]
settings.write(gaps.drop(columns=["sentence", "group"]), "minus_crs")


# %% jupyter={"source_hidden": true} tags=["functions"]
def is_turned(cells: pd.DataFrame) -> pd.Series:
    """Tell which differences of a sampler have another sign than in the standard setting."""
    usual = cells[cells["setting"] == STANDARD].set_index("dataset")["difference"]
    return cells["difference"] * cells["dataset"].map(usual) <= 0


def plot_settings(cells: pd.DataFrame, ax: plt.Axes, look: dict) -> plt.Axes:
    """Draw a sampler minus CRS: one row per stream, in which the settings are below each other."""
    names, every = list(cells["dataset"].unique()), list(cells["setting"].unique())
    line = cells["setting"].map(every.index) / len(every) - 0.5 + 0.5 / len(every)
    cells = cells.assign(place=cells["dataset"].map(names.index) + 0.85 * line)
    standard, turned = cells["setting"] == STANDARD, is_turned(cells)
    kinds = {
        "standard setting": (standard, look | {"markersize": 7, "linewidth": 2}),
        "other setting, same sign": (~standard & ~turned, {"color": "0.6", "marker": "o"}),
        "other setting, other sign": (~standard & turned, {"color": HUES[1], "marker": "X"}),
    }
    for name, (chosen, mark) in kinds.items():
        mark = {"linewidth": 1, "markersize": 5} | mark
        shown = cells[chosen]
        ax.hlines(shown["place"], shown["low"], shown["high"], mark["color"], linewidth=mark["linewidth"])
        ax.plot(shown["difference"], shown["place"], **mark | {"linestyle": "", "label": name})
    ax.axvline(0, color="black", linewidth=0.8)
    style.name_rows(ax, names)
    ax.grid(axis="y", visible=False)
    return ax


def draw_settings(gaps: pd.DataFrame, method: str) -> plt.Figure:
    """Draw a sampler minus CRS in all settings, with a panel for each score."""
    height = 1.6 + gaps["dataset"].nunique()
    figure, axes = plt.subplots(1, len(CELLS), figsize=(11, height), sharey=True)
    for ax, (metric, test_set) in zip(axes, CELLS, strict=True):
        cells = gaps[(gaps["method"] == method) & (gaps["metric"] == metric)]
        plot_settings(cells, ax, styles_of([method])[method])
        ax.set(title=f"{metric}, {TEST_WORDS[test_set]}", xlabel="minus CRS (points)")
    title = f"{method} minus CRS in the standard and in other settings"
    style.join_panels(figure, f"{title}, {settings.say_seeds(intervals=True)}")
    return figure


# %%
gaps = settings.table("minus_crs")
draw = partial(draw_settings, gaps)
menu = ipywidgets.Dropdown(options=gaps["method"].unique())
settings.show(draw(settings.method[0]), "minus_crs", narrow=1, redraw=draw, method=menu)


# %% [markdown]
# ## What survives
#
# Each row is about one sampler, stream and score. The columns are:
#
# - `standard`: mean difference from CRS in the standard setting, with its 95 % interval from `low`
#   to `high`;
# - `settings`: number of other settings;
# - `survives`: number of these other settings in which the difference has the same sign as in the
#   standard setting;
# - `turns`: names of the other settings in which the sign is opposite, in capitals if the
#   difference is significant there.

# %% jupyter={"source_hidden": true} tags=["functions"]
def survivors(gaps: pd.DataFrame) -> pd.DataFrame:
    """Count the settings that keep the sign of the standard setting, and name the others."""
    table = []
    keys = ["dataset", "test_set", "metric", "method"]
    for key, cells in gaps.groupby(keys, sort=False):
        usual = cells[cells["setting"] == STANDARD].iloc[0]
        is_other = cells["setting"] != STANDARD
        others, turned = cells[is_other], cells[is_other & is_turned(cells)]
        clear = turned["clearly"] != ""
        row = dict(zip(keys, key, strict=True)) | {"standard": usual["difference"]}
        row |= {"low": usual["low"], "high": usual["high"], "settings": len(others)}
        row["survives"] = len(others) - len(turned)
        row["turns"] = "; ".join(turned["setting"].mask(clear, turned["setting"].str.upper()))
        table.append(row)
    return pd.DataFrame(table)


# %% tags=["compute"]
settings.write(survivors(settings.table("minus_crs")), "survives")

# %%
survives = settings.table("survives")
pd.set_option("display.max_colwidth", None)
display(survives.replace({"test_set": TEST_WORDS}).round(1))

# %% jupyter={"source_hidden": true} tags=["answer"]
counts, shares = [], []
first = settings.method[0]
for metric, test_set in CELLS:
    rows = survives[(survives["method"] == first) & (survives["metric"] == metric)]
    kept = f"{rows['survives'].sum()} of {rows['settings'].sum()}"
    cases = "" if counts else " cases"
    counts.append(f"in {kept}{cases} for {metric} ({TEST_WORDS[test_set]})")
    shares.append(rows["survives"].sum() / rows["settings"].sum())
word = "Yes" if min(shares) == 1 else "Mostly" if min(shares) > 0.5 else "Only in part"
sentence = f"{word}. A case is one changed setting on one stream. The sign of {first} minus CRS is the same as"
settings.write_answer(f"{sentence} in the standard setting {answers.join_words(counts)}.")
