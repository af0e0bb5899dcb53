# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,-all
#     formats: ipynb,py:percent
#     notebook_metadata_filter: kernelspec,jupytext,-all
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do the conclusions depend on the pretrained weights?
#
# The paper's networks start from weights trained on ImageNet, whose classes include most of COCO's,
# and learn in all their layers. On `cocoseq-mini` the pretrained network is frozen instead. How far
# do results depend on that? The paper does not ask. This notebook trains methods of **Table 1** on
# `digits70seq`, a **stand-in** for COCOseq of coloured digits, where a small convolutional network
# can be trained end to end. It changes what the network begins with, and what of it stays.
#
# `random` weights know nothing. `digits` were trained on 20,000 scenes of the stream's ten
# digits, in seven colours that no stream has; there are five trainings, and each seed takes its
# own. With *frozen* all layers but the head stay as they began. `turned digits`, in the seeds
# profile, were trained on the same scenes with every digit turned by a quarter, so that the
# stream's shapes are new to them. All are part of the package; `studies/pretrain.py` trains
# them again. The paper profile compares random weights with ImageNet's, on COCOseq.
#
# The paper freezes the network of EWC up to its last layer, as it works poorly otherwise. Here EWC
# trains all layers, as the other methods do, except where *frozen* stands. The strength of its
# penalty is the same.
#
# *A minute on two cores, nothing the second time.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds, laptop or paper: whose folder the figures go to
dataset: list = ["digits70seq"]  # one or more data sets
rhos: list = [0.0]  # power of allocation of PRS, one for each data set
begun_with: list = ["none", "digits", "digits"]  # weights: none, a name or a file
frozen_stages: list = [0, 0, 3]  # stages of the network that stay as they began, of each weights
method: list = ["CRS", "PRS", "EWC"]  # CRS and PRS among them
seeds: list = [0]  # one run of every method for each
device: str = "cpu"  # cpu or cuda

# %%
from prslib.report import pretraining

settings = pretraining.Settings.read(globals())
configs = pretraining.runs(settings)
settings

# %%
import matplotlib.pyplot as plt
from IPython.display import Markdown, display

from prslib import run_all
from prslib.report.style import STYLE, join_panels
from prslib.training.grids import seeds_told

plt.style.use(STYLE)
runs, count = run_all(configs, device=settings.device), seeds_told(settings.seeds)

# %%
import pandas as pd

from prslib.report.tables import beside, final, scores_of

rows = beside(final(scores_of(runs, weights=pretraining.beginning)), "main")
rows.drop(columns=["rho", "memory_size"]).head(3).round(1)

# %% [markdown]
# ## What the weights were trained on
#
# The first row shows images of the stream. Each further row shows what the weights that come with
# the package were trained on: scenes with one to four of 70 classes, all equally frequent. Their
# handwritten originals are those of the streams' training scenes. No digit of a test scene was
# used.

# %%
from prslib.report.datasets import plot_sample

frame, images = pretraining.example_scenes(settings.begun_with, settings.dataset[0], 8)
figure, axes = plt.subplots(len(frame) // 8, 8, figsize=(11, 0.22 * len(frame)), squeeze=False)
for ax, image, labels in zip(axes.flat, images, frame["labels"], strict=True):
    plot_sample(image, labels, ax)
for ax, source in zip(axes[:, 0], frame["source"].unique(), strict=True):
    ax.set_ylabel(source)
settings.save(figure, frame, "scenes")

# %% [markdown]
# ## Table 1, by starting weights
#
# The tables give percent after the last task, on the balanced test sets of all tasks. The paper's
# networks always start from ImageNet's weights.

# %%
from prslib.report.tables import average, main_tables

cells = beside(average(rows.drop(columns=["stands_for", "published"])), "main")
settings.save(None, cells, "table")
for name in settings.dataset:
    display(Markdown(f"**{name}**, beside the paper's {cells['stands_for'].iloc[0]}"))
    display(*main_tables(cells, name, by=["weights"]))

# %% [markdown]
# ## What PRS gains and what it costs
#
# The picture shows PRS minus CRS by class group. Marks are means over seeds, strokes go from the
# lowest to the highest seed, and the dashed line is the paper's difference.

# %%
from prslib.report.style import plot_gaps
from prslib.report.tables import seed_gaps

gaps = seed_gaps(rows, "PRS", "CRS", by=["weights"])
for name in settings.dataset:
    shown = gaps[gaps["dataset"] == name]
    figure, axes = plt.subplots(2, 1, figsize=(9, 6.6))
    for ax, metric in zip(axes, ["C-F1", "mAP"], strict=True):
        plot_gaps(shown[shown["metric"] == metric], ax, metric)
    join_panels(figure, f"{name}: PRS minus CRS by what the network began with, {count}")
    settings.save(figure, shown, f"gaps_{name}")

# %%
from prslib.report.tables import MAIN_METRICS, contrasts, in_short

where = [(group, metric) for group in ("majority", "minority", "overall") for metric in MAIN_METRICS]
differences = contrasts(rows, "PRS", "CRS", where, by=["weights"])
settings.save(None, differences, "prs_minus_crs")
display(Markdown(in_short(differences)))

# %% [markdown]
# The next cell compares this difference between starting weights, seed by seed.

# %%
first, *others = gaps["weights"].unique()
by_weights = gaps.assign(method=gaps["weights"], published=float("nan"))
pairs = [contrasts(by_weights, name, first, where).assign(weights=name) for name in others]
moved = pd.concat(pairs, ignore_index=True)
settings.save(None, moved, "shifts")
display(Markdown(in_short(moved)))

# %% [markdown]
# ## Every method
#
# The picture shows overall scores by starting weights. Strokes go from the lowest to the highest
# seed. The paper's scores are on the right. They are from another data set, so only the order of
# the methods can be compared.

# %%
ours = rows.query("group == 'overall' and measure == 'score'")
theirs = ours.dropna(subset="published").drop_duplicates(["dataset", "method", "metric"])
theirs = theirs.assign(weights="ImageNet [paper]", value=float("nan"))
overall = pd.concat([ours.assign(published=float("nan")), theirs], ignore_index=True)

# %%
from prslib.report.style import plot_variations

figure, axes = plt.subplots(2, len(settings.dataset), figsize=(11, 6.6), squeeze=False)
for column, name in zip(axes.T, settings.dataset, strict=True):
    for ax, metric in zip(column, ["C-F1", "mAP"], strict=True):
        shown = overall[(overall["dataset"] == name) & (overall["metric"] == metric)]
        plot_variations(shown, ax, "weights", metric).set_title(name)
    ax.set_xlabel("what the network began with")
join_panels(figure, f"Overall, by what the network began with, {count}")
settings.save(figure, overall, "overall")

# %% [markdown]
# ## Which claims depend on the weights?
#
# The next cell tests the claims of [`ledger`](ledger.ipynb) that these runs decide, once for each
# start. The first table counts the verdicts. The second shows the claims whose
# verdict differs: the effect, above 0 where the claim is right, its 95 % interval over seeds, and
# the verdict.

# %%
from prslib.report import ledger

decided = pretraining.by_weights(runs, configs)
settings.save(None, decided, "claims")
display(decided.groupby(["weights", "verdict"], sort=False).size().unstack(fill_value=0))
display(Markdown(ledger.as_markdown(pretraining.differing_verdicts(decided))))
