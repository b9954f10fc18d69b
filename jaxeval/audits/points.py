"""How many points groups of votes give to models, beside what the fitted board expects of them.

A group is a voter, or a time. Votes for a side ("decided" ones) are compared with a board that is fitted to them alone:
a voter who calls many battles ties does not stand out for that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.cells import Cells, count_by
from jaxeval.ratings.boards import Board
from jaxeval.statistics.p_values import holm

#: Larger squares of standard scores count as 4. Odd groups must not hide behind a spread that they made themselves.
_MOST_SQUARE = 4.0
#: E min(z^2, 4) of a standard normal z.
_MEAN_SQUARE = 0.9205366
#: The variance of min(z^2, 4).
_SQUARE_VARIANCE = 1.2326
#: Groups of so much variance (about five votes) tell how far groups differ in general.
_ENOUGH_VARIANCE = 1.0
_FEWEST_TO_TELL = 30
_MOST_TASTE = 3.0
_FEWEST_VOTERS = 50
_FEWEST_MODELS = 3
_SKEWNESS = np.sqrt(8)  # of a squared standard normal
_HOUR = 3600
_MOST_STEPS = 60
_TOLERANCE = 1e-6  # of tilts, in standard deviations: the tail's relative error is about as large
_FAR = 1.5
_NEAR_MEAN = 1e-3  # standard deviations within which the formula is 0 / 0
_MOST_EXPONENT = 600.0


class GroupedVotes(NamedTuple):
    """Decided votes of rated models by G groups: distinct (group, cell), sorted."""

    group: NDArray[np.intp]  # (E,)
    first: NDArray[np.int32]  # (E,) model of lower index
    second: NDArray[np.int32]  # (E,)
    won: Float  # (E,) 1 where `first` won, else 0
    logit: Float  # (E,) difference of the fitted log-strengths
    times: Float  # (E,) votes
    n_groups: int

    @classmethod
    def of(cls, cells: Cells, board: Board, group: Int, cell: Int, times: Int | None, n_groups: int) -> GroupedVotes:
        """Group rows of ``group`` (R,), -1 for none, and ``cell`` (R,), which stand for ``times`` votes each."""
        decided = (cells.target == 0) | (cells.target == 1)
        rated = board.active[cells.first] & board.active[cells.second]
        usable = decided & rated[cells.pair]
        counted = (group >= 0) & usable[cell]
        keys, row = np.unique(group[counted].astype(np.int64) * len(usable) + cell[counted], return_inverse=True)
        group_of_key, cell = np.divmod(keys, len(usable))
        pair = cells.pair[cell]
        first, second = cells.first[pair], cells.second[pair]
        times_of_key = count_by(row, None if times is None else times[counted], len(keys)).astype(float)
        logit = board.theta[first] - board.theta[second]
        return cls(group_of_key, first, second, cells.target[cell], logit, times_of_key, n_groups)

    def take(self, which: Bool) -> GroupedVotes:
        """Return the votes of the groups ``which`` (G,), numbered anew."""
        return GroupedVotes._make(_of_groups(self, which))

    @property
    def sizes(self) -> Float:
        """(G,) votes of each group."""
        return np.asarray(np.bincount(self.group, self.times, self.n_groups))

    @property
    def spread(self) -> Float:
        """(E,) p (1 - p) of one vote."""
        p = scipy.special.expit(self.logit)
        return np.asarray(p * (1 - p))


def _of_groups(columns: GroupedVotes | ChanceSums, which: Bool) -> list[Any]:
    """Return the columns, the group first and the number of groups last, of the groups ``which`` (G,) numbered anew."""
    group, *others = (column[which[columns.group]] for column in columns[:-1])
    return [(np.cumsum(which) - 1)[group], *others, int(which.sum())]


def _by_model(votes: GroupedVotes, n_models: int) -> tuple[Int, Int]:
    """Return the distinct numbers group * M + model, and which of them the first and the second models have (2 E,)."""
    sides = np.concatenate([votes.first, votes.second]).astype(np.int64)
    return np.unique(np.tile(votes.group, 2).astype(np.int64) * n_models + sides, return_inverse=True)


class Taste(NamedTuple):
    """How far groups differ in what they like."""

    logit: float  # standard deviation of a group's liking of a model
    z: float  # standard errors by which it is above 0, as if the points of a group for two models were independent


class Points(NamedTuple):
    """Points of (group, model), a row for each that met, sorted."""

    group: NDArray[np.intp]  # (K,)
    model: NDArray[np.intp]  # (K,)
    n: Float  # (K,) votes
    points: Float  # (K,) of them for the model
    expected: Float  # (K,)
    variance: Float  # (K,) of the points, if the group votes as the board does
    taste_variance: Float  # (K,) added to it for every squared logit by which groups differ in what they like
    third: Float  # (K,) third cumulant of the points, as `variance`
    fourth: Float  # (K,) fourth cumulant of the points
    p_plain: Float  # (K,) of two sides, of groups that do not differ; NaN for groups that were not asked for

    @property
    def excess(self) -> Float:
        """(K,) points above the expected ones."""
        return self.points - self.expected

    def taste(self) -> Taste:
        """Estimate the standard deviation of groups' likings of a model (logits), robustly to a few odd groups.

        It is the s with which the mean of min(z^2, 4) is that of a normal z, where z^2 = excess^2 / (variance + s^2
        taste variance), over all rows with a variance of 1 or more. It is 0 if fewer than 30 rows have one.
        """
        enough = self.variance >= _ENOUGH_VARIANCE
        if enough.sum() < _FEWEST_TO_TELL:
            return Taste(0.0, 0.0)
        square, variance, more = self.excess[enough] ** 2, self.variance[enough], self.taste_variance[enough]

        def surplus(s: float) -> float:
            return float(np.minimum(square / (variance + s**2 * more), _MOST_SQUARE).mean() - _MEAN_SQUARE)

        z = surplus(0.0) / np.sqrt(_SQUARE_VARIANCE / enough.sum())
        if z <= 0:
            return Taste(0.0, float(z))
        most = surplus(_MOST_TASTE) > 0
        return Taste(_MOST_TASTE if most else float(scipy.optimize.brentq(surplus, 0.0, _MOST_TASTE)), float(z))

    def p_values(self, taste: float) -> Float:
        """Return (K,) p-values of two sides, of groups that differ by ``taste`` (logits) in what they like."""
        return widened(self.p_plain / 2, self.variance, taste**2 * self.taste_variance, sides=2)


def points_of(votes: GroupedVotes, tested: Bool, n_models: int) -> Points:
    """Return the points that every group gives to every model; p-values for the groups ``tested`` (G,) only."""
    p = scipy.special.expit(votes.logit)
    keys, row = _by_model(votes, n_models)
    group, model = np.divmod(keys, n_models)
    times, probability = np.tile(votes.times, 2), np.concatenate([p, 1 - p])
    spread = probability * (1 - probability)
    sums = ChanceSums(row, probability, np.ones(len(row)), times, len(keys))
    points = sums.total(np.concatenate([votes.won, 1 - votes.won]))
    variance = sums.variance
    of_pair = _squares_by_pair(votes, times * spread, row, len(keys))
    p_plain = np.full(len(keys), np.nan)
    rows = tested[group]
    p_plain[rows] = sums.take(rows).p_values(points[rows])
    return Points(
        group=group, model=model, n=sums.total(np.ones(len(row))), points=points, expected=sums.mean,
        variance=variance, taste_variance=variance**2 + of_pair, third=sums.total(spread * (1 - 2 * probability)),
        fourth=sums.total(spread * (1 - 6 * spread)), p_plain=p_plain,
    )  # fmt: skip


def _squares_by_pair(votes: GroupedVotes, variance: Float, row: NDArray[np.intp], n_rows: int) -> Float:
    """Return (K,) sums over the opponents of (group, model) of the squared variance of the votes between both."""
    # Votes are sorted by group and cell, so that those of a group and pair are neighbours.
    changes = np.diff(votes.group) | np.diff(votes.first) | np.diff(votes.second)
    block = np.concatenate([[0], np.cumsum(changes != 0)]) if len(votes.group) else np.zeros(0, np.intp)
    n = len(block)
    of_block = np.bincount(block, variance[:n])
    starts = np.flatnonzero(np.diff(block, prepend=-1))
    squares = of_block**2
    return np.asarray(np.bincount(row[starts], squares, n_rows) + np.bincount(row[n + starts], squares, n_rows))


def widened(tail: Float, variance: Float, more: Float, sides: int = 1) -> Float:
    """Return p-values from tails (K,) of sums with a ``variance``, if the sums vary by as much ``more``."""
    z = scipy.special.ndtri(np.clip(tail, 1e-300, 1.0))
    narrower = np.sqrt(variance / np.maximum(variance + more, 1e-300))
    p = np.where(z < 0, sides * scipy.special.ndtr(z * narrower), sides * tail)
    return np.asarray(np.minimum(p, 1.0))


def preference(votes: GroupedVotes, taste: float, n_models: int) -> dict[str, Float]:
    """Test whether groups prefer the higher rated model: each such vote adds the difference of log-strengths.

    ``taste``: logits by which groups differ in what they like, as in `Points.taste`. Of each of G groups:
    ``agreement``, the share of votes for the higher rated model; ``expected_agreement``, the same of a group that votes
    as the board does; ``p_honest``, the chance that such a group prefers these models so little.
    """
    gap, higher = np.abs(votes.logit), np.where(votes.logit >= 0, votes.won, 1 - votes.won)
    likely = scipy.special.expit(gap)
    sums = ChanceSums(votes.group, likely, gap, votes.times, votes.n_groups)
    keys, row = _by_model(votes, n_models)
    moved = votes.times * votes.spread * votes.logit
    slope = np.bincount(row, np.concatenate([moved, -moved]), len(keys))
    more = np.asarray(taste**2 * np.bincount(keys // n_models, slope**2, votes.n_groups), np.float64)
    n = np.maximum(votes.sizes, 1)
    p_honest = widened(sums.tail(sums.total(gap * higher), np.zeros(len(n), bool), whole=False), sums.variance, more)
    return {"agreement": sums.total(higher) / n, "expected_agreement": sums.total(likely) / n, "p_honest": p_honest}


def beside_coins(votes: GroupedVotes) -> tuple[Float, Float]:
    """Return (G,) chances that coins prefer higher rated models at most as much as each group; and at least as much."""
    gap, higher = np.abs(votes.logit), np.where(votes.logit >= 0, votes.won, 1 - votes.won)
    coins = ChanceSums(votes.group, np.full(len(gap), 0.5), gap, votes.times, votes.n_groups)
    observed, above = coins.total(gap * higher), np.ones(votes.n_groups, bool)
    return coins.tail(observed, ~above, whole=False), coins.tail(observed, above, whole=False)


def divided_models(points: Points, which: Bool, taste: float, models: pd.Index) -> pd.DataFrame:
    """Give a row for each model: by how many logits voters differ about it, and whether that is more than about others.

    Accounts that vote for one model agree with each other, and so voters differ about this model, even with few votes
    each. The squared excess of points, less its variance, over all voters of two votes or more measures how much.
    Models are compared with the median model, so that the tastes that honest voters have about all models raise no
    alarm.

    Of the voters ``which`` (G,), with `Points.taste`. Columns are ``model, n_voters, taste_logit, z, p_value,
    p_adjusted`` (Holm) and ``lean``: "for" where the odd voters favour the model, "against" where they do not. p is NaN
    for models about which fewer than 50 such voters say much.
    """
    rows = which[points.group] & (points.n >= 2)
    model, m = points.model[rows], len(models)

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(model, values[rows], m)

    excess, variance = points.excess, points.variance
    n_voters = np.bincount(model, minlength=m)
    wide = variance + taste**2 * points.taste_variance
    error = np.sqrt(np.maximum(points.fourth + 2 * wide**2, 1e-12))  # of the squared excess
    # Voters with many votes weigh most, but a single one must not decide: no voter counts for more than one full term.
    share = np.minimum(points.taste_variance / error, 1.0)
    weight = np.maximum(total(share * points.taste_variance / error), 1e-300)
    square = total(share * (excess**2 - variance) / error) / weight
    squares = np.maximum(total(share**2), 1e-30)
    spread = np.sqrt(squares) / weight
    enough = squares**2 / np.maximum(total(share**4), 1e-30) >= _FEWEST_VOTERS
    usual = np.median(square[enough]) if enough.sum() >= _FEWEST_MODELS else np.nan
    z = np.where(enough, (square - usual) / spread, np.nan)
    # Squares are skew: a gamma distribution of the skewness of their weighted sum.
    shape = 4 / np.maximum(_SKEWNESS * total(share**3) / squares**1.5, 1e-6) ** 2
    p = np.where(enough, scipy.special.gammaincc(shape, np.maximum(shape + z * np.sqrt(shape), 0)), np.nan)
    table = pd.DataFrame({
        "model": models, "n_voters": n_voters,
        "taste_logit": np.where(enough, np.sqrt(np.maximum(square, 0)), np.nan), "z": z, "p_value": p,
        "p_adjusted": holm(p), "lean": np.where(total(excess**3 - points.third) > 0, "for", "against"),
    })  # fmt: skip
    return table.sort_values("p_value", kind="stable", ignore_index=True)


class Repeats(NamedTuple):
    """Votes beyond the first of the same voter, pair and, where there are prompts, prompt."""

    of_voter: Int  # (V,) such votes
    of_row: Int  # (R,) such votes of each row
    alike: float  # pairs of votes that are the same
    alike_by_chance: float  # the same, if every voter's pairs of models were drawn as the board's are


def repeats(voter: Int, cell: Int, cells: Cells, prompt: Int | None, times: Int | None, n_voters: int) -> Repeats:
    """Count repeats in rows of ``times`` votes each, with ``voter`` and ``prompt`` (R,), -1 for none, and ``cell``."""
    times = np.ones(len(voter), np.int64) if times is None else times
    known = voter >= 0 if prompt is None else (voter >= 0) & (prompt >= 0)
    pair = cells.pair[cell]
    keys = voter[known].astype(np.int64) * len(cells.first) + pair[known]
    if prompt is not None:
        keys = pd.factorize(keys)[0] * (int(prompt.max()) + 1) + prompt[known]
    number, distinct = pd.factorize(keys)
    total = count_by(number, times[known], len(distinct))
    first = np.zeros(len(number), bool)
    first[np.unique(number, return_index=True)[1]] = True
    of_row = np.zeros(len(voter), np.int64)
    of_row[known] = times[known] - first
    size = count_by(voter[known], times[known], n_voters).astype(float)
    share = np.bincount(pair[known], times[known]) / times[known].sum()
    return Repeats(
        of_voter=count_by(voter[known], of_row[known], n_voters),
        of_row=of_row,
        alike=float((total * (total - 1.0) / 2).sum()),
        alike_by_chance=float((size * (size - 1) / 2).sum() * (share**2).sum()) if prompt is None else np.nan,
    )


def busiest_hours(voter: Int, seconds: Int, times: Int | None, n_voters: int) -> Float:
    """Return (V,) the most votes that each voter cast within an hour."""
    known = np.flatnonzero(voter >= 0)
    moment = seconds[known] - seconds[known].min()
    span = int(moment.max()) + _HOUR + 1
    order = np.argsort(voter[known] * span + moment, kind="stable")
    key = (voter[known] * span + moment)[order]
    cast = np.concatenate([[0], np.cumsum(np.ones(len(known)) if times is None else times[known][order])])
    within = cast[np.searchsorted(key, key + _HOUR)] - cast[np.arange(len(key))]
    most = np.zeros(n_voters)
    np.maximum.at(most, voter[known][order], within)
    return most


def with_count(cells: Cells, count: NDArray[np.int64]) -> Cells:
    """Return the cells with another number of battles (C,); those without any are left out."""
    left = count > 0
    pairs, pair = np.unique(cells.pair[left], return_inverse=True)
    return Cells(
        first=cells.first[pairs], second=cells.second[pairs], pair=pair, target=cells.target[left],
        weight=cells.weight[left], count=count[left],
    )  # fmt: skip


class ChanceSums(NamedTuple):
    """G sums of independent terms: row r adds ``weight`` to the sum of its group with ``probability``, or else nothing.

    A row stands for ``times`` such terms. Groups are numbers from 0 to G - 1.
    """

    group: NDArray[np.intp]  # (R,)
    probability: Float  # (R,) strictly between 0 and 1
    weight: Float  # (R,) 1 for whole numbers
    times: Float  # (R,)
    n_groups: int

    def take(self, which: Bool) -> ChanceSums:
        """Return the sums ``which`` (G,), numbered anew."""
        return ChanceSums._make(_of_groups(self, which))

    def total(self, values: Float) -> Float:
        """Return (G,) sums of ``values`` (R,) over the terms of each group."""
        return np.asarray(np.bincount(self.group, self.times * values, self.n_groups))

    @property
    def mean(self) -> Float:
        """(G,) expected sums."""
        return self.total(self.weight * self.probability)

    @property
    def variance(self) -> Float:
        """(G,) variances of the sums."""
        return self.total(self.weight**2 * self.probability * (1 - self.probability))

    def tail(self, observed: Float, above: Bool, *, whole: bool) -> Float:
        """Return (G,) chances of a sum of ``observed`` or more where ``above``, or of ``observed`` or less elsewhere.

        ``whole``: all weights are 1, so that sums are whole numbers.
        """
        if whole:
            upper = self._upper(observed + np.where(above, -0.5, 0.5), 1.0)
            return np.where(above, upper, 1 - upper)
        upper, (low, high) = self._upper(observed, 0.0), self._ends
        # A smallest or largest sum has a probability of its own, which the formula for continuous sums leaves out.
        lower = np.where(observed <= low, self._probability_of_end(above=False), 1 - upper)
        return np.where(above, np.where(observed >= high, self._probability_of_end(above=True), upper), lower)

    def p_values(self, observed: Float) -> Float:
        """Return (G,) two-sided p-values of whole sums: twice the smaller tail.

        Sums within 1.5 standard deviations take the normal approximation, which is good enough for p of .13 and more.
        """
        variance, mean = self.variance, self.mean
        z = np.maximum(np.abs(observed - mean) - 0.5, 0) / np.sqrt(np.maximum(variance, 1e-300))
        p = 2 * scipy.special.ndtr(-z)
        far = z > _FAR
        p[far] = 2 * self.take(far).tail(observed[far], (observed > mean)[far], whole=True)
        return np.minimum(p, 1.0)

    @property
    def _ends(self) -> tuple[Float, Float]:
        """(G,) the smallest and the largest sum, moved inwards by a margin for rounding."""
        low, high = self.total(np.minimum(self.weight, 0)), self.total(np.maximum(self.weight, 0))
        margin = 1e-9 * self.total(np.abs(self.weight))
        return low + margin, high - margin

    def _probability_of_end(self, *, above: bool) -> Float:
        likely = np.where((self.weight > 0) == above, self.probability, 1 - self.probability)
        return np.asarray(np.exp(self.total(np.log(np.where(self.weight == 0, 1.0, likely)))))

    def _upper(self, value: Float, step: float) -> Float:
        """Return (G,) probabilities of ``value`` or more, of sums whose values are ``step`` apart (0: continuous)."""
        low, high = self._ends
        inside = (value > low) & (value < high)
        target = np.where(inside, value, self.mean)
        s, logit = self._saddlepoint(target), scipy.special.logit(self.probability)
        tilted = logit + s[self.group] * self.weight
        expected = scipy.special.expit(tilted)
        spread = np.sqrt(np.maximum(self.total(self.weight**2 * expected * (1 - expected)), 1e-190))
        log_moment = self.total(np.logaddexp(0, tilted) - np.logaddexp(0, logit))
        w = np.sign(s) * np.sqrt(np.maximum(2 * (s * target - log_moment), 0))
        u = spread * (s if step == 0 else 2 / step * np.sinh(np.clip(s * step / 2, -_MOST_EXPONENT, _MOST_EXPONENT)))
        skew = self.total(self.weight**3 * expected * (1 - expected) * (1 - 2 * expected)) / spread**3
        near = np.abs(s) * spread < _NEAR_MEAN
        w_, u_ = np.where(near, 1.0, w), np.where(near, 1.0, u)
        density = np.exp(-(w_**2) / 2) / np.sqrt(2 * np.pi)
        beyond = scipy.special.ndtr(-w_) - density * (1 / w_ - 1 / u_)
        beyond = np.where(near, 0.5 - s * spread / np.sqrt(2 * np.pi) - skew / (6 * np.sqrt(2 * np.pi)), beyond)
        bound = np.exp(-(w**2) / 2)  # Chernoff's, which always holds
        beyond = np.clip(beyond, np.where(s < 0, 1 - bound, 0), np.where(s > 0, bound, 1))
        return np.where(inside, beyond, np.where(value <= low, 1.0, 0.0))

    def _saddlepoint(self, target: Float) -> Float:
        """Return (G,) tilts under which the expected sums are ``target``.

        They come from Newton's steps on the logit of the expected sum within its range. That logit is about linear in
        the tilt; for equal terms it is linear, and the first step is exact. A step that would leave the bracket goes to
        the middle of it.
        """
        logit = scipy.special.logit(self.probability)
        least, most = self.total(np.minimum(self.weight, 0)), self.total(np.maximum(self.weight, 0))
        varies = most > least
        goal = np.log(np.where(varies, target - least, 1.0) / np.where(varies, most - target, 1.0))
        s = np.zeros(self.n_groups)
        low, high = np.full(self.n_groups, -np.inf), np.full(self.n_groups, np.inf)
        for _ in range(_MOST_STEPS):
            expected = scipy.special.expit(logit + s[self.group] * self.weight)
            mean = self.total(self.weight * expected)
            slope = self.total(self.weight**2 * expected * (1 - expected))
            below, above = np.maximum(mean - least, 1e-290), np.maximum(most - mean, 1e-290)
            step = (goal - np.log(below / above)) * below * above / np.maximum((most - least) * slope, 1e-290)
            step = np.where(varies, step, 0.0)
            low, high = np.where(step > 0, s, low), np.where(step < 0, s, high)
            new = s + step
            outside = ((new <= low) | (new >= high)) & np.isfinite(low) & np.isfinite(high)
            new = np.where(outside, (np.where(outside, low, 0) + np.where(outside, high, 0)) / 2, new)
            moved = np.abs(new - s) * np.sqrt(slope)
            s = new
            if moved.max(initial=0) < _TOLERANCE:
                break
        return s
