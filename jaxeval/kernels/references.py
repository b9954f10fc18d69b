"""Votes of every model against one or several references, and the rankings that they give."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxeval.kernels import solve, squares
from jaxeval.kernels.kinds import Bool, Float, Int32, Integer, Num, UInt64
from jaxeval.kernels.links import Link, probability

_MODEL_STRIDE = np.uint64(1 << 32)
_LOW32 = np.uint64(0xFFFFFFFF)


class Votes(NamedTuple):
    """The C cells of a board, and the entries of a resample's draws that add to each."""

    unit: Int32[Array, "E"]  # flat numbers of the entries' units
    cell: Int32[Array, "E"]  # sorted; C - 1, an empty cell, where there is no entry
    times: Int32[Array, "E"]  # battles of the cell in the unit
    battles: Int32[Array, "C"]  # of the cell in the full data


class Pools(NamedTuple):
    """The votes of every model against the references of S sets: G cells, those of a reference side by side.

    Of the K * g = G places the first g belong to the set's first reference, and so on.
    """

    cell: Int32[Array, "G M S"]  # C - 1, an empty cell, where there are fewer
    weight: Float[Array, "G M S"]  # of a vote
    target: Float[Array, "G M S"]  # probability that the model beats the reference
    in_set: Bool[Array, "K S"]  # False where there are fewer


class SharedItems(NamedTuple):
    """Verdicts on items that all models share: X items by R references and one that nobody met, by M models."""

    unit: Int32[Array, "X"]  # flat numbers of the items' units
    n: Float[Array, "X R_plus_1 M"]  # weight of the verdicts
    points: Float[Array, "X R_plus_1 M"]
    single: Int32[Array, "L"]  # references studied alone
    several: Int32[Array, "K S"]  # those of every set; R where there are fewer
    size: Int32[Array, "S"]  # references of every set
    ranked: Bool[Array, "S M"]  # models that are no references of the set


def resampled(votes: Votes, draws: Integer[Array, "rows columns"]) -> Int32[Array, "C"]:
    """Votes of every cell in a resample, given the ``draws`` of all units."""
    drawn = draws.reshape(-1)[votes.unit] * votes.times
    return jax.ops.segment_sum(drawn, votes.cell, votes.battles.shape[0], indices_are_sorted=True)


def _ends(
    cumulative: Int32[Array, "G M S"], n_references: int
) -> tuple[Int32[Array, "{n_references} M S"], Int32[Array, "{n_references} M S"]]:
    """Where each reference's votes start and end in the ``cumulative`` counts."""
    last = cumulative.shape[0] // n_references
    end = cumulative[last - 1 :: last]
    return jnp.concatenate([jnp.zeros_like(end[:1]), end[:-1]]), end


