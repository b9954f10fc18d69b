"""Files on other machines, fetched through fsspec to local copies, which last as long as the process.

Of a Parquet file, only its end is fetched first: it says where every column is. `fetch_columns` then fetches the
needed columns into their places.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from jaxeval.data.file_formats import folder_of_copies, has_known_ending
from jaxeval.data.remote_names import PROTOCOLS, base_name, is_hub, is_web, shown, without_secrets
from jaxeval.errors import DataError
from jaxeval.execution.progress import Advance, announce, progress_bar
from jaxeval.wording import did_you_mean, named


@contextmanager
def reaching(
    name: str, system: Any = None, path: str = "", done: Callable[[], tuple[int, int | None]] | None = None
) -> Iterator[None]:
    """Turn errors on the way to a file into errors that say where, and hold no password.

    If the file is not there, similar names are looked for in its file ``system``. During a download, ``done`` gives the
    numbers of bytes that are here and of all bytes.
    """
    try:
        yield
    except (DataError, ImportError):
        raise
    except Exception as error:
        # The cause may hold a password: it is not shown.
        raise _explained(error, name, system, path, done) from None


def _explained(
    error: Exception, name: str, system: Any, path: str, done: Callable[[], tuple[int, int | None]] | None
) -> Exception:
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    kinds = {type(one).__name__ for one in chain}
    statuses = [getattr(getattr(one, "response", one), "status_code", getattr(one, "status", None)) for one in chain]
    status = next((code for code in statuses if code and isinstance(code, int)), None)
    where = shown(name)
    login = "log in with `hf auth login` (formerly `huggingface-cli login`), or set HF_TOKEN"
    if "OfflineModeIsEnabled" in kinds:
        return DataError(f"{where} cannot be fetched: HF_HUB_OFFLINE is set; unset it to fetch files")
    if "GatedRepoError" in kinds:
        return DataError(f"{where} is gated: accept its conditions on its page, and {login}")
    if "RepositoryNotFoundError" in kinds:
        return FileNotFoundError(f"no such repository: {where}; if it is private, {login}")
    if "RevisionNotFoundError" in kinds:
        return FileNotFoundError(f"no such revision: {where}")
    if status in (401, 403) or isinstance(error, PermissionError):
        hint = login if is_hub(name) else "put user and password in ~/.netrc, or log in as the service requires"
        code = f" ({status})" if status else ""
        return DataError(f"{where} cannot be fetched: its server wants a login, or refuses yours{code}: {hint}")
    if status in (404, 410) or (status is None and isinstance(error, FileNotFoundError) and error.__cause__ is None):
        return FileNotFoundError(f"no such file: {where}{_near(system, path)}")
    text = without_secrets(str(chain[-1] if isinstance(error, FileNotFoundError) else error)).strip()
    remedy = "try again, or download it by other means"
    if status is not None:
        what = f"its server answers {status}"
    elif "TooManyRedirects" in kinds:
        what = "its server redirects without end"
    elif any("timeout" in kind.lower() for kind in kinds):
        what = "its server does not answer in time"
    elif done is None:
        what = f"its server cannot be reached ({text or type(error).__name__})"
    elif isinstance(error, OSError) and error.errno == errno.ENOSPC:
        what = f"no space is left in {tempfile.gettempdir()}"
        remedy = "free some space, or set TMPDIR to another folder"
    else:
        what = "the connection broke"
    if done is not None:
        here, size = done()
        of = "an unknown number of" if size is None else f"{size:,}"
        # A piece that broke off is not counted.
        what += f" after at least {here:,} of {of} bytes" if here else f" before all of {of} bytes were here"
    return DataError(f"{where} cannot be fetched: {what}; no part of it is kept: {remedy}")


def _near(system: Any, path: str) -> str:
    """Name similar files beside one that is not there, as the end of an error."""
    if system is None or is_web(path):
        return ""
    folder, _, last = path.rpartition("/")
    beside: list[str] = []
    while not beside and "/" in folder:
        with suppress(Exception):  # no such folder either, or one that cannot be listed
            beside = [file.removeprefix(f"{folder}/") for file in system.ls(folder, detail=False)]
            break
        folder = folder.rpartition("/")[0]
    near = did_you_mean(last, beside)
    return near or (f"; there are {named(beside)}" if beside else "")


_SECONDS_TO_CONNECT, _SECONDS_SILENT = 30.0, 60.0
_MEGABYTE = 1_000_000
_PIECE_BYTES = 2**23
#: Bytes that are fetched of a Parquet file first: most footers are shorter.
_END_BYTES = 2**16
_MARK, _LENGTH_BYTES = b"PAR1", 4
#: Columns with smaller gaps are fetched in one request: the bytes between take less time than another request.
_GAP_BYTES = 2**20
#: Old writers of Parquet count too few bytes of a column, by the length of a header.
_PADDING = 100
#: Downloads from this size on are announced on standard error.
_LARGE = 50 * _MEGABYTE


class _Remote(NamedTuple):
    """A file on another machine."""

    name: str
    system: Any  # fsspec's AbstractFileSystem
    path: str  # as the system calls it
    size: int | None  # bytes; None if the server does not say
    has_parts: bool  # whether parts of it can be fetched
    version: str  # what its server says about it


_COPIES: dict[tuple[str, str], Path] = {}  # by name and version
#: Files that are here in part, and the parts that are: the first byte, and the one after the last.
_PARTIAL: dict[Path, tuple[_Remote, set[tuple[int, int]]]] = {}


def fetched(name: str, progress: bool | None = None) -> Path:
    """Return a local copy of the remote file ``name``. The file is fetched again only if it has changed.

    A large download without a bar is announced on standard error.

    Raises:
        DataError: it cannot be fetched; no part of it stays.
        FileNotFoundError: there is no such file.
        ImportError: the package that speaks the protocol is not installed.
    """
    remote = _found(name)
    key = name, remote.version
    if key in _COPIES and _COPIES[key].exists():
        return _COPIES[key]
    copy = Path(tempfile.mkdtemp(dir=folder_of_copies())) / base_name(name)
    with _whole_or_none(copy):
        if copy.suffix.lower() not in (".parquet", ".pq") or not _fetch_end(remote, copy):
            _fetch_whole(remote, copy, progress)
    _COPIES[key] = copy
    return copy


def is_partial(copy: Path) -> bool:
    """Return whether a part of the file is not here yet."""
    return copy in _PARTIAL


def fetch_columns(copy: Path, columns: Sequence[str] | None = None, progress: bool | None = None) -> None:
    """Fetch the missing parts of some columns of a file, or of the whole file."""
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
        _PARTIAL.pop(copy, None)


def remote_files(name: str) -> list[str]:
    """Return the names of the files that a remote name, or a pattern, stands for; no file is fetched."""
    system, path = _opened(name)
    if not any(sign in (urlsplit(name).path if is_web(name) else path) for sign in "*["):
        return [name]
    with reaching(name, system, path):
        files = sorted(system.glob(path))
    if not files:
        raise FileNotFoundError(f"no file matches {shown(name)}")
    protocol = name.split("://", 1)[0]
    return [file if "://" in file else f"{protocol}://{file.lstrip('/')}" for file in files]


def _found(name: str) -> _Remote:
    """Return the file of that name, as its server has it now."""
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
        name=name, system=system, path=path, size=about.get("size"), has_parts=about.get("partial", True),
        version=repr(sorted(about.items(), key=str)),
    )  # fmt: skip


def _opened(name: str) -> tuple[Any, str]:
    """Return the file system of a name, and the file's path in it."""
    protocol, *rest = name.split(":", 1)
    protocol = protocol.lower()  # as in HTTP://
    name = ":".join([protocol, *rest])
    if protocol not in PROTOCOLS or not name.startswith(f"{protocol}://"):
        raise DataError(
            f"{shown(name)}: the name of a file on another machine begins with one of {', '.join(PROTOCOLS)}, followed "
            "by ://; for a file on this machine, give its path"
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
        # A new instance, as cached ones keep old lists of files.
        system = fsspec.filesystem(protocol, skip_instance_cache=True, **options)
    except (ImportError, ValueError) as error:
        package = "" if protocol in ("hf", "http", "https") else f", and the package that fsspec asks for ({error})"
        raise ImportError(
            f"files at {protocol}:// need the extra jaxeval[remote]: pip install 'fsspec[http]' "
            f"huggingface_hub{package}"
        ) from error
    return system, system._strip_protocol(name)


def _web_options(name: str) -> dict[str, Any]:
    import aiohttp

    # aiohttp by default limits a download to five minutes in all, and ignores the proxies of the environment.
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_SECONDS_TO_CONNECT, sock_read=_SECONDS_SILENT)
    client = {"timeout": timeout, "trust_env": True, "auto_decompress": False}
    # An address with %XX in it is sent unchanged: it may be signed.
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
            advance(len(piece))
        if size is not None and done != size:
            raise EOFError
    with copy.open("rb") as file:
        begin = file.read(_END_BYTES).lstrip().lower()
    if begin.startswith((b"<!doctype html", b"<html")):
        hint = (
            "; name a file of a dataset as hf://datasets/OWNER/NAME/FILE" if "//huggingface.co/" in remote.name else ""
        )
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
                advance(len(piece))
    return True


