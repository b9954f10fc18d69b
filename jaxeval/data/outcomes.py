"""Outcomes of battles from columns: labels, one-hot columns, soft targets, scores of both sides, and counts."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.columns import Rows, count_rows, factorized, numbers, reject_values, whole_numbers
from jaxeval.data.labels import STANDARD, LabelledResults, Labels, Sides, check_labels, read_labels
from jaxeval.errors import DataError
from jaxeval.wording import counted, did_you_mean

ONE_HOT_COLUMNS = ("winner_model_a", "winner_model_b", "winner_tie")
#: Of a table of counts: battles that side A won, that were ties, that side B won.
COUNT_COLUMNS = ("wins_a", "ties", "wins_b")
#: Names by which a result is found that nobody named, and the one that must not stand beside it.
STANDARD_COLUMNS = ("winner", "target", *ONE_HOT_COLUMNS, *COUNT_COLUMNS, "count")

#: What a table's result may be, in words.
EXPECTED_RESULTS = (
    f"'winner', 'target', the one-hot columns {', '.join(ONE_HOT_COLUMNS)}, or the counts {', '.join(COUNT_COLUMNS)}"
)
#: What to do where none of them is there.
NAME_ANOTHER = (
    "name another with winner=, target= or scores=, or winner_model= and loser_model=; on the command line --winner, "
    "--target, --scores, or --winner-model and --loser-model"
)


@dataclass(frozen=True, kw_only=True)
class ResultColumns:
    """Where a table's results are, and how they are read; as of `Battles.from_pandas`."""

    winner: str | None = None
    target: str | None = None
    scores: tuple[str, str] | None = None
    tie_within: float = 0.0
    labels: Labels | None = None
    count: str | None = None
    always: bool = False  # side A always wins: the columns of the models are those of winners and losers

    def __post_init__(self) -> None:
        """Check what needs no table.

        Raises:
            ValueError: two results are named, or an option without the result that it belongs to.
        """
        named = {"winner": self.winner, "target": self.target, "scores": self.scores}
        given = [f"{name}=" for name, column in named.items() if column is not None]
        if self.always:
            given.append("winner_model= and loser_model=")
        if len(given) > 1:
            raise ValueError(f"the result is given once, got {' and '.join(given)}")
        if self.labels is not None and given and self.winner is None:
            raise ValueError(f"labels= says what the labels of a column winner mean: leave it or {given[0]} out")
        check_labels(self.labels)
        if self.scores is not None and (isinstance(self.scores, str) or len(self.scores) != 2):
            raise ValueError(f"scores= names the columns of both sides, ('home', 'away'), got {self.scores!r}")
        if not (self.tie_within >= 0 and np.isfinite(self.tie_within)):
            raise ValueError(f"tie_within is a difference of scores >= 0, got {self.tie_within!r}")
        if self.tie_within and self.scores is None:
            raise ValueError("tie_within= is about scores=, which are not given")

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that the user named."""
        return tuple(c for c in (self.winner, self.target, *(self.scores or ()), self.count) if c is not None)

    @property
    def searched(self) -> bool:
        """Whether the result is in a column with a standard name."""
        return self.winner is None and self.target is None and self.scores is None and not self.always


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Results of K battles, or of several equal ones each; of a table of counts, three a row."""

    row: NDArray[np.intp] | None  # (K,) row of the table that each is from; None: the rows themselves
    target: Float  # (K,) probability that side A wins
    both_bad: Bool  # (K,) whether the label is both-bad
    count: Int | None  # (K,) battles of a row of the input, maybe none; None: one each
    weight: Float | None = None  # (K,) of the label; None: 1 each
    told: str = ""  # how labels were read, where they are not in jaxeval's own words
    families: tuple[str, ...] = ()  # of words, see `LabelledResults`


def result_columns(
    winner: str | None,
    target: str | None,
    scores: tuple[str, str] | None,
    tie_within: float,
    winner_model: str | None,
    loser_model: str | None,
    labels: Labels | None,
    count: str | None,
) -> ResultColumns:
    """The columns that `Battles.from_pandas` is told of.

    Raises:
        ValueError: they do not go together.
    """
    if (winner_model is None) != (loser_model is None):
        raise ValueError(
            "winner_model= and loser_model= go together: name both (on the command line --winner-model and "
            "--loser-model), or winner= of labels"
        )
    always = winner_model is not None
    return ResultColumns(
        winner=winner, target=target, scores=scores, tie_within=tie_within, labels=labels, count=count, always=always
    )


def sought(named: Sequence[str], asked: ResultColumns) -> list[str]:
    """Names of columns that may be there in another spelling: all ``named``, and those of results and counts."""
    return [*named, *(STANDARD_COLUMNS if asked.searched else [])]


def there(frame: pd.DataFrame, models: Sequence[str], asked: ResultColumns) -> Bool:
    """(N,) whether a row has its models and its result."""
    results: Sequence[str] = [c for c in (asked.winner, asked.target, *(asked.scores or ())) if c is not None]
    if asked.searched:
        labelled = [c for c in ("winner", "target") if c in frame.columns]
        results = labelled or (COUNT_COLUMNS if has_counts(frame.columns) else ONE_HOT_COLUMNS)
    whole = np.ones(len(frame), bool)
    for name in dict.fromkeys([*models, *(c for c in results if c in frame.columns)]):
        try:
            codes, found = factorized(frame[name])
        except TypeError:  # lists and the like: what they are is told later
            whole &= frame[name].notna().to_numpy()
            continue
        blank = [isinstance(value, str) and not value.strip() for value in found]
        whole &= ~np.array([*blank, True])[codes]
    return whole


