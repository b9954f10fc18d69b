"""Names of files on other machines: how they are recognised, and how they are shown without passwords and tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

#: A file as its user names it: on this machine, or (always text) on another one.
FileName: TypeAlias = str | Path

_WEB = ("http", "https")
#: Protocols of other machines. Further ones of fsspec read local files, or files within files.
PROTOCOLS = ("hf", *_WEB, "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci", "hdfs", "webhdfs",
             "ftp", "sftp", "ssh", "webdav")  # fmt: skip
_LONGEST_NAME = 150


def is_remote(name: FileName) -> bool:
    """Return whether a name is a file's address on another machine, by any protocol, also one that is not supported."""
    return isinstance(name, str) and re.match(r"[\w+.-]+(::.*)?://", name) is not None


def is_web(name: str) -> bool:
    """Return whether it is the address of a page or a file of the web."""
    return name.lower().startswith(tuple(f"{protocol}://" for protocol in _WEB))


def is_hub(name: str) -> bool:
    """Return whether it names a file of the Hugging Face hub."""
    return name.lower().startswith("hf://")


def shown(name: FileName) -> str:
    """Return a name as messages may show it: without the user, the password and the query, which may hold a token."""
    return without_secrets(str(name)) if is_remote(name) else str(name)


def without_secrets(text: str) -> str:
    """Return a text in which addresses have no users, passwords and queries."""
    text = re.sub(r"(\w://)[^/\s]*@", r"\1***@", text)
    return re.sub(r"(\w://[^\s?'\"]*)[?#][^\s'\")>]*", r"\1?...", text)


def base_name(name: FileName) -> str:
    """Return the last part of a name, without what `shown` leaves out, as a name that a local file can have."""
    if not is_remote(name):
        return Path(name).name
    path = urlsplit(str(name)).path if is_web(str(name)) else str(name)
    last = re.sub(r"[/\\\0]", "_", unquote(path.rstrip("/").rsplit("/", 1)[-1]))
    return last[-_LONGEST_NAME:] if last.strip(".") else "file"


def label_of(path: FileName | Sequence[FileName]) -> str:
    """Return what errors call one file or several."""
    if isinstance(path, str | Path):
        return base_name(path)
    return base_name(path[0]) if len(path) == 1 else f"{base_name(path[0])} and {len(path) - 1} more"
