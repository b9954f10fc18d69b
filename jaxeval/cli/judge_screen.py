"""Judged accuracies in a terminal: the estimates to believe first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jaxeval.accuracy.belief import REASONS
from jaxeval.accuracy.report import SPOKEN
from jaxeval.accuracy.statuses import BOUNDED, Status
from jaxeval.cli.screens import Column, Grid, Screen, grid_of
from jaxeval.cli.terminal import plain_cell
from jaxeval.wording import counted, visible_line

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.accuracy.report import JudgeReport

#: Names of estimators in a column.
_SHORT = {**SPOKEN, "rogan_gladen": "Rogan-Gladen"}
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
    answer = [_what_to_believe(accuracy), *sections.get(_CLAIMED, ([], None))[0]]
    grids = [_believed(accuracy, "Accuracy of each model: the estimate to believe", ("model",),
                       "estimate", settings.level)]  # fmt: skip
    if comparison is not None:
        title = "Differences, A minus B: the estimate to believe"
        grids.insert(0, _believed(comparison.table, title, ("model_a", "model_b"), "difference", settings.level))
    full = [grid_of(table, title, _cell, below=sentences) for title, (sentences, table) in sections.items()
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


def _what_to_believe(table: pd.DataFrame) -> str:
    """Which estimator to believe, for how many models by a judge."""
    marked = table[table["believe"]]
    n_all = len(table.drop_duplicates([name for name in ("slice", "model", "judge") if name in table]))
    if marked.empty:
        own = table.loc[table["estimator"] == "ppi_plus_plus", "status"]
        if not (own == Status.NO_LABELS).all():
            return "Believe none of these estimates: the notes say why"
        return (
            "Believe none of these estimates for sure: no model has labels of its own that tell how far the judge is "
            "off. The shared calibration holds if the judge errs alike on all models"
        )
    times = marked["estimator"].value_counts()
    if len(times) == 1 and len(marked) == n_all:
        return f"Believe {SPOKEN[times.index[0]]}, and not the judge's raw share"
    parts = [f"{SPOKEN[name]} for {n:,}" for name, n in times.items()]
    parts += [f"none for {n_all - len(marked):,}"] if len(marked) < n_all else []
    of = "models" if _same(table, "judge", ()) else "models by judges"
    return f"Believe, of {n_all:,} {of}, {', '.join(parts)}; the judge's raw share never"


def _believed(table: pd.DataFrame, title: str, models: Sequence[str], value: str, level: float) -> Grid:
    """A row for each model, or pair, and judge: the estimate to believe, and the raw share beside it."""
    keys = [name for name in ("slice", *models, "judge") if name in table and not _same(table, name, models)]
    form = "+.3f" if value == "difference" else ".3f"
    rows: dict[str, list[str]] = {name: [] for name in (*keys, "estimate", "interval", "estimator", "naive", "notes")}
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
            status = _of(own, "ppi_plus_plus")["status"]
            why = "calibration and test differ" if status in BOUNDED else str(status)
            for name, text in (("estimate", "-"), ("interval", ""), ("estimator", "none")):
                rows[name].append(text)
            rows["notes"].append(why)
            continue
        best = marked.iloc[0]
        reasons[best["estimator"]] = None
        rows["estimate"].append(f"{best[value]:{form}}")
        rows["interval"].append(_ends(best, form))
        rows["estimator"].append(_SHORT[best["estimator"]])
        rows["notes"].append("" if best["status"] == "ok" else str(best["status"]))
    heads = {"slice": "Slice", "model": "Model", "model_a": "Model A", "model_b": "Model B", "judge": "Judge"}
    columns = [Column(heads[name], rows[name], right=False, folds=True) for name in keys]
    columns += [
        Column("Believe", rows["estimate"]),
        Column(f"{100 * level:g}% interval", rows["interval"], right=False, order=1),
        Column("By", rows["estimator"], right=False, order=2, folds=True),
        Column("Shared calibration", shared, order=2),
        Column("Raw share", rows["naive"], order=3),
        Column("Notes", rows["notes"], right=False, order=4, folds=True, style="yellow"),
    ]
    below = [f"{_SHORT[name]}: {REASONS[name]}" for name in reasons]
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


def _cell(name: Any, value: Any) -> str:
    if isinstance(value, float):
        return "-" if value != value else f"{value:+.3f}" if name in ("difference", "delta_j") else f"{value:.3f}"
    return plain_cell(value)
