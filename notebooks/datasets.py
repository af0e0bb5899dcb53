# ---
# jupyter:
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
# have the class frequencies of COCOseq and NUS-WIDEseq divided by 4 and by 6. The seeds profile adds
# `reutersseq`, whose samples are the articles of Reuters-21578. The paper profile shows the real sets
# whole; it needs their labels (`make figures PROFILE=paper DATA=/path`).
#
# *Half a minute.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds, laptop or paper
dataset: list[str] = ["cocoseq-mini", "reutersseq", "digits70seq", "digits49seq"]  # one or more data sets
samples: int = 8  # images of each task on the sheet, 0 where only labels are available
seed: int = 0  # which images the sheet shows
save: str = ""  # folder for the pictures and tables, "" to write none

# %%
from prslib import DATASETS, load_dataset
from prslib.report.grids import check_labels
from prslib.report.notebook import Settings

settings = Settings.read("datasets", globals())
check_labels(settings.dataset, one=False)
if settings.samples > 50:
    raise ValueError(f"samples must be 0 to 50, got {settings.samples}")
with_images = settings.samples > 0
sets = {name: load_dataset(name, images=with_images) for name in settings.dataset}
settings

# %% [markdown]
# ## Classes, task by task
#
# A mark is the number of training images of a class, on a logarithmic scale; its colour and shape
# are the group's. The classes of a task are imbalanced: the marks fall steeply. In NUS-WIDEseq and
# its stand-in the tasks are imbalanced, too.
#
# Without the released id files, NUS-WIDEseq is derived here from all of NUS-WIDE's labels. Its
# tasks differ from the published ones, which contain only images whose links worked at the time.
# Its groups are the released ones. They do not follow these counts, so some minority classes have
# more images than moderate ones.

# %% jupyter={"source_hidden": true} tags=["functions"]
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from prslib.report.style import GROUP_COLOURS, GROUP_MARKERS


