"""What a fit says of errors without draws; and models with few battles, whose intervals come from a penalised fit.

Percentiles of resamples fall short where battles are few: those of 95 % hold .93 at 20 battles a model. Wald's interval
about the maximum of Firth's penalised likelihood holds .96 there, if the battles that the penalty adds count in the
information, too: without them it is a tenth too long at 10 battles a model, and holds .98. So a board whose ratings
have no penalty takes that interval for its thin models alone. It is found with NumPy: to compile the program that fits
every resample with the penalty takes longer than all else on a small board.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, as_leaf
from jaxeval.execution.precision import one_blas_thread
from jaxeval.kernels.solve import SolveStep, Status, Terms, iterate, loop
from jaxeval.ratings.boards import Board, battle_weights, weight_scale
from jaxeval.ratings.gauge import RatingScale
from jaxeval.statistics.clusters import widening
from jaxeval.statistics.quantiles import normal_quantile

#: From this many battles on, percentiles of resamples hold what they promise (benchmarks/few_battles.py).
ENOUGH_BATTLES = 200
#: Tables of more models take seconds.
MOST_MODELS = 1_000
#: A model whose penalised rating errs by more than this takes a rank only if it is apart from one that errs by less.
#: On boards of 20 models whose strengths have a standard deviation of 100 Elo, the ranks left open to a model beyond it
#: are .96 of the board or more (at 50 Elo: all), to one at 75 to 100 Elo .89, and to one at 50 to 75 Elo .78.
UNPLACED_ELO = 100.0

_TERMS, _LONGEST_STEP = Terms.of(0.0, 1e-9, 100), 1.0
_MOST_LOCAL_STEPS, _LOCAL_TOLERANCE = 2_000, 1e-3


@dataclass(frozen=True)
class Independent:
    """Ratings whose errors do not depend on each other, for `jaxeval.statistics.differences.ClosedForm`."""

    ratings: Float  # (M,)
    variance: Float  # (M,)

    def __call__(self, rows: NDArray[np.intp], level: float) -> tuple[Float, Float]:
        """Return (R, M) differences of the models ``rows`` to all others, and their standard errors."""
        ratings, variance = self.ratings, self.variance
        return ratings[rows, None] - ratings, np.sqrt(variance[rows, None] + variance)


def penalised(n: Float, wins: Float, start: Float) -> tuple[Float, Float] | None:
    """Maximise Firth's penalised likelihood of (M, M) tables of battles and wins, from ``start`` (M,).

    The models must have met, directly or through others. `dense_solve.newton_firth` says what is solved; here each step
    takes the adjusted score alone.

    Returns:
        Log-strengths (M,) with mean 0, and their covariance (M, M), in whose information the battles of the penalty
        count; None where the steps do not end.
    """

    def met(theta: Float) -> tuple[Float, Float, Float]:
        p = 1 / (1 + np.exp(theta - theta[:, None]))
        return p, *inverse_and_leverage(n, p)

    def step(theta: Any) -> tuple[Any, Any]:
        p, inverse, leverage = met(theta)
        score = wins.sum(1) + leverage.sum(1) / 2 - ((n + leverage) * p).sum(1)
        change = inverse @ score
        return change * min(1.0, _LONGEST_STEP / np.abs(change).max()), score

    with np.errstate(all="ignore"):
        try:
            end = iterate(step, as_leaf(start - start.mean(), np.float64), _TERMS)
        except np.linalg.LinAlgError:
            return None
    if end.status != Status.CONVERGED:
        return None
    theta = np.asarray(end.theta)
    p, _, leverage = met(theta)
    return theta, inverse_and_leverage(n + leverage, p)[0]


def inverse_and_leverage(n: Float, p: Float) -> tuple[Float, Float]:
    """Return (M, M) pseudo-inverse of the information of ``n`` battles won with probability ``p``, and pair leverages.

    The leverage of a pair is the number of battles that Firth's penalty adds to it.

    Raises:
        numpy.linalg.LinAlgError: the models did not all meet, directly or through others.
    """
    v, m = n * p * (1 - p), len(n)
    inverse = np.linalg.inv(np.diag(v.sum(1)) - v + 1 / m) - 1 / m
    variance = np.diag(inverse)
    return np.asarray(inverse), np.asarray(v * (variance[:, None] + variance - 2 * inverse))


def penalised_board(board: Board, main: Bool) -> tuple[Float, Float] | None:
    """Fit the models ``main`` (M,), which met, with the penalty; all others have 0.

    Returns:
        None for more models than `MOST_MODELS`, and where the fit does not end.
    """
    m, members = len(board.theta), np.flatnonzero(main)
    if m > MOST_MODELS:
        return None
    n, wins = np.zeros((2, m, m))
    scale = weight_scale(board.cells, board.pair_weight)
    board.cells.fill_tables(board.n / scale, board.wins / scale, n, wins)
    among = np.ix_(members, members)
    with one_blas_thread():
        fitted = penalised(n[among], wins[among], board.theta[members])
    if fitted is None:
        return None
    of_pairs, squares = _squares(board), np.zeros((m, m))
    board.cells.fill_tables(of_pairs, of_pairs, squares, np.zeros((m, m)))
    if not np.array_equal(squares, n):
        fitted = fitted[0], _of_weights(*fitted, n[among], squares[among])
    theta, covariance = np.zeros(m), np.zeros((m, m))
    theta[members], covariance[among] = fitted
    return theta, covariance


def covariance_of_penalised(board: Board) -> Float:
    """Return (M, M) covariance of a ``board`` with Firth's penalty, whose battles count in the information, too."""
    rated, covariance = np.flatnonzero(board.active), np.zeros((len(board.theta),) * 2)
    among = np.ix_(rated, rated)
    n, p = board.rated_tables()[0][among], board.expected(board.theta[:, None] - board.theta)[among]
    inverse = inverse_and_leverage(n + inverse_and_leverage(n, p)[1], p)[0]
    v = n * p * (1 - p)
    excess = board.score_variance()[among] - (np.diag(v.sum(1)) - v)  # 0 but for weights
    covariance[among] = inverse + inverse @ excess @ inverse
    return covariance


