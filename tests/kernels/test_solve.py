import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxeval.kernels import solve
from jaxeval.kernels.batch import choice_models
from jaxeval.kernels.platforms import traced_for
from jaxeval.kernels.solve import Status

pytestmark = pytest.mark.usefixtures("x64")

regular_of, pseudo_inverse = (jax.jit(f, static_argnums=2) for f in (solve.regular, solve.pseudo_inverse))


@pytest.mark.parametrize("sign", [1, -1])
def test_iterate_stops_when_the_error_left_is_under_the_tolerance(sign):
    """On a linear iteration of known rate: neither early nor late."""
    rates = sign * np.array([0.0, 0.1, 0.5, 0.9, 0.98])
    limit, tolerance = 3.0, 1e-6

    @jax.jit
    @jax.vmap
    def run(rate):
        return solve.iterate(
            lambda x: ((1 - rate) * (limit - x), limit - x), jnp.zeros(1), solve.Terms.of(0.0, tolerance, 2000)
        )

    result = jax.device_get(run(rates))
    error = np.abs(result.theta[:, 0] - limit)
    assert np.all(result.status == Status.CONVERGED)
    assert np.all(error <= tolerance * (1 + 1e-6))
    needed = np.array([0, *np.ceil(np.log(tolerance / limit) / np.log(np.abs(rates[1:])))])
    # Two steps are the fewest that show a rate; an alternating iteration is closer than its steps suggest.
    late = result.n_steps - np.maximum(needed, 2)
    r = np.maximum(np.abs(rates), 1e-300)
    allowed = 1 if sign > 0 else 1 + np.log((1 + r) / (1 - r)) / -np.log(r)
    assert np.all((late >= 0) & (late <= allowed))


def test_an_iteration_of_order_two_stops_at_the_first_step_that_is_enough():
    """Newton's method for square roots, whose error after every step is known: e' = e^2 / 2x."""
    target, tolerance = np.array([1.0, 2.0, 1e-6, 1e6]), 1e-9
    terms = solve.Terms.of(0.0, tolerance, 100)
    run = jax.jit(lambda x: solve.iterate(lambda x: ((target / x - x) / 2, x**2 - target), x, terms, order=2))
    found = jax.device_get(run(np.full((1, 4), 3.0)))
    x, n_steps = np.full(4, 3.0), np.zeros(4, int)
    while np.any(runs := np.abs(x - np.sqrt(target)) > tolerance):
        x, n_steps = np.where(runs, (x + target / x) / 2, x), n_steps + runs
    assert np.all(found.status == Status.CONVERGED)
    assert np.abs(found.theta[0] - np.sqrt(target)).max() < tolerance
    np.testing.assert_array_less(found.n_steps - n_steps, 2)


def test_a_lane_at_rest_stays_and_what_the_step_predicts_counts():
    """Lanes are the last axis; the second one gives up."""
    gives_up = np.array([False, True])

    def step(theta, running, n_calls):
        remaining = jnp.where(gives_up & (n_calls == 3), jnp.nan, jnp.abs(theta[0]) / 2)
        return solve.SolveStep(-theta / 2, theta, n_calls + running, remaining)

    found, n_calls = jax.jit(
        lambda start: solve.loop(step, start, jnp.zeros(2, jnp.int32), solve.Terms.of(0.0, 2.0**-10, 100))
    )(np.ones((1, 2)))
    np.testing.assert_array_equal(found.status, [Status.CONVERGED, Status.STEP_LIMIT])
    np.testing.assert_array_equal(found.n_steps, [10, 4])
    np.testing.assert_array_equal(n_calls, found.n_steps)
    np.testing.assert_array_equal(found.theta, [[2.0**-10, 2.0**-4]])


def test_a_step_is_shortened_and_centred_lane_by_lane():
    change = np.array([[1.0, 4.0], [-0.5, -8.0], [0.0, 1.0]])
    np.testing.assert_allclose(jax.jit(solve.capped)(change), change * [1, 0.25], rtol=1e-15)
    among = np.array([[True, True], [True, False], [False, True]])
    np.testing.assert_allclose(jax.jit(solve.centred)(change, among), [[0.75, 1.5], [-0.75, 0], [0, -1.5]], rtol=1e-15)


@pytest.fixture(scope="module")
def information():
    """(2, 6, 6) positive semidefinite matrices blind to a shift of the first four parameters, those that move, a ridge.

    The last parameter and one of the four stay.
    """
    rng = np.random.default_rng(0)
    slopes = rng.normal(size=(2, 30, 6))
    slopes[:, :, 3], slopes[:, :, 5] = 0, 0
    slopes[:, :, :3] -= slopes[:, :, :3].mean(2, keepdims=True)
    return slopes.swapaxes(1, 2) @ slopes, np.array([True, True, True, False, True, False])


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_pseudo_inverse_leaves_the_shift_and_what_stays_alone(information, ridge):
    matrices, moves = information
    matrices = matrices + 2 * ridge * np.diag([1.0, 1, 1, 1, 0, 0])
    regular, mean = jax.device_get(regular_of(matrices, np.broadcast_to(moves, (2, 6)), 4, ridge))
    shift = np.array([1.0, 1, 1, 0, 0, 0]) / np.sqrt(3)
    for matrix, own, level in zip(matrices, regular, mean, strict=True):
        assert level == pytest.approx(np.diag(matrix)[:3].mean())
        assert shift @ own @ shift == pytest.approx(level)
        assert np.linalg.cond(own) < 1e3
        inside = matrix * np.outer(moves, moves) - 2 * ridge * np.outer(shift, shift)
        expected = np.linalg.pinv(inside, rcond=1e-10, hermitian=True)
        np.testing.assert_allclose(pseudo_inverse(matrix, moves, 4, ridge), expected, atol=1e-12)


