from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import twins
from jax import lax

from jaxeval.kernels import dense_solve, pair_tables
from jaxeval.kernels.links import Link
from jaxeval.kernels.pair_tables import PairTable
from jaxeval.kernels.solve import Solution, Status, Terms

pytestmark = pytest.mark.usefixtures("x64")

M = 12
RIDGES = (0.0, 0.01, 1.0)
TOLERANCE = 1e-10


# Boards of (M, M) wins, named by what makes them hard.


def played(rng, theta, n):
    """Wins when pairs battle ``n`` (upper triangle) times, a fifth of the battles ties."""
    n = np.triu(n, 1)
    p = 1 / (1 + np.exp(theta[None] - theta[:, None]))
    ties = rng.binomial(n, 0.2)
    won = rng.binomial(n - ties, p)
    return won + ties / 2 + (n - ties - won).T + ties.T / 2


def dense(rng):
    return played(rng, rng.normal(0, 1, M), rng.poisson(30, (M, M)))


def spread_out(rng):
    return played(rng, rng.normal(0, 3, M), rng.poisson(200, (M, M)))


def soft(rng):
    wins = rng.gamma(0.5, 4.0, (M, M))
    np.fill_diagonal(wins, 0)
    return wins


def few_battles(rng):
    """Models of 1 to 5 battles, with a tie or a win and a loss at least, next to well-known ones."""
    wins = dense(rng)
    wins[-4:], wins[:, -4:] = 0, 0
    for newcomer, results in zip(range(8, 12), ([0.5], [1, 0], [1, 1, 0], [1, 0, 0.5, 0, 0]), strict=True):
        for result in results:
            known = rng.integers(8)
            wins[newcomer, known] += result
            wins[known, newcomer] += 1 - result
    return wins


def two_clusters(rng):
    wins = dense(rng)
    wins[:6, 6:], wins[6:, :6] = 0, 0
    wins[0, 6], wins[7, 1] = 1, 1
    wins[2, 8] = wins[8, 2] = 0.5
    return wins


def chain(rng):
    n = np.diag(rng.integers(6, 12, M - 1), 1)
    return played(rng, np.zeros(M), n) + np.diag(np.full(M - 1, 0.5), 1) + np.diag(np.full(M - 1, 0.5), -1)


def scattered(rng):
    """Few pairs met, and some models are out of reach: no maximum without a ridge."""
    return played(rng, rng.normal(0, 1.5, M), rng.poisson(rng.gamma(0.5, 1.0, (M, M))))


KINDS = (dense, spread_out, soft, few_battles, two_clusters, chain)
SPARSE = (few_battles, two_clusters, chain)


def resampled(rng, wins):
    """``wins`` reweighted as a bootstrap does: whole points by Poisson."""
    return rng.poisson(np.ceil(wins)) * (wins / np.where(wins > 0, np.ceil(wins), 1))


def comparable(rng, wins):
    """A resample in which all models compare."""
    for _ in range(1000):
        again = resampled(rng, wins)
        if np.all(twins.closure(again > 0)):
            return again
    raise AssertionError("no resample of the board is connected")


class Lanes(NamedTuple):
    """Full data with their optimum by the naive twin, and a resample with its own."""

    kind: list
    full: np.ndarray
    again: np.ndarray
    ridge: np.ndarray
    start: np.ndarray
    optimum: np.ndarray


def make_lanes(problems):
    rows = [
        (kind, full, again, ridge, twins.newton(full, ridge), twins.newton(again, ridge))
        for kind, full, again, ridge in problems
    ]
    kinds, *arrays = zip(*rows, strict=True)
    return Lanes(list(kinds), *map(np.array, arrays))


@pytest.fixture(scope="module")
def lanes():
    """Two boards of every kind, each with every ridge."""
    rng = np.random.default_rng(7)
    boards = [(kind, kind(rng)) for kind in KINDS for _ in range(2)]
    return make_lanes(
        [(kind, full, again, ridge) for kind, full in boards for again in [comparable(rng, full)] for ridge in RIDGES]
    )


# The kernels over lanes, compiled once: number of steps and tolerance are traced.


def table(wins):
    return PairTable(wins + wins.T, jnp.sum(wins, 1))


@jax.jit
@partial(jax.vmap, in_axes=(0, 0, 0, None, None))
def newton(wins, active, ridge, tolerance, max_steps):
    return dense_solve.newton(Link.LOGIT, table(wins), active, Terms(ridge, tolerance, max_steps))


@jax.jit
@partial(jax.vmap, in_axes=(0, 0, 0, 0))
def inverse_information(theta, wins, ridge, active):
    return dense_solve.inverse_information(Link.LOGIT, theta, table(wins), ridge, active)


