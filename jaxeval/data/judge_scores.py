"""Score differences of a judge from columns: numbers, or dicts of criteria, of one or both presentation orders."""

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
# Means of integer scores on a lattice differ in their last bits; equal levels must be equal numbers.
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
    """(N,) score differences A minus B of one order, or of both; NaN without a score.

    Without scores they are those of the ``verdicts`` (N,), of no, one or both orders.
    """
    pairs = [(scores_a, scores_b), (scores_a_swapped, scores_b_swapped)]
    for a, b in pairs:
        if (a is None) != (b is None):
            raise ValueError(f"scores are needed for both sides, got {a!r} for A and {b!r} for B")
    given = [(a, b) for a, b in pairs if a is not None and b is not None]
    if score_difference is not None:
        if given:
            raise ValueError("give score_difference= or columns of scores, not both")
        return [_rounded(finite_or_nan(frame[score_difference], score_difference))]
    if scores_a is None and given:
        raise ValueError("scores of the swapped order need scores_a= and scores_b= of the other beside them")
    if not given:
        if not verdicts:
            have = ", ".join(map(repr, frame.columns))
            raise DataError(
                "no scores of a judge: name them with scores_a= and scores_b=, score_difference=, or verdict= for a "
                f"judge that gives verdicts only; the table has {have}"
            )
        return [2 * label - 1 for label in verdicts]
    return [_rounded(_criteria_difference(frame, a, b)) for a, b in given]


def over_orders(each: Sequence[Float], keep_one: bool = False) -> tuple[Float, Float | None]:
    """(N,) mean of what one order or both say (N,), and (N, 2) of both orders if there are two.

    A battle that lacks one order has no mean, or with ``keep_one`` the value of the other.
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
                f"columns {scores_a!r} and {scores_b!r} score different criteria: {', '.join(map(str, a.columns))} and "
                f"{', '.join(map(str, b.columns))}"
            )
        difference = (a - b[a.columns]).to_numpy(float)
    else:
        names_a = [scores_a] if isinstance(scores_a, str) else list(scores_a)
        names_b = [scores_b] if isinstance(scores_b, str) else list(scores_b)
        if len(names_a) != len(names_b) or not names_a:
            raise ValueError(f"as many score columns are needed for A as for B, got {names_a} and {names_b}")
        difference = np.stack(
            [finite_or_nan(frame[a], a) - finite_or_nan(frame[b], b) for a, b in zip(names_a, names_b, strict=True)],
            axis=1,
        )
    scored = ~np.isnan(difference).all(1)
    partial = scored & np.isnan(difference).any(1)
    if partial.any():
        raise DataError(
            f"{counted(partial.sum(), 'row has', 'rows have')} scores for some criteria only (first in row "
            f"{int(partial.argmax())}); a mean over other criteria is another scale: fill them or drop those rows first"
        )
    # In order of size, so that the order of the criteria cannot move the last bit.
    return np.sort(difference, axis=1).mean(1)


def _score_table(column: pd.Series, name: str) -> pd.DataFrame:
    """One column a criterion, NaN rows where a cell is missing."""
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
            f"column {name!r}: {bad.sum():,} of {counted(len(bad), 'row is no score', 'rows are not scores')} by "
            f"criterion (first in row {row}: {reason}: {shown[:80]}{'...' if len(shown) > 80 else ''}); expected text "
            f"or dicts like {{'helpfulness': 8.5, 'clarity': 9}}; repair or drop those rows first"
        )
    table = pd.DataFrame.from_records([*parsed, {}], index=range(len(parsed) + 1)).astype(float)
    if table.columns.empty:
        raise DataError(f"column {name!r} holds no scores at all")
    return table.iloc[np.where(codes < 0, len(parsed), codes)].reset_index(drop=True)


def _parse_scores(value: Any) -> dict[str, float] | str:
    """Scores by criterion, or what is wrong with ``value``. Text is data: JSON, or a Python literal, never code."""
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
