"""Notices when a process in which JAX has started is forked: in the copy JAX would hang. It does not import JAX."""

import os
import sys

#: Whether this process is a copy of one in which JAX had started. The copy lacks JAX's threads, and would wait for them
#: for ever.
_without_threads = False


def without_threads_of_jax() -> bool:
    """Return whether this process was forked from one in which JAX had started."""
    return _without_threads


def _note_fork() -> None:
    global _without_threads
    # No public function says whether JAX has started without starting it, and a flag of our own would miss what the
    # caller does with JAX. If JAX moves this private one, forks go unnoticed, and all else works.
    started = getattr(sys.modules.get("jax._src.xla_bridge"), "backends_are_initialized", None)
    _without_threads = started is not None and started()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_note_fork)
