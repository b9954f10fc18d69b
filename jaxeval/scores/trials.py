"""Repeated trials: how often k runs of a model solve an item at least once, or every time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from jaxeval.arrays import Float, Int
from jaxeval.checks import checked_integer
from jaxeval.data.item_scores import ItemScores
from jaxeval.errors import DataError
from jaxeval.scores.estimates import as_item_scores, estimate_scores, kept_items, trial_variances
from jaxeval.show.table import Table
from jaxeval.statistics.quantiles import checked_level
from jaxeval.wording import counted, named

_SHOWN_FIRST = ("model", "score", "lower", "upper", "standard_error", "n_items", "fewest_trials")


def pass_at_k(scores: ItemScores | Any, k: int, *, missing: str = "error", level: float = 0.95) -> pd.DataFrame:
    """Return the probability that at least one of k trials solves an item, averaged over items (pass@k).

    An item with c successes in n trials counts 1 - C(n - c, k) / C(n, k), which is unbiased for every n >= k (Chen et
    al. 2021, arXiv:2107.03374). Intervals are for new items like these, and those of graded scores.

    Args:
        scores: `ItemScores` with a column of trials, of scores 0 and 1; or a table with the columns "model", "item",
            "trial" and "score".
        k: at most the number of trials of every item.
        missing: as in `score_leaderboard`.
        level: of the intervals.

    Returns:
        One row per model, best first: ``model``, ``score``, ``lower``, ``upper``, ``standard_error``,
        ``n_items``, ``fewest_trials`` (of an item), ``flags`` (where all items are alike, the error of the score is
        not known).

    Raises:
        DataError: there is no column of trials, a score is neither 0 nor 1, or an item has fewer than k trials.
        ValueError: ``k`` or ``level`` is out of range.

    Examples:
        >>> import jaxeval
        >>> scores = jaxeval.simulate_scores(100, 3, n_trials=4)
        >>> [jaxeval.pass_at_k(scores, k)["score"].round(2).tolist() for k in (1, 4)]
        [[0.55, 0.51, 0.43], [0.87, 0.8, 0.78]]
    """
    return _of_k(scores, k, missing, level, every=False)


def pass_hat_k(scores: ItemScores | Any, k: int, *, missing: str = "error", level: float = 0.95) -> pd.DataFrame:
    """Return the probability that k trials all solve an item, averaged over items (pass^k).

    An item with c successes in n trials counts C(c, k) / C(n, k), which is unbiased (Yao et al. 2024,
    arXiv:2406.12045). Arguments, columns and errors are those of `pass_at_k`.

    Examples:
        >>> import jaxeval
        >>> scores = jaxeval.simulate_scores(100, 3, n_trials=4)
        >>> [jaxeval.pass_hat_k(scores, k)["score"].round(2).tolist() for k in (1, 4)]
        [[0.55, 0.51, 0.43], [0.2, 0.19, 0.09]]
    """
    return _of_k(scores, k, missing, level, every=True)


def chance_that_none(successes: Int, n: Int, k: int) -> Float:
    """C(n - c, k) / C(n, k): the chance that k of the n trials, drawn without replacement, hold none of c successes."""
    chance = np.ones(np.broadcast_shapes(successes.shape, n.shape))
    for drawn in range(k):
        chance = chance * np.clip((n - successes - drawn) / np.maximum(n - drawn, 1), 0.0, 1.0)
    return chance


def _of_k(scores: ItemScores | Any, k: int, missing: Any, level: float, every: bool) -> pd.DataFrame:
    item_scores = as_item_scores(scores)
    k = checked_integer("k", k, 1)
    checked_level(level)
    if item_scores.trials is None:
        raise DataError("no column of trials was named (trial=, --trial): k trials need several of an item")
    if not np.isin(item_scores.trials.score, (0.0, 1.0)).all():
        odd = item_scores.trials.score[~np.isin(item_scores.trials.score, (0.0, 1.0))]
        raise DataError(
            f"{counted(len(odd), 'score is', 'scores are')} neither 0 nor 1 (the first is {odd[0]:g}): decide from "
            "which score on a trial is a success, and make the scores 0 and 1"
        )
    n, _ = trial_variances(item_scores)
    few = (n < k) & (n > 0)
    if few.any():
        of_model = item_scores.models[few.any(0)]
        raise DataError(
            f"k = {k} is more than the trials of {counted(int(few.sum()), 'pair')} of a model and an item: the fewest "
            f"are {n[n > 0].min()} ({named(of_model)}); take a smaller k, or drop those items"
        )
    successes = np.rint(np.nan_to_num(item_scores.scores[:, 0]) * n).astype(int)
    none = chance_that_none(n - successes if every else successes, n, k)
    value = np.where(n > 0, none if every else 1 - none, np.nan)
    items, warnings = kept_items(item_scores, missing)
    k_scores = ItemScores(
        value[:, None], item_scores.items, item_scores.evaluators, item_scores.models,
        cluster=item_scores.cluster, benchmark=item_scores.benchmark, weight=item_scores.weight,
    )  # fmt: skip
    estimates = estimate_scores(k_scores, items)
    lower, upper = estimates.interval(level)
    table = pd.DataFrame({
        "model": estimates.models.to_numpy(),
        "score": np.clip(estimates.score, 0.0, 1.0),  # a mean of ones may be off in the last digit
        "lower": lower,
        "upper": upper,
        "standard_error": estimates.standard_errors,
        "n_items": estimates.n_items,
        "fewest_trials": np.where(n > 0, n, np.iinfo(n.dtype).max).min(0),
        "flags": np.where(np.isnan(estimates.standard_errors), "no observed variance", ""),
    }).sort_values(["score", "model"], ascending=[False, True], ignore_index=True)  # fmt: skip
    name = f"pass^{k}" if every else f"pass@{k}"
    table.attrs = {"warnings": warnings, "settings": {"measure": name, "level": float(level), "missing": missing}}
    return Table.of(table, f"{name} of {counted(len(table), 'model')}", _SHOWN_FIRST)
