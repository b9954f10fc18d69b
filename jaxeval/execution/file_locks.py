"""Locks on files, which end with the process that holds them, however it ends.

They are those of `flock` (on Windows, of `msvcrt.locking`): the kernel releases them. On NFS they hold between hosts;
on NFS mounted with ``nolock``, and on Lustre with ``localflock``, they hold within one host only. On a file system
without locks, such as Lustre mounted without ``flock``, a call raises OSError.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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

    Args:
        path: a name for the lock, in a folder that all of them see.
        waiting: called once if another process holds it; this one then waits.

    Raises:
        OSError: the file cannot be made, or the file system has no locks.
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
    told = False
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            locked = _try_or_tell(handle, path)
            if not locked and not told:
                waiting()
                told = True
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
    """Whether an open file is still the one at ``path``: another process may have removed it."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), path.stat())
    return False
