"""PPI and PPI++ of a mean: labels of a few items, judgments of many (DOI 10.1126/science.adi6000, arXiv:2311.01453)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jaxeval.accuracy.statuses import UNBOUNDED, EstimateStatus, in_words
from jaxeval.arrays import Bool, Float, Numbers, Words
from jaxeval.checks import scalars_or_arrays
from jaxeval.execution.host import evaluate
from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import JudgedSums, LabelledSums
from jaxeval.show.shown import Result
from jaxeval.statistics import special
from jaxeval.statistics.quantiles import normal_quantile
from jaxeval.wording import counted


@dataclass(frozen=True, repr=False)
class PredictionPowered(Result):
    """A mean label with its interval: scalars, or arrays of the broadcast leading shape of the arguments.

    ``status`` is one of these; `STATUSES` has a sentence for each.

    * "ok";
    * "judgments do not vary": lambda cannot be estimated, and is 0;
    * "labels of one class": all labels are equal, so nothing is known of the judge's errors on others;
    * "too few labels": there is one label, or there are two and the judge gives scores. "too few test items": there is
      one, with a score, and lambda is not given as 0. In both cases no variance can be estimated, and the ends of the
      interval are NaN.
    """

    estimate: Numbers
    lower: Numbers
    upper: Numbers
    status: Words
    lam: Numbers
    standard_error: Numbers
    n_calibration: int
    n_test: int
    level: float

    def _sentences(self) -> list[str]:
        return in_words("mean label", self) or list(super()._sentences())


def ppi_plus_plus(
    calibration_labels: ArrayLike,
    calibration_judgments: ArrayLike,
    test_judgments: ArrayLike,
    lam: ArrayLike | None = None,
    level: float = 0.95,
    *,
    pooled_variance: bool = False,
) -> PredictionPowered:
    """Return mean label of the test items: mean(Y) + lambda (mean of test judgments - mean of calibration judgments).

    lambda = Cov(Y, F) / (Var_cal(F) + (n / N) Var_test(F)) minimises the variance. It is clipped to [0, 1] where all
    judgments are 0 or 1, and at 0 for scores. A lambda that is given is used as it is: 0 is the mean label, 1 is PPI,
    and 1 / J with a calibration of other models is Rogan-Gladen (arXiv:2605.06939, Appendix A.2).

    The interval allows for few labels: a judge who never erred on them is not taken for perfect. For verdicts, centre
    and variance of the interval have one more labelled item in each of the four cells of label and verdict, and one
    more test item of each verdict, as in `rogan_gladen`. For scores, the interval has n - 2 degrees of freedom and
    Student's quantile.

    Args:
        calibration_labels: (..., n) labels of the calibration items, of any scale.
        calibration_judgments: (..., n) the judge's verdicts or scores of these items, or averages over its runs.
        test_judgments: (..., N) the same of the test items. Leading axes broadcast: models, judges, slices.
        lam: the weight lambda; broadcasts with the leading axes. By default it is estimated.
        level: confidence level.
        pooled_variance: do as the package ppi-python does. lambda then uses the variance of both samples together
            (with N + n - 1) and is clipped to [0, 1]; variances are divided by n, and the quantile is normal.

    Raises:
        ValueError: values are missing or infinite, the two calibration arrays differ in length, or there is no item.

    Examples:
        >>> import numpy as np
        >>> labels, judgments = np.array([1, 1, 1, 0, 0] * 8), np.array([1, 1, 0, 0, 0] * 8)
        >>> found = ppi_plus_plus(labels, judgments, test_judgments=np.array([1, 0] * 300))
        >>> print(f"{found.estimate:.3f} [{found.lower:.3f}, {found.upper:.3f}], lambda {found.lam:.2f}")
        0.662 [0.528, 0.767], lambda 0.62
    """
    z = normal_quantile(level)
    y, f = _items(calibration_labels, "calibration_labels"), _items(calibration_judgments, "calibration_judgments")
    g = _items(test_judgments, "test_judgments")
    if y.shape[-1] != f.shape[-1]:
        raise ValueError(f"as many calibration labels as judgments are needed, got {y.shape[-1]:,} and {f.shape[-1]:,}")
    zero_one = np.all((f == 0) | (f == 1), -1) & np.all((g == 0) | (g == 1), -1)
    verdicts = zero_one & np.all((y == 0) | (y == 1), -1)
    origin_y, origin_f = y.mean(-1, keepdims=True), f.mean(-1, keepdims=True)
    centred = _sums(y - origin_y, f - origin_f, g - origin_f)
    if lam is not None:
        weight = np.asarray(lam, np.float64) + np.zeros_like(centred[0].label)
        if not np.isfinite(weight).all():
            raise ValueError(f"lam must be finite, got {lam!r}")
    elif pooled_variance:
        weight = _pooled_weight(*centred)
    else:
        weight = evaluate(judge_error.ppi_weight, *centred, np.where(zero_one, 1.0, np.inf))
    estimate = origin_y[..., 0] + evaluate(judge_error.ppi, *centred, weight)
    if pooled_variance:
        shift, variance = 0.0, evaluate(judge_error.ppi_variance, *centred, weight)
    else:
        shift, variance = evaluate(judge_error.careful_mean_label, centred, _sums(y, f, g), weight, verdicts)
    centre, error = estimate + shift, np.sqrt(variance)
    n, scored = y.shape[-1], ~verdicts & (not pooled_variance)
    quantile = np.where(scored, special.stdtrit(max(n - 2, 1), (1 + level) / 2), z)
    with np.errstate(invalid="ignore"):
        half = quantile * error
    doubts = {
        EstimateStatus.TOO_FEW_LABELS: (n < 2) | ((n < 3) & scored),
        # One score has no variance, which an estimated lambda needs and the interval of any lambda but 0.
        EstimateStatus.TOO_FEW_ITEMS: (g.shape[-1] < 2) & scored & ((lam is None) | (weight != 0)),
        EstimateStatus.ONE_CLASS: _all_equal(y),
        EstimateStatus.NO_VARIATION: _all_equal(f) & _all_equal(g) & (lam is None),
    }
    applies = [np.broadcast_to(x, estimate.shape) for x in doubts.values()]
    status = np.select(applies, list(doubts), EstimateStatus.OK)
    half = np.where(np.isin(status, UNBOUNDED), np.nan, half)
    numbers = scalars_or_arrays(
        estimate=estimate, lower=centre - half, upper=centre + half, status=status, lam=weight, standard_error=error
    )
    return PredictionPowered(**numbers, n_calibration=y.shape[-1], n_test=g.shape[-1], level=level)


def _sums(y: Float, f: Float, g: Float) -> tuple[LabelledSums, JudgedSums]:
    y, f = np.broadcast_arrays(y, f)
    labelled = LabelledSums(np.float64(y.shape[-1]), *(x.sum(-1) for x in (y, f, y * f, f * f, y * y)))
    return labelled, JudgedSums(np.float64(g.shape[-1]), g.sum(-1), (g * g).sum(-1))


def _pooled_weight(labelled: LabelledSums, test: JudgedSums) -> Float:
    """Return the weight lambda as the package ppi-python computes it; sums are centred on the calibration."""
    n, n_test = labelled.n, test.n
    mean = (labelled.judgment + test.judgment) / (n + n_test)
    square = labelled.judgment_square + test.judgment_square
    variance = (square - (n + n_test) * mean**2) / (n + n_test - 1)
    slope = labelled.product / n / np.where(variance > 0, (1 + n / n_test) * variance, 1.0)
    return np.asarray(np.clip(np.where(variance > 0, slope, 0.0), 0.0, 1.0))


def _all_equal(x: Float) -> Bool:
    return np.all(x == x[..., :1], -1)


def _items(values: ArrayLike, name: str) -> Float:
    try:
        array = np.ma.filled(np.ma.asarray(values, np.float64), np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, such as 1 for right and 0 for wrong: {error}") from error
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"{name} needs items on its last axis, got shape {array.shape}")
    bad = ~np.isfinite(array)
    if bad.any():
        place = ", ".join(f"{k:,}" for k in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} has {counted(bad.sum(), 'missing or infinite value')} (first at index {place}); leave those "
            "items out, or say what they count as"
        )
    return array
