"""Which files a path, a folder, a pattern, an address, or standard input stands for."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from glob import glob
from pathlib import Path

from jaxeval.data.file_formats import ENDINGS, folder_of_copies, has_known_ending, unwrapped
from jaxeval.data.remote_names import FileName, base_name, is_remote
from jaxeval.errors import DataError

#: What folders of data hold beside data.
_ABOUT = re.compile(
    r"(readme|licen[cs]e|changelog|citation|notice)(\..*)?|.*\.(md|rst|html|pdf|png|svg)", re.IGNORECASE
)


def files_of(path: FileName | Sequence[FileName], progress: bool | None = None) -> list[Path]:
    """Return the files of `names_of` as local files: those on other machines are fetched, with errors of `fetched`."""
    return [local_file(name, progress) for name in names_of(path)]


def local_file(name: FileName, progress: bool | None = None) -> Path:
    """Return a local file, or the copy of a remote one (`remote_files.fetched`), as what it wraps (`unwrapped`)."""
    if not is_remote(name):
        return unwrapped(Path(name))
    from jaxeval.data.remote_files import fetched

    return unwrapped(fetched(str(name), progress))


def whole_local_file(name: FileName) -> Path:
    """Return `local_file` with all its bytes; the copy of a remote Parquet file may lack columns that were not read."""
    path = local_file(name)
    if is_remote(name):
        from jaxeval.data.remote_files import fetch_columns

        fetch_columns(path)
    return path


def names_of(path: FileName | Sequence[FileName]) -> list[FileName]:
    """Return the files that a path, a folder, a glob, or a list of those stands for, each once; "-" is standard input.

    Names of files on other machines are text; these files are not fetched.

    Files of a folder (and of the folders in it), and files that a glob matches, are sorted by name; a glob may match
    folders. Names that begin with "_" or "." are left out, unless the glob spells the sign out; so are
    README, LICENSE and other files about a folder, and pages and figures.

    Raises:
        DataError: a folder holds no file, or one that is no table.
        FileNotFoundError: there is no such file.
    """
    return [names[0] for names in _all_names_of(path)]


def _all_names_of(path: FileName | Sequence[FileName]) -> list[list[FileName]]:
    """Return the names of each file, several where a list has it several times."""
    files = [file for one in ([path] if isinstance(path, str | Path) else path) for file in _names_of_one(one)]
    if not files:
        raise FileNotFoundError("the list of files is empty")
    names: dict[FileName, list[FileName]] = {}
    for file in files:
        names.setdefault(file.resolve() if isinstance(file, Path) else file, []).append(file)
    return list(names.values())


def named_twice(path: FileName | Sequence[FileName]) -> list[str]:
    """Return what is to be said of files that a list has more than once, be it by a folder or another name."""
    if isinstance(path, str | Path):
        return []
    twice = [names[0] for names in _all_names_of(path) if len(names) > 1]
    return [f"{base_name(name)} is named twice, and counts once" for name in twice]


@cache
def _standard_input() -> Path:
    """Copy standard input into a file, for the rest of the process, since files are read more than once."""
    if sys.stdin is None:
        raise DataError("-: standard input is closed")
    path = folder_of_copies() / "standard input"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def as_typed(name: FileName) -> FileName:
    """Return "-" for the file that holds standard input; other names as they are."""
    return "-" if _standard_input.cache_info().currsize and name == _standard_input() else name


def _names_of_one(path: FileName) -> Sequence[FileName]:
    if is_remote(path):
        from jaxeval.data.remote_files import remote_files

        return remote_files(str(path))
    local = Path(path)
    if str(path) == "-":
        return [_standard_input()]
    if local.is_dir():
        files = sorted(file for file in local.rglob("*") if file.is_file() and not _hidden(file.relative_to(local)))
        files = [file for file in files if not _ABOUT.fullmatch(file.name)]
        others = [file for file in files if not has_known_ending(file)]
        if others or not files:
            what = f"holds {others[0].name}, which is no table" if others else "holds no file"
            name = local.name or local  # "." has no name
            raise DataError(
                f"{name}: the folder {what}; known endings are {ENDINGS}; to read some files of the folder, give a "
                f"pattern such as {name}/*.parquet"
            )
        return files
    if not local.exists() and any(sign in str(path) for sign in "*?["):
        matches = sorted(Path(match) for match in glob(str(path), recursive=True))
        matches = [match for match in matches if not _hidden(match, local.parts)]
        if not matches:
            raise FileNotFoundError(f"no file matches {path}")
        return [file for match in matches for file in _names_of_one(match)]
    check_regular(local)
    return [local]


def check_regular(path: Path) -> None:
    """Check that ``path`` is a file that can be read more than once."""
    if not path.exists():
        is_address = re.match(r"[\w+.-]{2,}:/", str(path))
        hint = "; give an address as text: a Path drops one of its slashes" if is_address else ""
        raise FileNotFoundError(f"no such file: {path}{hint}")
    if not path.is_file():
        if path.is_dir():
            raise DataError(f"{path.name} is a folder, and no file: name a file in it")
        kind = "a pipe" if path.is_fifo() else "a device or a socket"
        raise DataError(
            f"{path.name} is {kind}, which cannot be read twice: write its content to a file first, or name - and let "
            "it be standard input"
        )


def _hidden(path: Path, patterns: Sequence[str] = ()) -> bool:
    """Give whether a name in the path begins with "_" or ".", and none of the ``patterns`` of names spells that out."""
    marks = ("_", ".")
    spelled = [pattern for pattern in patterns if pattern.startswith(marks)]
    return any(
        part.startswith(marks) and not any(fnmatchcase(part, pattern) for pattern in spelled) for part in path.parts
    )
