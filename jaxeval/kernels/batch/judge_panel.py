"""Fits and refits of panels of judges: the lanes of a chunk side by side in the last axis."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh

from jaxeval.kernels import connectivity, judge_panel, lane_draws, resample
from jaxeval.kernels.batch.chunks import Chunks, over_lanes
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.batch.refits import Refits, Solver, rated
from jaxeval.kernels.judge_panel import Contests, Sizes, Verdicts
from jaxeval.kernels.kinds import Bool, Float, Int32, Integer, UInt64
from jaxeval.kernels.solve import Solution, Status, Terms


class PanelEntries(NamedTuple):
    """What the draws add to: a grid, each of whose columns belongs to one contest."""

    unit: Int32[Array, "rows columns"] | None  # flat number of the unit that draws the entry; None: its own place
    weight: Float[Array, "rows columns"]  # that a draw of the unit adds, 0 where there is none
    target: Float[Array, "rows columns"]
    contest: Int32[Array, "columns"]


class PanelProblem(NamedTuple):
    """One slice: what is resampled, and the full-data fit that refits start from."""

    units: resample.Units
    entries: PanelEntries
    contests: Contests
    stream: UInt64[Array, ""]  # names the slice's random numbers
    start: Float[Array, "P"]
    weights: Float[Array, "K"]  # of the gauge
    inverse: Float[Array, "P P"]  # of the information, within the gauge
    moves: Bool[Array, "P"]  # what is fitted
    main_verdicts: Float[Array, "M"]  # full-data verdicts on the models of its main group, 0 for the others


class PanelForm(NamedTuple):
    """Static choices, as in `RefitForm`."""

    scheme: resample.DrawScheme
    count_dtype: type  # of a unit's draws
    sizes: Sizes
    solver: Solver


@program("sizes")
def fit_panel(
    contests: Contests,
    verdicts: Verdicts,
    start: Float[Array, "P"],
    weights: Float[Array, "K"],
    moves: Bool[Array, "P"],
    sizes: Sizes,
    terms: Terms,
) -> Solution:
    """The fit of the full data, whose ``verdicts`` are (C, 1)."""
    end = judge_panel.newton(contests, verdicts, start[:, None], weights, moves[:, None], sizes, terms)
    return jax.tree.map(lambda x: x[..., 0], end)


def _verdicts(
    problem: PanelProblem, form: PanelForm, seed: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> Verdicts:
    """Verdicts of the resamples ``numbers``."""
    draws = lane_draws.draw(problem.units, form.scheme, form.count_dtype, seed, problem.stream, numbers)
    own, n_contests = problem.entries, len(problem.contests.first)
    n, points = lane_draws.sums(draws, own.unit, own.contest, n_contests, (own.weight, own.weight * own.target))
    return Verdicts(n, points)


@program("form", "mesh")
def refit_panels(
    problem: PanelProblem, form: PanelForm, mesh: Mesh, seed: Integer[Array, ""], terms: Terms, chunks: Chunks
) -> Refits:
    """Refit resamples of one slice, as `refit` does; every solver looks for separated models first.

    Parameters of a judge that are not fitted are NaN. Chord steps leave out resamples in which other parameters move
    than in the full data.
    """

    def chunk(numbers: Array, problem: PanelProblem, seed: Array, terms: Terms) -> Refits:
        contests, sizes = problem.contests, form.sizes
        verdicts = _verdicts(problem, form, seed, numbers)
        tables = judge_panel.pair_tables(contests, verdicts, sizes)
        standing = jax.vmap(lambda n, wins: connectivity.standing(n, wins, problem.main_verdicts))(*tables)
        found = rated(standing, terms.ridge).T & problem.moves[: sizes.models, None]
        verdicts, moves = judge_panel.among(contests, verdicts, found, problem.moves, sizes)
        if form.solver == Solver.CHORD:
            alike = jnp.all(moves == problem.moves[:, None], 0)  # other lanes, without verdicts, end at once
            own = Verdicts(*(jnp.where(alike, x, 0.0) for x in verdicts))
            end = judge_panel.chord(contests, own, problem.start, problem.inverse, sizes, terms)
            end = end._replace(status=jnp.where(alike, end.status, Status.STEP_LIMIT).astype(jnp.int8))
        else:
            start, weights = problem.start[:, None], problem.weights
            end = judge_panel.newton(contests, verdicts, start, weights, moves, sizes, terms)
        fitted = moves | (jnp.arange(len(moves)) < sizes.models)[:, None]
        theta = jnp.where(fitted, end.theta, jnp.nan)
        return Refits(theta.T, end.status, end.n_steps, end.grad_norm, standing)

    return over_lanes(chunk, mesh, chunks, (problem, seed, terms))


@program("form")
def draw_panel(
    problem: PanelProblem, form: PanelForm, seed: Integer[Array, ""], number: Integer[Array, ""]
) -> Verdicts:
    """Verdicts of one resample (C,), as `refit_panels` has them: to reproduce or audit it."""
    return Verdicts(*(x[:, 0] for x in _verdicts(problem, form, seed, number[None])))
