"""PPI and PPI++ of a mean against the formulas item by item, and against the pooled form of ppi-python."""

import numpy as np
import pytest
import twins
from scipy.stats import norm

from jaxeval.accuracy.prediction_powered import ppi_plus_plus

MODELS, N_CAL, N_TEST = 6, 40, 70
RNG = np.random.default_rng(3)
Y = (RNG.random((MODELS, N_CAL)) < 0.6).astype(float)
SCORES = 0.8 * Y + RNG.random((MODELS, N_CAL)) * np.linspace(0.2, 3, MODELS)[:, None]
TEST_SCORES = 2 * RNG.random((MODELS, N_TEST))
# Two of the judges are contrary: their covariance with the labels is negative.
VERDICTS = np.where(RNG.random((MODELS, N_CAL)) < np.linspace(0.2, 0.95, MODELS)[:, None], Y, 1 - Y)
TEST_VERDICTS = (RNG.random((MODELS, N_TEST)) < 0.5).astype(float)
KINDS = {"verdicts": (VERDICTS, TEST_VERDICTS, 1.0), "scores": (SCORES, TEST_SCORES, np.inf)}


def assert_is(found, k, y, f, g, lam, level=0.95):
    verdicts = np.isin(f, (0, 1)).all()
    ends = twins.ppi_interval(y, f, g, lam, verdicts, level)
    values = [getattr(found, name)[k] for name in ("lam", "estimate", "lower", "upper")]
    np.testing.assert_allclose(values, [lam, twins.ppi_mean(y, f, g, lam), *ends], rtol=1e-9)
    z = norm.ppf((1 + level) / 2) if verdicts else twins.student.ppf((1 + level) / 2, len(y) - 2)
    assert found.standard_error[k] == pytest.approx((ends[1] - ends[0]) / (2 * z))


@pytest.mark.parametrize("kind", KINDS)
def test_lambda_and_interval(kind):
    f, g, most = KINDS[kind]
    found = ppi_plus_plus(Y, f, g)
    assert (found.n_calibration, found.n_test, found.level) == (N_CAL, N_TEST, 0.95)
    assert (found.status == "ok").all()
    for k in range(MODELS):
        assert_is(found, k, Y[k], f[k], g[k], twins.ppi_lambda(Y[k], f[k], g[k], most))
    assert found.lam.min() == 0 or kind == "scores"


def test_lambda_of_scores_may_exceed_one_and_that_of_verdicts_not():
    f, g = VERDICTS[-1], TEST_VERDICTS[-1]
    halved = ppi_plus_plus(Y[-1], f / 3, g / 3)
    assert halved.lam == pytest.approx(3 * ppi_plus_plus(Y[-1], f, g).lam)
    assert halved.lam > 1
    few = [1.0] + [0.0] * 99  # hardly any spread in the test: the minimum lies above 1
    assert ppi_plus_plus([0, 0, 1, 1], [0, 0, 1, 1], few).lam <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_pooled_variance_is_that_of_ppi_python(kind):
    """Cov_n(Y, F) / ((1 + n / N) Var_{N + n - 1}(both samples of F)), clipped; standard deviations with ddof=0."""
    f, g, _ = KINDS[kind]
    found = ppi_plus_plus(Y, f, g, level=0.9, pooled_variance=True)
    for k in range(MODELS):
        covariance = np.cov(Y[k], f[k], ddof=0)[0, 1]
        lam = np.clip(covariance / ((1 + N_CAL / N_TEST) * np.var([*f[k], *g[k]], ddof=1)), 0, 1)
        imputed, rectifier = (lam * g[k]).std() / np.sqrt(N_TEST), (Y[k] - lam * f[k]).std() / np.sqrt(N_CAL)
        half = norm.ppf(0.95) * np.hypot(imputed, rectifier)
        estimate = (lam * g[k]).mean() + (Y[k] - lam * f[k]).mean()
        np.testing.assert_allclose(
            [found.lam[k], found.lower[k], found.upper[k]],
            [lam, estimate - half, estimate + half],
            rtol=1e-9,
            atol=1e-14,
        )


@pytest.mark.parametrize("lam", [0.0, 0.4, 1.0, 1.7, -0.5])
def test_a_given_lambda_is_used_as_it_is(lam):
    found = ppi_plus_plus(Y, VERDICTS, TEST_VERDICTS, lam)
    for k in range(MODELS):
        assert_is(found, k, Y[k], VERDICTS[k], TEST_VERDICTS[k], lam)


def test_one_over_j_is_rogan_gladen_with_a_shared_calibration():
    """Appendix A.2 of arXiv:2605.06939, J < 0 included: calibration of the first model, test of all."""
    for c in range(MODELS):
        q0, q1, _, _ = twins.judge_rates(Y[c], VERDICTS[c])
        found = ppi_plus_plus(Y[c], VERDICTS[c], TEST_VERDICTS, 1 / (q0 + q1 - 1))
        expected = twins.misclassification_adjusted(TEST_VERDICTS.mean(1), q0, q1)
        np.testing.assert_allclose(found.estimate, expected, atol=1e-12)
    assert any(sum(twins.judge_rates(*rows)[:2]) < 1 for rows in zip(Y, VERDICTS, strict=True))


def test_leading_axes_broadcast():
    found = ppi_plus_plus(Y[0], np.stack([VERDICTS[0], VERDICTS[1]])[:, None], TEST_VERDICTS[:3])
    assert found.estimate.shape == found.status.shape == (2, 3)
    one = ppi_plus_plus(Y[0], VERDICTS[1], TEST_VERDICTS[2])
    assert isinstance(one.estimate, float)
    assert one.estimate == pytest.approx(found.estimate[1, 2])
    assert one.lower == pytest.approx(found.lower[1, 2])
    per_model = ppi_plus_plus(Y, VERDICTS, TEST_VERDICTS, np.linspace(0, 1, MODELS))
    np.testing.assert_array_equal(per_model.lam, np.linspace(0, 1, MODELS))


