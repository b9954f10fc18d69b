"""A progress bar on standard error that appears only when work turns out to be long, the first compilation included."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

_DELAY_SECONDS = 0.7


class Advance(Protocol):
    """Say that ``n`` more units of work are done."""

    def __call__(self, n: int, /) -> None:  # noqa: D102
        ...


@contextmanager
def progress_bar(total: int, unit: str, enabled: bool | None, compiles: bool = True) -> Iterator[Advance]:
    """A bar over ``total`` units, shown once the work has lasted 0.7 seconds.

    Args:
        compiles: whether the work begins with compiling, which the bar then says.
        enabled: True or False, or None for "only on a terminal".
    """
    if not (sys.stderr.isatty() if enabled is None else enabled):
        yield lambda n: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(f"compiling, then {unit}" if compiles else unit, total=total)

    def advance(n: int) -> None:
        if n:  # nothing of a checkpoint, say: the compiling is still to come
            bar.update(task, advance=n, description=unit)

    timer = threading.Timer(_DELAY_SECONDS, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield advance
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
