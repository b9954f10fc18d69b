"""How large arrays and chunks are: the one place that decides what is rounded up, and how many lanes run together.

A size that is static to a compiled program costs seconds for every value it takes, so sizes come in few steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

_VECTOR = 8  # XLA vectorises numbers of lanes badly that this does not divide
_FEW_SLOTS = 8  # of a call on a CPU
_CHEAP = 2**25  # entries that a CPU works on in a small part of the time that a program takes to compile


class Room(NamedTuple):
    """What the lanes of a chunk may take on one kind of device."""

    entries: int  # numbers that all of them work on
    lanes: int


class Budget(NamedTuple):
    """How the lanes of one kind of work are cut into chunks and calls."""

    cpu: Room  # sized to the cache of a core
    accelerator: Room  # to about a gigabyte
    chunks_per_call: int  # that a device runs at most; between calls there is time for progress and interrupts
    least: int = 1  # lanes of a chunk, however many numbers each works on


REFITS = Budget(Room(2_000_000, 1024), Room(2**28, 4096), 32)
# In bytes. Lanes side by side share gathered lines of memory, but wait for the slowest of them, and their arrays leave
# the cache: four took half the time of sixteen on a CPU.
SPARSE_REFITS = Budget(Room(2**28, 4), Room(2**32, 128), 32)
CONTEXTUAL_REFITS = Budget(Room(2**25, 32), Room(2**30, 512), 8)
# Every chunk makes a table of a model's battles by opponent anew: a few lanes would wait for it more than they work.
OWN_BATTLES = Budget(Room(2**20, 256), Room(2**26, 4096), 32, _VECTOR)
FOLDS = Budget(Room(2**22, 1024), Room(2**28, 4096), 32)
ITEMS = Budget(Room(2**18, 512), Room(2**26, 4096), 32, _VECTOR)
DRAWS = Budget(Room(2**18, 256), Room(2**26, 4096), 32, _VECTOR)
EVALUATORS = Budget(Room(2**23, 128), Room(2**28, 4096), 16, _VECTOR)
REFERENCES = Budget(Room(2**20, 32), Room(2**27, 1024), 16)


def chunk_lanes(budget: Budget, entries: int, of_slices: NDArray[np.int64]) -> int:
    """Lanes of a chunk, for slices of ``of_slices`` lanes; each lane works on so many ``entries``.

    A chunk is of one slice and always runs in full. On a CPU, whose devices share the same cores, that is cheap beside
    another compilation and beside what every chunk sets up, unless much of what runs is not wanted. The chunks of an
    accelerator are large: there a chunk is no larger than the share of a device, and smaller where that spares more
    than a fifth.
    """
    room = budget.cpu if _on_cpu() else budget.accelerator
    most = in_vectors(max(min(room.entries // max(entries, 1), room.lanes), budget.least))
    sizes = [most, *(2**k for k in range(12, 2, -1) if 2**k < most)]
    if not _on_cpu():
        share = max(power_of_two(-(-int(of_slices.sum()) // jax.local_device_count())), _VECTOR)
        sizes = [size for size in sizes if size <= share] or [most]
    run = {size: int((-(-of_slices // size)).sum()) * size for size in sizes}
    least = min(run.values())
    enough = 1.05 * least + _CHEAP // max(entries, 1) if _on_cpu() else 1.25 * least
    return next(size for size in sizes if run[size] <= enough)


def in_vectors(lanes: int) -> int:
    """``lanes`` rounded down to what XLA vectorises well; few lanes stay as they are."""
    return lanes if lanes < _VECTOR else lanes // _VECTOR * _VECTOR


def slots_per_call(n_chunks: int, most: int) -> int:
    """Chunks that a call has room for on each device, ``most`` at the most; calls are of equal length.

    A call returns all of its slots, also those without a chunk. That costs little on a CPU, where there are two sizes;
    an accelerator has to send them, and there at most a third of them are empty.
    """
    per_device = -(-n_chunks // jax.local_device_count())
    each = -(-per_device // -(-per_device // most))
    if _on_cpu():
        return min(_FEW_SLOTS if each <= _FEW_SLOTS else most, most)
    power = power_of_two(each)
    return min(3 * power // 4 if power > 2 and each <= 3 * power // 4 else power, most)


def padded_rows(x: NDArray[Any]) -> NDArray[Any]:
    """``x`` (L, ...), of a row for each lane, with zeros up to a number of lanes that others share."""
    return np.pad(x, [(0, power_of_two(max(len(x), 64)) - len(x)), *[(0, 0)] * (x.ndim - 1)])


def power_of_two(size: int) -> int:
    """``size`` rounded up to a power of two."""
    return 1 << max(size - 1, 0).bit_length()


def _on_cpu() -> bool:
    return jax.default_backend() == "cpu"
