"""Resamples of items and of models: sums of columns, and measures of evaluators."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import Mesh

from jaxeval.kernels import (
    rank_agreement,
    resample,
)
from jaxeval.kernels.batch.chunks import over_devices


class Items(NamedTuple):
    """P sets of items to draw from, stacked."""

    units: resample.Units | resample.Singles  # of one row: alike items together; or items one by one
    row: Array | None  # (P, Q) int32: where items are drawn one by one, the row of columns of each
    stream: Array  # (P,) uint64


@partial(jax.jit, static_argnames=("mesh", "top_up_size"))
def item_sums(
    items: Items,
    columns: tuple[Array, ...],
    mesh: Mesh,
    seed: Array,
    sets: Array,
    numbers: Array,
    top_up_size: int,
) -> Array:
    """Sums over the items of resamples ``numbers`` (devices, T, R), chunk t of a device drawing from one set of items.

    A chunk's set is ``sets`` (devices, T). ``columns`` are (Q, K1), (Q, K2), ...: sums are in each one's precision,
    and the result (devices, T, R, K1 + K2 + ...) in double.
    """
    tally = resample.Tally(None, 0)

    def draw(items: Items, seed: Array, numbers: Array) -> Array:
        units, stream = items.units, items.stream
        if isinstance(units, resample.Singles):
            return resample.singles(units, columns[0].shape[0], top_up_size, seed, stream, numbers)
        one = partial(resample.multinomial, units, tally, top_up_size, seed, stream)
        return jax.vmap(one)(numbers)[:, 0]

    def on_device(items: Items, columns: tuple[Array, ...], seed: Array, sets: Array, numbers: Array) -> Array:
        def chunk(one: tuple[Array, Array]) -> Array:
            which, numbers = one
            own = jax.tree.map(lambda x: x[which], items)
            draws = draw(own, seed, numbers)
            rows = [x if own.row is None else x[own.row] for x in columns]
            sums = [jnp.matmul(draws.astype(x.dtype), x, precision="highest").astype(jnp.float64) for x in rows]
            return jnp.concatenate(sums, axis=1)

        return lax.map(chunk, (sets[0], numbers[0]))[None]

    return over_devices(on_device, mesh, (items, columns, seed), (sets, numbers))


@partial(jax.jit, static_argnames=("mesh", "width", "top_up_size"))
def draw_singles(
    singles: resample.Singles,
    mesh: Mesh,
    seed: Array,
    stream: Array,
    numbers: Array,
    width: int,
    top_up_size: int,
) -> Array:
    """(devices, T, R, width) uint8: how often each is in the resamples ``numbers`` (devices, T, R).

    Slots beyond the N drawn, of which there must be one at least, hold 0.
    """

    def on_device(singles: resample.Singles, seed: Array, stream: Array, numbers: Array) -> Array:
        def chunk(numbers: Array) -> Array:
            draws = resample.singles(singles, width, top_up_size, seed, stream, numbers)
            return jnp.where(jnp.arange(width) < singles.total, draws, jnp.uint8(0))

        return lax.map(chunk, numbers[0])[None]

    return over_devices(on_device, mesh, (singles, seed, stream), (numbers,))


class ItemTotals(NamedTuple):
    """Scores item by item, in Q slots of items."""

    score: Array  # (Q, E M) 0 where missing
    present: Array  # (Q, E M) 1, or 0 where missing
    step: Array  # () power of two: means are its multiples, so that equal ones are equal whatever the order of a sum


def _item_scores(totals: ItemTotals, n_models: int, counts: Array) -> Array:
    """(R, E, M) mean scores over the items drawn, NaN where a model has none."""
    total, n = (jnp.matmul(counts.astype(jnp.float64), x, precision="highest") for x in totals[:2])
    mean = jnp.round(total / jnp.maximum(n, 1) / totals.step) * totals.step
    return jnp.where(n > 0, mean, jnp.nan).reshape(len(counts), -1, n_models)


@partial(jax.jit, static_argnames=("measure", "mesh"))
def evaluator_resamples(
    measure: Callable[..., Any],
    scores: Array | ItemTotals,
    gold: Array,
    arguments: tuple[Array, ...],
    mesh: Mesh,
    counts: tuple[Array, ...],
) -> Any:
    """``measure(scores (E, M), gold (M,), counts (M,), *arguments)`` of resamples, of `rank_agreement`.

    ``counts`` (devices, T, R, Q) are those of models in Q slots and, for scores by item, those of items. What
    ``measure`` returns gets the leading axes (devices, T, R).
    """

    def on_device(
        scores: Array | ItemTotals, gold: Array, arguments: tuple[Array, ...], counts: tuple[Array, ...]
    ) -> Any:
        def chunk(counts: tuple[Array, ...]) -> Any:
            own = counts[0][:, : len(gold)].astype(jnp.float64)
            if isinstance(scores, ItemTotals):
                lanes, along = _item_scores(scores, len(gold), counts[1]), 0
            else:
                lanes, along = scores, None
            return jax.vmap(lambda x, c: measure(x, gold, c, *arguments), in_axes=(along, 0))(lanes, own)

        return jax.tree.map(lambda x: x[None], lax.map(chunk, tuple(x[0] for x in counts)))

    return over_devices(on_device, mesh, (scores, gold, arguments), (counts,))


@partial(jax.jit, static_argnames="mesh")
def delta_sums(pairs: rank_agreement.DeltaPairs, mesh: Mesh, counts: Array) -> rank_agreement.PairSums:
    """Sums over pairs of fixed scores in resamples ``counts`` (devices, T, R, Q) of models: (devices, T, R, E, D)."""

    def on_device(pairs: rank_agreement.DeltaPairs, counts: Array) -> rank_agreement.PairSums:
        found = lax.map(lambda own: rank_agreement.delta_sums_of_draws(own, pairs), counts[0])
        return jax.tree.map(lambda x: x[None], found)

    return over_devices(on_device, mesh, (pairs,), (counts,))
