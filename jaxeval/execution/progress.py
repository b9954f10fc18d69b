"""Progress on standard error, of work that turns out to be long: a bar on a terminal, elsewhere a line a minute."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from jaxeval.wording import visible

_DELAY_SECONDS = 0.7
_SECONDS_BETWEEN_LINES = 60.0
#: What JAX says when it hands a program to its compiler.
_ABOUT_TO_COMPILE = "/jax/core/compile/jaxpr_to_mlir_module_duration"


class Advance(Protocol):
    """Say that ``n`` more units of work are done."""

    def __call__(self, n: int, /) -> None:  # noqa: D102
        ...


def announce(sentence: str, enabled: bool | None) -> None:
    """Say on standard error what will take long, where no bar of `progress_bar` says so: None, and no terminal."""
    if enabled is None and not sys.stderr.isatty():
        print(visible(sentence), file=sys.stderr)


def _lines(total: int, unit: str) -> Advance:
    """Return what prints how much is done, a minute or more after it last did."""
    done, started = 0, time.monotonic()
    told = started

    def advance(n: int) -> None:
        nonlocal done, told
        done, now = done + n, time.monotonic()
        if n and done < total and now > told + _SECONDS_BETWEEN_LINES:
            print(f"{unit}: {done:,} of {total:,} after {(now - started) / 60:.0f} min", file=sys.stderr, flush=True)
            told = now

    return advance


@contextmanager
def progress_bar(total: int, unit: str, enabled: bool | None, compiles: bool = True) -> Iterator[Advance]:
    """Yield a bar over ``total`` units, shown once the work has lasted 0.7 seconds.

    Where there is no terminal, as in a job's log, a line a minute tells how much is done.

    Args:
        compiles: whether the work begins with compiling. The bar then says so, and again whenever a program is
            compiled later, until work is done.
        enabled: True or False, or None for "only on a terminal".
    """
    if not (sys.stderr.isatty() if enabled is None else enabled):
        yield (lambda n: None) if enabled is False else _lines(total, unit)
        return
    import jax
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
    compiling = f"compiling, then {unit}"
    task = bar.add_task(compiling if compiles else unit, total=total)

    def advance(n: int) -> None:
        if n:  # 0 lanes, as of an empty checkpoint, are no work done: the compiling is still to come
            bar.update(task, advance=n, description=unit)

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == _ABOUT_TO_COMPILE:
            bar.update(task, description=compiling)

    timer = threading.Timer(_DELAY_SECONDS, bar.start)
    timer.daemon = True
    timer.start()
    if compiles:
        jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield advance
    finally:
        if compiles:
            jax.monitoring.unregister_event_duration_listener(listen)
        timer.cancel()
        timer.join()
        bar.stop()
