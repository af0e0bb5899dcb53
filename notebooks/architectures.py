# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does the choice of network matter?
#
# For its main table, the paper trains a plain ResNet-101. The paper's appendix adds two networks
# that were designed for images with several labels:
#
# - *Attention Consistency* (AC, Guo et al. 2019) requires a network to attend to the same place of
#   an image when the image is flipped or scaled.
# - *RNN-Attention* (RA, Wang et al. 2017) looks at five regions of the image one after another and
#   keeps, for each class, the highest score of all regions.
#
# For the **table of base architectures**, the paper trains all three networks offline for 1 and for
# 10 epochs (*Multitask*: all tasks shuffled together). The networks are scored on a balanced and on
# an imbalanced test set. The **tables "AC architecture" and "RA architecture"** list the scores of
# the [online methods](main_results.ipynb) with AC and RA. The paper finds that the plain network is
# best if every image is seen only once. It also finds that, with every network, Partitioning
# Reservoir Sampling (PRS) scores higher than all other online methods, such as conventional
# reservoir sampling (CRS).
#
# The [profile](../docs/quickstart.md#profiles) `seeds` runs on `digits70seq`, a **synthetic data
# set** of handwritten digits, with all three networks and five seeds. A small convolutional
# network, `convnet`, replaces ResNet-101, and AC and RA are built upon `convnet`. The plain
# network is trained offline for 1 and for 2 epochs, whereas the paper uses 1 and 10 epochs. AC
# and RA are trained offline for 1 epoch only. The profile `quick` omits AC and uses a tiny part
# of the data. It has only one seed, so it allows no conclusion.
#
# *With the profile `quick`, the notebook takes half a minute on two cores.*

# %% tags=["parameters"]
profile: str = "quick"  # name of the profile; -f params/PROFILE/NOTEBOOK.yaml chooses another one
dataset: list[str] = ["digits70tiny"]  # one or more data sets with both test sets
model: list[str] = ["convnet", "convnet_rnn_attention"]  # networks, the plain one first
frozen_stages: list[int] = [1, 0]  # number of frozen stages of each model
learning_rates: list[float] = [None, 0.0005]  # step size of each model, None for the data set's default
costly_models: list[str] = ["convnet_rnn_attention"]  # networks that are trained for only 1 epoch
weights: str = None  # initial weights: none, a published name or a file; None for each model's default
epochs: list[int] = [1, 2]  # numbers of epochs of Multitask, 1 and 10 in the paper
method: list[str] = ["CRS", "PRS"]  # in addition to Multitask; must include CRS and PRS; EWC and GSS need a plain network
rho: float = None  # power of allocation of PRS and OCDM, None for each data set's default
seeds: list[int] = [0]  # one run for each seed
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["runs"]
from prslib import METHODS, MODELS
from prslib.checks import one_of
from prslib import configs
from prslib.report.grids import check_compared, zip_fields

OFFLINE = "Multitask"


def runs(settings):
    """List one-epoch runs of the methods and all runs of Multitask, scored on both test sets.

    Costly models are trained only for the smallest number of epochs.
    """
    check_compared(settings.method, "CRS", "PRS")
    online = [name for name in METHODS if name != OFFLINE]
    for name in settings.method:
        one_of("method other than Multitask", name, online)
    for name in settings.costly_models:
        one_of("model", name, MODELS)
    networks = zip_fields(
        model=settings.model,
        frozen_stages=settings.frozen_stages,
        learning_rate=settings.learning_rates,
    )
    fixed = {"dataset": settings.dataset, "weights": settings.weights}
    fixed |= {"seed": settings.seeds, "rho": settings.rho}
    plain, *others = networks
    # the plain network is frozen in the table of networks, but not in the tables of methods
    also = [OFFLINE] if plain["frozen_stages"] else []
    thawed = plain | {"frozen_stages": 0}
    made = configs(method=[*settings.method, *also], **thawed, **fixed)
    for network in others:
        made += configs(method=settings.method, **network, **fixed)
    for epochs in sorted(settings.epochs, reverse=True):
        fewest = epochs == min(settings.epochs)
        for network in networks:
            if fewest or network["model"] not in settings.costly_models:
                made += configs(method=OFFLINE, epochs=epochs, **network, **fixed)
    return made


# %% jupyter={"source_hidden": true} tags=["functions"]
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import prslib
from prslib.report import answers, notebook, tables
from prslib.report.style import STYLE
from prslib.report.tables import MAIN_METRICS

# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("architectures", globals())
planned = runs(settings)
settings


# %% [markdown]
# ## The networks
#
# AC processes each image and its mirror image at two scales, whose ratio is 9 to 8. The attention
# map of a class is a weighted sum of the feature maps; the weights are the last layer's weights for
# this class. The loss of AC has two parts. The first part is small if a mirrored image gives a
# mirrored attention map and if both scales give the same attention map. This part trains only the
# layers below the last one. The second part is a cross-entropy in which the weight of a label
# depends on how frequent its class is. In this notebook, the class frequencies are computed over
# all samples used for training so far, whereas the original AC uses the frequencies in the whole
# training set.
#
# RA reads five regions of the feature map with an LSTM. At first, the regions lie in the middle of
# the map and in its four quarters, and each is half as wide and half as high as the map. The
# network learns to move and resize the regions. The paper pretrained RA on ImageNet "to obtain
# sensible results", whereas in this notebook only the part below the LSTM is pretrained. On
# synthetic data, RA is trained with a quarter of the default step size, because in earlier runs
# with the default step size, its scores fell in the second epoch.
#
# Because of memory limits of its hardware, the paper froze the layers of AC up to and including the
# first residual block. For the table of base architectures, the paper froze the same layers of the
# plain network. In both cases, this notebook freezes the first of `convnet`'s three convolutions.

