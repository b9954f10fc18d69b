"""Battles counted where the votes are: by the engine that keeps them, or by processes with files of their own."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd
import pyarrow as pa

from jaxeval.data.battles import Battles
from jaxeval.data.columns import Rows, frame_of, told_renames
from jaxeval.data.equal_rows import with_codes
from jaxeval.data.outcomes import BattleReading
from jaxeval.data.readers import needed_for
from jaxeval.data.same_rows import reject_same_tables
from jaxeval.errors import DataError, NoRowsError
from jaxeval.execution.processes import gather, process_count
from jaxeval.execution.signatures import spelled_out

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

    from jaxeval.options.arguments import BattlesArguments


def gather_battles(battles: Battles | Callable[[], Battles | None] | None) -> Battles:
    """The battles of all processes of a run together, in every process; all must call this at the same time.

    Connect the processes with `jax.distributed.initialize` first. A bootstrap of the result shares its resamples among
    the processes; its draws are the same as in one process. All processes must call it, too, with the same arguments.
    In a run of one process, the result is its own battles.

    Args:
        battles: the battles of this process; None if it has no files; or a function that reads them, whose errors then
            stop all processes instead of leaving the others waiting. A process may have files without rows.

    Raises:
        DataError: no process has battles; or the processes' battles differ in their columns, or in the words of their
            labels.
        ProcessError: another process failed or was lost.

    Examples:
        In every process, after `jax.distributed.initialize`:

        >>> import jaxeval
        >>> battles = jaxeval.simulate_battles(1000, n_models=4)
        >>> jaxeval.gather_battles(battles).n_battles  # of one process alone
        1000
    """
    empty: list[NoRowsError] = []

    def packed() -> bytes:
        try:
            part = battles() if callable(battles) else battles
        except NoRowsError as error:
            empty.append(error)
            return b""
        if part is None:
            return b""
        file = io.BytesIO()
        part.write(file)
        return file.getvalue()

    parts = [Battles.parse(io.BytesIO(part), f"process {p}") for p, part in enumerate(gather(packed)) if part]
    if not parts:
        raise DataError("; ".join(["no process has any battles", *map(str, empty)]))
    _check_labels([part.report.label_families for part in parts])
    reject_same_tables([_table(part) for part in parts], [f"process {p}" for p in range(len(parts))])
    return replace(Battles.concat(parts), n_processes=process_count())


def _table(battles: Battles) -> pd.DataFrame:
    """The battles of one process as a table, to be compared with those of others."""
    sides = {"a": battles.models[battles.model_a], "b": battles.models[battles.model_b], "target": battles.target}
    columns = {
        name: x for name, x in {**sides, "weight": battles.weight, "count": battles.count}.items() if x is not None
    }
    return pd.concat([pd.DataFrame(columns), battles.columns.reset_index(drop=True)], axis=1)


def _check_labels(families: Sequence[tuple[str, ...]]) -> None:
    """Raise DataError unless one family of words fits the labels of all processes; each process saw only its own."""
    known = list(filter(None, families))
    if known and not set.intersection(*map(set, known)):
        first, other = next((one, two) for one in known for two in known if not set(one) & set(two))
        raise DataError(
            f"the processes' files use different words for labels: some hold {' or '.join(first)}, and some "
            f"{' or '.join(other)}. Say what the labels mean: labels={{'A': 'model_a', ...}}, on the command line "
            "--labels 'A=model_a,...'"
        )


_TIMES = "times"


@spelled_out(BattleReading, without="baseline")
def count_battles(
    relation: Any, *, by: str | Sequence[str] | None = None, **columns: Unpack[BattlesArguments]
) -> Battles:
    """Battles of a table in DuckDB, Polars, Spark or Ibis, counted by that engine.

    The engine counts the rows that are equal in all columns that are named; only the counts are transferred. Labels,
    missing values and errors are treated as in `read_battles`, and all ratings and draws are the same, bit for bit.
    Memory grows with the number of distinct rows. Fields within columns are named by their paths, such as
    "metadata.turns". Times with a zone are given in UTC. It needs the extra ``jaxeval[counting]``.

    Args:
        relation: a DuckDB relation, a Polars LazyFrame or DataFrame, a Spark DataFrame, or an Ibis table. To choose
            rows, use the engine's own filters.
        by: further columns to count by, for ``by=``, ``cluster=`` and the covariates of the estimators.
        **columns: as in `Battles.from_pandas`; rows are also counted by the columns that a condition names.

    Raises:
        DataError: the engine fails, or its table is no table of battles.
        ImportError: narwhals, the common interface of these engines, is not installed.
        TypeError: ``relation`` is no such table.

    Examples:
        >>> import duckdb
        >>> import jaxeval
        >>> votes = jaxeval.simulate_votes(1000, n_models=4)
        >>> battles = jaxeval.count_battles(duckdb.sql("SELECT * FROM votes WHERE language = 'English'"))
        >>> battles.n_battles, battles.n_rows
        (549, 47)
    """
    keep = [by] if isinstance(by, str) else by or ()
    needed, _ = needed_for(columns, keep)
    frame = _lazy(relation)
    with _errors_of(frame, "list its columns"):
        there, field_of = frame.columns, _fields(frame)
    paths = [name for name in field_of if name not in there]
    spelled = needed.spelled(there, paths)
    names = needed.choose(*([spelled.get(name, name) for name in part] for part in (there, paths)))
    field_of |= {wanted: field_of[name] for name, wanted in spelled.items()}
    with _errors_of(frame, f"count rows by {', '.join(map(repr, names))}"):
        counted = _counted(frame, [field_of[name] for name in names])
    times = counted[_TIMES].to_numpy().astype(np.int64)
    table = with_codes(counted.drop_columns(_TIMES).rename_columns(names))
    battles = Battles.from_pandas(frame_of(table, nested=True), rows=Rows(times, first=None), keep=keep, **columns)
    read_as = (*told_renames(spelled), *battles.report.read_as)
    return replace(battles, report=replace(battles.report, read_as=read_as))


def _lazy(relation: Any) -> nw.LazyFrame[Any]:
    """``relation`` in narwhals, the common interface of all engines."""
    try:
        import narwhals.stable.v2 as nw
    except ImportError as error:
        raise ImportError(
            "counting votes in their engine needs narwhals, the extra jaxeval[counting]: pip install narwhals"
        ) from error
    try:
        return nw.from_native(relation).lazy()
    except TypeError as error:
        raise TypeError(
            f"expected a DuckDB relation, or a table of Polars, Spark or Ibis, got {type(relation).__name__}; "
            "read_battles reads files"
        ) from error


def _fields(frame: nw.LazyFrame[Any]) -> dict[str, nw.Expr]:
    """All columns by name, and the fields within them by path; a column whose own name is such a path comes first."""
    import narwhals.stable.v2 as nw

    def within(name: str, field: nw.Expr, kind: object) -> Iterator[tuple[str, nw.Expr]]:
        yield name, field
        if isinstance(kind, nw.Struct):
            for part in kind.fields:
                yield from within(f"{name}.{part.name}", field.struct.field(part.name), part.dtype)

    kinds = frame.collect_schema()
    by_path = dict(pair for name, kind in kinds.items() for pair in within(name, nw.col(name), kind))
    return by_path | {name: nw.col(name) for name in kinds}


def _counted(frame: nw.LazyFrame[Any], fields: Sequence[nw.Expr]) -> pa.Table:
    """The distinct values of ``fields``, in an order that does not depend on the engine's, and the rows of each."""
    import narwhals.stable.v2 as nw

    keys = [f"column_{k}" for k in range(len(fields))]  # engines read some names as paths, or fold their case
    groups = frame.select(*(field.alias(key) for field, key in zip(fields, keys, strict=True))).group_by(*keys)
    table = groups.agg(nw.len().alias(_TIMES)).sort(*keys, nulls_last=True).collect("pyarrow").to_native()
    utc = [pa.timestamp(t.unit, "UTC") if pa.types.is_timestamp(t) and t.tz else t for t in table.schema.types]
    return table.cast(pa.schema(zip(table.column_names, utc, strict=True)))  # not in the zone of a machine or session


@contextmanager
def _errors_of(frame: nw.LazyFrame[Any], task: str) -> Iterator[None]:
    """Turn any error of an engine at its ``task`` into a `DataError`, whatever its type."""
    try:
        yield
    except Exception as error:
        first = next(iter(str(error).strip().splitlines()), "")
        raise DataError(f"{frame.implementation.value} cannot {task}: {type(error).__name__}: {first}") from error
