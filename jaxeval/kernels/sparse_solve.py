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
from jaxeval.kernels.solve import CONVERGED, NON_FINITE, STEP_LIMIT, Solution, capped, centred, predict

# Inner steps stop when the residual's norm has shrunk so far: each outer step then shrinks the error by about as much.
_INNER_TOLERANCE = 0.01
_MAX_INNER_STEPS = 1000
_LEAST_RATE = 0.1


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


def newton_step(adjacency: Adjacency, weights: Array, grad: Array, ridge: Array, running: Array) -> Array:
    """(M, L) solution of information * step = gradient by conjugate gradients, for the lanes ``running`` (L,).

    The information is D - V + 2 ridge, V the slots' ``weights`` (8, R, L) and D their sums.
    """
    diagonal = opponent_sums(adjacency, lambda k: weights[k]) + 2 * ridge
    inverse = jnp.where(diagonal > 0, 1 / jnp.where(diagonal > 0, diagonal, 1.0), 0.0)
    rounding = 100 * jnp.finfo(grad.dtype).eps

    def product(p: Array) -> Array:
        return diagonal * p - opponent_sums(adjacency, lambda k: weights[k] * take(p, adjacency.opponent[k]))

    def dot(a: Array, b: Array) -> Array:
        return jnp.sum(a * b, 0)

    z = inverse * grad
    rz_start = dot(grad, z)

    def more(state: tuple[Array, ...]) -> Array:
        *_, go, n_steps = state
        return jnp.any(go) & (n_steps < _MAX_INNER_STEPS)

    def advance(state: tuple[Array, ...]) -> tuple[Any, ...]:
        x, r, p, rz, go, n_steps = state
        hp = product(p)
        curvature = dot(p, hp)
        # Once solved, rounding noise is left, part of it in the common shift where there is no curvature.
        go = go & (curvature > rounding * dot(p, diagonal * p))
        alpha = jnp.where(go, rz / jnp.where(go, curvature, 1.0), 0.0)
        x, r = x + alpha * p, r - alpha * hp
        z = inverse * r
        rz_next = dot(r, z)
        p = jnp.where(go, z + rz_next / jnp.where(go, rz, 1.0) * p, p)
        return x, r, p, jnp.where(go, rz_next, rz), go & (rz_next > _INNER_TOLERANCE**2 * rz_start), n_steps + 1

    start: tuple[Any, ...] = (jnp.zeros_like(grad), grad, z, rz_start, running & (rz_start > 0), jnp.int32(0))
    return lax.while_loop(more, advance, start)[0]


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

    Stops, lane by lane, as `solve.iterate` does. With a ridge the mean of a connected component is left where the start
    had it, for what a small ridge can tell about it: it is 0 at the maximum.
    """
    n = take(pairs.n, adjacency.pair)
    score = scores(adjacency, pairs)

    class State(NamedTuple):
        theta: Array
        size: Array
        rate: Array
        remaining: Array
        grad_norm: Array
        n_steps: Array

    def running(state: State) -> Array:
        return (state.remaining > tolerance) & (state.n_steps < max_steps)

    def advance(state: State) -> State:
        go = running(state)
        grad, weights = gradient(adjacency, n, score, state.theta, ridge)
        grad = jnp.where(active, grad, 0.0)
        change = capped(centred(newton_step(adjacency, weights, grad, ridge, go), active))
        size = jnp.max(jnp.abs(change), 0)
        # An early step may converge faster than steps that stop short of their solution do in the end.
        last_rate = jnp.maximum(state.rate, _LEAST_RATE)
        rate, remaining = predict(size, state.size, last_rate, state.n_steps)
        new = State(state.theta + change, size, rate, remaining, jnp.max(jnp.abs(grad), 0), state.n_steps + 1)
        return State(*(jnp.where(go, x, old) for x, old in zip(new, state, strict=True)))

    infinite = jnp.full(start.shape[1:], jnp.inf, start.dtype)
    none = jnp.zeros(start.shape[1:], jnp.int32)
    begin = State(centred(start, active), infinite, jnp.zeros_like(infinite), infinite, infinite, none)
    end = lax.while_loop(lambda state: jnp.any(running(state)), advance, begin)
    status = jnp.where(end.remaining <= tolerance, CONVERGED, STEP_LIMIT)
    finite = jnp.all(jnp.isfinite(end.theta), 0) & jnp.isfinite(end.grad_norm)
    return Solution(end.theta, jnp.where(finite, status, NON_FINITE).astype(jnp.int8), end.n_steps, end.grad_norm)
