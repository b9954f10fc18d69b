"""Figures of leaderboards and studies, drawn by matplotlib."""

from jaxeval.plots.accuracy import (
    plot_accuracy,
    plot_differences,
    plot_interval_length,
    plot_rates,
    plot_regimes,
    plot_study,
)
from jaxeval.plots.anchored import plot_anchor_swap, plot_anchored, plot_pooling, plot_screen, plot_subsamples
from jaxeval.plots.evaluators import plot_agreement, plot_rank_change, plot_tau_delta
from jaxeval.plots.leaderboard import plot_leaderboard
from jaxeval.plots.references import plot_reference_budgets, plot_reference_tiers, plot_references
from jaxeval.plots.soft_elo import (
    plot_budget,
    plot_calibration,
    plot_held_out,
    plot_intervals,
    plot_ramp,
    plot_smoothing,
)
from jaxeval.plots.style_control import plot_coefficients, plot_style_effect

__all__ = [
    "plot_accuracy",
    "plot_agreement",
    "plot_anchor_swap",
    "plot_anchored",
    "plot_budget",
    "plot_calibration",
    "plot_coefficients",
    "plot_differences",
    "plot_held_out",
    "plot_interval_length",
    "plot_intervals",
    "plot_leaderboard",
    "plot_pooling",
    "plot_ramp",
    "plot_rank_change",
    "plot_rates",
    "plot_reference_budgets",
    "plot_reference_tiers",
    "plot_references",
    "plot_regimes",
    "plot_screen",
    "plot_smoothing",
    "plot_study",
    "plot_style_effect",
    "plot_subsamples",
    "plot_tau_delta",
]
