"""The one place that batches: fits over slices, refits over slices x resamples, chunked and sharded.

Kernels know one problem; here they are vmapped over the lanes of a chunk, chunks run one after the other inside one
compiled call, and the chunks of a call are spread over the devices.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh, PartitionSpec

from jaxeval.kernels import (
    connectivity,
    contextual,
    held_out,
    judge_error,
    likelihood,
    own_battles,
    pair_tables,
    rank_agreement,
    references,
    resample,
    solve,
    squares,
    temperature,
)
from jaxeval.kernels.judged import Judged, pair_sums, pair_wins

MULTINOMIAL, POISSON, BAYESIAN = 0, 1, 2
CHORD, NEWTON_CG, NEWTON = 0, 1, 2


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

    scheme: int
    tally: resample.Tally
    n_pairs: int
    top_up_size: int
    solver: int  # CHORD for boards that no resample separates; the others search for separated models first
    dtype: type
    max_steps: int


@partial(jax.jit, static_argnames="max_steps")
def fit(n: Array, score: Array, active: Array, ridge: Array, tolerance: Array, max_steps: int) -> solve.Solution:
    """Newton fits of (S, M, M) tables."""

    def one(n: Array, score: Array, active: Array) -> solve.Solution:
        return solve.newton(pair_tables.PairTable(n, score), active, ridge, tolerance, max_steps)

    return jax.vmap(one)(n, score, active)


@jax.jit
def inverse_information(theta: Array, n: Array, ridge: Array, active: Array) -> tuple[Array, Array]:
    """(S, M, M) pseudo-inverse and (S, M) diagonal of the information."""

    def one(theta: Array, n: Array, active: Array) -> tuple[Array, Array]:
        diagonal = jnp.sum(likelihood.curvature(theta, n), 1)
        inverse = solve.inverse_information(theta, n, ridge, active)
        return inverse, jnp.where(active, diagonal + 2 * ridge, 0.0)

    return jax.vmap(one)(theta, n, active)


def _draw(problem: Problem, method: Method, seed: Array, number: Array) -> tuple[Array, ...]:
    """Per-pair statistics of one resample."""
    units, tally, stream = problem.units, method.tally, problem.stream
    if method.scheme == MULTINOMIAL:
        draws = resample.multinomial(units, tally, method.top_up_size, seed, stream, number)
    elif method.scheme == POISSON:
        draws = resample.poisson(units, tally, seed, stream, number)
    else:
        draws = resample.bayesian(units, seed, stream, number)
    return pair_tables.pair_statistics(problem.layout, draws, method.n_pairs)


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
    statistics = jax.vmap(lambda r: _draw(problem, method, seed, r))(numbers)
    dense = _stored(jax.vmap(partial(pair_tables.spread, problem.layout)), statistics, problem.layout.position.shape)
    table = jax.vmap(
        lambda *x: pair_tables.pair_table(
            problem.layout, x, method.tally, method.dtype, keep_wins=method.solver != CHORD
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

        def run(t: Array, results: Refits) -> Refits:
            return jax.tree.map(lambda all_, one: all_.at[t].set(one), results, chunk(t))

        shapes = jax.eval_shape(chunk, jnp.int32(0))
        n_slots = slices.shape[1]
        empty = jax.tree.map(lambda s: jnp.zeros((n_slots, *s.shape), s.dtype), shapes)
        results = lax.fori_loop(0, n_chunks[0], run, empty)
        return jax.tree.map(lambda x: x[None], results)

    across, whole = PartitionSpec("lanes"), PartitionSpec()
    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(whole, whole, whole, whole, across, across, across),
        out_specs=across,
        check_vma=False,
    )(problems, seed, ridge, tolerance, slices, numbers, n_chunks)


@partial(jax.jit, static_argnames="method")
def draw(problems: Problem, method: Method, seed: Array, slice_: Array, number: Array) -> tuple[Array, Array | None]:
    """(M, M) battle weights and wins of one resample, as `refit` draws it: to reproduce or audit it."""
    problem = jax.tree.map(lambda x: x[slice_], problems)
    dense = pair_tables.spread(problem.layout, _draw(problem, method, seed, number))
    table = pair_tables.pair_table(problem.layout, dense, method.tally, np.float64, keep_wins=True)
    return table.n, table.wins


def _in_chunks(function: Callable[..., Any], lanes: tuple[Array, ...], size: int) -> Any:
    """``function`` vmapped over chunks of ``size`` lanes, one chunk after the other; a last short one is repeated."""
    n = lanes[0].shape[0]
    n_chunks = -(-n // size)
    number = jnp.minimum(jnp.arange(n_chunks * size), n - 1).reshape(n_chunks, size)
    results = lax.map(lambda which: jax.vmap(function)(*(x[which] for x in lanes)), number)
    return jax.tree.map(lambda x: x.reshape(n_chunks * size, *x.shape[2:])[:n], results)


@partial(jax.jit, static_argnames="max_steps")
def temperatures(
    level: Array, n: Array, wins: Array, fewest: Array, tolerance: Array, max_steps: int
) -> temperature.Temperature:
    """Temperatures of (S, L) score levels."""
    return jax.vmap(lambda d, n, y: temperature.fit(d, n, y, fewest, tolerance, max_steps))(level, n, wins)


@partial(jax.jit, static_argnames=("max_steps", "chunk"))
def fold_temperatures(
    judged: Judged, fewest: Array, tolerance: Array, max_steps: int, chunk: int
) -> temperature.Temperature:
    """Temperatures (S, F + 1) of the sets ``judged``: without the rows of each fold's model, and of all rows."""

    def of_set(judged: Judged) -> temperature.Temperature:
        size = judged.level.shape[0]
        total = jnp.zeros(size).at[judged.label].add(judged.battles)
        label = jnp.append(judged.label, 0)
        count = jnp.append(judged.battles, 0.0)

        def one(own: Array) -> temperature.Temperature:
            rest = total - jnp.zeros(size).at[label[own]].add(count[own])
            n, wins = rest * judged.fitting, rest * judged.wins
            return temperature.fit(judged.level, n, wins, fewest, tolerance, max_steps)

        nothing = jnp.full((1, judged.own.shape[1]), judged.pair.shape[0], judged.own.dtype)
        return _in_chunks(one, (jnp.concatenate([judged.own, nothing]),), chunk)

    return lax.map(of_set, judged)


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


