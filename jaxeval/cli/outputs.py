"""Files that the commands write: checked before the work, whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxeval.execution.atomic_write import whole_file

if TYPE_CHECKING:
    import pandas as pd


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


def write_table(table: pd.DataFrame, path: Path, index: bool = False) -> None:
    """Write .csv, .parquet or .json, as the ending says, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    with whole_file(path) as file:
        if path.suffix.lower() == ".csv":
            table.to_csv(file, index=index, mode="wb")
        elif path.suffix.lower() == ".parquet":
            table.to_parquet(file, index=index)
        else:
            file.write(_json(table).encode())


def write_text(text: str, path: Path) -> None:
    """Write a text as UTF-8, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    with whole_file(path) as file:
        file.write(text.encode())


def _json(table: pd.DataFrame) -> str:
    import numpy as np

    # JSON has no infinity, and null is "no interval".
    infinite = {c: np.isinf(table[c]) for c in table.select_dtypes("floating")}
    spelled = {
        c: table[c].astype(object).mask(where, np.where(table[c] > 0, "Infinity", "-Infinity"))
        for c, where in infinite.items()
        if where.any()
    }
    return str(table.assign(**spelled).to_json(orient="records", indent=1))
