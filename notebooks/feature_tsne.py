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
# # Does a balanced memory tell the rare classes apart?
#
# The paper's Figure "t-SNE" shows the penultimate features of test images, of a network trained
# with reservoir sampling (CRS) and of one trained with PRS, on MNIST and on COCOseq. It says: "PRS
# can represent the minority classes more discriminatively than CRS on both single-label MNIST and
# multi-label COCOseq experiments."
#
# A picture can be read in many ways. So this notebook also measures in the feature space itself:
# how often the nearest neighbours of an image are of its class, and how far apart the classes lie.
# The quick profile runs on `imbal-digits` with an MLP, a **stand-in** for MNIST, and on
# `cocoseq-mini`, 6 % of the real COCOseq: there the penultimate features are those of the head, 256
# values made of a frozen network's 1,280. The paper prints no number with its figure.
#
# *Half a minute on two cores for the quick profile, a quarter of one the second time.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds, laptop or paper: whose folder the figures go to
dataset: list = ["imbal-digits", "cocoseq-mini"]  # one or more data sets
rhos: list = [0.0, -0.03]  # power of allocation of PRS, one for each data set
method: list = ["CRS", "PRS"]  # which networks look at the images
seeds: list = [0, 1, 2, 3, 4]  # one run of every method for each, the first is drawn
per_class: int = 20  # test images of every class at most
neighbours: int = 5  # how many nearest images vote
shown: int = 3  # classes of every group that have a colour, where not all have one
others: int = 5  # test images of every other class, drawn in grey
device: str = "cpu"  # cpu or cuda

# %%
from prslib.report import feature_tsne

settings = feature_tsne.Settings.read(globals())
configs = feature_tsne.runs(settings)
settings

# %% [markdown]
# ## Which images
#
# The notebook takes the first test images of every class that carry this label alone. An image with
# two labels has no single class to lie near. The paper does not say how it coloured those.

# %%
import matplotlib.pyplot as plt
from IPython.display import Markdown, display

from prslib import run_all
from prslib.report import feature_tsne
from prslib.report.style import STYLE, contrast_panels, join_panels

plt.style.use(STYLE)
runs = run_all(configs, device=settings.device)
shapes = {run.config.dataset: run.features.shape for run in runs}
lines = [f"- {name}: {n} images, {d} features each" for name, (n, d) in shapes.items()]
display(Markdown("\n".join(lines)))

# %% [markdown]
# ## The picture
#
# The picture shows one network of each method, that of the first seed. Each class has a colour, and
# each group a marker: circles for majority, triangles for moderate and stars for minority. Nobody
# can distinguish seventy colours. So with many classes only a few of every group have one: the most
# frequent of the majority, the middle of the moderate, the rarest of the minority. Some images of
# the other classes are grey.

# %%
for name in settings.dataset:
    drawn = [r for r in runs if (r.config.dataset, r.config.seed) == (name, settings.seeds[0])]
    classes = feature_tsne.shown_classes(drawn[0].config, settings.shown)
    plane = feature_tsne.embed(drawn, classes, settings.others)
    figure, axes = plt.subplots(1, len(drawn), figsize=(11, 5.6), squeeze=False)
    for ax, kind in zip(axes[0], settings.method, strict=True):
        feature_tsne.plot_features(plane[plane["method"] == kind], ax, classes).set_title(kind)
    sizes = f"seed {settings.seeds[0]}, up to {settings.per_class} images a class"
    join_panels(figure, f"{name}: penultimate features of test images, {sizes}")
    settings.save(figure, plane, name)

# %% [markdown]
# ## Two measures
#
# Both are taken over all classes, in the feature space and not in the picture. *kNN accuracy* is
# the share of images whose nearest others vote for the right class. Guessing would give one in the
# number of classes. *Silhouette*, times 100, is 100 for classes far apart and 0 where they overlap.
# It is below 0 where images lie nearer to another class than to their own. Marks are means over
# seeds, strokes go from the lowest to the highest seed.

# %%
from prslib.report.style import plot_variations

rows = feature_tsne.separation(runs, settings.neighbours)
for name in settings.dataset:
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.8))
    for ax, metric in zip(axes, ["kNN accuracy", "silhouette"], strict=True):
        shown = rows[(rows["dataset"] == name) & (rows["metric"] == metric)]
        plot_variations(shown, ax, "group", metric)
    axes[0].set_ylim(0, 100)
    axes[1].set_ylabel("silhouette, times 100")
    join_panels(figure, f"{name}: how well classes stand apart, {len(settings.seeds)} seeds")
    settings.save(figure, rows[rows["dataset"] == name], f"separation_{name}")

# %% [markdown]
# ## What holds
#
# The next cell compares PRS with CRS seed by seed. The paper claims that PRS is above for the
# minority. "Above" and "below" mean that the whole interval of the difference is, as in `ledger`.

# %%
from prslib.report.tables import ALL_GROUPS, contrasts, in_short

cells = [(g, m) for m in ("kNN accuracy", "silhouette") for g in ALL_GROUPS]
gaps = contrasts(rows, "PRS", "CRS", cells)
figure = contrast_panels(gaps, "How well classes stand apart, PRS minus CRS", "group")
settings.save(figure, gaps, "separation_prs_minus_crs")
display(Markdown(in_short(gaps)))

# %% [markdown]
# ## What can be concluded, and what cannot
#
# The claim is decided on these runs as `ledger` decides it. On single-label data the seed also
# draws the order of the classes, which moves the numbers far more than the method does. On
# `cocoseq-mini` a class has one to ten test images: the interval over seeds does not hold that
# chance here. On MNIST itself the figures are in `figures/paper`, drawn by `papermill
# notebooks/feature_tsne.ipynb out.ipynb -f params/paper/feature_tsne.yaml -p dataset imbal-mnistseq
# -p rhos 0.0 -p device cpu`.

# %%
from prslib.report import ledger

display(Markdown(ledger.findings(runs, configs, "features")))
