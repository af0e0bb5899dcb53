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
# # What does it change that a network has learned before?
#
# The paper's networks begin with weights from ImageNet, whose classes include most of COCO's; the
# small network of the stand-ins begins with random ones. That may be why some of the paper's
# findings do not come out on the stand-ins: that PRS is "competitive on the majority classes", or
# that ExStream, which freezes the lower part of the network, keeps up. This notebook is not in the
# paper. It trains **Table 1** on the same streams with the same samplers, and changes the beginning
# alone.
#
# Beside `none` there are two: `digits` has learned 20,000 scenes of the stream's ten digits, in
# seven colours that no stream has, and `turned_digits` the same with every digit turned by a
# quarter, so that its shapes are new to the stream as well. Both are part of the package;
# `python -m prslib pretrain` learns them again. Under the paper profile the two beginnings are
# random and ImageNet's, on COCOseq.
#
# *Half a minute on four cores after `main_results`, nothing the second time.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds or paper: whose folder the figures go to
dataset: list = ["digits70seq"]  # one or more data sets
rhos: list = [0.0]  # power of allocation of PRS, one for each data set
begun_with: list = ["none", "digits"]  # weights: none, a name or a file; the first is compared with
method: list = ["CRS", "ExStream", "PRS"]  # CRS and PRS among them
seeds: list = [0, 1]  # one run of every method for each
costly: list = []  # methods that take the following seeds instead
costly_seeds: list = [0]  # one run of every costly method for each
device: str = "cpu"  # cpu or cuda

# %%
from prslib import notebook
from prslib.grids import configs_of, paired, seeds_told

settings = notebook.settings("pretraining", globals())
wanted, few = [], {"costly": settings.costly, "costly_seeds": settings.costly_seeds}
for own in paired(dataset=settings.dataset, rho=settings.rhos):
    wanted += configs_of(settings.method, settings.seeds, **few, **own, weights=settings.begun_with)
settings

# %% [markdown]
# ## What was learned before
#
# A scene has one to four of 70 classes, all equally frequent. The handwritten originals are those
# of the streams' training scenes; no test scene's digit was seen.

# %%
import matplotlib.pyplot as plt
from IPython.display import Markdown, display

from prslib import plots, pretraining_report, report, run_all

plt.style.use(plots.STYLE)
rows = pretraining_report.rows_of(run_all(wanted, device=settings.device))
rows.head(3)

# %% [markdown]
# ## What was learned before
#
# A row of the stream, and one of what each of our weights has learned: scenes of one to four of 70
# classes, all equally frequent. Their handwritten originals are those of the streams' training
# scenes; no digit of a test scene was seen.

# %%
frame, images = pretraining_report.example_scenes(settings.begun_with, settings.dataset[0], 8)
figure, axes = plt.subplots(len(frame) // 8, 8, figsize=(11, 0.22 * len(frame)), squeeze=False)
for ax, image, labels in zip(axes.flat, images, frame["labels"], strict=True):
    plots.plot_sample(image, labels, ax)
for ax, source in zip(axes[:, 0], frame["source"].unique(), strict=True):
    ax.set_ylabel(source)
settings.save(figure, frame, "pretraining_scenes")

# %% [markdown]
# ## Table 1, by what the network began with
#
# In percent, after the last task, on the balanced test sets of all tasks. The paper's rows are
# those of networks that began with ImageNet's weights, whatever ours began with.

# %%
cells = report.beside(report.average(rows.drop(columns=["stands_for", "published"])), "main")
settings.save(None, cells, "pretraining_table")
for name in settings.dataset:
    display(Markdown(f"**{name}**, beside the paper's {cells['stands_for'].iloc[0]}"))
    display(report.main_table(cells, name, by=["weights"]))

# %% [markdown]
# ## What PRS gains and what it costs
#
# PRS minus CRS by class group; bars are means over seeds, dots the seeds, the dash is the paper's
# distance.

# %%
gaps = pretraining_report.seed_gaps(rows, "PRS", "CRS")
count = seeds_told(settings.seeds, [], [])
for name in settings.dataset:
    shown = gaps[gaps["dataset"] == name]
    figure, axes = plt.subplots(2, 1, figsize=(9, 6.6))
    for ax, metric in zip(axes, ["C-F1", "mAP"], strict=True):
        plots.plot_gaps(shown[shown["metric"] == metric], ax, metric)
    plots.share_legend(figure)
    figure.suptitle(f"{name}: PRS minus CRS by what the network began with, {count}")
    settings.save(figure, shown, f"pretraining_gaps_{name}")

# %%
where = [
    (group, metric) for group in ("majority", "minority", "overall") for metric in report.METRICS
]
told = report.contrasts(rows, "PRS", "CRS", where, by=["weights"])
settings.save(None, told, "pretraining_prs_minus_crs")
display(Markdown("\n".join(f"- {sentence}" for sentence in told["sentence"])))

# %% [markdown]
# How far that distance moves, from one beginning to another, seed by seed:

# %%
moved = pretraining_report.shifts(gaps, where)
settings.save(None, moved, "pretraining_shifts")
display(Markdown("\n".join(f"- {sentence}" for sentence in moved["sentence"])))

# %% [markdown]
# ## Every method
#
# Overall scores under each beginning; strokes go from the lowest to the highest seed. The paper's
# stand at the right: their height is another data set's, their order can be compared.

# %%
overall = rows[(rows["group"] == "overall") & (rows["measure"] == "score")]
overall = pretraining_report.with_paper(overall)
figure, axes = plt.subplots(2, len(settings.dataset), figsize=(11, 6.6), squeeze=False)
for column, name in zip(axes.T, settings.dataset, strict=True):
    for ax, metric in zip(column, ["C-F1", "mAP"], strict=True):
        shown = overall[(overall["dataset"] == name) & (overall["metric"] == metric)]
        plots.plot_variations(shown, ax, "weights", metric).set_title(name)
    ax.set_xlabel("what the network began with")
plots.share_legend(figure)
told = seeds_told(settings.seeds, settings.costly, settings.costly_seeds)
figure.suptitle(f"Overall, by what the network began with, {told}")
settings.save(figure, overall, "pretraining_overall")
