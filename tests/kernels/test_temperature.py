import numpy as np
import pytest

from jaxeval.kernels.batch import folds
from jaxeval.kernels.solve import Status, Terms

pytestmark = pytest.mark.usefixtures("x64")

LEVEL = np.array([0.0, 0.5, 1.0, 4.0])


def fit(n, wins, level=LEVEL, fewest=2.0):
    level = np.broadcast_to(level, np.shape(n))
    return folds.temperatures(level, np.asarray(n, float), np.asarray(wins, float), fewest, Terms(0.0, 1e-10, 100))


def test_lanes_without_a_maximum_leave_the_others_alone():
    n = np.array([[5, 8, 9, 20], [5, 8, 9, 20], [5, 0, 0, 0], [5, 8, 9, 20], [0, 1, 0, 0]])
    wins = np.array([[2, 5, 6, 18], [2, 8, 9, 20], [2, 0, 0, 0], [2, 0, 0, 0], [0, 1, 0, 0]])
    found = fit(n, wins)
    assert found.status.tolist() == [0, Status.SEPARABLE, Status.TOO_FEW, Status.SEPARABLE, Status.TOO_FEW]
    assert float(found.beta[0]) == float(fit(n[:1], wins[:1]).beta[0])
    assert found.beta[1] == np.inf
    assert found.beta[3] == -np.inf
    assert np.isnan(found.beta[2])


def test_extreme_but_not_separable_data_converge():
    found = fit([[0, 0, 1e6, 1e6]], [[0, 0, 1e6 - 1, 1e6]])
    assert int(found.status[0]) == 0
    assert 10 < float(found.beta[0]) < 20
