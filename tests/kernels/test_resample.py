from functools import cache
from itertools import combinations_with_replacement

import jax
import numpy as np
import pytest
from scipy import stats
from twins import FIVE_SE

from jaxeval.kernels import resample
from jaxeval.kernels.platforms import add_at, traced_for
from jaxeval.kernels.resample import DrawScheme, Packing
from jaxeval.resampling.units import make_units

pytestmark = pytest.mark.usefixtures("x64")

# Losses, ties and wins of eight pairs; the sixth is padding, and so is every unit of size 0.
SIZE = np.array([[0, 5, 1, 40, 2, 0, 9, 13], [3, 0, 1, 17, 0, 0, 2, 1], [25, 1, 0, 33, 2, 0, 4, 6]])
N = int(SIZE.sum())
STRATUM = np.array([0, 0, 0, 1, 1, 2, 2, 2])
B = 40_000
UNPACKED, PACKED, PACKED_WIDE = Packing(None), Packing(np.uint32), Packing(np.uint64)
PACKED_TIES = Packing(np.uint64, keeps_ties=True)
# The bootstrap's choice, at which one draw in a thousand is repeated, and one at which most are.
USUAL, TIGHT = int(np.ceil(3.3 * np.sqrt(N))), 2


MULTINOMIAL, POISSON, BAYESIAN = DrawScheme
draw_units = jax.jit(resample.draw, static_argnames=("scheme", "packing"))


def units(size, shortfall):
    return make_units(size, shortfall=shortfall, least_places=128)


def by_multinomial(seed, stream, numbers):
    return draw_units(units(SIZE, USUAL), MULTINOMIAL, UNPACKED, seed, stream, numbers)


def by_repeated_multinomial(seed, stream, numbers):
    return draw_units(units(SIZE, TIGHT), MULTINOMIAL, UNPACKED, seed, stream, numbers)


def by_poisson(seed, stream, numbers):
    return draw_units(units(SIZE, 0), POISSON, UNPACKED, seed, stream, numbers)


def by_bayesian(seed, stream, numbers):
    return draw_units(units(SIZE, 0), BAYESIAN, UNPACKED, seed, stream, numbers)


SCHEMES = [by_multinomial, by_repeated_multinomial, by_poisson, by_bayesian]


@cache
def draw(scheme, seed=1, stream=2, numbers=range(B)):
    return np.asarray(scheme(np.uint64(seed), np.uint64(stream), np.asarray(numbers)))


def assert_moments(x, mean, covariance):
    """Means and covariances of the draws (B, K) lie within five of their own standard errors."""
    mean, covariance = np.asarray(mean, float), np.asarray(covariance, float)
    error = np.sqrt(np.diag(covariance) / len(x))
    np.testing.assert_array_less(np.abs(x.mean(0) - mean), 5 * error + 1e-12)
    centred = x - mean
    for k in range(x.shape[1]):
        product = centred[:, k, None] * centred
        error = product.std(0) / np.sqrt(len(x))
        np.testing.assert_array_less(np.abs(product.mean(0) - covariance[k]), 5 * error + 1e-12)


def assert_fits(values, distribution):
    """Chi-square test of integer draws against a distribution cut at its own percentiles."""
    edges = np.unique(distribution.ppf(np.linspace(0.01, 0.99, 30)))
    expected = len(values) * np.diff(distribution.cdf(edges), prepend=0, append=1)
    observed = np.bincount(np.searchsorted(edges, values), minlength=len(expected))
    assert stats.chisquare(observed, expected).pvalue > FIVE_SE


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [by_multinomial, by_repeated_multinomial])
def test_multinomial_draws_are_the_bootstrap_of_n_battles(scheme):
    counts = draw(scheme).reshape(B, -1)
    assert np.all(counts >= 0)
    assert np.all(counts.sum(1) == N)
    p = SIZE.ravel() / N
    assert_moments(counts, N * p, N * (np.diag(p) - np.outer(p, p)))
    for unit in np.flatnonzero(p):
        assert_fits(counts[:, unit], stats.binom(N, p[unit]))
    assert_fits(counts.reshape(B, 3, 8)[:, :, 3].sum(1), stats.binom(N, SIZE[:, 3].sum() / N))


def test_most_draws_of_a_tight_shortfall_are_repeated():
    """Else the test above would not see what the repetition does to the distribution."""
    missing = N - draw(lambda *key: draw_units(units(SIZE, TIGHT), POISSON, UNPACKED, *key)).sum((1, 2))
    assert np.mean((missing < 0) | (missing > 2 * TIGHT)) > 0.7


@pytest.mark.parametrize(
    ("size", "tight"),
    [*(([size], True) for size in ([1, 0, 0, 0], [1, 1, 0, 0], [1, 2, 0, 2], [1, 1, 1, 2])), ([[1, 1, 1, 2]], False)],
)
def test_small_boards_have_every_outcome_as_often_as_it_should(size, tight):
    size, n = np.array(size), 20_000
    total = int(size.sum())
    drawn = units(size, 1 if tight else total)
    counts = np.asarray(draw_units(drawn, MULTINOMIAL, UNPACKED, np.uint64(3), np.uint64(0), np.arange(n)))[:, 0]
    assert np.all(counts.sum(1) == total)
    outcomes = [np.bincount(o, minlength=4) for o in combinations_with_replacement(np.flatnonzero(size), total)]
    probability = stats.multinomial(total, size[0] / total).pmf(outcomes)
    observed = [(counts == outcome).all(1).sum() for outcome in outcomes]
    assert sum(observed) == n
    if len(outcomes) > 1:
        assert stats.chisquare(observed, n * probability).pvalue > FIVE_SE


