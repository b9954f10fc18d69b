"""Blocks of voters that vote alike: models about which voters differ more than they differ about the others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy

from jaxeval.arrays import Bool
from jaxeval.audits.points import Points
from jaxeval.statistics.multiplicity import holm

_FEWEST_VOTERS = 50
_FEWEST_MODELS = 3
_SKEWNESS = np.sqrt(8)  # of a squared standard normal


def divided_models(points: Points, which: Bool, taste: float, models: pd.Index) -> pd.DataFrame:
    """A row for each model: by how many logits voters differ about it, and whether that is more than about others.

    Accounts that vote for one model agree with each other, and so voters differ about this model, even with few votes
    each. The squared excess of points, less its variance, over all voters of two votes or more measures how much.
    Models are compared with the median model, so that the tastes that honest voters have about all models raise no
    alarm.

    Args:
        points: of voters.
        which: (G,) voters to look at.
        taste: logits, see `Points.taste`.
        models: (M,) names.

    Returns:
        Columns ``model, n_voters, taste_logit, z, p_value, p_adjusted`` (Holm) and ``lean``: "for" where the odd voters
        favour the model, "against" where they do not. p is NaN for models about which fewer than 50 such voters say
        much.
    """
    own = which[points.group] & (points.n >= 2)
    model, m = points.model[own], len(models)

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(model, values[own], m)

    excess, variance = points.excess, points.variance
    n_voters = np.bincount(model, minlength=m)
    wide = variance + taste**2 * points.taste_variance
    error = np.sqrt(np.maximum(points.fourth + 2 * wide**2, 1e-12))  # of the squared excess
    # Voters with many votes weigh most, but a single one must not decide: no voter counts for more than one full term.
    share = np.minimum(points.taste_variance / error, 1.0)
    weight = np.maximum(total(share * points.taste_variance / error), 1e-300)
    square = total(share * (excess**2 - variance) / error) / weight
    squares = np.maximum(total(share**2), 1e-30)
    spread = np.sqrt(squares) / weight
    told = squares**2 / np.maximum(total(share**4), 1e-30) >= _FEWEST_VOTERS
    usual = np.median(square[told]) if told.sum() >= _FEWEST_MODELS else np.nan
    z = np.where(told, (square - usual) / spread, np.nan)
    # Squares are skew: a gamma distribution of the skewness of their weighted sum.
    shape = 4 / np.maximum(_SKEWNESS * total(share**3) / squares**1.5, 1e-6) ** 2
    p = np.where(told, scipy.special.gammaincc(shape, np.maximum(shape + z * np.sqrt(shape), 0)), np.nan)
    table = pd.DataFrame(
        {
            "model": models,
            "n_voters": n_voters,
            "taste_logit": np.where(told, np.sqrt(np.maximum(square, 0)), np.nan),
            "z": z,
            "p_value": p,
            "p_adjusted": holm(p),
            "lean": np.where(total(excess**3 - points.third) > 0, "for", "against"),
        }
    )
    return table.sort_values("p_value", kind="stable", ignore_index=True)
