"""Score differences of a judge, from columns of numbers or of dicts of criteria, in one or both presentation orders."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

from jaxeval.arrays import Float
from jaxeval.data.columns import finite_or_nan
from jaxeval.errors import DataError
from jaxeval.wording import counted

Scores = str | Sequence[str]

_LONGEST_TEXT = 10_000  # characters of one cell of scores
# Equal means of integer scores may differ in their last bits; after rounding to this many decimals they are equal.
_DECIMALS = 9


def score_differences(
    frame: pd.DataFrame,
    scores_a: Scores | None,
    scores_b: Scores | None,
    scores_a_swapped: Scores | None,
    scores_b_swapped: Scores | None,
    score_difference: str | None,
    verdicts: Sequence[Float],
) -> list[Float]:
    """(N,) score differences A minus B for each order that is given, one or two; NaN without a score.

    Without scores, the differences come from the ``verdicts`` (N,) of one or both orders: +1, 0 or -1.
    """
    pairs = [(scores_a, scores_b), (scores_a_swapped, scores_b_swapped)]
    for a, b in pairs:
        if (a is None) != (b is None):
            side, other = ("A", "B") if b is None else ("B", "A")
            raise ValueError(f"scores are needed for both sides, got those of {side} only: name those of {other}, too")
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    if score_difference is not None:
        if both:
            raise ValueError("give score_difference= or columns of scores, not both")
        return [_rounded(finite_or_nan(frame[score_difference], score_difference))]
    if scores_a is None and both:
        raise ValueError("scores of the swapped order need those of the other order: name scores_a= and scores_b=")
    if not both:
        if not verdicts:
            have = ", ".join(map(repr, frame.columns))
            raise DataError(
                "no scores of a judge: name them with scores_a= and scores_b=, score_difference=, or verdict= for a "
                "judge that gives verdicts only (on the command line --scores-a and so on); the table's columns are "
                f"{have}"
            )
        return [2 * label - 1 for label in verdicts]
    return [_rounded(_criteria_difference(frame, a, b)) for a, b in both]


def over_orders(each: Sequence[Float], keep_one: bool = False) -> tuple[Float, Float | None]:
    """(N,) means of the values (N,) of one order or of both, and the (N, 2) values of both orders if there are two.

    A battle that lacks one order has no mean; with ``keep_one`` it has the value of the other order.
    """
    if len(each) == 1:
        return each[0], None
    orders = np.stack(each, axis=1)
    mean = orders.mean(1)
    if keep_one:
        mean = np.where(np.isnan(mean), np.where(np.isnan(orders[:, 0]), orders[:, 1], orders[:, 0]), mean)
    return _rounded(mean), orders


def sign_labels(difference: Float, orders: Float | None) -> Float:
    """(N,) signs of differences A minus B as targets that A wins; a tie where the sign flips between (N, 2) orders."""
    label = (1 + np.sign(difference)) / 2
    return label if orders is None else np.where(orders[:, 0] * orders[:, 1] < 0, 0.5, label)


def _rounded(values: Float) -> Float:
    return np.round(values, _DECIMALS) + 0.0


def _criteria_difference(frame: pd.DataFrame, scores_a: Scores, scores_b: Scores) -> Float:
    """(N,) mean over criteria of the score of A minus that of B."""
    if isinstance(scores_a, str) and isinstance(scores_b, str):
        if all(pd.api.types.is_numeric_dtype(frame[c]) for c in (scores_a, scores_b)):
            return finite_or_nan(frame[scores_a], scores_a) - finite_or_nan(frame[scores_b], scores_b)
        a, b = _score_table(frame[scores_a], scores_a), _score_table(frame[scores_b], scores_b)
        if set(a.columns) != set(b.columns):
            raise DataError(
                f"columns {scores_a!r} and {scores_b!r} score different criteria: {', '.join(map(str, a.columns))}; "
                f"and {', '.join(map(str, b.columns))}. Both sides need the same"
            )
        difference = (a - b[a.columns]).to_numpy(float)
    else:
        names_a = [scores_a] if isinstance(scores_a, str) else list(scores_a)
        names_b = [scores_b] if isinstance(scores_b, str) else list(scores_b)
        if len(names_a) != len(names_b) or not names_a:
            raise ValueError(
                f"name as many columns of scores for B as for A, at least one each, got {len(names_a):,} for A and "
                f"{len(names_b):,} for B"
            )
        difference = np.stack(
            [finite_or_nan(frame[a], a) - finite_or_nan(frame[b], b) for a, b in zip(names_a, names_b, strict=True)],
            axis=1,
        )
    scored = ~np.isnan(difference).all(1)
    partial = scored & np.isnan(difference).any(1)
    if partial.any():
        raise DataError(
            f"{counted(partial.sum(), 'row has', 'rows have')} scores for some criteria only (first in row "
            f"{int(partial.argmax())}; rows count from 0). Means over different criteria do not compare: fill the "
            "missing scores, or drop those rows first"
        )
    # In order of size, so that the order of the criteria cannot move the last bit.
    return np.sort(difference, axis=1).mean(1)


def _score_table(column: pd.Series, name: str) -> pd.DataFrame:
    """One column per criterion, with a row of NaN where a cell is missing."""
    dicts = any(isinstance(value, dict) for value in column)
    codes, values = (np.arange(len(column)), list(column)) if dicts else pd.factorize(column)
    parsed, wrong = [], []
    for number, value in enumerate(values):
        scores = None if value is None or (isinstance(value, float) and np.isnan(value)) else _parse_scores(value)
        if isinstance(scores, str):
            wrong.append((number, scores))
        parsed.append(scores if isinstance(scores, dict) else {})
    if wrong:
        bad = np.isin(codes, [number for number, _ in wrong])
        row = int(bad.argmax())
        reason = dict(wrong)[int(codes[row])]
        shown = repr(column.iloc[row])
        raise DataError(
            f"column {name!r}: {bad.sum():,} of {counted(len(bad), 'row')} {'holds' if bad.sum() == 1 else 'hold'} no "
            f"scores by criterion (first in row {row}: {reason}: {shown[:80]}{'...' if len(shown) > 80 else ''}; rows "
            "count from 0); expected text or dicts like {'helpfulness': 8.5, 'clarity': 9}; repair or drop those rows "
            "first"
        )
    table = pd.DataFrame.from_records([*parsed, {}], index=range(len(parsed) + 1)).astype(float)
    if table.columns.empty:
        raise DataError(f"column {name!r} holds no scores: all of its values are missing")
    return table.iloc[np.where(codes < 0, len(parsed), codes)].reset_index(drop=True)


def _parse_scores(value: Any) -> dict[str, float] | str:
    """Scores by criterion, or what is wrong with ``value``. Text is read as JSON or a Python literal, never run."""
    if isinstance(value, str):
        if len(value) > _LONGEST_TEXT:
            return f"longer than {_LONGEST_TEXT:,} characters"
        try:
            value = _literal(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return "cannot be parsed"
    if not isinstance(value, dict):
        return f"a {type(value).__name__}, not a dict"
    if not value:
        return "an empty dict"
    scores = {}
    for criterion, score in value.items():
        if isinstance(score, bool) or not isinstance(score, int | float | np.number):
            return f"criterion {criterion!r} has no number"
        try:
            scores[str(criterion)] = float(score)
        except OverflowError:  # a whole number beyond doubles
            return f"criterion {criterion!r} is too large"
        if not isfinite(scores[str(criterion)]):
            return f"criterion {criterion!r} is not finite"
    return scores


def _literal(text: str) -> Any:
    if "\\" not in text and '"' not in text:
        try:
            return json.loads(text.replace("'", '"'))
        except ValueError:
            pass
    first: Callable[[str], Any] = json.loads if '"' in text else ast.literal_eval
    try:
        return first(text)
    except ValueError:
        return ast.literal_eval(text)
