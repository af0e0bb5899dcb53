# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What does PRS do with one sample?
#
# *Partitioning Reservoir Sampling* (PRS) selects the samples of a small replay memory. This
# notebook follows PRS through a stream of forty samples. PRS has three parts, which are shown in
# the paper's Figure 2 and in its Algorithm 1:
#
# - The *partition* determines each class's share of the memory.
# - *Sample-in* accepts or rejects a new sample.
# - *Sample-out* selects the sample that the new one replaces.
#
# Every number below is computed by the sampler: `sampler.explain(label)` returns what
# `sampler.place(labels)` would do with a sample and why, but leaves the memory unchanged.
#
# *With the default parameters, the notebook takes 15 seconds; no network is trained.*

# %% tags=["parameters"]
profile: str = "quick"  # name of the profile; -f params/PROFILE/NOTEBOOK.yaml chooses another one
rho: float = 0.0  # power of allocation for the forty samples, any finite number
memory_size: int = 12  # samples in memory, for the forty samples
seed: int = 73  # random seed of the streams and the samplers
rhos: list[float] = [-0.5, 0.0, 0.5, 1.0]  # powers of allocation that are compared
samples: int = 35000  # length of the long stream, at least 200
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["functions"]
from functools import partial
from types import SimpleNamespace

import ipywidgets
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import Markdown
from matplotlib.ticker import MaxNLocator

from prslib.report import measures, notebook
from prslib.report.style import HUES, STYLE
from prslib.samplers import make_sampler

# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("walkthrough", globals())
settings

# %% [markdown]
# ## Forty samples
#
# The stream has five classes, from A (frequent) to E (rare). About every fourth sample has two
# labels, which the picture joins by a line. The first samples fill the memory (Algorithm 1, lines 6
# to 9). Each later sample is either dropped or overwrites a sample in memory. A sample in memory
# may be overwritten later. The default seed was chosen so that, with the default parameters, a
# single removal illustrates every case in the section on sample-out.
#
# If you run the notebook, two sliders change the size of the memory and the power $\rho$, which the
# next section explains.

# %% jupyter={"source_hidden": true} tags=["functions"]
FATES = {
    "kept": {"color": "#D55E00", "marker": "o"},
    "overwritten": {"color": "#56B4E9", "marker": "s"},
    "dropped": {"color": "#999999", "marker": "x"},
}

ABOVE = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}  # where legends go

LETTERS = np.array(list("ABCDE"))  # the classes of the short stream


def walk(stream: np.ndarray, size: int, rho: float, seed: int) -> list:
    """Send a stream through PRS and record every step (Algorithm 1)."""
    sampler = make_sampler("prs", size, stream.shape[1], seed, rho=rho)
    steps = []
    for sample, label in enumerate(stream, start=1):
        memory = sampler.labels[: len(sampler)]
        decision = sampler.explain(label)
        slot = int(sampler.place(label[None])[0])
        step = SimpleNamespace(sample=sample, label=label, decision=decision)
        step.slot = slot  # -1 for none
        step.memory = memory  # bool (n, C), labels in the filled slots before this step
        steps.append(step)
    return steps


def fates(steps: list) -> pd.DataFrame:
    """Return the fate of each sample (a key of `FATES`), with one row per label."""
    frame = pd.DataFrame(map(vars, steps))
    frame["class"] = frame["label"].map(np.flatnonzero)
    frame["acceptance"] = [step.decision.acceptance for step in steps]
    frame["fate"] = "kept"
    frame.loc[frame["slot"].duplicated(keep="last"), "fate"] = "overwritten"
    frame.loc[frame["slot"] < 0, "fate"] = "dropped"
    return frame.explode("class", ignore_index=True).astype({"class": int})


def draw_fates(frame: pd.DataFrame, full_at: int) -> plt.Figure:
    """Draw each label of a stream with a mark for the fate of its sample (Algorithm 1)."""
    figure, ax = plt.subplots(figsize=(5.2, 3))
    ends = frame.groupby("sample")["class"].agg(["min", "max"])
    ax.plot([ends.index, ends.index], ends.T, color="0.75", linewidth=1)
    for fate, look in FATES.items():
        dots = frame[frame["fate"] == fate]
        ax.plot(dots["sample"], dots["class"], ls="", label=fate, **look)
    full = {"color": "0.4", "linewidth": 1, "linestyle": "--", "label": "memory full"}
    ax.axvline(full_at + 0.5, **full)
    ax.set_yticks(range(len(LETTERS)), LETTERS)
    ax.set(xlabel="position in the stream", ylabel="class")
    ax.invert_yaxis()
    ax.legend(ncols=4, **ABOVE)
    return figure


