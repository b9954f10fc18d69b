"""Options of every command that resamples: what it keeps for the next try, and how much memory it may take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click


class _Bytes(click.ParamType):  # type: ignore[type-arg]
    """A number of bytes, KB, MB or GB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?)B?", value.strip(), re.IGNORECASE)
        if found is None:
            self.fail(f"{value!r} is not a size such as 500MB or 2GB", param, ctx)
        return int(float(found[1]) * {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}[found[2].upper()])


def run_options(command: Any) -> Any:
    """``--checkpoint`` and ``--memory``, which go to the command as ``checkpoint`` and ``memory_limit``."""
    memory = click.option(
        "--memory",
        "memory_limit",
        type=_Bytes(),
        metavar="SIZE",
        help="Most memory for the resamples and their results, as 500MB or 2GB; Python, compiling (some 300 MB) and "
        "the data come on top.",
    )
    checkpoint = click.option(
        "--checkpoint",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="FOLDER",
        help="Keep finished resamples there; the same command, interrupted, goes on from them.",
    )
    return checkpoint(memory(command))
