"""Temperatures, folds that leave a model out, and resamples of a model's own battles."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import Mesh

from jaxeval.kernels import held_out, resample, solve, temperature
from jaxeval.kernels.batch.chunks import over_devices, run_chunks
from jaxeval.kernels.held_out import FullFit, HeldOut, Judged, OwnProblem, pair_sums, pair_wins
from jaxeval.kernels.links import Link, probability
from jaxeval.kernels.solve import Terms
from jaxeval.kernels.temperature import TemperatureFit


def _in_chunks(function: Callable[..., Any], lanes: tuple[Array, ...], size: int) -> Any:
    """``function`` vmapped over chunks of ``size`` lanes, one chunk after the other; a last short one is repeated."""
    n = lanes[0].shape[0]
    size = min(size, n)
    n_chunks = -(-n // size)
    number = jnp.minimum(jnp.arange(n_chunks * size), n - 1).reshape(n_chunks, size)
    results = lax.map(lambda which: jax.vmap(function)(*(x[which] for x in lanes)), number)
    return jax.tree.map(lambda x: x.reshape(n_chunks * size, *x.shape[2:])[:n], results)


def _over_devices(function: Callable[..., Any], mesh: Mesh, of_folds: tuple[Array, ...], *shared: Any) -> Any:
    """``function(of_folds, *shared)``, (L, F, ...), whose F folds the devices share: axis 1 of all ``of_folds``."""
    n = of_folds[0].shape[1]
    number = jnp.minimum(jnp.arange(-(-n // mesh.size) * mesh.size), n - 1)  # the last device fills up
    results = over_devices(
        lambda *arguments: function(arguments[-1], *arguments[:-1]),
        mesh,
        shared,
        (tuple(x[:, number] for x in of_folds),),
        axis=1,
    )
    return jax.tree.map(lambda x: x[:, :n], results)


@jax.jit
def temperatures(level: Array, n: Array, wins: Array, fewest: Array, terms: Terms) -> TemperatureFit:
    """Temperatures of (S, L) score levels."""
    return jax.vmap(lambda d, n, y: temperature.fit(d, n, y, fewest, terms))(level, n, wins)


@partial(jax.jit, static_argnames=("mesh", "chunk"))
def fold_temperatures(judged: Judged, mesh: Mesh, fewest: Array, terms: Terms, chunk: int) -> TemperatureFit:
    """Temperatures (S, F + 1) of the sets ``judged``: without the rows of each fold's model, and of all rows."""

    def of_set(lane: tuple[Array, Judged], fewest: Array, terms: Terms) -> TemperatureFit:
        left_out, judged = lane
        size = judged.level.shape[0]
        total = jnp.zeros(size).at[judged.label].add(judged.battles)
        label = jnp.append(judged.label, 0)
        count = jnp.append(judged.battles, 0.0)

        def one(own: Array) -> TemperatureFit:
            rest = total - jnp.zeros(size).at[label[own]].add(count[own])
            return temperature.fit(judged.level, rest * judged.fitting, rest * judged.wins, fewest, terms)

        return _in_chunks(one, (left_out,), chunk)

    def on_device(of_folds: tuple[Array], judged: Judged, fewest: Array, terms: Terms) -> TemperatureFit:
        return lax.map(lambda lane: of_set(lane, fewest, terms), (*of_folds, judged))

    nothing = jnp.full((judged.own.shape[0], 1, judged.own.shape[2]), judged.pair.shape[1], judged.own.dtype)
    left_out = jnp.concatenate([judged.own, nothing], axis=1)
    return _over_devices(on_device, mesh, (left_out,), judged, fewest, terms)


class JudgedTables(NamedTuple):
    """Battles of target maps, one after the other: L of them."""

    n: Array  # (L, M, M)
    wins: Array  # (L, M, M)
    score: Array  # (L, M)
    active: Array  # (L, M) models with battles


@partial(jax.jit, static_argnames="n_pairs")
def judged_tables(judged: Judged, weight: Array, target: Array, n_pairs: int) -> JudgedTables:
    """Battles and wins of target maps (S, K, U), of ``weight`` (S, K, U) per battle; those of a set stay together."""

    def one(judged: Judged, weight: Array, target: Array) -> tuple[Array, Array]:
        n = pair_sums(judged, weight, n_pairs)
        return n, pair_wins(judged, weight * target, n, n_pairs)

    tables = lax.map(lambda x: jax.vmap(partial(one, x[0]))(*x[1:]), (judged, weight, target))
    n, wins = (x.reshape(-1, *x.shape[2:]) for x in tables)
    return JudgedTables(n, wins, jnp.sum(wins, axis=2), jnp.any(n > 0, axis=2))


