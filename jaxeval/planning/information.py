"""What is known of strengths before the next battles, and what one more battle of each pair would tell.

The information of battles is H, the sum of w_ij (e_i - e_j)(e_i - e_j)' over them, w_ij that of one battle of i and j.
C is its pseudo-inverse. One more battle takes w C d d' C / (1 + w d' C d) off C, d = e_i - e_j (Sherman and Morrison).
So it takes w (S_ii + S_jj - 2 S_ij) / (1 + w (C_ii + C_jj - 2 C_ij)) off the trace of W C, S = C W C. A battle with the
expected result does not move the strengths: this is what a refit would find.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import check_choice, checked_integer
from jaxeval.errors import DataError
from jaxeval.execution.host import evaluate_of_choice
from jaxeval.kernels import links
from jaxeval.kernels.links import Link
from jaxeval.ratings.boards import MOST_INVERTED, battle_weights
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.ratings.plackett_luce import PlackettLuceFit
from jaxeval.ratings.vote_groups import score_squares
from jaxeval.statistics.quantiles import normal_quantile
from jaxeval.wording import MODEL, Noun, counted, did_you_mean, visible_line

#: Least spread (logits) that the strengths of models without a rating are taken to have.
_LEAST_SPREAD = 0.5
#: Battles are planned in so many steps at most: all battles of a step are of one pair.
_MOST_STEPS = 256
#: Share of the greatest entry of an information: smaller entries are what rounding leaves of no battle.
_NOTHING = 1e-11
GoalName = Literal["board", "top", "pair", "newcomer"]
#: How many models the top has where nobody says it.
_TOP = 10


class BoardInformation(NamedTuple):
    """What the battles so far tell of M models; strengths are in the unit of the link, and a battle has weight 1.

    Models without a rating, and newcomers, have a strength that is ``assumed``, with a spread around the mean of the
    others. This prior decides which battles are worth most, and does not enter the errors that are expected.
    """

    models: pd.Index
    strengths: Float  # (M,) those of the fit: infinite or NaN where there is no rating
    assumed: Float  # (M,) those that plans rest on
    battles: Float  # (M, M) H
    scores: Float  # (M, M) variance of the scores of the battles; H where all have one weight
    prior: Float  # (M, M) information of the prior
    worth: Float  # (M, M) w_ij, 0 for a model against itself
    gauge: Float  # (M,) weights, of sum 1, of the mean that ratings are measured from
    unit: float  # Elo for one unit of strength
    dispersion: float  # variance of results in units of that of wins and losses: ties and clusters change it
    competitor: Noun = MODEL  # what the models are, in words

    @property
    def unrated(self) -> Bool:
        """(M,) models without a finite rating."""
        return ~np.isfinite(self.strengths)

    def covariance(self) -> Float:
        """Return (M, M) C, of the battles and the prior: inverse information."""
        return pseudo_inverse(self.battles + self.prior)

    def with_battles(self, times: Float, weight: Float | float = 1.0) -> BoardInformation:
        """Add ``times`` (M, M) more battles of each pair, symmetric, of that weight each."""
        more, squares = (laplacian(self.worth * times * weight**power) for power in (1, 2))
        return self._replace(battles=self.battles + more, scores=self.scores + squares)

    def variances(self, models: Int) -> tuple[Bool, Float]:
        """Give (M,) models that the battles compare with most of ``models``, and the covariance of their strengths."""
        edges = np.abs(self.battles) > _NOTHING * max(np.abs(self.battles).max(), 1e-300)
        _, group = scipy.sparse.csgraph.connected_components(scipy.sparse.csr_array(edges), directed=False)
        inside = group == np.bincount(group[models]).argmax()
        inverse = pseudo_inverse(self.battles[np.ix_(inside, inside)])
        return inside, np.asarray(inverse @ self.scores[np.ix_(inside, inside)] @ inverse)


def pseudo_inverse(matrix: Float) -> Float:
    """Return (M, M) inverse of a symmetric matrix among vectors of sum 0, whatever it does to a common shift."""
    m = len(matrix)
    if m == 1:
        return np.zeros((1, 1))
    centred = matrix - matrix.mean(0) - matrix.mean(1)[:, None] + matrix.mean()
    level = np.trace(centred) / m
    return np.asarray(np.linalg.inv(centred + level / m) - 1 / (level * m))


def laplacian(table: Float) -> Float:
    """Return (M, M) sum of x_ij (e_i - e_j)(e_i - e_j)' over the pairs of a symmetric table."""
    return np.asarray(np.diag(table.sum(1)) - table)


