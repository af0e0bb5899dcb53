"""PRS step by step on a short stream, and its memory against its quota on a long one."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from prslib.samplers import make_sampler
from prslib.samplers.prs import Decision

LENGTH = 40  # samples of the stream that is walked through
NUM_CLASSES = 5
SKEW = 1.2  # a class's chance falls with its rank to this power
COMPANY = 0.3  # share of the samples that carry a second label


@dataclass(frozen=True)
class Step:
    """One sample's way through Algorithm 1, as the sampler itself took it.

    Attributes
    ----------
    label : bool (C,)
        The sample's labels.
    decision : Decision
        What the sampler said beforehand that it would do.
    slot : int
        What it did: the slot that the sample got, -1 for none.
    memory : bool (n, C)
        Labels in memory before, one row a filled slot.
    """

    label: np.ndarray
    decision: Decision
    slot: int
    memory: np.ndarray


def skewed_stream(
    samples: int, num_classes: int, skew: float, company: float = 0.22, seed: int = 0
) -> np.ndarray:
    """Draw the labels of a long-tailed stream (cf. Appendix, "Dataset Curation").

    Parameters
    ----------
    samples, num_classes : int
        Length of the stream and number of classes C.
    skew : float
        A class's chance falls with its rank to this power; 0 makes all classes alike.
    company : float
        Share of the samples that draw a second label; 0.22 gives COCOseq's mean of 1.22 labels.
    seed : int
        Of the draws.

    Returns
    -------
    bool (samples, C)
        Multi-hot labels, classes from frequent to rare. The two labels of a sample may fall on
        the same class, and are then one.

    Example
    -------
    >>> skewed_stream(1000, 3, skew=1.0, company=0.0).sum(0)
    array([511, 297, 192])
    """
    rng = np.random.default_rng(seed)
    chance = np.cumsum(np.arange(1, num_classes + 1) ** -float(skew))
    drawn = np.searchsorted(chance, rng.random((2, samples)) * chance[-1], side="right")
    labels = np.zeros((samples, num_classes), np.bool_)
    rows = np.arange(samples)
    labels[rows, drawn[0]] = True
    second = rng.random(samples) < company
    labels[rows[second], drawn[1, second]] = True
    return labels


def forty_samples(seed: int) -> np.ndarray:
    """Draw the labels of the stream that is walked through (cf. Figure 2).

    Parameters
    ----------
    seed : int
        Of the draws.

    Returns
    -------
    bool (40, 5)
        Multi-hot labels, classes from frequent to rare.

    Example
    -------
    >>> forty_samples(seed=0).shape
    (40, 5)
    """
    return skewed_stream(LENGTH, NUM_CLASSES, SKEW, COMPANY, seed)


def walk(stream: np.ndarray, size: int, rho: float, seed: int) -> list[Step]:
    """Send a stream through PRS and note every step (Algorithm 1).

    Parameters
    ----------
    stream : bool (N, C)
        Multi-hot labels.
    size : int
        Capacity of the memory m, in samples.
    rho : float
        Power of allocation.
    seed : int
        Of the sampler.

    Returns
    -------
    list of Step
        One for each sample.

    Example
    -------
    >>> [step.slot for step in walk(np.eye(3, dtype=bool), size=2, rho=0.0, seed=0)]
    [0, 1, 1]
    """
    sampler = make_sampler("prs", size, stream.shape[1], seed, rho=rho)
    steps = []
    for label in stream:
        decision, memory = sampler.explain(label), sampler.labels[: len(sampler)]
        steps.append(Step(label, decision, int(sampler.place(label[None])[0]), memory))
    return steps


def fates(steps: list[Step]) -> pd.DataFrame:
    """Return what became of every sample, one row for each of its labels (Algorithm 1).

    Parameters
    ----------
    steps : list of Step
        Of one stream.

    Returns
    -------
    DataFrame
        Columns sample (from 1), class, acceptance (s, 0 to 1), slot (-1 for none), fate
        ("kept" to the end, "overwritten" later or "dropped").
    """
    holder = {step.slot: k for k, step in enumerate(steps)}
    rows = []
    for k, step in enumerate(steps):
        kept = "kept" if holder[step.slot] == k else "overwritten"
        fate = "dropped" if step.slot < 0 else kept
        for c in np.flatnonzero(step.label):
            rows.append((k + 1, int(c), step.decision.acceptance, step.slot, fate))
    return pd.DataFrame(rows, columns=["sample", "class", "acceptance", "slot", "fate"])


def quotas(stream: np.ndarray, size: int, rhos: list[float], seed: int) -> pd.DataFrame:
    """Return quota and memory of every class at the end of a stream (Eq. 1).

    Parameters
    ----------
    stream : bool (N, C)
        Multi-hot labels.
    size : int
        Capacity of the memory m, in samples.
    rhos : list of float
        Powers of allocation, one sampler for each.
    seed : int
        Of the samplers.

    Returns
    -------
    DataFrame
        Columns rho, class, frequency (n_i over the stream), quota (p_i times the labels in memory,
        what l_i is led to), in_memory (l_i).

    Notes
    -----
    A memory of m samples with several labels holds more than m of them, so the quota m_i = m p_i
    is scaled to the labels that are there, as Eq. (3) does.
    """
    frames = []
    for rho in rhos:
        sampler = make_sampler("prs", size, stream.shape[1], seed, rho=rho)
        sampler.place(stream)
        nothing = np.zeros(stream.shape[1], np.bool_)
        held, partition = sampler.class_counts, sampler.explain(nothing).partition
        columns = {"rho": rho, "class": np.arange(stream.shape[1]), "frequency": sampler.class_freq}
        columns |= {"quota": partition * held.sum(), "in_memory": held}
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def distances(steps: list[Step]) -> pd.DataFrame:
    """Return the distance of the memory to its target as each sample arrives (cf. Eq. 5).

    Parameters
    ----------
    steps : list of Step
        Of one stream.

    Returns
    -------
    DataFrame
        Columns sample (from 1), distance (labels), entered.
    """
    rows = [
        (k + 1, float(np.abs(step.decision.surplus).sum()), step.slot >= 0)
        for k, step in enumerate(steps)
    ]
    return pd.DataFrame(rows, columns=["sample", "distance", "entered"])


def contributions(step: Step) -> pd.DataFrame:
    """Return what each label of a sample adds to its chance to enter (Eq. 2).

    Parameters
    ----------
    step : Step
        The sample.

    Returns
    -------
    DataFrame
        Columns class, n (n_i), m (m_i), ratio (m_i / n_i), w (w_i), product; one row a label.
    """
    own, decision = np.flatnonzero(step.label), step.decision
    frame = pd.DataFrame({"class": own, "n": decision.class_freq[own], "m": decision.quota[own]})
    frame["ratio"], frame["w"] = frame["m"] / frame["n"], decision.weight[own]
    frame["product"] = frame["ratio"] * frame["w"]
    return frame


def surpluses(step: Step) -> pd.DataFrame:
    """Return how far each class is from its target, and its chance to be shrunk (Eq. 3).

    Parameters
    ----------
    step : Step
        A sample that met a full memory.

    Returns
    -------
    DataFrame
        Columns class, in_memory (l_i), target (p_i times the labels in memory), surplus (delta_i),
        q, probability; one row a class.
    """
    decision, held = step.decision, step.memory.sum(0)
    columns = {"class": np.arange(len(held)), "in_memory": held}
    columns |= {"target": decision.partition * held.sum(), "surplus": decision.surplus}
    columns |= {"q": decision.scarce.astype(int), "probability": decision.class_probability}
    return pd.DataFrame(columns)


def shrunk_class(step: Step) -> int:
    """Return the class that the sampler shrank, the likeliest that fits what it did (Sec. 3.4).

    Parameters
    ----------
    step : Step
        A sample that took another's slot.

    Returns
    -------
    int
        A class with a chance, whose candidates that may go hold the slot.
    """
    decision = step.decision
    possible = [c for c, slots in decision.leaving.items() if step.slot in slots]
    return max(possible, key=lambda c: decision.class_probability[c])


def candidates(step: Step) -> pd.DataFrame:
    """Return the members of the class that was shrunk and what spoke for their removal (Eqs. 4, 5).

    Parameters
    ----------
    step : Step
        A sample that took another's slot.

    Returns
    -------
    DataFrame
        Columns slot, labels (such as "A C"), score ((not y).q), distance (NaN outside K), role
        ("removed", "as good", "in K" or "not in K"); one row a member.
    """
    chosen, decision = shrunk_class(step), step.decision
    slots = np.flatnonzero(step.memory[:, chosen])
    distance = dict(zip(decision.candidates[chosen], decision.distance[chosen], strict=True))
    best = set(decision.leaving[chosen].tolist())
    rows = []
    for slot in slots.tolist():
        score = int((~step.memory[slot] & decision.scarce).sum())
        role = "as good" if slot in best else "in K" if slot in distance else "not in K"
        role = "removed" if slot == step.slot else role
        rows.append((slot, names(step.memory[slot]), score, distance.get(slot, np.nan), role))
    return pd.DataFrame(rows, columns=["slot", "labels", "score", "distance", "role"])


def most_telling(steps: list[Step]) -> int:
    """Return the step whose removal shows most: the most different fates within the class.

    Parameters
    ----------
    steps : list of Step
        Of one stream, at least one of which took another's slot.

    Returns
    -------
    int
        Its place in the list, the first of the best.

    Raises
    ------
    ValueError
        If no sample took another's slot.
    """
    removals = [k for k, step in enumerate(steps) if step.slot >= 0 and step.decision.candidates]
    if not removals:
        raise ValueError(
            "no sample of the stream took another's slot; choose a smaller memory or another seed"
        )
    told = {k: candidates(steps[k]) for k in removals}
    return max(removals, key=lambda k: (told[k]["role"].nunique(), told[k]["distance"].nunique()))


def most_labelled(steps: list[Step], full_at: int) -> int:
    """Return the first sample with the most labels that met a full memory.

    Parameters
    ----------
    steps : list of Step
        Of one stream.
    full_at : int
        The number of samples that fill the memory.

    Returns
    -------
    int
        Its place in the list.
    """
    return max(range(full_at, len(steps)), key=lambda k: int(steps[k].label.sum()))


def tell_entry(steps: list[Step], place: int) -> str:
    """Say in a sentence how a sample fared at the door (Eq. 2).

    Parameters
    ----------
    steps : list of Step
        Of one stream.
    place : int
        The sample's place in the list.

    Returns
    -------
    str
        Markdown.
    """
    step = steps[place]
    what = "entered" if step.slot >= 0 else "was dropped"
    return (
        f"Sample {place + 1} ({names(step.label)}): the products below add up to "
        f"s = {step.decision.acceptance:.3f}, cut at 1; it {what}."
    )


def tell_removal(steps: list[Step], place: int) -> str:
    """Say in a sentence who made room for a sample (Eqs. 3 to 5).

    Parameters
    ----------
    steps : list of Step
        Of one stream.
    place : int
        The sample's place in the list.

    Returns
    -------
    str
        Markdown.
    """
    step = steps[place]
    chosen, decision = shrunk_class(step), step.decision
    return (
        f"Sample {place + 1} ({names(step.label)}) took slot {step.slot} from "
        f"{names(step.memory[step.slot])}. Class {letter(chosen)} was shrunk, which had a chance "
        f"of {decision.class_probability[chosen]:.0%}; {len(decision.candidates[chosen])} of its "
        f"{step.memory[:, chosen].sum()} members were in K, and "
        f"{len(decision.leaving[chosen])} of them might go."
    )


def tell_quotas(frame: pd.DataFrame) -> str:
    """Say for each rho how much of a memory is not where its quota wants it (Eq. 1).

    Parameters
    ----------
    frame : DataFrame
        As `quotas` gives it.

    Returns
    -------
    str
        Markdown, a line a rho.
    """
    lines = []
    for rho, own in frame.groupby("rho"):
        away = (own["in_memory"] - own["quota"]).abs().sum() / 2 / own["in_memory"].sum()
        rare = own["in_memory"].iloc[-1] / own["frequency"].iloc[-1]
        lines.append(
            f"- rho = {rho:g}: {away:.1%} of the labels in memory are not in their quota; of the "
            f"rarest class's {own['frequency'].iloc[-1]} samples {rare:.0%} are held."
        )
    return "\n".join(lines)


def names(label: np.ndarray) -> str:
    """Return the letters of a sample's classes.

    Parameters
    ----------
    label : bool (C,)
        Multi-hot labels.

    Returns
    -------
    str
        Such as "A C".
    """
    return " ".join(letter(c) for c in np.flatnonzero(label))


FATES = {"kept": "#D55E00", "overwritten": "#56B4E9", "dropped": "#999999"}
FATE_MARKERS = {"kept": "o", "overwritten": "s", "dropped": "x"}
ROLES = {"removed": "#D55E00", "as good": "#E69F00", "in K": "#56B4E9", "not in K": "#999999"}
ROLE_MARKERS = {"removed": "X", "as good": "o", "in K": "s", "not in K": "D"}
RHO_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]
RHO_MARKERS = "oDs^vP"


def letter(c: int) -> str:
    """Return the name of a class: A for class 0, B for class 1.

    Parameters
    ----------
    c : int
        The class.

    Returns
    -------
    str
        One letter.
    """
    return chr(ord("A") + int(c))


def _letters(classes) -> list[str]:
    return [letter(c) for c in classes]


def plot_fates(frame: pd.DataFrame, full_at: int, ax: Axes) -> Axes:
    """Draw a short stream, each label a mark that tells the sample's fate (Algorithm 1).

    Parameters
    ----------
    frame : DataFrame
        As `prslib.report.walkthrough.fates` gives it.
    full_at : int
        The number of samples that fill the memory.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        Samples along x, classes along y; labels of one sample are joined by a line.
    """
    for sample, own in frame.groupby("sample"):
        if len(own) > 1:
            ends = own["class"].min(), own["class"].max()
            ax.plot([sample, sample], ends, color="0.75", linewidth=1, zorder=1)
    for fate, marker in FATE_MARKERS.items():
        part = frame[frame["fate"] == fate]
        style = {"marker": marker, "color": FATES[fate], "linestyle": "", "label": fate}
        ax.plot(part["sample"], part["class"], **style, zorder=2)
    ax.axvline(full_at + 0.5, color="0.4", linewidth=1, linestyle="--", label="memory full")
    classes = range(int(frame["class"].max()) + 1)
    ax.set_yticks(classes, _letters(classes))
    ax.set(xlabel="sample of the stream", ylabel="class")
    ax.invert_yaxis()
    ax.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax


def plot_frequencies(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw how often each class came (n_i of Eq. 1).

    Parameters
    ----------
    frame : DataFrame
        As `prslib.report.walkthrough.quotas` gives it, for one or more rho.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With a bar a class.
    """
    own = frame[frame["rho"] == frame["rho"].iloc[0]]
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    bars = ax.bar(_letters(own["class"]), own["frequency"], color="0.7", width=0.6)
    ax.bar_label(bars, fontsize=8.5, padding=2)
    ax.set(xlabel="class", ylabel="samples of the stream $n_i$")
    ax.margins(y=0.1)
    return ax


