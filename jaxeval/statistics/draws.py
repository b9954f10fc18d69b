"""Joint draws of named quantities: what every estimator that resamples gives, and what tables, figures and files take.

Nothing here knows battles, judgments or models. An estimator fills in a `Draws`, and gets intervals, standard errors,
comparisons, tiers, sets of ranks and a table of them. A result hands it out as ``joint``.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.checks import check_choice, checked_integer
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import PlainTable, Whole, counts_from_one, in_pandas
from jaxeval.show.cells import KINDS, with_kinds
from jaxeval.show.shown import Answer, Result
from jaxeval.statistics import comparison
from jaxeval.statistics.clusters import widening_of_draws
from jaxeval.statistics.differences import ClosedForm, Differences, differences
from jaxeval.statistics.quantiles import normal_quantile
from jaxeval.wording import counted, did_you_mean, named

#: Of the draws alone, but for the last two: they take what `jaxeval.draws_of` knows of single units.
IntervalKind = Literal["percentile", "basic", "wald", "bca", "studentised"]

#: Quantities compared at once.
_BLOCK = 256

_EACH = ("names", "estimate", "anchored", "loose", "status")  # fields of shape (M,)


@dataclass(frozen=True, eq=False, repr=False)
class Draws(Result):
    """B joint draws of M named quantities, with their estimates.

    A draw may be infinite: it then counts as the largest or the smallest. A draw may be NaN, where a resample gives no
    value. It is left out; but if the quantities have ``limits``, it counts as the least value in the lower end of an
    interval and as the greatest in the upper end. `differences`, tiers and ranks leave it out in any case.

    Draws of few clusters, or of clusters of unequal size, vary too little. With ``freedom`` intervals are longer about
    the estimate, by Student's quantile over the normal one; critical values of differences are Student's, too. Shares
    of ranks and of wins are those of draws of Student's t, and a share `left_to_chance` says nothing.

    ``names`` may have several levels, as judge and model. `of` picks the quantities of one judge, and the difference of
    two `Draws` of the same resamples compares two judges.

    Examples:
        >>> import numpy as np, pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> truth = np.array([0.9, 0.5, 0.45])
        >>> draws = Draws(pd.Index(["a", "b", "c"]), truth, truth + 0.05 * rng.normal(size=(1000, 3)))
        >>> draws.interval(0.9).round(1)
           lower  upper
        a    0.8    1.0
        b    0.4    0.6
        c    0.4    0.5
        >>> draws.tiers().tolist()
        [1, 2, 2]

    Raises:
        ValueError: there are no draws, an array's shape is not that of the names, or two quantities share a name.
    """

    names: pd.Index  # (M,) of one level or of several
    estimate: Float  # (M,) of the full data; infinite or NaN where the data give no finite value
    draws: Float = field(repr=False)  # (B, M) in the gauge of the estimate
    converged: Bool | None = field(default=None, repr=False)  # (B,) draws whose computation ended; None for all
    gauge: str = ""  # what fixes the common level, in words; empty where every quantity has a zero of its own
    anchored: Bool | None = field(default=None, repr=False)  # (M,) quantities that the gauge holds at a number
    loose: Bool | None = field(default=None, repr=False)  # (M,) not told apart by draws, as a penalty alone makes these
    precision: float = 0.0  # draws that are closer than this are equal: they differ by rounding
    limits: comparison.Limits = None  # the least and the greatest possible value: numbers, or (M,) each
    status: NDArray[Any] | None = field(default=None, repr=False)  # (M,) "ok", or what is wrong with each, in words
    warnings: tuple[str, ...] = ()
    settings: Any = field(default=None, repr=False)  # what made them: a mapping, or a dataclass
    freedom: float | None = None  # degrees of freedom of their variance, where clusters are drawn; None for many
    bias_corrected: bool = False  # percentiles are those of `bias_corrected_bounds`: draws repeat the estimate's bias
    holds_estimate: bool = False  # the end of an interval is at the estimate where draws lie to one side of it
    closed_form: ClosedForm | None = field(default=None, repr=False)  # of differences whose draws are often not finite
    kind: str = "number"  # of quantity, one of `KINDS`: how tables spell the estimates

    def _shown(self) -> Answer:
        ends = self.interval()
        table = pd.DataFrame({"estimate": self.estimate, **ends}, self._index)
        table.insert(0, "rank", self.rank())
        if self.status is not None:
            table["status"] = self.status
        title = f"Draws: {counted(len(self.draws), 'draw')} of {counted(len(self.names), 'quantity', 'quantities')}"
        settings = ", ".join(part for part in (self.gauge, "95% intervals") if part)
        table = self._with_kinds(table.sort_values("estimate", ascending=False, kind="stable"))
        sentences = [] if np.isfinite(self.estimate).any() else ["no quantity has a finite estimate"]
        return Answer(title, table, settings, self.warnings, sentences=sentences)

    def _with_kinds(self, table: pd.DataFrame) -> pd.DataFrame:
        error = "elo" if self.kind == "rating" else self.kind
        return with_kinds(with_kinds(table, **{error: "standard_error"}), "estimate", **{self.kind: "estimate"})

    def _figures(self) -> dict[str, tuple[Any, ...]]:
        return {"estimates": ("plot_draws", self)}

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, tuple(KINDS))
        if len(self.draws) == 0:
            raise ValueError("there are no draws: ask the estimator for resamples (n_resamples)")
        if not self.draws.shape[1:] == self.estimate.shape == self.names.shape:
            raise ValueError(
                f"{len(self.names)} names need as many estimates and columns of draws, got arrays of shapes "
                f"{self.estimate.shape} and {self.draws.shape}"
            )
        sizes = {
            "status": self.names.shape,
            "anchored": self.names.shape,
            "loose": self.names.shape,
            "converged": self.draws.shape[:1],
        }
        for name, shape in sizes.items():
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise ValueError(f"{name} must be an array of shape {shape}, got one of shape {array.shape}")
        shapes = [(), ()] if self.limits is None else list(map(np.shape, self.limits))
        if len(shapes) != 2 or not set(shapes) <= {(), self.names.shape}:
            raise ValueError(f"limits must be two numbers or arrays of shape {self.names.shape}, got shapes {shapes}")
        if not self.names.is_unique:
            several = self.names[self.names.duplicated()].unique()
            raise ValueError(f"every quantity needs a name of its own, but several are called {named(several)}")

    def of(self, **chosen: Hashable) -> Draws:
        """Give the quantities with these values in levels of the names, as ``judge="judge-1"``; the other levels stay.

        Raises:
            ValueError: the names have no such level, or a level has no such value.
        """
        chosen_rows = np.ones(len(self.names), bool)
        for level, value in chosen.items():
            if level not in self.names.names:
                raise ValueError(f"no level {level!r} of names; the levels are {named(self.names.names)}")
            values = self.names.get_level_values(level)
            if value not in values:
                hint = did_you_mean(value, values.unique())
                raise ValueError(f"no {level} {value!r} among the names; there are {named(values.unique())}{hint}")
            chosen_rows &= values == value
        taken = self.take(chosen_rows)
        several = len(chosen) < self.names.nlevels
        return replace(taken, names=taken.names.droplevel(list(chosen))) if several else taken

    def take(self, which: Bool | NDArray[np.intp]) -> Draws:
        """Return the quantities ``which``: a mask (M,), or their numbers."""
        low, high = (np.broadcast_to(x, len(self.names))[which] for x in self.limits or (-np.inf, np.inf))
        limits = None if self.limits is None else (low, high)
        each: dict[str, Any] = {name: x[which] for name in _EACH if (x := getattr(self, name)) is not None}
        return replace(self, draws=self.draws[:, which], limits=limits, closed_form=None, **each)

    def __sub__(self, other: Draws) -> Draws:
        """Return the paired differences of the same names, draw by draw, of draws that the same resamples made.

        Raises:
            ValueError: the names differ, or the numbers of draws.
        """
        if not self.names.equals(other.names) or len(self.draws) != len(other.draws):
            raise ValueError(
                "only draws of the same names in the same resamples have differences, got "
                f"{counted(len(self.draws), 'draw')} of {named(self.names)} and {len(other.draws):,} of "
                f"{named(other.names)}"
            )
        anchored, other_anchored = self.anchored, other.anchored
        with np.errstate(invalid="ignore"):  # both infinite: no difference to speak of
            return Draws(
                self.names,
                self.estimate - other.estimate,
                self.draws - other.draws,
                converged=both_converged(self, other),
                anchored=None if anchored is None or other_anchored is None else anchored & other_anchored,
                loose=self._loose | other._loose,
                precision=self.precision + other.precision,
                limits=comparison.difference_limits(self.limits, other.limits),
                warnings=tuple(dict.fromkeys([*self.warnings, *other.warnings])),
                settings=self.settings,
                freedom=_fewest(self.freedom, other.freedom),
                bias_corrected=self.bias_corrected or other.bias_corrected,
                kind="elo" if self.kind == "rating" else self.kind,
            )

    @property
    def _loose(self) -> Bool:
        return np.zeros(len(self.names), bool) if self.loose is None else self.loose

    @property
    def _centre(self) -> Float | None:
        return self.estimate if self.bias_corrected else None

    @cached_property
    def without_spread(self) -> pd.Series:
        """Whether all draws of a quantity are equal, though no gauge holds it: there is then no interval."""
        return pd.Series(self._equal_draws, self._index, name="without_spread")

    @property
    def _equal_draws(self) -> Bool:
        return np.asarray(self._finite_draws_equal & ~np.isinf(self.draws).any(0))

    @cached_property
    def _finite_draws_equal(self) -> Bool:
        """(M,) whether the finite draws are equal up to their precision; False for what the gauge holds."""
        finite = np.isfinite(self.draws)
        low, high = np.where(finite, self.draws, np.inf).min(0), np.where(finite, self.draws, -np.inf).max(0)
        equal = finite.any(0) & (high - low <= self.precision)
        return np.asarray(equal if self.anchored is None else equal & ~self.anchored)

    @cached_property
    def standard_errors(self) -> pd.Series:
        """Standard deviation of the finite draws of each quantity (ddof = 1); NaN if those are equal."""
        return pd.Series(self.errors, self._index)

    @cached_property
    def errors(self) -> Float:
        """(M,) `standard_errors`."""
        draws = np.ascontiguousarray(self.draws.T)
        finite = np.isfinite(draws)
        n = finite.sum(1)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(finite, draws, 0.0).sum(1) / n
            square = np.where(finite, (mean[:, None] - draws) ** 2, 0.0).sum(1)
            return np.where((n > 1) & ~self._finite_draws_equal, np.sqrt(square / (n - 1)), np.nan)

    def interval(self, level: float = 0.95, kind: IntervalKind = "percentile") -> pd.DataFrame:
        """Give confidence intervals: columns ``lower`` and ``upper``; NaN without a finite estimate, or without spread.

        Args:
            level: of each interval by itself.
            kind: "percentile" takes quantiles of the draws, "basic" reflects them about the estimate, "wald" goes as
                many standard errors to both sides of it as a normal variable asks for.

        Raises:
            ValueError: ``level`` is not between 0 and 1, or ``kind`` is none of these.
        """
        lower, upper = self.ends(level, kind)
        return pd.DataFrame({"lower": lower, "upper": upper}, self._index)

    def ends(self, level: float, kind: IntervalKind = "percentile") -> tuple[Float, Float]:
        """Return (M,) lower and upper ends of `interval`."""
        if kind in ("bca", "studentised"):
            raise ValueError(f"kind={kind!r} needs the influence of single units, which only draws_of knows")
        lower, upper = self._widened(
            self.estimate, comparison.draw_bounds(self.draws, level, self.limits, self._centre), level, self.limits
        )
        if kind == "basic":
            with np.errstate(invalid="ignore"):  # infinite estimates have no interval
                lower, upper = 2 * self.estimate - upper, 2 * self.estimate - lower
        elif kind == "wald":
            half = normal_quantile(level) * widening_of_draws(self.freedom, level) * self.errors
            lower, upper = self.estimate - half, self.estimate + half
        elif kind != "percentile":
            known_kinds = ", ".join(map(repr, get_args(IntervalKind)))
            raise ValueError(f"kind must be one of {known_kinds}, got {kind!r}")
        if self.holds_estimate:
            lower, upper = np.minimum(lower, self.estimate), np.maximum(upper, self.estimate)
        known = np.isfinite(self.estimate) & ~self._equal_draws
        return np.where(known, lower, np.nan), np.where(known, upper, np.nan)

    @property
    def beat_share(self) -> pd.DataFrame:
        """(M, M) share of draws in which the row's quantity is above the column's, half for equal draws."""
        self._check_square("the table of shares")
        from jaxeval.show.table import Table

        return Table(self._square(self._mixed(comparison.beat_share(self.of_shares), 0.5)))

    @cached_property
    def of_shares(self) -> Float:
        """(B, M) draws that shares are counted in, equal where rounding alone differs.

        Those of few units are Student's t. Of 8 units with normal scores, shares of the draws themselves were beyond
        .975 or .025 for .10 of the pairs of equal models, and for .48 of 2 units; now for .04 and none.
        """
        if self.freedom is None or not 0 < self.freedom < np.inf:
            return comparison.levelled(self.draws, self.precision) if self.precision else self.draws
        scale = comparison.student_scales(self.freedom, len(self.draws))[:, None]
        with np.errstate(invalid="ignore"):
            far = self.estimate + scale * (self.draws - self.estimate)
        draws = np.where(np.isfinite(self.estimate), far, self.draws)
        return comparison.levelled(draws, self.precision * (1 + 2 * scale)) if self.precision else draws

    @property
    def left_to_chance(self) -> float:
        """The part of every share that says nothing: all of K units favour one of two equal models so often.

        0 where that is less than a draw.
        """
        part = 0.0 if self.freedom is None else float(0.5 ** np.nan_to_num(self.freedom))
        return part if part * len(self.draws) >= 1 else 0.0

    def _mixed(self, share: Float, by_chance: float) -> Float:
        return share + self.left_to_chance * (by_chance - share)

    def difference_interval(self, level: float = 0.95) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return (M, M) lower and upper percentile bounds of row minus column."""
        self._check_square("the table of difference intervals")
        bounds = comparison.difference_bounds(self.draws, level, self.limits, self._centre)
        with np.errstate(invalid="ignore"):  # both infinite
            limits = comparison.square_limits(self.limits, len(self.names))
            lower, upper = self._widened(self.estimate[:, None] - self.estimate, bounds, level, limits)
        return self._square(lower), self._square(upper)

    def _widened(
        self, estimate: Float, bounds: tuple[Float, Float], level: float, limits: comparison.Limits
    ) -> tuple[Float, Float]:
        """Return bounds of draws as far from the ``estimate`` as so few clusters ask for, within the limits."""
        if self.freedom is None:
            return bounds
        wider = widening_of_draws(self.freedom, level)
        with np.errstate(invalid="ignore"):
            lower, upper = (np.where(np.isfinite(estimate), estimate + wider * (x - estimate), x) for x in bounds)
        return (lower, upper) if limits is None else (np.clip(lower, *limits), np.clip(upper, *limits))

    def not_below(self, one: int, others: NDArray[np.intp], level: float = 0.95) -> NDArray[np.intp]:
        """Return which of ``others`` (positions) are not below quantity ``one``: `difference_interval` holds 0 or less.

        An end that is 0 up to the precision of the draws is 0.
        """
        not_below = []
        for start in range(0, len(others), _BLOCK):
            part = others[start : start + _BLOCK]
            with np.errstate(invalid="ignore"):
                apart = self.draws[:, one, None] - self.draws[:, part]
                estimate = self.estimate[one] - self.estimate[part]
            limits = comparison.square_limits(self.limits, len(self.names))
            pair_limits = None if limits is None else (limits[0][one, part], limits[1][one, part])
            centre = estimate if self.bias_corrected else None
            lower, _ = self._widened(
                estimate, comparison.draw_bounds(apart, level, pair_limits, centre), level, pair_limits
            )
            not_below.append(part[~(lower > self.precision) | self._loose[one] | self._loose[part]])
        return np.concatenate(not_below) if not_below else others

    def ranked(self, among: Bool | None = None) -> Bool:
        """Return (M,) quantities that take a rank: those with a finite estimate, ``among`` (M,) if given."""
        finite = np.isfinite(self.estimate)
        return finite if among is None else finite & among

    def rank_share(self, k: int, among: Bool | None = None) -> pd.Series:
        """Give share of draws in which each quantity ranks k-th or better among those `ranked`; NaN for the others."""
        k = checked_integer("k", k, 1)
        ranked = self.ranked(among)
        share = np.full(len(ranked), np.nan)
        by_chance = min(k / max(ranked.sum(), 1), 1.0)
        share[ranked] = self._mixed(comparison.rank_at_most_share(self.of_shares[:, ranked], k), by_chance)
        return pd.Series(share, self._index)

    def rank_distribution(self, among: Bool | None = None) -> pd.DataFrame:
        """Return the (M, M) share of draws in which each quantity takes each rank among `ranked` ones; else NaN."""
        self._check_square("the table of ranks")
        ranked = self.ranked(among)
        share = np.full((len(ranked), len(ranked)), np.nan)
        n = int(ranked.sum())
        share[ranked, :n] = self._mixed(comparison.rank_distribution(self.of_shares[:, ranked]), 1 / max(n, 1))
        return pd.DataFrame(share, self._index, pd.RangeIndex(1, len(ranked) + 1, name="rank"))

    def differences(self, among: Bool | None = None) -> Differences:
        """Return differences of all pairs of the quantities `ranked`, from which `tiers` and `rank_sets` come.

        Nothing is compared yet; ``n_comparisons`` of the result says how much work that will be. The last result is
        kept, because tiers and sets of ranks share most of the work.
        """
        ranked = self.ranked(among)
        kept = self._compared.get(ranked.tobytes())
        if kept is None:
            how = self.precision, self.converged, self.freedom, self.closed_form, self.loose
            kept = differences(self.draws, self.estimate, ranked, *how)
            self._compared.clear()
            self._compared[ranked.tobytes()] = kept
        return kept

    @cached_property
    def _compared(self) -> dict[bytes, Differences]:
        return {}

    def tiers(self, level: float = 0.95, among: Bool | None = None) -> pd.Series:
        """Return tiers that the draws can separate at the simultaneous ``level`` (max-t over all pairs), 1 = top.

        Missing for quantities that are not `ranked`, and for those that are not finite in more than 1 % of the draws.

        Raises:
            ValueError: too many differences to look at, see `differences`.
        """
        return self._positive({"tier": self.differences(among).tiers(level)})["tier"].rename(None)

    def rank_sets(self, level: float = 0.95, simultaneous: bool = False, among: Bool | None = None) -> pd.DataFrame:
        """Return ranks that the draws leave open: columns ``rank_best``, ``rank_worst``; see `Differences.rank_sets`.

        Raises:
            ValueError: too many differences to look at, see `differences`; or ``level`` is not between 0 and 1.
        """
        best, worst = self.differences(among).rank_sets(level, simultaneous)
        return self._positive({"rank_best": best, "rank_worst": worst})

    def apart_from(self, value: float = 0.0, level: float = 0.95) -> pd.Series:
        """Return whether each quantity is told apart from a ``value``, all of them at once at ``level``.

        The largest |draw - estimate| / standard error over all quantities, draw by draw, gives the critical value
        (max-t, by steps down as for `rank_sets`): with probability ``level`` none that has the value is told apart from
        it. Quantities that are not finite in more than 1 % of the draws are not told apart.

        Raises:
            ValueError: ``level`` is not between 0 and 1.
        """
        apart = self._beside(value).apart_from(len(self.names), level)[:-1]
        return pd.Series(apart, self._index, name="apart")

    def interval_at_once(self, value: float = 0.0, level: float = 0.95) -> pd.DataFrame:
        """Return ``lower`` and ``upper`` of intervals that hold all at once, by the errors that `apart_from` looks at.

        An interval that does not hold ``value`` is that of a quantity that `apart_from` tells apart. That may tell a
        few more apart, by its steps down: their intervals end at ``value``. Without an interval both are missing.

        Raises:
            ValueError: ``level`` is not between 0 and 1.
        """
        beside, n = self._beside(value), len(self.names)
        margin, apart = beside.margins_from(n, level)[:-1], beside.apart_from(n, level)[:-1]
        lower, upper = self.estimate - margin, self.estimate + margin
        lower = np.where(apart & (self.estimate > value), np.fmax(lower, value), lower)
        upper = np.where(apart & (self.estimate < value), np.fmin(upper, value), upper)
        return pd.DataFrame({"lower": lower, "upper": upper}, self._index)

    def _beside(self, value: float) -> Differences:
        """Return differences of these quantities and of a number."""
        draws = np.column_stack([self.draws, np.full(len(self.draws), value)])
        estimate = np.append(self.estimate, value)
        how = self.precision, self.converged, self.freedom
        return differences(draws, estimate, np.isfinite(estimate), *how, loose=np.append(self._loose, False))

    def rank(self, among: Bool | None = None) -> pd.Series:
        """Return the rank by the estimate among those `ranked`, 1 = the largest; missing for the others."""
        return in_pandas(PlainTable({"rank": self.rank_numbers(among)}))["rank"].set_axis(self._index).rename(None)

    def rank_numbers(self, among: Bool | None = None) -> Whole:
        """Return (M,) numbers of `rank`."""
        ranked, strength = self.ranked(among), self._told_apart()
        above = len(strength) - np.searchsorted(np.sort(strength[ranked]), strength, "right") - (~ranked).sum()
        return counts_from_one(np.where(ranked, above + 1, 0))

    def ranks(self, level: float = 0.95, simultaneous: bool = False, among: Bool | None = None) -> pd.DataFrame:
        """Give columns ``rank`` (by the estimate), ``rank_best``, ``rank_worst`` and ``tier``; missing if not `ranked`.

        The last three are missing altogether where comparing all pairs would take minutes: ``within_reach`` of the
        `differences` says so.
        """
        return PlainTable(self.rank_columns(level, simultaneous, among)).frame.set_axis(self._index)

    def rank_columns(self, level: float, simultaneous: bool, among: Bool | None = None) -> dict[str, Whole]:
        """Return the columns (M,) of `ranks`, by name."""
        return {"rank": self.rank_numbers(among), **self.differences(among).ranks(level, simultaneous)}

    def table(
        self,
        level: float = 0.95,
        kind: IntervalKind = "percentile",
        *,
        simultaneous: bool = False,
        among: Bool | None = None,
    ) -> pd.DataFrame:
        """Return a row per name, best first: ``estimate``, ``standard_error``, ``lower``, ``upper``, and the `ranks`.

        The last column is ``status``, if there is one.
        """
        from jaxeval.show.table import Table

        errors = {"estimate": self.estimate, "standard_error": self.standard_errors}
        parts = [pd.DataFrame(errors, self._index), self.interval(level, kind), self.ranks(level, simultaneous, among)]
        if self.status is not None:
            parts.append(pd.DataFrame({"status": self.status}, self._index))
        table = pd.concat(parts, axis=1).sort_values("estimate", ascending=False, kind="stable")
        title = f"Draws of {counted(len(self.names), 'quantity', 'quantities')}"
        return Table.of(self._with_kinds(table), title, ("rank", "estimate", "lower", "upper"))

    def _told_apart(self) -> Float:
        """Return (M,) estimates, equal where they differ by rounding alone."""
        if self.precision == 0:
            return self.estimate
        step = self.precision / 100
        return np.asarray(np.round(self.estimate / step) * step)

    @property
    def _index(self) -> pd.Index:
        return in_pandas(self.names)

    def _positive(self, numbers: dict[str, NDArray[np.int64]]) -> pd.DataFrame:
        """Return columns of counts from 1, missing where 0."""
        return PlainTable({name: counts_from_one(x) for name, x in numbers.items()}).frame.set_axis(self._index)

    def _check_square(self, what: str) -> None:
        comparison.check_square(
            len(self.names), comparison.MOST_SQUARE, what, "the columns of `draws` of the models that you compare"
        )

    def _square(self, values: Float) -> pd.DataFrame:
        return pd.DataFrame(values, self._index, self._index)


def _fewest(*freedom: float | None) -> float | None:
    """Return the fewest degrees of freedom; None where all are many."""
    known = [x for x in freedom if x is not None]
    return float(np.min(known)) if known else None  # NaN, of one cluster, stays


def both_converged(first: Draws, second: Draws) -> Bool | None:
    """Return (B,) resamples whose computation ended for both of two `Draws`; None for all."""
    known = [draws.converged for draws in (first, second) if draws.converged is not None]
    return np.logical_and.reduce(known) if known else None
