import jax
import numpy as np
import pytest
from scipy.stats import chisquare
from twins import FIVE_SE, squares32, squares64
from twins import stream_key as twin_key

from jaxeval.kernels import squares

pytestmark = pytest.mark.usefixtures("x64")

N = 2**16
ROW, TOP_UP = 1 << 32, 1 << 62

words32, words64 = jax.jit(squares.words32), jax.jit(squares.words64)
uniform = jax.jit(squares.uniform)
keys = jax.jit(lambda *parts: squares.stream_key(*parts))


def counters(start=0):
    return np.arange(N, dtype=np.uint64) + np.uint64(start)


def key_of(*parts):
    return keys(*np.asarray(parts, np.uint64))


def streams(varied):
    """Keys of N streams that differ in one part of (seed, slice, resample, attempt)."""
    parts = [np.uint64(7)] * 4
    parts[varied] = np.arange(N, dtype=np.uint64)
    return np.asarray(keys(*parts))


def assert_uniform(words):
    """Every byte of the words takes its 256 values equally often."""
    words = np.ascontiguousarray(words)
    for column in words.view(np.uint8).reshape(len(words), -1).T:
        assert chisquare(np.bincount(column, minlength=256)).pvalue > FIVE_SE


def assert_independent(a, b):
    """No bit of ``a`` follows the same bit of ``b``, nor its leading bits jointly, nor its value linearly."""
    assert_uniform(a ^ b)
    bits = a.dtype.itemsize * 8
    leading = (a >> (bits - 4)) * 16 + (b >> (bits - 4))
    assert chisquare(np.bincount(leading.astype(int), minlength=256)).pvalue > FIVE_SE
    assert abs(np.corrcoef(a.astype(float), b.astype(float))[0, 1]) < 5 / np.sqrt(len(a))


def test_words_are_those_of_the_paper_in_big_integers():
    some = [0, 1, 2, 1000, 2**32 - 1, 2**32 + 5, 2**62 + 3, 2**64 - 1]
    for key in (twin_key(0), twin_key(1, 2, 3), 1, 2**64 - 1):
        counter = np.array(some, np.uint64)
        assert words32(counter, np.uint64(key)).tolist() == [squares32(c, key) for c in some]
        assert words64(counter, np.uint64(key)).tolist() == [squares64(c, key) for c in some]


def test_words_of_products_are_those_of_sums_of_counters():
    key, start = key_of(3), np.uint64(5 * ROW)
    of_product = jax.jit(squares.words32_of_product)(counters() * key + start * key, key)
    np.testing.assert_array_equal(of_product, words32(counters(start), key))


def test_keys_are_those_of_big_integers():
    for parts in [(0, 0, 0, 0), (1, 2, 3, 4), (2**63 - 1, 2**64 - 1, 10**12, 1)]:
        assert int(key_of(*parts)) == twin_key(*parts)


def test_keys_of_different_streams_are_distinct_and_odd():
    parts = np.indices((16, 16, 256, 16)).reshape(4, -1).astype(np.uint64)
    many = np.asarray(keys(*parts))
    assert np.diff(np.sort(many)).all()
    assert len(many) == 2**20
    assert np.all(many % 2 == 1)


def test_a_word_depends_on_its_counter_not_on_the_shape_around_it():
    key, counter = key_of(1, 2, 3, 4), counters()
    for words in (words32, words64):
        flat = np.asarray(words(counter, key))
        assert flat[123] == words(np.uint64(123), key)
        np.testing.assert_array_equal(words(counter[100:107], key), flat[100:107])
        np.testing.assert_array_equal(words(counter.reshape(16, 64, 64), key), flat.reshape(16, 64, 64))
        lanes = np.asarray(jax.vmap(lambda k, w=words: w(counter[:64], k))(np.array([key, key_of(5)])))
        np.testing.assert_array_equal(lanes[0], flat[:64])


