r"""Tables as CSV that is harmless in spreadsheets.

Excel, LibreOffice and Google Sheets run a cell as a formula if it begins with =, +, - or @, after a tab or a line end
too. Somebody who chooses a model's name could therefore run a formula on the reader's machine ("CSV injection"). The
field has two answers. OWASP advises exporters to put an apostrophe in front, which readers of data then have to remove.
pandas and most libraries write text as it is. jaxeval puts the apostrophe before such text and nowhere else, so that
programs can restore the names; on request it writes no apostrophes. Parquet and JSON hold names as they are: programs
should read those.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

#: Signs, plain and of full width, at the beginning of a cell that spreadsheets take for a formula.
_FORMULA = re.compile(r"'*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n]")


def write_csv(table: pd.DataFrame, file: IO[bytes], raw_names: bool = False) -> None:
    r"""Write columns as CSV, without the index.

    Text, the names of columns too, that a spreadsheet would run as a formula gets an apostrophe in front. So does text
    that begins with apostrophes and such a sign. To restore the names, remove the first character of text that begins
    with ``'+[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n]``, a regular expression (in
    pandas: ``names.str.replace(r"^'(?='*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])", "", regex=True)``).

    Args:
        table: its columns.
        file: where to write, in UTF-8.
        raw_names: write text as it is.
    """
    shown = table if raw_names else _without_formulas(table)
    # Python's csv module quotes line feeds by itself, but carriage returns only from Python 3.13 on.
    returns = any("\r" in text for text in _texts(shown))
    shown.to_csv(file, index=False, mode="wb", quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL)


def _texts(table: pd.DataFrame) -> Iterator[str]:
    """All text of a table: names of columns, and cells."""
    for values in (table.columns, *(table.iloc[:, k] for k in _text_columns(table))):
        yield from filter(lambda value: isinstance(value, str), values.unique())


def _text_columns(table: pd.DataFrame) -> list[int]:
    """Numbers of the columns that may hold text."""
    from pandas.api.types import is_numeric_dtype

    return [k for k, kind in enumerate(table.dtypes) if not is_numeric_dtype(kind) and kind.kind not in "mM"]


def _without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """The table with an apostrophe before all text that spreadsheets take for a formula."""

    def harmless(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value

    found = table.rename(columns=harmless)
    for k in _text_columns(table):
        found.isetitem(k, table.iloc[:, k].astype(object).map(harmless))
    return found
