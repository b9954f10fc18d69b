"""Columns of judges' replies as numbers: verdicts, confidence and scores of two sides, and grades of single answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.data.columns import first_place, is_missing, require_column
from jaxeval.data.judge_replies import EMPTY, SEVERAL, Reply, read_reply, spelled
from jaxeval.data.labels import RIGHT_OR_WRONG, SPOKEN, bare_word, spoken_results
from jaxeval.data.numbers import finite_or_nan
from jaxeval.data.roles import ROLES, columns_of
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.options.columns import Stated
from jaxeval.wording import counted

#: What to do about grades in other words.
OR_POSITIVE = "or name the value that means right with positive= (jaxeval judge --positive)"
_OF = re.compile(r"^(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)$")


def holds_text(column: Any) -> bool:
    """Return whether a column holds only text or objects: no numbers or truth values."""
    if isinstance(column, np.ndarray):
        first = [value for value in column.tolist() if value is not None] if column.dtype == object else []
        return bool(first) and all(isinstance(value, str | dict) for value in first)
    if isinstance(column.dtype, pd.CategoricalDtype) or not (
        column.dtype == object or pd.api.types.is_string_dtype(column)
    ):
        return False
    first = column.dropna()
    return len(first) > 0 and all(isinstance(value, str | dict) for value in first)


def replied_grades(column: Any, name: str, drop: bool) -> tuple[Float, Bool, str]:
    """Return (N,) grades of single answers, 1 and 0 for Yes and No, or numbers; and (N,) which replies cannot be read.

    Also what is to be said of numbers that look like grades and are not used.

    Missing replies are missing grades. With ``drop``, replies that cannot be read are missing grades, too.
    """
    missing = is_missing(column)
    grade, wrong = np.full(len(column), np.nan), np.full(len(column), "", object)
    in_words, replies = np.zeros(len(column), bool), [Reply()] * len(column)
    for row, value in enumerate(column):
        if missing[row]:
            continue
        reply = replies[row] = read_reply(value)
        in_words[row] = bare_word(reply.word) in RIGHT_OR_WRONG
        number = _grade(reply.word)
        if number is None:
            wrong[row] = f"{reply.word[:40]!r} is no grade"
        else:
            grade[row] = number
        if reply.second and _grade(reply.second) != grade[row]:
            wrong[row], grade[row] = SEVERAL, np.nan
        if reply.wrong or not (np.isfinite(grade[row]) or wrong[row]):
            wrong[row], grade[row] = reply.wrong or "no grade", np.nan
    unread = wrong != ""
    if unread[~missing].all():
        try:
            finite_or_nan(column, name)
        except DataError as error:  # it says that these are no numbers
            raise DataError(f"{error}: write judgments as 1 and 0 or as scores, {OR_POSITIVE}") from error
    if unread.any() and not drop:
        raise unread_error(column, name, wrong, unread)
    numbers = ~in_words & ~np.isnan(grade) & ~np.isin(grade, (0.0, 1.0))
    if in_words.any() and numbers.any():
        raise DataError(
            f"column {name!r} holds words such as Yes and No ({in_words.sum():,}) and grades in numbers "
            f"({numbers.sum():,}): read the two kinds from two tables"
        )
    unused = unused_scores(replies, ~unread)
    return grade, unread, f"column {name!r}: {unused}" if unused else ""


def _grade(word: str) -> float | None:
    """Return the grade that a word stands for, NaN for an empty word; None for a word that is no grade."""
    key = word.strip("[] ")
    share = _OF.match(key)
    if share is not None:  # 7/10
        points, most = float(share[1]), float(share[2])
        return points / most if most > 0 and points <= most else None
    try:
        return float(key or "nan")
    except ValueError:
        return RIGHT_OR_WRONG.get(bare_word(word))


def replied_verdicts(
    frame: pd.DataFrame, column: str, reference: str | None, judge: NDArray[np.intp], rules: ReplyRules, drop: bool
) -> tuple[Calls, Float, Bool]:
    """Return what replies about two sides say, (N,) outcomes of the side that is no reference, and what is left out.

    ``reference`` is "A" if the judge saw it first, "B" if second, or a column of A and B. Outcomes are NaN where a
    reply is missing, or cannot be read, which is an error unless ``drop`` says to leave it out.
    """
    missing = frame[column].isna().to_numpy()
    calls = read_calls(frame[column], judge, rules)
    unread = calls.unread & ~missing
    if unread.any() and not drop:
        raise unread_error(frame[column], column, calls.wrong, unread)
    outcome = np.where(_reference_first(frame, column, reference), 1 - calls.target, calls.target)
    return calls, np.where(calls.unread, np.nan, outcome), unread


def _reference_first(frame: pd.DataFrame, column: str, reference: str | None) -> Bool:
    """Return (N,) whether the judge saw the reference first."""
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
            f"column {reference!r} does not say which side the reference is in {counted(odd.sum(), 'row')}"
            f"{first_place(odd)}: write A if the judge saw it first, B if second"
        )
    return np.array([side is not None and side.target == 1 for side in sides])


def usual_replies(columns: Any) -> str | None:
    """Return the first column with a usual name of replies, in a table the first of text; ``columns`` may be names."""
    is_list = isinstance(columns, list)
    names = columns_of(columns, ROLES["output"].names)
    return next((name for name in names if is_list or holds_text(columns[name])), None)


_PERCENT = 100.0
_MOST_REASONS = 5
_MOST_SHOWN = 80
#: Options that help, by a word in the reason why a reply cannot be read.
_ADVICE = {
    "confidence": "confidence='percent' if confidence is stated in per cent (--confidence percent)",
    "beyond": "scale=(0, 100) or what the scale is (--scale 0:100)",
    "criteria": "criteria=[...] to name those that count (--criteria)",
    "is no verdict": "labels={'1': 'model_a', ...} to say what words mean (--words)",
}


class ReplyRules(NamedTuple):
    """What replies must be like to be read."""

    labels: Mapping[Any, str] | None = None  # what words mean besides the usual ones
    criteria: tuple[str, ...] | None = None  # those that count; None: the criteria of most replies of the judge
    scale: tuple[float, float] | None = None  # of every criterion; None: any
    confidence: Stated = "share"


class Calls(NamedTuple):
    """N calls; "first" is the side that was shown first."""

    target: Float  # (N,) that the first side wins: by the verdict that the judge named, or by the sign of its scores
    stated: Bool  # (N,) whether the judge named it
    confidence: Float  # (N,) in [0, 1], NaN where none was stated
    criteria: list[str]
    scores: Float  # (N, 2, C) of the sides shown first and second, NaN where a judge has no such criterion
    wrong: NDArray[Any]  # (N,) why a call cannot be read, "" where it can
    repaired: Bool  # (N,) whether JSON was mended
    strong: Bool  # (N,) whether the verdict is a strong grade
    reasoned: Bool  # (N,) whether the model's reasoning stood before the answer
    unused: str = ""  # numbers that look like scores and are not read, in words

    @property
    def unread(self) -> Bool:
        """(N,) whether a call cannot be read."""
        return self.wrong != ""


def read_calls(column: pd.Series, judge: NDArray[np.intp], rules: ReplyRules) -> Calls:
    """Read what replies (N,) say. ``judge`` (N,) numbers judges; a judge has the same criteria in all its replies."""
    replies = [read_reply(None if none else value) for value, none in zip(column, column.isna(), strict=True)]
    wrong = np.array([reply.wrong for reply in replies], object)
    expected = _expected(replies, judge, rules.criteria)
    results = spoken_results([reply.word for reply in replies], rules.labels)
    seconds = spoken_results([reply.second for reply in replies], rules.labels)
    confidence = _shares(replies, rules.confidence, column.name)
    names = sorted({name for criteria in expected if criteria for name in criteria})
    for row, (reply, result, second, number) in enumerate(zip(replies, results, seconds, judge, strict=True)):
        if not reply.wrong:
            wrong[row] = _problem(reply, result is not None, expected[number], rules.criteria)
        if not wrong[row] and reply.second and (second is None or result is None or second.target != result.target):
            wrong[row] = SEVERAL
    outside = ~np.isnan(confidence) & ~((confidence >= 0) & (confidence <= 1))
    wrong[outside & (wrong == "")] = "confidence out of range"
    scores = _scores(replies, wrong == "", names)
    if rules.scale is not None:
        wrong = np.where(wrong == "", _beyond(scores, names, rules.scale), wrong)
    named = np.array([np.nan if result is None else result.target for result in results])
    stated = ~np.isnan(named)
    with np.errstate(invalid="ignore"):
        sign = (1 + np.sign(mean_difference(scores[:, 0], scores[:, 1]))) / 2
    return Calls(
        target=np.where(stated, named, sign), stated=stated, confidence=confidence, criteria=names, scores=scores,
        wrong=wrong, repaired=np.array([reply.repaired for reply in replies]),
        strong=np.array([result is not None and result.weight != 1 for result in results]),
        reasoned=np.array([reply.reasoned for reply in replies]), unused=unused_scores(replies, wrong == ""),
    )  # fmt: skip


def unused_scores(replies: Sequence[Reply], good: Bool) -> str:
    """Return what is to be said of numbers in replies that look like scores and are not read; "" without such."""
    times = Counter(name for reply, fine in zip(replies, good, strict=True) if fine for name in reply.unused)
    if not times:
        return ""
    n = sum(bool(reply.unused) and bool(fine) for reply, fine in zip(replies, good, strict=True))
    names = ", ".join(f"{name!r} ({count:,})" for name, count in times.most_common(_MOST_REASONS))
    return f"{counted(n, 'reply holds', 'replies hold')} numbers that look like scores, and are not used: {names}"


def _shares(replies: Sequence[Reply], stated: Stated, name: Any) -> Float:
    """Return (N,) confidence as shares, which should lie in [0, 1]; NaN where there is none."""
    confidence = np.array([reply.confidence for reply in replies])
    signed = np.array([reply.in_percent for reply in replies])
    bare = confidence[~signed & ~np.isnan(confidence)]
    if stated == "percent" and len(bare) and bare.max() <= 1:
        raise DataError(
            f"column {name!r}: confidence='percent' (--confidence percent), but none of the "
            f"{counted(len(bare), 'stated confidence')} is above 1: they are shares, so leave the option out"
        )
    return np.where(signed | (stated == "percent"), confidence / _PERCENT, confidence)


def mean_score(scores: Float) -> Float:
    """Return (N,) mean over the criteria (N, C) that a row has, NaN without one."""
    n = (~np.isnan(scores)).sum(-1)
    return np.where(n > 0, np.nansum(scores, -1) / np.maximum(n, 1), np.nan)


def mean_difference(first: Float, second: Float) -> Float:
    """Return (N,) mean score of the first side minus that of the second; rounded so that equal means give 0."""
    return np.round(mean_score(first) - mean_score(second), 9) + 0.0


def unread_error(column: Any, name: str, wrong: NDArray[Any], which: Bool) -> DataError:
    """Return the error about replies ``which`` (N,) that cannot be read: how many, why, where, what options help."""
    rows = np.flatnonzero(which)
    reasons = Counter(wrong[rows])
    parts = []
    for reason, times in reasons.most_common(_MOST_REASONS):
        row = next(row for row in rows if wrong[row] == reason)
        parts.append(f"{times:,} {reason} (first in row {row})")
    others = sum(reasons.values()) - sum(times for _, times in reasons.most_common(_MOST_REASONS))
    parts += [f"{others:,} for other reasons"] if others else []
    text = "" if wrong[rows[0]] == EMPTY else str(np.asarray(column, object)[rows[0]])
    shown = (repr(text[:_MOST_SHOWN]) + ("..." if len(text) > _MOST_SHOWN else "")) if text else "an empty reply"
    advice = [sentence for word, sentence in _ADVICE.items() if any(word in reason for reason in reasons)]
    return DataError(
        f"column {name!r}: {counted(len(rows), 'reply', 'replies')} of {len(column):,} cannot be read: "
        f"{'; '.join(parts)}; rows count from 0. The first of them: {shown}. Say {', or '.join([*advice, ''])}"
        "unparsed='drop' to leave them out and count them (on the command line --unparsed drop)"
    )


def _expected(
    replies: Sequence[Reply], judge: NDArray[np.intp], criteria: tuple[str, ...] | None
) -> list[frozenset[str] | None]:
    """Return the criteria of each judge: those named, or those of most replies; None for judges without scores."""
    counters: list[Counter[frozenset[str] | None]] = [Counter() for _ in range(judge.max(initial=-1) + 1)]
    chosen = None if criteria is None else frozenset(map(spelled, criteria))
    for reply, number in zip(replies, judge, strict=True):
        if not reply.wrong:
            counters[number][None if reply.scores is None else chosen or frozenset(reply.scores[0])] += 1
    return [counts.most_common(1)[0][0] if counts else None for counts in counters]


def _problem(reply: Reply, known: bool, expected: frozenset[str] | None, chosen: tuple[str, ...] | None) -> str:
    """Say why a reply that is well-formed cannot be read, or ""."""
    if reply.word and not known:
        return f"{reply.word[:40]!r} is no verdict"
    if (reply.scores is None) != (expected is None):
        return f"{'with' if expected is None else 'without'} scores, unlike other replies of the judge"
    if expected is None or reply.scores is None:
        return ""
    for side in reply.scores:
        if side.keys() != expected:
            lacking = expected - side.keys()
            odd = side.keys() - expected if chosen is None else ()
            parts = [f"{word} criteria {', '.join(sorted(names))[:60]}"
                     for word, names in (("missing", lacking), ("unknown", odd)) if names]  # fmt: skip
            if parts:
                return "; ".join(parts)
    return ""


def _scores(replies: Sequence[Reply], good: Bool, names: list[str]) -> Float:
    """Return (N, 2, C) scores of the ``good`` replies (N,), NaN where there is none."""
    scores = np.full((len(replies), 2, len(names)), np.nan)
    rows = [row for row in np.flatnonzero(good).tolist() if replies[row].scores is not None]
    if rows:
        scores[rows] = [
            [[side.get(name, np.nan) for name in names] for side in replies[row].scores or ()] for row in rows
        ]
    return scores


def _beyond(scores: Float, names: list[str], scale: tuple[float, float]) -> NDArray[Any]:
    """Return (N,) what is wrong with scores (N, 2, C) beyond their scale, or ""."""
    low, high = scale
    outside = np.asarray(((scores < low) | (scores > high)).any(axis=1))
    texts = np.array([f"criterion {name!r} beyond its scale of {low:g} to {high:g}" for name in names] or [""], object)
    return np.where(outside.any(axis=1), texts[outside.argmax(axis=1) if len(names) else 0], "")
