"""Draws lanes last are those of one resample after the other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxeval.kernels import lane_draws, resample
from jaxeval.kernels.resample import Tally
from jaxeval.resampling.units import make_units

pytestmark = pytest.mark.usefixtures("x64")

SEED, STREAM, NUMBERS = np.uint64(7), np.uint64(3), np.arange(40)
TALLY = Tally(None, 2)


def units(shortfall):
    size = np.random.default_rng(0).integers(0, 6, (4, 30))
    return jax.tree.map(jnp.asarray, make_units(size, TALLY, shortfall))


# So small a shortfall is often exceeded: then the draw is repeated in some lanes and not in others.
@pytest.mark.slow
@pytest.mark.parametrize("shortfall", [12, 60])
def test_multinomial(shortfall):
    of, size = units(shortfall), 128
    found = jax.jit(lane_draws.multinomial, static_argnums=(1, 2, 6))(of, 2, size, SEED, STREAM, NUMBERS, np.uint8)
    twin = jax.vmap(lambda r: resample.multinomial(of, TALLY, size, SEED, STREAM, r))(NUMBERS)
    np.testing.assert_array_equal(found.T.reshape(twin.shape), twin)
    assert (found.sum(0, dtype=int) == of.total).all()


@pytest.mark.slow
def test_poisson_and_bayesian():
    of = units(0)
    found = lane_draws.poisson(of, SEED, STREAM, NUMBERS, np.int32)
    twin = jax.vmap(lambda r: resample.poisson(of, TALLY, SEED, STREAM, r))(NUMBERS)
    np.testing.assert_array_equal(found.T.reshape(twin.shape), twin)
    found = lane_draws.bayesian(of, SEED, STREAM, NUMBERS)
    twin = jax.vmap(lambda r: resample.bayesian(of, SEED, STREAM, r))(NUMBERS)
    np.testing.assert_allclose(found.T.reshape(twin.shape), twin, rtol=1e-12)
