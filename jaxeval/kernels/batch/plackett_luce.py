"""Fits and refits to rankings: the lanes of a chunk side by side in the last axis."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh

from jaxeval.kernels import connectivity, lane_draws, plackett_luce, resample
from jaxeval.kernels.batch.chunks import Chunks, over_lanes
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.batch.refits import Refits, Solver
from jaxeval.kernels.kinds import Bool, Float, Int8, Integer, Num, UInt64
from jaxeval.kernels.plackett_luce import Base, Choices, Use
from jaxeval.kernels.solve import Solution, Terms, pseudo_inverse


class RankingProblem(NamedTuple):
    """One slice: what is resampled, and the full-data fit that refits start from."""

    units: resample.Units
    members: Use  # rankings of each cell (``number``) by unit (``cell``)
    choices: Choices
    stream: UInt64[Array, ""]  # names the slice's random numbers
    base: Base
    is_item: Bool[Array, "M"]  # false for padding
    main_weight: Float[Array, "M"]  # full-data meetings of the items of its main group, 0 for the others


class RankingForm(NamedTuple):
    """Static choices, as in `RefitForm`."""

    scheme: resample.DrawScheme
    count_dtype: type  # of a unit's draws
    n_cells: int
    solver: Solver


def _standing(choices: Choices, count: Num[Array, "C R"], main_weight: Float[Array, "M"]) -> Int8[Array, "M R"]:
    """Standing of every item, see `connectivity.standing_of`."""
    edges = plackett_luce.edges(choices, count, len(main_weight))
    return jax.vmap(lambda edge: connectivity.standing(edge, edge, main_weight))(edges).T


@program()
def fit_rankings(
    choices: Choices, count: Num[Array, "C"], standing: Int8[Array, "M"], is_item: Bool[Array, "M"], terms: Terms
) -> tuple[Solution, Float[Array, "M M"], Float[Array, "M"]]:
    """Newton's method on one slice with ``count`` rankings of every cell, whose items have that ``standing``.

    It also returns the pseudo-inverse of the information, and the diagonal of the information itself.
    """
    m = len(is_item)
    own = plackett_luce.counted_choices(choices, count[:, None].astype(float), m)
    rated = plackett_luce.rated_items(standing[:, None], is_item, terms)
    end, (matrix,) = plackett_luce.newton(choices, own, rated, jnp.zeros((m, 1)), terms)
    active = rated.active[:, 0]
    inverse = pseudo_inverse(matrix, active, m, terms.ridge)
    return jax.tree.map(lambda x: x[..., 0], end), inverse, jnp.where(active, jnp.diagonal(matrix), 0.0)


def _count(
    problem: RankingProblem, form: RankingForm, seed: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> Num[Array, "C R"]:
    """Rankings of every cell in the resamples ``numbers``."""
    drawn = lane_draws.draw(problem.units, form.scheme, form.count_dtype, seed, problem.stream, numbers)
    return plackett_luce.used(problem.members, drawn, form.n_cells)


@program("form", "mesh")
def refit_rankings(
    problem: RankingProblem, form: RankingForm, mesh: Mesh, seed: Integer[Array, ""], terms: Terms, chunks: Chunks
) -> Refits:
    """Refit resamples of one slice, as `refit` does; every solver looks for separated items first."""

    def chunk(numbers: Array, problem: RankingProblem, seed: Array, terms: Terms) -> Refits:
        choices, base = problem.choices, problem.base
        count = _count(problem, form, seed, numbers)
        standing = _standing(choices, count, problem.main_weight)
        rated = plackett_luce.rated_items(standing, problem.is_item, terms)
        own = plackett_luce.counted_choices(choices, count, len(base.theta))
        if form.solver == Solver.CHORD:
            end = plackett_luce.chord(choices, own, rated, base, terms)
        elif form.solver == Solver.NEWTON_CG:
            end = plackett_luce.newton_cg(choices, own, rated, base, terms)
        else:
            end, _ = plackett_luce.newton(choices, own, rated, jnp.zeros(rated.active.shape), terms)
        return Refits(end.theta.T, end.status, end.n_steps, end.grad_norm, standing.T)

    return over_lanes(chunk, mesh, chunks, (problem, seed, terms))


@program("form")
def draw_rankings(
    problem: RankingProblem, form: RankingForm, seed: Integer[Array, ""], number: Integer[Array, ""]
) -> Num[Array, "C"]:
    """Rankings of every cell in one resample, as `refit_rankings` has them: to reproduce or audit it."""
    return _count(problem, form, seed, number[None])[:, 0]
