"""Outcomes of battles from columns: labels, one-hot columns, soft targets, counts, and numbers of a named coding."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.columns import Rows, count_rows, numbers, reject_missing, reject_values, whole_numbers
from jaxeval.errors import DataError
from jaxeval.wording import counted, did_you_mean

LabelCoding = Literal["a_wins_1", "a_wins_0", "labels"]

ONE_HOT_COLUMNS = ("winner_model_a", "winner_model_b", "winner_tie")
#: Of a table of counts: battles that side A won, that were ties, that side B won.
COUNT_COLUMNS = ("wins_a", "ties", "wins_b")

#: What a table's result may be, in words.
EXPECTED_RESULTS = (
    f"'winner', 'target', the one-hot columns {', '.join(ONE_HOT_COLUMNS)}, or the counts {', '.join(COUNT_COLUMNS)}"
)

_BOTH_BAD = ("tie (bothbad)", "tie_bothbad", "both_bad")
_TARGET_OF_LABEL = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5, **dict.fromkeys(_BOTH_BAD, 0.5)}
_TARGET_OF_NUMBER = {0.0: 0.0, 0.5: 0.5, 1.0: 1.0}


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Results of K battles, or of several equal ones each; of a table of counts, three a row."""

    row: NDArray[np.intp] | None  # (K,) row of the table that each is from; None: the rows themselves
    target: Float  # (K,) probability that side A wins
    both_bad: Bool  # (K,) whether the label is both-bad
    count: Int | None  # (K,) battles of a row of the input, maybe none; None: one each


def read_outcomes(
    frame: pd.DataFrame, winner: str | None, target: str | None, count: str | None, rows: Rows | None = None
) -> Outcomes:
    """The results in a table; arguments as of `Battles.from_pandas`."""
    if winner is None and target is None and has_counts(frame.columns):
        if count is not None:
            raise ValueError(f"the columns {', '.join(COUNT_COLUMNS)} are counts already: leave count= out")
        counts = np.stack([whole_numbers(frame[c], c, rows) for c in COUNT_COLUMNS], 1)
        none = np.zeros(counts.size, bool)
        row = np.repeat(np.arange(len(frame)), len(COUNT_COLUMNS))
        return Outcomes(row, np.tile([1.0, 0.5, 0.0], len(frame)), none, counts.reshape(-1))
    values, both_bad = targets(frame, winner, target, rows)
    return Outcomes(None, values, both_bad, None if count is None else whole_numbers(frame[count], count, rows))


def has_counts(columns: Container[Any]) -> bool:
    """Whether a table of these columns is one of counts: no other result comes first."""
    others = any(c in columns for c in ("winner", "target")) or all(c in columns for c in ONE_HOT_COLUMNS)
    return not others and all(c in columns for c in COUNT_COLUMNS)


def reject_unnamed_count(columns: Container[Any]) -> None:
    """An error if there is a column "count" beside the result of single battles, neither of which anybody named."""
    result = next((c for c in ("winner", "target", ONE_HOT_COLUMNS[0]) if c in columns), None)
    if "count" not in columns or result is None or has_counts(columns):
        return
    alone = f"name the result ({result}={result!r}, on the command line --{result} {result})"
    raise DataError(
        f"the table has a column 'count' beside {result!r}: name it (count='count', on the command line --count count) "
        "if its rows stand for so many battles each, or "
        f"{'drop or rename it' if result in ONE_HOT_COLUMNS else alone} if they do not"
    )


def targets(
    frame: pd.DataFrame, winner: str | None, target: str | None, rows: Rows | None = None
) -> tuple[Float, Bool]:
    """Target of every row, and whether its label is both-bad."""
    if winner is None and target is None:
        found = [c for c in ("winner", "target") if c in frame.columns]
        if not found and all(c in frame.columns for c in ONE_HOT_COLUMNS):
            return _one_hot_targets(frame, rows), np.zeros(len(frame), bool)
        if len(found) == 2:
            raise DataError(
                "the table has both a 'winner' and a 'target' column: name the one to use, "
                "winner='winner' or target='target'"
            )
        if not found:
            have = ", ".join(map(repr, frame.columns))
            raise DataError(
                f"no result column: expected {EXPECTED_RESULTS}; the table has {have} (name another with winner= or "
                f"target=){did_you_mean('winner', frame.columns)}"
            )
        winner, target = ("winner", None) if found == ["winner"] else (None, "target")
    if winner is not None and target is not None:
        raise ValueError("give winner= or target=, not both")
    if target is not None:
        values = numbers(frame[target], target, rows)
        reject_values(values, (values < 0) | (values > 1), target, "targets must lie in [0, 1]", rows)
        return values, np.zeros(len(frame), bool)
    return _winner_targets(frame[winner], str(winner), rows)


