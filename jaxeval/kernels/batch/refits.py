"""Bradley-Terry fits over slices, and refits over slices x resamples."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh

from jaxeval.kernels import (
    connectivity,
    likelihood,
    pair_tables,
    resample,
    solve,
)
from jaxeval.kernels.batch.chunks import over_devices, run_chunks

#: Solvers.
CHORD, NEWTON_CG, NEWTON, SCALED_CHORD, SPARSE = range(5)


class Problem(NamedTuple):
    """One slice: what is resampled, and the full-data fit that every refit starts from. Stacked, a leading axis S."""

    units: resample.Units
    layout: pair_tables.Layout
    stream: Array  # () uint64: names the slice's random numbers
    start: Array  # (M,) full-data log-strengths
    inverse: Array  # (M, M) pseudo-inverse of the full-data information
    information_diagonal: Array  # (M,)
    main_battles: Array  # (M,) full-data battles of the models of its main group, 0 for the others


class Refits(NamedTuple):
    """Lanes of refitted resamples."""

    theta: Array  # (..., M)
    status: Array  # (...) int8, of `solve`
    n_steps: Array  # (...) int32
    grad_norm: Array  # (...)
    standing: Array  # (..., M) int8, of `connectivity`; all IDENTIFIED unless the search was asked for


class Method(NamedTuple):
    """Static choices; each combination compiles once per shape."""

    scheme: resample.DrawScheme
    packing: resample.Packing
    n_pairs: int
    solver: int  # CHORD for boards that no resample separates; the others search for separated models first
    dtype: type
    max_steps: int


@partial(jax.jit, static_argnames="max_steps")
def fit(
    n: Array,
    score: Array,
    active: Array,
    ridge: Array,
    tolerance: Array,
    max_steps: int,
    start: Array | None = None,
) -> solve.Solution:
    """Newton fits of (S, M, M) tables, from ``start`` (S, M) if given."""

    def one(n: Array, score: Array, active: Array, start: Array | None) -> solve.Solution:
        return solve.newton(pair_tables.PairTable(n, score), active, ridge, tolerance, max_steps, start)

    return jax.vmap(one)(n, score, active, start)


@jax.jit
def inverse_information(theta: Array, n: Array, ridge: Array, active: Array) -> tuple[Array, Array]:
    """(S, M, M) pseudo-inverse and (S, M) diagonal of the information."""

    def one(theta: Array, n: Array, active: Array) -> tuple[Array, Array]:
        diagonal = jnp.sum(likelihood.curvature(theta, n), 1)
        inverse = solve.inverse_information(theta, n, ridge, active)
        return inverse, jnp.where(active, diagonal + 2 * ridge, 0.0)

    return jax.vmap(one)(theta, n, active)


class _Drawn(Protocol):
    """What is resampled: the beginning of a problem."""

    @property
    def units(self) -> resample.Units: ...
    @property
    def layout(self) -> pair_tables.Layout: ...
    @property
    def stream(self) -> Array: ...


def draw_pairs(problem: _Drawn, method: Method, seed: Array, numbers: Array) -> tuple[Array, ...]:
    """(R, P) per-pair statistics of the resamples ``numbers`` (R,)."""
    draws = resample.draw(problem.units, method.scheme, method.packing, seed, problem.stream, numbers)
    return jax.vmap(lambda draws: pair_tables.pair_statistics(problem.layout, draws, method.n_pairs))(draws)


def _solve(problem: Problem, method: Method, ridge: Array, tolerance: Array, table: pair_tables.PairTable) -> Refits:
    start = problem.start.astype(method.dtype)
    inverse = problem.inverse.astype(method.dtype)
    if table.wins is None:  # not kept for chord steps
        end = solve.chord(table, start, inverse, ridge, tolerance, method.max_steps)
        return Refits(*end, jnp.zeros(start.shape, jnp.int8))
    standing = connectivity.standing(table.n, table.wins, problem.main_battles)
    # With a ridge every model has a finite rating, but those that the data leave open are still told apart.
    active = (standing == connectivity.IDENTIFIED) | (ridge > 0)
    both = active[:, None] & active
    n = jnp.where(both, table.n, 0)
    score = pair_tables.row_sums(jnp.where(both, table.wins, 0)).astype(method.dtype)
    connected = pair_tables.PairTable(n, score)
    if method.solver == NEWTON:
        end = solve.newton(connected, active, ridge, tolerance, method.max_steps)
        return Refits(*end, standing)
    end = solve.newton_cg(
        connected,
        start,
        inverse,
        problem.information_diagonal.astype(method.dtype),
        ridge,
        tolerance,
        method.max_steps,
    )
    return Refits(*end, standing)


def _refit_chunk(
    problem: Problem, method: Method, seed: Array, ridge: Array, tolerance: Array, numbers: Array
) -> Refits:
    """Draw, tabulate and refit the resamples ``numbers`` (R,) of one slice."""
    statistics = draw_pairs(problem, method, seed, numbers)
    shape = (problem.start.shape[0],) * 2
    dense = _stored(jax.vmap(partial(pair_tables.spread, problem.layout)), statistics, shape)
    table = jax.vmap(
        lambda *x: pair_tables.pair_table(
            problem.layout, x, method.packing, method.dtype, keep_wins=method.solver != CHORD
        )
    )(*dense)
    return jax.vmap(partial(_solve, problem, method, ridge, tolerance))(table)


def _stored(
    function: Callable[[tuple[Array, ...]], tuple[Array, ...]],
    statistics: tuple[Array, ...],
    shape: tuple[int, ...],
) -> tuple[Array, ...]:
    """``function(statistics)``, a table of ``shape`` per lane and statistic, in memory before its use.

    XLA on the CPU would otherwise fuse the gather into every pass of the solver. It cannot fuse out of a conditional
    whose predicate depends on the data. This one always holds: no pair has that many battles.
    """
    lanes = statistics[0].shape[0]
    zeros = tuple(jnp.zeros((lanes, *shape), x.dtype) for x in statistics)
    kind = statistics[0].dtype
    never = np.inf if jnp.issubdtype(kind, jnp.floating) else np.iinfo(kind).max
    return lax.cond(statistics[0][0, 0] != np.asarray(never, kind), function, lambda _: zeros, statistics)


@partial(jax.jit, static_argnames=("method", "mesh"))
def refit(
    problems: Problem,
    method: Method,
    mesh: Mesh,
    seed: Array,
    ridge: Array,
    tolerance: Array,
    slices: Array,
    numbers: Array,
    n_chunks: Array,
) -> Refits:
    """Refit the resamples ``numbers`` (devices, T, R) of the slices (devices, T), chunk by chunk.

    A chunk's R lanes belong to one slice and run together; each device runs the first ``n_chunks`` (devices,) of its
    T chunks. The result has shape (devices, T, R, ...), with zeros where no chunk ran.
    """

    def on_device(
        problems: Problem,
        seed: Array,
        ridge: Array,
        tolerance: Array,
        slices: Array,
        numbers: Array,
        n_chunks: Array,
    ) -> Refits:
        def chunk(t: Array) -> Refits:
            problem = jax.tree.map(lambda x: x[slices[0, t]], problems)
            return _refit_chunk(problem, method, seed, ridge, tolerance, numbers[0, t])

        return run_chunks(chunk, slices.shape[1], n_chunks[0])

    return over_devices(on_device, mesh, (problems, seed, ridge, tolerance), (slices, numbers, n_chunks))


@partial(jax.jit, static_argnames="method")
def draw(problems: Problem, method: Method, seed: Array, slice_: Array, number: Array) -> tuple[Array, Array | None]:
    """(M, M) battle weights and wins of one resample, as `refit` draws it: to reproduce or audit it."""
    problem = jax.tree.map(lambda x: x[slice_], problems)
    (statistics,) = zip(*draw_pairs(problem, method, seed, number[None]), strict=True)
    dense = pair_tables.spread(problem.layout, statistics)
    table = pair_tables.pair_table(problem.layout, dense, method.packing, np.float64, keep_wins=True)
    return table.n, table.wins
