"""Votes with ids: each counts once, in whatever files it comes again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.data.battle_rows import n_battles_of
from jaxeval.data.battles import Battles
from jaxeval.data.columns import first_place
from jaxeval.errors import DataError
from jaxeval.wording import counted


def votes_once(battles: Battles, column: str, before: Battles | None = None) -> tuple[Battles | None, list[str]]:
    """The votes whose id is not met before, and sentences on the others; None for the votes if there are none.

    Args:
        battles: single votes, with a column of ids. Ids are compared as text, so that 7 of a CSV file and 7.0 of a
            column with gaps are the same.
        column: that of the ids; it holds text afterwards.
        before: votes that count already, with such a column of text.

    Raises:
        DataError: an id is missing, or rows stand for several votes.
    """
    ids = _ids(battles, column)
    battles = _single(battles, column, ids)
    again = pd.Series(ids).duplicated().to_numpy()
    known = np.zeros(len(ids), bool) if before is None else pd.Index(before.column(column)).get_indexer(ids) >= 0
    told = []
    if n := battles.report.n_repeated + int((again & ~known).sum()):
        told.append(f"{counted(n, 'vote is', 'votes are')} left out, as other rows have the same {column}")
    if before is not None and known.any():
        n, differ = int(known.sum()), _n_differ(battles, ids, known, before, column)
        changed = f"; {differ:,} of them differ from the vote of that id, which stays" if differ else ""
        told.append(f"{counted(n, 'vote is', 'votes are')} there already, by {column}{changed}")
    new = ~again & ~known
    if new.all():
        return battles, told
    if not new.any():
        return None, told
    n_repeated, n_excluded = battles.report.n_repeated + int((~new).sum()), battles.report.n_excluded
    found = battles.filter(new)
    return replace(found, report=replace(found.report, n_repeated=n_repeated, n_excluded=n_excluded)), told


def _ids(battles: Battles, column: str) -> NDArray[np.object_]:
    """The id of each row, as text."""
    values = battles.column(column)
    if (missing := values.isna().to_numpy()).any():
        n = counted(int(missing.sum()), "vote has", "votes have")
        place = first_place(missing, battles.rows)
        raise DataError(f"{n} no {column!r}{place}: a vote without an id cannot be told from others; add it, or leave "
                        "--id out")  # fmt: skip
    if pd.api.types.is_float_dtype(values.dtype) and (values == np.floor(values)).all():
        values = values.astype("int64")
    return values.astype(str).to_numpy(object)


def _single(battles: Battles, column: str, ids: NDArray[np.object_]) -> Battles:
    """One vote for each row, where reading has merged equal rows, which here have the same id."""
    times = np.ones(battles.n_rows, np.int64) if battles.rows is None else battles.rows.times
    count = np.ones(battles.n_rows, np.int64) if battles.count is None else battles.count
    kept = np.arange(battles.n_rows) if battles.kept is None else battles.kept
    if (count != times).any() or len(np.unique(kept)) < len(kept):
        raise DataError(f"rows stand for several votes, and cannot have one {column!r} each: leave --id out")
    n_more = int(times.sum()) - battles.n_rows
    columns = battles.columns.iloc[kept].reset_index(drop=True).assign(**{column: ids})
    battles = replace(battles, columns=columns, kept=None, count=None)
    if not n_more:
        return battles
    report = replace(
        battles.report, n_battles=battles.n_rows, n_ties=n_battles_of(battles.target == 0.5, None), n_repeated=n_more
    )
    return replace(battles, report=report, rows=None)


def _n_differ(
    battles: Battles, ids: NDArray[np.object_], known: NDArray[np.bool_], before: Battles, column: str
) -> int:
    """Votes that are known, and were between other models or had another result then."""
    there = pd.Index(before.column(column)).get_indexer(ids[known])

    def votes(own: Battles, rows: NDArray[np.intp]) -> pd.DataFrame:
        first, second = (own.models[side[rows]].astype(str) for side in (own.model_a, own.model_b))
        swap = np.asarray(first > second)
        target = own.target[rows]
        return pd.DataFrame({
            "first": np.where(swap, second, first),
            "second": np.where(swap, first, second),
            "target": np.where(swap, 1 - target, target),
        })  # fmt: skip

    return int((votes(battles, np.flatnonzero(known)) != votes(before, there)).any(axis=1).sum())