@jax.jit
@partial(jax.vmap, in_axes=(0, 0, 0, 0, None, None))
def chord(wins, start, inverse, ridge, tolerance, max_steps):
    gradient = partial(pair_tables.gradient, Link.LOGIT, ridge=ridge)
    return dense_solve.chord(gradient, table(wins), start, inverse, Terms(ridge, tolerance, max_steps))


@jax.jit
@partial(jax.vmap, in_axes=(0, 0, 0, 0, 0, None, None))
def newton_cg(wins, start, inverse, diagonal, ridge, tolerance, max_steps):
    return dense_solve.newton_cg(Link.LOGIT, table(wins), start, inverse, diagonal, Terms(ridge, tolerance, max_steps))


@jax.jit
@jax.vmap
def lbfgs(wins, ridge):
    """An independent optimiser, given the value of the likelihood only."""
    optimiser = optax.lbfgs()

    def loss(theta):
        return -pair_tables.log_likelihood(Link.LOGIT, theta, wins, ridge)

    value_and_grad = optax.value_and_grad_from_state(loss)

    def advance(carry):
        theta, state, k = carry
        value, grad = value_and_grad(theta, state=state)
        updates, state = optimiser.update(grad, state, theta, value=value, grad=grad, value_fn=loss)
        return optax.apply_updates(theta, updates), state, k + 1

    def more(carry):
        _, state, k = carry
        return (k == 0) | ((k < 300) & (optax.tree.norm(optax.tree.get(state, "grad")) > 1e-9))

    theta = jnp.zeros(wins.shape[0])
    return lax.while_loop(more, advance, (theta, optimiser.init(theta), 0))[0]


def everyone(lanes):
    return np.ones(lanes.start.shape, bool)


def by_newton(lanes, tolerance=TOLERANCE, max_steps=100):
    return jax.device_get(newton(lanes.again, everyone(lanes), lanes.ridge, tolerance, max_steps))


def by_newton_on_host(lanes):
    problems = [(PairTable(wins + wins.T, wins.sum(1)), np.ones(M, bool)) for wins in lanes.again]
    terms = [Terms(ridge, TOLERANCE, 100) for ridge in lanes.ridge]
    ends = [dense_solve.newton_on_host(Link.LOGIT, *problem, t) for problem, t in zip(problems, terms, strict=True)]
    return Solution(*map(np.stack, zip(*ends, strict=True)))


def by_newton_cg(lanes, tolerance=TOLERANCE, max_steps=100):
    inverse, diagonal = inverse_information(lanes.start, lanes.full, lanes.ridge, everyone(lanes))
    return jax.device_get(newton_cg(lanes.again, lanes.start, inverse, diagonal, lanes.ridge, tolerance, max_steps))


def by_chord(lanes, tolerance=TOLERANCE, max_steps=100):
    inverse, _ = inverse_information(lanes.start, lanes.full, lanes.ridge, everyone(lanes))
    return jax.device_get(chord(lanes.again, lanes.start, inverse, lanes.ridge, tolerance, max_steps))


def assert_at(theta, optimum, atol):
    """Equal up to the gauge."""
    theta = np.asarray(theta)
    np.testing.assert_allclose(theta - theta.mean(-1, keepdims=True), optimum, rtol=0, atol=atol)


@pytest.mark.slow
def test_twin_and_lbfgs_agree(lanes):
    assert_at(lbfgs(lanes.again, lanes.ridge), lanes.optimum, 1e-7)


@pytest.mark.parametrize("solver", [by_newton, by_newton_on_host, by_newton_cg])
def test_newton_and_newton_cg_find_the_optimum_of_every_board(lanes, solver):
    result = solver(lanes)
    assert np.all(result.status == Status.CONVERGED)
    assert_at(result.theta, lanes.optimum, 1e-9)
    assert np.asarray(result.n_steps).max() <= 30


def test_steps_are_capped_where_full_steps_diverge(lanes):
    """Newton's full steps overshoot from zero on a board of lopsided, circular results, and from afar on any."""
    circular = np.zeros_like(lanes.again)
    circular[0, :6, :6] = [
        [0, 0, 0, 0, 1857, 0],
        [52, 0, 0, 2251, 0, 28],
        [5, 3, 0, 0, 0, 26],
        [1, 0, 0, 0, 0, 17],
        [0, 0, 8267, 2, 0, 0],
        [4, 0, 0, 6569, 0, 0],
    ]
    result = jax.device_get(
        newton(circular, everyone(lanes) & (np.arange(M) < 6), np.zeros(len(circular)), TOLERANCE, 100)
    )
    assert result.status[0] == Status.CONVERGED
    assert_at(result.theta[0, :6], twins.newton(circular[0, :6, :6]), 1e-9)

    far = lanes.start + 6 * np.random.default_rng(0).normal(size=lanes.start.shape)
    inverse, diagonal = inverse_information(lanes.start, lanes.full, lanes.ridge, everyone(lanes))
    result = newton_cg(lanes.again, far, inverse, diagonal, lanes.ridge, TOLERANCE, 100)
    assert np.all(result.status == Status.CONVERGED)
    assert_at(result.theta, lanes.optimum, 1e-9)


