"""Battles from Parquet, CSV and JSON-lines files, reading only the columns that are needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxeval.battles import Battles
from jaxeval.columns import DataError
from jaxeval.outcomes import ONE_HOT_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

_PARQUET = (".parquet", ".pq")
_CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_JSON_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")


def read_battles(
    path: str | Path,
    *,
    model_a: str = "model_a",
    model_b: str = "model_b",
    winner: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    cluster: str | None = None,
    keep: Sequence[str] = (),
    both_bad: Any = "half",
) -> Battles:
    """Battles from a Parquet, CSV (or TSV, gzipped or not) or JSON-lines file.

    Args:
        path: the format follows from its ending: .parquet, .pq, .csv, .tsv, .jsonl, .ndjson, and .gz of the text
            formats.
        keep: further columns to read, for ``by=`` and ``cluster=`` of the estimators.
        model_a: as in `Battles.from_pandas`, like the other arguments.

    Raises:
        DataError: the file cannot be read as a table of battles.
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
    optional = [winner, target, weight, cluster, *keep]
    if isinstance(keep, str):
        raise TypeError(f"keep must be a list of column names, got the string {keep!r}")
    named = [model_a, model_b, *(c for c in optional if c is not None)]
    results = [] if winner or target else ["winner", "target", *ONE_HOT_COLUMNS]
    try:
        table = _read_table(path, named, results, text=(model_a, model_b, winner or "winner"))
        return Battles.from_pandas(
            table.to_pandas(),
            model_a=model_a,
            model_b=model_b,
            winner=winner,
            target=target,
            weight=weight,
            cluster=cluster,
            both_bad=both_bad,
        )
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from error


def read_whole_table(path: Path, text: Sequence[str]) -> pa.Table:
    """All columns of a file; ``text`` columns are read as strings.

    Raises:
        DataError: the file cannot be read as a table.
        FileNotFoundError: there is no such file.
    """
    return _read_table(path, [], [], text)


def column_names(path: Path) -> list[str]:
    """Names of the columns of a file, as `read_whole_table` reads it."""
    if path.name.lower().endswith(_PARQUET) and path.exists():
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return list(pq.read_schema(path).names)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path.name}: cannot be read: {error}") from error
    return list(read_whole_table(path, ()).column_names)


def _read_table(path: Path, named: list[str], results: list[str], text: Sequence[str]) -> pa.Table:
    """The ``named`` columns, all of which the file must have, and those of ``results`` that it has; all if none is.

    ``text`` columns are read as strings.
    """
    import pyarrow as pa

    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    name = path.name.lower()
    try:
        if name.endswith(_PARQUET):
            return _read_parquet(path, named, results)
        if path.stat().st_size == 0:
            raise DataError("the file is empty")
        if name.endswith(_CSV):
            return _read_csv(path, named, results, text)
        if name.endswith(_JSON_LINES):
            return _read_json_lines(path, named, results)
    except (pa.ArrowException, OSError) as error:
        hint = "; save the file as UTF-8" if "UTF8" in str(error) else ""
        raise DataError(f"cannot be read: {error}{hint}") from error
    endings = ", ".join((*_PARQUET, *_CSV, *_JSON_LINES))
    raise DataError(f"unknown file type; known endings are {endings}")


def _read_parquet(path: Path, named: list[str], results: list[str]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    columns = _columns(named, results, schema.names)
    strings = [
        c for c in columns if pa.types.is_string(schema.field(c).type) or pa.types.is_large_string(schema.field(c).type)
    ]
    # Dictionary pages arrive as codes: strings are then never built row by row.
    return pq.read_table(path, columns=columns, read_dictionary=strings)


def _read_csv(path: Path, named: list[str], results: list[str], text: Sequence[str]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    tab = ".tsv" in path.name.lower()
    parse = csv.ParseOptions(delimiter="\t" if tab else ",", newlines_in_values=True)
    with _opened(path) as file, csv.open_csv(file, parse_options=parse) as reader:
        names = reader.schema.names
    convert = csv.ConvertOptions(
        include_columns=_columns(named, results, names),
        column_types={c: pa.dictionary(pa.int32(), pa.string()) for c in text if c in names},
        # Only an empty field is missing: "NA" or "null" may be somebody's label.
        null_values=[""],
        strings_can_be_null=True,
    )
    with _opened(path) as file:
        return csv.read_csv(file, parse_options=parse, convert_options=convert)


def _read_json_lines(path: Path, named: list[str], results: list[str]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import json

    try:
        with _opened(path) as file:
            table = json.read_json(file)
    except pa.ArrowInvalid as error:
        if "changed from" not in str(error):
            raise
        # Some column, of no concern to us perhaps, has values of several types: only Python reads those.
        return _read_mixed_json_lines(path, named, results)
    return table.select(_columns(named, results, table.column_names))


def _read_mixed_json_lines(path: Path, named: list[str], results: list[str]) -> pa.Table:
    import json

    import pyarrow as pa

    rows = []
    with _opened(path) as file:
        for number, line in enumerate(file.read().split(b"\n"), start=1):
            if not line.strip():
                continue
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise DataError(f"line {number:,} cannot be read as JSON: {error}") from error
            if not isinstance(rows[-1], dict):
                raise DataError(f"line {number:,} cannot be read: every line must hold one JSON object, {{...}}")
    columns = _columns(named, results, list(dict.fromkeys(name for row in rows for name in row)))
    table = {}
    for name in columns:
        values = [row.get(name) for row in rows]
        try:
            table[name] = pa.array(values)
        except pa.ArrowException as error:
            kinds = Counter(type(value).__name__ for value in values if value is not None)
            found = ", ".join(f"{kind} ({count:,})" for kind, count in kinds.items())
            raise DataError(f"column {name!r} mixes values of types {found}; make them one, text for names") from error
    return pa.table(table)


def _opened(path: Path) -> pa.NativeFile:
    import pyarrow as pa

    return pa.input_stream(str(path), compression="gzip" if path.suffix.lower() == ".gz" else None)


def _columns(named: list[str], results: list[str], names: list[str]) -> list[str]:
    """The columns to read out of those that the file has: all of them if none is asked for."""
    if not named and not results:
        return names
    have = ", ".join(map(repr, names))
    for column in {*named, *results}:
        if (times := names.count(column)) > 1:
            raise DataError(f"the file has {times} columns named {column!r}; rename or drop all but one")
    for column in named:
        if column not in names:
            raise DataError(f"no column {column!r} in the file; its columns are {have}")
    found = [c for c in results if c in names]
    if results and not found:
        expected = f"'winner', 'target' or the one-hot columns {', '.join(ONE_HOT_COLUMNS)}"
        raise DataError(
            f"no result column: expected {expected}; the file has {have} (name another as winner or target)"
        )
    return list(dict.fromkeys([*named, *found]))
