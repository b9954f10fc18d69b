"""Units whose tables would not fit are drawn without them: exactly as many battles, in time that follows the rows."""

from functools import partial

import jax
import numpy as np
import pytest

from jaxeval.kernels import lane_draws, resample
from jaxeval.kernels.platforms import traced_for
from jaxeval.kernels.resample import DrawScheme, Packing
from jaxeval.resampling.units import make_units, without_tables

pytestmark = pytest.mark.usefixtures("x64")

SIZE = np.array([[0, 2**40, 5, 3_000_000_000], [7, 0, 1, 2**52], [2**45, 1, 0, 60]])
STRATUM = np.array([0, 0, 1, 2])
B = 1000
draws = jax.jit(resample.draw, static_argnums=(1, 2))
NAMED = np.uint64(1), np.uint64(2)


def drawn(size=SIZE, stratum=None, scheme=DrawScheme.MULTINOMIAL, numbers=range(B)):
    return np.asarray(draws(make_units(size, stratum), scheme, Packing(None), *NAMED, np.asarray(numbers)))


def test_which_boards_have_no_tables():
    assert not without_tables(np.full(10_000, 10**4))  # 1,500 words for all: they have one rate
    assert without_tables(np.full(10_000, 10**5))  # a billion battles: 80,000 single draws in each resample
    assert without_tables(np.full(100, 10**5))  # 19,000 single draws are more than 100 draws without tables
    assert without_tables(np.arange(1000) + 10**8)
    assert without_tables(np.array([2**31]))
    assert not without_tables(np.array([2**23 - 1]))
    assert make_units(np.full((3, 200), 3 * 10**6)).strata.place.size < 2000  # 1.8 billion battles in 600 rows


@pytest.mark.parametrize("stratum", [pytest.param(None, marks=pytest.mark.slow), STRATUM])
def test_every_resample_holds_as_many_of_each_stratum(stratum):
    counts = drawn(stratum=stratum)
    assert counts.shape == (B, *SIZE.shape)
    assert (counts == np.round(counts)).all()
    assert (counts >= 0).all()
    of_column = np.zeros(4, int) if stratum is None else stratum
    for number in np.unique(of_column):
        at = of_column == number
        total = SIZE[:, at].sum()
        assert (counts[:, :, at].sum((1, 2)) == total).all()
        share = SIZE[:, at] / total
        spread = np.sqrt(SIZE[:, at] * (1 - share))
        z = (counts[:, :, at] - SIZE[:, at])[:, spread > 1e-6] / spread[spread > 1e-6]
        assert (np.abs(z.mean(0)) < 5 / np.sqrt(B)).all()
        # The error of a variance, with the kurtosis of counts near 1.
        error = np.sqrt((2 + 1 / spread[spread > 1e-6] ** 2) / B)
        assert (np.abs((z**2).mean(0) - 1) < 5 * error).all()


def test_few_battles_of_a_large_board_are_drawn_as_the_bootstrap_draws_them():
    """Of a stratum of six, all numbers of one unit are as often as the binomial distribution says."""
    counts = drawn(stratum=STRATUM)[:, 0, 2]
    observed = np.bincount(counts.astype(int), minlength=7)
    expected = np.array([1, 30, 375, 2500, 9375, 18750, 15625]) / 6**6 * B
    assert ((observed - expected) ** 2 / expected).sum() < 40.0  # of six degrees of freedom, in less than 1e-6


@pytest.mark.parametrize("scheme", [DrawScheme.POISSON, DrawScheme.BAYESIAN])
def test_other_schemes_vary_as_much_as_the_sizes_say(scheme):
    counts = drawn(scheme=scheme)
    large = SIZE > 1000
    z = (counts[:, large] - SIZE[large]) / np.sqrt(SIZE[large])
    share = SIZE[large] / SIZE.sum() if scheme == DrawScheme.BAYESIAN else 0
    assert (np.abs(z.mean(0)) < 5 / np.sqrt(B)).all()
    assert (np.abs(z.var(0) - (1 - share)) < 5 * np.sqrt(2 / B)).all()


@pytest.mark.slow
def test_draws_depend_on_nothing_else():
    """Not on chunks, padding, platforms or where the lanes are."""
    whole, units = drawn(stratum=STRATUM), make_units(SIZE, STRATUM)
    few = np.arange(40)
    np.testing.assert_array_equal(drawn(stratum=STRATUM, numbers=few), whole[:40])
    wide = drawn(np.pad(SIZE, [(0, 0), (0, 3)]), STRATUM, numbers=few)
    np.testing.assert_array_equal(wide[:, :, :4], whole[:40])
    assert not wide[:, :, 4:].any()
    last = jax.jit(lane_draws.draw, static_argnums=(1, 2))(units, DrawScheme.MULTINOMIAL, np.int32, *NAMED, few)
    np.testing.assert_array_equal(np.asarray(last).T.reshape(40, *SIZE.shape), whole[:40])
    with traced_for("cuda"):
        elsewhere = jax.jit(partial(resample.draw), static_argnums=(1, 2))
        found = elsewhere(units, DrawScheme.MULTINOMIAL, Packing(None), *NAMED, few)
    np.testing.assert_array_equal(found, whole[:40])


@pytest.mark.slow
def test_packed_words_hold_the_same_draws():
    few, rng = np.arange(40), np.random.default_rng(0)
    many = rng.integers(0, 3 * 10**6, (3, 800))
    packed = Packing(np.uint64)
    words = draws(make_units(many), DrawScheme.MULTINOMIAL, packed, *NAMED, few)
    counts = drawn(many, numbers=few)
    assert make_units(many).tables is None
    np.testing.assert_array_equal(packed.battles(words), counts.sum(1))
    np.testing.assert_array_equal(packed.fields(words)[1], (counts * np.array([0, 1, 2])[:, None]).sum(1))


def test_more_than_doubles_count_are_refused():
    with pytest.raises(ValueError, match=r"a resample can draw at most 9,007,199,254,740,991 battles"):
        make_units(np.array([[2**52, 2**52]]))
