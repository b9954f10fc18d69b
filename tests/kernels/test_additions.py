"""Additions that do not depend on their order, as a GPU needs them."""

import jax
import numpy as np
import pytest

from jaxeval.kernels.platforms import added, traced_for

pytestmark = pytest.mark.usefixtures("x64")

RNG = np.random.default_rng(0)
TOTAL = RNG.normal(size=(5, 3))
ROW = RNG.integers(0, 5, (2, 400)).astype(np.int32)
VALUE = RNG.normal(size=(2, 400, 3)) * 10.0 ** RNG.integers(-3, 4, (2, 400, 3))


def on(platform, total, *parts):
    with traced_for(platform):
        return np.asarray(jax.jit(lambda *given: added(*given))(total, *parts))


@pytest.mark.parametrize("platform", ["cpu", "tpu", "cuda", "rocm"])
def test_values_are_added_at_their_rows(platform):
    expected = TOTAL.copy()
    for row, value in zip(ROW, VALUE, strict=True):
        np.add.at(expected, row, value)
    found = on(platform, TOTAL, *zip(ROW, VALUE, strict=True))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.abs(VALUE).sum())


@pytest.mark.parametrize("platform", ["cuda", "rocm"])
def test_a_gpu_gives_the_same_in_any_order(platform):
    """To the bit, where sums of doubles in another order differ."""
    order = RNG.permutation(400)
    parts = list(zip(ROW, VALUE, strict=True))
    first = on(platform, TOTAL, *parts)
    np.testing.assert_array_equal(on(platform, TOTAL, *((row[order], value[order]) for row, value in parts)), first)
    np.testing.assert_array_equal(on(platform, TOTAL, *parts[::-1]), first)
    assert (on("cpu", TOTAL, *((row[order], value[order]) for row, value in parts)) != on("cpu", TOTAL, *parts)).any()


def test_lanes_do_not_see_each_other():
    """Neither in their last digits nor by values that are none."""
    parts = list(zip(ROW, VALUE, strict=True))
    other = VALUE.copy()
    other[0, 7, 1], other[1, 3, 2] = np.nan, np.inf
    alone, beside = on("cuda", TOTAL, *parts), on("cuda", TOTAL, *zip(ROW, other, strict=True))
    np.testing.assert_array_equal(alone[:, 0], beside[:, 0])
    assert not np.isfinite(beside[:, 1:]).any()
    np.testing.assert_array_equal(on("cuda", TOTAL, (ROW[0], 0 * VALUE[0])), TOTAL)
