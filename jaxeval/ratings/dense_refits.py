"""Refits on (M, M) tables: what is drawn, and the cascade of solvers, for slices that share a batched call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from numpy.typing import NDArray

from jaxeval.execution.lanes import Solver, Task, device_mesh
from jaxeval.execution.precision import on_device
from jaxeval.execution.shapes import REFITS
from jaxeval.kernels import batch
from jaxeval.kernels.pair_tables import Layout
from jaxeval.kernels.resample import Packing
from jaxeval.kernels.solve import Terms
from jaxeval.ratings.boards import Board, battles_per_model, inverse_information, main_battles
from jaxeval.ratings.drawn_votes import Entries, VoteGroups, drawn_entries, is_secure_board, packed_word
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.refits import RESULT_BYTES, TOLERANCE_LOGIT, Refitted
from jaxeval.resampling.draw import unit_draw
from jaxeval.resampling.units import as_leaf, pad, rounded, stacked

_MAX_STEPS = {batch.Solver.CHORD: 40, batch.Solver.NEWTON_CG: 60, batch.Solver.NEWTON: 200}
# In turn, each for the lanes that those before it left.
_SOLVERS = {batch.Solver.CHORD: "chord", batch.Solver.NEWTON_CG: "newton-cg", batch.Solver.NEWTON: "newton"}
# What a compiled chunk takes for each number that a lane works on, at most: seen in XLA's own figures.
_BYTES_PER_WORD = 10

#: A model's variance times its own curvature, from which on groups are joined by so little that the few inner steps of
#: Newton-CG may miss it: the ratio is near 1 on a well connected board, and 4,000 where one vote of target 0.01 joins
#: two groups of 600 battles.
_WEAKLY_JOINED = 1e4


@dataclass(frozen=True, eq=False)
class DenseRefits:
    """A `Problem`: secure boards by chord steps, the rest by Newton-CG, what that leaves by dense Newton."""

    problems: batch.Problem  # stacked
    form: batch.RefitForm  # of chord steps
    secure: NDArray[np.bool_]  # (S,) practically no resample separates models
    weakly_joined: NDArray[np.bool_]  # (S,) little curvature joins what much joins within
    options: BootstrapOptions

    @property
    def n_slices(self) -> int:
        """S."""
        return len(self.secure)

    @property
    def n_resamples(self) -> int:
        """B."""
        return self.options.n_resamples

    def solvers(self) -> list[Solver]:
        """Chord steps where no resample separates models, Newton-CG where it finds what joins groups, Newton."""
        takes = {batch.Solver.CHORD: self.secure, batch.Solver.NEWTON_CG: ~self.weakly_joined}
        every = np.ones(self.n_slices, bool)
        return [Solver(code, name, self._task(code), takes.get(code, every)) for code, name in _SOLVERS.items()]

    def _task(self, solver: batch.Solver) -> Task:
        kind, options = self.form.dtype, self.options
        n_lanes, size = self.n_slices * self.n_resamples, self.problems.start.shape[-1]
        problem_bytes = sum(x.nbytes for x in jax.tree.leaves(self.problems))
        program = partial(
            batch.refit,
            self.problems,
            self.form._replace(solver=solver),
            device_mesh(),
            np.uint64(options.seed),
            Terms.of(kind(options.ridge), kind(TOLERANCE_LOGIT[options.dtype]), _MAX_STEPS[solver]),
        )
        return Task(
            program,
            REFITS,
            self._words(solver),
            lane_bytes=_BYTES_PER_WORD * self._words(batch.Solver.NEWTON),
            fixed_bytes=n_lanes * size * RESULT_BYTES + 2 * problem_bytes,
        )

    def _words(self, solver: batch.Solver) -> int:
        """Numbers that a lane works on."""
        units, layout = self.problems.units, self.problems.layout
        words = layout.position[0].size * (1 if solver == batch.Solver.CHORD else 4)
        return int(words + units.size[0].size + (0 if layout.weight is None else 4 * layout.weight[0].size))

    def on_board(self, refitted: Refitted) -> Refitted:
        """The refits as they are: models come in the order of the board, then padding."""
        return refitted


def dense_refits(
    boards: Sequence[Board],
    labels: Sequence[str],
    drawn: Sequence[VoteGroups],
    options: BootstrapOptions,
) -> DenseRefits:
    """The refits of fitted ``boards``, one a slice.

    Args:
        labels: names of the slices, which name their random numbers.
        drawn: per slice, what is drawn together, and within which strata.
    """
    # One pair more than there are: models that never met share an empty one.
    n_pairs = rounded(max(len(board.cells.first) for board in boards) + 1)
    entries, packed, one_column = drawn_entries([b.cells for b in boards], options.drawn, drawn, n_pairs)
    heaviest = max(battles_per_model(board.cells, len(board.theta)).max() for board in boards)
    packing = Packing(packed_word(entries, heaviest) if packed else None)
    draws = [
        unit_draw(e.units, options.drawn, label, packing, e.stratum) for e, label in zip(entries, labels, strict=True)
    ]
    inverse, diagonal = inverse_information(boards)
    size = inverse.shape[-1]
    problems = [
        batch.Problem(
            units=draw.units,
            layout=_layout(board, e, size, n_pairs, packed, one_column),
            stream=as_leaf(draw.stream, np.uint64),
            start=as_leaf(pad(board.theta, (size,)), np.float64),
            inverse=as_leaf(inverse[s], np.float64),
            information_diagonal=as_leaf(diagonal[s], np.float64),
            main_battles=as_leaf(pad(main_battles(board), (size,)), np.float64),
        )
        for s, (board, draw, e) in enumerate(zip(boards, draws, entries, strict=True))
    ]
    form = batch.RefitForm(
        scheme=options.drawn,
        packing=packing,
        n_pairs=n_pairs,
        solver=batch.Solver.CHORD,
        dtype=np.dtype(options.dtype).type,
        link=options.response.link,
    )
    worth = np.diagonal(inverse, axis1=-2, axis2=-1) * diagonal
    return DenseRefits(
        problems=on_device(stacked(problems)),
        form=form,
        secure=np.array([is_secure_board(board, own.clusters) for board, own in zip(boards, drawn, strict=True)]),
        weakly_joined=worth.max(-1) > _WEAKLY_JOINED,
        options=options,
    )


def _layout(board: Board, entries: Entries, size: int, n_pairs: int, packed: bool, one_column: bool) -> Layout:
    cells = board.cells
    position = np.full((size, size), n_pairs - 1, np.int32)
    pairs = np.arange(len(cells.first), dtype=np.int32)
    position[cells.first, cells.second] = position[cells.second, cells.first] = pairs
    factor = None
    if board.pair_weight is not None:
        factor = np.zeros((size, size))
        factor[cells.first, cells.second] = factor[cells.second, cells.first] = board.pair_weight
    return Layout(
        position=as_leaf(position, np.int32),
        pair_weight=None if factor is None else as_leaf(factor, np.float64),
        weight=None if packed else as_leaf(entries.weight, np.float64),
        target=None if packed else as_leaf(entries.target, np.float64),
        unit=None if entries.unit is None else as_leaf(entries.unit, np.int32),
        pair=None if one_column else as_leaf(entries.pair, np.int32),
    )
