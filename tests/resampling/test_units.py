import numpy as np
import pytest
from scipy.stats import poisson

from jaxeval.resampling.units import category_tables, poisson_tables

QUANTUM = 2.0**-32


def decoded_poisson(tables, r):
    """Values and their integer masses, of 2**32 in all, that table ``r`` draws."""
    bits, offset = int(tables.bits[r]), int(tables.offset[r])
    words = tables.words[offset : offset + 2**bits].astype(np.int64)
    threshold, alias = words >> bits, words & (2**bits - 1)
    mass = threshold.copy()
    np.add.at(mass, alias, 2 ** (32 - bits) - threshold)
    return tables.first[r] + np.arange(2**bits), mass


def decoded_categories(words):
    """Masses, 2**32 a column, and how many columns contribute to each, that a category table draws."""
    threshold, alias = (words >> np.uint64(32)).astype(np.int64), (words & np.uint64(2**32 - 1)).astype(np.intp)
    mass = threshold.copy()
    np.add.at(mass, alias, 2**32 - threshold)
    return mass, 1 + np.bincount(alias, minlength=len(words))


@pytest.mark.parametrize("rate", [1e-12, 1e-3, 0.3, 1.0, 2.5, 7.0, 63.2, 1000.0, 12345.6, 1e6])
def test_poisson_tables_hold_the_poisson_distribution(rate):
    # Between others, so that a table that takes from its neighbours shows.
    tables = poisson_tables(np.array([0.7, rate, 0.0, 30.0]))
    value, mass = decoded_poisson(tables, 1)
    # Differences of the distribution function: the mass function itself loses digits at large rates.
    exact = np.diff(poisson.cdf(np.concatenate([value[:1] - 1, value]), rate))
    assert mass.min() >= 0
    missing = 1 - exact.sum()
    distance = 0.5 * (np.abs(mass * QUANTUM - exact).sum() + missing)
    # Half a quantum a value kept, and as much for the mode, which makes up the sum: 3e-9 at rate 7, 1.3e-6 at 1e6.
    assert distance <= 0.5 * np.count_nonzero(mass) * QUANTUM + 2 * QUANTUM


def test_poisson_tables_of_rate_zero_draw_only_zero():
    value, mass = decoded_poisson(poisson_tables(np.zeros(1)), 0)
    assert value[mass > 0].tolist() == [0]


def test_poisson_tables_lie_end_to_end():
    rates = np.array([0.0, 1.0, 5.5, 400.0])
    tables = poisson_tables(rates)
    ends = tables.offset + (1 << tables.bits)
    assert tables.offset.tolist() == [0, *ends[:-1]]
    assert ends[-1] == len(tables.words)
    assert tables.bits.min() >= 1
    for r, rate in enumerate(rates):
        alone = poisson_tables(np.array([rate]))
        np.testing.assert_array_equal(tables.words[tables.offset[r] : ends[r]], alone.words)


@pytest.mark.parametrize("largest", [1, 2, 3, 10, 10**6, 10**9])
def test_category_tables_are_proportional_to_the_counts(largest):
    """Small counts make running sums of deficits and excesses coincide, where an index off by one would hide."""
    rng = np.random.default_rng(largest)
    for size in [1, 2, 3, 4, 7, 64, 200, 1000]:
        count = rng.integers(0, largest + 1, size)
        count[rng.integers(size)] += 1
        mass, parts = decoded_categories(category_tables(count, np.array([size])))
        # Every column that contributes is rounded down by less than one part in 2**32.
        assert np.all(np.abs(mass - count / count.sum() * size * 2.0**32) <= parts)
        assert np.all(mass[count == 0] == 0)


def test_category_tables_of_equal_counts_always_keep_their_column():
    mass, parts = decoded_categories(category_tables(np.full(13, 5), np.array([13])))
    assert np.all(mass == 2**32)
    assert np.all(parts == 2)


def test_category_tables_lie_end_to_end():
    rng = np.random.default_rng(0)
    counts = [rng.integers(0, 9, size) + (np.arange(size) == 0) for size in (1, 40, 7)]
    tables = category_tables(np.concatenate(counts), np.array([1, 40, 7]))
    alone = [category_tables(count, np.array([len(count)])) for count in counts]
    np.testing.assert_array_equal(tables, np.concatenate(alone))
