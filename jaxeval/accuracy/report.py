"""A report of judged accuracies that says what it rests on, and weakens its own claim where it must.

It follows the seven points of arXiv:2605.06939, section 7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from jaxeval.accuracy.calibration_planning import allocate_calibration, minimum_calibration_size
from jaxeval.accuracy.estimates import (
    ESTIMATORS,
    HAVE_NUMBERS,
    NO_LABELS,
    NOT_BINARY,
    NOT_SHARES,
    ONE_CLASS,
)
from jaxeval.accuracy.judge_accuracy import JudgeAccuracy
from jaxeval.accuracy.model_comparison import ModelComparison
from jaxeval.accuracy.rogan_gladen import CLIPPED, OK, OUTSIDE
from jaxeval.wording import counted

#: At J = 0.3 the simulations of arXiv:2605.06939 find Rogan-Gladen with a shared calibration far from its level.
LOW_J = 0.3
#: Labels of a class in the pilot of Algorithm 1 of arXiv:2511.21140; with fewer a rate is hardly known.
FEW_LABELS = 10

#: Differences within this are near ties: biases of that size are common.
NEAR_TIE = 0.05
#: With fewer errors of a judge on labelled items its resamples know too little of them.
FEW_ERRORS = 5

NEXT_LABELS = 100

_WEAKENING = {"low J", "few labels", "few test items", "delta J", "near tie"}
_SHOWN = ("naive", "calibration_only", "ppi_plus_plus", "rogan_gladen", "rogan_gladen_shared")


@dataclass(frozen=True)
class Caution:
    """One thing that the data cannot say, about a model or a pair of models."""

    kind: str  # "low J", "few labels", "undefined", "clipped", "delta J", "near tie", "sign", "shared bias", ...
    slice: str
    judge: Any
    models: tuple[Any, ...]
    text: str


@dataclass(frozen=True, eq=False)
class JudgeReport:
    """Judged accuracies, or differences, with their cautions: as text, DataFrame or Markdown."""

    accuracy: JudgeAccuracy
    comparison: ModelComparison | None
    cautions: list[Caution] = field(repr=False)

    def to_frame(self) -> pd.DataFrame:
        """The table of estimates, or of differences, with a column of the kinds of caution that apply to each row."""
        if self.comparison is None:
            table, names = self.accuracy.table.copy(), ["model"]
        else:
            table, names = self.comparison.table.copy(), ["model_a", "model_b"]
        kinds = self._kinds()
        slices = table["slice"] if "slice" in table else ["all"] * len(table)
        found = []
        for label, judge, *models in zip(slices, table["judge"], *(table[name] for name in names), strict=True):
            keys = [(model,) for model in models] + ([tuple(models)] if len(models) > 1 else [])
            found.append(", ".join(dict.fromkeys(kind for key in keys for kind in kinds.get((label, judge, key), ()))))
        return table.assign(cautions=found)

    def _kinds(self) -> dict[tuple[str, Any, tuple[Any, ...]], list[str]]:
        """Kinds of caution by slice, judge and models."""
        kinds: dict[tuple[str, Any, tuple[Any, ...]], list[str]] = {}
        for caution in self.cautions:
            kinds.setdefault((caution.slice, caution.judge, caution.models), []).append(caution.kind)
        return kinds

    def sections(self) -> Iterator[tuple[str, list[str], pd.DataFrame | None]]:
        """Title, sentences and table of each section."""
        settings, slices = self.accuracy.settings, self.accuracy.slices
        part = slices[""]
        level = f"{100 * settings.level:g}%"
        yield (
            "What is estimated",
            [
                "Accuracy: the share of the items, of the population that the test items stand for, that people would "
                "label right.",
                *(f"{name}: {what}." for name, what in ESTIMATORS.items()),
                "naive is not corrected; all others are."
                + (f" Corrected within values of {settings.stratify!r}." if settings.stratify else ""),
            ],
            None,
        )
        own = bool((part.total.own.n > 0).any())
        calibrated = f"shared calibration: labels of {self._shared_by()}"
        yield (
            "Calibration",
            [
                f"{counted(len(part.calibration.items), 'calibration item')}, "
                f"{counted(len(part.test.items), 'test item')}. "
                + ("Model-specific where the estimator is; " if own else "No model has labels of its own; ")
                + f"{calibrated}.",
                f"Intervals ({level}) hold the sampling of test items and of calibration items"
                + (", and the choice of the half" if own else "")
                + "; resamples keep the judgments of all models on an item together. Runs of a judge are averaged per "
                "item and not resampled. Labels are taken as true.",
            ],
            None,
        )
        shown = ["model", "judge", "q0", "q1", "j", "j_lower", "j_upper", "m0", "m1", "status"]
        yield "How good the judges are (all labels)", [], _columns(self._involved(self.accuracy.rates), shown)
        table = self._involved(self.accuracy.table)
        # In a comparison the shared calibration is that of a model, and belongs to the differences.
        shown = [name for name in _SHOWN if self.comparison is None or name != "rogan_gladen_shared"]
        table = table[table["estimator"].isin(shown) & ~table["status"].isin([NOT_BINARY, NOT_SHARES])]
        shown = ["model", "judge", "estimator", "estimate", "lower", "upper", "boot_lower", "boot_upper", "status"]
        yield "Accuracy of each model", [], _columns(table, shown)
        if self.comparison is not None:
            stability = self.comparison.stability
            shown = ["judge", "model_a", "model_b", "delta_j", "delta_j_lower", "delta_j_upper", "shared_bias"]
            yield "Is the judge equally good on both models?", [], _columns(stability, shown)
            table = self.comparison.table
            table = table[table["estimator"].isin(_SHOWN) & ~table["status"].isin([NOT_BINARY, NOT_SHARES])]
            shown = [
                "judge", "model_a", "model_b", "estimator", "difference", "lower", "upper", "boot_lower", "boot_upper",
                "labels", "status",
            ]  # fmt: skip
            yield "Differences, A minus B", [], _columns(table, shown)
            yield "What can be claimed", list(self.claims()), None
        plan = self._next_labels()
        if len(plan):
            yield f"Where the next {NEXT_LABELS} labels of a model shorten the Rogan-Gladen interval most", [], plan
        texts = [*self.accuracy.warnings, *dict.fromkeys(c.text for c in self.cautions)]
        yield (
            "Cautions",
            texts or ["None of the checks found a reason for one; that is no proof of the assumptions."],
            None,
        )

    def claims(self) -> Iterator[str]:
        """A sentence per slice, judge and pair: what the model-specific PPI++ says, weakened by the cautions."""
        if self.comparison is None:
            return
        kinds = self._kinds()
        table = self.comparison.table
        for row in table[table["estimator"] == "ppi_plus_plus"].to_dict("records"):
            label, judge = row.get("slice", "all"), row["judge"]
            a, b = row["model_a"], row["model_b"]
            where = f"{_where(label)}{judge}, {a} against {b}: "
            if row["status"] not in HAVE_NUMBERS:
                yield where + f"no claim; PPI++ with labels of both models: {row['status']}"
                continue
            numbers = f"{_numbers(row)} by PPI++"
            if row["lower"] <= 0 <= row["upper"]:
                yield where + f"not told apart, {numbers}"
                continue
            ahead = a if row["difference"] > 0 else b
            found = {kind for key in ((a,), (b,), (a, b)) for kind in kinds.get((label, judge, key), ())}
            doubt = sorted(found & _WEAKENING)
            if doubt:
                yield where + f"{ahead} seems ahead, {numbers}; a weak claim (see the cautions: {', '.join(doubt)})"
            else:
                yield where + f"{ahead} is ahead, {numbers}"

    @property
    def text(self) -> str:
        """The report as plain text."""
        parts = []
        for title, sentences, table in self.sections():
            parts.append(f"{title}\n{'-' * len(title)}")
            parts += [f"* {sentence}" for sentence in sentences]
            if table is not None:
                parts.append(table.to_string(index=False, float_format=lambda x: f"{x:.3f}", na_rep="-"))
            parts.append("")
        return "\n".join(parts)

    def __str__(self) -> str:
        return self.text

    def to_markdown(self) -> str:
        """The report as Markdown."""
        parts = []
        for title, sentences, table in self.sections():
            parts.append(f"## {title}\n")
            if sentences:
                parts.append("\n".join(f"* {_escaped(sentence)}" for sentence in sentences) + "\n")
            if table is not None:
                parts.append(_markdown(table) + "\n")
        return "\n".join(parts)

    def _next_labels(self) -> pd.DataFrame:
        """How to split further labels by class (Algorithm 1), from the rates known so far, all items together."""
        rates = self._involved(self.accuracy.rates)
        if "slice" in rates:
            rates = rates[rates["slice"] == "all"]
        naive = self.accuracy.table[self.accuracy.table["estimator"] == "naive"]
        if "slice" in naive:
            naive = naive[naive["slice"] == "all"]
        known = rates.merge(naive[["model", "judge", "estimate"]], on=["model", "judge"])
        known = known[(known["m0"] > 0) & (known["m1"] > 0) & known["j"].notna() & known["estimate"].notna()]
        if known.empty:
            return pd.DataFrame()
        split = allocate_calibration(
            known["m0"] + known["m1"] + NEXT_LABELS,
            known["estimate"],
            known["q0"],
            known["q1"],
            known["m0"],
            known["m1"],
        )
        return pd.DataFrame(
            {
                "model": known["model"],
                "judge": known["judge"],
                "labels_wrong": known["m0"],
                "labels_right": known["m1"],
                "next_wrong": split.more0,
                "next_right": split.more1,
            }
        )

    def _involved(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows of models that are compared."""
        if self.comparison is None:
            return table
        return table[table["model"].isin({model for pair in self.comparison.pairs for model in pair})]

    def _shared_by(self) -> str:
        if self.comparison is None:
            shared = self.accuracy.settings.shared
            return "all models together" if shared == "pooled" else shared
        names = list(dict.fromkeys(self.comparison.stability["shared_labels"]))
        return "all models together" if names == ["pooled"] else " or ".join(map(str, names[:3]))


