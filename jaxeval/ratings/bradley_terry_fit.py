"""A fitted board: ratings, their standard errors, and what the data cannot say."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.report import DataReport
from jaxeval.data.saved_results import save_ratings
from jaxeval.execution.precision import device_name, versions
from jaxeval.kernels.solve import Status
from jaxeval.lazy_names import pd, scipy
from jaxeval.options.boards import BoardInterval
from jaxeval.plain_tables import in_pandas, objects
from jaxeval.ratings.boards import Board, battles_per_model, rated_theta
from jaxeval.ratings.connectivity import STANDING_TEXT, STATUS_TEXT, board_warnings
from jaxeval.ratings.gauge import ELO_PER_LOGIT, ELO_PER_UNIT, RatingScale, make_scale
from jaxeval.ratings.options import FitOptions, FitSettings
from jaxeval.ratings.thin_models import ENOUGH_BATTLES, FitErrors, covariance_of_penalised, dispersion, penalised_board
from jaxeval.ratings.vote_groups import VoteGroups, score_squares
from jaxeval.resampling.units import small_strata_text
from jaxeval.show.boards import with_interval
from jaxeval.show.shown import Answer, Result
from jaxeval.statistics.clusters import degrees_of_freedom, effective_clusters, few_clusters_text
from jaxeval.statistics.comparison import MOST_SQUARE, check_square
from jaxeval.wording import Noun, counted, named, visible_line

Fit = TypeVar("Fit", bound="BradleyTerryFit")
#: Lower and upper ends (M,) of intervals.
Ends: TypeAlias = tuple[Float, Float]

#: Log-strengths so far from the mean are all but infinite: odds of one in 20,000.
_FAR_LOGIT = 10.0
#: Root of the battles of a model for each unit of the ridge. With fewer the ridge moves a rating 170 Elo from the mean
#: by more than a quarter of its standard error: of 8 battles with a ridge of 1 intervals missed .28, of votes .03.
_PER_RIDGE = 16


@dataclass(frozen=True, eq=False, repr=False)
class BradleyTerryFit(Result):
    """A fitted board. Series are indexed by model; ratings and errors in Elo.

    A model outside the main group has no finite rating at ridge 0: it is +inf if it never lost a point to the group
    (``standing`` "undefeated"), -inf if it never took one ("winless"), NaN if nothing compares it.

    Examples:
        >>> import jaxeval
        >>> fit = jaxeval.fit_bradley_terry(jaxeval.simulate_battles(2_000, 4, seed=0))
        >>> fit.status, fit.strengths.round(2).tolist()
        ('converged', [0.56, -0.05, -0.18, -0.33])
    """

    status: str
    converged: bool
    n_steps: int
    grad_norm: float
    settings: FitSettings
    report: DataReport
    _board: Board = field(repr=False)
    scale: RatingScale = field(repr=False)  # how log-strengths become ratings
    _count: Float = field(repr=False)  # (M,) judgments
    _drawn: VoteGroups = field(repr=False)
    _ties_as_half: BradleyTerryFit | None = field(default=None, repr=False)
    _unit: ClassVar[str] = "battle"  # what is counted of a model

    @cached_property
    def ratings(self) -> pd.Series:
        """Ratings, Elo."""
        return self._labelled(self._ratings, "rating")

    @cached_property
    def _ratings(self) -> Float:
        return self.scale.ratings(rated_theta(self._board))

    @cached_property
    def strengths(self) -> pd.Series:
        """Theta in the mean-zero gauge, in the unit of the link: logits or probits."""
        return self._labelled(rated_theta(self._board), "strength")

    @cached_property
    def component(self) -> pd.Series:
        """Connected component of each model, 1 = that of the main group; the others by battles."""
        return self._labelled(self._component, "component")

    @property
    def _component(self) -> Int:
        return self._board.connectivity.component

    @cached_property
    def standing(self) -> pd.Series:
        """Of each model, "" in the main group, else "undefeated", "winless" or "not comparable"."""
        return self._labelled(self._standing, "standing").astype(object)

    @cached_property
    def _standing(self) -> NDArray[np.object_]:
        return objects([STANDING_TEXT[s] for s in self._board.connectivity.standing.tolist()])

    @cached_property
    def n_battles(self) -> pd.Series:
        """Battles of each model, or what else is counted."""
        return self._labelled(self._n_battles, "n_battles")

    @property
    def _n_battles(self) -> Int:
        return self._count.astype(np.int64)

    def _labelled(self, values: NDArray[np.generic], name: str) -> pd.Series:
        return pd.Series(values, in_pandas(self._board.models), name=name)

    def _shown(self) -> Answer:
        title = f"{type(self).__name__}: {self._how_many()}, {self.status}"
        return Answer(title, self._best_first(), self.settings, self.warnings)

    def _sentences(self) -> list[str]:
        rated = self.ratings[np.isfinite(self.ratings)]
        if rated.empty:
            return [f"no {self.competitor.one} can be rated"]
        best = rated.idxmax()
        ends = self.interval().loc[best]
        rating = with_interval(rated[best], ends["lower"], ends["upper"])
        return [f"{visible_line(best)} has the highest rating, {rating}; bootstrap() says who is ahead of whom"]

    def _how_many(self) -> str:
        n = int(self.n_battles.sum()) // 2  # the report may count those of other slices, too
        return f"{counted(n, 'battle')} between {self.competitor.counted(len(self.theta))}"

    def _best_first(self) -> pd.DataFrame:
        """Return ranks among finite ratings, ratings and battles; and what is wrong with models, if anything is."""
        finite = self.ratings.where(np.isfinite(self.ratings))
        table = pd.DataFrame({"rank": finite.rank(ascending=False, method="min").astype("Int64")})
        table = table.assign(rating=self.ratings, n_battles=self.n_battles)
        if (self.standing != "").any():
            table["standing"] = self.standing
        return table.sort_values("rating", ascending=False, kind="stable")

    def save(self, path: str | Path) -> None:
        """Write the ratings, and what made them, as JSON, for `read_ratings`; whole or not at all."""
        save_ratings(self.ratings, asdict(self.settings), path)

    @property
    def competitor(self) -> Noun:
        """What is rated, in a word and its plural."""
        return self.report.competitor

    @property
    def _further_columns(self) -> dict[str, Float]:
        """What a leaderboard also shows of each model (M,)."""
        return {}

    @property
    def logits(self) -> pd.Series:
        """The ratings in logits, with mean 0: ``strengths``, or 1.702 times these with the probit link."""
        return (self.strengths * (self.scale.unit / ELO_PER_LOGIT)).rename("logit")

    @property
    def theta(self) -> Float:
        """(M,) ``strengths``, 0 where there is no rating."""
        return self._board.theta

    @cached_property
    def standard_errors(self) -> pd.Series:
        """Sandwich standard errors, Elo, in the gauge of the ratings; NaN where the rating is not finite.

        They hold when battles, or with ``cluster=`` whole clusters, are independent, even if the model is wrong
        (Huber 1967; White 1982, DOI 10.2307/1912526; clusters: Liang and Zeger 1986, DOI 10.1093/biomet/73.1.13).
        They say nothing for models with a handful of battles: see `warnings`.
        """
        return self._errors(self._sandwich)

    @cached_property
    def standard_errors_hessian(self) -> pd.Series:
        """Standard errors if the model is right, Elo: smaller than the truth if it is wrong.

        They come from the inverse information H^-1. With weights w (also those of ``reweight``) or a ridge they come
        from H^-1 J H^-1, where J is the information with w^2 in place of w. They take battles as independent, in a
        clustered fit too. They count a tie as half a win and half a loss, and so are too large where ties are many.
        """
        return self._errors(self._model_based)

    @cached_property
    def covariance(self) -> pd.DataFrame:
        """(M, M) sandwich covariance of the ratings, Elo^2."""
        return self._frame(self.scale.covariance(self._sandwich))

    @cached_property
    def difference_standard_errors(self) -> pd.DataFrame:
        """(M, M) sandwich standard errors of rating differences, Elo; they do not depend on the gauge."""
        c = self._sandwich
        variance = np.diag(c)[:, None] + np.diag(c) - 2 * c
        return self._frame(self.scale.unit * np.sqrt(np.maximum(variance, 0)))

    def interval(self, level: float = 0.95, kind: BoardInterval | None = None) -> pd.DataFrame:
        """Return Wald confidence intervals of ratings, Elo, as ``lower`` and ``upper``; NaN without a finite rating.

        They are rating -+ z error. The error is that of ``standard_errors_hessian`` times sqrt(`dispersion`), as these
        take ties for wins and losses. With Firth's penalty the battles that it adds count as battles. In a clustered
        fit each model takes the larger one of this interval and that of ``standard_errors``, with Student's quantile
        and the degrees of freedom of `freedom` (Bell and McCaffrey 2002; Pustejovsky and Tipton 2018, DOI
        10.1080/07350015.2016.1247004).

        Args:
            level: of each interval by itself.
            kind: "auto": with ``penalty="auto"`` models with fewer than 200 battles take rating and error from the fit
                with Firth's penalty, so that the interval of such a model is not centred on its rating. That of an
                undefeated model has no upper end, and that of a winless one no lower end. "wald": all models take those
                of this fit. By default what the fit was asked for; intervals of draws are those of
                `bootstrap`. With a ridge there is no penalised fit, but models of fewer than (16 ridge)^2 battles,
                which it draws to the mean, have the outer ends of this interval and of that which they have without it.

        Raises:
            ValueError: a level that is not between 0 and 1.

        Examples:
            >>> import jaxeval
            >>> fit = jaxeval.fit_bradley_terry(jaxeval.simulate_battles(40, 3, seed=0))
            >>> fit.interval(0.9).round().loc["model-1"].tolist()
            [944.0, 1087.0]
        """
        return ends_table(self.ends(level, kind), self._board.models)

    def ends(self, level: float, kind: BoardInterval | None = None) -> Ends:
        """Return (M,) lower and upper ends of `interval`."""
        ends = self._wald(self._ratings, self._closed_form, level)
        kind = self.settings.interval if kind is None else kind
        if kind != "auto":
            return ends
        if self.held.any() and self._without_ridge.has_penalised:
            of_votes = self._without_ridge.with_penalised(ends, level, self.held)
            return np.fmin(ends[0], of_votes[0]), np.fmax(ends[1], of_votes[1])
        return self.with_penalised(ends, level, self.thin)

    @property
    def held(self) -> Bool:
        """(M,) models of so few battles that a ridge draws their ratings together by more than errors allow for."""
        return self._board.active & (self._n_battles < (_PER_RIDGE * self.settings.ridge) ** 2)

    @cached_property
    def _without_ridge(self) -> BradleyTerryFit:
        """The same fit, whose penalised twin knows no ridge."""
        return replace(self, settings=replace(self.settings, ridge=0.0))

    def with_penalised(self, ends: Ends, level: float, which: Bool) -> Ends:
        """Return the intervals ``ends``, those of the models ``which`` (M,) from the penalised fit."""
        if not (which & (self._component == 1)).any() or not self._board.active.any():
            return ends
        theta = self.penalised_strengths
        rated = np.where(self._board.active, theta, np.nan)  # these hold the gauge
        shift = np.nanmean(self.scale.aligned_ratings(rated[None], self.theta)[0] - self.scale.unit * rated)
        lower, upper = self._wald(self.scale.unit * theta + shift, self._penalised_form, level)
        lower = np.where(self._standing == "winless", -np.inf, lower)
        upper = np.where(self._standing == "undefeated", np.inf, upper)
        return np.where(which, lower, ends[0]), np.where(which, upper, ends[1])

    def differences(self, rows: NDArray[np.intp], level: float = 0.95) -> tuple[Float, Float]:
        """Return (R, M) ratings at the places ``rows`` less all others, Elo, and standard errors, as in `interval`.

        NaN without a finite rating.
        """
        error = self._closed_form.of_differences(rows, level, np.ones(len(self.theta), bool))
        ratings = np.where(self._board.active, self.scale.unit * self.theta, np.nan)
        return ratings[rows, None] - ratings, self.scale.unit * error

    def penalised_differences(self, rows: NDArray[np.intp], level: float = 0.95) -> tuple[Float, Float]:
        """Return (R, M) ratings at positions ``rows`` less all others, Elo, and standard errors, by the penalised fit.

        NaN between models of which one has no penalised strength. As in `interval`, clusters may widen the errors, by
        Student's quantile at ``level``; with an undefeated or winless model each cluster then counts as one battle, as
        its battles cannot show how much they differ. Only where `has_penalised`.
        """
        closed_form, theta = self._penalised_form, self.penalised_strengths
        met = self._component == 1
        met = met[rows, None] & met
        battles_of_one = self._n_battles.sum() / 2 / (self.n_effective_clusters or 1.0)
        error = closed_form.of_differences(rows, level, self._board.active, battles_of_one)
        difference = self.scale.unit * (theta[rows, None] - theta)
        return np.where(met, difference, np.nan), np.where(met, self.scale.unit * error, np.nan)

    def _wald(self, centre: Float, errors: FitErrors, level: float) -> Ends:
        half = np.where(np.isfinite(centre), errors.half_widths(self.scale, self._board.active, level), np.nan)
        return centre - half, centre + half

    @cached_property
    def dispersion(self) -> float:
        """The variance of results over that of wins and losses alone, given the ratings; 1 without ties.

        1 - sum w^2 y (1 - y) / sum w^2 p (1 - p) n / (n + 3): a tie, y = 1/2, has no variance of its own. The last
        factor keeps n ties alone from showing that another result is impossible.
        """
        return self._dispersion(self.theta)

    def _dispersion(self, theta: Float) -> float:
        return dispersion(self._board, theta) if self._board.is_plain else 1.0

    @property
    def thin(self) -> Bool:
        """(M,) models with fewer than 200 battles, whose intervals are penalised; none where that cannot be.

        Undefeated and winless ones are among them, however many battles they have; their intervals have one end.
        """
        unbounded = np.isin(self._standing, ["undefeated", "winless"]) & (self._component == 1)
        finite = np.isfinite(self._ratings)
        thin = (finite | unbounded) & (self._n_battles < ENOUGH_BATTLES) | unbounded & ~finite
        return thin if thin.any() and self.has_penalised else np.zeros(len(thin), bool)

    @property
    def vague(self) -> Bool:
        """(M,) models of fewer than 200 battles whose rating has a penalised standard error above 100 Elo.

        That is the error of eleven even battles. None where there is no penalised fit.
        """
        if not (self.thin & self._board.active).any():
            return np.zeros(len(self.theta), bool)
        return self.thin & self._penalised_form.vague(self._board.active, self.scale.unit)

    @property
    def penalised_errors(self) -> Float:
        """(M,) penalised standard errors of the ratings, Elo, less the mean rating of all others."""
        return self.scale.unit * self._penalised_form.apart_from_others(self._board.active)

    @property
    def has_penalised(self) -> bool:
        """Whether there are penalised strengths beside those of the fit, or in their place."""
        return self.settings.penalty == "firth" or self._penalised is not None

    def _always_above(self, model: int, level: float) -> bool:
        """Return whether exact tests of direct meetings show the model ahead of all others: asked of rankings only."""
        return False

    @property
    def penalised_strengths(self) -> Float:
        """(M,) strengths of the penalised fit, also of undefeated and winless models. Only where `has_penalised`."""
        return self._penalised_form.theta

    @cached_property
    def _closed_form(self) -> FitErrors:
        over_clusters = None if self.n_clusters is None else self._sandwich
        return FitErrors(self.theta, self._of_battles, self.dispersion, over_clusters, self.freedom)

    @cached_property
    def _penalised_form(self) -> FitErrors:
        """The errors of the penalised fit, which may be this one."""
        if self._penalised is None:
            return self._closed_form
        (theta, covariance), over_clusters = self._penalised, None
        if self.n_clusters is not None:
            there = replace(self._board, theta=np.where(self._board.active, theta, 0.0))
            squares = score_squares(there.scores(), there.cells.count, self._drawn)
            over_clusters = np.asarray(covariance @ squares @ covariance)
        return FitErrors(theta, covariance, self._dispersion(theta), over_clusters, self.freedom)

    @cached_property
    def _penalised(self) -> tuple[Float, Float] | None:
        """Strengths and covariance (M, M) with Firth's penalty, where the board has none; None where that cannot be."""
        board, options = self._board, self.settings
        if not board.is_plain or board.graph is not None or options.penalty != "auto":
            return None
        if options.beside_firth or options.reweight:
            return None
        return penalised_board(board, self._component == 1)

    @property
    def win_probability(self) -> pd.DataFrame:
        """(M, M) expected result of the row's model against the column's; a tie counts half, covariates are equal.

        NaN between equally infinite ratings. Without a tie model it is F(theta_i - theta_j), where F is the logistic
        function, or with the probit link the normal distribution function.
        """
        instead = "F(difference of strengths)"
        check_square(len(self.ratings), MOST_SQUARE, "the table of win probabilities", instead)
        theta = self.strengths.to_numpy()
        with np.errstate(invalid="ignore"):
            difference = theta[:, None] - theta
        from jaxeval.show.table import Table

        expected = pd.DataFrame(self._board.expected(difference), self.ratings.index, self.ratings.index)
        return Table.of(expected, f"Expected result of the row's {self.competitor.one} against the column's")

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood at the estimate, without ridge terms: of wins, ties and losses for the tie models."""
        return self._board.log_likelihood()

    @property
    def warnings(self) -> list[str]:
        """What the data cannot say, in words; empty for a healthy board."""
        models, logits = self._board.models, rated_theta(self._board) * (self.scale.unit / ELO_PER_LOGIT)
        far = models[~(np.abs(logits) < _FAR_LOGIT) & self._board.active]
        messages = board_warnings(
            models, self._component, self._standing, self.settings.ridge, self.settings.penalty, self.status, far,
            self.competitor,
        )  # fmt: skip
        if len(alone := self._in_one_cluster):
            messages.append(
                f"{self.competitor.counted(len(alone), 'has', 'have')} all battles in one cluster: the data do not "
                "show how much other clusters would differ, so that errors and intervals are too small: "
                f"{named(alone)}"
            )
        if len(tied := self._only_tied):
            messages.append(
                f"{self.competitor.counted(len(tied), 'has', 'have')} only ties, which do not show who would win: "
                f"{named(tied)}"
            )
        if (held := self.held).any():
            allowed = self.settings.interval == "auto" and self._without_ridge.has_penalised
            how = ", and their intervals reach to where votes alone put them" if allowed else ""
            messages.append(
                f"{self.competitor.counted(int(held.sum()), 'has', 'have')} fewer than "
                f"{np.ceil((_PER_RIDGE * self.settings.ridge) ** 2):g} battles: the ridge of {self.settings.ridge:g} "
                f"draws their ratings together{how or ' by more than intervals allow for'}: {named(models[held])}"
            )
        strata, unit = self._drawn.strata, "battle" if self._drawn.clusters is None else "cluster"
        messages += self._advice_on_voters
        messages += few_clusters_text(self.n_clusters, self.n_effective_clusters)
        messages += small_strata_text(None if strata is None else strata.size, unit)
        return [*self.report.warnings, *messages, *self._board.flags]

    @property
    def _advice_on_voters(self) -> list[str]:
        """A sentence where a column names few voters of many votes, and battles are taken as independent."""
        voters = self.report._voters if self.n_clusters is None else None
        return [] if voters is None else voters.advice

    @property
    def _only_tied(self) -> pd.Index:
        """Models whose battles are all ties."""
        cells, n_models = self._board.cells, len(self.theta)
        decided, battles = (
            sum(np.bincount(side[cells.pair], weight, n_models) for side in (cells.first, cells.second))
            for weight in (cells.count * (cells.target != 0.5), cells.count)
        )
        return self._board.models[(decided == 0) & (battles > 0)]

    @property
    def _in_one_cluster(self) -> pd.Index:
        """Rated models with several battles that all lie in one cluster, where there are several clusters."""
        rows = self._drawn.clusters
        if rows is None or len(rows.size) == 1:
            return self._board.models[:0]
        row, model = self._rated_by(rows.cell)
        n_clusters = pd.Series(rows.cluster[row]).groupby(model).nunique()
        one = n_clusters.reindex(range(len(self.theta))).to_numpy() == 1
        return self._board.models[one & (self._n_battles > 1) & self._board.active]

    def _rated_by(self, cell: Int) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Return rows of the cells (R,) and the models that they rate, an entry for each model of a row."""
        pair = (cells := self._board.cells).pair[cell]
        return np.tile(np.arange(len(cell)), 2), np.concatenate([cells.first[pair], cells.second[pair]])

    @property
    def n_clusters(self) -> int | None:
        """Clusters that the sandwich errors take as independent; None for battles."""
        return None if self._drawn.clusters is None else len(self._drawn.clusters.size)

    @property
    def n_effective_clusters(self) -> float | None:
        """How many clusters of equal size hold as much as these (Kish 1965); None without clusters."""
        return None if self._drawn.clusters is None else effective_clusters(self._drawn.clusters.size)

    @property
    def freedom(self) -> float | None:
        """Degrees of freedom of the errors over clusters; None where battles are drawn one by one."""
        return None if self._drawn.repeating is None else degrees_of_freedom(self._drawn.repeating.size)

    @cached_property
    def _inverse(self) -> Float:
        return self._board.inverse_information()

    @cached_property
    def _covariance(self) -> Float:
        """(P, P) sandwich covariance of all parameters, log-strengths first."""
        inverse = self._inverse  # first, as it refuses boards that are too wide
        cells = self._board.cells
        return np.asarray(inverse @ score_squares(self._board.scores(), cells.count, self._drawn) @ inverse)

    @property
    def _sandwich(self) -> Float:
        m = len(self._board.theta)
        return self._covariance[:m, :m]

    @property
    def _influence(self) -> Float:
        """(C, M) what one judgment of each cell adds to the ratings, logits."""
        moves = self._inverse[:, : len(self._board.theta)]
        return np.asarray(self._board.scores() @ (moves - (moves @ self.scale.weights)[:, None]))

    @cached_property
    def acceleration(self) -> Float:
        """(M,) how fast the error of each rating changes with it, for intervals of draws (Efron 1987).

        A sixth of the skewness of what a battle, or a whole cluster, adds to the rating; 0 without a finite rating.

        Raises:
            ValueError: the fit has strata, or too many models for tables.
        """
        if self._drawn.strata is not None:
            raise ValueError('interval="bca" knows no strata: take interval="percentile", or leave strata= out')
        influence, clusters = self._influence, self._drawn.repeating
        count = self._board.cells.count.astype(float)
        if clusters is not None:
            shape = (len(clusters.size), len(count))
            influence = scipy.sparse.csr_array((clusters.times, (clusters.cluster, clusters.cell)), shape) @ influence
            count = np.ones(shape[0])
        squares, cubes = (count @ influence**power for power in (2, 3))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where((squares > 0) & self._board.active, cubes / (6 * squares**1.5), 0.0)

    @cached_property
    def _model_based(self) -> Float:
        """(M, M) covariance if the model is right and battles are independent."""
        m, inverse = len(self._board.theta), self._inverse
        return np.asarray(inverse @ self._board.score_variance() @ inverse)[:m, :m]

    @cached_property
    def _of_battles(self) -> Float:
        """(M, M) `_model_based`, in whose information battles that Firth's penalty adds count, too."""
        board = self._board
        if self.settings.penalty != "firth" or not board.is_plain:
            return self._model_based
        return covariance_of_penalised(board)

    def _errors(self, covariance: Float) -> pd.Series:
        errors = np.sqrt(np.maximum(np.diag(self.scale.covariance(covariance)), 0))
        errors = np.where(self._board.active, errors, np.nan)
        return pd.Series(errors, self.ratings.index, name="standard_error")

    def _frame(self, values: Float) -> pd.DataFrame:
        both = self._board.active[:, None] & self._board.active
        models = self.ratings.index
        return pd.DataFrame(np.where(both, values, np.nan), models, models)


