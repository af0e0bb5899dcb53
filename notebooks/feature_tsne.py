# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a balanced memory separate the rare classes?
#
# The paper's Figure "t-SNE" compares two networks on MNIST and on COCOseq. One network is trained
# with conventional reservoir sampling (CRS), the other with Partitioning Reservoir Sampling (PRS),
# which balances the replay memory. The figure shows the features of test images in the penultimate
# layer of each network. The paper concludes: "PRS can represent the minority classes more
# discriminatively than CRS on both single-label MNIST and multi-label COCOseq experiments."
#
# The paper reports no numbers with its figure. Because a t-SNE plot is open to interpretation, this
# notebook also computes two measures from the features: how often the nearest neighbours of an
# image predict its class, and how far apart the classes are. Two data sets are used:
#
# - `imbal-digits`, **synthetic data** that replace MNIST. The network is an MLP.
# - `cocoseq-mini`, 6 % of the real COCOseq. The network has two layers. The compared features are
#   the 256 values that the trained first layer computes from the 1,280 features of a frozen
#   network.
#
# *With the [profile](../docs/quickstart.md#profiles) `quick`, the notebook takes half a minute on
# two cores. A second run takes 15 seconds.*

# %% tags=["parameters"]
profile: str = "quick"  # name of the profile; -f params/PROFILE/NOTEBOOK.yaml chooses another one
dataset: list[str] = ["imbal-digits", "cocoseq-mini"]  # one or more data sets
rho: float = None  # power of allocation of PRS and OCDM, None for each data set's default
method: list[str] = ["CRS", "PRS"]  # methods whose networks embed the images, which must include CRS and PRS
seeds: list[int] = [0, 1]  # one run of every method for each seed; the first seed is plotted
per_class: int = 20  # largest number of test images of a class
neighbours: int = 5  # how many nearest images vote
shown: int = 3  # classes of every group that have a colour, if not all have one
others: int = 5  # test images of every other class, plotted in grey
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["runs"]
from prslib.report.grids import check_compared, configs_of


def runs(settings):
    """List runs that keep the features of their test images."""
    check_compared(settings.method, "CRS", "PRS")
    return configs_of(
        settings.method,
        settings.seeds,
        dataset=settings.dataset,
        rho=settings.rho,
        features_per_class=settings.per_class,
    )

# %% jupyter={"source_hidden": true} tags=["functions"]
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

import prslib
from prslib import Run, RunConfig
from prslib.datasets import DATASETS, GROUPS
from prslib.report import answers, measures, notebook, tables
from prslib.report.style import GROUP_MARKERS, STYLE
from prslib.report.tables import ALL_GROUPS, TEST_WORDS
from prslib.statistics import say_interval

# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("feature_tsne", globals())
planned = runs(settings)
settings

# %% [markdown]
# ## Which images
#
# For every class, the notebook uses at most `per_class` test images: the first images in the test
# set that have only this label. Images with several labels are left out because they do not belong
# to a single class.

# %% tags=["compute"]
finished = prslib.run_all(planned, device=settings.device)

# %% [markdown]
# ## The picture
#
# There is one picture per data set, with one panel per method. Each panel shows the t-SNE map of
# the test images' features, as computed by the network that was trained with this method and the
# first seed. Colours distinguish classes, and markers show the class group: circles for majority,
# triangles for moderate and stars for minority classes. On `cocoseq-mini`, only a few classes per
# group are coloured. These are the most frequent classes in the majority group, classes of medium
# frequency in the moderate group, and the rarest classes in the minority group. Some images of
# the other classes are shown in grey.

# %% jupyter={"source_hidden": true} tags=["functions"]
# Tol's "muted" colours and black: ten colours that colour-blind people can tell apart
CLASS_COLOURS = (
    "#332288", "#88CCEE", "#CC6677", "#117733", "#DDCC77",
    "#882255", "#44AA99", "#AA4499", "#999933", "#000000",
)  # fmt: skip

