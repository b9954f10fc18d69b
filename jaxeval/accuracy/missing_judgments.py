"""What missing judgments do to accuracies: how many there are, and whether they are missing by chance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy

from jaxeval.arrays import Bool, Int
from jaxeval.data.judged_answers import JudgedAnswers
from jaxeval.wording import counted

#: Missing shares are reported to differ where chance makes such a difference more rarely than this.
_RARE = 0.01
_OF_JUDGED = "the raw share and Rogan-Gladen use judged answers alone"


def missing_judgments(calibration: JudgedAnswers, test: JudgedAnswers) -> list[str]:
    """Warnings about labelled answers of ``calibration`` and answers of ``test`` that the same judges did not judge.

    Shares that are missing are compared between answers labelled wrong and right, between models, and between
    calibration and test, for every judge, by Fisher's exact test (two groups) or the chi-square test, at level 0.01.
    """
    labelled = ~np.isnan(calibration.label)
    found = []
    for k, judge in enumerate(test.judges):
        # A judge who judged no answer of a model was not asked about it.
        asked = test.answered & test.judged[:, :, k].any(axis=0)
        of_asked = np.isin(calibration.models, test.models[asked.any(axis=0)])
        known = labelled & (of_asked | calibration.judged[:, :, k].any(axis=0))
        gap, test_gap = (there & ~x.judged[:, :, k] for there, x in ((known, calibration), (asked, test)))
        if not (gap.any() or test_gap.any()):
            continue
        found.append(
            f"{judge}: {gap.sum():,} of {counted(known.sum(), 'labelled calibration answer')} and {test_gap.sum():,} "
            f"of {counted(asked.sum(), 'test answer has', 'test answers have')} no judgment; labels alone and PPI++ "
            f"use these answers, too, but {_OF_JUDGED}"
        )
        found += _differences(calibration, test, known, asked, gap, test_gap, f"{judge}: judgments are missing")
    return found


def _differences(
    calibration: JudgedAnswers, test: JudgedAnswers, known: Bool, asked: Bool, gap: Bool, test_gap: Bool, about: str
) -> Iterator[str]:
    of_class = [(gap & (calibration.label == y), known & (calibration.label == y)) for y in (0, 1)]
    by_class = np.array([[missing.sum(), n.sum()] for missing, n in of_class])
    if _differ(by_class):
        yield (
            f"{about} for {_share(by_class[0])} of the answers labelled wrong and {_share(by_class[1])} of those "
            f"labelled right, more than chance explains: {_OF_JUDGED}, which are not like the others"
        )
    models = list(test.models[asked.any(axis=0)])
    by_model = np.stack([test_gap.sum(0), asked.sum(0)], axis=1)[asked.any(axis=0)]
    where = calibration.models.get_indexer(models)
    by_model += np.where((where >= 0)[:, None], np.stack([gap.sum(0), known.sum(0)], axis=1)[where], 0)
    if _differ(by_model):
        order = np.argsort(by_model[:, 0] / by_model[:, 1], kind="stable")
        least, most = order[0], order[-1]
        yield (
            f"{about} for {_share(by_model[least])} of the answers of {models[least]} and {_share(by_model[most])} of "
            f"those of {models[most]}, more than chance explains: {_OF_JUDGED}, and so compare unlike answers"
        )
    by_part = np.array([[x.sum(), n.sum()] for x, n in ((gap, known), (test_gap, asked))])
    if _differ(by_part):
        yield (
            f"{about} for {_share(by_part[0])} of the labelled calibration answers and {_share(by_part[1])} of the "
            "test answers, more than chance explains: PPI++ is unbiased only if they are missing at random"
        )


def _differ(counts: Int) -> bool:
    """Whether the missing shares of groups, from the missing and all answers (K, 2) of each, differ beyond chance."""
    counts = counts[counts[:, 1] > 0]
    table = np.stack([counts[:, 0], counts[:, 1] - counts[:, 0]])
    if len(counts) < 2 or (table.sum(1) == 0).any():
        return False
    test = scipy.stats.fisher_exact(table) if len(counts) == 2 else scipy.stats.chi2_contingency(table)
    return bool(test.pvalue < _RARE)


def _share(counts: Int) -> str:
    return f"{counts[0] / counts[1]:.1%} ({counts[0]:,} of {counts[1]:,})"
