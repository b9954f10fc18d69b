"""Maximum of the likelihood on a graph of pairs, for many resamples at once.

Newton's method with the steps found by conjugate gradients, preconditioned with the diagonal: a step then needs a few
passes over the pairs and no (M, M) array. Boards of matches are well connected, and a handful of inner steps is enough;
a long chain of groups takes as many as it has links.

A model's opponents lie in rows of eight slots: one row for up to eight, further ones for more. A sum over them adds the
eight slots of every row, then the rows of a model in groups of eight, and again until one is left: gathers and dense
additions only, which vectorise, and which (unlike a scatter) add in the same order on every device. Models with several
rows are numbered first, those with one row after them; padding follows both.

Lanes (resamples) L are the last axis of arrays, so that one gathered index serves all of them from one line of memory.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from jaxeval.kernels import connectivity, pair_tables, solve
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.batch.refits import RefitForm, RefitProblem, Refits, draw_pairs, rated, refit_program
from jaxeval.kernels.kinds import Array, Bool, Float, Int8, Int32, Integer, Num, Real, Shaped
from jaxeval.kernels.links import Link, bend, score_of_points, share
from jaxeval.kernels.platforms import by_platform
from jaxeval.lazy_names import jax, jnp, lax

SLOTS = 8


class Adjacency(NamedTuple):
    """Slots of M models in R rows, and P pairs; the last of each is padding, and others may be.

    A padding model's sum is that of an empty row.
    """

    opponent: Int32[Array, "8 R"]  # model in the slot; M - 1 in empty ones
    pair: Int32[Array, "8 R"]  # pair of owner and opponent; P - 1 in empty ones
    is_first: Bool[Array, "8 R"]  # whether the owner is its pair's first model
    owner: Int32[Array, "R"]  # model of the row, the last one for empty rows; rows of a model are neighbours
    merges: tuple[Int32[Array, "8 _"], ...]  # rows of the level before to add up; its last row is empty
    several: Int32[Array, "A"]  # where the sums of the models with several rows are, among those of all merges
    single: Int32[Array, "_"]  # the row of each further model

    @property
    def n_models(self) -> int:
        """M."""
        return self.several.shape[0] + self.single.shape[0]


def take(values: Shaped[Array, "rows ..."], index: Integer[Array, "..."]) -> Shaped[Array, "..."]:
    """Return ``values[index]`` along the first axis, unchecked."""
    return values.at[index].get(mode="promise_in_bounds")


def opponent_sums(
    adjacency: Adjacency, slot: Callable[[int], Shaped[Array, "R *lanes"]]
) -> Shaped[Array, "{adjacency.n_models} ..."]:
    """Sum ``slot(k)``, k = 0 .. 7, over all slots of every model; empty slots must hold 0."""
    # One addition after the other: XLA's CPU reduction over an axis takes four times as long.
    return _merged(adjacency, sum((slot(k) for k in range(1, SLOTS)), start=slot(0)), jnp.add)


def any_opponent(
    adjacency: Adjacency, slot: Callable[[Array | int], Bool[Array, "R *lanes"]]
) -> Bool[Array, "{adjacency.n_models} ..."]:
    """Return whether ``slot(k)`` holds in any slot of a model; empty slots must not."""
    return _merged(adjacency, _over_slots(slot, jnp.logical_or), jnp.logical_or)


def _merged(
    adjacency: Adjacency, rows: Shaped[Array, "R *lanes"], combine: Callable[[Array, Array], Array]
) -> Shaped[Array, "{adjacency.n_models} *lanes"]:
    """Return the ``rows`` of every model, combined into one."""
    levels = [rows]
    for merge in adjacency.merges:
        levels.append(_over_slots(partial(_merged_slot, levels[-1], jnp.asarray(merge)), combine))
    several = take(jnp.concatenate(levels[1:]), adjacency.several)
    return jnp.concatenate([several, take(rows, adjacency.single)])


def _merged_slot(rows: Shaped[Array, "_ *lanes"], merge: Int32[Array, "8 R_k"], k: Array | int) -> Array:
    return take(rows, merge[k])


def _over_slots(
    slot: Callable[[Array | int], Shaped[Array, "R *lanes"]], combine: Callable[[Array, Array], Array]
) -> Shaped[Array, "R *lanes"]:
    """Combine ``slot(k)``, k = 0 .. 7, one after the other."""

    def turns(start: Array, unroll: bool | None) -> Array:
        return lax.fori_loop(1, SLOTS, lambda k, so_far: combine(so_far, slot(k)), start, unroll=unroll)

    # A loop compiles faster. But on an accelerator each of its turns is a launch; unrolled, all turns are one launch.
    return by_platform(slot(0), cpu=partial(turns, unroll=None), default=partial(turns, unroll=True))


# Early steps are solved until the residual's norm has shrunk by this factor, which shrinks the error by about as much.
_INNER_TOLERANCE = 0.01
# Rounding of a gradient, in units of the precision times the battles that it adds up.
_GRADIENT_ROUNDING = 1.0
_MOST_STALLS = 3


class SparsePairs(NamedTuple):
    """The sufficient statistics of L problems on one graph."""

    n: Float[Array, "P L"]  # total weight of the battles of each pair; the last pair is empty
    wins: Float[Array, "P L"]  # sum of weight * target of its first model


class SlotBattles(NamedTuple):
    """The battles of every model, by the slots of its opponents."""

    n: Float[Array, "8 R L"]  # weights
    wins: Float[Array, "8 R L"]  # sums of weight * target of the row's model
    score: Float[Array, "M L"]  # sums of a model's wins


def slot_battles(adjacency: Adjacency, pairs: SparsePairs) -> SlotBattles:
    """Return the battles of ``pairs`` by slots."""
    n, first = take(pairs.n, adjacency.pair), take(pairs.wins, adjacency.pair)
    wins = jnp.where(adjacency.is_first[..., None], first, n - first)
    return SlotBattles(n, wins, opponent_sums(adjacency, lambda k: wins[k]))


def log_odds(adjacency: Adjacency, pairs: SparsePairs, active: Bool[Array, "M L"]) -> Float[Array, "M L"]:
    """Return the centred log-odds of each model's own score, to start from."""
    n, _, score = slot_battles(adjacency, pairs)
    battles = opponent_sums(adjacency, lambda k: n[k])
    return solve.centred(jnp.log((score + 1) / (battles - score + 1)), active)


