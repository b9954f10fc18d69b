r"""Tables as files: one writer for every command and for Python, whole files or none.

CSV is harmless in spreadsheets. Excel, LibreOffice and Google Sheets run a cell as a formula if it begins with =, +, -
or @, after a tab or a line end too: somebody who chooses a model's name could run one on the reader's machine ("CSV
injection"). jaxeval puts an apostrophe before such text and nowhere else, so that programs can restore the names.
Parquet and JSON hold names as they are: programs should read those.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from html import escape
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jaxeval.errors import DataError
from jaxeval.execution.atomic_write import whole_file
from jaxeval.lazy_names import is_frame
from jaxeval.wording import competitor_of, counted, visible, visible_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from jaxeval.plain_tables import PlainTable
    from jaxeval.show.shown import Answer, Part, Result, Shown

#: Formats by the names of their endings. The last three are documents for people.
FORMATS = ("csv", "parquet", "json", "md", "tex", "html")
#: What tracks experiments; see `jaxeval.show.loggers`.
Logger = Literal["mlflow", "wandb", "opentelemetry"]


def write_table(
    table: pd.DataFrame | Shown, path: str | Path, *, format: str | None = None, title: str | None = None,
    notes: Iterable[str] | None = None, settings: Mapping[str, Any] | None = None, raw_names: bool = False,
) -> None:  # fmt: skip
    r"""Write a table in the format of its file's ending, whole or not at all.

    ``.csv``, ``.parquet`` and ``.json`` hold every column in full. ``.md`` (GitHub's Markdown), ``.tex`` (LaTeX with
    booktabs) and ``.html`` (a page) are for people: numbers are rounded, a `leaderboard` keeps its main columns, and
    the title stands above the table, the notes below. Names are plain text in them, and invisible characters are
    written out. An index becomes the first columns, unless it only numbers the rows.

    CSV: text that a spreadsheet would run as a formula gets an apostrophe in front. To restore it, remove the first
    character of text that matches ``^'+[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n]``; or write ``raw_names``.

    JSON: an object of ``settings`` (among them the seed, versions, the report on what was read and the warnings),
    ``coefficients`` and ``judges`` if there are any, ``rows`` (a record each), and a ``digest`` that reveals damage.
    This is the SHA-256 of the object without it, as ``json.dumps(..., sort_keys=True, separators=(",", ":"))`` writes
    it. Missing and infinite numbers are null. A bound is therefore null where an interval has no end, and where there
    is no interval; Parquet and CSV distinguish the two.

    Args:
        table: ``attrs`` may hold ``settings``, ``report``, ``warnings``, ``coefficients`` and ``judges``, as of
            `leaderboard`. Of another result, documents hold its sentences and all its tables, other files its main one.
        path: where to write it.
        format: "csv", "parquet", "json", "md", "tex" or "html"; by default what the ending says.
        title: of documents.
        notes: lines below the table, in documents; by default what was read, and the warnings.
        settings: written to JSON and Parquet instead of those in ``attrs``.
        raw_names: write text to CSV as it is.

    Raises:
        DataError: no format has this ending, or this name.
        OSError: the file cannot be written.

    Examples:
        >>> from pathlib import Path
        >>> import jaxeval
        >>> board = jaxeval.leaderboard(jaxeval.simulate_battles(2_000, 4, seed=0), n_resamples=200)
        >>> jaxeval.write_table(board, "board.md", title="Simulated votes", notes=[])
        >>> print(Path("board.md").read_text())
        **Simulated votes**
        <BLANKLINE>
        | Rank | Spread | Model | Rating | Lower | Upper | Votes | Tier |
        |---:|---|---|---:|---:|---:|---:|---:|
        | 1 | 1-1 | model-1 | 1098 | 1080 | 1116 | 806 | 1 |
        | 2 | 2-2 | model-2 | 992 | 979 | 1003 | 1,254 | 2 |
        | 3 | 3-3 | model-3 | 968 | 955 | 983 | 887 | 2 |
        | 4 | 4-4 | model-4 | 942 | 928 | 956 | 1,053 | 3 |
        <BLANKLINE>
    """
    import pandas as pd

    from jaxeval.show.shown import Result

    kind = format or format_of(path)
    if isinstance(table, Result) and not isinstance(table, pd.DataFrame):
        data = _result_bytes(table, kind, title, raw_names)
    else:
        data = table_bytes(table, kind, title=title, notes=notes, settings=settings, raw_names=raw_names)
    with whole_file(path) as file:
        file.write(data)


def format_of(path: str | Path) -> str:
    """Return the format that a file's ending names."""
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise DataError(
            f"{path} must end in {', '.join(f'.{name}' for name in FORMATS)}; or name the format by format="
        )
    return ending


def _result_bytes(result: Result, format: str, title: str | None, raw_names: bool) -> bytes:
    """Return a result as a page of all its sections, or its main table with what it rests on."""
    from jaxeval.show.shown import Part

    sections = result._sections()
    if format == "md":
        return markdown_page(None if title is None else Part(title), *sections).encode()
    if format == "html":
        return html_page(Part(title or sections[0].title), *sections).encode()
    return answer_bytes(result.answer, format, raw_names=raw_names)


