"""Cautions about judged accuracies and differences: what the data cannot say, in words."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxeval.accuracy.accuracy_tables import AccuracyTables
from jaxeval.accuracy.belief import DECLARE, DECLARE_OTHER, SPOKEN, shifted
from jaxeval.accuracy.calibration_planning import minimum_calibration_size
from jaxeval.accuracy.difference_tables import DifferenceTables
from jaxeval.accuracy.estimates import Slice
from jaxeval.accuracy.statuses import BOUNDED, STATUSES, UNBOUNDED, EstimateStatus
from jaxeval.arrays import Float
from jaxeval.plain_tables import records_of
from jaxeval.wording import counted, named

#: At J = 0.3 the simulations of arXiv:2605.06939 find Rogan-Gladen with a shared calibration far from its level.
LOW_J = 0.3
#: Labels of a class in the pilot of Algorithm 1 of arXiv:2511.21140; with fewer a rate is hardly known.
FEW_LABELS = 10

#: Differences within this are near ties: biases of that size are common.
NEAR_TIE = 0.05
#: With fewer errors on labelled items, resamples hardly show how often the judge errs.
FEW_ERRORS = 5

#: Level of the test that the calibration is a random part.
_UNLIKE = 0.05

#: Statuses that say nothing new about an estimate, or that another caution reports.
_SILENT = (
    EstimateStatus.OK,
    EstimateStatus.ONE_CLASS,
    EstimateStatus.NOT_BINARY,
    EstimateStatus.NOT_SHARES,
    EstimateStatus.NO_LABELS,
    EstimateStatus.NO_TEST,
)


class Caution(NamedTuple):
    """One thing that the data cannot say, about a model or a pair of models."""

    kind: str  # "undeclared", "balanced", "another share", "low J", "few labels", "raw share", "delta J", "sign", ...
    subject: Subject
    text: str


class Subject(NamedTuple):
    """What a caution or a claim is about: one model, or two, by a judge in a slice."""

    slice: str
    judge: Hashable
    models: tuple[Hashable, ...]

    @classmethod
    def of(cls, row: Mapping[Hashable, Any]) -> Subject:
        """Return the subject of a row of a table."""
        models = (row["model"],) if "model" in row else (row["model_a"], row["model_b"])
        return cls(row.get("slice", "all"), row["judge"], models)

    @property
    def about(self) -> str:
        """The start of a sentence."""
        if not self.models:
            return ""
        part = "" if self.slice == "all" else f"{self.slice}, "
        on = f" on {self.models[0]}" if len(self.models) == 1 else f", {self.models[0]} against {self.models[1]}"
        return f"{part}{self.judge}{on}: "

    def caution(self, kind: str, text: str) -> Caution:
        """Return a caution about this subject."""
        return Caution(kind, self, self.about + text)


#: The subject of a caution about all that was read.
EVERYTHING = Subject("all", None, ())


def model_cautions(accuracy: AccuracyTables) -> Iterator[Caution]:
    """Yield cautions about each model's accuracy by each judge, those on which number to believe first."""
    yield from _design(accuracy)
    if accuracy.settings.sampling == "random":
        for label, part in accuracy.slices.items():
            yield from _other_shares(label or "all", part)
    rows = records_of(accuracy.rows["table"])
    yield from _raw_shares(rows)
    for row in _rates_and_errors(accuracy):
        yield from _rate_cautions(row)
    for row in rows:
        subject, name, status = Subject.of(row), row["estimator"], row["status"]
        if status in (EstimateStatus.CLIPPED, EstimateStatus.OUTSIDE):
            yield subject.caution(status, f"{name}: {STATUSES[status]}")
        elif status in UNBOUNDED:
            yield subject.caution("no bounds", f"{name}: {STATUSES[status]}")
        elif status == EstimateStatus.ONE_CLASS and name == "ppi_plus_plus":
            yield subject.caution("few labels", f"{name}: {STATUSES[status]}")
        elif status not in _SILENT:
            yield subject.caution("undefined", f"{name} is not defined: {STATUSES[status]}")
        elif status == EstimateStatus.OK and row["failed_share"] > 0:
            yield subject.caution(
                "failed resamples",
                f"{name} is not defined in {row['failed_share']:.1%} of the resamples; they count as 0 and 1 in its "
                "bootstrap interval",
            )


def _rates_and_errors(accuracy: AccuracyTables) -> list[dict[Any, Any]]:
    """Return rows of judges' rates, with errors on labelled items, the fewest labels of a stratum, and test items."""
    sums = [(part.judged.total.own, part.judged.total.test) for part in accuracy.slices.values()]

    def column(of_slices: Iterable[Float]) -> Float:
        return np.concatenate([x.reshape(-1) for x in of_slices])

    columns = {
        "passed": column((labelled.judgment - labelled.product).sum(0) for labelled, _ in sums).round(2),
        "failed": column((labelled.label - labelled.product).sum(0) for labelled, _ in sums).round(2),
        "fewest_in_stratum": column(np.where(test.n > 0, labelled.n, np.inf).min(0) for labelled, test in sums),
        "n_test": column(test.n.sum(0) for _, test in sums).astype(int),
    }
    return records_of(accuracy.rows["rates"].assign(**columns))


