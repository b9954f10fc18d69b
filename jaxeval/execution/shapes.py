"""How large arrays and chunks are: the one place that decides what is rounded up, and how many lanes run together.

A size that is static to a compiled program costs seconds for every value it takes, so sizes come in few steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

#: Units stacked in one column. A constant, as all that places a slice's units, and thereby names their random numbers,
#: must not depend on the other slices.
UNIT_ROWS = 4

_VECTOR = 8  # XLA vectorises numbers of lanes badly that this does not divide
_FEW_SLOTS = 8  # of a call on a CPU
_UNITS = 768  # columns of units of small boards: boards of 20,000 to 40,000 battles have a size in common
_FEWEST_ROWS = 1024  # of arrays that chunks take their lanes' rows from: they are small, and resamples often so many
_CHEAP = 2**25  # entries that a CPU works on in a small part of the time that a program takes to compile

# What small boards share, as to compile takes far longer than what padding adds.
_SMALL_BOARD = 64  # models
_FEW_MODELS = 256  # of a graph of pairs
_FEW_PAIRS = 2**12
_LARGE_GRAPH = 2**16  # pairs: a bootstrap takes longer than its programs take to compile
_SMALLEST_TABLE = 2**14
BATTLE_PLACES = 1024  # where battles are drawn one by one

# Rows of a block of battles: enough for both cores, and, times the lanes, no more than the cache holds.
_BLOCK_ROWS, _ACCELERATOR_BLOCK_ROWS = 2**13, 2**20
_FEW_BLOCKS = 8  # for which there is room, if there are several
_GROUP_ROWS = (16, 4, 1)
_PADDING = 1.2  # the largest group by which rows grow no more than this

#: Numbers of a block that `elementwise.evaluate` computes at once; fewer are NumPy's, which takes ten milliseconds.
ELEMENTS = 2**16
#: Those of a block for a few numbers of a kernel that NumPy cannot compute: the cells of a small board are no more.
FEW_ELEMENTS = 2**13


# A TPU keeps the last two axes of arrays in tiles, and doubles as pairs of singles. Compiled for one, refits of boards
# of 24 to 300 models took up to twice the bytes of a CPU or GPU for each number of a tile, and 18 bytes on average.
_TILE = 8, 128
_TPU_BYTES = 2
_TPU_ENTRIES = 4


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
SPARSE_REFITS = Budget(Room(2**28, 4), Room(2**31, 128), 32)
CONTEXTUAL_REFITS = Budget(Room(2**25, 32), Room(2**27, 512), 8)
# Every chunk makes a table of a model's battles by opponent anew: a few lanes would wait for it more than they work.
OWN_BATTLES = Budget(Room(2**20, 256), Room(2**28, 4096), 32, _VECTOR)
FOLDS = Budget(Room(2**22, 1024), Room(2**28, 4096), 32)
ITEMS = Budget(Room(2**18, 512), Room(2**26, 4096), 32, _VECTOR)
# In numbers of a matrix of models by items, of which a turn of EM holds some at a time.
ITEM_RESPONSE = Budget(Room(2**18, 64), Room(2**26, 1024), 8)
DRAWS = Budget(Room(2**18, 256), Room(2**26, 4096), 32, _VECTOR)
EVALUATORS = Budget(Room(2**23, 128), Room(2**28, 4096), 16, _VECTOR)
REFERENCES = Budget(Room(2**20, 32), Room(2**27, 1024), 16)


def chunk_lanes(budget: Budget, entries: int, of_slices: NDArray[np.int64]) -> int:
    """Lanes of a chunk, for slices of ``of_slices`` lanes; each lane works on so many ``entries``.

    A chunk is of one slice and always runs in full. On a CPU, whose devices share the same cores, that is cheap beside
    another compilation and beside what every chunk sets up, unless much of what runs is not wanted. The chunks of an
    accelerator are large: there a chunk is no larger than the share of a device, and smaller where that spares the
    device with most of them a fifth.
    """
    room = budget.cpu if _on_cpu() else budget.accelerator
    entries *= _TPU_ENTRIES if _on_tpu() else 1
    most = power_of_two(max(min(room.entries // max(entries, 1), room.lanes), budget.least) + 1) // 2
    n_devices = 1
    sizes = [most, *(2**k for k in range(12, 2, -1) if 2**k < most)]
    if not _on_cpu():
        n_devices = jax.local_device_count()
        share = -(-int(of_slices.sum()) // n_devices)
        share = max(_in_steps(share, max(power_of_two(share) // 8, _VECTOR)), _VECTOR)  # a quarter more at most
        sizes = [size for size in sorted({*sizes, share}, reverse=True) if size <= min(share, most)]
    run = {size: -(-int((-(-of_slices // size)).sum()) // n_devices) * size for size in sizes}
    least = min(run.values())
    enough = 1.05 * least + _CHEAP // max(entries, 1) if _on_cpu() else 1.2 * least
    return next(size for size in sizes if run[size] <= enough)


def held_numbers(shape: Sequence[int]) -> int:
    """Numbers for which memory is taken by an array of ``shape``: on a TPU those of whole tiles."""
    if not _on_tpu():
        return math.prod(shape)
    least = (1,) * (len(shape) - 2) + _TILE[2 - min(len(shape), 2) :]
    return math.prod(_in_steps(n, step) for n, step in zip(shape, least, strict=True))


def lane_bytes(of_cpu: int) -> int:
    """Bytes of a lane on this kind of device, of which a CPU takes ``of_cpu``, and so does a GPU."""
    return of_cpu * (_TPU_BYTES if _on_tpu() else 1)


def side_by_side() -> int:
    """Lanes for which arrays with the lanes on the last axis have room at least."""
    return _TILE[1] if _on_tpu() else 1


def slices_together(budget: Budget, entries: int, n_slices: int, n_lanes: int) -> int:
    """How many slices of ``n_lanes`` lanes are made one, whose lanes work on the ``entries`` of each of them.

    Where chunks iterate, the turns of one wait for those of another. An accelerator takes as long for the turns of a
    few lanes as for those of many, so that there it gets the slices of as few chunks as hold them. A CPU gains nothing.
    """
    if _on_cpu():
        return 1
    entries *= _TPU_ENTRIES if _on_tpu() else 1
    most = max(budget.accelerator.entries // max(entries * min(n_lanes, budget.accelerator.lanes), 1), 1)
    n_chunks = -(-n_slices // min(most, n_slices))
    return -(-n_slices // n_chunks)


def deciding(lanes: NDArray[np.int64], left: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of (S,) numbers of ``lanes`` of slices and of those ``left`` for a solver, what decides about sizes.

    How many are left depends on the data, and another size would be compiled for them: on a CPU all lanes decide, and
    on an accelerator powers of two, where not all are left.
    """
    if _on_cpu():
        return lanes
    return np.array([min(power_of_two(n), most) if n else 0 for n, most in zip(left.tolist(), lanes, strict=True)])


