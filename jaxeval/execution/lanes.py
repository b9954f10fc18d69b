"""Lanes, each one resample of one slice: cut into chunks, shared by devices and processes, kept on disk if asked.

Every estimator that resamples runs here. It hands over a `Task`: one compiled program over lanes, and the work and
memory of a lane. An estimator that solves by several programs in turn hands over a `LaneSolver` for each.
"""

from __future__ import annotations

import io
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Int, as_leaf, map_tree
from jaxeval.errors import MemoryLimitError, ProcessError
from jaxeval.execution.checkpoints import Checkpoint
from jaxeval.execution.host import HostTask
from jaxeval.execution.precision import double_precision
from jaxeval.execution.processes import check_all_present, gather, share_of
from jaxeval.execution.progress import Advance
from jaxeval.execution.shapes import (
    Budget,
    calls_at_once,
    chunk_lanes,
    deciding,
    for_few,
    in_vectors,
    lane_bytes,
    slots_per_call,
)
from jaxeval.kernels.batch.programs import Chunks
from jaxeval.kernels.kinds import Mesh
from jaxeval.kernels.solve import Status
from jaxeval.lazy_names import jax
from jaxeval.wording import counted

_SECONDS_BETWEEN_SAVES = 2.0
_SECONDS_BETWEEN_LOOKS = 1.0  # at whether the other processes are still there

#: A program of `kernels.batch` with all its arguments but the last, the chunks; a call starts them on D devices. The
#: results are a tree of arrays with leading axes (D devices, T chunks, R lanes), and may not be computed yet.
Call = partial[Any]


class Task(NamedTuple):
    """One program over lanes, and the work and memory that it takes."""

    call: Call
    budget: Budget
    entries: int  # numbers that a lane works on
    lane_bytes: int  # that a lane of a chunk takes at most, for a limit on memory
    fixed_bytes: int  # taken whatever the chunks are: the problem and all results

    def shapes(self, chunks: Chunks) -> Any:
        """Return the results of a call as shapes, without computing them."""
        program: Any = self.call.func
        return program.eval_shape(*self.call.args, chunks, **self.call.keywords)


class LaneSolver(NamedTuple):
    """One program of a cascade, for the lanes that the faster ones before it left."""

    code: int  # of `kernels.batch`; kept for every lane
    name: str  # in a checkpoint
    task: Task | HostTask
    slices: NDArray[np.bool_]  # (S,) those whose lanes it takes


class Lanes(NamedTuple):
    """L resamples of slices."""

    slices: Int  # (L,)
    numbers: Int  # (L,) which resample of its slice each is

    @classmethod
    def of(cls, n_slices: int, n_resamples: int) -> Lanes:
        """Return all resamples of all slices, slice after slice."""
        return cls(np.repeat(np.arange(n_slices), n_resamples), np.tile(np.arange(n_resamples), n_slices))


def device_mesh() -> Mesh:
    """Return the devices of this process."""
    return jax.sharding.Mesh(np.array(jax.local_devices()), ("lanes",))


def _beyond(advance: Advance, n: int) -> Advance:
    """Return ``advance`` without the first ``n`` lanes: the bar has already counted them."""
    known = n

    def counted(more: int) -> None:
        nonlocal known
        skipped = min(known, more)
        known -= skipped
        advance(more - skipped)

    return counted


