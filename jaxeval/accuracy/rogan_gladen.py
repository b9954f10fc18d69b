"""Correct a judge's shares by its confusion matrix: accuracies (Rogan and Gladen 1978), and shares of K classes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxeval.accuracy.statuses import HAVE_NUMBERS, UNBOUNDED, EstimateStatus, in_words
from jaxeval.arrays import Float, Numbers, Words
from jaxeval.checks import broadcast, checked_integer, require, require_share, scalars_or_arrays
from jaxeval.errors import DataError
from jaxeval.execution.host import evaluate
from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import Doubt, Rates
from jaxeval.lazy_names import pd
from jaxeval.show.shown import Result
from jaxeval.statistics.quantiles import bounds_with_failures, checked_level, normal_quantile, wilson
from jaxeval.wording import counted

_LARGEST_CONDITION = 1e12


@dataclass(frozen=True, eq=False, repr=False)
class ClassShares(Result):
    """Corrected shares of the K classes.

    ``table`` has a row per class: ``judged`` (the judge's raw share), ``estimate``, ``lower`` and ``upper`` (truncated
    to [0, 1]), ``boot_lower`` and ``boot_upper``, ``unclipped``, ``standard_error``, ``labels``.

    ``status`` is "ok", or one of these (`STATUSES` has a sentence for each):

    * "clipped": some share left [0, 1]. Estimates are then the nearest point of the simplex;
    * "few labels of a class" (fewer than 5), or "J near 0" (two classes, as in `rogan_gladen`): the intervals are
      [0, 1];
    * "singular confusion matrix", "J <= 0" (two classes), or "a class has no label": estimates are NaN.
    """

    table: pd.DataFrame
    confusion: pd.DataFrame  # P(judged row | labelled column)
    covariance: pd.DataFrame  # of the unclipped shares
    status: str
    condition: float  # condition number of the confusion matrix, by which errors may grow
    failed_share: float  # of resamples without an inverse
    level: float


def class_shares(
    calibration_labels: ArrayLike,
    calibration_judgments: ArrayLike,
    test_judgments: ArrayLike,
    classes: Sequence[Hashable] | None = None,
    level: float = 0.95,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
) -> ClassShares:
    """Return shares of the classes among the test items: the inverse confusion matrix times the judged shares.

    This is the multi-class form of `rogan_gladen` (arXiv:2511.21140, estimator (v) of Table 2 and section 9). It is
    valid while P(judgment | label) is that of the calibration, whatever the shares of the labels there. Errors are by
    the delta method: judged shares and every column of the confusion matrix are multinomial. Each cell has one
    observation more, so that errors never seen on a few labels are not taken for impossible.

    Args:
        calibration_labels: (n,) labels.
        calibration_judgments: (n,) the judge's verdicts of the same items.
        test_judgments: (N,) the judge's verdicts of the test items.
        classes: order of the classes; by default sorted. Verdicts may not be of other classes.
        level: confidence level of the intervals.
        n_resamples: number of resamples of calibration and test items, for ``boot_lower`` and ``boot_upper``. Those
            whose confusion matrix cannot be inverted enter as 0 and as 1.
        seed: of the resamples.

    Raises:
        TypeError: ``n_resamples`` or ``seed`` is no integer.
        ValueError: a number is out of range, or classes repeat.
        DataError: values are missing, of several types, or of no class.

    Examples:
        >>> labels = ["win"] * 50 + ["tie"] * 20 + ["loss"] * 30
        >>> verdicts = ["win"] * 45 + ["tie"] * 5 + ["tie"] * 15 + ["win"] * 5 + ["loss"] * 30
        >>> found = class_shares(labels, verdicts, ["win"] * 600 + ["tie"] * 200 + ["loss"] * 200)
        >>> found.table["estimate"].round(3).to_dict(), found.status
        ({'loss': 0.2, 'tie': 0.185, 'win': 0.615}, 'ok')
    """
    checked_level(level)
    checked_integer("n_resamples", n_resamples, 2)
    checked_integer("seed", seed)
    samples = {
        "calibration_labels": _values(calibration_labels, "calibration_labels"),
        "calibration_judgments": _values(calibration_judgments, "calibration_judgments"),
        "test_judgments": _values(test_judgments, "test_judgments"),
    }
    y, f = samples["calibration_labels"], samples["calibration_judgments"]
    if len(y) != len(f):
        raise DataError(f"as many calibration labels as judgments are needed, got {len(y):,} and {len(f):,}")
    index = _classes(samples, classes)
    codes = {name: index.get_indexer(values) for name, values in samples.items()}
    for name, code in codes.items():
        if (code < 0).any():
            other = samples[name][code < 0].value_counts().head(5)
            shown = ", ".join(f"{value!r} ({count:,})" for value, count in other.items())
            raise DataError(
                f"{name}: {shown} are none of the classes {', '.join(map(repr, index))}; name them in classes=, or "
                "leave those items out"
            )
    k = len(index)
    counts = np.zeros((k, k))
    np.add.at(counts, (codes["calibration_judgments"], codes["calibration_labels"]), 1.0)
    judged = np.bincount(codes["test_judgments"], minlength=k).astype(float)
    return _result(counts, judged, index, level, n_resamples, seed)


def corrected_shares(counts: ArrayLike, judged: ArrayLike) -> tuple[Float, Float, NDArray[np.str_]]:
    """Return unclipped shares (..., K), covariances (..., K, K) and statuses (...), for batches of judges or models.

    Calibration items are counted by judged class (row) and labelled class (column), test items by judged class.
    """
    table, test = np.asarray(counts, float), np.asarray(judged, float)
    k = table.shape[-1]
    labels, n = table.sum(-2), test.sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        confusion = table / labels[..., None, :]
        p = test / n[..., None]
    no_class = (labels == 0).any(-1) | (n == 0)
    safe = np.where(no_class[..., None, None], np.eye(k), np.nan_to_num(confusion))
    singular = ~(np.linalg.cond(safe) < _LARGEST_CONDITION)
    # With two classes J = det; a judge that knows nothing, or the opposite, corrects nothing.
    no_skill = (np.linalg.det(safe) <= 1e-12) if k == 2 else np.zeros(singular.shape, bool)
    bad = no_class | singular | no_skill
    inverse = np.linalg.inv(np.where(bad[..., None, None], np.eye(k), safe))
    shares = np.einsum("...ij,...j->...i", inverse, np.nan_to_num(p))
    # Variances with one observation more in each cell.
    more, more_labels = (table + 1) / (labels + k)[..., None, :], labels + k
    more_p, more_n = (test + 1) / (n + k)[..., None], n + k
    spread = (_diagonal(more_p) - more_p[..., :, None] * more_p[..., None, :]) / more_n[..., None, None]
    for c in range(k):
        column = more[..., :, c]
        of_column = _diagonal(column) - column[..., :, None] * column[..., None, :]
        spread = spread + (shares[..., c] ** 2 / more_labels[..., c])[..., None, None] * of_column
    covariance = inverse @ spread @ np.swapaxes(inverse, -1, -2)
    outside = ((shares < -1e-12) | (shares > 1 + 1e-12)).any(-1)
    few = (labels < judge_error.FEWEST_OF_CLASS).any(-1)
    near_0 = np.zeros(few.shape, bool)
    if k == 2:
        rates = judge_error.Rates(safe[..., 0, 0], safe[..., 1, 1], labels[..., 0], labels[..., 1])
        j, variance = judge_error.youden_j(rates)
        near_0 = j <= judge_error.SURE_Z * np.sqrt(variance)
    conditions = {
        EstimateStatus.CLASS_WITHOUT_LABEL: no_class,
        EstimateStatus.NO_SKILL: no_skill,
        EstimateStatus.SINGULAR: singular,
        EstimateStatus.FEW_OF_CLASS: few,
        EstimateStatus.NEAR_0: near_0,
        EstimateStatus.CLIPPED: outside,
    }
    status = np.select(list(conditions.values()), list(conditions), EstimateStatus.OK)
    return np.where(bad[..., None], np.nan, shares), np.where(bad[..., None, None], np.nan, covariance), status


def _diagonal(p: Float) -> Float:
    return p[..., :, None] * np.eye(p.shape[-1])


def _values(values: ArrayLike, name: str) -> pd.Series:
    series = values.reset_index(drop=True) if isinstance(values, pd.Series) else pd.Series(list(values))  # type: ignore[arg-type]
    if len(series) == 0:
        raise DataError(f"{name} is empty")
    if series.isna().any():
        raise DataError(
            f"{name}: {series.isna().sum():,} of {counted(len(series), 'value is', 'values are')} missing (first at "
            f"index {int(series.isna().argmax()):,}); leave those items out, or give them a class of their own"
        )
    return series


def _classes(samples: dict[str, pd.Series], classes: Sequence[Hashable] | None) -> pd.Index:
    if classes is not None:
        index = pd.Index(list(classes), name="class")
        if index.has_duplicates:
            raise ValueError(f"classes repeat: {', '.join(map(repr, index[index.duplicated()]))}")
        return index
    try:
        return pd.Index(sorted(set().union(*samples.values())), name="class")
    except TypeError as error:
        kinds = {name: sorted({type(v).__name__ for v in values}) for name, values in samples.items()}
        types = "; ".join(f"{name} of {' and '.join(names)}" for name, names in kinds.items())
        raise DataError(f"labels and judgments are of different types ({types}): make them one type") from error


def _result(counts: Float, judged: Float, index: pd.Index, level: float, n_resamples: int, seed: int) -> ClassShares:
    z = normal_quantile(level)
    shares, covariance, status_word = corrected_shares(counts, judged)
    status, labels = str(status_word), counts.sum(0)
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    rng, n, m = np.random.default_rng(seed), int(judged.sum()), int(counts.sum())
    drawn = rng.multinomial(m, counts.reshape(-1) / m, n_resamples).reshape(-1, *counts.shape)
    draws, _, _ = corrected_shares(drawn, rng.multinomial(n, judged / n, n_resamples))
    _, boot_lower, boot_upper, failed = bounds_with_failures(np.clip(draws, 0, 1), level, 0.0, 1.0)
    there, unbounded = status in HAVE_NUMBERS, status in UNBOUNDED
    with np.errstate(invalid="ignore", divide="ignore"):
        confusion = counts / labels
    table = pd.DataFrame(
        {
            "judged": judged / n,
            "estimate": _nearest_shares(shares) if there and ((shares < 0) | (shares > 1)).any() else shares,
            "lower": np.zeros(len(shares)) if unbounded else np.clip(shares - z * error, 0, 1),
            "upper": np.ones(len(shares)) if unbounded else np.clip(shares + z * error, 0, 1),
            "boot_lower": np.where(there, boot_lower, np.nan),
            "boot_upper": np.where(there, boot_upper, np.nan),
            "unclipped": shares,
            "standard_error": error,
            "labels": labels.astype(int),
        },
        index=index,
    )
    return ClassShares(
        table=table,
        confusion=pd.DataFrame(confusion, index.rename("judged"), index.rename("labelled")),
        covariance=pd.DataFrame(covariance, index, index),
        status=status,
        condition=float(np.linalg.cond(confusion)) if (labels > 0).all() else np.inf,
        failed_share=float(failed.max()),
        level=level,
    )


def _nearest_shares(values: Float) -> Float:
    """Return the nearest point of the simplex (Held, Wolfe and Crowder 1974, DOI 10.1007/BF01580223)."""
    ordered = np.sort(values)[::-1]
    surplus = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    return np.maximum(values - surplus[np.flatnonzero(ordered > surplus)[-1]], 0.0)


#: An estimate this far outside of [0, 1] is on its edge, and a J this close to 0 is 0 with its rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, repr=False)
class RoganGladen(Result):
    """Corrected accuracy: scalars, or arrays of the broadcast shape of the arguments.

    ``status`` is one of these; `STATUSES` has a sentence for each.

    * "ok"; "clipped": the estimate left [0, 1]; "outside": the whole interval did, so the rates do not allow ``p``;
    * "few labels of a class": m0 or m1 is below 5; "J near 0": the 99.9 % interval of J includes 0. Then nothing bounds
      the estimate: the interval is [0, 1], its untruncated ends are infinite. `judge_error.doubt` explains the limits;
    * "J <= 0": the judge is no better than chance, before or after the adjustment of the interval; "labels of one class
      only": m0 or m1 is 0. Then all numbers are NaN.
    """

    estimate: Numbers  # in [0, 1]
    lower: Numbers  # truncated to [0, 1]
    upper: Numbers
    status: Words
    lower_untruncated: Numbers
    upper_untruncated: Numbers
    j: Numbers  # q0 + q1 - 1
    level: float

    def _sentences(self) -> list[str]:
        return in_words("accuracy", self) or list(super()._sentences())


def rogan_gladen(
    p: ArrayLike, q0: ArrayLike, q1: ArrayLike, n: ArrayLike, m0: ArrayLike, m1: ArrayLike, level: float = 0.95
) -> RoganGladen:
    """Return the accuracy (p + q0 - 1) / (q0 + q1 - 1) with its interval (arXiv:2511.21140, Eq. 5 to 8).

    The interval is that of Lang and Reiczigel (DOI 10.1016/j.prevetmed.2013.09.015). It adjusts all three proportions:
    it adds z^2/2 successes among z^2 items to p, and 1 success among 2 labels to q0 and to q1. Only its ends are
    clipped.

    Args:
        p: share of test items that the judge called right.
        q0: specificity: the share of wrong calibration items that the judge called wrong. It may be NaN where m0 is 0.
        q1: sensitivity: the share of right calibration items that the judge called right. It may be NaN where m1 is 0.
        n: number of test items; infinite where p is known.
        m0: number of calibration items labelled wrong.
        m1: number of calibration items labelled right.
        level: confidence level.

    Raises:
        ValueError: an argument is out of range, or the shapes do not broadcast.

    Examples:
        The judge calls 60 % of 1,000 answers right. On 200 labelled answers it recognised 80 % of the wrong and 90 %
        of the right ones.

        >>> found = rogan_gladen(0.6, q0=0.8, q1=0.9, n=1000, m0=100, m1=100)
        >>> print(f"{found.estimate:.3f} [{found.lower:.3f}, {found.upper:.3f}], {found.status}")
        0.571 [0.490, 0.655], ok
    """
    z = normal_quantile(level)
    arrays = broadcast(p=p, q0=q0, q1=q1, n=n, m0=m0, m1=m1)
    require_share(arrays, "p")
    require(arrays, "n", arrays["n"] > 0, "be positive")
    rates = _checked_rates(arrays)
    raw, lower, upper, doubt = evaluate(judge_error.corrected, arrays["p"], arrays["n"], rates, z)
    with np.errstate(invalid="ignore"):
        j = rates.q0 + rates.q1 - 1
    one_class = (rates.m0 == 0) | (rates.m1 == 0)
    undefined = one_class | ~(j > ROUNDING) | (doubt == Doubt.NO_SKILL)
    unbounded = ~undefined & (doubt != Doubt.OK)
    conditions = {
        EstimateStatus.NO_CLASS: one_class,
        EstimateStatus.NO_SKILL: undefined,
        EstimateStatus.FEW_OF_CLASS: doubt == Doubt.FEW_OF_CLASS,
        EstimateStatus.NEAR_0: unbounded,
        EstimateStatus.OUTSIDE: (upper < 0) | (lower > 1),
        EstimateStatus.CLIPPED: (raw < -ROUNDING) | (raw > 1 + ROUNDING),
    }
    status = np.select(list(conditions.values()), list(conditions), EstimateStatus.OK)
    lower, upper = np.where(unbounded, -np.inf, lower), np.where(unbounded, np.inf, upper)
    estimate, lower, upper = (np.where(undefined, np.nan, x) for x in (raw, lower, upper))
    estimate, *ends = (np.clip(x, 0, 1) for x in (estimate, lower, upper))
    numbers = scalars_or_arrays(
        estimate=estimate, lower=ends[0], upper=ends[1], status=status, lower_untruncated=lower,
        upper_untruncated=upper, j=np.where(one_class, np.nan, j),
    )  # fmt: skip
    return RoganGladen(**numbers, level=level)


def _checked_rates(arrays: Mapping[str, Float]) -> Rates:
    for rate, count in (("q0", "m0"), ("q1", "m1")):
        require(arrays, count, arrays[count] >= 0, "not be negative")
        require(arrays, rate, (arrays[count] == 0) | ((arrays[rate] >= 0) & (arrays[rate] <= 1)), "lie in [0, 1]")
    return Rates(q0=arrays["q0"], q1=arrays["q1"], m0=arrays["m0"], m1=arrays["m1"])


@dataclass(frozen=True, repr=False)
class YoudenJ(Result):
    """How much a judge knows: J = q0 + q1 - 1 is 1 for a perfect judge and 0 for one that guesses."""

    estimate: Numbers
    lower: Numbers
    upper: Numbers
    status: Words  # "ok", "J <= 0", "includes 0" (the interval does), "labels of one class only" (numbers are NaN)
    q0_lower: Numbers
    q0_upper: Numbers
    q1_lower: Numbers
    q1_upper: Numbers
    level: float

    def _sentences(self) -> list[str]:
        return in_words("J is", self) or list(super()._sentences())


def youden_j(q0: ArrayLike, q1: ArrayLike, m0: ArrayLike, m1: ArrayLike, level: float = 0.95) -> YoudenJ:
    """Return Youden's J with Agresti and Caffo's interval (DOI 10.1080/00031305.2000.10474560), rates with Wilson's.

    The interval of J adds one success and one failure to each class, as that of `rogan_gladen` does. A judge who never
    erred on a few labels is thus not taken for perfect.

    Args:
        q0: specificity among the ``m0`` labels that are wrong.
        q1: sensitivity among the ``m1`` labels that are right.
        m0, m1, level: as in `rogan_gladen`.

    Raises:
        ValueError: an argument is out of range, or the shapes do not broadcast.

    Examples:
        >>> found = youden_j(q0=0.8, q1=0.9, m0=100, m1=100)
        >>> print(f"{found.estimate:.2f} [{found.lower:.2f}, {found.upper:.2f}], {found.status}")
        0.70 [0.59, 0.79], ok
    """
    z = normal_quantile(level)
    rates = _checked_rates(broadcast(q0=q0, q1=q1, m0=m0, m1=m1))
    j = rates.q0 + rates.q1 - 1
    centre, variance = judge_error.youden_j(rates)
    one_class = (rates.m0 == 0) | (rates.m1 == 0)
    lower, upper = np.maximum(centre - z * np.sqrt(variance), -1), np.minimum(centre + z * np.sqrt(variance), 1)
    reasons = [EstimateStatus.NO_CLASS, EstimateStatus.NO_SKILL, EstimateStatus.INCLUDES_0]
    status = np.select([one_class, ~(j > ROUNDING), lower <= 0], reasons, EstimateStatus.OK)
    with np.errstate(invalid="ignore", divide="ignore"):
        q0_lower, q0_upper = wilson(rates.q0, rates.m0, level)
        q1_lower, q1_upper = wilson(rates.q1, rates.m1, level)
    j, lower, upper = (np.where(one_class, np.nan, x) for x in (j, lower, upper))
    numbers = scalars_or_arrays(
        estimate=j, lower=lower, upper=upper, status=status, q0_lower=q0_lower, q0_upper=q0_upper, q1_lower=q1_lower,
        q1_upper=q1_upper,
    )  # fmt: skip
    return YoudenJ(**numbers, level=level)
