"""Names of a package that are imported when they are first used, not with the package (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, Iterable[str]], packages: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, from the names that each of its modules holds.

    ``packages`` are subpackages that need no import of their own; ``__all__`` leaves them out.
    """
    home_of = {name: f"{package}.{module}" for module, names in homes.items() for name in names}
    namespace = vars(sys.modules[package])

    def get(name: str) -> Any:
        if name in packages:
            return import_module(f"{package}.{name}")
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        namespace[name] = found = getattr(import_module(home_of[name]), name)  # where the next use finds it
        return found

    return get, lambda: sorted({*namespace, *home_of, *packages}), sorted(home_of)
