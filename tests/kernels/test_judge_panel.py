"""Panels of judges, lane by lane: against sums over contests in NumPy."""

import jax
import numpy as np
import pytest
import scipy.special

from jaxeval.execution.precision import double_precision
from jaxeval.kernels.batch import judge_panel
from jaxeval.kernels.batch.judge_panel import Contests, ContestVerdicts, Sizes
from jaxeval.kernels.solve import Status, Terms

M, K, C, R = 5, 3, 40, 4
SIZES, P = Sizes(M, K), M + 2 * K
RNG = np.random.default_rng(0)
FIRST = RNG.integers(M, size=C)
SECOND = (FIRST + RNG.integers(1, M, size=C)) % M
JUDGE = RNG.integers(K, size=C)
N = RNG.integers(5, 30, size=(C, R)).astype(float)
Z = np.array([0.7, 1.0, 1.3])[JUDGE] * np.linspace(1.5, -1.5, M)[FIRST] - np.linspace(1.5, -1.5, M)[SECOND]
POINTS = RNG.binomial(N.astype(int), scipy.special.expit(Z + np.array([0.5, 0, -0.5])[JUDGE])[:, None]).astype(float)
CONTESTS = Contests(*(x.astype(np.int32) for x in (FIRST, SECOND, JUDGE)))
START = np.concatenate([np.zeros(M), np.ones(K), np.zeros(K)])
MOVES = np.ones((P, R), bool)


def loss(phi, lane, ridge):
    theta, g, b = np.split(phi, [M, M + K])
    z = g[JUDGE] * (theta[FIRST] - theta[SECOND]) + b[JUDGE]
    p = scipy.special.expit(z)
    residual = N[:, lane] * p - POINTS[:, lane]
    slope = np.zeros(P)
    np.add.at(slope, FIRST, g[JUDGE] * residual)
    np.add.at(slope, SECOND, -g[JUDGE] * residual)
    np.add.at(slope, M + JUDGE, (theta[FIRST] - theta[SECOND]) * residual)
    np.add.at(slope, M + K + JUDGE, residual)
    slope[:M] += 2 * ridge * theta
    return N[:, lane] @ np.logaddexp(0, z) - POINTS[:, lane] @ z + ridge * theta @ theta, slope


def solved(moves=MOVES, ridge=0.0, max_steps=100, verdicts=(N, POINTS)):
    terms = Terms.of(np.float64(ridge), np.float64(1e-9), max_steps)
    with double_precision():
        program = jax.jit(judge_panel.newton, static_argnames="sizes")
        end = program(CONTESTS, ContestVerdicts(*verdicts), START[:, None], np.ones(K), moves, sizes=SIZES, terms=terms)
        return jax.device_get(end)


@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_the_gradient_within_the_gauge_is_zero(ridge):
    end = solved(ridge=ridge)
    assert (end.status == Status.CONVERGED).all()
    for lane, phi in enumerate(end.theta.T):
        _, slope = loss(phi, lane, ridge)
        slope[:M] -= slope[:M].mean()
        slope[M : M + K] -= slope[M : M + K].mean()
        np.testing.assert_allclose(slope, 0, atol=1e-6)
    np.testing.assert_allclose(end.theta[:M].sum(0), 0, atol=1e-9)
    np.testing.assert_allclose(end.theta[M : M + K].sum(0), K)


def test_what_does_not_move_stays():
    moves = MOVES.copy()
    moves[M + K :] = False
    moves[0, 1] = False
    used = (FIRST != 0)[:, None] & (SECOND != 0)[:, None] | moves[0]
    end = solved(moves, verdicts=(N * used, POINTS * used))
    assert (end.status == Status.CONVERGED).all()
    assert (end.theta[M + K :] == 0).all()
    assert end.theta[0, 1] == 0
    assert (end.theta[0, [0, 2, 3]] != 0).all()


def test_a_lane_does_not_depend_on_others():
    lane = solved(MOVES[:, :1], verdicts=(N[:, 2:3], POINTS[:, 2:3]))
    np.testing.assert_allclose(lane.theta[:, 0], solved().theta[:, 2], atol=1e-9)


def test_chord_steps_end_where_newton_does():
    end = solved()
    inverse = np.zeros((P, P))
    basis = scipy.linalg.null_space(
        np.stack([np.r_[np.ones(M), np.zeros(2 * K)], np.r_[np.zeros(M), np.ones(K), np.zeros(K)]])
    )
    steps = [
        (loss(end.theta[:, 0] + 1e-5 * e, 0, 0)[1] - loss(end.theta[:, 0] - 1e-5 * e, 0, 0)[1]) / 2e-5
        for e in np.eye(P)
    ]
    inverse = basis @ np.linalg.solve(basis.T @ np.array(steps) @ basis, basis.T)
    terms = Terms.of(np.float64(0.0), np.float64(1e-9), 100)
    with double_precision():
        verdicts = ContestVerdicts(N[:, :1], POINTS[:, :1])
        near = end.theta[:, 0] + basis @ np.full(basis.shape[1], 0.02)
        found = jax.jit(judge_panel.chord, static_argnames="sizes")(
            CONTESTS, verdicts, near, inverse, sizes=SIZES, terms=terms
        )
    np.testing.assert_allclose(np.asarray(found.theta)[:, 0], end.theta[:, 0], atol=1e-8)


def test_tables_of_pairs():
    with double_precision():
        points = np.asarray(judge_panel.win_tables(CONTESTS, ContestVerdicts(N, POINTS), SIZES))
    for lane in range(R):
        expected = np.zeros((M, M))
        np.add.at(expected, (FIRST, SECOND), POINTS[:, lane])
        np.add.at(expected, (SECOND, FIRST), (N - POINTS)[:, lane])
        np.testing.assert_allclose(points[lane], expected)


def test_judges_without_verdicts_do_not_move():
    rated = np.ones((M, R), bool)
    rated[:, 1] = False
    with double_precision():
        verdicts, moves = judge_panel.among(CONTESTS, ContestVerdicts(N, POINTS), rated, np.ones(P, bool), SIZES)
    assert not np.asarray(verdicts.n)[:, 1].any()
    assert not np.asarray(moves)[:, 1].any()
    assert np.asarray(moves)[:, [0, 2, 3]].all()
