"""PPI and PPI++ of a mean: labels of a few items, judgments of many (DOI 10.1126/science.adi6000, arXiv:2311.01453)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from jaxeval.accuracy.statuses import NO_VARIATION, OK, ONE_CLASS, TOO_FEW_ITEMS, TOO_FEW_LABELS, UNBOUNDED
from jaxeval.execution.elementwise import scalar_or_array
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import JudgedSums, LabelledSums
from jaxeval.statistics.quantiles import checked_level

Float = NDArray[np.float64]


@dataclass(frozen=True)
class PredictionPowered:
    """A mean label with its normal interval; scalars, or arrays of the broadcast leading shape of the arguments.

    ``status`` is "ok"; "judgments do not vary" where lambda is 0 for want of any variation; "labels of one class" where
    all labels are equal, so that nothing is known of the judge's errors on others; "too few labels" (one, or two beside
    scores) and "too few test items" (one with a score, unless a lambda of 0 is given), which leave no variance to
    estimate: the ends of the interval are NaN. `STATUSES` has a sentence for each status.
    """

    estimate: Any
    lower: Any
    upper: Any
    status: Any
    lam: Any
    standard_error: Any
    n_calibration: int
    n_test: int
    level: float


def ppi_plus_plus(
    calibration_labels: ArrayLike,
    calibration_judgments: ArrayLike,
    test_judgments: ArrayLike,
    lam: ArrayLike | None = None,
    level: float = 0.95,
    *,
    pooled_variance: bool = False,
) -> PredictionPowered:
    """Mean label of the test items: mean(Y) + lambda (mean of test judgments - mean of calibration judgments).

    lambda = Cov(Y, F) / (Var_cal(F) + (n / N) Var_test(F)) minimises the variance. It is clipped to [0, 1] where all
    judgments are 0 or 1, and at 0 for scores; one that is given is used as it is: 0 is the mean label, 1 is PPI, and
    1 / J with a calibration of other models is Rogan-Gladen (arXiv:2605.06939, Appendix A.2).

    The interval allows for few labels: that of verdicts has one more labelled item in each of the four cells of label
    and verdict, and one more test item of each verdict, in its centre and its variance, as that of `rogan_gladen` has;
    that of scores has n - 2 and Student's quantile. A judge who never erred on a few labels is thus not taken for
    perfect.

    Args:
        calibration_labels: (..., n) labels of the calibration items, of any scale.
        calibration_judgments: (..., n) the judge's verdicts or scores of them; averages over runs of the judge.
        test_judgments: (..., N) of the test items. Leading axes broadcast: models, judges, slices.
        lam: the weight, if it is not to be estimated; broadcasts with the leading axes.
        level: confidence level.
        pooled_variance: do as the package ppi-python does: lambda from the variance (with N + n - 1) of both samples
            together, clipped to [0, 1], and variances divided by n, with the normal quantile.

    Raises:
        ValueError: values are missing or infinite, the two calibration arrays differ in length, or there is no item.
    """
    checked_level(level)
    y, f, g = (
        _items(x, name)
        for x, name in (
            (calibration_labels, "calibration_labels"),
            (calibration_judgments, "calibration_judgments"),
            (test_judgments, "test_judgments"),
        )
    )
    if y.shape[-1] != f.shape[-1]:
        raise ValueError(f"as many calibration labels as judgments are needed, got {y.shape[-1]:,} and {f.shape[-1]:,}")
    zero_one = np.all((f == 0) | (f == 1), -1) & np.all((g == 0) | (g == 1), -1)
    verdicts = zero_one & np.all((y == 0) | (y == 1), -1)
    with double_precision():
        given = None if lam is None else _weight(lam)
        found = jax.device_get(_kernel(y, f, g, zero_one, verdicts, pooled_variance, given))
    estimate, centre, variance, weight, spread = (np.asarray(x) for x in found)
    error = np.sqrt(variance)
    normal, n = scipy.special.ndtri((1 + level) / 2), y.shape[-1]
    z = np.where(verdicts | pooled_variance, normal, scipy.special.stdtrit(max(n - 2, 1), (1 + level) / 2))
    with np.errstate(invalid="ignore"):
        half = z * error
    scored = ~verdicts & (not pooled_variance)
    equal = np.broadcast_to(np.all(y == y[..., :1], -1), estimate.shape)
    status = np.select(
        [
            np.broadcast_to((n < 2) | ((n < 3) & scored), estimate.shape),
            # One score has no variance, which an estimated lambda needs and the interval of any lambda but 0.
            np.broadcast_to((g.shape[-1] < 2) & scored, estimate.shape) & ((lam is None) | (weight != 0)),
            equal,
            (spread == 0) & (lam is None),
        ],
        [TOO_FEW_LABELS, TOO_FEW_ITEMS, ONE_CLASS, NO_VARIATION],
        OK,
    )
    half = np.where(np.isin(status, UNBOUNDED), np.nan, half)
    return PredictionPowered(
        estimate=scalar_or_array(estimate),
        lower=scalar_or_array(centre - half),
        upper=scalar_or_array(centre + half),
        status=scalar_or_array(status),
        lam=scalar_or_array(weight),
        standard_error=scalar_or_array(error),
        n_calibration=y.shape[-1],
        n_test=g.shape[-1],
        level=level,
    )


def _weight(lam: ArrayLike) -> Float:
    weight = np.asarray(lam, np.float64)
    if not np.isfinite(weight).all():
        raise ValueError(f"lam must be finite, got {lam!r}")
    return weight


def _items(values: ArrayLike, name: str) -> Float:
    try:
        array = np.ma.filled(np.ma.asarray(values, np.float64), np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numeric: {error}") from error
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"{name} needs items on its last axis, got shape {array.shape}")
    bad = ~np.isfinite(array)
    if bad.any():
        raise ValueError(
            f"{name} has {bad.sum():,} missing or infinite values (first at {tuple(map(int, np.argwhere(bad)[0]))}); "
            "leave those items out, or say what they count as"
        )
    return array


def _sums(*columns: Any) -> Any:
    return [jnp.sum(column, -1) for column in columns]


@partial(jax.jit, static_argnames="pooled")
def _kernel(y: Any, f: Any, g: Any, zero_one: Any, verdicts: Any, pooled: bool, lam: Any) -> Any:
    careful = None if pooled else _careful(y, f, g)
    # Centred on the labelled judgments: sums of squares of scores far from 0 would cancel.
    centre_y, centre_f = jnp.mean(y, -1, keepdims=True), jnp.mean(f, -1, keepdims=True)
    y, f, g = y - centre_y, f - centre_f, g - centre_f
    n, n_test = jnp.float64(f.shape[-1]), jnp.float64(g.shape[-1])
    y, f = jnp.broadcast_arrays(y, f)
    labelled = LabelledSums(n, *_sums(y, f, y * f, f * f, y * y))
    test = JudgedSums(n_test, *_sums(g, g * g))
    moments = judge_error.slopes(labelled, test)
    spread = moments.labelled_variance + moments.test_variance
    if lam is not None:
        weight = lam + 0 * labelled.label
    elif pooled:
        total = n + n_test
        mean = (labelled.judgment + test.judgment) / total
        variance = (labelled.judgment_square + test.judgment_square - total * mean**2) / (total - 1)
        slope = moments.covariance / jnp.where(spread > 0, (1 + n / n_test) * variance, 1.0)
        weight = jnp.clip(jnp.where(spread > 0, slope, 0.0), 0.0, 1.0)
    else:
        weight = judge_error.ppi_weight(labelled, test, jnp.where(zero_one, 1.0, jnp.inf))
    estimate = centre_y[..., 0] + judge_error.ppi(labelled, test, weight)
    centre, variance = estimate, judge_error.ppi_variance(labelled, test, weight)
    if careful is not None:
        shift, variance = careful(weight, verdicts)
        centre = centre + shift
    return estimate, centre, variance, weight, spread


def _careful(y: Any, f: Any, g: Any) -> Any:
    """Shift of the interval's centre and its variance, of the weight and of whether all is 0 or 1."""
    y, f = jnp.broadcast_arrays(y, f)
    labelled = LabelledSums(jnp.float64(f.shape[-1]), *_sums(y, f, y * f, f * f, y * y))
    test = JudgedSums(jnp.float64(g.shape[-1]), *_sums(g, g * g))
    y, f, g = (x - x.mean(-1, keepdims=True) for x in (y, f, g))
    centred = LabelledSums(labelled.n, *_sums(y, f, y * f, f * f, y * y))
    centred_test = JudgedSums(test.n, *_sums(g, g * g))

    def of(weight: Any, verdicts: Any) -> Any:
        counted = judge_error.careful_ppi_variance(labelled, test, weight, jnp.array(True))
        scored = judge_error.careful_ppi_variance(centred, centred_test, weight, jnp.array(False))
        shift = judge_error.careful_ppi(labelled, test, weight, jnp.array(True)) - judge_error.ppi(
            labelled, test, weight
        )
        return jnp.where(verdicts, shift, 0.0), jnp.where(verdicts, counted, scored)

    return of
