"""The compiled programs of batched calls, and how the command line keeps them for its next run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, update_wrapper
from inspect import BoundArguments, signature
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import jax
from jax.stages import Wrapped

T = TypeVar("T")


class Program(Generic[T]):
    """A function that `jax.jit` compiles for every shape of its arguments and every value of its static ones.

    Whatever else a jitted function has, such as ``lower`` and ``trace``, it has too.
    """

    def __init__(self, function: Callable[..., T], static_argnames: tuple[str, ...]) -> None:
        update_wrapper(self, function)
        self.signature = signature(function)
        self.static_argnames = static_argnames
        self.jitted = jax.jit(function, static_argnames=static_argnames)

    def __call__(self, *args: Any, **kwargs: Any) -> T:
        """Run it."""
        if _store is None:
            jitted: T = self.jitted(*args, **kwargs)
            return jitted
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        found: T = _store.call(self, bound)
        return found

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The results as shapes; a program that was called before is not traced again for them."""
        if _store is None:
            return self.jitted.eval_shape(*args, **kwargs)
        bound = self.signature.bind(*args, **kwargs).arguments
        others = {name: value for name, value in bound.items() if name not in self.static_argnames}
        return jax.eval_shape(lambda others: self(**{**bound, **others}), others)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.jitted, name)

    def of_others(self, static: Mapping[str, Any]) -> Wrapped:
        """The jitted function of all arguments but the ``static`` ones, which are given."""

        def function(others: Mapping[str, Any]) -> T:
            bound = BoundArguments(self.signature, {**static, **others})
            found: T = self.jitted(*bound.args, **bound.kwargs)
            return found

        return jitted(function, self.__name__)


def jitted(function: Callable[..., Any], name: str) -> Wrapped:
    """``function`` compiled by JAX, whose cache then knows it by its ``name``."""

    def named(*args: Any) -> Any:
        return function(*args)

    named.__name__ = name
    return jax.jit(named)


@runtime_checkable
class Store(Protocol):
    """Where programs are kept between processes."""

    def call(self, program: Program[T], arguments: BoundArguments) -> T:
        """What ``program`` gives for all of its ``arguments``."""
        ...


_store: Store | None = None


@contextmanager
def kept_in(store: Store) -> Iterator[None]:
    """A context in which all programs are called through ``store``."""
    global _store
    before, _store = _store, store
    try:
        yield
    finally:
        _store = before


def program(*static_argnames: str) -> Callable[[Callable[..., T]], Program[T]]:
    """A decorator that makes a function a `Program`."""
    return partial(Program, static_argnames=static_argnames)
