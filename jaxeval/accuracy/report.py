"""A report of judged accuracies that says what it rests on, and weakens its own claim where it must.

It follows the seven points of arXiv:2605.06939, section 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from jaxeval.accuracy.accuracy_tables import AccuracySettings, AccuracyTables
from jaxeval.accuracy.belief import DESIGNS, REASONS, SPOKEN, what_to_believe, why_none
from jaxeval.accuracy.calibration_planning import allocate_calibration
from jaxeval.accuracy.cautions import EVERYTHING, Caution, Subject, model_cautions, numbers, pair_cautions
from jaxeval.accuracy.difference_tables import DifferenceTables
from jaxeval.accuracy.estimates import ESTIMATORS
from jaxeval.accuracy.judged_sums import POOLED
from jaxeval.accuracy.statuses import STATUSES, EstimateStatus
from jaxeval.lazy_names import is_frame, pd
from jaxeval.plain_tables import PlainTable, in_pandas, records_of
from jaxeval.show.files import markdown_page
from jaxeval.show.shown import Answer, Column, Part, Result
from jaxeval.wording import counted, visible_line

NEXT_LABELS = 100

_WEAKENING = {"low J", "few labels", "few test items", "delta J", "near tie", "another share", "borrowed", "undeclared"}
#: What a table says of its column ``tolerance``.
TOLERANCE = (
    "tolerance: by how much the calibration may differ from the test until the truth leaves the interval. What differs "
    "is the share of right answers (prevalence), or q0 and q1 both, in the direction that does most harm (error rates)."
)
TOLERANCE_OF_DIFFERENCE = (
    "tolerance: the same for both models, in opposite directions, until the nearer end of the interval reaches 0."
)
#: What follows from labels that are chosen as a plan says.
BY_LABEL = (
    'Labels chosen by class make the whole calibration one "by label": declare it so. PPI++ and labels alone are then '
    "biased, and Rogan-Gladen is believed. To keep them, label a random part."
)

#: Names of estimators in a narrow column, and what differs between calibration and test.
_SHORT = {**SPOKEN, "rogan_gladen": "Rogan-Gladen"}
_DIFFERS = {"prevalence": "share", "error rates": "rates"}
_SHOWN = ("naive", "calibration_only", "ppi_plus_plus", "rogan_gladen", "rogan_gladen_shared")


@dataclass(frozen=True, eq=False, repr=False)
class JudgeReport(Result):
    """Judged accuracies, or differences, with their cautions: as text, DataFrame or Markdown.

    The column ``believe`` marks the estimate to believe: one for each model and judge by the rule of `believed`, or one
    for each pair of models by that of `believed_of_pair`. It is True in the DataFrame, "yes" in text and Markdown.
    Sentences above each table say why, and what every status in it means (`STATUSES`).
    """

    accuracy: AccuracyTables
    comparison: DifferenceTables | None
    cautions: list[Caution] = field(repr=False)

    def _shown(self) -> Answer:
        table = self._with_cautions()
        title = f"JudgeReport: {counted(len(self.cautions), 'caution')}; print() gives all in words"
        shown = table[np.asarray(table["believe"], bool)].drop(columns=["believe"])
        return Answer(title, shown.reset_index(drop=True) if is_frame(shown) else shown)

    def _sentences(self) -> list[str]:
        accuracy, settings = self.involved(self.accuracy.rows["table"]), self.accuracy.settings
        return [*self.accuracy.about_facets(), what_to_believe(accuracy, settings.sampling), *self.claims()]

    def _in_full(self, view: Answer) -> Answer:
        """Return the estimates to believe first, of pairs before those of models."""
        settings, comparison = self.accuracy.settings, self.comparison
        parts = [_believed(self.involved(self.accuracy.rows["table"]), settings)]
        tables = {"accuracy": self.accuracy.rows["table"], "rates": self.accuracy.rows["rates"]}
        title = "Accuracy of each model"
        if self.accuracy.over_judges is not None:
            tables["over_judges"] = self.accuracy.over_judges
            parts.insert(0, Part("Accuracy by judges like these", tables["over_judges"], rows="model"))
        if comparison is not None:
            parts.insert(0, _believed(comparison.table, settings))
            tables = {"differences": comparison.table, **tables, "stability": comparison.stability}
            title = "Differences, A minus B"
        sections = self._plain_sections()
        below = {part.title: part.below for part in sections}
        further = [part._replace(more=True) for part in sections if part.table is not None]
        drawn = f"{counted(settings.n_resamples, 'resample')}, seed {settings.seed}; level {settings.level:g}; "
        return view._replace(
            title=title,
            settings=settings,
            notes=[f"{drawn}{settings.device}; {settings.versions}", *below["Calibration"]],
            warnings=below["Cautions"] if self.cautions or self.accuracy.warnings else [],
            parts=[*parts, *further],
            tables=tables,
            texts=lambda: {"report.md": self.to_markdown()},
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the table of estimates, or of differences, with a column of the kinds of caution about each row."""
        return in_pandas(self._with_cautions())

    def _with_cautions(self) -> Any:
        table = self.accuracy.rows["table"] if self.comparison is None else self.comparison.table
        return table.assign(cautions=[", ".join(self._kinds_about(Subject.of(row))) for row in records_of(table)])

    @cached_property
    def _kinds(self) -> dict[Subject, list[str]]:
        kinds: dict[Subject, list[str]] = {}
        for caution in self.cautions:
            kinds.setdefault(caution.subject, []).append(caution.kind)
        return kinds

    def _kinds_about(self, subject: Subject) -> dict[str, None]:
        """Return kinds of caution about each model of ``subject``, and about all of them; in order."""
        subjects = [*(subject._replace(models=(model,)) for model in subject.models), subject]
        return dict.fromkeys(kind for one in subjects for kind in self._kinds.get(one, ()))

    def _sections(self) -> list[Part]:
        return [part._replace(table=in_pandas(part.table)) for part in self._plain_sections()]

    def _plain_sections(self) -> list[Part]:
        settings, part = self.accuracy.settings, self.accuracy.slices[""]
        level = f"{100 * settings.level:g}%"
        within = f" Corrected within values of {settings.stratify!r}." if settings.stratify else ""
        estimated = [
            "Accuracy: the share of answers that people would label right, over the population of items that the test "
            "items stand for.",
            *(f"{name}: {what}." for name, what in ESTIMATORS.items()),
            f"naive is not corrected; all others are.{within}",
        ]
        sections = [Part("What is estimated", below=estimated)]
        has_labels = bool((part.judged.total.own.n > 0).any())
        items = (
            f"{counted(len(part.calibration.items), 'calibration item')}, {counted(len(part.test.items), 'test item')}"
        )
        own = "Estimators with a model's own calibration use its labels"
        whose = own if has_labels else "No model has labels of its own"
        calibrated = [
            f"{items}. {whose}; the shared calibration uses labels of {self._shared_by()}.",
            f"How the labelled answers were chosen: {DESIGNS[settings.sampling]}.",
            f"Intervals ({level}) allow for the sampling of test items and of calibration items"
            f"{', and the choice of the half' if has_labels else ''}; resamples keep the judgments of all models on an "
            "item together. Runs of a judge are averaged per item and not resampled. Labels are taken as true.",
        ]
        sections.append(Part("Calibration", below=calibrated))
        shown = [f"{rate}{end}" for rate in ("q0", "q1", "j") for end in ("", "_lower", "_upper")]
        rates = _columns(self.involved(self.accuracy.rows["rates"]), ["model", "judge", *shown, "m0", "m1", "status"])
        legend = [f"Intervals are {level}.", *_statuses(rates)]
        sections.append(Part("How good the judges are (all labels)", rates, below=legend))
        # In a comparison the shared calibration is that of a model, and belongs to the differences.
        shown = [name for name in _SHOWN if self.comparison is None or name != "rogan_gladen_shared"]
        table = _rows(self.involved(self.accuracy.rows["table"]), shown)
        ends = ["lower", "upper", "boot_lower", "boot_upper"]
        tolerance = ["tolerance", "tolerance_of"]
        shown = ["model", "judge", "estimator", "believe", "estimate", *ends, *tolerance, "status"]
        legend = [*self._legend(table, ["model"]), TOLERANCE]
        sections.append(Part("Accuracy of each model", _columns(table, shown), below=legend))
        if self.comparison is not None:
            shown = ["judge", "model_a", "model_b", "delta_j", "delta_j_lower", "delta_j_upper", "shared_bias"]
            stability = _columns(self.comparison.stability, shown)
            sections.append(Part("Is the judge equally good on both models?", stability))
            table = _rows(self.comparison.table, _SHOWN)
            shown = ["judge", "model_a", "model_b", "estimator", "believe", "difference", *ends, *tolerance]
            legend = [*self._legend(table, ["model_a", "model_b"]), TOLERANCE_OF_DIFFERENCE]
            differences = _columns(table, [*shown, "labels", "status"])
            sections.append(Part("Differences, A minus B", differences, below=legend))
            sections.append(Part("What can be claimed", below=list(self.claims())))
        plan = self._next_labels()
        if len(plan):
            title = f"Where the next {NEXT_LABELS} labels of a model shorten the Rogan-Gladen interval most"
            sections.append(Part(title, plan, below=[BY_LABEL]))
        texts = [*self.accuracy.warnings, *dict.fromkeys(c.text for c in self.cautions)]
        none = "No check found a reason for a caution; that does not prove the assumptions."
        return [*sections, Part("Cautions", below=texts or [none])]

    def claims(self) -> Iterator[str]:
        """Yield a sentence per slice, judge and pair: what the difference to believe says, weakened by the cautions."""
        if self.comparison is None:
            return
        for rows in self.comparison.by_pair():
            subject = Subject.of(rows.iloc[0])
            if not rows["believe"].any():
                status = dict(zip(rows["estimator"], rows["status"], strict=True))
                yield f"{subject.about}no claim: {why_none(status, self.accuracy.settings.sampling)}"
                continue
            row = rows[rows["believe"]].iloc[0]
            estimate = f"{numbers(row)} by {SPOKEN[row['estimator']]}"
            if row["lower"] <= 0 <= row["upper"]:
                yield f"{subject.about}not told apart, {estimate}"
                continue
            ahead = subject.models[0] if row["difference"] > 0 else subject.models[1]
            kinds = self._kinds_about(subject).keys() | self._kinds_about(EVERYTHING).keys()
            doubt = ", ".join(sorted(_WEAKENING & kinds))
            weak = f"seems ahead, {estimate}; a weak claim (see the cautions: {doubt})"
            yield f"{subject.about}{ahead} {weak if doubt else f'is ahead, {estimate}'}"

    @property
    def text(self) -> str:
        """The report as plain text."""
        lines = []
        for part in self._sections():
            lines += [f"{part.title}\n{'-' * len(part.title or '')}", *(f"* {sentence}" for sentence in part.below)]
            if isinstance(part.table, pd.DataFrame):
                lines.append(part.table.to_string(index=False, float_format=lambda x: f"{x:.3f}", na_rep="-"))
            lines.append("")
        return "\n".join(lines)

    def __call__(self) -> JudgeReport:
        """Return the report itself: ``report`` was a method of results before it became a property."""
        return self

    def __str__(self) -> str:
        return "\n".join([*self.answer.sentences, "", self.text])

    def to_markdown(self) -> str:
        """Return the report as Markdown."""
        return markdown_page(None, *self._sections())

    def _next_labels(self) -> PlainTable:
        """Give how to split further labels by class (Algorithm 1), from the rates known so far, all items together."""
        rates, table = (
            [row for row in records_of(self.involved(self.accuracy.rows[name])) if row.get("slice", "all") == "all"]
            for name in ("rates", "table")
        )
        shares = {(row["model"], row["judge"]): row["estimate"] for row in table if row["estimator"] == "naive"}
        known = [
            {**row, "estimate": share}
            for row in rates
            if row["m0"] > 0 and row["m1"] > 0 and row["j"] == row["j"]
            and (share := shares.get((row["model"], row["judge"]), np.nan)) == share
        ]  # fmt: skip
        if not known:
            return PlainTable({})
        numbers = {name: np.array([row[name] for row in known]) for name in ("estimate", "q0", "q1", "m0", "m1")}
        split = allocate_calibration(numbers["m0"] + numbers["m1"] + NEXT_LABELS, *numbers.values())
        return PlainTable({
            "model": [row["model"] for row in known], "judge": [row["judge"] for row in known],
            "labels_wrong": numbers["m0"], "labels_right": numbers["m1"], "next_wrong": np.asarray(split.more0),
            "next_right": np.asarray(split.more1),
        })  # fmt: skip

    def _legend(self, table: Any, models: list[str]) -> list[str]:
        groups = _grouped(table, ("slice", *models, "judge"))
        marked = dict.fromkeys(row["estimator"] for row in records_of(table) if row["believe"])
        lines = [f"believe {name}: {REASONS[name]}." for name in marked]
        reasons: dict[str, None] = {}
        for rows in groups:
            status = {row["estimator"]: row["status"] for row in rows}
            if not any(row["believe"] for row in rows):
                status = dict.fromkeys(("ppi_plus_plus", "rogan_gladen"), EstimateStatus.NOT_BINARY) | status
                reasons[why_none(status, self.accuracy.settings.sampling)] = None
        return lines + [f"No estimate is marked: {why}." for why in reasons] + _statuses(table)

    def involved(self, table: Any) -> Any:
        """Return the rows of models that are compared."""
        if self.comparison is None:
            return table
        table = in_pandas(table)
        return table[table["model"].isin({model for pair in self.comparison.pairs for model in pair})]

    def _shared_by(self) -> str:
        comparison, shared = self.comparison, self.accuracy.settings.shared
        names = [shared] if comparison is None else list(dict.fromkeys(comparison.stability["shared_labels"]))
        return "all models together" if names == [POOLED] else " or ".join(map(str, names[:3]))