def _rate_cautions(row: Mapping[Hashable, Any]) -> Iterator[Caution]:
    subject, j, m0, m1, n_test = Subject.of(row), row["j"], row["m0"], row["m1"], row["n_test"]
    if n_test == 0:
        yield subject.caution(EstimateStatus.NO_TEST, f"{STATUSES[EstimateStatus.NO_TEST]}, so there is no estimate")
    elif n_test < FEW_LABELS:
        yield subject.caution("few test items", f"only {counted(n_test, 'test item')}")
    if m0 + m1 == 0:
        return
    if min(m0, m1) < FEW_LABELS:
        yield subject.caution(
            "few labels",
            f"only {counted(m0, 'answer is', 'answers are')} labelled wrong and {m1:,} right; the judge's errors are "
            "hardly known",
        )
    elif row["fewest_in_stratum"] < FEW_LABELS:
        yield subject.caution(
            "few labels",
            f"a stratum has only {counted(int(row['fewest_in_stratum']), 'label')}; corrections within it are hardly "
            "known",
        )
    if row["status"] == EstimateStatus.NOT_BINARY:
        return
    if min(row["passed"], row["failed"]) < FEW_ERRORS:
        yield subject.caution(
            "few errors",
            f"on labelled items it passed {counted(row['passed'], 'wrong answer')} and failed "
            f"{counted(row['failed'], 'right one')}; with so few errors percentile intervals of resamples are too "
            "short (the closed form allows for this)",
        )
    if np.isnan(j):
        return
    interval = f"J = {j:.2f} [{row['j_lower']:.2f}, {row['j_upper']:.2f}]"
    if row["j_upper"] < 0:
        yield subject.caution(
            "low J", f"{interval} is below 0: the judge errs systematically, or its verdicts are coded in reverse"
        )
    elif row["j_lower"] <= 0:
        yield subject.caution(
            "low J",
            f"{interval} includes 0: the labels do not tell the judge from one that guesses, and corrected estimates "
            "are unstable; weaken any claim",
        )
    elif j < LOW_J:
        yield subject.caution(
            "low J",
            f"{interval} is low: in a corrected estimate the errors of the calibration are {1 / j:.1f} times as large "
            "(1/J)",
        )
    needed = float(minimum_calibration_size((1 + j) / 2)) if j > 0 else np.inf
    if m0 + m1 < needed < np.inf:
        yield subject.caution(
            "few labels",
            f"{counted(m0 + m1, 'label')}; at J = {j:.2f} a correction has less bias than the raw share only from "
            f"about {counted(round(needed), 'label')} on (Proposition 5.1 of arXiv:2511.21140)",
        )


def _design(accuracy: AccuracyTables) -> Iterator[Caution]:
    """Yield what the design of the calibration leaves open, and where the labels look like another design."""
    sampling, rates = accuracy.settings.sampling, accuracy.rows["rates"]
    m0, m1, p_same = (np.asarray(rates[name]) for name in ("m0", "m1", "p_same_share"))
    if (m0 + m1 == 0).all():
        return
    if sampling == "borrowed":
        yield EVERYTHING.caution(
            "borrowed",
            "the calibration is borrowed: estimates hold only if the judge errs on the test as it erred there, which "
            "no data can show",
        )
    elif sampling is None:
        tests = p_same[~np.isnan(p_same)]
        least = min(1.0, len(tests) * tests.min()) if len(tests) else 1.0
        evidence = f"p = {least:.2g} by Hausman's test of PPI++ against Rogan-Gladen"
        evidence += f", the least of {len(tests):,} times their number" if len(tests) > 1 else ""
        shows = f"Nothing shows that the calibration is no random part ({evidence}), and nothing proves that it is"
        if least < _UNLIKE:
            shows = f"The calibration is no random part ({evidence}), so PPI++ and labels alone do not hold"
        yield EVERYTHING.caution(
            "undeclared",
            "nobody said how the labelled answers were chosen, so Rogan-Gladen alone may be believed, which holds if "
            f"the judge errs alike in calibration and test. {shows}; "
            f"{DECLARE_OTHER if least < _UNLIKE else DECLARE}",
        )
    balanced = (m0 == m1) & (m0 >= FEW_LABELS)
    if sampling == "random":
        # A balance by chance needs a share of right answers near 1/2.
        table = accuracy.rows["table"]
        corrected = np.asarray(table["estimator"]) == "rogan_gladen"
        lower, upper = (np.asarray(table[end])[corrected] for end in ("lower", "upper"))
        balanced &= (lower > 0.5) | (upper < 0.5)
    if sampling in ("random", None) and balanced.any():
        names = dict.fromkeys(map(str, np.asarray(rates["model"])[balanced]))
        each = ", ".join(f"{n:,}" for n in dict.fromkeys(m0[balanced]))
        yield EVERYTHING.caution(
            "balanced",
            f"as many answers are labelled wrong as right ({each} of each; {named(list(names))}): labels that are "
            "chosen by label look like this, and PPI++ and labels alone are then biased; if they were, declare "
            '"by label"',
        )


