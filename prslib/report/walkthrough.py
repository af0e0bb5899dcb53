"""Follow PRS sample by sample on a short stream; compare memory and quotas on a long one."""

import io
from typing import NamedTuple

import ipywidgets
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.style import context as style_context
from matplotlib.ticker import MaxNLocator

from prslib.checks import expected, whole
from prslib.report.notebook import Parameters, several
from prslib.report.style import HUES, LOOKS, STYLE
from prslib.samplers import make_sampler
from prslib.samplers.explain import Decision

FATES = {
    "kept": {"color": "#D55E00", "marker": "o"},
    "overwritten": {"color": "#56B4E9", "marker": "s"},
    "dropped": {"color": "#999999", "marker": "x"},
}
ENTRIES = {"entered": FATES["kept"], "dropped": FATES["dropped"]}
ROLES = {  # of a sample when another takes a slot
    "removed": {"color": "#D55E00", "marker": "X"},
    "as good": {"color": "#E69F00", "marker": "o"},
    "in K": {"color": "#56B4E9", "marker": "s"},
    "not in K": {"color": "#999999", "marker": "D"},
}
ABOVE = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}  # where legends go
FULL = {"color": "0.4", "linewidth": 1, "linestyle": "--", "label": "memory full"}
CLASSES = 70  # of the long stream
LARGEST = 4000  # samples in memory
# of the sliders' axes: finding a place takes as long as drawing them
PLACE = (0.08, 0.14, 0.91, 0.75)
RHO_MARKERS = "oDs^vP"
LETTERS = np.array(list("ABCDE"))  # the classes of the short stream


class Settings(Parameters):
    """Parameters of the notebook, which explains them."""

    rho: float = 0.0
    memory_size: int = 12
    seed: int = 73
    rhos: list[float] = several(-0.5, 0.0, 0.5, 1.0)
    samples: int = 35_000

    def __post_init__(self) -> None:
        """Also refuse a stream that is too short for the sliders."""
        super().__post_init__()
        whole("samples", self.samples, least=200)


class Step(NamedTuple):
    """One sample's way through Algorithm 1."""

    sample: int  # its number in the stream, from 1
    label: np.ndarray  # bool (C,)
    decision: Decision  # what the sampler said beforehand that it would do
    slot: int  # the slot that the sample got, -1 for none
    memory: np.ndarray  # bool (n, C), the labels in the filled slots before


def skewed_stream(
    samples: int, classes: int, skew: float, second_labels: float = 0.22, seed: int = 0
) -> np.ndarray:
    """Draw labels, bool (samples, C); class k's chance is in proportion to k^-skew."""
    rng = np.random.default_rng(seed)
    chance = np.cumsum(np.arange(1, classes + 1) ** -float(skew))
    drawn = np.searchsorted(chance, rng.random((2, samples)) * chance[-1], side="right")
    first, second = np.eye(classes, dtype=np.bool_)[drawn]  # (samples, C)
    second &= rng.random((samples, 1)) < second_labels  # 0.22 is COCOseq's share
    return first | second


def walk(stream: np.ndarray, size: int, rho: float, seed: int) -> list[Step]:
    """Send a stream through PRS and record every step (Algorithm 1)."""
    sampler = make_sampler("prs", size, stream.shape[1], seed, rho=rho)
    steps = []
    for sample, label in enumerate(stream, start=1):
        memory = sampler.labels[: len(sampler)]
        decision = sampler.explain(label)
        slot = int(sampler.place(label[None])[0])
        steps.append(Step(sample, label, decision, slot, memory))
    return steps


def fates(steps: list[Step]) -> pd.DataFrame:
    """Say what became of each sample, as in `FATES`; a row for each of its labels.

    The distance is the memory's to its target as the sample arrives (cf. Eq. 5).
    """
    frame = pd.DataFrame(steps)
    frame["class"] = frame["label"].map(np.flatnonzero)
    frame["acceptance"] = [step.decision.acceptance for step in steps]
    frame["distance"] = [np.abs(step.decision.surplus).sum() for step in steps]
    frame["entered"] = frame["slot"] >= 0
    frame["fate"] = "kept"
    frame.loc[frame["slot"].duplicated(keep="last"), "fate"] = "overwritten"
    frame.loc[~frame["entered"], "fate"] = "dropped"
    return frame.explode("class", ignore_index=True).astype({"class": int})


def quotas(stream: np.ndarray, size: int, rhos: list[float], seed: int) -> pd.DataFrame:
    """Return the quota and the labels in memory of every class, for each rho (Eq. 1)."""
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


def contributions(step: Step) -> pd.DataFrame:
    """Return what each label of a sample adds to its chance to enter (Eq. 2)."""
    decision = step.decision
    frame = pd.DataFrame({"n": decision.class_freq, "m": decision.quota})
    frame["ratio"] = frame["m"] / frame["n"]
    frame["w"] = decision.weight
    frame["product"] = frame["ratio"] * frame["w"]
    return frame[step.label].rename_axis("class").reset_index()


