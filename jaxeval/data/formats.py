"""What a published format of judgments is: its name, the marks by which it is recognised, and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jaxeval.data.columns import ALL_COLUMNS, Columns, folded, frame_of
from jaxeval.data.equal_rows import reject_same_tables
from jaxeval.data.harness_runs import document_of
from jaxeval.data.remote_names import FileName
from jaxeval.data.small_files import small_table
from jaxeval.data.table_files import head_names, naming, pieces, with_types
from jaxeval.lazy_names import pd

#: What one judgment is of: of two sides, of one answer to an item, or of several items in an order.
Shape = Literal["pair", "answer", "ranking"]


@dataclass(frozen=True)
class Source:
    """Files of one format, and what their reader said; a `Format` reads them.

    ``name`` is the file's as its reader wrote it. ``document`` is the object of a JSON document, None for tables;
    ``names`` are its keys, or the columns of a table. ``baseline``, ``score`` and ``output_filter`` are the options of
    those names, None where they are not said. ``keep`` are further columns that are wanted.
    """

    name: FileName
    paths: tuple[Path, ...] = ()
    names: Sequence[str] = ()
    document: Any = None
    table: pd.DataFrame | None = None  # in place of files
    baseline: str | None = None
    score: str | None = None
    output_filter: str | None = None
    keep: Sequence[str] = ()

    @classmethod
    def of(cls, name: FileName, path: Path, **options: Any) -> Source:
        """Open a file, which is at ``path``."""
        document = document_of(path)
        return cls(name, (path,), head_names(path) if document is None else list(document), document, **options)

    def first_rows(self) -> pd.DataFrame | None:
        """Read the first rows of a table; None of a document."""
        from jaxeval.data.file_heads import read_head  # which imports pandas

        return read_head(self.name).rows

    def columns(
        self, required: Sequence[str] = (), beside: Sequence[str] = (), *, nested: bool = False, plain: bool = False
    ) -> Any:
        """Read the ``required`` columns, and those of ``beside`` and ``keep`` that are there; by default all columns.

        With ``nested``, columns of objects and lists stay columns of Arrow. With ``plain``, a small file is a
        ``PlainTable``.

        Raises:
            DataError: a required column is not there, or a file cannot be read; the error begins with its name.
        """
        if self.table is not None:
            return self.table
        needed = Columns(tuple(required), (*beside, *self.keep)) if required else ALL_COLUMNS
        parts = []
        for path in self.paths:
            with naming(self.name if len(self.paths) == 1 else path):
                small = small_table(path, needed) if plain and len(self.paths) == 1 else None
                if small is not None:
                    return small
                parts.append(whole_table(path, needed, nested))
        reject_same_tables(parts, [path.name for path in self.paths])
        return pd.concat(parts, ignore_index=True)


def whole_table(path: Path, needed: Columns, nested: bool, text: Sequence[str] = ()) -> pd.DataFrame:
    """Read the needed columns of a file, those of ``text`` as strings.

    With ``nested``, columns of objects and lists stay columns of Arrow.
    """
    parts = with_types(path, lambda wide: [frame_of(piece, nested) for piece in pieces(path, needed, text, wide)])
    return pd.concat(parts, ignore_index=True)


@dataclass(frozen=True)
class Format:
    """A format in which judgments are published: one entry of `jaxeval.formats`.

    Args:
        name: what it is called in messages, such as "Arena-Hard's judgments".
        marks: the columns by which it is recognised; of a JSON document its keys. "a|b" stands for one of two.
        read: makes a table of a `Source`: with the columns model_a, model_b and winner or target (shape "pair", as
            `Battles.from_pandas` reads them), or model, item and score (shape "answer"). Further columns stay.
        shape: "pair" for battles, "answer" for scores of models on items.
        about: how it is read, in words for the report.
        hint: what somebody who has such a file has to decide, in words; said beside options of ``asks``.
        asks: makes of the first rows of a table, or of a document, the options that the command needs, with blanks in
            capitals.
        one_of: makes of these the names of which an option of the command, by which they are given, chooses one.
        is_document: whether ``marks`` are keys of one JSON object, and not columns of a table; with shape "answer".
        fits: says of the first rows whether they are of the format, where the names of columns do not tell any.
        reference: makes of battles the model that all others met, for each; None if the rows say it themselves.
        unless: columns, in any spelling, of which one shows that a table with the marks is something else.

    Examples:
        >>> import jaxeval
        >>> form = jaxeval.formats()["AlpacaEval's annotations"]
        >>> form.marks, form.shape
        (('generator_1', 'generator_2', 'preference'), 'pair')
    """

    name: str
    marks: tuple[str, ...]
    read: Callable[[Source], pd.DataFrame]
    shape: Shape = "pair"
    about: str = ""
    hint: str = ""
    asks: Callable[[Any], tuple[str, ...]] = lambda rows: ()
    one_of: Callable[[Any], Mapping[str, Sequence[str]]] = lambda rows: {}
    is_document: bool = False
    fits: Callable[[pd.DataFrame], Any] | None = None
    reference: Callable[[pd.DataFrame], pd.Series] | None = None
    unless: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that battles are rows of a table."""
        if self.is_document and self.shape != "answer":
            raise ValueError(f"{self.name}: a document holds scores of answers, got shape={self.shape!r}")

    @property
    def read_as(self) -> str:
        """How files are read, in words for the report."""
        return f"read as {self.name}: {self.about}" if self.about else f"read as {self.name}"

    def seen(self, names: Sequence[str]) -> list[str]:
        """Return the marks among the names of columns, or among the keys; none unless all are there."""
        present = [next((x for x in mark.split("|") if x in names), None) for mark in self.marks]
        if None in present or not {*map(folded, names)}.isdisjoint(map(folded, self.unless)):
            return []
        return [x for x in present if x is not None]
