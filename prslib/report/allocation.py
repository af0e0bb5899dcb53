"""What a sweep over the power of allocation says."""

import pandas as pd


def best_rho(rows: pd.DataFrame) -> pd.DataFrame:
    """Find the best power of allocation and what the ends cost (Figure "power of allocation").

    Parameters
    ----------
    rows : DataFrame
        Columns dataset, metric, rho, seed, value in percent.

    Returns
    -------
    DataFrame
        dataset, metric, best_rho, best, lowest_rho and highest_rho of the sweep, at_lowest and
        at_highest (mean over seeds, percent), and a sentence that says it.
    """
    found = []
    for (dataset, metric), part in rows.groupby(["dataset", "metric"], sort=False):
        means = part.groupby("rho")["value"].mean()
        low, high, best = means.index.min(), means.index.max(), means.idxmax()
        inside = "inside" if -0.2 <= best <= 0.2 else "outside"
        sentence = (
            f"{dataset}, {metric}: best at rho = {best:g} with {means[best]:.1f} %, {inside} the "
            f"paper's range [-0.2, 0.2]; {means[best] - means[low]:.1f} points less at rho = "
            f"{low:g} and {means[best] - means[high]:.1f} less at rho = {high:g}."
        )
        found.append(
            {
                "dataset": dataset,
                "metric": metric,
                "best_rho": best,
                "best": means[best],
                "lowest_rho": low,
                "at_lowest": means[low],
                "highest_rho": high,
                "at_highest": means[high],
                "sentence": sentence,
            }
        )
    return pd.DataFrame(found)
