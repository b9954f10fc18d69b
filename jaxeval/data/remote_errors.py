"""Errors on the way to a file on another machine: they say where, and hold no password."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from jaxeval.data.remote_names import is_hub, is_web, shown, without_secrets
from jaxeval.errors import DataError
from jaxeval.wording import did_you_mean, named


@contextmanager
def reaching(
    name: str, system: Any = None, path: str = "", done: Callable[[], tuple[int, int | None]] | None = None
) -> Iterator[None]:
    """Turn errors on the way to a file into errors that say where, and hold no password.

    Args:
        name: the name of the file.
        system: its file system, where similar names are looked for if the file is not there.
        path: its path in that file system.
        done: gives, during a download, the number of bytes that are here and of all bytes.
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
    """Similar names beside a file that is not there, as the end of an error."""
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
