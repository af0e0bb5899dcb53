# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How much balance is best?
#
# The power of allocation $\rho$ sets the target partition $p_i \propto n_i^{\rho}$. At 1 the target
# is the stream's own mix. The paper says that this "is identical to the conventional sampling". At
# 0 every class has the same share. Below 0 the rare classes get more than the frequent ones. The
# paper's **Figure "power of allocation"** sweeps it from $-1$ to $1$ on COCOseq and finds that "as
# $\rho$ moves away from the vicinity of balance, the performance gradually declines in all
# metrics". It tunes $\rho$ within $[-0.2, 0.2]$ and trains COCOseq with $-0.03$.
#
# The quick profile runs on `cocoseq-mini`: **real COCOseq images**, 6 % of them, as features of a
# frozen EfficientNet-Lite0 on which each method trains a small head. The images are the paper's,
# the network is not: the paper trains a ResNet-101 end to end on all images. The seeds profile adds
# `reutersseq`, another real stream: the articles of Reuters-21578. Scores of `cocoseq-mini` are on
# 3,199 other images of COCO, which decide more than the paper's few ([test
# sets](../docs/real_coco.md#test-sets)).
#
# *About half a minute on two cores for the quick profile; the second time nothing is trained.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds, laptop or paper
dataset: list[str] = ["cocoseq-mini"]  # one or more data sets
rhos: list[float] = [-1.0, -0.5, -0.2, -0.03, 0.0, 0.2, 0.5, 1.0]  # powers of allocation
memory_size: int = None  # samples in memory, None for each data set's own
seeds: list[int] = [0, 1, 2]  # one run of every rho for each
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% tags=["runs"]
from prslib.report.asked import configs
from prslib.report.grids import tested_on


def runs(settings):
    """List a run of PRS for every rho and seed, and one of CRS for every seed."""
    fixed = {"memory_size": settings.memory_size, "seed": settings.seeds}
    sweep = configs(dataset=settings.dataset, method="PRS", rho=settings.rhos, **fixed)
    crs = configs(dataset=settings.dataset, method="CRS", **fixed)
    return tested_on(sweep + crs)


# %%
from prslib.report.notebook import Settings

settings = Settings.read("rho_sweep", globals())
needed = runs(settings)
settings

# %% [markdown]
# ## Overall
#
# C-F1, O-F1 and mAP after the last task: mean over seeds, a band of one standard deviation, and a
# ring at the best $\rho$ of each metric.

# %%
import matplotlib.pyplot as plt

from prslib.report.asked import run_all
from prslib.report.style import STYLE
from prslib.report.tables import final, scores_of

plt.style.use(STYLE)
every = final(scores_of(run_all(needed, device=settings.device)))
every = every[every["measure"] == "score"]
rows = every[every["method"] == "PRS"]

# %% jupyter={"source_hidden": true} tags=["functions"]
from prslib.report.style import draw_curves, styles_for
from prslib.report.tables import MAIN_METRICS

METHOD_STYLES = styles_for(MAIN_METRICS)


def plot_sweep(frame, ax):
    """Draw PRS's metrics on one data set against rho, with a ring at the best."""
    draw_curves(frame, ax, "rho", "metric", METHOD_STYLES)
    means = frame.groupby(["metric", "rho"])["value"].mean()
    ring = {"marker": "o", "ls": "", "markersize": 13, "markerfacecolor": "none"}
    for metric, style in METHOD_STYLES.items():
        best = means[metric].idxmax()
        ax.plot(best, means[metric, best], **ring, color=style["color"])
    ax.plot([], [], **ring, color="0.3", label=r"best $\rho$")
    ax.set(xlabel=r"power of allocation $\rho$", ylabel="score (%)")
    return ax


# %%
from prslib.report.style import join_panels
from prslib.report.grids import seeds_text

for name in settings.dataset:
    shown = rows[(rows["dataset"] == name) & (rows["group"] == "overall")]
    figure, ax = plt.subplots(figsize=(5.2, 3.8))
    plot_sweep(shown, ax)
    join_panels(figure, f"{name}: PRS overall, {seeds_text(settings.seeds)}")
    settings.show(figure, shown, name)

# %% [markdown]
# ## By group
#
# The panels show what balance costs the frequent classes and what the rare ones gain.

# %%
for name in settings.dataset:
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), sharey=True)
    for ax, group in zip(axes, ["majority", "moderate", "minority"], strict=True):
        shown = rows[(rows["dataset"] == name) & (rows["group"] == group)]
        plot_sweep(shown, ax).set_title(group)
    join_panels(figure, f"{name}: PRS by class group, {seeds_text(settings.seeds)}")
    settings.show(figure, rows[rows["dataset"] == name], f"groups_{name}")

# %% [markdown]
# ## What does each $\rho$ gain, and what does it cost?
#
# PRS at each $\rho$ minus CRS, seed by seed, with 95 % intervals over seeds and test samples. Above
# 0 PRS scores higher. The nearer $\rho$ is to 1, the less the frequent classes pay. The best $\rho$
# was chosen after the numbers were seen, so its gain is a guide, not a test. The paper takes 0.5
# for its unbalanced test set.

# %% jupyter={"source_hidden": true} tags=["functions"]
import pandas as pd

from prslib.report.style import GROUP_COLOURS, GROUP_MARKERS
from prslib.report.tables import ALL_GROUPS, contrasts

OVERALL = {"overall": "black"} | GROUP_COLOURS

MARKERS = {"overall": "s"} | GROUP_MARKERS


