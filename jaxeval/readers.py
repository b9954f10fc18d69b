"""Battles from Parquet, CSV and JSON-lines files, reading only the columns that are needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxeval.battles import _ONE_HOT, Battles, DataError

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
    named = [model_a, model_b, winner, target, weight, cluster, *keep]
    if isinstance(keep, str):
        raise TypeError(f"keep must be a list of column names, got the string {keep!r}")
    wanted = dict.fromkeys(c for c in [*named, "winner", "target", *_ONE_HOT] if c is not None)
    table = _read_table(path, list(wanted), text=(model_a, model_b, winner or "winner"))
    try:
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


def _read_table(path: Path, wanted: list[str], text: Sequence[str]) -> pa.Table:
    """The ``wanted`` columns that the file has; ``text`` columns are read as strings."""
    import pyarrow as pa

    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    name = path.name.lower()
    try:
        if name.endswith(_PARQUET):
            return _read_parquet(path, wanted)
        if path.stat().st_size == 0:
            raise DataError(f"{path.name} is empty")
        if name.endswith(_CSV):
            return _read_csv(path, wanted, text)
        if name.endswith(_JSON_LINES):
            return _read_json_lines(path, wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(f"{path.name} cannot be read: {error}") from error
    endings = ", ".join((*_PARQUET, *_CSV, *_JSON_LINES))
    raise DataError(f"{path.name}: unknown file type; known endings are {endings}")


def _read_parquet(path: Path, wanted: list[str]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    columns = [c for c in wanted if c in schema.names]
    strings = [
        c
        for c in columns
        if pa.types.is_string(schema.field(c).type) or pa.types.is_large_string(schema.field(c).type)
    ]
    # Dictionary pages arrive as codes: strings are then never built row by row.
    return _or_explain(
        pq.read_table(path, columns=columns, read_dictionary=strings), wanted, schema.names
    )


def _read_csv(path: Path, wanted: list[str], text: Sequence[str]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    tab = ".tsv" in path.name.lower()
    parse = csv.ParseOptions(delimiter="\t" if tab else ",", newlines_in_values=True)
    with csv.open_csv(path, parse_options=parse) as reader:
        names = reader.schema.names
    convert = csv.ConvertOptions(
        include_columns=[c for c in wanted if c in names],
        column_types={c: pa.dictionary(pa.int32(), pa.string()) for c in text if c in names},
        # Only an empty field is missing: "NA" or "null" may be somebody's label.
        null_values=[""],
        strings_can_be_null=True,
    )
    return _or_explain(
        csv.read_csv(path, parse_options=parse, convert_options=convert), wanted, names
    )


def _read_json_lines(path: Path, wanted: list[str]) -> pa.Table:
    from pyarrow import json

    table = json.read_json(path)
    return _or_explain(
        table.select([c for c in wanted if c in table.column_names]), wanted, table.column_names
    )


def _or_explain(table: pa.Table, wanted: list[str], names: list[str]) -> pa.Table:
    if table.num_columns == 0:
        raise DataError(f"none of the columns {', '.join(wanted)} is there; the columns are {', '.join(names)}")
    return table
