"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of ``path`` at the end; whatever happens before leaves ``path`` as it was.

    Raises:
        OSError: it cannot be written: no such folder, no permission, a full disk.
    """
    target = Path(os.path.realpath(path))
    temporary = None
    try:
        # Beside it, as only within one file system is a rename a single step.
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            temporary = Path(file.name)
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else _usual_mode())
        temporary.replace(target)
        temporary = None
    except OSError as error:
        state = "is as it was" if target.exists() else "is not there"
        raise OSError(f"{path} cannot be written ({error.strerror or error}): the file {state}") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _usual_mode() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