@partial(jax.jit, static_argnames=("max_steps", "chunk"))
def hold_out(
    n: Array,
    wins: Array,
    start: Array,
    inverse: Array,
    active: Array,
    folds: Array,
    ridge: Array,
    tolerance: Array,
    max_steps: int,
    chunk: int,
) -> held_out.HeldOut:
    """Folds (F,) of target maps that are the same in every fold: tables (L, M, M), results (L, F, ...)."""

    def of_map(lane: tuple[Array, ...]) -> held_out.HeldOut:
        n, wins, start, inverse, active = lane

        def one(fold: Array) -> held_out.HeldOut:
            return held_out.fold(n, wins, fold, start, inverse, active, ridge, tolerance, max_steps)

        return _in_chunks(one, (folds,), chunk)

    return lax.map(of_map, (n, wins, start, inverse, active))


@partial(jax.jit, static_argnames=("n_pairs", "max_steps", "chunk"))
def hold_out_soft(
    judged: Judged,
    beta: Array,
    n: Array,
    start: Array,
    inverse: Array,
    active: Array,
    folds: Array,
    ridge: Array,
    tolerance: Array,
    max_steps: int,
    n_pairs: int,
    chunk: int,
) -> held_out.HeldOut:
    """Folds (F,) of soft targets s(beta d), with each fold's own ``beta`` (S, F); tables (S, M, M)."""

    def of_set(lane: tuple[Any, ...]) -> held_out.HeldOut:
        judged, beta, n, start, inverse, active = lane

        def one(fold: Array, beta: Array) -> held_out.HeldOut:
            wins = pair_wins(judged, jax.nn.sigmoid(beta * judged.level), n, n_pairs)
            return held_out.fold(n, wins, fold, start, inverse, active, ridge, tolerance, max_steps)

        return _in_chunks(one, (folds, beta), chunk)

    return lax.map(of_set, (judged, beta, n, start, inverse, active))