def gradient(
    link: Link, adjacency: Adjacency, battles: SlotBattles, theta: Float[Array, "M L"], ridge: Real[Array, ""]
) -> tuple[Float[Array, "M L"], Float[Array, "8 R L"]]:
    """Return gradient of the penalised log-likelihood, and weights of the slots in the information."""
    n, wins, score = battles
    if link == Link.LOGIT:
        e = jnp.exp(theta)
        mine = take(e, adjacency.owner)
        won = [share(mine, take(e, adjacency.opponent[k])) for k in range(SLOTS)]
        grad = score - opponent_sums(adjacency, lambda k: n[k] * won[k])
        weights = [n[k] * won[k] * (1 - won[k]) for k in range(SLOTS)]
    else:
        mine = take(theta, adjacency.owner)
        z = [mine - take(theta, adjacency.opponent[k]) for k in range(SLOTS)]
        losses = n - wins
        grad = opponent_sums(adjacency, lambda k: score_of_points(link, wins[k], losses[k], z[k]))
        weights = [wins[k] * bend(link, z[k]) + losses[k] * bend(link, -z[k]) for k in range(SLOTS)]
    return grad - 2 * ridge * theta, jnp.stack(weights)


class _Memory(NamedTuple):
    """What a step leaves to the next one, lane by lane."""

    is_close: Bool[Array, "L"]  # whether the next step is solved to the rounding of the gradient
    n_stalls: Int32[Array, "L"]  # steps that conjugate gradients could not solve
    least: Float[Array, "L"]  # curvature of the weakest direction that was met, in units of the diagonal
    rounding: Float[Array, "L"]  # logits that the rounding of the gradient may be worth in that direction


