"""How large arrays and chunks are: the one place that decides what is rounded up, and how many lanes run together.

A size that is static to a compiled program costs seconds for every value it takes, so sizes come in few steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from jaxeval.execution.precision import n_cores
from jaxeval.lazy_names import jax, spares_jax

#: Units stacked in one column. It is a constant, because the place of a unit decides its random numbers, and must not
#: depend on the other slices.
UNIT_ROWS = 4

_VECTOR = 8  # XLA vectorises well if this divides the number of lanes
_FEW_SLOTS = 8  # of a call on a CPU
_MOST_AT_ONCE = 8  # calls side by side: each takes memory for a chunk
_UNITS = 768  # columns of units of small boards: boards of 20,000 to 40,000 battles have a size in common
_UNIT_SIZES = 6  # each four times the last; the largest is for three million battles
_FEWEST_ROWS = 1024  # of arrays with a row per lane: the arrays are small, and there are often this many resamples
_OF_ONE_LANE = 2**14  # numbers that a statistic makes: with more, lanes side by side leave the cache
_CHEAP = 2**25  # entries that a CPU works on in a small part of the time that a program takes to compile

# Sizes that small boards share, because compiling takes far longer than the work that padding adds.
_SMALL_BOARD = 64  # models
_FEW_MODELS = 256  # of a graph of pairs
_FEW_PAIRS = 2**12
_LARGE_GRAPH = 2**16  # pairs: a bootstrap takes longer than its programs take to compile
_SMALLEST_TABLE = 2**14
BATTLE_PLACES = 1024  # where battles are drawn one by one

# Rows of a block of battles: enough for both cores, and, times the lanes, no more than the cache holds.
_BLOCK_ROWS, _ACCELERATOR_BLOCK_ROWS = 2**13, 2**20
_FEW_BLOCKS = 6  # there is room for at least these, unless there is only one
_GROUP_ROWS = (16, 4, 1)
_ROWS_OF_A_GROUP = 1.8  # in a pass of 32 lanes a group takes as long as so many of its rows

#: Numbers of a block of `host.evaluate`; up to so many are computed by NumPy, which takes ten milliseconds.
ELEMENTS = 2**16
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
    side_by_side: bool = True  # whether a CPU runs calls side by side, as XLA computes most of a chunk by one core


REFITS = Budget(Room(1_000_000, 1024), Room(2**28, 4096), 32)
# In bytes. Lanes side by side share gathered lines of memory. But they wait for the slowest lane, and their arrays do
# not fit in the cache: four lanes took half the time of sixteen on a CPU. Several chunks would take gigabytes.
SPARSE_REFITS = Budget(Room(2**28, 4), Room(2**31, 128), 32, side_by_side=False)
# In words of eight bytes. What a row has besides its draws is read once for all lanes of a chunk: two lanes of five
# million rows took 129 ns a row and resample, 32 took 24 (the first on a busier machine).
CONTEXTUAL_REFITS = Budget(Room(2**26, 32), Room(2**27, 512), 8)
# Every chunk makes a table of a model's battles by opponent anew: a few lanes would wait for it more than they work.
OWN_BATTLES = Budget(Room(2**20, 256), Room(2**28, 4096), 32, _VECTOR)
FOLDS = Budget(Room(2**22, 1024), Room(2**28, 4096), 32)
ITEMS = Budget(Room(2**18, 512), Room(2**26, 4096), 32, _VECTOR)
# In numbers that a statistic makes for a lane: those of few lanes stay in the cache of a core.
STATISTICS = Budget(Room(2**21, 256), Room(2**26, 4096), 32)
# In numbers of a matrix of models by items, of which a turn of EM holds some at a time.
ITEM_RESPONSE = Budget(Room(2**18, 64), Room(2**26, 1024), 8)
DRAWS = Budget(Room(2**18, 256), Room(2**26, 4096), 32, _VECTOR)
EVALUATORS = Budget(Room(2**23, 128), Room(2**28, 4096), 16, _VECTOR)
REFERENCES = Budget(Room(2**20, 32), Room(2**27, 1024), 16)


def chunk_lanes(budget: Budget, entries: int, of_slices: NDArray[np.int64]) -> int:
    """Return lanes of a chunk, for slices of (S,) ``of_slices`` lanes; each lane works on ``entries`` numbers.

    A chunk holds lanes of one slice and always runs in full, with its empty places. On a CPU, whose devices share the
    same cores, empty places cost less than another compilation, and less than setting up more chunks, unless they are
    many. The chunks of an accelerator are large. There a chunk is no larger than a device's share of the lanes, and
    smaller where that spares the device with most work a fifth of it.
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


