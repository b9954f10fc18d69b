"""Fits and refits on graphs of pairs: the lanes of a chunk side by side in the last axis."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxeval.kernels import connectivity, pair_tables, resample, sparse_solve
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.batch.refits import RefitForm, Refits, draw_pairs, rated, refit_program
from jaxeval.kernels.kinds import Bool, Float, Int8, Int32, Integer, Num, Real, UInt64
from jaxeval.kernels.links import Link
from jaxeval.kernels.solve import Terms
from jaxeval.kernels.sparse_solve import Adjacency, SparsePairs, any_opponent, opponent_sums, take


class Graph(NamedTuple):
    """Which models met: P pairs between M models; the last of each is padding, and others may be."""

    adjacency: Adjacency
    first: Int32[Array, "P"]  # the first model of each pair, as numbered in ``adjacency``
    second: Int32[Array, "P"]
    place: Int32[Array, "M"]  # of the models on the board; M for padding


class SparseProblem(NamedTuple):
    """One board: what is resampled, and the full-data fit that every refit starts from. Models as in ``graph``."""

    units: resample.Units
    layout: pair_tables.Layout
    stream: UInt64[Array, ""]  # names the slice's random numbers
    graph: Graph
    start: Float[Array, "M"]  # full-data log-strengths
    main_battles: Float[Array, "M"]  # full-data battles of the models of its main group, 0 for the others


def standing(graph: Graph, pairs: SparsePairs, weight: Num[Array, "M L"]) -> Int8[Array, "M L"]:
    """Standing of every model, see `connectivity.standing_of`."""
    adjacency = jax.tree.map(jnp.asarray, graph.adjacency)
    own, is_first = pairs.wins > 0, adjacency.is_first[..., None]
    other = pairs.n - pairs.wins > 0
    # (8, R, L) whether the row's model took points off the opponent, and lost some to it.
    took = jnp.where(is_first, take(own, adjacency.pair), take(other, adjacency.pair))
    lost = jnp.where(is_first, take(other, adjacency.pair), take(own, adjacency.pair))

    def towards(edge: Array) -> connectivity.Grow:
        """A step to the models with an ``edge`` to an opponent that is reached."""
        return lambda reached: (
            reached | any_opponent(adjacency, lambda k: edge[k] & take(reached, adjacency.opponent[k]))
        )

    results = connectivity.Results(
        wins=towards(lost),
        losses=towards(took),
        took=any_opponent(adjacency, lambda k: took[k]),
        lost=any_opponent(adjacency, lambda k: lost[k]),
        place=jnp.asarray(graph.place)[:, None],
    )
    return connectivity.standing_of(results, weight)


def _rated(graph: Graph, standing: Int8[Array, "M L"], ridge: Real[Array, ""]) -> Bool[Array, "M L"]:
    """Models with a finite rating."""
    return (graph.place < len(graph.place))[:, None] & rated(standing, ridge)


def _among(graph: Graph, pairs: SparsePairs, active: Bool[Array, "M L"]) -> SparsePairs:
    """``pairs`` without the battles of models that are not ``active``."""
    both = take(active, graph.first) & take(active, graph.second)
    return SparsePairs(jnp.where(both, pairs.n, 0), jnp.where(both, pairs.wins, 0))


@program("link")
def fit_sparse(
    graph: Graph,
    n: Float[Array, "P"],
    wins: Float[Array, "P"],
    terms: Terms,
    start: Float[Array, "M"] | None = None,
    link: Link = Link.LOGIT,
) -> Refits:
    """One fit to the battles' weights ``n`` of the pairs and what their first models took of them, ``wins``.

    From ``start``, or from each model's own score.
    """
    pairs = SparsePairs(n[:, None], wins[:, None])
    adjacency = graph.adjacency
    # The main group is that of most battles.
    battles = opponent_sums(adjacency, lambda k: take(pairs.n, adjacency.pair[k]))
    found = standing(graph, pairs, battles)
    active = _rated(graph, found, terms.ridge)
    pairs = _among(graph, pairs, active)
    begin = sparse_solve.log_odds(adjacency, pairs, active) if start is None else start[:, None]
    end = sparse_solve.newton_cg(link, adjacency, pairs, active, begin, terms)
    return Refits(end.theta[:, 0], end.status[0], end.n_steps[0], end.grad_norm[0], found[:, 0])


@refit_program
def refit_sparse(
    problem: SparseProblem, form: RefitForm, seed: Integer[Array, ""], terms: Terms, numbers: Integer[Array, "L"]
) -> Refits:
    """Draw and refit resamples of one board, as `refit` does."""
    graph = problem.graph
    statistics = draw_pairs(problem, form, seed, numbers)
    n, wins = (x.astype(form.dtype) for x in pair_tables.unpacked(statistics, form.packing, form.dtype))
    pairs = SparsePairs(n.T, wins.T)
    if problem.layout.pair_weight is not None:
        pairs = SparsePairs(*(x * problem.layout.pair_weight.astype(form.dtype)[:, None] for x in pairs))
    weight = jnp.broadcast_to(problem.main_battles[:, None], (len(problem.main_battles), len(numbers)))
    found = standing(graph, pairs, weight)
    active = _rated(graph, found, terms.ridge)
    start = jnp.broadcast_to(problem.start.astype(form.dtype)[:, None], weight.shape)
    end = sparse_solve.newton_cg(form.link, graph.adjacency, _among(graph, pairs, active), active, start, terms)
    return Refits(end.theta.T, end.status, end.n_steps, end.grad_norm, found.T)
