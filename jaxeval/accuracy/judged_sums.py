"""Sums over judged answers, of all items and of resampled ones, from which every accuracy follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.data.judged_answers import JudgedAnswers, repeated
from jaxeval.errors import DataError
from jaxeval.execution.lanes import LaneRun
from jaxeval.kernels.judge_error import JudgedSums, LabelledSums
from jaxeval.resampling.items import halves, resampled_sums

Float = NDArray[np.float64]
Bool = NDArray[np.bool_]

POOLED = "pooled"


class Arrays(NamedTuple):
    """Calibration and test as arrays: n and N items, M models of the test, J judges, T strata.

    ``used`` says which calibration answers have label and judgment, ``human`` is the label of all that have one;
    ``judged`` says which test answers have a judgment, ``answered`` which there are. ``shared`` says which answers make
    the shared calibration, of the K models of the calibration, which may be others than those of the test.
    ``shared_labels`` are its labels wrong and right: an answer that several models gave is one label there, though it
    weighs as often as it was given, so that the rates are those of the models' answers.
    """

    n_strata: int
    label: Float  # (n, M, J) 0 where not used
    judgment: Float  # (n, M, J)
    used: Bool  # (n, M, J)
    stratum: NDArray[np.int64]  # (n, M)
    human: Float  # (n, M) NaN without a label
    shared_label: Float  # (n, K, J)
    shared_judgment: Float
    shared: Bool
    shared_stratum: NDArray[np.int64]  # (n, K)
    shared_labels: Float  # (2, J)
    test_judgment: Float  # (N, M, J)
    judged: Bool
    test_stratum: NDArray[np.int64]  # (N, M)
    answered: Bool  # (N, M)


class Sums(NamedTuple):
    """Sums of Y, F and their products over items, of B resamples with a leading axis (B, T, M, J)."""

    test: JudgedSums
    own: LabelledSums
    shared: LabelledSums  # (T, 1, J)


def arrays(calibration: JudgedAnswers, test: JudgedAnswers, stratify: str | None, shared: Any) -> Arrays:
    """`Arrays` of answers by the same judges; ``shared`` is "pooled" or a model of the calibration."""
    labelled = ~np.isnan(calibration.label)
    calibration = calibration.take(np.flatnonzero(labelled.any(axis=1)))
    used = calibration.judged & ~np.isnan(calibration.label)[:, :, None]
    n_strata, stratum, test_stratum = _strata(calibration, test, stratify)
    where = calibration.models.get_indexer(test.models)
    own = used[:, where] & (where >= 0)[:, None]
    label = np.broadcast_to(np.nan_to_num(calibration.label)[:, :, None], used.shape)
    judgment = np.nan_to_num(calibration.judgment)
    those = used if shared == POOLED else used & (calibration.models == shared)[:, None]
    judged = test.judged
    distinct = np.stack([t & ~repeated(calibration.answer, t) for t in np.moveaxis(those, 2, 0)], axis=-1)
    labels = np.stack([(distinct & (label == 0)).sum((0, 1)), (distinct & (label == 1)).sum((0, 1))]).astype(float)
    return Arrays(
        n_strata=n_strata,
        label=np.where(own, label[:, where], 0.0),
        judgment=np.where(own, judgment[:, where], 0.0),
        used=own,
        stratum=stratum[:, where],
        human=np.where(where >= 0, calibration.label[:, where], np.nan),
        shared_label=np.where(those, label, 0.0),
        shared_judgment=np.where(those, judgment, 0.0),
        shared=those,
        shared_stratum=stratum,
        shared_labels=labels,
        test_judgment=np.where(judged, test.judgment, 0.0),
        judged=judged,
        test_stratum=test_stratum,
        answered=test.answered,
    )


def with_missing_filled(data: Arrays) -> Arrays:
    """``data`` with all labelled answers and all test answers; the same object where no judgment is missing.

    A missing judgment counts as the judge's mean judgment of the model's test answers (of the stratum), in calibration
    and test alike. An estimator that adds the judge's shift from calibration to test to the mean label stays unbiased
    whatever stands there, if judgments are missing in the test as they are in the calibration; with this value also if
    they are missing at random in either. So no label is lost, and labels whose judgments are missing more often in one
    class than in the other do not shift the estimate.
    """
    used = np.broadcast_to(~np.isnan(data.human)[:, :, None], data.used.shape)
    # A judge who judged no test answer of a model was not asked about it.
    judged = data.answered[:, :, None] & data.judged.any(axis=0)
    if (used == data.used).all() and (judged == data.judged).all():
        return data
    n, total = (place(x, data.test_stratum, data.n_strata).sum(0) for x in (data.judged, data.test_judgment))
    with np.errstate(invalid="ignore", divide="ignore"):
        overall = np.nan_to_num(total.sum(0) / n.sum(0))
        mean = np.where(n > 0, total / n, overall)
    model = np.arange(data.used.shape[1])
    fill, test_fill = (mean[stratum, model] for stratum in (data.stratum, data.test_stratum))
    return data._replace(
        label=np.where(used, np.nan_to_num(data.human)[:, :, None], 0.0),
        judgment=np.where(data.used, data.judgment, np.where(used, fill, 0.0)),
        used=used,
        test_judgment=np.where(data.judged, data.test_judgment, np.where(judged, test_fill, 0.0)),
        judged=judged,
    )


def sums(data: Arrays) -> Sums:
    """Sums of all items."""
    test, own, shared = (columns.sum(0) for columns in _columns(data))
    return Sums(_judged(test, data), _labelled(own, data), _labelled(shared, data, 1))


def resampled(
    sets: Sequence[Arrays], label: str, n_resamples: int, n_halves: int, seed: int, run: LaneRun
) -> list[tuple[Sums, LabelledSums]]:
    """Sums of resamples of each of ``sets``, and those of resampled random halves of the calibration items.

    The sets are of the same items, which are drawn once for all of them. Test and calibration items are drawn apart,
    from streams named by the slice's ``label``.
    """
    columns = [_columns(data) for data in sets]
    test = np.concatenate([of_test for of_test, _, _ in columns], axis=1)
    both = np.concatenate([x for _, own, shared in columns for x in (own, shared)], axis=1)
    if len(test):
        test = resampled_sums(test, n_resamples, seed, f"{label} test", run=run)
    else:
        test = np.zeros((n_resamples, test.shape[1]))
    if len(both) > 1:
        split = halves(both, n_halves, seed)
        drawn = resampled_sums(both, n_resamples, seed, f"{label} calibration", split, run)
    else:
        drawn = np.broadcast_to(both.sum(0), (2, n_resamples, both.shape[1]))
    found = []
    for data, of_test, of_both in zip(sets, np.split(test, len(sets), 1), np.split(drawn, len(sets), 2), strict=True):
        n_own = columns[0][1].shape[1]
        labelled, half = of_both[..., :n_own]
        shared = _labelled(of_both[0][:, n_own:], data, 1)
        found.append((Sums(_judged(of_test, data), _labelled(labelled, data), shared), _labelled(half, data)))
    return found


def _columns(data: Arrays) -> tuple[Float, Float, Float]:
    """(N, 3 T M J) of the test, (n, 5 T M J) of the models' own calibrations, (n, 5 T J) of the shared one."""
    f = place(data.test_judgment, data.test_stratum, data.n_strata)
    test = np.stack([place(data.judged, data.test_stratum, data.n_strata), f, f * f], axis=1)
    own = _products(data.used, data.label, data.judgment, data.stratum, data.n_strata)
    shared = _products(data.shared, data.shared_label, data.shared_judgment, data.shared_stratum, data.n_strata)
    return (
        test.reshape(len(test), int(np.prod(test.shape[1:]))),
        own.reshape(len(own), int(np.prod(own.shape[1:]))),
        shared.sum(3).reshape(len(shared), -1 if len(shared) else 5 * data.n_strata * f.shape[-1]),
    )