def one_by_one(made: int) -> bool:
    """Return whether lanes of a chunk that make so many numbers each are computed one after the other.

    On a CPU the numbers of one lane stay in the cache of a core, and its products of matrices are not batched, which
    XLA computes slowly there.
    """
    return _on_cpu() and made > _OF_ONE_LANE


def held_numbers(shape: Sequence[int]) -> int:
    """Return for how many numbers an array of ``shape`` takes memory: on a TPU, for those of whole tiles."""
    if not _on_tpu():
        return math.prod(shape)
    least = (1,) * (len(shape) - 2) + _TILE[2 - min(len(shape), 2) :]
    return math.prod(_in_steps(n, step) for n, step in zip(shape, least, strict=True))


def drawn_words(n: int, kind: DTypeLike) -> int:
    """Return words of eight bytes that ``n`` draws take; on accelerators, whose blocks are large, each is widened."""
    return n * np.dtype(kind).itemsize // 8 if _on_cpu() else n


def lane_bytes(of_cpu: int) -> int:
    """Return bytes of a lane on this kind of device; a CPU or a GPU takes ``of_cpu``."""
    return of_cpu * (_TPU_BYTES if _on_tpu() else 1)


def side_by_side() -> int:
    """Return the fewest lanes that an array with the lanes on its last axis has room for."""
    return _TILE[1] if _on_tpu() else 1


