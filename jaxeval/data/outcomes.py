"""Outcomes of battles from columns: labels, one-hot columns, soft targets, scores of both sides, and counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from jaxeval.arrays import Bool, Float
from jaxeval.data.columns import Columns, Rows, count_rows, factorized, folded, numbers, reject_values, whole_numbers
from jaxeval.data.conditions import columns_of
from jaxeval.data.labels import STANDARD, LabelledResults, Labels, Sides, check_labels, read_labels
from jaxeval.errors import ColumnError, DataError
from jaxeval.lazy_names import pd
from jaxeval.options.columns import VoteReading
from jaxeval.options.field import again, option
from jaxeval.options.resampling import DrawnTogether
from jaxeval.wording import counted, did_you_mean

ONE_HOT_COLUMNS = ("winner_model_a", "winner_model_b", "winner_tie")
#: Columns of a table of counts: battles that side A won, ties, and battles that side B won.
COUNT_COLUMNS = ("wins_a", "ties", "wins_b")
#: Names by which a result is found if the user names none; and "count", which must not stand beside single battles.
STANDARD_COLUMNS = ("winner", "target", *ONE_HOT_COLUMNS, *COUNT_COLUMNS, "count")


def result_columns(names: Collection[Any]) -> tuple[str, ...]:
    """Return the columns of results, by standard names, of a table with these columns; none where it has none."""
    if labelled := tuple(name for name in ("winner", "target") if name in names):
        return labelled
    return next((kind for kind in (ONE_HOT_COLUMNS, COUNT_COLUMNS) if all(name in names for name in kind)), ())


class ReadColumns(NamedTuple):
    """The columns that a reader of battles names, by what they are for."""

    sides: tuple[str, str]
    results: tuple[str, ...]
    further: tuple[str, ...]  # of counts, weights and clusters
    standard: tuple[str, ...]  # names by which a result is found, if the user names none


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

    @cached_property
    def roles(self) -> ReadColumns:
        """The columns that are named."""
        sides = self.winner_model or self.model_a, self.loser_model or self.model_b
        results = [*filter(None, (self.winner, self.target)), *(self.scores or ()), *(self.counts or ())]
        further = [name for name in (self.count, self.weight, self.propensity, self.cluster) if name is not None]
        standard = () if self._results else STANDARD_COLUMNS if self.count is None else STANDARD_COLUMNS[:-1]
        return ReadColumns(sides, tuple(results), tuple(further), standard)

    def results_of(self, names: Collection[Any]) -> tuple[str, ...]:
        """Return the columns of the results of a table with these columns: those that are named, or of standard names.

        Raises:
            ColumnError: no column holds results.
            DataError: a column "count" stands beside the results of single battles, and the user named neither.
        """
        if not self.roles.standard:
            return self.roles.results
        found = result_columns(names)
        if not found:
            raise ColumnError(
                f"no result column: expected 'winner', 'target', the one-hot columns {', '.join(ONE_HOT_COLUMNS)}, or "
                f"the counts {', '.join(COUNT_COLUMNS)}; the table has {', '.join(map(repr, names))} (name another "
                "with winner=, target= or scores=, or winner_model= and loser_model=; on the command line --winner, "
                f"--target, --scores, or --winner-model and --loser-model){did_you_mean('winner', names)}"
            )
        if "count" in names and self.count is None and found != COUNT_COLUMNS:
            alone = f"name the result ({found[0]}={found[0]!r}, on the command line --{found[0]} {found[0]})"
            raise DataError(
                f"the table has a column 'count' beside {found[0]!r}: if it says how many battles a row stands for, "
                "name it (count='count', on the command line --count count); if not, "
                f"{'drop or rename it' if found == ONE_HOT_COLUMNS else alone}"
            )
        return found

    def needed(self, keep: Sequence[str] = ()) -> Columns:
        """Return the columns to read of a file: those that are named, of its condition, of results, and ``keep``."""
        roles = self.roles
        named, beside = [*roles.sides, *roles.results, *roles.further, *keep], roles.standard
        if self.target not in (None, "winner"):
            beside = ("winner",)
        known = {folded(name) for name in (*named, *roles.standard)}
        named += [name for name in (columns_of(self.where) if self.where else ()) if folded(name) not in known]
        return Columns(tuple(dict.fromkeys(named)), beside, self.results_of if roles.standard else None)


def there(frame: pd.DataFrame, columns: Sequence[str]) -> Bool:
    """Return (N,) whether a row has a value in each of the columns."""
    whole = np.ones(len(frame), bool)
    for name in dict.fromkeys(columns):
        try:
            codes, distinct = factorized(frame[name])
        except TypeError:  # lists and the like, which are reported later
            whole &= frame[name].notna().to_numpy()
            continue
        blank = [isinstance(value, str) and not value.strip() for value in distinct]
        whole &= ~np.array([*blank, True])[codes]
    return whole


def read_outcomes(
    frame: pd.DataFrame, reading: BattleReading, sides: Sides, results: Sequence[str], rows: Rows | None = None
) -> LabelledResults:
    """Return the results in the columns ``results`` of a table; a table of counts has three per row."""
    if reading.counts or results == COUNT_COLUMNS:
        if reading.count is not None:
            raise ValueError(
                f"the columns {', '.join(results)} are counts already: leave out count= (on the command line --count)"
            )
        counts = np.stack([whole_numbers(frame[c], c, rows) for c in results], 1)
        none = np.zeros(counts.size, bool)
        row = np.repeat(np.arange(len(frame)), len(results))
        return LabelledResults(np.tile([1.0, 0.5, 0.0], len(frame)), none, None, row=row, times=counts.reshape(-1))
    count = None if reading.count is None else whole_numbers(frame[reading.count], reading.count, rows)
    if reading.winner_model is not None:  # side A always wins
        target = np.ones(len(frame))
    elif reading.scores is not None:
        scores = []
        for name in results:
            values = numbers(frame[name], name, rows)
            reject_values(values, (values < 0) | np.isinf(values), name, "scores must be finite and >= 0", rows)
            scores.append(values)
        target = by_difference(scores[0], scores[1], reading.tie_within)
    elif results == ONE_HOT_COLUMNS:
        target = _one_hot_targets(frame, rows)
    elif len(results) > 1:
        raise DataError(
            "the table has both a 'winner' and a 'target' column: name the one to use, winner='winner' or "
            "target='target' (on the command line --winner winner or --target target)"
        )
    elif reading.target is not None or (reading.winner is None and results == ("target",)):
        target = numbers(frame[results[0]], results[0], rows)
        reject_values(target, (target < 0) | (target > 1), results[0], "targets must lie in [0, 1]", rows)
    else:
        advice = ", or name a column of probabilities that side A wins with target= (on the command line --target)"
        labels = cast(Labels, reading.labels)  # which is checked
        return read_labels(frame[results[0]], labels, sides, rows, advice=advice)._replace(times=count)
    return LabelledResults(target, np.zeros(len(target), bool), None, times=count)


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
