"""Any model of choices by its log-probabilities: derivatives by JAX, and the maximum for many resamples at once.

A model is a function from parameters (P, R) to the log-probabilities (K, C, R) of what may be chosen on each of C
occasions; data are counts (K, C, R) of what was chosen. Gradient and information follow, unless a model brings faster
ones. Lanes are the last axis.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxeval.kernels import solve
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.batch.refits import RefitForm, RefitProblem, Refits, Solver, lane_draws_of, refit_program
from jaxeval.kernels.kinds import Array, Bool, Float, Int8, Num, namespace
from jaxeval.kernels.platforms import by_platform, einsum, one_by_one
from jaxeval.kernels.solve import Solution, SolveStep, Status, Terms, capped, centred, loop, solved
from jaxeval.lazy_names import jax, jnp, lax

#: Log-probabilities (K, C, R) by parameters (P, R).
LogProbabilities: TypeAlias = Callable[[Array], Array]
# Every parameter has at least this share of the mean information: it changes the steps and not the solution.
_LEAST = 1e-10
# Of the share of a step that is taken, after one that turned back.
_GROWTH = 1.25


class LaneDerivatives(NamedTuple):
    """Those of each lane's log-likelihood less the ridge, at parameters (P, R)."""

    gradient: Callable[[Array], Array]  # (P, R)
    information: Callable[[Array], Array]  # (R, P, P), expected
    # Gradient, diagonal (P, R) of the information, and what multiplies (P, R) by it; None where there is `information`.
    products: Callable[[Array], tuple[Array, Array, Callable[[Array], Array]]] | None = None


def derived(model: LogProbabilities, counts: Float[Array, "K C R"], ridge: Float[Array, "P"]) -> LaneDerivatives:
    """Return LaneDerivatives by JAX. Lanes do not depend on each other: the gradient of their sum has those of all."""

    def value(phi: Array) -> Array:
        log_p = model(phi)
        return jnp.sum(jnp.where(counts != 0, counts * log_p, 0.0)) - jnp.sum(ridge[:, None] * phi**2)

    def information(phi: Array) -> Array:
        log_p, along = jax.linearize(model, phi)
        weight = jnp.exp(log_p) * jnp.sum(counts, 0)
        back = jax.linear_transpose(along, phi)

        def product(unit: Array) -> Array:
            (curved,) = back(weight * along(unit))
            return jnp.asarray(curved) + 2 * ridge[:, None] * unit

        return by_columns(product, phi)

    return LaneDerivatives(jax.grad(value), information)


def by_columns(product: Callable[[Array], Array], phi: Float[Array, "P R"]) -> Float[Array, "R P P"]:
    """Return the matrices of lanes from their ``product`` with (P, R), column by column."""
    if namespace(phi) is np:
        units: Any = np.tile(np.eye(len(phi))[..., None], phi.shape[1])
        columns: Any = np.stack([product(unit) for unit in units])
        return columns.transpose(2, 0, 1)

    def column(k: Array) -> Array:
        return product(jnp.zeros(phi.shape).at[k].set(1.0))

    return jnp.moveaxis(lax.map(column, jnp.arange(len(phi))), -1, 0)


def newton(
    of_lanes: LaneDerivatives,
    start: Float[Array, "P #R"],
    moves: Bool[Array, "P R"],
    gauge: Float[Array, "U P"],
    terms: Terms,
) -> Solution:
    """Take steps by each lane's own expected information, in all parameters that ``moves`` marks, at once.

    No step goes along the ``gauge``: vectors, at right angles to each other whatever moves, about which the data say
    nothing. Where the data are few, whole steps may swing between two points for ever: a step that turns back
    is halved, and those after it grow again.
    """
    fixed = _unit(gauge, moves)
    both = moves.T[:, :, None] & moves.T[:, None, :]

    def within(x: Array) -> Array:
        """Return ``x`` (R, P, ...) without its part along the gauge."""
        return x - einsum("rup,ruq->rpq", fixed, einsum("rup,rpq->ruq", fixed, x))

    def step(phi: Array, _: Array, memory: tuple[Array, Array]) -> SolveStep:
        before, share = memory
        grad = xp.where(moves, of_lanes.gradient(phi), 0.0)
        matrix = xp.where(both, of_lanes.information(phi), 0.0)
        # The information has a scale, and the unit vectors of the gauge have none: they get its mean.
        scale = xp.diagonal(matrix, axis1=-2, axis2=-1).sum(-1) / xp.maximum(moves.sum(0), 1)
        scale = xp.where(scale > 0, scale, 1.0)[:, None, None]
        along = einsum("rup,ruq->rpq", fixed, fixed)
        matrix = within(within(matrix).swapaxes(-1, -2)) + scale * along
        # The data may say nothing of a parameter at this point, as of a discrimination while all strengths are equal:
        # it waits for the next step.
        matrix += (xp.where(moves.T, 0.0, 1.0)[..., None] + _LEAST * scale) * xp.eye(len(phi))
        right = within(grad.T[..., None])[..., 0]
        change = within(solved(matrix, right)[..., None])[..., 0].T
        change = capped(xp.where(moves, change, 0.0))
        share = xp.where((change * before).sum(0) < 0, share / 2, xp.minimum(share * _GROWTH, 1.0))
        return SolveStep(change * share, right.T, (change, share))

    xp = namespace(start, moves)
    begun = xp.zeros(moves.shape, start.dtype), xp.ones(moves.shape[1:], start.dtype)
    return loop(step, xp.broadcast_to(start, moves.shape), begun, terms)[0]


