"""Kernels as they are on a platform that is not there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from jax import lax


@contextmanager
def as_on(platform: str) -> Iterator[None]:
    """A context in which what is traced has the branches for ``platform``; functions compiled before keep theirs."""

    def own(*arguments: Any, default: Callable[..., Any], **branches: Callable[..., Any]) -> Any:
        return branches.get(platform, default)(*arguments)

    with patch.object(lax, "platform_dependent", own):
        yield
