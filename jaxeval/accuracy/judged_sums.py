"""Sums over judged answers, of all items and of resampled ones, from which every accuracy follows."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.columns import plain
from jaxeval.data.judged_answers import Covariate, JudgedAnswers, repeated
from jaxeval.errors import DataError
from jaxeval.execution.lanes import LaneRun
from jaxeval.kernels.judge_error import JudgedSums, LabelledSums
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import counts_rows
from jaxeval.resampling.rows import halves, resampled_sums
from jaxeval.resampling.units import checked_strata, small_strata_text, stratum_of_groups
from jaxeval.statistics.clusters import effective_clusters, few_clusters_text
from jaxeval.wording import counted

POOLED = "pooled"


class LabelledAnswers(NamedTuple):
    """Labels and judgments of answers of K models to n items, by J judges."""

    label: Float  # (n, K, J) 0 where not used
    judgment: Float  # (n, K, J) 0 where not used
    used: Bool  # (n, K, J) answers with a label and a judgment
    stratum: Int  # (n, K)

    def of_model(self, k: int) -> LabelledAnswers:
        """Return the answers of model number ``k`` alone."""
        one = slice(k, k + 1)
        return LabelledAnswers(self.label[:, one], self.judgment[:, one], self.used[:, one], self.stratum[:, one])

    def by_stratum(self, n_strata: int) -> tuple[Float, Float, Float]:
        """Return what is used, labels and judgments, (n, T, K, J) each, in the place of their stratum."""
        return tuple(place(x, self.stratum, n_strata) for x in (self.used, self.label, self.judgment))  # type: ignore[return-value]


class RatedAnswers(NamedTuple):
    """Judgments of the answers of M models to N test items, by J judges."""

    judgment: Float  # (N, M, J) 0 where there is none
    judged: Bool  # (N, M, J)
    stratum: Int  # (N, M)

    def by_stratum(self, n_strata: int) -> tuple[Float, Float]:
        """Return what is judged, and judgments, (N, T, M, J) each, in the place of their stratum."""
        return place(self.judged, self.stratum, n_strata), place(self.judgment, self.stratum, n_strata)


class DrawnItems(NamedTuple):
    """What items of the calibration and of the test belong to: clusters, or items that are in both.

    Units are numbered alike in both. What is drawn, and what is independent of all else, are units.
    """

    calibration: Int  # (n,)
    test: Int  # (N,)
    clustered: bool  # whether they are clusters; else items, of which some are in both

    @property
    def shared(self) -> bool:
        """Whether some are in both."""
        return bool(np.isin(self.test, self.calibration).any())

    @property
    def n(self) -> int:
        """How many there are."""
        return int(max(self.calibration.max(initial=-1), self.test.max(initial=-1))) + 1

    def sizes(self) -> tuple[Int, Int]:
        """Return numbers of items of each unit of the calibration, and of the test."""
        return tuple(size[size > 0] for size in map(np.bincount, (self.calibration, self.test)))  # type: ignore[return-value]


def sums_of_units(x: Float, unit: Int, n_units: int) -> Float:
    """Return (U, ...) sums of (N, ...) ``x`` over the items of each unit."""
    totals = np.zeros((n_units, *x.shape[1:]))
    np.add.at(totals, unit, x)
    return totals


class Arrays(NamedTuple):
    """Calibration and test as arrays: n and N items, M models of the test, J judges, T strata.

    The shared calibration is of the K models of the calibration, which may be others than those of the test. In
    ``shared_labels`` an answer that several models gave is one label. In the sums it counts as often as it was given,
    so that the rates are those of the models' answers.
    """

    n_strata: int
    own: LabelledAnswers  # of the models of the test
    human: Float  # (n, M) every label, NaN where there is none
    shared: LabelledAnswers
    shared_labels: Float  # (2, J) labels wrong and right of the shared calibration
    test: RatedAnswers
    answered: Bool  # (N, M) which test answers there are
    drawn_within: tuple[Int | None, Int | None] = (None, None)  # strata (n,) and (N,) of calibration and test items
    units: DrawnItems | None = None  # None where items are independent of each other


class Sums(NamedTuple):
    """Sums of Y, F and their products over items, of B resamples with a leading axis (B, T, M, J)."""

    test: JudgedSums
    own: LabelledSums
    shared: LabelledSums  # (T, 1, J)


def arrays(
    calibration: JudgedAnswers, test: JudgedAnswers, stratify: str | None, shared: Hashable, strata: str | None = None,
    cluster: str | None = None,
) -> Arrays:  # fmt: skip
    """Return `Arrays` of answers with labels and of those to rate, by the same judges.

    Answers are corrected within values of ``stratify``, and items drawn within those of ``strata``, or with the passage
    or conversation, ``cluster``, that they belong to. ``shared`` is "pooled" or a model of the calibration.
    """
    labelled = ~np.isnan(calibration.label)
    calibration = calibration.take(np.flatnonzero(labelled.any(axis=1)))
    used = calibration.judged & ~np.isnan(calibration.label)[:, :, None]
    n_strata, stratum, test_stratum = _strata(calibration, test, stratify)
    where = calibration.models.get_indexer(test.models)
    judged = used[:, where] & (where >= 0)[:, None]
    label = np.broadcast_to(np.nan_to_num(calibration.label)[:, :, None], used.shape)
    judgment = np.nan_to_num(calibration.judgment)
    those = used if shared == POOLED else used & (calibration.models == shared)[:, None]
    distinct = np.stack([t & ~repeated(calibration.answer, t) for t in np.moveaxis(those, 2, 0)], axis=-1)
    labels = np.stack([(distinct & (label == 0)).sum((0, 1)), (distinct & (label == 1)).sum((0, 1))]).astype(float)
    return Arrays(
        n_strata=n_strata,
        own=LabelledAnswers(
            np.where(judged, label[:, where], 0.0), np.where(judged, judgment[:, where], 0.0), judged, stratum[:, where]
        ),
        human=np.where(where >= 0, calibration.label[:, where], np.nan),
        shared=LabelledAnswers(np.where(those, label, 0.0), np.where(those, judgment, 0.0), those, stratum),
        shared_labels=labels,
        test=RatedAnswers(np.where(test.judged, test.judgment, 0.0), test.judged, test_stratum),
        answered=test.answered,
        drawn_within=(item_strata(calibration, strata), item_strata(test, strata)),
        units=units_of(calibration, test, cluster) if strata is None else None,
    )


def with_missing_filled(data: Arrays) -> Arrays:
    """Return ``data`` with all labelled answers and all test answers; the same object where no judgment is missing.

    A missing judgment counts as the judge's mean judgment of the model's test answers (in the stratum), in calibration
    and test alike. So no label is lost. The estimators that use these data add the judge's shift from calibration to
    test to the mean label. They stay unbiased with any value there, if judgments are missing in the test as they are in
    the calibration. With this value they also stay unbiased if judgments are missing at random in either. Judgments
    that are missing more often in one class than in the other do not shift them.
    """
    labelled, test = data.own, data.test
    used = np.broadcast_to(~np.isnan(data.human)[:, :, None], labelled.used.shape)
    # A judge who judged no test answer of a model was not asked about it.
    judged = data.answered[:, :, None] & test.judged.any(axis=0)
    if (used == labelled.used).all() and (judged == test.judged).all():
        return data
    n, total = (x.sum(0) for x in test.by_stratum(data.n_strata))
    with np.errstate(invalid="ignore", divide="ignore"):
        overall = np.nan_to_num(total.sum(0) / n.sum(0))
        mean = np.where(n > 0, total / n, overall)
    model = np.arange(labelled.used.shape[1])
    fill, test_fill = (mean[x.stratum, model] for x in (labelled, test))
    return data._replace(
        own=labelled._replace(
            label=np.where(used, np.nan_to_num(data.human)[:, :, None], 0.0),
            judgment=np.where(labelled.used, labelled.judgment, np.where(used, fill, 0.0)),
            used=used,
        ),
        test=test._replace(
            judgment=np.where(test.judged, test.judgment, np.where(judged, test_fill, 0.0)), judged=judged
        ),
    )


def sums(data: Arrays) -> Sums:
    """Return sums of all items."""
    return weighted_sums(data, np.ones(len(data.own.label)), np.ones(len(data.test.judgment)))


def weighted_sums(data: Arrays, calibration: Float, test: Float) -> Sums:
    """Return sums under weights (..., n) of the calibration items and (..., N) of the test items."""
    of_test, labelled, shared = _columns(data)
    return Sums(
        _judged(test @ of_test, data), _labelled(calibration @ labelled, data), _labelled(calibration @ shared, data, 1)
    )


def resampled(
    sets: Sequence[Arrays], label: str, n_resamples: int, n_halves: int, seed: int, run: LaneRun
) -> list[tuple[Sums, LabelledSums]]:
    """Return sums of resamples of each of ``sets``, and those of resampled random halves of the calibration items.

    The sets are of the same items, which are drawn once for all of them. Test and calibration items are drawn apart,
    from streams named by the slice's ``label``.
    """
    columns, units = [_columns(data) for data in sets], sets[0].units
    test = np.concatenate([of_test for of_test, _, _ in columns], axis=1)
    both = np.concatenate([x for _, labelled, shared in columns for x in (labelled, shared)], axis=1)
    width, strata = test.shape[1], sets[0].drawn_within
    if units is not None:
        test, both = (sums_of_units(x, unit, units.n) for x, unit in ((test, units.test), (both, units.calibration)))
        if units.shared:
            # A unit that is in both is drawn for both at once.
            every = np.concatenate([test, both], axis=1)
            split = halves(every, n_halves, seed) if len(every) > 1 else np.zeros((1, 1), np.intp)
            drawn = resampled_sums(every, n_resamples, seed, f"{label} units", split, run)
            return _of_sets(sets, columns, drawn[0, :, :width], drawn[..., width:])
        test, both = (x[np.unique(unit)] for x, unit in ((test, units.test), (both, units.calibration)))
    if len(test):
        test = resampled_sums(test, n_resamples, seed, f"{label} test", run=run, strata=strata[1])
    else:
        test = np.zeros((n_resamples, width))
    if len(both) > 1:
        split = halves(both, n_halves, seed)
        drawn = resampled_sums(both, n_resamples, seed, f"{label} calibration", split, run, strata[0])
    else:
        drawn = np.broadcast_to(both.sum(0), (2, n_resamples, both.shape[1]))
    return _of_sets(sets, columns, test, drawn)


def _of_sets(
    sets: Sequence[Arrays], columns: Sequence[tuple[Float, Float, Float]], test: Float, drawn: Float
) -> list[tuple[Sums, LabelledSums]]:
    """Return drawn sums of the columns of all sets, set by set: (B, ...) of test, (2, B, ...) of calibration."""
    parts = []
    for data, of_test, of_both in zip(sets, np.split(test, len(sets), 1), np.split(drawn, len(sets), 2), strict=True):
        n_own = columns[0][1].shape[1]
        labelled, half = of_both[..., :n_own]
        shared = _labelled(of_both[0][:, n_own:], data, 1)
        parts.append((Sums(_judged(of_test, data), _labelled(labelled, data), shared), _labelled(half, data)))
    return parts


def item_strata(answers: JudgedAnswers, strata: str | None) -> Int | None:
    """Give (N,) the stratum of each item, which all of its answers share; None without strata, and where there is one.

    An item in several strata, and a column that was not kept, are a DataError.
    """
    if strata is None:
        return None
    number = np.where(answers.answered, answers.covariate(strata).number, -1)
    item, _ = np.nonzero(number >= 0)
    if len(item) == 0:
        return None
    return checked_strata(stratum_of_groups(number[number >= 0], item, answers.items, strata, "item"))


def units_of(calibration: JudgedAnswers, test: JudgedAnswers, cluster: str | None) -> DrawnItems | None:
    """Return clusters of items; without them the items, if some are in both; None where all items are independent.

    An item in several clusters or in none, and a column that was not kept, are a DataError.
    """
    if cluster is None:
        if counts_rows(calibration.items) or not calibration.items.map(str).isin(test.items.map(str)).any():
            return None
        names = [answers.items.map(str) for answers in (calibration, test)]
    else:
        names = [values_of_items(answers, cluster, "cluster") for answers in (calibration, test)]
    places: dict[str, int] = {}
    number = np.array([places.setdefault(str(name), len(places)) for part in names for name in part], np.intp)
    drawn = DrawnItems(number[: len(names[0])], number[len(names[0]) :], cluster is not None)
    return None if drawn.n == len(number) else drawn  # each item is by itself


def values_of_items(answers: JudgedAnswers, column: str, word: str) -> NDArray[np.object_]:
    """Return (N,) the value of each item, as text; a DataError if it has several or none. ``word`` says what one is."""
    levels, number = answers.covariate(column)
    number = np.where(answers.answered, number, -1)
    item, _ = np.nonzero(number >= 0)
    of_item = stratum_of_groups(number[number >= 0], item, answers.items, column, "item", f"{word}s", word)
    without = np.setdiff1d(np.arange(len(answers.items)), item)
    if len(without):
        raise DataError(
            f"{counted(len(without), 'item')} without a value of {column!r} (the first is "
            f"{plain(answers.items[without[0]])!r}): fill the column, or leave those items out"
        )
    return np.asarray(levels.map(str), object)[of_item]


def doubts_of_slice(test: JudgedAnswers, data: Arrays) -> Iterator[str]:
    """Yield sentences on models without a test item, strata of one item, and clusters that are too few."""
    empty = test.models[~test.judged.any(axis=(0, 2))]
    if len(empty):
        yield f"no test items of {', '.join(map(str, empty[:8]))}"
    parts = ("calibration", "test")
    for part, stratum in zip(parts, data.drawn_within, strict=True):
        yield from small_strata_text(None if stratum is None else np.bincount(stratum), f"{part} item")
    if data.units is not None and data.units.clustered:
        for part, size in zip(parts, data.units.sizes(), strict=True):
            if len(size):
                yield from (f"{part}: {text}" for text in few_clusters_text(len(size), effective_clusters(size)))


def _columns(data: Arrays) -> tuple[Float, Float, Float]:
    """Return (N, 3 T M J) of the test, (n, 5 T M J) of the models' own calibrations, (n, 5 T J) of the shared one."""
    one, f = data.test.by_stratum(data.n_strata)
    each_label = (answers.by_stratum(data.n_strata) for answers in (data.own, data.shared))
    labelled, shared = (np.stack([n, y, x, y * x, x * x], axis=1) for n, y, x in each_label)
    each = np.stack([one, f, f * f], axis=1), labelled, shared.sum(3)
    return tuple(x.reshape(len(x), prod(x.shape[1:])) for x in each)  # type: ignore[return-value]


