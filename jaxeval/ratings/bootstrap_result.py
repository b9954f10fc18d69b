"""The result of a bootstrap: joint draws of all ratings, and what intervals, ranks and tiers they give."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.checks import checked_integer
from jaxeval.kernels import batch
from jaxeval.kernels.connectivity import Standing
from jaxeval.kernels.solve import Status
from jaxeval.ratings import comparison
from jaxeval.ratings.boards import Board
from jaxeval.ratings.bradley_terry import BradleyTerryFit, named
from jaxeval.ratings.differences import Differences, differences
from jaxeval.ratings.gauge import ELO_PER_LOGIT, make_scale
from jaxeval.ratings.refits import TOLERANCE_LOGIT, Refitted
from jaxeval.ratings.square_limits import MOST_SQUARE, check_square
from jaxeval.statistics.quantiles import interval_bounds
from jaxeval.wording import counted


@dataclass(frozen=True)
class BootstrapSettings:
    """What made a bootstrap."""

    scheme: str
    cluster: str | None
    by: list[str]  # columns whose groups are the slices
    n_resamples: int
    seed: int
    ridge: float
    gauge: str
    base: float
    reweighted: bool
    dtype: str
    device: str
    n_devices: int
    versions: str
    method: str  # "dense" or "sparse", as in `FitSettings`


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """B refitted resamples of a board of M models.

    ``draws`` are ratings on the Elo scale in the gauge of ``fit``. In a *degenerate* resample some models have no
    comparable rating: +inf for one that never loses a point in it, -inf for one that never takes one, NaN for one
    without battles. The gauge is then held by the other models, and ``degenerate`` counts the cases. Where none of the
    models that hold it is left (an anchor), the draw is NaN for all; ``warnings`` says in how many.
    """

    fit: BradleyTerryFit  # the full-data fit: the reported ratings
    draws: NDArray[np.float64]  # (B, M) Elo
    draws_logit: NDArray[np.float64] = field(repr=False)  # (B, M) log-strengths, each draw in a gauge of its own
    converged: NDArray[np.bool_]  # (B,); draws of a resample that did not converge are NaN
    n_steps: NDArray[np.int32]  # (B,)
    grad_norm: NDArray[np.float64]  # (B,)
    degenerate: pd.DataFrame  # (M, 3) resamples in which a model is undefeated, winless, not comparable
    settings: BootstrapSettings
    n_refitted_sparse: int = field(repr=False)  # resamples that needed the slower solvers for sparse boards

    @property
    def models(self) -> pd.Index:
        """The M models, in the order of the columns of ``draws``."""
        return self.fit.ratings.index

    @property
    def n_clusters(self) -> int | None:
        """Clusters drawn, if any."""
        return self.fit.n_clusters

    @property
    def degenerate_share(self) -> pd.Series:
        """Share of resamples in which each model has no comparable rating."""
        return (self.degenerate.sum(axis=1) / len(self.draws)).rename("degenerate_share")

    @cached_property
    def without_spread(self) -> pd.Series:
        """Whether all draws of a model are equal, though it is no anchor: the resamples show no uncertainty at all.

        So it is with one resample, or for models that only ever tied. There is then no interval.
        """
        return pd.Series(self._finite_draws_equal & ~np.isinf(self.draws).any(0), self.models, name="without_spread")

    @cached_property
    def _finite_draws_equal(self) -> NDArray[np.bool_]:
        """(M,) whether the finite draws are equal up to the precision of the refits; False for an anchor."""
        finite = np.isfinite(self.draws)
        low, high = np.where(finite, self.draws, np.inf).min(0), np.where(finite, self.draws, -np.inf).max(0)
        return np.asarray(finite.any(0) & (high - low <= self._precision) & (self.fit.scale.weights < 1))

    @property
    def _precision(self) -> float:
        """Elo; draws closer than that are equal."""
        return 10 * ELO_PER_LOGIT * TOLERANCE_LOGIT[self.settings.dtype]

    @cached_property
    def standard_errors(self) -> pd.Series:
        """Standard deviation of each model's finite draws, Elo (ddof = 1); NaN if those are equal."""
        finite = np.where(np.isfinite(self.draws), self.draws, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            n = np.isfinite(finite).sum(0)
            centred = finite - np.nansum(finite, 0) / n
            variance = np.nansum(centred**2, 0) / (n - 1)
        known = (n > 1) & ~self._finite_draws_equal
        return pd.Series(np.where(known, np.sqrt(variance), np.nan), self.models)

    def interval(self, level: float = 0.95, kind: Literal["percentile", "basic"] = "percentile") -> pd.DataFrame:
        """Confidence intervals of the ratings, Elo: columns ``lower`` and ``upper``.

        "percentile" takes quantiles of the draws, "basic" reflects them about the estimate. Infinite draws count as
        such, so a bound is infinite when more resamples than the tail holds are degenerate; NaN draws are left out
        (``degenerate`` counts them). A model without a finite rating has no interval, nor one `without_spread`. With
        fewer than 2 / (1 - level) draws the bounds are about the extreme draws: too narrow.
        """
        lower, upper = interval_bounds(self.draws, level)
        estimate = self.fit.ratings.to_numpy()
        if kind == "basic":
            lower, upper = 2 * estimate - upper, 2 * estimate - lower
        elif kind != "percentile":
            raise ValueError(f"kind must be 'percentile' or 'basic', got {kind!r}")
        known = np.isfinite(estimate) & ~self.without_spread.to_numpy()
        return pd.DataFrame(
            {"lower": np.where(known, lower, np.nan), "upper": np.where(known, upper, np.nan)},
            self.models,
        )

    def beat_share(self) -> pd.DataFrame:
        """(M, M) share of resamples in which the row's model is rated above the column's, half for equal draws."""
        self._check_square("the table of shares")
        return self._square(comparison.beat_share(self._rated_draws))

    def difference_interval(self, level: float = 0.95) -> tuple[pd.DataFrame, pd.DataFrame]:
        """(M, M) lower and upper percentile bounds of the rating of row minus column, Elo, whatever the gauge."""
        self._check_square("the table of difference intervals")
        lower, upper = comparison.difference_bounds(self._rated_draws, level)
        return self._square(lower), self._square(upper)

    def ranked(self, min_battles: int = 0) -> pd.Series:
        """Whether each model takes a rank: it has a finite rating and at least ``min_battles`` battles.

        Raises:
            TypeError: ``min_battles`` is no integer.
            ValueError: it is negative.
        """
        enough = self.fit.n_battles >= checked_integer("min_battles", min_battles)
        return (enough & np.isfinite(self.fit.ratings)).rename("ranked")

    def rank_share(self, k: int, *, min_battles: int = 0) -> pd.Series:
        """Share of resamples in which each model ranks k-th or better among those `ranked`; missing for the others."""
        k = checked_integer("k", k, 1)
        ranked = self.ranked(min_battles).to_numpy()
        share = np.full(len(ranked), np.nan)
        share[ranked] = comparison.rank_at_most_share(self._rated_draws[:, ranked], k)
        return pd.Series(share, self.models)

    def differences(self, min_battles: int = 0) -> Differences:
        """Differences of all pairs of the models `ranked`, Elo, from which `tiers` and `rank_sets` come.

        Nothing is compared yet; its ``n_comparisons`` says how much work that is.
        """
        # By the same numbers under every gauge, so that results are equal to the last digit.
        estimate = ELO_PER_LOGIT * np.where(np.isfinite(self.fit.ratings), self.fit.theta, np.nan)
        return differences(self._rated_draws, estimate, self.ranked(min_battles).to_numpy(), self._precision)

    def tiers(self, level: float = 0.95, *, min_battles: int = 0) -> pd.Series:
        """Tiers that the data can separate at the simultaneous ``level`` (max-t over all pairs), 1 = top.

        They do not depend on the gauge. Missing for models that are not `ranked`, and for models without a finite
        rating in more than 1 % of the resamples.

        Raises:
            ValueError: too many differences to look at, see `differences`.
        """
        tier = pd.Series(self.differences(min_battles).tiers(level), self.models, dtype="Int64")
        return tier.where(tier > 0)

    def rank_sets(self, level: float = 0.95, *, simultaneous: bool = False, min_battles: int = 0) -> pd.DataFrame:
        """The ranks that the data leave open to each model: columns ``rank_best`` and ``rank_worst``.

        The differences of a model to all others are compared at once (max-t over the draws, two-sided), by the
        step-down method of Mogstad, Romano, Shaikh and Wilhelm (2023, DOI 10.1093/restud/rdad006). Its ``rank_best`` is
        1 + the number of better models that it is told apart from, and its ``rank_worst`` is M less the number of
        worse ones, of M models `ranked`. The sets do not depend on the gauge.

        A model without a finite rating in more than 1 % of the resamples, whose interval may be infinite, is told
        apart from nobody. Its own set is 1 to M. It adds one place above and one below to the set of each other model,
        and changes no critical value.

        Args:
            level: the probability that a set holds the true rank of its model. Models of equal strength share all
                ranks of their block, and the set then holds all of these.
            simultaneous: all sets hold the true ranks at once with probability ``level``: all pairs of models have one
                critical value, which is that of `tiers`. By default each set does by itself.
            min_battles: models with fewer battles take no rank and are not compared.

        Returns:
            One row a model; missing for models that are not `ranked`.

        Raises:
            ValueError: too many differences to look at, see `differences`; a level that is none.
        """
        best, worst = self.differences(min_battles).rank_sets(level, simultaneous)
        sets = pd.DataFrame({"rank_best": best, "rank_worst": worst}, self.models, dtype="Int64")
        return sets.where(sets > 0)

    @cached_property
    def _rated_draws(self) -> NDArray[np.float64]:
        """(B, M) Elo, for what does not depend on the gauge: an anchor with few votes must not cost others draws."""
        board = self.fit
        rated = np.isfinite(board.ratings.to_numpy())
        scale = make_scale("mean", 0.0, self.models, board.n_battles.to_numpy(), rated)
        return scale.aligned_ratings(np.where(rated, self.draws_logit, np.nan), board.theta)

    def _check_square(self, what: str) -> None:
        check_square(len(self.models), MOST_SQUARE, what, "the columns of `draws` of the models that you compare")

    def _square(self, values: NDArray[np.float64]) -> pd.DataFrame:
        return pd.DataFrame(values, self.models, self.models)

    @property
    def warnings(self) -> list[str]:
        """What the data or the computation leave open, in words."""
        messages = list(self.fit.warnings)
        share = self.degenerate_share[np.isfinite(self.fit.ratings)]
        share = share[share > 0].sort_values(ascending=False)
        if len(share):
            worst = ", ".join(f"{m} ({s:.1%})" for m, s in share.head(5).items())
            messages.append(
                f"{counted(len(share), 'model has', 'models have')} no finite rating in some resamples (share of "
                f"them), which makes the interval unreliable: {worst}"
            )
        held = self.fit.scale.weights > 0
        lost = float((self.converged & ~np.isfinite(self.draws_logit[:, held]).any(1)).mean())
        if held.any() and lost > 0:
            anchored = self.fit.scale.anchored
            lacking = f"{named(self.models[held])} has no" if anchored else "no model has a"
            advice = "Choose another anchor, or a mean" if anchored else "More battles, or a ridge > 0, would help"
            messages.append(
                f"in {lost:.1%} of the resamples {lacking} finite rating to hold the gauge, and so nobody has a "
                f"rating: all intervals rest on the other resamples. {advice}"
            )
        equal = self.models[self.without_spread & np.isfinite(self.fit.ratings)]
        if len(equal):
            messages.append(
                f"all resamples give the same rating to {named(equal)}: the data do not show how uncertain it is, and "
                "there is no interval"
            )
        failed = int((~self.converged).sum())
        if failed:
            messages.append(f"{failed} of {len(self.draws)} resamples did not converge and are NaN")
        return messages


def bootstrap_result(
    fit: BradleyTerryFit,
    board: Board,
    lanes: Refitted,
    ridge: float,
    settings: BootstrapSettings,
) -> Bootstrap:
    """The draws of one slice."""
    m = len(board.theta)
    theta, standing = lanes.theta[:, :m], lanes.standing[:, :m]
    if ridge == 0:
        unrated = np.array([0.0, np.inf, -np.inf, np.nan])
        theta = np.where(standing == Standing.IDENTIFIED, theta, unrated[standing])
        theta = np.where(board.active, theta, np.nan)
    converged = lanes.status == Status.CONVERGED
    theta = np.where(converged[:, None], theta, np.nan)
    names = {Standing.ABOVE: "undefeated", Standing.BELOW: "winless", Standing.INCOMPARABLE: "not_comparable"}
    degenerate = pd.DataFrame({name: (standing == code).sum(0) for code, name in names.items()}, board.models)
    return Bootstrap(
        fit=fit,
        draws=fit.scale.aligned_ratings(theta, board.theta),
        draws_logit=theta,
        converged=converged,
        n_steps=lanes.n_steps,
        grad_norm=lanes.grad_norm,
        degenerate=degenerate,
        settings=settings,
        n_refitted_sparse=int((~np.isin(lanes.solver, (batch.Solver.CHORD, batch.Solver.SPARSE))).sum()),
    )
