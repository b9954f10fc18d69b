"""Strata: every resample holds as many of each as the data, and within a stratum the draws are the bootstrap's."""

import jax
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from twins import FIVE_SE, squares32, squares64, stream_key

from jaxeval.errors import DataError
from jaxeval.execution.lanes import LaneRun
from jaxeval.kernels import lane_draws, resample
from jaxeval.kernels.resample import DrawScheme, Packing
from jaxeval.resampling.rows import halves, resampled_sums
from jaxeval.resampling.units import checked_strata, make_singles, make_units, small_strata_text, stratum_of_groups

UNPACKED = Packing(None)
SEED, STREAM = np.uint64(3), np.uint64(8)
# Columns of units by stratum: one battle; two; so few that all are drawn one by one; many; two of middling sizes.
STRATUM = np.repeat([0, 1, 2, 3, 4], [1, 1, 2, 6, 3])
SIZE = np.random.default_rng(0).integers(0, [1, 1, 4, 4, 70, 90, 2, 50, 9, 70, 20, 20, 20], (3, 13))
SIZE[0, :2] = 1, 2
TOTAL = np.bincount(STRATUM, SIZE.sum(0)).astype(int)


SINGLES = jax.jit(resample.singles, static_argnums=1)


def units(shortfall=None, places=512):
    """With places for any shortfall, so that one size is compiled."""
    return make_units(np.pad(SIZE, [(0, 0), (0, 3)]), STRATUM, shortfall=shortfall, least_places=places)


def drawn(units, n, packing=UNPACKED, scheme=DrawScheme.MULTINOMIAL):
    with jax.enable_x64(True):
        draw = jax.jit(resample.draw, static_argnums=(1, 2))
        return np.asarray(draw(units, scheme, packing, SEED, STREAM, np.arange(n)))


def by_stratum(counts):
    """(B, S) of (B, K, Q) counts."""
    return np.stack([counts[:, :, : len(STRATUM)][:, :, s == STRATUM].sum((1, 2)) for s in range(5)], 1)


# At a shortfall of 3 most draws of the large strata are repeated, in one stratum and not in others.
@pytest.mark.parametrize("shortfall", [pytest.param(None, marks=pytest.mark.slow), 3])
@pytest.mark.slow
def test_every_resample_holds_as_many_of_each_stratum(shortfall):
    b = 4_000
    counts = drawn(units(shortfall, 128), b)
    np.testing.assert_array_equal(by_stratum(counts), np.tile(TOTAL, (b, 1)))
    counts = counts[:, :, : len(STRATUM)]
    # Units of one stratum are multinomial, those of two are independent.
    flat, size = counts.reshape(b, -1), SIZE.reshape(-1)
    stratum = np.tile(STRATUM, 3)
    p = size / TOTAL[stratum]
    covariance = np.where(stratum[:, None] == stratum, TOTAL[stratum] * (np.diag(p) - np.outer(p, p)), 0.0)
    centred = flat - size
    error = np.sqrt(np.diag(covariance) / b)
    assert (np.abs(centred.mean(0)) <= 5 * error).all()
    product = centred[:, :, None] * centred[:, None]
    assert (np.abs(product.mean(0) - covariance) <= 5 * product.std(0) / np.sqrt(b) + 1e-9).all()
    for unit in np.flatnonzero(size > 5):
        law = stats.binom(TOTAL[stratum[unit]], p[unit])
        edges = np.unique(law.ppf(np.linspace(0.01, 0.99, 20)))
        expected = b * np.diff(law.cdf(edges), prepend=0, append=1)
        observed = np.bincount(np.searchsorted(edges, flat[:, unit]), minlength=len(expected))
        assert stats.chisquare(observed, expected).pvalue > FIVE_SE


def naive_singles(stratum, thresholds, limit, number):
    """One resample of battles drawn one by one, stratum after stratum, in whole numbers of Python's."""
    count, place = np.zeros(len(stratum), int), 0
    for s in range(stratum.max() + 1):
        own = np.flatnonzero(stratum == s)
        for attempt in range(100):
            key = stream_key(int(SEED), int(STREAM), number, attempt)
            poisson = [sum(squares32(int(slot), key) >= edge for edge in thresholds[s].tolist()) for slot in own]
            missing = len(own) - sum(poisson)
            if 0 <= missing <= limit[s]:
                break
        assert 0 <= missing <= limit[s]
        count[own] = poisson
        for k in range(missing):
            count[own[squares64(2**62 + place + k, key) * len(own) >> 64]] += 1
        place += int(limit[s])
    return count


