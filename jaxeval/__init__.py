"""jaxeval: leaderboards and accuracies of language models from judgments, with honest uncertainty."""

from jaxeval.battles import Battles, DataError, DataReport
from jaxeval.bootstrap import Bootstrap, bootstrap
from jaxeval.bradley_terry import BradleyTerryFit, fit_bradley_terry
from jaxeval.readers import read_battles

__version__ = "0.1.0"

__all__ = [
    "Battles",
    "Bootstrap",
    "BradleyTerryFit",
    "DataError",
    "DataReport",
    "bootstrap",
    "fit_bradley_terry",
    "read_battles",
]
