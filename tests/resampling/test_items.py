"""The bootstrap over items: its law, and what a resample must not depend on."""

import numpy as np
import pytest
from scipy import stats
from twins import FIVE_SE

from jaxeval.execution.lanes import LaneRun
from jaxeval.resampling.rows import halves, resampled_sums

N, B = 48, 20_000
VALUES = np.random.default_rng(0).random((N, 8))
# Three rows of their own and two groups of rows that are alike, so that one unit stands for several items.
GROUPS = np.repeat(np.eye(6, 8), [1, 1, 1, 12, 30, 3], axis=0)
BOTH = np.concatenate([np.eye(N), VALUES], axis=1)
SUBSETS = halves(BOTH, 3, 0)


@pytest.fixture(scope="module")
def counts():
    """(B, 6) how often the rows of each group are drawn."""
    return resampled_sums(GROUPS, B, 1, "x")[:, :6]


@pytest.fixture(scope="module")
def sums():
    return resampled_sums(VALUES, 400, 1, "x")


@pytest.fixture(scope="module")
def split():
    """Draws of every row, and sums of values, of three halves."""
    return resampled_sums(BOTH, 100, 1, "x", subsets=SUBSETS)[1]


def test_rows_are_drawn_with_replacement(counts):
    assert (counts.sum(1) == N).all()
    p = GROUPS.sum(0)[:6] / N
    covariance = N * (np.diag(p) - np.outer(p, p))
    assert (np.abs(counts.mean(0) - N * p) < 5 * np.sqrt(np.diag(covariance) / B)).all()
    centred = counts - N * p
    product = centred[:, :, None] * centred[:, None]
    assert (np.abs(product.mean(0) - covariance) < 5 * product.std(0) / np.sqrt(B)).all()
    for k in range(6):
        law = stats.binom(N, p[k])
        edges = np.unique(law.ppf(np.linspace(0.01, 0.99, 20)))
        expected = B * np.diff(law.cdf(edges), prepend=0, append=1)
        observed = np.bincount(np.searchsorted(edges, counts[:, k]), minlength=len(expected))
        assert stats.chisquare(observed, expected).pvalue > FIVE_SE


def test_all_columns_are_sums_over_the_same_draws(split):
    np.testing.assert_array_equal(split[:, :N], np.round(split[:, :N]))
    np.testing.assert_allclose(split[:, N:], split[:, :N] @ VALUES, rtol=1e-12)
    twice = resampled_sums(np.concatenate([VALUES[:, :4], VALUES[:, 3::-1]], axis=1), 400, 1, "x")
    np.testing.assert_array_equal(twice[:, :4], twice[:, 7:3:-1])


def test_a_resample_depends_on_seed_stream_and_number_alone(sums):
    order = np.random.default_rng(1).permutation(N)
    np.testing.assert_allclose(resampled_sums(VALUES[order], 400, 1, "x"), sums, rtol=1e-12)
    np.testing.assert_allclose(resampled_sums(VALUES, 1_000, 1, "x")[:400], sums, rtol=1e-12)
    for other in (resampled_sums(VALUES, 400, 2, "x"), resampled_sums(VALUES, 400, 1, "y"), np.roll(sums, 1, axis=0)):
        assert not np.isclose(other, sums, rtol=1e-9).all(1).any()


@pytest.mark.parametrize("chunk", [1, 7, 400])
def test_chunks_agree(sums, chunk):
    np.testing.assert_allclose(resampled_sums(VALUES, 400, 1, "x", run=LaneRun(chunk_size=chunk)), sums, rtol=1e-12)


def test_chunks_of_halves_agree(split):
    found = resampled_sums(BOTH, 100, 1, "x", subsets=SUBSETS, run=LaneRun(chunk_size=7))[1]
    np.testing.assert_allclose(found, split, rtol=1e-12)


def test_resample_r_draws_from_half_r_mod_h_alone(split):
    assert SUBSETS.shape == (3, N // 2)
    drawn = split[:, :N]
    assert (drawn.sum(1) == N // 2).all()
    for half in range(3):
        used = np.flatnonzero(drawn[half::3].any(0))
        np.testing.assert_array_equal(used, SUBSETS[half])  # all of them, in 33 resamples
    np.testing.assert_array_equal(resampled_sums(BOTH, 98, 1, "x", subsets=SUBSETS)[1], split[:98])


@pytest.mark.parametrize("n", [6, 7])
def test_halves_take_every_item_equally_often(n):
    drawn = halves(np.arange(n)[:, None], 2_000, 3)
    assert (np.diff(drawn, axis=1) > 0).all()
    share = np.bincount(drawn.ravel(), minlength=n) / 2_000
    p = (n // 2) / n
    assert (np.abs(share - p) < 5 * np.sqrt(p * (1 - p) / 2_000)).all()
    np.testing.assert_array_equal(halves(np.arange(n)[:, None], 5, 3), drawn[:5])
    assert not np.array_equal(halves(np.arange(n)[:, None], 5, 4), drawn[:5])


def test_one_item_and_progress():
    seen = []
    found = resampled_sums(np.array([[2.0, 3.0]]), 400, 1, "x", run=LaneRun(seen.append))
    np.testing.assert_array_equal(found, np.tile([2.0, 3.0], (400, 1)))
    assert sum(seen) == 400
