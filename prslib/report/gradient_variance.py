"""Join the gradient variances of several runs, compare methods, and draw the curves."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from prslib.datasets import load_dataset
from prslib.report import notebook
from prslib.report.notebook import several
from prslib.report.statistics import NEITHER, spread
from prslib.report.style import draw_curves, looks_of
from prslib.report.tables import contrasts, seed_gaps
from prslib.training.config import Run, RunConfig
from prslib.training.grids import configs, paired
from prslib.training.methods import METHODS

# the methods that the paper's figures compare PRS with, and find below it, by data set
COMPARED = {"Imbal-MNISTseq": ("CRS", "GSS"), "COCOseq": ("CRS", "GSS", "ExStream")}


@dataclass(frozen=True)
class Settings(notebook.Settings):
    """Parameters of the notebook, which explains them."""

    dataset: list[str] = several("imbal-digits", "cocoseq-mini")
    rhos: list[float] = several(0.0, -0.03)
    points: list[int] = several(20, 8)
    method: list[str] = several("CRS", "GSS", "ExStream", "PRS")
    single_label_only: list[str] = several()
    seeds: list[int] = several(0, 1, 2, 3, 4)
    device: str = "cpu"


def runs(settings: Settings) -> list[RunConfig]:
    """List runs that measure the gradient variance over their memory."""
    made = []
    rows = paired(
        dataset=settings.dataset, rho=settings.rhos, variance_points=settings.points
    )
    for row in rows:
        methods = settings.method
        if not load_dataset(row["dataset"], images=False).train.single_label:
            methods = [m for m in methods if m not in settings.single_label_only]
        made += configs(**row, seed=settings.seeds, method=methods)
    return made


def variances_of(runs: Sequence[Run]) -> pd.DataFrame:
    """Join the gradient variances of runs; "seen" is the share of the stream in percent."""
    frames = []
    for run in runs:
        rows = run.gradient_variance
        if rows is None:
            raise ValueError(
                f"expected runs that measured the gradient variance, got {run.config.method} on "
                f"{run.config.dataset} without; ask for variance_points of a method with a memory"
            )
        # another order of the tasks drops another number of images
        frames.append(rows.assign(seen=100 * np.arange(1, len(rows) + 1) / len(rows)))
    return pd.concat(frames, ignore_index=True)


def variance_contrasts(rows: pd.DataFrame, method: str) -> pd.DataFrame:
    """Compare one method's gradient variance with all others', seed by seed and point by point."""
    # of logarithms: a plain mean over the stream would be that of the highest points
    rows = rows[rows["value"] > 0]  # a memory of one sample has 0
    rows = rows.assign(value=np.log10(rows["value"]))
    table = []
    for dataset, variances in rows.groupby("dataset", sort=False):
        stands_for = load_dataset(dataset, images=False).stands_for
        compared = COMPARED.get(stands_for, ()) if method == "PRS" else ()
        for than in METHODS:
            gaps = seed_gaps(variances, method, than, ["seen"])["value"].dropna()
            if than == method or gaps.empty:
                continue
            gap = contrasts(variances, method, than, over=["seen"]).iloc[0]
            row = {"dataset": dataset, "than": than} | gap.drop("sentence").to_dict()
            row["ratio"] = 10 ** row["difference"]
            row["points_above"] = 100 * (gaps > 0).mean()
            row["claimed"] = "above" if than in compared else ""
            table.append(row | {"sentence": _sentence(row, method)})
    return pd.DataFrame(table)


def _sentence(row: dict, method: str) -> str:
    """Say one row of `variance_contrasts`."""
    word = row["clearly"] or NEITHER
    claim = "the paper's figure does not compare the two"
    if row["claimed"]:
        verdicts = {row["claimed"]: "holds", NEITHER: "is not shown"}
        verdict = verdicts.get(word, "does not hold")
        claim = f"the paper says {row['claimed']}, which {verdict} here"
    return (
        f"{row['dataset']}: the gradient variance of {method} is {word} that of {row['than']}, "
        f"{row['ratio']:.2f} times as large in the geometric mean over the stream (decimal "
        f"logarithm {row['difference']:+.2f}, {spread(row, digits=2)}), and above at "
        f"{row['points_above']:.0f} % of the points; {claim}."
    )


def plot_gradient_variance(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the variances of one data set on a logarithmic scale, geometric means over seeds."""
    looks = looks_of(frame["method"])
    draw_curves(frame, ax, "seen", "method", looks, log=True)
    ax.set(xlabel="share of the stream seen (%)", xlim=(0, 104), yscale="log")
    ax.set_ylabel("gradient variance over memory\n(loss²/weight², log scale)")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.legend(title="")
    return ax
