"""Items of a benchmark: which tell models apart, which look wrong, a few that stand for all, and k runs of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import checked_integer
from jaxeval.data.item_scores import ItemScores
from jaxeval.errors import DataError
from jaxeval.scores.estimates import (
    FEW_ITEMS,
    MissingScores,
    as_item_scores,
    by_item,
    estimate_scores,
    few_units_text,
    flagged,
    kept_items,
    trial_variances,
)
from jaxeval.show.shown import Answer, Result
from jaxeval.show.table import Table
from jaxeval.statistics.p_values import holm
from jaxeval.statistics.quantiles import checked_level
from jaxeval.wording import counted, named

_SHOWN_FIRST = ("item", "mean", "discrimination", "p_negative", "flag", "n_models")
_FEWEST_FOR_REST = 4  # a correlation of three or fewer says nothing
_FEWEST_MODELS = 5  # of a choice whose error is that of models left out
_STARTS = 4  # of the clustering; the best result is taken
_TURNS = 50
_N_RANDOM = 20  # random subsets beside the one that is chosen


def item_report(scores: ItemScores | Any, *, level: float = 0.95) -> pd.DataFrame:
    """Say of every item how hard it is, and whether better models do better on it.

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
    table = by_item(item_scores, columns)
    n_odd = int((flag != "").sum())
    answer = f"{n_odd:,} of {counted(len(table), 'item')} tell models apart not at all"
    few = f"; fewer than {_FEWEST_FOR_REST} models do not show which do so the wrong way round"
    answer += few if n_models.max() < _FEWEST_FOR_REST else ", or the wrong way round"
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
    return np.where((n >= _FEWEST_FOR_REST) & (spread > 1e-12), np.clip(correlation, -1, 1), np.nan)


def _counts(flag: NDArray[np.str_], n_models: Int) -> list[str]:
    reasons = {
        "saturated": "saturated: every model has the greatest score",
        "dead": "dead: every model has the least score",
        "no spread": "without spread: every model has the same score",
        "negative": "of negative discrimination: worse models do better on them, look at their keys",
    }
    texts = flagged(flag, reasons)
    if n_models.max() < _FEWEST_FOR_REST:
        texts.append(f"discrimination needs {_FEWEST_FOR_REST} models or more on an item, and no item has as many")
    return texts


@dataclass(frozen=True, eq=False, repr=False)
class ItemSubset(Result):
    """A subset of items with weights, and its error for models that had no part in the choice; see `item_subset`.

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.item_subset(jaxeval.simulate_scores(200, 12), 20)
        >>> len(found.items), round(float(found.items["weight"].sum()), 6)
        (20, 1.0)
    """

    items: pd.DataFrame  # item (and benchmark), weight, n_items that it stands for
    errors: pd.DataFrame  # of the subset, and of random ones: method, tau, mean_absolute_error, largest_error
    warnings: tuple[str, ...]
    settings: Mapping[str, Any] = field(repr=False)

    def _shown(self) -> Answer:
        title = f"ItemSubset: {counted(len(self.items), 'item')}, errors for models left out of the choice"
        return Answer(title, self.errors.set_index("method"), self.settings, self.warnings)

    def _sentences(self) -> list[str]:
        subset, random = self.errors.to_dict("records")
        return [
            "scores on the subset, of models that had no part in its choice: off by "
            f"{subset['mean_absolute_error']:.3f} on average, tau {subset['tau']:.3f}; on random items off by "
            f"{random['mean_absolute_error']:.3f}, tau {random['tau']:.3f}"
        ]