def information_of(fit: BradleyTerryFit, newcomer: Any = None) -> BoardInformation:
    """Return what the battles of a fit tell; a ``newcomer`` that the fit does not have is added to its models.

    With covariates, battles to come are taken to have equal ones on both sides.

    Raises:
        TypeError: ``fit`` is no fit of battles.
        ValueError: a fit of a tie model, or of too many models for tables.
        DataError: the fit did not converge.
    """
    _check(fit)
    board, cells, m = fit._board, fit._board.cells, len(fit.ratings)
    weight, active = battle_weights(board, cells), board.active
    n_counted = cells.count[weight > 0].sum()
    one = float(cells.count @ weight) / max(n_counted, 1) or 1.0  # a battle to come has the mean weight
    added = [] if newcomer is None or newcomer in fit.ratings.index else [newcomer]
    size = m + len(added)
    rated = np.flatnonzero(active)
    battles, scores = np.zeros((2, size, size))
    if len(rated) > 1:
        block = np.ix_(rated, rated)
        known = pseudo_inverse(fit._inverse[block])
        battles[block], scores[block] = known / one, known @ fit._model_based[block] @ known / one**2
    strengths = np.append(fit.strengths.to_numpy(), [np.nan] * len(added))
    assumed, prior = _prior(strengths)
    worth = _worth(assumed, board.link)
    outside = ~(active[cells.first] & active[cells.second])
    if outside.any():  # what the battles of unrated models will tell once these models have lost and won
        first, second, n = cells.first[outside], cells.second[outside], board.n[outside] / one
        table = np.zeros((size, size))
        table[first, second] = table[second, first] = n
        battles, scores = battles + laplacian(table * worth), scores + laplacian(table * worth)
    gauge = np.append(fit.scale.weights, np.zeros(len(added)))
    return BoardInformation(
        models=fit.ratings.index.append(pd.Index(added)) if added else fit.ratings.index, strengths=strengths,
        assumed=assumed, battles=battles, scores=scores, prior=prior, worth=worth,
        gauge=gauge if gauge.any() else np.full(size, 1 / size), unit=fit.scale.unit,
        dispersion=_dispersion(fit, int(n_counted)), competitor=fit.competitor,
    )  # fmt: skip


def information_without_votes(ratings: pd.Series | int) -> BoardInformation:
    """Return what is known without votes: expected ratings (Elo) by model, or a number of models of equal rating."""
    if isinstance(ratings, int | np.integer) and not isinstance(ratings, bool):
        if not 2 <= ratings <= MOST_INVERTED:
            raise ValueError(f"a plan is for 2 to {MOST_INVERTED:,} models, got {ratings:,}")
        ratings = pd.Series(0.0, [f"model-{k + 1}" for k in range(ratings)])
    if not isinstance(ratings, pd.Series):
        raise TypeError(f"give a fit, ratings by model, or a number of models, got {type(ratings).__name__}")
    try:
        theta = ratings.to_numpy(np.float64) / ELO_PER_LOGIT
    except (TypeError, ValueError) as error:
        raise TypeError(f"ratings must be numbers: {error}") from error
    m = len(theta)
    if m < 2 or not np.isfinite(theta).all() or not ratings.index.is_unique:
        wrong = "a model that is there twice" if np.isfinite(theta).all() else "one that is not finite"
        problem = counted(m, "rating") if m < 2 else wrong
        raise ValueError(f"ratings must be finite, of two models or more, each model once: got {problem}")
    theta = theta - theta.mean()
    prior = (np.eye(m) - 1 / m) / _spread(theta) ** 2
    return BoardInformation(
        models=ratings.index, strengths=theta, assumed=theta, battles=np.zeros((m, m)), scores=np.zeros((m, m)),
        prior=prior, worth=_worth(theta, Link.LOGIT), gauge=np.full(m, 1 / m), unit=ELO_PER_LOGIT, dispersion=1.0,
    )  # fmt: skip


def _check(fit: Any) -> None:
    if not isinstance(fit, BradleyTerryFit):
        hint = ": give its .fit" if isinstance(getattr(fit, "fit", None), BradleyTerryFit) else ""
        raise TypeError(f"battles are planned from a fit of fit_bradley_terry, got {type(fit).__name__}{hint}")
    if isinstance(fit, PlackettLuceFit):
        raise TypeError("battles are planned from a fit of battles, got a fit of rankings")
    if fit.settings.ties != "half":
        raise ValueError(
            f"battles cannot be planned from a fit with ties={fit.settings.ties!r}: plan from its expected_score, the "
            "fit of the same battles with ties as half a win"
        )
    if not fit.converged:
        raise DataError(f"the fit {fit.status}, so that its errors mean nothing: {'; '.join(fit.warnings[-1:])}")


