"""Fits with covariates or a tie model, and their refits over resamples."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh

from jaxeval.kernels import battle_rows, connectivity, contextual, lane_draws, resample
from jaxeval.kernels.batch.chunks import Chunks, over_lanes
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.batch.refits import Refits, Solver, rated
from jaxeval.kernels.kinds import Bool, Float, Int8, Int32, Integer, Num, UInt64
from jaxeval.kernels.solve import Terms, pseudo_inverse
from jaxeval.kernels.tie_models import Response


class ContextualProblem(NamedTuple):
    """One slice with covariates or a tie model: what is resampled, and the full-data fit that refits start from."""

    units: resample.Units
    rows: battle_rows.Rows
    stream: UInt64[Array, ""]
    phi: Float[Array, "P"]  # full-data parameters
    inverse: Float[Array, "P P"]  # pseudo-inverse of the full-data information
    information_diagonal: Float[Array, "P"]
    free: Bool[Array, "_"]  # which of the D coefficients are fitted, and whether t is
    main_battles: Float[Array, "M"]  # as in `Problem`


class ContextualForm(NamedTuple):
    """Static choices, as in `RefitForm`."""

    response: Response
    scheme: resample.DrawScheme
    count_dtype: type  # of a row's draws
    solver: Solver


class ContextualFit(NamedTuple):
    """A full-data fit of P parameters."""

    phi: Float[Array, "P"]
    status: Int8[Array, ""]
    n_steps: Int32[Array, ""]
    grad_norm: Float[Array, ""]
    inverse: Float[Array, "P P"]  # pseudo-inverse of the information
    diagonal: Float[Array, "P"]  # of the information


@program("response")
def fit_contextual(
    rows: battle_rows.Rows,
    count: Num[Array, "T E G"],
    start: Float[Array, "P"],
    active: Bool[Array, "M"],
    free: Bool[Array, "D+1"],
    response: Response,
    terms: Terms,
) -> ContextualFit:
    """Newton's method from ``start`` on one slice: ``count`` battles of ``active`` models, ``free`` parameters."""
    n_models = len(active)
    count = battle_rows.among(rows, count[..., None], active[:, None])
    moves = contextual.alive(response, rows, count, active[:, None], free)
    end, (matrix,) = contextual.newton(response, rows, start[:, None], count, moves, terms)
    moves = moves[:, 0]
    return ContextualFit(
        phi=end.theta[:, 0],
        status=end.status[0],
        n_steps=end.n_steps[0],
        grad_norm=end.grad_norm[0],
        inverse=pseudo_inverse(matrix, moves, n_models, terms.ridge[0]),
        diagonal=jnp.where(moves, jnp.diagonal(matrix), 0.0),
    )


def _count_rows(
    problem: ContextualProblem, form: ContextualForm, seed: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> Num[Array, "T E G R"]:
    """Draws of every row's unit in the resamples ``numbers``."""
    drawn = lane_draws.draw(problem.units, form.scheme, form.count_dtype, seed, problem.stream, numbers)
    return battle_rows.counts_of_rows(problem.rows, drawn)


def _refit_contextual_chunk(
    problem: ContextualProblem,
    base: contextual.Base,
    form: ContextualForm,
    seed: Integer[Array, ""],
    terms: Terms,
    numbers: Integer[Array, "R"],
) -> Refits:
    """Draw and refit the resamples ``numbers`` of one slice."""
    rows, n_models = problem.rows, problem.main_battles.shape[0]
    count = _count_rows(problem, form, seed, numbers)
    if form.solver == Solver.CHORD:
        end = contextual.chord(form.response, rows, base, count, terms)
        nobody = jnp.zeros((numbers.shape[0], n_models), jnp.int8)
        return Refits(end.theta.T, end.status, end.n_steps, end.grad_norm, nobody)
    tables = battle_rows.pair_tables(rows, count, n_models)
    standing = jax.vmap(lambda n, wins: connectivity.standing(n, wins, problem.main_battles))(*tables)
    active = rated(standing, terms.ridge[0]).T
    count = battle_rows.among(rows, count, active)
    moves = contextual.alive(form.response, rows, count, active, problem.free)
    if form.solver == Solver.NEWTON:
        end, _ = contextual.newton(form.response, rows, problem.phi[:, None], count, moves, terms)
    else:
        solve = contextual.scaled_chord if form.solver == Solver.SCALED_CHORD else contextual.newton_cg
        end = solve(form.response, rows, base, count, moves, terms)
    return Refits(end.theta.T, end.status, end.n_steps, end.grad_norm, standing)


@program("form", "mesh")
def refit_contextual(
    problem: ContextualProblem, form: ContextualForm, mesh: Mesh, seed: Integer[Array, ""], terms: Terms, chunks: Chunks
) -> Refits:
    """Refit resamples of one slice, as `refit` does.

    The ridge is (P,), a coefficient for each parameter.
    """
    base = contextual.at_estimate(
        form.response, problem.rows, problem.phi, len(problem.main_battles), problem.inverse,
        problem.information_diagonal,
    )  # fmt: skip

    def chunk(numbers: Array, problem: ContextualProblem, base: contextual.Base, seed: Array, terms: Terms) -> Refits:
        return _refit_contextual_chunk(problem, base, form, seed, terms, numbers)

    return over_lanes(chunk, mesh, chunks, (problem, base, seed, terms))


@program("form")
def draw_contextual(
    problem: ContextualProblem, form: ContextualForm, seed: Integer[Array, ""], number: Integer[Array, ""]
) -> Num[Array, "T E G"]:
    """Draws of every row's unit in one resample, as `refit_contextual` has them: to reproduce or audit it."""
    return _count_rows(problem, form, seed, number[None])[..., 0]
