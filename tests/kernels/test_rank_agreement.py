import jax
import numpy as np
import pytest
import twins

from jaxeval.evaluators.resamples import pair_type
from jaxeval.kernels import rank_agreement

pytestmark = pytest.mark.usefixtures("x64")

M, E, B = 9, 3, 6
RNG = np.random.default_rng(0)
GOLD = RNG.integers(0, 7, M).astype(float)  # with ties
SCORES = np.round(GOLD + RNG.normal(0, 2, (E, M)))
SCORES[1, [2, 5]] = np.nan
SCORES[2] = np.round(GOLD * 1.7)
COUNTS = RNG.multinomial(M, np.ones(M) / M, B)
COUNTS[0] = 1


def resampled(measure, *arguments):
    """``measure`` of every resample, as the wrappers call it."""
    lanes = jax.vmap(lambda counts: measure(SCORES, GOLD, counts, *arguments))
    return jax.tree.map(np.asarray, jax.jit(lanes)(COUNTS.astype(float)))


def cases():
    return [(r, e, np.repeat(np.arange(M), COUNTS[r])) for r in range(B) for e in range(E)]


@pytest.mark.parametrize(
    ("scores", "gold", "overlap"),
    [
        ([9, 8, 7, 1, 2], [5, 4, 3, 2, 1], 1.0),
        ([9, 1, 7, 8, 2], [5, 4, 3, 2, 1], 2 / 3),
        ([9, 8, 1, 1, 2], [5, 4, 3, 2, 1], 2 / 3),
        ([9, 8, 7, 7, 7], [5, 4, 3, 2, 1], 2 / 3 + 1 / 9),  # three share the last place
        ([9, 8, 7, 7, 7], [9, 8, 7, 7, 7], 1.0),
        ([9, 8, np.nan, 1, 2], [5, 4, 3, 2, 1], 2 / 3),  # gold's top three of the others are 5, 4 and 2
    ],
)
def test_the_top(scores, gold, overlap):
    found = jax.jit(rank_agreement.rank_measures)(np.array([scores], float), np.array(gold, float), np.ones(5), 3.0)
    assert found.top_overlap[0] == pytest.approx(overlap)


def test_regression_of_agreement_on_the_gap():
    first, second = np.array(np.triu_indices(M, 1), np.int32)
    scale = np.array([2.0, 1.0, 3.0])
    start, edges = np.zeros((E, 2)), np.tile([0.0, 2.0, 5.0, np.inf], (E, 1))
    found = resampled(
        rank_agreement.gap_regression, rank_agreement.GapQuestion(first, second, scale, start, edges, 0.1, 1e-10)
    )
    assert (found.status == 0).all()
    for r, e, rows in cases():
        expected = twins.gap_regression(SCORES[e], GOLD, rows, scale[e], 0.1)
        assert (found.intercept[r, e], found.slope[r, e]) == pytest.approx(expected, abs=1e-5)
        gap = SCORES[e, rows[:, None]] - SCORES[e, rows]
        order = np.sign(gap) * np.sign(GOLD[rows[:, None]] - GOLD[rows])
        p = 1 / (1 + np.exp(-found.intercept[r, e] - found.slope[r, e] * np.abs(gap)))
        for b, (low, high) in enumerate(((0, 2), (2, 5), (5, np.inf))):
            inside = (gap > 0) & (gap >= low) & (gap < high)  # every pair once; ties of the scores say nothing
            sums = inside.sum(), ((1 + order[inside]) / 2).sum(), p[inside].sum()
            assert [x[r, e, b] for x in found[-3:]] == pytest.approx(sums, rel=1e-4)


def test_the_regression_is_finite_where_all_pairs_agree():
    first, second = np.array(np.triu_indices(M, 1), np.int32)
    x = np.arange(M) * 1.0
    asked = rank_agreement.GapQuestion(
        first, second, np.ones(1), np.zeros((1, 2)), np.array([[0.0, M]]), ridge=0.01, tolerance=1e-9
    )
    found = jax.jit(rank_agreement.gap_regression)(x[None], x, np.ones(M), asked)
    assert found.status == 0
    assert np.isfinite(found.intercept)
    assert found.agreeing == found.pairs == M * (M - 1) / 2


def test_double_precision_where_single_is_not_exact():
    assert [pair_type(m) for m in (5792, 5793)] == [np.float32, np.float64]  # the first whose pairs may weigh 2**24
