"""PRS step by step: samples and their fates, the chance to enter, the choice of what leaves."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

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
        As `prslib.report.telling.surpluses` gives it.
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
        As `prslib.report.telling.candidates` gives it.
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
