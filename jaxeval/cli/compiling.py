"""Programs of commands kept on disk for later runs: compiled ones by JAX's persistent cache, traced ones beside them.

Only the command turns the cache on, by variables of the environment before it imports JAX; nothing writes to JAX's
configuration. JAX's key of a program holds the versions, the kind of processor and all options, so that a program runs
only where it was made for. It spares XLA's work. A program still has to be traced and lowered before JAX can look for
it there, which takes longer than all of a small board's resamples. `jax.export` keeps what that leads to.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import version
from inspect import BoundArguments
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jaxeval import kernels
from jaxeval._version import __version__
from jaxeval.cli.commands import Command, Option
from jaxeval.cli.terminal import tell
from jaxeval.lazy_names import called_once, export, jax
from jaxeval.options.field import RUNS

if TYPE_CHECKING:
    from jax.stages import Wrapped

    from jaxeval.kernels.batch.programs import Program


#: Names the folder in which JAX keeps programs.
OF_JAX = "JAX_COMPILATION_CACHE_DIR"
#: Names the folder, or is "off".
_VARIABLE = "JAXEVAL_CACHE"
#: Bytes that a cache may hold when a process starts to use it: programs not used for longest go. One takes 2 to 300 kB.
_MOST_BYTES = 2**28
#: What the names of files of programs end with: JAX's own, and those of `ExportedPrograms`.
_ENDINGS = ("-cache", "-export")


def program_folder() -> Path | None:
    """Make the folder in which programs are kept, if it is not there.

    The environment variable ``JAXEVAL_CACHE`` names it. Without it, it is ``jaxeval`` in the user's folder of caches:
    ``$XDG_CACHE_HOME`` or ``~/.cache``, ``~/Library/Caches`` on macOS, ``%LOCALAPPDATA%`` on Windows. Where it holds
    more than 256 MiB, the programs that were not used for longest are removed.

    Returns:
        The folder. None if ``JAXEVAL_CACHE`` is ``off``.

    Raises:
        OSError: the folder cannot be made; or it belongs to another user, or others may write to it. A compiled program
            is code, which this process would run.
    """
    named = os.environ.get(_VARIABLE, "")
    if named.lower() == "off":
        return None
    path = _made(_with_home(Path(named or _usual_folder() / "jaxeval")).absolute())
    _remove_oldest(path)
    return path


def settings(folder: Path) -> dict[str, str]:
    """Return the environment variables by which JAX, when imported, learns to keep all programs in a folder."""
    return {
        OF_JAX: str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",  # many small programs add up
        "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none",  # which are not bounded
    }


def remove_programs(folder: Path, name: str) -> None:
    """Remove programs of a name, one of which is damaged: JAX would not replace it."""
    for path in folder.glob(f"{name}-*"):
        with suppress(OSError):
            path.unlink()


def _usual_folder() -> Path:
    """Return the user's folder of caches."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or _home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return _home() / "Library" / "Caches"
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return named if named.is_absolute() else _home() / ".cache"  # relative ones are to be ignored


def _home() -> Path:
    return _with_home(Path("~"))


def _with_home(path: Path) -> Path:
    """Return the path, in which a ``~`` that no shell has replaced is the user's home folder."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise OSError("this user has no home folder") from error


def _made(folder: Path) -> Path:
    """Return the folder, which is there now and in which nobody else can put programs."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(0o700)
    status = folder.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{folder} is no folder")
    if sys.platform != "win32" and (status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        raise PermissionError(
            f"{folder} belongs to user {status.st_uid} and has mode {stat.S_IMODE(status.st_mode):04o}, and programs "
            f"are only kept in a folder of user {os.geteuid()} that nobody else may write to (chmod 700)"
        )
    return folder


def _remove_oldest(folder: Path) -> None:
    """Remove the programs that were not used for longest, until the others take no more than `_MOST_BYTES`."""
    programs = []
    for path in folder.iterdir():
        if not path.name.endswith(_ENDINGS):
            continue
        with suppress(OSError):  # removed by another process meanwhile
            status = path.stat()
            programs.append((max(status.st_atime, status.st_mtime), status.st_size, path))
    excess = sum(size for _, size, _ in programs) - _MOST_BYTES
    for _, size, path in sorted(programs):
        if excess <= 0:
            break
        with suppress(OSError):  # open in another process, on Windows
            path.unlink()
        excess -= size


#: What JAX warns of when it cannot read or write a program; it then compiles it.
_CACHE_ERROR = "Error (reading|writing) persistent compilation cache entry for '(.*?)': (.*)"


class CompilingCommand(Command):
    """A command that compiles programs: in a process of its own it keeps them, unless told not to by ``--no-cache``.

    What is called within `kept_programs`, or anything else that the context's ``obj`` holds, is such a process's.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        text = "Compile all programs anew, and keep none for later runs (see the environment variable JAXEVAL_CACHE)."
        option = Option(["--no-cache"], is_flag=True, help=text)
        option.section, option.number = RUNS, sys.maxsize
        self.params.append(option)

    def invoke(self, ctx: click.Context) -> Any:
        """Run it."""
        no_cache = ctx.params.pop("no_cache")
        if ctx.obj is None:
            return super().invoke(ctx)
        with called_once(), contextlib.nullcontext() if no_cache else ctx.obj():
            return super().invoke(ctx)


@contextlib.contextmanager
def kept_programs() -> Iterator[None]:
    """Keep compiled programs, where that is possible: whatever is wrong with it costs the run a sentence at most."""
    folder = _folder()
    if folder is None:
        yield
        return
    os.environ |= settings(folder)
    from jaxeval.kernels.batch.programs import kept_in  # JAX, once it is imported, reads the settings

    show, warned = warnings.showwarning, False

    def mend_or_show(message: Warning | str, *where: Any, **more: Any) -> None:
        nonlocal warned
        match = re.match(_CACHE_ERROR, str(message), re.DOTALL)
        if match is None:
            show(message, *where, **more)
        elif match[1] == "reading":
            remove_programs(folder, match[2])
        elif not warned:
            tell(f"compiled programs cannot be kept in {folder}: {match[3]}")
            warned = True

    with warnings.catch_warnings(), kept_in(ExportedPrograms(folder)):
        warnings.filterwarnings("always", _CACHE_ERROR)
        warnings.showwarning = mend_or_show
        yield


def _folder() -> Path | None:
    """Return where programs are kept; None if nowhere, or where JAX alone was told to, as by a variable of its own."""
    if os.environ.get(OF_JAX) or "jax" in sys.modules:
        return None
    try:
        return program_folder()
    except OSError as error:
        tell(f"compiled programs are not kept: {error}; JAXEVAL_CACHE names another folder, or is off")
        return None


T = TypeVar("T")

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
        from jaxeval.kernels.batch.programs import Key, compiled

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
        from jaxeval.kernels.batch.programs import jitted

        function = program.of_others(static, others)
        if jax.device_count() > 1 or _VALUES_WITHOUT_A_NAME.search(key):
            return function
        _register_trees()
        name = hashlib.sha256(f"{program.__module__}\n{key}\n{_surroundings()}".encode()).hexdigest()
        path = self._folder / f"{program.__name__}-{name}{_ENDINGS[1]}"
        kept = _read(path)
        if kept is None:
            traced = export.export(function)(others)
            kept = traced.serialize()
            _write(path, kept)
        return jitted(export.deserialize(kept).call, program, others)


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
        handle, unfinished = tempfile.mkstemp(dir=path.parent, suffix=_ENDINGS[1])
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(data).digest() + data)
            os.replace(unfinished, path)
        except OSError:
            os.unlink(unfinished)