# %% jupyter={"source_hidden": true} tags=["functions"]
def rows_of(runs: list[prslib.Run]) -> pd.DataFrame:
    """Return the final scores of runs with several networks (Appendix, "Base Architectures")."""
    rows = tables.final(tables.scores_of(runs, "model", "epochs", "frozen_stages"))
    many = rows["epochs"] > 1
    paper = np.where(many, 10, 1)
    ours = rows["epochs"].astype(str) + np.where(many, " epochs", " epoch")
    theirs = np.where(rows["epochs"] != paper, " (paper 10)", "")
    return rows.assign(
        architecture=rows["model"].map(lambda name: MODELS[name].stands_for),
        network=rows["model"].map(_network),
        paper_epochs=paper,
        setting=ours + theirs,
    )


def _network(model: str) -> str:
    """Return a network's name with what is built upon it or with the network it replaces."""
    plain, _, built = model.partition("_")
    theirs = MODELS[model].stands_for
    if theirs is None:
        return model
    return f"{plain} with {theirs}" if built else f"{plain} [{theirs}]"


def beside_offline(rows: pd.DataFrame) -> pd.DataFrame:
    """Join Multitask's overall scores and the paper's table of base architectures (Appendix)."""
    rows = rows[(rows["method"] == OFFLINE) & (rows["group"] == "overall")]
    chosen = _frozen(rows, "max")
    ours = chosen.assign(epochs=chosen["paper_epochs"])
    table = tables.merge_published(ours, "architectures", also=["architecture", "epochs"])
    return table.assign(epochs=chosen["epochs"].to_numpy())


def plain_first(rows: pd.DataFrame) -> pd.DataFrame:
    """Sort rows as in the paper's tables: the plain network and one epoch first."""
    models = [row.stands_for for row in MODELS.values()]
    place = rows["architecture"].map(models.index, na_action="ignore")  # NaN is sorted last
    rows = rows.assign(place=place)
    rows = rows.sort_values(["place", "epochs", "test_set"], kind="stable")
    return rows.drop(columns="place").reset_index(drop=True)


def _frozen(rows: pd.DataFrame, which: str) -> pd.DataFrame:
    """Choose each network's rows with the most ("max") or the fewest ("min") frozen stages."""
    count = rows["frozen_stages"]
    return rows[count == count.groupby(rows["model"]).transform(which)]


# %% tags=["compute"]
finished = prslib.run_all(planned, device=settings.device)
rows = rows_of(finished)
offline = plain_first(beside_offline(rows))
settings.write(offline, "offline")


# %% [markdown]
# ## Offline: one or more epochs, two test sets
#
# The tables show the overall scores of Multitask in percent. In a *balanced* test, class sizes
# differ much less than in the stream. An *imbalanced* test has about the class mix of the stream.
# The paper's number of epochs is given in parentheses if it differs from ours. `convnet` is
# followed, in square brackets, by the name of the network that it replaces.

# %% jupyter={"source_hidden": true} tags=["functions"]
def offline_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Lay out the table of base architectures with our and the paper's numbers (Appendix)."""
    cells = rows.rename(columns={"value": "ours", "published": "paper"})
    by = cells.groupby(["network", "setting", "metric"], sort=False)
    table = by[["ours", "paper"]].mean().unstack("metric", sort=False)
    return table.swaplevel(axis=1)[[*product(MAIN_METRICS, ("ours", "paper"))]].round(1)


# %%
for _, shown in settings.table("offline").groupby(["dataset", "test_set"], sort=False):
    display(notebook.heading(shown), offline_table(shown))

# %% [markdown]
# ## Online: the methods with every network
#
# The paper's numbers for the plain network come from its main table, for which the paper froze no
# layer. The paper prints the C-F1 of Multitask with RA twice, as 39.2 % and as 33.0 %. The table
# below shows the second value.

# %% jupyter={"source_hidden": true} tags=["functions"]
def beside_methods(rows: pd.DataFrame) -> pd.DataFrame:
    """Join our scores and the paper's tables of methods, network by network (Appendix)."""
    rows = rows[rows["epochs"] == 1]
    printed = ("main", "attention_consistency", "rnn_attention")
    return tables.merge_published(_frozen(rows, "min"), *printed, also=["architecture"])


# %% tags=["compute"]
online = plain_first(beside_methods(rows))
settings.write(tables.average(online), "methods")
gaps = tables.contrasts(online, "PRS", "CRS", ["overall", "minority"], by=["network"])
settings.write(gaps, "prs_minus_crs")

# %%
settings.show_tables("methods", by=["network"])

# %% [markdown]
# ## Does PRS lead with every network?
#
# The paper claims that "PRS always performs superior to other baselines no matter the
# architecture". The [`ledger`](ledger.ipynb) tests this claim.

# %%
title = "Overall scores: PRS minus CRS by network"
overall = "group == 'overall'"
gaps = settings.show_contrasts("prs_minus_crs", title, "network", query=overall)

# %% jupyter={"source_hidden": true} tags=["answer"]
first = answers.first_set(gaps)["dataset"].iloc[0]
settings.write_answer(answers.describe_range(gaps, "network"), first)
