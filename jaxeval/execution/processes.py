"""Several processes, one on each host or device, that share one run: what they exchange, and how failures reach all.

`jax.distributed.initialize`, called first thing in every process, connects them; transport and scheduler are JAX's.

All processes run the same calls in the same order. In a block of `together` they share the lanes of every estimator
that runs its lanes by `jaxeval.execution.runs.open_run`. An estimator takes part without any code of its own: every
process holds all of the data, `open_run` compares the `Identity` of the call between the processes, `LaneRun` gives
each process its share of the lanes, and all get all results. Three things the estimator must see to. Its `Identity`
holds all that decides the results: ``settings`` and ``data`` decide the draws, ``presentation`` and ``measured`` the
rest. It makes the same runs in every process: no run depends on the number of a process or on its files. And a call of
battles that were gathered from several processes runs `together` (``battles.n_processes``).
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from jaxeval.errors import ProcessError
from jaxeval.execution.precision import double_precision
from jaxeval.lazy_names import jax
from jaxeval.wording import counted

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)
#: Marks errors after which nothing more is exchanged: all processes know of them, or this one leaves the run.
_TOLD = "_told_to_all_processes"
#: The key in the store of JAX's coordinator under which processes that leave say so; how often the others look there
#: while they wait; and how long an interrupted coordinator waits for the others to leave.
_LEFT, _SECONDS_BETWEEN_LOOKS, _SECONDS_TO_LEAVE = "jaxeval/left/", 0.5, 20.0
_SHARING: ContextVar[int] = ContextVar("processes that share the lanes", default=1)


def process_count() -> int:
    """Return processes of the run; 1 without `jax.distributed.initialize`."""
    return jax.process_count()


def n_sharing() -> int:
    """Return processes that share the lanes of calls made here: 1 outside of `together`."""
    return _SHARING.get()


@contextmanager
def share_resamples() -> Iterator[None]:
    """Share the resamples of every call in the block among the processes of a run.

    Call `jax.distributed.initialize` first. Then every process makes the same calls in the same order, each with all of
    the data. Each process computes a part of the resamples, and every process gets all results, which are those of one
    process. Without `jax.distributed.initialize` the block changes nothing. Battles of `jaxeval.gather_battles` are
    shared without this block.

    An error in one process ends the block in all of them. So every process must enter the block, and must make every
    call in it: print and write files after the block, or in one process alone.

    Raises:
        ProcessError: another process failed or is lost; or a call had other arguments or other data there.

    Examples:
        >>> import jaxeval, pandas as pd
        >>> scores = {"model": ["a", "b", "c", "d"], "judge": [1.0, 2.0, 3.0, 4.0], "people": [10, 30, 20, 40]}
        >>> with jaxeval.share_resamples():
        ...     table = jaxeval.kendall_tau(pd.DataFrame(scores).set_index("model"), "people", n_resamples=100)
        >>> print(table["tau"].round(3).tolist())
        [0.667]
    """
    with together(process_count()):
        yield


def gather(make: Callable[[], bytes]) -> list[bytes]:
    """Gather what ``make()`` returns in every process, in the processes' order; all must call this together.

    A failure in one process is raised there, and in all others as a `ProcessError` that reports it, so that nobody
    waits for results that never come. An interrupt ends this process at once, and the others when they next look.
    """
    if process_count() == 1:
        return [make()]
    failure: Exception | None = None
    try:
        mine = make()
    except Exception as error:
        if getattr(error, _TOLD, False):
            raise
        failure, mine = error, f"{type(error).__name__}: {error}".encode()
    except BaseException:  # an interrupt: nobody is waited for
        _leave(130)
        raise
    try:
        heads = _exchange(np.array([failure is not None, len(mine) >> 24, len(mine) & 0xFFFFFF], np.int32))
        sizes = (heads[:, 1].astype(np.int64) << 24) + heads[:, 2]
        words = np.zeros(-(-int(sizes.max()) // 4), np.uint32)  # four bytes each: fewer elements to move
        words.view(np.uint8)[: len(mine)] = np.frombuffer(mine, np.uint8)
        everyone = [words.view(np.uint8)[:size].tobytes() for words, size in zip(_exchange(words), sizes, strict=True)]
    except ProcessError:
        raise
    except (RuntimeError, ValueError) as error:  # which of the two JAX raises depends on the transport
        _leave(1)
        raise _told(failure or _lost(f"Its connection said: {str(error).splitlines()[0]}")) from error
    except BaseException as error:  # what this process would exchange next is not what the others wait for
        _leave(130 if isinstance(error, KeyboardInterrupt) else 1)
        raise _told(error)  # noqa: B904
    if failure is not None:
        raise _told(failure)
    failed = [f"process {p}: {text.decode()}" for p, text in enumerate(everyone) if heads[p, 0]]
    if failed:
        raise _told(
            ProcessError(
                f"{len(failed)} of {counted(process_count(), 'process', 'processes')} failed: {'; '.join(failed)}"
            )
        )
    return everyone


@contextmanager
def together(n_processes: int = 1) -> Iterator[None]:
    """Let ``n_processes``, or those of a block around this one, share the lanes of calls in the block.

    Either all processes come to the end of the block, or an error in one of them, anywhere in the block, ends it in
    all. An interrupt acts as in `gather`.

    Raises:
        ProcessError: another process failed, or is lost.
    """
    n_processes = max(n_processes, n_sharing())
    if n_processes == 1:
        yield
        return
    outside = _SHARING.set(n_processes)
    try:
        yield
    except Exception as error:
        if not getattr(error, _TOLD, False):
            gather(partial(_fail, error))
        raise
    except BaseException:
        _leave(130)
        raise
    finally:
        _SHARING.reset(outside)
    gather(bytes)


def first_alone(make: Callable[[], T]) -> T:
    """Give ``make()`` in the first process, and then in the others: for one that writes to a folder that all share."""
    if n_sharing() == 1:
        return make()
    made: list[T] = []

    def turn(mine: bool) -> bytes:
        if mine:
            made.append(make())
        return b""

    is_first = jax.process_index() == 0
    gather(lambda: turn(is_first))
    gather(lambda: turn(not is_first))
    return made[0]


def _fail(error: Exception) -> bytes:
    raise error


def check_alike(options: Mapping[str, Any], data: str = "", noun: str = "data") -> None:
    """Check that the processes that share lanes were called with equal ``options`` and digests of ``data``.

    If not, a ProcessError names the processes and what differs; the ``noun`` is what the data are.
    """
    if n_sharing() == 1:
        return
    mine = {name: repr(value) for name, value in options.items()}
    first, *others = map(_call, gather(lambda: json.dumps([mine, data]).encode()))
    unlike = []
    for process, other in enumerate(others, start=1):
        if (None in (first, other)) or first[0].keys() != other[0].keys():
            unlike.append(f"process {process} makes another call")
            continue
        differ = [
            f"{name}={other[0].get(name)}, not {value}"
            for name, value in first[0].items()
            if other[0].get(name) != value
        ]
        if other != first:
            unlike.append(f"process {process} has {', '.join(differ) or f'other {noun}'}")
    if unlike:
        raise _told(
            ProcessError(f"{'; '.join(unlike)}: all processes must call with the arguments and {noun} of process 0")
        )


def _call(sent: bytes) -> Any:
    """Return what `check_alike` sent; None if it is something else, from a process at another place of its program."""
    try:
        return json.loads(sent)
    except ValueError:
        return None


def share_of(n: int) -> slice:
    """Return the part of ``n`` units of work that is this process's."""
    rank, size = jax.process_index(), process_count()
    return slice(n * rank // size, n * (rank + 1) // size)


def _told(error: E) -> E:
    setattr(error, _TOLD, True)
    return error


def _exchange(values: NDArray[Any]) -> NDArray[Any]:
    """Return (P, ...) the ``values`` (of one shape) of all processes."""
    from jax.experimental.multihost_utils import process_allgather

    everyone: Future[NDArray[Any]] = Future()

    def work() -> None:
        try:
            with double_precision():
                everyone.set_result(np.asarray(process_allgather(values)))
        except BaseException as error:
            everyone.set_exception(error)

    # In a thread, because nothing interrupts the wait within JAX.
    threading.Thread(target=work, daemon=True).start()
    while not wait([everyone], _SECONDS_BETWEEN_LOOKS).done:
        check_all_present()
    return everyone.result().reshape(process_count(), *values.shape)


def check_all_present() -> None:
    """Check that no process has left the run, as after an interrupt."""
    left = [f"Process {key.removeprefix(_LEFT)} {why}" for key, why in _left()]
    if left:
        _leave(1)
        raise _lost("; ".join(left))


def _lost(why: str) -> ProcessError:
    return _told(
        ProcessError(
            "a process of this run was lost (stopped, out of memory, or its host is gone): see the end of its log, and "
            f"start the run again. This is process {jax.process_index()} of {process_count()}. {why}"
        )
    )


def _leave(exit_code: int) -> None:
    """Tell the other processes that this one leaves the run, and let it end without waiting for them."""
    interrupted = exit_code == 130
    why = "was interrupted" if interrupted else "left, because it lost another process"
    store = _store()
    with suppress(RuntimeError):  # the coordinator itself is gone
        if store is not None:
            store.key_value_set(f"{_LEFT}{jax.process_index()}", why, allow_overwrite=True)

    def end() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        with suppress(BaseException):  # an impatient second interrupt
            if jax.process_index() == 0:  # it holds the store: when it ends, JAX kills all other processes
                until = time.monotonic() + (_SECONDS_TO_LEAVE if interrupted else 4 * _SECONDS_BETWEEN_LOOKS)
                while time.monotonic() < until and len(_left()) < process_count():
                    time.sleep(_SECONDS_BETWEEN_LOOKS)
                time.sleep(_SECONDS_BETWEEN_LOOKS)  # for their last messages
        os._exit(exit_code)

    atexit.register(end)  # comes before JAX's own, which waits for the other processes


def _left() -> list[tuple[str, str]]:
    """Return the processes that have left, and why."""
    store = _store()
    return [] if store is None else store.key_value_dir_get(_LEFT)


def _store() -> Any:
    """Give the key-value store of JAX's coordinator; None on a TPU pod that was not connected by `jax.distributed`."""
    # JAX has no public way to tell something to processes that compute or wait in an exchange: its
    # `multihost_utils.live_devices` waits until all of them ask. Without the store, they learn of an interrupt when the
    # heartbeats end.
    try:
        from jax._src.distributed import global_state
    except ImportError:
        return None
    return global_state.client
