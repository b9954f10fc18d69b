"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

#: The end of the names of files that are being written.
_UNFINISHED = ".unfinished"
if sys.platform == "win32":
    import msvcrt
    import time

    def _lock(handle: int, wait: bool) -> None:
        while True:
            try:
                return msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            except PermissionError as error:
                if not wait:
                    raise BlockingIOError(*error.args) from error
                time.sleep(0.5)
else:
    import fcntl

    def _lock(handle: int, wait: bool) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def whole_file(path: str | Path, check: Callable[[], None] = lambda: None) -> Iterator[IO[bytes]]:
    """Let a file be written that takes the place of ``path`` at the end; what happens before leaves ``path`` as it was.

    If the process is killed, the next process that writes in the folder removes what it had written. A device or a
    pipe, such as ``/dev/null``, is written directly: a file in its place would take it from everybody. ``check`` is
    called when all is written, right before the file takes its place; what it raises prevents that. An OSError says why
    the file cannot be written: no such folder, no permission, a full disk.
    """
    target = Path(os.path.realpath(path))
    temporary = None
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
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


def try_lock(handle: int) -> bool:
    """Lock an open file unless another process holds its lock; return whether this process has it now.

    Raises:
        OSError: the file system has no locks.
    """
    try:
        _lock(handle, wait=False)
    except BlockingIOError:
        return False
    return True


@contextmanager
def alone(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock ``path``, a file that exists only meanwhile; one process at a time holds it.

    If another process holds it, ``waiting`` is called once, and this one waits. It is an OSError if the file cannot be
    made, or the file system has no locks.
    """
    handle = _held(path, waiting)
    try:
        yield
    finally:
        if sys.platform == "win32":  # Windows removes no open file
            os.close(handle)
        else:
            path.unlink(missing_ok=True)  # before the release: a waiting process sees it is gone, and makes its own
            os.close(handle)


def _held(path: Path, waiting: Callable[[], None]) -> int:
    warned = False
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            locked = _try_or_tell(handle, path)
            if not locked and not warned:
                waiting()
                warned = True
            if not locked:
                _lock(handle, wait=True)
            if is_named(handle, path):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _try_or_tell(handle: int, path: Path) -> bool:
    try:
        return try_lock(handle)
    except OSError as error:
        raise OSError(
            f"{path.parent} is on a file system that locks no files ({error.strerror}), so nothing keeps two processes "
            "from undoing each other's work: name a file elsewhere"
        ) from error


def is_named(handle: int, path: Path) -> bool:
    """Return whether an open file is still the one at ``path``: another process may have removed it."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), path.stat())
    return False