def newton_cg(
    link: Link,
    adjacency: Adjacency,
    pairs: SparsePairs,
    active: Bool[Array, "M L"],
    start: Float[Array, "M L"],
    terms: solve.Terms,
) -> solve.Solution:
    """Return the maximum from ``start``, with fields (M, L) and (L,). ``pairs`` holds no battles of inactive models.

    The first steps are solved roughly, the last ones to the rounding of the gradient: only these move groups that few
    battles join. A lane ends with a solved step so short that the error after it, about its square, is under the
    tolerance. It has not converged where conjugate gradients stall, or where rounding alone may be worth more than 1e-6
    logits (5e-3 in single precision).

    At the maximum with a ridge, the mean of each connected component is 0. Conjugate gradients may not see the
    curvature of a small ridge: the mean then stays where the start has it.
    """
    battles = slot_battles(adjacency, pairs)
    noise = _GRADIENT_ROUNDING * jnp.finfo(start.dtype).eps * opponent_sums(adjacency, lambda k: battles.n[k])
    close = jnp.sqrt(0.1 * terms.tolerance)

    def step(theta: Array, running: Array, memory: _Memory) -> solve.SolveStep:
        grad, weights = gradient(link, adjacency, battles, theta, terms.ridge)
        grad = jnp.where(active, grad, 0.0)
        shrink = jnp.where(memory.is_close, 0.0, _INNER_TOLERANCE)
        direction, rounding = newton_step(
            adjacency, weights, grad, noise, terms, shrink=shrink, least=memory.least, running=running
        )
        change = solve.capped(solve.centred(direction.solution, active))
        size = jnp.max(jnp.abs(change), 0)
        n_stalls = memory.n_stalls + ~direction.is_solved
        remaining = jnp.where(memory.is_close & direction.is_solved, 10 * size**2, jnp.inf)
        remaining = jnp.where(n_stalls < _MOST_STALLS, remaining, jnp.nan)
        rounding = jnp.where(running, rounding, memory.rounding)
        return solve.SolveStep(
            change, grad, _Memory(_INNER_TOLERANCE * size <= close, n_stalls, direction.least, rounding), remaining
        )

    lanes = start.shape[1:]
    first = _Memory(
        is_close=jnp.zeros(lanes, bool),
        n_stalls=jnp.zeros(lanes, jnp.int32),
        least=jnp.ones(lanes, start.dtype),
        rounding=jnp.full(lanes, jnp.inf, start.dtype),
    )
    end, memory = solve.loop(step, solve.centred(start, active), first, terms)
    is_rough = (end.status == solve.Status.CONVERGED) & (memory.rounding > solve.MOST_ROUNDING[start.dtype.name])
    return end._replace(status=jnp.where(is_rough, jnp.int8(solve.Status.STEP_LIMIT), end.status))


def newton_step(
    adjacency: Adjacency,
    weights: Float[Array, "8 R L"],
    grad: Float[Array, "M L"],
    noise: Float[Array, "M L"],
    terms: solve.Terms,
    *,
    shrink: Float[Array, "L"],
    least: Float[Array, "L"],
    running: Bool[Array, "L"],
) -> tuple[solve.ConjugateSolution, Float[Array, "L"]]:
    """Solve information * change = gradient by conjugate gradients, for the lanes ``running``.

    The information is D - V + 2 ridge, V the slots' ``weights`` and D their sums. The residual's norm shrinks by
    ``shrink``, or, where that is 0, until the residual is worth less than a tenth of the tolerance in the direction of
    the ``least`` curvature so far. It never shrinks below the ``noise`` that rounding leaves of any gradient. The
    second result is the logits that the noise may be worth in the weakest direction.
    """
    diagonal = opponent_sums(adjacency, lambda k: weights[k]) + 2 * terms.ridge
    inverse = jnp.where(diagonal > 0, 1 / jnp.where(diagonal > 0, diagonal, 1.0), 0.0)
    weakest = jnp.min(jnp.where(weights > 0, weights, jnp.inf), (0, 1))
    floor = jnp.sum(noise * inverse * noise, 0)

    def product(p: Array) -> Array:
        return diagonal * p - opponent_sums(adjacency, lambda k: weights[k] * take(p, adjacency.opponent[k]))

    def enough(rz_start: Array, least: Array) -> Array:
        # A residual r is worth r' H^-1 r <= r' D^-1 r / least, and all of it may be that of the weakest pair.
        bound = jnp.where(shrink > 0, shrink**2 * rz_start, (0.1 * terms.tolerance) ** 2 * least * weakest)
        return jnp.maximum(bound, floor)

    solution = solve.conjugate_gradients(
        product, lambda r: inverse * r, diagonal, grad, enough, 1000 + len(grad), running=running, least=least
    )
    # A direction that rounding hides altogether was not met: there is one if the weakest pair alone joins two groups.
    is_hidden = jnp.sqrt(floor * jnp.sum(diagonal, 0)) > 0.1 * weakest
    return solution, jnp.where(is_hidden, jnp.inf, jnp.sqrt(floor / (solution.least * weakest)))


class Graph(NamedTuple):
    """Which models met: P pairs between M models; the last of each is padding, and others may be."""

    adjacency: Adjacency
    first: Int32[Array, "P"]  # the first model of each pair, as numbered in ``adjacency``
    second: Int32[Array, "P"]
    place: Int32[Array, "M"]  # of the models on the board; M for padding


