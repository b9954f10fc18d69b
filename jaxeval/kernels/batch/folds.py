"""Temperatures, folds that leave a model out, and resamples of a model's own battles."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import Mesh

from jaxeval.kernels import (
    held_out,
    own_battles,
    resample,
    solve,
    temperature,
)
from jaxeval.kernels.batch.chunks import over_devices, run_chunks
from jaxeval.kernels.judged import Judged, pair_sums, pair_wins


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


@partial(jax.jit, static_argnames="max_steps")
def temperatures(
    level: Array, n: Array, wins: Array, fewest: Array, tolerance: Array, max_steps: int
) -> temperature.Temperature:
    """Temperatures of (S, L) score levels."""
    return jax.vmap(lambda d, n, y: temperature.fit(d, n, y, fewest, tolerance, max_steps))(level, n, wins)


@partial(jax.jit, static_argnames=("mesh", "max_steps", "chunk"))
def fold_temperatures(
    judged: Judged, mesh: Mesh, fewest: Array, tolerance: Array, max_steps: int, chunk: int
) -> temperature.Temperature:
    """Temperatures (S, F + 1) of the sets ``judged``: without the rows of each fold's model, and of all rows."""

    def of_set(lane: tuple[Array, Judged], fewest: Array, tolerance: Array) -> temperature.Temperature:
        left_out, judged = lane
        size = judged.level.shape[0]
        total = jnp.zeros(size).at[judged.label].add(judged.battles)
        label = jnp.append(judged.label, 0)
        count = jnp.append(judged.battles, 0.0)

        def one(own: Array) -> temperature.Temperature:
            rest = total - jnp.zeros(size).at[label[own]].add(count[own])
            n, wins = rest * judged.fitting, rest * judged.wins
            return temperature.fit(judged.level, n, wins, fewest, tolerance, max_steps)

        return _in_chunks(one, (left_out,), chunk)

    def on_device(of_folds: tuple[Array], judged: Judged, fewest: Array, tolerance: Array) -> temperature.Temperature:
        return lax.map(lambda lane: of_set(lane, fewest, tolerance), (*of_folds, judged))

    nothing = jnp.full((judged.own.shape[0], 1, judged.own.shape[2]), judged.pair.shape[1], judged.own.dtype)
    left_out = jnp.concatenate([judged.own, nothing], axis=1)
    return _over_devices(on_device, mesh, (left_out,), judged, fewest, tolerance)


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
def take(arrays: tuple[Array, ...], at: Array) -> tuple[Array, ...]:
    """``arrays`` at ``at`` of their first axes, as one program: outside of one, each shape costs a few to compile."""
    return tuple(x[at] for x in arrays)


@partial(jax.jit, static_argnames=("mesh", "max_steps", "chunk"))
def hold_out(
    n: Array,
    wins: Array,
    start: Array,
    inverse: Array,
    active: Array,
    folds: Array,
    mesh: Mesh,
    ridge: Array,
    tolerance: Array,
    max_steps: int,
    chunk: int,
) -> held_out.HeldOut:
    """Folds (F,) of target maps that are the same in every fold: tables (L, M, M), results (L, F, ...)."""

    def on_device(
        of_folds: tuple[Array], tables: tuple[Array, ...], ridge: Array, tolerance: Array
    ) -> held_out.HeldOut:
        def of_map(lane: tuple[Array, ...]) -> held_out.HeldOut:
            folds, n, wins, start, inverse, active = lane

            def one(fold: Array) -> held_out.HeldOut:
                return held_out.fold(n, wins, fold, start, inverse, active, ridge, tolerance, max_steps)

            return _in_chunks(one, (folds,), chunk)

        return lax.map(of_map, (*of_folds, *tables))

    every = jnp.broadcast_to(folds, (n.shape[0], *folds.shape))
    return _over_devices(on_device, mesh, (every,), (n, wins, start, inverse, active), ridge, tolerance)


@partial(jax.jit, static_argnames=("mesh", "n_pairs", "max_steps", "chunk"))
def hold_out_soft(
    judged: Judged,
    beta: Array,
    n: Array,
    start: Array,
    inverse: Array,
    active: Array,
    folds: Array,
    mesh: Mesh,
    ridge: Array,
    tolerance: Array,
    max_steps: int,
    n_pairs: int,
    chunk: int,
) -> held_out.HeldOut:
    """Folds (F,) of soft targets s(beta d), with each fold's own ``beta`` (S, F); tables (S, M, M)."""

    def on_device(
        of_folds: tuple[Array, Array], sets: tuple[Any, ...], ridge: Array, tolerance: Array
    ) -> held_out.HeldOut:
        def of_set(lane: tuple[Any, ...]) -> held_out.HeldOut:
            folds, beta, judged, n, start, inverse, active = lane

            def one(fold: Array, beta: Array) -> held_out.HeldOut:
                wins = pair_wins(judged, jax.nn.sigmoid(beta * judged.level), n, n_pairs)
                return held_out.fold(n, wins, fold, start, inverse, active, ridge, tolerance, max_steps)

            return _in_chunks(one, (folds, beta), chunk)

        return lax.map(of_set, (*of_folds, *sets))

    every = jnp.broadcast_to(folds, (n.shape[0], *folds.shape))
    return _over_devices(on_device, mesh, (every, beta), (judged, n, start, inverse, active), ridge, tolerance)


@partial(jax.jit, static_argnames=("max_steps",))
def rate(
    anchors: Array, n: Array, score: Array, start: Array, ridge: Array, tolerance: Array, max_steps: int
) -> solve.Solution:
    """Strengths (L,) against fixed ``anchors`` (L, M), met ``n`` (L, M) times."""
    return jax.vmap(lambda a, n, y, x: held_out.rating(a, n, y, x, ridge, tolerance, max_steps))(
        anchors, n, score, start
    )


class OwnResamples(NamedTuple):
    """Strengths of models in resamples of their own battles, or clusters."""

    theta: Array  # (..., K)
    status: Array  # (..., K) int8, of `solve`


@partial(jax.jit, static_argnames=("mesh", "max_steps"))
def own_resamples(
    own: own_battles.OwnBattles,
    mesh: Mesh,
    seed: Array,
    ridge: Array,
    tolerance: Array,
    max_steps: int,
    models: Array,
    numbers: Array,
    n_chunks: Array,
) -> OwnResamples:
    """Resamples ``numbers`` (devices, T, R) of ``models`` (devices, T), with leading axes (devices, T, R).

    Each device runs its first ``n_chunks`` (devices,).
    """

    def on_device(
        own: own_battles.OwnBattles,
        seed: Array,
        ridge: Array,
        tolerance: Array,
        models: Array,
        numbers: Array,
        n_chunks: Array,
    ) -> OwnResamples:
        def chunk(t: Array) -> OwnResamples:
            one = jax.tree.map(lambda x: x[models[0, t]], own)
            size = one.opponent.shape[0]
            draws = resample.singles(one.units, size, seed, one.stream, numbers[0, t])
            n, score = own_battles.sums(one)(draws)

            def one_map(anchors: Array, score: Array, start: Array) -> solve.Solution:
                return jax.vmap(lambda n, y: held_out.rating(anchors, n, y, start, ridge, tolerance, max_steps))(
                    n, score
                )

            found = jax.vmap(one_map, out_axes=1)(one.anchors, score.T, one.start)
            return OwnResamples(found.theta, found.status)

        return run_chunks(chunk, numbers.shape[1], n_chunks[0])

    return over_devices(on_device, mesh, (own, seed, ridge, tolerance), (models, numbers, n_chunks))
