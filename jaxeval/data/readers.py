"""Battles from files of any size, from engines that keep votes, and from processes: only what is needed is read."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from jaxeval.data.battle_rows import BattleReading, read_battle_rows
from jaxeval.data.battles import Battles
from jaxeval.data.columns import Columns, Rows, frame_of, told_renames
from jaxeval.data.equal_rows import EqualRows, reject_same, reject_same_tables, with_codes
from jaxeval.data.file_lists import files_of, named_twice
from jaxeval.data.formats import Source, read_head
from jaxeval.data.published_formats import format_of_names
from jaxeval.data.remote_files import by_megabytes, fetch_columns, is_partial
from jaxeval.data.remote_names import FileName, label_of
from jaxeval.data.roles import voter_columns
from jaxeval.data.shared_votes import votes_once
from jaxeval.data.table_files import head_columns, naming, pieces, told_of, with_types
from jaxeval.errors import DataError, NoRowsError
from jaxeval.execution.processes import gather, process_count
from jaxeval.execution.progress import Advance, progress_bar
from jaxeval.execution.signatures import spelled_out
from jaxeval.lazy_names import pa
from jaxeval.plain_tables import PlainTable, in_pandas

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw
    import pandas as pd

    from jaxeval.options.arguments import BattlesArguments


_USUAL_SIDES = {"model_a": "model_a", "model_b": "model_b", "winner_model": None, "loser_model": None}
_MEGABYTE = 1_000_000
_TELL_APART = "; or name the column that tells votes apart (--id, id=), or one in which the files differ (keep=, --by)"
#: In place of known files: the same rows may come again, as ids tell votes apart.
_ANY: Mapping[str, str] = {}


@spelled_out(BattleReading, without="baseline")
def read_battles(
    path: FileName | Sequence[FileName], *, keep: Sequence[str] = (), id: str | None = None,
    baseline: str | None = None, progress: bool | None = None, known: Mapping[str, str] | None = None,
    **columns: Unpack[BattlesArguments],
) -> Battles:  # fmt: skip
    """Give battles from Parquet, Arrow, CSV, JSON and Excel files; the files may hold single votes or counts of votes.

    Files may be larger than memory. From about two million rows on, rows that are equal in all columns that are read
    are merged: one row stands for all of them, with their number. Memory grows with the number of distinct rows, so a
    column that differs in every row, such as a voter's name in ``cluster=`` or a time, keeps all rows in memory. A line
    of JSON may have up to 32 MiB, and lists and objects nested up to 200 deep.

    Args:
        path: a file, a folder, a glob such as "votes/*.parquet", "-" for standard input, or a list of those, read as
            one table. With the extra ``jaxeval[remote]`` also a file or a glob on another machine, such as
            ``hf://datasets/OWNER/NAME/data/*.parquet``, ``https://...`` or ``s3://...``; of Parquet files only the
            needed columns are fetched, other files as a whole, to temporary files. The ending says the format:
            .parquet, .feather, .csv, .tsv, .jsonl (or .json, also with one array of objects), .xlsx (with the extra
            ``jaxeval[excel]``). With any other ending, the content says the format; the bytes alone say whether a file
            is compressed, an archive of one table, Parquet, or text in UTF-16 or UTF-32.
        keep: further columns for ``by=`` and ``cluster=`` of the estimators. One that is not named here is read from
            the files when an estimator asks for it, unless there are so many rows that equal ones are merged.
        id: column of the ids of votes: of rows with the same id the first one counts. Without it, files that hold the
            same rows in whatever format are an error, since their votes would count twice.
        baseline: the model that others were compared with, where a published format does not name it (Arena-Hard).
        progress: show a bar on standard error; by default only on a terminal, when reading takes over 0.7 s.
        known: names of files that count already, by what they hold, as in `Battles.files`; the battles then have those
            of these files.
        **columns: as in `Battles.from_pandas`; the columns that a condition names are read, too.

    Raises:
        DataError: a file cannot be read as a table of battles, or files do not have the same columns.
        FileNotFoundError: there is no such file.

    Examples:
        >>> import jaxeval
        >>> jaxeval.simulate_votes(1000, n_models=4).to_csv("votes.csv")
        >>> battles = jaxeval.read_battles("votes.csv")
        >>> battles.n_battles, battles.column("language").nunique()
        (1000, 5)
    """
    return battles_in(path, keep=keep, id=id, baseline=baseline, progress=progress, known=known, **columns)


def battles_in(
    path: Any, *, keep: Sequence[str] = (), id: str | None = None,
    baseline: str | None = None, progress: bool | None = None, known: Mapping[str, str] | None = None,
    plain: bool = False, **columns: Any,
) -> Battles:  # fmt: skip
    """Read battles as `read_battles` does; if ``plain``, models and further columns need not be those of pandas."""
    if isinstance(keep, str):
        raise TypeError(f"keep must be a list of column names, got the string {keep!r}")
    if hasattr(path, "__arrow_c_stream__"):
        raise TypeError(f"read_battles reads files, got a {type(path).__name__}: Battles.from_pandas reads tables")
    if id is not None:
        every = read_battles(path, keep=[*keep, id], baseline=baseline, progress=progress, known=_ANY, **columns)
        once, _ = votes_once(every, id)
        assert once is not None  # the first vote of an id counts
        return once
    files = files_of(path, progress)
    reading = BattleReading(**columns)
    needed, text = reading.needed(keep), (*reading.roles.sides, reading.winner or "winner")
    label = label_of(path if isinstance(path, str | Path) or len(path) == 1 else files)
    # Published formats have sides of their own. The command names all columns, most of them by their usual names.
    usual = all(columns.get(role, name) == name for role, name in _USUAL_SIDES.items())
    form, head_of_first = None, head_columns(files[0])
    if reading.roles.standard and usual:
        form = format_of_names(head_of_first[0], "pair", rows=lambda: read_head(files[0]).rows)
    if form is not None:
        further = [name for name in needed.named if name not in reading.roles.sides]
        source = Source(label if len(files) > 1 else files[0], tuple(files), baseline=baseline, keep=further)
        with naming(label):
            battles = Battles.from_pandas(form.read(source), keep=keep, **columns)
        battles = battles.reporting(form.read_as, first=True).reporting(*named_twice(path))
        return replace(battles, further=partial(_further, path, battles, {**columns, "baseline": baseline}, {}))
    heads = [head_of_first, *map(head_columns, files[1:])]
    # Who voted, if all files say it in a column that nobody named: it is read to say how unequally people vote.
    voters = [name for name in voter_columns(heads[0][0]) if all(list(names).count(name) == 1 for names, _ in heads)]
    voters = [] if columns.get("cluster") is not None or {*voters} & {*needed.named} else voters[:1]
    rows, starts, first_columns = EqualRows(voters), [], None
    spelled: dict[str, str] = {}
    contents, sentences = dict[str, str](), named_twice(path)
    before = {key: f"{name}, which is counted already" for key, name in (known or {}).items()}
    with_voters = needed._replace(named=(*needed.named, *voters))
    _fetch(files, with_voters, progress)
    megabytes = sum(file.stat().st_size // _MEGABYTE for file in files)
    with progress_bar(megabytes, "reading MB", progress, compiles=False) as advance:
        for file, head in zip(files, heads, strict=True):
            renamed = needed.spelled(*head)
            spelled |= renamed
            try:
                batch = _rows_of(file, with_voters, text, renamed, voters, advance)
            except DataError:
                if not voters:
                    raise
                batch = _rows_of(file, needed, text, renamed, (), advance)  # whom nobody asked for is no reason to stop
            own_columns = needed.choose(batch.columns)
            if known is not _ANY and (known is not None or len(files) > 1):
                content = batch.content(own_columns)
                if content.key in before:
                    sentences.append(reject_same(content, file.name, before[content.key], _TELL_APART))
                before[content.key] = contents[content.key] = file.name
            first_columns = first_columns or own_columns
            for column in (*first_columns, *own_columns):
                if column not in own_columns or column not in first_columns:
                    lacks, has = (file, files[0]) if column in first_columns else (files[0], file)
                    raise DataError(
                        f"{lacks.name}: no column {column!r}, which {has.name} has: read the files separately, or name "
                        "a result column that all of them have"
                    )
            starts.append((str(file.name), rows.n_rows))
            rows.add_all(batch, [*own_columns, *voters], file.name)
    table, merged = rows.result()
    each = len(table) == rows.n_rows  # no equal rows are merged, so that further columns belong to the same rows
    starts = starts if len(files) > 1 else []
    origin = None if each and not starts else merged._replace(files=tuple(starts))
    with naming(label):
        light = PlainTable.of_arrow(table) if plain else None
        frame = frame_of(table, nested=True) if light is None else light
        battles = Battles(**read_battle_rows(frame, reading, origin, keep))
    messages = dict.fromkeys(sentence for file in files for sentence in told_of(file))
    messages |= dict.fromkeys([*told_renames(spelled), *battles.report.read_as, *sentences])
    battles = replace(battles, report=replace(battles.report, read_as=tuple(messages)))
    battles = battles if known is None else replace(battles, files=contents)
    return replace(battles, further=partial(_further, path, battles, columns, {})) if each else battles


def _further(
    path: Any, battles: Battles, options: Mapping[str, Any], known: dict[str, pd.Series | None], name: str
) -> pd.Series | None:
    """Read a column of the files of ``battles`` for all rows that were read; None where they lack it or have changed.

    It is kept in ``known``, as a cache of functools does not pickle.
    """
    if name not in known:
        known[name] = None
        with suppress(DataError, FileNotFoundError):
            again = read_battles(path, keep=[name], progress=False, **options)
            same = len(again.columns) == len(battles.columns) and again.n_rows == battles.n_rows
            sides = ("model_a", "model_b", "target")
            if same and all(np.array_equal(getattr(again, x), getattr(battles, x)) for x in sides):
                column = in_pandas(again.columns).get(name)
                known[name] = None if column is None else column.set_axis(in_pandas(battles.columns).index)
    return known[name]


def _fetch(files: Sequence[Path], needed: Columns, progress: bool | None) -> None:
    """Fetch the needed columns of remote files before the bar of reading starts; reading reports columns they lack."""
    for file in filter(is_partial, files):
        head = head_columns(file)
        try:
            chosen = needed.renamed(needed.spelled(*head)).choose(*head)
        except DataError:
            continue
        fetch_columns(file, chosen, progress)


def _rows_of(
    file: Path, needed: Columns, text: Sequence[str], spelled: Mapping[str, str], voters: Sequence[str],
    advance: Advance,
) -> EqualRows:  # fmt: skip
    """Read rows of a file under the ``needed`` names of columns, which ``spelled`` gives by the file's own names."""
    of_file = {name: column for column, name in spelled.items()}
    needed, text = needed.renamed(spelled), [of_file.get(name, name) for name in text]

    def read(widened: dict[str, Any]) -> EqualRows:
        rows = EqualRows(voters)
        for piece in pieces(file, needed, text, widened, by_megabytes(advance)):
            names = [spelled.get(name, name) for name in piece.column_names]
            rows.add(piece.rename_columns(names), file.name)
        return rows

    with naming(file):
        return with_types(file, read)


def gather_battles(battles: Battles | Callable[[], Battles | None] | None) -> Battles:
    """Return the battles of all processes of a run together, in every process; all must call this at the same time.

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
    reject_same_tables([part.to_pandas() for part in parts], [f"process {p}" for p in range(len(parts))])
    return replace(Battles.concat(parts), n_processes=process_count())


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
    """Return battles of a table in DuckDB, Polars, Spark or Ibis, counted by that engine.

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
    needed = BattleReading(**columns).needed(keep)
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
    return battles.reporting(*told_renames(spelled), first=True)


def _lazy(relation: Any) -> nw.LazyFrame[Any]:
    """Return ``relation`` in narwhals, the common interface of all engines."""
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
    """Return all columns by name, and fields within them by path; a column whose own name is a path comes first."""
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
    """Return distinct values of ``fields``, in an order that does not depend on the engine's, and the rows of each."""
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
