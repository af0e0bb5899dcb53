# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do the conclusions depend on the pretrained weights?
#
# Except with EWC and ExStream, the paper trains all layers of networks that were pretrained on
# ImageNet. The classes of ImageNet include most classes of COCO. In the other notebooks, by
# contrast, the pretrained network for `cocoseq-mini` is frozen. How much do the results depend on
# the initial weights, and how much on freezing? The paper does not investigate this question.
#
# This notebook varies the initial weights and the freezing of a small convolutional network, which
# is trained with several [methods](main_results.ipynb) of the paper's **Table 1**. The stream is
# `digits70seq`, which contains **synthetic images** of coloured digits. Each of its classes has a
# quarter as many samples as the corresponding class of COCOseq.
#
# The initial weights are:
#
# - `random`: not pretrained;
# - `digits`: pretrained on 20,000 synthetic images of the ten digits, in seven colours that occur
#   in no stream;
# - `turned digits` ([profile](../docs/quickstart.md#profiles) `seeds`): pretrained on images of
#   the same kind with every digit rotated by 90 degrees, so that the shapes of the stream are new
#   to the network.
#
# The weights `digits` come from five pretrained networks, which are assigned to the seeds in
# rotation. If a network is *frozen*, all its layers except the last keep their initial weights. The
# pretrained weights are in the folder `data` and can be recreated with `studies/pretrain.py`. The
# profile `paper` uses COCOseq and compares random weights with weights pretrained on ImageNet.
#
# For EWC, the paper freezes all layers but the last, because EWC works poorly otherwise. In this
# notebook, by contrast, EWC trains the same layers as conventional reservoir sampling (CRS) and
# Partitioning Reservoir Sampling (PRS). The strength of EWC's penalty is the same for all initial
# weights.
#
# *With the profile `quick`, the notebook takes one minute on two cores.*

# %% tags=["parameters"]
profile: str = "quick"  # name of the profile; -f params/PROFILE/NOTEBOOK.yaml chooses another one
dataset: list[str] = ["digits70tiny"]  # one or more data sets
rho: float = None  # power of allocation of PRS and OCDM, None for each data set's default
begun_with: list[str] = ["none", "digits", "digits"]  # initial weights: none, a name or a file
frozen_stages: list[int] = [0, 0, 3]  # number of frozen stages of the network, for each of the initial weights
method: list[str] = ["CRS", "PRS", "EWC"]  # methods, which must include CRS and PRS
seeds: list[int] = [0]  # one run of every method for each seed
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["runs"]
from itertools import product

from prslib import configs
from prslib.report.grids import check_compared, check_labels, zip_fields


def runs(settings):
    """List a run of every method and seed for each of the initial weights."""
    check_labels(settings.dataset, one=False)
    check_compared(settings.method, "CRS", "PRS")
    starts = zip_fields(weights=settings.begun_with, frozen_stages=settings.frozen_stages)
    made = []
    for name, start in product(settings.dataset, starts):
        made += configs(
            dataset=name,
            rho=settings.rho,
            **start,
            method=settings.method,
            seed=settings.seeds,
            pretrained_stages=0,  # EWC freezes no more than other methods
        )
    return made

# %% jupyter={"source_hidden": true} tags=["functions"]
import matplotlib.pyplot as plt
import pandas as pd

import prslib
from prslib.models.weights import NONE
from prslib.report import answers, notebook, tables
from prslib.report.style import STYLE

# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("pretraining", globals())
planned = runs(settings)
settings

# %% jupyter={"source_hidden": true} tags=["functions"]
def name_weights(rows: pd.DataFrame) -> pd.DataFrame:
    """Name the initial weights of runs, and whether all layers but the head are frozen."""
    names = rows["weights"].replace(NONE, "random").str.replace("_", " ")
    frozen = rows.pop("frozen_stages").gt(0).map({True: ", frozen", False: ""})
    return rows.assign(weights=names + frozen)

# %% tags=["compute"]
finished = prslib.run_all(planned, device=settings.device)
rows = tables.final(tables.scores_of(finished, "weights", "frozen_stages"))
rows = name_weights(rows)
settings.write(tables.merge_published(tables.average(rows), "main"), "table")

# %% [markdown]
# ## Table 1, by initial weights
#
# The tables show scores in percent after the last task, on the test samples of all tasks. In a
# *balanced* test set, class sizes differ much less than in the stream. An *imbalanced* test set has
# about the same class mix as the stream.

# %%
settings.show_tables("table", by=["weights"])

# %% [markdown]
# ## What PRS gains and what it costs
#
# PRS balances the memory, whereas CRS keeps the class mix of the stream. The picture shows the mAP
# of PRS minus the mAP of CRS in percentage points, for each kind of initial weights. The panels are
# for all classes, the majority classes and the minority classes.

# %% tags=["compute"]
groups = ("majority", "minority", "overall")
both = tables.merge_published(rows, "main")
gaps = tables.contrasts(both, "PRS", "CRS", groups, by=["weights"])
settings.write(gaps, "prs_minus_crs")

# %%
title = "mAP: PRS minus CRS by initial weights"
shown = {"across": "group", "query": "metric == 'mAP'"}
gaps = settings.show_contrasts("prs_minus_crs", title, "weights", **shown)

# %% jupyter={"source_hidden": true} tags=["answer"]
first = answers.first_set(gaps)["dataset"].iloc[0]
settings.write_answer(answers.describe_range(gaps, "weights"), first)
