"""Accuracies of models by LLM judges, corrected by labelled items: every estimator, with both kinds of interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.accuracy.belief import believed, shifted
from jaxeval.accuracy.estimates import (
    ESTIMATORS,
    Evidence,
    Slice,
    closed_form,
    estimate_draws,
    estimates,
    label_counts,
    rates_of,
    status_of,
    truth_of,
)
from jaxeval.accuracy.judged_sums import POOLED, arrays, resampled, sums, with_missing_filled
from jaxeval.accuracy.missing_judgments import missing_judgments
from jaxeval.accuracy.rogan_gladen import youden_j
from jaxeval.accuracy.statuses import BOUNDED, HAVE_NUMBERS, UNBOUNDED, WITHOUT_RESAMPLES, Status
from jaxeval.checks import checked_integer
from jaxeval.data.judged_answers import JudgedAnswers
from jaxeval.errors import DataError
from jaxeval.execution.precision import versions
from jaxeval.execution.runs import Identity, open_run
from jaxeval.statistics.quantiles import bounds_with_failures, checked_level
from jaxeval.wording import counted, did_you_mean

Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class AccuracySettings:
    """What accuracies were computed with."""

    level: float
    n_resamples: int
    seed: int
    n_halves: int
    shared: str  # whose labels the shared calibration uses
    by: str | None
    stratify: str | None
    device: str
    versions: str


@dataclass(frozen=True, eq=False)
class JudgeAccuracy:
    """Accuracies (``table``), how good the judges are (``rates``), and what the data cannot say (``warnings``).

    ``table`` has a row per slice, model, judge and estimator: ``estimate``; ``lower`` and ``upper`` in closed form,
    truncated to [0, 1], with the ``untruncated`` ends beside; ``median``, ``boot_lower`` and ``boot_upper`` of the
    resamples; ``failed_share`` of resamples in which the estimate is not defined, which enter the lower end as 0 and
    the upper end as 1; ``status``, in the words of `STATUSES`; ``believe``, True for the one estimate to believe, by
    the rule of `believed`; ``n_test``; ``m0`` and ``m1``, the labels wrong and right that the estimator used (an answer
    that several models share is one label); ``truth``, the mean label of the model's test answers, and ``n_truth``, how
    many of them have a label. No estimate uses the truth: intervals are for the population that the items stand for,
    and its mean is another number.

    Where the status says that nothing bounds an estimate (`UNBOUNDED`), its intervals are [0, 1] and the untruncated
    ends are infinite. With strata the status is that of the worst stratum.

    Where judgments are missing (read with missing="drop"), labels alone, PPI, PPI++, "conditional" and "eif" still use
    all labels and all test answers: a missing judgment counts as the judge's mean judgment of the model's test answers,
    in calibration and test alike, which leaves them unbiased for all answers if judgments are missing alike in both.
    The raw share, Rogan-Gladen and ``rates`` are of judged answers alone. ``warnings`` count missing judgments, and say
    where they are missing more often for one class, for one model, or in one of calibration and test.

    The closed form adds a few observations (for scores, it has Student's quantiles), so that a judge who never erred on
    a few labels is not taken for perfect; the resamples take it for just that.

    ``rates`` has a row per slice, model and judge: specificity ``q0``, sensitivity ``q1`` and Youden's ``j`` from all
    labels of the model, in closed form (`youden_j`) and with percentile intervals of the resamples.
    """

    table: pd.DataFrame
    rates: pd.DataFrame
    warnings: list[str]
    settings: AccuracySettings
    slices: Mapping[str, Slice] = field(repr=False)
    binary: Bool = field(repr=False)  # (J,) judges whose verdicts are 0 and 1

    @property
    def models(self) -> pd.Index:
        """Models of the test."""
        return self.slices[""].test.models

    @property
    def judges(self) -> pd.Index:
        """Judges of the test."""
        return self.slices[""].test.judges

    def report(self) -> Any:
        """A `JudgeReport`, with its cautions in words."""
        from jaxeval.accuracy.report import judge_report

        return judge_report(self)


def judge_accuracy(
    calibration: JudgedAnswers,
    test: JudgedAnswers,
    *,
    by: str | None = None,
    stratify: str | None = None,
    shared: Any = POOLED,
    level: float = 0.95,
    n_resamples: int = 10_000,
    n_halves: int = 20,
    seed: int = 0,
    memory_limit: int | None = None,
    checkpoint: str | Path | None = None,
    progress: bool | None = None,
) -> JudgeAccuracy:
    """Accuracy of every model of ``test`` by every judge, corrected by the labelled items of ``calibration``.

    Test and calibration items are resampled apart, in batched calls, items whole: the judgments of all models and
    judges on an item stay together.

    Args:
        calibration: answers with labels; those without are left out and counted. Without a model column it is one
            calibration that all models share; the estimators that need a model's own then say so.
        test: answers to rate. Labels, where there are some, are shown as ``truth`` and not used; a warning says where
            some answers of a model have none.
        by: column kept with both; every value is a slice of its own, beside all items together.
        stratify: column kept with both; answers are corrected within its values and added up by test shares, where the
            judge's errors depend on it.
        shared: whose labels the shared calibration uses: "pooled", of all models; or a model.
        level: confidence level of all intervals.
        n_resamples: resamples B.
        n_halves: random halves of the calibration items behind "ppi_plus_plus_half"; the resamples take turns.
        seed: of resamples and halves.
        memory_limit: bytes that resamples and their results may take, as in `bootstrap`.
        checkpoint: folder that finished resamples are kept in, as in `bootstrap`.
        progress: show a bar on standard error; None for "only on a terminal".

    Raises:
        TypeError: a number that must be an integer is none.
        ValueError: a number is out of range.
        DataError: calibration and test do not fit: no label, another judge, an unknown model or stratum.
        MemoryLimitError: this machine's memory cannot hold the results of so many resamples, or not even one resample
            at a time fits ``memory_limit``.
    """
    checked_level(level)
    for name, value, least in (("n_resamples", n_resamples, 2), ("n_halves", n_halves, 1), ("seed", seed, 0)):
        checked_integer(name, value, least)
    calibration, warnings = _aligned(calibration, test, shared)
    slices = {}
    parts = {"": (calibration, test), **_slices(calibration, test, by)}

    def identity() -> Identity:
        drawn = {"seed": seed, "n_halves": n_halves, "by": by, "stratify": stratify, "shared": str(shared)}
        return Identity(drawn, (calibration, test))

    with open_run(
        identity, len(parts) * 3 * n_resamples, "resamples",
        memory_limit=memory_limit, checkpoint=checkpoint, progress=progress,
    ) as run:  # fmt: skip
        for label, (labelled, judged) in parts.items():
            try:
                data = arrays(labelled, judged, stratify, shared)
            except DataError as error:
                raise DataError(f"slice {label!r} of {by!r}: {error}" if label else str(error)) from error
            filled = with_missing_filled(data)
            sets = [data] if filled is data else [data, filled]
            drawn = resampled(sets, label, n_resamples, n_halves, seed, run)
            evidence = [Evidence(x, sums(x), *draws) for x, draws in zip(sets, drawn, strict=True)]
            slices[label] = Slice(labelled, judged, evidence[0], evidence[-1])
    settings = AccuracySettings(
        level, n_resamples, seed, n_halves, str(shared), by, stratify, jax.default_backend(), versions()
    )
    binary = calibration.binary & test.binary
    tables = {label: _table(part, binary, level) for label, part in slices.items()}
    rates = {label: _rates_table(part, binary, level) for label, part in slices.items()}
    return JudgeAccuracy(
        joined(tables, by), joined(rates, by), warnings + _data_warnings(slices, by), settings, slices, binary
    )


def joined(tables: Mapping[str, pd.DataFrame], by: str | None) -> pd.DataFrame:
    """Tables of slices as one, with the slice in the first column where there are several."""
    if by is None:
        return tables[""]
    return (
        pd.concat({label or "all": table for label, table in tables.items()}, names=["slice"])
        .reset_index(level=0)
        .reset_index(drop=True)
    )


# --- fitting calibration and test together ------------------------------------------------------


def _aligned(calibration: JudgedAnswers, test: JudgedAnswers, shared: Any) -> tuple[JudgedAnswers, list[str]]:
    """``calibration`` with the judges of ``test`` in its order, and what is noteworthy about the two."""
    if np.isnan(calibration.label).all():
        raise DataError("the calibration answers have no human labels: name their column with label=")
    for role, ours, theirs in (
        ("models", calibration.models, test.models),
        ("judges", calibration.judges, test.judges),
    ):
        alike = set(ours.map(str)) & set(theirs.map(str))
        if alike and not ours.isin(theirs).any():
            raise DataError(
                f"calibration and test name {role} by values of different types, {type(ours[0]).__name__} and "
                f"{type(theirs[0]).__name__} ({sorted(alike)[0]!r} in both): make them one, text for instance"
            )
    unknown = [judge for judge in test.judges if judge not in calibration.judges]
    if unknown:
        have = ", ".join(map(repr, calibration.judges))
        raise DataError(
            f"the test has judgments by {', '.join(map(repr, unknown))}, the calibration has none; its judges are "
            f"{have}"
        )
    if shared != POOLED and shared not in calibration.models:
        have = ", ".join(map(repr, calibration.models))
        hint = did_you_mean(shared, [*calibration.models, POOLED])
        raise DataError(f"shared={shared!r} is no model of the calibration; its models are {have}, or 'pooled'{hint}")
    where = calibration.judges.get_indexer(test.judges)
    aligned = replace(
        calibration, judges=test.judges, judgment=calibration.judgment[:, :, where], binary=calibration.binary[where]
    )
    warnings = []
    unlabelled = int((aligned.judged & np.isnan(aligned.label)[:, :, None]).any(2).sum())
    if unlabelled:
        warnings.append(f"left out: {counted(unlabelled, 'calibration answer')} without a label")
    without = [str(model) for model in test.models if model not in calibration.models]
    if without:
        several = f"{', '.join(without[:8])}{' and others' if len(without) > 8 else ''}"
        warnings.append(f"no calibration labels of {several}: only a shared calibration can correct them")
    # As text: one file may hold them as numbers, and another not.
    both = (
        0 if isinstance(aligned.items, pd.RangeIndex) else int(aligned.items.map(str).isin(test.items.map(str)).sum())
    )
    if both:
        warnings.append(
            f"{counted(both, 'item is', 'items are')} in the calibration and in the test: intervals take the two as "
            "independent, so leave those out of one"
        )
    asked = np.asarray(test.judged).max(axis=2)
    absent = int((asked.max(axis=1, keepdims=True) & ~asked).sum())
    if absent:
        warnings.append(
            f"models were judged on different items ({counted(absent, 'time')} one has no judgment where others have): "
            "differences compare each model on its own; missing='complete' keeps the items that all have"
        )
    return aligned, warnings + missing_judgments(aligned, test) + _truth_warnings(test)


def _truth_warnings(test: JudgedAnswers) -> list[str]:
    """Where some test answers of a model have a label, and some have none."""
    n, known = test.answered.sum(0), (test.answered & ~np.isnan(test.label)).sum(0)
    partly = np.flatnonzero((known > 0) & (known < n))
    if not len(partly):
        return []
    of = ", ".join(f"{test.models[k]} ({known[k]:,} of {n[k]:,})" for k in partly[:8])
    return [
        f"not all test answers have a label, so the truth is the mean of those that have one: {of}"
        f"{' and others' if len(partly) > 8 else ''}"
    ]


def _data_warnings(slices: Mapping[str, Slice], by: str | None) -> list[str]:
    found = []
    for label, part in slices.items():
        empty = [str(model) for model in part.test.models[np.flatnonzero(~part.test.judged.any(axis=(0, 2)))]]
        if empty:
            where = f"slice {label!r} of {by}: " if label else ""
            found.append(f"{where}no test items of {', '.join(empty[:8])}")
    return found


def _slices(
    calibration: JudgedAnswers, test: JudgedAnswers, by: str | None
) -> dict[str, tuple[JudgedAnswers, JudgedAnswers]]:
    """Calibration and test of every value of ``by``."""
    if by is None:
        return {}
    calibration.covariate(by)
    levels = test.covariate(by).levels
    names = levels.map(str)
    if "all" in names or "" in names or names.has_duplicates:
        raise DataError(
            f"column {by!r} has values that cannot name slices, {', '.join(map(repr, levels[:5]))}, ...: rename 'all' "
            "(the name of all items together) and empty ones, and those that are alike as text"
        )
    return {str(level): (_only(calibration, by, level), _only(test, by, level)) for level in levels}


def _only(answers: JudgedAnswers, by: str, level: Any) -> JudgedAnswers:
    """The answers whose ``by`` is ``level``."""
    covariate = answers.covariate(by)
    number = covariate.levels.get_indexer([level])[0]
    chosen: Bool = np.logical_and(covariate.number == number, number >= 0)
    part = replace(
        answers,
        judgment=np.where(chosen[:, :, None], answers.judgment, np.nan),
        label=np.where(chosen, answers.label, np.nan),
        answered=answers.answered & chosen,
    )
    return part.take(np.flatnonzero(chosen.any(axis=1)))


# --- tables -------------------------------------------------------------------------------------


def _table(part: Slice, binary: Bool, level: float) -> pd.DataFrame:
    m, j = len(part.test.models), len(part.test.judges)
    values = estimates(part.judged.total, part.every.total, binary)
    closed = closed_form(part, values, binary, level)
    draws = estimate_draws(part, binary)
    nothing = np.full((m, j), np.nan)
    truth, n_truth = truth_of(part.test)
    blocks = []
    for name in ESTIMATORS:
        total, data = part.of(name).total, part.of(name).data
        labelled = total.shared if name == "rogan_gladen_shared" else total.own
        distinct = data.shared_labels if name == "rogan_gladen_shared" else None
        m0, m1 = label_counts(name, labelled, (m, j), distinct)
        median, *percentiles, failed = bounds_with_failures(draws[name], level, 0.0, 1.0)
        # Random halves leave no one estimate: the median of the resamples stands for it.
        estimate = values.get(name, median)
        lower, upper = closed.get(name, (nothing, nothing))
        status = status_of(name, part, estimate, binary)
        outside = np.isin(status, (*BOUNDED, Status.ONE_CLASS)) & ((upper < 0) | (lower > 1))
        status = np.where(outside, Status.OUTSIDE, status)
        unbounded = np.isin(status, UNBOUNDED)
        lower, boot_lower = (np.where(unbounded & ~np.isnan(x), -np.inf, x) for x in (lower, percentiles[0]))
        upper, boot_upper = (np.where(unbounded & ~np.isnan(x), np.inf, x) for x in (upper, percentiles[1]))
        there = np.isin(status, HAVE_NUMBERS)
        drawn = there & ~np.isin(status, WITHOUT_RESAMPLES)
        numbers = {
            "estimate": (np.clip(estimate, 0, 1), there),
            "lower": (np.clip(lower, 0, 1), there),
            "upper": (np.clip(upper, 0, 1), there),
            "lower_untruncated": (lower, there),
            "upper_untruncated": (upper, there),
            "median": (np.clip(median, 0, 1), drawn),
            "boot_lower": (np.clip(boot_lower, 0, 1), drawn),
            "boot_upper": (np.clip(boot_upper, 0, 1), drawn),
        }
        blocks.append(
            {
                "estimator": np.full((m, j), name, object),
                **{key: np.where(shown, x, np.nan) for key, (x, shown) in numbers.items()},
                "failed_share": failed,
                "status": status,
                "n_test": total.test.n.sum(0).astype(int),
                "m0": m0,
                "m1": m1,
                "truth": truth,
                "n_truth": n_truth,
            }
        )
    columns = {key: np.stack([block[key] for block in blocks], -1) for key in blocks[0]}
    statuses = dict(zip(ESTIMATORS, np.moveaxis(columns["status"], -1, 0), strict=True))
    believe = believed(statuses, shifted(part.judged.total))
    columns["believe"] = columns["estimator"] == believe[..., None]
    return pd.DataFrame(
        {
            "model": np.repeat(part.test.models.to_numpy(), j * len(blocks)),
            "judge": np.tile(np.repeat(part.test.judges.to_numpy(), len(blocks)), m),
            **{key: x.reshape(-1) for key, x in columns.items()},
        }
    )


def _rates_table(part: Slice, binary: Bool, level: float) -> pd.DataFrame:
    """Specificity, sensitivity and J of every model and judge, strata together."""
    m, j = len(part.test.models), len(part.test.judges)
    point, draws = rates_of(part.judged.total.own), rates_of(part.judged.draws.own)
    # Scores may lie outside of [0, 1].
    q0, q1, m0, m1 = (np.where(binary, x, 0.0) for x in point)
    closed = youden_j(q0, q1, m0, m1, level)
    ends = {
        "q0": (point.q0, closed.q0_lower, closed.q0_upper, draws.q0, 0.0),
        "q1": (point.q1, closed.q1_lower, closed.q1_upper, draws.q1, 0.0),
        "j": (closed.estimate, closed.lower, closed.upper, draws.q0 + draws.q1 - 1, -1.0),
    }
    columns: dict[str, Any] = {
        "model": np.repeat(part.test.models.to_numpy(), j),
        "judge": np.tile(part.test.judges.to_numpy(), m),
    }
    for name, (value, lower, upper, drawn, least) in ends.items():
        _, boot_lower, boot_upper, _ = bounds_with_failures(drawn, level, least, 1.0)
        for key, x in (
            (name, value),
            (f"{name}_lower", lower),
            (f"{name}_upper", upper),
            (f"{name}_boot_lower", boot_lower),
            (f"{name}_boot_upper", boot_upper),
        ):
            columns[key] = np.where(binary, x, np.nan).reshape(-1)
    status = np.where(binary, np.where(point.m0 + point.m1 > 0, closed.status, Status.NO_LABELS), Status.NOT_BINARY)
    columns["status"] = status.reshape(-1)
    columns["m0"], columns["m1"] = (x.reshape(-1).astype(int) for x in (point.m0, point.m1))
    return pd.DataFrame(columns)
