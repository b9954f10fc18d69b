"""Opens a run of lanes: options checked, processes alike, finished lanes found again, progress shown."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, cast

import numpy as np

from jaxeval.checks import checked_integer
from jaxeval.execution.checkpoints import Checkpoint
from jaxeval.execution.lanes import LaneRun
from jaxeval.execution.processes import check_alike, first_alone, n_sharing, together
from jaxeval.execution.progress import progress_bar

_OPEN: ContextVar[LaneRun | None] = ContextVar("the run that is open", default=None)


class RunOptions(TypedDict, total=False):
    """How a long call runs; no result depends on them.

    ``chunk_size``: lanes (resamples) computed together; by default sized to the cache (CPU) or to 1 GB (GPU, TPU).
    ``memory_limit``: bytes that the lanes, their tables and results may take, give or take a fifth; chunks shrink to
    fit. Not counted: Python, JAX and what they compile, and the data.
    ``checkpoint``: folder that finished lanes are kept in. After an interruption the same call goes on from them, with
    the same draws; so does a call for more resamples.
    ``progress``: show a bar on standard error; by default only on a terminal, for work over 0.7 s, elsewhere a line a
    minute.
    """

    chunk_size: int | None
    memory_limit: int | None
    checkpoint: str | Path | None
    progress: bool | None


def of_run(options: Mapping[str, Any]) -> RunOptions:
    """Return the ``options`` of a call that say how it runs."""
    return cast(RunOptions, {name: value for name, value in options.items() if name in RunOptions.__annotations__})


class Identity(NamedTuple):
    """What a run computes: its checkpoint is recognised by it, and its processes are compared by it."""

    settings: Mapping[str, Any]  # that decide the draws
    data: Any  # arrays, indexes and values, in lists, tuples, mappings and dataclasses
    presentation: Mapping[str, Any] = {}  # settings that may differ in another run with the same draws
    measured: Any = None  # data that may differ in another run with the same draws
    noun: str = "data"  # what the data are, in errors


@contextmanager
def open_run(
    identity: Callable[[], Identity], n_lanes: int, unit: str, *, chunk_size: int | None = None,
    memory_limit: int | None = None, checkpoint: str | Path | None = None, progress: bool | None = None,
) -> Iterator[LaneRun]:  # fmt: skip
    """Yield a run of ``n_lanes`` lanes with `RunOptions`; the bar calls them ``unit``.

    In a block of `jaxeval.execution.processes.together` the processes share the lanes. A run inside of another one, as
    of an estimator that another calls, has the outer run's memory limit and checkpoint, and shows no bar.

    Args:
        identity: called only where a checkpoint, or other processes, need it.
        n_lanes: the length of the bar.
        unit: what a lane is, in the plural.

    Raises:
        TypeError, ValueError: an option has the wrong type, or is out of range.
        DataError: ``checkpoint`` is the folder of another run.
        ProcessError: the processes were not called alike.
    """
    chunk_size = None if chunk_size is None else checked_integer("chunk_size", chunk_size, 1)
    memory_limit = None if memory_limit is None else checked_integer("memory_limit", memory_limit)
    if not isinstance(checkpoint, str | PathLike | None):
        raise TypeError(f"checkpoint must be the path of a folder, got {checkpoint!r}")
    kept, outer = None, _OPEN.get()
    if outer is not None:
        memory_limit, kept, progress = outer.memory_limit, outer.checkpoint, False
    with together():
        if kept is not None or checkpoint is not None or n_sharing() > 1:
            parts = identity()
            digest = digest_of((parts.data, parts.settings))
            ran = {"chunk_size": chunk_size, "memory_limit": memory_limit, "checkpoint": checkpoint is not None}
            alike = {**parts.settings, **parts.presentation, **ran, "lanes": n_lanes}
            check_alike(alike, digest_of((digest, parts.measured)), parts.noun)
            if kept is not None:
                kept = kept.of_part(digest)
            elif checkpoint is not None:
                kept = first_alone(partial(Checkpoint, checkpoint, digest, parts.settings, parts.noun))
        with progress_bar(n_lanes, unit, progress) as advance:
            run = LaneRun(advance, chunk_size, memory_limit, kept, n_sharing())
            before = _OPEN.set(run)
            try:
                yield run
            finally:
                _OPEN.reset(before)


def digest_of(data: Any) -> str:
    """Return a digest of arrays, indexes and values, in lists, tuples, mappings and dataclasses."""
    digest = hashlib.blake2b(digest_size=16)
    for head, body in _parts(data):
        digest.update(f"{head}:".encode())
        digest.update(body)
    return digest.hexdigest()


def _parts(data: Any) -> Iterator[tuple[str, bytes | memoryview]]:
    """Yield the parts of ``data``: kind and length of each, so that 1, 23 differs from 12, 3; and its bytes."""
    if is_dataclass(data):
        yield from _parts([getattr(data, f.name) for f in fields(data)])
    elif isinstance(data, Mapping):
        yield from _parts(list(data.items()))
    elif isinstance(data, tuple | list):
        yield f"{len(data)} parts", b""
        for part in data:
            yield from _parts(part)
    elif isinstance(data, np.ndarray) and data.dtype != object:
        yield f"{data.dtype.str} {data.shape}", np.ascontiguousarray(data).reshape(-1).view(np.uint8).data
    else:
        has_values = hasattr(data, "tolist") and not isinstance(data, np.generic)
        text = repr(data.tolist() if has_values else data).encode()
        yield f"{len(text)} bytes", text
