"""What joint draws say about pairs and ranks: shares of resamples, and intervals of single differences.

Differences do not depend on the gauge, so a model with few votes does not widen those between two others.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from jaxeval.arrays import Float, Int
from jaxeval.lazy_names import pd, scipy
from jaxeval.statistics.quantiles import bounds_with_failures, interval_bounds, normal_quantile

#: The least and the greatest value that quantities can have: numbers, or one for each; None where there are none.
Limits: TypeAlias = tuple[Any, Any] | None

#: An (M, M) table of 10,000 models takes 800 MB.
MOST_SQUARE = 10_000
_GOLDEN = (5**0.5 - 1) / 2
#: The least and the greatest value of each measure.
RANGES = {"kendall_tau": (-1.0, 1.0), "spearman": (-1.0, 1.0), "top_overlap": (0.0, 1.0)}


def check_square(n_models: int, most: int, what: str, instead: str) -> None:
    """Raise ValueError if ``what``, an (M, M) table, would be too large; ``instead`` says what to use in its place."""
    if n_models > most:
        raise ValueError(
            f"{what} is a table of {n_models:,} x {n_models:,} models, beyond the {most:,} that it is meant for; "
            f"use {instead}, or rate fewer models"
        )


def beat_share(draws: Float) -> Float:
    """Return (M, M) share of (B, M) ``draws`` in which the row's model is above the column's, half for equal ones.

    Draws in which either is NaN are left out; NaN on the diagonal and where no draw is left.
    """
    n_models = draws.shape[1]
    share = np.full((n_models, n_models), np.nan)
    for i in range(n_models):
        column = draws[:, i, None]
        both = ~(np.isnan(column) | np.isnan(draws))
        points = (column > draws).sum(0) + 0.5 * ((column == draws) & both).sum(0)
        n = both.sum(0)
        share[i] = np.where(n > 0, points / np.maximum(n, 1), np.nan)
    np.fill_diagonal(share, np.nan)
    return share


def levelled(draws: Float, precision: float | Float) -> Float:
    """Return (B, M) ``draws`` in which those of a row that lie within its ``precision`` of the next one are equal."""
    order = np.argsort(draws, axis=1)
    value = np.take_along_axis(draws, order, 1)
    with np.errstate(invalid="ignore"):  # both infinite, or NaN: these are last
        first = np.diff(value, axis=1, prepend=-np.inf) > precision
    level = np.maximum.accumulate(np.where(first, value, -np.inf), axis=1)
    equal = np.empty_like(value)
    np.put_along_axis(equal, order, np.where(np.isnan(value), value, level), 1)
    return equal


def student_scales(freedom: float, n_draws: int) -> Float:
    """Return factors (B,) that make normal draws of K units those of Student's t, in any number of dimensions.

    Each is sqrt(f / chi^2), with quantiles of chi^2 at the golden ratio's multiples: their order has no part in that of
    the draws. Resamples vary by K - 1 over K too little, too, as for `widening_of_draws`.

    Examples:
        >>> student_scales(4.0, 3).round(2).tolist()
        [1.22, 0.82, 1.58]
    """
    share = (0.5 + _GOLDEN * np.arange(n_draws)) % 1
    return np.asarray(np.sqrt((freedom + 1) / scipy.special.chdtri(freedom, share)))


def draw_bounds(
    draws: Float, level: float, limits: Limits | Float = None, centre: Float | None = None
) -> tuple[Float, Float]:
    """Return percentile bounds over the first axis of ``draws``; `Draws` says what NaN draws and ``limits`` do.

    With a ``centre``, the estimates, they are bias-corrected, see `bias_corrected_bounds`; there are then no limits.
    """
    if centre is not None:
        return bias_corrected_bounds(draws, level, centre)
    if limits is None:
        return interval_bounds(draws, level)
    _, lower, upper, _ = bounds_with_failures(draws, level, *limits)
    return np.clip(lower, *limits), np.clip(upper, *limits)


def bias_corrected_bounds(
    draws: Float, level: float, estimate: Float, acceleration: Float | None = None
) -> tuple[Float, Float]:
    """Return percentile bounds (M,) of (B, M) draws that lie to one side of the ``estimate``, as it does of the truth.

    With z0 the normal quantile of the share of draws below the estimate, the ends are the quantiles of the draws at
    Phi(2 z0 -+ z) (Efron 1987, DOI 10.1080/01621459.1987.10478410); shares beyond .01 and .99 count as these. NaN draws
    are left out. With an ``acceleration`` a (M,), how fast the error changes with the value, they are the quantiles at
    Phi(z0 + (z0 -+ z) / (1 - a (z0 -+ z))): BCa.

    Examples:
        >>> import numpy as np
        >>> draws = np.exp(np.random.default_rng(0).normal(0.1, 0.5, (10_000, 1)))
        >>> [float(end[0].round(1)) for end in bias_corrected_bounds(draws, 0.95, np.array([1.0]))]
        [0.3, 2.4]
    """
    z = normal_quantile(level)
    n = (~np.isnan(draws)).sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        below = ((draws < estimate).sum(0) + (draws == estimate).sum(0) / 2) / n
    skew = 2 * scipy.special.ndtri(np.clip(np.where(np.isfinite(estimate) & (n > 0), below, 0.5), 0.01, 0.99))
    ends = [skew + side * z for side in (-1, 1)]
    if acceleration is not None:
        ends = [skew / 2 + (end - skew / 2) / (1 - acceleration * (end - skew / 2)) for end in ends]
    ordered = np.sort(draws, axis=0)  # NaN last
    lower, upper = (_quantiles(ordered, n, scipy.special.ndtr(end)) for end in ends)
    return lower, upper


def _quantiles(ordered: Float, n: Int, share: Float) -> Float:
    """Return (M,) quantiles of the first ``n`` (M,) rows of ``ordered`` (B, M), each at its ``share``; NaN for none."""
    place = share * np.maximum(n - 1, 0)
    low = place.astype(np.intp)
    first, second = (
        np.take_along_axis(ordered, np.minimum(row, np.maximum(n - 1, 0))[None], 0)[0] for row in (low, low + 1)
    )
    with np.errstate(invalid="ignore"):  # between infinite draws
        between = first + (place - low) * (second - first)
    return np.where((first == second) | (place == low) | np.isneginf(first), first, between)


def difference_limits(one: Limits | Float, other: Limits | Float) -> Limits:
    """Return the limits of one quantity less another."""
    return None if one is None or other is None else (one[0] - other[1], one[1] - other[0])


def square_limits(limits: Limits, n: int) -> Limits:
    """Return (M, M) limits of row minus column."""
    if limits is None:
        return None
    low, high = (np.broadcast_to(np.asarray(x, float), n) for x in limits)
    return low[:, None] - high, high[:, None] - low


def difference_bounds(
    draws: Float, level: float, limits: Limits = None, centre: Float | None = None
) -> tuple[Float, Float]:
    """Return (M, M) percentile bounds of row minus column, draw by draw; NaN on the diagonal. See `draw_bounds`."""
    n_models = draws.shape[1]
    lower, upper = np.full((2, n_models, n_models), np.nan)
    each = None if limits is None else np.array([np.broadcast_to(x, n_models) for x in limits], float)
    for i in range(n_models - 1):
        with np.errstate(invalid="ignore"):  # both infinite: no difference to speak of
            difference = draws[:, i, None] - draws[:, i + 1 :]
            of_estimates = None if centre is None else centre[i] - centre[i + 1 :]
        of_pairs = None if each is None else difference_limits(each[:, i], each[:, i + 1 :])
        low, high = draw_bounds(difference, level, of_pairs, of_estimates)
        lower[i, i + 1 :], upper[i, i + 1 :] = low, high
        lower[i + 1 :, i], upper[i + 1 :, i] = -high, -low
    return lower, upper


def rank_at_most_share(draws: Float, k: int) -> Float:
    """Return (M,) share of ``draws`` in which a model ranks k-th or better.

    Equal draws share the places that they cover: of two models that tie for the first, each is first in half a draw.
    Models that are NaN in a draw take no rank in it, and it does not count for them.
    """
    best, worst = places(draws)
    n = (~np.isnan(best)).sum(0)
    share = np.clip((k + 1 - best) / (worst - best + 1), 0, 1)
    return np.where(n > 0, np.nansum(share, 0) / np.maximum(n, 1), np.nan)


def rank_distribution(draws: Float) -> Float:
    """Return (M, M) share of ``draws`` in which the row's model takes each rank, the first one first.

    Equal draws share the places that they cover, as in `rank_at_most_share`; NaN for a model without any draw.
    """
    best, worst = places(draws)
    draw, model = np.nonzero(~np.isnan(best))
    first, last = (ends[draw, model].astype(np.intp) for ends in (best, worst))
    step = np.zeros((best.shape[1], best.shape[1] + 1))
    np.add.at(step, (model, first - 1), 1 / (last - first + 1))
    np.add.at(step, (model, last), -1 / (last - first + 1))
    n = np.bincount(model, minlength=len(step))[:, None]
    return np.where(n > 0, np.clip(step.cumsum(1)[:, :-1], 0, None) / np.maximum(n, 1), np.nan)


def places(draws: Float) -> tuple[Float, Float]:
    """Return (B, M) first and last of the places that each draw covers with those equal to it; NaN where it is NaN."""
    best, worst = (pd.DataFrame(-draws).rank(axis=1, method=end).to_numpy() for end in ("min", "max"))
    return best, worst


def ranking_agreement(one: Float, other: Float, top: int, precision: float = 0.0) -> dict[str, Float]:
    """Return measures (B,) of agreement of two rankings by (B, M) values, the largest first, in each of B draws.

    "kendall_tau" is tau-b, "spearman" the correlation of ranks, and "top_overlap" the share of the first ``top`` of one
    that are among the first ``top`` of the other; ties share their places. Values that are NaN on a side are left out
    of their draw; values closer than the ``precision`` are equal. The correlations are NaN where a side ties all
    values, the overlap with fewer values than ``top``.
    """
    from jaxeval.kernels.rank_agreement import RankedPairs, tau_b  # which no other function needs

    there = ~(np.isnan(one) | np.isnan(other))
    one, other = (np.where(there, x, np.nan) for x in (one, other))
    sums = np.zeros((4, len(one)))
    for i in range(one.shape[1] - 1):
        with np.errstate(invalid="ignore"):  # infinite ones: no difference to speak of
            gaps = [x[:, i, None] - x[:, i + 1 :] for x in (one, other)]
        known = ~(np.isnan(gaps[0]) | np.isnan(gaps[1]))
        first, second = (np.where(known & (np.abs(gap) > precision), np.sign(gap), 0.0) for gap in gaps)
        sums += [(first * second).sum(1), known.sum(1), (known & (first == 0)).sum(1), (known & (second == 0)).sum(1)]
    step = precision or None
    ranks = [places(x if step is None else np.round(x / step) * step) for x in (one, other)]
    means = [(best + worst) / 2 for best, worst in ranks]
    n = there.sum(1, keepdims=True)
    centred = [np.where(there, rank - (n + 1) / 2, 0.0) for rank in means]
    spread = np.sqrt((centred[0] ** 2).sum(1) * (centred[1] ** 2).sum(1))
    inside = [np.clip(top + 1 - best, 0, worst - best + 1) / (worst - best + 1) for best, worst in ranks]
    with np.errstate(invalid="ignore", divide="ignore"):  # a side that ties all values
        spearman = np.clip((centred[0] * centred[1]).sum(1) / spread, -1, 1)
    overlap = np.where(n[:, 0] >= top, np.nansum(np.minimum(*inside), 1) / top, np.nan)
    return {"kendall_tau": np.asarray(tau_b(RankedPairs(*sums))), "spearman": spearman, "top_overlap": overlap}
