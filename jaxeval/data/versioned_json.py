"""Results in plain JSON files that name their format and its version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jaxeval.errors import DataError
from jaxeval.execution.atomic_write import whole_file
from jaxeval.show.files import json_digest


def write_versioned(path: str | Path, form: str, version: int, content: dict[str, Any]) -> None:
    """Write ``content`` with the name and version of its format and a digest, whole or not at all."""
    try:
        # As it will be read: with names that are text.
        whole = json.loads(json.dumps({"format": form, "version": version, **content}, allow_nan=False))
        text = json.dumps(whole | {"digest": json_digest(whole)}, indent=1)
    except TypeError as error:
        raise DataError(f"models must be named by text or numbers to be saved: {error}") from error
    with whole_file(path) as file:
        file.write(text.encode() + b"\n")


def read_versioned(path: Path, form: str, version: int, what: str, remedy: str = "make it again") -> dict[str, Any]:
    """Return the content of a file of `write_versioned`; errors call it ``what``, and advise the ``remedy``."""
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # no JSON, no text, nested or long beyond reason
        raise DataError(f"{path.name} holds no {what}: it is no JSON text ({error})") from error
    if not isinstance(content, dict) or content.get("format") != form:
        raise DataError(f"{path.name} holds no {what}: it does not say 'format': {form!r}")
    check_version(content, version, path.name, what, remedy)
    try:
        digest = json_digest(content)
    except ValueError:  # numbers that none of these files holds
        digest = None
    if digest is None or content.get("digest") != digest:
        raise DataError(f"{path.name} is damaged: it does not hold what was saved; use a copy, or {remedy}")
    return content


def check_version(content: dict[str, Any], version: int, name: str, what: str, remedy: str = "make it again") -> None:
    """Raise DataError if the ``content`` of the file ``name`` is of another version of its format."""
    if content.get("version") != version or isinstance(content.get("version"), bool):
        raise DataError(
            f"{name} has version {content.get('version')!r} of the format of {what}, but this jaxeval reads version "
            f"{version}: use the jaxeval that wrote it, or {remedy}"
        )
