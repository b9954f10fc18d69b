from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import twins

from jaxeval.kernels.batch import sparse
from jaxeval.kernels.batch.sparse import SparsePairs, any_opponent, opponent_sums, standing, take
from jaxeval.kernels.links import Link
from jaxeval.kernels.platforms import traced_for
from jaxeval.kernels.solve import Terms
from jaxeval.ratings.sparse_boards import WideGraph, make_adjacency, make_graph
from jaxeval.resampling.units import pad

pytestmark = pytest.mark.usefixtures("x64")

M, LANES = 14, 6

gradient, slot_battles = jax.jit(sparse.gradient, static_argnums=0), jax.jit(sparse.slot_battles)


@jax.jit
def sums_over_opponents(adjacency, values):
    return opponent_sums(adjacency, lambda k: values[k])


class Pairs:
    """As much of `Cells` as a graph needs."""

    def __init__(self, first, second):
        self.first, self.second = first, second


def graph_of(first, second, n_models):
    wide = make_graph(Pairs(first, second), n_models)
    return wide._replace(graph=jax.device_put(wide.graph))


def random_board(rng, lanes=LANES, density=0.4):
    """(lanes, M, M) tables of wins on one graph, whose lanes lack some of its pairs."""
    met = np.triu(rng.random((M, M)) < density, 1)
    first, second = np.nonzero(met)
    shape = (lanes, len(first))
    won, lost = rng.integers(0, 6, (2, *shape)) / 2 * (rng.random((2, *shape)) < 0.8)
    wins = np.zeros((lanes, M, M))
    wins[:, first, second], wins[:, second, first] = won, lost
    wide = graph_of(first, second, M)
    empty = np.zeros((len(wide.graph.first) - len(first), lanes))
    pairs = SparsePairs(*(jax.device_put(np.concatenate([x.T, empty])) for x in (won + lost, won)))
    return wins, wide, pairs


def numbered(wide: WideGraph, values):
    """(M', L) values as the graph numbers models, from (L, M)."""
    return jax.device_put(wide.numbered(np.asarray(values)).T)


def on_board(wide: WideGraph, values):
    """(L, M) from (M', L)."""
    return np.asarray(values)[wide.number].T


@pytest.mark.slow
@pytest.mark.parametrize("degree", [8, 9, 530, 4100])
def test_sums_over_opponents_of_any_number(degree):
    """A star, a path beside it, and a model that met nobody; the hub's rows are added up in up to four turns."""
    n_models = degree + 5
    first = np.concatenate([np.zeros(degree, int), degree + np.array([1, 2])])
    second = np.concatenate([np.arange(1, degree + 1), degree + np.array([2, 3])])
    adjacency, number, _ = make_adjacency(first, second, n_models)
    assert adjacency.n_models > n_models
    assert len(adjacency.merges) == (4 if degree > 4096 else 3)
    adjacency = jax.tree.map(jnp.asarray, adjacency)
    value = np.random.default_rng(0).normal(size=(2, n_models))
    placed = np.zeros((2, adjacency.n_models))
    placed[:, number] = value
    x = jnp.asarray(placed.T)
    expected = np.zeros((2, n_models))
    for i, j in zip(first, second, strict=True):
        expected[:, i] += value[:, j]
        expected[:, j] += value[:, i]
    found = np.asarray(opponent_sums(adjacency, lambda k: take(x, adjacency.opponent[k])))[number].T
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    with traced_for("cuda"):  # to the bit: the order is the same
        elsewhere = opponent_sums(adjacency, lambda k: take(x, adjacency.opponent[k]))
    np.testing.assert_array_equal(np.asarray(elsewhere)[number].T, found)
    reached = jnp.arange(adjacency.n_models) == number[0]
    touched = np.asarray(any_opponent(adjacency, lambda k: take(reached, adjacency.opponent[k])))[number]
    np.testing.assert_array_equal(touched, (np.arange(n_models) >= 1) & (np.arange(n_models) <= degree))


def test_every_pair_has_two_slots():
    rng = np.random.default_rng(0)
    first, second = np.nonzero(np.triu(rng.random((40, 40)) < 0.3, 1))
    adjacency, number, n_pairs = make_adjacency(first, second, 40)
    found = set()
    for k, row in np.argwhere(adjacency.pair < len(first)):
        ends = adjacency.owner[row], adjacency.opponent[k, row]
        found.add((adjacency.pair[k, row], *(ends if adjacency.is_first[k, row] else ends[::-1])))
    assert found == {(p, number[i], number[j]) for p, (i, j) in enumerate(zip(first, second, strict=True))}
    empty = adjacency.pair == n_pairs - 1
    assert n_pairs > len(first)
    assert (~empty).sum() == 2 * len(first)
    assert (adjacency.opponent[empty] == adjacency.n_models - 1).all()


@pytest.mark.parametrize("link", Link)
def test_scores_gradient_and_weights(link):
    rng = np.random.default_rng(0)
    wins, wide, pairs = random_board(rng)
    theta, adjacency = rng.normal(0, 2, (LANES, M)), wide.graph.adjacency
    battles = slot_battles(adjacency, pairs)
    np.testing.assert_allclose(on_board(wide, battles.score), wins.sum(2), rtol=1e-14)
    grad, weights = gradient(link, adjacency, battles, numbered(wide, theta), 0.3)
    name = link.name.lower()
    expected = [twins.gradient(t, w, 0.3, name) for t, w in zip(theta, wins, strict=True)]
    np.testing.assert_allclose(on_board(wide, grad), expected, atol=1e-11)
    diagonal = sums_over_opponents(adjacency, weights)
    expected = [np.diag(twins.information(t, w, link=name)) for t, w in zip(theta, wins, strict=True)]
    np.testing.assert_allclose(on_board(wide, diagonal), expected, atol=1e-11)


