"""Calibration and test fitted together: the same judges in one order, in slices, with warnings where they differ."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np
import pandas as pd

from jaxeval.accuracy.judged_sums import POOLED
from jaxeval.accuracy.missing_judgments import missing_judgments
from jaxeval.arrays import Bool
from jaxeval.data.judged_answers import CalibrationSampling, JudgedAnswers
from jaxeval.errors import DataError
from jaxeval.wording import counted, did_you_mean, named


def aligned(
    calibration: JudgedAnswers, test: JudgedAnswers, shared: Hashable, sampling: CalibrationSampling | None = None
) -> tuple[JudgedAnswers, list[str]]:
    """``calibration`` with the judges of ``test`` in its order, and what is noteworthy about the two."""
    if np.isnan(calibration.label).all():
        raise DataError("the calibration answers have no human labels: name the column of labels (label=, --human)")
    for role, one, other in (("models", calibration.models, test.models), ("judges", calibration.judges, test.judges)):
        alike = set(one.map(str)) & set(other.map(str))
        if alike and not one.isin(other).any():
            raise DataError(
                f"calibration and test name {role} by values of different types, {type(one[0]).__name__} and "
                f"{type(other[0]).__name__} ({sorted(alike)[0]!r} in both): make them one type, such as text"
            )
    unknown = [judge for judge in test.judges if judge not in calibration.judges]
    if unknown:
        have = ", ".join(map(repr, calibration.judges))
        raise DataError(
            f"the test has judgments by {', '.join(map(repr, unknown))}, the calibration has none; its judges are "
            f"{have}: give both the judgments of the same judges"
        )
    if shared != POOLED and shared not in calibration.models:
        have = ", ".join(map(repr, calibration.models))
        hint = did_you_mean(shared, [*calibration.models, POOLED])
        raise DataError(f"shared={shared!r} is no model of the calibration; its models are {have}, or 'pooled'{hint}")
    where = calibration.judges.get_indexer(test.judges)
    ours = replace(
        calibration,
        judges=test.judges,
        judgment=calibration.judgment[:, :, where],
        binary=calibration.binary[where],
        sampling=None,  # a setting of the call, and no part of the data
    )
    warnings = []
    unlabelled = int((ours.judged & np.isnan(ours.label)[:, :, None]).any(2).sum())
    if unlabelled:
        warnings.append(f"left out: {counted(unlabelled, 'calibration answer')} without a label")
    without = [str(model) for model in test.models if model not in calibration.models]
    if without:
        several = f"{', '.join(without[:8])}{' and others' if len(without) > 8 else ''}"
        warnings.append(f"no calibration labels of {several}: only a shared calibration can correct them")
    # With a calibration by label the test may well be all answers.
    both = _in_both(ours, test) if sampling in ("random", "borrowed") else 0
    if both and not isinstance(ours.items, pd.RangeIndex):
        warnings.append(
            f"{counted(both, 'item is', 'items are')} in the calibration and in the test: intervals allow for it, but "
            "PPI++ weighs the two as if they were independent, so leave these items out of one of them"
        )
    return ours, warnings + _unlike_items(ours, test) + missing_judgments(ours, test) + _truth_warnings(test)


def _in_both(calibration: JudgedAnswers, test: JudgedAnswers) -> int:
    """Items of both; where models have labels of their own, those with an answer of one model in both."""
    # As text: one file may hold items as numbers, and another not.
    here = calibration.items.map(str).get_indexer_for(test.items.map(str))
    of_model = calibration.models.get_indexer(test.models)
    if (of_model < 0).any():
        return int((here >= 0).sum())
    labelled = ~np.isnan(calibration.label[here][:, of_model])
    return int(((here >= 0)[:, None] & labelled & test.judged.any(2)).any(1).sum())


def _unlike_items(calibration: JudgedAnswers, test: JudgedAnswers) -> list[str]:
    """Where some models have a judgment of a test item and others have none: why, and what to do."""
    asked = np.asarray(test.judged).max(axis=2)
    absent = asked.max(axis=1, keepdims=True) & ~asked
    if not absent.any():
        return []
    about = "models were judged on different items"
    if asked.sum(axis=1).max() == 1:
        return [
            f"{about}: no test item has judgments of two models; where models answered the same items, name the column "
            "of items (item=, --item)"
        ]
    # Answers with a label may have been set apart for the calibration, as `JudgedAnswers.by_label` does.
    place = calibration.items.map(str).get_indexer_for(test.items.map(str))
    of_model = calibration.models.get_indexer(test.models)
    known = ~np.isnan(calibration.label[place][:, of_model]) & (place >= 0)[:, None] & (of_model >= 0)
    set_apart, lacking = int((absent & known).sum()), int((absent & ~known).sum())
    own = "each model is scored on its own items"
    found = []
    if set_apart:
        items = counted(int((absent & known).any(axis=1).sum()), "item")
        answers = counted(set_apart, "labelled answer belongs", "labelled answers belong")
        found.append(
            f"{about}: for {items} people labelled the answers of some models only, and {answers} to the calibration, "
            f"not to the test; {own}. To compare models on the same items, label all models' answers to an item or none"
        )
    if lacking:
        found.append(
            f"{about}: {counted(lacking, 'time')} a model has no judgment of an item where another model has "
            f"one; {own}. To keep only the items that all models have, read the answers with missing='complete' (on "
            "the command line --missing complete)"
        )
    return found


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


def without_items(test: JudgedAnswers) -> list[str]:
    """A warning that names the models without a test item; none where every model has one."""
    empty = test.models[~test.judged.any(axis=(0, 2))]
    return [f"no test items of {', '.join(map(str, empty[:8]))}"] if len(empty) else []


def slices_of(
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
            f"column {by!r} has values that cannot name slices (it holds {named(list(map(repr, levels)), 5)}): rename "
            "'all' (the name of all items together), empty values, and values that are alike as text"
        )
    return {str(level): (_only(calibration, by, level), _only(test, by, level)) for level in levels}


def _only(answers: JudgedAnswers, by: str, level: Hashable) -> JudgedAnswers:
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