def test_a_naive_loop_draws_the_same():
    stratum = np.repeat(np.arange(4), [1, 9, 40, 130])
    battles = make_singles(len(stratum), 256, stratum)
    with jax.enable_x64(True):
        found = np.asarray(SINGLES(battles, 256, SEED, STREAM, np.arange(30)))
    assert not found[:, len(stratum) :].any()
    for r in range(30):
        naive = naive_singles(stratum, battles.threshold, battles.strata.limit, r)
        np.testing.assert_array_equal(found[r, : len(stratum)], naive)


@pytest.mark.parametrize("shortfall", [pytest.param(None, marks=pytest.mark.slow), 3])
def test_lanes_first_and_last_and_packed_words_hold_the_same(shortfall):
    own = units(shortfall)
    counts = drawn(own, 200)
    words = drawn(own, 200, Packing(np.uint32))
    np.testing.assert_array_equal(words >> 16, counts.sum(1))
    np.testing.assert_array_equal(words & 0xFFFF, 2 * counts[:, 2] + counts[:, 1])
    with jax.enable_x64(True):
        named = SEED, STREAM, np.arange(200)
        last = jax.jit(lane_draws.draw, static_argnums=(1, 2))(own, DrawScheme.MULTINOMIAL, np.int32, *named)
    np.testing.assert_array_equal(np.asarray(last).T.reshape(counts.shape), counts)


def test_one_stratum_draws_what_no_strata_draw():
    """Also where its number is spelt out for every column."""
    alone, spelt = make_units(SIZE), make_units(SIZE, np.zeros(13, int))
    assert alone.strata.column is None
    assert spelt.strata.column is not None
    np.testing.assert_array_equal(drawn(spelt, 200), drawn(alone, 200))
    with jax.enable_x64(True):
        same = [
            SINGLES(make_singles(50, 128, stratum), 128, SEED, STREAM, np.arange(100))
            for stratum in (None, np.zeros(50, int))
        ]
    np.testing.assert_array_equal(*same)


def test_a_stratum_is_drawn_whatever_the_others_are():
    """Its numbers change with its place, but not with what is drawn again in the strata before it."""
    counts, usual = drawn(units(3), 200), drawn(units(), 200)
    np.testing.assert_array_equal(by_stratum(counts), by_stratum(usual))
    first = make_units(SIZE[:, :10], STRATUM[:10], shortfall=3, least_places=128)
    np.testing.assert_array_equal(counts[:, :, :10], drawn(first, 200))


def test_dirichlet_weights_sum_to_each_stratum():
    b = 4_000
    weights = drawn(units(0), b, scheme=DrawScheme.BAYESIAN)
    np.testing.assert_allclose(by_stratum(weights), np.tile(TOTAL, (b, 1)), rtol=1e-12)
    unit = (0, 4)  # of the fourth stratum
    total, size = TOTAL[STRATUM[unit[1]]], SIZE[unit]
    assert stats.kstest(weights[:, *unit] / total, stats.beta(size, total - size).cdf).pvalue > FIVE_SE


# --- items ---------------------------------------------------------------------------------------

N, B = 60, 400
OF_ITEM = np.random.default_rng(1).permutation(np.repeat([0, 1, 2, 5], [1, 4, 20, 35]))
VALUES = np.random.default_rng(2).random((N, 5))
COLUMNS = np.concatenate([np.eye(N), VALUES], axis=1)
ALIKE = np.concatenate([np.eye(6)[OF_ITEM], np.eye(2)[np.arange(N) % 2]], axis=1)


@pytest.fixture(scope="module")
def sums():
    return resampled_sums(COLUMNS, B, 1, "x", strata=OF_ITEM)


@pytest.mark.parametrize("columns", [COLUMNS, ALIKE], ids=["one by one", "alike ones together"])
def test_items_of_each_stratum(columns):
    member = np.eye(6)[OF_ITEM]
    found = resampled_sums(np.concatenate([columns, member], axis=1), B, 1, "x", strata=OF_ITEM)
    np.testing.assert_array_equal(found[:, -6:], np.tile(member.sum(0), (B, 1)))
    assert (found[:, :-6].std(0) > 0).any()


def test_items_of_one_stratum_are_those_of_none():
    one = resampled_sums(VALUES, B, 1, "x", strata=np.full(N, 7))
    np.testing.assert_array_equal(one, resampled_sums(VALUES, B, 1, "x"))


