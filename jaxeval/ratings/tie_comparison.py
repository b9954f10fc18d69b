"""Tie models against each other, and against ties as half a win: likelihood, and the score of held-out battles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import jax
import numpy as np
import pandas as pd

from jaxeval.arrays import Float, Int
from jaxeval.data.battles import Battles, as_battles
from jaxeval.data.features import FeatureLike, design
from jaxeval.execution.elementwise import evaluate_compiled
from jaxeval.execution.precision import double_precision, one_blas_thread
from jaxeval.kernels import tie_models
from jaxeval.kernels.batch import contextual
from jaxeval.kernels.connectivity import Standing
from jaxeval.kernels.solve import Status, Terms
from jaxeval.options.boards import Ties
from jaxeval.ratings.boards import TOLERANCE_LOGIT
from jaxeval.ratings.bradley_terry_fit import fit_result
from jaxeval.ratings.connectivity import analyse
from jaxeval.ratings.contextual_boards import MAX_STEPS, ContextualBoard, fit_contextual_boards
from jaxeval.ratings.contextual_fit import ContextualFit
from jaxeval.ratings.options import FitOptions
from jaxeval.ratings.slices import ContextualCells, compress, counts_by_row
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.show.table import Table


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
    """The three treatments of ties on the same battles.

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
    cells, _ = compress(battles, slice(None), covariates.matrix)
    held = _folds(cells.count, n_folds, np.random.default_rng(seed))
    rows, each = {}, {}
    for ties in get_args(Ties):
        own = replace(options, ties=ties)
        (fitted,) = fit_contextual_boards([(battles.models, cells)], covariates, own)
        fit = fit_result(ContextualFit, fitted, VoteGroups(), battles.report, own)
        each[ties] = _held_out(fitted, cells, held)
        likelihood = fit.log_likelihood if ties != "half" else np.nan
        n_parameters = int(fitted.board.active.sum()) - 1 + len(covariates.names) + 1
        rows[ties] = {
            "tie_parameter": fit.tie_parameter,
            "tie_parameter_standard_error": fit.tie_parameter_standard_error,
            "log_likelihood": likelihood,
            "aic": 2 * n_parameters - 2 * likelihood,
        }
    known = np.all([~np.isnan(e["score"]) for e in each.values()], axis=0)
    weight = held * known * cells.weight
    for ties, found in each.items():
        mean = {name: float(np.nansum(weight * x) / weight.sum()) for name, x in found.items()}
        gain = np.where(known, found["score"] - each["half"]["score"], 0.0)
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
    return Table.of(pd.DataFrame.from_dict(rows, orient="index").rename_axis("ties"), "Ways of counting ties")


def _folds(count: Int, n_folds: int, rng: np.random.Generator) -> Int:
    """(F, C) battles of each cell in F random folds of equal sizes, up to one, which together are ``count`` (C,)."""
    total, left = int(count.sum()), count.copy()
    held = np.empty((n_folds, len(count)), np.int64)
    for f in range(n_folds):
        size = len(range(f, total, n_folds))
        held[f] = rng.multivariate_hypergeometric(left, size, method="marginals")
        left -= held[f]
    return held


def _held_out(fitted: ContextualBoard, cells: ContextualCells, held: Int) -> dict[str, Float]:
    """(F, C) log-likelihood, squared error and score of a battle of each cell, by the fit to the other folds.

    NaN where the others leave one of its models without a rating.
    """
    size, n_models = len(fitted.phi) - cells.feature.shape[1] - 1, len(fitted.board.theta)
    first, second = cells.first[cells.pair], cells.second[cells.pair]
    found: dict[str, list[Float]] = {"log_likelihood": [], "error": [], "score": []}
    for part in held:
        rest = cells.count - part
        n, wins = replace(cells, count=rest).tables(n_models)
        rated = np.zeros(size, bool)
        comparable = analyse(n, wins).standing == Standing.IDENTIFIED
        rated[:n_models] = fitted.board.active & (comparable | (fitted.ridge[0] > 0))
        count: Any = counts_by_row(fitted.rows, fitted.members, rest)
        with double_precision(), one_blas_thread():
            end, *_ = contextual.fit_contextual(
                fitted.rows,
                count,
                fitted.phi,
                rated,
                fitted.free,
                fitted.response,
                Terms.of(fitted.ridge, TOLERANCE_LOGIT, MAX_STEPS),
            )
            phi = np.asarray(jax.device_get(end.theta))
        z = phi[first] - phi[second] + cells.feature @ phi[size:-1]
        expected = evaluate_compiled(tie_models.expected, fitted.response, z, phi[-1])
        likelihood = evaluate_compiled(tie_models.log_likelihood, fitted.response, cells.target, z, phi[-1])
        with np.errstate(divide="ignore"):
            score = cells.target * np.log(expected) + (1 - cells.target) * np.log1p(-expected)
        known = rated[first] & rated[second] & (int(end.status) == Status.CONVERGED)
        values = likelihood, (cells.target - expected) ** 2, score
        for name, x in zip(found, values, strict=True):
            found[name].append(np.where(known, x, np.nan))
    return {name: np.stack(parts) for name, parts in found.items()}
