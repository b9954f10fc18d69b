"""The leaderboard: ratings, intervals, ranks and what they rest on, as one table."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from math import ceil
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd

from jaxeval.data.battles import Battles
from jaxeval.execution.processes import check_alike
from jaxeval.ratings.bootstrap import BootstrapOptions, Scheme, bootstrap
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.comparison import rank_spread
from jaxeval.ratings.contextual import ContextualFit
from jaxeval.ratings.contextual_bootstrap import ContextualBootstrap
from jaxeval.ratings.square_limits import MOST_COMPARISONS
from jaxeval.wording import counted

#: Under so many votes a rating is marked preliminary, as at the Arena.
PRELIMINARY_VOTES = 300


class LeaderboardOptions(BootstrapOptions, total=False):
    """What `leaderboard` hands on to `bootstrap`."""

    n_resamples: int
    seed: int
    scheme: Scheme
    by: str | Sequence[str] | None


def leaderboard(
    battles: Battles | Bootstrap | Mapping[Hashable, Bootstrap] | Any,
    *,
    level: float = 0.95,
    interval: Literal["percentile", "basic"] = "percentile",
    rank_at_most: int | Sequence[int] = (),
    **options: Unpack[LeaderboardOptions],
) -> pd.DataFrame:
    """Ratings with bootstrap intervals, best first.

    Args:
        battles: `Battles`, a table with the standard columns, or the result of `bootstrap` (whose settings then hold).
        level: of the intervals, and simultaneously of all differences for the tiers.
        interval: "percentile" or "basic".
        rank_at_most: k, or several: adds columns ``p_rank_<k>``, the share of resamples with rank k or better.
        **options: of `bootstrap`, by its names and with its defaults: ``n_resamples``, ``seed``, ``by``, ``cluster``,
            ``features`` and so on.

    Raises:
        TypeError: options beside the result of `bootstrap`.
        ValueError: as by `bootstrap`; a level, an interval or a rank that is none.
        DataError: as by `bootstrap`.
        ProcessError: as by `bootstrap`.

    Returns:
        One row a model (and category, with ``by``), sorted by rank, unrated models last:

        - ``model_name``; ``rating`` (the full-data fit), ``rating_lower``, ``rating_upper`` (Elo), ``variance`` (of
          the draws, Elo^2), ``vote_count``, ``rank`` (by rating), and ``category`` with ``by``;
        - ``rank_best``, ``rank_worst``: ranks that the intervals leave open;
        - ``tier``: models that the data cannot tell from their tier's leader share its tier; missing, with a warning,
          on boards so wide that comparing all pairs would take minutes;
        - ``component`` (1 = the largest group of models that met), ``standing`` ("undefeated", "winless", "not
          comparable", or empty), ``preliminary`` (under 300 votes), ``degenerate_share`` (share of resamples in
          which the model has no comparable rating).

        ``attrs`` holds ``warnings`` (list of sentences), ``report`` (what was read and left out) and ``settings``; with
        features or a tie model ``coefficients``, a list of records, the tie parameter among them.
    """
    if isinstance(battles, Bootstrap):
        boards: Mapping[Hashable, Bootstrap] = {None: battles}
    elif isinstance(battles, Mapping) and all(isinstance(b, Bootstrap) for b in battles.values()):
        boards = battles
    else:
        if isinstance(battles, Battles) and battles.n_processes > 1:
            check_alike({"level": level, "interval": interval, "rank_at_most": rank_at_most})
        result: Any = bootstrap(battles, **options)
        boards = {None: result} if options.get("by") is None else result
        options = {}
    if options:
        raise TypeError(f"the resamples are there: pass {', '.join(options)} to bootstrap(), which made them")
    if not boards:
        raise ValueError("no board to show: the mapping of bootstraps is empty")
    ks = [rank_at_most] if isinstance(rank_at_most, int | np.integer) else list(rank_at_most)
    names = [category_name(group) for group in boards]
    if len(set(names)) < len(names):  # values that hold the separator themselves
        names = list(map(str, boards))
    tables, warnings = [], []
    for name, board in zip(names, boards.values(), strict=True):
        table = _table(board, level, interval, ks)
        if name is not None:
            table.insert(7, "category", name)
        tables.append(table)
        own = [*board.warnings, *_no_tiers(board)]
        warnings += [w if name is None else f"{slice_title(name, board.settings.by)}: {w}" for w in own]
    first = next(iter(boards.values()))
    enough = ceil(2 / (1 - Fraction(str(level))))  # one draw in each tail
    if len(first.draws) < enough:
        warnings.append(
            f"{counted(len(first.draws), 'resample is', 'resamples are')} too few for {100 * level:g}% intervals, "
            f"whose tails each hold less than one of them: take {enough:,} or more"
        )
    table = pd.concat(tables, ignore_index=True)
    context = first.fit.context._asdict() if isinstance(first.fit, ContextualFit) else {}
    coefficients = [
        {**({} if name is None else {"category": name}), **record}
        for name, board in zip(names, boards.values(), strict=True)
        if isinstance(board, ContextualBootstrap)
        for record in board.coefficients(level).reset_index().to_dict("records")
    ]
    table.attrs = {
        "warnings": warnings,
        "report": str(first.fit.report),
        **({"coefficients": coefficients} if context else {}),
        "settings": {**asdict(first.settings), **context, "level": float(level), "interval": interval},
    }
    return table


def category_name(group: Hashable) -> Any:
    """A slice's name as one value: the columns' values joined where there are several; None for the whole board."""
    return " / ".join(map(str, group)) if isinstance(group, tuple) else group


def slice_title(name: Any, by: Sequence[str]) -> str:
    """A slice's name for readers, who may not know which column a number or a truth value is of."""
    return f"{' / '.join(by)} = {name}" if by else str(name)