def place(values: Float | Bool, stratum: Int, n_strata: int) -> Float:
    """Return (n, T, M, J) of (n, M, J) ``values``: each in the place of its stratum."""
    there = stratum[:, None, :, None] == np.arange(n_strata)[:, None, None]
    return np.where(there, values[:, None].astype(float), 0.0)


def _judged(flat: Float, data: Arrays) -> JudgedSums:
    shape = data.n_strata, *data.test.judgment.shape[1:]
    return JudgedSums(*np.moveaxis(flat.reshape(*flat.shape[:-1], 3, *shape), -4, 0))


def _labelled(flat: Float, data: Arrays, n_models: int | None = None) -> LabelledSums:
    m, j = data.test.judgment.shape[1:]
    n, y, f, yf, ff = np.moveaxis(flat.reshape(*flat.shape[:-1], 5, data.n_strata, n_models or m, j), -4, 0)
    return LabelledSums(n, y, f, yf, ff, y)  # labels are their own squares


def _strata(calibration: JudgedAnswers, test: JudgedAnswers, stratify: str | None) -> tuple[int, Int, Int]:
    """Return number of strata, and the stratum of every answer of calibration and test, -1 where there is none."""
    if stratify is None:
        return 1, np.zeros(calibration.label.shape, np.int64), np.zeros(test.label.shape, np.int64)
    known, wanted = calibration.covariate(stratify), test.covariate(stratify)
    levels = wanted.levels[np.unique(wanted.number[wanted.number >= 0])]
    labelled = known.levels[np.unique(known.number[(known.number >= 0) & ~np.isnan(calibration.label)])]
    without = [level for level in levels if level not in labelled]
    if without:
        raise DataError(
            f"no calibration labels where {stratify!r} is {', '.join(map(repr, without[:5]))}: join strata, or label "
            "some answers of each"
        )

    def number(covariate: Covariate) -> Int:
        return np.append(pd.Index(levels).get_indexer(covariate.levels), -1)[covariate.number]

    return len(levels), number(known), number(wanted)
