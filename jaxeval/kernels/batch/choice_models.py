"""Fits and refits of models that somebody brings, by their log-probabilities."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array

from jaxeval.kernels import choice_models, lane_draws, resample
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.batch.refits import Refits, Solver, refit_program
from jaxeval.kernels.choice_models import LogProbabilities
from jaxeval.kernels.kinds import Bool, Float, Int32, UInt64
from jaxeval.kernels.solve import Solution, Status, Terms

#: One lane of a model: from its parameters (P,) and what is known of C occasions to log-probabilities (K, C).
LaneModel: TypeAlias = Callable[[Array, Any], Array]
# A resample whose information, scaled, has an eigenvalue under this says nothing of some direction.
_LEAST_KNOWN = 1e-9


class ChoiceProblem(NamedTuple):
    """One slice: what is resampled, and the full-data fit that refits start from."""

    units: resample.Units
    unit: Int32[Array, "rows columns"] | None  # flat number of the unit that draws an entry; None: its own place
    occasion: Int32[Array, "columns"]  # that the entries of a column are of
    shares: tuple[Float[Array, "rows columns"], ...]  # what a draw of an entry adds to each of the K choices
    data: Any  # what the model knows of the C occasions
    stream: UInt64[Array, ""]  # names the slice's random numbers
    start: Float[Array, "P"]
    inverse: Float[Array, "P P"]  # of the information, within the gauge
    gauge: Float[Array, "U P"]
    moves: Bool[Array, "P"]  # false for padding


class ChoiceForm(NamedTuple):
    """Static choices, as in `RefitForm`."""

    scheme: resample.DrawScheme
    count_dtype: type  # of a unit's draws
    model: LaneModel
    solver: Solver


def _of_lanes(model: LaneModel, data: Any) -> LogProbabilities:
    return jax.vmap(lambda phi: model(phi, data), in_axes=-1, out_axes=-1)


@program("model")
def choice_slopes(
    model: LaneModel, data: Any, phi: Float[Array, "P"]
) -> tuple[Float[Array, "K C"], Float[Array, "K C P"]]:
    """Log-probabilities and their derivatives by all parameters."""
    return model(phi, data), jax.jacfwd(lambda phi: model(phi, data))(phi)


@program("model")
def choice_information(
    model: LaneModel, data: Any, counts: Float[Array, "K C"], phi: Float[Array, "P"], ridge: Float[Array, "P"]
) -> Float[Array, "P P"]:
    """The observed information: minus the second derivatives of the log-likelihood less the ridge."""
    of_lane = choice_models.derived(_of_lanes(model, data), counts[..., None], ridge)
    return -jax.jacfwd(lambda phi: of_lane.gradient(phi[:, None])[:, 0])(phi)


@program("model")
def fit_choices(
    model: LaneModel,
    data: Any,
    counts: Float[Array, "K C"],
    start: Float[Array, "P"],
    moves: Bool[Array, "P"],
    gauge: Float[Array, "U P"],
    terms: Terms,
) -> Solution:
    """Newton's method on the full data; the ridge has a coefficient for each parameter."""
    of_lane = choice_models.derived(_of_lanes(model, data), counts[..., None], terms.ridge)
    end = choice_models.newton(of_lane, start[:, None], moves[:, None], gauge, terms)
    return jax.tree.map(lambda x: x[..., 0], end)


@refit_program
def refit_choices(problem: ChoiceProblem, form: ChoiceForm, seed: Array, terms: Terms, numbers: Array) -> Refits:
    """Refit resamples of one slice, as `refit` does.

    A resample that leaves a direction of the parameters open has the status `Status.TOO_FEW`.
    """
    n_lanes, n_occasions = len(numbers), len(jax.tree.leaves(problem.data)[0])
    draws = lane_draws.draw(problem.units, form.scheme, form.count_dtype, seed, problem.stream, numbers)
    counts = jnp.stack(lane_draws.sums(draws, problem.unit, problem.occasion, n_occasions, problem.shares))
    of_lanes = choice_models.derived(_of_lanes(form.model, problem.data), counts, terms.ridge)
    lanes = jnp.broadcast_to(problem.start[:, None], (len(problem.start), n_lanes))
    known = choice_models.determined(of_lanes.information(lanes), problem.moves, problem.gauge, _LEAST_KNOWN)
    if form.solver == Solver.CHORD:
        end = choice_models.chord(of_lanes.gradient, problem.start, problem.inverse, n_lanes, terms)
    else:
        moves = jnp.broadcast_to(problem.moves[:, None], lanes.shape)
        end = choice_models.newton(of_lanes, lanes, moves, problem.gauge, terms)
    status = jnp.where(known, end.status, Status.TOO_FEW).astype(jnp.int8)
    return Refits(end.theta.T, status, end.n_steps, end.grad_norm, jnp.zeros((n_lanes, len(lanes)), jnp.int8))
