"""Accuracies from sums, against the same item by item."""

from types import SimpleNamespace

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
def verdicts():
    """Sums (STUDIES,) of the first judge alone, with what Rogan-Gladen needs of them."""
    own, test = labelled(Y, F[..., 0]), judged(G[..., 0])
    p = test.judgment / test.n
    rates = Rates(*np.array([twins.judge_rates(y, f) for y, f in zip(Y, F[..., 0], strict=True)]).T)
    return SimpleNamespace(own=own, test=test, p=p, rates=rates, j=rates.q0 + rates.q1 - 1)


def test_every_estimator_is_that_of_the_items(own, test):
    found = call(judge_error.by_stratum, own, test, TWO_KINDS)._asdict()
    for s in range(STUDIES):
        for j, binary in enumerate(TWO_KINDS):
            expected = twins.accuracies(Y[s], F[s, :, j], G[s, :, j], binary)
            for name, values in found.items():
                np.testing.assert_allclose(values[s, j], expected.get(name, np.nan), atol=1e-12, err_msg=name)


def test_rates_variances_and_weights_are_those_of_the_items(own, test, verdicts):
    np.testing.assert_allclose(call(judge_error.rates, verdicts.own), verdicts.rates, atol=1e-14)
    variance = call(judge_error.rogan_gladen_variance, verdicts.p, verdicts.test.n, verdicts.rates)
    expected = [
        twins.misclassification_variance(p, N_TEST, *r) for p, *r in zip(verdicts.p, *verdicts.rates, strict=True)
    ]
    np.testing.assert_allclose(variance, expected, rtol=1e-12)
    most = np.where(TWO_KINDS, 1.0, np.inf)
    weight = call(judge_error.ppi_weight, own, test, most)
    assert weight[:, 1].max() > 0
    spread = call(judge_error.ppi_variance, own, test, weight)
    for s in range(STUDIES):
        for j in range(2):
            rows = Y[s], F[s, :, j], G[s, :, j]
            assert weight[s, j] == pytest.approx(twins.ppi_lambda(*rows, most[j]), abs=1e-12)
            assert spread[s, j] == pytest.approx(twins.ppi_variance(*rows, weight[s, j]), rel=1e-10)


def test_interval_is_the_printed_code(verdicts):
    z = twins.norm.ppf(0.975)
    lower, upper = call(judge_error.rogan_gladen_interval, verdicts.p, verdicts.test.n, verdicts.rates, z)
    positive = call(judge_error.youden_j, verdicts.rates)[0] > 0
    assert not positive.all()
    for s in np.flatnonzero(positive):
        r = verdicts.rates
        expected = twins.misclassification_interval(verdicts.p[s], r.q0[s], r.q1[s], N_TEST, r.m0[s], r.m1[s])
        np.testing.assert_allclose([lower[s], upper[s]], expected, rtol=1e-12)


def test_doubt_is_the_interval_of_j_and_the_labels(verdicts):
    found = call(judge_error.doubt, verdicts.rates)
    z = twins.norm.ppf(0.9995)
    for s in range(STUDIES):
        q0, q1, m0, m1 = (x[s] for x in verdicts.rates)
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


def test_a_weight_of_one_over_j_is_rogan_gladen(verdicts):
    """Appendix A.2 of arXiv:2605.06939; for J < 0 too."""
    found = call(judge_error.ppi, verdicts.own, verdicts.test, 1 / verdicts.j)
    assert verdicts.j.min() < 0
    np.testing.assert_allclose(found, call(judge_error.rogan_gladen, verdicts.p, *verdicts.rates[:2]), rtol=1e-9)


def test_estimators_by_verdict_are_control_variates(verdicts):
    own, test = verdicts.own, verdicts.test
    share = call(judge_error.pooled_share, own, test)
    weights = {
        judge_error.eif_weight: (share, [1 + N_CAL / N_TEST] * STUDIES),
        judge_error.conditional_weight: (verdicts.p, [1] * STUDIES),
    }
    for function, (share, factor) in weights.items():
        weight = call(function, own, test)
        expected = [twins.moments(y, f) / twins.moments(f, f) for y, f in zip(Y, F[..., 0], strict=True)]
        np.testing.assert_allclose(weight, np.array(expected) / factor, atol=1e-12)
        by_verdict = call(judge_error.by_verdict, own, share)
        np.testing.assert_allclose(call(judge_error.ppi, own, test, weight), by_verdict, atol=1e-12)


def test_a_judge_who_never_varies_adds_nothing():
    y = Y[:2]
    for value in ([[0], [1]], [[0.1], [0.3]]):
        own, test = labelled(y, value + np.zeros((2, N_CAL))), judged(value + np.zeros((2, N_TEST)))
        np.testing.assert_array_equal(call(judge_error.ppi_weight, own, test, np.inf), 0)
        np.testing.assert_allclose(call(judge_error.eif_weight, own, test), 0, atol=1e-15)
        np.testing.assert_allclose(call(judge_error.conditional_weight, own, test), 0, atol=1e-15)
        np.testing.assert_allclose(call(judge_error.by_verdict, own, test.judgment / test.n), y.mean(1))


def test_estimators_by_verdict_take_averaged_runs_one_by_one():
    """Four runs an item: their means give what the runs give as items, and the weight agrees."""
    rng = np.random.default_rng(1)
    y = Y[:5]
    f = (rng.random((4, 5, N_CAL)) < 0.2 + 0.6 * y).astype(float)
    own, test = labelled(y, f.mean(0)), judged(G[:5, :, 0])
    share = test.judgment / test.n
    found = call(judge_error.by_verdict, own, share)
    for s in range(5):
        expected = twins.by_verdict(np.tile(y[s], 4), f[:, s].ravel(), G[s, :, 0])
        assert found[s] == pytest.approx(expected)
    weight = call(judge_error.conditional_weight, own, test)
    np.testing.assert_allclose(call(judge_error.ppi, own, test, weight), found, rtol=1e-12)


def test_a_verdict_that_the_calibration_lacks():
    """Its mean label is unknown; where the test does not have it either, that does not matter."""
    own = labelled(np.array([[1.0, 0.0, 1.0]]), np.ones((1, 3)))
    assert call(judge_error.by_verdict, own, np.array([1.0])) == pytest.approx(2 / 3)
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


def test_tables_6_and_7_of_the_same():
    assert round(float(judge_error.rogan_gladen(0.776, 0.509, 0.887)), 3) == 0.720
