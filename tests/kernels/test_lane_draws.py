"""Draws lanes last are those lanes first."""

from functools import partial

import jax
import numpy as np
import pytest

from jaxeval.kernels import lane_draws, resample
from jaxeval.kernels.platforms import traced_for
from jaxeval.kernels.resample import DrawScheme, Packing
from jaxeval.resampling.units import make_units

pytestmark = pytest.mark.usefixtures("x64")

NAMED = np.uint64(7), np.uint64(3), np.arange(40)


# So small a shortfall as 12 is often exceeded: then the draw is repeated in some lanes and not in others.
# Many columns are drawn block by block, up to the last one that is in use.
@pytest.mark.parametrize(("scheme", "shortfall", "dtype", "columns"), [
    (DrawScheme.MULTINOMIAL, 12, np.uint8, 30),
    (DrawScheme.MULTINOMIAL, 60, np.uint8, 3 * 1024),
    pytest.param(DrawScheme.MULTINOMIAL, 60, np.uint8, 30, marks=pytest.mark.slow),
    pytest.param(DrawScheme.POISSON, 0, np.int32, 30, marks=pytest.mark.slow),
    pytest.param(DrawScheme.POISSON, 0, np.int32, 3 * 1024, marks=pytest.mark.slow),
    (DrawScheme.BAYESIAN, 0, np.float64, 30),
])  # fmt: skip
def test_draws(scheme, shortfall, dtype, columns):
    size = np.random.default_rng(0).integers(0, 6, (4, columns)) * (np.arange(columns) < 1030)
    units = make_units(size, shortfall=shortfall)
    found = np.asarray(jax.jit(lane_draws.draw, static_argnums=(1, 2))(units, scheme, dtype, *NAMED))
    with traced_for("cuda"):
        elsewhere = jax.jit(partial(lane_draws.draw), static_argnums=(1, 2))(units, scheme, dtype, *NAMED)
    rtol = 1e-12 if scheme == DrawScheme.BAYESIAN else 0  # of logarithms, which the CPU has by polynomials
    np.testing.assert_allclose(elsewhere, found, rtol=rtol)
    assert found.dtype == dtype
    twin = jax.jit(resample.draw, static_argnums=(1, 2))(units, scheme, Packing(None), *NAMED)
    np.testing.assert_allclose(found.T.reshape(twin.shape), twin, rtol=rtol)
    if scheme == DrawScheme.MULTINOMIAL:
        assert (found.sum(0, dtype=int) == units.strata.total[0]).all()
