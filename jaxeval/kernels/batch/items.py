"""Resamples of items and of models: sums of columns, measures of evaluators, item response models."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh

from jaxeval.kernels import item_response, rank_agreement, resample
from jaxeval.kernels.batch.chunks import Chunks, over_lanes
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.item_response import Curves, Parameters, Posterior, Responses
from jaxeval.kernels.kinds import Float, Int8, Int32, Integer, Num
from jaxeval.kernels.solve import Solution, Terms


class ItemTotals(NamedTuple):
    """Scores item by item, in Q slots of items and E M columns, a row of M for every evaluator."""

    score: Float[Array, "Q columns"]  # 0 where missing
    present: Float[Array, "Q columns"]  # 1, or 0 where missing
    # A power of two. Means are its multiples, so that equal ones are equal whatever the order of a sum.
    step: Float[Array, ""]


def _item_scores(totals: ItemTotals, n_models: int, counts: Num[Array, "R Q"]) -> Float[Array, "R E {n_models}"]:
    """Mean scores over the items drawn, NaN where a model has none."""
    total, n = (jnp.matmul(counts.astype(jnp.float64), x, precision="highest") for x in totals[:2])
    mean = jnp.round(total / jnp.maximum(n, 1) / totals.step) * totals.step
    return jnp.where(n > 0, mean, jnp.nan).reshape(len(counts), -1, n_models)


@program("measure", "mesh")
def evaluator_resamples(
    measure: Callable[..., Any],
    scores: Float[Array, "E M"] | ItemTotals,
    gold: Float[Array, "M"],
    arguments: tuple[Array | rank_agreement.GapQuestion | rank_agreement.TierQuestion, ...],
    counts: tuple[Num[Array, "_ _"], ...],
    mesh: Mesh,
    chunks: Chunks,
) -> Any:
    """``measure(scores (E, M), gold (M,), counts (M,), *arguments)`` of resamples.

    ``measure`` is of `rank_agreement`. ``counts`` (L, Q) of all resamples are those of models in Q slots and, for
    scores by item, those of items. What ``measure`` returns gets the leading axes (devices, T, R).
    """

    def chunk(
        numbers: Array, scores: Array | ItemTotals, gold: Array, arguments: tuple[Any, ...], counts: tuple[Array, ...]
    ) -> Any:
        own = counts[0][numbers, : len(gold)].astype(jnp.float64)
        if isinstance(scores, ItemTotals):
            lanes, along = _item_scores(scores, len(gold), counts[1][numbers]), 0
        else:
            lanes, along = scores, None
        return jax.vmap(lambda x, c: measure(x, gold, c, *arguments), in_axes=(along, 0))(lanes, own)

    return over_lanes(chunk, mesh, chunks, (scores, gold, arguments, counts))


@program("mesh")
def delta_sums(
    pairs: rank_agreement.DeltaPairs, counts: Num[Array, "_ Q"], mesh: Mesh, chunks: Chunks
) -> rank_agreement.PairSums:
    """Sums over pairs of fixed scores in resamples: (devices, T, R, E, D); ``counts`` are of models in all of them."""

    def chunk(numbers: Array, pairs: rank_agreement.DeltaPairs, counts: Array) -> rank_agreement.PairSums:
        return rank_agreement.delta_sums_of_draws(counts[numbers], pairs)

    return over_lanes(chunk, mesh, chunks, (pairs, counts))


class ItemDraw(NamedTuple):
    """What is drawn: items, or their clusters."""

    units: resample.Singles
    unit: Int32[Array, "I"]  # of each item; one that is not drawn for padding


class Abilities(NamedTuple):
    """Abilities in resamples, with the lanes as leading axes."""

    ability: Float[Array, "... M"]
    status: Int8[Array, "..."]
    n_steps: Int32[Array, "..."]


@program("curves")
def fit_item_response(
    responses: Responses, curves: Curves, start: Parameters, weight: Float[Array, "I"], terms: Terms
) -> tuple[Solution, Posterior]:
    """The fit to all items, and the posteriors of abilities there."""
    end = item_response.fit(responses, curves, start, weight, terms)
    now = item_response.split(end.theta, len(start.mean))
    return end, item_response.posterior(responses, now, weight)


@program("curves", "mesh", "n_units")
def refit_item_response(
    responses: Responses,
    curves: Curves,
    start: Parameters,
    draw: ItemDraw,
    mesh: Mesh,
    chunks: Chunks,
    *,
    seed: Integer[Array, ""],
    stream: Integer[Array, ""],
    terms: Terms,
    n_units: int,
) -> Abilities:
    """Refits to resamples of items, from the fit to all; results have the leading axes (devices, T, R)."""

    def chunk(
        numbers: Array,
        responses: Responses,
        start: Parameters,
        draw: ItemDraw,
        seed: Array,
        stream: Array,
        terms: Terms,
    ) -> Abilities:
        counts = resample.singles(draw.units, n_units, seed, stream, numbers).astype(jnp.float64)

        def one(count: Array) -> Abilities:
            end = item_response.fit(responses, curves, start, count[draw.unit], terms)
            return Abilities(end.theta[: len(start.mean)], end.status, end.n_steps)

        return jax.vmap(one)(counts)

    return over_lanes(chunk, mesh, chunks, (responses, start, draw, seed, stream, terms))