@partial(jax.jit, static_argnames=("max_steps",))
def rate(
    anchors: Array, n: Array, score: Array, start: Array, ridge: Array, tolerance: Array, max_steps: int
) -> solve.Solution:
    """Strengths (L,) against fixed ``anchors`` (L, M), met ``n`` (L, M) times."""
    return jax.vmap(lambda a, n, y, x: held_out.rating(a, n, y, x, ridge, tolerance, max_steps))(
        anchors, n, score, start
    )


@partial(jax.jit, static_argnames=("mesh", "top_up_size", "max_steps", "chunk"))
def own_resamples(
    own: own_battles.OwnBattles,
    mesh: Mesh,
    seed: Array,
    ridge: Array,
    tolerance: Array,
    numbers: Array,
    top_up_size: int,
    max_steps: int,
    chunk: int,
) -> tuple[Array, Array]:
    """Strengths (S, K, B) of models in resamples ``numbers`` (B,) of their own battles, and statuses.

    S must be a multiple of the devices, which share the models.
    """
    n = numbers.shape[0]
    n_chunks = -(-n // chunk)
    padded = numbers[jnp.minimum(jnp.arange(n_chunks * chunk), n - 1)].reshape(n_chunks, chunk)

    def one_model(
        own: own_battles.OwnBattles, seed: Array, ridge: Array, tolerance: Array, padded: Array
    ) -> tuple[Array, Array]:
        sums = own_battles.sums(own)

        def part(numbers: Array) -> tuple[Array, Array]:
            size = own.opponent.shape[0]
            n, score = sums(resample.singles(own.battles, size, top_up_size, seed, own.stream, numbers))

            def one_map(anchors: Array, score: Array, start: Array) -> solve.Solution:
                return jax.vmap(lambda n, y: held_out.rating(anchors, n, y, start, ridge, tolerance, max_steps))(
                    n, score
                )

            found = jax.vmap(one_map)(own.anchors, score.T, own.start)
            return found.theta, found.status  # (K, R)

        theta, status = lax.map(part, padded)
        return theta.transpose(1, 0, 2), status.transpose(1, 0, 2)

    def on_device(own: own_battles.OwnBattles, *shared: Array) -> tuple[Array, Array]:
        return lax.map(lambda one: one_model(one, *shared), own)

    across, whole = PartitionSpec("lanes"), PartitionSpec()
    theta, status = jax.shard_map(
        on_device, mesh=mesh, in_specs=(across, whole, whole, whole, whole), out_specs=across, check_vma=False
    )(own, seed, ridge, tolerance, padded)
    shape = (*theta.shape[:2], n_chunks * chunk)
    return theta.reshape(shape)[..., :n], status.reshape(shape)[..., :n]


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

    across, whole = PartitionSpec("lanes"), PartitionSpec()
    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(whole, whole, whole, across, across), out_specs=across, check_vma=False
    )(items, columns, seed, sets, numbers)


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

    across, whole = PartitionSpec("lanes"), PartitionSpec()
    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(whole, whole, whole, across), out_specs=across, check_vma=False
    )(singles, seed, stream, numbers)


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

    across, whole = PartitionSpec("lanes"), PartitionSpec()
    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(whole, whole, whole, across), out_specs=across, check_vma=False
    )(scores, gold, arguments, counts)


