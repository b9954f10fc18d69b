"""Fit boards with covariates or a tie model, and refit their resamples."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxeval.kernels import connectivity, contextual, resample
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.batch.refits import LaneForm, Refits, Solver, lane_draws_of, rated, refit_program
from jaxeval.kernels.kinds import Bool, Float, Integer, Num, UInt64
from jaxeval.kernels.solve import Solution, Terms, pseudo_inverse
from jaxeval.kernels.tie_models import Response


class ContextualProblem(NamedTuple):
    """One slice with covariates or a tie model: what is resampled, and the full-data fit that refits start from."""

    units: resample.Units
    rows: contextual.ContextualRows
    stream: UInt64[Array, ""]
    phi: Float[Array, "P"]  # full-data parameters
    inverse: Float[Array, "P P"]  # pseudo-inverse of the full-data information
    information_diagonal: Float[Array, "P"]
    free: Bool[Array, "_"]  # which of the D coefficients are fitted, and whether t is
    main_battles: Float[Array, "M"]  # as in `PairProblem`


@program("response")
def fit_contextual(
    rows: contextual.ContextualRows,
    count: Num[Array, "T E G"],
    start: Float[Array, "P"],
    active: Bool[Array, "M"],
    free: Bool[Array, "D+1"],
    response: Response,
    terms: Terms,
) -> tuple[Solution, Float[Array, "P P"], Float[Array, "P"]]:
    """Fit one slice by Newton's method from ``start``: ``count`` battles of ``active`` models, ``free`` parameters.

    It also returns the pseudo-inverse of the information, and the diagonal of the information itself.
    """
    n_models = len(active)
    count = contextual.among(rows, count[..., None], active[:, None])
    moves = contextual.alive(response, rows, count, active[:, None], free)
    end, (matrix,) = contextual.newton(response, rows, start[:, None], count, moves, terms)
    moves = moves[:, 0]
    inverse = pseudo_inverse(matrix, moves, n_models, terms.ridge[0])
    return jax.tree.map(lambda x: x[..., 0], end), inverse, jnp.where(moves, jnp.diagonal(matrix), 0.0)


def count_rows(
    problem: ContextualProblem, form: LaneForm, seed: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> Num[Array, "T E G R"]:
    """Draws of every row's unit in the resamples ``numbers``."""
    drawn = lane_draws_of(problem, form, seed, numbers)
    return contextual.counts_of_rows(problem.rows, drawn)


def _at_estimate(problem: ContextualProblem, form: LaneForm) -> tuple[ContextualProblem, contextual.RowBase]:
    """The problem, and its rows at the full data's estimate."""
    n_models = len(problem.main_battles)
    of_fit = problem.phi, n_models, problem.inverse, problem.information_diagonal
    return problem, contextual.at_estimate(form.model, problem.rows, *of_fit)


@partial(refit_program, ready=_at_estimate)
def refit_contextual(
    posed: tuple[ContextualProblem, contextual.RowBase],
    form: LaneForm,
    seed: Integer[Array, ""],
    terms: Terms,
    numbers: Integer[Array, "R"],
) -> Refits:
    """Refit resamples of one slice, as `refit` does. The ridge is (P,), a coefficient for each parameter."""
    problem, base = posed
    rows, n_models = problem.rows, problem.main_battles.shape[0]
    count = count_rows(problem, form, seed, numbers)
    if form.solver == Solver.CHORD:
        end = contextual.chord(form.model, rows, base, count, terms)
        nobody = jnp.zeros((numbers.shape[0], n_models), jnp.int8)
        return Refits(end.theta.T, end.status, end.n_steps, end.grad_norm, nobody)
    wins = contextual.win_tables(rows, count, n_models)
    standing = jax.vmap(lambda wins: connectivity.standing(wins, problem.main_battles))(wins)
    active = rated(standing, terms.ridge[0]).T
    count = contextual.among(rows, count, active)
    moves = contextual.alive(form.model, rows, count, active, problem.free)
    if form.solver == Solver.NEWTON:
        end, _ = contextual.newton(form.model, rows, problem.phi[:, None], count, moves, terms)
    else:
        solve = contextual.scaled_chord if form.solver == Solver.SCALED_CHORD else contextual.newton_cg
        end = solve(form.model, rows, base, count, moves, terms)
    return Refits(end.theta.T, end.status, end.n_steps, end.grad_norm, standing)
