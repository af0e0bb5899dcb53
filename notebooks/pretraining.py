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
# # How much hangs on what a network has learned before?
#
# The paper's networks begin with weights from ImageNet, whose classes include most of COCO's. So
# the small network of the stand-ins begins, in all other notebooks, with weights called `digits`:
# it has learned 20,000 scenes of the stream's ten digits, in seven colours that no stream has. How
# much of what those notebooks find hangs on that? This notebook, which is not in the paper, trains
# **Table 1** on the same streams with the same samplers, and changes the beginning alone.
#
# Beside `digits` there are two: random weights, `none`, and `turned_digits`, which have learned the
# same scenes with every digit turned by a quarter, so that the stream's shapes are new to them as
# well. Both learned ones are part of the package; `python -m prslib pretrain` learns them again.
# Under the paper profile the two beginnings are random and ImageNet's, on COCOseq.
#
# *Half a minute on four cores after `main_results`, nothing the second time.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds or paper: whose folder the figures go to
dataset: list = ["digits70seq"]  # one or more data sets
rhos: list = [0.0]  # power of allocation of PRS, one for each data set
begun_with: list = ["none", "digits"]  # weights: none, a name or a file; the first is compared with
method: list = ["CRS", "ExStream", "PRS"]  # CRS and PRS among them
seeds: list = [0, 1]  # one run of every method for each
permuted: int = 0  # schedules beside the standard one, for the first weights and the last
unbalanced_rho: float = None  # power of PRS on the unbalanced test set, None to leave that out
varied_seeds: list = [0]  # of every other setting, some of the seeds above
costly: list = []  # methods that take the following seeds there instead
costly_seeds: list = [0]  # one run of every costly method for each
device: str = "cpu"  # cpu or cuda

# %%
from prslib import configs_of, paired
from prslib.report import notebook
from prslib.report import pretraining as beginnings

settings = notebook.settings("pretraining", globals(), single_label=False)
table, others, ends = [], [], [settings.begun_with[0], settings.begun_with[-1]]
few = [settings.varied_seeds, settings.costly, settings.costly_seeds]
for own in paired(dataset=settings.dataset, rho=settings.rhos):
    table += configs_of(settings.method, settings.seeds, **own, weights=settings.begun_with)
    for fields in beginnings.elsewhere(own, settings.permuted, settings.unbalanced_rho):
        others += configs_of(beginnings.with_memory(settings.method), *few, **fields, weights=ends)
wanted = table + others
settings

# %%
import matplotlib.pyplot as plt
from IPython.display import Markdown, display

from prslib import plots, report, run_all
from prslib.report import ledger
from prslib.training.config import seeds_told

plt.style.use(plots.STYLE)
runs = run_all(wanted, device=settings.device)
rows = beginnings.rows_of(runs[: len(table)])
rows.drop(columns=["rho", "memory_size"]).head(3).round(1)

# %% [markdown]
# ## What was learned before
#
# A row of the stream, and one of what each of our weights has learned: scenes of one to four of 70
# classes, all equally frequent. Their handwritten originals are those of the streams' training
# scenes; no digit of a test scene was seen.

