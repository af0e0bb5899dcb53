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
# The paper's networks start from weights trained on ImageNet, whose classes include most of COCO's,
# and learn in all their layers. On `cocoseq-mini` the pretrained network is frozen instead. How
# much do the results depend on that? The paper does not ask. This notebook trains methods of
# **Table 1** on `digits70seq`, a **stand-in** for COCOseq of coloured digits, where a small
# convolutional network can be trained end to end. It changes the initial weights, and which layers
# stay as they are.
#
# `random` weights have learned nothing. `digits` were trained on 20,000 scenes of the stream's ten
# digits, in seven colours that no stream has. There are five trainings, which the seeds take in
# turn. With *frozen* all layers but the head stay as they are. `turned digits`, in the seeds
# profile, were trained on the same scenes with every digit turned by a quarter. So the stream's
# shapes are new to them. All are part of the package; `studies/pretrain.py` trains them again. The
# paper profile compares random weights with ImageNet's, on COCOseq.
#
# The paper freezes the network of EWC up to its last layer, as it works poorly otherwise. Here EWC
# trains all layers, as the other methods do, except with *frozen*. The strength of its penalty is
# the same.
#
# *A minute on two cores, nothing the second time.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds, laptop or paper
dataset: list[str] = ["digits70tiny"]  # one or more data sets
rho: float = None  # power of allocation of PRS and OCDM, None for each data set's own
begun_with: list[str] = ["none", "digits", "digits"]  # weights: none, a name or a file
frozen_stages: list[int] = [0, 0, 3]  # stages of the network that stay as they began, of each weights
method: list[str] = ["CRS", "PRS", "EWC"]  # CRS and PRS among them
seeds: list[int] = [0]  # one run of every method for each
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% tags=["runs"]
from itertools import product

from prslib.report.asked import configs
from prslib.report.grids import check_compared, check_labels, paired


def runs(settings):
    """List a run of every method and seed from each of the initial weights."""
    check_labels(settings.dataset, one=False)
    check_compared(settings.method, "CRS", "PRS")
    starts = paired(weights=settings.begun_with, frozen_stages=settings.frozen_stages)
    made = []
    for name, start in product(settings.dataset, starts):
        made += configs(
            dataset=name,
            rho=settings.rho,
            **start,
            method=settings.method,
            seed=settings.seeds,
            pretrained_stages=0,  # EWC freezes no more than the others
        )
    return made


# %%
from prslib.report.notebook import Settings

settings = Settings.read("pretraining", globals())
planned = runs(settings)
settings

# %%
import matplotlib.pyplot as plt
from IPython.display import Markdown, display

from prslib.report.asked import run_all
from prslib.report.style import STYLE, join_panels
from prslib.report.grids import seeds_text

plt.style.use(STYLE)
finished, count = run_all(planned, device=settings.device), seeds_text(settings.seeds)

# %% jupyter={"source_hidden": true} tags=["functions"]
from prslib import RunConfig
from prslib.models.weights import NONE


def beginning(config: RunConfig) -> str:
    """Name what a run's network begins with, and whether all but its head stays as it began."""
    settings = config.resolved
    name = settings["weights"].replace("_", " ")
    frozen = ", frozen" if settings["frozen_stages"] else ""
    return ("random" if name == NONE else name) + frozen


# %% tags=["remove-output"]
import pandas as pd

from prslib.report.tables import merge_published, final, scores_of

rows = merge_published(final(scores_of(finished, weights=beginning)), "main")
rows.drop(columns=["rho", "memory_size"]).head(3).round(1)

# %% [markdown]
# ## What the weights were trained on
#
# The first row shows images of the stream. Each further row shows what the weights that come with
# the package were trained on: scenes with one to four of 70 classes, all equally frequent. They are
# made of the same handwritten digits as the streams' training scenes. No digit of a test scene was
# used.

# %% jupyter={"source_hidden": true} tags=["functions"]
from collections.abc import Sequence

import numpy as np
import pandas as pd

from prslib import load_dataset
from prslib.datasets.scenes import CLASS_NAMES, TURNS, draw_scenes