def test_scores_far_from_zero_and_labels_of_any_scale():
    plain = ppi_plus_plus(Y, SCORES, TEST_SCORES)
    moved = ppi_plus_plus(100 * Y - 7, SCORES + 1e6, TEST_SCORES + 1e6)
    np.testing.assert_allclose(moved.estimate, 100 * plain.estimate - 7, rtol=1e-6)
    np.testing.assert_allclose(moved.standard_error, 100 * plain.standard_error, rtol=1e-6)


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("value", [1.0, 0.1])
def test_judgments_that_do_not_vary_leave_the_labels(pooled, value):
    found = ppi_plus_plus([0, 1, 1], [value] * 3, [value] * 5, pooled_variance=pooled)
    assert (found.lam, found.status) == (0, "judgments do not vary")
    assert found.estimate == pytest.approx(2 / 3)
    assert ppi_plus_plus([0, 1, 1], [value] * 3, [value] * 5, 1.0).status == "ok"


@pytest.mark.parametrize(("arguments", "message"), [
    (([0, 1], [0, 1, 1], [1]), "as many calibration labels as judgments are needed, got 2 and 3"),
    (([0, np.nan], [0, 1], [1]), r"calibration_labels has 1 missing or infinite value \(first at index 1\)"),
    (([0, 1], [0, 1], [np.inf, 1]), r"test_judgments has 1 missing .* \(first at index 0\)"),
    (([0, 1], [0, 1], []), r"test_judgments needs items on its last axis, got shape \(0,\)"),
    (([0, 1], 1.0, [1]), r"calibration_judgments needs items on its last axis, got shape \(\)"),
    (([0, 1], ["yes", "no"], [1]),
     "calibration_judgments must be numbers, such as 1 for right and 0 for wrong: .* 'yes'"),
])  # fmt: skip
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        ppi_plus_plus(*arguments)


def test_wrong_level():
    with pytest.raises(ValueError, match="level must be between"):
        ppi_plus_plus([0, 1], [0, 1], [1], level=1.0)


def test_one_score_to_test_has_a_status_and_no_interval():
    """Its variance is not known: once an infinite interval was "ok"."""
    for labels, judgments, lam in (
        ([1, 0, 1], [0, 1, 0], None),  # lambda is 0
        ([1, 0, 1, 1], [0.9, 0.1, 0.7, 0.8], None),
        ([1, 0, 1, 1], [0.9, 0.1, 0.7, 0.8], 1.0),
    ):
        found = ppi_plus_plus(labels, judgments, [0.5], lam)
        assert found.status == "too few test items"
        assert np.isnan([found.lower, found.upper]).all()
        assert np.isfinite(found.estimate)
    unused = ppi_plus_plus([1, 0, 1, 1], [0.9, 0.1, 0.7, 0.8], [0.5], 0.0)
    assert unused.status == "ok"
    assert np.isfinite([unused.lower, unused.upper]).all()
    assert ppi_plus_plus([1, 0, 1], [0, 1, 0], [1]).status == "ok"  # a verdict, whose variance is bounded


@pytest.mark.parametrize(
    ("n", "theta", "q0", "q1"),
    [(10, 0.8, 0.9, 0.9), (20, 0.9, 0.9, 0.95), (40, 0.7, 0.95, 0.95), (50, 0.95, 0.95, 0.95), (100, 0.7, 0.7, 0.9)],
)
def test_intervals_cover_with_few_labels(n, theta, q0, q1):
    """Also those of judges who never erred on them; Wald's cover 0.57 to 0.94 here."""
    rng, repeats = np.random.default_rng(n), 1500
    y, z = (rng.random((repeats, size)) < theta for size in (n, 1000))
    f, g = (np.where(rng.random(x.shape) < np.where(x, q1, q0), x, ~x) for x in (y, z))
    found = ppi_plus_plus(y, f, g)
    covered = (found.lower <= theta) & (theta <= found.upper)
    assert covered.mean() > 0.95 - 5 * np.sqrt(0.95 * 0.05 / repeats)
    perfect = (y == f).all(1)
    if perfect.any():
        assert covered[perfect].mean() > 0.8  # where resamples cover one time in seven


def test_scores_have_students_interval():
    rng, repeats = np.random.default_rng(1), 4000
    y, z = rng.normal(size=(repeats, 8)), rng.normal(size=(repeats, 500))
    f, g = (x + 0.5 * rng.normal(size=x.shape) for x in (y, z))
    found = ppi_plus_plus(y, f, g)
    assert ((found.lower <= 0) & (found.upper >= 0)).mean() > 0.93  # lambda is estimated from the same eight


def test_labels_that_say_little_have_a_status():
    assert ppi_plus_plus([1, 1, 1], [1, 0, 1], [1, 0, 1]).status == "labels of one class"
    assert ppi_plus_plus([1, 1, 0], [0.2, 0.4, 0.1], [0.3, 0.5]).status == "ok"
    assert ppi_plus_plus([1, 0], [0.2, 0.4], [0.3, 0.5]).status == "too few labels"
    one = ppi_plus_plus([1], [1], [1, 0, 1])
    assert one.status == "too few labels"
    assert np.isnan([one.lower, one.upper]).all()
    with pytest.raises(ValueError, match="lam must be finite"):
        ppi_plus_plus([1, 0], [1, 0], [1, 0], lam=np.nan)
    with pytest.raises(ValueError, match="test_judgments has 1 missing"):
        ppi_plus_plus([1, 0], [1, 0], np.ma.masked_equal([1, 0, 7], 7))
