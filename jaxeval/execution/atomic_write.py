"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from jaxeval.execution.file_locks import is_named, try_lock

#: The end of the names of files that are being written.
_UNFINISHED = ".unfinished"


@contextmanager
def whole_file(path: str | Path, check: Callable[[], None] = lambda: None) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of ``path`` at the end; whatever happens before leaves ``path`` as it was.

    If the process is killed, the next process that writes in the folder removes what it had written. A device or a
    pipe, such as ``/dev/null``, is written directly: a file in its place would take it from everybody.

    Args:
        path: the file, or a link to it.
        check: called when all is written, right before the file takes its place; what it raises prevents that.

    Raises:
        OSError: the file cannot be written: no such folder, no permission, a full disk.
    """
    target = Path(os.path.realpath(path))
    temporary = None
    try:
        if _is_special(target):
            with target.open("wb") as file:
                yield file
                check()
            return
        remove_unfinished(target.parent)
        # In the same folder, because a rename is a single step only within one file system.
        opened, temporary = _locked_file(target)
        with opened as file:  # it stays locked until it takes its place
            yield file
            file.flush()
            os.fsync(file.fileno())
            temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else _usual_mode())
            check()
            if os.name == "nt":  # Windows renames no open file
                file.close()
            temporary.replace(target)
            temporary = None
    except OSError as error:
        state = "is as it was" if target.exists() else "is not there"
        raise OSError(f"{path} cannot be written ({error.strerror or error}): the file {state}") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Remove the unfinished files that killed processes left in a folder.

    A file that is being written is locked by its process, and stays.
    """
    for path in folder.glob(f".*{_UNFINISHED}"):
        # Somebody else's, gone meanwhile, open on Windows, or on a file system without locks: it stays.
        with suppress(OSError), path.open("rb+") as file:
            if try_lock(file.fileno()):
                path.unlink()


def _is_special(target: Path) -> bool:
    return target.exists() and not target.is_file() and not target.is_dir()


def _locked_file(target: Path) -> tuple[IO[bytes], Path]:
    while True:
        handle, name = tempfile.mkstemp(_UNFINISHED, f".{target.name}.", target.parent)
        with suppress(OSError):  # no locks here: then nobody removes it either
            try_lock(handle)
        if is_named(handle, Path(name)):
            return os.fdopen(handle, "wb"), Path(name)
        os.close(handle)  # removed before it was locked


def _usual_mode() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
