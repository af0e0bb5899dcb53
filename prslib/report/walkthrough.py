"""PRS step by step on a short stream, and its memory against its quota on a long one."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

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
