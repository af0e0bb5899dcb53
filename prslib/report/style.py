"""Set each method's colour, marker and order, and draw the plots that several notebooks share."""

import math
import textwrap
from collections.abc import Iterable, Sequence
from itertools import cycle, product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from prslib import DATASETS, METHODS
from prslib.paths import PACKAGE
from prslib.report.answers import name_streams
from prslib.report.tables import ALL_GROUPS, TEST_WORDS
from prslib.statistics import LEVEL

# the same whatever a user's matplotlibrc contains
STYLE = ["default", PACKAGE / "report" / "paper.mplstyle"]
Style = dict[str, Any]  # keywords of Axes.plot
# colours of Okabe and Ito, which the colour-blind can tell apart, and a grey; the
# methods of the paper in its order, then later ones
METHOD_STYLES: dict[str, Style] = {
    "Multitask": {"color": "#666666", "marker": "s"},
    "Finetune": {"color": "#000000", "marker": "X"},
    "EWC": {"color": "#A39400", "marker": "v"},  # darker than Okabe and Ito's yellow
    "CRS": {"color": "#0072B2", "marker": "o"},
    "GSS": {"color": "#009E73", "marker": "^"},
    "ExStream": {"color": "#CC79A7", "marker": "P"},
    "PRS": {"color": "#D55E00", "marker": "D", "zorder": 4},  # over all others
    "PRS, rho 0.5": {"color": "#8C3A00", "marker": "d"},
    "CBRS": {"color": "#56B4E9", "marker": "p"},
    "OCDM": {"color": "#E69F00", "marker": "h"},
    "DER++": {"color": "#00686E", "marker": "<"},
    "ER-ACE": {"color": "#7A4B00", "marker": ">"},
}
# for methods that are added by `prslib.register`, one after another
SPARE = cycle([("#A6003C", "*"), ("#3F5C9A", "H"), ("#8A5AAB", "8"), ("#5B7F00", "d")])
# of metrics, settings and class groups; no method has these colours
HUES = ("#332288", "#882255", "#8C6D31", "#117733", "#44AA99")
GROUP_COLOURS = {"majority": "#C5B0E0", "moderate": "#8461B8", "minority": "#3B1A6E"}
GROUP_MARKERS = {"majority": "o", "moderate": "^", "minority": "*"}
# marks of the paper's numbers
HOLLOW: Style = {"linestyle": ":", "markerfacecolor": "white", "markersize": 5}
Y_LABELS = {
    "than": "other method",
    "order": "order of the tasks",
    "memory": "memory size [paper's size]",
    "weights": "initial weights",
    "group": "class group",
}
DODGE = 0.07  # horizontal distance of curves that may coincide, in tasks
LETTER, MARK = 0.085, 6  # width of a legend's letter in inches; of its mark, in letters
# a phone shows NARROW inches on about 340 pixels, and letters of SMALLEST points on 8
# pixels
NARROW, SMALLEST = 5.0, 9  # inches, points
TALLEST = 3.2  # inches, of a panel
TITLE = 50  # letters per line in the title of a narrow figure


def styles_of(methods: Iterable[str]) -> dict[str, Style]:
    """Return the styles of methods in the main table's order; new ones get a spare style."""
    present = set(methods)
    for name in [*METHODS, *sorted(present)]:
        if name not in METHOD_STYLES:
            METHOD_STYLES[name] = dict(
                zip(("color", "marker"), next(SPARE), strict=True)
            )
    return {
        name: {"zorder": 3} | METHOD_STYLES[name]
        for name in METHOD_STYLES
        if name in present
    }


def styles_for(names: Sequence[str]) -> dict[str, Style]:
    """Return colours and markers for anything but methods; they repeat after five."""
    styles = zip(names, cycle(HUES), cycle("osD^v"), strict=False)
    return {
        name: {"color": colour, "marker": marker} for name, colour, marker in styles
    }


def join_panels(figure: Figure, title: str) -> None:
    """Add a title and one legend for all panels to a figure."""
    figure.suptitle(title)
    entries = {}
    for ax in figure.axes:
        handles, names = ax.get_legend_handles_labels()
        if legend := ax.get_legend():
            legend.remove()
        entries |= dict(zip(names, handles, strict=True))
    if entries:
        columns = legend_columns(list(entries), figure.get_figwidth())
        place = {"loc": "outside lower center", "ncols": columns}
        figure.legend(entries.values(), entries.keys(), **place)


def legend_columns(names: Sequence[str], width: float) -> int:
    """Return the largest number of columns of a legend that is at most `width` inches wide."""
    for rows in range(1, len(names)):
        columns = np.array_split(names, math.ceil(len(names) / rows))
        letters = sum(max(map(len, column)) + MARK for column in columns)
        if LETTER * letters <= width:
            return len(columns)
    return 1