def _no_tiers(board: Bootstrap) -> list[str]:
    """A sentence where tiers are left out."""
    if board.n_comparisons <= MOST_COMPARISONS:
        return []
    return [
        f"no tiers: {board.n_comparisons:,} differences, of all pairs of models in all resamples, are more than the "
        f"{MOST_COMPARISONS:,} that are compared"
    ]


def _tiers(board: Bootstrap, level: float) -> Any:
    if board.n_comparisons > MOST_COMPARISONS:
        return pd.array([pd.NA] * len(board.models), "Int64")
    return board.tiers(level).array


def _table(board: Bootstrap, level: float, interval: Literal["percentile", "basic"], ks: Sequence[int]) -> pd.DataFrame:
    fit = board.fit
    bounds = board.interval(level, interval)
    lower, upper = bounds["lower"].to_numpy(), bounds["upper"].to_numpy()
    rating = fit.ratings.to_numpy()
    rated = np.isfinite(rating)
    best, worst = rank_spread(lower, upper)
    rank = pd.Series(np.where(rated, rating, np.nan)).rank(ascending=False, method="min")
    table = pd.DataFrame(
        {
            "model_name": fit.ratings.index.to_numpy(),
            "rating": rating,
            "rating_lower": lower,
            "rating_upper": upper,
            "variance": np.where(rated, board.standard_errors.to_numpy() ** 2, np.nan),
            "vote_count": fit.n_battles.to_numpy(),
            "rank": rank.astype("Int64"),
            "rank_best": pd.array(best, "Int64"),
            "rank_worst": pd.array(worst, "Int64"),
            "tier": _tiers(board, level),
            **{f"p_rank_{k}": board.rank_share(k).to_numpy() for k in ks},
            "component": fit.component.to_numpy(),
            "standing": fit.standing.to_numpy(),
            "preliminary": fit.n_battles.to_numpy() < PRELIMINARY_VOTES,
            "degenerate_share": board.degenerate_share.to_numpy(),
        }
    )
    order = np.lexsort([table["model_name"].astype(str), -np.nan_to_num(rating), ~rated])
    return table.iloc[order].reset_index(drop=True)
