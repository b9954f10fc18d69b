"""Rank models by votes against one reference or several, over resamples and repeats."""

from functools import partial
from typing import NamedTuple

import numpy as np

from jaxeval.kernels import rank_agreement, resample, solve, squares
from jaxeval.kernels.batch.programs import Chunks, over_lanes, program
from jaxeval.kernels.kinds import Array, Bool, Float, Int32, Int64, Integer, Mesh, Num, UInt64
from jaxeval.kernels.links import Link, probability
from jaxeval.lazy_names import jax, jnp, lax

_MODEL_STRIDE = np.uint64(1 << 32)
_LOW32 = np.uint64(0xFFFFFFFF)


class ReferenceVotes(NamedTuple):
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


def resampled(votes: ReferenceVotes, draws: Integer[Array, "rows columns"]) -> Int32[Array, "C"]:
    """Return the votes of every cell in a resample, given the ``draws`` of all units."""
    drawn = draws.reshape(-1)[votes.unit] * votes.times
    return jax.ops.segment_sum(drawn, votes.cell, votes.battles.shape[0], indices_are_sorted=True)


def _ends(
    cumulative: Int32[Array, "G M S"], n_references: int
) -> tuple[Int32[Array, "{n_references} M S"], Int32[Array, "{n_references} M S"]]:
    """Return where each reference's votes start and end in the ``cumulative`` counts."""
    last = cumulative.shape[0] // n_references
    end = cumulative[last - 1 :: last]
    return jnp.concatenate([jnp.zeros_like(end[:1]), end[:-1]]), end


def used(
    pools: Pools, count: Int32[Array, "C"], budgets: Integer[Array, "B"], key: UInt64[Array, ""]
) -> Int32[Array, "B G M S"]:
    """Return the votes of each cell among the first b that every model draws, for each b of the ascending ``budgets``.

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
    """Return share of the points of every model against single references, percent; NaN without ``votes``."""
    return percent(jnp.sum(votes * (pools.weight * pools.target), -3), jnp.sum(votes * pools.weight, -3))


def percent(points: Float[Array, "*shape"], n: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return ``points`` of ``n`` in percent; NaN of nothing."""
    return jnp.where(n > 0, 100 * points / jnp.where(n > 0, n, 1.0), jnp.nan)


def tables(
    pools: Pools, votes: Num[Array, "*lanes G M S"]
) -> tuple[Float[Array, "*lanes K M S"], Float[Array, "*lanes K M S"]]:
    """Return the weight of the votes, and the points, of every model against every reference of the sets."""
    n_references = pools.in_set.shape[0]
    shape = *votes.shape[:-3], n_references, votes.shape[-3] // n_references, *votes.shape[-2:]
    n, points = votes * pools.weight, votes * (pools.weight * pools.target)
    return jnp.sum(n.reshape(shape), -3), jnp.sum(points.reshape(shape), -3)


def used_items(
    shared: SharedItems, count: Integer[Array, "X"], budgets: Integer[Array, "B"], key: UInt64[Array, ""]
) -> tuple[Float[Array, "B L M"], Float[Array, "B L M"], Float[Array, "B K S M"], Float[Array, "B K S M"]]:
    """Return votes and points on the first ``budgets`` items: against single references, then against those of sets.

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
        n_here, points_here = (jnp.where(any_left, table[x], 0.0) for table in (shared.n, shared.points))
        chosen = ((words[1] * shared.size.astype(jnp.uint64)) >> 32).astype(jnp.int32)
        reference = shared.several[chosen, sets]
        here = (jnp.arange(n_references)[:, None] == chosen)[..., None] & shared.ranked
        return (
            left - (place < left),
            n + n_here[shared.single],
            points + points_here[shared.single],
            set_n + jnp.where(here, n_here[reference], 0.0),
            set_points + jnp.where(here, points_here[reference], 0.0),
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
    """Return log-strengths (M + K,) of models and references from votes and points of the models.

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
        total = jnp.sum(v, 1) + 2 * ridge
        scaled = v / total[:, None]
        schur = jnp.diag(jnp.sum(v, 0) + 2 * ridge) - jnp.matmul(v.T, scaled, precision="highest")
        right = grad[n_models:] + jnp.matmul(scaled.T, grad[:n_models], precision="highest")
        of_references = solve.solved(schur, right)
        of_models = (grad[:n_models] + jnp.matmul(v, of_references, precision="highest")) / total
        change = jnp.concatenate([of_models, of_references])
        return solve.capped(change), grad

    return solve.iterate(step, jnp.zeros(sum(n.shape)), terms)


