"""Draw what `prslib.report.ledger` decides: verdicts, main claims, the lead of PRS."""

import textwrap
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from prslib.report.claims.base import FACT
from prslib.report.ledger import IMAGES, PLACE, digits_of
from prslib.report.results import STAND_IN, in_turn
from prslib.report.style import join_panels, looks_of
from prslib.statistics import VERDICTS

VERDICT_LOOKS = {  # colour and what to look for without colours
    "holds": {"color": "#0072B2", "marker": "o"},
    "does not hold": {"color": "#D55E00", "marker": "v"},
    "no difference": {"color": "#009E73", "marker": "s"},
    "undecided": {"color": "#777777", "marker": "D"},
    "not run": {"color": "#bbbbbb", "marker": ""},
    FACT: {"color": "black", "marker": "x"},
}
OPEN = {"markerfacecolor": "white"}
BOUNDS = ("Multitask", "Finetune")  # no rivals of PRS


def leads(frame: pd.DataFrame) -> pd.DataFrame:
    """Return PRS minus each rival of `cells` on real data, ours and the paper's."""
    is_real = (frame["status"] == "run") & (frame["data"] != STAND_IN)
    frame = frame[is_real & ~frame["method"].isin(BOUNDS)]
    by = [name for name in PLACE if name != "method"]
    by += ["kind", "dataset", "data"]
    scores = ["theirs", "ours"]
    table = frame[["method", *by, *scores]]
    is_prs = table["method"] == "PRS"
    prs = table[is_prs].drop(columns="method")
    others = table[~is_prs].rename(columns={"method": "than"})
    both = others.merge(prs, on=by, suffixes=("_than", ""))
    for name in scores:
        both[name] -= both[f"{name}_than"]
    return both[["than", *by, *scores]]


def describe_leads(frame: pd.DataFrame, metric: str) -> str:
    """Say how often ours of `leads` agree with the paper's."""
    same = ((frame["ours"] > 0) == (frame["theirs"] > 0)).sum()
    smaller = (frame["ours"] < frame["theirs"]).sum()
    return (
        f"In {metric} the sign is the paper's in {same} of {len(frame)} cells, "
        f"and PRS's lead is smaller than the paper's in {smaller}."
    )


