"""Held-out ratings from parts of the judged battles: random subsets of a budget, and slices by a column.

A part is rated by the two steps of Algorithm 1 (arXiv:2606.13221): per held-out model a temperature and anchor
strengths from the part's battles without it, then its strength alone. All folds of many parts are fitted in one call.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit
from scipy.stats import kendalltau, spearmanr

from jaxeval.bradley_terry import padded_size
from jaxeval.gauge import ELO_PER_LOGIT
from jaxeval.judged_battles import JudgedBattles
from jaxeval.kernels import batch
from jaxeval.kernels.solve import CONVERGED
from jaxeval.precision import double_precision
from jaxeval.soft_elo_calibration import solve_against_anchors

Float = NDArray[np.float64]
Rows = NDArray[np.intp]

#: Budgets of Figure 6, battles per model.
BUDGETS = (5, 10, 20, 50, 100, 200)
_METHODS = ("hard", "soft")
_MAX_STEPS, _TOLERANCE = 100, 1e-9
_NEWTON_STEPS = 60
_ENTRIES_PER_CALL = 2**23  # of the stacked pair tables
_ENTRIES_PER_BLOCK = 2**22  # battles x folds evaluated at a time


class _Part(NamedTuple):
    """The M folds of one part under one target map."""

    n: Float  # (M, M) battles
    score: Float  # (M, M) points of each model (column) without the battles of the fold's (row)
    own_points: Float  # (M,) points of the fold's model against all


class _HeldOut(NamedTuple):
    """Held-out strengths of one part."""

    theta: Float  # (M,) logits; NaN where the part cannot place the model
    apart: NDArray[np.bool_]  # (M,) anchors fall apart without the model


def budget_sweep(
    battles: JudgedBattles,
    budgets: Sequence[float] = BUDGETS,
    n_repeats: int = 20,
    ridge: float = 0.01,
    seed: int = 0,
) -> pd.DataFrame:
    """Temperature and held-out MAE against the annotation budget b = N / M (Figure 6).

    Each repeat draws round(b M) of the battles without replacement. The judge's side (its scores, and the human labels
    that the temperature needs) comes from that subset; the human rating it is held against is that of all battles.

    Args:
        battles: with human labels.
        budgets: battles per model; those beyond the data are left out. All battles make one more row.
        n_repeats: subsets a budget.
        ridge: > 0, as in `soft_elo`.
        seed: of the subsets.

    Returns:
        One row a method, budget and repeat: ``method, budget, repeat, n_battles, beta`` (mean over folds, NaN for
        hard), ``mae`` (Elo), ``n_models`` in it, ``n_left_out`` (no battles, anchors apart, or no temperature).
        ``attrs["warnings"]`` says what was left out.
    """
    if not ridge > 0:
        raise ValueError(f"subsets separate models, so the sweep needs a ridge > 0, got {ridge}")
    if n_repeats < 1:
        raise ValueError(f"n_repeats must be at least 1, got {n_repeats}")
    n, m = len(battles.model_a), len(battles.models)
    sizes = {float(b): round(float(b) * m) for b in budgets}
    fitting = {b: size for b, size in sizes.items() if 0 < size < n}
    warnings = []
    if len(fitting) < len(sizes):
        beyond = ", ".join(f"{b:g}" for b in sizes if b not in fitting)
        warnings.append(f"budgets left out, {n:,} battles between {m} models being {n / m:.1f} per model: {beyond}")
    rng = np.random.default_rng(seed)
    parts, labels = [], []
    for budget, size in fitting.items():
        for repeat in range(n_repeats):
            parts.append(np.sort(rng.permutation(n)[:size]))
            labels.append((budget, repeat))
    parts.append(np.arange(n))
    labels.append((n / m, 0))

    human = human_ratings(battles, ridge)
    betas = [fold_temperatures(battles, rows) for rows in parts]
    problems = [p for rows, beta in zip(parts, betas, strict=True) for p in _judge_parts(battles, rows, beta)]
    solved = _solve(problems, ridge)
    table = []
    for k, (budget, repeat) in enumerate(labels):
        for method, held_out in zip(_METHODS, solved[2 * k : 2 * k + 2], strict=True):
            error = np.abs(ELO_PER_LOGIT * (held_out.theta - human))
            used = np.isfinite(error)
            beta = (
                betas[k][np.isfinite(betas[k])].mean() if method == "soft" and np.isfinite(betas[k]).any() else np.nan
            )
            mae = error[used].mean() if used.any() else np.nan
            table.append((method, budget, repeat, len(parts[k]), beta, mae, int(used.sum()), int(m - used.sum())))
    columns = ["method", "budget", "repeat", "n_battles", "beta", "mae", "n_models", "n_left_out"]
    result = pd.DataFrame(table, columns=columns)
    lost = result[result["n_left_out"] > 0]
    if len(lost):
        warnings.append(
            f"in {len(lost)} of {len(result)} rows some models have no held-out rating (no battles in the subset, "
            f"anchors that fall apart, or no temperature), {lost['n_left_out'].max()} at most; MAE is over the others"
        )
    result.attrs = {"warnings": warnings, "settings": {"ridge": ridge, "seed": seed, "n_repeats": n_repeats}}
    return result


def slice_ratings(
    battles: JudgedBattles,
    by: str,
    ridge: float = 0.01,
    *,
    min_battles: int = 5,
    min_models: int = 3,
    full: bool = False,
) -> pd.DataFrame:
    """Held-out accuracy in slices of a column, languages say, against the *global* human rating (Appendix E).

    Args:
        battles: with human labels.
        by: column of the slices.
        ridge: > 0, as in `soft_elo`.
        min_battles: models with fewer battles in a slice are not rated there.
        min_models: slices in which fewer models can be rated are left out, and named.
        full: return the ratings, one row a slice, method and model, instead of their summary.

    Returns:
        One row a slice and method: ``slice, method, n_battles, n_models, mae`` (Elo), ``spearman``, ``kendall``,
        ``beta`` (mean over folds). Methods: hard; soft, with the temperature of all battles; and soft_own, with the
        slice's own. ``attrs`` holds ``warnings`` and ``settings``.
    """
    if not ridge > 0:
        raise ValueError(f"slices separate models, so they need a ridge > 0, got {ridge}")
    if by not in battles.columns.columns:
        have = ", ".join(map(repr, battles.columns.columns))
        raise ValueError(f"no column {by!r} beside the battles; there are {have or 'none'} (read it with keep=)")
    codes, names = pd.factorize(battles.columns[by], sort=True)
    human, pooled = human_ratings(battles, ridge), fold_temperatures(battles, np.arange(len(battles.model_a)))
    problems, labels, warnings = [], [], []
    small: dict[Hashable, None] = {}  # in order
    if (codes < 0).any():
        warnings.append(f"{(codes < 0).sum():,} battles without a value of {by!r} are in no slice")
    for k, name in enumerate(names):
        rows = np.flatnonzero(codes == k)
        own = fold_temperatures(battles, rows)
        hard, soft = _judge_parts(battles, rows, pooled)
        problems += [hard, soft, _soft_part(battles, rows, own)]
        none = np.full(len(own), np.nan)
        n_of = hard.n.sum(1)
        labels += [(name, "hard", n_of, none), (name, "soft", n_of, pooled), (name, "soft_own", n_of, own)]
    summary, ratings = [], []
    for (name, method, n_of, beta), held_out in zip(labels, _solve(problems, ridge), strict=True):
        enough = n_of >= min_battles
        used = np.flatnonzero(np.isfinite(held_out.theta) & np.isfinite(human) & enough)
        if len(used) < min_models:
            small[name] = None
            continue
        judge_elo, human_elo = ELO_PER_LOGIT * held_out.theta[used], ELO_PER_LOGIT * human[used]
        ratings.append(
            pd.DataFrame(
                {
                    "slice": name,
                    "method": method,
                    "model": battles.models[used],
                    "residual": judge_elo - human_elo,
                    "anchors_apart": held_out.apart[used],
                }
            )
        )
        varied = np.ptp(judge_elo) > 0 and np.ptp(human_elo) > 0
        summary.append(
            {
                "slice": name,
                "method": method,
                "n_battles": int(n_of.sum() / 2),
                "n_models": len(used),
                "mae": np.abs(judge_elo - human_elo).mean(),
                "spearman": spearmanr(judge_elo, human_elo).statistic if varied else np.nan,
                "kendall": kendalltau(judge_elo, human_elo).statistic if varied else np.nan,
                "beta": np.nan if method == "hard" else float(np.mean(beta[used])),
            }
        )
    if small:
        warnings.append(
            f"slices in which fewer than {min_models} models can be rated are left out: {_listed(list(small))}"
        )
    if not summary:
        raise ValueError(f"no slice of {by!r} rates {min_models} models: slices are too small")
    result = pd.concat(ratings, ignore_index=True) if full else pd.DataFrame(summary)
    result.attrs = {"warnings": warnings, "settings": {"by": by, "ridge": ridge}}
    return result


def human_ratings(battles: JudgedBattles, ridge: float) -> Float:
    """(M,) held-out human log-strengths of all battles with human labels, logits."""
    rows = np.flatnonzero(~np.isnan(battles.human))
    return _solve([_fixed_part(battles, rows, battles.human)], ridge)[0].theta


def fold_temperatures(battles: JudgedBattles, rows: Rows) -> Float:
    """(M,) temperature of each fold: from the human non-ties among ``rows`` without the fold's model (Eq. 6).

    NaN where they do not determine a positive one: too few, separable, or disagreeing with the scores.
    """
    human, m = battles.human, len(battles.models)
    rows = rows[np.isin(human[rows], (0.0, 1.0)) & (battles.score_difference[rows] != 0)]
    # Oriented by the score: a gap >= 0, and whether the human agrees. Equal gaps are one cell.
    gaps, code = np.unique(np.abs(battles.score_difference[rows]), return_inverse=True)
    agree = ((battles.score_difference[rows] > 0) == (human[rows] == 1)).astype(float)
    n_gaps, rows_of = len(gaps), (battles.model_a[rows], battles.model_b[rows])
    if n_gaps == 0:
        return np.full(m, np.nan)

    def without(weight: Float) -> Float:
        """(M, V) weight in each gap, less that of the fold's model."""
        total = np.bincount(code, weight, n_gaps)
        of_model = sum(np.bincount(side * n_gaps + code, weight, m * n_gaps) for side in rows_of)
        return np.asarray(total - np.reshape(of_model, (m, n_gaps)))

    n, yes = without(np.ones(len(rows))), without(agree)
    # Both signs of evidence, and on balance agreement: a finite positive maximum exists.
    possible = (yes > 0).any(1) & (n - yes > 0).any(1) & (((yes - n / 2) * gaps).sum(1) > 0)
    beta = np.zeros(m)
    for _ in range(_MAX_STEPS):
        p = expit(beta[:, None] * gaps)
        gradient = ((yes - n * p) * gaps).sum(1)
        curvature = (n * p * (1 - p) * gaps**2).sum(1)
        change = np.where(possible, gradient / np.maximum(curvature, 1e-300), 0.0)
        # The gradient is convex in beta > 0: from 0 Newton's steps never overshoot but where curvature fades.
        beta = beta + np.clip(change, -2 / gaps.mean(), 2 / gaps.mean())
        if np.abs(change).max() < _TOLERANCE:
            break
    return np.where(possible, beta, np.nan)


