"""Files on other machines, fetched through fsspec as files here, for the rest of the process.

They go to a folder of temporary files, which is removed at the end, or by the next process if this one is killed. Of a
Parquet file only its end is fetched first, which says where every column is; `fetch_columns` then fetches the columns
that are needed into their places.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from jaxeval.data.file_formats import has_known_ending
from jaxeval.data.remote_errors import reaching
from jaxeval.data.remote_names import PROTOCOLS, base_name, is_hub, is_web, shown
from jaxeval.errors import DataError
from jaxeval.execution.file_locks import try_lock
from jaxeval.execution.progress import Advance, announce, progress_bar
from jaxeval.wording import named

_SECONDS_TO_CONNECT, _SECONDS_SILENT = 30.0, 60.0
_MEGABYTE = 1_000_000
_PIECE_BYTES = 2**23
#: What is fetched of a Parquet file first: most footers are shorter.
_END_BYTES = 2**16
_MARK, _LENGTH_BYTES = b"PAR1", 4
#: Columns that lie so close to each other are fetched as one: what is between takes less time than another request.
_GAP_BYTES = 2**20
#: Old writers of Parquet count too few bytes of a column, by the length of a header.
_PADDING = 100
#: From here on a download is told, where no bar is shown either.
_LARGE = 50 * _MEGABYTE
#: The beginning of the names of folders of copies, and a file in each that is locked while its process lives.
_FOLDER, _LOCK = "jaxeval-remote-", "lock"


class _Remote(NamedTuple):
    """A file elsewhere."""

    name: str
    system: Any  # fsspec's AbstractFileSystem
    path: str  # as the system calls it
    size: int | None  # bytes; None if nobody says
    has_parts: bool  # that can be fetched alone
    version: str  # what its server says of it


class _Partial(NamedTuple):
    """A file of which parts are here."""

    remote: _Remote
    there: set[tuple[int, int]]  # parts that are here, from and to which byte


_COPIES: dict[tuple[str, str], Path] = {}  # by name and version
_PARTIAL: dict[Path, _Partial] = {}


@cache
def _folder() -> Path:
    _remove_left()
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER))
    with suppress(OSError):  # no locks here: then nobody else removes it
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT)
        try_lock(handle)  # as long as the process lives
        os.write(handle, b"locked")
    atexit.register(remove_copies)
    return folder


def _remove_left() -> None:
    """Remove what processes that were killed had fetched."""
    for lock in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*/{_LOCK}"):
        # Somebody else's, gone meanwhile, or open on Windows: it stays. So does one that is not locked yet.
        with suppress(OSError), lock.open("rb+") as file:
            if lock.stat().st_size and try_lock(file.fileno()):
                shutil.rmtree(lock.parent, ignore_errors=True)


def remove_copies() -> None:
    """Remove all that was fetched: at the end of the process, also where it ends at once."""
    if _folder.cache_info().currsize:
        shutil.rmtree(_folder(), ignore_errors=True)


def fetched(name: str, progress: bool | None = None) -> Path:
    """The remote file ``name`` as a file here. It is fetched again only if it has changed.

    Args:
        name: with its protocol.
        progress: as of `progress_bar`; if None, a large download is told on standard error where there is no bar.

    Raises:
        DataError: it cannot be fetched; nothing of it stays.
        FileNotFoundError: there is no such file.
        ImportError: the package that speaks the protocol is not installed.
    """
    remote = _found(name)
    key = name, remote.version
    if key in _COPIES and _COPIES[key].exists():
        return _COPIES[key]
    copy = Path(tempfile.mkdtemp(dir=_folder())) / base_name(name)
    with _whole_or_none(copy):
        if copy.suffix.lower() not in (".parquet", ".pq") or not _fetch_end(remote, copy):
            _fetch_whole(remote, copy, progress)
    _COPIES[key] = copy
    return copy


def is_partial(copy: Path) -> bool:
    """Whether some of a file is not here yet."""
    return copy in _PARTIAL


def fetch_columns(copy: Path, columns: Sequence[str] | None = None, progress: bool | None = None) -> None:
    """Fetch what is not here yet of some columns of a file, or of all of it; nothing of a file that is whole here.

    Raises:
        DataError: it cannot be fetched; nothing of the file stays.
    """
    if not is_partial(copy):
        return
    remote, there = _PARTIAL[copy]
    wanted = [(0, remote.size or 0)] if columns is None else _parts(copy, columns, remote.size or 0)
    missing = [part for part in wanted if part not in there]
    if not missing:
        return
    with _whole_or_none(copy):
        comes_whole = not _fetch_parts(remote, copy, missing, progress)
        if comes_whole:
            _fetch_whole(remote, copy, progress)
        if _found(remote.name).version != remote.version:  # its end may belong to other columns
            raise DataError(f"{shown(remote.name)} was changed while it was fetched: read it again")
    there.update(missing)
    if comes_whole:
        del _PARTIAL[copy]


def remote_files(name: str) -> list[str]:
    """The names of the files that a remote name, or a pattern, stands for; nothing is fetched.

    Raises:
        DataError: the name is no file that is read, or its server cannot be reached.
        FileNotFoundError: no file matches.
        ImportError: the package that speaks the protocol is not installed.
    """
    system, path = _opened(name)
    if not any(sign in (urlsplit(name).path if is_web(name) else path) for sign in "*["):
        return [name]
    with reaching(name, system, path):
        found = sorted(system.glob(path))
    if not found:
        raise FileNotFoundError(f"no file matches {shown(name)}")
    protocol = name.split("://", 1)[0]
    return [file if "://" in file else f"{protocol}://{file.lstrip('/')}" for file in found]


def _found(name: str) -> _Remote:
    """The file of that name, as its server has it now."""
    system, path = _opened(name)
    with reaching(name, system, path):
        about = system.info(path)
        is_folder = about.get("type") == "directory"
        within = system.find(path) if is_folder else []
    if is_folder:
        known = [file.removeprefix(f"{path}/") for file in within if has_known_ending(Path(file))]
        raise DataError(
            f"{shown(name)} is a folder: name a file in it, or a pattern such as {shown(name).rstrip('/')}/*.parquet"
            + (f"; there are {named(known)}" if known else "")
        )
    return _Remote(
        name=name,
        system=system,
        path=path,
        size=about.get("size"),
        has_parts=about.get("partial", True),
        version=repr(sorted(about.items(), key=str)),
    )


def _opened(name: str) -> tuple[Any, str]:
    """The file system that a name is of, and what it calls the file."""
    protocol, *rest = name.split(":", 1)
    protocol = protocol.lower()  # as in HTTP://
    name = ":".join([protocol, *rest])
    if protocol not in PROTOCOLS or not name.startswith(f"{protocol}://"):
        raise DataError(
            f"{shown(name)}: names of files elsewhere begin with one of {', '.join(PROTOCOLS)}, and ://; a file "
            "here is named by its path"
        )
    try:
        urlsplit(name)
    except ValueError as error:
        raise DataError(f"{shown(name)} is no address: {error}") from None
    try:
        import fsspec

        options = _web_options(name) if is_web(name) else {}
        if is_hub(name):
            options["endpoint"] = os.environ.get("HF_ENDPOINT")
        # Of its own, as others keep lists of files that were there once.
        system = fsspec.filesystem(protocol, skip_instance_cache=True, **options)
    except (ImportError, ValueError) as error:
        own = "" if protocol in ("hf", "http", "https") else f", and the package that fsspec asks for ({error})"
        raise ImportError(f"files at {protocol}:// need pip install 'jaxeval[remote]'{own}") from error
    return system, system._strip_protocol(name)


def _web_options(name: str) -> dict[str, Any]:
    import aiohttp

    # By default a download may take five minutes in all, and proxies of the environment are passed by.
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_SECONDS_TO_CONNECT, sock_read=_SECONDS_SILENT)
    client = {"timeout": timeout, "trust_env": True, "auto_decompress": False}
    # An address that is written in %XX is sent as it is: it may be signed.
    return {"client_kwargs": client, "headers": {"Accept-Encoding": "identity"}, "encoded": "%" in name}


def _fetch_whole(remote: _Remote, copy: Path, progress: bool | None) -> None:
    done, size = 0, remote.size
    with (
        copy.open("wb") as file,
        _told(remote, size, progress) as advance,
        reaching(remote.name, done=lambda: (done, size)),
        _source(remote, block_size=0) as source,
    ):
        while piece := source.read(_PIECE_BYTES):
            file.write(piece)
            done += len(piece)
            advance(done)
        if size is not None and done != size:
            raise EOFError
    with copy.open("rb") as file:
        begin = file.read(_END_BYTES).lstrip().lower()
    if begin.startswith((b"<!doctype html", b"<html")):
        hint = "; files of a dataset are hf://datasets/OWNER/NAME/FILE" if "//huggingface.co/" in remote.name else ""
        raise DataError(f"{shown(remote.name)} is a web page, and no file: name the file itself{hint}")


def _fetch_parts(remote: _Remote, copy: Path, parts: Sequence[tuple[int, int]], progress: bool | None) -> bool:
    """Fetch parts of a file into their places; False if its server sends whole files only."""
    done, most = 0, sum(end - start for start, end in parts)
    with (
        copy.open("r+b") as file,
        _told(remote, most, progress) as advance,
        reaching(remote.name, done=lambda: (done, most)),
        _source(remote, cache_type="none") as source,
    ):
        for start, end in parts:
            file.seek(start)
            for begin in range(start, end, _PIECE_BYTES):
                try:
                    piece = _read(source, begin, min(begin + _PIECE_BYTES, end))
                except ValueError:  # fsspec's, where a server sends no parts
                    return False
                file.write(piece)
                done += len(piece)
                advance(done)
    return True


def _fetch_end(remote: _Remote, copy: Path) -> bool:
    """Make a file with the end of a Parquet file, or all of a small one; False if no end can be told, or fetched."""
    if not remote.size or not remote.has_parts:
        return False
    size = remote.size
    with reaching(remote.name, done=lambda: (0, size)):
        try:
            with _source(remote, cache_type="none") as source:
                end = _read(source, max(size - _END_BYTES, 0), size)
                length = int.from_bytes(end[-len(_MARK) - _LENGTH_BYTES : -len(_MARK)], "little")
                length = min(length + len(_MARK) + _LENGTH_BYTES, size)
                if length > len(end):
                    end = _read(source, size - length, size - len(end)) + end
        except (ValueError, EOFError):  # a server that sends whole files only
            return False
    if not end.endswith(_MARK):
        return False
    with copy.open("wb") as file:
        file.truncate(size)
        file.seek(size - len(end))
        file.write(end)
    if len(end) < size:
        _PARTIAL[copy] = _Partial(remote, set())
    return True


def _source(remote: _Remote, **options: Any) -> Any:
    """The file to read, from its beginning on where ``block_size`` is 0."""
    if is_web(remote.name):
        options["size"] = remote.size  # which is not asked for again
    elif not is_hub(remote.name):
        options.pop("block_size", None)  # others read ahead
    return remote.system.open(remote.path, "rb", **options)


def _read(source: Any, start: int, end: int) -> bytes:
    source.seek(start)
    found: bytes = source.read(end - start)
    if len(found) != end - start:
        raise EOFError
    return found


def _parts(copy: Path, columns: Sequence[str], size: int) -> list[tuple[int, int]]:
    """Where the columns are in the file, close ones together."""
    import pyarrow.parquet as pq

    about = pq.read_metadata(copy)
    found = []
    for group in range(about.num_row_groups):
        for k in range(about.num_columns):
            chunk = about.row_group(group).column(k)
            path = chunk.path_in_schema
            if any(path == name or path.startswith(f"{name}.") for name in columns):
                start = chunk.data_page_offset
                if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
                    start = chunk.dictionary_page_offset
                end = start + chunk.total_compressed_size + _PADDING
                found.append((min(max(start, 0), size), min(max(end, 0), size)))
    parts: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if parts and start <= parts[-1][1] + _GAP_BYTES:
            parts[-1] = parts[-1][0], max(end, parts[-1][1])
        else:
            parts.append((start, end))
    return parts


@contextmanager
def _told(remote: _Remote, most: int | None, progress: bool | None) -> Iterator[Advance]:
    """Say how much is fetched at most, and show how much of it is here: to be told the bytes so far."""
    folder = _folder()
    free = shutil.disk_usage(folder).free
    if most is not None and most > free:
        raise DataError(
            f"{shown(remote.name)}: {_megabytes(most)} are to be fetched, and {folder.parent} has {_megabytes(free)} "
            "free: name another folder by TMPDIR"
        )
    if most is None or most >= _LARGE:
        of = f" of {_megabytes(remote.size)}" if remote.size not in (None, most) else ""
        what = "an unknown number of MB" if most is None else f"{_megabytes(most)}{of}"
        announce(f"fetching {what} from {shown(remote.name)}", progress)
    told = 0
    with progress_bar(-(-(most or 0) // _MEGABYTE), "fetching MB", progress, compiles=False) as advance:

        def advance_to(done: int) -> None:
            nonlocal told
            advance(done // _MEGABYTE - told)
            told = done // _MEGABYTE

        yield advance_to


def _megabytes(n: int | None) -> str:
    return f"{(n or 0) / _MEGABYTE:,.1f} MB"


@contextmanager
def _whole_or_none(copy: Path) -> Iterator[None]:
    """Remove the file if the block fails."""
    try:
        yield
    except BaseException:
        _PARTIAL.pop(copy, None)
        shutil.rmtree(copy.parent, ignore_errors=True)
        raise
