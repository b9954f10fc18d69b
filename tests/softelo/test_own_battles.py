"""The bootstrap of a model's own battles: its law, its solutions, and what it must not depend on."""

import jax
import numpy as np
import pytest
from scipy.special import expit

from jaxeval.execution.lanes import LaneRun
from jaxeval.kernels import resample
from jaxeval.kernels.batch import folds
from jaxeval.softelo.own_battles import OwnBattles, _problem, resampled_strengths, strengths


def simulate(name, n, seed, m=7):
    rng = np.random.default_rng(seed)
    anchors, opponent = rng.normal(0, 0.7, (2, m)), np.sort(rng.integers(m, size=n))
    return OwnBattles(name, opponent, np.stack([rng.integers(0, 3, n) / 2, rng.random(n)]), anchors, np.zeros(2))


MODELS = [simulate("x", 150, 0), simulate("y", 30, 1), simulate("z", 140, 2)]


@pytest.fixture(scope="module")
def drawn():
    return resampled_strengths(MODELS, 200, 3, 0.05)


def slope(own, count, theta, ridge):
    """Derivative of the penalised log-likelihood for (B, N) counts, (K, B) strengths."""
    result = []
    for anchors, y, t in zip(own.anchors, own.target, theta, strict=True):
        p = expit(t[:, None] - anchors[own.opponent])
        result.append((count * (y - p)).sum(1) - 2 * ridge * t)
    return np.array(result)


singles = jax.jit(resample.singles, static_argnums=1)


def counts(own, n_resamples, seed=3):
    with jax.enable_x64(True):
        problem = _problem(own, 512, 16)
        drawn = singles(problem.units, 512, np.uint64(seed), problem.stream, np.arange(n_resamples))
    return np.asarray(drawn)[:, : own.target.shape[1]]  # of battles, or of clusters and no others


def test_strengths_solve_the_score_equation():
    found = strengths(MODELS, 0.05)
    for own, theta in zip(MODELS, found, strict=True):
        np.testing.assert_allclose(slope(own, np.ones((1, own.target.shape[1])), theta[:, None], 0.05), 0, atol=1e-8)


