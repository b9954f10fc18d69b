"""The check of the shapes in the kernels' annotations sees what is wrong."""

import jax.numpy as jnp
import numpy as np
import pytest
import shapes
from jaxtyping import TypeCheckError, jaxtyped

from jaxeval.kernels import connectivity, dense_solve
from jaxeval.kernels.links import Link
from jaxeval.kernels.pair_tables import PairTable

pytestmark = pytest.mark.usefixtures("x64")

M = 4
N = jnp.ones((M, M)) - jnp.eye(M)


def information(theta, table):
    """The kernel, checked whether or not this run checks all."""
    return jaxtyped(dense_solve.information, typechecker=shapes.checked)(Link.LOGIT, theta, table, jnp.float64(0))


def test_arrays_of_the_right_shapes_pass():
    assert information(jnp.zeros(M), PairTable(N, jnp.ones(M))).shape == (M, M)


@pytest.mark.parametrize(
    ("theta", "table", "wrong"),
    [
        (jnp.zeros(M + 1), PairTable(N, jnp.ones(M)), "table"),  # the letters of theta and the table disagree
        (jnp.zeros((M, 1)), PairTable(N, jnp.ones(M)), "table"),  # its lanes are not those of the table
        (jnp.zeros(M, int), PairTable(N, jnp.ones(M)), "theta"),
        (jnp.zeros(M), PairTable(N, jnp.ones(M - 1)), "table"),
        (jnp.zeros(M), PairTable(N, jnp.ones(M), N[0]), "table"),
        (jnp.zeros(M), (N, jnp.ones(M), None), "table"),
    ],
)
def test_others_are_refused(theta, table, wrong):
    with pytest.raises(TypeCheckError, match=f"typechecking parameter '{wrong}'"):
        information(theta, table)


def test_a_result_of_another_shape_is_refused():
    def rows(table: PairTable) -> dense_solve.Float[dense_solve.Array, "M"]:
        return table.n

    with pytest.raises(TypeCheckError, match="return value"):
        jaxtyped(rows, typechecker=shapes.checked)(PairTable(N, jnp.ones(M)))


def test_a_run_that_is_asked_to_checks_every_kernel(pytestconfig):
    if not pytestconfig.getoption("jaxtyping_packages"):
        pytest.skip("needs --jaxtyping-packages, see tests/shapes.py")
    with pytest.raises(TypeCheckError, match="typechecking parameter 'weight'"):
        connectivity.standing(np.ones((M, M)), np.ones(M + 1))
