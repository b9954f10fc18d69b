"""Which side of a pair was shown first, and the two orders of a battle that are rows of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.data.columns import first_place, folded, reject_missing, require_column
from jaxeval.data.labels import Sides
from jaxeval.errors import DataError
from jaxeval.wording import counted

#: What becomes of battles that are judged in one order.
OneOrder = Literal["error", "keep", "drop"]
#: Columns of prompts, of judges and of repeated runs, by which rows belong together, taken where none is named.
ITEM = ("item", "item_id", "question_id", "prompt_id", "instruction_id", "instruction_index", "question", "prompt")
JUDGE = ("judge", "judge_model", "judge_name")
RUN = ("run", "trial", "repetition")
#: Columns of what judges printed.
OUTPUT = (
    "output", "judge_output", "raw_judge_output", "raw_output", "reply", "judge_reply", "judge_response", "raw",
    "completion", "generated_text",
)  # fmt: skip
_SEPARATE = "take rows as battles of their own with one_order='separate' (on the command line --one-order separate)"
_A_FIRST = ("model_a", "a", "ab", "a_first", "original", "first", "false", "0", "0.0")
_B_FIRST = ("model_b", "b", "ba", "b_first", "swapped", "reversed", "second", "true", "1", "1.0")
_WORDS = {folded(word): which for which, words in enumerate((_A_FIRST, _B_FIRST)) for word in words}
#: Numbers and truth values say nothing of the order, unless their column does.
_OF_SWAPS = {"false", "true", "0", "1", "0.0", "1.0", "first", "second"}


def usual_column(frame: pd.DataFrame, given: str | None, usual: Sequence[str]) -> str | None:
    """The column that is ``given``, or else the first of ``usual`` names that is there however spelled, or None."""
    by_name = {folded(column): column for column in reversed(frame.columns)}
    found = given or next((by_name[folded(name)] for name in usual if folded(name) in by_name), None)
    if found is not None:
        require_column(frame, found)
    return found


class Pairs(NamedTuple):
    """Pairs of models on items, each always written in one order."""

    unit: NDArray[np.intp]  # (N,) number of each row's item and pair
    flipped: Bool  # (N,) whether the row writes its models the other way round than the unit's first row


def pairs_of(item: NDArray[np.intp], first: NDArray[np.int32], second: NDArray[np.int32], n_models: int) -> Pairs:
    """Rows (N,) of one item and the same two models, in whichever order."""
    low, high = np.minimum(first, second).astype(np.int64), np.maximum(first, second)
    unit, _ = pd.factorize((item * n_models + low) * n_models + high)
    start = np.unique(unit, return_index=True)[1]
    return Pairs(unit, first != first[start][unit])


def second_side_first(column: pd.Series, models: pd.Index, first: NDArray[np.int32], second: NDArray[np.int32]) -> Bool:
    """(N,) whether the second model of a row was shown first, by a column of names, or of words such as "swapped".

    Raises:
        DataError: values are missing, name neither side, or may be read in two ways.
    """
    name = str(column.name)
    reject_missing(column.isna().to_numpy(), name)
    codes, found = pd.factorize(column)
    keys = [folded(value) for value in found]
    known = [-1 if key in _OF_SWAPS and "swap" not in folded(name) else _WORDS.get(key, -1) for key in keys]
    by_word = np.array(known, int)[codes]
    named = models.get_indexer(pd.Index(found, dtype=object))[codes]
    by_name = np.select([(named >= 0) & (named == second), (named >= 0) & (named == first)], [1, 0], -1)
    odd = (by_word < 0) & (by_name < 0)
    if odd.any():
        value = column.iloc[int(odd.argmax())]
        raise DataError(
            f"column {name!r} does not say which side was shown first in {counted(odd.sum(), 'row')}"
            f"{first_place(odd)}: {str(value)[:60]!r}; known are the name of one of the two models, 'model_a' and "
            "'model_b', 'AB' and 'BA', 'original' and 'swapped'; and true and false in a column of swaps"
        )
    unsure = (by_word >= 0) & (by_name >= 0) & (by_word != by_name)
    if unsure.any():
        raise DataError(
            f"column {name!r} may hold names of models, or words for the sides, and the two differ in "
            f"{counted(unsure.sum(), 'row')}{first_place(unsure)}: give the models other names"
        )
    return np.where(by_name >= 0, by_name, by_word) == 1


def rows_by_order(battle: NDArray[np.intp], b_first: Bool) -> NDArray[np.intp]:
    """(n, 2) row of each battle with its first model shown first, and with the second; -1 where there is none."""
    rows = np.full((battle.max(initial=-1) + 1, 2), -1)
    rows[battle, b_first.astype(int)] = np.arange(len(battle))
    return rows


def one_order_text(n_one: int, n_battles: int) -> str:
    """What is wrong with battles that are judged in one order, in words."""
    which = f"all {n_battles:,} battles are" if n_one == n_battles else f"{n_one:,} of {n_battles:,} battles are"
    return f"{which} judged in one order only, so that a preference for a position does not cancel out"


class OrdersInRows(NamedTuple):
    """The rows of n battles, in both orders."""

    rows: NDArray[np.intp]  # (n, 2) with the models as the first row writes them, and the other way round; -1 for none

    @property
    def base(self) -> NDArray[np.intp]:
        """(n,) the row that a battle is written as."""
        return self.rows[:, 0]

    def turned(self, values: Sequence[Float], middle: float) -> list[Float]:
        """(n,) values of both orders by those of rows (N,), if there are any; mirrored at the middle for the other."""
        absent = self.rows[:, 1] < 0
        both = [(own[self.base], np.where(absent, np.nan, 2 * middle - own[self.rows[:, 1]])) for own in values]
        return [of_order for orders in both for of_order in orders]

    def one_label(self, target: Float) -> Float:
        """(n,) the human label of each battle, beside either row or both.

        Raises:
            DataError: labels beside the two rows differ.
        """
        own, other = self.turned([target], 0.5)
        differ = ~np.isnan(own + other) & (own != other)
        if differ.any():
            first, second = self.rows[differ.argmax()]
            raise DataError(
                f"human labels beside the two orders of {counted(differ.sum(), 'battle')} differ (first in rows "
                f"{first} and {second}; rows count from 0): a battle has one; correct them, or {_SEPARATE}"
            )
        return np.where(np.isnan(own), other, own)


def orders_in_rows(
    frame: pd.DataFrame, item: str | None, sides: Sides, one_order: str | None
) -> tuple[OrdersInRows | None, str]:
    """The orders of battles whose rows (N,) hold one each, or None; and what was found, in words.

    Where no column of items is named, rows are taken so if most battles have both orders, and none has one twice.

    Raises:
        DataError: some battles have one order; or, by the items that were named, an order twice.
    """
    column = usual_column(frame, item, ITEM)
    if column is None:
        return None, ""
    names = [column, *(name for usual in (JUDGE, RUN) if (name := usual_column(frame, None, usual)) is not None)]
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
            f"column {column!r}: {times} there in both orders, and rows are battles of their own; item={column!r} "
            f"(--item) makes two orders one battle"
        )
    if again.any():
        raise DataError(
            f"rows of one {', '.join(names)} have pairs of models in both orders, and {again.sum():,} repeat an order "
            f"(first in row {own[again.argmax()]}; rows count from 0): name the prompts with item= (--item), or "
            f"{_SEPARATE}"
        )
    if one.any() and one_order is None:
        raise DataError(
            f"{one_order_text(int(one.sum()), len(one))} (first in row {own[rows[one][0, 0]]}; rows count from 0), by "
            f"{', '.join(names)}: keep them with one_order='keep', leave them out with one_order='drop' (on the "
            f"command line --one-order), or {_SEPARATE}"
        )
    rows = rows[~one] if one_order == "drop" else rows
    told = f"column {column!r}: two rows with the models in both orders are one battle ({both:,} times)"
    left = f"; {one.sum():,} judged in one order {'left out' if one_order == 'drop' else 'kept'}" if one.any() else ""
    return OrdersInRows(np.where(rows < 0, -1, own[rows])), told + left
