"""Agreement of rankings, draw by draw, against SciPy and the evaluators' own."""

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from jaxeval.evaluators.rank_correlation import rank_agreement
from jaxeval.statistics.agreement import ranking_agreement


@pytest.fixture(scope="module")
def both():
    rng = np.random.default_rng(0)
    one = rng.normal(size=(20, 9)).round(1)
    other = (one + rng.normal(size=one.shape)).round(0)
    one[3, 2] = other[5, 1] = other[5, 4] = np.nan
    one[7, 0] = np.inf
    return one, other


def test_against_scipy(both):
    found = ranking_agreement(*both, 3)
    for b, (x, y) in enumerate(zip(*both, strict=True)):
        there = ~np.isnan(x + y)
        assert found["kendall_tau"][b] == pytest.approx(kendalltau(x[there], y[there]).statistic)
        finite = np.where(np.isinf(x), 99, x)
        assert found["spearman"][b] == pytest.approx(spearmanr(finite[there], y[there]).statistic)


def test_against_the_measures_of_evaluators(both):
    one, other = both
    own = {name: values[0] for name, values in ranking_agreement(one, other, 3).items()}
    table = rank_agreement(one[0], other[0], top=3, n_resamples=0).set_index("measure")["value"]
    assert own == pytest.approx(table[list(own)].to_dict())


def test_what_has_no_agreement():
    one, other = np.array([[1.0, 1, 1], [1, 2, np.nan]]), np.array([[1.0, 2, 3], [1, 2, 3]])
    found = ranking_agreement(one, other, 3)
    assert np.isnan(found["kendall_tau"][0])
    assert np.isnan(found["spearman"][0])
    assert np.isnan(found["top_overlap"][1])
    close = ranking_agreement(np.array([[1.0, 1 + 1e-9, 2]]), np.array([[1.0, 0, 2]]), 2, precision=1e-6)
    assert close["kendall_tau"][0] == pytest.approx(2 / np.sqrt(6))
    nothing = ranking_agreement(np.full((1, 3), np.nan), other[:1], 1)
    assert np.isnan(nothing["kendall_tau"][0])
