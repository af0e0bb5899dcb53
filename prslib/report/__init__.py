"""Turn runs into tables, sentences, verdicts and figures; each notebook has its module here."""

from prslib.report.tables import (
    GROUPS,
    METRICS,
    PRECISION_RECALL,
    average,
    beside,
    contrasts,
    final,
    main_table,
    progression,
    run_columns,
    scores_of,
    seed_gaps,
)

__all__ = [
    "GROUPS",
    "METRICS",
    "PRECISION_RECALL",
    "average",
    "beside",
    "contrasts",
    "final",
    "main_table",
    "progression",
    "run_columns",
    "scores_of",
    "seed_gaps",
]
