"""Kernels of arrays that broadcast: values, shapes, and few compilations."""

import jax.numpy as jnp
import numpy as np
import pytest
from compilations import compilations

from jaxeval.checks import broadcast, require_share, shares
from jaxeval.execution.host import evaluate
from jaxeval.execution.shapes import ELEMENTS
from jaxeval.kernels.judge_error import Rates, adjusted_rates


def halves(x):
    return {"half": x / 2, "positive": x > 0}


def test_trees_in_double_precision():
    found = evaluate(adjusted_rates, Rates(np.array([0.8, 1.0]), 0.9, np.array([8.0, np.inf]), 18.0))
    np.testing.assert_allclose(found.q0, [(8 * 0.8 + 1) / 10, 1.0], rtol=1e-15)
    assert (found.q0.dtype, found.m0.tolist(), found.m1.tolist()) == (np.float64, [10.0, np.inf], [20.0, 20.0])


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (ELEMENTS // 2, 3)])
def test_values_are_those_of_the_arrays(shape):
    x = np.random.default_rng(0).normal(size=shape)
    found = evaluate(halves, x)
    np.testing.assert_array_equal(found["half"], x / 2)
    np.testing.assert_array_equal(found["positive"], x > 0)
    assert found["half"].shape == shape


def test_few_numbers_compile_nothing_and_many_one_program():
    before = jnp.ones(1).dtype
    with compilations() as count:
        evaluate(halves, np.ones(ELEMENTS))
    assert (count.programs, count.traced) == ([], [])
    evaluate(halves, np.ones(ELEMENTS + 1))
    with compilations() as count:
        for shape in ((ELEMENTS, 3), (2, ELEMENTS, 2), (3 * ELEMENTS - 7,)):
            evaluate(halves, np.ones(shape))
    assert (count.programs, count.traced) == ([], [])
    assert jnp.ones(1).dtype == before  # the configuration is as it was


def test_shares():
    given = shares(p=[0.2, 1.0], q=0.5)
    assert given["q"].tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match=r"q must lie in \[0, 1\]; 1 of 2 does not, the first is 1.5"):
        shares(p=0.2, q=[0.5, 1.5])
    with pytest.raises(ValueError, match=r"p must lie in \[0, 1\]; 1 of 1 does not, the first is nan"):
        require_share(broadcast(n=7, p=np.nan), "p")