def test_conjugate_gradients_solve_every_lane_that_runs(information):
    matrices = (information[0] + np.eye(6)).transpose(1, 2, 0)
    right = jax.device_put(np.random.default_rng(1).normal(size=(6, 2)))
    diagonal = np.diagonal(matrices).T

    @jax.jit
    def solved(running):
        return solve.conjugate_gradients(
            lambda p: jnp.einsum("ijl,jl->il", matrices, p), lambda r: r / diagonal, diagonal, right,
            lambda start, _: 1e-24 * start, 50, running=running,
        )  # fmt: skip

    found = jax.device_get(solved(np.array([True, True])))
    expected = np.linalg.solve(np.moveaxis(matrices, 2, 0), np.asarray(right).T[..., None])[..., 0].T
    np.testing.assert_allclose(found.solution, expected, rtol=1e-9)
    assert found.is_solved.all()
    eigenvalues = np.linalg.eigvalsh(np.moveaxis(matrices / np.sqrt(diagonal[:, None] * diagonal), 2, 0))
    assert (found.least >= eigenvalues[:, 0] * (1 - 1e-9)).all()
    alone = jax.device_get(solved(np.array([False, True])))
    np.testing.assert_array_equal(alone.solution[:, 1], found.solution[:, 1])
    assert not alone.solution[:, 0].any()
    assert not alone.is_solved[0]


@pytest.mark.parametrize("platform", ["cpu", "tpu"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_positive_definite_systems_are_solved(platform, dtype):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 30, 30))
    matrix, right = root @ root.swapaxes(1, 2) + np.eye(30), rng.normal(size=(4, 30))
    with traced_for(platform):
        found = jax.jit(lambda *given: solve.solved(*given))(matrix.astype(dtype), right.astype(dtype))
    assert found.dtype == dtype
    tolerance = 2e4 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right[..., None])[..., 0], atol=tolerance)


@pytest.mark.parametrize("platform", ["cpu", "tpu"])
def test_determinants_of_what_is_solved(platform):
    """Those of matrices that are not positive definite have no log."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 6, 6))
    matrix = root @ root.swapaxes(1, 2) - np.array([0.0, 0.0, 9.0, 0.0])[:, None, None] * np.eye(6)
    with traced_for(platform):
        solved = jax.jit(lambda *given: solve.solved_and_log_det(*given))
        found, log_det = map(np.asarray, solved(matrix, np.tile(np.eye(6), (4, 1, 1))))
    definite = np.linalg.eigvalsh(matrix)[:, 0] > 0
    assert definite.tolist() == [True, True, False, True]
    np.testing.assert_array_equal(np.isfinite(log_det), definite)
    np.testing.assert_allclose(log_det[definite], np.linalg.slogdet(matrix[definite])[1], atol=1e-10)
    np.testing.assert_allclose(found[definite], np.linalg.inv(matrix[definite]), rtol=1e-8, atol=1e-8)


def test_the_regular_information_keeps_its_precision():
    """Else the loop of a fit in single precision would turn to double, and fail."""
    moves, ridge = np.array([True, True, False]), np.float32(0.1)
    matrix, _ = jax.eval_shape(lambda *given: solve.regular(*given, 3, ridge), np.eye(3, dtype=np.float32), moves)
    assert matrix.dtype == np.float32


@pytest.mark.parametrize(
    "function",
    [
        solve.solved,
        lambda matrix, right: choice_models.determined(matrix, right[0] > 0, right[:1], 1e-9),
        lambda matrix, right: jax.vmap(lambda x: solve.pseudo_inverse(x, right[0] > 0, 3, 0.1))(matrix),
    ],
    ids=["solved", "determined", "pseudo_inverse"],
)
def test_a_cpu_factors_one_matrix_at_a_time(function):
    """A stack of them is done by the threads that wait for it: with several devices all may wait, for ever."""
    matrix = np.tile(np.eye(5), (7, 1, 1))
    with traced_for("cpu"):
        text = jax.jit(lambda *given: function(*given)).lower(matrix, np.ones((7, 5))).as_text()
    calls = [line for line in text.splitlines() if "@lapack_" in line]
    assert calls
    assert not [line for line in calls if re.search(r"tensor<\d+x\d+x\d+x", line)]


def test_a_short_process_solves_without_scipy(monkeypatch):
    """To rounding the same; of a stack each matrix by itself, and NaN for one that is not positive definite."""
    root = np.random.default_rng(0).normal(size=(3, 6, 6))
    matrix = root @ root.swapaxes(1, 2) + np.eye(6)
    matrix[1] *= -1
    both = []
    for short in (True, False):
        monkeypatch.setattr(solve, "spares_jax", lambda short=short: short)
        both.append(solve.solved_and_log_det(matrix, root))
    for of_numpy, of_scipy in zip(*both, strict=True):
        np.testing.assert_allclose(of_numpy, of_scipy, rtol=1e-12)
        assert np.isnan(of_numpy[1]).all()
        assert np.isfinite(of_numpy[[0, 2]]).all()
