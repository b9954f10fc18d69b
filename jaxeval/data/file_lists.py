"""Which files a path, a folder, a pattern, an address, or standard input stands for."""

from __future__ import annotations

import atexit
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from glob import glob
from pathlib import Path

from jaxeval.data.file_formats import ENDINGS, has_known_ending
from jaxeval.data.remote_names import FileName, is_remote
from jaxeval.errors import DataError


def files_of(path: FileName | Sequence[FileName], progress: bool | None = None) -> list[Path]:
    """`names_of` files, as files here: those of other machines are fetched, with the errors of `fetched`."""
    return [local_file(name, progress) for name in names_of(path)]


def local_file(name: FileName, progress: bool | None = None) -> Path:
    """A file here, or a copy of one on another machine; see `remote_files.fetched`."""
    if not is_remote(name):
        return Path(name)
    from jaxeval.data.remote_files import fetched

    return fetched(str(name), progress)


def whole_local_file(name: FileName) -> Path:
    """`local_file` with all of its bytes: of a remote Parquet file that one has those columns only that were read."""
    path = local_file(name)
    if is_remote(name):
        from jaxeval.data.remote_files import fetch_columns

        fetch_columns(path)
    return path


def names_of(path: FileName | Sequence[FileName]) -> list[FileName]:
    """The files that a path, a folder, a glob, or a list of those stands for, each once; "-" is standard input.

    Those on other machines are text, and are not fetched.

    Those of a folder (and of the folders in it) and of a glob, which may match folders, come by name; names that begin
    with "_" or "." are hidden, unless the glob spells that out.

    Raises:
        DataError: a folder holds no table, or files that are none.
        FileNotFoundError: there is no such file.
    """
    files = [file for one in ([path] if isinstance(path, str | Path) else path) for file in _names_of_one(one)]
    if not files:
        raise FileNotFoundError("the list of files is empty")
    once: dict[FileName, FileName] = {}
    for file in files:
        once.setdefault(file.resolve() if isinstance(file, Path) else file, file)
    return list(once.values())


@cache
def _standard_input() -> Path:
    """What standard input holds, as a file for the rest of the process: files are read more than once."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    path = Path(folder.name) / "standard input"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def _names_of_one(path: FileName) -> Sequence[FileName]:
    if is_remote(path):
        from jaxeval.data.remote_files import remote_files

        return remote_files(str(path))
    found = Path(path)
    if str(path) == "-":
        return [_standard_input()]
    if found.is_dir():
        files = sorted(file for file in found.rglob("*") if file.is_file() and not _hidden(file.relative_to(found)))
        others = [file for file in files if not has_known_ending(file)]
        if others or not files:
            what = f"holds {others[0].name}, which is no table" if others else "holds no file"
            name = found.name or found  # "." has no name
            raise DataError(
                f"{name}: the directory {what}; known endings are {ENDINGS}; a pattern such as "
                f"{name}/*.parquet chooses files"
            )
        return files
    if not found.exists() and any(sign in str(path) for sign in "*?["):
        matches = sorted(Path(match) for match in glob(str(path), recursive=True))
        matches = [match for match in matches if not _hidden(match, found.parts)]
        if not matches:
            raise FileNotFoundError(f"no file matches {path}")
        return [file for match in matches for file in _names_of_one(match)]
    check_regular(found)
    return [found]


def check_regular(path: Path) -> None:
    """See to it that ``path`` is a file that can be read again and again.

    Raises:
        FileNotFoundError: there is nothing.
        DataError: it is a pipe, a device or a socket.
    """
    if not path.exists():
        is_address = re.match(r"[\w+.-]{2,}:/", str(path))
        hint = "; names of files elsewhere are text, as a Path drops a slash" if is_address else ""
        raise FileNotFoundError(f"no such file: {path}{hint}")
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe" if path.is_fifo() else "a device or a socket"
        raise DataError(f"{path.name} is {kind}, and no file: write its content to a file, which is read twice")


def _hidden(path: Path, patterns: Sequence[str] = ()) -> bool:
    """Whether a name in the path begins with "_" or ".", which none of the ``patterns`` of names spells out."""
    marks = ("_", ".")
    spelled = [pattern for pattern in patterns if pattern.startswith(marks)]
    return any(
        part.startswith(marks) and not any(fnmatchcase(part, pattern) for pattern in spelled) for part in path.parts
    )
