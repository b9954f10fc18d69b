"""Bradley-Terry ratings by (regularised) maximum likelihood, with standard errors and what the data cannot say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from jaxeval.data.battles import Battles, DataReport, as_battles
from jaxeval.data.cells import Compress
from jaxeval.data.features import FeatureLike, checked_features
from jaxeval.execution.precision import versions
from jaxeval.kernels.connectivity import Standing
from jaxeval.kernels.solve import Status
from jaxeval.ratings.boards import (
    Board,
    battle_weights,
    battles_per_model,
    fit_boards,
    inverse_information,
    rated_theta,
)
from jaxeval.ratings.bootstrap_plan import ClusterRows, cluster_rows
from jaxeval.ratings.gauge import ELO_PER_LOGIT, Gauge, Scale, make_scale
from jaxeval.ratings.sandwich import score_squares, strength_slopes
from jaxeval.ratings.sparse_boards import Method, check_dense
from jaxeval.ratings.square_limits import MOST_SQUARE, check_square
from jaxeval.statistics.clusters import few_clusters_text
from jaxeval.wording import counted

if TYPE_CHECKING:
    from pathlib import Path

    from jaxeval.ratings.contextual import Ties

#: Log-strengths so far from the mean are all but infinite: odds of one in 20,000.
_FAR_LOGIT = 10.0

_STATUS_TEXT: dict[int, str] = {
    Status.CONVERGED: "converged",
    Status.STEP_LIMIT: "stopped before converging, at the step limit or at the limit of double precision",
    Status.NON_FINITE: "diverged to non-finite values",
}
STANDING_TEXT: dict[int, str] = {
    Standing.IDENTIFIED: "",
    Standing.ABOVE: "undefeated",
    Standing.BELOW: "winless",
    Standing.INCOMPARABLE: "not comparable",
}


@dataclass(frozen=True)
class FitSettings:
    """What made a fit."""

    ridge: float  # coefficient of ||theta||^2 in the log-likelihood (not half of it)
    gauge: str
    base: float
    reweighted: bool
    dtype: str
    device: str
    versions: str
    method: str  # "dense", on (M, M) tables, or "sparse", on the graph of pairs
    cluster: str | None  # column of the clusters that the sandwich errors take as independent, None for battles


@dataclass(frozen=True, eq=False)
class BradleyTerryFit:
    """A fitted board. Series are indexed by model; ratings and errors in Elo.

    A model outside the main group has no finite rating at ridge 0: it is +inf if it never lost a point to the group
    (``standing`` "undefeated"), -inf if it never took one ("winless"), NaN if nothing compares it.
    """

    ratings: pd.Series
    logits: pd.Series  # log-strengths in the mean-zero gauge
    component: pd.Series  # connected component, 1 = that of the main group; the others by battles
    standing: pd.Series  # "" for a model of the main group, else "undefeated", "winless" or "not comparable"
    n_battles: pd.Series
    status: str
    converged: bool
    n_steps: int
    grad_norm: float
    settings: FitSettings
    report: DataReport
    _board: Board = field(repr=False)
    _scale: Scale = field(repr=False)
    _clusters: ClusterRows | None = field(repr=False)

    def save(self, path: str | Path) -> None:
        """Write the ratings, and what made them, as JSON, for `read_ratings`; whole or not at all."""
        from jaxeval.ratings.saved_ratings import save_ratings  # builds on this module

        save_ratings(self, path)

    @property
    def theta(self) -> NDArray[np.float64]:
        """(M,) log-strengths in the mean-zero gauge, 0 where there is no rating."""
        return self._board.theta

    @property
    def scale(self) -> Scale:
        """How log-strengths become ratings."""
        return self._scale

    @cached_property
    def standard_errors(self) -> pd.Series:
        """Sandwich standard errors, Elo, in the gauge of the ratings; NaN where the rating is not finite.

        They hold when battles are independent, or whole clusters with ``cluster=``, also when the model is wrong
        (Huber 1967; White 1982, DOI 10.2307/1912526; clusters: Liang and Zeger 1986, DOI 10.1093/biomet/73.1.13).
        They say nothing for models with a handful of battles: see `warnings`.
        """
        return self._errors(self._sandwich)

    @cached_property
    def standard_errors_hessian(self) -> pd.Series:
        """Standard errors if the model is right, Elo: smaller than the truth if it is wrong.

        They are those of the inverse information H^-1, and with weights w (also those of ``reweight``) or a ridge of
        H^-1 J H^-1, J being the information with w^2 in place of w. They take battles as independent, in a clustered
        fit too. They count a tie as half a win and half a loss, and so are too large where ties are many.
        """
        return self._errors(self._model_based)

    @cached_property
    def covariance(self) -> pd.DataFrame:
        """(M, M) sandwich covariance of the ratings, Elo^2."""
        return self._frame(self._scale.covariance(self._sandwich))

    @cached_property
    def difference_standard_errors(self) -> pd.DataFrame:
        """(M, M) sandwich standard errors of rating differences, Elo; they do not depend on the gauge."""
        c = self._sandwich
        variance = np.diag(c)[:, None] + np.diag(c) - 2 * c
        return self._frame(ELO_PER_LOGIT * np.sqrt(np.maximum(variance, 0)))

    @property
    def win_probability(self) -> pd.DataFrame:
        """(M, M) probability that the row's model beats the column's, a tie counting half: s(theta_i - theta_j)."""
        return win_probability(self.ratings)

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood at the estimate, without the ridge term, over the main group's battles."""
        board, cells = self._board, self._board.cells
        both = board.active[cells.first] & board.active[cells.second]
        difference = board.theta[cells.first] - board.theta[cells.second]
        each = board.wins * np.logaddexp(0, -difference) + (board.n - board.wins) * np.logaddexp(0, difference)
        return float(-np.sum(np.where(both, each, 0.0)))

    @property
    def warnings(self) -> list[str]:
        """What the data cannot say, in words; empty for a healthy board."""
        far = self.logits.index[~(np.abs(self._board.theta) < _FAR_LOGIT) & self._board.active]
        messages = board_warnings(self.component, self.standing, self.settings.ridge, self.status, far)
        alone = self._in_one_cluster
        if len(alone):
            messages.append(
                f"{counted(len(alone), 'model has', 'models have')} all battles in one cluster: the data do not show "
                f"how much other clusters would differ, and errors and intervals are too small: {named(alone)}"
            )
        return [*self.report.warnings, *messages, *few_clusters_text(self.n_clusters)]

    @property
    def _in_one_cluster(self) -> pd.Index:
        """Rated models with several battles, of which all lie in one of several clusters."""
        rows, cells = self._clusters, self._board.cells
        if rows is None or len(rows.size) == 1:
            return self.ratings.index[:0]
        pair = cells.pair[rows.cell]
        of_model = np.concatenate([cells.first[pair], cells.second[pair]])
        n_clusters = pd.Series(np.tile(rows.cluster, 2)).groupby(of_model).nunique()
        one = n_clusters.reindex(range(len(self.ratings))).to_numpy() == 1
        several = self.n_battles.to_numpy() > 1
        return self.ratings.index[one & several & np.isfinite(self.ratings.to_numpy())]

    @property
    def n_clusters(self) -> int | None:
        """Clusters that the sandwich errors take as independent; None for battles."""
        return None if self._clusters is None else len(self._clusters.size)

    @cached_property
    def _inverse(self) -> NDArray[np.float64]:
        m = len(self._board.theta)
        return inverse_information([self._board], self.settings.ridge)[0][0, :m, :m]

    @cached_property
    def _sandwich(self) -> NDArray[np.float64]:
        inverse = self._inverse  # first, as it refuses boards that are too wide
        return np.asarray(inverse @ score_squares(self._scores, self._board.cells.count, self._clusters) @ inverse)

    @property
    def _scores(self) -> scipy.sparse.csr_array:
        """(C, M) derivatives of one battle's log-likelihood in each cell, its weight included."""
        board, slopes = self._board, self._slopes
        residual = board.cells.target - scipy.special.expit(slopes @ board.theta)
        return slopes * (battle_weights(board, board.cells) * residual)[:, None]

    @cached_property
    def _model_based(self) -> NDArray[np.float64]:
        """(M, M) covariance if the model is right and battles are independent."""
        inverse = self._inverse
        board, slopes = self._board, self._slopes
        won = scipy.special.expit(slopes @ board.theta)
        deviation = battle_weights(board, board.cells) * np.sqrt(won * (1 - won))
        return np.asarray(inverse @ score_squares(slopes * deviation[:, None], board.cells.count, None) @ inverse)

    @property
    def _slopes(self) -> scipy.sparse.csr_array:
        """(C, M) derivatives of the logit of each cell's expected result by the log-strengths."""
        return strength_slopes(self._board.cells, len(self._board.theta))

    def _errors(self, covariance: NDArray[np.float64]) -> pd.Series:
        errors = np.sqrt(np.maximum(np.diag(self._scale.covariance(covariance)), 0))
        errors = np.where(self._board.active, errors, np.nan)
        return pd.Series(errors, self.ratings.index, name="standard_error")

    def _frame(self, values: NDArray[np.float64]) -> pd.DataFrame:
        both = self._board.active[:, None] & self._board.active
        models = self.ratings.index
        return pd.DataFrame(np.where(both, values, np.nan), models, models)


