"""The gain of more seeds: how much narrower intervals of PRS less CRS would be.

Run ``python studies/more_seeds.py``: it takes the runs of cocoseq-mini of the profile
"seeds" (trains what is missing) and writes figures/studies/more_seeds.csv. The variance
of a mean difference is that of the seeds, divided by their number, and that of the test
images, which more seeds leave as it is. Columns: `seeds`, standard errors in points of
the seeds' and the images' chance, and `narrower`, by how many percent thirty seeds make
the interval shorter.
"""

import sys
from pathlib import Path

import pandas as pd
from scipy.stats import t as student

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from prslib import run_all
from prslib.paths import figures_dir
from prslib.report import main_results
from prslib.report.statistics import with_draws
from prslib.report.tables import final, scores_of, seed_gaps

DATASET, MORE, LEVEL = "cocoseq-mini", 30, 0.95


def width(of_seeds: float, of_images: float, count: int) -> float:
    """Return an interval's width; of_seeds is the variance of one seed's difference."""
    variance = of_seeds / count + of_images
    freedom = (count - 1) * (variance / (of_seeds / count)) ** 2
    return 2 * variance**0.5 * student.isf((1 - LEVEL) / 2, freedom)


def main() -> None:
    configs = main_results.runs(main_results.Settings.of("seeds"))
    runs = run_all([one for one in configs if one.dataset == DATASET])
    gaps = seed_gaps(final(scores_of(runs)), "PRS", "CRS").dropna(subset="value")
    rows = []
    for (group, metric), cell in gaps.groupby(["group", "metric"], sort=False):
        values, count = with_draws(cell), len(cell)
        of_seeds = values[:, 0].var(ddof=1)
        of_images = values[:, 1:].mean(axis=0).var(ddof=1)
        ends = [width(of_seeds, of_images, number) for number in (count, MORE)]
        rows.append(
            {
                "group": group,
                "metric": metric,
                "seeds": count,
                "error_of_seeds": (of_seeds / count) ** 0.5,
                "error_of_images": of_images**0.5,
                "narrower": 100 * (1 - ends[1] / ends[0]),
            }
        )
    table = pd.DataFrame(rows).round(2)
    path = figures_dir("studies") / "more_seeds.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False)
    print(table)


if __name__ == "__main__":
    main()
