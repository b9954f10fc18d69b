"""Outcomes of battles from columns: labels, one-hot columns, soft targets, scores of both sides, and counts."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from jaxeval.arrays import Bool, Float
from jaxeval.data.columns import Rows, count_rows, factorized, numbers, reject_values, renames, whole_numbers
from jaxeval.data.labels import STANDARD, LabelledResults, Labels, Sides, check_labels, read_labels
from jaxeval.data.nested_columns import told_fields
from jaxeval.errors import ColumnError, DataError
from jaxeval.lazy_names import pd
from jaxeval.options.columns import VoteReading
from jaxeval.options.field import again, option
from jaxeval.options.resampling import DrawnTogether
from jaxeval.wording import counted, did_you_mean


class NeededColumns(NamedTuple):
    """The ``named`` columns, which a table must have, and the ``results``, of which it must have at least one."""

    named: tuple[str, ...]
    results: tuple[str, ...]
    counted: bool = False  # whether one of them counts equal battles
    beside: tuple[str, ...] = ()  # columns that are read if they are there
    every: bool = False  # all columns are read, whatever is named

    def among(self, names: Sequence[str], fields: Sequence[str] = ()) -> list[str]:
        """Return the needed ones of the columns ``names``, and of the ``fields`` within them."""
        if self.every:
            return list(names)
        sought = {*self.named, *self.results, *self.beside}
        within = [name for name in dict.fromkeys(self.named) if name not in names and name in fields]
        return [name for name in names if name in sought] + within

    def choose(self, names: Sequence[str], fields: Sequence[str] = ()) -> list[str]:
        """Give the needed columns of a file with these ``names`` and ``fields`` within; an error if one is missing."""
        if self.every:
            return list(names)
        have = ", ".join(map(repr, names))
        for column in {*self.named, *self.results, *self.beside}:
            if (times := names.count(column)) > 1:
                raise DataError(f"the table has {times} columns named {column!r}; rename or drop all but one")
        for column in self.named:
            if column not in names and column not in fields:
                advice = f" (name your own: {column}=, on the command line --{column.replace('_', '-')})"
                raise ColumnError(
                    f"no column {column!r} in the table; its columns are {have}"
                    f"{advice if column in ('model_a', 'model_b') else ''}{told_fields(column, fields)}"
                    f"{did_you_mean(column, [*names, *fields])}"
                )
        of_counts = COUNT_COLUMNS if has_counts(names) else ()
        results = [c for c in self.results if c in names and (c not in COUNT_COLUMNS or c in of_counts)]
        if self.results and not results:
            raise no_result(names)
        if self.results and not self.counted:
            reject_unnamed_count(names)
        return list(dict.fromkeys([*self.named, *results, *(c for c in self.beside if c in names)]))

    def spelled(self, names: Sequence[str], fields: Sequence[str] = ()) -> dict[str, str]:
        """Return the needed names, by the file's names of the same columns in another spelling."""
        wanted = [*self.named, *self.results, *(["count"] if self.results and not self.counted else [])]
        return renames(wanted, names) | renames([name for name in self.named if name not in names], fields)

    def renamed(self, spelled: Mapping[str, str]) -> NeededColumns:
        """Return the same columns under the file's own names, which `spelled` found."""
        of_file = {name: column for column, name in spelled.items()}
        named, results = (tuple(of_file.get(c, c) for c in columns) for columns in (self.named, self.results))
        return self._replace(named=named, results=results)


#: Every column of a file is read.
ALL_COLUMNS = NeededColumns(named=(), results=(), every=True)


ONE_HOT_COLUMNS = ("winner_model_a", "winner_model_b", "winner_tie")
#: Columns of a table of counts: battles that side A won, ties, and battles that side B won.
COUNT_COLUMNS = ("wins_a", "ties", "wins_b")
#: Names by which a result is found if the user names none; and "count", which must not stand beside single battles.
STANDARD_COLUMNS = ("winner", "target", *ONE_HOT_COLUMNS, *COUNT_COLUMNS, "count")


def no_result(columns: Sequence[Any]) -> ColumnError:
    """Return the error about a table with these columns, none of which holds results."""
    return ColumnError(
        f"no result column: expected 'winner', 'target', the one-hot columns {', '.join(ONE_HOT_COLUMNS)}, or the "
        f"counts {', '.join(COUNT_COLUMNS)}; the table has {', '.join(map(repr, columns))} (name another with winner=, "
        "target= or scores=, or winner_model= and loser_model=; on the command line --winner, --target, --scores, or "
        f"--winner-model and --loser-model){did_you_mean('winner', columns)}"
    )