def plot_distances(frame: pd.DataFrame, full_at: int, ax: Axes) -> Axes:
    """Draw the memory's distance to its target along the stream (cf. Eq. 5).

    Parameters
    ----------
    frame : DataFrame
        As `prslib.report.walkthrough.distances` gives it.
    full_at : int
        The number of samples that fill the memory.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With a line, and a mark for each sample that entered or was dropped.
    """
    ax.plot(frame["sample"], frame["distance"], color="0.6", linewidth=1.2, zorder=1)
    for entered, fate, label in ((True, "kept", "entered"), (False, "dropped", "dropped")):
        part = frame[frame["entered"] == entered]
        style = {"marker": FATE_MARKERS[fate], "color": FATES[fate], "linestyle": ""}
        ax.plot(part["sample"], part["distance"], **style, label=label, zorder=2)
    ax.axvline(full_at + 0.5, color="0.4", linewidth=1, linestyle="--", label="memory full")
    ax.set(xlabel="sample of the stream", ylabel="distance to the\ntarget (labels)", ylim=(0, None))
    ax.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax


def plot_quotas(frame: pd.DataFrame, ax: Axes, letters: bool = True) -> Axes:
    """Draw each class's quota as a line and what the memory holds as marks (Eq. 1).

    Parameters
    ----------
    frame : DataFrame
        As `prslib.report.walkthrough.quotas` gives it.
    ax : Axes
        Where to draw.
    letters : bool
        Whether classes are named A, B, C or numbered by rank, then on a log scale.

    Returns
    -------
    Axes
        With a colour and a marker for each rho.
    """
    middle = (frame["rho"].nunique() - 1) / 2
    for k, (rho, own) in enumerate(frame.groupby("rho")):
        colour, marker = RHO_COLOURS[k % len(RHO_COLOURS)], RHO_MARKERS[k % len(RHO_MARKERS)]
        rank = own["class"] + (0.08 * (k - middle) if letters else 1)  # few marks: side by side
        ax.plot(rank, own["quota"], color=colour, linewidth=1.4)
        style = {"marker": marker, "color": colour, "linestyle": "", "markersize": 4.5}
        held = own["in_memory"] if letters else own["in_memory"].replace(0, np.nan)
        ax.plot(rank, held, **style, label=rf"$\rho$ = {rho:g}")
    if letters:
        ax.set_xticks(range(frame["class"].nunique()), _letters(sorted(frame["class"].unique())))
        ax.set(xlabel="class", ylim=(-0.3, None))
    else:
        ax.set(xlabel="class, by rank in the stream", yscale="log")
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.set_ylabel("labels in memory" if letters else "labels in memory (log scale)")
    ax.legend(title="line: quota, mark: memory", title_fontsize=9)
    return ax


