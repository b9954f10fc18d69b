"""Forks, in whose copies JAX would hang: noticed from the import of the package on, which need not import JAX."""

import os
import sys

#: Whether this process is the copy of one in which JAX had started: its threads, which the copy lacks, would be awaited
#: for ever.
_without_threads = False


def without_threads_of_jax() -> bool:
    """Whether this process was forked from one in which JAX had started."""
    return _without_threads


def _note_fork() -> None:
    global _without_threads
    # Nothing public says so without initialising the backends, and a flag of our own would miss what a caller does with
    # JAX. Where it has moved, forks go unnoticed, and all else works.
    started = getattr(sys.modules.get("jax._src.xla_bridge"), "backends_are_initialized", None)
    _without_threads = started is not None and started()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_note_fork)