def _unit(gauge: Float[Array, "U P"], moves: Bool[Array, "P R"]) -> Float[Array, "R U P"]:
    """Return the vectors of the ``gauge`` among what ``moves``, of length 1."""
    directions, xp = gauge[:, :, None] * moves, namespace(gauge, moves)
    return (directions / xp.sqrt(xp.maximum((directions**2).sum(1, keepdims=True), 1e-300))).transpose(2, 0, 1)


def chord(
    gradient: Callable[[Array], Array],
    start: Float[Array, "P"],
    inverse: Float[Array, "P P"],
    alike: Bool[Array, "R"],
    terms: Terms,
) -> Solution:
    """Solve as `solve.chord` does; the inverse is taken within the gauge, so that no step leaves it.

    Lanes that are not ``alike``, as other parameters move in them than in the full data, are left alone, and have not
    converged.
    """
    lanes = jnp.broadcast_to(start[:, None], (len(start), len(alike)))
    end = solve.chord(lambda phi: jnp.where(alike, gradient(phi), 0.0), inverse, lanes, terms)
    return end._replace(status=jnp.where(alike, end.status, jnp.int8(Status.STEP_LIMIT)))


def newton_cg(of_lanes: LaneDerivatives, problem: RefitProblem, moves: Bool[Array, "M R"], terms: Terms) -> Solution:
    """Fit strengths as `solve.newton_cg` does."""
    assert of_lanes.products is not None  # of models that are fitted so
    start = centred(jnp.where(moves, problem.start[:, None], 0.0), moves)
    return solve.newton_cg(of_lanes.products, problem.inverse, problem.diagonal, start, terms, len(start), moves)


def determined(
    information: Float[Array, "R P P"], moves: Bool[Array, "P"], gauge: Float[Array, "U P"], least: float
) -> Bool[Array, "R"]:
    """Return whether the data of a lane say something of every direction of what ``moves`` but the ``gauge``.

    The smallest eigenvalue of the information, scaled to a diagonal of 1, must exceed ``least``.
    """
    diagonal = jnp.diagonal(information, axis1=-2, axis2=-1)
    known = jnp.all(~moves | (diagonal > 0), -1)
    root = jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0))
    both = moves[:, None] & moves
    scaled = jnp.where(both, information / (root[:, :, None] * root[:, None, :]), 0.0)
    # Scaled, the directions of the gauge are those times the root.
    fixed = gauge * moves * root[:, None, :]
    fixed /= jnp.sqrt(jnp.maximum(jnp.sum(fixed**2, -1, keepdims=True), 1e-300))
    scaled += jnp.einsum("rup,ruq->rpq", fixed, fixed, precision="highest")
    scaled += jnp.where(moves, 0.0, 1.0) * jnp.eye(len(moves))
    scaled = jnp.where(jnp.isfinite(scaled), scaled, 0.0)
    of_each = by_platform(scaled, cpu=one_by_one(jnp.linalg.eigvalsh), default=jnp.linalg.eigvalsh)
    return known & (of_each[:, 0] > least)


# A resample whose information, scaled, has an eigenvalue under this says nothing of some direction.
_LEAST_KNOWN = 1e-9


class ChoiceData(NamedTuple):
    """The data of a `RefitProblem` of choices."""

    entries: Any  # what the draws add to, as a rule `DrawnSums` by occasion to each of the K choices
    occasions: Any  # what the model knows of the C occasions
    gauge: Float[Array, "U P"]


class Resampled(NamedTuple):
    """What resamples hold, and what they say something of."""

    counts: Any  # as the model's derivatives take them, as a rule (K, C, R)
    moves: Bool[Array, "P R"]  # parameters that are fitted
    standing: Int8[Array, "R M"]  # a `Standing`; all IDENTIFIED where no model can be separated
    determined: Bool[Array, "R"]
    start: Float[Array, "P #R"]  # of Newton's method


