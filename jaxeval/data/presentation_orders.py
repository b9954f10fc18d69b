"""Which side of a pair was shown first, and battles whose two orders are in two rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.data.columns import first_place, folded, reject_missing
from jaxeval.data.labels import Sides
from jaxeval.data.roles import usual_column
from jaxeval.errors import DataError
from jaxeval.wording import counted

#: What to do about battles that are judged in one order only.
OneOrder = Literal["error", "keep", "drop"]
_N_ORDERS = 2
_SEPARATE = "take rows as battles of their own with one_order='separate' (on the command line --one-order separate)"
_A_FIRST = ("model_a", "a", "ab", "a_first", "original", "first", "false", "0", "0.0")
_B_FIRST = ("model_b", "b", "ba", "b_first", "swapped", "reversed", "second", "true", "1", "1.0")
_WORDS = {folded(word): which for which, words in enumerate((_A_FIRST, _B_FIRST)) for word in words}
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
    """The units of rows (N,): rows of one item and the same two models, in either order, are one unit."""
    low, high = np.minimum(first, second).astype(np.int64), np.maximum(first, second)
    unit, _ = pd.factorize((item * n_models + low) * n_models + high)
    start = np.unique(unit, return_index=True)[1]
    return Pairs(unit, first != first[start][unit])


def second_side_first(column: pd.Series, models: pd.Index, first: NDArray[np.int32], second: NDArray[np.int32]) -> Bool:
    """(N,) whether the second model of a row was shown first, by a column of names, or of words such as "swapped".

    Of the numbers 1 and 2, or 0 and 1, the smaller one is the order with the first model first.

    Raises:
        DataError: values are missing, name neither side, or can be read in two ways.
    """
    name = str(column.name)
    reject_missing(column.isna().to_numpy(), name)
    codes, found = pd.factorize(column)
    keys = [folded(value) for value in found]
    known = [-1 if key in _OF_SWAPS and "swap" not in folded(name) else _WORDS.get(key, -1) for key in keys]
    numbers = [_number_or_word(value) for value in found]
    if set(numbers) in _NUMBERED and "swap" not in folded(name):
        known = [int(key == max(numbers)) for key in numbers]
    by_word = np.array(known, int)[codes]
    named = models.get_indexer(pd.Index(found, dtype=object))[codes]
    by_name = np.select([(named >= 0) & (named == second), (named >= 0) & (named == first)], [1, 0], -1)
    odd = (by_word < 0) & (by_name < 0)
    if odd.any():
        value = column.iloc[int(odd.argmax())]
        raise DataError(
            f"column {name!r} does not say which side was shown first in {counted(odd.sum(), 'row')}"
            f"{first_place(odd)}: {str(value)[:60]!r}; known are the name of one of the two models, 'model_a' and "
            "'model_b', 'AB' and 'BA', 'original' and 'swapped', 1 and 2 or 0 and 1, and, in a column with "
            "'swap' in its name, true and false"
        )
    unsure = (by_word >= 0) & (by_name >= 0) & (by_word != by_name)
    if unsure.any():
        raise DataError(
            f"column {name!r} may hold names of models, or words for the sides, with different results in "
            f"{counted(unsure.sum(), 'row')}{first_place(unsure)}: give the models other names"
        )
    return np.where(by_name >= 0, by_name, by_word) == 1


def numbered_orders(column: pd.Series) -> str:
    """How the two numbers of the orders in a column are read, in words; "" for a column of words or names."""
    numbers = sorted({_number_or_word(value) for value in column.dropna().unique()})
    return f"{numbers[0]} as model_a shown first, {numbers[1]} as model_b" if set(numbers) in _NUMBERED else ""


def order_columns(frame: pd.DataFrame, cell: NDArray[np.intp], besides: Sequence[str | None]) -> tuple[list[str], bool]:
    """The columns whose two values tell the rows of each ``cell`` (N,) apart, and whether the first is surely an order.

    Most cells have both values, and none has one twice. Words such as AB and BA are an order, and so are numbers in a
    column whose name speaks of one: other numbers may count turns or runs.
    """
    if 2 * pd.Series(cell).duplicated(keep=False).sum() <= len(cell):
        return [], False
    sure, maybe = list[str](), list[str]()
    for name in [name for name in map(str, frame.columns) if name not in besides]:
        try:
            codes, values = pd.factorize(frame[name])
        except TypeError:  # lists
            continue
        if len(values) != _N_ORDERS or (codes < 0).any() or pd.Series(2 * cell + codes).duplicated().any():
            continue
        words = {_number_or_word(value) for value in values}
        spoken = {_WORDS.get(word) for word in words - _OF_SWAPS} == {0, 1}
        numbers = words in _NUMBERED
        if spoken or (numbers and any(part in folded(name) for part in _SPEAK_OF_ORDER)):
            sure.append(name)
        elif numbers:
            maybe.append(name)
    return [*sure, *maybe], bool(sure)


def told_apart(columns: Sequence[str]) -> str:
    """What columns that tell repeated rows apart may be, in words."""
    name = columns[0]
    return (
        f"Column {name!r} tells them apart: if its two values are the orders, the first model being shown first in the "
        f"first of them, say shown_first={name!r} (on the command line --shown-first {name}). "
    )


def _number_or_word(value: Any) -> str:
    return folded(str(value).removesuffix(".0"))


def rows_by_order(battle: NDArray[np.intp], b_first: Bool) -> NDArray[np.intp]:
    """(n, 2) row of each battle with its first model shown first, and with the second; -1 where there is none."""
    rows = np.full((battle.max(initial=-1) + 1, 2), -1)
    rows[battle, b_first.astype(int)] = np.arange(len(battle))
    return rows


def one_order_text(n_one: int, n_battles: int) -> str:
    """What is wrong with battles that are judged in one order, in words."""
    which = f"{n_one:,} of {n_battles:,} battles {'is' if n_one == 1 else 'are'}"
    if n_one == n_battles:
        which = "the only battle is" if n_battles == 1 else f"all {n_battles:,} battles are"
    return f"{which} judged in one order only, so that a preference for a position does not cancel out"


class OrdersInRows(NamedTuple):
    """The rows of n battles, in both orders."""

    rows: NDArray[np.intp]  # (n, 2) row with the models as in the battle's first row, and the other way round; or -1

    @property
    def base(self) -> NDArray[np.intp]:
        """(n,) the row that gives a battle its models and further columns."""
        return self.rows[:, 0]

    def turned(self, values: Sequence[Float], middle: float) -> list[Float]:
        """(n,) values in both orders from values of rows (N,); those of the other order are mirrored at ``middle``."""
        absent = self.rows[:, 1] < 0
        both = [(own[self.base], np.where(absent, np.nan, 2 * middle - own[self.rows[:, 1]])) for own in values]
        return [of_order for orders in both for of_order in orders]

    def one_label(self, target: Float) -> Float:
        """(n,) the human label of each battle, which either row or both may have.

        Raises:
            DataError: the labels of the two rows differ.
        """
        own, other = self.turned([target], 0.5)
        differ = ~np.isnan(own + other) & (own != other)
        if differ.any():
            first, second = self.rows[differ.argmax()]
            raise DataError(
                f"human labels beside the two orders of {counted(differ.sum(), 'battle')} differ (first in rows "
                f"{first} and {second}; rows count from 0), but a battle has one label: correct them, or {_SEPARATE}"
            )
        return np.where(np.isnan(own), other, own)


def orders_in_rows(
    frame: pd.DataFrame, item: str | None, sides: Sides, one_order: str | None
) -> tuple[OrdersInRows | None, str]:
    """The orders of battles if each row (N,) holds one order, or None; and what was found, in words.

    If no column of items is named, rows are read like that if most battles have both orders, and none has one twice.

    Raises:
        DataError: some battles have one order only; or, with a named column of items, an order twice.
    """
    column = usual_column(frame, item, "item")
    if column is None:
        return None, ""
    names = [column, *(name for usual in ("judge", "run") if (name := usual_column(frame, None, usual)) is not None)]
    number = frame.groupby(names, sort=False, dropna=False, observed=True).ngroup().to_numpy()
    pairs = pairs_of(number, sides.first, sides.second, len(sides.models))
    if not pairs.flipped.any():
        return None, ""
    own = np.flatnonzero(sides.first != sides.second)
    battle, b_first = pd.factorize(pairs.unit[own])[0], pairs.flipped[own]
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
            f"{counted(again.sum(), 'row repeats', 'rows repeat')} an order (first in row {own[again.argmax()]}; rows "
            f"count from 0): name the prompts with item= (--item), or {_SEPARATE}"
        )
    if one.any() and one_order is None:
        raise DataError(
            f"{one_order_text(int(one.sum()), len(one))} (first in row {own[rows[one][0, 0]]}; rows count from 0). "
            f"Battles are found by {', '.join(names)}: keep them with one_order='keep', leave them out with "
            f"one_order='drop' (on the command line --one-order), or {_SEPARATE}"
        )
    rows = rows[~one] if one_order == "drop" else rows
    told = f"column {column!r}: two rows with the models in both orders are one battle ({both:,} times)"
    left = f"; {one.sum():,} judged in one order {'left out' if one_order == 'drop' else 'kept'}" if one.any() else ""
    return OrdersInRows(np.where(rows < 0, -1, own[rows])), told + left
