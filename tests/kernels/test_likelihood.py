import jax
import numpy as np
import pytest
import twins
from compiled import compiled
from scipy.special import expit

from jaxeval.kernels import pair_tables
from jaxeval.kernels.links import Link
from jaxeval.kernels.pair_tables import PairTable

pytestmark = pytest.mark.usefixtures("x64")


def board(seed):
    """Eight log-strengths and wins, soft and with pairs that never met."""
    rng = np.random.default_rng(seed)
    wins = rng.gamma(2.0, 3.0, (8, 8)) * (rng.random((8, 8)) < 0.6)
    np.fill_diagonal(wins, 0)
    return rng.normal(0, 2, 8), wins


log_likelihood, gradient_of, curvature = compiled(
    pair_tables.log_likelihood, pair_tables.gradient, pair_tables.curvature
)
grad_by_jax, hessian_by_jax = compiled(
    jax.grad(pair_tables.log_likelihood, 1), jax.hessian(pair_tables.log_likelihood, 1)
)


@pytest.mark.parametrize("link", Link)
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_value_gradient_and_hessian_agree_with_loops_and_with_jax(seed, ridge, link):
    theta, wins = board(seed)
    table = PairTable(wins + wins.T, wins.sum(1), wins)
    name = link.name.lower()
    value = log_likelihood(link, theta, wins, ridge)
    np.testing.assert_allclose(value, twins.log_likelihood(theta, wins, ridge, name), rtol=1e-13)

    gradient = gradient_of(link, theta, table, ridge)
    np.testing.assert_allclose(gradient, twins.gradient(theta, wins, ridge, name), atol=1e-11)
    np.testing.assert_allclose(gradient, grad_by_jax(link, theta, wins, ridge), atol=1e-11)

    v = np.asarray(curvature(link, theta, table))
    information = np.diag(v.sum(1)) - v + 2 * ridge * np.eye(8)
    np.testing.assert_allclose(information, twins.information(theta, wins, ridge, name), atol=1e-11)
    np.testing.assert_allclose(-information, hessian_by_jax(link, theta, wins, ridge), atol=1e-10)


def test_pairs_that_never_met_add_nothing_however_far_apart():
    wins = np.zeros((8, 8))
    wins[0, 1] = wins[1, 0] = 1.0
    theta = np.array([0.0, 0.0, 1e4, -1e4, 0.0, 0.0, 0.0, 0.0])
    assert log_likelihood(Link.LOGIT, theta, wins, 0.0) == pytest.approx(2 * np.log(0.5), rel=1e-15)


@pytest.mark.parametrize(
    ("dtype", "furthest", "relative"), [(np.float64, 170.0, 1e-13), (np.float32, 20.0, 1e-6)], ids=["double", "single"]
)
def test_expected_scores_hold_to_the_stated_range(dtype, furthest, relative):
    rng = np.random.default_rng(0)
    theta = np.concatenate([[-furthest] * 3, [furthest] * 3, rng.uniform(-furthest, furthest, 6)])
    n = rng.integers(0, 100_000, (12, 12))
    n += n.T
    np.fill_diagonal(n, 0)
    rounded = theta.astype(dtype)
    score = jax.jit(pair_tables.expected_score)(rounded, n.astype(np.float32))
    assert score.dtype == dtype
    difference = rounded.astype(float)[:, None] - rounded.astype(float)
    # An exponential of x is off by about |x| roundings.
    np.testing.assert_allclose(score, (n * expit(difference)).sum(1), rtol=relative * furthest / 10)