def markdown_page(
    top: Part | None, *sections: Part, rows: int | None = None, heading: Callable[[Any], str] | None = None
) -> str:
    """Return a page of Markdown: a title with numbered sentences, and sections with ``rows`` of each table."""
    from jaxeval.show.cells import heading as usual_heading
    from jaxeval.show.cells import only_counts
    from jaxeval.show.documents import markdown_table, markdown_text

    lines = [] if top is None else [f"# {top.title}", ""]
    lines += [f"{k}. {markdown_text(sentence)}" for k, sentence in enumerate(top.below if top else (), 1)]
    for part in sections:
        lines += ["", f"## {part.title}", "", *(f"- {markdown_text(sentence)}" for sentence in part.below)]
        if is_frame(part.table) and len(part.table):
            shown = part.table.reset_index(drop=only_counts(part.table.index)).head(rows or len(part.table))
            left = len(part.table) - len(shown)
            notes = [f"and {counted(left, 'more row')}"] if left else []
            lines += ["", markdown_table(shown, notes=notes, heading=heading or usual_heading).rstrip()]
    return "\n".join(lines).lstrip("\n") + "\n"


def html_page(top: Part, *sections: Part, rows: int | None = None, heading: Callable[[Any], str] | None = None) -> str:
    """Return the same page as HTML, with bars in its tables."""
    from jaxeval.show.cells import heading as usual_heading
    from jaxeval.show.documents import html_table

    def text(tag: str, value: str | None) -> str:
        return f"<{tag}>{escape(visible(value or ''))}</{tag}>"

    def items(part: Part) -> str:
        return "".join(text("li", sentence) for sentence in part.below)

    head = f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n{text("title", top.title)}\n<body>'
    lines = [head, text("h1", top.title), f"<ol>{items(top)}</ol>"]
    for part in sections:
        lines += [text("h2", part.title), f"<ul>{items(part)}</ul>"]
        if is_frame(part.table) and len(part.table):
            lines.append(html_table(part.table, heading=heading or usual_heading, most_rows=rows))
    return "\n".join([*lines, "</body>\n</html>"]) + "\n"


def table_bytes(
    table: pd.DataFrame | PlainTable | Shown, format: str, *, title: str | None = None,
    notes: Iterable[str] | None = None, settings: Mapping[str, Any] | None = None, raw_names: bool = False,
) -> bytes:  # fmt: skip
    """Return what `write_table` writes; pandas is imported for a table of its own, and for Parquet."""
    from jaxeval.plain_tables import PlainTable, in_pandas, records_of
    from jaxeval.show.cells import only_counts

    if format not in FORMATS:
        raise DataError(f"format={format!r} is none of {', '.join(FORMATS)}")
    if not (isinstance(table, PlainTable) or is_frame(table)):
        raise TypeError(f"a table to write is a DataFrame, got {type(table).__name__}: pass one of its tables")
    attrs = dict(table.attrs) if settings is None else {**table.attrs, "settings": settings}
    rows = table.assign() if isinstance(table, PlainTable) else table.reset_index(drop=only_counts(table.index))
    rows.attrs = attrs
    if format == "csv":
        return _csv_bytes(rows, raw_names)
    if format == "parquet":
        return _parquet_bytes(in_pandas(rows))
    if format == "json":
        about = {name: attrs[name] for name in ("report", "warnings") if name in attrs}
        besides = {name: attrs[name] for name in ("coefficients", "judges") if attrs.get(name)}
        settings = {**attrs.get("settings", {}), **about}
        content = plain_values({"settings": settings, **besides, "rows": records_of(rows)})
        content["digest"] = json_digest(content)
        return f"{json.dumps(content, indent=1, allow_nan=False)}\n".encode()
    report = str(attrs.get("report") or "")
    usual = [*filter(None, [report]), *(f"warning: {sentence}" for sentence in attrs.get("warnings", ()))]
    return _document(rows, format, title, usual if notes is None else list(notes)).encode()


def answer_bytes(answer: Answer, format: str, name: str | None = None, raw_names: bool = False) -> bytes:
    """Write one table of an answer, by default the main one, as a file of some format, with what it rests on."""
    from jaxeval.show.shown import settings_of

    first = next(iter(answer.tables), None)
    if first is None:
        raise DataError(f"{answer.title} has no table to write: write it as .md or .html")
    table = answer.tables[name or first].assign()
    title = answer.title if name in (None, first) else str(name).replace("_", " ").capitalize()
    notes = [*answer.notes, *(f"warning: {sentence}" for sentence in dict.fromkeys(answer.warnings))]
    table.attrs = {
        "report": "\n".join(map(str, answer.notes)), "warnings": list(answer.warnings), **table.attrs,
        "settings": {**settings_of(answer.settings), **table.attrs.get("settings", {})},
    }  # fmt: skip
    return table_bytes(table, format, title=title, notes=notes, raw_names=raw_names)