def item_subset(
    scores: ItemScores | Any, k: int, *, missing: MissingScores = "error", n_folds: int = 5, seed: int = 0
) -> ItemSubset:
    """Choose k items whose weighted mean stands for that of all items, and estimate its error for other models.

    Items that the same models solve are put into one of k clusters (k-means over the models' scores); the item nearest
    to a cluster's mean stands for it, with the cluster's share of the items as its weight (anchor points, Vivek et al.
    2024, arXiv:2309.08638). The error is that of models that had no part in the choice: a fold of models is left out,
    items are chosen on the others, and the scores of the models left out are estimated from these items alone. The
    error of random subsets of as many items is given beside it. Look at both: where scores are right or wrong, the
    chosen items seldom beat random ones, as single answers say little about which items are alike.

    Args:
        scores: `ItemScores`, or a table as for `score_leaderboard`. Weights and benchmarks are not used: the mean that
            the subset stands for is that over all items.
        k: items of the subset, at least 2 and fewer than there are.
        missing: "error", or "complete" for the items that all models have.
        n_folds: of models, at least 2; as many as models where these are fewer.
        seed: of the clustering, of the folds and of the random subsets.

    Returns:
        `ItemSubset`. Its ``items`` have ``item`` (and ``benchmark``), ``weight`` (weights sum to 1) and ``n_items``,
        the number of items that it stands for. Its ``errors`` have a row for the subset ("chosen") and one for "random"
        subsets: ``tau`` (Kendall's tau-b of estimated and true scores over all models, each estimated while it was left
        out), ``mean_absolute_error`` and ``largest_error`` of a score. Those of random subsets are means over 20.

    Raises:
        DataError: fewer than five models; missing scores; the table cannot be read.
        ValueError: ``k`` is not at least 2 and less than the number of items, or another option is invalid.

    Examples:
        >>> import jaxeval
        >>> scores = jaxeval.simulate_scores(200, 12, seed=1)
        >>> found = jaxeval.item_subset(scores, 20, n_folds=3)
        >>> found.errors["method"].tolist(), bool((found.errors["tau"] > 0.5).all())
        (['chosen', 'random'], True)
    """
    item_scores = as_item_scores(scores)
    k, n_folds, seed = checked_integer("k", k, 2), checked_integer("n_folds", n_folds, 2), checked_integer("seed", seed)
    if missing == "available":
        raise ValueError("missing must be 'error' or 'complete': a subset needs items that all models have")
    kept, warnings = kept_items(item_scores, missing)
    values = item_scores.scores[kept, 0]
    n_items, n_models = values.shape
    if n_models < _FEWEST_MODELS:
        raise DataError(
            f"{counted(n_models, 'model')} only: the error of a subset is that of models left out, which needs "
            f"{_FEWEST_MODELS} or more"
        )
    if k >= n_items:
        raise ValueError(f"k must be less than the {n_items:,} items, got {k}")
    chosen, weight, size = _medoids(values, k, np.random.default_rng([seed, 0]))
    order = np.argsort(chosen)
    places = np.flatnonzero(kept)[chosen[order]]
    items = by_item(item_scores, {"weight": weight[order], "n_items": size[order]}, places)
    errors = _errors(values, k, min(n_folds, n_models), seed)
    if errors["mean_absolute_error"][0] >= errors["mean_absolute_error"][1]:
        warnings.append(
            "for models that had no part in the choice, the chosen items are no better than random ones: draw at random"
        )
    settings = {"k": k, "n_items": n_items, "n_folds": min(n_folds, n_models), "seed": seed}
    return ItemSubset(Table.of(items, f"{counted(k, 'item')} of {n_items:,}"), errors, tuple(warnings), settings)