def _products(used: Bool, label: Float, judgment: Float, stratum: NDArray[np.int64], n_strata: int) -> Float:
    """(n, 5, T, M, J)."""
    one, y, f = (place(x, stratum, n_strata) for x in (used, label, judgment))
    return np.stack([one, y, f, y * f, f * f], axis=1)


def place(values: Any, stratum: NDArray[np.int64], n_strata: int) -> Float:
    """(n, T, M, J) of (n, M, J) ``values``: each in the place of its stratum."""
    there = stratum[:, None, :, None] == np.arange(n_strata)[:, None, None]
    return np.where(there, values[:, None].astype(float), 0.0)


def _judged(flat: Float, data: Arrays) -> JudgedSums:
    shape = data.n_strata, *data.test_judgment.shape[1:]
    return JudgedSums(*np.moveaxis(flat.reshape(*flat.shape[:-1], 3, *shape), -4, 0))


def _labelled(flat: Float, data: Arrays, n_models: int | None = None) -> LabelledSums:
    m, j = data.test_judgment.shape[1:]
    n, y, f, yf, ff = np.moveaxis(flat.reshape(*flat.shape[:-1], 5, data.n_strata, n_models or m, j), -4, 0)
    return LabelledSums(n, y, f, yf, ff, y)  # labels are their own squares


def _strata(
    calibration: JudgedAnswers, test: JudgedAnswers, stratify: str | None
) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """Number of strata, and the stratum of every answer of calibration and test, -1 where there is none."""
    if stratify is None:
        return 1, np.zeros(calibration.label.shape, np.int64), np.zeros(test.label.shape, np.int64)
    known, wanted = calibration.covariate(stratify), test.covariate(stratify)
    levels = wanted.levels[np.unique(wanted.number[wanted.number >= 0])]
    labelled = known.levels[np.unique(known.number[(known.number >= 0) & ~np.isnan(calibration.label)])]
    without = [level for level in levels if level not in labelled]
    if without:
        raise DataError(
            f"no calibration labels where {stratify!r} is {', '.join(map(repr, without[:5]))}: join strata, or label "
            "some of each"
        )

    def number(covariate: Any) -> NDArray[np.int64]:
        return np.append(pd.Index(levels).get_indexer(covariate.levels), -1)[covariate.number]

    return len(levels), number(known), number(wanted)