def slices_together(budget: Budget, entries: int, n_slices: int, n_lanes: int) -> int:
    """Give how many slices of ``n_lanes`` lanes to join into one; a joint lane works on the ``entries`` of each slice.

    Chunks that iterate do so one after the other. An accelerator takes as long to iterate a few lanes as many, so there
    slices are joined until as few chunks as possible hold them. A CPU gains nothing from it.
    """
    if _on_cpu():
        return 1
    entries *= _TPU_ENTRIES if _on_tpu() else 1
    most = max(budget.accelerator.entries // max(entries * min(n_lanes, budget.accelerator.lanes), 1), 1)
    n_chunks = -(-n_slices // min(most, n_slices))
    return -(-n_slices // n_chunks)


def deciding(lanes: NDArray[np.int64], left: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (S,) lanes of each slice that decide about sizes, by all its ``lanes`` and by those ``left`` for a solver.

    How many are left depends on the data, and every other size would have to be compiled. So on a CPU all lanes decide;
    on an accelerator the number that is left does, rounded up to a power of two unless all are left.
    """
    if _on_cpu():
        return lanes
    return np.array([min(power_of_two(n), most) if n else 0 for n, most in zip(left.tolist(), lanes, strict=True)])


def for_few(size: int, entries: int, left: NDArray[np.int64]) -> int:
    """Give lanes of a chunk for the (S,) lanes ``left`` of each slice, where all lanes would run in chunks of ``size``.

    On a CPU, a few lanes of each of many slices take small chunks, where these spare most of the work, and more than it
    takes to compile another program.
    """
    if not _on_cpu() or size <= _VECTOR:
        return size
    all_, few = (int((-(-left // n)).sum()) * n for n in (size, _VECTOR))
    return _VECTOR if 4 * few <= all_ and (all_ - few) * entries > _CHEAP else size


def in_vectors(lanes: int) -> int:
    """Return ``lanes`` rounded down to what XLA vectorises well; few lanes stay as they are."""
    return lanes if lanes < _VECTOR else lanes // _VECTOR * _VECTOR


def slots_per_call(n_chunks: int, most: int) -> int:
    """Return chunks that a call has room for on each device: at most ``most``.

    A call returns all of its slots, also those without a chunk. That costs little on a CPU, where there are two sizes.
    An accelerator has to send them: there a fifth of the slots of all calls are empty at most.
    """
    per_device = -(-n_chunks // jax.local_device_count())
    if _on_cpu():
        each = -(-per_device // -(-per_device // most))
        return min(_FEW_SLOTS if each <= _FEW_SLOTS else most, most)
    steps = (size for k in range(most.bit_length(), -1, -1) for size in (3 * 2**k // 2, 2**k) if size <= most)
    return next(size for size in steps if -(-per_device // size) * size <= 1.25 * per_device)


def calls_at_once(budget: Budget) -> int:
    """Return how many calls run side by side: on a CPU a few, if the ``budget`` says so."""
    free = budget.side_by_side and _on_cpu() and jax.local_device_count() == 1
    return min(n_cores(), _MOST_AT_ONCE) if free else 1


def padded_cells(n: int, least: int = 512) -> int:
    """Give cells of judged battles, their labels, the cells of one model: a power of two, and beyond 2**16 in eighths.

    The folds, which read them, take a tenth of a run with resamples, so their padding may be coarse.
    """
    return power_of_two(max(n, least)) if n <= 2**16 else _in_steps(n, power_of_two(n) // 16)


def padded_own(n: int) -> int:
    """Return places of the battles of one model, 512 at least: four sizes for each power of two.

    A third of the time of a resample is spent on places. Empty places take a twelfth of that time at most, and a
    thirtieth on average.
    """
    return _in_steps(max(n, 512), power_of_two(max(n, 512)) // 8)


def padded_rows(x: NDArray[Any]) -> NDArray[Any]:
    """Return ``x`` (L, ...), with a row for each lane, padded with zeros to a number of lanes that many runs share."""
    return np.pad(x, [(0, power_of_two(max(len(x), _FEWEST_ROWS)) - len(x)), *[(0, 0)] * (x.ndim - 1)])


def padded_size(n_models: int) -> int:
    """Return models of a dense board, padding ones included, which have no battles.

    Beyond 128 models, steps are so fine that tables grow by about an eighth at most. They are coarser for small boards,
    whose runs mostly take time that does not depend on the number of models. XLA vectorises multiples of eight well.
    """
    if n_models <= _SMALL_BOARD:
        return next(size for size in (16, 24, 32, 48, _SMALL_BOARD) if n_models <= size)
    return _in_steps(n_models, max(power_of_two(n_models) // 32, _VECTOR))


def padded_pairs(n_pairs: int, size: int) -> int:
    """Pad the pairs of a board of ``size`` models, and add an empty one: all possible pairs, where most of them met.

    A pair takes little of a run, compared with the tables of models.
    """
    complete = size * (size - 1) // 2 + 1
    if complete <= _FEW_PAIRS or 5 * n_pairs >= 4 * complete:
        return complete
    return min(padded_columns(n_pairs), complete)


def padded_columns(n: int) -> int:
    """Return columns of units, or of what units add to, or cells: a power of two, at least 128.

    Beyond `_FEW_PAIRS`, at most an eighth more than ``n``.
    """
    return max(power_of_two(n), 128) if n <= _FEW_PAIRS else _in_steps(n, power_of_two(n) // 16)


def padded_graph(n_pairs: int, n_rows: int) -> tuple[int, int]:
    """Return pairs of a graph, and rows of its slots, which grow with them: boards between two steps share both.

    There are ``n_pairs`` pairs, an empty one included, and ``n_rows`` rows. Pairs grow by a quarter at most, and beyond
    `_LARGE_GRAPH` by an eighth; rows have room for the same growth, in sixty-fourths of the pairs.
    """
    step = power_of_two(n_pairs) // (8 if n_pairs <= _LARGE_GRAPH else 16)
    pairs = max(power_of_two(n_pairs), 128) if n_pairs <= _FEW_PAIRS else _in_steps(n_pairs, step)
    share = -(-64 * n_rows // n_pairs)
    return pairs, -(-share * pairs // 64)


def padded_units(n: int) -> int:
    """Return columns of units that rows of battles read: few sizes, of which a CPU draws only what is in use."""
    few = [_UNITS << 2 * k for k in range(_UNIT_SIZES if _on_cpu() else 4)]
    return next(size for size in few if n <= size) if n <= few[-1] else _in_steps(n, power_of_two(n) // 16)


def entry_rows(per_pair: NDArray[np.int64]) -> int:
    """Return rows of a grid of entries, a power of two; each of its columns is of one of the (P,) pairs."""
    near = power_of_two(int(per_pair.mean()) + 1) // 2
    return min(max(near, UNIT_ROWS), power_of_two(int(per_pair.max())))


class Blocks(NamedTuple):
    """T blocks of E groups of G battles."""

    blocks: int
    groups: int
    rows: int


def battle_blocks(per_pair: NDArray[np.int64]) -> Blocks:
    """Return blocks for (P,) rows of the pairs: groups for which a pass takes least, blocks as large as the cache.

    A group's rows are of one pair. Only the blocks in use are run, so their number comes in few steps: those of
    `padded_units`, as most often a column of units is a group.
    """

    def groups(rows: int) -> int:
        return int((-(-per_pair // rows)).sum())

    size = min(_GROUP_ROWS, key=lambda rows: groups(rows) * (rows + _ROWS_OF_A_GROUP))
    n_groups = groups(size)
    most = (_BLOCK_ROWS if _on_cpu() else _ACCELERATOR_BLOCK_ROWS) // size
    if n_groups <= most:
        return Blocks(1, padded_columns(n_groups), size)
    n_blocks = -(-n_groups // most)
    few = [_FEW_BLOCKS << 2 * k for k in range(4)]
    room = [n for n in few if n_blocks <= n] or [_in_steps(n_blocks, power_of_two(n_blocks) // 16)]
    return Blocks(room[0], most, size)


def padded_places(n: int, least: int) -> int:
    """Return places of battles drawn one by one, at least ``least``: many places are at most an eighth more than ``n``.

    Their number grows with the root of the number of battles. Few places come in steps so large that boards of 20,000
    to 40,000 battles share one size: most of the time of such boards does not depend on it.
    """
    n = max(n, least)
    few = (size << k for k in range(5) for size in (71, 100))
    return next((size for size in few if n <= size), _in_steps(n, power_of_two(n) // 16))


def padded_table(n: int) -> int:
    """Return words of Poisson tables, of which only those in use are read."""
    return power_of_two(max(n, _SMALLEST_TABLE))


def padded_models(n: int) -> int:
    """Return models of a graph of pairs, and sums by model: a power of two, because their pairs take far longer."""
    return power_of_two(max(n, _FEW_MODELS))


def padded_few(n: int) -> int:
    """Pad slices, strata, sets or models side by side: up to 64 to a power of two, then by at most an eighth."""
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
    "Evaluators of fixed scores: empty ones are quick."
    PAIR_ROWS = 32
    "Rows of sums over pairs: a row takes a fiftieth of what the weights of the pairs take."
    PAIRS = 256
    "Pairs of models in a regression."
    COLUMNS = 256
    "Columns of units and of what they add to, where these are most of a run."


def padded(n: int, step: Step) -> int:
    """Return ``n`` rounded up to a multiple of ``step``; beyond 16 steps, to at most an eighth more than ``n``."""
    return _in_steps(n, max(step, power_of_two(n) // 16))


def power_of_two(size: int) -> int:
    """Return ``size`` rounded up to a power of two."""
    return 1 << max(size - 1, 0).bit_length()


def _in_steps(size: int, step: int) -> int:
    """Return ``size`` rounded up to a multiple of ``step``."""
    return -(-size // step) * step


def _on_cpu() -> bool:
    return spares_jax() or jax.default_backend() == "cpu"


def _on_tpu() -> bool:
    return not spares_jax() and jax.default_backend() == "tpu"
