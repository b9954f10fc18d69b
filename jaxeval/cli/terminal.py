"""The console of the commands, sentences on standard error, and numbers as text. Nothing else prints.

Names of models, columns and files come from other people. Characters in them that a terminal would obey are shown as
escapes: by the console for what it prints, by `tell` for lines on standard error, by the command group for errors.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from jaxeval.wording import visible

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

#: Under this name a context of click says that its command is to be quiet.
QUIET = "jaxeval.quiet"


def stdout_console() -> Console:
    """Return standard output for tables; quiet where there is none."""
    from jaxeval.cli.console import PlainConsole

    if sys.stdout is None:
        return PlainConsole(quiet=True, file=io.StringIO())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # bars, and names, that the terminal's encoding lacks
    # A pipe or a file has no width of its own: do not fold the table to 80 columns there.
    if not sys.stdout.isatty():
        return PlainConsole(width=160, for_programs=True)
    return PlainConsole(width=max(PlainConsole().width, 40))


def tell(sentence: str) -> None:
    """Print what was done, on standard error; nothing in a command that was asked to be quiet."""
    context = click.get_current_context(silent=True)
    if context is None or not context.meta.get(QUIET):
        complain(sentence)


def complain(sentence: str) -> None:
    """Print what must not go unseen, on standard error."""
    click.echo(visible(sentence), err=True)


def print_bytes(data: bytes) -> None:
    """Write a result to standard output as it is."""
    with click.open_file("-", "wb") as stream:
        stream.write(data)
        stream.flush()


def named_model(models: pd.Index, name: str) -> Any:
    """Return the model as the file has it: the command line cannot tell names that are numbers from text."""
    alike = [model for model in models if str(model) == name]
    return alike[0] if len(alike) == 1 else name


def numbers_by_name(texts: Sequence[str] | None, takes: str, kind: Callable[[str], Any] = float) -> Any:
    """Return the numbers in texts NAME=NUMBER, None where there are no texts; ``takes`` says what an option takes."""
    numbers = {}
    for text in texts or ():
        name, _, value = text.rpartition("=")
        try:
            numbers[name.strip()] = kind(value)
        except ValueError:
            name = ""
        if not name:
            raise click.UsageError(f"{takes}, got {text!r}")
    return numbers or None
