"""Judged accuracies in a terminal: the estimates to believe first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxeval.accuracy.belief import REASONS, SPOKEN, what_to_believe, why_none
from jaxeval.show.screens import Column, Grid, Screen, grid_of
from jaxeval.wording import counted, visible_line

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.accuracy.accuracy_tables import AccuracySettings
    from jaxeval.accuracy.report import JudgeReport

#: Names of estimators in a column.
_SHORT = {**SPOKEN, "rogan_gladen": "Rogan-Gladen"}
#: What differs between calibration and test, in a narrow column.
_DIFFERS = {"prevalence": "share", "error rates": "rates"}
_CLAIMED, _CALIBRATION, _CAUTIONS = "What can be claimed", "Calibration", "Cautions"


def judge_screen(report: JudgeReport, read: Sequence[str]) -> Screen:
    """The screen of a report: what to believe, about which models and pairs, and with which cautions.

    Args:
        report: of `judge_report`.
        read: what was read of the two files.
    """
    settings, comparison = report.accuracy.settings, report.comparison
    sections = {title: (sentences, table) for title, sentences, table in report.sections()}
    accuracy = report.involved(report.accuracy.table)
    answer = [what_to_believe(accuracy, settings.sampling), *sections.get(_CLAIMED, ([], None))[0]]
    grids = [_believed(accuracy, "Accuracy of each model: the estimate to believe", ("model",),
                       "estimate", settings)]  # fmt: skip
    if comparison is not None:
        title = "Differences, A minus B: the estimate to believe"
        grids.insert(0, _believed(comparison.table, title, ("model_a", "model_b"), "difference", settings))
    full = [grid_of(table, title, below=sentences) for title, (sentences, table) in sections.items()
            if table is not None]  # fmt: skip
    cautions = sections[_CAUTIONS][0]
    return Screen(
        answer=answer,
        grids=grids,
        more=full,
        notes=[
            *read,
            f"{counted(settings.n_resamples, 'resample')}, seed {settings.seed}; level {settings.level:g}; "
            f"{settings.device}; {settings.versions}",
            *sections[_CALIBRATION][0],
        ],
        warnings=cautions if report.cautions or report.accuracy.warnings else [],
    )


def _believed(table: pd.DataFrame, title: str, models: Sequence[str], value: str, settings: AccuracySettings) -> Grid:
    """A row for each model, or pair, and judge: the estimate to believe, and the raw share beside it."""
    keys = [name for name in ("slice", *models, "judge") if name in table and not _same(table, name, models)]
    form = "+.3f" if value == "difference" else ".3f"
    rows: dict[str, list[str]] = {
        name: [] for name in (*keys, "estimate", "interval", "estimator", "holds", "naive", "notes")
    }
    shared: list[str] = []
    reasons: dict[str, None] = {}
    for _, own in table.groupby([name for name in ("slice", *models, "judge") if name in table], sort=False):
        naive = own[own["estimator"] == "naive"].iloc[0]
        marked = own[own["believe"]]
        for name in keys:
            rows[name].append(visible_line(own[name].iloc[0]))
        shared.append("" if len(marked) else _with_interval(_of(own, "rogan_gladen_shared"), value, form))
        rows["naive"].append("-" if naive[value] != naive[value] else f"{naive[value]:{form}}")
        if marked.empty:
            why = why_none(dict(zip(own["estimator"], own["status"], strict=True)), settings.sampling)
            for name, text in (("estimate", "-"), ("interval", ""), ("estimator", "none"), ("holds", "")):
                rows[name].append(text)
            rows["notes"].append(why)
            continue
        best = marked.iloc[0]
        reasons[best["estimator"]] = None
        rows["estimate"].append(f"{best[value]:{form}}")
        rows["interval"].append(_ends(best, form))
        rows["estimator"].append(_SHORT[best["estimator"]])
        differs = _DIFFERS.get(best["tolerance_of"], "")
        rows["holds"].append(f"{differs} {best['tolerance']:.3f}" if best["tolerance"] == best["tolerance"] else "")
        rows["notes"].append("" if best["status"] == "ok" else str(best["status"]))
    heads = {"slice": "Slice", "model": "Model", "model_a": "Model A", "model_b": "Model B", "judge": "Judge"}
    columns = [Column(heads[name], rows[name], right=False, folds=True) for name in keys]
    columns += [
        Column("Believe", rows["estimate"]),
        Column(f"{100 * settings.level:g}% interval", rows["interval"], right=False, order=1),
        Column("By", rows["estimator"], right=False, order=2, folds=True),
        Column("Holds to", rows["holds"], right=False, order=3),
        Column("Shared calibration", shared, order=2),
        Column("Raw share", rows["naive"], order=3),
        Column("Notes", rows["notes"], right=False, order=4, folds=True, style="yellow"),
    ]
    below = [f"{_SHORT[name]}: {REASONS[name]}" for name in reasons]
    if any(rows["holds"]):
        falls = (
            "the truth leaves the interval"
            if value == "estimate"
            else "the nearer end of the interval is 0, if it differs for the two models in opposite directions"
        )
        below.append(
            "Holds to: how far the share of right answers (share), or q0 and q1 both (rates), may differ between "
            f"calibration and test until {falls}"
        )
    return Grid(title, columns, below=below)


def _ends(row: pd.Series, form: str) -> str:
    return "" if row["lower"] != row["lower"] else f"[{row['lower']:{form}}, {row['upper']:{form}}]"


def _with_interval(row: pd.Series, value: str, form: str) -> str:
    return "" if row[value] != row[value] else f"{row[value]:{form}} {_ends(row, form)}"


def _of(rows: pd.DataFrame, estimator: str) -> pd.Series:
    return rows[rows["estimator"] == estimator].iloc[0]


def _same(table: pd.DataFrame, name: str, models: Sequence[str]) -> bool:
    """Whether a column says nothing: one judge only."""
    return name not in models and (table[name] == table[name].iloc[0]).all()