def _raw_shares(rows: Sequence[Mapping[Any, Any]]) -> Iterator[Caution]:
    """Yield a caution where the raw share lies outside of the interval of the estimate to believe."""
    marked = {Subject.of(row): row for row in rows if row["believe"]}
    for raw in rows:
        best = marked.get(Subject.of(raw)) if raw["estimator"] == "naive" else None
        if best is None:
            continue
        share, lower, upper = raw["estimate"], best["lower"], best["upper"]
        if raw["status"] in BOUNDED and best["status"] in BOUNDED and not lower <= share <= upper:
            yield Subject.of(raw).caution(
                "raw share",
                f"the raw share {share:.3f} lies outside of the interval of {SPOKEN[best['estimator']]}, "
                f"{best['estimate']:.3f} [{lower:.3f}, {upper:.3f}]: do not report it without a correction",
            )


def _other_shares(label: str, part: Slice) -> Iterator[Caution]:
    """Yield where the judge says "right" of another share of the calibration than of the test: it is no random part."""
    total = part.judged.total
    known, judged = (np.asarray(x.judgment.sum(0) / np.maximum(x.n.sum(0), 1)) for x in (total.own, total.test))
    for m, j in np.argwhere(shifted(total)):
        yield Subject(label, part.test.judges[j], (part.test.models[m],)).caution(
            "another share",
            f"the mean judgment is {known[m, j]:.3f} in the calibration and {judged[m, j]:.3f} in the test, more than "
            "chance explains; PPI++ and labels alone assume that both are samples of one population, and Rogan-Gladen "
            "alone allows for another share of right answers",
        )


def pair_cautions(comparison: DifferenceTables) -> Iterator[Caution]:
    """Yield cautions about the differences between models."""
    for row in comparison.stability.to_dict("records"):
        delta, lower, upper, bias = (row[k] for k in ("delta_j", "delta_j_lower", "delta_j_upper", "shared_bias"))
        if lower > 0 or upper < 0:
            predicted = "" if np.isnan(bias) else f" (its predicted bias: {bias:+.3f})"
            yield Subject.of(row).caution(
                "delta J",
                f"delta J = {delta:+.2f} [{lower:+.2f}, {upper:+.2f}] excludes 0: the judge errs differently on the "
                f"two, and a shared calibration is not defensible{predicted}",
            )
    groups = comparison.by_pair()
    if len(groups) > 1:
        yield EVERYTHING.caution(
            "many comparisons",
            f"{counted(len(groups), 'comparison')}, each with an interval of its own: if no models differed, "
            f"about {len(groups) * (1 - comparison.accuracy.settings.level):.1f} of them would exclude 0 by chance",
        )
    for rows in groups:
        yield from _claim_cautions({row["estimator"]: row for row in rows.to_dict("records")})


def _claim_cautions(rows: Mapping[str, Mapping[Hashable, Any]]) -> Iterator[Caution]:
    marked = [row for row in rows.values() if row["believe"]]
    if not marked or marked[0]["status"] not in BOUNDED:
        return
    best = marked[0]
    by = SPOKEN[best["estimator"]]
    subject, tied = Subject.of(best), best["lower"] <= 0 <= best["upper"]
    if max(-best["lower"], best["upper"]) <= NEAR_TIE:
        yield subject.caution(
            "near tie",
            f"a near tie; by {by} the difference is {numbers(best)}, and a bias of that size can put "
            "either model ahead",
        )
    elif tied:
        yield subject.caution(
            "not told apart",
            f"not told apart; by {by} the difference is {numbers(best)}: more labels or items may tell them apart",
        )
    for name in ("naive", "rogan_gladen_shared"):
        row = rows[name]
        if row["status"] not in BOUNDED:
            continue
        clear = not row["lower"] <= 0 <= row["upper"]
        if np.sign(row["difference"]) == -np.sign(best["difference"]) and (clear or not tied):
            yield subject.caution(
                "sign",
                f"{name} has the opposite sign, {numbers(row)} against {numbers(best)} by {by}, with labels of "
                "both models: a reversal",
            )
        elif name == "naive" and not best["lower"] <= row["difference"] <= best["upper"]:
            yield subject.caution(
                "raw share",
                f"the difference of the raw shares, {row['difference']:+.3f}, lies outside of the interval of {by}, "
                f"{numbers(best)}: do not report it without a correction",
            )


def numbers(row: Mapping[Hashable, Any]) -> str:
    """Return a difference with its interval."""
    return f"{row['difference']:+.3f} [{row['lower']:+.3f}, {row['upper']:+.3f}]"
