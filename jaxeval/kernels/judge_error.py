"""Accuracies from a judge's verdicts, corrected by labelled items, as functions of sums over the items.

Every function takes arrays of any broadcastable shapes and returns what the formula gives, NaN or infinite where it
is not defined: `failure` says why. Y is the label, F the judgment; a judgment averaged over runs lies between 0 and 1.
References: Rogan and Gladen (1978); arXiv:2511.21140 (Table 2, Eq. 4 to 10: the equations named below are its own);
PPI++ (arXiv:2311.01453); the estimator by the efficient influence function (arXiv:2601.05420); arXiv:2605.06939
(Appendices A to C).
"""

from enum import IntEnum
from typing import Any, NamedTuple

from jaxeval.kernels.kinds import Bool, Int8, Real

Array = Any  # of JAX, or of NumPy: few numbers are not worth a program
AnyShape = Real[Array, "..."]
# They broadcast with the other arguments and the result.
Values = Real[Array, "*#items"]
Flags = Bool[Array, "*#items"]
Doubts = Int8[Array, "*#items"]


class Doubt(IntEnum):
    """Why an estimate is missing, or has no bounds; the larger number is the worse."""

    OK = 0  # it is neither
    NEAR_0 = 1  # the 99.9 % interval of J includes 0: the estimate has no bounds
    FEW_OF_CLASS = 2  # a class has fewer labels than `FEWEST_OF_CLASS`: the estimate has no bounds
    NO_LABELS = 3  # no item has a label, or no test item has a judgment
    NO_CLASS = 4  # all labels are of one class
    NO_SKILL = 5  # J <= 0
    NO_SUCH_VERDICT = 6  # a verdict of the test does not occur in the calibration


# See `doubt`.
FEWEST_OF_CLASS = 5
SURE_Z = 3.2905  # of 99.9 %, two-sided
_LEAST_J = 1e-12  # J this close to 0 is 0 with its rounding


class LabelledSums(NamedTuple):
    """Sums over the calibration items, which have labels."""

    n: AnyShape
    label: AnyShape  # sum of Y
    judgment: AnyShape  # of F
    product: AnyShape  # of Y F
    judgment_square: AnyShape  # of F^2
    label_square: AnyShape  # of Y^2


class JudgedSums(NamedTuple):
    """Sums over the test items, which have judgments only."""

    n: AnyShape
    judgment: AnyShape
    judgment_square: AnyShape


class Rates(NamedTuple):
    """How often the judge is right about items of each class."""

    q0: AnyShape  # specificity: mean of 1 - F where Y = 0
    q1: AnyShape  # sensitivity: mean of F where Y = 1
    m0: AnyShape  # items with Y = 0
    m1: AnyShape


def rates(labelled: LabelledSums) -> Rates:
    """Return specificity and sensitivity."""
    m1 = labelled.label
    m0 = labelled.n - m1
    passed = labelled.judgment - labelled.product
    # Sums of averaged runs leave rates a rounding error beyond 0 or 1.
    return Rates(((m0 - passed) / m0).clip(0, 1), (labelled.product / m1).clip(0, 1), m0, m1)


def rogan_gladen(p: Values, q0: Values, q1: Values) -> Values:
    """Return the accuracy from the judged share ``p``, not clipped (Eq. 5)."""
    return (p + q0 - 1) / (q0 + q1 - 1)


def rogan_gladen_variance(p: Values, n: Values, rates: Rates) -> Values:
    """Return the variance of `rogan_gladen` (Eq. 10)."""
    q0, q1, m0, m1 = rates
    theta = rogan_gladen(p, q0, q1)
    spread = p * (1 - p) / n + (1 - theta) ** 2 * q0 * (1 - q0) / m0 + theta**2 * q1 * (1 - q1) / m1
    return spread / (q0 + q1 - 1) ** 2


def adjusted_rates(rates: Rates) -> Rates:
    """Return rates with one more success and failure in each class (Eq. 7); infinitely many labels change nothing."""
    q0, q1, m0, m1 = rates
    return Rates(q0 + (1 - 2 * q0) / (m0 + 2), q1 + (1 - 2 * q1) / (m1 + 2), m0 + 2, m1 + 2)


def youden_j(rates: Rates) -> tuple[Values, Values]:
    """Return J of the adjusted rates, which centres its interval, and its variance (Agresti and Caffo 2000)."""
    q0, q1, m0, m1 = adjusted_rates(rates)
    return q0 + q1 - 1, q0 * (1 - q0) / m0 + q1 * (1 - q1) / m1