def draw_again(stream: np.ndarray, seed: int, rho: float, memory_size: int) -> plt.Figure:
    """Send the samples through another sampler, and say how many of each class it keeps."""
    frame = fates(walk(stream, memory_size, rho, seed))
    figure = draw_fates(frame, memory_size)
    classes = LETTERS[frame.loc[frame["fate"] == "kept", "class"]]
    kept = ", ".join(f"{letter} {(classes == letter).sum()}" for letter in LETTERS)
    figure.suptitle(rf"$\rho$ = {rho:g}, {memory_size} in memory: {kept}")
    return figure

# %%
stream = measures.draw_labels(np.arange(1, 6) ** -1.2, 40, settings.seed, 0.3)
steps = walk(stream, settings.memory_size, settings.rho, settings.seed)
rows = fates(steps)
columns = ["sample", "class", "acceptance", "slot", "fate"]
settings.write(rows[columns], "stream")
figure = draw_fates(rows, settings.memory_size)
figure.suptitle("Labels of forty samples, and what became of each sample")
controls = {
    "rho": ipywidgets.FloatSlider(settings.rho, min=-1, max=1.5, step=0.1),
    "memory_size": ipywidgets.IntSlider(settings.memory_size, min=1, max=39),
}
settings.show(figure, "stream", redraw=partial(draw_again, stream, settings.seed), **controls)

# %% [markdown]
# ## The partition (Equation 1)
#
# A class $i$ that has been seen $n_i$ times has the target share
# $p_i = n_i^\rho / \sum_j n_j^\rho$. In a memory of $m$ samples, its quota is $m_i = m\,p_i$. With
# $\rho = 0$, all classes have the same target share. With $\rho = 1$, the target share of each
# class is its share of the stream. On average, conventional reservoir sampling gives each class
# this share, too. A power between 0 and 1 is a compromise between these two cases. A power below 0,
# such as -0.03 in the authors' code for COCOseq, gives rare classes larger shares than frequent
# ones.
#
# The left picture shows $n_i$. In the right picture, marks show how many labels of each class are
# in memory after the forty samples, and lines show the quotas. As in Equation 3, the quotas are
# scaled to the number of labels in memory, which exceeds the number of samples because some samples
# have two labels. A class stays below its quota if too few of its samples have occurred in the
# stream.

# %% jupyter={"source_hidden": true} tags=["functions"]
RHO_MARKERS = "oDs^vP"


def quotas(stream: np.ndarray, size: int, rhos: list[float], seed: int) -> pd.DataFrame:
    """Return each class's quota and number of labels in memory, for each rho (Eq. 1)."""
    frames = []
    nothing = np.zeros(stream.shape[1], np.bool_)
    for rho in rhos:
        sampler = make_sampler("prs", size, len(nothing), seed, rho=rho)
        sampler.place(stream)
        counts = sampler.class_counts
        # m samples hold more than m labels: the quota is scaled to the labels, as in
        # Eq. (3)
        quota = sampler.explain(nothing).partition * counts.sum()
        columns = {"frequency": sampler.class_freq, "quota": quota, "in_memory": counts}
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, keys=rhos, names=["rho", "class"]).reset_index()


def plot_frequencies(stream: np.ndarray, ax: plt.Axes) -> plt.Axes:
    """Draw the frequency n_i of each class in the stream (Eq. 1)."""
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    bars = ax.bar(LETTERS, stream.sum(axis=0), color="0.7", width=0.6)
    ax.bar_label(bars, fontsize=8.5, padding=2)
    ax.set(xlabel="class", ylabel="samples of the stream $n_i$")
    ax.margins(y=0.1)
    return ax


def plot_quotas(frame: pd.DataFrame, ax: plt.Axes, letters: bool = True) -> plt.Axes:
    """Draw quotas as lines and labels in memory as marks, by letter or rank (Eq. 1)."""
    middle = (frame["rho"].nunique() - 1) / 2
    for k, (rho, classes) in enumerate(frame.groupby("rho")):
        look = {"color": HUES[k % len(HUES)], "marker": RHO_MARKERS[k % len(RHO_MARKERS)]}
        # few marks are shown side by side
        rank = classes["class"] + (0.08 * (k - middle) if letters else 1)
        ax.plot(rank, classes["quota"], color=look["color"], linewidth=1.4)
        label = rf"$\rho$ = {rho:g}"
        ax.plot(rank, classes["in_memory"], ls="", markersize=4.5, label=label, **look)
    if letters:
        ax.set_xticks(range(len(LETTERS)), LETTERS)
        ax.set(xlabel="class", ylabel="labels in memory", ylim=(-0.3, None))
    else:  # counts differ by powers of ten
        ax.set(xlabel="class, by rank in the stream", yscale="log")
        ax.set_ylabel("labels in memory (log scale)")
        ax.yaxis.set_major_formatter("{x:,.0f}")
    ax.legend(title="line: quota, mark: memory", title_fontsize=9)
    return ax

