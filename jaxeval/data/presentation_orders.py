"""Which side of a pair was shown first, which calls of judges are the two orders of a battle, and which count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.data import columns
from jaxeval.data.judge_calls import Calls, ReplyRules, read_calls, unread_error
from jaxeval.data.labels import Sides
from jaxeval.data.roles import is_plain, usual_column
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.options.columns import Unparsed
from jaxeval.plain_tables import objects
from jaxeval.wording import counted, listed

#: What to do about further calls of a judge on a pair in the same order.
Repeats = Literal["error", "first", "runs"]


class CalledPairs(NamedTuple):
    """The K calls that are used; all calls on one item and pair write the models in the same order."""

    #: Of each call its ``row`` in the table, judge, item, model_a, model_b, run; ``unit``, the number of the item and
    #: pair; ``b_first``; and ``origin``, the row of the first call on the item and pair.
    rows: pd.DataFrame
    told: tuple[str, ...]
    n_self: int
    told_apart: str  # what a column that tells repeated calls apart may be

    @property
    def battle(self) -> NDArray[np.intp]:
        """(K,) number of each call's battle, in the order of their first calls."""
        judge, run = (pd.factorize(self.rows[name])[0] for name in ("judge", "run"))
        return columns.group_numbers(judge, self.rows["unit"].to_numpy(), run)


def called_pairs(
    frame: pd.DataFrame, roles: dict[str, str | None], rules: ReplyRules, unparsed: Unparsed
) -> tuple[CalledPairs, Calls]:
    """Return the calls that can be read, and what all calls of the table say."""
    output, a, b = roles["output"], str(roles["model_a"]), str(roles["model_b"])
    if output is None:
        raise DataError(
            "no column of what the judge printed, such as 'output': name it with output= (on the command line "
            f"--output); the table has {listed(frame)}"
        )
    columns.require_column(frame, a, b)
    models, first, second = columns.encode_models(frame, a, b)
    judge, judges = _levels(frame, roles["judge"], ["judge"])
    item, items = _levels(frame, roles["item"], range(len(frame)))
    run, runs = _levels(frame, roles["run"], [0])
    shown = roles["shown_first"]
    advice = ""
    if shown is None and roles["item"] is not None:
        cells = np.column_stack([judge, item, run, first, second])
        cell = np.unique(cells, axis=0, return_inverse=True)[1].ravel()
        shown, advice = order_column(frame, cell, list(roles.values()))
    b_first = (
        np.zeros(len(frame), bool) if shown is None else second_side_first(frame[shown], shown, models, first, second)
    )
    is_self = first == second
    calls = read_calls(frame[output], judge, rules)
    if unparsed == "error" and (calls.unread & ~is_self).any():
        raise unread_error(frame[output], output, calls.wrong, calls.unread & ~is_self)
    kept = np.flatnonzero(~(calls.unread | is_self))
    if len(kept) == 0:
        raise DataError(
            f"no call is left of {counted(len(frame), 'row')}: {calls.unread.sum():,} cannot be read, and "
            f"{is_self.sum():,} are of a model against itself"
        )
    unit, flipped = pairs_of(item[kept], first[kept], second[kept], len(models))
    sides = np.asarray(models, object)[np.stack([first[kept], second[kept]])]
    sides = np.where(flipped, sides[::-1], sides)
    rows = pd.DataFrame({
        "row": kept, "judge": judges[judge[kept]], "item": items[item[kept]], "model_a": sides[0], "model_b": sides[1],
        "run": runs[run[kept]], "unit": unit, "b_first": b_first[kept] ^ flipped,
        "origin": kept[np.unique(unit, return_index=True)[1]][unit],
    })  # fmt: skip
    notes = (told_order(a) if shown is None else told_order(shown, frame[shown]), calls.unused)
    return CalledPairs(rows, tuple(filter(None, notes)), int(is_self.sum()), advice), calls


