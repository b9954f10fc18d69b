"""Battles merged, saved and loaded: the state of a leaderboard that every day adds to.

The file is plain Parquet, a row per distinct battle with the number of its like, which any tool reads; what the columns
are, and what was left out before, is JSON in its metadata, with a digest of all that, as Parquet notices little damage.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from jaxeval.data.battles import Battles, DataReport
from jaxeval.data.columns import frame_of
from jaxeval.data.equal_rows import EqualRows, Merged
from jaxeval.data.table_digest import table_digest
from jaxeval.data.table_files import STATE_KEY, files_of, undamaged
from jaxeval.errors import DataError
from jaxeval.execution.atomic_write import whole_file

if TYPE_CHECKING:
    import pyarrow as pa

_FORMAT, _VERSION = "jaxeval battles", 1
_SUMS = ("n_rows", "n_battles", "n_ties", "n_both_bad", "n_self_battles", "n_zero_weight", "n_empty_rows", "n_opposed",
         "n_decided")  # fmt: skip


def concat_battles(batches: Sequence[Battles]) -> Battles:
    """See `Battles.concat`."""
    if not batches:
        raise ValueError("no battles to concatenate: the list is empty")
    _check_alike(batches)
    names = list(batches[0].columns.columns)
    roles = _roles(names, any(b.weight is not None for b in batches))
    rows = EqualRows()
    for k, battles in enumerate(batches):
        table = _table(battles, names, roles)
        count = np.ones(battles.n_rows, np.int64) if battles.count is None else battles.count
        rows.add_merged(Merged(table, count, np.arange(battles.n_rows)), battles.n_rows, f"batch {k}")
    merged = rows.result(always=True)
    import pyarrow as pa

    table = merged.table.append_column(roles["count"], pa.array(merged.times))
    files = {digest: name for b in batches for digest, name in b.files.items()}
    reports = [b.report for b in batches]
    seen = {model for report in reports for model in report.models_left_out}
    sums: Any = {name: sum(getattr(report, name) for report in reports) for name in _SUMS}
    target = next((report.target for report in reports if report.target is not None), None)
    both_bad = reports[0].both_bad
    report = DataReport(n_models=0, both_bad=both_bad, models_left_out=tuple(seen), target=target, **sums)
    return _battles(table, roles, batches[0].cluster, report, files)


def save_battles(battles: Battles, path: str | Path) -> None:
    """See `Battles.save`."""
    with whole_file(path) as file:
        write_battles(battles, file)


def write_battles(battles: Battles, file: IO[bytes]) -> None:
    """Write what `Battles.save` writes.

    Raises:
        DataError: a column, or a model's name, is of a type that cannot be saved.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    merged = concat_battles([battles])
    names = list(merged.columns.columns)
    roles = _roles(names, merged.weight is not None)
    count = np.ones(merged.n_rows, np.int64) if merged.count is None else merged.count
    table = _table(merged, names, roles).append_column(roles["count"], pa.array(count))
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "roles": roles,
        "cluster": merged.cluster,
        "report": asdict(merged.report),
        "files": merged.files,
    }
    try:
        json.dumps(content, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"models must be named by text or numbers to be saved: {error}") from error
    text = json.dumps(content | {"digest": _digest(table, content)})
    saved = table.replace_schema_metadata({STATE_KEY: text})
    pq.write_table(saved, file, compression="zstd", write_page_checksum=True)


