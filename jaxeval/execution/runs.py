"""Opens a run of lanes: options checked, processes alike, finished lanes found again, progress shown."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import numpy as np
import pandas as pd

from jaxeval.checks import checked_integer
from jaxeval.execution.checkpoints import Checkpoint
from jaxeval.execution.lanes import LaneRun
from jaxeval.execution.processes import check_alike, first_alone
from jaxeval.execution.progress import progress_bar


class RunOptions(TypedDict, total=False):
    """How a long call runs; no result depends on them.

    ``chunk_size``: lanes (resamples) computed together; by default sized to the cache (CPU) or to 1 GB (GPU, TPU).
    ``memory_limit``: bytes that the lanes, their tables and results may take, give or take a fifth; chunks shrink to
    fit. Not counted: Python, JAX and what they compile, and the data.
    ``checkpoint``: folder that finished lanes are kept in. After an interruption the same call goes on from them, with
    the same draws; with more resamples, too.
    ``progress``: show a bar on standard error; by default only on a terminal, for work over 0.7 s.
    """

    chunk_size: int | None
    memory_limit: int | None
    checkpoint: str | Path | None
    progress: bool | None


class Identity(NamedTuple):
    """What a run computes, by which its checkpoint is known again and its processes are compared."""

    settings: Mapping[str, Any]  # that decide the draws
    data: Any  # arrays, indexes and values, in lists, tuples, mappings and dataclasses
    presentation: Mapping[str, Any] = {}  # settings that another run with the same draws may have otherwise


@contextmanager
def open_run(
    identity: Callable[[], Identity],
    n_lanes: int,
    unit: str,
    n_processes: int = 1,
    *,
    chunk_size: int | None = None,
    memory_limit: int | None = None,
    checkpoint: str | Path | None = None,
    progress: bool | None = None,
) -> Iterator[LaneRun]:
    """A run of ``n_lanes`` lanes with `RunOptions`; the bar calls them ``unit``.

    Args:
        identity: called only where a checkpoint, or other processes, need it.
        n_lanes: the length of the bar.
        unit: what a lane is, in the plural.
        n_processes: that share the lanes.

    Raises:
        TypeError, ValueError: an option is none.
        DataError: ``checkpoint`` is the folder of another run.
        ProcessError: the processes were not called alike.
    """
    chunk_size = None if chunk_size is None else checked_integer("chunk_size", chunk_size, 1)
    memory_limit = None if memory_limit is None else checked_integer("memory_limit", memory_limit)
    if not isinstance(checkpoint, str | PathLike | None):
        raise TypeError(f"checkpoint must be the path of a folder, got {checkpoint!r}")
    kept, several = None, n_processes > 1
    if checkpoint is not None or several:
        own = identity()
        digest = digest_of((own.data, own.settings))
        if several:
            alike = {"chunk_size": chunk_size, "memory_limit": memory_limit, "checkpoint": checkpoint is not None}
            check_alike({**own.settings, **own.presentation, **alike}, digest)
        if checkpoint is not None:
            kept = first_alone(partial(Checkpoint, checkpoint, digest, own.settings), n_processes)
    with progress_bar(n_lanes, unit, progress) as advance:
        yield LaneRun(advance, chunk_size, memory_limit, kept, n_processes)


def digest_of(data: Any) -> str:
    """A digest of arrays, indexes and values, in lists, tuples, mappings and dataclasses."""
    digest = hashlib.blake2b(digest_size=16)
    for part in _parts(data):
        if isinstance(part, np.ndarray) and part.dtype != object:
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(repr(part.tolist() if isinstance(part, np.ndarray | pd.Index) else part).encode())
    return digest.hexdigest()


def _parts(data: Any) -> Iterator[Any]:
    """The arrays, indexes and single values that ``data`` is made of."""
    if is_dataclass(data):
        yield from _parts([getattr(data, f.name) for f in fields(data)])
    elif isinstance(data, Mapping):
        yield from _parts(list(data.items()))
    elif isinstance(data, tuple | list):
        for part in data:
            yield from _parts(part)
    else:
        yield data
