"""What JAX compiles while a block of code runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax

_TRACED, _COMPILED = (f"/jax/core/compile/{what}_duration" for what in ("jaxpr_trace", "backend_compile"))


class Compilations(NamedTuple):
    """Names of programs, in order, as often as each was met."""

    programs: list[str]  # compiled, or read from the cache of compiled programs: jit(refit)
    traced: list[str]  # functions that Python went through anew, also for their shapes alone: refit


@contextmanager
def compilations() -> Iterator[Compilations]:
    """Counts while the block runs: `with compilations() as count: ...` and then `assert count.programs == []`."""
    count = Compilations([], [])

    def listen(event: str, _: float, **more: Any) -> None:
        if event == _COMPILED:
            count.programs.append(more["fun_name"])
        elif event == _TRACED:
            count.traced.append(more["fun_name"])

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield count
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
