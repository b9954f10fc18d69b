"""Refits of one board with changed votes, and of boards simulated at its fit: one change or board per lane."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh

from jaxeval.kernels import changed_votes, dense_solve, likelihood, misfit
from jaxeval.kernels.batch.chunks import Chunks, over_lanes
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.batch.refits import Solver
from jaxeval.kernels.changed_votes import Change, Changed, FullBoard
from jaxeval.kernels.kinds import Bool, Float, Integer
from jaxeval.kernels.links import Link
from jaxeval.kernels.misfit import Design, Measures, Misfit
from jaxeval.kernels.pair_tables import PairTable, row_sums
from jaxeval.kernels.solve import Terms


@program("mesh", "newton")
def refit_changed(
    board: FullBoard, changes: Change, mesh: Mesh, terms: Terms, chunks: Chunks, *, newton: bool = False
) -> Changed:
    """Refits with the ``changes`` (numbers), as `changed_votes.refit`: leading axes (devices, T, R)."""

    def chunk(numbers: Array, board: FullBoard, changes: Change, terms: Terms) -> Changed:
        own = jax.tree.map(lambda x: x[numbers], changes)
        return jax.vmap(lambda change: changed_votes.refit(board, change, terms, newton))(own)

    return over_lanes(chunk, mesh, chunks, (board, changes, terms))


@program()
def measure(design: Design, points: Float[Array, "Q"], ties: Integer[Array, "Q"], theta: Float[Array, "M"]) -> Measures:
    """`misfit.measures` of one board's votes at strengths ``theta``."""
    return misfit.measures(design, points, ties, theta)


class Simulated(NamedTuple):
    """L boards simulated at a fit, and what their refits start from."""

    design: Design
    wins: Integer[Array, "L Q"]  # of the first models
    ties: Integer[Array, "L Q"]
    start: Float[Array, "M"]
    inverse: Float[Array, "M M"]  # pseudo-inverse of the information of the full data
    active: Bool[Array, "M"]  # models with a finite rating


@program("mesh", "solver")
def refit_misfit(boards: Simulated, mesh: Mesh, solver: Solver, terms: Terms, chunks: Chunks) -> Misfit:
    """Misfit of simulated boards (numbers) after refits of their strengths.

    Results have the leading axes (devices, T, R).
    """

    def chunk(numbers: Array, boards: Simulated, terms: Terms) -> Misfit:
        design, i = boards.design, jnp.arange(len(boards.start))
        n = design.n[design.position]

        def one(number: Array) -> Misfit:
            ties = boards.ties[number]
            points = boards.wins[number] + ties / 2
            first = points[design.position]
            table = PairTable(n, row_sums(jnp.where(i[:, None] < i, first, n - first)))
            if solver == Solver.CHORD:
                gradient = partial(likelihood.gradient, Link.LOGIT, ridge=terms.ridge)
                end = dense_solve.chord(gradient, table, boards.start, boards.inverse, terms)
            else:
                end = dense_solve.newton(Link.LOGIT, table, boards.active, terms)
            return misfit.misfit(misfit.measures(design, points, ties, end.theta), end.status)

        return jax.vmap(one)(numbers)

    return over_lanes(chunk, mesh, chunks, (boards, terms))
