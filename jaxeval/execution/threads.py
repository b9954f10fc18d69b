"""Work of the host on many slices, in threads: NumPy lets other threads run while it computes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def in_threads(function: Callable[..., T], *of_slices: Iterable[Any]) -> list[T]:
    """``map(function, *of_slices)`` as a list, by threads; a single slice stays in this thread.

    An error, or Ctrl-C, ends the wait: calls that have not begun are cancelled.
    """
    arguments = list(zip(*of_slices, strict=False))  # as map does: itertools.repeat has no end
    if len(arguments) < 2:
        return [function(*own) for own in arguments]
    with ThreadPoolExecutor(min(len(arguments), os.cpu_count() or 1)) as pool:
        try:
            return list(pool.map(function, *zip(*arguments, strict=True)))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
