"""The report's account: every cell ours against theirs, and every claim with its verdict."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from prslib.plots.methods import INK, MARKERS, in_order

VERDICTS = {  # colour and what to look for without colours
    "holds": ("#0072B2", "o"),
    "does not hold": ("#D55E00", "X"),
    "undecided": ("#777777", "D"),
    "not run": ("#bbbbbb", ""),
}
LINEAR = 10  # up to here the axis of effects is linear, beyond it logarithmic
TICKS = (-300, -100, -30, -10, -5, 0, 5, 10, 30, 100, 300)
ROW = 0.3  # between the data sets of one claim, in rows
FLOOR = -30  # percent: of forgetting, which has no lower end


def plot_agreement(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw our value of every published cell against the paper's (all tables).

    Parameters
    ----------
    frame : DataFrame
        Columns method, theirs, ours (percent) and stand_in; cells that were run.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        A mark for each cell, filled for the paper's own data and network and open for stand-ins;
        on the dashed line ours is the paper's. Marks below `FLOOR` stand on it, and are counted.
    """
    below = int((frame["ours"] < FLOOR).sum())
    frame = frame.assign(ours=frame["ours"].clip(FLOOR))
    if below:
        ax.text(103, FLOOR, f"{below} lower", ha="right", va="center", color="0.35", fontsize=8)
    for method in in_order(frame["method"]):
        for stand_in, rows in frame[frame["method"] == method].groupby("stand_in"):
            fill = "none" if stand_in else INK[method]
            style = {"marker": MARKERS[method], "edgecolors": INK[method], "facecolors": fill}
            ax.scatter(rows["theirs"], rows["ours"], s=16, linewidths=0.9, **style)
    ax.plot([0, 100], [0, 100], color="0.35", linewidth=1, linestyle="--", zorder=0)
    ticks = {"xticks": range(0, 101, 25), "yticks": range(0, 101, 25)}
    ax.set(xlabel="paper (%)", ylabel="ours (%)", aspect="equal", **ticks)
    lowest = min(0, frame[["theirs", "ours"]].min().min())  # forgetting may be below 0
    ax.set(xlim=(lowest - 3, 103), ylim=(lowest - 3, 103))
    marks = {name: (MARKERS[name], INK[name], "none") for name in in_order(frame["method"])}
    marks |= {"paper's data": ("o", "0.4", "0.4"), "stand-in": ("o", "0.4", "none")}
    handles = [
        Line2D([], [], marker=marker, color=colour, markerfacecolor=fill, ls="", markersize=5)
        for marker, colour, fill in marks.values()
    ]
    ax.legend(handles, list(marks))
    return ax


def plot_claims(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the effect of every claim with its interval, coloured by verdict (all claims).

    Parameters
    ----------
    frame : DataFrame
        Columns claim, statement, stands_for, effect, low, high, published and verdict, as
        `prslib.report.ledger.decide` gives them; claims from top to bottom, the data sets of a
        claim below each other in one row.
    ax : Axes
        Where to draw; about a quarter of an inch a claim is needed.

    Returns
    -------
    Axes
        A mark for the effect on each data set, a line for its interval, none for a single seed, and
        a tick for the same measure of the paper's own numbers.
    """
    labels = {}
    for name, rows in frame.groupby("claim", sort=False):
        middle, letters = (len(rows) - 1) / 2, " ".join(map(_letter, rows["stands_for"]))
        labels[name] = f"{rows['statement'].iloc[0]} [{letters}]"
        for i, row in enumerate(rows.itertuples()):
            _draw_claim(row, len(labels) - 1 + ROW * (i - middle), ax)
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    ax.set_xscale("symlog", linthresh=LINEAR, linscale=1.2)
    low, high = _limits(frame)
    ticks = [tick for tick in TICKS if low < tick < high]
    ax.set_xticks(ticks, [f"{tick:+d}" if tick else "0" for tick in ticks])
    ax.minorticks_off()
    ax.set_yticks(range(len(labels)), labels.values())
    ax.set(ylim=(len(labels) - 0.4, -0.6), xlim=(low, high))
    ax.set_xlabel(
        "against the claim < 0 < for it: effect in points, of the\n"
        f"gradient variance in %; logarithmic beyond {LINEAR} either side"
    )
    ax.grid(axis="x")
    ax.grid(axis="y", visible=False)
    for place in range(0, len(labels), 2):
        ax.axhspan(place - 0.5, place + 0.5, color="0.96", zorder=0, linewidth=0)
    _explain(frame, ax)
    return ax


def _draw_claim(row, y: float, ax: Axes) -> None:
    colour, marker = VERDICTS[row.verdict]
    ax.plot(row.published, y, marker="|", color="black", markersize=7, linestyle="", zorder=2)
    if row.verdict == "not run":
        return
    ax.plot([row.low, row.high], [y, y], color=colour, linewidth=2, zorder=3)
    several = np.isfinite(row.low)
    fill = colour if several else "white"
    ax.plot(row.effect, y, marker=marker, color=colour, markerfacecolor=fill, ms=5, zorder=4)


def _letter(stands_for: str) -> str:
    return stands_for.removeprefix("Imbal-")[0]


def _limits(frame: pd.DataFrame) -> tuple[float, float]:
    values = frame[["effect", "low", "high", "published"]].to_numpy(float)
    values = np.append(values[np.isfinite(values)], [-LINEAR, LINEAR])
    return 1.4 * values.min(), 1.4 * values.max()


def _explain(frame: pd.DataFrame, ax: Axes) -> None:
    counts, handles = frame["verdict"].value_counts(), {}
    for name, (colour, marker) in VERDICTS.items():
        if marker and name in counts:
            title = f"{name} ({counts[name]})"
            handles[title] = Line2D([], [], color=colour, marker=marker, markersize=5)
    if "not run" in counts:
        handles[f"no mark: not run ({counts['not run']})"] = Line2D([], [], linestyle="")
    open_mark = {"color": "#777777", "marker": "D", "markerfacecolor": "white", "linestyle": ""}
    handles["open: one seed"] = Line2D([], [], markersize=5, **open_mark)
    handles["paper's own numbers"] = Line2D([], [], color="black", marker="|", linestyle="")
    names = [f"{_letter(name)} {name}" for name in frame["stands_for"].unique()]
    handles["from the top: " + ", ".join(names[:2])] = Line2D([], [], linestyle="")
    handles[", ".join(names[2:])] = Line2D([], [], linestyle="")
    ax.legend(
        handles.values(), handles.keys(), ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0)
    )
