"""The gradient variance of several runs side by side, and the sentences that compare methods."""

from collections.abc import Sequence

import pandas as pd

from prslib.datasets import load_dataset

# with whom the paper's figures compare PRS, and find it above: by the data set they are of
COMPARED = {
    "Imbal-MNISTseq": ("CRS", "GSS"),
    "COCOseq": ("CRS", "GSS", "ExStream"),
}


def variances_of(runs: Sequence) -> pd.DataFrame:
    """Join the gradient variances of several runs into one tidy frame (Sec. "Gradient Variance").

    Parameters
    ----------
    runs : sequence of Run
        Runs that measured it.

    Returns
    -------
    DataFrame
        The columns of `Run.gradient_variance`.

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
    return pd.concat([run.gradient_variance for run in runs], ignore_index=True)


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
        dataset, than (the other method), difference and sd over seeds of the means over all points,
        ratio (of the means over seeds), seeds, points_above (percent of the points, of all seeds,
        at which ``method`` is above), claimed ("above" where the paper's figure compares the two,
        else ""), and a sentence that says it. Seeds that only one of the two has are left out.
    """
    found = []
    for dataset, part in rows.groupby("dataset", sort=False):
        wide = part.pivot(index=["seed", "images"], columns="method", values="value")
        stands_for = load_dataset(dataset, images=False).stands_for
        claims = COMPARED.get(stands_for, ()) if method == "PRS" else ()
        for than in (name for name in wide if name != method):
            both = wide[[method, than]].dropna()
            means = both.groupby("seed").mean()
            gaps = means[method] - means[than]
            row = {
                "dataset": dataset,
                "than": than,
                "difference": gaps.mean(),
                "sd": gaps.std(),
                "ratio": means[method].mean() / means[than].mean(),
                "seeds": len(gaps),
                "points_above": 100 * (both[method] > both[than]).mean(),
                "claimed": "above" if than in claims else "",
            }
            found.append(row | {"sentence": _sentence(row, method)})
    return pd.DataFrame(found)


def _sentence(row: dict, method: str) -> str:
    seeds, gap = row["seeds"], row["difference"]
    spread = "one seed" if seeds == 1 else f"s.d. {row['sd']:.2g} over {seeds} seeds"
    clear = seeds > 1 and abs(gap) > row["sd"]
    word = ("above" if gap > 0 else "below") if clear else "not clearly apart from"
    verdict = "holds" if word == row["claimed"] else "does not hold"
    claim = (
        f"the paper says above, which {verdict} here"
        if row["claimed"]
        else ("the paper's figure does not compare the two")
    )
    return (
        f"{row['dataset']}: the gradient variance of {method} is {word} that of {row['than']}, by "
        f"{gap:+.2g} on average over the stream ({spread}), {row['ratio']:.2f} times as large, and "
        f"above at {row['points_above']:.0f} % of the points; {claim}."
    )
