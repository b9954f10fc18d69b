"""Refit one board with some votes changed (dropped, flipped or added), and boards simulated at its fit, in lanes."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh

from jaxeval.kernels import dense_solve, misfit, pair_tables
from jaxeval.kernels.batch.programs import Chunks, over_lanes, program
from jaxeval.kernels.batch.refits import Solver
from jaxeval.kernels.kinds import Bool, Float, Int8, Int32, Integer
from jaxeval.kernels.links import Link
from jaxeval.kernels.misfit import Design, Measures, Misfit
from jaxeval.kernels.pair_tables import PairTable, row_sums
from jaxeval.kernels.solve import Status, Terms, newton_cg_step

#: A model with less weight of votes than this has none: sums of weights come with rounding errors.
_NO_VOTES = 1e-9


class FullBoard(NamedTuple):
    """The votes of a board as they are, and what its fit knows."""

    n: Float[Array, "M M"]  # weight of the votes between the models that are rated
    score: Float[Array, "M"]  # what each took of it
    inverse: Float[Array, "M M"]  # pseudo-inverse of the information


class Change(NamedTuple):
    """What is changed: K entries, which add up; entries of weight 0 are padding."""

    first: Int32[Array, "... K"]  # models of each entry
    second: Int32[Array, "... K"]
    weight: Float[Array, "... K"]  # added to the weight of the votes between both; negative for dropped votes
    points: Float[Array, "... K"]  # added to the points that the first model took of it
    start: Float[Array, "... M"]  # log-strengths that the refit starts from
    above: Int32[Array, "..."]  # two models, whose difference is asked for
    below: Int32[Array, "..."]


class Changed(NamedTuple):
    """The refit of a changed board."""

    theta: Float[Array, "... M"]
    status: Int8[Array, "..."]  # a `Status`; `TOO_FEW` where one of the two models has no votes left
    n_steps: Int32[Array, "..."]
    grad_norm: Float[Array, "..."]
    pull: Float[Array, "... M"]  # inverse information times (above - below); times a vote's score, the pull of the vote


def refit(board: FullBoard, change: Change, terms: Terms, newton: bool) -> Changed:
    """Refit the board with the change: by steps of the full board's information, or by Newton's own.

    The pull comes from a few conjugate gradients: it chooses which votes to change next, and no result depends on it.
    """
    i, j = change.first, change.second
    n = board.n.at[i, j].add(change.weight).at[j, i].add(change.weight)
    score = board.score.at[i].add(change.points).at[j].add(change.weight - change.points)
    table = PairTable(n, score)
    active = row_sums(n) > _NO_VOTES
    if newton:
        found = dense_solve.newton(Link.LOGIT, table, active, terms, change.start)
    else:
        gradient = partial(pair_tables.gradient, Link.LOGIT, ridge=terms.ridge)
        found = dense_solve.chord(gradient, table, change.start, board.inverse, terms)
    difference = jnp.zeros_like(found.theta).at[change.above].add(1.0).at[change.below].add(-1.0)
    v = pair_tables.curvature(Link.LOGIT, found.theta, table)
    diagonal = row_sums(v)
    pull = newton_cg_step(
        lambda p: diagonal * p - jnp.matmul(v, p, precision="highest"),
        lambda r: jnp.matmul(board.inverse, r, precision="highest"),
        diagonal,
        difference,
    )
    rated = active[change.above] & active[change.below]
    status = jnp.where(rated, found.status, jnp.int8(Status.TOO_FEW))
    return Changed(found.theta, status, found.n_steps, found.grad_norm, pull)


@program("mesh", "newton")
def refit_changed(
    board: FullBoard, changes: Change, mesh: Mesh, terms: Terms, chunks: Chunks, *, newton: bool = False
) -> Changed:
    """Refits with the ``changes`` (numbers), as `refit`: leading axes (devices, T, R)."""

    def chunk(numbers: Array, board: FullBoard, changes: Change, terms: Terms) -> Changed:
        own = jax.tree.map(lambda x: x[numbers], changes)
        return jax.vmap(lambda change: refit(board, change, terms, newton))(own)

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
                gradient = partial(pair_tables.gradient, Link.LOGIT, ridge=terms.ridge)
                end = dense_solve.chord(gradient, table, boards.start, boards.inverse, terms)
            else:
                end = dense_solve.newton(Link.LOGIT, table, boards.active, terms)
            return misfit.misfit(misfit.measures(design, points, ties, end.theta), end.status)

        return jax.vmap(one)(numbers)

    return over_lanes(chunk, mesh, chunks, (boards, terms))