def _fetch_end(remote: _Remote, copy: Path) -> bool:
    """Fetch the end of a Parquet file, or all of a small one, into a file; False if the end cannot be fetched alone."""
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
        _PARTIAL[copy] = remote, set()
    return True


def _source(remote: _Remote, **options: Any) -> Any:
    """Return the remote file, opened; with ``block_size`` 0 it is read from its beginning on."""
    if is_web(remote.name):
        options["size"] = remote.size  # so that the server is not asked again
    elif not is_hub(remote.name):
        options.pop("block_size", None)  # others read ahead
    return remote.system.open(remote.path, "rb", **options)


def _read(source: Any, start: int, end: int) -> bytes:
    source.seek(start)
    content: bytes = source.read(end - start)
    if len(content) != end - start:
        raise EOFError
    return content


def _parts(copy: Path, columns: Sequence[str], size: int) -> list[tuple[int, int]]:
    """Return the parts of the file that hold the columns, close ones joined."""
    import pyarrow.parquet as pq

    about = pq.read_metadata(copy)
    ranges = []
    for group in range(about.num_row_groups):
        for k in range(about.num_columns):
            chunk = about.row_group(group).column(k)
            path = chunk.path_in_schema
            if any(path == name or path.startswith(f"{name}.") for name in columns):
                start = chunk.data_page_offset
                if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
                    start = chunk.dictionary_page_offset
                end = start + chunk.total_compressed_size + _PADDING
                ranges.append((min(max(start, 0), size), min(max(end, 0), size)))
    parts: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if parts and start <= parts[-1][1] + _GAP_BYTES:
            parts[-1] = parts[-1][0], max(end, parts[-1][1])
        else:
            parts.append((start, end))
    return parts


