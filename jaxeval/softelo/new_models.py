"""Ratings of new models from their judged battles against anchors of known strength, and what to doubt in them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.errors import DataError
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.softelo.own_battles import OwnBattles, strengths
from jaxeval.softelo.rating_errors import influence, standard_errors
from jaxeval.statistics.clusters import FEW_CLUSTERS
from jaxeval.wording import counted, named

#: A new model's rating from fewer judged battles, or fewer different opponents, is flagged.
FEW_BATTLES, FEW_ANCHORS = 30, 5
_FEW_FLAGGED = 3  # flagged models that have a sentence each
_ALIKE_ELO = 1e-6  # a smaller standard error comes from rounding: all battles are alike


def rate_new_models(
    battles: JudgedBattles, target: Float, unit: NDArray[np.intp], anchors: pd.Series, ridge: float, base: float
) -> tuple[pd.DataFrame, int]:
    """The rating of each model that is no anchor, from its battles with anchors alone.

    Args:
        battles: each between a new model and an anchor; those between two anchors are left out.
        target: (N,) that side A wins.
        unit: (N,) number of what each battle is sampled with.
        anchors: strengths by model, logits.
        ridge: coefficient of theta^2.
        base: rating of strength 0, Elo.

    Returns:
        One row per new model: ``model, rating, standard_error`` (Elo; NaN where its battles do not differ),
        ``n_battles, n_anchors``, ``n_units`` (clusters, or battles without clusters), ``won`` and ``lost`` (all
        battles). And the number of battles that are left out.

    Raises:
        DataError: an opponent is not an anchor, or no battle is of a new model.
    """
    names = pd.Index([str(m) for m in battles.models])
    place = pd.Index(anchors.index).get_indexer(names)
    a, b = battles.model_a.astype(np.intp), battles.model_b.astype(np.intp)
    new_a, new_b = place[a] < 0, place[b] < 0
    _refuse_unknown(names, a, b, new_a & new_b, anchors.index)
    own = new_a != new_b
    if not own.any():
        raise DataError(
            f"none of {counted(len(a), 'battle')} is of a new model: all are between the "
            f"{counted(len(anchors), 'anchor')} of the calibration. A model to predict must not be among them"
        )
    rated, model = np.unique(np.where(new_a, a, b)[own], return_inverse=True)
    opponent, points = place[np.where(new_a, b, a)[own]], np.where(new_a, target, 1 - target)[own]
    strength = anchors.to_numpy()[None]
    each = [
        OwnBattles(
            name=str(names[m]),
            opponent=opponent[model == i],
            target=points[None, model == i],
            anchors=strength,
            start=np.zeros(1),
        )
        for i, m in enumerate(rated)
    ]
    theta = strengths(each, ridge)[:, 0]
    moved = influence(model, opponent, points, theta, np.repeat(strength, len(rated), axis=0), ridge)
    error = ELO_PER_LOGIT * standard_errors(model, unit[own], moved, len(rated))
    of_model = pd.DataFrame({"opponent": opponent, "points": points, "unit": unit[own]}).groupby(model)
    table = pd.DataFrame(
        {
            "model": names[rated],
            "rating": base + ELO_PER_LOGIT * theta,
            "standard_error": np.where(error > _ALIKE_ELO, error, np.nan),
            "n_battles": of_model.size(),
            "n_anchors": of_model["opponent"].nunique(),
            "n_units": of_model["unit"].nunique(),
            "won": of_model["points"].min() == 1,
            "lost": of_model["points"].max() == 0,
        }
    )
    return table, int((~own).sum())


def flags(table: pd.DataFrame, pool: pd.DataFrame) -> list[str]:
    """Why each rating of `rate_new_models`, or its interval, is less reliable than it looks; "" without a reason.

    Args:
        table: as `rate_new_models` returns it.
        pool: the calibration models that set the intervals.
    """
    noisiest = pool["residual_error"].max()
    low, high = pool["judge_elo"].min(), pool["judge_elo"].max()
    found = []
    for row in table.itertuples():
        one_cluster = row.n_units == 1 < row.n_battles
        doubts = {
            f"only {counted(row.n_battles, 'battle')}": row.n_battles < FEW_BATTLES,
            f"only {counted(row.n_anchors, 'opponent')}": row.n_anchors < FEW_ANCHORS,
            "won all its battles": row.won,
            "lost all its battles": row.lost,
            f"only {counted(row.n_units, 'cluster')}": 1 < row.n_units < min(FEW_CLUSTERS, row.n_battles),
            "its battles lie in one cluster: no standard error, no interval": one_cluster,
            "its battles do not differ: no standard error, no interval": np.isnan(row.standard_error)
            and not one_cluster,
            f"its standard error of {row.standard_error:.0f} exceeds the noise of every calibration residual "
            f"({noisiest:.0f} at most)": row.standard_error > noisiest,
            f"outside the range of the calibration models ({low:.0f} to {high:.0f})": not low <= row.rating <= high,
        }
        found.append("; ".join(text for text, applies in doubts.items() if applies))
    return found


def flag_sentences(table: pd.DataFrame) -> list[str]:
    """Sentences on the new models that have flags; one sentence where they are many."""
    flagged = table[table["flags"] != ""]
    if len(flagged) <= _FEW_FLAGGED:
        return [f"{row.model}: {row.flags}" for row in flagged.itertuples()]
    return [
        f"{len(flagged):,} of {len(table):,} new models are flagged, see the column flags: {named(flagged['model'])}"
    ]


def _refuse_unknown(
    names: pd.Index, a: NDArray[np.intp], b: NDArray[np.intp], both_new: Bool, anchors: pd.Index
) -> None:
    if not both_new.any():
        return
    found = pd.concat([pd.Series(names[a[both_new]]), pd.Series(names[b[both_new]])]).value_counts()
    shown = ", ".join(f"{m} ({c:,})" for m, c in found.head(8).items())
    raise DataError(
        f"{both_new.sum():,} of {counted(len(a), 'battle has', 'battles have')} no anchor on either side, and a new "
        "model is rated against anchors only. Models of these battles that are not among the "
        f"{counted(len(anchors), 'anchor')}: {shown}; the anchors are {named(anchors)}. Leave those battles out, or "
        "correct the names"
    )
