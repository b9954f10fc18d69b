from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erfcx, expit, log_expit, log_ndtr, ndtr

from jaxeval.kernels import links
from jaxeval.kernels.links import Link

pytestmark = pytest.mark.usefixtures("x64")

#: The functions of the module that take a link first.
compiled = SimpleNamespace(**{
    name: jax.jit(getattr(links, name), static_argnums=0)
    for name in ("probability", "log_probability", "slope", "bend", "log_likelihood", "score", "information")
})  # fmt: skip

# Far beyond what a board holds, in both tails.
Z = np.array([-300.0, -40.0, -20.1, -19.9, -8.0, -1.0, -1e-3, 0.0, 0.3, 2.0, 9.0, 38.0, 300.0])
MILLS = np.sqrt(2 / np.pi) / erfcx(-Z / np.sqrt(2))


@pytest.mark.parametrize(("link", "probability", "log_probability", "slope", "bend"), [
    (Link.LOGIT, expit(Z), log_expit(Z), expit(-Z), expit(Z) * expit(-Z)),
    (Link.PROBIT, ndtr(Z), log_ndtr(Z), MILLS, MILLS * (MILLS + Z)),
])  # fmt: skip
def test_probabilities_and_derivatives_in_both_tails(link, probability, log_probability, slope, bend):
    np.testing.assert_allclose(compiled.probability(link, Z), probability, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(compiled.log_probability(link, Z), log_probability, rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(compiled.slope(link, Z), slope, rtol=1e-10, atol=1e-300)
    # In the probit's lower tail it is 1, as the difference of two large numbers.
    np.testing.assert_allclose(compiled.bend(link, Z), bend, rtol=1e-5, atol=1e-12)
    assert (np.asarray(compiled.bend(link, Z)) >= 0).all()


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_the_softplus_is_exact_to_the_last_digits(kind):
    x = np.concatenate([Z, np.linspace(-30, 30, 20_001)]).astype(kind)
    rtol = 4 * np.finfo(kind).eps
    np.testing.assert_allclose(jax.jit(links.softplus)(x), -log_expit(-x.astype(float)), rtol=rtol, atol=1e-38)


@pytest.mark.parametrize("link", Link)
@pytest.mark.parametrize("target", [0.0, 0.5, 0.7, 1.0])
def test_the_score_and_the_information_are_slopes_of_the_log_likelihood(link, target):
    z, h = Z[4:11], 1e-5
    left, right = compiled.log_likelihood(link, target, z - h), compiled.log_likelihood(link, target, z + h)
    score = compiled.score(link, target, z)
    np.testing.assert_allclose(score, (right - left) / (2 * h), atol=1e-8)
    left, right = compiled.score(link, target, z - h), compiled.score(link, target, z + h)
    np.testing.assert_allclose(compiled.information(link, target, z), (left - right) / (2 * h), atol=1e-8)
    # A board looks the same from the other side.
    np.testing.assert_allclose(score, -np.asarray(compiled.score(link, 1 - target, -z)), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("kind", "rtol"), [(np.float64, 2e-15), (np.float32, 2e-6)])
def test_the_probits_slope_is_exact_however_far_out(kind, rtol):
    z = -np.concatenate([np.linspace(0, 40, 4001), [300.0, 5e3, 2e6]]).astype(kind)
    slope = np.sqrt(2 / np.pi) / erfcx(-z.astype(float) / np.sqrt(2))
    np.testing.assert_allclose(compiled.slope(Link.PROBIT, jnp.asarray(z)), slope, rtol=rtol)
    # One battle lost at z, and one won at -z.
    np.testing.assert_allclose(compiled.score(Link.PROBIT, 0.0, jnp.asarray(-z)), -slope, rtol=rtol)


def test_shares_of_exponentials_are_the_logit():
    np.testing.assert_allclose(links.share(np.exp(Z[1:10]), 1.0), expit(Z[1:10]), rtol=1e-14)