@jax.jit
def take(arrays: Any, at: Array) -> Any:
    """A tree of ``arrays`` at ``at`` of their first axes, as one program: alone, each shape costs a few to compile."""
    return jax.tree.map(lambda x: x[at], arrays)


@partial(jax.jit, static_argnames=("mesh", "chunk"))
def hold_out(full: FullFit, wins: Array, folds: Array, mesh: Mesh, terms: Terms, chunk: int) -> HeldOut:
    """Folds (F,) of L target maps with ``wins`` (L, M, M) that are the same in every fold; results (L, F, ...)."""

    def on_device(of_folds: tuple[Array], full: FullFit, wins: Array, terms: Terms) -> HeldOut:
        def of_map(lane: tuple[Array, FullFit, Array]) -> HeldOut:
            folds, full, wins = lane
            return _in_chunks(lambda fold: held_out.fold(full, wins, fold, terms), (folds,), chunk)

        return lax.map(of_map, (*of_folds, full, wins))

    every = jnp.broadcast_to(folds, (len(wins), *folds.shape))
    return _over_devices(on_device, mesh, (every,), full, wins, terms)


@partial(jax.jit, static_argnames=("mesh", "n_pairs", "chunk"))
def hold_out_soft(
    judged: Judged, beta: Array, full: FullFit, folds: Array, mesh: Mesh, terms: Terms, n_pairs: int, chunk: int
) -> HeldOut:
    """Folds (F,) of soft targets s(beta d), with each fold's own ``beta`` (S, F); S sets."""

    def on_device(of_folds: tuple[Array, Array], judged: Judged, full: FullFit, terms: Terms) -> HeldOut:
        def of_set(lane: tuple[Array, Array, Judged, FullFit]) -> HeldOut:
            folds, beta, judged, full = lane

            def one(fold: Array, beta: Array) -> HeldOut:
                target = probability(Link.LOGIT, beta * judged.level)
                return held_out.fold(full, pair_wins(judged, target, full.n, n_pairs), fold, terms)

            return _in_chunks(one, (folds, beta), chunk)

        return lax.map(of_set, (*of_folds, judged, full))

    every = jnp.broadcast_to(folds, (len(beta), *folds.shape))
    return _over_devices(on_device, mesh, (every, beta), judged, full, terms)


@jax.jit
def rate(anchors: Array, n: Array, score: Array, start: Array, terms: Terms) -> solve.Solution:
    """Strengths (L,) against fixed ``anchors`` (L, M), met ``n`` (L, M) times."""
    return jax.vmap(lambda a, n, y, x: held_out.rating(a, n, y, x, terms))(anchors, n, score, start)


class OwnResamples(NamedTuple):
    """Strengths of models in resamples of their own battles, or clusters."""

    theta: Array  # (..., K)
    status: Array  # (..., K) int8, a `Status`


@partial(jax.jit, static_argnames="mesh")
def own_resamples(
    own: OwnProblem,
    mesh: Mesh,
    seed: Array,
    terms: Terms,
    models: Array,
    numbers: Array,
    n_chunks: Array,
) -> OwnResamples:
    """Resamples ``numbers`` (devices, T, R) of ``models`` (devices, T), with leading axes (devices, T, R).

    Each device runs its first ``n_chunks`` (devices,).
    """

    def on_device(
        own: OwnProblem, seed: Array, terms: Terms, models: Array, numbers: Array, n_chunks: Array
    ) -> OwnResamples:
        def chunk(t: Array) -> OwnResamples:
            one = jax.tree.map(lambda x: x[models[0, t]], own)
            size = one.opponent.shape[0]
            draws = resample.singles(one.units, size, seed, one.stream, numbers[0, t])
            n, score = held_out.own_sums(one)(draws)

            def one_map(anchors: Array, score: Array, start: Array) -> solve.Solution:
                return jax.vmap(lambda n, y: held_out.rating(anchors, n, y, start, terms))(n, score)

            found = jax.vmap(one_map, out_axes=1)(one.anchors, score.T, one.start)
            return OwnResamples(found.theta, found.status)

        return run_chunks(chunk, numbers.shape[1], n_chunks[0])

    return over_devices(on_device, mesh, (own, seed, terms), (models, numbers, n_chunks))