def test_a_step_solves_the_newton_equation():
    rng = np.random.default_rng(0)
    wins, wide, pairs = random_board(rng)
    theta, adjacency = rng.normal(0, 1, (LANES, M)), wide.graph.adjacency
    battles = slot_battles(adjacency, pairs)
    grad, weights = gradient(Link.LOGIT, adjacency, battles, numbered(wide, theta), 0.3)
    running = np.arange(LANES) != 2
    noise = np.finfo(float).eps * np.asarray(sums_over_opponents(adjacency, battles.n))
    one = np.ones(LANES)

    @jax.jit
    def change(shrink):
        found, _ = sparse.newton_step(
            adjacency, weights, grad, noise, Terms(0.3, 1e-11, 100), shrink=shrink * one, least=one, running=running
        )
        return found.solution

    step, exact = on_board(wide, change(0.01)), on_board(wide, change(0.0))
    assert not step[2].any()
    for lane in np.flatnonzero(running):
        matrix = twins.information(theta[lane], wins[lane], 0.3)
        left = twins.gradient(theta[lane], wins[lane], 0.3) - matrix @ step[lane]
        scale = np.sqrt(np.diag(matrix))
        before = np.linalg.norm(twins.gradient(theta[lane], wins[lane], 0.3) / scale)
        assert np.linalg.norm(left / scale) <= 0.01 * before * (1 + 1e-9)
        solution = np.linalg.solve(matrix, twins.gradient(theta[lane], wins[lane], 0.3))
        np.testing.assert_allclose(exact[lane], solution, rtol=0, atol=1e-12)


@pytest.fixture(scope="module")
def solved(x64):
    """Boards, their standings and maxima at two ridges, all lanes in one call."""
    rng = np.random.default_rng(3)
    wins, wide, pairs = random_board(rng, lanes=40, density=0.25)
    weight = rng.integers(0, 3, (40, M)).astype(float)
    found = jax.jit(standing)(wide.graph, pairs, numbered(wide, weight))
    return wins, wide, pairs, weight, np.asarray(found)


def test_standing_agrees_with_brute_force(solved):
    wins, wide, _, weight, found = solved
    for table, own_weight, own in zip(wins, weight, on_board(wide, found), strict=True):
        np.testing.assert_array_equal(own, twins.standing(table + table.T, table, own_weight))
    assert np.bincount(found.ravel()).min() > 20


@pytest.mark.slow
@pytest.mark.parametrize(("ridge", "link"), [(0.0, "logit"), (0.05, "logit"), (0.0, "probit"), (0.05, "probit")])
def test_the_maximum_is_the_naive_one_lane_by_lane(solved, ridge, link):
    wins, wide, pairs, _, found = solved
    graph = wide.graph
    is_model = np.asarray(graph.place) < len(graph.place)
    active = jnp.asarray(is_model[:, None] & ((found == 0) | (ridge > 0)))
    both = active[graph.first] & active[graph.second]
    pairs = SparsePairs(jnp.where(both, pairs.n, 0), jnp.where(both, pairs.wins, 0))
    solve, terms = jax.jit(partial(sparse.newton_cg, Link[link.upper()])), Terms(ridge, 1e-10, 100)
    start = sparse.log_odds(graph.adjacency, pairs, active)
    end = solve(graph.adjacency, pairs, active, start, terms)
    assert not np.asarray(end.status).any()
    theta = on_board(wide, end.theta)
    rated = on_board(wide, active)
    for lane, table in enumerate(wins):
        inside = np.flatnonzero(rated[lane])
        expected = twins.newton(table[np.ix_(inside, inside)], ridge, link)
        np.testing.assert_allclose(theta[lane, inside], expected, atol=1e-8)
        assert not theta[lane, ~rated[lane]].any()
    # To the bit, a lane does not depend on the others.
    own = jnp.arange(len(wins)) == 7
    alone = solve(graph.adjacency, SparsePairs(*(x * own for x in pairs)), active & own, start * own, terms)
    np.testing.assert_array_equal(alone.theta[:, 7], end.theta[:, 7])
    assert alone.n_steps[7] == end.n_steps[7]


@pytest.mark.slow
def test_a_long_chain_of_groups():
    """Twelve groups, each joined to the next by one pair: the flattest directions are far flatter than the rest."""
    rng = np.random.default_rng(0)
    n_groups, size = 12, 4
    first, second = np.nonzero(np.triu(np.kron(np.eye(n_groups), np.ones((size, size))), 1))
    joints = np.arange(1, n_groups) * size
    first, second = np.concatenate([first, joints - 1]), np.concatenate([second, joints])
    n = rng.integers(2, 200, len(first)).astype(float)
    won = n * rng.uniform(0.2, 0.8, len(first))
    won[-1] = 1e-6  # and an all but undefeated half
    wide = graph_of(first, second, n_groups * size)
    pairs = SparsePairs(*(jnp.asarray(pad(x, wide.graph.first.shape)[:, None]) for x in (n, won)))
    active = (wide.graph.place < len(wide.graph.place))[:, None]
    start = sparse.log_odds(wide.graph.adjacency, pairs, active)
    terms = Terms(0.0, 1e-9, 200)
    end = jax.jit(sparse.newton_cg, static_argnums=0)(Link.LOGIT, wide.graph.adjacency, pairs, active, start, terms)
    wins = np.zeros((n_groups * size,) * 2)
    wins[first, second], wins[second, first] = won, n - won
    assert end.status[0] == 0
    np.testing.assert_allclose(on_board(wide, end.theta)[0], twins.newton(wins), atol=1e-7)
