"""Tables of reference-anchored ratings, from verdicts or from counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.anchored import AnchoredElo, Link, anchored_elo
from jaxeval.anchored_verdicts import AnchoredVerdicts
from jaxeval.columns import DataError, numbers, require_column

Float = NDArray[np.float64]

COUNTS = ("wins", "ties", "losses")
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
    if isinstance(pool_size, str):
        require_column(table, pool_size)
    wins, ties, losses = (numbers(table[c], c) if c in table else np.zeros(len(table)) for c in COUNTS)
    pool: Any = numbers(table[pool_size], pool_size) if isinstance(pool_size, str) else pool_size
    found: AnchoredElo = anchored_elo(wins, ties, losses, prior, level, pool, kappa, link)
    scores = table.assign(**{name: np.asarray(getattr(found, name)) for name in _SHOWN})
    scores["informative"] = scores["probability"].between(0.2, 0.8)
    scores.attrs["settings"] = {
        "prior": found.prior, "level": found.level, "link": found.link, "pool_size": pool_size, "kappa": kappa,
    }  # fmt: skip
    return scores
