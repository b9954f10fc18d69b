"""``--state``: battles of earlier runs, to which a run adds its files and which it then replaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import click

from jaxeval.cli.terminal import tell
from jaxeval.data.battles import Battles
from jaxeval.data.saved_battles import digest_of, digests
from jaxeval.wording import counted


class State(NamedTuple):
    """A state as a run found it."""

    path: Path
    battles: Battles | None  # None where there is no file yet
    digest: str | None  # of the file
    added: dict[str, str]  # digests and names of the files that are added

    @classmethod
    def opened(cls, path: Path, files: Sequence[Path]) -> State:
        """The state at ``path``, to which ``files`` are to be added.

        Raises:
            DataError: it is no state, or one of the files has been added before.
        """
        digest = digest_of(path) if path.exists() else None
        battles = None if digest is None else Battles.load(path)
        return cls(path, battles, digest, digests(files, {} if battles is None else battles.files))

    def with_added(self, battles: Battles) -> Battles:
        """All battles, those of the files being ``battles``."""
        tell(f"adding {counted(battles.n_battles, 'battle')} of {', '.join(self.added.values())} to {self.path}")
        together = battles if self.battles is None else Battles.concat([self.battles, battles])
        return replace(together, files={**together.files, **self.added})

    def save(self, battles: Battles) -> None:
        """Put ``battles`` in its place, unless another run has done so.

        Raises:
            ClickException: the file is not what it was when it was opened.
        """
        if (digest_of(self.path) if self.path.exists() else None) != self.digest:
            raise click.ClickException(
                f"{self.path} was changed while this run was at work, so that the battles of "
                f"{', '.join(self.added.values())} are not in it: run the command again"
            )
        battles.save(self.path)
        saved = f"{counted(battles.n_battles, 'battle')} of {counted(len(battles.files), 'file')}"
        tell(f"saved {saved} to {self.path}")