# %%
by_class = quotas(stream, settings.memory_size, settings.rhos, settings.seed)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), width_ratios=[2, 3])
figure.suptitle("Class frequencies in the stream, and quotas and labels in memory")
plot_frequencies(stream, axes[0])
plot_quotas(by_class, axes[1]).set_title("after forty samples, one seed")
settings.write(by_class, "partition")
settings.show(figure, "partition")

# %% [markdown]
# ## Sample-in (Equation 2)
#
# A new sample enters a full memory with probability $s = \min(1, \sum_i w_i\, m_i / n_i)$. The
# weights $w_i$ are the softmax of $-n_i$ over the classes of the sample, so that the rarest of
# these classes has nearly all the weight. The probability $s$ is therefore close to the ratio
# $m_i / n_i$ of this class, capped at 1. In the picture, the letters above a mark are the classes
# of the sample. The table shows the terms of the sum for one sample with several labels.

# %% jupyter={"source_hidden": true} tags=["functions"]
ENTRIES = {"entered": FATES["kept"], "dropped": FATES["dropped"]}


def contributions(step: SimpleNamespace) -> pd.DataFrame:
    """Return what each label adds to the probability that its sample enters (Eq. 2)."""
    decision = step.decision
    frame = pd.DataFrame({"n": decision.class_freq, "m": decision.quota})
    frame["ratio"] = frame["m"] / frame["n"]
    frame["w"] = decision.weight
    frame["product"] = frame["ratio"] * frame["w"]
    return frame[step.label].rename_axis("class").reset_index()


def names(label: np.ndarray) -> str:
    """Return the letters of a sample's classes, such as "A C"."""
    return " ".join(LETTERS[label])


def plot_acceptance(frame: pd.DataFrame, ax: plt.Axes) -> plt.Axes:
    """Draw samples' probabilities of entering a full memory, and whether they entered (Eq. 2)."""
    text = {"ha": "center", "va": "bottom", "fontsize": 8, "linespacing": 0.9}
    for (sample, s, slot), rows in frame.groupby(["sample", "acceptance", "slot"]):
        look = ENTRIES["dropped" if slot < 0 else "entered"]
        ax.plot([sample, sample], [0, s], color=look["color"], linewidth=1.5)
        ax.plot(sample, s, **look)
        ax.text(sample, s + 0.03, "\n".join(LETTERS[rows["class"]]), **text)
    for label, look in ENTRIES.items():
        ax.plot([], [], label=label, **look)
    ax.set(xlabel="position in the stream", ylabel="probability s of entering")
    ax.set(yticks=np.linspace(0, 1, 6), ylim=(0, 1.25))
    ax.legend(ncols=2, **ABOVE)
    return ax

# %%
figure, ax = plt.subplots(figsize=(8, 3.2))
figure.suptitle("Probability that a sample enters the full memory")
later = rows[rows["sample"] > settings.memory_size]
plot_acceptance(later, ax)
settings.write(later[columns], "sample_in")
settings.show(figure, "sample_in")
shown = max(steps[settings.memory_size :], key=lambda step: step.label.sum())
terms = contributions(shown)
text = f"Sample {shown.sample} ({names(shown.label)}) enters with probability"
text += f" s = {shown.decision.acceptance:.3f}: the sum of the products, capped at 1."
display(Markdown(text), terms.round(4))

# %% [markdown]
# ## Sample-out (Equations 3 to 5)
#
# If the memory is full and a new sample has been accepted, a stored sample must be removed. If
# $l_i$ is the number of labels of class $i$ in memory, the surplus
# $\delta_i = l_i - p_i \sum_j l_j$ is the number of labels by which the class exceeds its target.
# PRS draws one of the classes with a positive surplus, with probability softmax$(\delta_i)$. The
# left picture shows the surpluses and these probabilities; the drawn class is orange.
#
# The *members* of the drawn class are its samples in memory. For each member, PRS counts the labels
# whose classes have no surplus. The candidates $K$ for removal are the members with the lowest
# count. In the paper's notation, the candidates have the largest $\neg y \cdot q$ (`score` in the
# table), with $q_i = 1$ if class $i$ has no surplus.
#
# PRS removes the candidate whose removal brings the memory closest to the target. The right picture
# shows the distance to the target after each possible removal; members that are not candidates are
# at the upper edge. If several candidates are equally good, one of them is drawn at random. The
# paper leaves this choice open. If the candidate in the first slot were always removed, the new
# sample would be stored there, and the newest member of the class would be overwritten again and
# again.

# %% jupyter={"source_hidden": true} tags=["functions"]
ROLES = {  # of samples in memory when a slot is overwritten
    "removed": {"color": "#D55E00", "marker": "X"},
    "equally good": {"color": "#E69F00", "marker": "o"},
    "other candidate": {"color": "#56B4E9", "marker": "s"},
    "no candidate": {"color": "#999999", "marker": "D"},
}