def example_scenes(
    weights: Sequence[str], dataset: str, count: int
) -> tuple[pd.DataFrame, list[np.ndarray]]:
    """Draw a few images of a stream, and of the scenes behind each of the embedded weights."""
    data = load_dataset(dataset)
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(len(data.train), count, replace=False))
    stream = data.train.inputs[rows], data.train.labels[rows]
    drawn = {dataset: (data.class_names, *stream)}
    for name in dict.fromkeys(weights):
        if name in TURNS:
            scenes = draw_scenes(name, count, rng)
            drawn[name.replace("_", " ")] = (CLASS_NAMES, *scenes)
    frame, images = [], []
    for source, (names, pictures, labels) in drawn.items():
        for picture, row in zip(pictures, labels.astype(bool), strict=True):
            images.append(picture)
            frame.append((source, ", ".join(np.array(names)[row])))
    return pd.DataFrame(frame, columns=["source", "labels"]), images


# %%
from prslib.report.style import plot_sample

frame, images = example_scenes(settings.begun_with, settings.dataset[0], 8)
figure, axes = plt.subplots(len(frame) // 8, 8, figsize=(11, 0.22 * len(frame)), squeeze=False)
for ax, image, labels in zip(axes.flat, images, frame["labels"], strict=True):
    plot_sample(image, labels, ax)
for ax, source in zip(axes[:, 0], frame["source"].unique(), strict=True):
    ax.set_ylabel(source)
settings.show(figure, frame, "scenes", narrow=4)

# %% [markdown]
# ## Table 1, by initial weights
#
# The tables give percent after the last task, on the balanced test sets of all tasks. The paper's
# networks always start from ImageNet's weights.

# %%
from prslib.report.tables import average, main_tables

cells = merge_published(average(rows.drop(columns=["stands_for", "published"])), "main")
settings.write(cells, "table")
for name in settings.dataset:
    display(Markdown(f"**{name}**, beside the paper's {cells['stands_for'].iloc[0]}"))
    display(*main_tables(cells, name, by=["weights"]))

# %% [markdown]
# ## What PRS gains and what it costs
#
# The picture shows PRS minus CRS by class group. Marks are means over seeds, strokes go from the
# lowest to the highest seed, and the dashed line is the paper's difference.

# %% jupyter={"source_hidden": true} tags=["functions"]
from matplotlib.axes import Axes

from prslib.report.style import GREYS, HUES, styles_for, plot_variations, values_of


def plot_gaps(frame: pd.DataFrame, ax: Axes, metric: str) -> Axes:
    """Draw the distance between two methods by group and weights, later ones darker."""
    styles = styles_for(frame["weights"].unique(), GREYS)
    ours = frame.drop(columns="published")
    plot_variations(ours, ax, "group", metric, "weights", styles)
    # one number for all weights
    theirs = frame.groupby("group")["published"].first()[values_of(frame, "group")]
    at = np.arange(len(theirs))
    ax.hlines(theirs, at - 0.35, at + 0.35, HUES[1], "dashed", label="paper")
    ax.legend()
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_ylabel(f"difference in {metric} (points)")
    return ax


# %%
from prslib.report.tables import seed_gaps

gaps = seed_gaps(rows, "PRS", "CRS", by=["weights"])
for name in settings.dataset:
    shown = gaps[gaps["dataset"] == name]
    figure, axes = plt.subplots(2, 1, figsize=(9, 6.6), sharey=True)
    for ax, metric in zip(axes, ["C-F1", "mAP"], strict=True):
        plot_gaps(shown[shown["metric"] == metric], ax, metric)
    join_panels(figure, f"{name}: PRS minus CRS by what the network began with, {count}")
    settings.show(figure, shown, f"gaps_{name}")

# %%
from prslib.report.tables import MAIN_METRICS, contrasts, in_short

where = [(group, metric) for group in ("majority", "minority", "overall") for metric in MAIN_METRICS]
differences = contrasts(rows, "PRS", "CRS", where, by=["weights"])
settings.write(differences, "prs_minus_crs")
display(Markdown(in_short(differences)))

# %% [markdown]
# Here this difference is compared between initial weights, seed by seed.

# %%
first, *others = gaps["weights"].unique()
renamed = gaps.assign(method=gaps["weights"], published=float("nan"))
pairs = [contrasts(renamed, name, first, where).assign(weights=name) for name in others]
moved = pd.concat(pairs, ignore_index=True)
settings.write(moved, "shifts")
display(Markdown(in_short(moved)))

# %% [markdown]
# ## Every method
#
# The picture shows overall scores by initial weights. Strokes go from the lowest to the highest
# seed. The paper's scores are on the right. They are from another data set, so only the order of
# the methods can be compared.

# %%
ours = rows.query("group == 'overall' and measure == 'score'")
theirs = ours.dropna(subset="published").drop_duplicates(["dataset", "method", "metric"])
theirs = theirs.assign(weights="ImageNet [paper]", value=float("nan"))
overall = pd.concat([ours.assign(published=float("nan")), theirs], ignore_index=True)

# %%
figure, axes = plt.subplots(2, len(settings.dataset), figsize=(11, 6.6), squeeze=False, sharey=True)
for column, name in zip(axes.T, settings.dataset, strict=True):
    for ax, metric in zip(column, ["C-F1", "mAP"], strict=True):
        shown = overall[(overall["dataset"] == name) & (overall["metric"] == metric)]
        plot_variations(shown, ax, "weights", metric).set_title(name)
    ax.set_xlabel("what the network began with")
join_panels(figure, f"Overall, by what the network began with, {count}")
settings.show(figure, overall, "overall")

# %% [markdown]
# ## Which claims depend on the weights?
#
# Here the claims of [`ledger`](ledger.ipynb) that these runs decide are tested, once for each
# kind of initial weights. The first table counts the verdicts. The second shows the claims whose
# verdict differs. It has the effect, which is above 0 where the claim is right, its 95 % interval
# over seeds, and the verdict.

# %% jupyter={"source_hidden": true} tags=["functions"]
from prslib import Run
from prslib.report import ledger
from prslib.report.results import results_of


def by_weights(runs: Sequence[Run], configs: Sequence[RunConfig]) -> pd.DataFrame:
    """Decide the paper's claims under each weights; leave out claims without runs."""
    tables = []
    for weights in dict.fromkeys(map(beginning, configs)):
        alike = [config for config in configs if beginning(config) == weights]
        of_weights = [run for run in runs if beginning(run.config) == weights]
        decided = ledger.decide(results_of(of_weights, alike))
        tables.append(decided.assign(weights=weights))
    decided = pd.concat(tables)
    return decided[decided["verdict"] != "not run"].reset_index(drop=True)


def differing_verdicts(decided: pd.DataFrame) -> pd.DataFrame:
    """Lay out the claims whose verdict differs between weights: effect, interval and verdict."""
    account = ledger.account(decided).assign(weights=decided["weights"])
    verdicts = account.groupby(["claim", "data"])["after Holm"]
    rows = account[verdicts.transform("nunique") > 1]
    cells = rows["effect"] + ": " + rows["after Holm"]
    keys = ["claim", "data", "paper"]
    weights = decided["weights"].unique()
    rows = rows.assign(cell=cells).set_index([*keys, "weights"])
    wide = rows["cell"].unstack(sort=False)
    wide = wide.reindex(columns=weights).fillna("not run").reset_index()
    return wide[["claim", "data", *weights, "paper"]]


# %%
decided = by_weights(finished, planned)
settings.write(decided, "claims")
display(decided.groupby(["weights", "verdict"], sort=False).size().unstack(fill_value=0))
display(Markdown(ledger.as_markdown(differing_verdicts(decided))))

# %% jupyter={"source_hidden": true} tags=["answer"]
from prslib.report.answers import describe_difference, find_smallest, write_answer

row = find_smallest(differences, group="overall", metric="mAP")
sentence = describe_difference(
    row,
    above="From all initial weights PRS gains at least {effect} points of mAP over CRS {interval}.",
    below="From some weights PRS loses {effect} points of mAP against CRS {interval}.",
    unclear="From some weights PRS and CRS do not differ clearly in mAP: {effect} points {interval}.",
)
write_answer(settings, sentence, row["dataset"])