@pytest.mark.parametrize(
    "ridge", [1e-5, *(pytest.param(ridge, marks=pytest.mark.slow) for ridge in (1e-4, 1e-3)), 0.01]
)
def test_resamples_that_only_the_ridge_holds_together(ridge):
    """Conjugate gradients may need more steps than they have: the status must say so, not the ratings."""
    rng = np.random.default_rng(11)
    boards = [(kind, kind(rng)) for kind in (few_battles, chain, scattered) for _ in range(12)]
    lanes = make_lanes([(kind, full, resampled(rng, full), ridge) for kind, full in boards])
    assert not all(twins.closure(again > 0).all() for again in lanes.again)
    dense, cg = by_newton(lanes, tolerance=1e-9), by_newton_cg(lanes, tolerance=1e-8)
    assert np.all(dense.status == Status.CONVERGED)
    assert_at(dense.theta, lanes.optimum, 1e-9)
    converged = np.asarray(cg.status) == Status.CONVERGED
    assert np.all(converged) or ridge < 0.01
    assert_at(np.asarray(cg.theta)[converged], lanes.optimum[converged], 1e-7)


def test_weights_that_differ_by_powers_of_ten():
    """Newton-CG knows from the full data how models depend: what its steps leave in a resample must not hide."""
    rng = np.random.default_rng(5)
    boards = []
    while len(boards) < 36:
        counts = played(rng, rng.normal(0, 1, M), rng.poisson(4, (M, M)))
        weight = 10 ** rng.uniform(-2, 2, (M, M))
        weight = np.triu(weight) + np.triu(weight, 1).T
        again = rng.poisson(counts)
        if twins.closure(counts > 0).all() and twins.closure(again > 0).all():
            boards.append((None, counts * weight, again * weight, 0.0))
    lanes = make_lanes(boards)
    cg = by_newton_cg(lanes, tolerance=1e-8)
    converged = np.asarray(cg.status) == Status.CONVERGED
    assert np.count_nonzero(converged) >= 30
    assert_at(np.asarray(cg.theta)[converged], lanes.optimum[converged], 1e-8)


def test_an_ordinary_board_takes_two_factors(monkeypatch):
    """One at the start and one beside the maximum, which the twin confirms to 1e-12."""
    rng, factored, matrices = np.random.default_rng(0), dense_solve.factored, []
    wins = played(rng, rng.normal(0, 1, 40), rng.poisson(20, (40, 40)))
    monkeypatch.setattr(dense_solve, "factored", lambda matrix: matrices.append(matrix) or factored(matrix))
    table = PairTable(wins + wins.T, wins.sum(1))
    end = dense_solve.newton_on_host(Link.LOGIT, table, np.ones(40, bool), Terms(np.zeros(()), 1e-9, 200))
    assert (end.status, end.n_steps, len(matrices)) == (Status.CONVERGED, 3, 2)
    assert_at(end.theta, twins.newton(wins), 1e-12)


@pytest.mark.parametrize("solver", [dense_solve.newton, dense_solve.newton_on_host])
@pytest.mark.parametrize("size", [2, 3])
def test_newton_claims_no_more_than_the_rounding_of_heavy_battles_leaves(size, solver):
    """What one pair joins has a known difference: the log-odds of that pair's results, whatever they weigh."""
    rng, errors = np.random.default_rng(0), []
    for weight in 10.0 ** -np.arange(17):
        wins = np.zeros((2 * size, 2 * size))
        wins[:size, :size], wins[size:, size:] = rng.integers(50, 500, (2, size, size))
        np.fill_diagonal(wins, 0)
        wins[0, size], wins[size, 0] = 3 * weight, weight
        table = PairTable(wins + wins.T, wins.sum(1))
        with np.errstate(all="ignore"):
            end = solver(Link.LOGIT, table, np.ones(2 * size, bool), Terms(np.zeros(()), 1e-9, 200))
        if end.status == Status.CONVERGED:
            errors.append(abs(end.theta[0] - end.theta[size] - np.log(3)))
    assert 7 <= len(errors) <= 13
    assert max(errors) < 1e-6


def test_newton_stays_in_single_precision():
    wins = dense(np.random.default_rng(0)).astype(np.float32)
    terms = Terms(*np.array([0.0, 1e-5], np.float32), 200)
    table, active = PairTable(wins + wins.T, wins.sum(1)), np.ones(M, bool)
    end = jax.eval_shape(partial(dense_solve.newton, Link.LOGIT), table, active, terms)
    assert end.theta.dtype == end.grad_norm.dtype == np.float32