def read_outcomes(frame: pd.DataFrame, asked: ResultColumns, sides: Sides, rows: Rows | None = None) -> Outcomes:
    """The results in a table."""
    if asked.searched and has_counts(frame.columns):
        if asked.count is not None:
            raise ValueError(f"the columns {', '.join(COUNT_COLUMNS)} are counts already: leave count= out")
        counts = np.stack([whole_numbers(frame[c], c, rows) for c in COUNT_COLUMNS], 1)
        none = np.zeros(counts.size, bool)
        row = np.repeat(np.arange(len(frame)), len(COUNT_COLUMNS))
        return Outcomes(row, np.tile([1.0, 0.5, 0.0], len(frame)), none, counts.reshape(-1))
    count = None if asked.count is None else whole_numbers(frame[asked.count], asked.count, rows)
    found = _labelled(frame, asked, sides, rows)
    return Outcomes(None, found.target, found.both_bad, count, found.weight, found.told, found.families)


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


def _labelled(frame: pd.DataFrame, asked: ResultColumns, sides: Sides, rows: Rows | None) -> LabelledResults:
    """The result of every row."""
    winner, target = asked.winner, asked.target
    if asked.always:
        return _hard(np.ones(len(frame)))
    if asked.scores is not None:
        return _hard(_by_scores(frame, *asked.scores, asked.tie_within, rows))
    if winner is None and target is None:
        found = [c for c in ("winner", "target") if c in frame.columns]
        if not found and all(c in frame.columns for c in ONE_HOT_COLUMNS):
            return _hard(_one_hot_targets(frame, rows))
        if len(found) == 2:
            raise DataError(
                "the table has both a 'winner' and a 'target' column: name the one to use, "
                "winner='winner' or target='target'"
            )
        if not found:
            have = ", ".join(map(repr, frame.columns))
            raise DataError(
                f"no result column: expected {EXPECTED_RESULTS}; the table has {have} ({NAME_ANOTHER})"
                f"{did_you_mean('winner', frame.columns)}"
            )
        winner, target = ("winner", None) if found == ["winner"] else (None, "target")
    if target is not None:
        values = numbers(frame[target], target, rows)
        reject_values(values, (values < 0) | (values > 1), target, "targets must lie in [0, 1]", rows)
        return _hard(values)
    return read_labels(
        frame[winner], asked.labels, sides, rows, advice=", or name a column of probabilities that side A wins, target="
    )


def _hard(target: Float) -> LabelledResults:
    """Results without labels."""
    return LabelledResults(target, np.zeros(len(target), bool), None)


def _by_scores(frame: pd.DataFrame, of_a: str, of_b: str, tie_within: float, rows: Rows | None) -> Float:
    """(N,) targets by scores of both sides, of which the larger wins."""
    scores = []
    for name in (of_a, of_b):
        values = numbers(frame[name], name, rows)
        reject_values(values, (values < 0) | np.isinf(values), name, "scores must be finite and >= 0", rows)
        scores.append(values)
    return by_difference(scores[0], scores[1], tie_within)


def by_difference(of_a: Float, of_b: Float, tie_within: float) -> Float:
    """(N,) targets by scores, of which the larger wins; 1.1 and 1.0 differ by 0.1, whatever their last binary digit."""
    difference = of_a - of_b
    close = np.abs(difference) <= tie_within + 4 * np.finfo(float).eps * np.maximum(np.abs(of_a), np.abs(of_b))
    return np.where(close, 0.5, np.where(difference > 0, 1.0, 0.0))


def opposed_winners(winner: pd.Series, target: Float) -> tuple[Bool, Bool]:
    """(N,) where a label and a target name opposite sides, and (N,) where both name one; unknown labels name none."""
    try:
        codes, found = factorized(winner)
    except TypeError:  # values that are no labels
        codes, found = np.full(len(winner), -1), pd.Index([])
    side_of = np.array([*(STANDARD[label].target if label in STANDARD else 0.5 for label in found), 0.5]) - 0.5
    product = side_of[codes] * (target - 0.5)
    return product < 0, product != 0


def _one_hot_targets(frame: pd.DataFrame, rows: Rows | None) -> Float:
    values = np.stack([numbers(frame[c], c, rows) for c in ONE_HOT_COLUMNS])
    bad = ~(np.isin(values, (0, 1)).all(0) & (values.sum(0) == 1))
    if bad.any():
        first = int(bad.argmax())
        found = ", ".join(f"{v:g}" for v in values[:, first])
        place = f"row {first}" if rows is None else rows.place(first)
        raise DataError(
            f"columns {', '.join(ONE_HOT_COLUMNS)} must hold one 1 and two 0s in each row; "
            f"{counted(count_rows(bad, rows), 'row does', 'rows do')} not"
            f"{f' (rows count from 0; first {place}: {found})' if place else f', as {found}'}"
        )
    return values[0] + 0.5 * values[2]