def plot_acceptance(frame: pd.DataFrame, full_at: int, ax: Axes) -> Axes:
    """Draw every sample's probability to enter and whether it did (Eq. 2).

    Parameters
    ----------
    frame : DataFrame
        As `prslib.report.walkthrough.fates` gives it.
    full_at : int
        The number of samples that fill the memory; only later ones are shown.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With a stem a sample, its labels written above.
    """
    later = frame[frame["sample"] > full_at]
    for sample, own in later.groupby("sample"):
        entered, s = own["slot"].iloc[0] >= 0, own["acceptance"].iloc[0]
        colour = FATES["kept"] if entered else FATES["dropped"]
        ax.plot([sample, sample], [0, s], color=colour, linewidth=1.5)
        ax.plot(sample, s, marker="o" if entered else "x", color=colour)
        text = {"ha": "center", "va": "bottom", "fontsize": 8, "linespacing": 0.9}
        ax.text(sample, s + 0.03, "\n".join(_letters(own["class"])), **text)
    ax.plot([], [], marker="o", color=FATES["kept"], label="entered")
    ax.plot([], [], marker="x", color=FATES["dropped"], label="dropped")
    ax.set(xlabel="sample of the stream", ylabel="probability s to enter", ylim=(0, 1.25))
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax


def plot_surpluses(frame: pd.DataFrame, shrunk: int, ax: Axes) -> Axes:
    """Draw each class's surplus and write its probability to be shrunk beside it (Eq. 3).

    Parameters
    ----------
    frame : DataFrame
        As `prslib.report.walkthrough.surpluses` gives it.
    shrunk : int
        The class that was shrunk.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With a bar a class.
    """
    colours = np.where(frame["class"] == shrunk, ROLES["removed"], ROLES["in K"])
    ax.bar(frame["class"], frame["surplus"], color=colours, width=0.6)
    for row in frame.itertuples():
        above = row.surplus >= 0
        text = f"{100 * row.probability:.0f} %" if row.probability else "never"
        style = {"ha": "center", "va": "bottom" if above else "top", "fontsize": 8.5}
        place = {"xytext": (0, 3 if above else -3), "textcoords": "offset points"}
        ax.annotate(text, (row.Index, row.surplus), **place, **style)
    ax.axhline(0, color="0.3", linewidth=0.8)
    ax.set_xticks(frame["class"], _letters(frame["class"]))
    ax.set(xlabel="class", ylabel=r"surplus $\delta_i$ (labels)")
    ax.margins(y=0.18)
    return ax


def plot_candidates(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the members of the shrunk class: in K or not, and the distance without each (Eq. 5).

    Parameters
    ----------
    frame : DataFrame
        As `prslib.report.walkthrough.candidates` gives it.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With a mark a member; those outside K stand on the upper edge.
    """
    top = frame["distance"].max() + 0.6
    for role, marker in ROLE_MARKERS.items():
        rows = np.flatnonzero(frame["role"] == role)
        if len(rows):
            height = frame["distance"].iloc[rows].fillna(top)
            style = {"marker": marker, "color": ROLES[role], "linestyle": "", "markersize": 9}
            ax.plot(rows, height, **style, label=role)
    ticks = [f"{row.slot}\n{row.labels}" for row in frame.itertuples()]
    ax.set_xticks(range(len(frame)), ticks)
    ax.set(xlabel="slot and its labels", ylabel="distance to the target\nwithout it (labels)")
    ax.set_ylim(frame["distance"].min() - 0.6, top + 0.4)
    ax.margins(x=0.12)
    ax.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), columnspacing=1.2)
    return ax