def _squares(board: Board) -> Float:
    """Return (pairs,) sums of the squares of the battles' weights, over `weight_scale`."""
    cells, weight = board.cells, board.cells.weight
    weight = weight if board.pair_weight is None else weight * board.pair_weight[cells.pair]
    squares = np.bincount(cells.pair, weight**2 * cells.count, len(board.n)).astype(np.float64)
    return np.asarray(squares / weight_scale(cells, board.pair_weight) ** 2)


def _of_weights(theta: Float, covariance: Float, n: Float, squares: Float) -> Float:
    """Return the covariance of sums of weighted results: 5 is not five battles; ``squares`` are of weights."""
    p = 1 / (1 + np.exp(theta - theta[:, None]))
    v = (squares + inverse_and_leverage(n, p)[1]) * p * (1 - p)
    return np.asarray(covariance @ (np.diag(v.sum(1)) - v) @ covariance)


def dispersion(board: Board, theta: Float) -> float:
    """Return the variance of results over that of wins and losses, at ``theta``; see `BradleyTerryFit.dispersion`."""
    cells = board.cells
    weight = battle_weights(board, cells) ** 2 * cells.count
    p = board.expected(theta[cells.first] - theta[cells.second])[cells.pair]
    of_wins, within = weight @ (p * (1 - p)), weight @ (cells.target * (1 - cells.target))
    n = cells.count[weight > 0].sum()
    return float(np.clip(1 - within / of_wins * n / (n + 3), 0.0, 1.0)) if of_wins > 0 else 1.0


def nearby(board: Board, thin: Bool, variance: Float) -> tuple[Float, Float] | None:
    """Return strengths (M,) of the ``thin`` models of a wide board with a penalty, and variances (M,) of all strengths.

    The other models stay where they are, with their ``variance`` (M,). A board of tens of thousands has no table of
    all pairs, so that each pair adds battles by what it says of its thin models alone, and a variance is that of the
    model's own battles plus the mean of its opponents': no less than that of the whole penalised fit, as errors of
    opponents never cancel.

    Returns:
        None where the steps do not end.
    """
    first, second, m = board.cells.first, board.cells.second, len(board.theta)
    some = board.active[first] & board.active[second] & (thin[first] | thin[second])
    squares, scale = _squares(board)[some], weight_scale(board.cells, board.pair_weight)
    first, second, n, wins = first[some], second[some], board.n[some] / scale, board.wins[some] / scale

    def total(of_first: Float, of_second: Float) -> Float:
        return np.asarray(np.bincount(first, of_first, m) + np.bincount(second, of_second, m))

    def step(theta: Any, _: Any, __: Any) -> SolveStep:
        p = 1 / (1 + np.exp(theta[second] - theta[first]))
        v = n * p * (1 - p)
        of_model = total(v, v)
        added = np.minimum(sum(np.where(thin[side], v / of_model[side], 0.0) for side in (first, second)), 1.0)
        off = wins + added / 2 - (n + added) * p
        slope = total(v, v) + total(added * p * (1 - p), added * p * (1 - p))
        score: Any = np.where(thin, total(off, -off), 0.0)
        change = np.clip(score / np.where(thin, slope, 1.0), -1.0, 1.0)
        return SolveStep(change, score, added, abs(change).max(initial=0))

    terms = Terms.of(0.0, _LOCAL_TOLERANCE, _MOST_LOCAL_STEPS)
    end, added = loop(step, as_leaf(board.theta, np.float64), np.zeros(len(n)), terms)
    if end.status != Status.CONVERGED:
        return None
    theta = np.asarray(end.theta)
    p = 1 / (1 + np.exp(theta[second] - theta[first]))
    v, of_scores = (n + added) * p * (1 - p), (squares + added) * p * (1 - p)
    of_model, spread = np.where(thin, total(v, v), 1.0), np.where(thin, 0.0, variance)
    of_weights = total(of_scores, of_scores) / of_model  # 1, but for weights
    for _ in range(_MOST_LOCAL_STEPS):
        updated = np.where(thin, (of_weights + total(v * spread[second], v * spread[first])) / of_model, spread)
        done = (np.abs(updated - spread) <= _LOCAL_TOLERANCE * updated).all()
        spread = updated
        if done:
            return theta, spread
    return None


