"""What the commands share: the console, its tables and sentences."""

from __future__ import annotations

import io
import sys
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console


def stdout_console() -> Console:
    """Standard output for tables; quiet where there is none."""
    from rich.console import Console

    if sys.stdout is None:
        return Console(quiet=True, file=io.StringIO())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # bars, and names, that the terminal's encoding lacks
    # A pipe or a file has no width of its own: do not fold the table to 80 columns there. A narrow terminal folds
    # lines itself, where the table would cut numbers short.
    return Console(width=max(Console().width, 80) if sys.stdout.isatty() else 160)


def say(console: Console, sentence: str, style: str) -> None:
    """Print a sentence, folded at words."""
    lines = textwrap.wrap(sentence, max(console.width, 40), subsequent_indent="  ")
    console.print("\n".join(lines), style=style, highlight=False, markup=False)


def print_table(console: Console, table: pd.DataFrame, title: str, cell: Callable[[Any, Any], str]) -> None:
    """Print a table; ``cell`` makes text of a column's name and a value."""
    from pandas.api.types import is_numeric_dtype
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="bold")
    for name in table.columns:
        justify: Any = "right" if is_numeric_dtype(table[name]) else "left"
        grid.add_column(str(name).replace("_", " "), justify=justify, overflow="fold")
    for row in table.itertuples(index=False):
        grid.add_row(*(Text(cell(name, value)) for name, value in zip(table.columns, row, strict=True)))
    console.print(grid)
    console.print()


def named_model(models: pd.Index, name: str) -> Any:
    """The model as the file has it: models may be named by numbers, which the command line cannot tell from text."""
    alike = [model for model in models if str(model) == name]
    return alike[0] if len(alike) == 1 else name