def test_resamples_solve_the_score_equation_of_their_draws(drawn):
    for own, theta in zip(MODELS, drawn, strict=True):
        count = counts(own, 200)
        np.testing.assert_array_equal(count.sum(1), own.target.shape[1])
        # A slope of 1e-7 is an error of 1e-7 / information, about 1e-8 logits.
        np.testing.assert_allclose(slope(own, count, theta, 0.05), 0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("shortfall", [4.0, 1.0])
def test_counts_are_multinomial(monkeypatch, shortfall):
    """Means, variances and covariances; at one standard deviation a fifth of the draws is repeated."""
    monkeypatch.setattr("jaxeval.resampling.units._SINGLES_SHORTFALL", shortfall)
    count = counts(simulate("x", 40, 5), 10_000).astype(float)
    assert (count.sum(1) == 40).all()
    b, p = len(count), 1 / 40
    assert (np.abs(count.mean(0) - 1) < 5 * np.sqrt(40 * p * (1 - p) / b)).all()
    product = (count[:, :20] - 1) * (count[:, 20:] - 1)
    assert (np.abs(product.mean(0) + 1 / 40) < 5 * product.std(0) / np.sqrt(b)).all()
    square = (count - 1) ** 2
    assert (np.abs(square.mean(0) - 40 * p * (1 - p)) < 5 * square.std(0) / np.sqrt(b)).all()


def test_a_resample_depends_on_seed_name_and_number_alone(drawn):
    """The other models, the chunks and how many resamples there are do not matter."""
    for n_resamples in (20, 200):
        found = resampled_strengths(MODELS[1:2], n_resamples, 3, 0.05)
        np.testing.assert_allclose(found[0], drawn[1, :, :n_resamples], atol=1e-9)
    np.testing.assert_allclose(resampled_strengths(MODELS[::-1], 200, 3, 0.05)[::-1], drawn, atol=1e-9)
    renamed = resampled_strengths([MODELS[1]._replace(name="other")], 20, 3, 0.05)
    other_seed = resampled_strengths(MODELS[1:2], 20, 4, 0.05)
    for different in (renamed, other_seed):
        assert np.abs(different[0, 1] - drawn[1, 1, :20]).min() > 1e-6


def test_few_battles_and_none():
    one = OwnBattles("one", np.array([2]), np.ones((2, 1)), np.zeros((2, 4)), np.zeros(2))
    none = one._replace(opponent=np.zeros(0, int), target=np.zeros((2, 0)))
    found = resampled_strengths([one, none], 10, 0, 0.01)
    assert np.ptp(found[0]) == 0  # its only battle, every time
    assert found[0, 0, 0] == pytest.approx(strengths([one], 0.01)[0, 0], abs=1e-8)
    assert np.isnan(found[1]).all()
    assert np.isnan(strengths([one, none], 0.01)[1]).all()


@pytest.mark.parametrize("by_unit", [False, True])
def test_sums_of_draws_are_those_of_loops(by_unit):
    own, rng = MODELS[0], np.random.default_rng(5)
    if by_unit:  # clusters, and opponents in any order
        own = own._replace(opponent=rng.permutation(own.opponent), cluster=np.arange(150) // 3)
    problem = _problem(own, 512, 16, by_unit=by_unit)
    draws = np.zeros((20, 512), np.uint8)
    n_units = 50 if by_unit else 150
    draws[:, :n_units] = rng.poisson(1, (20, n_units))
    with jax.enable_x64(True):
        n, score = map(np.asarray, jax.jit(folds.own_sums)(problem, draws))
    count = draws[:, own.cluster if by_unit else np.arange(150)].astype(float)
    for j in range(16):
        np.testing.assert_array_equal(n[:, j], count[:, own.opponent == j].sum(1))
    np.testing.assert_allclose(score, count @ own.target.T, rtol=0, atol=1e-12)


def test_sums_between_places():
    draws = np.random.default_rng(0).integers(0, 16, (9, 64)).astype(np.uint8)
    first, end = np.triu_indices(65)
    with jax.enable_x64(True):
        found = jax.jit(folds.sums_between)(draws, first.astype(np.int32), end.astype(np.int32))
    cumulated = np.pad(np.cumsum(draws, axis=1, dtype=int), [(0, 0), (1, 0)])
    np.testing.assert_array_equal(found, cumulated[:, end] - cumulated[:, first])


def clustered(own, sizes, seed=0):
    """The model's battles in clusters of these sizes, whatever is in them, numbered by first places."""
    drawn = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    _, first, number = np.unique(drawn, return_index=True, return_inverse=True)
    return own._replace(cluster=np.argsort(np.argsort(first))[number])


def test_resamples_of_clusters_solve_the_score_equation_of_their_draws():
    models = [clustered(MODELS[0], [1] * 20 + [2] * 15 + [100]), clustered(MODELS[1], [1] * 30)]
    found = resampled_strengths(models, 200, 3, 0.05)
    for own, theta in zip(models, found, strict=True):
        n = own.cluster.max() + 1
        of_clusters = counts(own, 200)[:, :n]
        np.testing.assert_array_equal(of_clusters.sum(1), n)
        assert own.cluster.max() < n
        np.testing.assert_allclose(slope(own, of_clusters[:, own.cluster], theta, 0.05), 0, atol=1e-7)


def test_clusters_of_one_battle_are_battles(drawn):
    alone = [own._replace(cluster=np.arange(len(own.opponent))) for own in MODELS]
    np.testing.assert_array_equal(resampled_strengths(alone, 200, 3, 0.05), drawn)


def test_models_that_iterate_together_are_as_they_are_alone(monkeypatch, drawn):
    """Two to a slice, of which the last is not full, and counted as they are."""
    monkeypatch.setattr("jaxeval.softelo.own_battles.slices_together", lambda *_: 2)
    counted = []
    found = resampled_strengths(MODELS, 200, 3, 0.05, run=LaneRun(advance=counted.append))
    np.testing.assert_allclose(found, drawn, atol=1e-9)
    assert sum(counted) == 3 * 200