def shrunk_class(step: SimpleNamespace) -> int:
    """Return the most likely of the classes whose shrinking explains the overwritten slot."""
    decision = step.decision
    possible = [c for c, slots in decision.leaving.items() if step.slot in slots]
    return max(possible, key=lambda c: decision.class_probability[c])


def candidates(step: SimpleNamespace) -> pd.DataFrame:
    """Return the members of the shrunk class with their scores and distances (Eqs. 4, 5)."""
    decision = step.decision
    chosen = shrunk_class(step)
    in_k = decision.candidates[chosen]
    slots = np.flatnonzero(step.memory[:, chosen])
    members = step.memory[slots]
    frame = pd.DataFrame({"labels": map(names, members)}, index=slots)
    frame["score"] = (~members & decision.scarce).sum(axis=1)
    frame["distance"] = pd.Series(decision.distance[chosen], in_k)
    frame["role"] = "no candidate"
    frame.loc[in_k, "role"] = "other candidate"
    frame.loc[decision.leaving[chosen], "role"] = "equally good"
    frame.loc[step.slot, "role"] = "removed"
    return frame.rename_axis("slot").reset_index()


def clearest_removal(steps: list) -> SimpleNamespace:
    """Return the first of the removals with the largest number of different roles."""
    removals = [s for s in steps if s.slot >= 0 and s.decision.candidates]
    return max(removals, key=lambda step: candidates(step)["role"].nunique())


def plot_surpluses(step: SimpleNamespace, ax: plt.Axes) -> plt.Axes:
    """Draw each class's surplus, labelled with its probability of being shrunk (Eq. 3)."""
    classes = np.arange(len(LETTERS))
    colours = np.where(classes == shrunk_class(step), "#D55E00", "#56B4E9")
    bars = ax.bar(LETTERS, step.decision.surplus, color=colours, width=0.6)
    chance = step.decision.class_probability
    chances = [f"{100 * p:.0f} %" if p else "never" for p in chance]
    ax.bar_label(bars, chances, fontsize=8.5, padding=3)
    ax.axhline(0, color="0.3", linewidth=0.8)
    ax.set(xlabel="class", ylabel=r"surplus $\delta_i$ (labels)")
    ax.margins(y=0.18)
    return ax


def plot_candidates(frame: pd.DataFrame, ax: plt.Axes) -> plt.Axes:
    """Draw the distance without each member (Eq. 5); members outside K are on top."""
    top = frame["distance"].max() + 0.6
    height = frame["distance"].fillna(top)
    for role, look in ROLES.items():
        ax.plot(height[frame["role"] == role], ls="", ms=9, label=role, **look)
    ticks = [f"{row.slot}\n{row.labels}" for row in frame.itertuples()]
    ax.set_xticks(range(len(frame)), ticks)
    ax.set(xlabel="slot and its labels", ylim=(frame["distance"].min() - 0.6, top + 0.4))
    ax.set_ylabel("distance to the target\nwithout it (labels)")
    ax.margins(x=0.12)
    ax.legend(ncols=4, columnspacing=1.2, **ABOVE)
    return ax

# %%
shown = clearest_removal(steps)
members = candidates(shown)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.4))
figure.suptitle("Surplus of each class, and distances of the drawn class's members")
plot_surpluses(shown, axes[0])
plot_candidates(members, axes[1])
settings.write(members, "sample_out")
settings.show(figure, "sample_out")
text = f"Sample {shown.sample} ({names(shown.label)}) replaced the sample in slot {shown.slot}"
display(Markdown(f"{text} ({names(shown.memory[shown.slot])})."), members)

# %% [markdown]
# ## A long stream
#
# In this section, PRS processes a randomly drawn stream that is about as long as COCOseq. COCOseq,
# the paper's stream of COCO images, has 35,072 images of 70 classes with 1.22 labels per image. The
# memory has the same relative size as in the paper: 2,000 slots for a stream of 35,000 samples.
# Classes are ranked by frequency, and the probability of a class decreases with its rank.

# %%
size = settings.samples * 2 // 35
long = measures.draw_labels(np.arange(1, 71) ** -1.0, settings.samples, settings.seed)
kept = quotas(long, size, settings.rhos, settings.seed)
figure, ax = plt.subplots(figsize=(9, 3.8))
figure.suptitle("Quotas and labels in memory after a long stream")
plot_quotas(kept, ax, letters=False).set_title(f"memory of {size:,}, one seed")
settings.write(kept, "long_stream")
settings.show(figure, "long_stream")

# %% jupyter={"source_hidden": true} tags=["answer"]
sentence = "PRS is more likely to store a sample of rare classes than a sample of frequent classes,"
sentence += " and makes room by removing a sample of a class that exceeds its target share."
settings.write_answer(sentence)
