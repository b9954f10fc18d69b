"""What battles are to make known: all ratings, those of the best, a difference, or a newcomer's rating."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import scipy

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import checked_integer
from jaxeval.planning.information import Information
from jaxeval.statistics.quantiles import normal_quantile
from jaxeval.wording import did_you_mean, visible_line

GoalName = Literal["board", "top", "pair", "newcomer"]
#: How many models the top has where nobody says it.
_TOP = 10


class Aim(NamedTuple):
    """What is asked for; see `next_battles`."""

    goal: GoalName | None = None
    top: int | None = None
    pair: tuple[Hashable, Hashable] | None = None
    newcomer: Hashable | None = None

    @property
    def name(self) -> GoalName:
        """The goal. If none is named, it is the one that the other options are about.

        Raises:
            ValueError: there is no such goal, or the options are about another one.
            TypeError: the newcomer is no name, but a list, say.
        """
        meant: GoalName = "board" if self.top is None else "top"
        if self.newcomer is not None:
            meant = "newcomer"
        elif self.pair is not None:
            meant = "pair"
        name = self.goal or meant
        if name not in ("board", "top", "pair", "newcomer"):
            raise ValueError(f"goal must be 'board', 'top', 'pair' or 'newcomer', got {name!r}")
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

    def errors(self, known: Information) -> tuple[Float, Float]:
        """(R,) standard errors of the ratings, and (D,) of the differences, Elo; infinite where nothing compares."""
        inside, covariance = known.variances(self.models)
        variance = np.full(len(self.contrasts), np.inf)
        whole = ~self.contrasts[:, ~inside].any(1)
        own = self.contrasts[np.ix_(whole, inside)]
        variance[whole] = ((own @ covariance) * own).sum(1)
        of_pairs = np.full(self.differences.shape, np.inf)
        diagonal = np.diag(covariance)
        of_pairs[np.ix_(inside, inside)] = diagonal[:, None] + diagonal - 2 * covariance
        factor = known.unit * np.sqrt(known.dispersion)
        return factor * np.sqrt(np.maximum(variance, 0)), factor * np.sqrt(np.maximum(of_pairs[self.differences], 0))

    def width(self, known: Information, level: float) -> float:
        """Mean width of the intervals of the ratings, Elo; infinite if one of them has no rating."""
        return 2 * normal_quantile(level) * root_mean_square(self.errors(known)[0])

    def told_apart(self, known: Information, level: float, power: float) -> float:
        """The difference (Elo) of an average pair at which its interval leaves 0 out with that power."""
        z = normal_quantile(level) + float(scipy.special.ndtri(power))
        return z * root_mean_square(self.errors(known)[1])


def root_mean_square(errors: Float) -> float:
    """The root of the mean variance; infinite if one error is, or if there is none."""
    return float(np.sqrt((errors**2).mean())) if len(errors) else np.inf


def goal_of(known: Information, aim: Aim) -> Goal:
    """The goal on a board.

    Raises:
        ValueError: a model is not on the board, or there are fewer than ``top`` with a rating.
    """
    name, m = aim.name, len(known.models)
    above = np.triu(np.ones((m, m), bool), 1)
    if name == "pair":
        assert aim.pair is not None
        a, b = (_number(known, model) for model in _two(aim.pair))
        contrasts = np.eye(m)[[a]] - np.eye(m)[[b]]
        words = f"the difference of {visible_line(known.models[a])} and {visible_line(known.models[b])}"
        both = np.zeros((m, m), bool)
        both[min(a, b), max(a, b)] = True
        return Goal(words, np.array([a, b]), contrasts, both, above)
    if name == "newcomer":
        models = np.array([_number(known, aim.newcomer)])
        own = np.zeros((m, m), bool)
        own[models] = own[:, models] = True
        others = ~known.unrated
        others[models] = True
        words, pairs = f"the rating of {visible_line(aim.newcomer)}", above & own
        differences = pairs & others & others[:, None]
    elif name == "top":
        rank = np.argsort(-np.where(np.isnan(known.strengths), -np.inf, known.strengths), kind="stable")
        n_rated = int((~np.isnan(known.strengths)).sum())
        rated = f"{known.competitor.many} with a rating"
        top = _TOP if aim.top is None else checked_integer("top", aim.top, 1)
        if not 2 <= top <= n_rated:
            raise ValueError(f"top must lie between 2 and {n_rated:,}, the {rated}, got {top:,}")
        models, pairs = np.sort(rank[:top]), above
        words, differences = f"the ratings of the top {top}", _within(models, above)
    else:
        models, pairs = np.arange(m), above
        words, differences = f"the ratings of {known.competitor.counted(m)}", above
    return Goal(words, models, (np.eye(m) - known.gauge)[models], differences, pairs)


def _within(models: Int, above: Bool) -> Bool:
    own = np.zeros(len(above), bool)
    own[models] = True
    return above & own[:, None] & own


def _two(pair: tuple[Hashable, Hashable]) -> tuple[Hashable, Hashable]:
    if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError(f"pair must be two different names, got {pair!r}")
    return pair


def _number(known: Information, model: Hashable) -> int:
    if model not in known.models:
        hint = did_you_mean(model, known.models)
        raise ValueError(f"no {known.competitor.one} {model!r} on the board of {len(known.models):,}{hint}")
    return int(known.models.get_loc(model))
