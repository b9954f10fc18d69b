"""What `soft-elo FILE` finds out about a judge, holding every model out in turn; and about several judges."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxeval.wording import counted

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.data.judged_battles import JudgedBattles
    from jaxeval.execution.runs import RunOptions


class HeldOut(NamedTuple):
    """What holding models out told about a judge."""

    tables: dict[str, pd.DataFrame]
    warnings: list[str]
    notes: list[str]
    settings: dict[str, Any]

    @property
    def error(self) -> float:
        """Mean error of the best method; infinite where no model could be rated."""
        error = self.tables["summary"]["mae"].min()
        return float(error) if error == error else float("inf")


def of_several(each: Mapping[str, HeldOut]) -> HeldOut:
    """The findings about several judges, with a column that names them."""
    import pandas as pd

    names = dict.fromkeys(name for found in each.values() for name in found.tables)
    tables = {
        name: pd.concat(
            [found.tables[name].assign(judge=judge) for judge, found in each.items() if name in found.tables],
            ignore_index=True,
        )
        for name in names
    }
    tables = {name: table[["judge", *table.columns.drop("judge")]] for name, table in tables.items()}
    said = {
        kind: [f"{judge}: {text}" for judge, found in each.items() for text in getattr(found, kind)]
        for kind in ("warnings", "notes")
    }
    return HeldOut(tables, **said, settings={judge: found.settings for judge, found in each.items()})


def held_out_findings(
    battles: JudgedBattles,
    running: RunOptions,
    *,
    level: float | None,
    splits: int,
    methods: tuple[str, ...],
    cluster: str | None,
    strata: str | None,
    by: str | None,
    length_a: str | None,
    length_b: str | None,
    budget: bool,
    smoothing: bool,
    ridge: float,
    n_resamples: int,
    seed: int,
    base: float,
) -> HeldOut:
    """Every model of one judge held out in turn."""
    from dataclasses import asdict

    from jaxeval.lab.conformal_study import conformal_study, leave_one_out_intervals, width_decomposition
    from jaxeval.lab.judge_diagnostics import diagnose
    from jaxeval.softelo.soft_elo import soft_elo

    held_out = soft_elo(
        battles, ridge, n_resamples, seed, methods or ("hard", "soft"), base=base, cluster=cluster, strata=strata,
        **running,
    )  # fmt: skip
    found = diagnose(battles, held_out, length_a=length_a, length_b=length_b, ridge=ridge, cluster=cluster)
    tables = {
        "models": held_out.models,
        "summary": held_out.summary.reset_index(),
        "diagnostics": found.headline.reset_index(),
        **found.tables,
    }
    warnings = [*held_out.warnings, *found.warnings]
    drawn = counted(n_resamples, "resample") + (f" of {cluster}" if cluster else "")
    drawn += f" within {strata}" if strata else ""
    used = f"ridge {ridge:g}; {drawn}, seed {seed}"
    try:
        study = conformal_study(held_out, level, splits, seed=seed)
        tables["conformal"], tables["conformal_splits"] = study.summary.reset_index(), study.splits
        tables["intervals"] = leave_one_out_intervals(held_out, level)
        widths = width_decomposition(held_out, level)
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
        from jaxeval.lab.held_out_sweeps import slice_ratings

        tables["slices"] = slice_ratings(battles, by, ridge, **within("slices"))
        warnings += tables["slices"].attrs["warnings"]
    if budget:
        from jaxeval.lab.held_out_sweeps import budget_sweep

        tables["budget"] = budget_sweep(battles, ridge=ridge, seed=seed, cluster=cluster, **within("budget"))
        warnings += tables["budget"].attrs["warnings"]

    if smoothing:
        from jaxeval.lab.held_out_sweeps import label_smoothing_sweep

        tables["smoothing"] = label_smoothing_sweep(battles, ridge=ridge)

    notes = [str(battles.report), f"{used}; {held_out.settings.versions}"]
    notes += [f"left out: {'; '.join(found.left_out)}"] if found.left_out else []
    return HeldOut(tables, warnings, notes, asdict(held_out.settings))