def for_few(size: int, entries: int, left: NDArray[np.int64]) -> int:
    """Lanes of a chunk for the (S,) lanes ``left`` of slices, of which all would run in chunks of ``size``.

    On a CPU a few lanes of each of many slices take small chunks, where these spare most of what is worth another
    program.
    """
    if not _on_cpu() or size <= _VECTOR:
        return size
    all_, few = (int((-(-left // n)).sum()) * n for n in (size, _VECTOR))
    return _VECTOR if 4 * few <= all_ and (all_ - few) * entries > _CHEAP else size


def in_vectors(lanes: int) -> int:
    """``lanes`` rounded down to what XLA vectorises well; few lanes stay as they are."""
    return lanes if lanes < _VECTOR else lanes // _VECTOR * _VECTOR


def slots_per_call(n_chunks: int, most: int) -> int:
    """Chunks that a call has room for on each device, ``most`` at the most.

    A call returns all of its slots, also those without a chunk. That costs little on a CPU, where there are two sizes.
    An accelerator has to send them: there a fifth of the slots of all calls are empty at most.
    """
    per_device = -(-n_chunks // jax.local_device_count())
    if _on_cpu():
        each = -(-per_device // -(-per_device // most))
        return min(_FEW_SLOTS if each <= _FEW_SLOTS else most, most)
    steps = (size for k in range(most.bit_length(), -1, -1) for size in (3 * 2**k // 2, 2**k) if size <= most)
    return next(size for size in steps if -(-per_device // size) * size <= 1.25 * per_device)


def padded_cells(n: int, least: int = 512) -> int:
    """Cells of judged battles, their labels, the cells of one model: a power of two, and beyond 2**16 in eighths.

    The folds, which read them, take a tenth of a run with resamples, so that their padding may be coarse.
    """
    return power_of_two(max(n, least)) if n <= 2**16 else _in_steps(n, power_of_two(n) // 16)


def padded_own(n: int) -> int:
    """Places of the battles of one model, 512 at least: four sizes for each power of two.

    A third of the time of a resample is spent on places. Those that stay empty so take a twelfth of it at most, and a
    thirtieth on average.
    """
    return _in_steps(max(n, 512), power_of_two(max(n, 512)) // 8)


def padded_rows(x: NDArray[Any]) -> NDArray[Any]:
    """``x`` (L, ...), of a row for each lane, with zeros up to a number of lanes that others share."""
    return np.pad(x, [(0, power_of_two(max(len(x), _FEWEST_ROWS)) - len(x)), *[(0, 0)] * (x.ndim - 1)])


def padded_size(n_models: int) -> int:
    """Models of a dense board, padding ones included, which have no battles.

    Steps are so fine that tables grow by a ninth at most, except of small boards: their runs take as long for what does
    not depend on the number of models. Multiples of eight are what XLA vectorises well.
    """
    if n_models <= _SMALL_BOARD:
        return next(size for size in (16, 24, 32, 48, _SMALL_BOARD) if n_models <= size)
    return _in_steps(n_models, max(power_of_two(n_models) // 32, _VECTOR))


def padded_pairs(n_pairs: int, size: int) -> int:
    """Pairs of a board of ``size`` models with padding, one of them empty: all there can be, where most of them met.

    A pair takes little of a run beside what tables of models take.
    """
    complete = size * (size - 1) // 2 + 1
    if complete <= _FEW_PAIRS or 5 * n_pairs >= 4 * complete:
        return complete
    return min(padded_columns(n_pairs), complete)


def padded_columns(n: int) -> int:
    """Columns of units or of what they add to, or cells: 128 at least.

    Beyond `_FEW_PAIRS` they are an eighth more at most.
    """
    return max(power_of_two(n), 128) if n <= _FEW_PAIRS else _in_steps(n, power_of_two(n) // 16)


def padded_graph(n_pairs: int, n_rows: int) -> tuple[int, int]:
    """Pairs of a graph, and rows of its slots, which grow with them: boards between two steps share both.

    There are ``n_pairs`` pairs, an empty one included, and ``n_rows`` rows. Pairs grow by a quarter at most, and beyond
    `_LARGE_GRAPH` by an eighth; rows have room for the same growth, in sixty-fourths of the pairs.
    """
    step = power_of_two(n_pairs) // (8 if n_pairs <= _LARGE_GRAPH else 16)
    pairs = max(power_of_two(n_pairs), 128) if n_pairs <= _FEW_PAIRS else _in_steps(n_pairs, step)
    share = -(-64 * n_rows // n_pairs)
    return pairs, -(-share * pairs // 64)


def padded_units(n: int) -> int:
    """Columns of units that rows of battles read: few sizes, as to draw them takes a thirtieth of a run."""
    few = [_UNITS << 2 * k for k in range(4)]
    return next(size for size in few if n <= size) if n <= few[-1] else _in_steps(n, power_of_two(n) // 16)


def entry_rows(per_pair: NDArray[np.int64]) -> int:
    """Rows of a grid of entries, a power of two; each of its columns is of one of the (P,) pairs."""
    near = power_of_two(int(per_pair.mean()) + 1) // 2
    return min(max(near, UNIT_ROWS), power_of_two(int(per_pair.max())))


class Blocks(NamedTuple):
    """T blocks of E groups of G battles."""

    blocks: int
    groups: int
    rows: int


def battle_blocks(per_pair: NDArray[np.int64]) -> Blocks:
    """Blocks for (P,) rows of the pairs: groups as large as padding allows, blocks as large as the cache does.

    A group's rows are of one pair. Only the blocks in use are run, so that their number comes in few steps.
    """
    size = next((g for g in _GROUP_ROWS if (-(-per_pair // g) * g).sum() <= _PADDING * per_pair.sum()), 1)
    n_groups = int((-(-per_pair // size)).sum())
    most = (_BLOCK_ROWS if _on_cpu() else _ACCELERATOR_BLOCK_ROWS) // size
    n_blocks = -(-n_groups // most)
    return Blocks(
        power_of_two(max(n_blocks, _FEW_BLOCKS)) if n_blocks > 1 else 1, min(padded_columns(n_groups), most), size
    )


def padded_places(n: int, least: int) -> int:
    """Places of battles drawn one by one, ``least`` at least: by an eighth more at most where there are many.

    Their number grows with the root of the number of battles. Few come in steps so large that boards of 20,000 to
    40,000 battles share one size: there what does not depend on it takes longer.
    """
    n = max(n, least)
    few = (size << k for k in range(5) for size in (71, 100))
    return next((size for size in few if n <= size), _in_steps(n, power_of_two(n) // 16))


def padded_table(n: int) -> int:
    """Words of Poisson tables, of which only those in use are read."""
    return power_of_two(max(n, _SMALLEST_TABLE))


def padded_models(n: int) -> int:
    """Models of a graph of pairs, and what is added up for them: a power of two, as their pairs take far longer."""
    return power_of_two(max(n, _FEW_MODELS))


def padded_few(n: int) -> int:
    """Slices, strata, sets or models side by side: a power of two, of more than 64 by an eighth more at most."""
    return power_of_two(n) if n <= 64 else _in_steps(n, power_of_two(n) // 16)


class Step(IntEnum):
    """In which steps `padded` rounds what is counted."""

    ITEMS = 256
    "Items, or kinds of them, that are drawn: 250 more take some 5 ms in 10,000 resamples."
    SUMS = 32
    "Sums over items."
    MODELS = 16
    "Models with scores."
    EVALUATORS = 4
    "Evaluators of fixed scores: measures of nothing are quick."
    PAIR_ROWS = 32
    "Rows of sums over pairs: a row takes a fiftieth of what the weights of the pairs take."
    PAIRS = 256
    "Pairs of models in a regression."
    COLUMNS = 256
    "Columns of units and of what they add to, where these are most of a run."


def padded(n: int, step: Step) -> int:
    """``n`` rounded up to a multiple of ``step``; beyond 16 of them by an eighth more at most."""
    return _in_steps(n, max(step, power_of_two(n) // 16))


def power_of_two(size: int) -> int:
    """``size`` rounded up to a power of two."""
    return 1 << max(size - 1, 0).bit_length()


def _in_steps(size: int, step: int) -> int:
    """``size`` rounded up to a multiple of ``step``."""
    return -(-size // step) * step


def _on_cpu() -> bool:
    return jax.default_backend() == "cpu"


def _on_tpu() -> bool:
    return jax.default_backend() == "tpu"
