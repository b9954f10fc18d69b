"""The driver of lanes, on a task that adds up numbers; the estimators' own tests show the same of each of them."""

import threading
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxeval.errors import MemoryLimitError
from jaxeval.execution import lanes
from jaxeval.execution.checkpoints import Checkpoint
from jaxeval.execution.lanes import LaneRun, Lanes, LaneSolver, Task, named_leaves
from jaxeval.execution.shapes import Budget, Room
from jaxeval.kernels.solve import Status


class Pair(NamedTuple):
    value: np.ndarray
    row: np.ndarray


@jax.jit
def program(chunks):
    """10 s + r of every lane, and a row of three; slots that are not run hold -1."""
    slices, numbers, n_chunks = chunks
    run = jnp.arange(slices.shape[1]) < n_chunks[:, None]
    value = jnp.where(run[..., None], 10.0 * slices[..., None] + numbers, -1.0)
    return {"pair": Pair(value, value[..., None] * jnp.arange(3.0)), "count": jnp.ones_like(numbers)}


BUDGET = Budget(Room(800, 64), Room(800, 64), 2, side_by_side=False)
TASK = Task(partial(program), BUDGET, 100, lane_bytes=1000, fixed_bytes=5000)


def noted(note, of=program):
    """A task of the program ``of``, of whose calls ``note`` is told."""

    def call(chunks):
        note(chunks)
        return of(chunks)

    call.eval_shape = of.eval_shape
    return TASK._replace(call=partial(call))


def results(lane_run, of=None, task=TASK):
    return lane_run.results(task, of or Lanes.of(3, 25), "part")


def check(found, of):
    expected = 10.0 * of.slices + of.numbers
    np.testing.assert_array_equal(found["pair"].value, expected)
    np.testing.assert_array_equal(found["pair"].row, expected[:, None] * np.arange(3.0))
    np.testing.assert_array_equal(found["count"], 1)


@pytest.mark.parametrize("chunk_size", [None, 1, 7, 1000])
def test_every_lane_is_run_once_whatever_the_chunks(chunk_size):
    seen = []
    check(results(LaneRun(seen.append, chunk_size)), Lanes.of(3, 25))
    assert sum(seen) == 75


def test_slices_may_have_other_numbers_of_lanes():
    of = Lanes(np.array([2, 0, 2, 2, 5]), np.array([4, 0, 1, 30, 7]))
    check(results(LaneRun(), of), of)


def test_some_lanes_leave_the_others_as_they_are():
    of = Lanes.of(2, 10)
    into = {"pair": Pair(np.zeros(20), np.zeros((20, 3))), "count": np.zeros(20, int)}
    which = np.array([3, 4, 11, 19])
    LaneRun().run(TASK, of, which, into, "part")
    np.testing.assert_array_equal(np.flatnonzero(into["count"]), which)
    np.testing.assert_array_equal(into["pair"].value[which], 10 * of.slices[which] + of.numbers[which])
    LaneRun().run(TASK, of, which[:0], into, "nothing")
    assert into["count"].sum() == 4


def test_arrays_have_names():
    assert set(named_leaves(results(LaneRun()))) == {"['pair'].value", "['pair'].row", "['count']"}
    assert set(named_leaves(Pair(np.zeros(1), np.zeros(1)))) == {"value", "row"}