def by_megabytes(advance: Advance) -> Advance:
    """Take numbers of bytes, and advance by the whole megabytes that are done with them."""
    done = 0

    def advance_bytes(n: int) -> None:
        nonlocal done
        advance((done + n) // _MEGABYTE - done // _MEGABYTE)
        done += n

    return advance_bytes


@contextmanager
def _told(remote: _Remote, most: int | None, progress: bool | None) -> Iterator[Advance]:
    """Announce the size of a download and show its progress; gives a function to call with numbers of bytes."""
    folder = folder_of_copies()
    free = shutil.disk_usage(folder).free
    if most is not None and most > free:
        raise DataError(
            f"{shown(remote.name)}: fetching it takes {_megabytes(most)}, but {folder.parent} has {_megabytes(free)} "
            "free: free some space, or set TMPDIR to another folder"
        )
    if most is None or most >= _LARGE:
        of = f" of {_megabytes(remote.size)}" if remote.size not in (None, most) else ""
        what = "an unknown number of MB" if most is None else f"{_megabytes(most)}{of}"
        announce(f"fetching {what} from {shown(remote.name)}", progress)
    with progress_bar(-(-(most or 0) // _MEGABYTE), "fetching MB", progress, compiles=False) as advance:
        yield by_megabytes(advance)


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
