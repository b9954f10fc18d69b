"""Refits of boards of few human outcomes and many of a judge: lanes last in the sums, first on tables of models."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh

from jaxeval.kernels import connectivity, dense_solve, lane_draws, likelihood, prediction_powered, resample
from jaxeval.kernels.batch.chunks import Chunks, over_lanes
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.batch.refits import Refits, Solver, rated, stored
from jaxeval.kernels.kinds import Bool, Float, Int8, Int32, Integer, Num, Real, UInt64
from jaxeval.kernels.links import Link
from jaxeval.kernels.pair_tables import PairTable, row_sums
from jaxeval.kernels.prediction_powered import Entries, Form, PairSums, Powered, Tuning
from jaxeval.kernels.solve import Solution, Terms


class PoweredProblem(NamedTuple):
    """One slice: what is resampled, and the full-data fit that refits start from."""

    units: resample.Units
    entries: Entries
    stream: UInt64[Array, ""]  # names the slice's random numbers
    position: Int32[Array, "M M"]  # the pair of (i, j) and (j, i); the last, an empty one, if they never met
    tuning: Tuning
    lam: Float[Array, ""]  # NaN: the best one of each resample
    start: Float[Array, "M"]
    inverse: Float[Array, "M M"]
    information_diagonal: Float[Array, "M"]
    main_battles: Float[Array, "M"]  # full-data battles of the models of its main group, 0 for the others


class PoweredForm(NamedTuple):
    """Static choices, as in `RefitForm`."""

    scheme: resample.DrawScheme
    count_dtype: type  # of a unit's draws
    n_pairs: int
    solver: Solver
    form: Form


@program("form")
def tune(sums: PairSums, form: Form, tuning: Tuning, lam: Real[Array, ""]) -> Powered:
    """`prediction_powered.powered` of the full data, whose ``sums`` are (P, 1)."""
    return prediction_powered.powered(sums, form, tuning, lam)


@program()
def fit_powered(
    n: Float[Array, "M M"],
    points: Float[Array, "M M"],
    standing: Int8[Array, "M"],
    is_model: Bool[Array, "M"],
    terms: Terms,
) -> tuple[Solution, Int8[Array, "M"], Float[Array, "M M"], Float[Array, "M"]]:
    """Newton's method on the full data, whose models (and padding) have that ``standing`` in the graph of who met.

    It also returns the standing of all, the pseudo-inverse of the information, and the diagonal of the information
    itself.
    """
    table, found = _table(n, points, standing, terms)
    active = rated(found, terms.ridge) & is_model
    end = dense_solve.newton(Link.LOGIT, table, active, terms, jnp.zeros(len(n)))
    return end, found, *dense_solve.inverse_information(Link.LOGIT, end.theta, table, terms.ridge, active)


def _table(
    n: Float[Array, "M M"], points: Float[Array, "M M"], standing: Int8[Array, "M"], terms: Terms
) -> tuple[PairTable, Int8[Array, "M"]]:
    """What is fitted, and the standing of all models: with a ridge nobody is left out."""
    less, own, found = prediction_powered.without_optimum(n, points, standing)
    held = terms.ridge > 0
    return PairTable(jnp.where(held, n, less), row_sums(jnp.where(held, points, own))), found


def _sums(
    problem: PoweredProblem, form: PoweredForm, seed: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> PairSums:
    """Sums by pair of the resamples ``numbers``."""
    draws = lane_draws.draw(problem.units, form.scheme, form.count_dtype, seed, problem.stream, numbers)
    return prediction_powered.pair_sums(problem.entries, draws, form.n_pairs)


@program("form", "mesh")
def refit_powered(
    problem: PoweredProblem, form: PoweredForm, mesh: Mesh, seed: Integer[Array, ""], terms: Terms, chunks: Chunks
) -> Refits:
    """Refit resamples of one slice, as `refit` does; lam and the gain follow the strengths."""

    def chunk(numbers: Array, problem: PoweredProblem, seed: Array, terms: Terms) -> Refits:
        sums = _sums(problem, form, seed, numbers)
        powered = prediction_powered.powered(sums, form.form, problem.tuning, problem.lam)
        on_tables = jax.vmap(partial(_spread, problem))
        shape = problem.position.shape
        if form.solver == Solver.CHORD:
            score = prediction_powered.by_model(
                problem.tuning, powered.points, powered.n - powered.points, len(problem.start)
            )
            (n,) = stored(on_tables, (powered.n.T,), shape)
            refits = jax.vmap(partial(_chord, problem, terms))(n, score.T)
        else:
            n, points = stored(on_tables, (powered.n.T, powered.points.T), shape)
            refits = jax.vmap(partial(_solve, problem, form, terms))(n, points)
        extra = jnp.stack([powered.lam, powered.gain], 1)
        return refits._replace(theta=jnp.concatenate([refits.theta, extra], 1))

    return over_lanes(chunk, mesh, chunks, (problem, seed, terms))


@program("form")
def draw_powered(
    problem: PoweredProblem, form: PoweredForm, seed: Integer[Array, ""], number: Integer[Array, ""]
) -> PairSums:
    """Sums of one resample (P,), as `refit_powered` has them: to reproduce or audit it."""
    return PairSums(*(x[:, 0] for x in _sums(problem, form, seed, number[None])))


def _spread(problem: PoweredProblem, statistics: tuple[Num[Array, "P"], ...]) -> tuple[Num[Array, "M M"], ...]:
    return tuple(x.at[problem.position].get(mode="promise_in_bounds") for x in statistics)


def _chord(problem: PoweredProblem, terms: Terms, n: Float[Array, "M M"], score: Float[Array, "M"]) -> Refits:
    of_link = partial(likelihood.gradient, Link.LOGIT, ridge=terms.ridge)
    end = dense_solve.chord(of_link, PairTable(n, score), problem.start, problem.inverse, terms)
    return Refits(*end, jnp.zeros(len(score), jnp.int8))


def _solve(
    problem: PoweredProblem, form: PoweredForm, terms: Terms, n: Float[Array, "M M"], first: Float[Array, "M M"]
) -> Refits:
    """Refit the models with a finite strength by conjugate gradients or factors.

    ``first`` are the points of each pair's first model.
    """
    i = jnp.arange(len(n))
    own = jnp.where(i[:, None] < i, first, n - first)
    # Models compare as soon as they met: their points may lie outside of what battles can give.
    table, standing = _table(n, own, connectivity.standing(n, n, problem.main_battles), terms)
    active = rated(standing, terms.ridge)
    if form.solver == Solver.NEWTON:
        end = dense_solve.newton(Link.LOGIT, table, active, terms, problem.start)
    else:
        diagonal = problem.information_diagonal
        end = dense_solve.newton_cg(Link.LOGIT, table, problem.start, problem.inverse, diagonal, terms)
    return Refits(*end, standing)