def expected_win_rate(theta: Float[Array, "M_plus_K"], in_set: Bool[Array, "K"]) -> Float[Array, "M_plus_K-K"]:
    """Return mean win probability of every model against the references ``in_set``, percent."""
    n_models = theta.shape[0] - in_set.shape[0]
    p = probability(Link.LOGIT, theta[:n_models, None] - theta[n_models:])
    return 100 * jnp.sum(jnp.where(in_set, p, 0.0), 1) / jnp.sum(in_set)


class ReferenceProblem(NamedTuple):
    """What a study of references resamples, and what it draws votes from."""

    units: resample.Units
    stream: UInt64[Array, ""]  # names the random numbers of the resamples
    votes_stream: UInt64[Array, ""]  # names those of the votes under a budget
    votes: ReferenceVotes
    single: Pools  # every reference alone
    several: Pools | None  # sets of references
    members: Int32[Array, "K S"]  # places of the references of every set among the single ones; -1 for none
    tiers: Bool[Array, "T M"]  # models by tier
    shared: SharedItems | None  # where items, not models, draw their references


class SingleReferences(NamedTuple):
    """Rankings by win rate against each of L references, of all votes of a resample."""

    tau: Float[Array, "... D L"]  # of pairs under each margin
    misordered: Float[Array, "... D L"]
    pairs: Float[Array, "... D L"]
    rank_change: Float[Array, "... T L"]  # by tier of the models ranked
    tier_models: Float[Array, "... T L"]
    tier_tau: Float[Array, "... T L"]  # of the pairs inside a tier
    tier_pairs: Float[Array, "... T L"]


class BudgetSums(NamedTuple):
    """Rankings of L single references, then S sets of references, under B budgets of votes: sums over the repeats."""

    defined: Float[Array, "... D B L_plus_S"]  # repeats with a tau
    tau: Float[Array, "... D B L_plus_S"]
    tau_square: Float[Array, "... D B L_plus_S"]
    misordered: Float[Array, "... D B L_plus_S"]
    pairs: Float[Array, "... D B L_plus_S"]


class SameModelSums(NamedTuple):
    """Sets of references and their members alone, on the models that all of these rank: sums over the repeats.

    Sets with members that are not studied alone have none.
    """

    defined: Float[Array, "... B S"]  # repeats with all taus
    together: Float[Array, "... B S"]  # tau of the set
    alone: Float[Array, "... B S"]  # mean tau of its members
    pairs: Float[Array, "... B S"]


class StudySettings(NamedTuple):
    """What a study of references is asked for; none of it is static."""

    seed: UInt64[Array, ""]
    deltas: Float[Array, "D"]  # margins, percentage points
    budgets: Int64[Array, "B"]  # ascending: votes of a model
    n_repeats: Int64[Array, ""]
    terms: solve.Terms  # of the fits to several references


def _fitted(
    n: Float[Array, "B K M S"], points: Float[Array, "B K M S"], in_set: Bool[Array, "K S"], terms: solve.Terms
) -> Float[Array, "B M S"]:
    """Return expected win rates by the Bradley-Terry fit of votes and points."""

    def one(n: Array, points: Array, in_set: Array) -> Array:
        end = strengths(n, points, terms)
        rate = expected_win_rate(end.theta, in_set)
        return jnp.where((jnp.sum(n, 0) > 0) & (end.status == solve.Status.CONVERGED), rate, jnp.nan)

    return jax.vmap(jax.vmap(one, (2, 2, 1), 1), (0, 0, None))(n, points, in_set)


def _drawn_scores(
    problem: ReferenceProblem, count: Int32[Array, "C"], items: Integer[Array, "X"] | None, settings: StudySettings,
    key: UInt64[Array, ""],
) -> Float[Array, "B M _"]:  # fmt: skip
    """Return scores of the models in one repeat: win rates against one reference, expected ones against several."""
    if problem.shared is not None and items is not None:
        shared = problem.shared
        n, points, set_n, set_points = used_items(shared, items, settings.budgets, key)
        alone = percent(points, n).swapaxes(1, 2)
        in_set = shared.several < shared.n.shape[1] - 1
        several = set_n.swapaxes(2, 3), set_points.swapaxes(2, 3)
    else:
        alone = win_rates(problem.single, used(problem.single, count, settings.budgets, key))
        if problem.several is None:
            return alone
        in_set = problem.several.in_set
        votes = used(problem.several, count, settings.budgets, key)
        several = tables(problem.several, votes)
    if in_set.shape[1] == 0:
        return alone
    return jnp.concatenate([alone, _fitted(*several, in_set, settings.terms)], 2)


