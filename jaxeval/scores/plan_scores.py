"""What a benchmark can tell: the smallest difference that it detects, and the items and trials that one needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy

from jaxeval.checks import checked_integer
from jaxeval.data.item_scores import ItemScores
from jaxeval.errors import DataError
from jaxeval.scores.compare_scores import place_of
from jaxeval.scores.estimates import trial_variances
from jaxeval.scores.score_leaderboard import as_item_scores
from jaxeval.statistics.quantiles import checked_level, normal_quantile
from jaxeval.tables.table import Table
from jaxeval.wording import counted

_SHOWN_FIRST = ("model_a", "model_b", "n_items", "n_trials", "smallest_difference", "power", "items_needed")


def plan_scores(
    scores: ItemScores | Any,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    *,
    difference: float | None = None,
    n_items: int | None = None,
    n_trials: Sequence[int] | None = None,
    power: float = 0.8,
    level: float = 0.95,
) -> pd.DataFrame:
    """The smallest difference that a paired comparison detects, its power, and the items that it needs.

    The difference of two models on an item, the mean of k trials each, has the variance between + within / k. A test of
    N items at ``level`` detects a difference D with the probability Phi(D / sqrt(variance / N) - z), and the smallest
    one detected with probability ``power`` is (z + z_power) sqrt(variance / N). Both parts come from the scores that
    are there: the paired differences, and, with two trials or more, their spread within items.

    Args:
        scores: `ItemScores`, or a table as for `score_leaderboard`: this benchmark, or a pilot of it.
        pairs: pairs of models; by default the neighbours on the board.
        difference: a difference of scores that would matter, above 0. It adds ``power`` and ``items_needed``.
        n_items: items of the benchmark that is planned; by default as many as there are.
        n_trials: numbers of trials to plan for; by default as many as there are. Other numbers need two trials or more
            of the items.
        power: the probability to detect it.
        level: of the two-sided test.

    Returns:
        One row a pair and number of trials: ``model_a``, ``model_b``, ``n_items``, ``n_trials``, ``sd_between`` (items;
        of differences), ``sd_within`` (trials; NaN with one), ``smallest_difference``; with a difference ``power`` and
        ``items_needed``.

    Raises:
        DataError: a model is not there, two models share fewer than two items, or trials are planned without any.
        ValueError: an option that is none.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> right = {"x": [1, 1, 1, 0] * 50, "y": [1, 1, 0, 1] * 50}
        >>> table = pd.DataFrame(right).rename_axis("item").reset_index()
        >>> long = table.melt("item", var_name="model", value_name="score")
        >>> plan = jaxeval.plan_scores(long, difference=0.05)
        >>> plan[["smallest_difference", "power", "items_needed"]].round(2).to_numpy().tolist()
        [[0.14, 0.17, 1578.0]]
    """
    given = as_item_scores(scores)
    checked_level(level)
    if not (isinstance(power, float) and 0 < power < 1):
        raise ValueError(f"power must be between 0 and 1, got {power!r}")
    if difference is not None and not (np.isfinite(difference) and difference > 0):
        raise ValueError(f"difference must be a finite number above 0, got {difference!r}")
    if n_items is not None:
        checked_integer("n_items", n_items, 2)
    ks = None if n_trials is None else [checked_integer("n_trials", k, 1) for k in n_trials]
    z, z_power = normal_quantile(level), float(scipy.special.ndtri(power))
    rows = []
    for a, b in _neighbours(given) if pairs is None else pairs:
        between, within, k_now, shared = _parts(given, a, b)
        for k in ks or [k_now]:
            if within is None and k != k_now:
                raise DataError(
                    f"plans of {k} trials need the spread of trials, and there is {counted(1, 'trial')} of an item only"
                    ": name the column of trials (trial=, --trial), or run a pilot with two"
                )
            variance = between + (within or 0.0) / k
            n = n_items or shared
            row: dict[str, Any] = {
                "model_a": a, "model_b": b, "n_items": n, "n_trials": k, "sd_between": np.sqrt(between),
                "sd_within": np.nan if within is None else np.sqrt(within),
                "smallest_difference": (z + z_power) * np.sqrt(variance / n),
            }  # fmt: skip
            if difference is not None:
                shift = difference / np.sqrt(variance / n) if variance > 0 else np.inf
                row["power"] = float(scipy.special.ndtr(shift - z) + scipy.special.ndtr(-shift - z))
                row["items_needed"] = int(np.ceil(variance * ((z + z_power) / difference) ** 2))
            rows.append(row)
    table = pd.DataFrame(rows)
    table.attrs["settings"] = {"difference": difference, "power": power, "level": float(level)}
    return Table.of(table, f"What {counted(len(given.items), 'item')} can tell", _SHOWN_FIRST)


def _neighbours(scores: ItemScores) -> list[tuple[Any, Any]]:
    if len(scores.models) < 2:
        raise DataError("one model only: a plan is of differences between two")
    mean = scores.means.iloc[:, 0].sort_values(ascending=False, kind="stable")
    return list(zip(mean.index[:-1], mean.index[1:], strict=True))


def _parts(scores: ItemScores, a: Any, b: Any) -> tuple[float, float | None, int, int]:
    """Variance of a difference between items and within them, the trials there are of an item, and shared items."""
    places = [place_of(scores, model) for model in (a, b)]
    pair = scores.scores[:, 0][:, places]
    shared = ~np.isnan(pair).any(1)
    if shared.sum() < 2:
        raise DataError(f"{a!r} and {b!r} share {counted(int(shared.sum()), 'item')}: a plan needs two or more")
    total = float(np.var(pair[shared, 0] - pair[shared, 1], ddof=1))
    if scores.trials is None:
        return total, None, 1, int(shared.sum())
    n, variance = trial_variances(scores)
    n, variance = n[shared][:, places], variance[shared][:, places]
    least = int(n.min())
    if least < 2:
        return total, None, least, int(shared.sum())
    noise = float((variance / n).sum(1).mean())  # of the differences of means that are there
    within = float(variance.sum(1).mean())
    return max(total - noise, 0.0), within, least, int(shared.sum())