# marker areas in points squared, chosen to look equally large
SIZES = {"majority": 22, "moderate": 24, "minority": 55}

ENOUGH = 5  # fewest test images that show the position of a class


def embed(runs: list[Run], shown: list[str], others: int) -> pd.DataFrame:
    """Map all images of ``shown`` classes, and the first few of other classes, with t-SNE."""
    frames = []
    for run in runs:
        images = measures.labelled_images(run.config)
        first = images.groupby("class").cumcount() < others
        drawn = first | images["class_name"].isin(shown)
        # start from the first two principal components, so that the large shape is not random
        tsne = TSNE(init="pca", random_state=0)
        with threadpool_limits(1):  # the same picture every time
            plane = tsne.fit_transform(measures.features_of(run)[drawn])
        frames.append(images[drawn].assign(x=plane[:, 0], y=plane[:, 1]))
    return pd.concat(frames, ignore_index=True)


def shown_classes(config: RunConfig, per_group: int) -> list[str]:
    """Pick frequent majority, medium-sized moderate and rare minority classes; all if up to ten."""
    freq = tables.labels_of(config.dataset).class_freq
    classes = measures.labelled_images(config)
    classes = classes.value_counts(["class", "class_name", "group"]).reset_index()
    classes = classes.assign(freq=freq[classes["class"]])
    classes = classes.sort_values(["freq", "class"], ascending=[False, True])
    if len(classes) <= len(CLASS_COLOURS):
        return classes["class_name"].tolist()
    picked = []
    for group, share in zip(GROUPS, (0.0, 0.5, 1.0), strict=True):
        rows = classes[classes["group"] == group]
        clear = rows[rows["count"] >= ENOUGH]
        names = (clear if len(clear) >= per_group else rows)["class_name"].tolist()
        start = round(share * max(len(names) - per_group, 0))
        picked += names[start : start + per_group]
    return picked


def plot_features(frame: pd.DataFrame, ax: plt.Axes, shown: list[str]) -> plt.Axes:
    """Plot images at their t-SNE coordinates, with ``shown`` classes in colour, others in grey."""
    others = frame[~frame["class_name"].isin(shown)]
    if len(others):
        grey = {"s": 5, "color": "0.8", "linewidth": 0, "label": "other classes"}
        ax.scatter(others["x"], others["y"], **grey)
    dots = frame[frame["class_name"].isin(shown)]
    dots = dots.assign(shown=dots["class_name"] + " (" + dots["group"] + ")")
    classes = dots.drop_duplicates("shown").set_index("class_name").loc[shown]
    groups = classes.set_index("shown")["group"]
    by_class = dict.fromkeys(["hue", "style", "size"], "shown")
    by_class["hue_order"] = list(groups.index)
    look = {"palette": dict(zip(groups.index, CLASS_COLOURS, strict=False))}
    look["markers"] = groups.map(GROUP_MARKERS).to_dict()
    look["sizes"] = groups.map(SIZES).to_dict()
    sns.scatterplot(dots, x="x", y="y", **by_class, **look, linewidth=0.4, ax=ax)
    ax.set(xlabel="t-SNE axis 1 (no unit)", ylabel="t-SNE axis 2 (no unit)")
    ax.set(xticks=[], yticks=[])
    ax.set_aspect("equal", adjustable="datalim")
    return ax

# %% tags=["compute"]
for name in settings.dataset:
    first = name, settings.seeds[0]
    drawn = [run for run in finished if (run.config.dataset, run.config.seed) == first]
    classes = shown_classes(drawn[0].config, settings.shown)
    settings.write(embed(drawn, classes, settings.others), name)

# %%
for name in settings.dataset:
    config = next(config for config in planned if config.dataset == name)
    classes = shown_classes(config, settings.shown)
    plane = settings.table(name).astype({"class_name": str})  # names of digits are read as numbers
    count = len(settings.method)
    figure, axes = plt.subplots(1, count, figsize=(11, 5.6), squeeze=False)
    for ax, kind in zip(axes[0], settings.method, strict=True):
        plot_features(plane[plane["method"] == kind], ax, classes).set_title(kind)
    sizes = f"seed {settings.seeds[0]}, up to {settings.per_class} images per class"
    title = f"{name}, {TEST_WORDS[DATASETS[name].recipe.test_set]}: t-SNE of the features"
    settings.show(figure, name, f"{title} of test images, {sizes}", narrow=1)

