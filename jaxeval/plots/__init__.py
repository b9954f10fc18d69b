"""Figures of leaderboards and studies, drawn by matplotlib."""

from jaxeval.lazy_names import lazy_names

#: Modules, and the public names in them. Type checkers read __init__.pyi, which tests/stubs.py writes from this table.
_HOMES = {
    "accuracy": ["plot_accuracy", "plot_differences", "plot_interval_length", "plot_judge_agreement", "plot_rates",
        "plot_regimes", "plot_study"],
    "anchored": ["plot_anchor_swap", "plot_anchored", "plot_pooling", "plot_screen", "plot_subsamples"],
    "boards": ["plot_boards", "plot_coefficients", "plot_comparison", "plot_draw_differences", "plot_draws",
        "plot_history", "plot_leaderboard", "plot_ranks", "plot_style_effect"],
    "scores": ["plot_error_budget", "plot_front", "plot_index", "plot_over_time", "plot_success_curves"],
    "evaluators": ["plot_agreement", "plot_rank_change", "plot_reference_budgets", "plot_reference_tiers",
        "plot_references", "plot_tau_delta"],
    "heat": ["plot_battle_counts", "plot_fewest_votes", "plot_pair_fit", "plot_pair_residuals",
        "plot_rank_distribution", "plot_slices", "plot_win_probability"],
    "soft_elo": ["plot_budget", "plot_calibration", "plot_held_out", "plot_intervals", "plot_ramp", "plot_smoothing"],
}  # fmt: skip

__getattr__, __dir__, __all__ = lazy_names(__name__, _HOMES)
