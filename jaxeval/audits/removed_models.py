"""A board without one of its models: who is first then, and which of the others change their order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from jaxeval.arrays import Int
from jaxeval.audits.changed_boards import ChangedBoards, Entries
from jaxeval.tables.table import Table


def without_each_model(boards: ChangedBoards, order: Int) -> tuple[list[Any], pd.DataFrame]:
    """For neighbours in the ``order`` (R,) a model without which they swap, or ""; and a row for each model removed.

    The columns are ``removed``, ``first``, ``swapped``, ``moved`` and ``rank_change``, see `FewestVotes.models`. All
    but the first are missing where the votes of the others alone do not rate them all.
    """
    board, names, r = boards.board, boards.board.models, len(order)
    columns: dict[str, list[Any]] = {"removed": [], "first": [], "swapped": [], "moved": [], "rank_change": []}
    if r < 3:
        return [""] * (r - 1), pd.DataFrame(columns)
    n, wins = board.rated_tables()
    every = np.arange(len(n))
    entries = Entries(np.repeat(order[:, None], len(n), 1), np.tile(every, (r, 1)), -n[order], -wins[order])
    two_others = np.array([order[order != model][:2] for model in order])
    found = boards.refit(entries, np.tile(board.theta, (r, 1)), two_others, np.arange(r), "removed-models")
    gap = found.theta[:, order[:-1]] - found.theta[:, order[1:]]
    own = (order[:-1] == order[:, None]) | (order[1:] == order[:, None])
    gap = np.where(own | ~found.converged[:, None], np.inf, gap)
    least = gap.argmin(0)
    without = [names[order[k]] if gap[k, pair] < 0 else "" for pair, k in enumerate(least.tolist())]
    rows = []
    for model, theta, converged in zip(order, found.theta, found.converged, strict=True):
        row: dict[str, Any] = dict.fromkeys(columns) | {"removed": names[model]}
        if converged:
            others = order[order != model]
            theta = theta[others]
            change = np.argsort(np.argsort(-theta, kind="stable"), kind="stable") - np.arange(r - 1)
            most = int(np.abs(change).argmax())
            row |= {"first": names[others[theta.argmax()]], "swapped": np.triu(theta[:, None] < theta, 1).sum()}
            row |= {"moved": names[others[most]] if change[most] else "", "rank_change": change[most]}
        rows.append(row)
    table = pd.DataFrame(rows).astype({"swapped": "Int64", "rank_change": "Int64"})
    return without, Table.of(table, "The order of the others without a model")
