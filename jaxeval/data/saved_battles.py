"""Battles as plain tables, merged, written and read: the state of a leaderboard that every day adds to.

The file is plain Parquet, which any tool reads, with one row per distinct battle and the number of equal ones. JSON in
its metadata says what the columns are, and what was left out before. It also holds a digest of the whole file, since
Parquet notices little damage.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from jaxeval.arrays import Int
from jaxeval.data.columns import plain
from jaxeval.data.equal_rows import EqualRows, table_digest
from jaxeval.data.file_lists import names_of, whole_local_file
from jaxeval.data.remote_names import FileName
from jaxeval.data.report import DataReport
from jaxeval.data.saved_results import check_version
from jaxeval.data.table_files import STATE_KEY, undamaged
from jaxeval.errors import DataError
from jaxeval.lazy_names import pa
from jaxeval.wording import Noun, said_noun

_FORMAT, _VERSION = "jaxeval battles", 2
_SUMS = ("n_rows", "n_battles", "n_ties", "n_both_bad", "n_self_battles", "n_zero_weight", "n_empty_rows", "n_opposed",
         "n_decided", "n_missing", "n_excluded", "n_repeated")  # fmt: skip


class BattleTable(NamedTuple):
    """Battles as a table, and what else is known about them."""

    table: pa.Table  # one row for equal battles, with their number
    roles: dict[str, str]  # names of the columns of models, targets, weights and counts
    cluster: str | None
    report: DataReport
    files: Mapping[str, str]  # SHA-256 and names of the files added so far
    names: Mapping[str, str]  # new names of models by old ones
    id: str | None  # the column of ids of votes


def concat_tables(batches: Sequence[BattleTable]) -> BattleTable:
    """Join several tables with columns of the same roles, equal rows merged; reports are added up."""
    _check_alike(batches)
    first = batches[0]
    rows, counts = EqualRows(), first.roles["count"]
    for k, batch in enumerate(batches):
        rows.add(batch.table.drop_columns([counts]), f"batch {k}", np.asarray(batch.table[counts]))
    distinct, merged = rows.result(always=True)
    reports = [batch.report for batch in batches]
    families = [report.label_families for report in reports if report.label_families]
    sums: dict[str, Any] = {name: sum(getattr(report, name) for report in reports) for name in _SUMS}
    report = DataReport(
        n_models=0,
        both_bad=reports[0].both_bad,
        models_left_out=tuple({model for report in reports for model in report.models_left_out}),
        target=next((report.target for report in reports if report.target is not None), None),
        read_as=tuple(dict.fromkeys(sentence for report in reports for sentence in report.read_as)),
        n_effective=next((report.n_effective for report in reports if report.n_effective is not None), None),
        label_families=tuple(x for x in next(iter(families), ()) if all(x in of_report for of_report in families)),
        _said=said_noun(report._said for report in reports),
        **sums,
    )
    files = {digest: name for batch in batches for digest, name in batch.files.items()}
    names = {old: new for batch in batches for old, new in batch.names.items()}
    table = distinct.append_column(counts, [merged.times])
    return BattleTable(table=table, roles=first.roles, cluster=first.cluster, report=report, files=files, names=names,
                       id=next((batch.id for batch in batches if batch.id is not None), None))  # fmt: skip


def write_table(battles: BattleTable, file: IO[bytes]) -> None:
    """Write battles to a file for `read_table`.

    Raises:
        DataError: a model's name is of a type that cannot be saved.
    """
    import pyarrow.parquet as pq

    content: dict[str, Any] = {
        "format": _FORMAT,
        "version": _VERSION,
        "roles": battles.roles,
        "cluster": battles.cluster,
        "report": {name: x for name, x in asdict(battles.report).items() if not name.startswith("_")},
        "competitor": battles.report._said,
        "files": battles.files,
        "names": dict(battles.names),
        "id": battles.id,
    }
    try:
        json.dumps(content, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"models must be named by text or numbers to be saved: {error}") from error
    text = json.dumps(content | {"digest": _digest(battles.table, content)})
    saved = battles.table.replace_schema_metadata({STATE_KEY: text})
    pq.write_table(saved, file, compression="zstd", write_page_checksum=True)


def read_table(file: IO[bytes], name: str) -> BattleTable:
    """Return battles from a file of `write_table`; errors call the file ``name``."""
    import pyarrow.parquet as pq

    with undamaged(f"{name} is no file of saved battles, or a damaged one", advice=""):
        table = pq.ParquetFile(file, page_checksum_verification=True).read()
        table.validate(full=True)
    try:
        content = json.loads((table.schema.metadata or {}).get(STATE_KEY, b"null"))
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise DataError(f"{name} is a table, but holds no battles that jaxeval saved: read it with read_battles")
    check_version(content, _VERSION, name, "saved battles", "read the votes again")
    if content.pop("digest", None) != _digest(table, content):
        raise DataError(f"{name} is damaged: it does not hold what was saved; use a copy, or read the votes again")
    try:
        saved: dict[str, Any] = {name: tuple(x) if isinstance(x, list) else x for name, x in content["report"].items()}
        noun = None if content["competitor"] is None else Noun.of(content["competitor"])
        report, files = DataReport(**saved, _said=noun), dict(content["files"])
        return BattleTable(table=table, roles=content["roles"], cluster=content["cluster"], report=report, files=files,
                           names=dict(content["names"]), id=content["id"])  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{name} is a broken file of saved battles: {error}") from error


def _digest(table: pa.Table, content: Mapping[str, Any]) -> str:
    return table_digest(table, json.dumps(content, sort_keys=True))


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def is_saved(path: Path) -> bool:
    """Return whether a local file holds battles that jaxeval saved."""
    import pyarrow.parquet as pq

    try:
        return STATE_KEY in (pq.read_schema(path).metadata or {})
    except (OSError, pa.ArrowException):  # no Parquet file
        return False


class FilesToAdd(NamedTuple):
    """Files to add to saved battles."""

    paths: list[FileName]  # those that are not there yet
    added: dict[str, str]  # their SHA-256 and names
    known: dict[str, str]  # names of the others, and the names under which they were added


def files_to_add(paths: Sequence[FileName], before: Mapping[str, str]) -> FilesToAdd:
    """Return which files are not among those ``before``, by their content."""
    files = FilesToAdd([], {}, {})
    for path in names_of(paths):
        file = whole_local_file(path)
        if is_saved(file):
            raise DataError(
                f"{file.name} holds battles that jaxeval saved, and no votes to add: rate it by itself "
                f"(jaxeval leaderboard {file.name}), or name it with --state"
            )
        digest = digest_of(file)
        if digest in before:
            files.known[file.name] = before[digest]
        elif digest in files.added:
            other = files.added[digest]
            raise DataError(f"{file.name} is the same as {other}: its battles would count twice. Leave it out")
        else:
            files.paths.append(path)
            files.added[digest] = file.name
    return files


def column_roles(names: Sequence[Any], weighted: bool) -> dict[str, str]:
    """Give names for the columns of models, targets, weights and counts that no further column has."""
    if any(not isinstance(name, str) for name in names):
        odd = next(name for name in names if not isinstance(name, str))
        raise DataError(f"columns must be named by text to be saved or concatenated, got {plain(odd)!r}: rename it")
    roles = {}
    for role in ("model_a", "model_b", "target", *(["weight"] if weighted else []), "count"):
        name = role
        while name in names:
            name += "_"
        roles[role] = name
    return roles


def arrow_table(columns: Mapping[str, Any], count: Int, count_name: str) -> pa.Table:
    """Return a table of ``columns``, with (values, codes) for columns of models, and the column of counts."""
    arrays = {}
    for name, values in columns.items():
        models = isinstance(values, tuple)
        try:
            held = pa.array(values[0] if models else values, from_pandas=True)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            what = "models must be named by text or numbers to" if models else f"column {name!r} cannot"
            raise DataError(f"{what} be saved or concatenated: {error}") from error
        arrays[name] = pa.DictionaryArray.from_arrays(values[1], held) if models else held
    return pa.table(arrays).append_column(count_name, [count])


def _check_alike(batches: Sequence[BattleTable]) -> None:
    first = batches[0]
    for other in batches[1:]:
        if other.report.both_bad != first.report.both_bad:
            raise DataError(
                "both-bad battles are counted as ties in some of the battles and left out of others: read all with the "
                "same both_bad= (on the command line --both-bad)"
            )
        if (other.report.n_effective is None) != (first.report.n_effective is None):
            raise DataError(
                "some of the battles have propensities and some do not, so that they would count on different scales: "
                "give the others a column of propensities (1 divided by the number of pairs, if pairs were drawn at "
                "random), or read weights relative to random pairs instead (weight=; on the command line --weight)"
            )
        if other.cluster != first.cluster:
            one, two = (repr(x) if x else "no column" for x in (first.cluster, other.cluster))
            raise DataError(
                f"some battles have {one} as their cluster, and some {two}: read all with the same cluster= (on the "
                "command line --cluster)"
            )
        mine, theirs = (
            [name for name in batch.table.column_names if name not in batch.roles.values()] for batch in (first, other)
        )
        differ = [name for name in (*mine, *theirs) if (name in mine) != (name in theirs)]
        if differ:
            raise DataError(
                f"some of the battles have a column {differ[0]!r} and some do not: read all with the same columns "
                "(keep=; on the command line --by, --cluster and --features)"
            )
