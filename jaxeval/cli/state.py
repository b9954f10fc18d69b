"""``--state``: battles of earlier runs, to which a run adds its files and which it then replaces."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from jaxeval.cli.terminal import tell
from jaxeval.data.battles import Battles
from jaxeval.data.remote_names import FileName
from jaxeval.data.saved_battles import digest_of, digests
from jaxeval.execution.atomic_write import whole_file
from jaxeval.execution.file_locks import alone
from jaxeval.wording import counted

if TYPE_CHECKING:
    import pandas as pd


class State(NamedTuple):
    """A state as a run found it."""

    path: Path
    battles: Battles | None  # None where there is no file yet
    digest: str | None  # of the file
    added: dict[str, str]  # digests and names of the files that are added

    @classmethod
    @contextmanager
    def opened(cls, path: Path, files: Sequence[FileName]) -> Iterator[State]:
        """The state at ``path``, to which ``files`` are to be added, and which no other run adds to meanwhile.

        A run that finds another at work waits for it, and then adds to what it left.

        Raises:
            DataError: it is no state, or one of the files has been added before.
            OSError: the state cannot be read, or its folder cannot hold a lock.
        """
        target = Path(os.path.realpath(path))

        def waiting() -> None:
            tell(f"waiting for another run, which adds to {path}")

        with alone(target.with_name(f".{target.name}.lock"), waiting):
            digest = _digest(path)
            battles = None if digest is None else Battles.load(path)
            yield cls(path, battles, digest, digests(files, {} if battles is None else battles.files))

    def with_added(self, battles: Battles) -> Battles:
        """All battles, those of the files being ``battles``."""
        tell(f"adding {counted(battles.n_battles, 'battle')} of {', '.join(self.added.values())} to {self.path}")
        together = battles if self.battles is None else Battles.concat([self.battles, battles])
        return replace(together, files={**together.files, **self.added})

    def save(self, battles: Battles) -> None:
        """Put ``battles`` in its place, unless something else than a run has changed it.

        Raises:
            ClickException: the file is not what it was when it was opened.
            OSError: it cannot be written.
        """
        with whole_file(self.path, self._check_unchanged) as file:
            battles.write(file)
        saved = f"{counted(battles.n_battles, 'battle')} of {counted(len(battles.files), 'file')}"
        tell(f"saved {saved} to {self.path}")

    @property
    def n_files(self) -> int:
        """Files whose battles there are with those that are added."""
        return len(self.added) + (0 if self.battles is None else len(self.battles.files))

    @property
    def history_path(self) -> Path:
        """The file of dated boards, beside the state."""
        return self.path.with_name(f"{self.path.stem}.history.parquet")

    def history(self, table: pd.DataFrame, day: date) -> pd.DataFrame:
        """The dated boards with that of this run, in place of an earlier one of the same day.

        Raises:
            DataError: the file beside the state is no history.
            OSError: it cannot be read.
        """
        from jaxeval.pages.history import read_history, with_board

        kept = read_history(self.history_path) if self.history_path.exists() else None
        return with_board(kept, table, day)

    def save_history(self, history: pd.DataFrame) -> None:
        """Keep the dated boards beside the state.

        Raises:
            OSError: they cannot be written.
        """
        from jaxeval.pages.history import write_history

        write_history(history, self.history_path)
        tell(f"kept the boards of {counted(history['date'].nunique(), 'day')} in {self.history_path}")

    def _check_unchanged(self) -> None:
        if _digest(self.path) != self.digest:
            raise click.ClickException(
                f"{self.path} was changed while this run was at work, so that the battles of "
                f"{', '.join(self.added.values())} are not in it: run the command again"
            )


def _digest(path: Path) -> str | None:
    return digest_of(path) if path.exists() else None