def minus_crs(every):
    """Return the differences of PRS at each rho from CRS, by group and metric."""
    cells = [(group, metric) for group in ALL_GROUPS for metric in MAIN_METRICS]
    crs = every[every["method"] == "CRS"]
    frames = []
    for rho, rows in every[every["method"] == "PRS"].groupby("rho"):
        both = pd.concat([rows, crs]).drop(columns="rho")
        frames.append(contrasts(both, "PRS", "CRS", cells).assign(rho=rho))
    return pd.concat(frames, ignore_index=True)


def plot_minus_crs(frame, ax):
    """Draw PRS minus CRS over rho, overall and by group, with intervals."""
    for group, colour in OVERALL.items():
        cells = frame[frame["group"] == group].sort_values("rho")
        ax.plot(cells["rho"], cells["difference"], MARKERS[group] + "-", color=colour, label=group)
        if group == "overall":
            ax.fill_between(cells["rho"], cells["low"], cells["high"], color=colour, alpha=0.15, linewidth=0)
    ax.fill_between([], [], [], color="black", alpha=0.15, linewidth=0, label="95 % interval, overall")
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set(xlabel=r"power of allocation $\rho$", ylabel="PRS minus CRS (points)")
    return ax


# %%
gaps = minus_crs(every)
count = len(settings.dataset)
figure, axes = plt.subplots(count, 3, figsize=(11, 3.4 * count), squeeze=False, sharey=True)
for line, name in zip(axes, settings.dataset, strict=True):
    for ax, metric in zip(line, MAIN_METRICS, strict=True):
        shown = gaps[(gaps["dataset"] == name) & (gaps["metric"] == metric)]
        plot_minus_crs(shown, ax).set_title(f"{name}: {metric}")
join_panels(figure, f"PRS at each rho minus CRS, {seeds_text(settings.seeds)}")
settings.show(figure, gaps, "minus_crs")
table = gaps[gaps["group"].isin(["overall", "majority", "minority"])]
table.pivot_table("difference", ["dataset", "rho"], ["group", "metric"], sort=False).round(1)


# %% [markdown]
# ## Is the vicinity of balance best?
#
# The paper draws the curve and prints no numbers beside it, so only its shape can be compared. A
# `best_rho` inside $[-0.2, 0.2]$ agrees with the paper's claim. `best` is the score there in
# percent. The last columns have the scores at both ends of the sweep. `ledger` decides whether
# values outside are clearly worse.

# %% jupyter={"source_hidden": true} tags=["functions"]
def best_rho(rows):
    """Find the best rho of each data set and metric, and the score at both ends."""
    cells = rows.groupby(["dataset", "metric", "rho"], sort=False)["value"]
    means = cells.mean().unstack(sort=False).sort_index(axis=1)
    low, high = means.columns[[0, -1]]
    best = pd.DataFrame({"best_rho": means.idxmax(axis=1), "best": means.max(axis=1)})
    best = best.assign(lowest_rho=low, at_lowest=means[low])
    return best.assign(highest_rho=high, at_highest=means[high]).reset_index()


# %%
best = best_rho(rows[rows["group"] == "overall"])
settings.write(best, "best")
best.round(2)

# %% [markdown]
# ## Is $\rho = 1$ conventional sampling?
#
# The target is the same, but PRS still chooses by labels which samples come and go. The table has
# the mean number of labels of a sample in memory. `early` is the percentage of the memory that comes
# from the first tenth of the stream: 10 in a memory drawn evenly. No training is needed: the samplers
# see labels alone.
# `ledger` decides the claim.

# %% jupyter={"source_hidden": true} tags=["functions"]

from prslib.report.measures import place_stream


def beside_crs(settings):
    """Measure what PRS with rho 1 and CRS hold in the end: labels, share of early samples."""
    rows = []
    fixed = {"rho": 1.0, "memory_size": settings.memory_size, "seed": settings.seeds}
    for config in configs(dataset=settings.dataset, method=["CRS", "PRS"], **fixed):
        *_, (sampler, held, seen) = place_stream(config)
        is_filled = held >= 0
        labels = sampler.labels[is_filled].sum(axis=1).mean()
        early = 100 * (held[is_filled] < seen // 10).mean()
        rows.append((config.dataset, config.method, config.seed, labels, early))
    columns = ["dataset", "method", "seed", "labels", "early"]
    return pd.DataFrame(rows, columns=columns)


# %%
memories = beside_crs(settings)
settings.write(memories, "beside_crs")
memories.groupby(["dataset", "method"], sort=False).mean().drop(columns="seed").round(2)

# %% jupyter={"source_hidden": true} tags=["answer"]
from prslib.report.answers import join_words, write_answer

chosen, changes = {}, []
for name in settings.dataset:
    overall = gaps[(gaps["dataset"] == name) & (gaps["group"] == "overall")]
    overall = overall.pivot(index="rho", columns="metric", values="difference")
    chosen[name] = overall.min(axis=1).idxmax()
    cells = overall.loc[chosen[name], ["C-F1", "O-F1", "mAP"]].map("{:+.1f}".format)
    changes.append(f"{join_words(cells)} points on {name}")
words = [f"rho {rho:g} on {name}" for name, rho in chosen.items()]
if len({*chosen.values()}) == 1:
    words = [f"rho {chosen[name]:g}"]
sentence = f"Take {join_words(words)}. C-F1, O-F1 and mAP change against CRS by {'; '.join(changes)}."
write_answer(settings, sentence, settings.dataset[0])
