"""Files that the commands write: checked before the work, whole or not at all."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from jaxeval.cli.terminal import tell
from jaxeval.execution.atomic_write import whole_file
from jaxeval.wording import counted, visible

#: Signs, plain and of full width, at the beginning of a cell that spreadsheets take for a formula.
_FORMULA = re.compile(r"'*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n]")
_RAW_NAMES = "jaxeval.raw_names"

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class OutputFile(click.Path):
    """A file to write, with one of several endings, in a folder that exists."""

    def __init__(self, endings: tuple[str, ...]) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)
        self.endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or an error that says what is wrong with it."""
        path = Path(str(super().convert(value, param, ctx)))
        if path.suffix.lower() not in self.endings:
            self.fail(f"{path} must end in {', '.join(self.endings)}", param, ctx)
        if not path.resolve().parent.is_dir():
            self.fail(f"there is no folder {path.parent} to write {path.name} to", param, ctx)
        return path


def check_outputs(outputs: Mapping[str, Path | None], inputs: Sequence[Path]) -> None:
    """An error if a file to write, by its option, is one to read, or that of another option."""
    taken = {path.resolve(): "to read" for path in inputs}
    for option, path in outputs.items():
        if path is None:
            continue
        if path.resolve() in taken:
            raise click.UsageError(
                f"{option}: {path} is the file {taken[path.resolve()]}, which would be lost: name another"
            )
        taken[path.resolve()] = f"of {option}"


def raw_names_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--raw-names``, of every command that writes CSV files; it goes to `write_table` in click's context."""

    def keep(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        ctx.meta[_RAW_NAMES] = value

    return click.option(
        "--raw-names",
        is_flag=True,
        expose_value=False,
        callback=keep,
        help="Write names to CSV files as they are. By default text that a spreadsheet would run as a formula, since "
        "it begins with =, +, -, @, a tab or a line end, gets an apostrophe in front: remove it when you read the "
        "file back.",
    )(command)


def write_table(table: pd.DataFrame, path: Path, index: bool = False, raw_names: bool | None = None) -> None:
    r"""Write .csv, .parquet or .json, as the ending says, whole or not at all.

    CSV: text, the names of columns too, that a spreadsheet would run as a formula gets an apostrophe in front. So does
    text that begins with apostrophes and such a sign. Whoever reads the file gets the names back without a loss: remove
    the first character of text that begins with ``'+[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n]``, a regular expression
    (in pandas: ``names.str.replace(r"^'(?='*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])", "", regex=True)``).

    JSON: an object of ``rows``, a record each, ``settings``, among them the seed, versions, the report on what was read
    and the warnings, and ``coefficients`` if there are any. Numbers that are missing or infinite are null, so that a
    bound is null where the interval has no end or where there is no interval; Parquet and CSV tell the two apart.

    Args:
        table: ``attrs`` may hold ``settings``, ``report``, ``warnings`` and ``coefficients``, as of `leaderboard`.
        path: where to write it.
        index: whether CSV and Parquet hold the index.
        raw_names: write text to CSV as it is; by default as ``--raw-names`` says.

    Raises:
        OSError: it cannot be written.
    """
    with whole_file(path) as file:
        if path.suffix.lower() == ".csv":
            if raw_names is None:
                context = click.get_current_context(silent=True)
                raw_names = context is not None and context.meta.get(_RAW_NAMES, False)
            _write_csv(table if raw_names else _without_formulas(table, index), file, index)
        elif path.suffix.lower() == ".parquet":
            table.to_parquet(file, index=index)
        else:
            file.write(_json(table).encode())


def write_text(text: str, path: Path) -> None:
    """Write a text for people as UTF-8, whole or not at all; control characters as escapes, as on the screen.

    Raises:
        OSError: it cannot be written.
    """
    with whole_file(path) as file:
        file.write(visible(text).encode())


def write_folder(
    out: Path, tables: Mapping[str, pd.DataFrame], figures: dict[str, Figure], texts: Mapping[str, str] | None = None
) -> None:
    """Write tables as CSV, figures as PNG and texts into a folder, by their names, and tell so."""
    from jaxeval.plots.style import save_figures

    texts = texts or {}
    out.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        write_table(table, out / f"{name}.csv", index=table.index.name is not None)
    for name, text in texts.items():
        write_text(text, out / name)
    save_figures(figures, out)
    *first, last = counted(len(tables), "table"), counted(len(figures), "figure"), *texts
    tell(f"wrote {', '.join(first)} and {last} to {out}")


def _write_csv(table: pd.DataFrame, file: IO[bytes], index: bool) -> None:
    # Python's csv module quotes line feeds by itself, but carriage returns only from Python 3.13 on.
    returns = any("\r" in text for text in _texts(table, index))
    table.to_csv(file, index=index, mode="wb", quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL)


def _texts(table: pd.DataFrame, index: bool) -> Iterator[str]:
    """All text of a table: names of columns, of rows if asked for, and cells."""
    for values in (table.columns, *([table.index] if index else []), *(table.iloc[:, k] for k in _text_columns(table))):
        yield from filter(lambda value: isinstance(value, str), values.unique())


def _text_columns(table: pd.DataFrame) -> list[int]:
    """Numbers of the columns that may hold text."""
    from pandas.api.types import is_numeric_dtype

    return [k for k, kind in enumerate(table.dtypes) if not is_numeric_dtype(kind) and kind.kind not in "mM"]


def _without_formulas(table: pd.DataFrame, index: bool) -> pd.DataFrame:
    """The table with an apostrophe before all text that spreadsheets take for a formula."""

    def harmless(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value

    found = table.rename(columns=harmless)
    for k in _text_columns(table):
        found.isetitem(k, table.iloc[:, k].astype(object).map(harmless))
    return found.rename(index=harmless) if index else found


def _json(table: pd.DataFrame) -> str:
    attrs = dict(table.attrs)
    about = {name: attrs[name] for name in ("report", "warnings") if name in attrs}
    content = {
        "settings": {**attrs.get("settings", {}), **about},
        **({"coefficients": attrs["coefficients"]} if attrs.get("coefficients") else {}),
        "rows": json.loads(table.to_json(orient="records", double_precision=15)),  # which has null for NaN and infinity
    }
    return json.dumps(_finite(content), indent=1, allow_nan=False, default=str) + "\n"


def _finite(value: Any) -> Any:
    """``value`` with None in place of every number that JSON lacks, and NumPy's scalars as Python's."""
    from jaxeval.data.columns import plain

    if isinstance(value, Mapping):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    found = plain(value)
    return None if isinstance(found, float) and not isfinite(found) else found
