"""The kernels of the Plackett-Luce model against naive sums over the orders of every ranking."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import twins
from ranked import levels, simulated, table
from scipy.optimize import approx_fprime

from jaxeval import Rankings
from jaxeval.execution.precision import double_precision, on_device
from jaxeval.kernels.batch import choice_models, plackett_luce
from jaxeval.kernels.batch.refits import RefitProblem
from jaxeval.kernels.connectivity import Standing
from jaxeval.kernels.solve import Terms
from jaxeval.ratings.plackett_luce import make_choices

M, SIZE = 6, 8  # items, and with padding
LISTS = simulated(20, M, seed=2)
RANKED = [levels(ranking) for ranking in LISTS]
LANES = 3

slope, information = jax.jit(plackett_luce.slope), jax.jit(plackett_luce.information)


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
        return choices, plackett_luce.counted_choices(choices, count, SIZE), weights, np.asarray(theta)


def all_rated(above=()):
    active, is_above = np.zeros((2, SIZE, LANES), bool)
    active[:M] = True
    for item in above:
        active[item], is_above[item] = False, True
    return on_device(plackett_luce.Rated(active, is_above))


def log_likelihood(theta, weights):
    return sum(w * twins.ranking_log_likelihood(theta, ranking) for w, ranking in zip(weights, RANKED, strict=True))


class TestSlope:
    def test_gradient(self, lanes):
        choices, counts, weights, theta = lanes
        with double_precision():
            at = slope(choices, counts, all_rated(), jnp.asarray(theta), np.float64(0.3))
        grad = np.asarray(at.grad)
        for lane in range(LANES):
            own = theta[:M, lane]
            naive = approx_fprime(own, lambda t, w=weights[:, lane]: log_likelihood(t, w), 1e-7) - 0.6 * own
            np.testing.assert_allclose(grad[:M, lane], naive, atol=1e-4)
            np.testing.assert_array_equal(grad[M:, lane], 0)

    def test_information(self, lanes):
        """By products and in whole: the differences of gradients."""
        choices, counts, _, theta = lanes
        rated, ridge, step = all_rated(), np.float64(0.1), 1e-6
        with double_precision():
            at = slope(choices, counts, rated, jnp.asarray(theta), ridge)
            matrix = np.asarray(information(choices, at, ridge))
            diagonal = np.asarray(plackett_luce.diagonal(choices, at, ridge))
            for k in range(M):
                moved = theta.copy()
                moved[k] += step
                change = slope(choices, counts, rated, jnp.asarray(moved), ridge).grad - at.grad
                np.testing.assert_allclose(matrix[:, :, k], -np.asarray(change).T / step, atol=1e-4)
        np.testing.assert_allclose(diagonal, np.diagonal(matrix, axis1=1, axis2=2).T, atol=1e-12)
        np.testing.assert_allclose(matrix, matrix.transpose(0, 2, 1), atol=1e-12)

    def test_items_at_their_limits(self, lanes):
        """An infinitely strong item on top of all others, and a weak one below all, are as if they were not ranked."""
        lists = [["top", *ranking, "low"] for ranking in ([0, 1, 2], [1, [0, 2]], [2, 1, 0])]
        number = {0: 0, 1: 1, 2: 2, "top": 3, "low": 4}
        numbered = [[[number[i] for i in level] for level in levels(ranking)] for ranking in lists]
        frame = table([[level if len(level) > 1 else level[0] for level in ranking] for ranking in numbered])
        cells = Rankings.from_pandas(frame).rows.cells
        theta = np.array([0.5, -0.2, 0.1, 0.0, 0.0, 0, 0, 0])[:, None]
        active, above = np.zeros((2, 8, 1), bool)
        active[:3], above[3] = True, True
        with double_precision():
            choices, rated = on_device((make_choices(cells, 8), plackett_luce.Rated(active, above)))
            counts = plackett_luce.counted_choices(choices, jnp.ones((len(cells.count), 1)), 8)
            at = slope(choices, counts, rated, jnp.asarray(theta), np.float64(0))
        inner = [ranking[1:-1] for ranking in numbered]
        naive = approx_fprime(theta[:3, 0], lambda t: sum(twins.ranking_log_likelihood(t, r) for r in inner), 1e-7)
        np.testing.assert_allclose(at.grad[:3, 0], naive, atol=1e-5)
        np.testing.assert_array_equal(at.grad[3:], 0)


class TestSolvers:
    TERMS = Terms.of(np.float64(0.0), np.float64(1e-10), 60)

    @pytest.mark.slow
    def test_all_of_them_agree(self, lanes):
        choices, counts, weights, _ = lanes
        rated, theta = all_rated(), np.zeros((SIZE, LANES))
        with double_precision():
            of_lanes = plackett_luce.RankingModel(128).derivatives(choices, (counts, rated), self.TERMS.ridge)
            gauge = jnp.ones((1, SIZE))
            end = jax.jit(lambda start: choice_models.newton(of_lanes, start, rated.active, gauge, self.TERMS))(theta)
            matrix = np.asarray(of_lanes.information(end.theta))
            inverse = np.linalg.pinv(matrix[0], rcond=1e-10, hermitian=True)
            base = end.theta[:, 0], jnp.asarray(inverse)
            chord = jax.jit(lambda alike: choice_models.chord(of_lanes.gradient, *base, alike, self.TERMS))(
                np.ones(LANES, bool)
            )
            problem = RefitProblem(None, None, None, base[0], None, base[1], jnp.diagonal(matrix[0]))
            gradients = jax.jit(lambda moves: choice_models.newton_cg(of_lanes, problem, moves, self.TERMS))(
                rated.active
            )
        np.testing.assert_allclose(end.theta[:M, 0], twins.plackett_luce(RANKED, M, weights[:, 0]), atol=1e-6)
        for lane in range(1, LANES):  # the log-likelihood is concave
            top = np.asarray(end.theta)[:M, lane]
            slopes = approx_fprime(top, lambda t, w=weights[:, lane]: log_likelihood(t, w), 1e-5)
            np.testing.assert_allclose(slopes, 0, atol=0.01)  # of 800 rankings
        for other in (chord, gradients):
            assert not np.asarray(other.status).any()
            theta = np.asarray(other.theta)[:M]  # in a gauge of its own
            np.testing.assert_allclose(theta - theta.mean(0), end.theta[:M], atol=1e-8)

    def test_who_moves(self):
        standing = np.array([Standing.IDENTIFIED, Standing.ABOVE, Standing.BELOW, Standing.INCOMPARABLE], np.int8)
        is_item = np.array([True, True, True, False])
        standing, is_item = jnp.asarray(standing[:, None]), jnp.asarray(is_item)
        free = plackett_luce.rated_items(standing, is_item, self.TERMS.ridge)
        assert np.asarray(free.active)[:, 0].tolist() == [True, False, False, False]
        assert np.asarray(free.above)[:, 0].tolist() == [False, True, False, False]
        held = plackett_luce.rated_items(standing, is_item, np.float64(1))
        np.testing.assert_array_equal(np.asarray(held.active)[:, 0], is_item)
        assert not np.asarray(held.above).any()


class TestChoices:
    def test_a_tie_is_the_mean_of_its_orders(self):
        """Of four items above one: sets of k of them and that one, 1 / (4 over k) each."""
        cells = Rankings.from_pandas(table([[[0, 1, 2, 3], 4]])).rows.cells
        choices = make_choices(cells, 8)
        factor = np.asarray(choices.of_sets.factor)
        used = factor > 0
        assert used.sum() == 2**4 - 1
        assert factor.sum() == pytest.approx(4)
        chosen = np.zeros(8)
        np.add.at(chosen, choices.of_items.number, choices.of_items.factor)
        np.testing.assert_allclose(chosen, [1, 1, 1, 1, 0, 0, 0, 0])

    def test_edges_are_those_of_neighbours(self):
        cells = Rankings.from_pandas(table([[0, [1, 2], 3]])).rows.cells
        with double_precision():
            table_ = plackett_luce.edges(on_device(make_choices(cells, 8)), jnp.ones((128, 1)), 8)
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
            counts = plackett_luce.counted_choices(choices, jnp.ones((1, 1)), 24)
            at = slope(choices, counts, rated, jnp.asarray(theta), np.float64(0))
        grad = np.asarray(at.grad)[:20, 0]
        place = np.argsort(order)
        mass = np.exp(theta[place, 0])
        left = np.cumsum(mass[::-1])[::-1]
        naive = 1 - mass * np.cumsum(1 / left)
        np.testing.assert_allclose(grad[place], naive, atol=1e-12)
