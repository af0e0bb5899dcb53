"""The gradient variance of several runs side by side, and the sentences that compare methods."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter
from scipy.stats import gmean

from prslib.datasets import load_dataset
from prslib.report.statistics import NEITHER, over_seeds, spread
from prslib.report.style import COLOURS, MARKERS, in_order
from prslib.training.methods import METHODS

# with whom the paper's figures compare PRS, and find it above: by the data set they are of
COMPARED = {
    "Imbal-MNISTseq": ("CRS", "GSS"),
    "COCOseq": ("CRS", "GSS", "ExStream"),
}
KEYS = ["dataset", "than"]


def variances_of(runs: Sequence) -> pd.DataFrame:
    """Join the gradient variances of several runs into one tidy frame (Sec. "Gradient Variance").

    Parameters
    ----------
    runs : sequence of Run
        Runs that measured it.

    Returns
    -------
    DataFrame
        The columns of `Run.gradient_variance`, and seen, the share of the stream in percent: runs
        whose tasks come in another order drop another number of images at the tasks' ends, so that
        their points agree in this and not in images.

    Raises
    ------
    ValueError
        If a run did not measure it.
    """
    for run in runs:
        if run.gradient_variance is None:
            raise ValueError(
                f"expected runs that measured the gradient variance, got {run.config.method} on "
                f"{run.config.dataset} without; ask for variance_points of a method with a memory"
            )
    frames = []
    for run in runs:
        rows = run.gradient_variance
        frames.append(rows.assign(seen=100 * np.arange(1, len(rows) + 1) / len(rows)))
    return pd.concat(frames, ignore_index=True)


def contrasts(rows: pd.DataFrame, method: str) -> pd.DataFrame:
    """Compare one method's gradient variance with every other's, seed by seed (same section).

    Parameters
    ----------
    rows : DataFrame
        As `variances_of` gives them, every run measured at the same points.
    method : str
        Whose variance is compared.

    Returns
    -------
    DataFrame
        dataset, than (the other method); difference, sd, low, high, seeds, coverage and clearly of
        the decimal logarithms' means over all points, as `prslib.report.statistics.over_seeds`
        gives them; ratio (10 to the difference), points_above (percent of the points, of all seeds,
        at which ``method`` is above), claimed ("above" where the paper's figure compares the two,
        else ""), and a sentence that says it. Only what both have measured counts, seed by seed and
        point by point; a method with nothing in common has no row.

    Notes
    -----
    Logarithms, because the variance moves over a factor of a hundred during a run, and a mean would
    be that of its highest points. A variance of 0, which a memory of one sample has, is left out.
    """
    found = []
    for dataset, part in rows.groupby("dataset", sort=False):
        wide = part.pivot(index=["seed", "seen"], columns="method", values="value")
        wide = np.log10(wide.where(wide > 0))
        stands_for = load_dataset(dataset, images=False).stands_for
        claims = COMPARED.get(stands_for, ()) if method == "PRS" else ()
        for than in [name for name in METHODS if name in wide and name != method]:
            gaps = (wide[method] - wide[than]).dropna()
            if gaps.empty:
                continue
            means = gaps.groupby("seed").mean().rename("value").reset_index()
            (row,) = over_seeds(means.assign(dataset=dataset, than=than), KEYS).to_dict("records")
            row |= {
                "ratio": 10 ** row["difference"],
                "points_above": 100 * (gaps > 0).mean(),
                "claimed": "above" if than in claims else "",
            }
            found.append(row | {"sentence": _sentence(row, method)})
    return pd.DataFrame(found)


def _sentence(row: dict, method: str) -> str:
    word = row["clearly"] or NEITHER
    claim = "the paper's figure does not compare the two"
    if row["claimed"]:
        verdict = {row["claimed"]: "holds", NEITHER: "is not shown"}.get(word, "does not hold")
        claim = f"the paper says {row['claimed']}, which {verdict} here"
    return (
        f"{row['dataset']}: the gradient variance of {method} is {word} that of {row['than']}, "
        f"{row['ratio']:.2f} times as large in the geometric mean over the stream (decimal "
        f"logarithm {row['difference']:+.2f}, {spread(row, digits=2)}), and above at "
        f"{row['points_above']:.0f} % of the points; {claim}."
    )


def plot_gradient_variance(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the gradient variance over memory during training (Figures "gradient variance").

    Parameters
    ----------
    frame : DataFrame
        Columns method, seed, seen (share of the stream in percent), value; one data set.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        With the geometric mean over seeds and a band of one standard deviation of the logarithm,
        on a logarithmic scale.
    """
    methods = in_order(frame["method"])
    sns.lineplot(
        frame,
        x="seen",
        y="value",
        hue="method",
        style="method",
        hue_order=methods,
        style_order=methods,
        palette=COLOURS,
        markers={name: MARKERS[name] for name in methods},
        dashes=False,
        estimator=gmean,
        errorbar=_band,
        ax=ax,
    )
    ax.set(
        xlabel="share of the stream seen (%)",
        ylabel="gradient variance over memory\n(loss²/weight²)",
        xlim=(0, 102),
        yscale="log",
    )
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.legend(title="")
    return ax


def _band(values: pd.Series) -> tuple[float, float]:
    """Return one standard deviation of the logarithm below and above the geometric mean."""
    logs = np.log(values)
    spread = logs.std() if len(logs) > 1 else 0.0
    return np.exp(logs.mean() - spread), np.exp(logs.mean() + spread)
