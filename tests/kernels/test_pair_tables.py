from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
import pytest

from jaxeval.kernels import pair_tables
from jaxeval.kernels.resample import Packing

pytestmark = pytest.mark.usefixtures("x64")

M, N_PAIRS = 6, 9  # the last pair is the empty one
FIRST, SECOND = (x[[0, 2, 3, 5, 8, 9, 12, 14]] for x in np.triu_indices(M, 1))
N_MET = len(FIRST)
OUTCOMES = np.array([0.0, 0.5, 1.0])


@dataclass
class Case:
    """What a kernel gets, and the same as a plain list of entries."""

    layout: pair_tables.Layout
    packing: Packing
    draws: np.ndarray
    entries: list  # (pair, times drawn, weight, target)


def position():
    position = np.full((M, M), N_PAIRS - 1, np.int32)
    position[FIRST, SECOND] = position[SECOND, FIRST] = np.arange(N_MET)
    return position


def packed_case(word, rng):
    count = rng.integers(0, 40, (3, N_PAIRS)) * (np.arange(N_PAIRS) < N_MET)
    count[:, 2] = 0  # a pair that the resample lost
    half = np.iinfo(word).bits // 2
    draws = (count.sum(0).astype(word) << half) + (2 * count[2] + count[1]).astype(word)
    entries = [(q, count[k, q], 1.0, OUTCOMES[k]) for k in range(3) for q in range(N_PAIRS)]
    return Case(pair_tables.Layout(position()), Packing(word), draws, entries)


def cell_case(rng, *, columns, units):
    """Cells of any weight and target; pairs of one or several ``columns``; drawn alone or as shared ``units``."""
    pair = np.arange(N_PAIRS) if not columns else np.sort(np.concatenate([np.arange(N_PAIRS), [0, 0, 4, 8]]))
    shape = (4, len(pair))
    weight, target = rng.gamma(1.0, 1.0, shape) * (pair < N_MET), rng.random(shape)
    weight[rng.random(shape) < 0.2] = 0
    unit = rng.integers(0, 10, shape) if units else np.arange(np.prod(shape)).reshape(shape)
    draws = rng.poisson(1.0, (1, 10) if units else shape)
    times = draws.reshape(-1)[unit]
    layout = pair_tables.Layout(
        position(),
        weight=weight,
        target=target,
        unit=unit.astype(np.int32) if units else None,
        pair=pair.astype(np.int32) if columns else None,
    )
    entries = [(pair[q], times[k, q], weight[k, q], target[k, q]) for k in range(4) for q in range(len(pair))]
    return Case(layout, Packing(None), draws, entries)


CASES = {
    "packed in 32 bits": lambda rng: packed_case(np.uint32, rng),
    "packed in 64 bits": lambda rng: packed_case(np.uint64, rng),
    "cells": lambda rng: cell_case(rng, columns=False, units=False),
    "pairs of several columns": lambda rng: cell_case(rng, columns=True, units=False),
    "clusters": lambda rng: cell_case(rng, columns=True, units=True),
}


@partial(jax.jit, static_argnums=3)
def tables(layout, draws, factor, packing):
    """The table, one with its pairs reweighted, one without wins and one in single precision, by one program."""
    statistics = pair_tables.pair_statistics(layout, draws, N_PAIRS)
    assert all(x.shape == (N_PAIRS,) for x in statistics)
    dense = pair_tables.spread(layout, statistics)
    found = partial(pair_tables.pair_table, layout, dense, packing)
    reweighted = pair_tables.pair_table(layout._replace(pair_weight=factor), dense, packing, np.float64, True)
    return found(np.float64, True), reweighted, found(np.float64, False), found(np.float32, True)


FACTOR = np.random.default_rng(6).random((M, M))
FACTOR = FACTOR + FACTOR.T


def tables_of(case):
    return tables(case.layout, case.draws, FACTOR, case.packing)


def twin(case, factor):
    """(M, M) battle weights and wins, entry by entry."""
    n, wins = np.zeros((2, M, M))
    for pair, times, weight, target in case.entries:
        if pair < N_MET:
            i, j = FIRST[pair], SECOND[pair]
            amount = times * weight * factor[i, j]
            n[i, j] += amount
            n[j, i] += amount
            wins[i, j] += amount * target
            wins[j, i] += amount * (1 - target)
    return n, wins


@pytest.mark.parametrize("reweighted", [False, True])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_tables_agree_with_a_loop_over_entries(case, reweighted):
    case = case(np.random.default_rng(5))
    n, wins = twin(case, FACTOR if reweighted else np.ones((M, M)))
    whole, other, without_wins, _ = tables_of(case)
    result = other if reweighted else whole
    np.testing.assert_allclose(result.n, n, rtol=1e-14)
    np.testing.assert_allclose(result.wins, wins, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(result.score, wins.sum(1), rtol=1e-13)
    assert result.score.dtype == np.float64
    assert without_wins.wins is None


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_single_precision_rounds_once(case):
    case = case(np.random.default_rng(5))
    n, wins = twin(case, np.ones((M, M)))
    *_, result = tables_of(case)
    assert result.score.dtype == np.float32
    np.testing.assert_allclose(result.n, n, rtol=1e-6)
    np.testing.assert_allclose(result.score, wins.sum(1), rtol=1e-6)


def test_a_model_that_took_nothing_has_exactly_no_wins():
    """A win of rounding size would make the connectivity search believe in a chain of wins."""
    rng = np.random.default_rng(0)
    case = cell_case(rng, columns=True, units=False)
    layout = case.layout._replace(target=np.ones_like(case.layout.target))
    wins = np.asarray(tables_of(Case(layout, case.packing, case.draws, []))[0].wins)
    assert np.all(wins[SECOND, FIRST] == 0)
    assert np.all(wins[FIRST, SECOND] >= 0)


@pytest.mark.parametrize(("word", "n_opponents"), [(np.uint32, 283), (np.uint64, 340)])
def test_scores_of_packed_counts_are_exact(word, n_opponents):
    """In 32 bits up to a score of 2**23, half of what single precision counts in whole numbers; beyond, in 64."""
    battles, wins, ties = 30_001, 29_000, 1_000 + np.arange(n_opponents) % 2
    expected = n_opponents * wins + ties.sum() / 2
    assert (expected < 2**23) == (word is np.uint32)
    words = (word(battles) << word(np.iinfo(word).bits // 2)) + (2 * wins + ties).astype(word)
    position = np.full((n_opponents + 1, n_opponents + 1), n_opponents, np.int32)
    position[0, 1:] = position[1:, 0] = np.arange(n_opponents)
    layout = pair_tables.Layout(position)

    @jax.jit
    def scores(layout, words):
        dense = pair_tables.spread(layout, (words,))
        return pair_tables.pair_table(layout, dense, Packing(word), np.float64, keep_wins=False).score

    score = np.asarray(scores(layout, np.append(words, word(0))))
    assert score[0] == expected
    np.testing.assert_array_equal(score[1:], battles - wins - ties / 2)