def test_chord_finds_the_optimum_wherever_it_says_so(lanes):
    result = by_chord(lanes)
    converged = np.asarray(result.status) == Status.CONVERGED
    assert np.all(converged[[kind not in SPARSE for kind in lanes.kind]])
    # The error left is predicted from the last steps: within a factor of the tolerance.
    assert_at(np.asarray(result.theta)[converged], lanes.optimum[converged], 10 * TOLERANCE)


def test_the_step_limit_is_a_status(lanes):
    for solver in (by_newton, by_newton_cg, by_chord):
        result = solver(lanes, max_steps=2)
        assert np.all(result.status == Status.STEP_LIMIT)
        assert np.all(result.n_steps == 2)
        assert np.all(np.isfinite(result.theta))


def test_nothing_is_left_to_do_at_the_optimum(lanes):
    inverse, diagonal = inverse_information(lanes.optimum, lanes.again, lanes.ridge, everyone(lanes))
    result = newton_cg(lanes.again, lanes.optimum, inverse, diagonal, lanes.ridge, TOLERANCE, 100)
    assert np.all(result.status == Status.CONVERGED)
    assert np.all(result.n_steps == 1)
    assert np.asarray(result.grad_norm).max() < 1e-9


def test_a_non_finite_lane_says_so_and_leaves_the_others_alone(lanes):
    spoiled = lanes.again.copy()
    spoiled[5, 2, 3] = np.nan
    for solver in (by_newton, by_newton_cg, by_chord):
        clean, result = solver(lanes), solver(lanes._replace(again=spoiled))
        assert result.status[5] == Status.NON_FINITE
        others = np.arange(len(lanes.kind)) != 5
        np.testing.assert_array_equal(np.asarray(result.theta)[others], np.asarray(clean.theta)[others])
        np.testing.assert_array_equal(np.asarray(result.status)[others], np.asarray(clean.status)[others])


def test_a_diverging_iteration_never_claims_convergence(lanes):
    inverse, _ = inverse_information(lanes.start, lanes.full, lanes.ridge, everyone(lanes))
    result = chord(lanes.again, lanes.start, -np.asarray(inverse), lanes.ridge, TOLERANCE, 100_000)
    status, finite = np.asarray(result.status), np.isfinite(result.theta).all(1)
    assert np.all(status != Status.CONVERGED)
    np.testing.assert_array_equal(status == Status.NON_FINITE, ~finite)
    assert not finite.all()


@pytest.mark.parametrize("real", [8, 11])
def test_padded_models_change_nothing(lanes, real):
    """The last models have no battles and are not active: the others are fitted as if they stood alone."""
    keep = [k for k, kind in enumerate(lanes.kind) if kind not in SPARSE]
    boards = lanes.again.copy()
    boards[:, real:], boards[:, :, real:] = 0, 0
    active = everyone(lanes) & (np.arange(M) < real)
    full = jax.device_get(newton(boards, active, lanes.ridge, TOLERANCE, 100))
    inverse, diagonal = inverse_information(full.theta, boards, lanes.ridge, active)
    start = np.where(active, 0.1, 0.0) * np.arange(M)
    cg = jax.device_get(newton_cg(boards, start, inverse, diagonal, lanes.ridge, TOLERANCE, 100))
    assert np.all(full.theta[:, real:] == 0)
    assert np.all(np.asarray(inverse)[:, real:] == 0)
    for k in keep:
        alone = twins.newton(boards[k, :real, :real], lanes.ridge[k])
        assert full.status[k] == cg.status[k] == Status.CONVERGED
        assert_at(full.theta[k, :real], alone, 1e-9)
        assert_at(cg.theta[k, :real], alone, 1e-9)


def test_inverse_information_is_the_pseudo_inverse_on_the_centred_models(lanes):
    active = everyone(lanes)
    active[::2, 11] = False
    active[[kind not in SPARSE for kind in lanes.kind], 4] = False  # the others would fall apart
    wins = lanes.full * (active[:, :, None] & active[:, None])
    inverse, diagonal = jax.device_get(inverse_information(lanes.start, wins, lanes.ridge, active))
    for k in range(len(lanes.kind)):
        on = active[k]
        centre = np.eye(on.sum()) - 1 / on.sum()
        information = twins.information(lanes.start[k][on], wins[k][np.ix_(on, on)], lanes.ridge[k])
        expected = np.zeros((M, M))
        expected[np.ix_(on, on)] = np.linalg.pinv(centre @ information @ centre, rcond=1e-12, hermitian=True)
        np.testing.assert_allclose(inverse[k], expected, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(diagonal[k][on], np.diag(information), rtol=1e-12)
