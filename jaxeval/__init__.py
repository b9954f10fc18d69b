"""jaxeval: leaderboards and accuracies of language models from judgments, with honest uncertainty."""

from jaxeval._version import __version__
from jaxeval.battles import Battles, DataReport
from jaxeval.bootstrap import Bootstrap, bootstrap
from jaxeval.bradley_terry import BradleyTerryFit, fit_bradley_terry
from jaxeval.columns import DataError
from jaxeval.conformal import conformal_quantile
from jaxeval.judged_battles import JudgedBattles, read_judged_battles
from jaxeval.leaderboard import leaderboard
from jaxeval.readers import read_battles
from jaxeval.simulate import simulate_battles, simulate_judged_battles, simulate_strengths, simulate_votes
from jaxeval.soft_elo_calibration import SoftEloCalibration
from jaxeval.softelo import SoftElo, soft_elo
from jaxeval.temperature import Temperature, fit_temperature, fit_temperatures

__all__ = [
    "Battles",
    "Bootstrap",
    "BradleyTerryFit",
    "DataError",
    "DataReport",
    "JudgedBattles",
    "SoftElo",
    "SoftEloCalibration",
    "Temperature",
    "__version__",
    "bootstrap",
    "conformal_quantile",
    "fit_bradley_terry",
    "fit_temperature",
    "fit_temperatures",
    "leaderboard",
    "read_battles",
    "read_judged_battles",
    "simulate_battles",
    "simulate_judged_battles",
    "simulate_strengths",
    "simulate_votes",
    "soft_elo",
]
