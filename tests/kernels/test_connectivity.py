import jax
import jax.numpy as jnp
import numpy as np
import pytest
import twins
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from jaxeval.kernels import connectivity

pytestmark = pytest.mark.usefixtures("x64")

M = 9


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
    reached = np.asarray(jax.jit(jax.vmap(connectivity.reachable))(wins, start))
    for table, hub, found in zip(wins, start, reached, strict=True):
        np.testing.assert_array_equal(found, twins.closure(table > 0)[hub])


def test_standing_agrees_with_strong_components_and_paths(tables):
    wins, hubs = tables
    standing = np.asarray(jax.jit(jax.vmap(connectivity.standing))(wins, hubs))
    for table, hub, found in zip(wins, hubs, standing, strict=True):
        _, group = connected_components(csr_array(table > 0), directed=True, connection="strong")
        np.testing.assert_array_equal(found == connectivity.IDENTIFIED, group == group[hub])
        np.testing.assert_array_equal(found, twins.standing(table, hub))
    # All kinds occur, or the comparison would say little.
    assert np.bincount(standing.ravel()).min() > 100


def test_long_chains_are_followed_to_their_end():
    edge = np.zeros((257, 257))
    edge[np.arange(256), np.arange(1, 257)] = 1e-12
    assert np.all(connectivity.reachable(jnp.asarray(edge), 0))
    assert np.sum(connectivity.reachable(jnp.asarray(edge), 200)) == 57