class LaneModel:
    """A model of one lane: from its parameters (P,) and what is known of C occasions to log-probabilities (K, C).

    It is static: equal models share programs. A model overrides what speed, or what it is of, asks for.
    """

    def __call__(self, phi: Array, data: Any) -> Array:
        """Return the log-probabilities."""
        raise NotImplementedError

    def counted(self, data: ChoiceData, draws: Num[Array, "units R"]) -> Any:
        """Return what is chosen in the ``draws`` of all units: (K, C, R)."""
        return jnp.stack(data.entries.of(draws, len(jax.tree.leaves(data.occasions)[0])))

    def derivatives(self, data: Any, counts: Any, ridge: Num[Array, "..."]) -> LaneDerivatives:
        """Return those of all lanes, by JAX."""
        return derived(jax.vmap(lambda phi: self(phi, data), in_axes=-1, out_axes=-1), counts, ridge)

    def resampled(self, problem: RefitProblem, counts: Any, ridge: Num[Array, "..."]) -> Resampled:
        """Return what the ``counts`` say something of: all that ``problem.moves``, or a lane is not determined."""
        lanes = jnp.broadcast_to(problem.start[:, None], (len(problem.start), counts.shape[-1]))
        information = self.derivatives(problem.data.occasions, counts, ridge).information(lanes)
        known = determined(information, problem.moves, problem.data.gauge, _LEAST_KNOWN)
        moves = jnp.broadcast_to(problem.moves[:, None], lanes.shape)
        return Resampled(counts, moves, jnp.zeros(lanes.T.shape, jnp.int8), known, problem.start[:, None])


@program("model", runs="briefly")
def choice_slopes(
    model: LaneModel, data: Any, phi: Float[Array, "P"]
) -> tuple[Float[Array, "K C"], Float[Array, "K C P"]]:
    """Return log-probabilities and their derivatives by all parameters."""
    return model(phi, data), jax.jacfwd(lambda phi: model(phi, data))(phi)


@program("model", runs="briefly")
def choice_information(
    model: LaneModel, data: Any, counts: Float[Array, "K C"], phi: Float[Array, "P"], ridge: Float[Array, "P"]
) -> Float[Array, "P P"]:
    """Return the observed information: minus the second derivatives of the log-likelihood less the ridge."""
    gradient = model.derivatives(data, counts[..., None], ridge).gradient
    return -jax.jacfwd(lambda phi: gradient(phi[:, None])[:, 0])(phi)


@program("model", runs="briefly")
def fit_choices(
    model: LaneModel,
    data: Any,
    counts: Float[Array, "K C"],
    start: Float[Array, "P"],
    moves: Bool[Array, "P"],
    gauge: Float[Array, "U P"],
    terms: Terms,
) -> Solution:
    """Fit the full data by Newton's method; the ridge has a coefficient for each parameter."""
    of_lane = model.derivatives(data, counts[..., None], terms.ridge)
    end = newton(of_lane, start[:, None], moves[:, None], gauge, terms)
    return Solution(*(x[..., 0] for x in end))


def count_choices(problem: RefitProblem, form: RefitForm, seed: Array, numbers: Array) -> Any:
    """Count what is chosen in the resamples ``numbers``."""
    return form.model.counted(problem.data, lane_draws_of(problem, form, seed, numbers))


@refit_program
def refit_choices(problem: RefitProblem, form: RefitForm, seed: Array, terms: Terms, numbers: Array) -> Refits:
    """Refit resamples of one slice, as `refit` does; parameters that do not move are NaN.

    A resample that leaves a direction of the parameters open has the status `Status.TOO_FEW`.
    """
    counts, moves, standing, known, start = form.model.resampled(
        problem, count_choices(problem, form, seed, numbers), terms.ridge
    )
    of_lanes = form.model.derivatives(problem.data.occasions, counts, terms.ridge)
    if form.solver == Solver.CHORD:
        alike = jnp.all(moves == problem.moves[:, None], 0)
        end = chord(of_lanes.gradient, problem.start, problem.inverse, alike, terms)
    elif form.solver == Solver.NEWTON_CG:
        end = newton_cg(of_lanes, problem, moves, terms)
    else:
        end = newton(of_lanes, start, moves, problem.data.gauge, terms)
    status = jnp.where(known, end.status, Status.TOO_FEW).astype(jnp.int8)
    return Refits(jnp.where(moves, end.theta, jnp.nan).T, status, end.n_steps, end.grad_norm, standing)