@pytest.mark.slow
@pytest.mark.parametrize("packing", [PACKED, PACKED_WIDE, PACKED_TIES])
@pytest.mark.parametrize("shortfall", [USUAL, TIGHT])
def test_packed_words_hold_the_same_draws(packing, shortfall):
    key = np.uint64(1), np.uint64(2), np.arange(1000)
    drawn = units(SIZE, shortfall)
    for scheme in (MULTINOMIAL, POISSON):
        losses, ties, wins = np.moveaxis(np.asarray(draw_units(drawn, scheme, UNPACKED, *key)), 1, 0)
        words = np.asarray(draw_units(drawn, scheme, packing, *key))
        assert words.dtype == packing.word
        n, twice_score, *kept = packing.fields(words)
        np.testing.assert_array_equal(n, losses + ties + wins)
        np.testing.assert_array_equal(twice_score, 2 * wins + ties)
        np.testing.assert_array_equal(kept, [ties] if packing.keeps_ties else [])


def test_poisson_draws_are_independent_with_the_counts_as_rates():
    counts = draw(by_poisson).reshape(B, -1)
    assert_moments(counts, SIZE.ravel(), np.diag(SIZE.ravel()))
    for unit in np.flatnonzero(SIZE):
        assert_fits(counts[:, unit], stats.poisson(SIZE.ravel()[unit]))


def test_bayesian_weights_are_dirichlet_and_sum_to_n():
    weights = draw(by_bayesian, numbers=range(B // 4)).reshape(B // 4, -1)
    np.testing.assert_allclose(weights.sum(1), N, rtol=1e-12)
    size = SIZE.ravel()
    assert np.all((weights > 0) == (size > 0))
    p = size / N
    assert_moments(weights, size, N**2 / (N + 1) * (np.diag(p) - np.outer(p, p)))
    for unit in np.flatnonzero(size):
        assert stats.kstest(weights[:, unit] / N, stats.beta(size[unit], N - size[unit]).cdf).pvalue > FIVE_SE


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_resample_is_a_function_of_seed_stream_and_number_alone(scheme):
    drawn, some = draw(scheme), range(0, B, 4)
    others = (39_999, 3, 57, 57, 4_000) * (len(some) // 5)
    # Counts are equal; weights that are not counts, to rounding.
    rtol = 1e-14 if scheme is by_bayesian else 0
    np.testing.assert_allclose(draw(scheme, numbers=others), drawn[list(others)], rtol=rtol)
    same = drawn[::4]
    for changed in (draw(scheme, seed=2, numbers=some), draw(scheme, stream=3, numbers=some), np.roll(same, 1, axis=0)):
        assert not (changed == same).reshape(len(some), -1).all(1).any()
        assert abs(np.corrcoef(changed[:, 0, 3], same[:, 0, 3])[0, 1]) < 5 / np.sqrt(len(some))


@pytest.mark.parametrize("packing", [UNPACKED, PACKED])
def test_draws_in_blocks_are_those_of_the_host(packing):
    """A hundred lanes take their single draws in several blocks, three lanes in one; so are columns counted."""
    own, numbers = make_units(np.tile(100 * SIZE, 5)), np.arange(100)
    assert own.strata.limit[0] > 4 * resample._LEAST_PLACES
    named = MULTINOMIAL, packing, np.uint64(1), np.uint64(2)
    on_host = resample.draw(own, *named, numbers)
    np.testing.assert_array_equal(draw_units(own, *named, numbers), on_host)
    np.testing.assert_array_equal(draw_units(own, *named, numbers[:3]), on_host[:3])


def test_additions_at_repeated_places_are_all_counted():
    rng = np.random.default_rng(0)
    tables, index = rng.integers(0, 9, (5, 7)).astype(np.uint32), rng.integers(0, 7, (5, 40)).astype(np.int32)
    value = rng.integers(0, 9, (5, 40)).astype(np.uint32)
    expected = tables.copy()
    np.add.at(expected, (np.arange(5)[:, None], index), value)
    np.testing.assert_array_equal(jax.jit(add_at)(tables, index, value), expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strata", "packing", "shortfall"),
    [
        (None, UNPACKED, USUAL),
        (STRATUM, PACKED, TIGHT),
        *(
            pytest.param(strata, packing, shortfall, marks=pytest.mark.slow)
            for strata, packing, shortfall in [(STRATUM, UNPACKED, USUAL), (None, PACKED, TIGHT)]
        ),
    ],
)
def test_accelerators_draw_what_a_cpu_draws(strata, packing, shortfall):
    """They draw few lanes again at a time, here most of them, and leave out the zeros of the last step."""
    own = make_units(SIZE, strata, shortfall, least_places=512)  # for all: one size is compiled
    arguments = own, MULTINOMIAL, packing, np.uint64(1), np.uint64(2), np.arange(500)
    with traced_for("tpu"):
        found = jax.jit(lambda own, *named: resample.draw(own, MULTINOMIAL, packing, *named))(own, *arguments[3:])
    np.testing.assert_array_equal(found, draw_units(*arguments))


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_places_beyond_32_bits_are_told_apart(platform):
    """Of 50,000 lanes of 45,000 pairs, in a table that is only described."""
    table = jax.ShapeDtypeStruct((50_000, 45_000), np.uint32)
    index = jax.ShapeDtypeStruct((50_000, 10), np.int32)
    with traced_for(platform):
        traced = str(jax.make_jaxpr(lambda *given: add_at(*given))(table, index, index))
    assert "i64[500000,1]" in traced
    small = [jax.ShapeDtypeStruct((40_000, q), x.dtype) for q, x in ((45_000, table), (10, index), (10, index))]
    assert "i32[400000,1]" in str(jax.make_jaxpr(add_at)(*small))
