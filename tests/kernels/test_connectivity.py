import jax
import jax.numpy as jnp
import numpy as np
import pytest
import twins

from jaxeval.kernels import connectivity
from jaxeval.ratings.connectivity import analyse

pytestmark = pytest.mark.usefixtures("x64")

M = 9


standing_of = jax.jit(connectivity.standing)
standings = jax.jit(jax.vmap(connectivity.standing))


def reachable(edge, start, way=connectivity.along):
    return connectivity.reachable(way(edge), jnp.arange(len(edge)) == start)


@pytest.fixture(scope="module")
def tables(x64):
    """Random tables of wins, from nearly empty to nearly full, of any scale; one a chain that takes M - 1 steps."""
    rng = np.random.default_rng(0)
    density = rng.beta(0.7, 3.0, (400, 1, 1))
    wins = 10.0 ** rng.uniform(-9, 9, (400, M, M)) * (rng.random((400, M, M)) < density)
    wins[:, np.arange(M), np.arange(M)] = 0
    order = rng.permutation(M)
    wins[0] = 0
    wins[0, order[:-1], order[1:]] = 1.0
    return wins, rng.integers(0, M, 400)


def test_reachability_is_that_of_the_closure(tables):
    wins, start = tables
    reached = np.asarray(jax.jit(jax.vmap(reachable))(wins, start))
    for table, hub, found in zip(wins, start, reached, strict=True):
        np.testing.assert_array_equal(found, twins.closure(table > 0)[hub])


def test_against_the_edges_are_those_who_reach_a_model(tables):
    wins, start = tables
    reached = np.asarray(jax.jit(jax.vmap(lambda table, hub: reachable(table, hub, connectivity.against)))(wins, start))
    for table, hub, found in zip(wins, start, reached, strict=True):
        np.testing.assert_array_equal(found, twins.closure(table > 0)[:, hub])


def test_standing_agrees_with_brute_force_and_with_the_host(tables):
    wins, _ = tables
    n = wins + wins.swapaxes(1, 2)
    standing = np.asarray(standings(wins, n.sum(2)))
    for count, table, found in zip(n, wins, standing, strict=True):
        np.testing.assert_array_equal(found, twins.standing(count, table))
        np.testing.assert_array_equal(found, analyse(count, table).standing)
    # All kinds occur, or the comparison would say little; so do boards without any group.
    assert np.bincount(standing.ravel()).min() > 100
    assert 20 < np.sum(~(standing == connectivity.Standing.IDENTIFIED).any(1)) < 380


def test_standing_beside_models_that_are_known_to_be_one_group(tables):
    """Six of nine models took points off each other in a circle; the others stand to them as on the whole board."""
    wins, _ = tables
    wins = wins.copy()
    models = np.array([1, 4, 7, M])  # the last is none
    others = np.delete(np.arange(M), models[:3])
    wins[:, others, np.roll(others, 1)] = 1.0
    weight = np.random.default_rng(1).integers(0, 3, (len(wins), M)).astype(float)

    def beside(wins, weight):
        rows = jnp.zeros((4, M)).at[:3].set(wins[models[:3]]), jnp.zeros((4, M)).at[:3].set(wins[:, models[:3]].T)
        return connectivity.standing_beside(*rows, jnp.asarray(models), weight)

    found = np.asarray(jax.jit(jax.vmap(beside))(wins, weight))
    whole = np.asarray(standings(wins, weight))
    np.testing.assert_array_equal(found, whole)
    assert np.bincount(whole.ravel()).min() > 50


def test_standing_next_to_the_group_of_most_given_weight(tables):
    wins, _ = tables
    n = wins + wins.swapaxes(1, 2)
    weight = np.random.default_rng(1).integers(0, 3, (len(n), M)).astype(float)
    standing = np.asarray(standings(wins, weight))
    for *table, found in zip(n, wins, weight, standing, strict=True):
        np.testing.assert_array_equal(found, twins.standing(*table))


def test_of_several_groups_the_one_with_most_battles_is_the_main_one():
    """Whoever has most votes alone; of equal groups, that of the first model."""
    wins = np.zeros((7, 7))
    wins[1, 2] = wins[2, 1] = 3
    wins[3, 4] = wins[4, 3] = 3
    wins[0, 1:5] = 100
    for extra, expected in ((0, [1, 0, 0, 3, 3, 3, 3]), (1, [1, 3, 3, 0, 0, 3, 3])):
        wins[3, 4] = 3 + extra
        n = wins + wins.T
        found = standing_of(wins, n.sum(1))
        np.testing.assert_array_equal(found, expected)


def test_long_chains_are_followed_to_their_end():
    edge = np.zeros((257, 257))
    edge[np.arange(256), np.arange(1, 257)] = 1e-12
    found = jax.jit(reachable)
    assert np.asarray(found(edge, 0)).all()
    assert np.asarray(found(edge, 200)).sum() == 57
