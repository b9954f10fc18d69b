"""Names of columns that tables had in earlier versions: tables still read them for a release, and say so once."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import pandas as pd

#: Quantities whose intervals had columns of their own name, as ``rating_lower``.
_QUANTITIES = ("rating", "score", "ability", "quality")
_told: set[str] = set()
#: Folders whose frames are not the caller's own code.
_LIBRARIES = tuple(f"{folder}{os.sep}" for folder in (Path(pd.__file__).parent, Path(__file__).parents[1]))


def present_name(name: Hashable, columns: pd.Index) -> Hashable:
    """Return what the column ``name`` of earlier versions is called now, if a table with ``columns`` has that.

    Ends are those of the first quantity: metadata, which may be called as another, stand behind it.
    """
    if not isinstance(name, str) or name in columns:
        return name
    quantity, _, end = name.rpartition("_")
    new = "model" if name == "model_name" else end if end in ("lower", "upper") and quantity in _QUANTITIES else name
    first = next((column for column in columns if column in _QUANTITIES), None)
    return new if new in columns and (new == "model" or quantity == first) else name


def with_present_names(table: Any) -> Any:
    """Return a table, perhaps from a file of an earlier version, with the names of today; other results as they are.

    Those of an earlier version have ``model_name``; in others, as of `anchored_scores`, several quantities have ends.
    """
    if not isinstance(table, pd.DataFrame) or "model_name" not in table.columns:
        return table
    known = {"model_name": "model", **{f"{x}_{end}": end for x in _QUANTITIES for end in ("lower", "upper")}}
    new = {old: name for old, name in known.items() if old in table.columns and name not in table.columns}
    return table.rename(columns=new) if len(set(new.values())) == len(new) else table


def translated(table: pd.DataFrame, argument: Any) -> Any:
    """Return an argument of a table's method with the names of today, and tell of the first that was another."""
    if isinstance(argument, list):
        return [translated(table, entry) for entry in argument]
    if isinstance(argument, dict):
        return {translated(table, entry): value for entry, value in argument.items()}
    if not isinstance(argument, str) or (name := present_name(argument, table.columns)) == argument:
        return argument
    if not _told:
        _told.add(argument)
        text = (
            f"the column {argument!r} is called {name!r} now; most calls of tables take it, and other former names, "
            "until version 0.2"
        )
        warnings.warn(text, FutureWarning, stacklevel=_own_level())
    return name


def _own_level() -> int:
    """Return how many frames above the caller of this function code stands that is of no library."""
    frame, level = sys._getframe(), 0
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        frame, level = frame.f_back, level + 1
    return level


def reading_former(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of a DataFrame, whose arguments may be former names of columns."""

    @functools.wraps(method)
    def read(self: pd.DataFrame, *args: Any, **named: Any) -> Any:
        known = {name: translated(self, argument) for name, argument in named.items()}
        return method(self, *(translated(self, argument) for argument in args), **known)

    return read


class FormerLoc(type(pd.DataFrame().loc)):  # type: ignore[misc]
    """Rows and columns by label, the latter also by former names."""

    def __getitem__(self, key: Any) -> Any:
        """Return what pandas returns."""
        return super().__getitem__(self._present(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write what pandas writes."""
        super().__setitem__(self._present(key), value)

    def _present(self, key: Any) -> Any:
        return (key[0], translated(self.obj, key[1])) if isinstance(key, tuple) and len(key) == 2 else key
