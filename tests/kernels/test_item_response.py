"""The likelihood from which items are integrated out, beside sums over one fine grid."""

import jax
import numpy as np
import pytest

from jaxeval.kernels import item_response
from jaxeval.kernels.item_response import Parameters, Responses
from jaxeval.kernels.solve import Status, Terms

pytestmark = pytest.mark.usefixtures("x64")

N_MODELS, N_ITEMS = 8, 60
GRID = np.linspace(-6, 6, 121)


def planted():
    rng = np.random.default_rng(8)
    ability, slope = np.linspace(-1.5, 1.5, N_MODELS), np.exp(rng.normal(0, 0.3, N_ITEMS))
    chance = 1 / (1 + np.exp(-slope * (ability[:, None] - rng.normal(size=N_ITEMS))))
    return (rng.random(chance.shape) < chance).astype(float)


def naive(values, ability, population):
    """Log-likelihood, and posterior means of slopes and difficulties."""
    slope = np.exp(population[0] * GRID)[:, None, None]
    difficulty = (population[1] + population[2] * GRID)[:, None]
    at = slope * (ability - difficulty)  # nodes of log-slopes, of difficulties, models
    log = at @ values - np.log1p(np.exp(at)).sum(-1)[..., None]
    prior = np.exp(-(GRID**2) / 2)
    joint = np.exp(log) * (prior[:, None] * prior / prior.sum() ** 2)[..., None]
    total = joint.sum((0, 1))
    slopes, difficulties = (joint * slope).sum((0, 1)) / total, (joint * difficulty).sum((0, 1)) / total
    return np.log(total).sum(), slopes, difficulties


@pytest.mark.parametrize("spreads", [(2,), (0, 2)])
def test_maximum_of_the_likelihood_is_that_of_a_fine_grid(spreads):
    values, n_nodes = planted(), 15
    node, weight = np.polynomial.hermite_e.hermegauss(n_nodes)
    log_weight = np.log(weight / weight.sum())
    slopes = (node, log_weight) if 0 in spreads else (np.zeros(1), np.zeros(1))
    responses = Responses(values, np.ones_like(values), np.ones(N_MODELS, bool), *slopes, node, log_weight)
    start = Parameters(
        np.zeros(N_MODELS), np.array([0.3 if 0 in spreads else 0.0, 0.0, 1.0]), np.zeros(1), np.zeros((3, N_ITEMS))
    )

    terms = Terms.of(0.0, 1e-6, 2000)

    @jax.jit
    def run(responses, start):
        end = item_response.fit(responses, np.array([0 in spreads, True]), start, np.ones(N_ITEMS), terms)
        now = item_response.split(end.theta, N_MODELS)
        items = item_response.estimates(responses, now, np.ones(N_ITEMS))
        return end, now, item_response.standardised(responses, now), items

    end, now, ability, items = run(responses, start)
    assert end.status == Status.CONVERGED
    theta, population = np.asarray(now.ability), np.asarray(now.population)
    scale = np.exp(now.log_scale[0])
    total, slope, difficulty = naive(values, theta, population)
    assert float(items.log_likelihood.sum()) == pytest.approx(total, abs=2e-3)
    np.testing.assert_allclose(items.slope, slope * scale, rtol=5e-3)
    np.testing.assert_allclose(items.difficulty, (difficulty - theta.mean()) / scale, atol=5e-3)
    small = 1e-4

    def gain(k):
        """The derivative of the log-likelihood and of the abilities' prior."""
        both = np.concatenate([theta, population])
        ends = []
        for sign in (1, -1):
            x = both + sign * small * (np.arange(len(both)) == k)
            ends.append(naive(values, x[:N_MODELS], x[N_MODELS:])[0] - (x[:N_MODELS] ** 2).sum() / (2 * scale**2))
        return (ends[0] - ends[1]) / (2 * small)

    assert population[0] < 0.75 - 1e-6  # the widest
    for k in (*range(N_MODELS), N_MODELS + 1, *(N_MODELS + each for each in spreads)):
        assert abs(gain(k)) < 0.03, k
    assert (ability**2 + items.spread**2).mean() == pytest.approx(1, abs=1e-5)