def fit_bradley_terry(
    battles: Battles | Any,
    ridge: float = 0.0,
    *,
    gauge: Gauge = "mean",
    base: float = 1000.0,
    reweight: bool = False,
    features: Sequence[FeatureLike] = (),
    normalize: bool = True,
    feature_ridge: float = 0.0,
    ties: Ties = "half",
    cluster: str | None = None,
    start: BradleyTerryFit | pd.Series | None = None,
    method: Method = "auto",
) -> BradleyTerryFit:
    """Bradley-Terry ratings by maximum likelihood.

    Maximises sum_b w_b [y_b log s(d_b) + (1 - y_b) log s(-d_b)] - ridge ||theta||^2 with d_b = theta_i - theta_j
    (DOI 10.2307/2334029; a tie is y = 1/2). With ``features`` x_b, d_b = theta_i - theta_j + x_b . coefficient, less
    feature_ridge ||coefficient||^2. rating = base + (400 / ln 10) theta.

    Args:
        battles: `Battles`, or a table with the standard columns.
        ridge: >= 0, coefficient of the squared norm. With 0, models that the data cannot place get infinite or
            NaN ratings and are named in ``warnings``.
        gauge: "mean", "votes" (mean weighted by battles), or (model, rating) to hold a model at a rating.
        base: the mean rating of the first two gauges.
        reweight: inverse-pair-frequency weights: each battle counts 1 / max(battles of its pair, 50).
        features: covariates ("style control"): columns of differences, side A less side B; pairs of columns; or
            `position_advantage`, `same_group`.
        normalize: divide columns by their root mean square over all battles.
        feature_ridge: >= 0, of the normalised coefficients; infinite to hold them at 0.
        ties: "half" a win; or a model of ties, "davidson" or "rao_kupper". A model of ties has ratings on another
            scale, see `ContextualFit`; its ``expected_score`` has those on the scale of "half".
        cluster: column of the clusters (prompts, voters, sessions) that ``standard_errors`` and ``covariance`` take as
            independent, in place of battles; the ratings stay what they are.
        start: a previous fit, or its ratings (Elo) by model, to start from: the same ratings in fewer steps. Models
            that it does not rate start at its mean. Not for fits with features or a tie model.
        method: "dense", on (M, M) tables; "sparse", on the graph of pairs, which takes memory for the pairs only; or
            "auto", which chooses by the number of models. Features and tie models are dense.

    Returns:
        The fit; a `ContextualFit` with features or a tie model.

    Raises:
        ValueError: a negative ridge, a ``feature_ridge`` without features, or an impossible gauge.
        TypeError: ``features`` is no list of covariates.
        DataError: ``battles`` is a table that cannot be read, a feature is missing or undone by the models, or
            ``cluster`` names no column, or one with missing values.
    """
    battles = as_battles(battles)
    features = checked_features(features, feature_ridge)
    if features or ties != "half":
        check_dense(method)
        if start is not None:
            raise ValueError("start= is for fits without features and tie models")
        from jaxeval.ratings.contextual import fit_contextual  # builds on this module

        return fit_contextual(battles, ridge, gauge, base, reweight, features, normalize, feature_ridge, ties, cluster)
    clusters = clusters_of(battles, cluster, battles.compress)
    starts = None if start is None else [_start(start, battles.models)]
    (board,) = fit_boards([(battles.models, battles.cells)], ridge, reweight, method, starts)
    if starts is not None and board.status != Status.CONVERGED:  # ratings on another scale, say
        (board,) = fit_boards([(battles.models, battles.cells)], ridge, reweight, method)
    return fit_result(battles.report, board, ridge, gauge, base, reweight, cluster, clusters)


