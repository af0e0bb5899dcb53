"""How hard EWC holds on to its weights: its scores by strength, beside Finetune's."""

from collections.abc import Sequence

import pandas as pd

from prslib import report
from prslib.datasets.base import Recipe
from prslib.training.config import Run

PAPERS = Recipe.ewc_lambda  # "optimized among 5 order of magnitudes and tuned to 15k"


def by_strength(runs: Sequence[Run], rows: pd.DataFrame) -> pd.DataFrame:
    """Set EWC's overall scores by strength beside Finetune's (Table 1; Appendix, "Baselines").

    Parameters
    ----------
    runs : sequence of Run
        Finished runs of EWC with several strengths.
    rows : DataFrame
        Final scores of Table 1's methods with published, as `report.beside` gives them; of
        Finetune, the seeds that the runs have are taken.

    Returns
    -------
    DataFrame
        Columns strength (text), method, dataset, seed, metric, value and published, in percent.
        Finetune has no strength and stands beside each; the paper's numbers stand beside the
        paper's strength.
    """
    ewc = report.beside(report.final(report.scores_of(runs, "ewc_lambda")), "main")
    strengths = ewc[["ewc_lambda"]].drop_duplicates()
    finetune = rows[(rows["method"] == "Finetune") & rows["seed"].isin(ewc["seed"])]
    found = pd.concat([ewc, finetune.merge(strengths, how="cross")], ignore_index=True)
    found = found[(found["group"] == "overall") & (found["measure"] == "score")]
    found = found.sort_values("ewc_lambda", kind="stable", ignore_index=True)
    return found.assign(
        strength=found["ewc_lambda"].map("{:g}".format),
        published=found["published"].where(found["ewc_lambda"] == PAPERS),
    )
