"""Misfit of simulated boards, refitted, a lane each."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh

from jaxeval.kernels import dense_solve, likelihood, misfit
from jaxeval.kernels.batch.chunks import Chunks, over_lanes
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.batch.refits import Solver
from jaxeval.kernels.kinds import Bool, Float, Integer
from jaxeval.kernels.links import Link
from jaxeval.kernels.misfit import Design, Measures, Misfit
from jaxeval.kernels.pair_tables import PairTable, row_sums
from jaxeval.kernels.solve import Terms


@program()
def measure(design: Design, points: Float[Array, "Q"], ties: Integer[Array, "Q"], theta: Float[Array, "M"]) -> Measures:
    """What one board's votes are beside strengths."""
    return misfit.measures(design, points, ties, theta)


@program("mesh", "solver")
def refit_misfit(
    design: Design,
    wins: Integer[Array, "L Q"],
    ties: Integer[Array, "L Q"],
    start: Float[Array, "M"],
    inverse: Float[Array, "M M"],
    active: Bool[Array, "M"],
    mesh: Mesh,
    solver: Solver,
    terms: Terms,
    chunks: Chunks,
) -> Misfit:
    """Misfit of boards (numbers) with simulated ``wins`` of the first models and ``ties``, after refits of strengths.

    Results have the leading axes (devices, T, R).
    """

    def chunk(numbers: Array, design: Design, wins: Array, ties: Array, terms: Terms) -> Misfit:
        i = jnp.arange(len(start))
        n = design.n[design.position]

        def one(number: Array) -> Misfit:
            points = wins[number] + ties[number] / 2
            first = points[design.position]
            table = PairTable(n, row_sums(jnp.where(i[:, None] < i, first, n - first)))
            if solver == Solver.CHORD:
                gradient = partial(likelihood.gradient, Link.LOGIT, ridge=terms.ridge)
                end = dense_solve.chord(gradient, table, start, inverse, terms)
            else:
                end = dense_solve.newton(Link.LOGIT, table, active, terms)
            return misfit.misfit(misfit.measures(design, points, ties[number], end.theta), end.status)

        return jax.vmap(one)(numbers)

    return over_lanes(chunk, mesh, chunks, (design, wins, ties, terms))
