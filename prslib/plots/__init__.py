"""Pictures: each function takes a tidy frame and an axes, draws, and returns the axes."""

from prslib.paths import PACKAGE
from prslib.plots.architectures import plot_architectures
from prslib.plots.classes import plot_class_statistics, plot_labels_per_image
from prslib.plots.curation import plot_clustering_steps, plot_cooccurrence
from prslib.plots.evidence import plot_features, plot_gradient_variance
from prslib.plots.groups import plot_gaps, plot_groups, plot_metrics
from prslib.plots.ledger import plot_agreement, plot_claims
from prslib.plots.legend import share_legend
from prslib.plots.memory import plot_class_shares, plot_group_shares
from prslib.plots.orders import plot_order_pairs, plot_order_spread
from prslib.plots.precision_recall import plot_precision_recall
from prslib.plots.progression import plot_progression
from prslib.plots.samples import plot_sample
from prslib.plots.sweep import plot_sweep
from prslib.plots.tail import plot_tail_forgetting
from prslib.plots.variations import plot_variations
from prslib.plots.walkthrough import (
    plot_acceptance,
    plot_candidates,
    plot_distances,
    plot_fates,
    plot_frequencies,
    plot_quotas,
    plot_surpluses,
)

STYLE = PACKAGE / "plots" / "paper.mplstyle"

__all__ = [
    "STYLE",
    "plot_acceptance",
    "plot_agreement",
    "plot_architectures",
    "plot_candidates",
    "plot_claims",
    "plot_class_shares",
    "plot_class_statistics",
    "plot_clustering_steps",
    "plot_cooccurrence",
    "plot_distances",
    "plot_fates",
    "plot_features",
    "plot_frequencies",
    "plot_gaps",
    "plot_gradient_variance",
    "plot_group_shares",
    "plot_groups",
    "plot_labels_per_image",
    "plot_metrics",
    "plot_order_pairs",
    "plot_order_spread",
    "plot_precision_recall",
    "plot_progression",
    "plot_quotas",
    "plot_sample",
    "plot_surpluses",
    "plot_sweep",
    "plot_tail_forgetting",
    "plot_variations",
    "share_legend",
]
