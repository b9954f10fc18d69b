"""What covariates and tie models do to a board: how far models move, what it costs, and which ties predict best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, get_args

import numpy as np

from jaxeval.arrays import Float, Int
from jaxeval.data.battles import Battles, as_battles
from jaxeval.data.features import FeatureLike, checked_features, design
from jaxeval.execution.host import evaluate_of_choice, fetched
from jaxeval.execution.signatures import spelled_out
from jaxeval.kernels import tie_models
from jaxeval.kernels.batch import contextual
from jaxeval.kernels.connectivity import Standing
from jaxeval.kernels.solve import Status
from jaxeval.lazy_names import pd
from jaxeval.options.boards import Ties
from jaxeval.options.resampling import RunningOptions
from jaxeval.ratings.boards import fit_terms
from jaxeval.ratings.bootstrap import bootstrap
from jaxeval.ratings.bradley_terry_fit import fit_result
from jaxeval.ratings.connectivity import analyse
from jaxeval.ratings.contextual_boards import ContextualBoard, fit_contextual_boards
from jaxeval.ratings.contextual_fit import ContextualBootstrap, ContextualFit
from jaxeval.ratings.options import BootstrapOptions, FitOptions
from jaxeval.ratings.slices import compress, counts_by_row
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.show.table import Table
from jaxeval.statistics.quantiles import checked_level
from jaxeval.wording import competitor_settings

if TYPE_CHECKING:
    from jaxeval.options.arguments import StyleEffectArguments


@spelled_out(BootstrapOptions, RunningOptions, without="by")
def style_effect(
    battles: Battles | Any,
    features: Sequence[FeatureLike],
    *,
    level: float = 0.95,
    min_battles: int = 0,
    **options: Unpack[StyleEffectArguments],
) -> pd.DataFrame:
    """Compare ratings with and without the covariates, from the same resamples.

    Args:
        battles: `Battles`, or a table with the standard columns.
        features: as in `bootstrap`.
        level: of the intervals of the shifts.
        min_battles: models with fewer battles take no rank, as in `leaderboard`; figures leave them out.
        **options: of `bootstrap`, by its names and with its defaults. A ``checkpoint`` gets a folder for each board.

    Returns:
        A row per model, by controlled rating: ``rating`` controlled, ``rating_plain``, ``shift`` with ``shift_lower``
        and ``shift_upper`` (Elo; the percentile interval of the paired draws), ``rank``, ``rank_plain``,
        ``standard_error``, ``standard_error_plain`` and ``variance_ratio``, the cost of controlling. ``attrs`` holds
        ``coefficients`` (a list of records), ``warnings`` and ``settings``.

    Raises:
        ValueError: there are no features; else as in `bootstrap`.

    Examples:
        >>> import jaxeval, numpy as np
        >>> votes = jaxeval.simulate_votes(2_000, 4, seed=0)
        >>> longer = np.random.default_rng(0).normal(size=2_000) + (votes["model_a"] == "model-1")
        >>> effect = jaxeval.style_effect(votes.assign(length=longer), ["length"], n_resamples=100)
        >>> effect[["rank", "rank_plain"]].astype(int).to_numpy().tolist()
        [[1, 1], [2, 2], [3, 3], [4, 4]]
        >>> effect.attrs["coefficients"][0]["feature"]
        'length'
    """
    features = checked_features(features, 0.0)
    if not features:
        raise ValueError("no features: there is nothing to control for")
    checked_level(level)
    battles = as_battles(battles)
    kept, boards = options.get("checkpoint"), []
    # The same rows, and so the same draws; without control the coefficients are held at 0.
    for name, feature_ridge in {"controlled": options.get("feature_ridge", 0.0), "plain": np.inf}.items():
        options["feature_ridge"] = feature_ridge
        options["checkpoint"] = Path(kept) / name if isinstance(kept, str | PathLike) else kept
        boards.append(bootstrap(battles, features=features, **options))
    controlled, plain = boards
    assert isinstance(controlled, ContextualBootstrap)
    shift = controlled.joint - plain.joint
    bounds = shift.interval(level)
    error, error_plain = controlled.standard_errors, plain.standard_errors
    table = pd.DataFrame(
        {
            "model": controlled.models,
            "rating": controlled.fit.ratings.to_numpy(),
            "rating_plain": plain.fit.ratings.to_numpy(),
            "shift": shift.estimate,
            "shift_lower": bounds["lower"].to_numpy(),
            "shift_upper": bounds["upper"].to_numpy(),
            **{
                name: board.contrasts.rank(board.ranked(min_battles).to_numpy()).array
                for name, board in (("rank", controlled), ("rank_plain", plain))
            },
            "standard_error": error.to_numpy(),
            "standard_error_plain": error_plain.to_numpy(),
            "variance_ratio": (error / error_plain).to_numpy() ** 2,
        }
    )
    table = table.sort_values("rating", ascending=False, ignore_index=True, kind="stable")
    table.attrs = {
        "coefficients": controlled.coefficients(level).reset_index().to_dict("records"),
        "warnings": list(dict.fromkeys([*controlled.warnings, *plain.warnings])),
        "settings": {
            **asdict(controlled.settings),
            "level": float(level),
            **competitor_settings(controlled.competitor),
        },
    }
    return Table.of(table, "Ratings with style control and without", elo="shift")


def compare_tie_models(
    battles: Battles | Any,
    *,
    features: Sequence[FeatureLike] = (),
    normalize: bool = True,
    feature_ridge: float = 0.0,
    ridge: float = 0.0,
    n_folds: int = 5,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the three treatments of ties on the same battles.

    The likelihoods of wins, ties and losses of Davidson's and of Rao and Kupper's model compare directly. Ties as half
    a win have none; all three are compared by what they predict of battles that were held out: ``held_out_error``, the
    mean of (y - expected result)^2, and ``held_out_score``, that of y log e + (1 - y) log(1 - e).

    Args:
        battles: `Battles`, or a table with the standard columns; hard outcomes.
        features: as in `fit_bradley_terry`, like ``normalize``, ``feature_ridge`` and ``ridge``.
        n_folds: parts that are held out in turn.
        seed: of the assignment of battles to parts.

    Returns:
        A row per treatment: ``tie_parameter`` and its error, ``log_likelihood`` and ``aic`` (NaN for "half"),
        ``held_out_log_likelihood`` per battle, ``held_out_error``, ``held_out_score`` with ``standard_error`` of the
        difference from "half", ``n_held_out``, and ``n_skipped`` battles of models that a part cannot rate, or of
        parts whose fit did not converge. If the rest has no ties, a tie that is held out counts as all but impossible.
        ``aic`` counts every parameter in full. Both tie models have equally many, so that they differ in ``aic`` as
        their likelihoods do, whatever the ridges. But with a ridge the level of ``aic`` is too high; and with weights
        that do not count battles neither likelihood nor ``aic`` is on the scale of battles. Compare held-out scores
        then.

    Raises:
        ValueError: fewer than two folds, or more folds than battles.
        DataError: as in `fit_bradley_terry`.

    Examples:
        >>> import jaxeval
        >>> battles = jaxeval.simulate_battles(2_000, 4, seed=0)
        >>> jaxeval.compare_tie_models(battles, n_folds=2)["tie_parameter"].round(2).to_dict()
        {'half': nan, 'davidson': -0.44, 'rao_kupper': 0.51}
    """
    battles = as_battles(battles)
    if not 2 <= n_folds <= battles.n_battles:
        raise ValueError(f"n_folds must lie between 2 and the {battles.n_battles:,} battles, got {n_folds!r}")
    options = FitOptions(
        ridge=ridge, features=features, normalize=normalize, feature_ridge=feature_ridge, ties="davidson"
    ).checked(battles)
    covariates = design(battles, options.features, normalize)
    cells, _ = compress(battles, covariates.matrix)(slice(None))
    held = _folds(cells.count, n_folds, np.random.default_rng(seed))
    rows, each = {}, {}
    for ties in get_args(Ties):
        with_ties = replace(options, ties=ties)
        (fitted,) = fit_contextual_boards([(battles.models, cells)], covariates, with_ties)
        fit = fit_result(ContextualFit, fitted, VoteGroups(), battles.report, with_ties, features=covariates.names)
        each[ties] = _held_out(fitted, held)
        likelihood = fit.log_likelihood if ties != "half" else np.nan
        n_parameters = int(fitted.active.sum()) - 1 + len(covariates.names) + 1
        rows[ties] = {
            "tie_parameter": fit.tie_parameter,
            "tie_parameter_standard_error": fit.tie_parameter_standard_error,
            "log_likelihood": likelihood,
            "aic": 2 * n_parameters - 2 * likelihood,
        }
    known = np.all([~np.isnan(e["score"]) for e in each.values()], axis=0)
    weight = held * known * cells.weight
    for ties, scores in each.items():
        mean = {name: float(np.nansum(weight * x) / weight.sum()) for name, x in scores.items()}
        gain = np.where(known, scores["score"] - each["half"]["score"], 0.0)
        centre = (weight * gain).sum() / weight.sum()
        error = np.sqrt((held * known * (cells.weight * (gain - centre)) ** 2).sum()) / weight.sum()
        rows[ties] |= {
            "held_out_log_likelihood": mean["log_likelihood"] if ties != "half" else np.nan,
            "held_out_error": mean["error"],
            "held_out_score": mean["score"],
            "standard_error": error if ties != "half" else np.nan,
            "n_held_out": int((held * known).sum()),
            "n_skipped": int((held * ~known).sum()),
        }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("ties")
    table.attrs["answer"] = "no model of ties predicts points of held-out battles better than ties as half a win"
    gain = (table["held_out_score"] - table["held_out_score"]["half"]).fillna(0.0)
    if gain.max() > 0:
        best = gain.idxmax()
        chance = "" if gain[best] > 2 * table["standard_error"][best] else ", no more than by chance"
        error = f"standard error {table['standard_error'][best]:.2g}{chance}"
        table.attrs["answer"] = (
            f"{best} predicts points of held-out battles best: its log score is {gain[best]:.2g} ({error}) a battle "
            "above that of ties as half a win"
        )
    return Table.of(table, "Ways of counting ties")


