"""Which models the draws tell apart: differences in units of their standard errors, tiers and sets of ranks.

Everything here rests on differences between two models of one draw, so that nothing depends on the gauge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.execution.precision import one_blas_thread
from jaxeval.plain_tables import Whole, counts_from_one
from jaxeval.statistics import special
from jaxeval.statistics.quantiles import checked_level, normal_quantile

#: Most differences (pairs times resamples) that tiers and ranks are computed from: about ten seconds.
MOST_COMPARISONS = 2_000_000_000
#: A model with a larger share of draws that are not finite is not compared by its draws.
MOST_NOT_FINITE = 0.01
#: Rows of standard errors computed at once.
_BLOCK = 64
#: Differences held at once: half a megabyte, which stays in the cache.
_DIFFERENCES = 65_536
#: The same for those in closed form, which are looked at once.
_IN_CLOSED_FORM = 2**20
#: A standard error of a difference up to this share of the two models' own is rounding: their draws are equal.
_ROUNDING = 3e-7

#: Normal quantiles beyond it are taken for Student's in proportion.
_FARTHEST = 8.0

#: (R, N) differences of the models at R positions to all N, and their standard errors, without draws; NaN where there
#: are none. The second argument is the level of the intervals that will be made of the errors.
ClosedForm: TypeAlias = Callable[[NDArray[np.intp], float], tuple[Float, Float]]


def tabled(
    of: NDArray[np.intp], difference: Float, error: Float, rows: NDArray[np.intp], _: float
) -> tuple[Float, Float]:
    """Answer as a `ClosedForm` that knows (R, N) differences of models ``of`` (R,) alone, in order, at one level."""
    place = np.searchsorted(of, rows)
    return difference[place], error[place]


def not_finite(draws: Float, converged: Bool | None = None) -> Float:
    """Return (N,) share of the (B, N) draws that have ``converged`` in which each model is not finite; 1 for none."""
    known = np.ones(len(draws), bool) if converged is None else converged
    return np.asarray((~np.isfinite(draws[known])).mean(0) if known.any() else np.ones(draws.shape[1]))


def tiers_below(n_models: int, apart_from: Callable[[int], Bool]) -> Int:
    """Return (F,) tiers of models that are numbered from the top down, 1 = top.

    A new tier starts at the first model that is told apart from the leader of its tier. ``apart_from`` returns (F,)
    which models are told apart from a leader.
    """
    tier = np.zeros(n_models, np.int64)
    current, apart = 0, np.ones(n_models, bool)  # the first model starts a tier
    for k in range(n_models):
        if apart[k]:
            current, apart = current + 1, apart_from(k)
        tier[k] = current
    return tier


def open_ranks(estimate: Float, apart: Bool, n_ranked: int) -> tuple[Int, Int]:
    """Return (M,) best and worst of ``n_ranked`` ranks, from which pairs (M, M) are told ``apart``."""
    above, below = estimate > estimate[:, None], estimate < estimate[:, None]
    return 1 + (apart & above).sum(1), n_ranked - (apart & below).sum(1)


@dataclass(frozen=True, eq=False)
class Differences:
    """Differences of all pairs of F models: those of the M ranked models that draws can tell apart.

    The statistic of a difference in a draw is |difference - its estimate| / its standard error. Its largest value over
    a family of differences, draw by draw, gives the critical value that covers the family at once (max-t).

    A draw without a finite value of a model is left out of the differences of that model, and kept for the others. A
    model with more than 1 % of such draws is not among the F: if it is undefeated in one draw and rated in another, the
    spread of its finite draws says nothing. It is told apart by a ``closed_form`` of its differences, if there is one,
    and else from no other model. On a board of two models it decides about both. A difference with a standard error of
    at most ``noise``, the precision of the draws, tells no two models apart either.
    """

    models: NDArray[np.intp]  # (F,) positions on the board, best first
    ranked: Bool  # (N,) models of the board that have a rank: M of them
    estimate: Float  # (F,)
    draws: Float  # (F, B) less the estimate; NaN where not finite
    noise: float
    freedom: float | None = None  # degrees of freedom of the variance of the draws; None for many
    closed_form: ClosedForm | None = None

    @property
    def n_comparisons(self) -> int:
        """Differences of all pairs in all draws."""
        n_models, n_draws = self.draws.shape
        return n_draws * n_models * (n_models - 1) // 2

    @property
    def of_two(self) -> bool:
        """Whether these are two models, and a closed form alone tells them apart."""
        return self.closed_form is not None and len(self.ranked) == 2

    @property
    def within_reach(self) -> bool:
        """Whether all pairs are compared in seconds."""
        return self.n_comparisons <= MOST_COMPARISONS

    def critical(self, level: float) -> float:
        """Return the critical value of all differences at once; NaN for one model."""
        return _critical(_largest_of(self._largest), _exact(level), self.freedom)

    def tiers(self, level: float) -> Int:
        """Return (N,) tiers, 1 = top; 0 for models that are not among the F.

        From the top down, a new tier starts at the first model whose difference interval from its tier's leader,
        simultaneous over all pairs at ``level``, excludes 0.
        """
        tier = np.zeros(len(self.ranked), np.int64)
        if self.of_two and self.ranked.all():
            return 1 + self._in_closed_form(level)[0]
        critical = self.critical(level)
        tier[self.models] = tiers_below(
            len(self.models), lambda leader: self._apart(leader, self.errors(slice(leader, leader + 1))[0], critical)
        )
        return tier

    def rank_sets(self, level: float, simultaneous: bool = False) -> tuple[Int, Int]:
        """Return (N,) best and worst ranks that the draws leave open; 0 for models without a rank.

        best = 1 + #{models above, told apart}, worst = M - #{models below, told apart}. Each set holds the true rank of
        its model with probability ``level`` (the ranks of the whole block, where models are equal): its family is the
        differences of that model. With ``simultaneous`` all sets do so at once: their family is all differences, and
        the critical value is that of `tiers`.

        Differences in ``closed_form`` take their part of 1 - level each (Bonferroni), and the family of draws the rest.
        """
        share, n_ranked = _exact(level), int(self.ranked.sum())
        best, worst = np.where(self.ranked, 1, 0), np.where(self.ranked, n_ranked, 0)
        if self.closed_form is not None and (self.ranked.sum() > len(self.models)):
            others, n_own = (n_ranked, len(self.models)) if simultaneous else (2, 2)
            each = (1 - share) / max((n_ranked - 1) * others // 2, 1)
            share = 1 - each * ((len(self.models) - 1) * n_own // 2)
            above, below = self._in_closed_form(float(1 - each))
            best += above
            worst -= below
        of_all = None
        if simultaneous and len(self.models):
            of_all = _critical(_largest_of(self._largest), share, self.freedom)
        for i, error in self._rows():
            critical = self._critical_of_one(i, error, share, self._largest[i]) if of_all is None else of_all
            apart = self._apart(i, error, critical)
            best[self.models[i]] += (apart & (self.estimate > self.estimate[i])).sum()
            worst[self.models[i]] -= (apart & (self.estimate < self.estimate[i])).sum()
        return best, worst

    def ranks(self, level: float, simultaneous: bool) -> dict[str, Whole]:
        """Return (N,) columns ``rank_best, rank_worst, tier``; missing where comparing all pairs would take minutes."""
        best, worst, tier = np.zeros((3, len(self.ranked)), np.int64)
        if self.within_reach:
            best, worst = self.rank_sets(level, simultaneous)
            tier = self.tiers(level)
        columns = {"rank_best": best, "rank_worst": worst, "tier": tier}
        return {name: counts_from_one(x) for name, x in columns.items()}

    def _in_closed_form(self, each: float) -> tuple[Int, Int]:
        """Count (N,) ranked models above and below each one, by differences with intervals of the level ``each``."""
        assert self.closed_form is not None
        ranked = np.flatnonzero(self.ranked)
        known = np.zeros(len(self.ranked), bool)
        known[self.models] = True
        loose = np.flatnonzero(self.ranked & ~known)
        above, below = np.zeros((2, len(self.ranked)), np.int64)
        z, step = normal_quantile(each), max(_IN_CLOSED_FORM // len(self.ranked), 1)
        for start in range(0, len(loose), step):
            rows = loose[start : start + step]
            difference, error = self.closed_form(rows, each)
            higher, lower = difference > z * error, difference < -z * error  # no NaN is either
            above[rows], below[rows] = lower[:, ranked].sum(1), higher[:, ranked].sum(1)
            above[self.models] += higher[:, self.models].sum(0)
            below[self.models] += lower[:, self.models].sum(0)
        return above, below

    def apart_from(self, model: int, level: float) -> Bool:
        """Return (N,) models that are told apart from the one at position ``model``, all of them at once at ``level``.

        The family is the differences of that model, as for its set of ranks.
        """
        apart = np.zeros(len(self.ranked), bool)
        for i, error, largest in self._family_of(model):
            apart[self.models] = self._apart(i, error, self._critical_of_one(i, error, _exact(level), largest))
        return apart

    def margins_from(self, model: int, level: float) -> Float:
        """Return (N,) half widths of intervals of the differences to ``model`` that hold all at once; NaN for none."""
        margins = np.full(len(self.ranked), np.nan)
        for _, error, largest in self._family_of(model):
            margins[self.models] = _critical(largest, _exact(level), self.freedom) * error
        return margins

    def _family_of(self, model: int) -> Iterator[tuple[int, Float, Float]]:
        """Yield the model's number among the F, errors (F,) of its differences, and their largest statistics (B,)."""
        for i in np.flatnonzero(self.models == model).tolist():
            error, largest = self.errors(slice(i, i + 1))[0], np.full(self.draws.shape[1], np.nan)
            for _, statistic in self._statistics(i, slice(0, len(self.models)), error):
                np.fmax(largest, _largest_of(statistic), out=largest)
            yield i, error, largest

    def errors(self, rows: slice) -> Float:
        """Return (R, F) standard errors of differences of models ``rows`` to every model; NaN where they are noise."""
        x, square, finite = (moment[rows] for moment in self._moments)
        all_x, all_square, all_finite = self._moments
        with one_blas_thread():  # the products are small: more threads would mostly wait, and keep cores from others
            n = finite @ all_finite.T
            total = x @ all_finite.T - finite @ all_x.T
            squares = square @ all_finite.T + finite @ all_square.T
            products = x @ all_x.T
        with np.errstate(invalid="ignore", divide="ignore"):  # fewer than two draws have both
            variance = (squares - 2 * products - total**2 / n) / (n - 1)
            known = (variance > self.noise**2) & (variance > _ROUNDING**2 * squares / n)
            return np.sqrt(np.where(known, variance, np.nan))

    @cached_property
    def _moments(self) -> tuple[Float, Float, Float]:
        """(F, B) draws less their mean, their squares, and 1; each 0 where a draw is not finite."""
        finite = np.isfinite(self.draws)
        mean = np.nanmean(self.draws, axis=1, keepdims=True)
        centred = np.where(finite, self.draws - mean, 0.0)
        return centred, centred**2, finite.astype(np.float64)

    def _rows(self) -> Iterator[tuple[int, Float]]:
        """Yield every model, and the (F,) standard errors of its differences; (F, F) of them may not fit in memory."""
        for start in range(0, len(self.models), _BLOCK):
            yield from enumerate(self.errors(slice(start, start + _BLOCK)), start)

    @property
    def _largest(self) -> Float:
        """(F, B) largest statistic of the differences of each model in each draw; NaN where its own draw is missing."""
        if not self.within_reach:
            raise ValueError(
                f"tiers and ranks compare all pairs of models in all resamples, here {self.n_comparisons:,} "
                f"differences, beyond the {MOST_COMPARISONS:,} that are done in seconds; leave out models with few "
                "battles (min_battles=, on the command line --min-votes), or take fewer resamples (n_resamples=, on "
                "the command line --resamples)"
            )
        return self._largest_of_all

    @cached_property
    def _largest_of_all(self) -> Float:
        largest = np.full(self.draws.shape, np.nan)
        for i, error in self._rows():
            below = slice(i + 1, len(self.models))
            for part, statistic in self._statistics(i, below, error):
                np.fmax(largest[i], _largest_of(statistic), out=largest[i])
                np.fmax(largest[part], statistic, out=largest[part])
        return largest

    def _statistics(self, i: int, others: slice, error: Float) -> Iterator[tuple[slice, Float]]:
        """Yield statistics of the differences of model ``i`` to ``others``, by parts that stay in the cache.

        A part is a slice of J models, and their (J, B) statistics: NaN where the (F,) ``error`` is.
        """
        step = max(_DIFFERENCES // self.draws.shape[1], 1)
        for start in range(others.start, others.stop, step):
            part = slice(start, min(start + step, others.stop))
            statistic = self.draws[part] - self.draws[i]
            np.abs(statistic, out=statistic)
            statistic *= 1 / error[part, None]
            yield part, statistic

    def _apart(self, i: int, error: Float, critical: float) -> Bool:
        """Return (F,) models that are told apart from model ``i``: their difference is beyond the ``critical`` value.

        By more than the precision of the draws: where few votes make few different draws, the critical value may be
        that of a draw in which both are equal, up to rounding.
        """
        return np.asarray(np.abs(self.estimate - self.estimate[i]) - critical * error > self.noise)

    def _critical_of_one(self, i: int, error: Float, level: Fraction, largest: Float) -> float:
        """Return the critical value of model ``i``'s differences, by steps down from their ``largest`` statistics (B,).

        Differences beyond the critical value leave the family, and the rest have a critical value of their own, until
        none leaves (Mogstad, Romano, Shaikh and Wilhelm 2023, DOI 10.1093/restud/rdad006).
        """
        n_left = int((~np.isnan(error)).sum())
        while True:
            critical = _critical(largest, level, self.freedom)
            left = np.where(self._apart(i, error, critical), np.nan, error)
            places = np.flatnonzero(~np.isnan(left))
            if len(places) in (0, n_left):
                return critical
            n_left, largest = len(places), np.full(self.draws.shape[1], np.nan)
            # The models that are left are close to model i, and so next to each other.
            for _, statistic in self._statistics(i, slice(places[0], places[-1] + 1), left):
                np.fmax(largest, _largest_of(statistic), out=largest)


def differences(
    draws: Float, estimate: Float, ranked: Bool, noise: float = 0.0, converged: Bool | None = None,
    freedom: float | None = None, closed_form: ClosedForm | None = None, loose: Bool | None = None,
) -> Differences:  # fmt: skip
    """Return differences of the ``ranked`` (N,) models with (N,) finite ``estimate`` and (B, N) ``draws``.

    Draws (B,) that have not ``converged`` say nothing and are left out; by default all have. A draw in which no model
    is finite says that these data may leave all models without a value, and counts as any other that is not finite.
    ``freedom``, ``closed_form`` and ``loose`` are those of `Draws`.
    """
    known = np.ones(len(draws), bool) if converged is None else converged
    of_two = closed_form is not None and len(ranked) == 2
    drawn = ranked & (not_finite(draws, converged) <= MOST_NOT_FINITE) & (not of_two)
    models = np.flatnonzero(drawn if loose is None else drawn & ~loose)
    models = models[np.argsort(-estimate[models], kind="stable")]
    # Models in rows: a row is then one piece of memory.
    columns = np.ascontiguousarray((draws[np.ix_(known, models)] - estimate[models]).T)
    columns = np.where(np.isfinite(columns), columns, np.nan)
    return Differences(models, ranked, estimate[models], columns, noise, freedom, closed_form)


def _largest_of(statistic: Float) -> Float:
    """Return (B,) largest of (J, B) statistics, NaN left out; NaN where there are none."""
    return np.asarray(np.fmax.reduce(statistic, axis=0, initial=np.nan))


def _exact(level: float) -> Fraction:
    """Return the checked ``level`` as it was written: a rank computed in floating point may be one too high."""
    return Fraction(str(checked_level(level)))


def _critical(largest: Float, level: Fraction, freedom: float | None) -> float:
    """Return the smallest draw that reaches the level, so that never less than the level is covered; NaN without draws.

    Of K clusters, or so few of whatever is drawn, it becomes Student's quantile of the same tail: that of the largest
    of many differences lies further out, in units of the normal one, than that of a single difference. Resamples vary
    by K - 1 over K too little, too.
    """
    known = largest[~np.isnan(largest)]
    if len(known) == 0:
        return np.nan
    place = ceil(level * len(known)) - 1
    critical = float(np.partition(known, place)[place])
    if freedom is None or critical == 0:
        return critical
    if np.isnan(freedom):  # one cluster
        return np.inf
    far = min(critical, _FARTHEST)
    return critical * float(special.stdtrit(freedom, special.ndtr(-far))) / -far * np.sqrt(1 + 1 / freedom)