def judge_report(accuracy: AccuracyTables, comparison: DifferenceTables | None = None) -> JudgeReport:
    """Report accuracies, or a comparison, with all cautions that the checks find, those of pairs first."""
    cautions = list(model_cautions(accuracy))
    if comparison is not None:
        involved = {model for pair in comparison.pairs for model in pair}
        cautions = [c for c in cautions if set(c.subject.models) <= involved]
        cautions = [*pair_cautions(comparison), *cautions]
    return JudgeReport(accuracy, comparison, cautions)


def _grouped(table: Any, names: Sequence[str]) -> list[list[dict[Any, Any]]]:
    """Return the rows of a table, those with the same values in columns of the ``names`` together."""
    groups: dict[tuple[Any, ...], list[dict[Any, Any]]] = {}
    for row in records_of(table):
        groups.setdefault(tuple(row[name] for name in names if name in row), []).append(row)
    return list(groups.values())


def _believed(table: Any, settings: AccuracySettings) -> Part:
    """Return a row for each model, or pair, and judge: the estimate to believe, and the raw share beside it."""
    of_pairs = "difference" in table
    models, value, form = (["model_a", "model_b"], "difference", "+.3f") if of_pairs else (["model"], "estimate", ".3f")
    groups = [name for name in ("slice", *models, "judge") if name in table]
    # A column of one judge only says nothing.
    keys = [name for name in groups if name in models or len({*table[name]}) > 1]
    rows_of_cells: list[dict[str, str]] = []
    reasons: dict[str, None] = {}
    for rows in _grouped(table, groups):
        by_name = {row["estimator"]: row for row in rows}
        naive, shared = by_name["naive"], by_name["rogan_gladen_shared"]
        cells = {name: visible_line(rows[0][name]) for name in keys}
        cells["naive"] = _number(naive[value], form) or "-"
        marked = [row for row in rows if row["believe"]]
        if not marked:
            status = {name: row["status"] for name, row in by_name.items()}
            beside = f"{_number(shared[value], form)} {_ends(shared, form)}".strip()
            notes = why_none(status, settings.sampling)
            cells |= {"estimate": "-", "estimator": "none", "shared": beside, "notes": notes}
        else:
            best = marked[0]
            reasons[best["estimator"]] = None
            holds = _number(best["tolerance"], ".3f")
            cells |= {
                "estimate": _number(best[value], form) or "nan",
                "interval": _ends(best, form),
                "estimator": _SHORT[best["estimator"]],
                "holds": holds and f"{_DIFFERS.get(best['tolerance_of'], '')} {holds}",
                "notes": "" if best["status"] == "ok" else str(best["status"]),
            }
        rows_of_cells.append(cells)

    def column(name: str, head: str, order: int = 0, **looks: Any) -> Column:
        return Column(head, [cells.get(name, "") for cells in rows_of_cells], order=order, **looks)

    columns = [
        *(column(name, name.replace("_", " ").title(), right=False, folds=True) for name in keys),
        column("estimate", "Believe"),
        column("interval", f"{100 * settings.level:g}% interval", 1, right=False),
        column("estimator", "By", 2, right=False, folds=True),
        column("holds", "Holds to", 3, right=False),
        column("shared", "Shared calibration", 2),
        column("naive", "Raw share", 3),
        column("notes", "Notes", 4, right=False, folds=True, style="yellow"),
    ]
    below = [f"{_SHORT[name]}: {REASONS[name]}" for name in reasons]
    if any(cells.get("holds") for cells in rows_of_cells):
        falls = "the truth leaves the interval"
        if of_pairs:
            falls = "the nearer end of the interval is 0, if it differs for the two models in opposite directions"
        below.append(
            "Holds to: how far the share of right answers (share), or q0 and q1 both (rates), may differ between "
            f"calibration and test until {falls}"
        )
    title = "Differences, A minus B" if of_pairs else "Accuracy of each model"
    return Part(f"{title}: the estimate to believe", columns, below=below)


def _number(value: float, form: str) -> str:
    return "" if value != value else f"{value:{form}}"


def _ends(row: Mapping[Any, Any], form: str) -> str:
    return "" if row["lower"] != row["lower"] else f"[{row['lower']:{form}}, {row['upper']:{form}}]"


def _rows(table: Any, estimators: Sequence[str]) -> Any:
    """Return the rows of ``estimators`` that can be estimated from what the judge gives."""
    unfit = (EstimateStatus.NOT_BINARY, EstimateStatus.NOT_SHARES)
    both = zip(table["estimator"], table["status"], strict=True)
    return table[np.array([name in estimators and status not in unfit for name, status in both], bool)]


def _columns(table: Any, shown: list[str]) -> Any:
    table = table[[c for c in ("slice", *shown) if c in table]]
    if "believe" in table:
        table = table.assign(believe=np.where(table["believe"], "yes", "").astype(object))
    return table.assign(labels=table["labels"].round().astype(int)) if "labels" in table else table


def _statuses(table: Any) -> list[str]:
    return [f"{word}: {STATUSES[word]}." for word in dict.fromkeys(table["status"]) if word != EstimateStatus.OK]