def ends_table(ends: Ends, models: Any) -> pd.DataFrame:
    """Return intervals of ``models``: columns ``lower`` and ``upper``."""
    return pd.DataFrame(dict(zip(("lower", "upper"), ends, strict=True)), in_pandas(models))


def fit_result(
    kind: type[Fit], board: Board, drawn: VoteGroups, report: DataReport, options: FitOptions,
    count: Float | None = None, features: tuple[str, ...] = (),
) -> Fit:  # fmt: skip
    """Make the result of the class ``kind`` for a fitted board; ``count`` (M,) are judgments, by default battles.

    ``features`` are the names of covariates.
    """
    models = board.models
    count = battles_per_model(board.cells, len(models)) if count is None else count
    unit = ELO_PER_UNIT[board.link]
    scale = make_scale(options.gauge, options.base, models, count, board.active, unit, report.competitor)
    made = {"gauge": scale.gauge, "method": board.method, "features": features}
    made |= {"dtype": "float64", "device": device_name(), "versions": versions()}
    return kind(
        status=STATUS_TEXT[board.status], converged=board.status == Status.CONVERGED, n_steps=board.n_steps,
        grad_norm=board.grad_norm, settings=FitSettings.of(vars(options) | made), report=report, _board=board,
        scale=scale, _count=count, _drawn=drawn,
    )  # fmt: skip
