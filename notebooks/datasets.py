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
# The paper's Figures "COCOseq" and "NUS-WIDEseq" show two data sets whose images have several
# labels. In both data sets, class sizes are long-tailed, and each class occurs in only one task.
# The paper constructs such data sets by clustering (its appendix, Algorithm 2). Classes that often
# occur together are assigned to the same task, and images whose labels belong to several tasks are
# dropped.
#
# This notebook shows four real streams and two synthetic streams:
#
# - `cocoseq-mini`: 6 % of COCOseq's training images, stored as features instead of pixels;
# - `reutersseq`: news articles of Reuters-21578 with their topics;
# - `mdiseq`: icons with their tags;
# - `clipartseq`: clip art with its keywords;
# - `digits70seq` (synthetic): scenes of handwritten digits, with the class frequencies of COCOseq
#   divided by 4;
# - `digits49seq` (synthetic): scenes of handwritten digits, with the class frequencies of
#   NUS-WIDEseq divided by 6.
#
# The [profile](../docs/quickstart.md#profiles) `paper` instead shows the paper's complete data
# sets if their labels are available (`make figures PROFILE=paper DATA=/path`).
#
# *With the profile `quick`, the notebook takes half a minute.*

# %% tags=["parameters"]
profile: str = "quick"  # name of the profile; -f params/PROFILE/NOTEBOOK.yaml chooses another one
dataset: list[str] = ["cocoseq-mini", "reutersseq", "mdiseq", "clipartseq", "digits70seq", "digits49seq"]  # one or more
samples: int = 8  # images of each task in the picture, 0 if only labels are available
seed: int = 0  # selects the images in the picture
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["functions"]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from prslib import DATASETS, load_dataset
from prslib.datasets import GROUPS, SequentialDataset
from prslib.datasets.base import Clustering
from prslib.datasets.curation import class_merges
from prslib.report import grids, measures, notebook, style, tables
from prslib.report.style import GROUP_COLOURS, GROUP_MARKERS, HUES, STYLE
from prslib.report.tables import TEST_WORDS

# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("datasets", globals())
grids.check_labels(settings.dataset, one=False)
settings

# %% [markdown]
# ## Sizes
#
# The second table below has one column per stream. Some of its rows need an explanation:
#
# - *stands for*: the data set of the paper that the stream represents;
# - *stream*: the number of training samples;
# - *largest to smallest*: the ratio of the largest to the smallest class size;
# - *below half the mean*: the number of classes that are smaller than half the mean class size;
# - *balanced test*: the number of samples in a test set in which class sizes differ much less
#   than in the stream;
# - *imbalanced test*: the number of samples in a test set with about the class mix of the stream
#   (only on [icons](../docs/other_streams.md), the class mix is different);
# - *further images*: the number of images in a third test set, which only `cocoseq-mini` has
#   ([test sets](../docs/real_coco.md#test-sets));
# - *majority*, *moderate* and *minority*: the number of frequent, moderate and rare classes
#   ([groups of classes](../docs/metrics.md#groups-of-classes)).
#
# The data sets of the paper have these sizes:
#
# | data set | training images | tasks | majority classes | moderate classes | minority classes |
# | --- | --- | --- | --- | --- | --- |
# | COCOseq | 35072 | 4 | 18 | 38 | 14 |
# | NUS-WIDEseq | 48724 | 6 | 10 | 18 | 21 |
#
# The class groups of NUS-WIDEseq are taken from the lists that the paper's authors released. The
# paper also states the range of class sizes in each group. By these ranges, which `digits49seq`
# follows, three of the moderate classes in the lists would be majority classes. For the balanced
# test set of COCOseq, the paper reports 6346 images, whereas its released files contain 6366.

# %% jupyter={"source_hidden": true} tags=["functions"]
def count_sizes(dataset: SequentialDataset) -> dict:
    """Count samples, labels, classes and groups of a data set (section "Datasets")."""
    class_freq = dataset.class_freq
    row = {
        "dataset": dataset.name,
        "stands for": dataset.stands_for or "",
        "tasks": dataset.num_tasks,
        "classes": dataset.num_classes,
        "stream": len(dataset.train),
        "labels per sample": dataset.train.labels.sum(axis=1).mean(),
        "largest to smallest": class_freq.max() / max(class_freq.min(), 1),
        "below half the mean": (class_freq < class_freq.mean() / 2).sum(),
    }
    row |= {TEST_WORDS[kind]: len(split) for kind, split in dataset.tests.items()}
    return row | {group: dataset.class_group.count(group) for group in GROUPS}


# %% tags=["compute"]
sets = {name: tables.labels_of(name) for name in settings.dataset}
settings.write(pd.DataFrame([count_sizes(data) for data in sets.values()]), "sizes")
settings.write(pd.concat([measures.class_statistics(data) for data in sets.values()]), "classes")

# %%
sizes = settings.table("sizes").set_index("dataset")
sizes.T.map(lambda value: f"{value:,.4g}" if isinstance(value, float) else value).replace("nan", "")

# %% [markdown]
# ## Classes, task by task
#
# Each mark is a class. Its position shows the number of training samples on a logarithmic scale,
# and its colour and shape indicate the class group. Classes are sorted from frequent to rare within
# each task, and dashed lines separate the tasks. On Reuters, clip art and `digits49seq`, the tasks
# also differ in size, as they do in the paper's NUS-WIDEseq.