def doubt(rates: Rates) -> Doubts:
    """Return whether `rogan_gladen_interval` can be trusted: `Doubt` as int8 (OK, NEAR_0, FEW_OF_CLASS or NO_SKILL).

    J is near 0 where its 99.9 % interval includes 0. This limit was chosen by simulations of 2,000 test items, with 2
    to 500 labels of a class and judges of J = 0 to 0.96. A 95 % interval that is OK missed the truth in at most 11 of
    100 data sets, and in more than 8 of 100 at only one setting in a hundred. Two weaker limits were tried: with the
    95 % interval of J the interval missed in up to 17 of 100, with J > 0 alone in up to 43. Few labels of a class are
    worse than any J: with one label the interval missed in up to 98 of 100 data sets, with two in 95, with three in 24;
    five labels are about as good as ten.
    """
    xp = rates.q0.__array_namespace__()
    j, variance = youden_j(rates)
    return xp.select(
        [~(j > _LEAST_J), xp.minimum(rates.m0, rates.m1) < FEWEST_OF_CLASS, j <= SURE_Z * xp.sqrt(variance)],
        [xp.int8(code) for code in (Doubt.NO_SKILL, Doubt.FEW_OF_CLASS, Doubt.NEAR_0)],
        xp.int8(Doubt.OK),
    )


def rogan_gladen_interval(p: Values, n: Values, rates: Rates, z: Values) -> tuple[Values, Values]:
    """Return the ends of the interval of `rogan_gladen` (Eq. 6 to 8), centred on the adjusted estimate.

    ``n`` may be infinite. See DOI 10.1016/j.prevetmed.2013.09.015.
    """
    xp = p.__array_namespace__()
    adjusted = adjusted_rates(rates)
    q0, q1, m0, m1 = adjusted
    p = p + (0.5 - p) * (z**2 / (n + z**2))
    theta = rogan_gladen(p, q0, q1)
    shift = 2 * z**2 * (theta * q1 * (1 - q1) / m1 - (1 - theta) * q0 * (1 - q0) / m0)
    half = z * xp.sqrt(rogan_gladen_variance(p, n + z**2, adjusted))
    return theta + shift - half, theta + shift + half


def corrected(p: Values, n: Values, rates: Rates, z: Values) -> tuple[Values, Values, Values, Doubts]:
    """Return `rogan_gladen`, the ends of its interval, and the `doubt` about it."""
    return rogan_gladen(p, rates.q0, rates.q1), *rogan_gladen_interval(p, n, rates, z), doubt(rates)


def slopes(labelled: LabelledSums, test: JudgedSums) -> tuple[Values, Values, Values]:
    """Return the moments that choose the weight lambda of a control variate; they are divided by n, not n - 1.

    They are the covariance of Y and F among the labelled, and the variances of F among the labelled and in the test.
    """
    y, f = labelled.label / labelled.n, labelled.judgment / labelled.n
    g = test.judgment / test.n
    # Rounding must not leave a spread where all judgments are equal.
    return (
        labelled.product / labelled.n - y * f,
        _spread(labelled.judgment_square / labelled.n, f),
        _spread(test.judgment_square / test.n, g),
    )


def _spread(square: Values, mean: Values) -> Values:
    xp = square.__array_namespace__()
    variance = square - mean**2
    return xp.where(variance > 1e-13 * xp.abs(square), variance, 0.0)


def ppi_weight(labelled: LabelledSums, test: JudgedSums, most: Values) -> Values:
    """Return the variance-minimising lambda of PPI++, clipped to [0, ``most``]; 0 where no judgment varies."""
    xp = test.n.__array_namespace__()
    covariance, labelled_variance, test_variance = slopes(labelled, test)
    spread = labelled_variance + labelled.n / test.n * test_variance
    return xp.clip(xp.where(spread > 0, covariance / xp.where(spread > 0, spread, 1.0), 0.0), 0.0, most)


def eif_weight(labelled: LabelledSums, test: JudgedSums) -> Values:
    """Return the lambda at which PPI++ is the estimator by the efficient influence function (binary judgments)."""
    return conditional_weight(labelled, test) / (1 + labelled.n / test.n)


