"""Options of every command that resamples: what it keeps, how much memory it takes, and who shares the work."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce, wraps
from pathlib import Path
from typing import Any

import click

from jaxeval.cli.processes import Processes, connected


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


def several_options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """One decorator of several, the first on top."""
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


def column_options(**texts: str) -> Callable[[Any], Any]:
    """``--name COL`` for every name of a column, with the text of its help."""
    named = ((name.replace("_", "-"), text) for name, text in texts.items())
    return several_options(*(click.option(f"--{name}", metavar="COL", help=text) for name, text in named))


def run_options(command: Any) -> Any:
    """``--checkpoint`` and ``--memory``, as ``checkpoint`` and ``memory_limit`` of the command, and ``--distributed``.

    With the last the command runs in a block that shares its resamples, and calls `first_goes_on` once.
    """

    @wraps(command)
    def shared(*args: Any, distributed: dict[str, Any] | None, **options: Any) -> Any:
        if distributed is None:
            return command(*args, **options)
        with connected(distributed):
            return command(*args, **options)

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
    processes = click.option(
        "--distributed",
        type=Processes(),
        metavar="auto|I/N@HOST:PORT",
        help="This is one of several processes, which share the resamples (of `leaderboard`, the files too). Start the "
        "same command in each; the first prints and writes.",
    )
    return checkpoint(memory(processes(shared)))


def strata_option(drawn: str, column: str = "COL") -> Callable[[Any], Any]:
    """``--strata``, for resamples of what is ``drawn``."""
    sentence = f"Resample {drawn} within the groups of {column}, each as large as it is."
    return click.option("--strata", metavar=column, help=sentence)


def resampling_options(
    out: str, resamples: int = 1000, fewest: int = 2, drawn: str | None = None
) -> Callable[[Any], Any]:
    """``--level``, ``--resamples``, ``--seed``, `run_options` and ``--out``; with help on ``drawn`` and ``out``.

    All but the last go to the command together, as ``drawn``: the arguments of an estimator.
    """
    names = ("n_resamples", "level", "seed", "checkpoint", "memory_limit")

    def decorate(command: Any) -> Any:
        @wraps(command)
        def gathered(*args: Any, **options: Any) -> Any:
            return command(*args, drawn={name: options.pop(name) for name in names}, **options)

        folder = click.Path(file_okay=False, path_type=Path)
        share = click.FloatRange(0, 1, min_open=True, max_open=True)
        added = several_options(
            click.option("--level", default=0.95, show_default=True, metavar="L", type=share),
            click.option("--resamples", "n_resamples", default=resamples, show_default=True, metavar="N", help=drawn,
                         type=click.IntRange(fewest)),
            click.option("--seed", default=0, show_default=True, type=click.IntRange(0), metavar="S"),
            click.option("--out", type=folder, metavar="DIR", help=out),
            run_options,
        )  # fmt: skip
        return added(gathered)

    return decorate
