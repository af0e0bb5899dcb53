"""What PRS decided on one sample of a walk, as tables and in sentences."""

import numpy as np
import pandas as pd

from prslib.plots.walkthrough import letter
from prslib.report.walkthrough import Step


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
