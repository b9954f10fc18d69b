"""The programs of a bootstrap replaced by ones that return at once, so that only the host works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import jax
import numpy as np

from jaxeval.execution import shapes
from jaxeval.kernels.batch import refits

PROGRAMS = ("refit",)


class AtOnce:
    """A program that returns zeros, which say that everything converged; ``note`` is told of its calls."""

    def __init__(self, program: Any) -> None:
        self.program = program
        self.known: dict[Any, Any] = {}
        self.note: Callable[[tuple[Any, ...], Any], None] = lambda args, results: None

    def __call__(self, *args: Any) -> Any:
        """Zeros."""
        results = self._of(args)[1]
        self.note(args, results)
        return results

    def eval_shape(self, *args: Any) -> Any:
        """As that of the program."""
        return self._of(args)[0]

    def _of(self, args: tuple[Any, ...]) -> tuple[Any, Any]:
        """Shapes and results for arguments of these shapes."""
        leaves = jax.tree.leaves(args)
        key = tuple(x.shape if isinstance(x, np.ndarray | np.generic | jax.Array) else x for x in leaves)
        if key not in self.known:
            found = self.program.eval_shape(*args)
            self.known[key] = found, jax.tree.map(lambda x: np.full(x.shape, x.dtype.type(0)), found)
        return self.known[key]


@contextmanager
def at_once() -> Iterator[dict[str, AtOnce]]:
    """A context in which nothing is computed, in chunks of the sizes that an accelerator gets; the programs by name."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(shapes, "_on_cpu", lambda: False))
        programs = {name: AtOnce(getattr(refits, name)) for name in PROGRAMS}
        for name, program in programs.items():
            stack.enter_context(patch.object(refits, name, program))
        yield programs
