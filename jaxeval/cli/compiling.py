"""Commands that compile programs, and keep them for the next time."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from jaxeval.cli.commands import Command, Option
from jaxeval.cli.compile_cache import OF_JAX, program_folder, remove_programs, settings
from jaxeval.cli.terminal import tell
from jaxeval.options.field import RUNS

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
        with contextlib.nullcontext() if no_cache or ctx.obj is None else ctx.obj():
            return super().invoke(ctx)


@contextlib.contextmanager
def kept_programs() -> Iterator[None]:
    """Keep compiled programs, where that is possible: whatever is wrong with it costs the run a sentence at most."""
    folder = _folder()
    if folder is None:
        yield
        return
    os.environ |= settings(folder)
    from jaxeval.cli.exported_programs import ExportedPrograms  # JAX, once it is imported, reads the settings
    from jaxeval.kernels.batch.programs import kept_in

    show, told = warnings.showwarning, False

    def mend_or_show(message: Warning | str, *where: Any, **more: Any) -> None:
        nonlocal told
        found = re.match(_CACHE_ERROR, str(message), re.DOTALL)
        if found is None:
            show(message, *where, **more)
        elif found[1] == "reading":
            remove_programs(folder, found[2])
        elif not told:
            tell(f"compiled programs cannot be kept in {folder}: {found[3]}")
            told = True

    with warnings.catch_warnings(), kept_in(ExportedPrograms(folder)):
        warnings.filterwarnings("always", _CACHE_ERROR)
        warnings.showwarning = mend_or_show
        yield


def _folder() -> Path | None:
    """Where programs are kept; None if nowhere, or where JAX alone was told to, as by a variable of its own."""
    if os.environ.get(OF_JAX) or "jax" in sys.modules:
        return None
    try:
        return program_folder()
    except OSError as error:
        tell(f"compiled programs are not kept: {error}; JAXEVAL_CACHE names another folder, or is off")
        return None