def _same_models(
    scores: Float[Array, "B M L_plus_S"], gold: Float[Array, "M"], members: Int32[Array, "K S"]
) -> SameModelSums:
    """Return one repeat's sums, given the ``scores`` of the L single references and of the S sets with ``members``."""
    n_budgets, m, _ = scores.shape
    several = scores[:, :, -members.shape[1] :]
    alone = scores[:, :, members]  # (B, M, K, S)
    there = members >= 0
    shared = ~jnp.isnan(several) & jnp.all(~jnp.isnan(alone) | ~there, 2) & jnp.any(there, 0)
    lanes = jnp.where(shared[:, :, None], jnp.concatenate([several[:, :, None], alone], 2), jnp.nan)
    sums = rank_agreement.agreement(lanes.swapaxes(0, 1).reshape(m, -1), gold, jnp.array([jnp.inf]))
    shape = n_budgets, 1 + members.shape[0], members.shape[1]
    tau, pairs = rank_agreement.tau_b(sums).reshape(shape), sums.pairs.reshape(shape)[:, 0]
    together = tau[:, 0]
    of_members = jnp.sum(jnp.where(there, tau[:, 1:], 0.0), 1) / jnp.maximum(jnp.sum(there, 0), 1)
    known = ~jnp.isnan(together + of_members)
    values = jnp.ones_like(together), together, of_members, pairs
    return SameModelSums(*(jnp.where(known, x, 0.0) for x in values))


def _study(
    problem: ReferenceProblem, settings: StudySettings, number: Integer[Array, ""],
    draws: Integer[Array, "rows columns"], gold: Float[Array, "M"],
) -> tuple[SingleReferences, BudgetSums, SameModelSums]:  # fmt: skip
    """Study references in a resample: by all votes and under budgets. A negative ``number`` is the full data."""
    count = jnp.where(number < 0, problem.votes.battles, resampled(problem.votes, draws))
    items = None if problem.shared is None else jnp.where(number < 0, 1, draws.reshape(-1)[problem.shared.unit])

    rates = win_rates(problem.single, count[problem.single.cell])
    sums = rank_agreement.agreement(rates, gold, settings.deltas)
    rank_change, models, inside = rank_agreement.stratified(rates, gold, problem.tiers)
    single = SingleReferences(
        tau=rank_agreement.tau_b(sums), misordered=rank_agreement.misordered(sums), pairs=sums.pairs,
        rank_change=rank_change, tier_models=models, tier_tau=rank_agreement.tau_b(inside), tier_pairs=inside.pairs,
    )  # fmt: skip
    shape_of_sets = len(settings.budgets), problem.members.shape[1]
    shape = len(settings.deltas), len(settings.budgets), problem.single.cell.shape[-1] + shape_of_sets[1]

    def repeat(q: Array, sums: tuple[BudgetSums, SameModelSums]) -> tuple[BudgetSums, SameModelSums]:
        key = squares.stream_key(settings.seed, problem.votes_stream, number, q)
        scores = _drawn_scores(problem, count, items, settings, key)
        lanes = scores.transpose(1, 0, 2).reshape(len(gold), -1)  # (M, B S)
        counts = rank_agreement.agreement(lanes, gold, settings.deltas)
        tau = rank_agreement.tau_b(counts)
        values = (jnp.ones_like(tau), tau, tau**2, rank_agreement.misordered(counts), counts.pairs)
        add = BudgetSums(*(jnp.where(jnp.isnan(tau), 0.0, x).reshape(shape) for x in values))
        same = _same_models(scores, gold, problem.members) if shape_of_sets[1] else sums[1]
        return jax.tree.map(jnp.add, sums, (add, same))

    nothing = (
        BudgetSums(*(jnp.zeros(shape) for _ in BudgetSums._fields)),
        SameModelSums(*(jnp.zeros(shape_of_sets) for _ in SameModelSums._fields)),
    )
    if not len(settings.budgets):
        return single, *nothing
    return single, *lax.fori_loop(0, settings.n_repeats, repeat, nothing)


@program("packing", "mesh")
def reference_study(
    problem: ReferenceProblem,
    packing: resample.Packing,
    mesh: Mesh,
    settings: StudySettings,
    gold: Float[Array, "_ M"],
    chunks: Chunks,
) -> tuple[SingleReferences, BudgetSums, SameModelSums]:
    """Give all references, sets, budgets and repeats in studies: number 0 is of the full data, r > 0 of resample r - 1.

    ``gold`` are the log-strengths of the full data and of all resamples.
    """

    def chunk(
        numbers: Array, problem: ReferenceProblem, settings: StudySettings, gold: Array
    ) -> tuple[SingleReferences, BudgetSums, SameModelSums]:
        draws = resample.multinomial(problem.units, packing, settings.seed, problem.stream, numbers - 1)
        return jax.vmap(partial(_study, problem, settings))(numbers - 1, draws, gold[numbers])

    return over_lanes(chunk, mesh, chunks, (problem, settings, gold))
