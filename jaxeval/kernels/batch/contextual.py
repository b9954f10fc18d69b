"""Fits with covariates or a tie model, and their refits over resamples."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh

from jaxeval.kernels import (
    battle_rows,
    connectivity,
    contextual,
    lane_draws,
    resample,
)
from jaxeval.kernels.batch.chunks import over_devices, run_chunks
from jaxeval.kernels.batch.refits import CHORD, NEWTON, SCALED_CHORD


class ContextualProblem(NamedTuple):
    """One slice with covariates or a tie model: what is resampled, and the full-data fit that refits start from."""

    units: resample.Units
    rows: battle_rows.Rows
    stream: Array  # () uint64
    phi: Array  # (P,) full-data parameters
    inverse: Array  # (P, P) pseudo-inverse of the full-data information
    information_diagonal: Array  # (P,)
    free: Array  # (D + 1,) bool: coefficients that are fitted, and t
    main_battles: Array  # (M,) as in `Problem`


class ContextualRefits(NamedTuple):
    """Lanes of refitted resamples with covariates or a tie model."""

    phi: Array  # (..., P)
    status: Array  # (...) int8, of `solve`
    n_steps: Array  # (...) int32
    grad_norm: Array  # (...)
    standing: Array  # (..., M) int8, of `connectivity`; all IDENTIFIED unless the search was asked for


class ContextualMethod(NamedTuple):
    """Static choices, as in `Method`."""

    ties: int  # of `tie_models`
    scheme: resample.DrawScheme
    count_dtype: type  # of a row's draws
    solver: int  # as in `Method`, or SCALED_CHORD
    max_steps: int


class ContextualFit(NamedTuple):
    """A full-data fit of P parameters."""

    phi: Array  # (P,)
    status: Array
    n_steps: Array
    grad_norm: Array
    inverse: Array  # (P, P) pseudo-inverse of the information
    diagonal: Array  # (P,) of the information


@partial(jax.jit, static_argnames=("ties", "max_steps"))
def fit_contextual(
    rows: battle_rows.Rows, count: Array, start: Array, active: Array, free: Array, ridge: Array, tolerance: Array,
    ties: int, max_steps: int,
) -> ContextualFit:  # fmt: skip
    """Newton's method on one slice: ``count`` (T, E, G) battles, ``start`` (P,), ``active`` (M,), ``free`` (D + 1,)."""
    n_models = len(active)
    count = battle_rows.among(rows, count[..., None], active[:, None])
    moves = contextual.alive(ties, rows, count, active[:, None], free)
    end, matrix = contextual.newton(ties, rows, start[:, None], count, moves, ridge, tolerance, max_steps)
    phi = end.phi[:, 0]
    diagonal = battle_rows.diagonal(matrix[0], moves[:, 0], ridge, n_models)
    inverse = battle_rows.inverse_information(matrix[0], moves[:, 0], n_models)
    return ContextualFit(phi, end.status[0], end.n_steps[0], end.grad_norm[0], inverse, diagonal)


def _count_rows(problem: ContextualProblem, method: ContextualMethod, seed: Array, numbers: Array) -> Array:
    """(T, E, G, R) draws of every row's unit in the resamples ``numbers`` (R,)."""
    drawn = lane_draws.draw(problem.units, method.scheme, method.count_dtype, seed, problem.stream, numbers)
    return battle_rows.counts_of_rows(problem.rows, drawn)


def _refit_contextual_chunk(
    problem: ContextualProblem, base: contextual.Base, method: ContextualMethod, seed: Array, ridge: Array,
    tolerance: Array, numbers: Array,
) -> ContextualRefits:  # fmt: skip
    """Draw and refit the resamples ``numbers`` (R,) of one slice."""
    rows, n_models = problem.rows, problem.main_battles.shape[0]
    count = _count_rows(problem, method, seed, numbers)
    standing = jnp.zeros((numbers.shape[0], n_models), jnp.int8)
    if method.solver == CHORD:
        end = contextual.chord(method.ties, rows, base, count, ridge, tolerance, method.max_steps)
        return ContextualRefits(end.phi.T, end.status, end.n_steps, end.grad_norm, standing)
    tables = battle_rows.pair_tables(rows, count, n_models)
    standing = jax.vmap(lambda n, wins: connectivity.standing(n, wins, problem.main_battles))(*tables)
    # With a ridge every model has a finite rating, but those that the data leave open are still told apart.
    active = ((standing == connectivity.IDENTIFIED) | (ridge[0] > 0)).T
    count = battle_rows.among(rows, count, active)
    moves = contextual.alive(method.ties, rows, count, active, problem.free)
    if method.solver == NEWTON:
        start = jnp.broadcast_to(problem.phi[:, None], (*problem.phi.shape, numbers.shape[0]))
        end, _ = contextual.newton(method.ties, rows, start, count, moves, ridge, tolerance, method.max_steps)
    else:
        solve = contextual.scaled_chord if method.solver == SCALED_CHORD else contextual.newton_cg
        end = solve(method.ties, rows, base, count, moves, ridge, tolerance, method.max_steps)
    return ContextualRefits(end.phi.T, end.status, end.n_steps, end.grad_norm, standing)


@partial(jax.jit, static_argnames=("method", "mesh"))
def refit_contextual(
    problem: ContextualProblem,
    method: ContextualMethod,
    mesh: Mesh,
    seed: Array,
    ridge: Array,
    tolerance: Array,
    numbers: Array,
    n_chunks: Array,
) -> ContextualRefits:
    """Refit the resamples ``numbers`` (devices, T, R) of one slice, chunk by chunk, as `refit` does; ``ridge`` (P,)."""

    def on_device(
        problem: ContextualProblem, seed: Array, ridge: Array, tolerance: Array, numbers: Array, n_chunks: Array
    ) -> ContextualRefits:
        base = contextual.at_estimate(
            method.ties, problem.rows, problem.phi, len(problem.main_battles), problem.inverse,
            problem.information_diagonal,
        )  # fmt: skip

        def chunk(t: Array) -> ContextualRefits:
            return _refit_contextual_chunk(problem, base, method, seed, ridge, tolerance, numbers[0, t])

        return run_chunks(chunk, numbers.shape[1], n_chunks[0])

    return over_devices(on_device, mesh, (problem, seed, ridge, tolerance), (numbers, n_chunks))


@partial(jax.jit, static_argnames="method")
def draw_contextual(problem: ContextualProblem, method: ContextualMethod, seed: Array, number: Array) -> Array:
    """(T, E, G) draws of every row's unit in one resample, as `refit_contextual` has them: to reproduce or audit it."""
    return _count_rows(problem, method, seed, number[None])[..., 0]
