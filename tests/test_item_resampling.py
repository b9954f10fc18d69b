"""The bootstrap over items: its law, and what a resample must not depend on."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from twins import FIVE_SE

from jaxeval.item_resampling import halves, resampled_sums

N, B = 48, 20_000
RNG = np.random.default_rng(0)
VALUES = RNG.random((N, 8))
# Three kinds of rows, so that a unit stands for several items.
ALIKE = np.eye(N)[RNG.integers(0, 3, N)]


@pytest.fixture(scope="module")
def counts():
    """(B, N) how often each row is drawn."""
    return resampled_sums(np.eye(N), B, 1, "x")


@pytest.fixture(scope="module")
def sums():
    return resampled_sums(VALUES, 400, 1, "x")


@pytest.fixture(scope="module")
def split():
    return resampled_sums(VALUES, 100, 1, "x", subsets=halves(N, 3, 0))


def test_rows_are_drawn_with_replacement(counts):
    np.testing.assert_array_equal(counts, np.round(counts))
    assert (counts.sum(1) == N).all()
    p = 1 / N
    assert (np.abs(counts.mean(0) - 1) < 5 * np.sqrt(N * p * (1 - p) / B)).all()
    square, product = (counts - 1) ** 2, (counts[:, ::2] - 1) * (counts[:, 1::2] - 1)
    assert (np.abs(square.mean(0) - (1 - p)) < 5 * square.std(0) / np.sqrt(B)).all()
    assert (np.abs(product.mean(0) + p) < 5 * product.std(0) / np.sqrt(B)).all()
    observed = np.bincount(counts[:, 7].astype(int), minlength=5)
    expected = stats.binom(N, p).pmf(np.arange(4))
    expected = B * np.append(expected, 1 - expected.sum())
    assert stats.chisquare([*observed[:4], observed[4:].sum()], expected).pvalue > FIVE_SE


def test_rows_that_are_alike_are_drawn_as_often_together():
    draws = resampled_sums(ALIKE, B, 2, "x")[:, :3]
    mean, covariance = ALIKE.sum(0)[:3], N * np.cov(ALIKE[:, :3].T, ddof=0)
    assert mean.min() > 5
    assert (np.abs(draws.mean(0) - mean) < 5 * np.sqrt(np.diag(covariance) / B)).all()
    centred = draws - mean
    product = centred[:, :, None] * centred[:, None]
    assert (np.abs(product.mean(0) - covariance) < 5 * product.std(0) / np.sqrt(B)).all()


def test_all_columns_are_sums_over_the_same_draws():
    found = resampled_sums(np.concatenate([np.eye(N), VALUES, VALUES[:, ::-1], np.ones((N, 1))], axis=1), 400, 1, "x")
    np.testing.assert_allclose(found[:, N : N + 8], found[:, :N] @ VALUES, rtol=1e-12)
    np.testing.assert_array_equal(found[:, N : N + 8], found[:, N + 8 : -1][:, ::-1])
    np.testing.assert_array_equal(found[:, -1], N)


def test_a_resample_depends_on_seed_stream_and_number_alone(sums):
    order = np.random.default_rng(1).permutation(N)
    np.testing.assert_allclose(resampled_sums(VALUES[order], 400, 1, "x"), sums, rtol=1e-12)
    first = resampled_sums(VALUES, 100, 1, "x")
    np.testing.assert_allclose(sums[:100], first, rtol=1e-12)
    np.testing.assert_allclose(resampled_sums(VALUES, 1_000, 1, "x")[:100], first, rtol=1e-12)
    for other in (resampled_sums(VALUES, 400, 2, "x"), resampled_sums(VALUES, 400, 1, "y"), np.roll(sums, 1, axis=0)):
        assert not np.isclose(other, sums, rtol=1e-9).all(1).any()


@pytest.mark.parametrize("chunk", [1, 7, 400])
def test_chunks_agree(sums, chunk):
    np.testing.assert_allclose(resampled_sums(VALUES, 400, 1, "x", chunk_size=chunk), sums, rtol=1e-12)


def test_chunks_of_halves_agree(split):
    found = resampled_sums(VALUES, 100, 1, "x", subsets=halves(N, 3, 0), chunk_size=7)
    np.testing.assert_allclose(found, split, rtol=1e-12)


def test_resample_r_draws_from_half_r_mod_h_alone(split):
    subsets = halves(N, 3, 0)
    assert subsets.shape == (3, N // 2)
    drawn = resampled_sums(np.eye(N), 100, 1, "x", subsets=subsets)
    assert (drawn.sum(1) == N // 2).all()
    for half in range(3):
        used = np.flatnonzero(drawn[half::3].any(0))
        assert set(used) <= set(subsets[half])
        assert len(used) == N // 2  # all of them, in 33 resamples
    np.testing.assert_array_equal(resampled_sums(VALUES, 20, 1, "x", subsets=subsets), split[:20])


@pytest.mark.parametrize("n", [6, 7])
def test_halves_take_every_item_equally_often(n):
    drawn = halves(n, 2_000, 3)
    assert (np.diff(drawn, axis=1) > 0).all()
    share = np.bincount(drawn.ravel(), minlength=n) / 2_000
    p = (n // 2) / n
    assert (np.abs(share - p) < 5 * np.sqrt(p * (1 - p) / 2_000)).all()
    np.testing.assert_array_equal(halves(n, 5, 3), drawn[:5])
    assert not np.array_equal(halves(n, 5, 4), drawn[:5])


def test_one_item_and_progress():
    seen = []
    found = resampled_sums(np.array([[2.0, 3.0]]), 30, 1, "x", seen.append)
    np.testing.assert_array_equal(found, np.tile([2.0, 3.0], (30, 1)))
    assert sum(seen) == 30


HERE = Path(__file__).parent
SCRIPT = """
import sys
import jax, numpy as np
from test_item_resampling import N, VALUES
from jaxeval.item_resampling import halves, resampled_sums
split = resampled_sums(VALUES, 100, 1, "x", subsets=halves(N, 3, 0))
np.savez(sys.argv[1], sums=resampled_sums(VALUES, 400, 1, "x"), split=split, n=len(jax.devices()))
"""


def test_four_devices_and_the_flag(sums, split, tmp_path):
    flags = "--xla_force_host_platform_device_count=4"
    environment = {"JAX_ENABLE_X64": "1", "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(HERE)}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "four.npz")]
    subprocess.run(command, env={**os.environ, **environment}, check=True)
    saved = np.load(tmp_path / "four.npz")
    assert saved["n"] == 4
    np.testing.assert_allclose(saved["sums"], sums, rtol=1e-12)
    np.testing.assert_allclose(saved["split"], split, rtol=1e-12)
