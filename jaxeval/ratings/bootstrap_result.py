"""The result of a bootstrap: joint draws of all ratings, and what intervals, ranks and tiers they give."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import check_choice, checked_integer
from jaxeval.lazy_names import pd
from jaxeval.options.boards import BoardInterval
from jaxeval.plain_tables import in_pandas
from jaxeval.ratings.board_sentences import draw_warnings, leader_sentence
from jaxeval.ratings.boards import MOST_INVERTED
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit, Ends, ends_table
from jaxeval.ratings.gauge import make_scale
from jaxeval.ratings.options import BootstrapSettings
from jaxeval.ratings.refits import TOLERANCE_LOGIT
from jaxeval.ratings.thin_models import ENOUGH_BATTLES, UNPLACED_ELO, Independent, nearby
from jaxeval.show.boards import rank_spread
from jaxeval.show.cells import with_kinds
from jaxeval.show.shown import Answer, Result
from jaxeval.statistics.clusters import FEW_CLUSTERS
from jaxeval.statistics.comparison import bias_corrected_bounds
from jaxeval.statistics.differences import MOST_NOT_FINITE, ClosedForm, Differences, not_finite
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import normal_quantile
from jaxeval.wording import Noun, counted

#: Models of a board that are compared in a moment, for whoever prints it.
_COMPARED_AT_ONCE = 100
#: Likelihoods of few battles exaggerate differences, and resamples of them do so twice. Where that moves the median of
#: a model's draws off its rating by more than this share of a standard error, its draws are reflected.
_MOST_SHIFT = 0.25


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap(Result):
    """B refitted resamples of a board of M models.

    ``draws`` are ratings on the Elo scale in the gauge of ``fit``. In a *degenerate* resample some models have no
    comparable rating: +inf for one that never loses a point in it, -inf for one that never takes one, NaN for one
    without battles. The other models then hold the gauge, and ``degenerate`` counts the cases. If no model is left to
    hold it, as when an anchor has no rating, the draw is NaN for all models; ``warnings`` says how often.

    Examples:
        >>> import jaxeval
        >>> board = jaxeval.bootstrap(jaxeval.simulate_battles(2_000, 4, seed=0), 200)
        >>> board.interval(0.9).round().loc["model-1"].tolist()
        [1082.0, 1114.0]
        >>> board.tiers().tolist()
        [1, 2, 2, 3]
        >>> board.rank_share(1).tolist()
        [1.0, 0.0, 0.0, 0.0]
        >>> lower, upper = board.difference_interval()
        >>> lower.loc["model-1", "model-2"] > 0
        np.True_
    """

    fit: BradleyTerryFit  # the full-data fit: the reported ratings
    draws: NDArray[np.float64]  # (B, M) Elo
    draws_logit: NDArray[np.float64] = field(repr=False)  # (B, M) strengths, each draw in a gauge of its own
    converged: NDArray[np.bool_]  # (B,); draws of a resample that did not converge are NaN
    n_steps: NDArray[np.int32]  # (B,)
    grad_norm: NDArray[np.float64]  # (B,)
    _degenerate: Int = field(repr=False)  # (M, 3) resamples in which a model is undefeated, winless, not comparable
    settings: BootstrapSettings
    n_by_slower_solvers: int = field(repr=False)  # resamples that needed the slower solvers for sparse boards
    _draw: ClassVar[str] = "resample"  # what one of the draws is called
    _overlapping: tuple[str, ...] = field(default=(), repr=False)  # columns whose slices share battles
    _about: str = field(default="", repr=False)  # what is random besides battles, in words
    _facets: tuple[str, ...] = field(default=(), repr=False)  # what to know of it

    def _shown(self) -> Answer:
        table, what = self.fit._best_first(), f"{counted(len(self.draws), self._draw)} of {self.fit._how_many()}"
        ends = self.interval().loc[table.index]
        for name in ("upper", "lower"):
            table.insert(2, name, ends[name])
        if len(table) <= _COMPARED_AT_ONCE:
            rated = self.fit.ratings.where(self.ranked() & np.isfinite(self.fit.ratings))
            table["rank"] = rated.rank(ascending=False, method="min").astype("Int64")
            spreads = {model: rank_spread(row) for model, row in self.rank_sets().to_dict("index").items()}
            table.insert(1, "rank_range", table.index.map(spreads))
            table.insert(6, "tier", self.tiers())
        with_kinds(table, ends_of="rating")
        settings = vars(self.settings) | {"level": 0.95, "n_resamples": None}
        return Answer(f"{type(self).__name__}: {what}", table, settings, self.warnings)

    def _sentences(self) -> list[str]:
        return [self.first_sentence()]

    @property
    def competitor(self) -> Noun:
        """What is rated, in a word and its plural."""
        return self.fit.competitor

    @property
    def models(self) -> pd.Index:
        """The M models, in the order of the columns of ``draws``."""
        return self.fit._board.models

    @property
    def n_clusters(self) -> int | None:
        """Clusters drawn, if any."""
        return self.fit.n_clusters

    @property
    def degenerate(self) -> pd.DataFrame:
        """(M, 3) resamples in which each model is undefeated, winless or not comparable."""
        return pd.DataFrame(self._degenerate, in_pandas(self.models), ["undefeated", "winless", "not_comparable"])

    @property
    def degenerate_share(self) -> pd.Series:
        """Share of resamples in which each model has no comparable rating."""
        return self.fit._labelled(self._degenerate_share, "degenerate_share")

    @property
    def _degenerate_share(self) -> Float:
        return self._degenerate.sum(1) / len(self.draws)

    @property
    def joint(self) -> Draws:
        """The ratings as joint draws of named quantities, which know nothing of battles."""
        return replace(self._in_gauge, warnings=tuple(self.warnings), closed_form=self.contrasts.closed_form)

    @cached_property
    def _in_gauge(self) -> Draws:
        return Draws(
            self.models, self.fit._ratings, self.draws, converged=self.converged, gauge=self.settings.gauge,
            anchored=self.fit.scale.weights >= 1, status=self.fit._standing,
            precision=10 * self.fit.scale.unit * TOLERANCE_LOGIT[self.settings.dtype], settings=self.settings,
            freedom=self.fit.freedom if self.settings.scheme == "cluster" else None,
            loose=self._loose if self.settings.ridge > 0 else None,
        )  # fmt: skip

    @property
    def _of_ends(self) -> Draws:
        """Draws for intervals: where a model is `_loose`, a draw without a rating may be any number."""
        if not np.isnan(self.draws[np.ix_(self.converged, self._loose)]).any():
            return self._in_gauge
        return replace(self._in_gauge, draws=self.draws[self.converged], converged=None, limits=(-np.inf, np.inf))

    @cached_property
    def contrasts(self) -> Draws:
        """The same draws with mean 0 among the rated models, for results that do not depend on the gauge.

        An anchor with few votes costs no draw here, and results are equal to the last digit under every gauge.
        """
        fit = self.fit
        rated = np.isfinite(fit._ratings)
        scale = make_scale("mean", 0.0, self.models, fit._n_battles, rated, fit.scale.unit)
        draws = scale.aligned_ratings(np.where(rated, self.draws_logit, np.nan), fit.theta)
        estimate = scale.unit * np.where(rated, fit.theta, np.nan)
        drawn = replace(self._in_gauge, estimate=estimate, draws=draws, gauge=scale.gauge, anchored=None)
        return replace(drawn, closed_form=self._closed_form(drawn))

    @cached_property
    def _of_votes(self) -> BradleyTerryFit:
        """The fit by which models of few battles are told apart: without the ridge, which would rate them by itself."""
        return (
            replace(self.fit, settings=replace(self.fit.settings, ridge=0.0)) if self.settings.ridge > 0 else self.fit
        )

    @cached_property
    def _loose(self) -> NDArray[np.bool_]:
        """(M,) rated models without a finite rating, but by a ridge, in more than 1 % of the resamples."""
        share = self._degenerate_share if self.settings.ridge > 0 else 0.0
        share = np.maximum(share, not_finite(self.draws_logit, self.converged))
        return np.isfinite(self.fit._ratings) & (share > MOST_NOT_FINITE)

    def _closed_form(self, draws: Draws) -> ClosedForm | None:
        """Return loose models' differences in closed form: of the penalised fit, or of one near it on wide boards.

        Only the errors of the others come from the ``draws``. Two models alone have the difference of `_by_fit`.
        """
        if len(self.models) == 2 and self.settings.interval == "auto" and self.fit.thin.any():
            return self.fit.penalised_differences
        if not self._loose.any():
            return self.fit.differences if len(self.models) == 2 and self._by_errors else None
        if self._of_votes.has_penalised:
            return self._of_votes.penalised_differences
        board, options = self.fit._board, self.settings
        wide = board.is_plain and board.graph is not None and options.scheme != "cluster"
        usual = self.fit.settings.penalty == "auto" and options.ridge == 0 and options.link == "logit"
        if not (wide and usual) or options.reweight:
            return None
        unit = self.fit.scale.unit
        known = np.where(self._loose, np.nan, draws.errors / unit)
        known_nearby = nearby(self.fit._board, self._loose, np.nan_to_num(known) ** 2) if (known > 0).any() else None
        return None if known_nearby is None else Independent(unit * known_nearby[0], unit**2 * known_nearby[1])

    @property
    def without_spread(self) -> pd.Series:
        """Whether all draws of a model are equal, though it is no anchor: the resamples show no uncertainty at all.

        This happens with one resample, and for models that only ever tied. Such a model has no interval.
        """
        return self._in_gauge.without_spread

    @property
    def standard_errors(self) -> pd.Series:
        """Standard deviation of each model's finite draws, Elo (ddof = 1); NaN if those are equal."""
        return self._in_gauge.standard_errors

    def variance_of(self, bounds: Ends, level: float, kind: BoardInterval) -> Float:
        """Return variances (M,) of ratings, Elo^2: of draws, or of the fit where it gives these ``bounds``."""
        of_fit = self._penalised | self._by_errors if kind == "auto" else np.full(len(self.models), kind == "wald")
        half = (bounds[1] - bounds[0]) / 2
        error = np.where(np.isfinite(half), half / normal_quantile(level), np.nan)
        return np.where(of_fit, error, self._in_gauge.errors) ** 2

    def _by_fit(self, rows: NDArray[np.intp], level: float) -> tuple[Float, Float] | None:
        """Return (R, M) bounds of ratings at ``rows`` less all others that draws do not give; NaN where draws decide.

        It is None where they decide everywhere.
        """
        penalised, closed_form = self._penalised, self.contrasts.closed_form or self.fit.penalised_differences
        if not penalised.any() and not self._by_errors:
            return None
        difference, error = np.full((2, len(rows), len(penalised)), np.nan)
        if self._by_errors:
            difference, error = self.fit.differences(rows, level)
        if penalised.any():
            of_thin, of_fit = penalised[rows, None] | penalised, closed_form(rows, level)
            difference, error = (np.where(of_thin, x, y) for x, y in zip(of_fit, (difference, error), strict=True))
        off = rows[:, None] != np.arange(len(penalised))
        half = np.where(off, normal_quantile(level) * error, np.nan)
        return difference - half, difference + half

    @property
    def _by_errors(self) -> bool:
        """Whether all intervals are those of the fit, as so few clusters make draws that vary too little, or much."""
        freedom, fit = self.fit.freedom, self.fit
        few = freedom is not None and not freedom >= FEW_CLUSTERS and self.settings.scheme == "cluster"
        able = fit._board.is_plain and len(fit.theta) <= MOST_INVERTED
        return few and able and self.settings.interval == "auto"

    @cached_property
    def _penalised(self) -> NDArray[np.bool_]:
        """(M,) models whose intervals are those of the penalised fit, or of `nearby` on a wide board."""
        if self.settings.interval != "auto":
            return np.zeros(len(self.models), bool)
        loose = self._loose if self.contrasts.closed_form is not None and not self.settings.ridge > 0 else False
        return np.asarray(self.fit.thin | loose)

    @property
    def n_penalised(self) -> int:
        """How many models have an interval of the penalised fit where the kind is "auto"."""
        penalised = self._penalised & (self.fit._component == 1)
        return int(penalised.sum()) if self.fit._board.active.any() else 0

    @property
    def n_reflected(self) -> int:
        """How many models have a "basic" interval where the kind is "auto"."""
        return 0 if self._by_errors or self.settings.interval != "auto" else int(self._moved.sum())

    def beside(self, level: float = 0.95) -> dict[str, list[dict[str, Any]]]:
        """Return records that a leaderboard keeps beside its table, by name; a plain board has none."""
        return {}

    def interval(self, level: float = 0.95, kind: BoardInterval | None = None) -> pd.DataFrame:
        """Return confidence intervals of the ratings, Elo: columns ``lower`` and ``upper``.

        "wald" gives those of the fit, which do not use the draws: see `BradleyTerryFit.interval`. "percentile" takes
        quantiles of the draws, "basic" reflects them about the estimate, and "bca" takes quantiles that are corrected
        for bias and for an error that changes with the rating (Efron 1987, DOI 10.1080/01621459.1987.10478410).
        "auto" takes percentiles, and Wald's penalised intervals for the models of ``fit.thin``, of fewer than 200
        battles, and for those without a finite rating in more than 1 % of the resamples. With clusters of fewer than
        30 degrees of freedom it takes the intervals of the fit for all models. Where most models have fewer than 200
        battles, percentiles of another one may lie off its rating, as the exaggerated differences of few battles move
        all ratings, in resamples twice as far: if the median of its draws is off by more than a quarter of its standard
        error, it takes the "basic" interval, made longer where it does not hold the rating. With a ridge or a tie model
        there is no penalised fit: models with fewer than 200 battles have the outer ends of the draws and of the fit,
        and those that the ridge draws to the mean (see `BradleyTerryFit.interval`) the outer ones of the votes, too.
        The default is what was asked of `bootstrap`.

        Infinite draws count as such, so that a bound is infinite when more resamples than the tail holds are
        degenerate. Draws that did not converge are left out. If a model has no finite rating in more than 1 % of the
        resamples, draws without any rating (NaN) count as the furthest at both ends, and else are left out. A model
        without a finite rating has no interval, and neither has one `without_spread`. With fewer than 2 / (1 - level)
        draws the bounds are about the extreme draws: too narrow. With clusters, intervals of draws are longer by
        Student's quantile, see `Draws`.
        """
        return ends_table(self.ends(level, kind), self.models)

    def ends(self, level: float, kind: BoardInterval | None = None) -> Ends:
        """Return (M,) lower and upper ends of `interval`."""
        kind = self.settings.interval if kind is None else kind
        check_choice("kind", kind, BoardInterval)
        if kind == "wald":
            return self.fit.ends(level, "wald")
        if kind == "bca":
            return self._accelerated(level)
        if kind == "auto" and self._by_errors:
            ends = self.fit.ends(level, "wald")
        else:
            ends = self._of_ends.ends(level, "basic" if kind == "basic" else "percentile")
        if kind != "auto":
            return ends
        if self._moved.any() and not self._by_errors:
            (lower, upper), ratings = self._in_gauge.ends(level, "basic"), self.fit._ratings
            ends = _chosen(self._moved, (np.minimum(lower, ratings), np.maximum(upper, ratings)), ends)
        if (few := self._thin_without_penalty).any():  # of 8 battles with a ridge of .1 draws missed .12, these .04
            of_fit = self.fit.ends(level, "auto")
            ends = _chosen(few, (np.fmin(ends[0], of_fit[0]), np.fmax(ends[1], of_fit[1])), ends)
        closed_form = self.contrasts.closed_form
        if isinstance(closed_form, Independent):
            return _chosen(self._loose, self._independent(closed_form, level), ends)
        return self.fit.with_penalised(ends, level, self._penalised)

    @property
    def _thin_without_penalty(self) -> NDArray[np.bool_]:
        """(M,) models of few battles with a ridge or a tie model, in whose place no penalised fit stands."""
        fit = self.fit
        chosen = self.settings.ridge > 0 or getattr(fit.settings, "ties", "half") != "half"
        able = chosen and not fit.has_penalised and fit._board.graph is None and len(fit.theta) <= MOST_INVERTED
        return able & np.isfinite(fit._ratings) & ((fit._n_battles < ENOUGH_BATTLES) | fit.held)

    @cached_property
    def _moved(self) -> NDArray[np.bool_]:
        """(M,) models of 200 battles or more, where most have fewer and move these in draws further than in ratings."""
        ratings, few = self.fit._ratings, self.fit._n_battles < ENOUGH_BATTLES
        rated = np.isfinite(ratings)
        moved = np.zeros(len(rated), bool)
        many = np.flatnonzero(rated & ~few)
        if 2 * (rated & few).sum() > rated.sum() and len(many):
            known = [draws[~np.isnan(draws)] for draws in self.draws[:, many].T]
            with np.errstate(invalid="ignore"):  # half of the draws may be infinite either way
                off = np.array([np.median(draws) if len(draws) else np.nan for draws in known]) - ratings[many]
            moved[many] = np.abs(off) > _MOST_SHIFT * self._in_gauge.errors[many]
        return moved

    def _accelerated(self, level: float) -> Ends:
        """Return intervals of kind "bca", where one sample is drawn and the fit says what each battle of it adds."""
        if type(self.fit) is not BradleyTerryFit:
            raise ValueError(
                'interval="bca" is for boards of votes without covariates, tie models and other data, got a '
                f"{type(self.fit).__name__}"
            )
        joint = self._in_gauge
        with np.errstate(invalid="ignore"):  # both infinite
            is_equal = np.abs(self.draws - joint.estimate) <= joint.precision  # but for rounding
        draws = np.where(is_equal, joint.estimate, self.draws)
        bounds = bias_corrected_bounds(draws, level, joint.estimate, self.fit.acceleration)
        known = np.isfinite(joint.estimate) & ~joint._equal_draws
        nothing = np.full((2, len(known)), np.nan)
        return _chosen(known, joint._widened(joint.estimate, bounds, level, None), nothing)

    def _independent(self, errors: Independent, level: float) -> Ends:
        """Return the intervals of ratings that are known `nearby`, in the gauge of the fit."""
        rated = np.isfinite(self.fit._ratings) & ~self._loose
        shift = float(np.mean(self.fit._ratings[rated] - errors.ratings[rated]))
        half = normal_quantile(level) * np.sqrt(errors.variance)
        return errors.ratings + shift - half, errors.ratings + shift + half

    @property
    def beat_share(self) -> pd.DataFrame:
        """(M, M) share of resamples in which the row's model is rated above the column's, half for equal draws."""
        return self.contrasts.beat_share

    def difference_interval(self, level: float = 0.95) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return (M, M) lower and upper bounds of the rating of row minus column, Elo, whatever the gauge.

        They are percentiles of the draws. With the interval "auto" those of models with fewer than 200 battles come
        from the penalised fit, see `BradleyTerryFit.interval`.
        """
        bounds = self.contrasts.difference_interval(level)
        by_fit = self._by_fit(np.arange(len(self.models)), level)
        if by_fit is None:
            return bounds
        lower, upper = (bound.mask(~np.isnan(ends), ends) for bound, ends in zip(bounds, by_fit, strict=True))
        return lower, upper

    def too_few(self, min_battles: int | None = None) -> pd.Series:
        """Return whether each model has too few battles for a rank: fewer than ``min_battles``.

        By default the data decide, by the penalised fit. A rated model has too few if the standard error of its rating
        is above 100 Elo and no better known model is further away than 1.96 standard errors of the difference. One
        without a finite rating in more than 1 % of the resamples must be that far from every other rated model: of 300
        battles, 299 won and 1 lost are not few. Without a penalised fit, any such model has too few. If one model alone
        is left, and another rated one may be better, all have too few.

        Raises:
            TypeError: ``min_battles`` is no integer.
            ValueError: it is negative.
        """
        return self.fit._labelled(self._too_few(min_battles), "too_few")

    def _too_few(self, min_battles: int | None) -> Bool:
        if min_battles is None:
            return self._by_data
        return self.fit._n_battles < checked_integer("min_battles", min_battles)

    @cached_property
    def _by_data(self) -> Bool:
        """(M,) `too_few`, where the data decide."""
        loose, vague = self._loose, self.fit.vague
        if self.settings.ridge > 0:  # asked for to rank them all
            return np.zeros(len(loose), bool)
        closed_form = self.contrasts.closed_form if loose.any() else self.fit.penalised_differences
        too_few = np.array(loose | vague)
        if not too_few.any() or closed_form is None:
            return self._without_rank_of_one(too_few)
        if isinstance(closed_form, Independent):  # a wide board has no table of all pairs
            return np.asarray(loose & (closed_form.variance > UNPLACED_ELO**2))
        rows, rated = np.flatnonzero(too_few), np.isfinite(self.fit._ratings)
        difference, error = closed_form(rows, 0.95)
        near = ~(np.abs(difference) > normal_quantile(0.95) * error)
        near[np.arange(len(rows)), rows] = False
        of_all, of_known = (near & rated).any(1), near[:, rated & ~vague].all(1)
        unsure = self.fit.penalised_errors[rows] > UNPLACED_ELO
        too_few[rows] = np.where(loose[rows], unsure & of_all, of_known)
        return self._without_rank_of_one(too_few)

    def _without_rank_of_one(self, too_few: NDArray[np.bool_]) -> NDArray[np.bool_]:
        rated = np.isfinite(self.fit._ratings)
        ranked, rest = np.flatnonzero(rated & ~too_few), np.flatnonzero(rated & too_few)
        alone = len(ranked) == 1 and len(self.maybe_above(ranked[0], rest, 0.95)) > 0
        return too_few | rated if alone else too_few

    def ranked(self, min_battles: int | None = None) -> pd.Series:
        """Return whether each model takes a rank: it has a finite rating, and not `too_few` battles.

        Raises:
            TypeError: ``min_battles`` is no integer.
            ValueError: it is negative.
        """
        return self.fit._labelled(self._ranked(min_battles), "ranked")

    def _ranked(self, min_battles: int | None) -> Bool:
        return ~self._too_few(min_battles) & np.isfinite(self.fit._ratings)

    def not_below(self, first: int, others: NDArray[np.intp], level: float) -> NDArray[np.intp]:
        """Return which of ``others`` have an interval of their difference to model ``first`` that holds 0."""
        by_fit = self._by_fit(np.array([first]), level)
        lower = np.full(len(others), np.nan) if by_fit is None else by_fit[0][0, others]
        if self.settings.ridge > 0 and self.contrasts.closed_form is not None:
            difference, error = self.contrasts.closed_form(np.array([first]), level)
            of_votes = (difference - normal_quantile(level) * error)[0, others]
            lower = np.where(np.isnan(lower) & (self._loose[first] | self._loose[others]), of_votes, lower)
        by_draws = np.isin(others, self.contrasts.not_below(first, others[np.isnan(lower)], level))
        return others[np.where(np.isnan(lower), by_draws, ~(lower > 0))]

    def maybe_above(self, first: int, rest: NDArray[np.intp], level: float) -> NDArray[np.intp]:
        """Return which models of ``rest``, without a rank, the penalised fit does not show to be below ``first``."""
        if not (self.fit.thin.any() or self._loose.any()) or not self._of_votes.has_penalised:
            return rest
        closed_form = self.contrasts.closed_form or self._of_votes.penalised_differences
        difference, error = closed_form(np.array([first]), level)
        return rest[~(difference[0, rest] > normal_quantile(level) * error[0, rest])]

    def first_sentence(
        self, level: float = 0.95, *, kind: BoardInterval | None = None, min_battles: int | None = None
    ) -> str:
        """Return who is first, in a sentence, and from whom the data do not tell it apart.

        It names the models `ranked` whose difference from the first one has an interval that holds 0: that of
        `difference_interval`, of each pair by itself. A first model that leads must be ahead of every other one, so
        that no allowance for the number of pairs is needed (Berger 1982, DOI 10.1080/00401706.1982.10487790).

        Examples:
            >>> import jaxeval
            >>> print(jaxeval.bootstrap(jaxeval.simulate_battles(2_000, 4, seed=0), 200).first_sentence())
            model-1 leads with 1097.5 (+18.6/-17.7), ahead of all others at the 95% level
        """
        sentence = leader_sentence(self, level, kind, min_battles)
        return f"{self._about}: {sentence}" if self._about else sentence

    def rank_share(self, k: int, *, min_battles: int | None = None) -> pd.Series:
        """Return the share of resamples in which each model ranks k-th or better among those `ranked`; else missing."""
        return self.contrasts.rank_share(k, self._ranked(min_battles))

    def differences(self, min_battles: int | None = None) -> Differences:
        """Return differences of all pairs of the models `ranked`, Elo, from which `tiers` and `rank_sets` come.

        Nothing is compared yet; its ``n_comparisons`` says how much work that is.
        """
        return self.contrasts.differences(self._ranked(min_battles))

    def tiers(self, level: float = 0.95, *, min_battles: int | None = None) -> pd.Series:
        """Return tiers that the data can separate at the simultaneous ``level`` (max-t over all pairs), 1 = top.

        They do not depend on the gauge, and are missing for models not `ranked`, and for those without a finite
        rating in more than 1 % of the resamples, unless there are but two, which `difference_interval` tells apart.

        Raises:
            ValueError: too many differences to look at, see `differences`.
        """
        return self.contrasts.tiers(level, self._ranked(min_battles))

    def rank_sets(
        self, level: float = 0.95, *, simultaneous: bool = False, min_battles: int | None = None
    ) -> pd.DataFrame:
        """Return the ranks that the data leave open to each model: columns ``rank_best`` and ``rank_worst``.

        The differences of a model to all others are compared at once (max-t over the draws, two-sided), by the
        step-down method of Mogstad, Romano, Shaikh and Wilhelm (2023, DOI 10.1093/restud/rdad006). Its ``rank_best`` is
        1 + the number of better models that it is told apart from, and its ``rank_worst`` is M less the number of
        worse ones, of M models `ranked`. The sets do not depend on the gauge.

        The draws of a model without a finite rating in more than 1 % of the resamples say too little. Its differences
        come from the penalised fit, and each takes an equal part of 1 - level (Bonferroni). On boards of 1,000 models
        or more, only these models are penalised, and the others stay where they are. A ridge in place of the penalty
        would tell apart by itself what few votes do not. Where the penalty does not go (covariates, tie models, wide
        boards with clusters), such a model is told apart from no other: its set is 1 to M, and it adds one place above
        and one below to each other set.

        Args:
            level: the probability that a set holds the true rank of its model. Models of equal strength share all
                ranks of their block, and the set then holds all of these.
            simultaneous: all sets hold the true ranks at once with probability ``level``: all pairs of models have one
                critical value, which is that of `tiers`. By default each set does by itself.
            min_battles: models with fewer battles take no rank and are not compared; by default those with `too_few`.

        Returns:
            One row per model; missing for models that are not `ranked`.

        Raises:
            ValueError: too many differences to look at, see `differences`; a level that is not between 0 and 1.
        """
        return self.contrasts.rank_sets(level, simultaneous, self._ranked(min_battles))

    @property
    def warnings(self) -> list[str]:
        """What the data or the computation leave open, in words."""
        return draw_warnings(self)


def _chosen(which: Bool, these: Ends | NDArray[np.float64], others: Ends | NDArray[np.float64]) -> Ends:
    """Return the ends ``these`` of the models ``which`` (M,), and ``others`` of the others."""
    lower, upper = (np.where(which, one, other) for one, other in zip(these, others, strict=True))
    return lower, upper