@dataclass(frozen=True)
class LaneRun:
    """How lanes are run."""

    advance: Advance = lambda n: None
    chunk_size: int | None = None  # lanes of a chunk, if not by the default
    memory_limit: int | None = None  # bytes
    checkpoint: Checkpoint | None = None
    n_processes: int = 1  # that share the lanes

    @property
    def is_plain(self) -> bool:
        """Whether nothing is asked of how lanes are cut, kept or shared, so that few may run without a program."""
        return (self.chunk_size, self.memory_limit, self.checkpoint, self.n_processes) == (None, None, None, 1)

    def results(self, task: Task, lanes: Lanes, section: str) -> Any:
        """Return what ``task`` gives for all ``lanes``: its tree of arrays, with the leading axis L."""
        every = np.arange(len(lanes.slices))
        shapes = self._shapes(task, lanes, every)
        results = jax.tree.map(lambda x: np.zeros((len(every), *x.shape[3:]), x.dtype), shapes)
        self.run(task, lanes, every, results, section)
        return results

    def solve(self, solvers: Sequence[LaneSolver], lanes: Lanes, section: str) -> tuple[Any, NDArray[np.int8]]:
        """Return all ``lanes``, each by the first of the ``solvers`` that converges; the last takes all that are left.

        What a solver computes for a lane is a tuple of arrays with a ``status`` (of `kernels.solve`) among them. The
        first result has these for all lanes, in double precision; the second is the code of the last solver that took
        each lane. ``section`` names the work in the checkpoint.
        """
        solvers = [step for step in solvers if step.slices.any()]
        n, first = len(lanes.slices), solvers[0]
        shapes = self._shapes(first.task, lanes, np.flatnonzero(first.slices[lanes.slices]))
        double = {np.dtype(np.float32): np.float64}
        results = map_tree(lambda x: np.zeros((n, *x.shape[3:]), double.get(x.dtype, x.dtype)), shapes)
        results.status[:] = -1
        solver = np.full(n, first.code, np.int8)
        for step in solvers:
            left = np.flatnonzero((results.status != Status.CONVERGED) & step.slices[lanes.slices])
            solver[left] = step.code
            again = int((results.status[left] != -1).sum())
            once = replace(self, advance=_beyond(self.advance, again)) if again else self
            once.run(step.task, lanes, left, results, f"{section}-{step.name}")
        return results, solver

    def _shapes(self, task: Task | HostTask, lanes: Lanes, which: Int) -> Any:
        """Return what a call of ``task`` for lanes ``which`` gives: shapes with first axes (devices, chunks, lanes)."""
        if isinstance(task, HostTask):
            return map_tree(lambda x: x[None, None], task.computed(lanes.slices[which[0]], lanes.numbers[which[:1]]))
        with double_precision():
            return task.shapes(_no_chunks(*self._slots(task, lanes, which)))

    def run(self, task: Task | HostTask, lanes: Lanes, which: Int, results: Any, section: str) -> None:
        """Run the lanes ``which``, positions among all, and write what they give into ``results``.

        These are a tree of NumPy arrays with an entry per lane. ``section`` names this part in the checkpoint.
        """
        if len(which) == 0:
            return
        if self.n_processes == 1:
            self._run_own(task, lanes, which, results, section)
            return
        shared = which[share_of(len(which))]
        everyone = gather(lambda: _packed(results, self._run_own(task, lanes, shared, results, section)))
        for process, other in enumerate(everyone):
            _unpack(other, results, process)
        self.advance(len(which) - len(shared))

    def _run_own(self, task: Task | HostTask, lanes: Lanes, which: Int, results: Any, section: str) -> Int:
        left, checkpoint = which, self.checkpoint
        if checkpoint is not None:
            done = checkpoint.load(section, lanes.slices, lanes.numbers, named_leaves(results))
            left = which[~done[which]]
            self.advance(len(which) - len(left))
        unsaved: list[Int] = []
        saved_at = looked_at = time.monotonic()

        def save() -> None:
            if checkpoint is not None and unsaved:
                finished = np.concatenate(unsaved)
                checkpoint.save(section, lanes.slices, lanes.numbers, named_leaves(results), finished)
                unsaved.clear()

        try:
            for parts in self._finished(task, lanes, left, results):
                unsaved += parts
                self.advance(sum(map(len, parts)))
                now = time.monotonic()
                if self.n_processes > 1 and now > looked_at + _SECONDS_BETWEEN_LOOKS:
                    check_all_present()
                    looked_at = now
                if now > saved_at + _SECONDS_BETWEEN_SAVES:
                    save()
                    saved_at = time.monotonic()
        finally:  # an interrupt, too, leaves what was finished
            save()
        return which

    def _finished(self, task: Task | HostTask, lanes: Lanes, which: Int, results: Any) -> Iterator[list[Int]]:
        """Yield the chunks of each call, as soon as ``results`` holds what they give.

        The next call starts before the results of the last are fetched, so that the devices do not wait for the host.
        On a CPU, calls whose chunks fit the cache of a core run side by side, each on a core.
        """
        if len(which) == 0:
            return
        if isinstance(task, HostTask):
            parts = _chunks(lanes.slices, which, task.at_once)
            yield from ([part] for part in task.finished(parts, lanes.slices, lanes.numbers, results))
            return
        size, most = self._slots(task, lanes, which)
        most *= jax.local_device_count()
        parts = _chunks(lanes.slices, which, [size] * len(np.bincount(lanes.slices)))
        at_once = calls_at_once(task.budget) if self.memory_limit is None else 1
        each = most if at_once == 1 else -(-len(parts) // (-(-len(parts) // (at_once * most)) * at_once))

        def begin(called: list[Int]) -> Any:
            with double_precision():
                return task.call(_placed(called, lanes, size, most // jax.local_device_count()))

        under_way: deque[tuple[list[Int], Future[Any]]] = deque()
        pool = ThreadPoolExecutor(at_once)
        try:
            for start in range(0, len(parts), each):
                called = parts[start : start + each]
                if at_once == 1:
                    running: Future[Any] = Future()
                    running.set_result(begin(called))
                elif start == 0:  # compiled before threads ask for it
                    running = pool.submit(jax.block_until_ready, begin(called))
                else:
                    running = pool.submit(lambda called: jax.block_until_ready(begin(called)), called)
                under_way.append((called, running))
                if len(under_way) > at_once:
                    called, running = under_way.popleft()
                    yield _store(called, running.result(), results)
            for called, running in under_way:
                yield _store(called, running.result(), results)
        finally:
            pool.shutdown(cancel_futures=True)

    def _slots(self, task: Task, lanes: Lanes, which: Int) -> tuple[int, int]:
        """Return lanes of a chunk, and chunks of a call on each device."""
        every = np.bincount(lanes.slices)
        left = np.bincount(lanes.slices[which], minlength=len(every))
        of_slice = deciding(every, left)
        size = self.chunk_size or for_few(chunk_lanes(task.budget, task.entries, of_slice), task.entries, left)
        if self.memory_limit is not None:
            within = lanes_within(self.memory_limit, task.fixed_bytes, lane_bytes(task.lane_bytes))
            size = min(size, within if self.chunk_size else in_vectors(within))
        n_chunks = int((-(-of_slice // size)).sum())
        return size, slots_per_call(n_chunks, task.budget.chunks_per_call)


def lanes_within(limit: int, fixed: int, per_lane: int) -> int:
    """Return lanes that each device may run within ``limit`` bytes, of which ``fixed`` are taken; an error if none."""
    per_lane *= jax.local_device_count()
    if fixed + per_lane > limit:
        raise MemoryLimitError(
            f"memory_limit={counted(limit, 'byte')} is too small: the data and the results take {fixed:,}, and one "
            f"resample at a time {per_lane:,} more; {fixed + per_lane:,} would do for this part of the work, and "
            "another part may need more: raise memory_limit= (on the command line --memory)"
        )
    return (limit - fixed) // per_lane


def named_leaves(results: Any) -> dict[str, NDArray[Any]]:
    """Return the arrays of a tree by their places in it, such as ``theta`` or ``[1].tau``."""
    return {jax.tree_util.keystr(path).lstrip("."): x for path, x in jax.tree_util.tree_leaves_with_path(results)}


def _chunks(slices: Int, which: Int, sizes: Sequence[int]) -> list[Int]:
    """Return the lanes ``which`` in chunks, each of one slice, and of as many lanes as its slice has in ``sizes``."""
    return [
        part
        for s in np.unique(slices[which])
        for of_slice in [which[slices[which] == s]]
        for part in np.split(of_slice, np.arange(sizes[s], len(of_slice), sizes[s]))
    ]


def _no_chunks(size: int, per_device: int) -> Chunks:
    """Return a call without chunks, with room for ``per_device`` of ``size`` lanes."""
    n_devices = jax.local_device_count()
    return Chunks(
        slices=as_leaf(np.zeros((n_devices, per_device)), np.int32),
        numbers=as_leaf(np.zeros((n_devices, per_device, size)), np.int64),
        n_chunks=as_leaf(np.zeros(n_devices), np.int32),
    )


def _placed(parts: list[Int], lanes: Lanes, size: int, per_device: int) -> Chunks:
    """Return a call for the chunks ``parts``: chunk c goes to device c % D, slots without one are not run."""
    chunks = _no_chunks(size, per_device)
    slices, numbers, n_chunks = map(np.asarray, chunks)
    n_devices = len(n_chunks)
    for c, part in enumerate(parts):
        slot = c % n_devices, c // n_devices
        slices[slot] = lanes.slices[part[0]]
        numbers[slot][: len(part)] = lanes.numbers[part]
        numbers[slot][len(part) :] = lanes.numbers[part[-1]]  # a short chunk repeats its last resample
        n_chunks[slot[0]] += 1
    return chunks


def _store(parts: list[Int], results_of_call: Any, results: Any) -> list[Int]:
    """Wait for what a call gives, and write it into ``results``."""
    # A slice is copied several times as fast as single lanes.
    where = [slice(lane[0], lane[-1] + 1) if lane[-1] - lane[0] == len(lane) - 1 else lane for lane in parts]
    for into, values in zip(jax.tree.leaves(results), jax.tree.leaves(jax.device_get(results_of_call)), strict=True):
        n_devices = len(values)
        for c, (part, lanes) in enumerate(zip(parts, where, strict=True)):
            into[lanes] = values[c % n_devices, c // n_devices, : len(part)]
    return parts


def _packed(results: Any, lanes: Int) -> bytes:
    file = io.BytesIO()
    np.savez(file, lanes=lanes, **{str(i): x[lanes] for i, x in enumerate(jax.tree.leaves(results))})
    return file.getvalue()


def _unpack(packed: bytes, results: Any, process: int) -> None:
    try:
        with np.load(io.BytesIO(packed), allow_pickle=False) as part:
            for i, into in enumerate(jax.tree.leaves(results)):
                into[part["lanes"]] = part[str(i)]
    except (EOFError, KeyError, IndexError, ValueError) as error:
        raise ProcessError(
            f"process {process} sent something other than results of this run: all processes must make the same calls "
            "in the same order"
        ) from error