@partial(jax.jit, static_argnames="mesh")
def delta_sums(pairs: rank_agreement.DeltaPairs, mesh: Mesh, counts: Array) -> rank_agreement.PairSums:
    """Sums over pairs of fixed scores in resamples ``counts`` (devices, T, R, Q) of models: (devices, T, R, E, D)."""

    def on_device(pairs: rank_agreement.DeltaPairs, counts: Array) -> rank_agreement.PairSums:
        found = lax.map(lambda own: rank_agreement.delta_sums_of_draws(own, pairs), counts[0])
        return jax.tree.map(lambda x: x[None], found)

    across, whole = PartitionSpec("lanes"), PartitionSpec()
    return jax.shard_map(on_device, mesh=mesh, in_specs=(whole, across), out_specs=across, check_vma=False)(
        pairs, counts
    )


class ReferenceProblem(NamedTuple):
    """What a study of references resamples, and what it draws votes from."""

    units: resample.Units
    stream: Array  # () uint64: names the random numbers of the resamples
    votes_stream: Array  # () uint64: names those of the votes under a budget
    votes: references.Votes
    single: references.Pools  # every reference alone
    several: references.Pools | None  # sets of references
    tiers: Array  # (T, M) bool: models by tier
    grid: references.Grid | None  # where items, not models, draw their references


class StudyForm(NamedTuple):
    """Static choices of a study of references."""

    tally: resample.Tally
    top_up_size: int
    n_sets: int  # single references and sets
    max_steps: int


class SingleReferences(NamedTuple):
    """Rankings by win rate against each of L references, of all votes of a resample."""

    tau: Array  # (D, L) of pairs under each margin
    misordered: Array  # (D, L)
    pairs: Array  # (D, L)
    rank_change: Array  # (T, L) by tier of the models ranked
    tier_models: Array  # (T, L)
    tier_tau: Array  # (T, L) of the pairs inside a tier
    tier_pairs: Array  # (T, L)


class Budgets(NamedTuple):
    """Rankings of S sets of references (single ones first) under B budgets of votes: sums over the repeats."""

    defined: Array  # (D, B, S) repeats with a tau
    tau: Array  # (D, B, S)
    tau_square: Array  # (D, B, S)
    misordered: Array  # (D, B, S)
    pairs: Array  # (D, B, S)


class StudySettings(NamedTuple):
    """What a study of references is asked for; all of it is data."""

    seed: Array  # () uint64
    deltas: Array  # (D,) margins, percentage points
    budgets: Array  # (B,) int64 ascending: votes of a model
    n_repeats: Array  # ()
    ridge: Array  # () of the fits to several references
    tolerance: Array  # () of these, logits


def _fitted(n: Array, points: Array, in_set: Array, settings: StudySettings, max_steps: int) -> Array:
    """(B, M, S) expected win rates by the Bradley-Terry fit of (B, K, M, S) votes and points, ``in_set`` (K, S)."""

    def one(n: Array, points: Array, in_set: Array) -> Array:
        end = references.strengths(n, points, settings.ridge, settings.tolerance, max_steps)
        rate = references.expected_win_rate(end.theta, in_set)
        return jnp.where((jnp.sum(n, 0) > 0) & (end.status == solve.CONVERGED), rate, jnp.nan)

    return jax.vmap(jax.vmap(one, (2, 2, 1), 1), (0, 0, None))(n, points, in_set)


def _drawn_scores(
    problem: ReferenceProblem, count: Array, items: Array | None, settings: StudySettings, key: Array, max_steps: int
) -> Array:
    """(B, M, S) scores of the models in one repeat: win rates against one reference, expected ones against several."""
    if problem.grid is not None and items is not None:
        grid = problem.grid
        n, points, set_n, set_points = references.used_items(grid, items, settings.budgets, key)
        alone = references.percent(points, n).swapaxes(1, 2)
        in_set = grid.several < grid.n.shape[1] - 1
        several = set_n.swapaxes(2, 3), set_points.swapaxes(2, 3)
    else:
        alone = references.win_rates(problem.single, references.used(problem.single, count, settings.budgets, key))
        if problem.several is None:
            return alone
        in_set = problem.several.in_set
        votes = references.used(problem.several, count, settings.budgets, key)
        several = references.tables(problem.several, votes)
    if in_set.shape[1] == 0:
        return alone
    return jnp.concatenate([alone, _fitted(*several, in_set, settings, max_steps)], 2)