def clusters_of(battles: Battles, cluster: str | None, compress: Compress) -> ClusterRows | None:
    """Which battles of the cells that ``compress`` makes belong together, by a column; None without one."""
    if cluster is None:
        return None
    return cluster_rows(battles.codes(cluster)[0], compress(slice(None))[1], battles.count)


def _start(start: BradleyTerryFit | pd.Series, models: pd.Index) -> NDArray[np.float64]:
    """(M,) log-strengths to start from, logits."""
    ratings = start.ratings if isinstance(start, BradleyTerryFit) else start
    if not isinstance(ratings, pd.Series) or not ratings.index.is_unique:
        raise TypeError(f"start must be a fit or a Series of ratings by model, each once, got {start!r}")
    try:
        theta = ratings.reindex(models).to_numpy(np.float64, na_value=np.nan) / ELO_PER_LOGIT
    except (TypeError, ValueError) as error:
        raise TypeError(f"start must hold ratings, which are numbers: {error}") from error
    known = np.isfinite(theta)
    return np.where(known, theta - theta[known].mean(), 0.0) if known.any() else np.zeros(len(models))


def win_probability(ratings: pd.Series) -> pd.DataFrame:
    """(M, M) probability that the row's model beats the column's; NaN between equally infinite ratings."""
    check_square(len(ratings), MOST_SQUARE, "the table of win probabilities", "1 / (1 + exp(-difference of logits))")
    theta = ratings.to_numpy() / ELO_PER_LOGIT
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        probability = 1 / (1 + np.exp(theta - theta[:, None]))
    return pd.DataFrame(probability, ratings.index, ratings.index)