def _prior(strengths: Float) -> tuple[Float, Float]:
    """Return strengths (M,) that plans rest on, and information (M, M) of assumed ones, around the others' mean.

    Undefeated models are taken to be a spread of the others above the best of them, winless ones as far below the
    worst, and those that nothing compares to be like the mean.
    """
    m, rated = len(strengths), np.isfinite(strengths)
    known = strengths[rated] if rated.any() else np.zeros(1)
    spread = _spread(known)
    assumed = np.where(rated, strengths, known.mean())
    assumed[strengths == np.inf], assumed[strengths == -np.inf] = known.max() + spread, known.min() - spread
    others = (rated if rated.any() else np.ones(m, bool)) / max(rated.sum() or m, 1)
    from_mean = (np.eye(m) - others)[~rated]
    return assumed, from_mean.T @ from_mean / spread**2


def _spread(theta: Float) -> float:
    return max(float(theta.std()), _LEAST_SPREAD)


def _worth(theta: Float, link: Link) -> Float:
    """Return (M, M) expected information of one battle of each pair."""
    z = theta[:, None] - theta
    p = evaluate_of_choice(links.probability, link, z)
    worth: Float = evaluate_of_choice(links.information, link, p, z)
    np.fill_diagonal(worth, 0.0)
    return worth


def _dispersion(fit: BradleyTerryFit, n_battles: int) -> float:
    """Return squared scores of battles or whole clusters over those of wins and losses alone; 1 if battles are few."""
    m = len(fit.ratings)
    if n_battles < 2 * m:
        return 1.0
    observed = score_squares(fit._board.scores()[:, :m], fit._board.cells.count, fit._drawn)
    expected = fit._board.score_variance()[:m, :m]
    ratio = float(np.trace(observed) / np.trace(expected)) * n_battles / (n_battles - m + 1)
    return ratio if np.isfinite(ratio) and ratio > 0 else 1.0


def expected_gains(covariance: Float, goal: Float, worth: Float) -> Float:
    """Return (M, M) what one more battle of each pair takes off the trace of ``goal`` C, W and C being (M, M)."""
    sandwich = covariance @ goal @ covariance
    return _gains(covariance, sandwich, worth, *np.empty((2, *worth.shape)))


def _gains(covariance: Float, sandwich: Float, worth: Float, gain: Float, of_pair: Float) -> Float:
    """Return the gains, written into ``gain``; ``of_pair`` is overwritten, too."""
    for table, result in ((sandwich, gain), (covariance, of_pair)):
        variance = table.diagonal()
        np.multiply(table, -2, out=result)
        result += variance
        result += variance[:, None]
        result *= worth
    of_pair += 1
    gain /= of_pair
    return gain


