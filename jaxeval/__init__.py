"""jaxeval: leaderboards and accuracies of language models from judgments, with honest uncertainty."""

from jaxeval._version import __version__
from jaxeval.accuracy.calibration_planning import allocate_calibration
from jaxeval.accuracy.confusion import class_shares
from jaxeval.accuracy.judge_accuracy import JudgeAccuracy, judge_accuracy
from jaxeval.accuracy.model_comparison import ModelComparison, compare_models
from jaxeval.accuracy.prediction_powered import ppi_plus_plus
from jaxeval.accuracy.rogan_gladen import rogan_gladen, youden_j
from jaxeval.accuracy.simulation import simulate_judged_answers
from jaxeval.anchored.elo import AnchoredElo, anchored_elo
from jaxeval.anchored.icc import Icc3, icc3
from jaxeval.anchored.scores import anchored_scores
from jaxeval.anchored.screening import JudgeScreen, screen_judges
from jaxeval.data.anchored_verdicts import AnchoredVerdicts, read_anchored_verdicts
from jaxeval.data.battles import Battles, DataReport
from jaxeval.data.features import position_advantage, same_group
from jaxeval.data.gathered_battles import gather_battles
from jaxeval.data.item_scores import ItemScores
from jaxeval.data.judged_answers import JudgedAnswers, read_judged_answers
from jaxeval.data.judged_battles import JudgedBattles, read_judged_battles
from jaxeval.data.readers import read_battles
from jaxeval.data.simulate import simulate_battles, simulate_judged_battles, simulate_strengths, simulate_votes
from jaxeval.errors import DataError, MemoryLimitError, ProcessError
from jaxeval.evaluators.comparison import compare_evaluators
from jaxeval.evaluators.meaningful_gaps import agreement_by_gap, smallest_gap
from jaxeval.evaluators.rank_change import stratified_rank_change
from jaxeval.evaluators.rank_correlation import kendall_tau, kendall_tau_delta, rank_agreement
from jaxeval.evaluators.separability import separability
from jaxeval.execution.processes import share_resamples
from jaxeval.ratings.bootstrap import bootstrap
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.bradley_terry import BradleyTerryFit, fit_bradley_terry
from jaxeval.ratings.contextual import ContextualFit
from jaxeval.ratings.contextual_bootstrap import ContextualBootstrap
from jaxeval.ratings.leaderboard import leaderboard
from jaxeval.ratings.saved_ratings import read_ratings
from jaxeval.ratings.style_effect import style_effect
from jaxeval.ratings.tie_comparison import compare_tie_models
from jaxeval.references.study import ReferenceStudy, reference_study
from jaxeval.softelo.calibration import SoftEloCalibration
from jaxeval.softelo.conformal import conformal_quantile
from jaxeval.softelo.soft_elo import SoftElo, soft_elo
from jaxeval.softelo.temperature import Temperature, fit_temperature, fit_temperatures

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
    "MemoryLimitError",
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
    "compare_evaluators",
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
    "share_resamples",
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
