"""Join the gradient variances of several runs, compare methods, and draw the curves."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from prslib import Run, RunConfig, configs, paired
from prslib.report.memory_distribution import check_memory
from prslib.report.notebook import Trained, several
from prslib.report.style import draw_curves, looks_of
from prslib.report.tables import labels_of
from prslib.statistics import over_seeds


class Settings(Trained):
    """Parameters of the notebook, which explains them."""

    dataset: list[str] = several("imbal-digits", "cocoseq-mini")
    rhos: list[float] = several(0.0, -0.03)
    points: list[int] = several(20, 8)
    method: list[str] = several("CRS", "GSS", "ExStream", "PRS")
    single_label_only: list[str] = several()


def runs(settings: Settings) -> list[RunConfig]:
    """List runs that measure the gradient variance over their memory."""
    check_memory(settings.method)
    made = []
    for_any = [m for m in settings.method if m not in settings.single_label_only]
    for row in paired(
        dataset=settings.dataset, rho=settings.rhos, variance_points=settings.points
    ):
        single = labels_of(row["dataset"]).train.single_label
        methods = settings.method if single else for_any
        made += configs(**row, seed=settings.seeds, method=methods)
    return made


def variances_of(runs: Sequence[Run]) -> pd.DataFrame:
    """Join the gradient variances of runs; "seen" is the share of the stream in percent."""
    frames = []
    for run in runs:
        # another order of the tasks drops another number of images
        count = len(run.gradient_variance)
        seen = 100 * np.arange(1, count + 1) / count
        frames.append(run.gradient_variance.assign(seen=seen))
    return pd.concat(frames, ignore_index=True)


def variance_contrasts(rows: pd.DataFrame) -> pd.DataFrame:
    """Compare PRS's gradient variance with all others', seed by seed and point by point."""
    rows = rows[rows["value"] > 0]  # a memory of one sample has 0
    # logarithms: a plain mean over the stream would be that of the highest points
    rows = rows.assign(value=np.log10(rows["value"]))
    prs = rows[rows["method"] == "PRS"]
    others = rows[rows["method"] != "PRS"].rename(columns={"method": "than"})
    gaps = others.merge(prs, on=["dataset", "seed", "seen"], suffixes=("", "_prs"))
    gaps["value"] = gaps["value_prs"] - gaps["value"]
    keys = ["dataset", "than"]
    by_seed = gaps.groupby([*keys, "seed"], sort=False)["value"].mean().reset_index()
    above = (gaps["value"] > 0).groupby([gaps[key] for key in keys], sort=False)
    table = over_seeds(by_seed, keys)
    # how many times as large in the geometric mean, and at how many points larger (%)
    ratio = 10 ** table["difference"]
    return table.assign(ratio=ratio, points_above=100 * above.mean().to_numpy())


def plot_gradient_variance(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the variances of one data set on a logarithmic scale, geometric means over seeds."""
    looks = looks_of(frame["method"])
    draw_curves(frame, ax, "seen", "method", looks, log=True)
    ax.set(xlabel="share of the stream seen (%)", xlim=(0, 104), yscale="log")
    ax.set_ylabel("gradient variance over memory\n(loss²/weight², log scale)")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
    return ax
