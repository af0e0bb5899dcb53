"""From runs to what a reader sees: tables, sentences, claims; a module a notebook, or a few."""

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
