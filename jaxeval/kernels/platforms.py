"""Which kind of device a program is traced for, so that only its own branch of what differs is traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from jax import lax

T = TypeVar("T")

_KINDS = {"cuda": "gpu", "rocm": "gpu"}
_kind: ContextVar[str | None] = ContextVar("kind", default=None)


@contextmanager
def traced_for(platform: str) -> Iterator[None]:
    """A context in which what is traced is for devices of this JAX ``platform``.

    A function that `jax.jit` has traced before keeps what it was traced for. So the platform must follow from a static
    argument, such as the mesh of devices.
    """
    token = _kind.set(_KINDS.get(platform, platform))
    try:
        yield
    finally:
        _kind.reset(token)


def by_platform(*arguments: Any, default: Callable[..., T], **branches: Callable[..., T]) -> T:
    """The branch for ``cpu``, ``gpu`` or ``tpu`` of the ``arguments``, or else the ``default``.

    Outside of `traced_for`, all branches are traced, by `jax.lax.platform_dependent`, and the compiler takes one.
    """
    kind = _kind.get()
    if kind is not None:
        return branches.get(kind, default)(*arguments)
    gpu = branches.pop("gpu", None)
    if gpu is not None:
        branches |= {"cuda": gpu, "rocm": gpu}
    chosen: T = lax.platform_dependent(*arguments, default=default, **branches)
    return chosen
