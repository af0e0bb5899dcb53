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
# several labels, the classes are long-tailed, and the tasks share no class. Clustering makes such
# sets (Appendix, Algorithm 2): classes that occur together come into one task, and images whose
# labels still span two tasks are dropped.
#
# `cocoseq-mini` holds 6 % of the real COCOseq, as features without pictures. `digits70seq` and
# `digits49seq` are made in the same way as the real sets, from scenes of handwritten digits. They
# have the class frequencies of COCOseq and NUS-WIDEseq divided by 4 and by 6. The paper profile
# shows the real sets whole; it needs their labels (`make figures PROFILE=paper DATA=/path`).
#
# *Half a minute.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds, laptop or paper: whose folder the figures go to
dataset: list = ["cocoseq-mini", "digits70seq", "digits49seq"]  # one or more data sets
samples: int = 8  # images of each task on the sheet, 0 where only labels are at hand
seed: int = 0  # which images the sheet shows

# %%
from prslib import DATASETS, load_dataset
from prslib.report import datasets

settings = datasets.Settings.read(globals())
with_images = settings.samples > 0
sets = {name: load_dataset(name, images=with_images) for name in settings.dataset}
settings

# %% [markdown]
# ## Classes, task by task
#
# A mark is the number of training images of a class, on a logarithmic scale; its colour and shape
# are the group's. The classes of a task are imbalanced: the marks fall steeply. In NUS-WIDEseq and
# its stand-in the tasks are, too.
#
# Without the released id files, NUS-WIDEseq is derived here from all of NUS-WIDE's labels. Its
# tasks differ from the published ones, which contain only images whose links worked at the time.
# Its groups are the released ones. They do not follow these counts: some minority classes have more
# images than moderate ones.

# %%
import matplotlib.pyplot as plt
from IPython.display import Markdown, display

from prslib.report.style import STYLE, join_panels

plt.style.use(STYLE)
for name, data in sets.items():
    frame = datasets.class_statistics(data)
    figure, ax = plt.subplots(figsize=(13, 5))
    datasets.plot_class_statistics(frame, ax)
    join_panels(figure, f"{name}: training images of each class")
    settings.save(figure, frame, f"classes_{name}")

# %% [markdown]
# The next table counts the same. The paper's COCOseq has 35072 training images, 70 classes in 4
# tasks, and 18 majority, 38 moderate and 14 minority classes. Its NUS-WIDEseq has 48724 images, 49
# classes in 6 tasks, and by its released lists 10, 18 and 21 classes. The thresholds that the paper
# gives in words, which the stand-in follows, put some majority classes into other groups. The paper
# prints 6346 test images for COCOseq; its released files hold 6366.

# %%
import pandas as pd

sizes = pd.concat([datasets.sizes(data) for data in sets.values()], ignore_index=True)
settings.save(None, sizes, "sizes")
sizes

# %% [markdown]
# ## Labels of an image
#
# Most images carry one label, as in the paper's sets. Images with more labels are rarer there than
# in COCO and NUS-WIDE: an image with many labels seldom fits into one task.

# %%
frame = pd.concat([datasets.labels_per_image(data) for data in sets.values()])
figure, axes = plt.subplots(1, len(sets), figsize=(11, 3.6), squeeze=False)
for ax, name in zip(axes[0], sets, strict=True):
    datasets.plot_labels_per_image(frame[frame["dataset"] == name], ax).set_title(name)
join_panels(figure, "Labels of an image, by task")
settings.save(figure, frame, "labels")

# %% [markdown]
# ## Which classes meet
#
# The picture shows how many images contain two classes together, before any image is dropped. The
# frames are the tasks that the clustering found. Images outside the frames are dropped.

# %%
sources = {name: DATASETS[name].clustering() for name in sets if DATASETS[name].clustering}
for name, source in sources.items():
    data, matrix = sets[name], datasets.cooccurrence(sets[name], source)
    figure, ax = plt.subplots(figsize=(12, 11))
    task = datasets.class_statistics(data)["task"].to_numpy()
    datasets.plot_cooccurrence(matrix, task, ax).set_title(f"{name}: which classes meet")
    settings.save(figure, matrix.reset_index(names="class"), f"cooccurrence_{name}")

# %% [markdown]
# ## The clustering, step by step
#
# The clustering begins with every class alone, when only images with a single label could stay.
# Each step joins the two groups $j, k$ with the highest score $\ln co_{jk} - \beta\,(elem_j +
# elem_k)^2$, Eq. (9). Here $co$ counts the images that only both groups together cover, $elem$
# those that one of them covers already. The first term saves images, the second keeps the groups
# from growing unequal. With $\beta = 1$ (COCOseq) the second term mostly decides. With $\beta =
# 10^{-4}$ (NUS-WIDEseq) the tasks may differ in size, if each has four classes or more.
#
# The curve is the share of all images that lie within one group. The rest at its end is dropped.

# %%
followed = {name: datasets.clustering_steps(source) for name, source in sources.items()}
frame = pd.concat([steps.assign(dataset=name) for name, steps in followed.items()])
figure, axes = plt.subplots(1, len(sources), figsize=(11, 3.6), squeeze=False)
for ax, (name, steps) in zip(axes[0], followed.items(), strict=True):
    datasets.plot_clustering_steps(steps, ax).set_title(name)
join_panels(figure, "Images that the clustering keeps, merge by merge")
settings.save(figure, frame, "clustering")

# %% [markdown]
# The tables have the first two merges and the last two, `datasets_clustering.csv` all. `groups` are
# left after the merge of `first` and `second`, `together` counts the images that show both sides,
# `apart` those that show one, and `kept` is the share of images that lie within one group.

# %%
for name, steps in followed.items():
    display(Markdown(f"**{name}**"), pd.concat([steps.head(2), steps.tail(2)]).round(4))

# %% [markdown]
# ## Images
#
# The sheets show some images of every task with all their labels.

# %%
for name, data in sets.items():
    if settings.samples and data.train.inputs.ndim == 4:  # not features
        frame = datasets.sample_images(data, settings.samples, settings.seed)
        shape = (data.num_tasks, settings.samples)
        figure, axes = plt.subplots(*shape, figsize=(11, 1.6 * shape[0]), squeeze=False)
        for ax, shown in zip(axes.flat, frame.itertuples(), strict=True):
            datasets.plot_sample(data.train.inputs[shown.row], shown.labels, ax)
        for ax, task in zip(axes[:, 0], range(data.num_tasks), strict=True):
            ax.set_ylabel(f"task {task}")
        settings.save(figure, frame, f"samples_{name}")