def load_battles(path: str | Path) -> Battles:
    """See `Battles.load`."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    with path.open("rb") as file:
        return parse_battles(file, path.name)


def parse_battles(file: IO[bytes], name: str) -> Battles:
    """The battles that `write_battles` wrote; errors call the file ``name``.

    Raises:
        DataError: it did not, or the file is damaged.
    """
    import pyarrow.parquet as pq

    with undamaged(f"{name} is no file of saved battles, or a damaged one", advice=""):
        table = pq.ParquetFile(file, page_checksum_verification=True).read()
        table.validate(full=True)
    try:
        content = json.loads((table.schema.metadata or {}).get(STATE_KEY, b"null"))
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise DataError(f"{name} is a table, but none that jaxeval saved: read it by read_battles")
    if content.get("version") != _VERSION:
        raise DataError(
            f"{name} has version {content.get('version')!r} of the format of saved battles, this jaxeval reads "
            f"version {_VERSION}: use the jaxeval that wrote it"
        )
    if content.pop("digest", None) != _digest(table, content):
        raise DataError(f"{name} is damaged: it does not hold what was saved; use a copy, or read the votes again")
    try:
        saved = {**content["report"], "models_left_out": tuple(content["report"]["models_left_out"])}
        report = DataReport(**saved)
        battles = _battles(table, content["roles"], content["cluster"], report, dict(content["files"]))
    except (KeyError, TypeError, AttributeError, DataError) as error:
        raise DataError(f"{name} is a broken file of saved battles: {error}") from error
    return battles


def _digest(table: pa.Table, content: Mapping[str, Any]) -> str:
    return table_digest(table, json.dumps(content, sort_keys=True))


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def digests(paths: Sequence[Path], before: Mapping[str, str]) -> dict[str, str]:
    """SHA-256 of the files, and their names.

    Raises:
        DataError: one is among those ``before``, or there twice.
    """
    found: dict[str, str] = {}
    for file in files_of(paths):
        digest = digest_of(file)
        known = {**before, **found}.get(digest)
        if known is not None:
            own = "" if known == file.name else f" as {known}"
            raise DataError(f"{file.name} has been added before{own}: its battles would count twice")
        found[digest] = file.name
    return found


def _check_alike(batches: Sequence[Battles]) -> None:
    first = batches[0]
    for other in batches[1:]:
        if other.report.both_bad != first.report.both_bad:
            raise DataError("both-bad battles are counted as ties in some of the battles and left out of others")
        if other.cluster != first.cluster:
            raise DataError(f"battles have different clusters, {first.cluster!r} and {other.cluster!r}")
        differ = [c for c in (*first.columns, *other.columns) if (c in first.columns) != (c in other.columns)]
        if differ:
            raise DataError(
                f"some of the battles have a column {differ[0]!r} and some do not: read all with the same columns "
                "(keep=; on the command line --by, --cluster and --features)"
            )


def _roles(names: Sequence[Any], weighted: bool) -> dict[str, str]:
    """Names of the columns of models, results, weights and counts, beside the further ones."""
    if any(not isinstance(name, str) for name in names):
        odd = next(name for name in names if not isinstance(name, str))
        raise DataError(f"columns must be named by text to be saved or concatenated, got {odd!r}")
    roles = {}
    for role in ("model_a", "model_b", "target", *(["weight"] if weighted else []), "count"):
        name = role
        while name in names:
            name += "_"
        roles[role] = name
    return roles


def _table(battles: Battles, names: Sequence[str], roles: Mapping[str, str]) -> pa.Table:
    """The rows without their counts."""
    import pyarrow as pa

    try:
        models = pa.array(battles.models, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise DataError(f"models must be named by text or numbers to be saved or concatenated: {error}") from error
    columns: dict[str, Any] = {
        roles["model_a"]: pa.DictionaryArray.from_arrays(battles.model_a, models),
        roles["model_b"]: pa.DictionaryArray.from_arrays(battles.model_b, models),
        roles["target"]: battles.target,
    }
    if "weight" in roles:
        columns[roles["weight"]] = np.ones(battles.n_rows) if battles.weight is None else battles.weight
    for name in names:
        try:
            columns[name] = pa.array(battles.column(name), from_pandas=True)
        except (pa.ArrowException, OverflowError) as error:
            raise DataError(f"column {name!r} cannot be saved or concatenated: {error}") from error
    return pa.table(columns)


def _battles(
    table: pa.Table, roles: Mapping[str, str], cluster: str | None, report: DataReport, files: Mapping[str, str]
) -> Battles:
    """The battles of a table, which nothing is left out of."""
    battles = Battles.from_rows(
        frame_of(table),
        None,
        model_a=roles["model_a"],
        model_b=roles["model_b"],
        winner=None,
        target=roles["target"],
        weight=roles.get("weight"),
        count=roles["count"],
        cluster=cluster,
        both_bad="half",
    )
    left_out = tuple(sorted(set(report.models_left_out) - set(battles.models), key=str))
    return replace(
        battles, report=replace(report, n_models=battles.n_models, models_left_out=left_out), files=dict(files)
    )
