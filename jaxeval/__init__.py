"""jaxeval: leaderboards and accuracies of language models from judgments, with honest uncertainty."""

from jaxeval._version import __version__
from jaxeval.battles import Battles, DataError, DataReport
from jaxeval.bootstrap import Bootstrap, bootstrap
from jaxeval.bradley_terry import BradleyTerryFit, fit_bradley_terry
from jaxeval.leaderboard import leaderboard
from jaxeval.readers import read_battles
from jaxeval.simulate import simulate_battles, simulate_strengths, simulate_votes

__all__ = [
    "Battles",
    "Bootstrap",
    "BradleyTerryFit",
    "DataError",
    "DataReport",
    "__version__",
    "bootstrap",
    "fit_bradley_terry",
    "leaderboard",
    "read_battles",
    "simulate_battles",
    "simulate_strengths",
    "simulate_votes",
]
