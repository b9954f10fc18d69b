"""A command for a file: the line to type, the question that it answers, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from jaxeval.cli.command_table import ROWS
from jaxeval.data.found_columns import quoted
from jaxeval.data.roles import ROLES, usual_column

#: Names of the column of what answers were compared with.
OPPONENTS = (*ROLES["anchor"].names, *ROLES["anchor"].also, "opponent")


class Use(NamedTuple):
    """A command for a file."""

    question: str  # that it answers
    words: tuple[str, ...]  # of the line after the name of the file's place, {} where that stands
    why: str  # what was found
    open: str = ""  # what the reader must know, or decide


def use_of(
    command: str, options: Sequence[str], why: str, note: str = "", question: str = "", files: Sequence[str] = ("{}",)
) -> Use:
    """Return a use of ``files``, the question of which is by default that of the command."""
    return Use(question or ROWS[command].asks or ROWS[command].line, (command, *files, *options), why, note)


def each(option: str, names: Sequence[str]) -> list[str]:
    """Return the words of an option that is given once for each of the names."""
    return [word for name in names for word in (option, name)]


def naming(**roles: str | None) -> list[str]:
    """Return the options that name columns by role, where they are not called so."""
    return [word for role, name in roles.items() if name not in (role, None) for word in (f"--{role}", str(name))]


def found(**columns: Any) -> str:
    """Return which column, or columns, hold what, in words; None is left out."""
    return ", ".join(
        f"{what.replace('_', ' ')} in {quoted([names] if isinstance(names, str) else names)}"
        for what, names in columns.items()
        if names is not None
    )


def usual(frame: pd.DataFrame, *roles: str) -> list[Any]:
    """Return the columns with the usual names of some roles; None where there is none."""
    return [usual_column(frame, None, role) for role in roles]
