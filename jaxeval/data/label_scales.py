"""What labels of judges and people are, where no models are named: right and wrong, two sides, grades, or words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Float
from jaxeval.data.columns import plain
from jaxeval.data.judge_replies import read_reply
from jaxeval.data.labels import Labels, read_labels, spoken_results
from jaxeval.errors import DataError
from jaxeval.wording import named

#: What labels are: of pairs of named models; of two sides without names; right and wrong; grades; other words.
Kind = Literal["pairs", "sides", "answers", "grades", "categories"]
_RIGHT = ("yes", "true", "correct", "right", "pass", "passed", "y")
_WRONG = ("no", "false", "incorrect", "wrong", "fail", "failed", "n")
_NEITHER = ("not attempted", "not_attempted", "notattempted", "abstain", "abstained", "unsure", "partial")
_GRADED = {**dict.fromkeys(_RIGHT, 1.0), **dict.fromkeys(_WRONG, 0.0), **dict.fromkeys(_NEITHER, 0.5)}
#: More different labels than this are measurements.
MOST_LABELS = 21


class LabelScale(NamedTuple):
    """L labels, as numbers."""

    kind: Kind
    values: tuple[float, ...]  # (L,) sorted
    sides: tuple[int, ...]  # places of the labels that decide: all but ties and answers that were not attempted
    names: tuple[str, ...]  # (L,)

    @property
    def has_middle(self) -> bool:
        """Whether a label says neither one nor the other."""
        return len(self.sides) < len(self.values)

    def without_middle(self) -> LabelScale:
        """The scale of the labels that decide."""
        values, names = tuple(self.values[k] for k in self.sides), tuple(self.names[k] for k in self.sides)
        return LabelScale(self.kind, values, tuple(range(len(values))), names)


_HALVES = (0.0, 0.5, 1.0)
#: Which of two named models is better.
PAIRS = LabelScale("pairs", _HALVES, (0, 2), ("model_b", "tie", "model_a"))
SIDES = LabelScale("sides", _HALVES, (0, 2), ("the second side", "tie", "the first side"))
ANSWERS = LabelScale("answers", _HALVES, (0, 2), ("wrong", "neither", "right"))


def read_scale(
    columns: Sequence[pd.Series], labels: Labels | Literal["grades"] | None
) -> tuple[LabelScale, Float, list[str]]:
    """The scale of all columns, (N, K) labels as its numbers, NaN where missing, and how they were read, in words.

    Raises:
        DataError: labels cannot be read, or their meaning is open.
    """
    words = [_spoken(column) for column in columns]
    table = pd.concat([column.rename(k) for k, column in enumerate(words)], axis=1)
    flat = pd.concat(words, ignore_index=True)
    flat.name = named([str(column.name) for column in columns])
    if labels is not None and labels != "grades":
        read = read_labels(flat, labels, may_miss=True, option="label_coding")
        return SIDES, read.target.reshape(len(columns), -1).T, [read.told] if read.told else []
    codes, distinct = pd.factorize(flat)
    numbers = [_number(value) for value in distinct]
    if not distinct.size:
        raise DataError(f"columns {flat.name} have no labels")
    if all(number is not None for number in numbers):
        scale, of_label, message = _of_numbers([float(number or 0) for number in numbers], str(flat.name), labels)
    elif labels == "grades":
        raise DataError(
            f"columns {flat.name} hold words, such as {_first_word(distinct, numbers)!r}, so they are no grades"
        )
    else:
        scale, of_label, message = _of_words([str(plain(value)) for value in distinct], str(flat.name))
    values = np.append(of_label, np.nan)[codes]
    return scale, values.reshape(len(columns), len(table)).T, [message] if message else []


def most_frequent(cell: NDArray[np.intp], values: Float, n_cells: int, scale: LabelScale) -> Float:
    """(n_cells,) the most frequent of the labels (E,) in each cell; NaN without one.

    Of several, it is the label that names no side, if the scale has one.
    """
    counts, known = np.zeros((n_cells, len(scale.values))), ~np.isnan(values)
    np.add.at(counts, (cell[known], np.searchsorted(scale.values, values[known])), 1)
    most = counts == counts.max(1, keepdims=True)
    split = 0.5 if scale.has_middle else np.nan
    label = np.where(most.sum(1) == 1, np.array(scale.values)[most.argmax(1)], split)
    return np.where(counts.any(1), label, np.nan)


def _of_numbers(numbers: list[float], columns: str, labels: Any) -> tuple[LabelScale, list[float], str]:
    different = set(numbers)
    if labels != "grades":
        if different <= {0.0, 0.5, 1.0}:
            return ANSWERS, numbers, f"labels: 1 is read as right, 0 as wrong ({columns})"
        if different == {1.0, 2.0}:
            return SIDES, [2 - number for number in numbers], "labels: 1 is read as the first side, 2 as the second"
        if different <= {-1.0, 0.0, 1.0, 2.0}:
            raise DataError(
                f"columns {columns} hold {named([f'{x:g}' for x in sorted(different)])}, which may be sides or grades: "
                "say label_coding={'1': 'model_a', '2': 'model_b', '0': 'tie'} (on the command line --labels "
                "1=model_a,2=model_b,0=tie), where model_a is the first side, or label_coding='grades' (--labels "
                "grades)"
            )
    values = sorted(different)
    if len(values) > MOST_LABELS:
        raise DataError(
            f"columns {columns} hold {len(values):,} numbers, from {values[0]:g} to {values[-1]:g}: agreement "
            f"is that of labels, so round them to {MOST_LABELS} grades or fewer, or make them right and wrong (1 and 0)"
        )
    return (
        LabelScale("grades", tuple(values), tuple(range(len(values))), tuple(f"{x:g}" for x in values)),
        numbers,
        f"labels: grades from {values[0]:g} to {values[-1]:g}",
    )


def _of_words(words: list[str], columns: str) -> tuple[LabelScale, list[float], str]:
    keys = [word.strip().strip("[]*.\"'").strip().casefold() for word in words]
    graded = [_GRADED.get(key) for key in keys]
    if all(grade is not None for grade in graded):
        return ANSWERS, [float(grade or 0) for grade in graded], ""
    spoken = spoken_results(words, None)
    if all(result is not None for result in spoken):
        return SIDES, [result.target for result in spoken if result is not None], ""
    names = sorted(set(keys))
    if len(names) > MOST_LABELS:
        raise DataError(
            f"columns {columns} hold {len(names):,} different words, such as {words[0][:40]!r} and {words[1][:40]!r}: "
            f"labels are at most {MOST_LABELS}; name other columns (human=, judges=; --human, --judges)"
        )
    place = {name: float(k) for k, name in enumerate(names)}
    scale = LabelScale("categories", tuple(place.values()), tuple(range(len(names))), tuple(names))
    return scale, [place[key] for key in keys], f"labels: {named(names)}"


def _spoken(column: pd.Series) -> pd.Series:
    """A column with what its replies say, where it holds what a judge printed."""
    texts = [value for value in column.dropna().unique() if isinstance(value, str)] if _hashable(column) else None
    if texts is not None and not any("{" in text or "\n" in text or ":" in text for text in texts):
        return column
    replies = {k: read_reply(value) for k, value in column.items() if value is not None and value == value}
    wrong = {k: reply.wrong or "no verdict" for k, reply in replies.items() if reply.wrong or not reply.word}
    if wrong:
        row, why = next(iter(wrong.items()))
        raise DataError(
            f"column {column.name!r}: {len(wrong):,} of {len(replies):,} replies cannot be read (first in row {row}: "
            f"{why}; rows count from 0): correct or empty them"
        )
    return pd.Series([replies[k].word if k in replies else None for k in column.index], name=column.name, dtype=object)


def _hashable(column: pd.Series) -> bool:
    return not any(isinstance(value, dict | list) for value in column.head(50))


def _number(value: Any) -> float | None:
    if isinstance(value, Mapping):
        return None
    try:
        number = float(str(plain(value)).strip()) if not isinstance(value, bool | np.bool_) else float(value)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _first_word(distinct: Any, numbers: list[float | None]) -> str:
    return str(next(value for value, number in zip(distinct, numbers, strict=True) if number is None))
