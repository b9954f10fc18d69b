"""Columns of what judges printed, in place of verdicts: grades of single answers, and verdicts against a reference."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.data.columns import finite_or_nan, folded, require_column
from jaxeval.data.judge_calls import ReplyRules, read_calls, unread_error, unused_scores
from jaxeval.data.judge_replies import SEVERAL, Reply, read_reply
from jaxeval.data.labels import SPOKEN, STRONG
from jaxeval.data.roles import usual_names
from jaxeval.errors import DataError
from jaxeval.wording import counted

#: What to do about grades in other words.
OR_POSITIVE = "or name the value that means right with positive= (jaxeval judge --positive)"
_OF = re.compile(r"^(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)$")
#: What judges call right and wrong answers.
_GRADES = {
    **dict.fromkeys(["yes", "true", "correct", "pass", "y"], 1.0),
    **dict.fromkeys(["no", "false", "incorrect", "fail", "n"], 0.0),
}


class RepliedVerdicts(NamedTuple):
    """What N replies say about models against a reference."""

    outcome: Float  # (N,) of the model: 1 a win, 0 a loss, NaN where it cannot be read
    confidence: Float  # (N,) as it was stated, in [0, 1]; NaN where it was not
    unread: Bool  # (N,)
    weight: Float  # (N,) of the verdict: a strong one counts as three
    told: str = ""  # numbers that look like scores and are not used, in words


def holds_text(column: pd.Series) -> bool:
    """Whether a column holds only text or objects: no numbers or truth values."""
    if isinstance(column.dtype, pd.CategoricalDtype) or not (
        column.dtype == object or pd.api.types.is_string_dtype(column)
    ):
        return False
    first = column.dropna()
    return len(first) > 0 and all(isinstance(value, str | dict) for value in first)


def replied_grades(column: pd.Series, drop: bool) -> tuple[Float, Bool, str]:
    """(N,) grades of single answers, 1 and 0 for Yes and No, or numbers; and (N,) which replies cannot be read.

    Also what is to be said of numbers that look like grades and are not used.

    Missing replies are missing grades. With ``drop``, replies that cannot be read are missing grades, too.

    Raises:
        DataError: replies cannot be read, or grades come in words and in numbers.
    """
    missing = column.isna().to_numpy()
    grade, wrong = np.full(len(column), np.nan), np.full(len(column), "", object)
    in_words, replies = np.zeros(len(column), bool), [Reply()] * len(column)
    for row, value in enumerate(column):
        if missing[row]:
            continue
        reply = replies[row] = read_reply(value)
        in_words[row] = _key(reply.word) in _GRADES
        found = _grade(reply.word)
        if found is None:
            wrong[row] = f"{reply.word[:40]!r} is no grade"
        else:
            grade[row] = found
        if reply.second and _grade(reply.second) != grade[row]:
            wrong[row], grade[row] = SEVERAL, np.nan
        if reply.wrong or not (np.isfinite(grade[row]) or wrong[row]):
            wrong[row], grade[row] = reply.wrong or "no grade", np.nan
    unread = wrong != ""
    if unread[~missing].all():
        try:
            finite_or_nan(column, str(column.name))
        except DataError as error:  # it says that these are no numbers
            raise DataError(f"{error}: write judgments as 1 and 0 or as scores, {OR_POSITIVE}") from error
    if unread.any() and not drop:
        raise unread_error(column, wrong, unread)
    numbers = ~in_words & ~np.isnan(grade) & ~np.isin(grade, (0.0, 1.0))
    if in_words.any() and numbers.any():
        raise DataError(
            f"column {column.name!r} holds words such as Yes and No ({in_words.sum():,}) and grades in numbers "
            f"({numbers.sum():,}): read the two kinds from two tables"
        )
    unused = unused_scores(replies, ~unread)
    return grade, unread, f"column {column.name!r}: {unused}" if unused else ""


def _key(word: str) -> str:
    return word.strip("[] ").casefold()


def _grade(word: str) -> float | None:
    """The grade that a word stands for, NaN for an empty word; None for a word that is no grade."""
    key = _key(word)
    share = _OF.match(key)
    if share is not None:  # 7/10
        points, most = float(share[1]), float(share[2])
        return points / most if most > 0 and points <= most else None
    try:
        return _GRADES[key] if key in _GRADES else float(key or "nan")
    except ValueError:
        return None


def replied_verdicts(
    frame: pd.DataFrame, column: str, reference: str | None, judge: NDArray[np.intp], rules: ReplyRules, drop: bool
) -> RepliedVerdicts:
    """Outcomes of models from replies about two sides, one of which is the reference.

    Args:
        frame: N rows.
        column: the column of replies; missing replies are missing outcomes.
        reference: "A" if the judge saw the reference first, "B" if second, or a column of A and B.
        judge: (N,) number of the judge.
        rules: what replies must be like.
        drop: leave out replies that cannot be read.

    Raises:
        DataError: replies cannot be read, or the side of the reference is not known.
    """
    missing = frame[column].isna().to_numpy()
    calls = read_calls(frame[column], judge, rules)
    unread = calls.unread & ~missing
    if unread.any() and not drop:
        raise unread_error(frame[column], calls.wrong, unread)
    first = _reference_first(frame, column, reference)
    outcome = np.where(first, 1 - calls.target, calls.target)
    weight = np.where(calls.strong, STRONG, 1.0)
    return RepliedVerdicts(np.where(calls.unread, np.nan, outcome), calls.confidence, unread, weight, calls.unused)


def _reference_first(frame: pd.DataFrame, column: str, reference: str | None) -> Bool:
    """(N,) whether the judge saw the reference first."""
    if reference is None:
        raise DataError(
            f"column {column!r} holds what judges printed about two sides, but nothing says which side is the "
            "reference: give reference='A' if the judge saw it first, as with the prompts of the method, 'B' if "
            "second, or the name of a column with A and B (on the command line --reference)"
        )
    if reference in ("A", "B") and reference not in frame.columns:
        return np.full(len(frame), reference == "A")
    require_column(frame, reference)
    sides = [SPOKEN.get(str(value).strip().casefold()) for value in frame[reference]]
    odd = np.array([side is None or side.target == 0.5 for side in sides])
    if odd.any():
        raise DataError(
            f"column {reference!r} does not say which side the reference is in {counted(odd.sum(), 'row')} (first in "
            f"row {int(odd.argmax())}; rows count from 0): write A if the judge saw it first, B if second"
        )
    return np.array([side is not None and side.target == 1 for side in sides])


def usual_replies(frame: pd.DataFrame) -> str | None:
    """The first column that has a usual name of replies and holds text."""
    names = {folded(name) for name in usual_names("output")}
    return next((name for name in frame.columns if folded(name) in names and holds_text(frame[name])), None)
