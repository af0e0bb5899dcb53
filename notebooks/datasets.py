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
# # What are the streams made of, and where do their tasks come from?
#
# The paper's Figures "COCOseq" and "NUS-WIDEseq" show two data sets in which an image carries
# several labels, the classes are long-tailed, and the tasks share no class. Such a set is not
# found, it is made: the classes are clustered so that those that occur together come into one task,
# and the images whose labels still span two tasks are dropped (Appendix, Algorithm 2).
#
# `digits70seq` and `digits49seq` are made in the same way, from scenes of handwritten digits; they
# have the class frequencies of COCOseq and NUS-WIDEseq divided by 4 and by 6. With the labels of
# the real sets at hand, this notebook shows those (`make figures PROFILE=paper DATA=/path`).
#
# *Half a minute.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds or paper: whose folder the figures go to
dataset: list = ["digits70seq", "digits49seq"]  # one or more data sets
samples: int = 8  # images of each task on the sheet, 0 where only labels are at hand
seed: int = 0  # which images the sheet shows

# %%
from prslib import DATASETS, load_dataset
from prslib.report import datasets as statistics
from prslib.report import notebook

settings = notebook.settings("datasets", globals(), single_label=False)
sets = {name: load_dataset(name, images=settings.samples > 0) for name in settings.dataset}
wanted = []  # nothing is trained here
settings

# %% [markdown]
# ## Classes, task by task
#
# A bar is the number of training images of a class, on a logarithmic scale; the colour is its
# group. Both kinds of imbalance are there: within a task (the bars fall steeply) and, in
# NUS-WIDEseq and its stand-in, between tasks.
#
# Without the released id files NUS-WIDEseq is our own derivation from all of NUS-WIDE's labels. Its
# tasks are others than the published ones, which rest on the images whose links were alive.

# %%
import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import Markdown, display

from prslib import plots

plt.style.use(plots.STYLE)
for name, data in sets.items():
    frame = statistics.class_statistics(data)
    figure, ax = plt.subplots(figsize=(12, 4))
    plots.plot_class_statistics(frame, ax)
    settings.save(figure, frame, f"classes_{name}")

# %% [markdown]
# The same in numbers, beside the paper's: COCOseq has 35072 training images, 70 classes in 4 tasks
# and 18 majority, 38 moderate and 14 minority classes; NUS-WIDEseq 48724 images, 49 classes in 6
# tasks and 10, 18 and 21 classes by its released lists; its thresholds in words, which the stand-in
# follows, put some majority classes elsewhere. The paper prints 6346 test images for COCOseq; its
# released files hold 6366.

# %%
sizes = pd.concat([statistics.sizes(data) for data in sets.values()], ignore_index=True)
settings.save(None, sizes, "sizes")
sizes

# %% [markdown]
# ## Labels of an image
#
# Most images carry one label, as in the paper's sets, where images with more are rarer than in the
# sets they were taken from: an image with many labels seldom fits into one task.

# %%
frame = pd.concat([statistics.labels_per_image(data) for data in sets.values()])
figure, axes = plt.subplots(1, len(sets), figsize=(11, 3.6), squeeze=False)
for ax, name in zip(axes[0], sets, strict=True):
    plots.plot_labels_per_image(frame[frame["dataset"] == name], ax).set_title(name)
settings.save(figure, frame, "labels")

# %% [markdown]
# ## Which classes meet
#
# The number of images that show two classes together, before any image is dropped. The frames are
# the tasks that the clustering found. Colour outside the frames is what the split costs.

# %%
sources = {name: DATASETS[name].clustering() for name in settings.dataset}
for name, data in sets.items():
    matrix = statistics.cooccurrence(data, sources[name])
    figure, ax = plt.subplots(figsize=(9, 7.6))
    task = statistics.class_statistics(data)["task"].to_numpy()
    plots.plot_cooccurrence(matrix, task, ax).set_title(name)
    settings.save(figure, matrix.reset_index(names="class"), f"cooccurrence_{name}")

# %% [markdown]
# ## The clustering, step by step
#
# It begins with every class alone, when only images with a single label would stay. Each step joins
# the two groups $j, k$ with the highest score $\ln co_{jk} - \beta\,(elem_j + elem_k)^2$, Eq. (9):
# $co$ counts the images that the two hold only together, $elem$ those that one of them holds
# already. The first term saves images, the second keeps the groups from growing unequal. With
# $\beta = 1$ (COCOseq) it leaves little to the first; with $\beta = 10^{-4}$ (NUS-WIDEseq) the
# tasks may differ in size, if each has four classes or more.
#
# The curve is the share of all images that lie within one group. What is missing at its end is
# dropped.

# %%
followed = {name: statistics.clustering_steps(source) for name, source in sources.items()}
frame = pd.concat([steps.assign(dataset=name) for name, steps in followed.items()])
figure, axes = plt.subplots(1, len(sets), figsize=(11, 3.6), squeeze=False)
for ax, (name, steps) in zip(axes[0], followed.items(), strict=True):
    plots.plot_clustering_steps(steps, ax).set_title(name)
settings.save(figure, frame, "clustering")

# %% [markdown]
# The first two merges and the last two, in words; all of them are in `datasets_clustering.csv`.

# %%
for name, steps in followed.items():
    chosen = pd.concat([steps.head(2), steps.tail(2)])
    display(Markdown(f"**{name}**\n\n" + "\n".join(statistics.tell(chosen))))

# %% [markdown]
# ## Images
#
# Some images of every task with all their labels, as a learner sees them.

# %%
for name, data in sets.items():
    if settings.samples:
        frame = statistics.sample_images(data, settings.samples, settings.seed)
        shape = (data.num_tasks, settings.samples)
        figure, axes = plt.subplots(*shape, figsize=(11, 1.6 * shape[0]), squeeze=False)
        for ax, shown in zip(axes.flat, frame.itertuples(), strict=True):
            plots.plot_sample(data.train.images[shown.row], shown.labels, ax)
        for ax, task in zip(axes[:, 0], range(data.num_tasks), strict=True):
            ax.set_ylabel(f"task {task}")
        settings.save(figure, frame, f"samples_{name}")