def _study(
    problem: ReferenceProblem, form: StudyForm, settings: StudySettings, number: Array, gold: Array
) -> tuple[SingleReferences, Budgets]:
    """One resample, or the full data: references with all votes, and repeated studies under budgets."""
    draws = resample.multinomial(problem.units, form.tally, form.top_up_size, settings.seed, problem.stream, number)
    count = jnp.where(number < 0, problem.votes.battles, references.resampled(problem.votes, draws))
    items = None if problem.grid is None else jnp.where(number < 0, 1, draws.reshape(-1)[problem.grid.unit])

    rates = references.win_rates(problem.single, count[problem.single.cell])
    sums = rank_agreement.agreement(rates, gold, settings.deltas)
    tiers = rank_agreement.stratified(rates, gold, problem.tiers)
    single = SingleReferences(
        rank_agreement.tau_b(sums),
        rank_agreement.misordered(sums),
        sums.pairs,
        tiers.rank_change,
        tiers.models,
        rank_agreement.tau_b(tiers.inside),
        tiers.inside.pairs,
    )
    shape = len(settings.deltas), len(settings.budgets), form.n_sets

    def repeat(q: Array, sums: Budgets) -> Budgets:
        key = squares.stream_key(settings.seed, problem.votes_stream, number, q)
        scores = _drawn_scores(problem, count, items, settings, key, form.max_steps)
        lanes = scores.transpose(1, 0, 2).reshape(len(gold), -1)  # (M, B S)
        found = rank_agreement.agreement(lanes, gold, settings.deltas)
        tau = rank_agreement.tau_b(found)
        values = (jnp.ones_like(tau), tau, tau**2, rank_agreement.misordered(found), found.pairs)
        add = (jnp.where(jnp.isnan(tau), 0.0, x).reshape(shape) for x in values)
        return Budgets(*(total + x for total, x in zip(sums, add, strict=True)))

    nothing = Budgets(*(jnp.zeros(shape) for _ in Budgets._fields))
    if not len(settings.budgets):
        return single, nothing
    return single, lax.fori_loop(0, settings.n_repeats, repeat, nothing)


@partial(jax.jit, static_argnames=("form", "mesh"))
def reference_study(
    problem: ReferenceProblem,
    form: StudyForm,
    mesh: Mesh,
    settings: StudySettings,
    numbers: Array,
    gold: Array,
    n_chunks: Array,
) -> tuple[SingleReferences, Budgets]:
    """All references, sets, budgets and repeats in the resamples ``numbers`` (devices, T, R), -1 being the full data.

    ``gold`` (devices, T, R, M) are the log-strengths of the same resamples. Each device runs the first ``n_chunks``
    (devices,) of its T chunks; the results have leading axes (devices, T, R), and zeros where no chunk ran.
    """

    def on_device(
        problem: ReferenceProblem, settings: StudySettings, numbers: Array, gold: Array, n_chunks: Array
    ) -> tuple[SingleReferences, Budgets]:
        def chunk(t: Array) -> tuple[SingleReferences, Budgets]:
            return jax.vmap(partial(_study, problem, form, settings))(numbers[0, t], gold[0, t])

        def run(t: Array, results: tuple[SingleReferences, Budgets]) -> tuple[SingleReferences, Budgets]:
            return jax.tree.map(lambda all_, one: all_.at[t].set(one), results, chunk(t))

        shapes = jax.eval_shape(chunk, jnp.int32(0))
        empty = jax.tree.map(lambda s: jnp.zeros((numbers.shape[1], *s.shape), s.dtype), shapes)
        results = lax.fori_loop(0, n_chunks[0], run, empty)
        return jax.tree.map(lambda x: x[None], results)

    across, whole = PartitionSpec("lanes"), PartitionSpec()
    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(whole, whole, across, across, across), out_specs=across, check_vma=False
    )(problem, settings, numbers, gold, n_chunks)