class BattleReading(VoteReading):
    """How a table of battles is read: arguments of `Battles.from_pandas`."""

    cluster: str | None = again(DrawnTogether, "cluster")
    competitor: str | Sequence[str] | None = option(None, "What competes, in a word.", flag="")

    def __post_init__(self) -> None:
        """Check what needs no table.

        Raises:
            ValueError: two results are named, or an option without the result that it belongs to.
        """
        if (self.winner_model is None) != (self.loser_model is None):
            raise ValueError(
                "winner_model= and loser_model= go together: name both (on the command line --winner-model and "
                "--loser-model), or winner= of labels"
            )
        if len(self._results) > 1:
            raise ValueError(f"give the result once, got {' and '.join(self._results)}")
        if self.labels is not None:
            if self._results and self.winner is None:
                raise ValueError(
                    f"labels= belongs to a column of labels, winner=: leave out labels= or {self._results[0]}"
                )
            check_labels(self.labels)
        if self.counts is not None and (isinstance(self.counts, str) or len(self.counts) != len(COUNT_COLUMNS)):
            raise ValueError(f"counts= must name three columns, ('wins_a', 'ties', 'wins_b'), got {self.counts!r}")
        if self.scores is not None and (isinstance(self.scores, str) or len(self.scores) != 2):
            raise ValueError(f"scores= must name the columns of both sides, ('home', 'away'), got {self.scores!r}")
        if not (self.tie_within >= 0 and np.isfinite(self.tie_within)):
            raise ValueError(f"tie_within must be a finite difference of scores >= 0, got {self.tie_within!r}")
        if self.tie_within and self.scores is None:
            raise ValueError("tie_within= needs scores=, which is not given")

    @property
    def _results(self) -> list[str]:
        """The results that the user named."""
        names = ("winner", "target", "scores", "counts")
        options = [f"{name}=" for name in names if getattr(self, name) is not None]
        return [*options, *(["winner_model= and loser_model="] if self.winner_model is not None else [])]

    @property
    def sides(self) -> tuple[str, str]:
        """The columns of the models on side A and side B."""
        return self.winner_model or self.model_a, self.loser_model or self.model_b

    @property
    def named(self) -> tuple[str, ...]:
        """The columns of results and counts that the user named."""
        more = (*(self.scores or ()), *(self.counts or ()), self.count)
        return tuple(c for c in (self.winner, self.target, *more) if c is not None)

    @property
    def searched(self) -> bool:
        """Whether the result is in a column with a standard name."""
        return not self._results

    @property
    def further(self) -> list[str]:
        """The columns of weights and clusters."""
        return [c for c in (self.weight, self.propensity, self.cluster) if c is not None]


def there(frame: pd.DataFrame, models: Sequence[str], reading: BattleReading) -> Bool:
    """Return (N,) whether a row has its models and its result."""
    results: Sequence[str] = [c for c in reading.named if c != reading.count]
    if reading.searched:
        labelled = [c for c in ("winner", "target") if c in frame.columns]
        results = labelled or (COUNT_COLUMNS if has_counts(frame.columns) else ONE_HOT_COLUMNS)
    whole = np.ones(len(frame), bool)
    for name in dict.fromkeys([*models, *(c for c in results if c in frame.columns)]):
        try:
            codes, distinct = factorized(frame[name])
        except TypeError:  # lists and the like, which are reported later
            whole &= frame[name].notna().to_numpy()
            continue
        blank = [isinstance(value, str) and not value.strip() for value in distinct]
        whole &= ~np.array([*blank, True])[codes]
    return whole


def read_outcomes(
    frame: pd.DataFrame, reading: BattleReading, sides: Sides, rows: Rows | None = None
) -> LabelledResults:
    """Return the results in a table; a table of counts has three per row."""
    names = reading.counts or (COUNT_COLUMNS if reading.searched and has_counts(frame.columns) else None)
    if names is not None:
        if reading.count is not None:
            raise ValueError(
                f"the columns {', '.join(names)} are counts already: leave out count= (on the command line --count)"
            )
        counts = np.stack([whole_numbers(frame[c], c, rows) for c in names], 1)
        none = np.zeros(counts.size, bool)
        row = np.repeat(np.arange(len(frame)), len(names))
        return LabelledResults(np.tile([1.0, 0.5, 0.0], len(frame)), none, None, row=row, times=counts.reshape(-1))
    count = None if reading.count is None else whole_numbers(frame[reading.count], reading.count, rows)
    return _labelled(frame, reading, sides, rows)._replace(times=count)


