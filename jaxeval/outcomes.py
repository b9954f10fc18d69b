"""Outcomes of battles from columns: labels, one-hot columns, soft targets, and numbers whose coding is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.columns import DataError, numbers, reject_missing, reject_values

LabelCoding = Literal["a_wins_1", "a_wins_0", "labels"]

ONE_HOT_COLUMNS = ("winner_model_a", "winner_model_b", "winner_tie")

_BOTH_BAD = ("tie (bothbad)", "tie_bothbad", "both_bad")
_TARGET_OF_LABEL = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5, **dict.fromkeys(_BOTH_BAD, 0.5)}
_TARGET_OF_NUMBER = {0.0: 0.0, 0.5: 0.5, 1.0: 1.0}


def targets(
    frame: pd.DataFrame, winner: str | None, target: str | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Target of every row, and whether its label is both-bad."""
    if winner is None and target is None:
        found = [c for c in ("winner", "target") if c in frame.columns]
        if not found and all(c in frame.columns for c in ONE_HOT_COLUMNS):
            return _one_hot_targets(frame), np.zeros(len(frame), bool)
        if len(found) == 2:
            raise DataError(
                "the table has both a 'winner' and a 'target' column: name the one to use, "
                "winner='winner' or target='target'"
            )
        if not found:
            have = ", ".join(map(repr, frame.columns))
            raise DataError(
                f"no result column: expected 'winner', 'target' or the one-hot columns {', '.join(ONE_HOT_COLUMNS)}; "
                f"the table has {have} (name another with winner= or target=)"
            )
        winner, target = ("winner", None) if found == ["winner"] else (None, "target")
    if winner is not None and target is not None:
        raise ValueError("give winner= or target=, not both")
    if target is not None:
        values = numbers(frame[target], target)
        reject_values(values, (values < 0) | (values > 1), target, "targets must lie in [0, 1]")
        return values, np.zeros(len(frame), bool)
    return _winner_targets(frame[winner], str(winner))


def _winner_targets(column: pd.Series, name: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    try:
        codes, labels = pd.factorize(column)
    except TypeError as error:
        raise DataError(f"column {name!r} holds values that are no labels: {error}") from error
    reject_missing(codes < 0, name)
    _reject_unknown(codes, labels, _TARGET_OF_LABEL, name, "or give a numeric column as target=")
    target_of = np.array([_TARGET_OF_LABEL[label] for label in labels])
    both_bad_of = np.array([label in _BOTH_BAD for label in labels])
    return target_of[codes], both_bad_of[codes]


def _one_hot_targets(frame: pd.DataFrame) -> NDArray[np.float64]:
    values = np.stack([numbers(frame[c], c) for c in ONE_HOT_COLUMNS])
    bad = ~(np.isin(values, (0, 1)).all(0) & (values.sum(0) == 1))
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"columns {', '.join(ONE_HOT_COLUMNS)} must hold one 1 and two 0s in each row; {bad.sum():,} rows do not "
            f"(rows count from 0; first row {row}: {', '.join(f'{v:g}' for v in values[:, row])})"
        )
    return values[0] + 0.5 * values[2]


def labels(column: pd.Series, coding: LabelCoding | None) -> NDArray[np.float64]:
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
    codes: NDArray[np.intp], labels: pd.Index, known: Mapping[Any, float], name: Any, hint: str
) -> None:
    unknown = [k for k, label in enumerate(labels) if label not in known]
    if unknown:
        counts = np.bincount(codes[codes >= 0], minlength=len(labels))
        found = ", ".join(f"{str(labels[k])!r} ({counts[k]:,})" for k in unknown[:10])
        more = f" and {len(unknown) - 10} more" if len(unknown) > 10 else ""
        raise DataError(
            f"column {name!r} has unknown labels: {found}{more}; known are {', '.join(map(repr, known))}. Map the "
            f"labels to these, {hint}"
        )