def _medoids(values: Float, k: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], Float, NDArray[np.intp]]:
    """Return rows (k,) of (I, M) ``values`` that stand for clusters of rows, their weights, and the clusters' sizes."""
    best: tuple[float, NDArray[np.intp], NDArray[np.intp]] | None = None
    for _ in range(_STARTS):
        start = _spread_out(values, k, rng)
        with catch_warnings():
            simplefilter("ignore")  # a warning of empty clusters: they keep their centres, and get no item below
            centres, _ = scipy.cluster.vq.kmeans2(values, start, iter=_TURNS, minit="matrix")
        number, distance = scipy.cluster.vq.vq(values, centres)
        nearest = np.lexsort([distance, number])
        first = nearest[np.unique(number[nearest], return_index=True)[1]]
        loss = float((distance**2).sum())
        if best is None or loss < best[0]:
            best = loss, first, np.bincount(number, minlength=k)
    assert best is not None
    _, chosen, size = best
    size = size[size > 0]
    spare = k - len(chosen)
    if spare:  # items are alike: others at random fill up, with weight 0
        others = rng.choice(np.setdiff1d(np.arange(len(values)), chosen), spare, replace=False)
        chosen, size = np.append(chosen, others), np.append(size, np.zeros(spare, np.intp))
    return chosen, size / len(values), size


def _spread_out(values: Float, k: int, rng: np.random.Generator) -> Float:
    """Return where k centres start: each at a row drawn by its squared distance from those before (k-means++)."""
    rows = [int(rng.integers(len(values)))]
    away = ((values - values[rows[0]]) ** 2).sum(1)
    while len(rows) < k:
        share = away / away.sum() if away.sum() > 0 else None
        rows.append(int(rng.choice(len(values), p=share)))
        away = np.minimum(away, ((values - values[rows[-1]]) ** 2).sum(1))
    return values[rows]


def _errors(values: Float, k: int, n_folds: int, seed: int) -> pd.DataFrame:
    """Return errors of models' estimated scores, each model's while it is left out of the choice."""
    n_items, n_models = values.shape
    rng = np.random.default_rng([seed, 1])
    fold = rng.permutation(np.arange(n_models) % n_folds)
    estimate = np.zeros(n_models)
    for f in range(n_folds):
        chosen, weight, _ = _medoids(values[:, fold != f], k, rng)
        estimate[fold == f] = weight @ values[np.ix_(chosen, fold == f)]
    random = np.stack([values[rng.choice(n_items, k, replace=False)].mean(0) for _ in range(_N_RANDOM)])
    truth = values.mean(0)
    rows = [_figures(estimate, truth), np.mean([_figures(drawn, truth) for drawn in random], axis=0)]
    table = pd.DataFrame(rows, columns=["tau", "mean_absolute_error", "largest_error"])
    table.insert(0, "method", ["chosen", "random"])
    return Table.of(table, "Errors of estimated scores")


def _figures(estimate: Float, truth: Float) -> tuple[float, float, float]:
    off = np.abs(estimate - truth)
    return float(scipy.stats.kendalltau(estimate, truth).statistic), float(off.mean()), float(off.max())


def pass_at_k(scores: ItemScores | Any, k: int, *, missing: str = "error", level: float = 0.95) -> pd.DataFrame:
    """Return the probability that at least one of k trials solves an item, averaged over items (pass@k).

    An item with c successes in n trials counts 1 - C(n - c, k) / C(n, k), which is unbiased for every n >= k (Chen et
    al. 2021, arXiv:2107.03374). Intervals are for new items like these: quantiles over weights of the items (the
    Bayesian bootstrap), the lower end with half an item more that counts 0, the upper with half a one that counts 1. Of
    3 to 20 items they missed at most .045 in simulations. Items of several benchmarks have those of graded scores.

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
    """Return C(n - c, k) / C(n, k): the chance that k of n trials, drawn without replacement, hold no success of c."""
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
    estimates = estimate_scores(replace(item_scores, scores=value[:, None]), items)
    lower, upper = estimates.interval_over_weights(level) or estimates.interval(level)
    if estimates.n_effective < FEW_ITEMS and (estimates.unit != "item" or estimates.stratum.any()):
        warnings += [f"{few_units_text(estimates)}: intervals from fewer than {FEW_ITEMS} depend on how scores lie"]
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
    return Table.of(
        table,
        f"{name} of {counted(len(table), 'model')}",
        ("model", "score", "lower", "upper", "standard_error", "n_items", "fewest_trials"),
        ends_of="score",
    )
