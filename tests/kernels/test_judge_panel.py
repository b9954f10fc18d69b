"""The model of a panel of judges, lane by lane: its hand-written derivatives beside JAX's, and what moves."""

import jax
import numpy as np
import pytest
import scipy.special

from jaxeval.execution.precision import double_precision
from jaxeval.kernels.batch import choice_models
from jaxeval.kernels.batch.choice_models import LaneModel
from jaxeval.kernels.batch.judge_panel import Contests, PanelModel
from jaxeval.kernels.solve import Status, Terms

M, K, C, R = 5, 3, 40, 4
MODEL, P = PanelModel(M, K), M + 2 * K
RNG = np.random.default_rng(0)
FIRST = RNG.integers(M, size=C)
SECOND = (FIRST + RNG.integers(1, M, size=C)) % M
JUDGE = RNG.integers(K, size=C)
N = RNG.integers(5, 30, size=(C, R)).astype(float)
Z = np.array([0.7, 1.0, 1.3])[JUDGE] * np.linspace(1.5, -1.5, M)[FIRST] - np.linspace(1.5, -1.5, M)[SECOND]
POINTS = RNG.binomial(N.astype(int), scipy.special.expit(Z + np.array([0.5, 0, -0.5])[JUDGE])[:, None]).astype(float)
COUNTS = np.stack([POINTS, N - POINTS])
CONTESTS = Contests(*(x.astype(np.int32) for x in (FIRST, SECOND, JUDGE)))
START = np.concatenate([np.zeros(M), np.ones(K), np.zeros(K)])
GAUGE = np.stack([np.r_[np.ones(M), np.zeros(2 * K)], np.r_[np.zeros(M), np.ones(K), np.zeros(K)]])
MOVES = np.ones((P, R), bool)


def ridge_of(ridge):
    return np.repeat([float(ridge), 0.0], [M, 2 * K])


@jax.jit
def newton(counts, moves, ridge):
    terms = Terms.of(ridge, np.float64(1e-9), 100)
    of_lanes = MODEL.derivatives(CONTESTS, counts, terms.ridge)
    return choice_models.newton(of_lanes, START[:, None], moves, GAUGE, terms)


def solved(moves=MOVES, ridge=0.0, counts=COUNTS):
    with double_precision():
        return jax.device_get(newton(counts, moves, ridge_of(ridge)))


@pytest.mark.parametrize("name", ["gradient", "information"])
def test_derivatives_are_those_of_the_log_probabilities(name):
    def found(model, phi, ridge):
        return getattr(model.derivatives(MODEL, CONTESTS, COUNTS, ridge), name)(phi)

    program, phi = jax.jit(found, static_argnums=0), START[:, None] + RNG.normal(size=(P, R))
    with double_precision():
        for ridge in (ridge_of(0), ridge_of(2)):
            own, by_jax = (jax.device_get(program(model, phi, ridge)) for model in (PanelModel, LaneModel))
            np.testing.assert_allclose(own, by_jax, rtol=1e-11, atol=1e-9)


def test_what_does_not_move_stays():
    moves = MOVES.copy()
    moves[M + K :] = False
    moves[0, 1] = False
    used = (FIRST != 0)[:, None] & (SECOND != 0)[:, None] | moves[0]
    end = solved(moves, counts=COUNTS * used)
    assert (end.status == Status.CONVERGED).all()
    assert (end.theta[M + K :] == 0).all()
    assert end.theta[0, 1] == 0
    assert (end.theta[0, [0, 2, 3]] != 0).all()


def test_a_lane_does_not_depend_on_others():
    alike = solved(counts=COUNTS[..., [2, 2, 2, 2]])
    np.testing.assert_allclose(alike.theta, solved().theta[:, [2, 2, 2, 2]], atol=1e-9)


def test_chord_steps_end_where_newton_does_and_leave_other_lanes():
    end, twice = solved().theta[:, 0], COUNTS[..., [0, 0]]
    basis, terms = scipy.linalg.null_space(GAUGE), Terms.of(ridge_of(0), np.float64(1e-9), 100)
    near = end + basis @ np.full(basis.shape[1], 0.02)
    with double_precision():
        of_lanes = MODEL.derivatives(CONTESTS, twice, terms.ridge)
        information = np.asarray(jax.jit(of_lanes.information)(np.stack([end, end], 1)))[0]
        inverse = basis @ np.linalg.solve(basis.T @ information @ basis, basis.T)
        program = jax.jit(lambda start, alike: choice_models.chord(of_lanes.gradient, start, inverse, alike, terms))
        found = jax.device_get(program(near, np.array([True, False])))
    np.testing.assert_allclose(found.theta[:, 0], end, atol=1e-8)
    np.testing.assert_array_equal(found.theta[:, 1], near)
    assert found.status.tolist() == [Status.CONVERGED, Status.STEP_LIMIT]


def test_tables_of_pairs():
    with double_precision():
        points = np.asarray(jax.jit(MODEL.win_tables)(CONTESTS, COUNTS))
    for lane in range(R):
        expected = np.zeros((M, M))
        np.add.at(expected, (FIRST, SECOND), POINTS[:, lane])
        np.add.at(expected, (SECOND, FIRST), (N - POINTS)[:, lane])
        np.testing.assert_allclose(points[lane], expected)


def test_judges_without_verdicts_do_not_move():
    rated = np.ones((M, R), bool)
    rated[:, 1] = False
    with double_precision():
        counts, moves = jax.jit(MODEL.among)(CONTESTS, COUNTS, rated, np.ones(P, bool))
    assert not np.asarray(counts)[:, :, 1].any()
    assert not np.asarray(moves)[:, 1].any()
    assert np.asarray(moves)[:, [0, 2, 3]].all()