def conditional_weight(labelled: LabelledSums, test: JudgedSums) -> Values:
    """Give the lambda at which PPI++ is the conditional calibration estimator (binary); 0 where no judgment varies."""
    xp = test.n.__array_namespace__()
    # The variance of single verdicts, because `by_verdict` takes every run of an averaged judgment by itself.
    p = labelled.judgment / labelled.n
    spread = p * (1 - p)
    return xp.where(spread > 0, slopes(labelled, test)[0] / xp.where(spread > 0, spread, 1.0), 0.0)


class Weights(NamedTuple):
    """lambda by estimator."""

    calibration_only: AnyShape
    difference: AnyShape
    ppi_plus_plus: AnyShape
    conditional: AnyShape
    eif: AnyShape


def weights(labelled: LabelledSums, test: JudgedSums, binary: Flags) -> Weights:
    """Return the lambda at which PPI++ is each of the estimators; ``binary`` (J,) judges' verdicts are 0 or 1."""
    xp = test.n.__array_namespace__()
    estimated = _clipped_weight(labelled, test, binary)
    return Weights(
        xp.zeros_like(estimated), xp.ones_like(estimated), estimated, conditional_weight(labelled, test),
        eif_weight(labelled, test),
    )  # fmt: skip


def ppi(labelled: LabelledSums, test: JudgedSums, weight: Values) -> Values:
    """Give mean label corrected by ``weight`` (lambda) times the judge's shift: 1 is the difference estimator (PPI)."""
    return labelled.label / labelled.n + weight * (test.judgment / test.n - labelled.judgment / labelled.n)


def ppi_plus_plus(labelled: LabelledSums, test: JudgedSums, binary: Flags) -> Values:
    """Return `ppi` with the weight of PPI++."""
    return ppi(labelled, test, _clipped_weight(labelled, test, binary))


def _clipped_weight(labelled: LabelledSums, test: JudgedSums, binary: Flags) -> Values:
    """Return `ppi_weight`, which is at most 1 for verdicts."""
    xp = test.n.__array_namespace__()
    return ppi_weight(labelled, test, xp.where(binary, 1.0, xp.inf))


def ppi_variance(labelled: LabelledSums, test: JudgedSums, weight: Values) -> Values:
    """Return the variance of `ppi`: of lambda F among the test items, and of Y - lambda F among the labelled."""
    of_test, of_labelled = _spreads(labelled, test, weight)
    return of_test / test.n + of_labelled / labelled.n


def _spreads(labelled: LabelledSums, test: JudgedSums, weight: Values) -> tuple[Values, Values]:
    """Return variances of lambda F among the test items and of Y - lambda F among the labelled, divided by n."""
    xp = test.n.__array_namespace__()
    covariance, labelled_variance, test_variance = slopes(labelled, test)
    spread = _spread(labelled.label_square / labelled.n, labelled.label / labelled.n)
    residual = spread - 2 * weight * covariance + weight**2 * labelled_variance
    return weight**2 * test_variance, xp.maximum(residual, 0.0)


def careful_ppi_variance(labelled: LabelledSums, test: JudgedSums, weight: Values, binary: Flags) -> Values:
    """Return `ppi_variance` for few items: a judge that never erred on them is not taken for perfect.

    Verdicts: it is the variance with one more labelled item in each of the four cells of label and verdict, and one
    more test item of each verdict, as in the interval of Rogan-Gladen, if this is larger. Scores: it divides by N - 1
    (test) and n - 2 (labelled), because lambda is estimated.
    """
    xp = test.n.__array_namespace__()
    of_test, of_labelled = _spreads(labelled, test, weight)
    # Without weight the test items are not used: how many there are does not matter.
    judged = xp.where(weight == 0, 0.0, _over(of_test, test.n - 1))
    scores = judged + _over(of_labelled, labelled.n - 2)
    verdicts = xp.maximum(ppi_variance(*_with_more(labelled, test), weight), ppi_variance(labelled, test, weight))
    return xp.where(binary, verdicts, scores)


def careful_ppi(labelled: LabelledSums, test: JudgedSums, weight: Values, binary: Flags) -> Values:
    """Give the centre of the interval: for verdicts `ppi` with the same items added, as in Eq. 6; for scores `ppi`."""
    xp = test.n.__array_namespace__()
    return xp.where(binary, ppi(*_with_more(labelled, test), weight), ppi(labelled, test, weight))