accuracies = jax.jit(judge_error.accuracies)
shared_accuracy = jax.jit(judge_error.shared_accuracy)
ppi_accuracy = jax.jit(judge_error.ppi_accuracy)
by_stratum = jax.jit(judge_error.by_stratum)
with_rates_of = jax.jit(judge_error.with_rates_of)
weights = jax.jit(judge_error.weights)
failure = jax.jit(judge_error.failure)
small_sample_excess = jax.jit(judge_error.small_sample_excess)
small_sample_shift = jax.jit(judge_error.small_sample_shift)
rates_excess = jax.jit(judge_error.rates_excess)
rogan_gladen_interval = jax.jit(judge_error.rogan_gladen_interval)


class ContextualProblem(NamedTuple):
    """One slice with covariates or a tie model: what is resampled, and the full-data fit that refits start from."""

    units: resample.Units
    rows: contextual.Rows
    stream: Array  # () uint64
    phi: Array  # (P,) full-data parameters
    inverse: Array  # (P, P) pseudo-inverse of the full-data information
    information_diagonal: Array  # (P,)
    free: Array  # (D + 1,) bool: coefficients that are fitted, and t
    main_battles: Array  # (M,) as in `Problem`


class ContextualRefits(NamedTuple):
    """Lanes of refitted resamples with covariates or a tie model."""

    phi: Array  # (..., P)
    status: Array  # (...) int8, of `solve`
    n_steps: Array  # (...) int32
    grad_norm: Array  # (...)
    standing: Array  # (..., M) int8, of `connectivity`; all IDENTIFIED unless the search was asked for


class ContextualMethod(NamedTuple):
    """Static choices, as in `Method`."""

    ties: int  # of `tie_models`
    scheme: int
    top_up_size: int
    row_bits: int
    count_dtype: type  # of a row's draws
    solver: int  # as in `Method`
    max_steps: int


class ContextualFit(NamedTuple):
    """A full-data fit of P parameters."""

    phi: Array  # (P,)
    status: Array
    n_steps: Array
    grad_norm: Array
    inverse: Array  # (P, P) pseudo-inverse of the information
    diagonal: Array  # (P,) of the information
    outer: Array  # (P, P) sum of the outer products of the battles' scores


@partial(jax.jit, static_argnames=("ties", "max_steps"))
def fit_contextual(
    rows: contextual.Rows, count: Array, start: Array, active: Array, free: Array, ridge: Array, tolerance: Array,
    ties: int, max_steps: int,
) -> ContextualFit:  # fmt: skip
    """Newton's method on one slice: ``count`` (T, E, G) battles, ``start`` (P,), ``active`` (M,), ``free`` (D + 1,)."""
    n_models = len(active)
    moves = contextual.alive(ties, rows, count[..., None], active[:, None], free)
    end, matrix = contextual.newton(ties, rows, start[:, None], count[..., None], moves, ridge, tolerance, max_steps)
    phi = end.phi[:, 0]
    diagonal = contextual.diagonal(matrix[0], moves[:, 0], ridge, n_models)
    inverse = contextual.inverse_information(matrix[0], moves[:, 0], n_models)
    outer = contextual.outer_scores(ties, rows, phi, count, active)
    return ContextualFit(phi, end.status[0], end.n_steps[0], end.grad_norm[0], inverse, diagonal, outer)


def _draw_units(units: resample.Units, method: ContextualMethod, seed: Array, stream: Array, number: Array) -> Array:
    """(K, Q) draws of all units in one resample."""
    tally = resample.Tally(None, method.row_bits)
    if method.scheme == MULTINOMIAL:
        return resample.multinomial(units, tally, method.top_up_size, seed, stream, number)
    if method.scheme == POISSON:
        return resample.poisson(units, tally, seed, stream, number)
    return resample.bayesian(units, seed, stream, number)


