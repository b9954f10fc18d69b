"""Accuracies from sums, against the same item by item."""

import jax
import numpy as np
import pytest
import twins

from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import Doubt, JudgedSums, LabelledSums, Rates

pytestmark = pytest.mark.usefixtures("x64")

STUDIES, N_CAL, N_TEST = 40, 30, 45
TWO_KINDS = np.array([True, False])  # verdicts, then scores


def simulate():
    """(STUDIES, items, 2) of one model by a judge of verdicts and one of scores; some studies have J < 0."""
    rng = np.random.default_rng(0)
    y = rng.random((STUDIES, N_CAL)) < rng.uniform(0.3, 0.9, (STUDIES, 1))
    y[:, :2] = False, True
    truth = rng.random((STUDIES, N_TEST)) < 0.6
    q0, q1 = rng.uniform(0.3, 1, (2, STUDIES, 1))

    def judge(right):
        verdict = rng.random(right.shape) < np.where(right, q1, 1 - q0)
        return np.stack([verdict.astype(float), 0.7 * right + 2.5 * rng.random(right.shape)], -1)

    return y.astype(float), judge(y), judge(truth)


Y, F, G = simulate()


def labelled(y, f):
    y = y[..., None] if y.ndim < f.ndim else y
    n = np.full(f.shape[:1] + f.shape[2:], float(f.shape[1]))
    return LabelledSums(n, *((x + 0 * f).sum(1) for x in (y, f, y * f, f * f, y * y)))


def judged(g):
    return JudgedSums(np.full(g.shape[:1] + g.shape[2:], float(g.shape[1])), g.sum(1), (g * g).sum(1))


def call(function, *arguments):
    return jax.device_get(jax.jit(function)(*arguments))


@pytest.fixture(scope="module")
def own():
    return labelled(Y, F)


@pytest.fixture(scope="module")
def test():
    return judged(G)


@pytest.fixture(scope="module")
def rates():
    """Of the first judge."""
    return Rates(*np.array([twins.judge_rates(y, f) for y, f in zip(Y, F[..., 0], strict=True)]).T)


def test_doubt_is_the_interval_of_j_and_the_labels(rates):
    found = call(judge_error.doubt, rates)
    z = twins.norm.ppf(0.9995)
    for s in range(STUDIES):
        q0, q1, m0, m1 = (x[s] for x in rates)
        a, b = (m0 * q0 + 1) / (m0 + 2), (m1 * q1 + 1) / (m1 + 2)
        error = np.sqrt(a * (1 - a) / (m0 + 2) + b * (1 - b) / (m1 + 2))
        expected = Doubt.OK if a + b - 1 > z * error else Doubt.NEAR_0
        expected = Doubt.FEW_OF_CLASS if min(m0, m1) < 5 else expected
        assert found[s] == (expected if a + b > 1 else Doubt.NO_SKILL)
    assert {Doubt.OK, Doubt.NEAR_0, Doubt.NO_SKILL} <= set(found.tolist())


def test_an_unused_test_item_needs_no_variance(own):
    """One score has none; with weight 0 the interval is that of the labels, with another it has no end."""
    one = JudgedSums(*(np.ones((STUDIES, 2)) for _ in range(3)))
    scores = np.array([False, False])
    weightless = call(judge_error.careful_ppi_variance, own, one, np.zeros((STUDIES, 2)), scores)
    np.testing.assert_allclose(weightless[:, 1], Y.var(1) / (N_CAL - 2))
    assert np.isinf(call(judge_error.careful_ppi_variance, own, one, np.ones((STUDIES, 2)), scores)).all()


def test_a_verdict_that_the_calibration_lacks():
    """Its mean label is unknown; where the test does not have it either, that does not matter."""
    for verdict in (0.0, 1.0):
        own = labelled(np.array([[1.0, 0.0, 1.0]]), np.full((1, 3), verdict))
        assert call(judge_error.by_verdict, own, np.array([verdict])) == pytest.approx(2 / 3)
        assert np.isnan(call(judge_error.by_verdict, own, np.array([0.5])))


def test_failures_have_reasons():
    y = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]], float)
    f = np.array([[0, 1, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1], [0, 1, 0, 1], [1, 1, 0, 1]], float)
    own = labelled(y, f)
    expected = [Doubt.OK, *[Doubt.NO_SKILL] * 2, *[Doubt.NO_CLASS] * 2]
    np.testing.assert_array_equal(call(judge_error.failure, own, np.full(5, 3.0)), expected)
    np.testing.assert_array_equal(call(judge_error.failure, own, np.zeros(5)), Doubt.NO_LABELS)
    nothing = LabelledSums(*np.zeros((6, 5)))
    np.testing.assert_array_equal(call(judge_error.failure, nothing, np.full(5, 3.0)), Doubt.NO_LABELS)


@pytest.mark.parametrize(("m0", "m1"), [(10, 30), (49, 21), (98, 49)])
def test_j_of_exactly_zero_is_no_skill(m0, m1):
    """As a sum of two quotients it may be a rounding above 0."""
    right = np.arange(m1 + 1)[np.arange(m1 + 1) * m0 % m1 == 0].astype(float)
    wrong = right * m0 / m1
    own = LabelledSums(m0 + m1 + 0 * right, m1 + 0 * right, right + wrong, right, right, right)
    np.testing.assert_array_equal(call(judge_error.failure, own, 5.0), Doubt.NO_SKILL)


def test_strata_add_up_by_their_share_of_the_test(own, test):
    """The studies are taken for strata (T, 1, J) with 0, 1, 2, 0, ... times their test items."""
    times = np.arange(STUDIES)[:, None] % 3
    own, parts = (type(sums)(*(x[:, None] for x in sums)) for sums in (own, test))
    parts = JudgedSums(*(times[..., None] * x for x in parts))
    each, shares = call(judge_error.by_stratum, own, parts, TWO_KINDS), judge_error.strata_shares(parts)
    for name in ("naive", "ppi_plus_plus", "eif"):
        expected = np.nansum(times[..., None] / times.sum() * getattr(each, name), 0)
        found = judge_error.add_strata(getattr(each, name), shares)
        np.testing.assert_allclose(found[:, 0], expected[:, 0], rtol=1e-12)


def test_bias_of_a_shared_calibration():
    """Appendix C of arXiv:2605.06939: Mistral Large on math; and by its definition."""
    own, shared = Rates(0.509, 0.888, 1, 1), Rates(0.569, 0.947, 1, 1)
    bias = float(judge_error.shared_calibration_bias(0.738, own, shared))
    assert bias == pytest.approx((0.738 * -0.119 + 0.060) / 0.516)
    assert round(bias, 3) == -0.054
    p = 0.738 * own.q1 + (1 - 0.738) * (1 - own.q0)
    assert bias == pytest.approx(twins.misclassification_adjusted(p, *shared[:2]) - 0.738)