# %% jupyter={"source_hidden": true} tags=["functions"]
def plot_class_statistics(frame: pd.DataFrame, ax: plt.Axes) -> plt.Axes:
    """Plot the classes by task and frequency, coloured by group (Figure "COCOseq")."""
    frame = frame.assign(rank=np.arange(1, len(frame) + 1))
    for group, colour in GROUP_COLOURS.items():
        rows = frame[frame["group"] == group]
        ax.plot(rows["rank"], rows["images"], GROUP_MARKERS[group], color=colour, label=group)
    for last in frame.groupby("task")["rank"].max().iloc[:-1]:
        ax.axvline(last + 0.5, color="0.55", linewidth=0.8, linestyle="--")
    half = frame["images"].mean() / 2
    ax.axhline(half, color=HUES[1], linewidth=1.2, label="half the mean class size")
    ax.set(yscale="log", xlabel="class (frequent to rare within each task)", ylabel="training samples")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    return ax


# %%
classes = settings.table("classes")
figure, axes = style.panel_grid(len(settings.dataset), 2, top=0.8, height=2.6)
for ax, name in zip(axes, settings.dataset, strict=True):
    plot_class_statistics(classes[classes["dataset"] == name], ax).set_title(name)
settings.show(figure, "classes", "Training samples of each class (log scale)", narrow=1)

# %% [markdown]
# ## The clustering, step by step
#
# The clustering merges classes into groups, which finally become the tasks. It starts with one
# group per class. An image can be kept if all its labels belong to one group; at the start, only
# images with a single label can be kept. Each step merges the two groups $j$ and $k$ that have the
# highest score $\ln co_{jk} - \beta\,(elem_j + elem_k)^2$, Eq. (7). In this equation, $elem_j$
# counts the images whose labels all belong to group $j$. The number $co_{jk}$ counts the images
# that cannot be kept yet, but can be kept if the groups $j$ and $k$ are merged. The first term
# favours merges that keep many images, and the second term favours groups of similar size. With
# $\beta = 1$ (COCOseq), the second term dominates. With $\beta = 10^{-4}$ (NUS-WIDEseq), the tasks
# may differ in size, provided that each task has at least four classes.
#
# The picture shows, after each merge, the share of samples whose labels all belong to a single
# group. A group does not become a task if none of its classes has enough samples
# ([rules](../docs/other_streams.md)). For this reason, `clipartseq` has fewer tasks than groups.

# %% jupyter={"source_hidden": true} tags=["functions"]
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


def plot_clustering_steps(frame: pd.DataFrame, ax: plt.Axes) -> plt.Axes:
    """Plot the share of samples whose labels are all in one group, merge by merge (Algorithm 2)."""
    for colour, (name, steps) in zip(HUES, frame.groupby("dataset", sort=False), strict=False):
        groups, kept = steps[["groups", "kept"]].iloc[-1]
        label = f"{name}: {groups:.0f} groups keep {kept:.0f} %"
        ax.plot(steps["groups"], steps["kept"], color=colour, drawstyle="steps-post", label=label)
        ax.plot(groups, kept, "o", color=colour)
    ax.invert_xaxis()
    ax.set(ylim=(0, 100), xlabel="groups left", ylabel="samples within one group (%)")
    ax.legend(loc="lower right")
    return ax


# %% tags=["compute"]
sources = {name: DATASETS[name].clustering() for name in sets if DATASETS[name].clustering}
followed = [clustering_steps(source).assign(dataset=name) for name, source in sources.items()]
settings.write(pd.concat(followed, ignore_index=True), "clustering")

# %%
merges = settings.table("clustering")
figure, ax = plt.subplots(figsize=(8, 4))
plot_clustering_steps(merges, ax).set_title("Samples that the clustering keeps")
settings.show(figure, "clustering")

# %% [markdown]
# ## Images
#
# Each row shows some training images of one task, each with all its labels.

# %% jupyter={"source_hidden": true} tags=["functions"]
def sample_images(dataset: SequentialDataset, count: int, seed: int) -> pd.DataFrame:
    """Sample some training images of every task (Figure "COCOseq")."""
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
for name in settings.dataset if settings.samples else []:
    data = load_dataset(name)
    if data.train.inputs.ndim == 4:  # not features
        frame = sample_images(data, settings.samples, settings.seed)
        shape = (data.num_tasks, settings.samples)
        figure, axes = plt.subplots(*shape, figsize=(11, 1.6 * shape[0]), squeeze=False)
        for ax, shown in zip(axes.flat, frame.itertuples(), strict=True):
            style.plot_sample(data.train.inputs[shown.row], shown.labels, ax)
        for ax, task in zip(axes[:, 0], range(data.num_tasks), strict=True):
            ax.set_ylabel(f"task {task}")
        figure.suptitle(f"{name}: training images of each task, with their labels")
        settings.write(frame, f"samples_{name}")
        settings.show(figure, f"samples_{name}")

# %% jupyter={"source_hidden": true} tags=["answer"]
first = settings.dataset[0]
counts = classes[classes["dataset"] == first]["images"].sort_values(ascending=False)
share = counts[: len(counts) // 5].sum() / counts.sum()
sentence = f"On {first}, the largest 20 % of the classes have {100 * share:.1f} % of the labels,"
sentence += f" and {sizes['below half the mean'][first]} of {len(counts)} classes are smaller than half the mean class size."
settings.write_answer(f"{sentence} Tasks are clusters of classes that occur together.", first)
