"""jaxeval: leaderboards and accuracies of language models from judgments, with honest uncertainty."""

from jaxeval._version import __version__
from jaxeval.anchored import AnchoredElo, anchored_elo
from jaxeval.anchored_scores import anchored_scores
from jaxeval.anchored_verdicts import AnchoredVerdicts, read_anchored_verdicts
from jaxeval.battles import Battles, DataReport
from jaxeval.bootstrap import bootstrap
from jaxeval.bootstrap_result import Bootstrap
from jaxeval.bradley_terry import BradleyTerryFit, fit_bradley_terry
from jaxeval.calibration_planning import allocate_calibration
from jaxeval.columns import DataError
from jaxeval.conformal import conformal_quantile
from jaxeval.confusion import class_shares
from jaxeval.contextual import ContextualFit
from jaxeval.contextual_bootstrap import ContextualBootstrap
from jaxeval.features import position_advantage, same_group
from jaxeval.gathered_battles import gather_battles
from jaxeval.icc import Icc3, icc3
from jaxeval.item_scores import ItemScores
from jaxeval.judge_accuracy import JudgeAccuracy, judge_accuracy
from jaxeval.judge_screening import JudgeScreen, screen_judges
from jaxeval.judge_simulation import simulate_judged_answers
from jaxeval.judged_answers import JudgedAnswers, read_judged_answers
from jaxeval.judged_battles import JudgedBattles, read_judged_battles
from jaxeval.leaderboard import leaderboard
from jaxeval.meaningful_gaps import agreement_by_gap, smallest_gap
from jaxeval.model_comparison import ModelComparison, compare_models
from jaxeval.prediction_powered import ppi_plus_plus
from jaxeval.processes import ProcessError
from jaxeval.rank_change import stratified_rank_change
from jaxeval.rank_correlation import kendall_tau, kendall_tau_delta, rank_agreement
from jaxeval.readers import read_battles
from jaxeval.reference_study import ReferenceStudy, reference_study
from jaxeval.rogan_gladen import rogan_gladen, youden_j
from jaxeval.saved_ratings import read_ratings
from jaxeval.separability import separability
from jaxeval.simulate import simulate_battles, simulate_judged_battles, simulate_strengths, simulate_votes
from jaxeval.soft_elo_calibration import SoftEloCalibration
from jaxeval.softelo import SoftElo, soft_elo
from jaxeval.style_effect import style_effect
from jaxeval.temperature import Temperature, fit_temperature, fit_temperatures
from jaxeval.tie_comparison import compare_tie_models

__all__ = [
    "AnchoredElo",
    "AnchoredVerdicts",
    "Battles",
    "Bootstrap",
    "BradleyTerryFit",
    "ContextualBootstrap",
    "ContextualFit",
    "DataError",
    "DataReport",
    "Icc3",
    "ItemScores",
    "JudgeAccuracy",
    "JudgeScreen",
    "JudgedAnswers",
    "JudgedBattles",
    "ModelComparison",
    "ProcessError",
    "ReferenceStudy",
    "SoftElo",
    "SoftEloCalibration",
    "Temperature",
    "__version__",
    "agreement_by_gap",
    "allocate_calibration",
    "anchored_elo",
    "anchored_scores",
    "bootstrap",
    "class_shares",
    "compare_models",
    "compare_tie_models",
    "conformal_quantile",
    "fit_bradley_terry",
    "fit_temperature",
    "fit_temperatures",
    "gather_battles",
    "icc3",
    "judge_accuracy",
    "kendall_tau",
    "kendall_tau_delta",
    "leaderboard",
    "position_advantage",
    "ppi_plus_plus",
    "rank_agreement",
    "read_anchored_verdicts",
    "read_battles",
    "read_judged_answers",
    "read_judged_battles",
    "read_ratings",
    "reference_study",
    "rogan_gladen",
    "same_group",
    "screen_judges",
    "separability",
    "simulate_battles",
    "simulate_judged_answers",
    "simulate_judged_battles",
    "simulate_strengths",
    "simulate_votes",
    "smallest_gap",
    "soft_elo",
    "stratified_rank_change",
    "style_effect",
    "youden_j",
]