def _judge_parts(battles: JudgedBattles, rows: Rows, beta: Float) -> tuple[_Part, _Part]:
    return _fixed_part(battles, rows, battles.hard), _soft_part(battles, rows, beta)


def _fixed_part(battles: JudgedBattles, rows: Rows, target: Float) -> _Part:
    """Targets that are the same in every fold: a fold's scores are differences of sums."""
    m = len(battles.models)
    a, b, y = battles.model_a[rows].astype(np.int64), battles.model_b[rows], target[rows]
    wins = (np.bincount(a * m + b, y, m * m) + np.bincount(b * np.int64(m) + a, 1 - y, m * m)).reshape(m, m)
    score = wins.sum(1) - wins.T
    np.fill_diagonal(score, 0.0)
    return _Part(_counts(a, b, m), score, wins.sum(1))


def _soft_part(battles: JudgedBattles, rows: Rows, beta: Float) -> _Part:
    """Targets s(beta_f score) of each fold f; NaN points where the fold has no temperature."""
    m = len(battles.models)
    a, b = battles.model_a[rows].astype(np.int64), battles.model_b[rows].astype(np.int64)
    gap = battles.score_difference[rows]
    n = _counts(a, b, m)
    # 2 s(x) - 1 = tanh(x / 2) is odd, so a battle adds it to A and takes it from B, over half a point each.
    odd, own = np.zeros((m, m)), np.zeros(m)
    size = max(_ENTRIES_PER_BLOCK // m, 1)
    for start in range(0, len(rows), size):
        block = slice(start, start + size)
        i, j, row = a[block], b[block], np.arange(len(a[block]))
        value = np.tanh(0.5 * np.nan_to_num(beta) * gap[block, None])
        own += np.bincount(i, value[row, i], m) - np.bincount(j, value[row, j], m)
        value[row, i] = value[row, j] = 0.0
        sign = np.concatenate([np.ones(len(i)), -np.ones(len(j))])
        incidence = csr_array((sign, (np.concatenate([i, j]), np.concatenate([row, row]))), shape=(m, len(row)))
        odd += (incidence @ value).T
    n_of = n.sum(1)
    score = 0.5 * (n_of - n + odd)
    np.fill_diagonal(score, 0.0)
    own_points = np.where(np.isnan(beta), np.nan, 0.5 * (n_of + own))
    return _Part(n, score, own_points)


def _counts(a: NDArray[Any], b: NDArray[Any], m: int) -> Float:
    n = np.bincount(a.astype(np.int64) * m + b, minlength=m * m).reshape(m, m)
    return (n + n.T).astype(float)


def _solve(parts: Sequence[_Part], ridge: float) -> list[_HeldOut]:
    """Both steps for all folds of all parts; the anchor fits of several parts go into one compiled call."""
    if not parts:
        return []
    m = len(parts[0].n)
    size = padded_size(m)
    per_call = int(np.clip(_ENTRIES_PER_CALL // (m * size * size), 1, len(parts)))
    results = []
    for start in range(0, len(parts), per_call):
        chunk = list(parts[start : start + per_call])
        filled = chunk + [chunk[-1]] * (per_call - len(chunk))  # one shape, one compilation
        n, score = np.zeros((per_call, m, size, size)), np.zeros((per_call, m, size))
        fold = np.arange(m)
        for k, part in enumerate(filled):
            n[k, :, :m, :m], score[k, :, :m] = part.n, part.score
        n[:, fold, fold, :] = n[:, fold, :, fold] = 0.0
        active = n.sum(-1) > 0
        with double_precision():
            end = batch.fit(
                n.reshape(-1, size, size),
                score.reshape(-1, size),
                active.reshape(-1, size),
                float(ridge),
                _TOLERANCE,
                _NEWTON_STEPS,
            )
        theta = np.asarray(end.theta).reshape(per_call, m, size)[:, :, :m]
        converged = (np.asarray(end.status) == CONVERGED).reshape(per_call, m)
        for k, part in enumerate(chunk):
            apart = _falls_apart(part.n)
            placed = converged[k] & ~apart & (part.n.sum(1) > 0) & np.isfinite(part.own_points)
            own = solve_against_anchors(part.n, np.nan_to_num(part.own_points), theta[k], ridge)
            results.append(_HeldOut(np.where(placed, own, np.nan), apart))
    return results


def _falls_apart(n: Float) -> NDArray[np.bool_]:
    """(M,) whether the fold's model met anchors that did not meet each other, directly or through others."""
    m, met = len(n), n > 0
    # A pair of anchors joined by a third in every fold cannot be cut by leaving one model out.
    common = met.astype(float) @ met
    if (np.where(np.eye(m, dtype=bool), m, common + m * met) >= 2).all():
        return np.zeros(m, bool)
    apart = np.zeros(m, bool)
    for f in range(m):
        others = np.delete(np.arange(m), f)
        _, label = connected_components(csr_array(met[np.ix_(others, others)]), directed=False)
        apart[f] = len(np.unique(label[met[f, others]])) > 1
    return apart


def _listed(names: Sequence[Hashable], limit: int = 8) -> str:
    shown = ", ".join(map(str, names[:limit]))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
