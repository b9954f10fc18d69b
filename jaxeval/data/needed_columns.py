"""Which columns of a file are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jaxeval.data.columns import renames
from jaxeval.data.nested_columns import told_fields
from jaxeval.data.outcomes import COUNT_COLUMNS, EXPECTED_RESULTS, NAME_ANOTHER, has_counts, reject_unnamed_count
from jaxeval.errors import DataError
from jaxeval.wording import did_you_mean


class NeededColumns(NamedTuple):
    """The ``named`` columns, which a table must have, and the ``results``, of which it must have at least one."""

    named: tuple[str, ...]
    results: tuple[str, ...]
    counted: bool = False  # whether one of them counts equal battles
    beside: tuple[str, ...] = ()  # columns that are read if they are there
    every: bool = False  # all columns are read, whatever is named

    def among(self, names: Sequence[str], fields: Sequence[str] = ()) -> list[str]:
        """The needed ones of the columns ``names``, and of the ``fields`` within them."""
        if self.every:
            return list(names)
        sought = {*self.named, *self.results, *self.beside}
        within = [name for name in dict.fromkeys(self.named) if name not in names and name in fields]
        return [name for name in names if name in sought] + within

    def choose(self, names: Sequence[str], fields: Sequence[str] = ()) -> list[str]:
        """The needed columns of a file with these ``names`` and ``fields`` within; an error if one is missing."""
        if self.every:
            return list(names)
        have = ", ".join(map(repr, names))
        for column in {*self.named, *self.results, *self.beside}:
            if (times := names.count(column)) > 1:
                raise DataError(f"the table has {times} columns named {column!r}; rename or drop all but one")
        for column in self.named:
            if column not in names and column not in fields:
                own = f" (name your own: {column}=, on the command line --{column.replace('_', '-')})"
                raise DataError(
                    f"no column {column!r} in the table; its columns are {have}"
                    f"{own if column in ('model_a', 'model_b') else ''}{told_fields(column, fields)}"
                    f"{did_you_mean(column, [*names, *fields])}"
                )
        of_counts = COUNT_COLUMNS if has_counts(names) else ()
        found = [c for c in self.results if c in names and (c not in COUNT_COLUMNS or c in of_counts)]
        if self.results and not found:
            raise DataError(
                f"no result column: expected {EXPECTED_RESULTS}; the table has {have} ({NAME_ANOTHER})"
                f"{did_you_mean('winner', names)}"
            )
        if self.results and not self.counted:
            reject_unnamed_count(names)
        return list(dict.fromkeys([*self.named, *found, *(c for c in self.beside if c in names)]))

    def spelled(self, names: Sequence[str], fields: Sequence[str] = ()) -> dict[str, str]:
        """The needed names, by the file's names of the same columns in another spelling."""
        wanted = [*self.named, *self.results, *(["count"] if self.results and not self.counted else [])]
        return renames(wanted, names) | renames([name for name in self.named if name not in names], fields)

    def renamed(self, spelled: Mapping[str, str]) -> NeededColumns:
        """The same columns under the file's own names, which `spelled` found."""
        found = {name: column for column, name in spelled.items()}
        named, results = (tuple(found.get(c, c) for c in columns) for columns in (self.named, self.results))
        return self._replace(named=named, results=results)


#: Every column of a file is read.
ALL_COLUMNS = NeededColumns(named=(), results=(), every=True)
