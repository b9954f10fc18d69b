"""Maximum of the Bradley-Terry likelihood on a graph of pairs, for many resamples at once.

Newton's method with the steps found by conjugate gradients, preconditioned with the diagonal: a step then needs a few
passes over the pairs and no (M, M) array. Boards of matches are well connected, and a handful of inner steps do; on a
long chain of groups it takes as many as the chain has links.

Arrays have the lanes (resamples) L last, see `kernels.adjacency`. A lane's result does not depend on the others.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from jaxeval.kernels.adjacency import SLOTS, Adjacency, opponent_sums, take
from jaxeval.kernels.solve import CONVERGED, NON_FINITE, STEP_LIMIT, Solution, capped, centred

# Early steps are solved until the residual's norm has shrunk so far, which shrinks the error by about as much.
_INNER_TOLERANCE = 0.01
# Rounding of a gradient, in units of the precision times the battles that it adds up.
_GRADIENT_ROUNDING = 1.0
# Logits that rounding may be worth, by a bound some ten times what it turns out to be: where the data hardly join what
# they join, it is more.
_MOST_ROUNDING = {"float64": 1e-6, "float32": 5e-3}
_MOST_STALLS = 3


class SparsePairs(NamedTuple):
    """The sufficient statistics of L Bradley-Terry problems on one graph."""

    n: Array  # (P, L) total weight of the battles of each pair; the last pair is empty
    wins: Array  # (P, L) sum of weight * target of its first model


def scores(adjacency: Adjacency, pairs: SparsePairs) -> Array:
    """(M, L) sum of weight * target over the battles of each model."""

    def own_wins(k: int) -> Array:
        wins = take(pairs.wins, adjacency.pair[k])
        return jnp.where(adjacency.is_first[k][:, None], wins, take(pairs.n, adjacency.pair[k]) - wins)

    return opponent_sums(adjacency, own_wins)


def log_odds(adjacency: Adjacency, pairs: SparsePairs, active: Array) -> Array:
    """(M, L) centred log-odds of each model's own score, to start from."""
    score = scores(adjacency, pairs)
    battles = opponent_sums(adjacency, lambda k: take(pairs.n, adjacency.pair[k]))
    return centred(jnp.log((score + 1) / (battles - score + 1)), active)


def gradient(adjacency: Adjacency, n: Array, score: Array, theta: Array, ridge: Array) -> tuple[Array, Array]:
    """(M, L) gradient of the penalised log-likelihood, and (8, R, L) weights n s'(theta_i - theta_j) of the slots.

    ``n`` (8, R, L) and ``score`` (M, L) are the battles' weights by slot and what each model took of them.
    """
    e = jnp.exp(theta)
    own = take(e, adjacency.owner)
    share = [own / (own + take(e, adjacency.opponent[k])) for k in range(SLOTS)]
    expected = opponent_sums(adjacency, lambda k: n[k] * share[k])
    weights = jnp.stack([n[k] * share[k] * (1 - share[k]) for k in range(SLOTS)])
    return score - expected - 2 * ridge * theta, weights


class Step(NamedTuple):
    """A step of Newton's method, as conjugate gradients found it."""

    change: Array  # (M, L)
    is_solved: Array  # (L,) whether the residual shrank as far as asked for, or to the rounding of the gradient
    least: Array  # (L,) curvature of the weakest direction that was met, in units of D
    rounding: Array  # (L,) logits that the rounding of the gradient may be worth in that direction


