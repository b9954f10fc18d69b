"""Several processes, one on each host or device, that share one run: what they exchange, and how failures reach all.

`jax.distributed.initialize`, called first thing in every process, connects them; transport and scheduler are JAX's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import jax
import numpy as np
from numpy.typing import NDArray

from jaxeval.errors import ProcessError
from jaxeval.execution.precision import double_precision

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)
#: Marks errors that all processes know of.
_TOLD = "_told_to_all_processes"


def process_count() -> int:
    """Processes of the run; 1 without `jax.distributed.initialize`."""
    return jax.process_count()


def gather(make: Callable[[], bytes]) -> list[bytes]:
    """What ``make()`` returns in every process, in their order; all processes must call this together.

    A failure in one process is raised there, and in all others as a `ProcessError` that tells it, so that nobody waits
    for results that never come.

    Raises:
        ProcessError: ``make`` failed in another process, or a process is lost.
    """
    if process_count() == 1:
        return [make()]
    failure: BaseException | None = None
    try:
        own = make()
    except BaseException as error:  # an interrupt, too, must reach the others
        failure, own = error, f"{type(error).__name__}: {error}".encode()
    try:
        heads = _exchange(np.array([failure is not None, len(own) >> 24, len(own) & 0xFFFFFF], np.int32))
        sizes = (heads[:, 1].astype(np.int64) << 24) + heads[:, 2]
        words = np.zeros(-(-int(sizes.max()) // 4), np.uint32)  # four bytes each: fewer elements to move
        words.view(np.uint8)[: len(own)] = np.frombuffer(own, np.uint8)
        everyone = [words.view(np.uint8)[:size].tobytes() for words, size in zip(_exchange(words), sizes, strict=True)]
    except (RuntimeError, ValueError) as error:  # JAX gives either, by the transport
        lost = ProcessError(
            "a process of this run was lost while results were exchanged (stopped, out of memory, or its host is "
            f"gone): see the end of its log, and start the run again. This is process {jax.process_index()} of "
            f"{process_count()}; its connection said: {str(error).splitlines()[0]}"
        )
        raise _told(failure or lost) from error
    if failure is not None:
        raise _told(failure)
    failed = [f"process {p}: {text.decode()}" for p, text in enumerate(everyone) if heads[p, 0]]
    if failed:
        raise _told(ProcessError(f"{len(failed)} of {process_count()} processes failed:\n" + "\n".join(failed)))
    return everyone


@contextmanager
def together(n_processes: int) -> Iterator[None]:
    """All processes come to the end of the block, or an error in one ends all, wherever in the block it was.

    Raises:
        ProcessError: another process failed, or is lost.
    """
    if n_processes == 1:
        yield
        return
    try:
        yield
    except BaseException as error:
        if not getattr(error, _TOLD, False):
            gather(partial(_fail, error))
        raise
    gather(bytes)


def first_alone(make: Callable[[], T], n_processes: int) -> T:
    """``make()`` in the first process, and then in the others: for what it leaves in a folder that all see."""
    if n_processes == 1:
        return make()
    made: list[T] = []

    def turn(own: bool) -> bytes:
        if own:
            made.append(make())
        return b""

    is_first = jax.process_index() == 0
    gather(lambda: turn(is_first))
    gather(lambda: turn(not is_first))
    return made[0]


def _fail(error: BaseException) -> bytes:
    raise error


def check_alike(what: str, digest: bytes) -> None:
    """See to it that all processes hold the same ``what``.

    Raises:
        ProcessError: they do not.
    """
    digests = gather(lambda: digest)
    unlike = [p for p, other in enumerate(digests) if other != digests[0]]
    if unlike:
        raise _told(
            ProcessError(
                f"processes {', '.join(map(str, unlike))} have other {what} than process 0: all must "
                "call with equal arguments"
            )
        )


def share_of(n: int) -> slice:
    """The part of ``n`` units of work that is this process's."""
    rank, size = jax.process_index(), process_count()
    return slice(n * rank // size, n * (rank + 1) // size)


def _told(error: E) -> E:
    setattr(error, _TOLD, True)
    return error


def _exchange(values: NDArray[Any]) -> NDArray[Any]:
    """(P, ...) the ``values`` (of one shape) of all processes."""
    from jax.experimental.multihost_utils import process_allgather

    with double_precision():
        return np.asarray(process_allgather(values)).reshape(process_count(), *values.shape)