class TestInterrupted:
    def test_what_was_stored_is_kept(self, tmp_path, monkeypatch):
        store, left = lanes._store, [2]

        def interrupted(*arguments):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return store(*arguments)

        def kept():
            return LaneRun(chunk_size=5, checkpoint=Checkpoint(tmp_path, "digest", {}))

        monkeypatch.setattr(lanes, "_store", interrupted)
        of = Lanes.of(3, 25 * jax.local_device_count())
        with pytest.raises(KeyboardInterrupt):
            results(kept(), of)
        seen = []
        left[0] = 1000
        run = kept()
        check(results(LaneRun(seen.append, 5, None, run.checkpoint), of), of)
        assert seen[0] == 2 * 2 * 5 * jax.local_device_count()  # two calls of two chunks of five on each device

    def test_the_next_call_is_under_way_while_results_are_stored(self, monkeypatch):
        order, store = [], lanes._store

        def stored(*arguments):
            order.append("store")
            return store(*arguments)

        monkeypatch.setattr(lanes, "_store", stored)
        results(
            LaneRun(chunk_size=5), Lanes.of(1, 30 * jax.local_device_count()), noted(lambda _: order.append("call"))
        )
        assert order == ["call", "call", "store", "call", "store", "store"]

    @pytest.mark.parametrize("at_once", [2, 3])
    def test_calls_side_by_side_meet(self, monkeypatch, at_once):
        monkeypatch.setattr(lanes, "calls_at_once", lambda _: at_once)
        meeting, begun = threading.Barrier(at_once, timeout=30), []

        def meet(chunks):
            begun.append(int(chunks.n_chunks.sum()))
            if 1 < len(begun) <= 1 + at_once:  # the first call is compiled alone
                meeting.wait()

        of = Lanes.of(3, 25 * jax.local_device_count())
        check(results(LaneRun(chunk_size=5), of, noted(meet)), of)
        assert max(begun) <= 2 * jax.local_device_count()


class TestMemory:
    def test_chunks_shrink_to_the_limit(self):
        sizes = []
        task = noted(lambda chunks: sizes.append(chunks.numbers.shape[-1]))
        n_devices = jax.local_device_count()
        limit = 5000 + 3 * 1000 * n_devices + 500
        check(results(LaneRun(memory_limit=limit), task=task), Lanes.of(3, 25))
        assert set(sizes) == {3}

    def test_no_room_for_one_lane(self):
        with pytest.raises(MemoryLimitError, match=r"take 5,000, and one resample at a time .* would do"):
            results(LaneRun(memory_limit=5999))


class Found(NamedTuple):
    value: np.ndarray
    status: np.ndarray


class Cascade:
    """Two slices; the first solver takes one of them, and converges for even resamples."""

    lanes = Lanes.of(2, 9)

    def __init__(self, dtype=jnp.float64):
        self.dtype, self.given = dtype, {}

    def solvers(self):
        every = np.array([True, True])
        return [
            LaneSolver(7, "fast", self.task(0, "fast"), np.array([True, False])),
            LaneSolver(8, "none", self.task(0, "none"), ~every),
            LaneSolver(9, "safe", self.task(1, "safe"), every),
        ]

    def task(self, bonus, name):
        @jax.jit
        def solved(chunks):
            slices, numbers, _ = chunks
            good = (numbers % 2 == 0) | (bonus == 1)
            value = (100 * bonus + 10 * slices[..., None] + numbers).astype(self.dtype)
            return Found(value, jnp.where(good, Status.CONVERGED, Status.STEP_LIMIT).astype(jnp.int8))

        return noted(lambda _: self.given.setdefault(name, 0), solved)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_solvers_take_the_lanes_that_faster_ones_leave(dtype):
    cascade = Cascade(jnp.dtype(dtype))
    found, solver = LaneRun().solve(cascade.solvers(), cascade.lanes, "part")
    fast = np.array([r % 2 == 0 for r in range(9)] + [False] * 9)
    np.testing.assert_array_equal(solver, np.where(fast, 7, 9))
    lane = np.concatenate([np.arange(9), 10 + np.arange(9)])
    np.testing.assert_array_equal(found.value, np.where(fast, lane, 100 + lane))
    assert found.value.dtype == np.float64
    assert (found.status == Status.CONVERGED).all()
    assert set(cascade.given) == {"fast", "safe"}


def test_a_bar_counts_lanes_once():
    done = []
    LaneRun(advance=done.append, chunk_size=2).solve(Cascade().solvers(), Cascade.lanes, "part")
    assert sum(done) == 18


def test_every_solver_has_its_part_of_the_checkpoint(tmp_path):
    kept = Checkpoint(tmp_path, "digest", {})
    whole, solver = LaneRun(checkpoint=kept).solve(Cascade().solvers(), Cascade.lanes, "part")
    assert {path.name.split(".")[0] for path in tmp_path.glob("*.npz")} == {"part-fast", "part-safe"}
    again, solver_again = LaneRun(checkpoint=kept).solve(Cascade().solvers(), Cascade.lanes, "part")
    np.testing.assert_array_equal(again.value, whole.value)
    np.testing.assert_array_equal(solver_again, solver)