def surpluses(step: Step) -> pd.DataFrame:
    """Return how far each class is above its target, and its chance to be shrunk (Eq. 3)."""
    decision = step.decision
    counts = step.memory.sum(axis=0)
    frame = pd.DataFrame({"class": range(len(counts)), "in_memory": counts})
    frame["target"] = decision.partition * counts.sum()
    frame["surplus"] = decision.surplus
    frame["q"] = decision.scarce.astype(int)
    frame["probability"] = decision.class_probability
    return frame


def shrunk_class(step: Step) -> int:
    """Return the most likely class whose shrinking explains the slot that was taken."""
    decision = step.decision
    possible = [c for c, slots in decision.leaving.items() if step.slot in slots]
    return max(possible, key=lambda c: decision.class_probability[c])


def candidates(step: Step) -> pd.DataFrame:
    """Return the members of the shrunk class with their scores and distances (Eqs. 4, 5)."""
    decision = step.decision
    chosen = shrunk_class(step)
    in_k = decision.candidates[chosen]
    slots = np.flatnonzero(step.memory[:, chosen])
    members = step.memory[slots]
    frame = pd.DataFrame({"labels": map(names, members)}, index=slots)
    frame["score"] = (~members & decision.scarce).sum(axis=1)
    frame["distance"] = pd.Series(decision.distance[chosen], in_k)
    frame["role"] = "not in K"
    frame.loc[in_k, "role"] = "in K"
    frame.loc[decision.leaving[chosen], "role"] = "as good"
    frame.loc[step.slot, "role"] = "removed"
    return frame.rename_axis("slot").reset_index()


def clearest_removal(steps: list[Step]) -> Step:
    """Return the first removal whose candidates have the most roles."""
    removals = [s for s in steps if s.slot >= 0 and s.decision.candidates]
    if not removals:
        advice = "choose a smaller memory or another seed"
        raise ValueError(expected("a sample that takes another's slot", "none", advice))
    return max(removals, key=lambda step: candidates(step)["role"].nunique())


def names(label: np.ndarray) -> str:
    """Return the letters of a sample's classes, such as "A C"."""
    return " ".join(LETTERS[label])


def outside_quota(frame: pd.DataFrame) -> float:
    """Return the share of the labels in memory that are above the quota of their class."""
    apart = (frame["in_memory"] - frame["quota"]).abs().sum() / 2
    return apart / frame["in_memory"].sum()


def plot_fates(frame: pd.DataFrame, full_at: int, ax: Axes) -> Axes:
    """Draw each label of a stream with a mark for the fate of its sample (Algorithm 1)."""
    ends = frame.groupby("sample")["class"].agg(["min", "max"])
    ax.plot([ends.index, ends.index], ends.T, color="0.75", linewidth=1)
    for fate, look in FATES.items():
        dots = frame[frame["fate"] == fate]
        ax.plot(dots["sample"], dots["class"], ls="", label=fate, **look)
    ax.axvline(full_at + 0.5, **FULL)
    ax.set_yticks(range(len(LETTERS)), LETTERS)
    ax.set(xlabel="sample of the stream", ylabel="class")
    ax.invert_yaxis()
    ax.legend(ncols=4, **ABOVE)
    return ax


def plot_frequencies(stream: np.ndarray, ax: Axes) -> Axes:
    """Draw the frequency n_i of each class in the stream (Eq. 1)."""
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    bars = ax.bar(LETTERS, stream.sum(axis=0), color="0.7", width=0.6)
    ax.bar_label(bars, fontsize=8.5, padding=2)
    ax.set(xlabel="class", ylabel="samples of the stream $n_i$")
    ax.margins(y=0.1)
    return ax


def plot_distances(frame: pd.DataFrame, full_at: int, ax: Axes) -> Axes:
    """Draw the memory's distance to its target along the stream (cf. Eq. 5)."""
    ax.plot(frame["sample"], frame["distance"], color="0.6", linewidth=1.2)
    for label, look in ENTRIES.items():
        dots = frame[frame["entered"] == (label == "entered")]
        ax.plot(dots["sample"], dots["distance"], ls="", label=label, **look)
    ax.axvline(full_at + 0.5, **FULL)
    ax.set(xlabel="sample of the stream", ylim=(0, None))
    ax.set_ylabel("distance to the\ntarget (labels)")
    ax.legend(ncols=3, **ABOVE)
    return ax


def plot_quotas(frame: pd.DataFrame, ax: Axes, letters: bool = True) -> Axes:
    """Draw quotas as lines and memories as marks, by letter or by rank on a log scale (Eq. 1)."""
    middle = (frame["rho"].nunique() - 1) / 2
    for k, (rho, classes) in enumerate(frame.groupby("rho")):
        look = {"color": HUES[k % len(HUES)], "label": rf"$\rho$ = {rho:g}"}
        look["marker"] = RHO_MARKERS[k % len(RHO_MARKERS)]
        # few marks: side by side
        rank = classes["class"] + (0.08 * (k - middle) if letters else 1)
        ax.plot(rank, classes["quota"], color=look["color"], linewidth=1.4)
        ax.plot(rank, classes["in_memory"], ls="", markersize=4.5, **look)
    if letters:
        ax.set_xticks(range(len(LETTERS)), LETTERS)
        ax.set(xlabel="class", ylabel="labels in memory", ylim=(-0.3, None))
    else:  # counts differ by powers of ten
        ax.set(xlabel="class, by rank in the stream", yscale="log")
        ax.set_ylabel("labels in memory (log scale)")
        ax.yaxis.set_major_formatter("{x:,.0f}")
    ax.legend(title="line: quota, mark: memory", title_fontsize=9)
    return ax


