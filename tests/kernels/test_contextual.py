"""Sums over rows of many resamples, and their steps, against plain loops over battles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import twins
from compiled import compiled
from scipy.special import expit, softmax

from jaxeval.kernels.batch import contextual
from jaxeval.kernels.batch.refits import RefitForm, RefitProblem
from jaxeval.kernels.links import Link
from jaxeval.kernels.solve import Status, Terms, pseudo_inverse
from jaxeval.kernels.tie_models import Response, TieModel

pytestmark = pytest.mark.usefixtures("x64")

HALF, DAVIDSON, RAO_KUPPER = map(Response, TieModel)
PROBIT = Response(TieModel.HALF, Link.PROBIT)

M, D, R = 4, 2, 3


def of_lanes(kernel):
    """The ``kernel`` of lanes, which are given by their parts."""
    return lambda model, rows, count, terms, *more: kernel(contextual.RowLanes(model, rows, count, terms), *more)


KERNELS = "chord", "newton", "newton_cg", "scaled_chord", "derivatives", "alive"
chord, newton, newton_cg, scaled_chord, derivatives, alive, draws_among = compiled(
    *(of_lanes(getattr(contextual, name)) for name in KERNELS),
    of_lanes(lambda lanes, active: lanes.among(active).draws),
)
win_tables = jax.jit(contextual.win_tables, static_argnums=2)
counts_of_rows, drop = jax.jit(contextual.counts_of_rows), jax.jit(contextual._drop)
MODELS = [HALF, PROBIT, DAVIDSON, RAO_KUPPER]


@pytest.fixture(scope="module")
def rows():
    """Groups of four rows, of which the last is padding, as are a group and the last of three blocks."""
    rng = np.random.default_rng(0)
    shape = 3, 2, 4
    factor = rng.uniform(0.5, 2, shape)
    factor[..., 3] = 0
    factor[1, 1] = 0
    factor[2] = 99  # beyond the blocks in use
    pairs = np.array([[[0, 1], [1, 2]], [[2, 3], [0, 3]], [[0, 1], [0, 1]]], np.int32)
    return contextual.ContextualRows(
        feature=rng.normal(size=(*shape, D)),
        target=rng.choice([0.0, 0.5, 1.0], shape),
        factor=factor,
        unit=rng.integers(0, 20, shape).astype(np.int32),
        first=pairs[..., 0],
        second=pairs[..., 1],
        n_blocks=np.int32(2),
    )


@pytest.fixture(scope="module")
def count():
    return np.random.default_rng(1).poisson(3, (3, 2, 4, R)).astype(float)


def terms_of(ridge):
    return Terms(ridge, 1e-10, 50)


def parameters(model, lanes=R):
    phi = np.random.default_rng(2).normal(0, 0.5, (M + D + 1, lanes))
    phi[-1] = {HALF: 0.0, PROBIT: 0.0, DAVIDSON: -0.4, RAO_KUPPER: 0.5}[model]
    return phi


def slopes(model, y, z, t):
    """Derivatives by z and t of the log-likelihood of one battle, and the negative second ones: zz, zt and tt."""
    if model == HALF:
        p = expit(z)
        return (y - p, 0.0), (p * (1 - p), 0.0, 0.0)
    if model == PROBIT:
        _, slope, bend = twins.LINKS["probit"]
        return (y * slope(z) - (1 - y) * slope(-z), 0.0), (y * bend(z) + (1 - y) * bend(-z), 0.0, 0.0)
    if model == DAVIDSON:  # score and information of an exponential family: of the result, and of whether it is a tie
        p = softmax([z / 2, t, -z / 2])
        result, tied = np.array([1.0, 0.5, 0.0]), np.array([0.0, 1.0, 0.0])
        mean, share = p @ result, p @ tied
        moments = (p @ (result - mean) ** 2, p @ ((result - mean) * (tied - share)), p @ (tied - share) ** 2)
        return (y - mean, (y == 0.5) - share), moments
    up, down = expit(z + t), expit(z - t)
    of_up, of_down = up * (1 - up), down * (1 - down)
    if y == 1:
        return (1 - down, down - 1), (of_down, -of_down, of_down)
    if y == 0:
        return (-up, -up), (of_up, of_up, of_up)
    tie, of_tie = up - down, of_up + of_down
    second = of_up * (1 - 2 * up) - of_down * (1 - 2 * down)
    return (1 - up - down, of_tie / tie), (of_tie, of_up - of_down, (of_tie / tie) ** 2 - second / tie)


def naive(model, rows, phi, count, active, ridge):
    """Gradient and information of one lane, battle by battle."""
    size = M + D + 1
    grad, matrix = -2 * ridge * phi, 2 * np.diag(ridge)
    n, wins = np.zeros((2, M, M))
    rows = jax.tree.map(np.asarray, rows)
    for t in range(int(rows.n_blocks)):
        for e in range(rows.first.shape[1]):
            i, j = int(rows.first[t, e]), int(rows.second[t, e])
            for g in range(rows.target.shape[2]):
                weight, y = float(count[t, e, g] * rows.factor[t, e, g]), float(rows.target[t, e, g])
                n[[i, j], [j, i]] += weight
                wins[i, j] += weight * y
                wins[j, i] += weight * (1 - y)
                if not (active[i] and active[j]):
                    continue
                x = np.zeros(size)
                x[i], x[j], x[M : M + D] = 1, -1, rows.feature[t, e, g]
                z = x @ phi
                (by_z, by_t), (zz, zt, tt) = slopes(model, y, z, phi[-1])
                tie = np.eye(size)[-1]
                own = by_z * x + by_t * tie
                grad = grad + weight * own
                cross = np.outer(x, tie)
                matrix = matrix + weight * (zz * np.outer(x, x) + zt * (cross + cross.T) + tt * np.outer(tie, tie))
    return grad, matrix, n, wins


@pytest.mark.parametrize("model", MODELS)
def test_derivatives(model, rows, count):
    active = np.ones((M, R), bool)
    active[3, 1] = False
    ridge = np.array([0.3] * M + [0.1] * D + [0.0])
    phi = parameters(model)
    moves = np.concatenate([active, np.full((D + 1, R), True)])
    moves[-1] = model.ties != TieModel.HALF
    played = draws_among(model, rows, count, terms_of(ridge), active)
    grad, matrix = derivatives(model, rows, played, terms_of(ridge), phi)
    for lane in range(R):
        own_grad, own_matrix, *_ = naive(
            model, rows, phi[:, lane], np.asarray(count)[..., lane], active[:, lane], ridge
        )
        alive = np.concatenate([active[:, lane], [True] * D, [model.ties != TieModel.HALF]])
        np.testing.assert_allclose(np.asarray(grad)[alive, lane], own_grad[alive], rtol=1e-10)
        inside = np.ix_(alive, alive)
        np.testing.assert_allclose(np.asarray(matrix)[lane][inside], own_matrix[inside], rtol=1e-9, atol=1e-12)


def test_tables_and_counts(rows, count):
    wins = win_tables(rows, count, M)
    for lane in range(R):
        *_, expected = naive(
            HALF, rows, np.zeros(M + D + 1), np.asarray(count)[..., lane], np.zeros(M, bool), np.zeros(M + D + 1)
        )
        np.testing.assert_allclose(np.asarray(wins)[lane], expected, rtol=1e-12)
    drawn = np.arange(20 * R).reshape(20, R)
    found = np.asarray(counts_of_rows(rows, drawn))
    np.testing.assert_array_equal(found[:2], drawn[np.asarray(rows.unit)[:2]])
    assert not found[2].any()  # not in use


@pytest.fixture(scope="module")
def board():
    """A board of 4,000 battles in one pair of blocks, and twelve lanes of weights."""
    rng = np.random.default_rng(3)
    shape = 2, 125, 16
    pairs = rng.permuted(np.tile(np.arange(M, dtype=np.int32), (250, 1)), axis=1)[:, :2].reshape(2, 125, 2)
    feature = rng.normal(size=(*shape, D))
    z = 0.3 * (pairs[..., 1] - pairs[..., 0])[..., None] + feature @ [0.4, -0.2]
    win, tie = 1 / (1 + np.exp(0.4 - z)), 1 / (1 + np.exp(-0.4 - z))
    u = rng.random(shape)
    target = np.where(u < win, 1.0, np.where(u < tie, 0.5, 0.0))
    rows = contextual.ContextualRows(
        jnp.asarray(feature), jnp.asarray(target), jnp.asarray(rng.uniform(0.5, 1.5, shape)),
        jnp.zeros(shape, jnp.int32), jnp.asarray(pairs[..., 0]), jnp.asarray(pairs[..., 1]), jnp.asarray(2, jnp.int32),
    )  # fmt: skip
    return rows, jnp.asarray(rng.poisson(1, (*shape, 12)), jnp.uint8)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_chord_steps_end_where_newtons_do(model, board):
    """In single precision, too, where ties are half a win."""
    rows, count = board
    ridge = jnp.asarray([0.2] * M + [0.1] * D + [0.0])
    start = jnp.zeros((M + D + 1, 12)).at[-1].set(0.5)
    everyone, once = jnp.ones((M + D + 1, 12), bool).at[-1].set(model.ties != TieModel.HALF), jnp.ones(count.shape)
    exact, near = Terms(ridge, 1e-12, 50), Terms(ridge, 1e-8, 60)
    full, matrix = newton(model, rows, once, exact, start, everyone)
    assert (full.status == Status.CONVERGED).all()
    inverse = pseudo_inverse(matrix[0], everyone[:, 0], M, 0.2)
    diagonal = jnp.where(everyone[:, 0], jnp.diagonal(matrix[0]), 0.0)
    problem = RefitProblem(None, None, rows, full.theta[:, 0], jnp.zeros(M), inverse, diagonal)
    _, base = contextual.at_estimate(problem, RefitForm(None, None, None, model))
    found = chord(model, rows, count, near, base)
    twin, _ = newton(model, rows, count.astype(float), exact, full.theta, everyone)
    assert (found.status == Status.CONVERGED).all()
    assert (twin.status == Status.CONVERGED).all()
    # Steps end where what remains is under 1e-8 as the last steps predict it, which is no bound. With the instructions
    # of some processors one entry of 84 is 1.4e-8 off, or 2e-6 Elo.
    np.testing.assert_allclose(found.theta, twin.theta, rtol=0, atol=2e-8)
    for solve in (newton_cg, scaled_chord):
        other = solve(model, rows, count, near, base, everyone)
        assert (other.status == Status.CONVERGED).all()
        np.testing.assert_allclose(other.theta, twin.theta, rtol=0, atol=1e-8)
    if model == HALF:  # a lane does not depend on those beside it
        alone = chord(model, rows, count[..., 4:5], near, base)
        np.testing.assert_allclose(alone.theta[:, 0], found.theta[:, 4], rtol=0, atol=1e-13)
        assert alone.n_steps[0] == found.n_steps[4]


def test_drops_of_scores_have_the_digits_of_single_precision():
    z, rise = np.meshgrid(np.linspace(-4, 4, 9), np.concatenate([np.linspace(-6, 6, 121), [1e-6, -1e-4]]))
    slope, skew = 2 * expit(z) * expit(-z), 2 * expit(z) - 1
    half, slope, skew = (x.astype(np.float32) for x in (rise[..., None] / 2, slope, skew))
    # The difference of the scores, in the form that keeps its digits.
    exact = expit(z) * expit(-z) * np.expm1(rise) / (expit(-z) + expit(z) * np.exp(rise))
    found = np.asarray(drop(half, slope, skew))[..., 0]
    np.testing.assert_allclose(found, exact, rtol=5e-6)  # where nearly all is lost or won, the skew cancels digits
    near = np.abs(rise) <= 3
    np.testing.assert_allclose(found[near], exact[near], rtol=2e-6)
