"""A board refitted with changed votes, against one problem at a time in NumPy."""

import jax
import numpy as np
import pytest
import twins

from jaxeval.kernels.batch.changed_boards import Change, FullBoard, refit
from jaxeval.kernels.solve import Status, Terms


def fitted(wins):
    """Log-strengths, and their inverse information."""
    theta = twins.newton(wins)
    return theta, np.linalg.pinv(twins.information(theta, wins), hermitian=True)


compiled = jax.jit(refit, static_argnums=3)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("by_newton", "refit"),
    [(False, refit), (True, refit), (True, compiled), pytest.param(False, compiled, marks=pytest.mark.slow)],
    ids=["host", "host-newton", "compiled-newton", "compiled"],
)
def test_a_changed_board_is_that_of_the_changed_votes(by_newton, refit):
    rng = np.random.default_rng(0)
    wins = np.triu(rng.integers(20, 60, (8, 8)).astype(float), 1)
    wins = wins + np.triu(rng.integers(20, 60, (8, 8)), 1).T
    theta, inverse = fitted(wins)
    board = FullBoard(wins + wins.T, wins.sum(1), inverse)
    first, second, weight, points = np.zeros((4, 8))  # a pair twice, and padding
    first[:3], second[:3], weight[:3], points[:3] = [0, 3, 0], [1, 2, 1], [-3, 4, -2], [-3, 4, 0]
    first, second = first.astype(np.int32), second.astype(np.int32)
    other = wins.copy()
    np.add.at(other, (first, second), points)
    np.add.at(other, (second, first), weight - points)
    change = Change(first, second, weight, points, theta, np.int32(0), np.int32(1))
    none = change._replace(weight=0 * weight, points=0 * points)
    changes = Change(*map(np.stack, zip(none, change, strict=True)))
    found = jax.device_get(refit(board, changes, Terms.of(0.0, 1e-10, 60), by_newton, np.array([1, 0])))
    for lane, tables in enumerate((other, wins)):
        expected, own_inverse = fitted(tables)
        assert found.status[lane] == Status.CONVERGED
        np.testing.assert_allclose(found.theta[lane], expected - expected.mean(), atol=1e-8)
        pull, tolerance = own_inverse[0] - own_inverse[1], 2e-3 * np.abs(own_inverse).max()
        np.testing.assert_allclose(found.pull[lane], pull, atol=tolerance)


@pytest.mark.usefixtures("x64")
def test_a_model_without_votes_is_not_compared():
    wins = np.full((8, 8), 10.0) - 10 * np.eye(8)
    _, inverse = fitted(wins)
    board = FullBoard(wins + wins.T, wins.sum(1), inverse)
    nobody = np.zeros(8, np.int32), np.arange(8, dtype=np.int32), -20.0 * (np.arange(8) > 0), -10.0 * (np.arange(8) > 0)
    of_lanes = (np.stack([x, x]) for x in (*nobody, np.zeros(8)))
    change = Change(*of_lanes, np.array([0, 2], np.int32), np.array([1, 1], np.int32))
    found = compiled(board, change, Terms.of(0.0, 1e-9, 60), True, np.arange(2))
    assert found.status.tolist() == [Status.TOO_FEW, Status.CONVERGED]
