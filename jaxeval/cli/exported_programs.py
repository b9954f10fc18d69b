"""Traced programs kept on disk for later runs of the command, beside the compiled ones.

JAX's own cache of compiled programs spares XLA's work. A program still has to be traced and lowered before JAX can look
for it there, which takes longer than all of a small board's resamples. `jax.export` keeps what that leads to.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import version
from inspect import BoundArguments
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jaxeval import kernels
from jaxeval._version import __version__
from jaxeval.kernels.batch.programs import Key, Program, compiled, jitted
from jaxeval.lazy_names import export, jax

if TYPE_CHECKING:
    from jax.stages import Wrapped

T = TypeVar("T")

_ENDING = "-export"
_DIGEST_BYTES = 32
_VALUES_WITHOUT_A_NAME = re.compile(r" at 0x[0-9a-f]+|<locals>|<lambda>")
_OF_THE_CACHE = re.compile("cache|compilation")  # options of JAX that change where programs are, not what they are


class ExportedPrograms:
    """A `Store` of programs in a folder.

    A program's file is found by the names and values of everything that it was traced from: its static arguments, the
    types of the others, the code of all kernels, JAX's options and the versions. Programs for more than one device, or
    with a static argument that has no lasting name, are not kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def call(self, program: Program[T], arguments: BoundArguments) -> T:
        """Return what ``program`` gives for all of its ``arguments``."""
        static, others = program.split(arguments)
        key = Key.of(program, self, str(static), others)
        text = "\n".join(map(str, (program.__qualname__, key.static, key.tree, key.types)))
        one: Any = compiled(key, partial(self._made, program, static, others, text))
        # Where JAX takes no options of the compiler.
        inside = any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(others))
        value: T = one.__wrapped__(others) if inside else one(others)
        return value

    def _made(self, program: Program[Any], static: Mapping[str, Any], others: Mapping[str, Any], key: str) -> Wrapped:
        """Return the program with its ``static`` arguments given, from its file if it has one."""
        function = program.of_others(static)
        if jax.device_count() > 1 or _VALUES_WITHOUT_A_NAME.search(key):
            return function
        _register_trees()
        name = hashlib.sha256(f"{program.__module__}\n{key}\n{_surroundings()}".encode()).hexdigest()
        path = self._folder / f"{program.__name__}-{name}{_ENDING}"
        kept = _read(path)
        if kept is None:
            traced = export.export(function)(others)
            kept = traced.serialize()
            _write(path, kept)
        return jitted(export.deserialize(kept).call, program)


@cache
def _surroundings() -> str:
    """Return what a program depends on besides its arguments."""
    code = hashlib.sha256()
    for path in sorted(Path(kernels.__path__[0]).rglob("*.py")):
        code.update(path.read_bytes())
    options = {name: value for name, value in jax.config.values.items() if not _OF_THE_CACHE.search(name)}
    device = jax.devices()[0]
    versions = __version__, jax.__version__, version("jaxlib"), sys.version
    return f"{versions} {device.platform} {device.device_kind} {code.hexdigest()} {sorted(options.items())}"


@cache
def _register_trees() -> None:
    """Tell JAX the names by which the NamedTuples of kernels stand in a file."""
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{kernels.__name__}."):
            for value in vars(module).values():
                if isinstance(value, type) and hasattr(value, "_fields") and value.__module__ == name:
                    export.register_namedtuple_serialization(value, serialized_name=f"{name}.{value.__name__}")


def _read(path: Path) -> bytearray | None:
    """Return what `_write` wrote; None if nothing did, or if the file is damaged."""
    with suppress(OSError):
        data = path.read_bytes()
        if hashlib.sha256(data[_DIGEST_BYTES:]).digest() == data[:_DIGEST_BYTES]:
            return bytearray(data[_DIGEST_BYTES:])
    return None


def _write(path: Path, data: bytearray) -> None:
    """Write a file that others see whole or not at all, if that is possible: JAX's cache tells why it is not."""
    with suppress(OSError):
        handle, unfinished = tempfile.mkstemp(dir=path.parent, suffix=_ENDING)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(data).digest() + data)
            os.replace(unfinished, path)
        except OSError:
            os.unlink(unfinished)