def _folds(count: Int, n_folds: int, rng: np.random.Generator) -> Int:
    """Draw (F, C) battles of each cell in F random folds of equal sizes, up to one, which sum to ``count`` (C,)."""
    total, left = int(count.sum()), count.copy()
    held = np.empty((n_folds, len(count)), np.int64)
    for f in range(n_folds):
        size = len(range(f, total, n_folds))
        held[f] = rng.multivariate_hypergeometric(left, size, method="marginals")
        left -= held[f]
    return held


def _held_out(fitted: ContextualBoard, held: Int) -> dict[str, Float]:
    """Return (F, C) log-likelihood, squared error and score of a battle of each cell, by the fit to the other folds.

    NaN where the others leave one of its models without a rating.
    """
    cells, size, n_models = fitted.cells, len(fitted.phi) - fitted.n_features - 1, len(fitted.theta)
    first, second = cells.first[cells.pair], cells.second[cells.pair]
    measures: dict[str, list[Float]] = {"log_likelihood": [], "error": [], "score": []}
    rows, members = fitted.rows()
    for part in held:
        rest = cells.count - part
        n, wins = replace(cells, count=rest).tables(n_models)
        rated = np.zeros(size, bool)
        comparable = analyse(n, wins).standing == Standing.IDENTIFIED
        rated[:n_models] = fitted.active & (comparable | (fitted.ridge > 0))
        count: Any = counts_by_row(rows, members, rest)
        asked = fitted.phi, rated, fitted.free, fitted.response, fit_terms(fitted.penalty)
        end, *_ = fetched(contextual.fit_contextual, rows, count, *asked)
        phi = np.asarray(end.theta)
        z = phi[first] - phi[second] + cells.feature @ phi[size:-1]
        expected = evaluate_of_choice(tie_models.expected, fitted.response, z, phi[-1])
        likelihood = evaluate_of_choice(tie_models.log_likelihood, fitted.response, cells.target, z, phi[-1])
        with np.errstate(divide="ignore"):
            score = cells.target * np.log(expected) + (1 - cells.target) * np.log1p(-expected)
        known = rated[first] & rated[second] & (int(end.status) == Status.CONVERGED)
        values = likelihood, (cells.target - expected) ** 2, score
        for name, x in zip(measures, values, strict=True):
            measures[name].append(np.where(known, x, np.nan))
    return {name: np.stack(parts) for name, parts in measures.items()}
