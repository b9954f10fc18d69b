"""Who met whom: how evenly votes are spread over models and pairs, and what each rating rests on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from jaxeval.arrays import Bool, Float
from jaxeval.audits.periods import vote_times
from jaxeval.data.battles import Battles
from jaxeval.data.cells import Cells
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit


def opponents(fit: BradleyTerryFit) -> pd.DataFrame:
    """What each model's rating rests on: a row per model, in the order of the fit.

    ``vote_count``; ``n_opponents``; ``n_effective``, the number of equally frequent opponents that would be as even (1
    / sum of squared shares); ``opponent_rating``, the mean rating of its opponents by votes; ``main_opponent`` and
    ``main_share``, whom it met most and what share of its votes that is.
    """
    cells, models = fit._board.cells, fit.ratings.index
    met = _met(cells, len(models))
    votes = met.sum(1)
    with np.errstate(invalid="ignore"):  # a model without votes
        share = met / votes[:, None]
    finite = np.isfinite(fit.ratings.to_numpy())
    rating = np.where(finite, fit.ratings.to_numpy(), 0.0)
    of_rated = met[:, finite].sum(1)
    main = met.argmax(1)
    return pd.DataFrame(
        {
            "vote_count": votes.astype(np.int64),
            "n_opponents": (met > 0).sum(1),
            "n_effective": 1 / (share**2).sum(1),
            "opponent_rating": np.where(of_rated > 0, met @ rating / np.maximum(of_rated, 1), np.nan),
            "main_opponent": models[main],
            "main_share": share[np.arange(len(models)), main],
        },
        models,
    )


def _met(cells: Cells, n_models: int) -> Float:
    """(M, M) battles of every two models, whatever their weight."""
    met = np.zeros((n_models, n_models))
    met[cells.first, cells.second] = met[cells.second, cells.first] = cells.battles
    return met


def first_votes(battles: Battles, time: str) -> pd.Series:
    """The time of each model's first vote, by a column of times or of numbers.

    Raises:
        DataError: the column is not there, or holds something else.
    """
    column = pd.Series(vote_times(battles, time))
    if not pd.api.types.is_numeric_dtype(battles.column(time).dtype):
        column = pd.to_datetime(column, unit="s")
    sides = np.concatenate([battles.model_a, battles.model_b])
    first = pd.concat([column, column]).groupby(sides).min().reindex(range(battles.n_models))
    return pd.Series(first.array, battles.models, name="first_vote")


def newest(rests_on: pd.DataFrame, n: int, first: pd.Series | None) -> Bool:
    """(M,) the ``n`` models, a quarter at most, whose first vote is latest; without times those with fewest votes."""
    n = min(n, -(-len(rests_on) // 4))
    order: Any = -rests_on["vote_count"] if first is None else first
    ranks = pd.Series(order.to_numpy(), rests_on.index).rank(ascending=False, method="first", na_option="bottom")
    return np.asarray(ranks <= n)