def opposed_winners(winner: pd.Series, target: Float) -> tuple[Bool, Bool]:
    """(N,) where a label and a target name opposite sides, and (N,) where both name one; unknown labels name none."""
    try:
        codes, found = pd.factorize(winner)
    except TypeError:  # values that are no labels
        codes, found = np.full(len(winner), -1), pd.Index([])
    side_of = np.array([_TARGET_OF_LABEL.get(label, 0.5) for label in found] + [0.5]) - 0.5
    product = side_of[codes] * (target - 0.5)
    return product < 0, product != 0


def _winner_targets(column: pd.Series, name: str, rows: Rows | None) -> tuple[Float, Bool]:
    try:
        codes, labels = pd.factorize(column)
    except TypeError as error:
        raise DataError(f"column {name!r} holds values that are no labels: {error}") from error
    reject_missing(codes < 0, name, rows)
    _reject_unknown(codes, labels, _TARGET_OF_LABEL, name, "or give a numeric column as target=", rows)
    target_of = np.array([_TARGET_OF_LABEL[label] for label in labels])
    both_bad_of = np.array([label in _BOTH_BAD for label in labels])
    return target_of[codes], both_bad_of[codes]


def _one_hot_targets(frame: pd.DataFrame, rows: Rows | None) -> Float:
    values = np.stack([numbers(frame[c], c, rows) for c in ONE_HOT_COLUMNS])
    bad = ~(np.isin(values, (0, 1)).all(0) & (values.sum(0) == 1))
    if bad.any():
        found = ", ".join(f"{v:g}" for v in values[:, int(bad.argmax())])
        place = f"row {int(bad.argmax())}" if rows is None else rows.place(int(bad.argmax()))
        raise DataError(
            f"columns {', '.join(ONE_HOT_COLUMNS)} must hold one 1 and two 0s in each row; "
            f"{counted(count_rows(bad, rows), 'row does', 'rows do')} not (rows count from 0; first {place}: {found})"
        )
    return values[0] + 0.5 * values[2]


def labels(column: pd.Series, coding: LabelCoding | None) -> Float:
    """(N,) targets that A wins, NaN where missing."""
    name = column.name
    codes, values = pd.factorize(column)
    numeric = pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)
    if numeric and len(values) and coding not in ("a_wins_1", "a_wins_0"):
        found = ", ".join(f"{float(v):g}" for v in sorted(values)[:5])
        raise DataError(
            f"column {name!r} has numeric labels ({found}): say what they "
            "mean with label_coding='a_wins_1' (1 = A wins) or label_coding='a_wins_0' (0 = A wins); on the command "
            "line, --labels"
        )
    known: Mapping[Any, float] = _TARGET_OF_NUMBER if numeric else _TARGET_OF_LABEL
    _reject_unknown(codes, values, known, name, "and mark battles without a label as missing")
    target_of = np.array([known[value] for value in values] + [np.nan])
    if numeric and coding == "a_wins_0":
        target_of = 1 - target_of
    return target_of[codes]


def _reject_unknown(
    codes: NDArray[np.intp],
    labels: pd.Index,
    known: Mapping[Any, float],
    name: Any,
    hint: str,
    rows: Rows | None = None,
) -> None:
    unknown = [k for k, label in enumerate(labels) if label not in known]
    if unknown:
        there = codes >= 0
        times = None if rows is None else rows.times[there]
        counts = np.bincount(codes[there], times, minlength=len(labels)).astype(int)
        found = ", ".join(f"{str(labels[k])!r} ({counts[k]:,})" for k in unknown[:10])
        more = f" and {len(unknown) - 10} more" if len(unknown) > 10 else ""
        raise DataError(
            f"column {name!r} has unknown labels: {found}{more}; known are {', '.join(map(repr, known))}. Map the "
            f"labels to these, {hint}{did_you_mean(labels[unknown[0]], known)}"
        )