def has_counts(columns: Container[Any]) -> bool:
    """Return whether a table with these columns is a table of counts: any other result in it would come first."""
    others = any(c in columns for c in ("winner", "target")) or all(c in columns for c in ONE_HOT_COLUMNS)
    return not others and all(c in columns for c in COUNT_COLUMNS)


def reject_unnamed_count(columns: Container[Any]) -> None:
    """Raise an error if a column "count" stands beside the result of single battles, and the user named neither."""
    result = next((c for c in ("winner", "target", ONE_HOT_COLUMNS[0]) if c in columns), None)
    if "count" not in columns or result is None or has_counts(columns):
        return
    alone = f"name the result ({result}={result!r}, on the command line --{result} {result})"
    raise DataError(
        f"the table has a column 'count' beside {result!r}: if it says how many battles a row stands for, name it "
        "(count='count', on the command line --count count); if not, "
        f"{'drop or rename it' if result in ONE_HOT_COLUMNS else alone}"
    )


def _labelled(frame: pd.DataFrame, reading: BattleReading, sides: Sides, rows: Rows | None) -> LabelledResults:
    """Return the result of every row."""
    winner, target = reading.winner, reading.target
    if reading.winner_model is not None:  # side A always wins
        return _hard(np.ones(len(frame)))
    if reading.scores is not None:
        scores = []
        for name in reading.scores:
            values = numbers(frame[name], name, rows)
            reject_values(values, (values < 0) | np.isinf(values), name, "scores must be finite and >= 0", rows)
            scores.append(values)
        return _hard(by_difference(scores[0], scores[1], reading.tie_within))
    if winner is None and target is None:
        columns = [c for c in ("winner", "target") if c in frame.columns]
        if not columns and all(c in frame.columns for c in ONE_HOT_COLUMNS):
            return _hard(_one_hot_targets(frame, rows))
        if len(columns) == 2:
            raise DataError(
                "the table has both a 'winner' and a 'target' column: name the one to use, winner='winner' or "
                "target='target' (on the command line --winner winner or --target target)"
            )
        if not columns:
            raise no_result(frame.columns)
        winner, target = ("winner", None) if columns == ["winner"] else (None, "target")
    if target is not None:
        values = numbers(frame[target], target, rows)
        reject_values(values, (values < 0) | (values > 1), target, "targets must lie in [0, 1]", rows)
        return _hard(values)
    return read_labels(
        frame[winner],
        cast(Labels, reading.labels),  # which is checked
        sides,
        rows,
        advice=", or name a column of probabilities that side A wins with target= (on the command line --target)",
    )


def _hard(target: Float) -> LabelledResults:
    """Results without labels."""
    return LabelledResults(target, np.zeros(len(target), bool), None)


def by_difference(of_a: Float, of_b: Float, tie_within: float) -> Float:
    """(N,) targets by scores; the larger wins. 1.1 and 1.0 differ by 0.1, whatever rounding does to the last digit."""
    difference = of_a - of_b
    close = np.abs(difference) <= tie_within + 4 * np.finfo(float).eps * np.maximum(np.abs(of_a), np.abs(of_b))
    return np.where(close, 0.5, np.where(difference > 0, 1.0, 0.0))


def opposed_winners(winner: pd.Series, target: Float) -> tuple[Bool, Bool]:
    """(N,) whether label and target name opposite sides, and (N,) whether both name a side; unknown labels do not."""
    try:
        codes, labels = factorized(winner)
    except TypeError:  # values that are no labels
        codes, labels = np.full(len(winner), -1), pd.Index([])
    side_of = np.array([*(STANDARD[label].target if label in STANDARD else 0.5 for label in labels), 0.5]) - 0.5
    product = side_of[codes] * (target - 0.5)
    return product < 0, product != 0


def _one_hot_targets(frame: pd.DataFrame, rows: Rows | None) -> Float:
    values = np.stack([numbers(frame[c], c, rows) for c in ONE_HOT_COLUMNS])
    bad = ~(np.isin(values, (0, 1)).all(0) & (values.sum(0) == 1))
    if bad.any():
        first = int(bad.argmax())
        shown = ", ".join(f"{v:g}" for v in values[:, first])
        place = f"row {first}" if rows is None else rows.place(first)
        where = f"first in {place}: {shown}; rows count from 0" if place else f"the first is {shown}"
        raise DataError(
            f"columns {', '.join(ONE_HOT_COLUMNS)} must hold one 1 and two 0s in each row; "
            f"{counted(count_rows(bad, rows), 'row does', 'rows do')} not ({where})"
        )
    return values[0] + 0.5 * values[2]
