"""The kernels of the Plackett-Luce model against naive sums over the orders of every ranking."""

import jax
import numpy as np
import pytest
from ranked import simulated, table

from jaxeval import Rankings
from jaxeval.execution.precision import double_precision, on_device
from jaxeval.kernels.batch import plackett_luce
from jaxeval.kernels.connectivity import Standing
from jaxeval.kernels.solve import Terms
from jaxeval.ratings.plackett_luce import make_choices

M, SIZE = 6, 8  # items, and with padding
LISTS = simulated(20, M, seed=2)

LANES = 3

slope, information, diagonal_of = map(jax.jit, (plackett_luce.slope, plackett_luce.information, plackett_luce.diagonal))
counted_choices, edges = (jax.jit(f, static_argnums=2) for f in (plackett_luce.counted_choices, plackett_luce.edges))
rated_items = jax.jit(plackett_luce.rated_items)


@pytest.fixture(scope="module")
def cells():
    return Rankings.from_pandas(table(LISTS)).rows.cells


@pytest.fixture(scope="module")
def lanes(cells):
    """Choices, counts of three resamples of the rankings, those resamples, and strengths."""
    rng = np.random.default_rng(5)
    weights = rng.poisson(40.0, (len(LISTS), LANES))
    count = np.zeros((128, LANES))
    _, cell = Rankings.from_pandas(table(LISTS)).rows.compress(slice(None))
    np.add.at(count, cell, weights)
    theta = np.zeros((SIZE, LANES))
    theta[:M] = rng.normal(size=(M, LANES))
    with double_precision():
        choices, count, theta = on_device((make_choices(cells, SIZE), count, theta))
        return choices, counted_choices(choices, count, SIZE), weights, np.asarray(theta)


def all_rated(above=()):
    active, is_above = np.zeros((2, SIZE, LANES), bool)
    active[:M] = True
    for item in above:
        active[item], is_above[item] = False, True
    return on_device(plackett_luce.Rated(active, is_above))


class TestSlope:
    def test_information(self, lanes):
        """By products and in whole: the differences of gradients."""
        choices, counts, _, theta = lanes
        rated, ridge, step = all_rated(), np.float64(0.1), 1e-6
        with double_precision():
            at = slope(choices, counts, rated, theta, ridge)
            matrix = np.asarray(information(choices, at, ridge))
            diagonal = np.asarray(diagonal_of(choices, at, ridge))
            for k in range(M):
                moved = theta.copy()
                moved[k] += step
                change = np.asarray(slope(choices, counts, rated, moved, ridge).grad) - at.grad
                np.testing.assert_allclose(matrix[:, :, k], -change.T / step, atol=1e-4)
        np.testing.assert_allclose(diagonal, np.diagonal(matrix, axis1=1, axis2=2).T, atol=1e-12)
        np.testing.assert_allclose(matrix, matrix.transpose(0, 2, 1), atol=1e-12)


class TestSolvers:
    TERMS = Terms.of(np.float64(0.0), np.float64(1e-10), 60)

    def test_who_moves(self):
        standing = np.array([Standing.IDENTIFIED, Standing.ABOVE, Standing.BELOW, Standing.INCOMPARABLE], np.int8)
        is_item = np.array([True, True, True, False])
        standing = standing[:, None]
        free = rated_items(standing, is_item, self.TERMS.ridge)
        assert np.asarray(free.active)[:, 0].tolist() == [True, False, False, False]
        assert np.asarray(free.above)[:, 0].tolist() == [False, True, False, False]
        held = rated_items(standing, is_item, np.float64(1))
        np.testing.assert_array_equal(np.asarray(held.active)[:, 0], is_item)
        assert not np.asarray(held.above).any()


class TestChoices:
    def test_edges_are_those_of_neighbours(self):
        cells = Rankings.from_pandas(table([[0, [1, 2], 3]])).rows.cells
        with double_precision():
            table_ = edges(on_device(make_choices(cells, 8)), np.ones((128, 1)), 8)
        assert np.argwhere(np.asarray(table_)[0]).tolist() == [[0, 1], [1, 2], [2, 1], [2, 3]]

    def test_long_rankings(self):
        """Sets of more places than are unrolled."""
        ranking = list(range(20))
        cells = Rankings.from_pandas(table([ranking])).rows.cells
        order = [int(name[1:]) for name in sorted(f"m{k}" for k in range(20))]  # as items are sorted
        theta = np.zeros((24, 1))
        theta[:20, 0] = np.random.default_rng(3).normal(size=20)
        active = np.arange(24)[:, None] < 20
        with double_precision():
            choices, rated = on_device((make_choices(cells, 24), plackett_luce.Rated(active, ~active & False)))
            counts = counted_choices(choices, np.ones((1, 1)), 24)
            at = slope(choices, counts, rated, theta, np.float64(0))
        grad = np.asarray(at.grad)[:20, 0]
        place = np.argsort(order)
        mass = np.exp(theta[place, 0])
        left = np.cumsum(mass[::-1])[::-1]
        naive = 1 - mass * np.cumsum(1 / left)
        np.testing.assert_allclose(grad[place], naive, atol=1e-12)
