"""A digest of the content of a table, whatever the form in which Arrow holds it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from jaxeval.data.equal_rows import with_codes

if TYPE_CHECKING:
    import pyarrow as pa


def table_digest(table: pa.Table, text: str) -> str:
    """SHA-256 of the columns of a table, their names and values, and of a ``text``.

    Chunks, the order of dictionaries, and units of times that Parquet does not have make no difference.
    """
    rows = with_codes(table).unify_dictionaries().combine_chunks()
    parts = [text.encode()]
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        parts += [name.encode(), *_parts(column.combine_chunks())]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))  # so that the end of each part counts
        digest.update(part)
    return digest.hexdigest()


def _parts(values: pa.Array) -> Iterator[bytes]:
    """The content of a column."""
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        yield from _text_parts(values)
        return
    kind = _as_parquet(values.type)
    values = values.cast(kind)
    if pa.types.is_primitive(kind):
        yield str(kind).encode()
        if pa.types.is_temporal(kind):
            values = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        if values.null_count:
            yield values.is_null().to_numpy(zero_copy_only=False).tobytes()
            values = values.fill_null(pa.scalar(0).cast(values.type))
        yield values.to_numpy(zero_copy_only=False).tobytes()
    else:
        yield repr(values.to_pylist()).encode()


def _as_parquet(kind: pa.DataType) -> pa.DataType:
    """The type that a column of type ``kind`` is saved as."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind) and kind.unit == "s":
        return pa.timestamp("ms", kind.tz)
    return {pa.time32("s"): pa.time32("ms"), pa.date64(): pa.date32()}.get(kind, kind)


def _text_parts(values: pa.DictionaryArray) -> Iterator[bytes]:
    """Codes in order of first appearance, the last code for missing values, and the texts in that order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    n = len(values.dictionary)
    codes = values.indices.fill_null(n).to_numpy()
    first = np.full(n + 1, len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    first[n] = len(codes)
    order = np.argsort(first, kind="stable")
    rank = np.empty(n + 1, np.int32)
    rank[order] = np.arange(n + 1)
    used = order[: np.searchsorted(first[order], len(codes))]
    rank[n] = len(used)
    text = values.dictionary.take(pa.array(used))
    yield rank[codes].tobytes()
    yield pc.binary_length(text).to_numpy().tobytes()
    yield "".join(text.to_pylist()).encode()
