"""Set EWC's scores by strength beside Finetune's."""

from collections.abc import Sequence

import pandas as pd

from prslib.datasets.base import Recipe
from prslib.report.tables import beside, final, scores_of
from prslib.training.config import Run

PAPER_STRENGTH = Recipe.ewc_lambda  # "optimized among 5 order of magnitudes and tuned to 15k"


def scores_by_strength(runs: Sequence[Run], rows: pd.DataFrame) -> pd.DataFrame:
    """Set EWC's overall scores by strength beside Finetune's, which has none (Table 1, Appendix).

    The runs are EWC's; the rows are those of Table 1's methods, with the paper's numbers.
    """
    ewc = beside(final(scores_of(runs, "ewc_lambda")), "main")
    strengths = ewc[["ewc_lambda"]].drop_duplicates()
    finetune = rows[(rows["method"] == "Finetune") & rows["seed"].isin(ewc["seed"])]
    table = pd.concat([ewc, finetune.merge(strengths, how="cross")], ignore_index=True)
    table = table[(table["group"] == "overall") & (table["measure"] == "score")]
    table = table.sort_values("ewc_lambda", kind="stable", ignore_index=True)
    return table.assign(
        strength=table["ewc_lambda"].map("{:g}".format),
        published=table["published"].where(table["ewc_lambda"] == PAPER_STRENGTH),
    )
