# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Which sampler suits your stream?
#
# A network that is trained with a class-balanced replay memory can score higher or lower than one
# whose memory is filled by reservoir sampling. In the [experiments of the
# report](when_it_pays.ipynb), the labels of a stream did not show how large this difference is, so
# this notebook measures it on your stream. It holds out samples for two test sets, and trains a
# small network on the other samples with each sampler. The [samplers](../docs/samplers/index.md)
# CBRS, PRS and OCDM, which balance the memory, are compared with reservoir sampling (CRS). For each
# score, the notebook reports which sampler is best, or that the data do not suffice for a
# recommendation. It also reports in which scores the recommended samplers are significantly below
# CRS. [Your own data](../docs/own_data.md) describes the file formats and the rule by which a
# sampler is recommended.
#
# Enter the names of your files in the parameters, and run all cells. Without files, the notebook
# uses `clipartseq`, a stream of clip art and keywords that is part of this repository. The same
# comparison is available as `prslib.trial` in Python and as `prslib trial` in a shell.
#
# *With the default parameters, the notebook takes half a minute on two cores.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke or quick
inputs: str = ""  # features (npy, npz, parquet or CSV) or a folder of small images, "" to use `dataset`
labels: str = ""  # labels (CSV, npy or npz), one row per sample
about: str = ""  # CSV with columns task, order or group, "" if samples come in the order of the rows
dataset: str = "clipartseq"  # an embedded stream, used if no files are given
method: list[str] = ["CBRS", "PRS", "OCDM"]  # samplers that are compared with CRS
rho: list[float] = [0.0, 0.5]  # powers of allocation of PRS
memory_size: list[int] = []  # memory sizes in samples, [] for the paper's size relative to the stream
seeds: list[int] = [0, 1, 2, 3, 4]  # one run of every sampler for each seed
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["functions"]
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import Markdown

from prslib import load_dataset, trial
from prslib.checks import expected
from prslib.label_files import read_about, read_inputs, read_labels
from prslib.report import notebook, style
from prslib.report.style import STYLE
from prslib.report.tables import ALL_GROUPS, TEST_WORDS


def read_stream(settings) -> dict:
    """Read the files that the parameters name, or an embedded stream."""
    files = [settings.inputs, settings.labels]
    if any([*files, settings.about]) and not all(files):
        got = f"inputs {settings.inputs!r} and labels {settings.labels!r}"
        raise notebook.ParameterError(expected("inputs and labels together", got))
    if not settings.inputs:
        stream = load_dataset(settings.dataset)
        train = stream.train
        columns = {"inputs": train.inputs, "labels": train.labels, "task": train.task}
        return columns | {"class_names": stream.class_names}
    rows, names = read_labels(settings.labels)
    columns = {"inputs": read_inputs(settings.inputs, settings.labels), "labels": rows}
    about = read_about(settings.about) if settings.about else {}
    return columns | about | {"class_names": names}


OF_GROUPS = f"group in {list(ALL_GROUPS)}"  # without the scores of single classes


# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("your_stream", globals())
settings

# %% [markdown]
# ## The trial
#
# The network sees the stream once, in batches of ten new samples and ten samples from the memory.
# The new samples of each batch are also scored before the network is trained on them (*tested, then
# trained*, or prequential evaluation). After training, the network is scored on two sets of
# held-out samples. The *imbalanced* test set has about the same class mix as the stream. In the
# *balanced* test set, class sizes differ less than in the stream.

# %% tags=["compute"]
result = trial(
    **read_stream(settings),
    memory_size=settings.memory_size or None,
    samplers=settings.method,
    rho=settings.rho,
    seeds=settings.seeds,
    device=settings.device,
)
settings.write(pd.DataFrame({"note": result.notes}), "notes")
settings.write(result.scores.query(OF_GROUPS), "scores")
settings.write(result.differences.query(OF_GROUPS), "differences")
settings.write(result.answers, "answers")
settings.write(pd.DataFrame({"note": result.costs}), "costs")
settings.write(pd.DataFrame(result.preview.table), "memories")


# %% jupyter={"source_hidden": true} tags=["functions"]
def name_scores(frame: pd.DataFrame) -> pd.Series:
    """Name the metric and the test set of each row in words."""
    return frame["metric"] + ", " + frame["test_set"].map(TEST_WORDS)


def draw_answers(gaps: pd.DataFrame, answers: pd.DataFrame, title: str) -> plt.Figure:
    """Draw each sampler minus CRS overall, with a row per score and a panel per memory size."""
    overall = gaps[(gaps["group"] == "overall") & gaps["metric"].isin(answers["metric"])]
    overall = overall.assign(score=name_scores(overall))
    is_last = overall["test_set"] == "prequential"
    order = pd.unique(pd.concat([name_scores(answers), overall.loc[is_last, "score"]]))
    overall = pd.concat([overall[overall["score"] == score] for score in order])
    sizes = list(overall["memory_size"].unique())
    height = 1.6 + 0.5 * overall["score"].nunique()
    figure, axes = plt.subplots(1, len(sizes), figsize=(9, height), sharey=True, squeeze=False)
    for ax, size in zip(axes.flat, sizes, strict=True):
        style.plot_samplers(overall[overall["memory_size"] == size], ax, "score")
        ax.set(title=f"memory of {size}", xlabel="sampler minus CRS (points)")
    style.join_panels(figure, title)
    return figure


# %%
name = Path(settings.inputs).name or settings.dataset
title = f"{name}: each sampler minus CRS, {settings.say_seeds(intervals=True)}"
figure = draw_answers(settings.table("differences"), settings.table("answers"), title)
settings.show(figure, "differences")
for name in ("notes", "answers", "costs"):
    table = settings.table(name)
    texts = table["sentence" if name == "answers" else "note"]
    if name == "answers" and table["memory_size"].nunique() > 1:
        texts = "Memory of " + table["memory_size"].astype(str) + ": " + texts
    display(Markdown("\n".join(f"- {text}" for text in texts)))

# %% [markdown]
# ## The classes and the memories
#
# Class groups are defined by the mean class size. Classes smaller than half the mean are minority
# classes, and classes of at least twice the mean are majority classes. In the table, `quota` is the
# number of slots that PRS aims to give to a class.

# %%
display(settings.table("memories").round(2))

# %% [markdown]
# ## By group of classes
#
# The first table shows the difference of each sampler from CRS in mAP, by class group. The second
# table shows the overall scores. Both tables contain means over seeds. For further analysis,
# `result.scores` and `result.differences` also contain the AP of every class.

# %%
gaps = settings.table("differences")
groups = gaps[gaps["metric"] == "mAP"].replace({"test_set": TEST_WORDS})
cells = ["memory_size", "test_set", "group"]
display(groups.pivot_table("difference", cells, "method", sort=False).round(1))
scores = settings.table("scores")
scores = scores[scores["group"] == "overall"].replace({"test_set": TEST_WORDS})
display(scores.pivot_table("value", ["memory_size", "test_set", "metric"], "method", sort=False).round(1))