def test_sums_are_of_the_same_draws_in_any_order_and_chunks(sums):
    np.testing.assert_allclose(sums[:, N:], sums[:, :N] @ VALUES, rtol=1e-12)
    order = np.random.default_rng(3).permutation(N)
    again = resampled_sums(COLUMNS[order][:, N:], B, 1, "x", strata=OF_ITEM[order])
    np.testing.assert_allclose(again, resampled_sums(VALUES, B, 1, "x", strata=OF_ITEM), rtol=1e-12)
    run = LaneRun(chunk_size=7)
    np.testing.assert_allclose(resampled_sums(COLUMNS, B, 1, "x", run=run, strata=OF_ITEM), sums, rtol=1e-12)


def test_halves_keep_their_own_strata():
    member = np.eye(6)[OF_ITEM]
    both = np.concatenate([COLUMNS, member], axis=1)
    split = halves(both, 3, 0)
    found = resampled_sums(both, 90, 1, "x", split, strata=OF_ITEM)
    np.testing.assert_array_equal(found[0, :, -6:], np.tile(member.sum(0), (90, 1)))
    for r in range(90):
        np.testing.assert_array_equal(found[1, r, -6:], member[split[r % 3]].sum(0))


@pytest.mark.parametrize("repeats", [1, pytest.param(200, marks=pytest.mark.slow)])
def test_an_interval_is_without_the_variance_between_strata(repeats):
    """Means of two strata far apart, known sizes: the error is that within them, and the plain bootstrap's too wide."""
    rng = np.random.default_rng(0)
    n, b, truth, covered = np.array([60, 40]), B, 0.6 * 0.0 + 0.4 * 5.0, {"strata": 0, "none": 0}
    stratum, width = np.repeat([0, 1], n), {}
    for seed in range(repeats):
        y = np.where(stratum == 0, 0.0, 5.0) + rng.normal(0, 1, n.sum())
        for name, strata in (("strata", stratum), ("none", None)):
            mean = resampled_sums(y[:, None], b, seed, "x", strata=strata)[:, 0] / n.sum()
            lower, upper = np.quantile(mean, [0.025, 0.975])
            covered[name] += lower <= truth <= upper
            width[name] = upper - lower
    assert abs(covered["strata"] / repeats - 0.95) < 4 * np.sqrt(0.95 * 0.05 / repeats)
    assert covered["none"] == repeats
    # Variance within 1, between 0.6 * 0.4 * 25 = 6.
    assert width["none"] / width["strata"] == pytest.approx(np.sqrt(7), rel=0.25)


# --- what is said --------------------------------------------------------------------------------


def test_groups_lie_in_one_stratum():
    names = pd.Index([7, 8, 9])
    group = np.array([0, 1, 1, 2, 0])
    np.testing.assert_array_equal(stratum_of_groups(np.array([4, 1, 1, 0, 4]), group, names, "task"), [4, 1, 0])
    with pytest.raises(DataError, match=r"2 clusters lie in several strata of 'task', of 3 .*the first is 7\)"):
        stratum_of_groups(np.array([4, 1, 2, 0, 3]), group, names, "task")
    with pytest.raises(DataError, match=r"1 item lies in several strata .*: each item is drawn whole"):
        stratum_of_groups(np.array([4, 1, 2, 0, 4]), group, names, "task", what="item")


def test_one_stratum_is_none():
    assert checked_strata(np.full(4, 3)) is None
    np.testing.assert_array_equal(checked_strata(np.array([5, 2, 5])), [1, 0, 1])


def test_lone_strata():
    assert small_strata_text(None) == small_strata_text(np.array([20, 30])) == []
    assert small_strata_text(np.array([1, 20, 1])) == [
        "2 strata of one battle do not vary in the resamples, so the intervals leave out what they contribute"
    ]
    assert small_strata_text(np.array([1, 20]), "item")[0].startswith("1 stratum of one item does not vary")


@pytest.mark.parametrize(
    "of_each", [pytest.param(2, marks=pytest.mark.slow), 5, pytest.param(50, marks=pytest.mark.slow)]
)
def test_strata_of_a_few_say_by_how_much_errors_are_too_small(of_each):
    strata = np.repeat(np.arange(min(200, 1000 // of_each)), of_each)
    values = np.random.default_rng(0).normal(size=(len(strata), 1))
    spread = resampled_sums(values, 2000, 0, "few", strata=strata).std() / resampled_sums(values, 2000, 0, "few").std()
    told = small_strata_text(np.bincount(strata))
    assert spread == pytest.approx(np.sqrt(1 - 1 / of_each), abs=4 / np.sqrt(2000))
    if of_each == 50:
        assert told == []
    else:
        share = 1 - np.sqrt(1 - 1 / of_each)
        assert told == [
            f"the strata hold {of_each}.0 battles on average: resamples vary too little within so few, and errors are "
            f"too small by about {share:.0%}"
        ]
