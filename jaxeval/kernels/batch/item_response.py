"""Item response models of resamples of items, one per lane."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh

from jaxeval.kernels import item_response, resample
from jaxeval.kernels.batch.chunks import Chunks, over_lanes
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.item_response import Curves, Parameters, Posterior, Responses
from jaxeval.kernels.kinds import Float, Int8, Int32, Integer
from jaxeval.kernels.solve import Solution, Terms


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