class FitErrors(NamedTuple):
    """Log-strengths and what is known of their errors: those of a fit, or of its penalised twin."""

    theta: Float  # (M,)
    of_battles: Float  # (M, M) covariance for independent battles, without the dispersion
    dispersion: float  # variance of results over that of wins and losses alone
    over_clusters: Float | None  # (M, M) sandwich covariance, whose errors are the least ones; None without clusters
    freedom: float | None  # degrees of freedom of the clusters

    def half_widths(self, scale: RatingScale, active: Bool, level: float) -> Float:
        """Return half the Wald intervals of the ratings (M,), Elo; NaN for one cluster, which shows no uncertainty."""
        z, half = normal_quantile(level), np.sqrt(self.dispersion * _variance(scale.covariance(self.of_battles)))
        if self.over_clusters is None:
            return np.asarray(z * half)
        wider = widening(self.freedom, level)
        over_clusters = np.where(active, np.sqrt(_variance(scale.covariance(self.over_clusters))), np.nan)
        return np.fmax(z * half, wider * z * over_clusters) if np.isfinite(wider) else np.full(len(half), np.nan)

    def of_differences(self, rows: NDArray[np.intp], level: float, shown: Bool, battles_of_one: float = 1.0) -> Float:
        """Return (R, M) errors of the strengths at ``rows`` less all others; infinite for one cluster.

        Of clusters they are those between the models ``shown`` (M,), by Student's quantile at ``level``. The battles of
        the others cannot show how much clusters differ: as if each cluster were one of its ``battles_of_one``.
        """
        error = np.sqrt(self.dispersion) * _errors_of_differences(self.of_battles, rows)
        if self.over_clusters is None:
            return np.asarray(error)
        wider = widening(self.freedom, level)
        if not np.isfinite(wider):
            return np.full(error.shape, np.inf)
        known = wider * _errors_of_differences(self.over_clusters, rows)
        alike = wider * np.sqrt(battles_of_one) * error
        return np.fmax(error, np.where(shown[rows, None] & shown, known, alike))

    def vague(self, active: Bool, unit: float) -> Bool:
        """Return which ratings (M,), ``unit`` Elo per unit of theta, have a standard error above `UNPLACED_ELO`.

        The gauge is the mean of the ``active`` models, whatever that of the fit.
        """
        covariance, weights = self.dispersion * self.of_battles, active / max(active.sum(), 1)
        shift = covariance @ weights
        variance = np.diag(covariance) - 2 * shift + weights @ shift
        return np.asarray(unit * np.sqrt(np.maximum(variance, 0)) > UNPLACED_ELO)

    def apart_from_others(self, active: Bool) -> Float:
        """Return standard errors (M,) of strengths less the mean of all other ``active`` models."""
        variance, some = np.diag(self.of_battles), active.astype(float)
        total, n = self.of_battles @ some, np.maximum(some.sum() - some, 1)
        others = (some @ total - 2 * some * total + some * variance) / n**2
        apart = np.maximum(variance - 2 * (total - some * variance) / n + others, 0)
        return np.asarray(np.sqrt(self.dispersion * apart))


def _variance(covariance: Float) -> Float:
    return np.maximum(np.diag(covariance), 0)


def _errors_of_differences(covariance: Float, rows: NDArray[np.intp]) -> Float:
    """Return (R, M) errors of differences by an (M, M) covariance."""
    variance = np.diag(covariance)
    return np.asarray(np.sqrt(np.maximum(variance[rows, None] + variance - 2 * covariance[rows], 0)))