# %% [markdown]
# ## Two measures
#
# Both measures are computed from the features themselves, not from the t-SNE coordinates. They
# use all test images with one label, but at most `per_class` images of each class. *kNN accuracy*
# is the percentage of these images whose nearest neighbours vote for the correct class, where
# each vote is weighted by the inverse of the distance. Random guessing among $C$ classes would
# reach $100 / C$ %. The *silhouette*, multiplied by 100, is near 100 for well-separated classes,
# near 0 for overlapping classes, and below 0 if images are nearer to another class than to their
# own class. The table shows means over seeds. In a *balanced* test set, class sizes differ much
# less than in the stream.

# %% tags=["compute"]
frames = []
for run in finished:
    name, method, seed = run.config.dataset, run.config.method, run.config.seed
    place = {"dataset": name, "test_set": DATASETS[name].recipe.test_set}
    place |= {"method": method, "seed": seed}
    frames.append(measures.separation(run, settings.neighbours).assign(**place))
rows = pd.concat(frames, ignore_index=True)
rows = rows.assign(measure="score", published=float("nan"))
keys = ["dataset", "test_set", "metric", "group", "method"]
means = rows.groupby(keys, sort=False)["value"].mean().reset_index()
settings.write(means, "separation")

# %%
means = settings.table("separation").replace({"test_set": TEST_WORDS})
keys = ["dataset", "test_set", "metric", "method"]
means.pivot(index=keys, columns="group", values="value")[list(ALL_GROUPS)].round(1)

# %% [markdown]
# ## What holds
#
# Each run of PRS is compared with the run of CRS that has the same seed. A difference is
# significant if its whole 95 % interval is above 0 or below 0. The [`ledger`](ledger.ipynb) uses
# these runs to test the paper's claim that PRS separates the minority classes better than CRS.
# Unlike the intervals below, the verdict in the ledger is corrected for the number of claims.

# %% tags=["compute"]
gaps = tables.contrasts(rows, "PRS", "CRS", ALL_GROUPS)
settings.write(gaps, "separation_prs_minus_crs")

# %%
title = "Separation of the classes in feature space: PRS minus CRS"
gaps = settings.show_contrasts("separation_prs_minus_crs", title, "group")

# %% [markdown]
# ## What can be concluded, and what cannot
#
# In the profile `seeds`, the differences between PRS and CRS on `imbal-digits` vary widely between
# seeds, because the seed also determines the order of the classes. On `cocoseq-mini`, both measures
# are imprecise because a class has only one to ten test images. The numbers for MNIST itself are in
# `figures/paper`. This command computes them:
#
# ```sh
# papermill notebooks/feature_tsne.ipynb out.ipynb -f params/paper/feature_tsne.yaml -y "{dataset: [imbal-mnistseq], seeds: [0, 1, 2, 3, 4], device: cpu}"
# ```

# %% jupyter={"source_hidden": true} tags=["answer"]
measured = gaps[(gaps["group"] == "minority") & (gaps["metric"] == "kNN accuracy")]
first = answers.first_set(measured)["dataset"].iloc[0]
measured = measured.sort_values("dataset", key=lambda names: names != first)
points = []
for _, row in measured.iterrows():
    note = " (synthetic)" if DATASETS[row["dataset"]].data_source == "stand-in" else ""
    where = f"on {row['dataset']}{note}"
    points.append(f"{row['difference']:+.1f} points ({say_interval(row)}) {where}")
sentence = "PRS minus CRS in nearest-neighbour accuracy on the minority classes is"
settings.write_answer(f"{sentence} {answers.join_words(points)}.", first)
