"""jaxeval: leaderboards and accuracies of language models from judgments, with honest uncertainty."""

from jaxeval.execution import forks as _forks  # noqa: F401  # notices forks from here on
from jaxeval.lazy_names import lazy_names

#: Modules, and the public names in them. Type checkers read __init__.pyi, which tests/stubs.py writes from this table.
_HOMES = {
    "_version": ["__version__"],
    "accuracy.calibration_planning": ["allocate_calibration"],
    "accuracy.confusion": ["class_shares"],
    "accuracy.judge_accuracy": ["JudgeAccuracy", "judge_accuracy"],
    "accuracy.model_comparison": ["ModelComparison", "compare_models"],
    "accuracy.prediction_powered": ["ppi_plus_plus"],
    "accuracy.rogan_gladen": ["rogan_gladen", "youden_j"],
    "accuracy.simulation": ["simulate_judged_answers"],
    "anchored.elo": ["AnchoredElo", "anchored_elo"],
    "anchored.icc": ["Icc3", "icc3"],
    "anchored.scores": ["anchored_scores", "joint_scores"],
    "anchored.screening": ["JudgeScreen", "screen_judges"],
    "data.anchored_verdicts": ["AnchoredVerdicts", "read_anchored_verdicts"],
    "data.battles": ["Battles"],
    "data.features": ["position_advantage", "same_group"],
    "data.gathered_battles": ["gather_battles"],
    "data.item_scores": ["ItemScores"],
    "data.judged_answers": ["JudgedAnswers", "read_judged_answers"],
    "data.judged_battles": ["JudgedBattles", "read_judged_battles"],
    "data.model_tables": ["join_metadata", "read_metadata"],
    "data.rankings": ["Rankings", "read_rankings"],
    "data.readers": ["read_battles"],
    "data.report": ["DataReport"],
    "data.saved_draws": ["read_draws", "save_draws"],
    "data.simulate": ["simulate_battles", "simulate_judged_battles", "simulate_strengths", "simulate_votes"],
    "errors": ["DataError", "MemoryLimitError", "ProcessError"],
    "evaluators.comparison": ["compare_evaluators"],
    "evaluators.meaningful_gaps": ["agreement_by_gap", "smallest_gap"],
    "evaluators.rank_change": ["stratified_rank_change"],
    "evaluators.rank_correlation": ["joint_tau", "kendall_tau", "kendall_tau_delta", "rank_agreement"],
    "evaluators.separability": ["separability"],
    "execution.processes": ["share_resamples"],
    "ratings.bootstrap": ["bootstrap"],
    "ratings.bootstrap_result": ["Bootstrap"],
    "ratings.bradley_terry": ["fit_bradley_terry"],
    "ratings.bradley_terry_fit": ["BradleyTerryFit"],
    "ratings.contextual_fit": ["ContextualFit"],
    "ratings.contextual_bootstrap": ["ContextualBootstrap"],
    "ratings.leaderboard": ["leaderboard"],
    "ratings.plackett_luce": ["PlackettLuceFit", "fit_plackett_luce"],
    "ratings.saved_ratings": ["read_ratings"],
    "ratings.style_effect": ["style_effect"],
    "ratings.tie_comparison": ["compare_tie_models"],
    "references.study": ["ReferenceStudy", "reference_study"],
    "softelo.calibration": ["SoftEloCalibration"],
    "softelo.conformal": ["conformal_quantile"],
    "softelo.soft_elo": ["SoftElo", "soft_elo"],
    "softelo.temperature": ["Temperature", "fit_temperature", "fit_temperatures"],
    "statistics.draws": ["Draws"],
    "tables.arena": ["arena_table"],
    "tables.files": ["write_table"],
    "tables.hub": ["write_eval_results"],
}
#: Packages that ``import jaxeval`` makes known, as the names are.
_PACKAGES = ["plots"]

__getattr__, __dir__, __all__ = lazy_names(__name__, _HOMES, _PACKAGES)
