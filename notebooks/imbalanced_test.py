# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does PRS also win on an imbalanced test set?
#
# In the test set of the paper's main table, class sizes differ much less than in the stream
# (*balanced test*). In its appendix, the paper also tests on images with about the class mix of
# the stream (*imbalanced test*). For this second test, the paper sets the power $\rho$ of
# Partitioning Reservoir Sampling (PRS) to 0.5. PRS assigns each class a share of the memory that
# is proportional to the class frequency raised to the power $\rho$. With $\rho = 0$ the shares are
# equal, whereas with 0.5 the memory is balanced only in part. The paper reports "PRS with
# $\rho=0.5$ performing better than all the other baselines while remaining very competitive on
# the majority" (its **Table "Imbalanced test-set comparison"**).
#
# The [profile](../docs/quickstart.md#profiles) `quick` runs on `cocoseq-mini`: 6 % of the **real
# COCOseq images**, as features of a frozen EfficientNet-Lite0. Each [method](main_results.ipynb)
# trains a network of two layers on these features, whereas the paper trains a ResNet-101 end to
# end on all images. The test uses 579 images of COCOseq's imbalanced test set. The profile
# `seeds` adds `reutersseq`, another real stream, which contains news articles of Reuters-21578.
#
# *With the profile `quick`, the notebook takes half a minute on two cores.*

# %% tags=["parameters"]
profile: str = "quick"  # name of the profile; -f params/PROFILE/NOTEBOOK.yaml chooses another one
dataset: list[str] = ["cocoseq-mini"]  # one or more data sets with both kinds of test set
rho: float = 0.5  # power of allocation of PRS that the paper chooses for the imbalanced test
balanced_rho: float = None  # power for the balanced test, None for each data set's default
method: list[str] = ["CRS", "GSS", "ExStream"]  # methods that PRS is compared with, without PRS; must include CRS
memory_size: int = None  # samples in memory, None for each data set's default
seeds: list[int] = [0, 1]  # one run of every method for each seed
few_seeds: dict[str, int] = {}  # methods and data sets that are run with only the first few seeds
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["runs"]
from prslib.report.grids import check_compared, check_labels, configs_of


def runs(settings):
    """List a run of every method for each seed, and of PRS with both powers."""
    check_labels(settings.dataset, one=False)
    check_compared(settings.method, "CRS")
    fixed = {"few_seeds": settings.few_seeds, "dataset": settings.dataset}
    fixed |= {"memory_size": settings.memory_size}
    powers = [settings.rho, settings.balanced_rho]
    others = configs_of(settings.method, settings.seeds, **fixed)
    return others + configs_of(["PRS"], settings.seeds, rho=powers, **fixed)


# %% jupyter={"source_hidden": true} tags=["functions"]
import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import Markdown

import prslib
from prslib.report import answers, notebook, style, tables
from prslib.report.style import STYLE
from prslib.report.tables import BALANCED, IMBALANCED

# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("imbalanced_test", globals())
planned = runs(settings)
settings

# %% [markdown]
# ## The table
#
# The tables show scores in percent, as means and standard deviations over seeds. The scores are
# measured after the last task on the imbalanced test. By default, PRS
# uses $\rho = 0.5$, as in the paper.

# %% tags=["compute"]
finished = prslib.run_all(planned, device=settings.device)
rows = tables.final(tables.scores_of(finished, tests=[IMBALANCED, BALANCED]))
has_rho = rows["rho"].isna() | (rows["rho"] == settings.rho)
chosen = rows[has_rho & (rows["test_set"] == IMBALANCED) & (rows["measure"] == "score")]
chosen = tables.merge_published(chosen, "imbalanced_test")
settings.write(tables.average(chosen), "table")

# %%
settings.show_tables("table")

# %% [markdown]
# ## PRS against each other method
#
# The picture shows the score of PRS minus the score of each other method on the imbalanced test.
# Differences are computed between runs with the same seed. A difference is significant if its
# whole 95 % interval is on one side of 0. Unlike the verdicts in the [`ledger`](ledger.ipynb),
# these intervals are not corrected for the number of claims. O-F1 is dominated by the majority
# (frequent) classes, because it pools the predictions of all classes.

# %% tags=["compute"]
gaps = tables.contrast_each(chosen, "PRS", settings.method, ["overall", "majority"])
settings.write(gaps, "prs_minus_others")

# %%
against = settings.table("prs_minus_others")
panels = against.sort_values("dataset", kind="stable")
names = ", ".join(panels["dataset"].unique())
panels = panels.assign(dataset=panels["dataset"] + ", " + panels["group"])
title = f"{names}: scores of PRS with rho {settings.rho:g} minus scores of each other method"
figure = style.contrast_panels(panels, title, "than")
settings.show(figure, "prs_minus_others")
display(Markdown(tables.in_short(against)))

# %% [markdown]
# ## Both powers on both tests
#
# The paper uses a different $\rho$ for each test set: a value near 0 for the balanced test, and
# 0.5 for the imbalanced test. In the table, PRS is evaluated with both values of $\rho$ on both
# test sets. Each cell contains an overall score of PRS minus the same score of conventional
# reservoir sampling (CRS), in points, with the 95 % interval of this difference. Significant
# differences are in bold.

# %% tags=["compute"]
scored = rows[rows["measure"] == "score"]
by_power = []
for power in rows["rho"].dropna().unique():
    pair = scored[scored["rho"].isna() | (scored["rho"] == power)]
    by_power.append(tables.contrasts(pair, "PRS", "CRS").assign(rho=power))
settings.write(pd.concat(by_power, ignore_index=True), "powers")

# %%
powers = settings.table("powers")
powers["rho"] = powers["rho"].map("{:g}".format)
tables.pivot_differences(powers, ["dataset", "test", "rho"], "metric").style

# %% jupyter={"source_hidden": true} tags=["answer"]
sentences = []
for metric in ("mAP", "O-F1"):
    row = answers.find_smallest(against, group="overall", metric=metric, than="CRS")
    words = {"what": metric, "method": f"PRS with rho {settings.rho:g}"}
    sentences.append(answers.describe_difference(row, **words))
where = f"On the imbalanced test of {row['dataset']}"
settings.write_answer(f"{where}, {' '.join(sentences)}", row["dataset"])
