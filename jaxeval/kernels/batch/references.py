"""The study of references: rankings against references and sets of them, over resamples and repeats."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import Mesh

from jaxeval.kernels import rank_agreement, references, resample, solve, squares
from jaxeval.kernels.batch.chunks import Chunks, over_lanes
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.kinds import Bool, Float, Int32, Int64, Integer, UInt64


class ReferenceProblem(NamedTuple):
    """What a study of references resamples, and what it draws votes from."""

    units: resample.Units
    stream: UInt64[Array, ""]  # names the random numbers of the resamples
    votes_stream: UInt64[Array, ""]  # names those of the votes under a budget
    votes: references.Votes
    single: references.Pools  # every reference alone
    several: references.Pools | None  # sets of references
    members: Int32[Array, "K S"]  # places of the references of every set among the single ones; -1 for none
    tiers: Bool[Array, "T M"]  # models by tier
    shared: references.SharedItems | None  # where items, not models, draw their references


class StudyForm(NamedTuple):
    """Static choices of a study of references."""

    packing: resample.Packing
    n_sets: int  # single references and sets


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


class Resample(NamedTuple):
    """One resample, or the full data."""

    number: Integer[Array, "..."]  # negative for the full data
    draws: Integer[Array, "... rows columns"]
    gold: Float[Array, "... M"]  # log-strengths


def _fitted(
    n: Float[Array, "B K M S"], points: Float[Array, "B K M S"], in_set: Bool[Array, "K S"], terms: solve.Terms
) -> Float[Array, "B M S"]:
    """Expected win rates by the Bradley-Terry fit of votes and points."""

    def one(n: Array, points: Array, in_set: Array) -> Array:
        end = references.strengths(n, points, terms)
        rate = references.expected_win_rate(end.theta, in_set)
        return jnp.where((jnp.sum(n, 0) > 0) & (end.status == solve.Status.CONVERGED), rate, jnp.nan)

    return jax.vmap(jax.vmap(one, (2, 2, 1), 1), (0, 0, None))(n, points, in_set)


def _drawn_scores(
    problem: ReferenceProblem,
    count: Int32[Array, "C"],
    items: Integer[Array, "X"] | None,
    settings: StudySettings,
    key: UInt64[Array, ""],
) -> Float[Array, "B M _"]:
    """Scores of the models in one repeat: win rates against one reference, expected ones against several."""
    if problem.shared is not None and items is not None:
        shared = problem.shared
        n, points, set_n, set_points = references.used_items(shared, items, settings.budgets, key)
        alone = references.percent(points, n).swapaxes(1, 2)
        in_set = shared.several < shared.n.shape[1] - 1
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
    return jnp.concatenate([alone, _fitted(*several, in_set, settings.terms)], 2)


def _same_models(
    scores: Float[Array, "B M L_plus_S"], gold: Float[Array, "M"], members: Int32[Array, "K S"]
) -> SameModelSums:
    """One repeat, given the ``scores`` of the L single references and of the S sets with ``members``."""
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
    problem: ReferenceProblem, form: StudyForm, settings: StudySettings, own: Resample
) -> tuple[SingleReferences, BudgetSums, SameModelSums]:
    """One resample, or the full data: references with all votes, and repeats under budgets."""
    number, draws, gold = own
    count = jnp.where(number < 0, problem.votes.battles, references.resampled(problem.votes, draws))
    items = None if problem.shared is None else jnp.where(number < 0, 1, draws.reshape(-1)[problem.shared.unit])

    rates = references.win_rates(problem.single, count[problem.single.cell])
    sums = rank_agreement.agreement(rates, gold, settings.deltas)
    tiers = rank_agreement.stratified(rates, gold, problem.tiers)
    single = SingleReferences(
        tau=rank_agreement.tau_b(sums),
        misordered=rank_agreement.misordered(sums),
        pairs=sums.pairs,
        rank_change=tiers.rank_change,
        tier_models=tiers.models,
        tier_tau=rank_agreement.tau_b(tiers.inside),
        tier_pairs=tiers.inside.pairs,
    )
    shape = len(settings.deltas), len(settings.budgets), form.n_sets
    shape_of_sets = shape[1], problem.members.shape[1]

    def repeat(q: Array, sums: tuple[BudgetSums, SameModelSums]) -> tuple[BudgetSums, SameModelSums]:
        key = squares.stream_key(settings.seed, problem.votes_stream, number, q)
        scores = _drawn_scores(problem, count, items, settings, key)
        lanes = scores.transpose(1, 0, 2).reshape(len(gold), -1)  # (M, B S)
        found = rank_agreement.agreement(lanes, gold, settings.deltas)
        tau = rank_agreement.tau_b(found)
        values = (jnp.ones_like(tau), tau, tau**2, rank_agreement.misordered(found), found.pairs)
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


@program("form", "mesh")
def reference_study(
    problem: ReferenceProblem,
    form: StudyForm,
    mesh: Mesh,
    settings: StudySettings,
    gold: Float[Array, "_ M"],
    chunks: Chunks,
) -> tuple[SingleReferences, BudgetSums, SameModelSums]:
    """All references, sets, budgets and repeats in studies: number 0 is of the full data, r > 0 of resample r - 1.

    ``gold`` are the log-strengths of the full data and of all resamples.
    """

    def chunk(
        numbers: Array, problem: ReferenceProblem, settings: StudySettings, gold: Array
    ) -> tuple[SingleReferences, BudgetSums, SameModelSums]:
        draws = resample.multinomial(problem.units, form.packing, settings.seed, problem.stream, numbers - 1)
        return jax.vmap(partial(_study, problem, form, settings))(Resample(numbers - 1, draws, gold[numbers]))

    return over_lanes(chunk, mesh, chunks, (problem, settings, gold))