def plot_agreement(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw `leads`, ours over the paper's; on the dashed line they are equal."""
    for method, look in looks_of(frame["than"]).items():
        rows = frame[frame["than"] == method]
        about = {"label": f"PRS minus {method}", "linestyle": "", "markersize": 4.5}
        ax.plot(rows["theirs"], rows["ours"], alpha=0.7, **about | look)
    values = frame[["theirs", "ours"]].to_numpy()
    # equal scales, as the dashed line is the diagonal
    low, high = min(0.0, values.min()) - 2, max(0.0, values.max()) + 2
    ax.plot([low, high], [low, high], color="0.35", linewidth=1, linestyle="--")
    ax.axhline(0, color="black", linewidth=0.8, zorder=1)
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    ax.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    ax.set(xlabel="paper (points)", ylabel="ours (points)")
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.yaxis.set_major_locator(MaxNLocator(5))
    return ax


def _explain(ax: Axes, name: str, linestyle: str = "", **look: str) -> None:
    """Give the legend a mark of its own."""
    ax.plot([], [], label=name, linestyle=linestyle, markersize=5, **look)


def plot_claims(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw each effect of `decide`, its interval and verdict; a tick is the paper's."""
    places = np.arange(len(frame))
    paper = {"color": "black", "marker": "|", "linestyle": ""}
    ax.plot(frame["published"], places, zorder=2, markersize=9, **paper)
    for y, row in zip(places, frame.itertuples(), strict=True):
        look = VERDICT_LOOKS[row.verdict] | (OPEN if row.seeds == 1 else {})
        ax.plot([row.low, row.high], [y, y], color=look["color"], linewidth=2, zorder=3)
        ax.plot(row.effect, y, zorder=4, markersize=5, **look)
    claims = frame.assign(place=places).groupby("claim", sort=False)["place"]
    for begin, end in zip(claims.min()[::2], claims.max()[::2], strict=True):
        ax.axhspan(begin - 0.5, end + 0.5, color="0.95", zorder=0, linewidth=0)
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    ax.set(ylim=(len(frame) - 0.5, -0.5))
    names = frame["statement"].mask(frame["claim"].duplicated(), "")
    ax.set_yticks(places, names + "   " + frame["dataset"])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("against the claim < 0 < for it (points)")
    ax.grid(axis="x")
    ax.grid(axis="y", visible=False)
    for name in VERDICTS:
        if name in set(frame["verdict"]):
            _explain(ax, name, "-", **VERDICT_LOOKS[name])
    if (frame["seeds"] == 1).any():
        _explain(ax, "open: one seed", **VERDICT_LOOKS["undecided"] | OPEN)
    if frame["published"].notna().any():
        ax.plot([], [], label="paper's own numbers", **paper)
    return ax


def plot_verdicts(frame: pd.DataFrame, names: Sequence[str], ax: Axes) -> Axes:
    """Draw the verdicts of `decide` in a grid, claims by data sets, with the effects."""
    statements = list(frame["statement"].unique())
    for verdict, rows in frame.groupby("verdict"):
        x = rows["dataset"].map(names.index)
        y = rows["statement"].map(statements.index)
        ax.barh(y, 0.96, left=x - 0.48, height=0.9, **_cell_look(str(verdict)))
    text = {"ha": "center", "va": "center", "fontsize": 9}
    for row in frame[frame["effect"].notna()].to_dict("records"):
        place = names.index(row["dataset"]), statements.index(row["statement"])
        colour = "black" if row["verdict"] == "undecided" else "white"
        effect = f"{row['effect']:+.{digits_of(row['unit'])}f}"
        ax.text(*place, effect, color=colour, **text)
    ax.set_xticks(range(len(names)), [])
    ax.set_yticks(range(len(statements)), map(_wrapped, statements))
    ax.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(statements) - 0.5, -0.5))
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    return ax


def verdict_panels(frame: pd.DataFrame, title: str) -> Figure:
    """Draw `plot_verdicts` as a figure, a panel for each unit, real data on the left."""
    frame = frame[frame["verdict"] != "not run"]
    relations = in_turn(frame["dataset"].unique())
    names = sorted(relations, key=lambda name: relations[name] == STAND_IN)
    units = list(frame["unit"].unique())
    rows = [frame.loc[frame["unit"] == unit, "statement"].nunique() for unit in units]
    height = 1.8 + 0.29 * sum(rows) + 0.5 * len(rows)
    figure, axes = plt.subplots(
        len(units),
        1,
        figsize=(5.2 + 0.75 * len(names), height),
        height_ratios=[count + 0.2 for count in rows],
        squeeze=False,
    )
    for ax, unit in zip(axes[:, 0], units, strict=True):
        plot_verdicts(frame[frame["unit"] == unit], names, ax)
        ax.set_title(f"in {unit}", fontsize=10, loc="center")
    top = axes[0, 0]
    about = [f"{name}\n({IMAGES[relations[name]]})" for name in names]
    top.xaxis.tick_top()
    top.set_xticks(range(len(names)), about, rotation=50, ha="left")
    for name in (*VERDICTS, FACT):
        if name in set(frame["verdict"]):
            top.bar(0, 0, label=name, **_cell_look(name))
    join_panels(figure, title)
    return figure


def _cell_look(verdict: str) -> dict:
    """Return the colour of a verdict; undecided is paler, also without colours."""
    alpha = 0.4 if verdict == "undecided" else 1
    return {"color": VERDICT_LOOKS[verdict]["color"], "alpha": alpha}


def _wrapped(statement: str) -> str:
    return "\n".join(textwrap.wrap(statement, 56))