# %%
frame, images = beginnings.example_scenes(settings.begun_with, settings.dataset[0], 8)
figure, axes = plt.subplots(len(frame) // 8, 8, figsize=(11, 0.22 * len(frame)), squeeze=False)
for ax, image, labels in zip(axes.flat, images, frame["labels"], strict=True):
    plots.plot_sample(image, labels, ax)
for ax, source in zip(axes[:, 0], frame["source"].unique(), strict=True):
    ax.set_ylabel(source)
settings.save(figure, frame, "scenes")

# %% [markdown]
# ## Table 1, by what the network began with
#
# In percent, after the last task, on the balanced test sets of all tasks. The paper's rows are
# those of networks that began with ImageNet's weights, whatever ours began with.

# %%
cells = report.beside(report.average(rows.drop(columns=["stands_for", "published"])), "main")
settings.save(None, cells, "table")
for name in settings.dataset:
    display(Markdown(f"**{name}**, beside the paper's {cells['stands_for'].iloc[0]}"))
    display(report.main_table(cells, name, by=["weights"]))

# %% [markdown]
# ## What PRS gains and what it costs
#
# PRS minus CRS by class group; bars are means over seeds, dots the seeds, the dash is the paper's
# distance.

# %%
gaps = report.seed_gaps(rows, "PRS", "CRS", by=["weights"])
count = seeds_told(settings.seeds)
for name in settings.dataset:
    shown = gaps[gaps["dataset"] == name]
    figure, axes = plt.subplots(2, 1, figsize=(9, 6.6))
    for ax, metric in zip(axes, ["C-F1", "mAP"], strict=True):
        plots.plot_gaps(shown[shown["metric"] == metric], ax, metric)
    plots.share_legend(figure)
    figure.suptitle(f"{name}: PRS minus CRS by what the network began with, {count}")
    settings.save(figure, shown, f"gaps_{name}")

# %%
where = [
    (group, metric) for group in ("majority", "minority", "overall") for metric in report.METRICS
]
told = report.contrasts(rows, "PRS", "CRS", where, by=["weights"])
settings.save(None, told, "prs_minus_crs")
display(Markdown("\n".join(f"- {sentence}" for sentence in told["sentence"])))

# %% [markdown]
# How far that distance moves, from one beginning to another, seed by seed:

# %%
moved = beginnings.shifts(gaps, where)
settings.save(None, moved, "shifts")
display(Markdown("\n".join(f"- {sentence}" for sentence in moved["sentence"])))

# %% [markdown]
# ## Every method
#
# Overall scores under each beginning; strokes go from the lowest to the highest seed. The paper's
# stand at the right: their height is another data set's, their order can be compared.

# %%
overall = rows[(rows["group"] == "overall") & (rows["measure"] == "score")]
overall = beginnings.with_paper(overall)
figure, axes = plt.subplots(2, len(settings.dataset), figsize=(11, 6.6), squeeze=False)
for column, name in zip(axes.T, settings.dataset, strict=True):
    for ax, metric in zip(column, ["C-F1", "mAP"], strict=True):
        shown = overall[(overall["dataset"] == name) & (overall["metric"] == metric)]
        plots.plot_variations(shown, ax, "weights", metric).set_title(name)
    ax.set_xlabel("what the network began with")
plots.share_legend(figure)
figure.suptitle(f"Overall, by what the network began with, {count}")
settings.save(figure, overall, "overall")

# %% [markdown]
# ## Which claims depend on it?
#
# The claims of [`ledger`](ledger.ipynb) that these runs decide, each tested under every beginning:
# those about Table 1, and, where the parameters ask for them, those about other schedules and the
# unbalanced test set, under the first beginning and the last. Below stand those whose verdict is
# not the same under all: the effect, above 0 where the claim is right, its 95 % interval over
# seeds, and the verdict.

# %%
decided = beginnings.decide(runs, wanted)
settings.save(None, decided, "claims")
display(decided.groupby(["weights", "verdict"], sort=False).size().unstack(fill_value=0))
display(Markdown(ledger.as_markdown(beginnings.verdicts(decided))))

# %% [markdown]
# ## In short
#
# On ten seeds (the seeds profile), on `digits70seq` and `digits49seq`, from random weights to those
# with which the other notebooks begin:
#
# - **More of the paper's claims hold.** Of 43 rows that Table 1's runs decide 24 hold from random
#   weights, 30 from `turned_digits` and 28 from `digits`; 7, 6 and 7 do not.
# - **"PRS outperforms CRS" holds on one set, and nearly on the other.** In all metrics at once it
#   holds on `digits49seq` from all three beginnings, and on `digits70seq` from `turned_digits`
#   alone, as from `digits` the lead in mAP is too small to be sure. From `digits` PRS is above by 5
#   and 21 points of C-F1 (paper 6 and 8), 4 and 16 of O-F1 (paper 4 and 7), 1 and 14 of mAP (paper
#   5 and 5).
# - **"Best of all" is open on both sets from `digits`**, and holds on `digits70seq` from
#   `turned_digits`. From `digits` PRS is ahead there of every method that sees one task after
#   another, of CRS in mAP not clearly, and level with Multitask in C-F1; in the paper it is 2
#   points above. On `digits49seq` GSS, ahead of it in F1 from random weights, is 2 points of C-F1
#   behind and level with it in O-F1 and mAP.
# - **"Competitive on the majority" comes nearer, and is not reached.** From `digits` PRS loses 3.0
#   and 7.0 points of majority mAP against CRS, where it loses 6.9 and 9.3 from random weights; in
#   the paper it loses 0.4 and 0.7. `turned_digits` are as good as `digits` on `digits70seq` and
#   better on the other. What a network knows already it may not have to learn from many samples of
#   the majority.
# - **Robust to the schedule: in part.** "PRS outperforms CRS in every schedule" holds on
#   `digits49seq` from `digits`, by 14 points where its lead is least, and is undecided on the
#   other. From schedule to schedule PRS then varies less than GSS and ExStream on `digits49seq`,
#   but still more than CRS, and on `digits70seq` less than GSS alone (five
#   seeds, GSS three).
# - **On unbalanced test images it is not ahead in all metrics.** In the weakest of the three
#   metrics PRS is 2 points below CRS from `digits`, 4 from random weights.
# - **The rare classes gain in F1, and less in mAP.** PRS is 34 and 41 points of minority C-F1 above
#   CRS (24 and 21 from random weights), and 14 and 27 points of minority mAP (22 and 30): CRS comes
#   to know them too. On `digits70seq` the moderate classes lose 3 points of mAP, so that "best on
#   the moderate and the minority" holds on `digits49seq` alone.
# - **EWC and ExStream need it most**, as what they freeze is worth keeping now: on `digits70seq`
#   they gain more mAP than any other method. EWC gains 49 and 49 points: from random weights, where
#   nothing of it is frozen, it is within a point of Finetune, from `digits` 30 and 47 points above
#   (paper 30 and 14). ExStream gains 32 and 29. It goes from 13 points of mAP behind CRS to 3 on
#   `digits70seq`, and from level with it to 8 ahead on the other (paper 1 ahead on both).
#
# The quick profile, with two seeds on `digits70seq`, has the same directions: 2 points of majority
# mAP behind CRS where it is 8 behind from random weights, and ahead of CRS overall in all three.
