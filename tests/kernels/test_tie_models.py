"""Tie models: probabilities add up, derivatives are those of the log-likelihood, and of nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from jaxeval.kernels import tie_models
from jaxeval.kernels.tie_models import DAVIDSON, HALF, RAO_KUPPER

pytestmark = pytest.mark.usefixtures("x64")

Z = np.array([-30.0, -3.0, -0.4, 0.0, 1e-3, 2.0, 25.0])
T = {HALF: 0.0, DAVIDSON: -0.7, RAO_KUPPER: 0.4}


def likelihood(model, target, z, t):
    """By the papers' own formulas."""
    if model == HALF:
        return -target * np.logaddexp(0, -z) - (1 - target) * np.logaddexp(0, z)
    if model == DAVIDSON:
        a, b, nu = np.exp(z), 1.0, np.exp(t)
        p = {1.0: a, 0.0: b, 0.5: nu * np.sqrt(a * b)}[target] / (a + b + nu * np.sqrt(a * b))
    else:
        a, b, theta = np.exp(z), 1.0, np.exp(t)
        p = {
            1.0: a / (a + theta * b),
            0.0: b / (theta * a + b),
            0.5: a * b * (theta**2 - 1) / ((a + theta * b) * (theta * a + b)),
        }[target]
    return np.log(p)


@pytest.mark.parametrize("model", [HALF, DAVIDSON, RAO_KUPPER])
@pytest.mark.parametrize("target", [0.0, 0.5, 1.0])
def test_likelihood_and_derivatives(model, target):
    t = T[model]
    found = tie_models.log_likelihood(model, jnp.full(len(Z), target), jnp.asarray(Z), t)
    np.testing.assert_allclose(found, likelihood(model, target, Z, t), rtol=1e-9, atol=1e-12)

    def one(z, t):
        return tie_models.log_likelihood(model, target, z, t)

    for z in Z[1:-1]:
        gradient, hessian = jax.grad(one, (0, 1))(z, t), jax.hessian(one, (0, 1))(z, t)
        score = tie_models.score(model, jnp.asarray(target), z, t)
        information = tie_models.information(model, jnp.asarray(target), z, t)
        np.testing.assert_allclose(score, gradient, atol=1e-12)
        np.testing.assert_allclose(information, [-hessian[0][0], -hessian[0][1], -hessian[1][1]], atol=1e-11)


@pytest.mark.parametrize("model", [DAVIDSON, RAO_KUPPER])
def test_probabilities(model):
    win, tie, loss = map(np.asarray, tie_models.probabilities(model, jnp.asarray(Z), T[model]))
    np.testing.assert_allclose(win + tie + loss, 1, rtol=1e-12)
    back = tie_models.probabilities(model, -jnp.asarray(Z), T[model])
    np.testing.assert_allclose(np.stack(back), [loss, tie, win], rtol=1e-12)
    np.testing.assert_allclose(tie_models.expected(model, jnp.asarray(Z), T[model]), win + tie / 2)
    assert (tie > 0).all()


def test_soft_targets_without_a_tie_model():
    score = tie_models.score(HALF, jnp.asarray(0.3), jnp.asarray(Z), 0.0)
    np.testing.assert_allclose(score.z, 0.3 - expit(Z))
    win, tie, loss = tie_models.probabilities(HALF, jnp.asarray(Z), 0.0)
    assert not np.asarray(tie).any()
    np.testing.assert_allclose(np.asarray(win) + np.asarray(loss), 1)
