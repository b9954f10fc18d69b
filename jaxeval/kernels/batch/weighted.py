"""Statistics of weighted rows: in resamples, of all rows, and with groups left out. Whatever weighs rows runs here."""

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

from jaxeval.kernels import resample, squares
from jaxeval.kernels.batch.programs import Chunks, over_lanes, program
from jaxeval.kernels.kinds import Array, Float, Int32, Integer, Jaxpr, Mesh, Num, UInt64
from jaxeval.kernels.platforms import add_at
from jaxeval.lazy_names import core, jax, jnp, lax

#: One problem: (weights (N,), data) -> results.
Statistic: TypeAlias = Callable[[Array, Any], Any]

#: The number of the lane that weighs rows as the data do.
WHOLE = -1


class Stages(NamedTuple):
    """A tree of groups, stage by stage from the whole, which is one group, down to the units.

    Groups of a stage are numbered parent by parent.
    """

    first: tuple[Int32[Array, "... _"], ...]  # number of the first child of each group, in the next stage
    size: tuple[Int32[Array, "... _"], ...]  # children of each group
    place: tuple[Int32[Array, "... _"], ...]  # 0, 1, ...: as many as the largest group of the stage has children


def nested(
    stages: Stages, size: int, seed: Integer[Array, ""], stream: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> Int32[Array, "R {size}"]:
    """Return how often each unit is in the resamples ``numbers``: in slots from 0 to ``size``.

    Of each group that is drawn, as many children are drawn with replacement as it has. A group that is drawn twice
    draws its children twice, independently.
    """
    group = jnp.zeros((len(numbers), 1), jnp.int32)
    there = jnp.ones(group.shape, bool)
    for stage, (first, n_children, place) in enumerate(zip(*stages, strict=True)):
        n = n_children[group][:, :, None]
        counter = jnp.arange(group.shape[1])[:, None] * len(place) + place
        word = squares.words32(
            counter.astype(jnp.uint64), squares.stream_key(seed, stream, numbers, stage)[:, None, None]
        )
        child = (word.astype(jnp.uint64) * n.astype(jnp.uint64)) >> 32
        there = there[:, :, None] & (place < n)
        group = jnp.where(there, first[group][:, :, None] + child.astype(jnp.int32), 0).reshape(len(numbers), -1)
        there = there.reshape(len(numbers), -1)
    return add_at(jnp.zeros((len(numbers), size), jnp.int32), group, there)


class Factor(NamedTuple):
    """What is drawn, by itself."""

    units: resample.Units | resample.Singles | Stages
    stream: UInt64[Array, "..."]
    place: Int32[Array, "... N"] | None  # the unit of each row, row-major on a grid; None: unit n is row n


class WeighedRows(NamedTuple):
    """How N rows are weighed: each by ``base``, as often as its units are drawn.

    A resample multiplies what its factors draw. With groups and no factors, lane g leaves group g out.
    """

    factors: tuple[Factor, ...]
    base: Float[Array, "... N"] | None = None  # None: 1
    full: Float[Array, "... N"] | None = None  # weights of the data; None where no lane asks for them
    groups: Int32[Array, "... N G"] | None = None  # the groups that a row is in, if groups are left out


class RowForm(NamedTuple):
    """How rows are drawn: static."""

    scheme: resample.DrawScheme = resample.DrawScheme.MULTINOMIAL
    sizes: tuple[int, ...] = ()  # slots of the units of each factor that has no grid
    alone: bool = False  # whether lanes of a chunk are computed one after the other, in the cache of a core


def row_weights(
    rows: WeighedRows, form: RowForm, seed: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> Num[Array, "R N"]:
    """Return the weights of the rows in the lanes ``numbers``."""
    if rows.groups is not None:
        return jnp.where(jnp.any(rows.groups == numbers[:, None, None], axis=-1), 0.0, jnp.asarray(rows.full))
    drawn = [drawn_rows(*factor, form.scheme, seed, numbers) for factor in zip(rows.factors, form.sizes, strict=True)]
    weights = reduce(operator.mul, drawn if rows.base is None else [rows.base, *drawn])
    return weights if rows.full is None else jnp.where(numbers[:, None] == WHOLE, rows.full, weights)


def drawn_rows(
    factor: Factor, size: int, scheme: resample.DrawScheme, seed: Array, numbers: Array
) -> Num[Array, "R N"]:
    """Return how often each row is drawn: by NumPy where all arrays are on the host."""
    units, stream = factor.units, factor.stream
    if isinstance(units, resample.Singles):
        drawn: Array = resample.singles(units, size, seed, stream, numbers)
    elif isinstance(units, Stages):
        drawn = nested(units, size, seed, stream, numbers)
    else:
        drawn = resample.draw(units, scheme, resample.Packing(None), seed, stream, numbers).reshape(len(numbers), -1)
    return drawn if factor.place is None else drawn[:, factor.place]


def over_weights(
    statistic: Statistic, rows: WeighedRows, form: RowForm, data: Any, mesh: Mesh, seed: Integer[Array, ""],
    chunks: Chunks, entry: Int32[Array, "... N"] | None = None,
) -> Any:  # fmt: skip
    """Return ``statistic(weights, data)`` of every lane; results get the leading axes (devices, T, R).

    ``rows`` are stacked over slices, and so is ``entry``: which entry of the ``data`` each row is, if not the n-th.
    """

    def chunk(of_slice: tuple[WeighedRows, Array | None], numbers: Array, data: Any, seed: Array) -> Any:
        rows, entry = of_slice
        held = data if entry is None else jax.tree.map(lambda x: x[entry], data)
        weights = row_weights(rows, form, seed, numbers)
        if form.alone:
            return lax.map(lambda lane: statistic(lane, held), weights)
        return jax.vmap(lambda lane: statistic(lane, held))(weights)

    return over_lanes(chunk, mesh, chunks, (data, seed), (rows, entry))


def split(statistic: Statistic, weights: Any, data: Any) -> tuple[Callable[[Any], list[Any]], Statistic, Any]:
    """Give a statistic as what depends on the data alone, such as their order, and what is left to do for each weight.

    Returns:
        A function of the data; a statistic of the weights and of what that function gives; and its computation.
    """
    closed, shapes = jax.make_jaxpr(statistic, return_shape=True)(weights, data)
    jaxpr, n_weights = closed.jaxpr, 1
    varying = set(jaxpr.invars[:n_weights])
    fixed: list[Any] = []
    left: list[Any] = []
    for equation in jaxpr.eqns:
        varies = any(not isinstance(x, core.Literal) and x in varying for x in equation.invars) or equation.effects
        (left if varies else fixed).append(equation)
        varying |= set(equation.outvars) if varies else set()
    made = {x for equation in fixed for x in equation.outvars} | set(jaxpr.invars[n_weights:])
    read = [x for equation in left for x in equation.invars] + list(jaxpr.outvars)
    kept = [*dict.fromkeys(x for x in read if not isinstance(x, core.Literal) and x in made)]
    before = closed.replace(jaxpr=_part(jaxpr, jaxpr.invars[n_weights:], kept, fixed))
    after = closed.replace(jaxpr=_part(jaxpr, [*jaxpr.invars[:n_weights], *kept], jaxpr.outvars, left))
    structure = jax.tree.structure(shapes)

    def of_weights(weights: Array, known: list[Array]) -> Any:
        return jax.tree.unflatten(structure, core.jaxpr_as_fun(after)(weights, *known))

    return lambda data: core.jaxpr_as_fun(before)(*jax.tree.leaves(data)), of_weights, after


def _part(jaxpr: Jaxpr, invars: Any, outvars: Any, equations: Any) -> Jaxpr:
    names = jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    return jaxpr.replace(invars=list(invars), outvars=list(outvars), eqns=list(equations), debug_info=names)


@program("statistic", "form", "mesh")
def statistic_lanes(
    statistic: Statistic,
    rows: WeighedRows,
    form: RowForm,
    data: Any,
    mesh: Mesh,
    seed: Integer[Array, ""],
    chunks: Chunks,
) -> Any:
    """Return a statistic that somebody brings, in all lanes."""
    n = len(jax.tree.leaves(data)[0])
    of_data, of_weights, _ = split(statistic, jax.ShapeDtypeStruct((n,), jnp.float64), data)
    return over_weights(of_weights, rows, form, of_data(data), mesh, seed, chunks)


@program("statistic", runs="briefly")
def statistic_once(statistic: Statistic, weights: Float[Array, "N"], data: Any) -> Any:
    """Return the statistic of one set of weights."""
    return statistic(weights, data)


@program("statistic", runs="briefly")
def statistic_slopes(statistic: Statistic, weights: Float[Array, "N"], data: Any) -> Float[Array, "K N"]:
    """Return the derivatives of a statistic by each weight, by reverse differentiation."""
    slopes: Array = jax.jacrev(lambda w: statistic(w, data))(weights)
    return slopes


@program("form", "mesh")
def row_sums(
    rows: WeighedRows, form: RowForm, columns: tuple[Num[Array, "Q _"], ...], entry: Int32[Array, "... N"] | None,
    mesh: Mesh, seed: Integer[Array, ""], chunks: Chunks,
) -> Float[Array, "devices chunks R _"]:  # fmt: skip
    """Sum ``columns`` (Q, K1), (Q, K2), ... in resamples, each in its precision: (devices, T, R, K1 + K2 + ...)."""

    def sums(weights: Array, columns: tuple[Array, ...]) -> Array:
        return jnp.concatenate(
            [jnp.matmul(weights.astype(x.dtype), x, precision="highest").astype(jnp.float64) for x in columns]
        )

    return over_weights(sums, rows, form, columns, mesh, seed, chunks, entry)


@program("form", "mesh")
def row_counts(
    rows: WeighedRows, form: RowForm, mesh: Mesh, seed: Integer[Array, ""], chunks: Chunks
) -> Num[Array, "devices chunks R N"]:
    """Return the weights themselves."""
    return over_weights(lambda weights, _: weights, rows, form, (), mesh, seed, chunks)