def _levels(frame: pd.DataFrame, column: str | None, without: Sequence[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return (N,) numbers and (L,) names of a column's values; without a column, those of the names ``without``."""
    number, names = columns.codes_of(frame, column, pd.Index(without))
    return number, np.array([columns.plain(name) for name in names], object)


def without_repeats(calls: CalledPairs, roles: dict[str, str | None], repeats: Repeats) -> tuple[CalledPairs, int]:
    """Drop repeats, calls of an order judged before, or keep them as further runs; count them."""
    rows, key = calls.rows, 2 * calls.battle + calls.rows["b_first"].to_numpy()
    times = pd.Series(key).groupby(key).cumcount().to_numpy()
    n = int((times > 0).sum())
    if n == 0 or repeats == "first":
        return calls._replace(rows=rows[times == 0].reset_index(drop=True)), n
    if repeats == "runs":
        numbered = [f"{run}/{k}" if k else run for run, k in zip(rows["run"], times, strict=True)]
        runs = pd.Series(np.array(times if roles["run"] is None else numbered, object))
        return calls._replace(rows=rows.assign(run=runs)), n
    row = rows.iloc[int((times > 0).argmax())]
    of = f"judge {row['judge']!r}, item {row['item']!r}, {row['model_a']!r} and {row['model_b']!r}"
    hint = "" if roles["shown_first"] else "; without a column of the order (--shown-first) model_a is shown first"
    hint = f". {calls.told_apart.strip(' .')}" if calls.told_apart else hint
    raise DataError(
        f"{counted(n, 'call repeats', 'calls repeat')} an order that the judge had judged before (first in row "
        f"{row['row']}: {of}; rows count from 0){hint}; name the column of runs with run= (--run), keep the first "
        "calls with repeats='first', or make runs of them with repeats='runs' (on the command line --repeats)"
    )


def in_both_orders(calls: CalledPairs, roles: dict[str, str | None], one_order: OneOrder) -> tuple[CalledPairs, int]:
    """Return the calls of the battles that count, and the number of battles that are judged in one order only."""
    battle = calls.battle
    one = np.bincount(battle) == 1
    n = int(one.sum())
    if n == 0 or one_order == "keep":
        return calls, n
    if one_order == "error":
        row = calls.rows.iloc[int(one[battle].argmax())]
        hint = "" if roles["item"] else "; no column says which item a call is about: name it with item= (--item)"
        raise DataError(
            f"{one_order_text(n, len(one))} (first in row {row['row']}: {row['model_a']!r} and {row['model_b']!r}, "
            f"item {row['item']!r}; rows count from 0){hint}; keep them with one_order='keep', or leave them out with "
            "one_order='drop' (on the command line --one-order)"
        )
    if one.all():
        raise DataError("no battle is judged in both orders, so that one_order='drop' leaves out all of them")
    return calls._replace(rows=calls.rows[~one[battle]].reset_index(drop=True)), n


#: What to do about battles that are judged in one order only.
OneOrder = Literal["error", "keep", "drop"]
_N_ORDERS = 2
_SEPARATE = "take rows as battles of their own with one_order='separate' (on the command line --one-order separate)"
_A_FIRST = ("model_a", "a", "ab", "a_first", "original", "first", "false", "0", "0.0")
_B_FIRST = ("model_b", "b", "ba", "b_first", "swapped", "reversed", "second", "true", "1", "1.0")
_WORDS = {columns.folded(word): which for which, words in enumerate((_A_FIRST, _B_FIRST)) for word in words}
#: These values say nothing about the order, unless the name of their column does.
_OF_SWAPS = {"false", "true", "0", "1", "0.0", "1.0", "first", "second"}
#: Two values that number the two orders, the usual order first.
_NUMBERED = ({"0", "1"}, {"1", "2"})
_SPEAK_OF_ORDER = ("order", "swap", "position", "presentation", "shown", "flip")


class Pairs(NamedTuple):
    """Items and pairs of models, called units here; the first row of a unit decides the order of its models."""

    unit: NDArray[np.intp]  # (N,) number of each row's item and pair
    flipped: Bool  # (N,) whether a row has the models the other way round than the first row of its unit


def pairs_of(item: NDArray[np.intp], first: NDArray[np.int32], second: NDArray[np.int32], n_models: int) -> Pairs:
    """Return the units of rows (N,): rows of one item and the same two models, in either order, are one unit."""
    low, high = np.minimum(first, second).astype(np.int64), np.maximum(first, second)
    unit, _ = pd.factorize((item * n_models + low) * n_models + high)
    start = np.unique(unit, return_index=True)[1]
    return Pairs(unit, first != first[start][unit])


def second_side_first(column: Any, name: str, models: Any, first: NDArray[np.int32], second: NDArray[np.int32]) -> Bool:
    """Give (N,) whether the second model of a row was shown first, by a column of names, or of words such as "swapped".

    Of the numbers 1 and 2, or 0 and 1, the smaller one is the order with the first model first.
    """
    codes, distinct = columns.factorized(column)
    columns.reject_missing(codes < 0, name)
    keys = [columns.folded(value) for value in distinct]
    known = [-1 if key in _OF_SWAPS and "swap" not in columns.folded(name) else _WORDS.get(key, -1) for key in keys]
    numbers = [_number_or_word(value) for value in distinct]
    if set(numbers) in _NUMBERED and "swap" not in columns.folded(name):
        known = [int(key == max(numbers)) for key in numbers]
    by_word = np.array(known, int)[codes]
    named = models.get_indexer(objects(list(distinct)))[codes]
    by_name = np.select([(named >= 0) & (named == second), (named >= 0) & (named == first)], [1, 0], -1)
    odd = (by_word < 0) & (by_name < 0)
    if odd.any():
        value = distinct[codes[odd.argmax()]]
        raise DataError(
            f"column {name!r} does not say which side was shown first in {counted(odd.sum(), 'row')}"
            f"{columns.first_place(odd)}: {str(value)[:60]!r}; known are the name of one of the two models, 'model_a' "
            "and 'model_b', 'AB' and 'BA', 'original' and 'swapped', 1 and 2 or 0 and 1, and, in a column with "
            "'swap' in its name, true and false"
        )
    unsure = (by_word >= 0) & (by_name >= 0) & (by_word != by_name)
    if unsure.any():
        raise DataError(
            f"column {name!r} may hold names of models, or words for the sides, with different results in "
            f"{counted(unsure.sum(), 'row')}{columns.first_place(unsure)}: give the models other names"
        )
    return np.where(by_name >= 0, by_name, by_word) == 1


def numbered_orders(column: Any) -> str:
    """Return how the two numbers of the orders in a column are read, in words; "" for a column of words or names."""
    numbers = sorted({_number_or_word(value) for value in columns.distinct_values(column)})
    return f"{numbers[0]} as model_a shown first, {numbers[1]} as model_b" if set(numbers) in _NUMBERED else ""


def told_order(name: str, column: pd.Series | None = None) -> str:
    """Return how the column of the side shown first is read, in words."""
    numbers = "" if column is None else numbered_orders(column)
    return f"column {name!r}: read as the side shown first{f' ({numbers})' if numbers else ''}"


def order_column(frame: pd.DataFrame, cell: NDArray[np.intp], besides: Sequence[str | None]) -> tuple[str | None, str]:
    """Find the column whose two values surely are the orders of rows of a ``cell`` (N,); or advice on one that may be.

    Most cells have both values, and none has one twice. Words such as AB and BA are an order, and so are numbers in a
    column whose name speaks of one: other numbers may count turns or runs.
    """
    advice = ""
    times = np.bincount(cell)
    if 2 * times[times > 1].sum() <= len(cell):
        return None, ""
    for name in [name for name in map(str, frame.columns) if name not in besides]:
        try:
            codes, values = columns.factorized(frame[name])
        except TypeError:  # lists
            continue
        if len(values) != _N_ORDERS or (codes < 0).any() or columns.seen_before(2 * cell + codes).any():
            continue
        words = {_number_or_word(value) for value in values}
        spoken = {_WORDS.get(word) for word in words - _OF_SWAPS} == {0, 1}
        numbers = words in _NUMBERED
        if spoken or (numbers and any(part in columns.folded(name) for part in _SPEAK_OF_ORDER)):
            return name, ""
        if numbers and not advice:
            advice = (
                f"Column {name!r} tells them apart: if its two values are the orders, the first model being shown "
                f"first in the first of them, say shown_first={name!r} (on the command line --shown-first {name}). "
            )
    return None, advice


def _number_or_word(value: Any) -> str:
    return columns.folded(str(value).removesuffix(".0"))


def rows_by_order(battle: NDArray[np.intp], b_first: Bool) -> NDArray[np.intp]:
    """Give (n, 2) row of each battle with its first model shown first, and with the second; -1 where there is none."""
    rows = np.full((battle.max(initial=-1) + 1, 2), -1)
    rows[battle, b_first.astype(int)] = np.arange(len(battle))
    return rows


def of_both_orders(target: Float) -> Float:
    """Return one target (...) of both orders' (..., 2): a side and a tie are the side, two different sides a tie."""
    known = ~np.isnan(target)
    return np.where(known.any(-1), (1 + np.sign(np.where(known, target - 0.5, 0).sum(-1))) / 2, np.nan)


def one_order_text(n_one: int, n_battles: int) -> str:
    """Return what is wrong with battles that are judged in one order, in words."""
    which = f"{n_one:,} of {n_battles:,} battles {'is' if n_one == 1 else 'are'}"
    if n_one == n_battles:
        which = "the only battle is" if n_battles == 1 else f"all {n_battles:,} battles are"
    return f"{which} judged in one order only, so that a preference for a position does not cancel out"


def in_turn(rows: NDArray[np.intp], values: Sequence[Float], middle: float) -> list[Float]:
    """Return (n,) values in both orders from those of rows (N,), mirrored at ``middle`` in the other order."""
    base, other = rows.T
    both = [(x[base], np.where(other < 0, np.nan, 2 * middle - x[other])) for x in values]
    return [of_order for orders in both for of_order in orders]


def one_label(rows: NDArray[np.intp], target: Float) -> Float:
    """Return (n,) the human label of each battle, which either of its rows (n, 2) or both may have."""
    label, other = in_turn(rows, [target], 0.5)
    differ = ~np.isnan(label + other) & (label != other)
    if differ.any():
        first, second = rows[differ.argmax()]
        raise DataError(
            f"human labels beside the two orders of {counted(differ.sum(), 'battle')} differ (first in rows "
            f"{first} and {second}; rows count from 0), but a battle has one label: correct them, or {_SEPARATE}"
        )
    return np.where(np.isnan(label), other, label)


def orders_in_rows(
    frame: pd.DataFrame, item: str | None, sides: Sides, one_order: str | None
) -> tuple[NDArray[np.intp] | None, str]:
    """Return (n, 2) the rows of battles if each row (N,) holds one order, or None; and what was found, in words.

    The first row has the battle's models and further columns, the other one the models the other way round; or is -1.

    If no column of items is named, rows are read like that if most battles have both orders, and none has one twice.
    """
    column = usual_column(frame, item, "item")
    if column is None:
        return None, ""
    names = [column, *(name for usual in ("judge", "run") if (name := usual_column(frame, None, usual)) is not None)]
    if odd := [name for name in names if not is_plain(frame[name])]:  # such as chat prompts
        if item is None:
            return None, ""
        raise DataError(
            f"column {odd[0]!r} holds lists or objects, which make no groups: name other items (item=, --item)"
        )
    number = frame.groupby(names, sort=False, dropna=False, observed=True).ngroup().to_numpy()
    pairs = pairs_of(number, sides.first, sides.second, len(sides.models))
    if not pairs.flipped.any():
        return None, ""
    row_of = np.flatnonzero(sides.first != sides.second)
    battle, b_first = pd.factorize(pairs.unit[row_of])[0], pairs.flipped[row_of]
    again = pd.Series(2 * battle + b_first).duplicated().to_numpy()
    rows = rows_by_order(battle, b_first)
    one = rows[:, 1] < 0
    both = int((~one).sum())
    if item is None and (again.any() or 2 * both < len(rows)):
        times = counted(both, "pair of models is", "pairs of models are")
        return None, (
            f"column {column!r}: {times} there in both orders, but each row is read as a battle of its own; "
            f"item={column!r} (--item {column}) makes two orders one battle"
        )
    if again.any():
        raise DataError(
            f"rows of one {', '.join(names)} have pairs of models in both orders, but "
            f"{counted(again.sum(), 'row repeats', 'rows repeat')} an order (first in row {row_of[again.argmax()]}; "
            f"rows count from 0): name the prompts with item= (--item), or {_SEPARATE}"
        )
    if one.any() and one_order is None:
        raise DataError(
            f"{one_order_text(int(one.sum()), len(one))} (first in row {row_of[rows[one][0, 0]]}; rows count from 0). "
            f"Battles are found by {', '.join(names)}: keep them with one_order='keep', leave them out with "
            f"one_order='drop' (on the command line --one-order), or {_SEPARATE}"
        )
    rows = rows[~one] if one_order == "drop" else rows
    message = f"column {column!r}: two rows with the models in both orders are one battle ({both:,} times)"
    left = f"; {one.sum():,} judged in one order {'left out' if one_order == 'drop' else 'kept'}" if one.any() else ""
    return np.where(rows < 0, -1, row_of[rows]), message + left