def board_warnings(component: pd.Series, standing: pd.Series, ridge: float, status: str, far: pd.Index) -> list[str]:
    """Sentences on a board's identifiability and convergence; ``far`` are the models with ratings beyond reason."""
    messages = []
    held = f" (the ridge of {ridge:g} alone makes it finite)" if ridge > 0 else ""
    n_components = component.max()
    if n_components > 1:
        sizes = component.value_counts().sort_index()
        outside = component.index[component > 1]
        messages.append(
            f"the models fall into {n_components} groups that never met ({named(sizes)} models); "
            + (
                f"ratings compare only inside a group. Outside the first: {named(outside)}"
                if ridge > 0
                else f"only the first is rated (rate another on its own battles). Outside it: {named(outside)}"
            )
        )
    if not (standing == "").any():
        messages.append(
            f"no two models took points off each other, directly or through others: nobody has a finite rating{held}"
        )
        return [*messages, *_alike(component.index), *_not_converged(status, far)]
    for text, why in (
        ("undefeated", "never lost a point to the main group: no finite rating"),
        ("winless", "never took a point off the main group: no finite rating"),
        ("not comparable", "no chain of wins both ways with the main group: no comparable rating"),
    ):
        concerned = standing.index[(standing == text) & (component == 1)]
        if len(concerned):
            messages.append(f"{named(concerned)}: {why}{held}")
    return [*messages, *_alike(component.index), *_not_converged(status, far)]


def _alike(models: pd.Index) -> list[str]:
    """A sentence on names that somebody may have meant as one."""
    groups: dict[str, list[str]] = {}
    for model in models:
        if isinstance(model, str):
            groups.setdefault(" ".join(model.split()).casefold(), []).append(model)
    alike = [" and ".join(map(repr, names)) for names in groups.values() if len(names) > 1]
    return [f"names that differ in blanks or case only are different models: {named(alike)}"] if alike else []


def _not_converged(status: str, far: pd.Index) -> list[str]:
    if status == _STATUS_TEXT[Status.CONVERGED]:
        return []
    why = f": the battles hardly tie down {named(far)}; a ridge > 0 would" if len(far) else ""
    return [f"the fit {status}{why}"]


def named(models: pd.Index | Sequence[Any], limit: int = 8) -> str:
    """The first ``limit`` names, and how many more there are."""
    shown = ", ".join(map(str, models[:limit]))
    return shown if len(models) <= limit else f"{shown} and {len(models) - limit:,} more"


def fit_result(
    report: DataReport, board: Board, ridge: float, gauge: Gauge, base: float, reweight: bool,
    cluster: str | None, clusters: ClusterRows | None,
) -> BradleyTerryFit:  # fmt: skip
    """The public face of a fitted board."""
    models = board.models
    count = battles_per_model(board.cells, len(models))
    scale = make_scale(gauge, base, models, count, board.active)
    theta = rated_theta(board)
    standing = [STANDING_TEXT[s] for s in board.connectivity.standing]
    return BradleyTerryFit(
        ratings=pd.Series(scale.ratings(theta), models, name="rating"),
        logits=pd.Series(theta, models, name="logit"),
        component=pd.Series(board.connectivity.component, models, name="component"),
        standing=pd.Series(standing, models, name="standing", dtype=object),
        n_battles=pd.Series(count.astype(np.int64), models, name="n_battles"),
        status=_STATUS_TEXT[board.status],
        converged=board.status == Status.CONVERGED,
        n_steps=board.n_steps,
        grad_norm=board.grad_norm,
        settings=FitSettings(
            float(ridge),
            scale.gauge,
            float(base),
            reweight,
            "float64",
            device_name(),
            versions(),
            board.method,
            cluster,
        ),
        report=report,
        _board=board,
        _scale=scale,
        _clusters=clusters,
    )


def device_name() -> str:
    """Kind of the default device."""
    import jax

    return str(jax.devices()[0].device_kind)
