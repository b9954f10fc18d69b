"""Tie models: probabilities add up, derivatives are those of the log-likelihood, and of nothing else."""

import jax
import numpy as np
import pytest
from compiled import compiled
from scipy.special import expit, log_ndtr

from jaxeval.kernels import tie_models
from jaxeval.kernels.links import Link
from jaxeval.kernels.tie_models import Response, TieModel

pytestmark = pytest.mark.usefixtures("x64")

HALF, DAVIDSON, RAO_KUPPER = map(Response, TieModel)
PROBIT = Response(TieModel.HALF, Link.PROBIT)

log_likelihood, probabilities, score_of, expected_slopes, expected_result = compiled(
    tie_models.log_likelihood, tie_models.probabilities, tie_models.score, tie_models.expected_slopes,
    tie_models.expected,
)  # fmt: skip

Z = np.array([-30.0, -3.0, -0.4, 0.0, 1e-3, 2.0, 25.0])
T = {HALF: 0.0, PROBIT: 0.0, DAVIDSON: -0.7, RAO_KUPPER: 0.4}


def likelihood(model, target, z, t):
    """By the papers' own formulas."""
    if model == HALF:
        return -target * np.logaddexp(0, -z) - (1 - target) * np.logaddexp(0, z)
    if model == PROBIT:
        return target * log_ndtr(z) + (1 - target) * log_ndtr(-z)
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


@pytest.mark.parametrize("model", [HALF, PROBIT, DAVIDSON, RAO_KUPPER])
def test_likelihood_and_derivatives(model):
    t, targets = T[model], [0.0, 0.5, 1.0]
    target, z = (x.reshape(-1) for x in np.meshgrid(targets, Z, indexing="ij"))
    found = log_likelihood(model, target, z, t)
    expected = np.concatenate([likelihood(model, y, Z, t) for y in targets])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)

    @jax.jit
    @jax.vmap
    def derivatives(target, z):
        """Ours, and those by differentiation of the log-likelihood."""

        def one(z, t):
            return tie_models.log_likelihood(model, target, z, t)

        ours = tie_models.score(model, target, z, t), tie_models.information(model, target, z, t)
        return ours, jax.grad(one, (0, 1))(z, t), jax.hessian(one, (0, 1))(z, t)

    (score, information), gradient, hessian = derivatives(*(x[np.abs(z) < 20] for x in (target, z)))
    np.testing.assert_allclose(score, gradient, atol=1e-12)
    second = np.array([hessian[0][0], hessian[0][1], hessian[1][1]])
    np.testing.assert_allclose(information, -second, atol=1e-11)


@pytest.mark.parametrize("model", [DAVIDSON, RAO_KUPPER])
def test_probabilities(model):
    win, tie, loss = map(np.asarray, probabilities(model, Z, T[model]))
    np.testing.assert_allclose(win + tie + loss, 1, rtol=1e-12)
    back = probabilities(model, -Z, T[model])
    np.testing.assert_allclose(np.stack(back), [loss, tie, win], rtol=1e-12)
    np.testing.assert_allclose(expected_result(model, Z, T[model]), win + tie / 2)
    assert (tie > 0).all()


def test_soft_targets_without_a_tie_model():
    score = score_of(HALF, 0.3, Z, 0.0)
    np.testing.assert_allclose(score.z, 0.3 - expit(Z))
    win, tie, loss = probabilities(HALF, Z, 0.0)
    assert not np.asarray(tie).any()
    np.testing.assert_allclose(np.asarray(win) + np.asarray(loss), 1)


@pytest.mark.parametrize("model", [HALF, PROBIT, DAVIDSON, RAO_KUPPER])
def test_slopes_of_the_expected_result_are_its_differences(model):
    z, step = np.array([-2.0, -0.4, 0.0, 1.5]), 1e-5
    expected, of_z, of_t = expected_slopes(model, z, T[model])
    np.testing.assert_allclose(expected, expected_result(model, z, T[model]), rtol=1e-12)
    for slope, dz, dt in ((of_z, step, 0), (of_t, 0, step)):
        above, below = (np.asarray(expected_result(model, z + s * dz, T[model] + s * dt)) for s in (1, -1))
        np.testing.assert_allclose(slope, (above - below) / (2 * step), atol=1e-9)
