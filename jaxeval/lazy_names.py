"""Names of a package, and whole modules, that are imported when they are first used (PEP 562)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard

__all__ = [
    "called_once", "core", "custom_batching", "ends_soon", "export", "is_frame", "jax", "jnp", "jsl", "lax",
    "lazy_module", "lazy_names", "nn", "pa", "pc", "pd", "scipy", "spares_jax", "special",
]  # fmt: skip


def lazy_names(
    package: str, homes: Mapping[str, Iterable[str]], packages: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package, from the names that each of its modules holds.

    ``packages`` are subpackages that need no import of their own; ``__all__`` leaves them out.
    """
    home_of = {name: f"{package}.{module}" for module, names in homes.items() for name in names}
    namespace = vars(sys.modules[package])

    def get(name: str) -> Any:
        if name in packages:
            return import_module(f"{package}.{name}")
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        namespace[name] = value = getattr(import_module(home_of[name]), name)  # where the next use finds it
        return value

    return get, lambda: sorted({*namespace, *home_of, *packages}), sorted(home_of)


class _LaterModule:
    """Stands for a module until one of its names is used. It is not in ``sys.modules``, unlike one of LazyLoader."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            self._module = import_module(self._name)
        self.__dict__[name] = value = getattr(self._module, name)  # where the next use finds it
        return value

    def __repr__(self) -> str:
        return f"<{self._name}, imported when it is used>"


def lazy_module(name: str) -> Any:
    """Return what stands for the module ``name``, and imports it when one of its names is first used.

    JAX takes a second to import, and what is small is computed without it.
    """
    return _LaterModule(name)


if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    import jax.scipy.linalg as jsl
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    import scipy
    from jax import custom_batching, export, lax, nn
    from jax.extend import core
    from jax.scipy import special
else:
    jax, jnp, lax, nn, export = map(lazy_module, ("jax", "jax.numpy", "jax.lax", "jax.nn", "jax.export"))
    custom_batching, core = lazy_module("jax.custom_batching"), lazy_module("jax.extend.core")
    jsl, special = lazy_module("jax.scipy.linalg"), lazy_module("jax.scipy.special")
    pd, pa, pc, scipy = map(lazy_module, ("pandas", "pyarrow", "pyarrow.compute", "scipy"))


_once = False


@contextmanager
def called_once() -> Iterator[None]:
    """Let this process be one that answers one question and ends, as a command's, within this context."""
    global _once
    before, _once = _once, True
    try:
        yield
    finally:
        _once = before


def ends_soon() -> bool:
    """Return whether this process answers one question and ends: an import may take longer than the answer."""
    return _once


def spares_jax() -> bool:
    """Return whether this process ends soon and has not imported JAX: to start it takes longer than a small problem.

    Where JAX may find an accelerator, it is asked: shapes and limits of larger problems depend on the device.
    """
    return _once and "jax" not in sys.modules and not _may_have_accelerator()


def _may_have_accelerator() -> bool:
    """Return whether what JAX needs for a GPU or a TPU is installed; a board asks for each of its factors."""
    return os.environ.get("JAX_PLATFORMS") != "cpu" and any(map(_is_installed, ("jax_plugins", "libtpu")))


@cache
def _is_installed(module: str) -> bool:
    return find_spec(module) is not None


def is_frame(value: Any) -> TypeGuard[pd.DataFrame]:
    """Return whether ``value`` is a DataFrame; of what is none, pandas is not imported."""
    return "pandas" in sys.modules and isinstance(value, pd.DataFrame)