def stack_panels(figure: Figure, columns: int = 1) -> None:
    """Arrange the panels of a figure in few columns, so that a phone can show their text."""
    places = [(ax, ax.get_subplotspec()) for ax in figure.axes]
    panels = [(ax, place) for ax, place in places if place is not None]
    rows = math.ceil(len(panels) / columns)
    tall = max(place.get_position(figure).height for _, place in panels)
    tall = min(tall * figure.get_figheight(), TALLEST)
    if any(1 in (ax.get_aspect(), ax.get_box_aspect()) for ax, _ in panels):
        tall = max(tall, NARROW / columns)  # squares as wide as the figure
    lowest = {place.colspan.start: ax.get_xlabel() for ax, place in panels}
    grid = GridSpec(rows, columns, figure)
    for number, (ax, place) in enumerate(panels):
        if not ax.get_xlabel():  # labelled by the lowest panel until now
            ax.set_xlabel(lowest[place.colspan.start])
        ax.set_subplotspec(grid[number])
        ax.tick_params(labelleft=True, labelbottom=True)
    for text in figure.findobj(Text):
        text.set_fontsize(max(text.get_fontsize(), SMALLEST))
    figure.set_size_inches(NARROW, 1 + rows * tall)
    title = figure.get_suptitle()
    lines = math.ceil(len(title) / TITLE)
    title = textwrap.fill(title, min(TITLE, len(title) // lines + 8))  # similar lines
    if figure.legends:
        figure.legends[0].remove()
        join_panels(figure, title)
    else:
        figure.suptitle(title)


def without_far_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out the paper's numbers for synthetic data, which are not comparable."""
    far = frame["dataset"].map(lambda name: DATASETS[name].data_source == "stand-in")
    compared = far & frame["value"].notna()  # rows with only the paper's number stay
    return frame.assign(published=frame["published"].mask(compared))


def draw_curves(
    frame: pd.DataFrame,
    ax: Axes,
    x: str,
    hue: str,
    styles: dict[str, Style],
    log: bool = False,
) -> None:
    """Draw means over `x` for each `hue`, with a band of one standard deviation."""
    frame = frame.assign(value=np.log(frame["value"])) if log else frame
    back = np.exp if log else np.asarray
    for name, style in styles.items():
        cells = frame[frame[hue] == name].groupby(x)["value"]
        mean, sd = cells.mean(), cells.std().fillna(0)
        line: Style = {"label": name} | style
        ax.plot(mean.index, back(mean), **line)
        band: Style = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
        ax.fill_between(mean.index, back(mean - sd), back(mean + sd), **band)
    if (frame.groupby([hue, x])["value"].nunique() > 1).any():
        about: Style = {"color": "0.3", "label": "one standard deviation"}
        ax.fill_between([], [], [], alpha=0.3, linewidth=0, **about)


def panel_grid(
    count: int, columns: int, top: float, height: float, **options: Any
) -> tuple[Figure, Sequence[Axes]]:
    """Make a figure with some panels, row by row, each `height` inches tall."""
    rows = math.ceil(count / columns)
    options |= {"figsize": (11, top + height * rows), "squeeze": False}
    figure, axes = plt.subplots(rows, columns, **options)
    for ax in axes.flat[count:]:
        ax.remove()
    return figure, axes.flat[:count]


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Name the rows of a plot, the first on top."""
    ax.set_yticks(range(len(names)), map(name_streams, names))
    ax.set_ylim(len(names) - 0.5, -0.5)


def plot_sample(image: np.ndarray, labels: str, ax: Axes) -> Axes:
    """Draw one image with its labels below (Figure "COCOseq")."""
    ax.imshow(image.squeeze(), cmap="gray", vmin=0, vmax=255)
    ax.set_xlabel("\n".join(textwrap.wrap(labels, 16)), fontsize=8, labelpad=2)
    ax.set(xticks=[], yticks=[])
    return ax


def plot_progression(frame: pd.DataFrame, ax: Axes, metric: str) -> Axes:
    """Draw a metric after every task, with bars of one s.d.; the paper's line is dotted."""
    styles = styles_of(frame["method"])
    for number, (name, style) in enumerate(styles.items()):
        rows = frame[frame["method"] == name].groupby("trained_tasks")
        mean, sd = rows["value"].mean(), rows["value"].std().fillna(0)
        line: Style = {"label": name} | style
        if len(mean) == 1 and frame["trained_tasks"].nunique() > 1:  # Multitask
            line |= {"linestyle": "--", "marker": "", "linewidth": 1.2, "zorder": 1}
            ax.axhline(mean.iloc[0], **line)
            continue
        at = mean.index + DODGE * (number - (len(styles) - 1) / 2)
        ax.plot(at, mean, **line)
        stroke: Style = {"color": style["color"], "linewidth": 1.2, "alpha": 0.7}
        ax.vlines(at, mean - sd, mean + sd, **stroke)
        if "published" in frame:
            theirs: Style = line | HOLLOW | {"linewidth": 1.2, "label": "_paper"}
            ax.plot(at, rows["published"].first(), **theirs)
    if (frame.groupby(["method", "trained_tasks"])["value"].nunique() > 1).any():
        ax.vlines([], [], [], "0.3", linewidth=1.2, label="one standard deviation")
    if "published" in frame:
        grey: Style = HOLLOW | {"color": "0.3", "marker": "o", "label": "paper"}
        ax.plot([], [], **grey)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="tasks trained", ylabel=f"{metric} (%)")
    ax.legend()
    return ax


def plot_contrasts(frame: pd.DataFrame, ax: Axes, y: str) -> Axes:
    """Draw `contrasts` with intervals in a row per value of `y`; fill significant ones."""
    values = list(frame[y].unique())
    rows = [group for group in ALL_GROUPS if group in values] or values
    frame = frame.assign(place=frame[y].map(rows.index))
    ax.hlines(frame["place"], frame["low"], frame["high"], "0.35", linewidth=1.8)
    clear, unclear = frame[frame["clearly"] != ""], frame[frame["clearly"] == ""]
    ax.plot(clear["difference"], clear["place"], "o", color="0.1", label="significant")
    hollow: Style = {"color": "0.1", "markerfacecolor": "white"}
    hollow["label"] = "not significant"
    ax.plot(unclear["difference"], unclear["place"], "o", **hollow)
    if frame["published"].notna().any():
        tick: Style = {"color": HUES[1], "markersize": 11, "markeredgewidth": 1.6}
        ax.plot(frame["published"], frame["place"], "|", label="paper", **tick)
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    name_rows(ax, rows)
    ax.set_xlabel("difference (points)")
    ax.grid(axis="x")
    return ax


def plot_samplers(frame: pd.DataFrame, ax: Axes, y: str, hue: str = "method") -> Axes:
    """Draw `contrasts` for each `hue` with intervals, a row for each value of `y`."""
    rows, hues = list(frame[y].unique()), list(frame[hue].unique())
    styles = styles_of(hues) if hue == "method" else styles_for(hues)
    for number, (name, style) in enumerate(styles.items()):
        cells = frame[frame[hue] == name]
        place = cells[y].map(rows.index) + 0.15 * (number - (len(styles) - 1) / 2)
        ax.hlines(place, cells["low"], cells["high"], style["color"], linewidth=1.5)
        mark: Style = {"linestyle": "", "markersize": 5, "label": name} | style
        ax.plot(cells["difference"], place, **mark)
    ax.axvline(0, color="black", linewidth=0.8)
    for border in np.arange(len(rows) - 1) + 0.5:
        ax.axhline(border, color="0.9", linewidth=0.8)
    name_rows(ax, rows)
    ax.grid(axis="y", visible=False)
    return ax


def contrast_panels(
    frame: pd.DataFrame, title: str, y: str, across: str = "metric"
) -> Figure:
    """Draw `contrasts` as a figure: a column of panels for each value of `across`.

    Each row of panels shows one data set and one test set, which its title names.
    """
    frame = frame.assign(
        row=frame["dataset"] + ", " + frame["test_set"].map(TEST_WORDS)
    )
    columns, rows = frame[across].unique(), frame["row"].unique()
    panels = list(product(rows, columns))
    shape = {"top": 1, "height": 0.75 + 0.22 * frame[y].nunique()}
    shape |= {"sharex": True, "sharey": "row"}
    figure, axes = panel_grid(len(panels), len(columns), **shape)
    for (row, column), ax in zip(panels, axes, strict=True):
        panel = frame[(frame["row"] == row) & (frame[across] == column)]
        plot_contrasts(panel, ax, y)
        # the first panel of a row names it
        is_first = column == columns[0]
        ax.set_title(f"{row}:\n{column}" if is_first else column)
        ax.label_outer()
    figure.supylabel(Y_LABELS.get(y, y), fontsize="medium")
    seeds = " or ".join(map(str, sorted(frame["seeds"].unique())))
    over = f"{100 * LEVEL:.0f} % intervals over {seeds} seeds"
    join_panels(figure, f"{title}, {'1 seed' if seeds == '1' else over}")
    return figure
