"""Pictures: each function takes a tidy frame and an axes, draws, and returns the axes."""

from prslib.report.architectures import plot_architectures
from prslib.report.datasets import (
    plot_class_statistics,
    plot_clustering_steps,
    plot_cooccurrence,
    plot_labels_per_image,
    plot_sample,
)
from prslib.report.feature_tsne import plot_features
from prslib.report.gradient_variance import plot_gradient_variance
from prslib.report.ledger import plot_agreement, plot_claims
from prslib.report.memory_distribution import plot_class_shares, plot_group_shares
from prslib.report.precision_recall import plot_precision_recall
from prslib.report.rho_sweep import plot_sweep
from prslib.report.single_label import plot_order_pairs, plot_order_spread
from prslib.report.style import (
    STYLE,
    plot_gaps,
    plot_groups,
    plot_metrics,
    plot_progression,
    plot_variations,
    share_legend,
)
from prslib.report.tail_forgetting import plot_tail_forgetting
from prslib.report.walkthrough import (
    plot_acceptance,
    plot_candidates,
    plot_distances,
    plot_fates,
    plot_frequencies,
    plot_quotas,
    plot_surpluses,
)

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