def _refit_contextual_chunk(
    problem: ContextualProblem, method: ContextualMethod, seed: Array, ridge: Array, tolerance: Array, numbers: Array
) -> ContextualRefits:
    """Draw and refit the resamples ``numbers`` (R,) of one slice."""
    rows, n_models = problem.rows, problem.main_battles.shape[0]
    draws = jax.vmap(lambda r: _draw_units(problem.units, method, seed, problem.stream, r))(numbers)
    count = contextual.counts_of_rows(rows, draws, method.count_dtype)
    standing = jnp.zeros((numbers.shape[0], n_models), jnp.int8)
    base = contextual.at_estimate(
        method.ties, rows, problem.phi, n_models, problem.inverse, problem.information_diagonal
    )
    if method.solver == CHORD:
        end = contextual.chord(method.ties, rows, base, count, ridge, tolerance, method.max_steps)
        return ContextualRefits(end.phi.T, end.status, end.n_steps, end.grad_norm, standing)
    tables = contextual.pair_tables(rows, count, n_models)
    standing = jax.vmap(lambda n, wins: connectivity.standing(n, wins, problem.main_battles))(*tables)
    # With a ridge every model has a finite rating, but those that the data leave open are still told apart.
    active = ((standing == connectivity.IDENTIFIED) | (ridge[0] > 0)).T
    moves = contextual.alive(method.ties, rows, count, active, problem.free)
    if method.solver == NEWTON_CG:
        end = contextual.newton_cg(method.ties, rows, base, count, moves, ridge, tolerance, method.max_steps)
    else:
        start = jnp.broadcast_to(problem.phi[:, None], (*problem.phi.shape, numbers.shape[0]))
        end, _ = contextual.newton(method.ties, rows, start, count, moves, ridge, tolerance, method.max_steps)
    return ContextualRefits(end.phi.T, end.status, end.n_steps, end.grad_norm, standing)


@partial(jax.jit, static_argnames=("method", "mesh"))
def refit_contextual(
    problem: ContextualProblem,
    method: ContextualMethod,
    mesh: Mesh,
    seed: Array,
    ridge: Array,
    tolerance: Array,
    numbers: Array,
    n_chunks: Array,
) -> ContextualRefits:
    """Refit the resamples ``numbers`` (devices, T, R) of one slice, chunk by chunk, as `refit` does; ``ridge`` (P,)."""

    def on_device(
        problem: ContextualProblem, seed: Array, ridge: Array, tolerance: Array, numbers: Array, n_chunks: Array
    ) -> ContextualRefits:
        def chunk(t: Array) -> ContextualRefits:
            return _refit_contextual_chunk(problem, method, seed, ridge, tolerance, numbers[0, t])

        def run(t: Array, results: ContextualRefits) -> ContextualRefits:
            return jax.tree.map(lambda all_, one: all_.at[t].set(one), results, chunk(t))

        shapes = jax.eval_shape(chunk, jnp.int32(0))
        empty = jax.tree.map(lambda s: jnp.zeros((numbers.shape[1], *s.shape), s.dtype), shapes)
        results = lax.fori_loop(0, n_chunks[0], run, empty)
        return jax.tree.map(lambda x: x[None], results)

    across, whole = PartitionSpec("lanes"), PartitionSpec()
    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(whole, whole, whole, whole, across, across),
        out_specs=across,
        check_vma=False,
    )(problem, seed, ridge, tolerance, numbers, n_chunks)


@partial(jax.jit, static_argnames="method")
def draw_contextual(problem: ContextualProblem, method: ContextualMethod, seed: Array, number: Array) -> Array:
    """(T, E, G) draws of every row's unit in one resample, as `refit_contextual` has them: to reproduce or audit it."""
    draws = _draw_units(problem.units, method, seed, problem.stream, number)
    return contextual.counts_of_rows(problem.rows, draws[None], np.float64)[..., 0]