def planned_battles(covariance: Float, goal: Float, worth: Float, allowed: Bool, k: int) -> list[tuple[int, int, int]]:
    """Return ``k`` battles, each the one that tells most after those before it: pairs, and how many of each, in turn.

    Every step takes the best pair out of the ``allowed`` (M, M), and C is brought up to date by a matrix of rank one.
    More than 256 battles are planned in 256 steps, each of several battles of one pair.
    """
    c, chosen = covariance.copy(), []
    s = c @ goal @ c
    size = -(-k // _MOST_STEPS)
    never = np.where(allowed, 0.0, -np.inf)
    gain, of_pair = np.empty((2, *c.shape))  # tables are written in place: their memory takes most of the time
    while k > 0:
        step = min(size, k)
        _gains(c, s, worth * step, gain, of_pair)
        gain += never
        i, j = (int(x) for x in np.unravel_index(np.argmax(gain), gain.shape))
        chosen.append((i, j, step))
        v, u = c[i] - c[j], s[i] - s[j]
        share = step * worth[i, j] / (1 + step * worth[i, j] * (v[i] - v[j]))
        c -= np.multiply.outer(share * v, v, out=of_pair)
        s -= np.multiply.outer(share * v, other := u - 0.5 * share * (u[i] - u[j]) * v, out=of_pair)
        s -= np.multiply.outer(other, share * v, out=of_pair)
        k -= step
    return chosen


class Aim(NamedTuple):
    """What is asked for; see `next_battles`."""

    goal: GoalName | None = None
    top: int | None = None
    pair: tuple[Hashable, Hashable] | None = None
    newcomer: Hashable | None = None

    @property
    def name(self) -> GoalName:
        """The goal. If none is named, it is the one that the other options are about."""
        meant: GoalName = "board" if self.top is None else "top"
        if self.newcomer is not None:
            meant = "newcomer"
        elif self.pair is not None:
            meant = "pair"
        name = self.goal or meant
        check_choice("goal", name, GoalName)
        if (self.newcomer is not None) != (name == "newcomer"):
            raise ValueError("goal='newcomer' and newcomer=, its name, need each other")
        if not isinstance(self.newcomer, Hashable):
            raise TypeError(f"newcomer must be one name, got {self.newcomer!r}; ask for one after another")
        if (self.pair is not None) != (name == "pair"):
            raise ValueError("goal='pair' and pair=, two names, need each other")
        if self.top is not None and name != "top":
            raise ValueError(f"top= is how many of the best the goal 'top' is about, and the goal is {name!r}")
        return name


class Goal(NamedTuple):
    """The ratings whose variances are to be small, and the pairs that may meet for it."""

    words: str
    models: Int  # (Q,) whose ratings they are
    contrasts: Float  # (R, M) each rating as a difference of strengths
    differences: Bool  # (M, M) pairs whose differences are to be known, above the diagonal
    pairs: Bool  # (M, M) that may meet, above the diagonal

    @property
    def matrix(self) -> Float:
        """(M, M) W: the trace of W C is the mean variance of the ratings."""
        return np.asarray(self.contrasts.T @ self.contrasts / len(self.contrasts))

    def errors(self, known: BoardInformation) -> tuple[Float, Float]:
        """Return standard errors of ratings (R,) and of differences (D,), Elo; infinite where nothing compares."""
        inside, covariance = known.variances(self.models)
        variance = np.full(len(self.contrasts), np.inf)
        whole = ~self.contrasts[:, ~inside].any(1)
        contrasts = self.contrasts[np.ix_(whole, inside)]
        variance[whole] = ((contrasts @ covariance) * contrasts).sum(1)
        of_pairs = np.full(self.differences.shape, np.inf)
        diagonal = np.diag(covariance)
        of_pairs[np.ix_(inside, inside)] = diagonal[:, None] + diagonal - 2 * covariance
        factor = known.unit * np.sqrt(known.dispersion)
        return factor * np.sqrt(np.maximum(variance, 0)), factor * np.sqrt(np.maximum(of_pairs[self.differences], 0))

    def width(self, known: BoardInformation, level: float) -> float:
        """Return the mean width of the intervals of the ratings, Elo; infinite if one of them has no rating."""
        return 2 * normal_quantile(level) * root_mean_square(self.errors(known)[0])

    def told_apart(self, known: BoardInformation, level: float, power: float) -> float:
        """Return the difference (Elo) of an average pair at which its interval leaves 0 out with that power."""
        z = normal_quantile(level) + float(scipy.special.ndtri(power))
        return z * root_mean_square(self.errors(known)[1])


def root_mean_square(errors: Float) -> float:
    """Return the root of the mean variance; infinite if one error is, or if there is none."""
    return float(np.sqrt((errors**2).mean())) if len(errors) else np.inf


def goal_of(known: BoardInformation, aim: Aim) -> Goal:
    """Return the goal on a board."""
    name, m = aim.name, len(known.models)
    above = np.triu(np.ones((m, m), bool), 1)
    if name == "pair":
        pair = aim.pair
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
            raise ValueError(f"pair must be two different names, got {pair!r}")
        a, b = (_number(known, model) for model in pair)
        contrasts = np.eye(m)[[a]] - np.eye(m)[[b]]
        words = f"the difference of {visible_line(known.models[a])} and {visible_line(known.models[b])}"
        both = np.zeros((m, m), bool)
        both[min(a, b), max(a, b)] = True
        return Goal(words, np.array([a, b]), contrasts, both, above)
    if name == "newcomer":
        models = np.array([_number(known, aim.newcomer)])
        allowed = np.zeros((m, m), bool)
        allowed[models] = allowed[:, models] = True
        others = ~known.unrated
        others[models] = True
        words, pairs = f"the rating of {visible_line(aim.newcomer)}", above & allowed
        differences = pairs & others & others[:, None]
    elif name == "top":
        rank = np.argsort(-np.where(np.isnan(known.strengths), -np.inf, known.strengths), kind="stable")
        n_rated = int((~np.isnan(known.strengths)).sum())
        rated = f"{known.competitor.many} with a rating"
        top = _TOP if aim.top is None else checked_integer("top", aim.top, 1)
        if not 2 <= top <= n_rated:
            raise ValueError(f"top must lie between 2 and {n_rated:,}, the {rated}, got {top:,}")
        models, pairs = np.sort(rank[:top]), above
        inside = np.isin(np.arange(m), models)
        words, differences = f"the ratings of the top {top}", above & inside[:, None] & inside
    else:
        models, pairs = np.arange(m), above
        words, differences = f"the ratings of {known.competitor.counted(m)}", above
    return Goal(words, models, (np.eye(m) - known.gauge)[models], differences, pairs)


def _number(known: BoardInformation, model: Hashable) -> int:
    if model not in known.models:
        hint = did_you_mean(model, known.models)
        raise ValueError(f"no {known.competitor.one} {model!r} on the board of {len(known.models):,}{hint}")
    return int(known.models.get_loc(model))
