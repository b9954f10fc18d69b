"""Cautions about judged accuracies and differences: what the data cannot say, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from jaxeval.accuracy.belief import shifted
from jaxeval.accuracy.calibration_planning import minimum_calibration_size
from jaxeval.accuracy.judge_accuracy import JudgeAccuracy
from jaxeval.accuracy.model_comparison import ModelComparison
from jaxeval.accuracy.statuses import BOUNDED, STATUSES, UNBOUNDED, Status
from jaxeval.wording import counted

#: At J = 0.3 the simulations of arXiv:2605.06939 find Rogan-Gladen with a shared calibration far from its level.
LOW_J = 0.3
#: Labels of a class in the pilot of Algorithm 1 of arXiv:2511.21140; with fewer a rate is hardly known.
FEW_LABELS = 10

#: Differences within this are near ties: biases of that size are common.
NEAR_TIE = 0.05
#: With fewer errors of a judge on labelled items its resamples know too little of them.
FEW_ERRORS = 5


@dataclass(frozen=True)
class Caution:
    """One thing that the data cannot say, about a model or a pair of models."""

    kind: str  # "low J", "few labels", "no bounds", "raw share", "another share", "delta J", "near tie", "sign", ...
    slice: str
    judge: Any
    models: tuple[Any, ...]
    text: str


def model_cautions(accuracy: JudgeAccuracy) -> Iterator[Caution]:
    """Cautions about the accuracy of each model by each judge, those on which number to believe first."""
    yield from _other_shares(accuracy)
    yield from _raw_shares(accuracy.table)
    counts = _error_counts(accuracy)
    for row, errors in zip(accuracy.rates.to_dict("records"), counts, strict=True):
        label, judge, model = row.get("slice", "all"), row["judge"], row["model"]
        about = f"{of_slice(label)}{judge} on {model}: "

        def caution(kind: str, text: str, label: str = label, judge: Any = judge, model: Any = model,
                    about: str = about) -> Caution:  # fmt: skip
            return Caution(kind, label, judge, (model,), about + text)

        j, m0, m1 = row["j"], row["m0"], row["m1"]
        if errors.n_test == 0:
            yield caution(Status.NO_TEST, f"{STATUSES[Status.NO_TEST]}, so there is no estimate")
        elif errors.n_test < FEW_LABELS:
            yield caution("few test items", f"only {counted(errors.n_test, 'test item')}")
        if m0 + m1 == 0:
            continue
        if min(m0, m1) < FEW_LABELS:
            yield caution(
                "few labels",
                f"only {counted(m0, 'label')} wrong and {m1} right; the judge's errors are hardly known",
            )
        elif errors.fewest_in_stratum < FEW_LABELS:
            yield caution(
                "few labels",
                f"a stratum has only {counted(int(errors.fewest_in_stratum), 'label')}; corrections within it are "
                "hardly known",
            )
        if row["status"] == Status.NOT_BINARY:
            continue
        if min(errors.passed, errors.failed) < FEW_ERRORS:
            yield caution(
                "few errors",
                f"on labelled items it passed {counted(errors.passed, 'wrong answer')} and failed "
                f"{counted(errors.failed, 'right one')}; with so few errors percentile intervals of resamples are too "
                "short (the closed form allows for it)",
            )
        if np.isnan(j):
            continue
        interval = f"J = {j:.2f} [{row['j_lower']:.2f}, {row['j_upper']:.2f}]"
        if row["j_upper"] < 0:
            yield caution(
                "low J",
                f"{interval} is below 0: the judge errs systematically, or its verdicts are coded in reverse",
            )
        elif row["j_lower"] <= 0:
            yield caution(
                "low J",
                f"{interval} is not told from a judge that guesses; corrected estimates are unstable: weaken any claim",
            )
        elif j < LOW_J:
            yield caution(
                "low J",
                f"{interval} is low: errors of the calibration grow by 1/J = {1 / j:.1f} in a corrected estimate",
            )
        needed = float(minimum_calibration_size((1 + j) / 2)) if j > 0 else np.inf
        if m0 + m1 < needed < np.inf:
            yield caution(
                "few labels",
                f"{counted(m0 + m1, 'label')}, and at J = {j:.2f} a correction has less bias than the raw share only "
                f"from about {needed:.0f} (Proposition 5.1 of arXiv:2511.21140)",
            )
    for row in accuracy.table.to_dict("records"):
        label, name, status = row.get("slice", "all"), row["estimator"], row["status"]
        about = f"{of_slice(label)}{row['judge']} on {row['model']}: {name}"
        key = label, row["judge"], (row["model"],)
        if status in (Status.CLIPPED, Status.OUTSIDE):
            yield Caution(status, *key, f"{about}: {STATUSES[status]}")
        elif status in UNBOUNDED:
            yield Caution("no bounds", *key, f"{about}: {STATUSES[status]}")
        elif status == Status.ONE_CLASS and name == "ppi_plus_plus":
            yield Caution("few labels", *key, f"{about}: {STATUSES[status]}")
        elif status not in (
            Status.OK,
            Status.ONE_CLASS,
            Status.NOT_BINARY,
            Status.NOT_SHARES,
            Status.NO_LABELS,
            Status.NO_TEST,
        ):
            yield Caution("undefined", *key, f"{about} is not defined: {STATUSES[status]}")
        elif status == Status.OK and row["failed_share"] > 0:
            yield Caution(
                "failed resamples", *key,
                f"{about} is not defined in {row['failed_share']:.1%} of the resamples; they count as 0 and 1 in its "
                "bootstrap interval",
            )  # fmt: skip


def _raw_shares(table: pd.DataFrame) -> Iterator[Caution]:
    """Where the raw share lies outside of the interval of PPI++."""
    keys = [c for c in ("slice", "model", "judge") if c in table]
    naive, best = (table[table["estimator"] == name].set_index(keys) for name in ("naive", "ppi_plus_plus"))
    for key, raw, row in zip(naive.index, naive.itertuples(), best.itertuples(), strict=True):
        if raw.status not in BOUNDED or row.status not in BOUNDED or row.lower <= raw.estimate <= row.upper:
            continue
        *label, model, judge = key
        part = label[0] if label else "all"
        yield Caution(
            "raw share", part, judge, (model,),
            f"{of_slice(part)}{judge} on {model}: the raw share {raw.estimate:.3f} lies outside of the interval of "
            f"PPI++, {row.estimate:.3f} [{row.lower:.3f}, {row.upper:.3f}]: do not report it without a correction",
        )  # fmt: skip


def _other_shares(accuracy: JudgeAccuracy) -> Iterator[Caution]:
    """Where the judge says "right" of another share of the calibration than of the test."""
    for label, part in accuracy.slices.items():
        total = part.judged.total
        means = (x.judgment.sum(0) / np.maximum(x.n.sum(0), 1) for x in (total.own, total.test))
        known, judged = (np.asarray(x) for x in means)
        for m, j in np.argwhere(shifted(total)):
            model, judge = part.test.models[m], part.test.judges[j]
            yield Caution(
                "another share", label or "all", judge, (model,),
                f"{of_slice(label or 'all')}{judge} on {model}: the mean judgment is {known[m, j]:.3f} in the "
                f"calibration and {judged[m, j]:.3f} in the test, more than chance explains; PPI++ and labels alone "
                "take the two for one population, and Rogan-Gladen alone allows for another share of right answers",
            )  # fmt: skip


class _Counts(NamedTuple):
    """What is behind the rates of a judge on a model."""

    passed: float  # labelled items that are wrong and passed
    failed: float  # and that are right and failed
    fewest_in_stratum: float  # labels in the stratum of the test that has fewest; infinite without a test
    n_test: int


def _error_counts(accuracy: JudgeAccuracy) -> Iterator[_Counts]:
    """In the order of the rows of ``accuracy.rates``."""
    for part in accuracy.slices.values():
        own, test = part.judged.total.own, part.judged.total.test
        passed, failed = (own.judgment - own.product).sum(0), (own.label - own.product).sum(0)
        fewest = np.where(test.n > 0, own.n, np.inf).min(0)
        for k in np.ndindex(passed.shape):
            known = round(float(passed[k]), 2), round(float(failed[k]), 2)
            yield _Counts(*known, float(fewest[k]), int(test.n.sum(0)[k]))


def pair_cautions(comparison: ModelComparison) -> Iterator[Caution]:
    """Cautions about the differences between models."""
    for row in comparison.stability.to_dict("records"):
        label, a, b = row.get("slice", "all"), row["model_a"], row["model_b"]
        about = f"{of_slice(label)}{row['judge']}, {a} against {b}: "
        key = label, row["judge"], (a, b)
        delta, lower, upper = row["delta_j"], row["delta_j_lower"], row["delta_j_upper"]
        if np.isnan(delta):
            continue
        if lower > 0 or upper < 0:
            bias = row["shared_bias"]
            predicted = "" if np.isnan(bias) else f" (its predicted bias: {bias:+.3f})"
            yield Caution(
                "delta J", *key,
                f"{about}delta J = {delta:+.2f} [{lower:+.2f}, {upper:+.2f}] excludes 0: the judge errs differently on "
                f"the two, and a shared calibration is not defensible{predicted}",
            )  # fmt: skip
    table = comparison.table
    keys = [c for c in ("slice", "judge", "model_a", "model_b") if c in table]
    n_pairs = table.groupby(keys).ngroups
    if n_pairs > 1:
        share = 1 - comparison.accuracy.settings.level
        yield Caution(
            "many comparisons", "all", None, (),
            f"{counted(n_pairs, 'comparison')}, each with an interval of its own: if no models differed, about "
            f"{n_pairs * share:.1f} of them would exclude 0 by chance",
        )  # fmt: skip
    for _, group in table.groupby(keys, sort=False):
        yield from _claim_cautions(group.set_index("estimator", drop=False))


def _claim_cautions(rows: pd.DataFrame) -> Iterator[Caution]:
    first = rows.iloc[0]
    label, judge, a, b = first.get("slice", "all"), first["judge"], first["model_a"], first["model_b"]
    about = f"{of_slice(label)}{judge}, {a} against {b}: "
    best = rows.loc["ppi_plus_plus"]
    if best["status"] not in BOUNDED:
        return
    tied = best["lower"] <= 0 <= best["upper"]
    if max(-best["lower"], best["upper"]) <= NEAR_TIE:
        yield Caution(
            "near tie", label, judge, (a, b),
            f"{about}a near tie; by PPI++ the difference is {numbers(best)}, and biases of that size can make any "
            "estimate look directional",
        )  # fmt: skip
    elif tied:
        yield Caution(
            "not told apart", label, judge, (a, b),
            f"{about}not told apart; by PPI++ the difference is {numbers(best)}: more labels or items would tell",
        )  # fmt: skip
    for name in ("naive", "rogan_gladen_shared"):
        row = rows.loc[name]
        if row["status"] not in BOUNDED:
            continue
        clear = not row["lower"] <= 0 <= row["upper"]
        if np.sign(row["difference"]) == -np.sign(best["difference"]) and (clear or not tied):
            yield Caution(
                "sign", label, judge, (a, b),
                f"{about}{name} has the opposite sign, {numbers(row)} against {numbers(best)} by PPI++ with labels "
                "of both models: a reversal",
            )  # fmt: skip
        elif name == "naive" and not best["lower"] <= row["difference"] <= best["upper"]:
            yield Caution(
                "raw share", label, judge, (a, b),
                f"{about}the difference of the raw shares, {row['difference']:+.3f}, lies outside of the interval of "
                f"PPI++, {numbers(best)}: do not report it without a correction",
            )  # fmt: skip


def numbers(row: Any) -> str:
    """A difference with its interval."""
    return f"{row['difference']:+.3f} [{row['lower']:+.3f}, {row['upper']:+.3f}]"


def of_slice(label: str) -> str:
    """What names a slice at the start of a sentence."""
    return "" if label == "all" else f"{label}, "