def _with_more(labelled: LabelledSums, test: JudgedSums) -> tuple[LabelledSums, JudgedSums]:
    """Add one labelled item in each cell of label and verdict, and one test item of each verdict."""
    more = LabelledSums(*(x + k for x, k in zip(labelled, (4, 2, 2, 1, 2, 2), strict=True)))
    return more, JudgedSums(test.n + 2, test.judgment + 1, test.judgment_square + 1)


def careful_variances(labelled: LabelledSums, test: JudgedSums, binary: Flags) -> Weights:
    """Return `careful_ppi_variance` of each estimator that has a weight."""
    lambdas = weights(labelled, test, binary)
    return Weights(*(careful_ppi_variance(labelled, test, weight, binary) for weight in lambdas))


def careful_mean_label(
    centred: tuple[LabelledSums, JudgedSums], raw: tuple[LabelledSums, JudgedSums], weight: Values, verdicts: Flags
) -> tuple[Values, Values]:
    """Return how far the centre of the interval for few items is from `ppi`, and the variance of that interval.

    Sums are ``centred``: sums of squares of scores far from 0 would lose digits. Where all values are ``verdicts`` of 0
    and 1, the interval adds items to the ``raw`` sums.
    """
    xp = weight.__array_namespace__()
    shift = careful_ppi(*raw, weight, verdicts) - ppi(*raw, weight)
    counted, scored = (careful_ppi_variance(*sums, weight, verdicts) for sums in (raw, centred))
    return shift, xp.where(verdicts, counted, scored)


def _over(spread: Values, n: Values) -> Values:
    """Return ``spread`` / ``n``, infinite where there is no n to divide by."""
    xp = n.__array_namespace__()
    return xp.where(n > 0, spread / xp.where(n > 0, n, 1), xp.inf)


def by_verdict(labelled: LabelledSums, share: Values) -> Values:
    """Add up mean(Y | F = v) times the share of v over verdicts v; ``share`` is that of the verdict 1."""
    xp = share.__array_namespace__()
    right, wrong = labelled.judgment, labelled.n - labelled.judgment
    given_right = xp.where(share == 0, 0.0, share * labelled.product / right)
    given_wrong = xp.where(share == 1, 0.0, (1 - share) * (labelled.label - labelled.product) / wrong)
    return given_right + given_wrong


def pooled_share(labelled: LabelledSums, test: JudgedSums) -> Values:
    """Return mean judgment of test and labelled items together."""
    return (labelled.judgment + test.judgment) / (labelled.n + test.n)


def failure(labelled: LabelledSums, n_test: Values) -> Doubts:
    """Return why `rogan_gladen` with the rates of ``labelled`` is no estimate: `Doubt` as int8, OK where it is one."""
    xp = n_test.__array_namespace__()
    m1, m0 = labelled.label, labelled.n - labelled.label
    # J > 0 in whole numbers: as a sum of two quotients it may miss 0 by rounding.
    skill = labelled.product * m0 > (labelled.judgment - labelled.product) * m1 + _LEAST_J * m0 * m1
    return xp.select(
        [(labelled.n == 0) | (n_test == 0), (m0 <= 0) | (m1 <= 0), ~skill],
        [xp.int8(code) for code in (Doubt.NO_LABELS, Doubt.NO_CLASS, Doubt.NO_SKILL)],
        xp.int8(Doubt.OK),
    )


def doubt_of_sums(labelled: LabelledSums, n_test: Values) -> Doubts:
    """Return the `failure` or, where there is none, the `doubt` about the interval."""
    xp = n_test.__array_namespace__()
    failed = failure(labelled, n_test)
    return xp.where(failed == Doubt.OK, doubt(rates(labelled)), failed)


def shared_calibration_bias(theta: Values, of_model: Rates, shared: Rates) -> Values:
    """Return by how much Rogan-Gladen errs with another model's rates (arXiv:2605.06939, Appendix C)."""
    delta_j = (of_model.q0 + of_model.q1) - (shared.q0 + shared.q1)
    return (theta * delta_j - (of_model.q0 - shared.q0)) / (shared.q0 + shared.q1 - 1)


class Accuracies(NamedTuple):
    """One value per estimator; NaN where it is not defined. Not clipped."""

    naive: AnyShape
    calibration_only: AnyShape
    difference: AnyShape
    ppi_plus_plus: AnyShape
    conditional: AnyShape
    eif: AnyShape
    rogan_gladen: AnyShape


