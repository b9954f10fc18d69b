"""What `soft-elo FILE` says of a judge, holding every model out in turn; and of several judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.execution.runs import RunOptions
from jaxeval.lab import held_out_sweeps
from jaxeval.lab.judge_diagnostics import diagnose
from jaxeval.show.boards import board_part
from jaxeval.show.cells import with_kinds
from jaxeval.show.shown import Answer, Part
from jaxeval.softelo.soft_elo import how_close, soft_elo
from jaxeval.wording import counted, visible_line

_HEADS = ("judge", "method", "n_models", "n_left_out", "mae", "mae_lower", "mae_upper", "spearman", "kendall", "beta")
_TITLE = "Held-out ratings against human ratings (Elo)"
#: Half of a 95 % interval, in standard errors; for ratings that have no conformal interval.
_Z = 1.959964


def error_of(study: Answer) -> float:
    """Mean error of the best method; infinite where no model could be rated."""
    error = study.tables["summary"]["mae"].min()
    return float(error) if error == error else float("inf")


def of_several(each: Mapping[str, Answer]) -> Answer:
    """What holding models out says of the best of several judges, with the tables, notes and warnings of all."""
    best = min(each, key=lambda judge: error_of(each[judge]))
    if len(each) == 1:
        return each[best]
    names = dict.fromkeys(name for study in each.values() for name in study.tables)
    tables = {}
    for name in names:
        held = [study.tables[name].assign(judge=judge) for judge, study in each.items() if name in study.tables]
        table = pd.concat(held, ignore_index=True)
        tables[name] = table[["judge", *table.columns.drop("judge")]]
    judges = [best, *(judge for judge in each if judge != best)]
    first, *others = each[best].parts
    about = [text for text in each[best].sentences or () if text.startswith("standard errors are ")]
    return each[best]._replace(
        sentences=[*about, *how_close(tables["summary"])],
        warnings=[f"{judge}: {text}" for judge, study in each.items() for text in study.warnings],
        notes=[f"{judge}: {text}" for judge in judges for text in each[judge].notes],
        parts=[first._replace(table=_heads(tables["summary"])), *others],
        tables=tables,
    )


def held_out_answer(
    battles: JudgedBattles, running: RunOptions, *, level: float | None, splits: int, methods: tuple[str, ...],
    cluster: str | None, strata: str | None, by: str | None, length_a: str | None, length_b: str | None, budget: bool,
    smoothing: bool, ridge: float, n_resamples: int, seed: int, base: float, random: Sequence[str] | None = None,
) -> Answer:  # fmt: skip
    """Every model of one judge held out in turn."""
    held_out = soft_elo(
        battles, ridge, n_resamples, seed, methods or ("hard", "soft"), base=base, cluster=cluster, strata=strata,
        random=random or (), **running,
    )  # fmt: skip
    diagnostics = diagnose(battles, held_out, length_a=length_a, length_b=length_b, ridge=ridge, cluster=cluster)
    tables = {
        "models": held_out.models,
        "summary": held_out.summary.reset_index(),
        "diagnostics": diagnostics.headline.reset_index(),
        **diagnostics.tables,
    }
    warnings = [*held_out.warnings, *diagnostics.warnings]
    drawn = counted(n_resamples, "resample") + (f" of {cluster}" if cluster else "")
    drawn += f" within {strata}" if strata else ""
    used = f"ridge {ridge:g}; {drawn}, seed {seed}"
    try:
        study = held_out_sweeps.conformal_study(held_out, level, splits, seed=seed)
        tables["conformal"], tables["conformal_splits"] = study.summary.reset_index(), study.splits
        tables["intervals"] = held_out_sweeps.leave_one_out_intervals(held_out, level)
        widths = held_out_sweeps.width_decomposition(held_out, level)
        tables["widths"] = widths.reset_index()
        warnings += [*study.warnings, *tables["intervals"].attrs["warnings"], *widths.attrs["warnings"]]
        calibrating, tested = study.settings.n_calibration, study.settings.n_test
        calibrate = counted(calibrating, "model calibrates", "models calibrate")
        used += f"; level {study.settings.level:g}: {calibrate}, {tested} tested"
    except ValueError as error:  # too few models: their ratings are shown all the same
        warnings.append(f"no conformal intervals: {error}")

    def within(name: str) -> RunOptions:
        folder = running["checkpoint"]
        return {**running, "checkpoint": None if folder is None else Path(folder) / name}

    if by:
        tables["slices"] = held_out_sweeps.slice_ratings(battles, by, ridge, **within("slices"))
        warnings += tables["slices"].attrs["warnings"]
    if budget:
        tables["budget"] = held_out_sweeps.budget_sweep(
            battles, ridge=ridge, seed=seed, cluster=cluster, **within("budget")
        )
        warnings += tables["budget"].attrs["warnings"]

    if smoothing:
        tables["smoothing"] = held_out_sweeps.label_smoothing_sweep(battles, ridge=ridge)

    notes = [str(battles.report), f"{used}; {held_out.settings.versions}"]
    notes += [f"left out: {'; '.join(diagnostics.left_out)}"] if diagnostics.left_out else []
    return Answer(
        _TITLE, held_out.models, held_out.settings, warnings, sentences=held_out._sentences(), notes=notes,
        parts=_parts(tables, splits, by), tables=tables,
    )  # fmt: skip


def _heads(summary: pd.DataFrame) -> pd.DataFrame:
    return summary.sort_values("mae", kind="stable").filter(_HEADS)


def _parts(tables: Mapping[str, pd.DataFrame], splits: int, by: str | None) -> list[Part]:
    """The best method's error first, then its ratings beside those of the humans."""
    heads = _heads(tables["summary"])
    parts = [Part(_TITLE, heads, rows="method"), _board(tables, heads["method"].iloc[0])]
    if "smoothing" in tables:
        parts.append(Part("Label smoothing by its constant (Elo)", tables["smoothing"]))
    if "slices" in tables:
        parts.append(Part(f"Slices by {by}, against the global human rating (Elo)", tables["slices"], rows="slice"))
    if "conformal" in tables:
        title = f"Split conformal intervals, {counted(splits, 'random split')} (Elo)"
        parts.append(Part(title, tables["conformal"], rows="method", more=True))
    parts.append(Part("The judge's scores", tables["diagnostics"], rows="measure", more=True))
    if "budget" in tables:
        parts.append(Part("By the annotation budget (Elo)", tables["budget"], more=True))
    return parts


def _board(tables: Mapping[str, pd.DataFrame], method: str) -> Part:
    """Judged ratings of models, the best first, with conformal intervals where there are any."""
    models = tables["models"]
    of_method = models[models["method"] == method].sort_values("judge_elo", ascending=False, kind="stable")
    half, what = _Z * of_method["standard_error"], "95% intervals of sampling"
    board = pd.DataFrame({
        "rank": range(1, len(of_method) + 1), "model": of_method["model"], "rating": of_method["judge_elo"],
        "lower": of_method["judge_elo"] - half, "upper": of_method["judge_elo"] + half,
        "human": of_method["human_elo"], "off_by": of_method["residual"], "vote_count": of_method["n_human"],
        "notes": of_method["flags"].astype(str),
    })  # fmt: skip
    if "intervals" in tables:
        ends = tables["intervals"]
        ends = ends[ends["method"] == method].set_index("model")[["lower", "upper"]].reindex(of_method["model"])
        board[["lower", "upper"]] = ends.to_numpy(float)
        what = "leave-one-out conformal intervals"
    title = f"{visible_line(method).capitalize()} ratings of models held out, with {what} (Elo)"
    return board_part(title, with_kinds(board, elo="human off_by"), kept=("human", "off_by"))
