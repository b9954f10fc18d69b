"""Calls of judges on pairs of models: which can be read, which count, and which are the two orders of a battle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool
from jaxeval.data.columns import encode_models, factorize_sorted, plain, require_column
from jaxeval.data.judge_calls import Calls, ReplyRules, Unparsed, read_calls, unread_error
from jaxeval.data.presentation_orders import (
    OneOrder,
    numbered_orders,
    one_order_text,
    order_columns,
    pairs_of,
    second_side_first,
    told_apart,
)
from jaxeval.errors import DataError
from jaxeval.wording import counted

#: What to do about further calls of a judge on a pair in the same order.
Repeats = Literal["error", "first", "runs"]


class CalledPairs(NamedTuple):
    """K calls that are used; all calls on one item and pair write the models in the same order."""

    row: NDArray[np.intp]  # (K,) of the table
    judge: NDArray[Any]  # (K,) names
    item: NDArray[Any]
    run: NDArray[Any]
    unit: NDArray[np.intp]  # (K,) number of the item and pair
    model_a: NDArray[Any]
    model_b: NDArray[Any]
    b_first: Bool
    origin: NDArray[np.intp]  # (K,) row, in the table, of the first call on the item and pair
    told: tuple[str, ...] = ()
    n_self: int = 0
    told_apart: str = ""  # what a column that tells repeated calls apart may be

    def take(self, which: Bool) -> CalledPairs:
        """The calls that a mask (K,) selects."""
        return self._replace(**{name: getattr(self, name)[which] for name in self._fields[:9]})

    @property
    def battle(self) -> NDArray[np.intp]:
        """(K,) number of each call's battle, in the order of their first calls."""
        judge, run = (pd.factorize(names)[0] for names in (self.judge, self.run))
        return pd.factorize((judge * (self.unit.max() + 1) + self.unit) * (run.max() + 1) + run)[0]


def called_pairs(
    frame: pd.DataFrame, roles: dict[str, str | None], rules: ReplyRules, unparsed: Unparsed
) -> tuple[CalledPairs, Calls]:
    """The calls that can be read, and what all calls of the table say."""
    output, a, b = roles["output"], str(roles["model_a"]), str(roles["model_b"])
    if output is None:
        have = ", ".join(map(repr, frame.columns))
        raise DataError(
            "no column of what the judge printed, such as 'output': name it with output= (on the command line "
            f"--output); the table has {have}"
        )
    require_column(frame, a)
    require_column(frame, b)
    models, first, second = encode_models(frame, a, b)
    judge, judges = _levels(frame, roles["judge"], ["judge"])
    item, items = _levels(frame, roles["item"], range(len(frame)))
    run, runs = _levels(frame, roles["run"], [0])
    shown = roles["shown_first"]
    maybe = list[str]()
    if shown is None and roles["item"] is not None:
        cells = np.column_stack([judge, item, run, first, second])
        cell = np.unique(cells, axis=0, return_inverse=True)[1].ravel()
        found, is_order = order_columns(frame, cell, list(roles.values()))
        shown, maybe = (found[0], []) if is_order else (None, found)
    b_first = np.zeros(len(frame), bool) if shown is None else second_side_first(frame[shown], models, first, second)
    numbers = "" if shown is None else numbered_orders(frame[shown])
    told = f"column {shown or a!r}: read as the side shown first{f' ({numbers})' if numbers else ''}"
    is_self = first == second
    calls = read_calls(frame[output], judge, rules)
    if unparsed == "error" and (calls.unread & ~is_self).any():
        raise unread_error(frame[output], calls.wrong, calls.unread & ~is_self)
    kept = np.flatnonzero(~(calls.unread | is_self))
    if len(kept) == 0:
        raise DataError(
            f"no call is left of {counted(len(frame), 'row')}: {calls.unread.sum():,} cannot be read, and "
            f"{is_self.sum():,} are of a model against itself"
        )
    pairs = pairs_of(item[kept], first[kept], second[kept], len(models))
    sides = np.asarray(models, object)[np.stack([first[kept], second[kept]])]
    sides = np.where(pairs.flipped, sides[::-1], sides)
    start = np.unique(pairs.unit, return_index=True)[1]
    rows = CalledPairs(
        row=kept, origin=kept[start][pairs.unit], unit=pairs.unit, judge=judges[judge[kept]],
        item=items[item[kept]], run=runs[run[kept]],
        model_a=sides[0], model_b=sides[1], b_first=b_first[kept] ^ pairs.flipped,
        told=(told, *([calls.unused] if calls.unused else [])),
        n_self=int(is_self.sum()), told_apart=told_apart(maybe) if maybe else "",
    )  # fmt: skip
    return rows, calls


def _levels(frame: pd.DataFrame, column: str | None, without: Sequence[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """(N,) numbers and (L,) names of a column's values; without a column, those of the names ``without``."""
    if column is None:
        number = np.arange(len(frame)) if len(without) == len(frame) else np.zeros(len(frame), np.intp)
        return number, np.array(without, object)
    number, names = factorize_sorted(frame[column], column)
    return number, np.array([plain(name) for name in names], object)


def without_repeats(rows: CalledPairs, roles: dict[str, str | None], repeats: Repeats) -> tuple[CalledPairs, int]:
    """The calls without repeats, calls of an order judged before, or with them as further runs; and their number."""
    key = 2 * rows.battle + rows.b_first
    times = pd.Series(key).groupby(key).cumcount().to_numpy()
    n = int((times > 0).sum())
    if n == 0 or repeats == "first":
        return rows.take(times == 0), n
    if repeats == "runs":
        numbered = [f"{run}/{k}" if k else run for run, k in zip(rows.run, times, strict=True)]
        return rows._replace(run=np.array(times if roles["run"] is None else numbered, object)), n
    k = int((times > 0).argmax())
    of = f"judge {rows.judge[k]!r}, item {rows.item[k]!r}, {rows.model_a[k]!r} and {rows.model_b[k]!r}"
    hint = "" if roles["shown_first"] else "; without a column of the order (--shown-first) model_a is shown first"
    hint = f". {rows.told_apart.strip(' .')}" if rows.told_apart else hint
    raise DataError(
        f"{counted(n, 'call repeats', 'calls repeat')} an order that the judge had judged before (first in row "
        f"{rows.row[k]}: {of}; rows count from 0){hint}; name the column of runs with run= (--run), keep the first "
        "calls with repeats='first', or make runs of them with repeats='runs' (on the command line --repeats)"
    )


def in_both_orders(rows: CalledPairs, roles: dict[str, str | None], one_order: OneOrder) -> tuple[CalledPairs, int]:
    """The calls of the battles that count, and the number of battles that are judged in one order only."""
    battle = rows.battle
    one = np.bincount(battle) == 1
    n = int(one.sum())
    if n == 0 or one_order == "keep":
        return rows, n
    if one_order == "error":
        k = int(one[battle].argmax())
        hint = "" if roles["item"] else "; no column says which item a call is about: name it with item= (--item)"
        raise DataError(
            f"{one_order_text(n, len(one))} (first in row {rows.row[k]}: {rows.model_a[k]!r} and {rows.model_b[k]!r}, "
            f"item {rows.item[k]!r}; rows count from 0){hint}; keep them with one_order='keep', or leave them out with "
            "one_order='drop' (on the command line --one-order)"
        )
    if one.all():
        raise DataError("no battle is judged in both orders, so that one_order='drop' leaves out all of them")
    return rows.take(~one[battle]), n