def by_stratum(labelled: LabelledSums, test: JudgedSums, binary: Flags) -> Accuracies:
    """Estimate (..., J) from sums (..., J) over labelled and test items; ``binary`` (J,) verdicts are 0 or 1."""
    xp = test.n.__array_namespace__()
    p = test.judgment / test.n
    return Accuracies(
        naive=p,
        calibration_only=labelled.label / labelled.n,
        difference=ppi(labelled, test, xp.ones_like(p)),
        ppi_plus_plus=ppi_plus_plus(labelled, test, binary),
        conditional=xp.where(binary, by_verdict(labelled, p), xp.nan),
        eif=xp.where(binary, by_verdict(labelled, pooled_share(labelled, test)), xp.nan),
        rogan_gladen=with_rates_of(labelled, test, binary),
    )


def small_sample_excess(labelled: LabelledSums, test: JudgedSums, binary: Flags) -> Accuracies:
    """Return by how much variances (..., J) of `by_stratum` grow when they allow for few items; never negative."""
    xp = test.n.__array_namespace__()
    p = test.judgment / test.n

    def excess(weight: Values) -> Values:
        return xp.maximum(
            careful_ppi_variance(labelled, test, weight, binary) - ppi_variance(labelled, test, weight), 0.0
        )

    more = (test.judgment + 1) / (test.n + 2)
    spread = _spread(test.judgment_square / test.n, p)
    careful = xp.where(binary, more * (1 - more) / (test.n + 2), _over(spread, test.n - 1))
    return Accuracies(
        naive=xp.maximum(careful - spread / test.n, 0.0),
        rogan_gladen=rates_excess(labelled, test),
        **{name: excess(weight) for name, weight in weights(labelled, test, binary)._asdict().items()},
    )


def small_sample_shift(labelled: LabelledSums, test: JudgedSums, binary: Flags) -> Accuracies:
    """Return by how much the centres (..., J) of intervals differ from the estimates of `by_stratum`."""
    xp = test.n.__array_namespace__()

    def shift(weight: Values) -> Values:
        return careful_ppi(labelled, test, weight, binary) - ppi(labelled, test, weight)

    naive = xp.where(binary, (test.judgment + 1) / (test.n + 2) - test.judgment / test.n, 0.0)
    return Accuracies(
        naive=naive,
        rogan_gladen=xp.zeros_like(naive),
        **{name: shift(weight) for name, weight in weights(labelled, test, binary)._asdict().items()},
    )


def rates_excess(labelled: LabelledSums, test: JudgedSums) -> Values:
    """Return by how much Rogan-Gladen's variance with the rates of ``labelled`` grows when it allows for few items."""
    xp = test.n.__array_namespace__()
    p = test.judgment / test.n
    measured = rates(labelled)
    more = rogan_gladen_variance((test.judgment + 1) / (test.n + 2), test.n + 2, adjusted_rates(measured))
    return xp.maximum(more - rogan_gladen_variance(p, test.n, measured), 0.0)


def interval_with_rates_of(labelled: LabelledSums, test: JudgedSums, z: Values) -> tuple[Values, Values]:
    """Return `rogan_gladen_interval` (..., J) with the rates of ``labelled``."""
    return rogan_gladen_interval(test.judgment / test.n, test.n, rates(labelled), z)


def with_rates_of(labelled: LabelledSums, test: JudgedSums, binary: Flags) -> Values:
    """Return Rogan-Gladen (..., J) with the rates of ``labelled``; NaN where there is a `failure`."""
    xp = test.n.__array_namespace__()
    q0, q1, _, _ = rates(labelled)
    defined = binary & (failure(labelled, test.n) == Doubt.OK)
    return xp.where(defined, rogan_gladen(test.judgment / test.n, q0, q1), xp.nan)


def strata_shares(test: JudgedSums) -> Real[Array, "*batch T M J"]:
    """Return shares of the strata in the test items, from sums (..., T, M, J); 0 without any."""
    xp = test.n.__array_namespace__()
    total = test.n.sum(-3, keepdims=True)
    return test.n / xp.where(total > 0, total, 1.0)


def add_strata(each: Real[Array, "*batch T #M #J"], shares: Real[Array, "*batch T M J"]) -> Real[Array, "*batch M J"]:
    """Add up estimates by stratum (..., T, M, J) to (..., M, J), weighted by the ``shares`` of the test items."""
    xp = each.__array_namespace__()
    return xp.where(shares > 0, shares * each, 0.0).sum(-3)