def judge_report(accuracy: JudgeAccuracy, comparison: ModelComparison | None = None) -> JudgeReport:
    """The report of accuracies, or of a comparison, with all cautions that the checks find."""
    cautions = list(_model_cautions(accuracy))
    if comparison is not None:
        involved = {model for pair in comparison.pairs for model in pair}
        cautions = [c for c in cautions if set(c.models) <= involved]
        cautions += _pair_cautions(comparison)
    return JudgeReport(accuracy, comparison, cautions)


def _model_cautions(accuracy: JudgeAccuracy) -> Iterator[Caution]:
    counts = _error_counts(accuracy)
    for row, errors in zip(accuracy.rates.to_dict("records"), counts, strict=True):
        label, judge, model = row.get("slice", "all"), row["judge"], row["model"]
        about = f"{_where(label)}{judge} on {model}: "

        def caution(kind: str, text: str, label: str = label, judge: Any = judge, model: Any = model,
                    about: str = about) -> Caution:  # fmt: skip
            return Caution(kind, label, judge, (model,), about + text)

        j, m0, m1 = row["j"], row["m0"], row["m1"]
        if errors.n_test and errors.n_test < FEW_LABELS:
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
                f"a stratum has only {counted(errors.fewest_in_stratum, 'label')}; corrections within it are hardly "
                "known",
            )
        if row["status"] == NOT_BINARY:
            continue
        if min(errors.passed, errors.failed) < FEW_ERRORS:
            yield caution(
                "few errors",
                f"on labelled items it passed {counted(errors.passed, 'wrong answer')} and failed "
                f"{counted(errors.failed, 'right one')}; percentile intervals of resamples take so few for all there "
                "are (the closed form does not)",
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
        label, name = row.get("slice", "all"), row["estimator"]
        about = f"{_where(label)}{row['judge']} on {row['model']}: {name}"
        key = label, row["judge"], (row["model"],)
        if row["status"] in (CLIPPED, OUTSIDE):
            what = "left [0, 1] and is clipped" if row["status"] == CLIPPED else "and all of its interval left [0, 1]"
            yield Caution(
                row["status"], *key,
                f"{about} {what}: the judged share is hard to reconcile with the calibration",
            )  # fmt: skip
        elif row["status"] == ONE_CLASS and name == "ppi_plus_plus":
            yield Caution(
                "few labels", *key,
                f"{about} has labels of one class only: of the judge's errors on the other nothing is known",
            )  # fmt: skip
        elif row["status"] not in (*HAVE_NUMBERS, ONE_CLASS, NOT_BINARY, NOT_SHARES, NO_LABELS):
            yield Caution("undefined", *key, f"{about} is not defined ({row['status']})")
        elif row["status"] == OK and row["failed_share"] > 0:
            yield Caution(
                "failed resamples", *key,
                f"{about} is not defined in {row['failed_share']:.1%} of the resamples; they count as 0 and 1 in its "
                "bootstrap interval",
            )  # fmt: skip


class _Counts(NamedTuple):
    """What is behind the rates of a judge on a model."""

    passed: float  # labelled items that are wrong and passed
    failed: float  # and that are right and failed
    fewest_in_stratum: int  # labels in the stratum of the test that has fewest
    n_test: int


def _error_counts(accuracy: JudgeAccuracy) -> Iterator[_Counts]:
    """In the order of the rows of ``accuracy.rates``."""
    for part in accuracy.slices.values():
        own, test = part.total.own, part.total.test
        passed, failed = (own.judgment - own.product).sum(0), (own.label - own.product).sum(0)
        fewest = np.where(test.n > 0, own.n, np.inf).min(0)
        for k in np.ndindex(passed.shape):
            labels = int(fewest[k]) if np.isfinite(fewest[k]) else 0
            yield _Counts(round(float(passed[k]), 2), round(float(failed[k]), 2), labels, int(test.n.sum(0)[k]))


def _pair_cautions(comparison: ModelComparison) -> Iterator[Caution]:
    for row in comparison.stability.to_dict("records"):
        label, a, b = row.get("slice", "all"), row["model_a"], row["model_b"]
        about = f"{_where(label)}{row['judge']}, {a} against {b}: "
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
    n_pairs = len(comparison.pairs) * len(dict.fromkeys(table["judge"]))
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
    about = f"{_where(label)}{judge}, {a} against {b}: "
    best = rows.loc["ppi_plus_plus"]
    if best["status"] not in HAVE_NUMBERS:
        return
    tied = best["lower"] <= 0 <= best["upper"]
    if max(-best["lower"], best["upper"]) <= NEAR_TIE:
        yield Caution(
            "near tie", label, judge, (a, b),
            f"{about}a near tie; by PPI++ the difference is {_numbers(best)}, and biases of that size can make any "
            "estimate look directional",
        )  # fmt: skip
    elif tied:
        yield Caution(
            "not told apart", label, judge, (a, b),
            f"{about}not told apart; by PPI++ the difference is {_numbers(best)}: more labels or items would tell",
        )  # fmt: skip
    for name in ("naive", "rogan_gladen_shared"):
        row = rows.loc[name]
        if row["status"] not in HAVE_NUMBERS:
            continue
        clear = not row["lower"] <= 0 <= row["upper"]
        if np.sign(row["difference"]) == -np.sign(best["difference"]) and (clear or not tied):
            yield Caution(
                "sign", label, judge, (a, b),
                f"{about}{name} has the opposite sign, {_numbers(row)} against {_numbers(best)} by PPI++ with labels "
                "of both models: a reversal",
            )  # fmt: skip


def _numbers(row: Any) -> str:
    return f"{row['difference']:+.3f} [{row['lower']:+.3f}, {row['upper']:+.3f}]"


def _where(label: str) -> str:
    return "" if label == "all" else f"{label}, "


def _columns(table: pd.DataFrame, shown: list[str]) -> pd.DataFrame:
    table = table[[c for c in ("slice", *shown) if c in table]]
    return table.assign(labels=table["labels"].round().astype(int)) if "labels" in table else table


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("_", "\\_").replace("*", "\\*")


def _markdown(table: pd.DataFrame) -> str:
    def cell(value: Any) -> str:
        if isinstance(value, float):
            return "" if np.isnan(value) else f"{value:.3f}"
        return _escaped(str(value))

    head = "| " + " | ".join(_escaped(str(c)) for c in table.columns) + " |"
    rule = "|" + "|".join("---:" if pd.api.types.is_numeric_dtype(table[c]) else "---" for c in table.columns) + "|"
    rows = ["| " + " | ".join(cell(v) for v in row) + " |" for row in table.itertuples(index=False)]
    return "\n".join([head, rule, *rows])
