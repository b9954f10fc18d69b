"""Shares of K classes (win, tie, loss) from a judge's shares, by the inverse of its confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from jaxeval.columns import DataError
from jaxeval.quantiles import checked_level

Float = NDArray[np.float64]

OK, CLIPPED, SINGULAR, NO_CLASS = "ok", "clipped", "singular confusion matrix", "a class has no label"


@dataclass(frozen=True, eq=False)
class ClassShares:
    """Corrected shares of the K classes.

    ``table`` has a row per class: ``judged`` (the judge's own share), ``estimate``, ``lower``, ``upper`` (truncated to
    [0, 1]), ``standard_error``, ``labels``. ``status`` is "ok"; "clipped" where some share left [0, 1] (they are then
    the nearest point of the simplex, unclipped ones beside in ``unclipped``); "singular confusion matrix" or "a class
    has no label", with NaN. ``condition`` is the condition number of the confusion matrix, by which errors may grow.
    """

    table: pd.DataFrame
    confusion: pd.DataFrame  # P(judged row | labelled column)
    covariance: pd.DataFrame  # of the unclipped shares
    status: str
    condition: float
    level: float


def class_shares(
    calibration_labels: ArrayLike,
    calibration_judgments: ArrayLike,
    test_judgments: ArrayLike,
    classes: Sequence[Any] | None = None,
    level: float = 0.95,
) -> ClassShares:
    """Shares of the classes among the test items: the inverse confusion matrix times the judged shares.

    The multi-class form of `rogan_gladen` (arXiv:2511.21140, estimator (v) of Table 2 and section 9), valid while
    P(judgment | label) is that of the calibration, whatever the shares of the labels there. Errors are those of the
    delta method: judged shares and every column of the confusion matrix are multinomial.

    Args:
        calibration_labels: (n,) labels.
        calibration_judgments: (n,) the judge's verdicts of them.
        test_judgments: (N,) its verdicts of the test items.
        classes: their order; by default sorted. Verdicts may not be of other classes.

    Raises:
        DataError: values are missing, or a verdict is of no class.
    """
    z = norm.ppf((1 + checked_level(level)) / 2)
    given = {
        "calibration_labels": pd.Series(np.asarray(calibration_labels)),
        "calibration_judgments": pd.Series(np.asarray(calibration_judgments)),
        "test_judgments": pd.Series(np.asarray(test_judgments)),
    }
    for name, values in given.items():
        if len(values) == 0:
            raise DataError(f"{name} is empty")
        if values.isna().any():
            raise DataError(
                f"{name}: {values.isna().sum():,} of {len(values):,} values are missing (first at "
                f"{int(values.isna().argmax())}); leave those items out, or make missing a class"
            )
    y, f, g = given.values()
    if len(y) != len(f):
        raise DataError(f"as many calibration labels as judgments are needed, got {len(y):,} and {len(f):,}")
    found = sorted(set(y) | set(f) | set(g)) if classes is None else list(classes)
    index = pd.Index(found, name="class")
    codes = {name: index.get_indexer(values) for name, values in given.items()}
    for name, code in codes.items():
        if (code < 0).any():
            other = given[name][code < 0].value_counts().head(5)
            shown = ", ".join(f"{value!r} ({count:,})" for value, count in other.items())
            raise DataError(f"{name}: {shown} are none of the classes {', '.join(map(repr, found))}")
    k = len(index)
    counts = np.zeros((k, k))
    np.add.at(counts, (codes["calibration_judgments"], codes["calibration_labels"]), 1.0)
    judged = np.bincount(codes["test_judgments"], minlength=k) / len(g)
    return _corrected(counts, judged, len(g), index, z, level)


def _corrected(counts: Float, judged: Float, n_test: int, index: pd.Index, z: float, level: float) -> ClassShares:
    k = len(index)
    labels = counts.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        confusion = counts / labels
    unclipped, covariance, condition, status = np.full(k, np.nan), np.full((k, k), np.nan), np.inf, OK
    if (labels == 0).any():
        status = NO_CLASS
    else:
        condition = float(np.linalg.cond(confusion))
        if not condition < 1e12:
            status = SINGULAR
        else:
            inverse = np.linalg.inv(confusion)
            unclipped = inverse @ judged
            spread = (np.diag(judged) - np.outer(judged, judged)) / n_test
            for c in range(k):
                column = confusion[:, c]
                spread += unclipped[c] ** 2 * (np.diag(column) - np.outer(column, column)) / labels[c]
            covariance = inverse @ spread @ inverse.T
            outside = (unclipped < -1e-12) | (unclipped > 1 + 1e-12)
            status = CLIPPED if outside.any() else OK
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    table = pd.DataFrame(
        {
            "judged": judged,
            "estimate": _nearest_shares(unclipped) if status == CLIPPED else unclipped,
            "lower": np.clip(unclipped - z * error, 0, 1),
            "upper": np.clip(unclipped + z * error, 0, 1),
            "unclipped": unclipped,
            "standard_error": error,
            "labels": labels.astype(int),
        },
        index=index,
    )
    return ClassShares(
        table,
        pd.DataFrame(confusion, index.rename("judged"), index.rename("labelled")),
        pd.DataFrame(covariance, index, index),
        status,
        condition,
        level,
    )


def _nearest_shares(values: Float) -> Float:
    """The nearest point of the simplex (Held, Wolfe and Crowder 1974, DOI 10.1007/BF01580223)."""
    ordered = np.sort(values)[::-1]
    surplus = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    return np.maximum(values - surplus[np.flatnonzero(ordered > surplus)[-1]], 0.0)
