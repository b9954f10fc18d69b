"""Battles from Parquet, CSV and JSON-lines files of any size, reading only the columns that are needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jaxeval.data.battles import Battles
from jaxeval.data.columns import Rows, frame_of
from jaxeval.data.equal_rows import EqualRows, Merged
from jaxeval.data.outcomes import COUNT_COLUMNS, EXPECTED_RESULTS, ONE_HOT_COLUMNS, has_counts, reject_unnamed_count
from jaxeval.data.table_files import files_of, naming, pieces, with_types
from jaxeval.errors import DataError
from jaxeval.execution.progress import Advance, progress_bar
from jaxeval.wording import did_you_mean

_RESULTS = ("winner", "target", *ONE_HOT_COLUMNS, *COUNT_COLUMNS)
_MEGABYTE = 1_000_000


def read_battles(
    path: str | Path | Sequence[str | Path],
    *,
    model_a: str = "model_a",
    model_b: str = "model_b",
    winner: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    count: str | None = None,
    cluster: str | None = None,
    keep: Sequence[str] = (),
    both_bad: Any = "half",
    progress: bool | None = None,
) -> Battles:
    """Battles from Parquet, CSV (or TSV, gzipped or not) and JSON-lines files, or from a table of counts in one.

    Files may be larger than memory: rows that are equal in all columns that are read become one row and their number,
    from about two million rows on. Memory grows with the distinct rows: columns such as ``cluster=`` (a voter's name, a
    time) that differ in every row keep all of them. A line of JSON may have 32 MiB, and 200 lists and objects within
    each other.

    Args:
        path: a file, a folder, a glob such as "votes/*.parquet", or a list of those, read as one table. The format
            follows from the ending: .parquet, .pq, .csv, .tsv, .jsonl, .ndjson, and .gz of the text formats.
        keep: further columns to read, for ``by=`` and ``cluster=`` of the estimators.
        model_a: as in `Battles.from_pandas`, like the other arguments.
        progress: show a bar on standard error; by default only on a terminal, for reading over 0.7 s.

    Raises:
        DataError: a file cannot be read as a table of battles, or files do not have the same columns.
        FileNotFoundError: there is no such file.
    """
    if isinstance(keep, str):
        raise TypeError(f"keep must be a list of column names, got the string {keep!r}")
    if hasattr(path, "__arrow_c_stream__"):
        raise TypeError(f"read_battles reads files, got a {type(path).__name__}: Battles.from_pandas reads tables")
    files = files_of(path)
    optional = [winner, target, weight, count, cluster, *keep]
    named = tuple(dict.fromkeys([model_a, model_b, *(c for c in optional if c is not None)]))
    needed = BattleColumns(
        named,
        () if winner or target else _RESULTS,
        count is not None,
        ("winner",) if target and target != "winner" else (),
    )
    several = f"{files[0].name} and {len(files) - 1} more" if len(files) > 1 else files[0].name
    label = Path(path).name if isinstance(path, str | Path) else several
    rows, starts, first_columns = EqualRows(), [], None
    with progress_bar(sum(map(_megabytes, files)), "reading MB", progress, compiles=False) as advance:
        for file in files:
            start = rows.n_rows
            merged, n_rows = _rows_of(file, needed, (model_a, model_b, winner or "winner"), advance)
            columns = merged.table.column_names
            first_columns = first_columns or columns
            for column in (*first_columns, *columns):
                if column not in columns or column not in first_columns:
                    lacks, has = (file, files[0]) if column in first_columns else (files[0], file)
                    raise DataError(
                        f"{lacks.name}: no column {column!r}, which {has.name} has: read them apart, or name the "
                        "column of the result that all have"
                    )
            starts.append((str(file.name), start))
            rows.add_merged(merged, n_rows, file.name)
    merged = rows.result()
    one = len(files) == 1 and len(merged.times) == rows.n_rows
    origin = None if one else Rows(merged.times, merged.first, tuple(starts) if len(files) > 1 else ())
    try:
        return Battles.from_rows(
            frame_of(merged.table),
            origin,
            model_a=model_a,
            model_b=model_b,
            winner=winner,
            target=target,
            weight=weight,
            count=count,
            cluster=cluster,
            both_bad=both_bad,
        )
    except DataError as error:
        raise type(error)(f"{label}: {error}") from error


def _rows_of(file: Path, needed: BattleColumns, text: Sequence[str], advance: Advance) -> tuple[Merged, int]:
    """The distinct rows of a file, and how many rows it has."""

    def read(widened: dict[str, Any]) -> tuple[Merged, int]:
        rows, told = EqualRows(), [0, 0]

        def advance_bytes(n: int) -> None:
            told[0] += n
            advance(told[0] // _MEGABYTE - told[1])
            told[1] = told[0] // _MEGABYTE

        for piece in pieces(file, needed, text, widened, advance_bytes):
            rows.add(piece, file.name)
        merged = rows.result()
        return merged._replace(table=merged.table.select(needed.choose(merged.table.column_names))), rows.n_rows

    with naming(file):
        return with_types(file, read)


def _megabytes(file: Path) -> int:
    return file.stat().st_size // _MEGABYTE


class BattleColumns(NamedTuple):
    """The ``named`` columns, all of which a file must have, and those of ``results``, of which it must have some."""

    named: tuple[str, ...]
    results: tuple[str, ...]
    counted: bool = False  # whether one of them counts equal battles
    beside: tuple[str, ...] = ()  # read if they are there: they are compared with the result

    def may(self, name: str) -> bool:
        """Whether a column is needed if it is there."""
        return name in self.named or name in self.results or name in self.beside

    def choose(self, names: Sequence[str]) -> list[str]:
        """Those out of all that a file has, or an error."""
        have = ", ".join(map(repr, names))
        for column in {*self.named, *self.results, *self.beside}:
            if (times := names.count(column)) > 1:
                raise DataError(f"the file has {times} columns named {column!r}; rename or drop all but one")
        for column in self.named:
            if column not in names:
                own = f" (name your own: {column}=, on the command line --{column.replace('_', '-')})"
                raise DataError(
                    f"no column {column!r} in the file; its columns are "
                    f"{have}{own if column in ('model_a', 'model_b') else ''}{did_you_mean(column, names)}"
                )
        of_counts = COUNT_COLUMNS if has_counts(names) else ()
        found = [c for c in self.results if c in names and (c not in COUNT_COLUMNS or c in of_counts)]
        if self.results and not found:
            raise DataError(
                f"no result column: expected {EXPECTED_RESULTS}; the file has {have} (name another as winner or "
                f"target){did_you_mean('winner', names)}"
            )
        if self.results and not self.counted:
            reject_unnamed_count(names)
        return list(dict.fromkeys([*self.named, *found, *(c for c in self.beside if c in names)]))