def newton_step(
    adjacency: Adjacency,
    weights: Array,
    grad: Array,
    battles: Array,
    ridge: Array,
    shrink: Array,
    error: Array,
    least: Array,
    running: Array,
) -> Step:
    """Solution of information * change = gradient (M, L) by conjugate gradients, for the lanes ``running`` (L,).

    The information is D - V + 2 ridge, V the slots' ``weights`` (8, R, L) and D their sums. The residual's norm shrinks
    by ``shrink`` (L,), or until it is worth less than ``error`` (logits) in the direction of ``least`` (L,) curvature
    so far, or to what the rounding of sums of ``battles`` (M, L) leaves of any gradient.
    """
    diagonal = opponent_sums(adjacency, lambda k: weights[k]) + 2 * ridge
    inverse = jnp.where(diagonal > 0, 1 / jnp.where(diagonal > 0, diagonal, 1.0), 0.0)
    weakest = jnp.min(jnp.where(weights > 0, weights, jnp.inf), (0, 1))
    eps = jnp.finfo(grad.dtype).eps
    most_steps = 1000 + len(grad)

    def product(p: Array) -> Array:
        return diagonal * p - opponent_sums(adjacency, lambda k: weights[k] * take(p, adjacency.opponent[k]))

    def dot(a: Array, b: Array) -> Array:
        return jnp.sum(a * b, 0)

    noise = _GRADIENT_ROUNDING * eps * battles
    floor = dot(noise, inverse * noise)
    z = inverse * grad
    rz_start = dot(grad, z)

    def unsolved(rz: Array, least: Array) -> Array:
        # A residual r is worth r' H^-1 r <= r' D^-1 r / least, which the weakest pair may have all to itself.
        enough = jnp.where(shrink > 0, shrink**2 * rz_start, error**2 * least * weakest)
        return rz > jnp.maximum(enough, floor)

    def more(state: tuple[Array, ...]) -> Array:
        *_, go, n_steps = state
        return jnp.any(go) & (n_steps < most_steps)

    def advance(state: tuple[Array, ...]) -> tuple[Any, ...]:
        x, r, p, rz, least, go, n_steps = state
        hp = product(p)
        curvature, scale = dot(p, hp), dot(p, diagonal * p)
        # Beyond, rounding decides, as it does of the common shift, where there is no curvature.
        go = go & (curvature > 100 * eps * scale)
        least = jnp.where(go, jnp.minimum(least, curvature / jnp.where(go, scale, 1.0)), least)
        alpha = jnp.where(go, rz / jnp.where(go, curvature, 1.0), 0.0)
        x, r = x + alpha * p, r - alpha * hp
        z = inverse * r
        rz_next = dot(r, z)
        p = jnp.where(go, z + rz_next / jnp.where(go, rz, 1.0) * p, p)
        return x, r, p, jnp.where(go, rz_next, rz), least, go & unsolved(rz_next, least), n_steps + 1

    go = running & unsolved(rz_start, least)
    start: tuple[Any, ...] = (jnp.zeros_like(grad), grad, z, rz_start, least, go, jnp.int32(0))
    change, _, _, rz, least, _, _ = lax.while_loop(more, advance, start)
    # A direction that rounding hides altogether was not met: there is one if the weakest pair alone joins two groups.
    is_hidden = jnp.sqrt(floor * jnp.sum(diagonal, 0)) > 0.1 * weakest
    rounding = jnp.where(is_hidden, jnp.inf, jnp.sqrt(floor / (least * weakest)))
    return Step(change, ~unsolved(rz, least), least, rounding)


def newton_cg(
    adjacency: Adjacency,
    pairs: SparsePairs,
    active: Array,
    start: Array,
    ridge: Array,
    tolerance: Array,
    max_steps: int,
) -> Solution:
    """The maximum from ``start`` (M, L), with fields (M, L) and (L,). ``pairs`` holds no battles of inactive models.

    Steps short of their solution come first, then some that are solved to the rounding of the gradient: groups that few
    battles join move by those alone. A lane ends by a solved step so short that the error after it, about its square,
    is under ``tolerance`` (logits). It has not converged where conjugate gradients stall, or where rounding alone may
    be worth more than 1e-6 logits (5e-3 in single precision).

    With a ridge the mean of a connected component is left where the start had it, for what a small ridge can tell about
    it: it is 0 at the maximum.
    """
    n = take(pairs.n, adjacency.pair)
    score = scores(adjacency, pairs)
    battles = opponent_sums(adjacency, lambda k: n[k])
    short = jnp.sqrt(0.1 * tolerance)

    class State(NamedTuple):
        theta: Array
        is_close: Array
        is_done: Array
        n_stalls: Array
        least: Array
        rounding: Array
        grad_norm: Array
        n_steps: Array

    def running(state: State) -> Array:
        return ~state.is_done & (state.n_steps < max_steps) & (state.n_stalls < _MOST_STALLS)

    def advance(state: State) -> State:
        go = running(state)
        grad, weights = gradient(adjacency, n, score, state.theta, ridge)
        grad = jnp.where(active, grad, 0.0)
        shrink = jnp.where(state.is_close, 0.0, _INNER_TOLERANCE)
        step = newton_step(adjacency, weights, grad, battles, ridge, shrink, 0.1 * tolerance, state.least, go)
        change = capped(centred(step.change, active))
        size = jnp.max(jnp.abs(change), 0)
        new = State(
            state.theta + change,
            _INNER_TOLERANCE * size <= short,
            state.is_close & step.is_solved & (size <= short),
            state.n_stalls + ~step.is_solved,
            step.least,
            step.rounding,
            jnp.max(jnp.abs(grad), 0),
            state.n_steps + 1,
        )
        return State(*(jnp.where(go, x, old) for x, old in zip(new, state, strict=True)))

    infinite = jnp.full(start.shape[1:], jnp.inf, start.dtype)
    none = jnp.zeros(start.shape[1:], jnp.int32)
    one = jnp.ones_like(infinite)
    begin = State(centred(start, active), none > 0, none > 0, none, one, infinite, infinite, none)
    end = lax.while_loop(lambda state: jnp.any(running(state)), advance, begin)
    is_exact = end.is_done & (end.rounding <= _MOST_ROUNDING[start.dtype.name])
    status = jnp.where(is_exact, CONVERGED, STEP_LIMIT)
    finite = jnp.all(jnp.isfinite(end.theta), 0) & jnp.isfinite(end.grad_norm)
    return Solution(end.theta, jnp.where(finite, status, NON_FINITE).astype(jnp.int8), end.n_steps, end.grad_norm)