def standing(graph: Graph, pairs: SparsePairs, weight: Num[Array, "M L"]) -> Int8[Array, "M L"]:
    """Return the standing of every model, see `connectivity.standing_of`."""
    adjacency = jax.tree.map(jnp.asarray, graph.adjacency)
    won, is_first = pairs.wins > 0, adjacency.is_first[..., None]
    other = pairs.n - pairs.wins > 0
    # (8, R, L) whether the row's model took points off the opponent, and lost some to it.
    took = jnp.where(is_first, take(won, adjacency.pair), take(other, adjacency.pair))
    lost = jnp.where(is_first, take(other, adjacency.pair), take(won, adjacency.pair))

    def towards(edge: Array) -> connectivity.Grow:
        """Return a step to the models with an ``edge`` to an opponent that is reached."""
        return lambda reached: (
            reached | any_opponent(adjacency, lambda k: edge[k] & take(reached, adjacency.opponent[k]))
        )

    results = connectivity.Results(
        wins=towards(lost), losses=towards(took), took=any_opponent(adjacency, lambda k: took[k]),
        lost=any_opponent(adjacency, lambda k: lost[k]), place=jnp.asarray(graph.place)[:, None],
    )  # fmt: skip
    return connectivity.standing_of(results, weight)


def _rated(graph: Graph, standing: Int8[Array, "M L"], ridge: Real[Array, ""]) -> Bool[Array, "M L"]:
    """Return models with a finite rating."""
    return (graph.place < len(graph.place))[:, None] & rated(standing, ridge)


def _among(graph: Graph, pairs: SparsePairs, active: Bool[Array, "M L"]) -> SparsePairs:
    """Return ``pairs`` without the battles of models that are not ``active``."""
    both = take(active, graph.first) & take(active, graph.second)
    return SparsePairs(jnp.where(both, pairs.n, 0), jnp.where(both, pairs.wins, 0))


@program("link")
def fit_sparse(
    graph: Graph,
    n: Float[Array, "P"],
    wins: Float[Array, "P"],
    terms: solve.Terms,
    start: Float[Array, "M"] | None = None,
    link: Link = Link.LOGIT,
) -> Refits:
    """Fit once to the battles' weights ``n`` of the pairs and what their first models took of them, ``wins``.

    The fit begins from ``start``, or from each model's own score.
    """
    pairs = SparsePairs(n[:, None], wins[:, None])
    adjacency = graph.adjacency
    # The main group is that of most battles.
    battles = opponent_sums(adjacency, lambda k: take(pairs.n, adjacency.pair[k]))
    standings = standing(graph, pairs, battles)
    active = _rated(graph, standings, terms.ridge)
    pairs = _among(graph, pairs, active)
    begin = log_odds(adjacency, pairs, active) if start is None else start[:, None]
    end = newton_cg(link, adjacency, pairs, active, begin, terms)
    return Refits(end.theta[:, 0], end.status[0], end.n_steps[0], end.grad_norm[0], standings[:, 0])


class SparseData(NamedTuple):
    """The data of a `RefitProblem` of one board."""

    layout: pair_tables.Layout
    graph: Graph


@partial(refit_program, runs="long")
def refit_sparse(
    problem: RefitProblem, form: RefitForm, seed: Integer[Array, ""], terms: solve.Terms, numbers: Integer[Array, "L"]
) -> Refits:
    """Draw and refit resamples of one board, as `refit` does; models are as in the graph, which follows the layout."""
    layout, graph = problem.data.layout, problem.data.graph
    statistics = draw_pairs(problem, layout, form, seed, numbers)
    n, wins = (x.astype(form.dtype) for x in pair_tables.unpacked(statistics, form.packing, form.dtype))
    pairs = SparsePairs(n.T, wins.T)
    if layout.pair_weight is not None:
        pairs = SparsePairs(*(x * layout.pair_weight.astype(form.dtype)[:, None] for x in pairs))
    weight = jnp.broadcast_to(problem.main[:, None], (len(problem.main), len(numbers)))
    standings = standing(graph, pairs, weight)
    active = _rated(graph, standings, terms.ridge)
    start = jnp.broadcast_to(problem.start.astype(form.dtype)[:, None], weight.shape)
    end = newton_cg(form.model.link, graph.adjacency, _among(graph, pairs, active), active, start, terms)
    return Refits(end.theta.T, end.status, end.n_steps, end.grad_norm, standings.T)
