"""Tables of reference-anchored ratings, from verdicts or from counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.anchored import LINKS, AnchoredElo, Link, anchored_elo
from jaxeval.anchored_verdicts import ROLES, AnchoredVerdicts
from jaxeval.columns import DataError, numbers, reject_missing, require_column
from jaxeval.gauge import ELO_PER_LOGIT
from jaxeval.item_resampling import resampled_sums
from jaxeval.progress import progress_bar
from jaxeval.quantiles import bounds_with_failures

Float = NDArray[np.float64]
Int = NDArray[np.int64]

COUNTS = ("wins", "ties", "losses")
_TIES = {"tie", "draw", "draws", "n_ties", "n_draws"}
_DRAWS = 2**23  # sums of resamples held at a time
_SHOWN = (
    "probability", "probability_lower", "probability_upper", "probability_se", "rating", "rating_lower", "rating_upper",
    "rating_se", "own_lower", "own_upper",
)  # fmt: skip


def count_verdicts(verdicts: AnchoredVerdicts, by: Sequence[str] = ("model", "judge", "anchor")) -> pd.DataFrame:
    """Wins, ties and losses of every group, the runs of a prompt averaged first.

    A group's prompt counts once, whatever its runs; of several judges or references in a group, too. Outcomes between a
    win and a tie, or a tie and a loss, count as that much of each.

    Returns:
        A row per group: the columns ``by``, ``wins, ties, losses`` (they may be fractional) and ``n_items``.
    """
    group, table = verdicts.groups(by)
    cell, _ = pd.factorize(group * len(verdicts.levels["item"]) + verdicts.number["item"])
    weight = 1 / np.bincount(cell)[cell]
    win, loss = np.maximum(2 * verdicts.outcome - 1, 0), np.maximum(1 - 2 * verdicts.outcome, 0)
    for name, share in zip(COUNTS, (win, 1 - win - loss, loss), strict=True):
        table[name] = np.bincount(group, weight * share, len(table))
    of_cell = pd.Series(group).groupby(cell).first().to_numpy()
    return table.assign(n_items=np.bincount(of_cell, minlength=len(table)))


def anchored_scores(
    data: AnchoredVerdicts | pd.DataFrame,
    by: Sequence[str] = ("model", "judge", "anchor"),
    *,
    prior: float = 0.5,
    level: float = 0.95,
    pool_size: float | str | None = None,
    kappa: float = 1.0,
    link: str | Link = "logit",
) -> pd.DataFrame:
    """Reference-anchored ratings of every group of verdicts, or of every row of a table of counts.

    Args:
        data: verdicts; or a DataFrame with the columns ``wins``, ``ties`` (0 if absent) and ``losses``.
        by: roles that make the groups of verdicts: "model", "judge", "anchor", "task", "run".
        pool_size: prompts that the group's were drawn from, or the column of counts that has it.
        prior: as in `anchored_elo`, like ``level``, ``kappa`` and ``link``.

    Returns:
        The table with the fields of `AnchoredElo`, and ``informative``: whether the probability lies in [0.2, 0.8].

    Raises:
        DataError: counts are missing or not numeric; ValueError as in `anchored_elo`.
    """
    if isinstance(data, AnchoredVerdicts):
        table = count_verdicts(data, by)
    else:
        table = data.reset_index(drop=True)
        require_column(table, "wins")
        require_column(table, "losses")
        if len(table) == 0:
            raise DataError("the table has no rows")
        named = [c for c in table if str(c).lower() in _TIES]
        if named and "ties" not in table:
            raise DataError(f"no column 'ties', but {named[0]!r}: rename it, or drop it if there were no ties")
        for role in ROLES:
            if role in table:
                reject_missing(table[role].isna().to_numpy(), role)
    if isinstance(pool_size, str):
        require_column(table, pool_size)
    wins, ties, losses = (numbers(table[c], c) if c in table else np.zeros(len(table)) for c in COUNTS)
    pool: Any = numbers(table[pool_size], pool_size) if isinstance(pool_size, str) else pool_size
    found: AnchoredElo = anchored_elo(wins, ties, losses, prior, level, pool, kappa, link)
    scores = table.assign(**{name: np.asarray(getattr(found, name)) for name in _SHOWN})
    scores["informative"] = scores["probability"].between(0.2, 0.8)
    scores.attrs["settings"] = {
        "prior": found.prior, "level": found.level, "link": found.link, "kappa": kappa,
        # pandas compares attrs of tables that it joins, which arrays do not stand.
        "pool_size": pool_size if np.isscalar(pool_size) else None if pool_size is None else "by row",
    }  # fmt: skip
    return scores


def bootstrap_scores(
    verdicts: AnchoredVerdicts,
    by: Sequence[str] = ("model", "judge", "anchor"),
    *,
    n_resamples: int = 1000,
    prior: float = 0.5,
    level: float = 0.95,
    link: str | Link = "logit",
    seed: int = 0,
    progress: bool | None = None,
) -> pd.DataFrame:
    """`anchored_scores` with percentile intervals of resampled prompts, all groups at once.

    The Beta interval holds for wins and losses of independent prompts; resampled prompts show what ties and averaged
    runs leave of it. With "task" in ``by`` each task's prompts are resampled among themselves. A prompt keeps its
    runs, and the other judges or references of its group, which are averaged first.

    Args:
        seed: the same seed gives the same draws.
        progress: whether to show a progress bar; by default on a terminal.

    Returns:
        The table with ``boot_lower, boot_upper`` of the probability and ``rating_boot_lower, rating_boot_upper``; they
        are NaN where a group has a single prompt.

    Raises:
        ValueError: as in `anchored_elo`, or there are fewer than two resamples.
    """
    if n_resamples < 2:
        raise ValueError(f"n_resamples must be at least 2, got {n_resamples!r}")
    table = anchored_scores(verdicts, by, prior=prior, level=level, link=link)
    group, _ = verdicts.groups(by)
    lower, upper = np.empty(len(table)), np.empty(len(table))
    strata = verdicts.number["task"] if "task" in by else np.zeros(len(group), np.int64)
    with progress_bar(len(table) * n_resamples, "resampled scores", progress) as advance:
        for rows in _by_value(strata):
            groups, which = np.unique(group[rows], return_inverse=True)
            _, item = np.unique(verdicts.number["item"][rows], return_inverse=True)
            n_items = int(item.max()) + 1
            size = max(1, _DRAWS // max(n_resamples, n_items))
            for start in range(0, len(groups), size):
                part = groups[start : start + size]
                own = (which >= start) & (which < start + size)
                cell = item[own] * len(part) + which[own] - start
                times = np.bincount(cell, minlength=n_items * len(part)).reshape(n_items, -1)
                total = np.bincount(cell, verdicts.outcome[rows][own], n_items * len(part)).reshape(n_items, -1)
                outcome = total / np.maximum(times, 1)
                n: Any = n_items
                if (times > 0).all():  # as usual: half of the columns would be ones
                    won = resampled_sums(outcome, n_resamples, seed, "anchored")
                else:
                    drawn = resampled_sums(np.concatenate([outcome, times > 0], 1), n_resamples, seed, "anchored")
                    won, n = np.split(drawn, 2, axis=1)
                p = np.where(n > 0, (won + prior) / (n + 2 * prior), np.nan)
                _, lower[part], upper[part], _ = bounds_with_failures(p, level, 0.0, 1.0)
                advance(len(part) * n_resamples)
    chosen = LINKS[link] if isinstance(link, str) else link
    single = (table["n_items"] < 2).to_numpy()  # the one prompt drawn again would feign certainty
    lower[single] = upper[single] = np.nan
    table["boot_lower"], table["boot_upper"] = lower, upper
    with np.errstate(divide="ignore"):
        for end in ("lower", "upper"):
            table[f"rating_boot_{end}"] = ELO_PER_LOGIT * chosen.map(table[f"boot_{end}"].to_numpy())
    return table


def _by_value(number: Int) -> list[Int]:
    """Row numbers of each value, in the order of the values."""
    order = np.argsort(number, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
