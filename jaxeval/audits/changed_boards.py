"""Refits of one board with changed votes, many at a time: each change is a lane."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import NamedTuple, Self

import jax
import numpy as np

from jaxeval.arrays import Bool, Float, Int, as_leaf
from jaxeval.execution.blas import one_blas_thread
from jaxeval.execution.lanes import LaneRun, Lanes, Task, device_mesh
from jaxeval.execution.precision import on_device
from jaxeval.execution.shapes import REFITS, padded_rows, padded_size
from jaxeval.kernels import batch
from jaxeval.kernels.changed_votes import Change, Changed, FullBoard
from jaxeval.kernels.solve import Status, Terms
from jaxeval.ratings.boards import TOLERANCE_LOGIT, Board
from jaxeval.resampling.units import pad

#: Limits of chord steps and of Newton's steps. A change that leaves a model without a finite rating uses up the latter.
_CHORD_STEPS, _NEWTON_STEPS = 30, 25
#: Entries of a lane, at least, and by what factor they grow: each number of them is compiled.
_FEWEST_ENTRIES, _STEP = 64, 4
_BYTES_PER_WORD = 10


class Entries(NamedTuple):
    """Changes of L lanes: K entries each, of which those without weight and points are padding."""

    first: Int  # (L, K) models
    second: Int
    weight: Float  # (L, K) added to the weight of the votes between them
    points: Float  # (L, K) added to the points of the first model


class Refitted(NamedTuple):
    """L changed boards of M models."""

    theta: Float  # (L, M)
    converged: Bool  # (L,)
    pull: Float  # (L, M) inverse information times the difference of two models


@dataclass(frozen=True, eq=False)
class ChangedBoards:
    """A fitted board, ready to be refitted with changes."""

    board: Board
    run: LaneRun
    size: int = field(default=0)

    @classmethod
    def of(cls, board: Board, run: LaneRun) -> Self:
        """The changes of a board by logits, without a ridge."""
        return cls(board, replace(run, advance=lambda n: None), padded_size(len(board.theta)))

    @cached_property
    def inverse(self) -> Float:
        """(M, M) pseudo-inverse of the information."""
        return self.board.inverse_information()

    @cached_property
    def _full(self) -> FullBoard:
        n, wins = np.zeros((2, self.size, self.size))
        self.board.fill_rated_tables(n, wins)
        inverse = pad(self.inverse, (self.size, self.size))
        full: FullBoard = on_device(FullBoard(*(as_leaf(x, np.float64) for x in (n, wins.sum(1), inverse))))
        return full

    def refit(self, entries: Entries, start: Float, pairs: Int, which: Int, section: str) -> Refitted:
        """The boards of the lanes ``which``; the others come back as zeros that did not converge.

        Args:
            entries: what each of all L lanes changes.
            start: (L, M) log-strengths to start from.
            pairs: (L, 2) the models whose difference is asked for.
            which: positions among the lanes.
            section: names this part of the work in a checkpoint.
        """
        n_entries = _FEWEST_ENTRIES
        while n_entries < entries.first.shape[1]:
            n_entries *= _STEP
        widths = [(0, 0), (0, n_entries - entries.first.shape[1])]
        first, second, weight, points = (padded_rows(np.pad(x, widths)) for x in entries)
        change: Change = on_device(
            Change(
                first=as_leaf(first, np.int32),
                second=as_leaf(second, np.int32),
                weight=as_leaf(weight, np.float64),
                points=as_leaf(points, np.float64),
                start=as_leaf(padded_rows(np.pad(start, [(0, 0), (0, self.size - start.shape[1])])), np.float64),
                above=as_leaf(padded_rows(pairs[:, 0]), np.int32),
                below=as_leaf(padded_rows(pairs[:, 1]), np.int32),
            )
        )
        lanes = Lanes(np.zeros(len(start), np.int64), np.arange(len(start)))
        results = Changed(
            theta=as_leaf(np.zeros((len(start), self.size)), np.float64),
            status=as_leaf(np.full(len(start), Status.STEP_LIMIT), np.int8),
            n_steps=as_leaf(np.zeros(len(start)), np.int32),
            grad_norm=as_leaf(np.zeros(len(start)), np.float64),
            pull=as_leaf(np.zeros((len(start), self.size)), np.float64),
        )
        with one_blas_thread():
            self.run.run(self._task(change, False), lanes, which, results, f"{section}-chord")
            status = np.asarray(results.status)
            left = which[(status[which] != Status.CONVERGED) & (status[which] != Status.TOO_FEW)]
            self.run.run(self._task(change, True), lanes, left, results, f"{section}-newton")
        m = len(self.board.theta)
        return Refitted(np.asarray(results.theta)[:, :m], status == Status.CONVERGED, np.asarray(results.pull)[:, :m])

    def _task(self, change: Change, newton: bool) -> Task:
        terms = Terms.of(0.0, TOLERANCE_LOGIT, _NEWTON_STEPS if newton else _CHORD_STEPS)
        call = partial(batch.refit_changed, self._full, change, device_mesh(), terms, newton=newton)
        words = (5 if newton else 3) * self.size**2 + 4 * change.first.shape[-1]
        held = 2 * sum(x.nbytes for x in jax.tree.leaves((self._full, change)))
        return Task(call, REFITS, words, lane_bytes=_BYTES_PER_WORD * words, fixed_bytes=held)
