"""PRS step by step on a short stream, and its memory against its quota on a long one."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from prslib.plots.walkthrough import letter
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
    array([545, 290, 165])
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
    [0, 1, 0]
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
        f"{names(step.memory[step.slot])}. Class {letter(chosen)} was shrunk, which had a chance of "
        f"{decision.class_probability[chosen]:.0%}; {len(decision.candidates[chosen])} of its "
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
