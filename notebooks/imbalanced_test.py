# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does PRS also win on an unbalanced test set?
#
# The main table's test set has the same number of images of every class. The appendix also tests on COCOseq's
# unbalanced test images, half of which have a majority label. It sets $\rho$ to 0.5 there and
# reports "PRS with $\rho=0.5$ performing better than all the other baselines while remaining very
# competitive on the majority" (its **Table "Imbalanced test-set comparison"**).
#
# The quick profile runs on `cocoseq-mini`: **real COCOseq images**, 6 % of them, as features of a
# frozen EfficientNet-Lite0 on which each method trains a small head. The images are the paper's,
# the network is not: the paper trains a ResNet-101 end to end on all images. Of COCOseq's
# unbalanced test set 579 images are here. The seeds profile adds `reutersseq`, another real stream:
# the articles of Reuters-21578.
#
# *A few seconds after `main_results`; the second time nothing is trained.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds, laptop or paper
dataset: list[str] = ["cocoseq-mini"]  # one or more data sets with an unbalanced test set
rho: float = 0.5  # power of allocation of PRS that the paper takes for this test set
balanced_rho: float = None  # that of the balanced test set, None for each data set's own
method: list[str] = ["CRS", "GSS", "ExStream"]  # methods beside PRS
memory_size: int = None  # samples in memory, None for each data set's own
seeds: list[int] = [0, 1, 2, 3, 4]  # one run of every method for each
few_seeds: dict[str, int] = {}  # methods and data sets that take only so many of the seeds
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% tags=["runs"]
from prslib import METHODS
from prslib.report.grids import check_compared, configs_of
from prslib.checks import one_of


def runs(settings):
    """List runs scored on both test sets, those of PRS with both powers."""
    check_compared(settings.method, "CRS")
    rivals = [name for name in METHODS if name != "PRS"]
    for name in settings.method:
        one_of("method beside PRS", name, rivals)
    fixed = {
        "few_seeds": settings.few_seeds,
        "dataset": settings.dataset,
        "memory_size": settings.memory_size,
        "test_set": ["imbalanced", "balanced"],
    }
    powers = [settings.rho, settings.balanced_rho]
    others = configs_of(settings.method, settings.seeds, **fixed)
    return others + configs_of(["PRS"], settings.seeds, rho=powers, **fixed)


# %%
from prslib.report.notebook import Settings
from prslib.report.grids import seeds_text

settings = Settings.read("imbalanced_test", globals())
planned = runs(settings)
settings

# %% [markdown]
# ## The table
#
# Mean and standard deviation over seeds, in percent, after the last task, on the unbalanced test
# set. PRS has the $\rho$ that the paper takes for this test set.

# %%
from prslib.report.asked import run_all
from prslib.report.tables import merge_published, final, scores_of

finished = run_all(planned, device=settings.device)
scores = scores_of(finished, "test_set")
rows = final(scores)
asked = rows["rho"].isna() | (rows["rho"] == settings.rho)
scored = (rows["test_set"] == "imbalanced") & (rows["measure"] == "score")
chosen = merge_published(rows[scored & asked], "imbalanced_test")

# %%
from IPython.display import Markdown, display

from prslib.report.notebook import heading
from prslib.report.tables import average, main_tables

cells = average(chosen)
settings.write(cells, "table")
for name in settings.dataset:
    display(heading(name, "unbalanced test set"))
    display(*main_tables(cells, name))

# %%
import matplotlib.pyplot as plt

from prslib.report.style import STYLE, contrast_panels, join_panels, plot_variations
from prslib.report.tables import MAIN_METRICS

plt.style.use(STYLE)

# %%
for name in settings.dataset:
    shown = chosen[chosen["dataset"] == name]
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), sharey=True)
    for ax, metric in zip(axes, MAIN_METRICS, strict=True):
        plot_variations(shown[shown["metric"] == metric], ax, "group", metric)
    seed_text = seeds_text(settings.seeds, settings.few_seeds, name)
    caption = f"rho {settings.rho:g} for PRS, {seed_text}"
    join_panels(figure, f"{name}: unbalanced test images, {caption}")
    settings.show(figure, shown, name, narrow=1)

# %% [markdown]
# ## PRS against each of the others
#
# Differences on the unbalanced test set are taken seed by seed. "Clearly" means that the whole
# interval of the difference is on one side of 0, as in `ledger`.

# %%
import pandas as pd

from prslib.report.tables import contrasts, in_short

pairs = [(group, metric) for group in ["overall", "majority"] for metric in MAIN_METRICS]
others = [contrasts(chosen, "PRS", o, pairs).assign(than=o) for o in settings.method]
against = pd.concat(others, ignore_index=True)
title = "PRS minus each other method, on the unbalanced test set"
panels = against.assign(panel=against["dataset"] + ", " + against["group"])
figure = contrast_panels(panels.sort_values("dataset", kind="stable"), title, "than", down="panel")
settings.show(figure, against, "prs_minus_others")
display(Markdown(in_short(against)))

# %% [markdown]
# ## The effect of the power of allocation
#
# The paper takes another $\rho$ for each test set. It does not show the scores on both sets with
# the same $\rho$. Here both values are tested on both sets. A row is a test set, a column the
# overall score of one method. The runs of one column are the same; only the test set differs. Each
# data set has its own $\rho$ for the balanced test set, so the other's column is empty there.

# %%
overall = rows[(rows["group"] == "overall") & (rows["measure"] == "score")]
power = overall["rho"].map(", rho {:g}".format).where(overall["rho"].notna(), "")
overall = overall.assign(label=overall["method"] + power)
settings.write(overall, "powers")
keys = ["dataset", "metric", "test_set"]
overall.pivot_table("value", keys, "label", sort=False).round(1)

# %%
renamed = overall.assign(method=overall["label"], stands_for="", published=float("nan"))
pairs = [("overall", metric) for metric in MAIN_METRICS]
powers = [one for one in rows["rho"].dropna().unique() if one != settings.rho]
names = [f"PRS, rho {power:g}" for power in (settings.rho, *powers)]
between = [contrasts(renamed, names[0], name, pairs, by=["test_set"]) for name in names[1:]]
between = pd.concat(between, ignore_index=True)
settings.write(between, "power_against_power")
display(Markdown(in_short(between)))

# %% jupyter={"source_hidden": true} tags=["answer"]
from prslib.report.answers import describe_difference, find_smallest, write_answer

row = find_smallest(against, group="overall", metric="mAP", than="CRS")
write_answer(settings, describe_difference(row, what="mAP on that set"), row["dataset"])
