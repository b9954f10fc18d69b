"""Which battles to judge next: those that tell most, some at random, and the chance that each had to be chosen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import checked_integer, checked_number, checked_positive
from jaxeval.execution.precision import one_blas_thread, versions
from jaxeval.planning.information import (
    Aim,
    BoardInformation,
    Goal,
    GoalName,
    expected_gains,
    goal_of,
    information_of,
    information_without_votes,
    planned_battles,
    root_mean_square,
)
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.show.shown import Answer, Part, Result, settings_line
from jaxeval.show.table import Table
from jaxeval.statistics.quantiles import checked_level, normal_quantile
from jaxeval.wording import Noun, competitor_of, competitor_settings, counted, named, visible_line

#: The most battles of a plan: each may be written as a row.
_MOST_BATTLES = 10**7
#: A plan that is to make intervals no narrower than this, as a multiple of those of random pairs, may save nothing:
#: on simulated boards where .93 and .97 were expected, errors were 1.00 and 1.01 times those of random pairs.
_LITTLE = 0.93


class Chosen(NamedTuple):
    """Battles of each pair (M, M), above the diagonal."""

    planned: Int  # because they tell most
    drawn: Int  # at random
    expected: Float  # how many there are on average over what is drawn


@dataclass(frozen=True, eq=False, repr=False)
class NextBattles(Result):
    """Battles to judge next.

    Widths are those of intervals at the level of the plan, Elo. Their mean is the root of the mean square, as the goal
    is a mean variance. It is infinite if a rating aimed at is not known.

    ``battles`` has a row per pair: ``model_a, model_b, n_battles``; ``n_at_random``, those of them that were drawn and
    not planned; ``propensity``, the chance that a battle of this plan is of this pair; ``weight``, its inverse relative
    to pairs at random, whose weight is 1; and ``gain``, what the first such battle is expected to take off the mean
    variance of the ratings that are aimed at, Elo^2. ``expected`` has the mean width, now and after these battles:
    with equal weights, with inverse propensities, and after as many battles between pairs at random. ``by_model`` has a
    row for each of the ratings aimed at.

    Examples:
        >>> import jaxeval
        >>> fit = jaxeval.fit_bradley_terry(jaxeval.simulate_battles(2_000, 6, seed=0))
        >>> plan = jaxeval.next_battles(fit, 300, goal="top", top=2)
        >>> plan.each().shape
        (300, 4)
        >>> plan.expected.loc[["now", "planned", "at random"], "width"].round(1).tolist()
        [42.5, 35.9, 39.0]
    """

    battles: pd.DataFrame
    expected: pd.DataFrame
    by_model: pd.DataFrame
    gains: pd.DataFrame  # (M, M) expected gain of one more battle of each pair, Elo^2
    goal: str  # in words
    warnings: list[str]
    settings: dict[str, Any] = field(repr=False)

    @property
    def competitor(self) -> Noun:
        """What meets in the battles, in a word and its plural."""
        return competitor_of(self.settings)

    @property
    def n_battles(self) -> int:
        """How many battles there are."""
        return int(self.battles["n_battles"].sum())

    def _sentences(self) -> list[str]:
        n, drawn, best = self.n_battles, int(self.battles["n_at_random"].sum()), self.battles.iloc[0]
        models = " and ".join(visible_line(best[side]) for side in ("model_a", "model_b"))
        width = self.expected["width"]
        now = f"{width['now']:,.1f} Elo wide now" if np.isfinite(width["now"]) else "of unknown width now"
        sentences = [
            f"{counted(n, 'battle')} for {self.goal}: {n - drawn:,} that tell most, and {drawn:,} at random.",
            f"They are of {counted(len(self.battles), 'pair')}; {counted(best['n_battles'], 'is', 'are')} between "
            f"{models}.",
            f"Intervals are {now} (mean), and {width['planned']:,.1f} after these battles; as many battles between "
            f"pairs at random would leave {width['at random']:,.1f}.",
        ]
        if width["planned"] > _LITTLE * width["at random"]:
            sentences.append(
                "The plan saves so little that pairs at random (random=1, on the command line --random 1) may do as "
                "well, as plans rest on ratings that have errors."
            )
        sentences.append("Fit the new votes together with the old ones, all with equal weights.")
        if "inverse propensities" in width:
            sentences[-1] += (
                " A fit by inverse propensities checks whether the choice of pairs moved the ratings: its intervals "
                f"would be {width['inverse propensities']:,.1f} wide."
            )
        return sentences

    def each(self) -> pd.DataFrame:
        """Return a row per battle, ``model_a, model_b, propensity, weight``, in random order with random sides."""
        rng = np.random.default_rng([self.settings["seed"], 1])
        table = self.battles.loc[self.battles.index.repeat(self.battles["n_battles"])]
        table = table.iloc[rng.permutation(len(table))][["model_a", "model_b", "propensity", "weight"]]
        swap, sides = rng.random(len(table)) < 0.5, table[["model_a", "model_b"]].to_numpy()
        sides[swap] = sides[swap][:, ::-1]
        table = table.assign(model_a=sides[:, 0], model_b=sides[:, 1]).reset_index(drop=True)
        return Table.of(table, f"{counted(len(table), 'battle')} for {self.goal}")

    def _shown(self) -> Answer:
        title = f"NextBattles: {counted(self.n_battles, 'battle')} for {self.goal}"
        return Answer(title, self.battles, self.settings, self.warnings)

    def _in_full(self, view: Answer) -> Answer:
        noun, settings = self.competitor, self.settings
        expected = self.expected.reset_index()
        gain, of_mean = "gain: what the first such battle takes off the mean variance, Elo^2", "(mean, Elo)"
        shown = self.battles.drop(columns=["propensity", "weight"]).rename(columns={"n_at_random": "at_random"})
        after, by = expected.rename(columns={"battles": "after"}), f"Expected intervals by {noun.one} (width, Elo)"
        return view._replace(
            title=f"Battles for {self.goal}",
            notes=[f"{settings_line(settings)}, random share {settings['random']:g}; {settings['versions']}"],
            parts=[
                Part("Battles", shown, gain, rows="pair", kept=("model_b", "n_battles"), competitor=noun),
                Part(f"Expected intervals of {self.goal} {of_mean}", after),
                Part(by, self.by_model, rows=noun, competitor=noun, more=True),
            ],
            tables={"battles": self.battles, "expected": expected, "by_model": self.by_model},
        )


@one_blas_thread()
def next_battles(
    fit: BradleyTerryFit | pd.Series | int,
    k: int | None = None,
    *,
    goal: GoalName | None = None,
    top: int | None = None,
    pair: tuple[Hashable, Hashable] | None = None,
    newcomer: Hashable | None = None,
    width: float | None = None,
    random: float = 0.2,
    level: float = 0.95,
    seed: int = 0,
) -> NextBattles:
    """Return the ``k`` battles that are worth most, with the chance that each had to be chosen.

    One more battle of i and j is expected to take w (S_ii + S_jj - 2 S_ij) / (1 + w (C_ii + C_jj - 2 C_ij)) off the
    mean variance of the ratings aimed at, where C is the inverse information of the battles so far, S = C W C, W the
    goal, and w the information of the battle. Battles are planned one after the other, each the best after those before
    it. A share of them is of pairs drawn at random, every model as often as any other. So every pair is looked at some
    time, and all models stay connected.

    Fit the new votes together with the old ones, all with equal weights. Choosing pairs moves ratings if the model does
    not hold exactly. A fit that weighs battles by their inverse propensities does not have this bias, but its errors
    are so much larger that it is a check and no replacement: ``expected`` says how large. For it, read the new votes
    with ``propensity="propensity"``; or, together with older ones whose pairs were drawn at random and which weigh 1,
    with ``weight="weight"``.

    Models without a rating, and newcomers, are taken to be like the mean of the others (undefeated ones above all,
    winless ones below all). Their first battles tell most for the whole board, and ``warnings`` name them.

    Args:
        fit: of `fit_bradley_terry`; or, for a board without votes, expected ratings (Elo) by model, or a number of
            equal models. With covariates, battles are planned as if these were equal on both sides.
        k: number of battles; None to find the number that the ``width`` takes.
        goal: "board", all ratings, for which pairs at random are nearly as good where all models have as many votes;
            "top", those of the ``top`` best; "pair", the difference of two models; "newcomer", the rating of one model,
            which is in every battle. By default it is what the other options are about.
        top: how many models the top has; 10 by default.
        pair: the two models.
        newcomer: the model, which need not be in the fit.
        width: mean width (Elo) that the intervals of the ratings aimed at are to have (root mean square).
        random: share of battles between random pairs. With 1 this is the balanced sampling of arXiv:2606.13221,
            Appendix A: a newcomer meets every other model equally often.
        level: of the intervals.
        seed: of the random pairs.

    Returns:
        The battles, the widths that are expected, and what is not known.

    Raises:
        TypeError: ``fit`` is no fit of battles.
        ValueError: an option out of range, both or none of ``k`` and ``width``, an unknown model, a width that no
            number of battles reaches, or a fit of a tie model: give its ``expected_score``.
        DataError: the fit did not converge.

    Examples:
        >>> import jaxeval
        >>> fit = jaxeval.fit_bradley_terry(jaxeval.simulate_battles(2_000, 6, seed=0))
        >>> plan = jaxeval.next_battles(fit, 20, pair=("model-2", "model-3"))
        >>> plan.battles[["model_a", "model_b", "n_battles", "propensity"]].head(1).round(3).to_dict("list")
        {'model_a': ['model-2'], 'model_b': ['model-3'], 'n_battles': [16], 'propensity': [0.813]}
        >>> anchors = jaxeval.next_battles(fit, newcomer="new", width=60)
        >>> anchors.n_battles, anchors.expected["width"]["planned"].round(1)
        (405, np.float64(60.0))
    """
    if (k is None) == (width is None):
        raise ValueError("give either k, the number of battles, or width=, the mean width of intervals after them")
    share, level, seed = checked_share(random), checked_level(level), checked_integer("seed", seed)
    aim = Aim(goal, top, pair, newcomer)
    known, aimed = information(fit, aim)
    wanted = None if width is None else checked_positive("width", width)
    if wanted is None:
        k = checked_integer("k", k, 1)
        if k > _MOST_BATTLES:
            raise ValueError(f"k must be at most {_MOST_BATTLES:,}, got {k:,}")
    else:
        needed = battles_for(known, aimed, share, lambda after: aimed.width(after, level) <= wanted)
        if needed == 0:
            now = f"{aimed.width(known, level):.4g} Elo"
            raise ValueError(f"intervals of {aimed.words} are no wider than {wanted:g} Elo already: {now} (mean)")
        if needed is None:
            raise ValueError(
                f"no number of battles up to {_MOST_BATTLES:,} brings intervals of {aimed.words} to {wanted:g} Elo"
            )
        k = needed
    assert k is not None
    chosen = choose(known, aimed, k, share, np.random.default_rng(seed))
    settings: dict[str, Any] = {
        "goal": aim.name, "k": k, "random": share, "level": level, "seed": seed, "versions": versions(),
    }  # fmt: skip
    settings |= competitor_settings(known.competitor)
    states = _states(known, aimed, chosen)
    errors = {name: aimed.errors(state)[0] for name, state in states.items()}
    mean = pd.Series({name: root_mean_square(error) for name, error in errors.items()})
    expected = pd.DataFrame({"standard_error": mean, "width": 2 * normal_quantile(level) * mean})
    gains = known.unit**2 * expected_gains(known.covariance(), aimed.matrix, known.worth)
    return NextBattles(
        battles=_table(known, aimed, chosen, gains),
        expected=Table.of(expected.rename_axis("battles"), f"Expected intervals of {aimed.words}", elo="width"),
        by_model=_by_model(known, aimed, chosen, {name: errors[name] for name in ("now", "planned")}, level),
        gains=pd.DataFrame(gains, known.models, known.models), goal=aimed.words,
        warnings=_warnings(known, aimed, chosen), settings=settings,
    )  # fmt: skip


def checked_share(random: Any) -> float:
    """Return ``random`` as a share."""
    share = checked_number("random", random)
    if not 0 <= share <= 1:
        raise ValueError(f"random must be a share from 0 to 1, got {random!r}")
    return share


def information(fit: BradleyTerryFit | pd.Series | int, aim: Aim) -> tuple[BoardInformation, Goal]:
    """Return what is known of a board, by a fit or without votes, and the goal on it."""
    _ = aim.name  # what it refuses, the board need not be looked at for
    if isinstance(fit, pd.Series | int | np.integer):
        known = information_without_votes(fit)
    else:
        known = information_of(fit, aim.newcomer)
    return known, goal_of(known, aim)


def choose(
    known: BoardInformation, goal: Goal, k: int, random: float, rng: np.random.Generator | None = None
) -> Chosen:
    """Return ``k`` battles; without ``rng`` none is drawn at random, and only ``expected`` has all of them.

    A share of random battles that is no whole number is rounded up or down by chance.
    """
    m = len(known.models)
    planned, drawn = np.zeros((2, m, m), np.int64)
    whole, part = divmod(random * k, 1)
    n_drawn = int(whole)
    turns = planned_battles(known.covariance(), goal.matrix, known.worth, goal.pairs, k - n_drawn)
    for i, j, times in turns:
        planned[min(i, j), max(i, j)] += times
    expected = planned + random * k / goal.pairs.sum() * goal.pairs
    if turns and part > 0:
        last = tuple(sorted(turns[-1][:2]))
        expected[last] -= part
        if rng is not None and rng.random() < part:
            planned[last] -= 1
            n_drawn += 1
    if rng is not None:
        drawn += at_random(goal.pairs, n_drawn, rng)
    return Chosen(planned, drawn, expected)


def at_random(pairs: Bool, n: int, rng: np.random.Generator) -> Int:
    """Give (M, M) ``n`` battles out of ``pairs``; all models, or all opponents of a newcomer, are drawn equally often.

    Every pair has the same expected number. Pairs of all models come in the rounds of a tournament, in each of which
    every model meets one other, and the models are numbered at random.
    """
    m = len(pairs)
    times, rest = divmod(n, int(pairs.sum()))
    battles = times * pairs.astype(np.int64)
    if pairs.sum() < m * (m - 1) // 2:
        i, j = (rng.permutation(np.argwhere(pairs))[:rest]).T
    else:
        i, j = _rounds(rng.permutation(m), rest)
    np.add.at(battles, (np.minimum(i, j), np.maximum(i, j)), 1)
    return battles


def _rounds(models: Int, n: int) -> tuple[Int, Int]:
    """Return the first ``n`` pairs of a tournament (the circle method)."""
    m = len(models)
    even = m + m % 2  # an odd one is free
    turn = np.arange(-(-n // (m // 2)))[:, None]
    circle = np.hstack([np.zeros_like(turn), 1 + (np.arange(even - 1) + turn) % (even - 1)])
    first, second = circle[:, : even // 2].reshape(-1), circle[:, : even // 2 - 1 : -1].reshape(-1)
    there = np.maximum(first, second) < m
    return models[first[there][:n]], models[second[there][:n]]


def symmetric(table: Any) -> Float:
    """Return (M, M) with the entries above the diagonal also below it."""
    return np.asarray(table + table.T, np.float64)


def battles_for(
    known: BoardInformation, goal: Goal, random: float, good: Callable[[BoardInformation], bool]
) -> int | None:
    """Return the fewest battles after which the information is ``good``: 0 if it is good now, None above ten million.

    Pairs are chosen for a number of battles, and the number is found for their shares, by turns.
    """

    def enough(each: Float, n: int) -> bool:
        return good(known.with_battles(n * each))

    if good(known):
        return 0
    k = 100
    for _ in range(8):
        each = symmetric(choose(known, goal, k, random).expected) / k
        number = fewest(partial(enough, each), k)
        if number is None:
            return None
        before, k = k, number
        if abs(k - before) <= 0.01 * k:
            break
    while not good(known.with_battles(symmetric(choose(known, goal, k, random).expected))):
        k += max(1, k // 200)
    return k


def battles_at_random_for(known: BoardInformation, goal: Goal, good: Callable[[BoardInformation], bool]) -> int | None:
    """Return what `battles_for` does, of battles between pairs at random."""
    each = symmetric(goal.pairs) / goal.pairs.sum()
    return 0 if good(known) else fewest(lambda n: good(known.with_battles(n * each)), 100)


def fewest(good: Callable[[int], bool], guess: int) -> int | None:
    """Return the least number, to 1 in 500, that is ``good``, as all greater ones are; None above ten million."""
    low, high = 0, guess
    while not good(high):
        low, high = high, 2 * high
        if high > _MOST_BATTLES:
            return None
    while low == 0 and high > 1:
        if not good(half := high // 2):
            low = half
        else:
            high = half
    while high - low > max(1, high // 500):
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def _states(known: BoardInformation, goal: Goal, chosen: Chosen) -> dict[str, BoardInformation]:
    k, n_pairs = chosen.expected.sum(), goal.pairs.sum()
    expected = symmetric(chosen.expected)
    uniform = symmetric(k / n_pairs * goal.pairs)
    states = {"now": known, "planned": known.with_battles(expected)}
    if (chosen.expected[goal.pairs] > 0).all():
        weight = np.divide(uniform, expected, out=np.zeros_like(uniform), where=expected > 0)
        states["inverse propensities"] = known.with_battles(expected, weight)
    return states | {"at random": known.with_battles(uniform)}


def _table(known: BoardInformation, goal: Goal, chosen: Chosen, gains: Float) -> pd.DataFrame:
    times = chosen.planned + chosen.drawn
    i, j = np.nonzero(times)
    k = chosen.expected.sum()
    propensity = chosen.expected[i, j] / k
    table = pd.DataFrame({
        "model_a": known.models[i], "model_b": known.models[j], "n_battles": times[i, j],
        "n_at_random": chosen.drawn[i, j], "propensity": propensity, "weight": 1 / (goal.pairs.sum() * propensity),
        "gain": gains[i, j],
    })  # fmt: skip
    table = table.sort_values(["n_battles", "gain"], ascending=False, kind="stable", ignore_index=True)
    return Table.of(table, f"Battles for {goal.words}", percent="propensity", weight="weight")


def _by_model(
    known: BoardInformation, goal: Goal, chosen: Chosen, errors: Mapping[str, Float], level: float
) -> pd.DataFrame:
    """Return the models whose ratings are aimed at; those of a pair share their difference."""
    times = symmetric(chosen.planned + chosen.drawn).sum(1)[goal.models].astype(np.int64)
    table = pd.DataFrame({"model": known.models[goal.models], "n_battles": times})
    for name, error in errors.items():
        table[f"width_{name}"] = 2 * normal_quantile(level) * np.broadcast_to(error, times.shape)
    return Table.of(table, f"Expected intervals of {goal.words}")


def _warnings(known: BoardInformation, goal: Goal, chosen: Chosen) -> list[str]:
    sentences, unrated = [], known.unrated
    if unrated.any():
        theirs = int(np.triu(symmetric(chosen.planned + chosen.drawn) * (unrated | unrated[:, None])).sum())
        have, them = ("has", "it") if unrated.sum() == 1 else ("have", "them")
        battles = counted(theirs, "battle of this plan connects", "battles of this plan connect")
        then = f"goal='board' connects all {known.competitor.many}, and newcomer= one of them"
        then = "Plan again once these are judged, as strengths are assumed till then" if theirs else then
        sentences.append(
            f"{named(known.models[unrated])} {have} no rating so far: {battles} {them} with the others. {then}"
        )
    if not (chosen.expected[goal.pairs] > 0).all():
        sentences.append(
            "some pairs have no chance to be chosen, which inverse propensities cannot correct: plan a share of random "
            "battles (random=, on the command line --random)"
        )
    return sentences