def plot_acceptance(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw samples' probabilities to enter a full memory and whether they did (Eq. 2)."""
    text = {"ha": "center", "va": "bottom", "fontsize": 8, "linespacing": 0.9}
    samples = frame.groupby(["sample", "acceptance", "entered"])
    for (sample, s, entered), rows in samples:
        look = ENTRIES["entered" if entered else "dropped"]
        ax.plot([sample, sample], [0, s], color=look["color"], linewidth=1.5)
        ax.plot(sample, s, **look)
        ax.text(sample, s + 0.03, "\n".join(LETTERS[rows["class"]]), **text)
    for label, look in ENTRIES.items():
        ax.plot([], [], label=label, **look)
    ax.set(xlabel="sample of the stream", ylabel="probability s to enter")
    ax.set(yticks=np.linspace(0, 1, 6), ylim=(0, 1.25))
    ax.legend(ncols=2, **ABOVE)
    return ax


def plot_surpluses(frame: pd.DataFrame, shrunk: int, ax: Axes) -> Axes:
    """Draw each class's surplus and write its probability to be shrunk beside it (Eq. 3)."""
    colours = np.where(frame["class"] == shrunk, "#D55E00", "#56B4E9")
    bars = ax.bar(LETTERS, frame["surplus"], color=colours, width=0.6)
    chances = [f"{100 * p:.0f} %" if p else "never" for p in frame["probability"]]
    ax.bar_label(bars, chances, fontsize=8.5, padding=3)
    ax.axhline(0, color="0.3", linewidth=0.8)
    ax.set(xlabel="class", ylabel=r"surplus $\delta_i$ (labels)")
    ax.margins(y=0.18)
    return ax


def plot_candidates(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the distance without each member of the shrunk class (Eq. 5); those outside K on top."""
    top = frame["distance"].max() + 0.6
    height = frame["distance"].fillna(top)
    for role, look in ROLES.items():
        ax.plot(height[frame["role"] == role], ls="", ms=9, label=role, **look)
    ticks = [f"{row.slot}\n{row.labels}" for row in frame.itertuples()]
    ax.set_xticks(range(len(frame)), ticks)
    ax.set_xlabel("slot and its labels")
    ax.set_ylabel("distance to the target\nwithout it (labels)")
    ax.set_ylim(frame["distance"].min() - 0.6, top + 0.4)
    ax.margins(x=0.12)
    ax.legend(ncols=4, columnspacing=1.2, **ABOVE)
    return ax


def memory_picture(
    samples: int, rho: float, size: int, skew: float, seed: int = 0
) -> bytes:
    """Send a skewed stream through a sampler; return a PNG of quotas and memory (Eq. 1)."""
    stream = skewed_stream(samples, CLASSES, skew, seed=seed)
    frame = quotas(stream, size, [rho], seed)
    labels = frame["in_memory"].sum()
    as_stream = labels * frame["frequency"] / frame["frequency"].sum()
    outside = f"{outside_quota(frame):.1%} of them not in their quota"
    file = io.BytesIO()
    with style_context([STYLE, {"figure.constrained_layout.use": False}]):
        figure = Figure(figsize=(9, 3.6))
        ax = plot_quotas(frame, figure.add_axes(PLACE), letters=False)
        ax.plot(frame["class"] + 1, as_stream, **LOOKS["Stream"])
        names = ["quota", "in memory", "as the stream"]
        ax.legend(ax.lines, names, ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
        ax.set_title(f"{labels:,} labels, {outside}")
        ax.set_ylim(0.7, 2 * LARGEST)
        ax.minorticks_off()
        figure.savefig(file, dpi=100)
    return file.getvalue()


def memory_sliders(samples: int, size: int, rho: float, seed: int) -> ipywidgets.VBox:
    """Return sliders above a `memory_picture`, which every move of a slider redraws."""
    largest = min(LARGEST, samples // 2)
    image = ipywidgets.Image(format="png", width=900)

    def redraw(rho: float, memory: int, skew: float) -> None:
        image.value = memory_picture(samples, rho, memory, skew, seed)

    sliders = ipywidgets.interactive(
        redraw,
        rho=ipywidgets.FloatSlider(rho, min=-1, max=1.5, step=0.05),
        memory=ipywidgets.IntSlider(size, min=10, max=largest, step=largest // 80),
        skew=ipywidgets.FloatSlider(1.0, min=0, max=2, step=0.1),
    )
    return ipywidgets.VBox([ipywidgets.HBox(sliders.children), image])
