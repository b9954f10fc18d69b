"""How many votes a question takes, and what a number of votes can tell."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from jaxeval.arrays import Float
from jaxeval.checks import checked_numbers
from jaxeval.execution.precision import one_blas_thread
from jaxeval.planning.information import Aim, BoardInformation, GoalName
from jaxeval.planning.next_battles import (
    battles_at_random_for,
    battles_for,
    checked_share,
    choose,
    information,
    symmetric,
)
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.show.table import Table
from jaxeval.statistics.quantiles import checked_level
from jaxeval.wording import competitor_settings, counted

#: Numbers of votes that are looked at if nothing is asked.
_VOTES = (100, 300, 1_000, 3_000, 10_000)
_MOST_VOTES = 10**7


@one_blas_thread()
def plan_votes(
    fit: BradleyTerryFit | pd.Series | int,
    *,
    width: float | Sequence[float] = (),
    difference: float | Sequence[float] = (),
    votes: int | Sequence[int] = (),
    goal: GoalName | None = None,
    top: int | None = None,
    pair: tuple[Hashable, Hashable] | None = None,
    newcomer: Hashable | None = None,
    random: float = 0.2,
    level: float = 0.95,
    power: float = 0.8,
) -> Table:
    """Plan how many more votes a width of intervals or a difference of models takes, and what a number of votes tells.

    Two models that differ by d are told apart with the ``power`` if d is (z_level + z_power) standard errors of their
    difference, where z_level is the quantile of the two-sided interval. Votes are those of `next_battles`, or of pairs
    at random. Errors are those of the fit's information, times the spread of its results: ties make it smaller,
    clusters larger.

    Args:
        fit: of `fit_bradley_terry`; or, for a board without votes, expected ratings (Elo) by model, or a number of
            equal models, whose results are wins and losses.
        width: mean width (Elo) of the intervals of the ratings aimed at; one or several.
        difference: of two models (Elo), to be told from 0, for an average pair aimed at, or for the ``pair``; one or
            several.
        votes: numbers of further votes, one or several; if nothing is asked, some from 100 to 10,000.
        goal, top, pair, newcomer, random, level: as in `next_battles`.
        power: chance that the interval of a difference leaves 0 out.

    Returns:
        A row for each question: ``asked``; ``votes``, planned by `next_battles`; ``votes_at_random``, how many votes of
        random pairs do the same (missing where ten million are too few); and what the planned ones tell: ``width``, and
        the ``difference`` that they tell from 0.

    Raises:
        TypeError, ValueError, DataError: as in `next_battles`; or a number is not positive.

    Examples:
        Two equal models, and a board:

        >>> import jaxeval
        >>> jaxeval.plan_votes(2, difference=[20, 50])[["asked", "votes", "width"]].round(1).to_dict("list")
        {'asked': ['difference 20', 'difference 50'], 'votes': [2371, 379], 'width': [14.0, 35.0]}
        >>> fit = jaxeval.fit_bradley_terry(jaxeval.simulate_battles(2_000, 6, seed=0))
        >>> jaxeval.plan_votes(fit, votes=1_000, goal="top", top=3)[["width", "difference"]].round(1).to_dict("list")
        {'width': [30.5], 'difference': [31.7]}
    """
    share, level, power = checked_share(random), checked_level(level), checked_level(power, "power")
    aim = Aim(goal, top, pair, newcomer)
    known, aimed = information(fit, aim)

    def after(votes: int) -> BoardInformation:
        return known.with_battles(symmetric(choose(known, aimed, votes, share).expected)) if votes else known

    def row(asked: str, votes: int | None, good: Callable[[BoardInformation], bool]) -> dict[str, Any]:
        then, at_random = None if votes is None else after(votes), battles_at_random_for(known, aimed, good)
        return {
            "asked": asked, "votes": votes, "votes_at_random": at_random,
            "width": np.nan if then is None else aimed.width(then, level),
            "difference": np.nan if then is None else aimed.told_apart(then, level, power),
        }  # fmt: skip

    def narrow(width: float, then: BoardInformation) -> bool:
        return aimed.width(then, level) <= width

    def sharp(difference: float, then: BoardInformation) -> bool:
        return aimed.told_apart(then, level, power) <= difference

    widths, differences, whole = _positive("width", width), _positive("difference", difference), _whole(votes)
    questions = [(f"width {x:g}", partial(narrow, x)) for x in widths]
    questions += [(f"difference {x:g}", partial(sharp, x)) for x in differences]
    rows = [row(asked, battles_for(known, aimed, share, good), good) for asked, good in questions]
    for x in whole or ([] if rows else _VOTES):
        rows.append(row(counted(x, "vote"), x, partial(narrow, aimed.width(after(x), level))))
    table = pd.DataFrame(rows)
    table = table.astype({"votes": "Int64", "votes_at_random": "Int64"})
    settings = {"goal": aim.name, "random": share, "level": level, "power": power}
    answer = [
        f"{row['asked']}: {counted(row['votes'], 'vote')} of the plan tell a difference of {row['difference']:.1f} Elo"
        for row in table.dropna().to_dict("records")
    ]
    made = settings | competitor_settings(known.competitor)
    table.attrs = {"answer": "\n".join(answer), "settings": made, "warnings": []}
    return Table.of(table, f"Votes for {aimed.words}", elo="width")


def _positive(name: str, values: float | Sequence[float]) -> Float:
    numbers = checked_numbers(name, values)
    if not (np.isfinite(numbers) & (numbers > 0)).all():
        raise ValueError(f"{name} must be finite and > 0, got {values!r}")
    return numbers


def _whole(votes: int | Sequence[int]) -> list[int]:
    numbers = checked_numbers("votes", votes)
    if not ((numbers >= 1) & (numbers <= _MOST_VOTES) & (numbers == np.floor(numbers))).all():
        raise ValueError(f"votes must be whole numbers from 1 to {_MOST_VOTES:,}, got {votes!r}")
    return [int(n) for n in numbers]
