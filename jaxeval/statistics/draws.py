"""Joint draws of named quantities: what every estimator that resamples gives, and what tables and figures take.

Nothing here knows battles, judgments or models. An estimator fills in a `Draws`, and gets intervals, standard errors,
comparisons, tiers, sets of ranks and a table of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.checks import checked_integer
from jaxeval.statistics import comparison
from jaxeval.statistics.differences import Differences, differences
from jaxeval.statistics.quantiles import interval_bounds

Float = NDArray[np.float64]
Bool = NDArray[np.bool_]

IntervalKind = Literal["percentile", "basic"]


@dataclass(frozen=True, eq=False)
class Draws:
    """B joint draws of M named quantities, beside their estimates.

    A draw may be infinite: it then counts as the largest or the smallest. A draw may be NaN: it is then left out.

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
    """

    names: pd.Index  # (M,)
    estimate: Float  # (M,) of the full data; infinite or NaN where the data set none
    draws: Float = field(repr=False)  # (B, M) in the gauge of the estimate
    converged: Bool | None = field(default=None, repr=False)  # (B,) draws whose computation ended; None for all
    gauge: str = ""  # what fixes the common level, in words; empty where every quantity has a zero of its own
    anchored: Bool | None = field(default=None, repr=False)  # (M,) quantities that the gauge holds at a number
    precision: float = 0.0  # draws that are closer than that are equal: they differ by rounding
    warnings: tuple[str, ...] = ()
    settings: Any = field(default=None, repr=False)  # what made them: a mapping, or a dataclass

    @cached_property
    def without_spread(self) -> pd.Series:
        """Whether all draws of a quantity are equal, though no gauge holds it: there is then no interval."""
        return pd.Series(self._finite_draws_equal & ~np.isinf(self.draws).any(0), self.names, name="without_spread")

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
        finite = np.where(np.isfinite(self.draws), self.draws, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            n = np.isfinite(finite).sum(0)
            centred = finite - np.nansum(finite, 0) / n
            variance = np.nansum(centred**2, 0) / (n - 1)
        known = (n > 1) & ~self._finite_draws_equal
        return pd.Series(np.where(known, np.sqrt(variance), np.nan), self.names)

    def interval(self, level: float = 0.95, kind: IntervalKind = "percentile") -> pd.DataFrame:
        """Confidence intervals: columns ``lower`` and ``upper``; NaN without a finite estimate, or without spread.

        Args:
            level: of each interval by itself.
            kind: "percentile" takes quantiles of the draws, "basic" reflects them about the estimate.

        Raises:
            ValueError: a level or a kind that is none.
        """
        lower, upper = interval_bounds(self.draws, level)
        if kind == "basic":
            lower, upper = 2 * self.estimate - upper, 2 * self.estimate - lower
        elif kind != "percentile":
            raise ValueError(f"kind must be 'percentile' or 'basic', got {kind!r}")
        known = np.isfinite(self.estimate) & ~self.without_spread.to_numpy()
        bounds = {"lower": np.where(known, lower, np.nan), "upper": np.where(known, upper, np.nan)}
        return pd.DataFrame(bounds, self.names)

    def beat_share(self) -> pd.DataFrame:
        """(M, M) share of draws in which the row's quantity is above the column's, half for equal draws."""
        self._check_square("the table of shares")
        return self._square(comparison.beat_share(self.draws))

    def difference_interval(self, level: float = 0.95) -> tuple[pd.DataFrame, pd.DataFrame]:
        """(M, M) lower and upper percentile bounds of row minus column."""
        self._check_square("the table of difference intervals")
        lower, upper = comparison.difference_bounds(self.draws, level)
        return self._square(lower), self._square(upper)

    def ranked(self, among: Bool | None = None) -> Bool:
        """(M,) quantities that take a rank: those with a finite estimate, ``among`` (M,) if given."""
        finite = np.isfinite(self.estimate)
        return finite if among is None else finite & among

    def rank_share(self, k: int, among: Bool | None = None) -> pd.Series:
        """Share of draws in which each quantity ranks k-th or better among those `ranked`; NaN for the others."""
        k = checked_integer("k", k, 1)
        ranked = self.ranked(among)
        share = np.full(len(ranked), np.nan)
        share[ranked] = comparison.rank_at_most_share(self.draws[:, ranked], k)
        return pd.Series(share, self.names)

    def differences(self, among: Bool | None = None) -> Differences:
        """Differences of all pairs of the quantities `ranked`, from which `tiers` and `rank_sets` come.

        Nothing is compared yet; its ``n_comparisons`` says how much work that is. The last ones are kept, as tiers and
        sets of ranks share most of the work.
        """
        ranked = self.ranked(among)
        kept = self._compared.get(ranked.tobytes())
        if kept is None:
            kept = differences(self.draws, self.estimate, ranked, self.precision)
            self._compared.clear()
            self._compared[ranked.tobytes()] = kept
        return kept

    @cached_property
    def _compared(self) -> dict[bytes, Differences]:
        return {}

    def tiers(self, level: float = 0.95, among: Bool | None = None) -> pd.Series:
        """Tiers that the draws can separate at the simultaneous ``level`` (max-t over all pairs), 1 = top.

        Missing for quantities that are not `ranked`, and for those that are not finite in more than 1 % of the draws.

        Raises:
            ValueError: too many differences to look at, see `differences`.
        """
        return self._positive({"tier": self.differences(among).tiers(level)})["tier"].rename(None)

    def rank_sets(self, level: float = 0.95, simultaneous: bool = False, among: Bool | None = None) -> pd.DataFrame:
        """The ranks that the draws leave open: columns ``rank_best`` and ``rank_worst``; see `Differences.rank_sets`.

        Raises:
            ValueError: too many differences to look at, see `differences`; a level that is none.
        """
        best, worst = self.differences(among).rank_sets(level, simultaneous)
        return self._positive({"rank_best": best, "rank_worst": worst})

    def ranks(self, level: float = 0.95, simultaneous: bool = False, among: Bool | None = None) -> pd.DataFrame:
        """Columns ``rank`` (by the estimate), ``rank_best``, ``rank_worst`` and ``tier``; missing if not `ranked`.

        The last three are missing altogether where comparing all pairs would take minutes: ``within_reach`` of the
        `differences` says so.
        """
        compared = self.differences(among)
        best, worst, tier = np.zeros((3, len(self.names)), np.int64)
        if compared.within_reach:
            best, worst = compared.rank_sets(level, simultaneous)
            tier = compared.tiers(level)
        ranks = self._positive({"rank_best": best, "rank_worst": worst, "tier": tier})
        strength = pd.Series(np.where(self.ranked(among), self._told_apart(), np.nan), self.names)
        ranks.insert(0, "rank", strength.rank(ascending=False, method="min").astype("Int64"))
        return ranks

    def table(
        self,
        level: float = 0.95,
        kind: IntervalKind = "percentile",
        *,
        simultaneous: bool = False,
        among: Bool | None = None,
    ) -> pd.DataFrame:
        """One row a name, best first: ``estimate``, ``standard_error``, ``lower``, ``upper``, and the `ranks`."""
        errors = {"estimate": self.estimate, "standard_error": self.standard_errors}
        parts = [pd.DataFrame(errors, self.names), self.interval(level, kind), self.ranks(level, simultaneous, among)]
        return pd.concat(parts, axis=1).sort_values("estimate", ascending=False, kind="stable")

    def _told_apart(self) -> Float:
        """(M,) estimates, equal where they differ by rounding alone."""
        if self.precision == 0:
            return self.estimate
        step = self.precision / 100
        return np.asarray(np.round(self.estimate / step) * step)

    def _positive(self, numbers: dict[str, NDArray[np.int64]]) -> pd.DataFrame:
        """Columns of counts from 1, missing where 0."""
        counts = pd.DataFrame(numbers, self.names, dtype="Int64")
        return counts.where(counts > 0)

    def _check_square(self, what: str) -> None:
        comparison.check_square(
            len(self.names), comparison.MOST_SQUARE, what, "the columns of `draws` of the models that you compare"
        )

    def _square(self, values: Float) -> pd.DataFrame:
        return pd.DataFrame(values, self.names, self.names)
