"""Items of a benchmark: which tell models apart, which do not, and which look wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.item_scores import ItemScores
from jaxeval.scores.estimates import as_item_scores
from jaxeval.show.table import Table
from jaxeval.statistics.multiplicity import holm
from jaxeval.statistics.quantiles import checked_level
from jaxeval.wording import counted

_SHOWN_FIRST = ("item", "mean", "discrimination", "p_negative", "flag", "n_models")
_FEWEST_MODELS = 4  # a correlation of three or fewer says nothing


def item_report(scores: ItemScores | Any, *, level: float = 0.95) -> pd.DataFrame:
    """Every item: how hard it is, and whether better models do better on it.

    ``discrimination`` is the correlation, over models, of the score on the item with the mean score on all others
    (item-rest correlation). An item that worse models solve more often than better ones is likely to have a wrong key.

    Args:
        scores: `ItemScores`, or a table as for `score_leaderboard`.
        level: of the test that flags negative discrimination, over all items at once (Holm's steps).

    Returns:
        One row per item, in the order of the data: ``item`` (and ``benchmark``), ``n_models``, ``mean``,
        ``discrimination`` (NaN where all scores on the item are equal, or fewer than four models have it),
        ``p_negative`` (one-sided, by Student's t, of this item alone), and ``flag``: "saturated" (all models have the
        greatest score that there is), "dead" (all have the least), "no spread" (all have another one), "negative"
        (discrimination below 0 at the level), or empty. ``attrs["warnings"]`` counts them.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> right = {"v": [1, 0, 0, 0], "w": [1, 0, 0, 1], "x": [1, 0, 1, 1], "y": [1, 0, 1, 1]}
        >>> table = pd.DataFrame(right).rename_axis("item").reset_index()
        >>> report = jaxeval.item_report(table.melt("item", var_name="model", value_name="score"))
        >>> report[["item", "mean", "discrimination", "flag"]].round(2).to_numpy().tolist()
        [[0, 1.0, nan, 'saturated'], [1, 0.0, nan, 'dead'], [2, 0.5, 0.58, ''], [3, 0.75, 0.58, '']]
    """
    item_scores = as_item_scores(scores)
    checked_level(level)
    s = item_scores.scores[:, 0]
    there = ~np.isnan(s)
    n_models = there.sum(1)
    mean = np.nansum(s, axis=1) / np.maximum(n_models, 1)
    discrimination = _item_rest(s, there)
    dof = n_models - 2
    with np.errstate(invalid="ignore", divide="ignore"):
        t = discrimination * np.sqrt(dof / (1 - discrimination**2))
    p = np.where(np.isnan(discrimination), np.nan, scipy.special.stdtr(np.maximum(dof, 1), t))
    low, high = np.nanmin(s), np.nanmax(s)
    least, most = np.nanmin(s, axis=1), np.nanmax(s, axis=1)
    flag = np.select(
        [(least == high) & (low < high), (most == low) & (low < high), least == most, holm(p) <= 1 - level],
        ["saturated", "dead", "no spread", "negative"],
        "",
    )
    columns = {"n_models": n_models, "mean": mean, "discrimination": discrimination, "p_negative": p, "flag": flag}
    table = pd.DataFrame(columns, item_scores.items).reset_index()
    if item_scores.benchmark is None:
        table = table.rename(columns={table.columns[0]: "item"})
    else:
        table = table.rename(columns=dict(zip(table.columns[:2], ("benchmark", "item"), strict=True)))
    n_odd = int((flag != "").sum())
    answer = f"{n_odd:,} of {counted(len(table), 'item')} tell models apart not at all"
    few = f"; fewer than {_FEWEST_MODELS} models do not show which do so the wrong way round"
    answer += few if n_models.max() < _FEWEST_MODELS else ", or the wrong way round"
    table.attrs = {"answer": answer, "warnings": _counts(flag, n_models), "settings": {"level": float(level)}}
    return Table.of(
        table, f"{counted(len(table), 'item')} of {counted(len(item_scores.models), 'model')}", _SHOWN_FIRST
    )


def _item_rest(s: Float, there: Bool) -> Float:
    """Return (I,) correlations over models of each item's scores with the means of the other items that a model has."""
    value = np.where(there, s, 0.0)
    total, count = value.sum(0), there.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = (total - value) / (count - there)
        known = there & np.isfinite(rest)
        n = known.sum(1)
        x, y = np.where(known, value, 0.0), np.where(known, rest, 0.0)
        x, y = x - (x.sum(1) / n)[:, None], y - (y.sum(1) / n)[:, None]
        x, y = np.where(known, x, 0.0), np.where(known, y, 0.0)
        spread = np.sqrt((x**2).sum(1) * (y**2).sum(1))
        correlation = (x * y).sum(1) / spread
    return np.where((n >= _FEWEST_MODELS) & (spread > 1e-12), np.clip(correlation, -1, 1), np.nan)


def _counts(flag: NDArray[np.str_], n_models: Int) -> list[str]:
    reasons = {
        "saturated": "saturated: every model has the greatest score",
        "dead": "dead: every model has the least score",
        "no spread": "without spread: every model has the same score",
        "negative": "of negative discrimination: worse models do better on them, look at their keys",
    }
    texts = [
        f"{counted(int((flag == name).sum()), 'item')} {text}" for name, text in reasons.items() if (flag == name).any()
    ]
    if n_models.max() < _FEWEST_MODELS:
        texts.append(f"discrimination needs {_FEWEST_MODELS} models or more on an item, and no item has as many")
    return texts
