"""The marginal likelihood and its maximum, beside sums over one fine grid and beside girth."""

import jax
import numpy as np
import pytest
from scipy.special import logit
from twins import item_response

from jaxeval.kernels.batch import items
from jaxeval.kernels.batch.items import Curves, Parameters, Responses
from jaxeval.kernels.solve import Status, Terms

pytestmark = pytest.mark.usefixtures("x64")

N_MODELS, N_ITEMS = 200, 12
GRID = np.linspace(-8, 8, 801)
#: Discriminations and difficulties of girth 0.8.0 (``twopl_mml``, quadrature_n 161) of `planted`. Its
#: difficulties are made to give the observed means, so that it comes near the maximum only.
GIRTH = {
    "discrimination": [1.59974, 1.13773, 0.7822, 0.95249, 0.79996, 0.53199, 1.0454, 1.24499, 4.36006, 1.53389, 0.95293,
                       1.33444],
    "difficulty": [0.98698, 0.3804, 1.22409, 0.02503, -0.20007, -1.28305, 0.16451, 0.08389, 2.12433, -0.22464, 1.52855,
                   1.25058],
}  # fmt: skip


def planted():
    rng = np.random.default_rng(5)
    ability, slope, difficulty = rng.normal(size=N_MODELS), rng.uniform(0.7, 1.8, N_ITEMS), rng.normal(size=N_ITEMS)
    return (rng.random((N_MODELS, N_ITEMS)) < 1 / (1 + np.exp(-slope * (ability[:, None] - difficulty)))).astype(float)


def joint_of(values, slope, intercept):
    """(M, G) posteriors of abilities on the grid."""
    at = GRID[:, None] * slope + intercept
    log = values @ at.T - np.log1p(np.exp(at)).sum(1) - GRID**2 / 2
    joint = np.exp(log - log.max(1, keepdims=True))
    return joint / joint.sum(1, keepdims=True)


def test_maximum_of_the_marginal_likelihood_and_girth():
    values = planted()
    node, weight = np.polynomial.hermite_e.hermegauss(31)
    responses = Responses(
        values, np.ones_like(values), np.ones(N_MODELS, bool), node, weight / weight.sum(), np.float64(0)
    )
    start = Parameters(np.zeros(N_MODELS), np.ones(N_ITEMS), logit(values.mean(0)))

    @jax.jit
    def run(responses, start):
        end = items.fit(responses, Curves.TWO_PARAMETER, start, np.ones(N_ITEMS), Terms.of(0.0, 1e-6, 500))
        now = items.split(end.theta, N_MODELS)
        return end, now, items.posterior(responses, now, np.ones(N_ITEMS))

    end, now, own = run(responses, start)
    assert end.status == Status.CONVERGED
    slope, intercept = np.asarray(now.slope), np.asarray(now.intercept)
    total, ability = item_response(values, slope, intercept, GRID)
    assert float(own.log_likelihood.sum()) == pytest.approx(total, abs=1e-4)
    np.testing.assert_allclose(own.mean, ability, atol=1e-4)
    small = 1e-4
    for k in range(N_ITEMS):  # no parameter can be moved to a higher likelihood
        off = small * (np.arange(N_ITEMS) == k)
        up, down = (item_response(values, slope, intercept + sign * off, GRID)[0] for sign in (1, -1))
        assert abs(up - down) / (2 * small) < 1e-3
        up, down = (item_response(values, slope + sign * off, intercept, GRID)[0] for sign in (1, -1))
        assert abs(up - down) / (2 * small) < 1e-3
    # The spread of slopes by moments, here at any parameters with one slope: beside sums over the grid.
    alike = Parameters(np.asarray(own.mean), np.full(N_ITEMS, 0.4), intercept)
    posterior = joint_of(values, alike.slope, intercept)
    p = 1 / (1 + np.exp(-(GRID[:, None] * alike.slope + intercept)))
    mean = posterior @ GRID
    flat, tilt, bend = (np.einsum("mg,gi->i", posterior * GRID**k, p * (1 - p)) for k in range(3))
    score = mean @ values - np.einsum("mg,gi->i", posterior * GRID, p)
    score -= tilt / flat * (values.sum(0) - np.einsum("mg,gi->i", posterior, p))
    information = bend - tilt**2 / flat
    total = (information**2).sum()
    expected = np.sqrt(max((score**2 - information).sum() - np.sqrt(2 * total), 0) / total) / 0.4
    found = jax.jit(items.spread_of_slopes)(responses, alike, np.ones(N_ITEMS))
    assert expected > 0
    assert float(found) == pytest.approx(expected, abs=1e-6)
    others, difficulty = (np.array(GIRTH[name]) for name in ("discrimination", "difficulty"))
    np.testing.assert_allclose(slope, others, rtol=0.03)
    np.testing.assert_allclose(-intercept / slope, difficulty, rtol=0.03, atol=0.02)
    assert item_response(values, others, -others * difficulty, GRID)[0] < total
