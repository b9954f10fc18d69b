"""Lanes, each one resample of one slice: cut into chunks, shared by devices and processes, kept on disk if asked."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh
from numpy.typing import NDArray

from jaxeval.errors import MemoryLimitError, ProcessError
from jaxeval.execution.checkpoints import Checkpoint
from jaxeval.execution.processes import check_all_present, gather, share_of
from jaxeval.execution.progress import Advance
from jaxeval.wording import counted

Int = NDArray[np.int64]

_SECONDS_BETWEEN_SAVES = 2.0
_SECONDS_BETWEEN_LOOKS = 1.0  # whether other processes are there

#: Runs the chunks (D, T) of slices, of the resamples (D, T, R), of which each device has the first (D,); its results
#: have leading axes (D, T, R).
Call = Callable[[NDArray[np.int32], Int, NDArray[np.int32]], Any]


class Chunks(NamedTuple):
    """How lanes are cut."""

    size: int  # lanes of a chunk
    per_call: int  # chunks that a device runs in one call; between calls there is time for progress and interrupts


class Spread(NamedTuple):
    """How lanes are run."""

    advance: Advance
    chunk_size: int | None = None  # lanes of a chunk, if not by the default
    memory_limit: int | None = None  # bytes
    checkpoint: Checkpoint | None = None
    n_processes: int = 1  # that share the lanes


def device_mesh() -> Mesh:
    """The devices of this process."""
    return Mesh(np.array(jax.local_devices()), ("lanes",))


def run_lanes(
    lanes: Int, slices: Int, numbers: Int, chunks: Chunks, call: Call, results: NamedTuple, section: str, spread: Spread
) -> None:
    """Run ``lanes`` by ``call`` and write what it gives into ``results``, NumPy arrays with an entry a lane.

    Args:
        lanes: (L,) positions in ``results``.
        slices: the slice of every position.
        numbers: the number of the resample of every position.
        section: names these lanes' part of the run: its slices and solver.
    """
    if len(lanes) == 0:
        return
    several = spread.n_processes > 1
    own = lanes[share_of(len(lanes))] if several else lanes
    if several:
        everyone = gather(
            lambda: _packed(results, _run_own(own, slices, numbers, chunks, call, results, section, spread))
        )
        for process, other in enumerate(everyone):
            _unpack(other, results, process)
        spread.advance(len(lanes) - len(own))
    else:
        _run_own(own, slices, numbers, chunks, call, results, section, spread)


def lanes_within(limit: int, fixed: int, per_lane: int) -> int:
    """Lanes that each device may run at a time within ``limit`` bytes, of which ``fixed`` are taken.

    Raises:
        MemoryLimitError: there is no room for one lane.
    """
    per_lane *= jax.local_device_count()
    if fixed + per_lane > limit:
        raise MemoryLimitError(
            f"memory_limit={counted(limit, 'byte')} is too small: this board and its results take {fixed:,}, and one "
            f"resample at a time {per_lane:,} more; {fixed + per_lane:,} would do"
        )
    return (limit - fixed) // per_lane


def _run_own(
    lanes: Int, slices: Int, numbers: Int, chunks: Chunks, call: Call, results: NamedTuple, section: str, spread: Spread
) -> Int:
    left = lanes
    if spread.checkpoint is not None:
        done = spread.checkpoint.load(section, slices, numbers, results)
        left = lanes[~done[lanes]]
        spread.advance(len(lanes) - len(left))
    unsaved: list[Int] = []
    saved_at = looked_at = time.monotonic()
    try:
        for called in _calls(left, slices, chunks):
            if spread.n_processes > 1 and time.monotonic() > looked_at + _SECONDS_BETWEEN_LOOKS:
                check_all_present()
                looked_at = time.monotonic()
            _one_call(called, slices, numbers, chunks, call, results)
            unsaved += called
            spread.advance(sum(map(len, called)))
            if spread.checkpoint is not None and time.monotonic() > saved_at + _SECONDS_BETWEEN_SAVES:
                spread.checkpoint.save(section, slices, numbers, results, np.concatenate(unsaved))
                unsaved, saved_at = [], time.monotonic()
    finally:  # an interrupt, too, leaves what was finished
        if spread.checkpoint is not None and unsaved:
            spread.checkpoint.save(section, slices, numbers, results, np.concatenate(unsaved))
    return lanes


def _calls(lanes: Int, slices: Int, chunks: Chunks) -> Iterator[list[Int]]:
    """Chunks of lanes, each of one slice, as many as one call runs."""
    parts = [
        part
        for s in np.unique(slices[lanes])
        for own in [lanes[slices[lanes] == s]]
        for part in np.split(own, np.arange(chunks.size, len(own), chunks.size))
    ]
    per_call = jax.local_device_count() * chunks.per_call
    for start in range(0, len(parts), per_call):
        yield parts[start : start + per_call]


def _one_call(parts: list[Int], slices: Int, numbers: Int, chunks: Chunks, call: Call, results: NamedTuple) -> None:
    # Chunk c goes to device c % D; slots without a chunk are not run.
    n_devices = jax.local_device_count()
    slot_slices = np.zeros((n_devices, chunks.per_call), np.int32)
    slot_numbers = np.zeros((n_devices, chunks.per_call, chunks.size), np.int64)
    for c, part in enumerate(parts):
        slot = c % n_devices, c // n_devices
        slot_slices[slot] = slices[part[0]]
        # A short chunk repeats its last resample.
        slot_numbers[slot] = np.pad(numbers[part], (0, chunks.size - len(part)), mode="edge")
    n_chunks = [len(range(d, len(parts), n_devices)) for d in range(n_devices)]
    found = jax.device_get(call(slot_slices, slot_numbers, np.array(n_chunks, np.int32)))
    for c, part in enumerate(parts):
        for into, values in zip(results, found, strict=True):
            into[part] = np.asarray(values)[c % n_devices, c // n_devices, : len(part)]


def _packed(results: NamedTuple, lanes: Int) -> bytes:
    file = io.BytesIO()
    np.savez(file, lanes=lanes, **{str(i): x[lanes] for i, x in enumerate(results)})
    return file.getvalue()


def _unpack(packed: bytes, results: NamedTuple, process: int) -> None:
    try:
        with np.load(io.BytesIO(packed), allow_pickle=False) as part:
            for i, into in enumerate(results):
                into[part["lanes"]] = part[str(i)]
    except (EOFError, KeyError, IndexError, ValueError) as error:
        raise ProcessError(
            f"process {process} sent something else than refits of this run: all must make the same calls in one order"
        ) from error
