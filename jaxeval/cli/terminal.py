"""What the commands share: the console, its tables and sentences. Nothing else prints.

Names of models, columns and files come from other people. Characters in them that a terminal would obey are shown as
escapes: by the console for what it prints, by `tell` for lines on standard error, by the command group for errors.
"""

from __future__ import annotations

import io
import sys
import textwrap
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from jaxeval.wording import visible, visible_line

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console, JustifyMethod
    from rich.table import Table

#: Headings that are no plain words.
_HEADINGS = {"mae": "MAE", "mae_lower": "MAE lower", "mae_upper": "MAE upper"}


def stdout_console() -> Console:
    """Standard output for tables; quiet where there is none."""
    from jaxeval.cli.console import PlainConsole

    if sys.stdout is None:
        return PlainConsole(quiet=True, file=io.StringIO())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # bars, and names, that the terminal's encoding lacks
    # A pipe or a file has no width of its own: do not fold the table to 80 columns there. A narrow terminal folds
    # lines itself, where the table would cut numbers short.
    return PlainConsole(width=max(PlainConsole().width, 80) if sys.stdout.isatty() else 160)


def tell(sentence: str) -> None:
    """Print what was done, on standard error."""
    click.echo(visible(sentence), err=True)


def say(console: Console, sentence: str, style: str) -> None:
    """Print a sentence, folded at words."""
    lines = textwrap.wrap(visible(sentence), max(console.width, 40), subsequent_indent="  ")
    console.print("\n".join(lines), style=style)


def warn(console: Console, sentences: Iterable[str]) -> None:
    """Print warnings, each once."""
    for sentence in dict.fromkeys(sentences):
        say(console, f"warning: {sentence}", "yellow")


def note(console: Console, lines: object) -> None:
    """Print what was read or set, in a pale colour and unfolded."""
    console.print(str(lines), style="dim")


def heading(name: object) -> str:
    """The heading of a column: its name with spaces and a capital letter, numbers of things by the things' name."""
    text = str(name)
    if text in _HEADINGS:
        return _HEADINGS[text]
    words = text.replace("_", " ").removeprefix("n ")
    return words[:1].upper() + words[1:]


def new_grid(title: str | None = None) -> Table:
    """An empty table in the one style of all tables."""
    from rich.table import Table

    return Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="bold")


def print_table(console: Console, table: pd.DataFrame, title: str, cell: Callable[[Any, Any], str]) -> None:
    """Print a table; ``cell`` makes text of a column's name and a value."""
    from pandas.api.types import is_numeric_dtype

    grid = new_grid(title)
    for name in table.columns:
        justify: JustifyMethod = "right" if is_numeric_dtype(table[name]) else "left"
        grid.add_column(heading(name), justify=justify, overflow="fold")
    for row in table.itertuples(index=False):
        grid.add_row(*(cell(name, value) for name, value in zip(table.columns, row, strict=True)))
    console.print(grid)
    console.print()


def short_number(value: float) -> str:
    """Four digits and never an exponent: below 0.00005 rounding errors begin, which are shown as 0."""
    if not abs(value) < float("inf"):
        return f"{value:g}"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}" if abs(value) >= 5e-5 else "0"


def plain_cell(value: Any) -> str:
    """A cell of a name or of a whole number."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else visible_line(value)


def named_model(models: pd.Index, name: str) -> Any:
    """The model as the file has it: models may be named by numbers, which the command line cannot tell from text."""
    alike = [model for model in models if str(model) == name]
    return alike[0] if len(alike) == 1 else name