@pytest.mark.parametrize("words", [words32, words64])
@pytest.mark.parametrize("start", [0, ROW, TOP_UP])
def test_words_of_one_stream_are_uniform_and_independent(words, start):
    stream = np.asarray(words(counters(start), key_of(3, 0, 14, 0)))
    assert_uniform(stream)
    for lag in (1, 2, 1024):
        assert_independent(stream[lag:], stream[:-lag])


@pytest.mark.parametrize("counter", [0, 1, 12345])
@pytest.mark.parametrize("varied", range(4), ids=["seeds", "slices", "resamples", "attempts"])
def test_words_of_one_counter_over_neighbouring_streams_are_uniform_and_independent(varied, counter):
    """What a unit draws must not drift from one resample to the next. Counter 0 skips one round of mixing."""
    stream = np.asarray(words32(np.uint64(counter), streams(varied)))
    assert_uniform(stream)
    assert_independent(stream[1:], stream[:-1])


@pytest.mark.parametrize("varied", range(4), ids=["seeds", "slices", "resamples", "attempts"])
def test_neighbouring_streams_are_uncorrelated(varied):
    here, there = (np.asarray(words32(counters(), key)) for key in streams(varied)[:2])
    assert_independent(here, there)


def test_ranges_of_counters_under_one_key_are_independent():
    """A row's draws, the next row's, and the top-up share a key; their counters differ in a few high bits only."""
    key = key_of(0, 0, 0, 0)
    row, next_row, far_row = (np.asarray(words32(counters(start), key)) for start in (0, ROW, 4 * ROW))
    top_up = np.asarray(words64(counters(TOP_UP), key))
    assert_independent(row, next_row)
    assert_independent(row, far_row)
    for part in (top_up >> np.uint64(32), top_up & np.uint64(2**32 - 1)):
        assert_independent(row, part.astype(np.uint32))
    # The parts of one Gamma draw have a key each, and all words of 64 bits.
    parts = [np.asarray(words64(counters(), key_of(0, 0, 0, 1, part))) for part in range(3)]
    assert_independent(parts[0], parts[1])
    assert_independent(parts[1], parts[2])


def test_uniform_lies_strictly_between_0_and_1():
    ends = np.asarray(uniform(np.array([0, 2**64 - 1], np.uint64)))
    assert ends[0] == 2.0**-53
    assert ends[1] == 1 - 2.0**-53
    u = np.asarray(uniform(words64(counters(), key_of(1))))
    assert abs(u.mean() - 1 / 2) < 5 * np.sqrt(1 / 12 / N)
    assert abs((u**2).mean() - 1 / 3) < 5 * np.sqrt(4 / 45 / N)


def test_logarithms_are_exact_to_the_last_digits():
    x = np.concatenate([np.geomspace(1e-300, 1e300, 20_001), 1 + np.linspace(-0.3, 0.4, 20_001), [1.0, 2.0**-53]])
    np.testing.assert_allclose(jax.jit(squares.log)(x), np.log(x), rtol=5e-16, atol=1e-300)
    x = np.concatenate(
        [np.linspace(-1 + 2**-50, 3, 20_001), np.geomspace(1e-300, 1, 1_001), -np.geomspace(1e-20, 0.5, 999)]
    )
    np.testing.assert_allclose(jax.jit(squares.log1p)(x), np.log1p(x), rtol=1e-15, atol=0)


def test_normal_numbers_are_those_of_box_and_muller():
    radius, angle = (words64(counters()[:20_000], key_of(0, 0, 0, 1, part)) for part in range(2))
    found = np.asarray(jax.jit(squares.normal)(radius, angle))
    uniform = [(np.asarray(x) >> np.uint64(12)).astype(float) * 2.0**-52 + 2.0**-53 for x in (radius, angle)]
    expected = np.sqrt(-2 * np.log(uniform[0])) * np.cos(2 * np.pi * uniform[1])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=2e-15)
    assert abs(found.mean()) < 4 / np.sqrt(20_000)
    assert abs(found.std() - 1) < 4 / np.sqrt(40_000)