def write_answer(answer: Answer, folder: str | Path, format: str = "csv", raw_names: bool = False) -> list[str]:
    """Write the tables, figures (PNG) and texts of an answer into a folder by their names; return what there is."""
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    sentences = "".join(f"{sentence}\n" for sentence in (*answer.sentences, *answer.advice))
    texts, figures = answer.texts() or {"answer.txt": sentences}, answer.figures()
    for name in answer.tables:
        with whole_file(out / f"{name}.{format}") as file:
            file.write(answer_bytes(answer, format, name, raw_names))
    for name, text in texts.items():
        write_text(text, out / name)
    save_figures(figures, out)
    return [counted(len(answer.tables), "table"), counted(len(figures), "figure"), *texts]


def save_figures(figures: Mapping[str, Figure], folder: Path) -> None:
    """Write every figure as ``folder/name.png``, whole or not at all."""
    for name, figure in figures.items():
        with whole_file(folder / f"{name}.png") as file:
            figure.savefig(file, dpi=150, format="png")


def write_text(text: str, path: str | Path) -> None:
    """Write a text for people as UTF-8, whole or not at all; control characters are escaped as on the screen."""
    with whole_file(path) as file:
        file.write(visible(text).encode())


def _parquet_bytes(rows: pd.DataFrame) -> bytes:
    import pyarrow as pa

    file = io.BytesIO()
    rows.attrs = plain_values(rows.attrs)  # pandas saves them beside the columns, as JSON
    try:
        rows.to_parquet(file, index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"the table cannot be written as Parquet, which needs columns of one type: {error}") from error
    return file.getvalue()


def _document(rows: pd.DataFrame | PlainTable, format: str, title: str | None, notes: list[str]) -> str:
    from jaxeval.show.boards import for_people
    from jaxeval.show.cells import heading

    shown = for_people(rows)
    own_heading = partial(heading, competitor=competitor_of(rows.attrs.get("settings")))
    if format == "html":
        from jaxeval.show.documents import html_table

        name = escape(visible_line(title or "Table"))
        return (
            f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{name}</title>\n'
            f"{html_table(shown, title=title, notes=notes, heading=own_heading)}\n</html>\n"
        )
    from jaxeval.show.documents import latex_table, markdown_table

    write = markdown_table if format == "md" else latex_table
    return write(shown, title=title, notes=notes, heading=own_heading)


#: Signs, plain and of full width, at the beginning of a cell that spreadsheets take for a formula.
FORMULA = re.compile(r"'*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n]")


def _csv_bytes(table: pd.DataFrame | PlainTable, raw_names: bool) -> bytes:
    """Return columns as CSV in UTF-8, without the index; `write_table` says what becomes of text that is not raw.

    Text that begins with apostrophes and the sign of a formula gets a further one, too.
    """
    from jaxeval.plain_tables import PlainTable
    from jaxeval.show.cells import is_missing

    def harmless(value: Any) -> Any:
        return f"'{value}" if not raw_names and isinstance(value, str) and FORMULA.match(value) else value

    if isinstance(table, PlainTable):
        rows = [table.columns, *(row.values() for row in table.records())]
        cells = [["" if is_missing(value) else harmless(value) for value in row] for row in rows]
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n", quoting=_quoting(chain(*cells))).writerows(cells)
        return text.getvalue().encode()
    from pandas.api.types import is_numeric_dtype

    safe, file = table.rename(columns=harmless), io.BytesIO()
    texts = [k for k, kind in enumerate(table.dtypes) if not is_numeric_dtype(kind) and kind.kind not in "mM"]
    distinct = {k: table.iloc[:, k].unique().tolist() for k in texts}
    for k, values in distinct.items():  # most columns have no such text in any cell
        if any(harmless(value) is not value for value in values):
            safe.isetitem(k, table.iloc[:, k].astype(object).map(harmless))
    quoting = _quoting(chain(safe.columns, *distinct.values()))
    safe.to_csv(file, index=False, mode="wb", quoting=quoting)
    return file.getvalue()


def _quoting(values: Iterable[Any]) -> Literal[0, 2]:
    """Return which cells are quoted: Python's csv quotes line feeds by itself, but returns only from Python 3.13 on."""
    returns = any(isinstance(value, str) and "\r" in value for value in values)
    return csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL


def json_digest(content: Mapping[str, Any]) -> str:
    """Return SHA-256 of a JSON object without its own ``digest``, written with sorted names, no spaces, only ASCII."""
    rest = {name: part for name, part in content.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def plain_values(value: Any) -> Any:
    """Return ``value`` in types that JSON has: None for missing and infinite numbers, text for all other types."""
    import numpy as np

    from jaxeval.show.cells import is_missing

    if isinstance(value, Mapping):
        return {str(key): plain_values(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(part) for part in value]
    plain = value.item() if isinstance(value, np.generic) else value
    if is_missing(plain):
        return None
    if isinstance(plain, float):
        return plain if isfinite(plain) else None
    return plain if isinstance(plain, bool | int | str) else str(plain)
