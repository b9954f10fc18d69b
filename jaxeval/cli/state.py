"""``--state``: battles of earlier runs, to which a run adds its files and which it then replaces."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from jaxeval.cli.terminal import tell
from jaxeval.data.battles import Battles
from jaxeval.data.equal_rows import n_files
from jaxeval.data.remote_names import FileName
from jaxeval.data.saved_battles import FilesToAdd, digest_of, files_to_add
from jaxeval.errors import DataError
from jaxeval.execution.atomic_write import alone, whole_file
from jaxeval.wording import counted, named

if TYPE_CHECKING:
    import pandas as pd


class State(NamedTuple):
    """A state as a run found it."""

    path: Path
    battles: Battles | None  # None where there is no file yet
    digest: str | None  # of the file
    files: FilesToAdd

    @classmethod
    @contextmanager
    def opened(cls, path: Path, files: Sequence[FileName]) -> Iterator[State]:
        """Let a run have the state at ``path`` to add ``files`` to; no other run adds to it meanwhile.

        A run that finds another at work waits for it, and then adds to what it left.
        """
        target = Path(os.path.realpath(path))

        def waiting() -> None:
            tell(f"waiting for another run, which adds to {path}")

        with alone(target.with_name(f".{target.name}.lock"), waiting):
            digest = _digest(path)
            battles = None if digest is None else Battles.load(path)
            yield cls(path, battles, digest, files_to_add(files, {} if battles is None else battles.files))

    def with_added(
        self, read: Callable[[Sequence[FileName], str | None, Mapping[str, str]], Battles], vote_id: str | None = None
    ) -> Battles:
        """Return all battles: those that are there, and those of the files that are not there yet.

        ``read`` reads the battles of files with the column of ids, ``vote_id``, where the battles of other files are
        known. A state that was begun with a column of ids keeps to it.
        """
        paths, added, known = self.files
        vote_id = self._checked(vote_id)
        for file, other in known.items():
            tell(f"{file} is in {self.path} already{'' if other == file else f', as {other}'}: nothing to add")
        if not paths:
            assert self.battles is not None
            return self.battles
        before = {} if self.battles is None else self.battles.files
        new: Battles | None = read(paths, vote_id, before)
        contents = {} if new is None else new.files
        if new is not None and vote_id is not None:
            from jaxeval.data.shared_votes import votes_once

            new, notes = votes_once(new, vote_id, self.battles)
            for sentence in notes:
                tell(sentence)
        n_battles = 0 if new is None else new.n_battles
        tell(f"adding {counted(n_battles, 'battle')} of {', '.join(added.values())} to {self.path}")
        parts = [part for part in (self.battles, new) if part is not None]
        together = Battles.concat(parts) if len(parts) > 1 else parts[0]
        return replace(together, files={**together.files, **contents, **added}, id=vote_id)

    def _checked(self, vote_id: str | None) -> str | None:
        """Return the column of ids that a state keeps to."""
        if self.battles is None or self.battles.id == vote_id:
            return vote_id
        if self.battles.id is None:
            raise DataError(
                f"{self.path} was begun without --id, and does not know which votes it has: build it again from the "
                f"files with --id {vote_id}, or leave --id out"
            )
        if vote_id is not None:
            raise DataError(
                f"{self.path} knows its votes by {self.battles.id!r}, and not by {vote_id!r}: leave --id out"
            )
        return self.battles.id

    def save(self, battles: Battles) -> None:
        """Put ``battles`` in its place, unless nothing is new, or something else than a run has changed it."""
        if self.battles is not None and not self.files.added and battles.names == self.battles.names:
            return
        with whole_file(self.path, self._check_unchanged) as file:
            battles.write(file)
        saved = f"{counted(battles.n_battles, 'battle')} of {counted(n_files(battles.files), 'file')}"
        tell(f"saved {saved} to {self.path}")

    @property
    def n_files(self) -> int:
        """Files whose battles there are with those that are added."""
        return len(self.files.added) + (0 if self.battles is None else n_files(self.battles.files))

    @property
    def history_path(self) -> Path:
        """The file of dated boards, beside the state; where that is a link, beside the file that it leads to."""
        path = Path(os.path.realpath(self.path)) if self.path.is_symlink() else self.path
        return path.with_name(f"{path.stem}.history.parquet")

    def history(self, table: pd.DataFrame, day: date) -> pd.DataFrame:
        """Return the dated boards with that of this run, in place of an earlier one of the same day."""
        from jaxeval.pages.history import read_history, with_board

        kept = read_history(self.history_path) if self.history_path.exists() else None
        return with_board(kept, table, day)

    def save_history(self, history: pd.DataFrame) -> None:
        """Keep the dated boards beside the state."""
        from jaxeval.pages.history import write_history

        write_history(history, self.history_path)
        tell(f"kept the boards of {counted(history['date'].nunique(), 'day')} in {self.history_path}")

    def looked_at_again(self, table: pd.DataFrame) -> list[str]:
        """Return what to say of the intervals of a board that grows with every run, and is looked at as often."""
        from jaxeval.audits.over_time import wider_at_all_looks

        lower, upper = (table[name].to_numpy(float) for name in ("lower", "upper"))
        times = wider_at_all_looks(lower, upper, table.attrs["settings"]["level"])
        if times != times:
            return []
        return [
            f"this board has {counted(self.n_files, 'file')}, and each is a look: intervals that hold at all looks at "
            f"once are {times:.2f} times as wide (jaxeval.anytime_intervals)"
        ]

    def _check_unchanged(self) -> None:
        if _digest(self.path) != self.digest:
            raise click.ClickException(
                f"{self.path} was changed while this run was at work, so that what is new of "
                f"{named(list(self.files.added.values())) or 'this run'} is not in it: run the command again"
            )


def _digest(path: Path) -> str | None:
    return digest_of(path) if path.exists() else None