def plot_class_statistics(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the classes of a task by frequency, coloured by group (Figure "COCOseq")."""
    frame = frame.assign(place=np.arange(len(frame)))
    for group, colour in GROUP_COLOURS.items():
        rows = frame[frame["group"] == group]
        style = {"color": colour, "markersize": 7, "label": group}
        ax.plot(rows["place"], rows["images"], GROUP_MARKERS[group], **style)
    ax.set_xticks(frame["place"], frame["class"], rotation=90, fontsize=9)
    ax.set(ylabel="training samples, log scale", yscale="log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.set_xlim(-0.7, len(frame) - 0.3)
    ax.label_outer()
    return ax


# %%
import matplotlib.pyplot as plt
from IPython.display import Markdown, display

from prslib.report.measures import class_statistics
from prslib.report.style import STYLE, join_panels

plt.style.use(STYLE)
for name, data in sets.items():
    frame = class_statistics(data)
    tasks = frame.groupby("task")
    shape = {"figsize": (11, 5), "sharey": True, "squeeze": False}
    figure, axes = plt.subplots(1, len(tasks), width_ratios=tasks.size(), **shape)
    for ax, (task, classes) in zip(axes[0], tasks, strict=True):
        plot_class_statistics(classes, ax).set_title(f"task {task}")
    join_panels(figure, f"{name}: training samples of each class")
    settings.show(figure, frame, f"classes_{name}", narrow=1)

# %% [markdown]
# The next table has the counts. The paper's COCOseq has 35072 training images, 70 classes in 4
# tasks, and 18 majority, 38 moderate and 14 minority classes. Its NUS-WIDEseq has 48724 images, 49
# classes in 6 tasks, and by its released lists 10, 18 and 21 classes. The paper also gives thresholds
# in words, and the stand-in follows these. They put some of the lists' majority classes into other
# groups. The paper prints 6346 test images for COCOseq; its released files hold 6366.

# %% jupyter={"source_hidden": true} tags=["functions"]
from prslib.datasets import GROUPS, SequentialDataset


def sizes(dataset: SequentialDataset) -> pd.DataFrame:
    """Count images, classes and groups of a data set (section "Datasets")."""
    row = {
        "dataset": dataset.name,
        "stands_for": dataset.stands_for,
        "tasks": dataset.num_tasks,
        "classes": dataset.num_classes,
        "train": len(dataset.train),
    }
    row |= {f"{name} test": len(split) for name, split in dataset.tests.items()}
    row |= {group: dataset.class_group.count(group) for group in GROUPS}
    return pd.DataFrame([row])


# %%
table = pd.concat([sizes(data) for data in sets.values()], ignore_index=True)
settings.write(table, "sizes")
table

# %% [markdown]
# ## Labels of an image
#
# Most images carry one label, as in the paper's sets. Images with more labels are rarer than in
# COCO and NUS-WIDE, because an image with many labels seldom fits into one task.

# %% jupyter={"source_hidden": true} tags=["functions"]
from matplotlib import colormaps


# has the last of the colours, which are the same on every data set
LAST_TASK = 5


def labels_per_image(dataset: SequentialDataset) -> pd.DataFrame:
    """Count the images with 1, 2, 3, ... labels, task by task (section "Datasets")."""
    labels = dataset.train.labels.sum(axis=1)
    images = pd.DataFrame({"task": dataset.train.task, "labels": labels})
    images["dataset"] = dataset.name
    counts = images.groupby(["dataset", "task", "labels"]).size()
    frame = counts.rename("images").reset_index()
    of_task = frame.groupby("task")["images"].transform("sum")
    return frame.assign(share=100 * frame["images"] / of_task)


def plot_labels_per_image(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw which share of each task's images carries 1, 2, 3, ... labels (section "Datasets")."""
    import seaborn as sns  # which takes half a second to load

    named = frame.assign(task="task " + frame["task"].astype(str))
    viridis = colormaps["viridis"]
    tasks = {f"task {task}": viridis(task / LAST_TASK) for task in set(frame["task"])}
    sns.barplot(named, x="labels", y="share", hue="task", palette=tasks, ax=ax)
    ax.set(xlabel="labels of a sample", ylabel="share of the task's samples (%)")
    return ax


# %%
frame = pd.concat([labels_per_image(data) for data in sets.values()])
figure, axes = plt.subplots(1, len(sets), figsize=(11, 3.6), squeeze=False, sharey=True)
for ax, name in zip(axes[0], sets, strict=True):
    plot_labels_per_image(frame[frame["dataset"] == name], ax).set_title(name)
join_panels(figure, "Labels of a sample, by task")
settings.show(figure, frame, "labels")

# %% [markdown]
# ## Which classes meet
#
# The picture shows how many images contain two classes together, before any image is dropped. The
# frames are the tasks that the clustering found. Images outside the frames are dropped.

# %% jupyter={"source_hidden": true} tags=["functions"]
from matplotlib.patches import Rectangle

from prslib.datasets.base import Clustering
from prslib.report.measures import class_statistics

FRAME = "#E8000B"  # of a task, visible on all of viridis


def cooccurrence(dataset: SequentialDataset, clustering: Clustering) -> pd.DataFrame:
    """Count the images with both of two classes, dropped images included, as (C, C)."""
    names = class_statistics(dataset)["class"].tolist()
    columns = [clustering.class_names.index(name) for name in names]
    # exact: counts below 2 ** 24
    labels = clustering.labels[:, columns].astype(np.float32)
    counts = (labels.T @ labels).astype(np.int64)
    return pd.DataFrame(counts, index=names, columns=names)


def plot_cooccurrence(matrix: pd.DataFrame, task: np.ndarray, ax: Axes) -> Axes:
    """Draw how many images show two classes together, a frame around each task (Algorithm 2)."""
    counts = matrix.to_numpy(float, copy=True)
    np.fill_diagonal(counts, 0)
    counts[counts == 0] = np.nan
    shown = ax.imshow(counts, norm="log", vmin=1, cmap="viridis_r")
    text = {"ha": "left", "va": "center", "fontsize": 9, "color": FRAME, "rotation": 90}
    frame = {"fill": False, "edgecolor": FRAME, "linewidth": 1.6, "clip_on": False}
    for number in np.unique(task):
        rows = np.flatnonzero(task == number)
        corner = rows[0] - 0.5, rows[0] - 0.5
        ax.add_patch(Rectangle(corner, len(rows), len(rows), **frame))
        ax.text(len(task), rows.mean(), f"task {number}", **text)
    ax.set_xticks(range(len(matrix)), matrix.index, rotation=90, fontsize=8)
    ax.set_yticks(range(len(matrix)), matrix.index, fontsize=8)
    ax.tick_params(length=0)
    ax.grid(False)
    ax.set(xlabel="class", ylabel="class")
    label = "samples with both classes, log scale; blank: none"
    ax.figure.colorbar(shown, ax=ax, label=label, shrink=0.7, format="{x:g}")
    return ax


# %%
sources = {name: DATASETS[name].clustering() for name in sets if DATASETS[name].clustering}
for name, source in sources.items():
    data, matrix = sets[name], cooccurrence(sets[name], source)
    figure, ax = plt.subplots(figsize=(12, 11))
    task = class_statistics(data)["task"].to_numpy()
    plot_cooccurrence(matrix, task, ax).set_title(f"{name}: which classes meet")
    settings.show(figure, matrix.reset_index(names="class"), f"cooccurrence_{name}")

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
# The curve is the share of all images that lie within one group. Images that lie in several groups
# at its end are dropped.

# %% jupyter={"source_hidden": true} tags=["functions"]
from prslib.datasets.curation import class_merges
from prslib.report.style import HUES


def clustering_steps(clustering: Clustering) -> pd.DataFrame:
    """Describe each merge of the clustering, and the share of images kept (Algorithm 2)."""
    frame = pd.DataFrame(class_merges(clustering))
    names = np.array(clustering.class_names)
    for group in ("first", "second"):
        frame[group] = [", ".join(names[sorted(classes)]) for classes in frame[group]]
    # images within one group, before and after each merge
    before = (clustering.labels.sum(axis=1) == 1).sum()
    kept = before + frame["together"].cumsum()
    frame.insert(0, "groups", len(names) - 1 - frame.index)  # after the merge
    return frame.assign(kept=100 * kept / len(clustering.labels))


def plot_clustering_steps(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw which share of the images lies within one group, merge by merge (Algorithm 2)."""
    merges = np.arange(1, len(frame) + 1)
    groups, kept = frame[["groups", "kept"]].iloc[-1]
    ax.plot(merges, frame["kept"], color=HUES[0], drawstyle="steps-post")
    ax.plot(merges[-1], kept, "o", color=HUES[1])
    text = {"ha": "right", "va": "bottom", "color": HUES[1]}
    place = {"xytext": (-8, 4), "textcoords": "offset points"}
    label = f"{groups:.0f} tasks keep {kept:.0f} %"
    ax.annotate(label, (merges[-1], kept), **place, **text)
    ax.set_ylim(0, 100)
    ax.set(xlabel="merges done", ylabel="samples within one group (%)")
    return ax


# %%
followed = {name: clustering_steps(source) for name, source in sources.items()}
frame = pd.concat([steps.assign(dataset=name) for name, steps in followed.items()])
figure, axes = plt.subplots(1, len(sources), figsize=(11, 3.6), squeeze=False, sharey=True)
for ax, (name, steps) in zip(axes[0], followed.items(), strict=True):
    plot_clustering_steps(steps, ax).set_title(name)
join_panels(figure, "Samples that the clustering keeps, merge by merge")
settings.show(figure, frame, "clustering")

# %% [markdown]
# The tables have the first two merges and the last two, `datasets_clustering.csv` all. `groups` is
# the number of groups after the merge of `first` and `second`. `together` counts the images that
# show both sides, `apart` those that show one. `kept` is the share of images that lie within one
# group.

# %%
for name, steps in followed.items():
    display(Markdown(f"**{name}**"), pd.concat([steps.head(2), steps.tail(2)]).round(4))


# %% [markdown]
# ## Images
#
# The sheets show some images of every task with all their labels.

# %% jupyter={"source_hidden": true} tags=["functions"]
def sample_images(dataset: SequentialDataset, count: int, seed: int) -> pd.DataFrame:
    """Draw some training images of every task (Figure "COCOseq")."""
    rng = np.random.default_rng(seed)
    samples = []
    for task in range(dataset.num_tasks):
        rows = np.flatnonzero(dataset.train.task == task)
        rows = np.sort(rng.choice(rows, size=min(count, len(rows)), replace=False))
        for row in rows:
            names = np.array(dataset.class_names)[dataset.train.labels[row]]
            samples.append({"task": task, "row": row, "labels": ", ".join(names)})
    return pd.DataFrame(samples).assign(dataset=dataset.name)


# %%
from prslib.report.style import plot_sample

for name, data in sets.items():
    if settings.samples and data.train.inputs.ndim == 4:  # not features
        frame = sample_images(data, settings.samples, settings.seed)
        shape = (data.num_tasks, settings.samples)
        figure, axes = plt.subplots(*shape, figsize=(11, 1.6 * shape[0]), squeeze=False)
        for ax, shown in zip(axes.flat, frame.itertuples(), strict=True):
            plot_sample(data.train.inputs[shown.row], shown.labels, ax)
        for ax, task in zip(axes[:, 0], range(data.num_tasks), strict=True):
            ax.set_ylabel(f"task {task}")
        settings.show(figure, frame, f"samples_{name}")

# %% jupyter={"source_hidden": true} tags=["answer"]
from prslib.report.answers import write_answer

first = settings.dataset[0]
counts = np.sort(sets[first].class_freq)[::-1]
share = counts[: len(counts) // 5].sum() / counts.sum()
sentence = f"On {first} the largest fifth of the classes has {100 * share:.1f} % of the labels."
write_answer(settings, f"{sentence} Classes that occur together make a task.", first)