def used(
    pools: Pools, count: Int32[Array, "C"], budgets: Integer[Array, "B"], key: UInt64[Array, ""]
) -> Int32[Array, "B G M S"]:
    """Votes of each cell among the first b votes that every model draws, for each b of the ascending ``budgets``.

    A model with fewer votes draws them all. A vote is drawn without replacement: first a reference, any of the set with
    votes left with equal chances, then one of the votes that are left against it. A model's vote v has the same random
    word in every set, so sets are compared on equal terms, and the votes of a smaller budget are among those of a
    larger one.
    """
    n_references, n_models = pools.in_set.shape[0], pools.cell.shape[1]
    model = jnp.arange(n_models, dtype=jnp.uint64) * _MODEL_STRIDE
    there = jnp.cumsum(count[pools.cell], 0, dtype=jnp.int32)

    def vote(v: Array, left: Array) -> Array:
        word = squares.words32(model + v.astype(jnp.uint64), key).astype(jnp.uint64)[:, None]
        if n_references == 1:
            start, size = jnp.uint64(0), left[-1].astype(jnp.uint64)
        else:
            first, end = _ends(left, n_references)
            open_ = jnp.cumsum(end > first, 0)
            # A product's upper half is a uniform number, its lower half an independent uniform fraction.
            product = word * open_[-1].astype(jnp.uint64)
            chosen = jnp.sum(open_ <= (product >> 32).astype(open_.dtype), 0)
            word = product & _LOW32
            here = jnp.arange(n_references)[:, None, None] == chosen
            start = jnp.sum(jnp.where(here, first, 0), 0).astype(jnp.uint64)
            size = jnp.sum(jnp.where(here, end - first, 0), 0).astype(jnp.uint64)
        place = (start + ((word * size) >> 32)).astype(jnp.int32)
        # The vote at this place is gone; nothing changes where none is left.
        return left - (place < left)

    def stretch(left: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        left = lax.fori_loop(*ends, vote, left)
        return left, there - left

    starts = jnp.concatenate([jnp.zeros(1, budgets.dtype), budgets[:-1]])
    _, gone = lax.scan(stretch, there, (starts, budgets))
    return jnp.diff(gone, axis=1, prepend=0)


def win_rates(pools: Pools, votes: Num[Array, "*lanes G M S"]) -> Float[Array, "*lanes M S"]:
    """Share of the points of every model against single references, percent; NaN without ``votes``."""
    return percent(jnp.sum(votes * (pools.weight * pools.target), -3), jnp.sum(votes * pools.weight, -3))


def percent(points: Float[Array, "*shape"], n: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """``points`` of ``n``, percent; NaN of nothing."""
    return jnp.where(n > 0, 100 * points / jnp.where(n > 0, n, 1.0), jnp.nan)


def tables(
    pools: Pools, votes: Num[Array, "*lanes G M S"]
) -> tuple[Float[Array, "*lanes K M S"], Float[Array, "*lanes K M S"]]:
    """Weight of the votes, and points, of every model against every reference of the sets."""
    n_references = pools.in_set.shape[0]
    shape = *votes.shape[:-3], n_references, votes.shape[-3] // n_references, *votes.shape[-2:]
    n, points = votes * pools.weight, votes * (pools.weight * pools.target)
    return jnp.sum(n.reshape(shape), -3), jnp.sum(points.reshape(shape), -3)


def used_items(
    shared: SharedItems, count: Integer[Array, "X"], budgets: Integer[Array, "B"], key: UInt64[Array, ""]
) -> tuple[Float[Array, "B L M"], Float[Array, "B L M"], Float[Array, "B K S M"], Float[Array, "B K S M"]]:
    """Votes and points on the first ``budgets`` items: against single references, then against those of sets.

    The items, of which a resample holds ``count``, are drawn without replacement. An item draws one reference of every
    set, with equal chances, for all models.
    """
    n_sets, n_references = shared.size.shape[0], shared.several.shape[0]
    sets = jnp.arange(n_sets)

    def item(v: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        left, n, points, set_n, set_points = state
        words = squares.words32(2 * v.astype(jnp.uint64) + jnp.arange(2, dtype=jnp.uint64), key).astype(jnp.uint64)
        place = ((words[0] * left[-1].astype(jnp.uint64)) >> 32).astype(jnp.int32)
        any_left = left[-1] > 0
        x = jnp.minimum(jnp.sum(left <= place), len(left) - 1)
        own_n, own_points = (jnp.where(any_left, table[x], 0.0) for table in (shared.n, shared.points))
        chosen = ((words[1] * shared.size.astype(jnp.uint64)) >> 32).astype(jnp.int32)
        reference = shared.several[chosen, sets]
        here = (jnp.arange(n_references)[:, None] == chosen)[..., None] & shared.ranked
        return (
            left - (place < left),
            n + own_n[shared.single],
            points + own_points[shared.single],
            set_n + jnp.where(here, own_n[reference], 0.0),
            set_points + jnp.where(here, own_points[reference], 0.0),
        )

    def stretch(state: tuple[Array, ...], ends: tuple[Array, Array]) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        state = lax.fori_loop(*ends, item, state)
        return state, state[1:]

    alone = jnp.zeros((len(shared.single), shared.n.shape[2]))
    together = jnp.zeros((n_references, n_sets, shared.n.shape[2]))
    start: tuple[Array, ...] = jnp.cumsum(count, dtype=jnp.int32), alone, alone, together, together
    starts = jnp.concatenate([jnp.zeros(1, budgets.dtype), budgets[:-1]])
    _, (n, points, set_n, set_points) = lax.scan(stretch, start, (starts, budgets))
    return n, points, set_n, set_points


def strengths(n: Float[Array, "K M"], points: Float[Array, "K M"], terms: solve.Terms) -> solve.Solution:
    """Log-strengths (M + K,) of models and references from votes and points of the models.

    Maximises the Bradley-Terry log-likelihood less ridge * ||theta||^2 by Newton's method. The models' block of the
    Hessian is diagonal and is eliminated (a Schur complement is left). A ridge > 0 makes all strengths finite, also
    those of models that won every vote.
    """
    n, points, ridge = n.T, points.T, terms.ridge
    n_models = n.shape[0]

    def step(theta: Array) -> tuple[Array, Array]:
        p = probability(Link.LOGIT, theta[:n_models, None] - theta[n_models:])
        excess, v = points - n * p, n * p * (1 - p)
        grad = jnp.concatenate([jnp.sum(excess, 1), -jnp.sum(excess, 0)]) - 2 * ridge * theta
        own = jnp.sum(v, 1) + 2 * ridge
        scaled = v / own[:, None]
        schur = jnp.diag(jnp.sum(v, 0) + 2 * ridge) - jnp.matmul(v.T, scaled, precision="highest")
        right = grad[n_models:] + jnp.matmul(scaled.T, grad[:n_models], precision="highest")
        of_references = solve.solved(schur, right)
        of_models = (grad[:n_models] + jnp.matmul(v, of_references, precision="highest")) / own
        change = jnp.concatenate([of_models, of_references])
        return solve.capped(change), grad

    return solve.iterate(step, jnp.zeros(sum(n.shape)), terms.tolerance, terms.max_steps)


def expected_win_rate(theta: Float[Array, "M_plus_K"], in_set: Bool[Array, "K"]) -> Float[Array, "M_plus_K-K"]:
    """Mean win probability of every model against the references ``in_set``, percent."""
    n_models = theta.shape[0] - in_set.shape[0]
    p = probability(Link.LOGIT, theta[:n_models, None] - theta[n_models:])
    return 100 * jnp.sum(jnp.where(in_set, p, 0.0), 1) / jnp.sum(in_set)
