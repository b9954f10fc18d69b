"""The command line of Soft-Elo: ``jaxeval soft-elo FILE``, ``soft-elo calibrate``, ``soft-elo predict``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.compiling import CompilingCommand
from jaxeval.cli.outputs import OutputFile, check_outputs, raw_names_option, write_folder, write_table
from jaxeval.cli.processes import first_goes_on
from jaxeval.cli.run_options import (
    FILE,
    FOLDER,
    SHARE,
    column_options,
    draw_options,
    run_options,
    several_options,
    side_options,
)
from jaxeval.cli.terminal import note, plain_cell, print_table, say, short_number, stdout_console, tell, warn
from jaxeval.wording import counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from jaxeval.execution.runs import RunOptions

_DEFAULT_LEVEL = "[0.9, or the largest level that the calibration models support]"


class _FileOrCommand(click.Group):
    """A group whose first argument may be a file: ``soft-elo FILE`` is ``soft-elo report FILE``."""

    command_class = CompilingCommand

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["report", *args]
        return super().parse_args(ctx, args)


@click.group("soft-elo", cls=_FileOrCommand, subcommand_metavar="FILE [OPTIONS] | COMMAND [ARGS]...",
             no_args_is_help=True)  # fmt: skip
def soft_elo_commands() -> None:
    """Ratings on the human scale from LLM judges' scores.

    `soft-elo FILE` (short for `soft-elo report FILE`) holds every model out in turn and prints how close the judge
    comes to the humans. `calibrate` and `predict` rate new models that have no human votes.
    """


_NEW_COLUMNS = several_options(
    side_options,
    column_options(
        scores_a="Scores of A: numbers, or dicts by criterion. [scores_a]",
        scores_b="Scores of B. [scores_b]",
        scores_a_swapped="Scores of A when shown second.",
        scores_b_swapped="Scores of B when shown first.",
        score_difference="Score of A minus that of B, instead of scores.",
        verdict="The judge's own verdicts. [verdict or judge_pref]",
        verdict_swapped="Its verdicts with B shown first.",
    ),
    click.option("--hard-label", type=click.Choice(["scores", "verdict"]),
                 help="What the hard label is. [scores if given in both orders, else verdict if there is one]"),
    click.option("--labels", "label_coding", type=click.Choice(["a_wins_1", "a_wins_0", "labels"]),
                 help="What labels mean; numbers are never guessed."),
    click.option("--judge-name", default="judge", metavar="NAME"),
)  # fmt: skip
_COLUMNS = several_options(_NEW_COLUMNS, column_options(human="Human labels. [human or human_pref]"))
_FIT = several_options(
    click.option("--ridge", default=0.01, type=click.FloatRange(0), metavar="R"),
    click.option("--base", default=1500.0, help="Mean rating of the anchors."),
    click.option("--method", "methods", multiple=True, metavar="NAME",
                 help="hard, soft, ...; may be repeated. [hard, soft]"),
)  # fmt: skip
_FILE = click.argument("file", type=FILE)


@soft_elo_commands.command()
@_FILE
@_COLUMNS
@_FIT
@draw_options()
@click.option("--level", type=SHARE, metavar="L", help=f"Of the conformal intervals. {_DEFAULT_LEVEL}")
@click.option("--splits", default=5, type=click.IntRange(1), metavar="K",
              help="Random calibration and test splits of the models.")  # fmt: skip
@column_options(
    cluster="Resample whole clusters: prompts, voters. All errors and intervals over battles then allow for clusters.",
    strata="Resample battles within the groups of COL, each as large as it is.",
    by="Also rate slices of this column.",
    length_a="Length of A's answers, for the effects of verbosity.",
    length_b="Length of B's answers.",
)
@click.option("--budget", is_flag=True, help="Also sweep the annotation budget (seconds to minutes).")
@click.option("--smoothing", is_flag=True, help="Also sweep the constant of label smoothing.")
@click.option("--out", type=FOLDER, metavar="DIR", help="Write CSVs and figures.")
@run_options
@raw_names_option
def report(
    file: Path,
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
    out: Path | None,
    ridge: float,
    n_resamples: int,
    seed: int,
    base: float,
    checkpoint: Path | None,
    memory_limit: int | None,
    **columns: Any,
) -> None:
    """Hold every model in FILE out in turn: judge against human ratings, conformal intervals, diagnostics."""
    from jaxeval.data.judged_battles import read_judged_battles
    from jaxeval.softelo.conformal_intervals import conformal_study, leave_one_out_intervals, width_decomposition
    from jaxeval.softelo.judge_diagnostics import diagnose
    from jaxeval.softelo.soft_elo import soft_elo

    battles = read_judged_battles(file, **columns)
    for column in filter(None, (by, length_a, length_b)):
        battles.column(column)  # which must be there, before anything is computed
    for column in filter(None, (cluster, strata)):
        battles.codes(column)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    held_out = soft_elo(
        battles, ridge, n_resamples, seed, methods or ("hard", "soft"), base=base, cluster=cluster, strata=strata,
        memory_limit=memory_limit, checkpoint=checkpoint,
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

    def running(name: str) -> RunOptions:
        return {"memory_limit": memory_limit, "checkpoint": None if checkpoint is None else checkpoint / name}

    if by:
        from jaxeval.softelo.annotation_budget import slice_ratings

        tables["slices"] = slice_ratings(battles, by, ridge, **running("slices"))
        warnings += tables["slices"].attrs["warnings"]
    if budget:
        from jaxeval.softelo.annotation_budget import budget_sweep

        tables["budget"] = budget_sweep(battles, ridge=ridge, seed=seed, cluster=cluster, **running("budget"))
        warnings += tables["budget"].attrs["warnings"]

    if smoothing:
        from jaxeval.softelo.soft_elo import label_smoothing_sweep

        tables["smoothing"] = label_smoothing_sweep(battles, ridge=ridge)

    first_goes_on()
    # Files first: what is wrong with the terminal must not cost them.
    if out is not None:
        write_folder(out, tables, _figures(tables))
    console = stdout_console()
    shown = ["method", "n_models", "n_left_out", "mae", "mae_lower", "mae_upper", "spearman", "kendall", "beta"]
    print_table(console, held_out.summary.reset_index()[shown], "Held-out ratings against human ratings (Elo)", _cell)
    if "conformal" in tables:
        print_table(
            console, tables["conformal"], f"Split conformal intervals, {counted(splits, 'random split')} (Elo)", _cell
        )
    print_table(console, found.headline.reset_index(), "The judge's scores", _cell)
    if smoothing:
        print_table(console, tables["smoothing"], "Label smoothing by its constant (Elo)", _cell)
    if by:
        print_table(console, tables["slices"], f"Slices by {by}, against the global human rating (Elo)", _cell)
    note(console, battles.report)
    note(console, used)
    for sentence in found.left_out:
        say(console, f"left out: {sentence}", "dim")
    warn(console, warnings)


def _figures(tables: dict[str, pd.DataFrame]) -> dict[str, Figure]:
    from jaxeval.plots import soft_elo as plots

    figures = {"held_out": plots.plot_held_out(tables["models"])}
    if "intervals" in tables:
        figures["intervals"] = plots.plot_intervals(tables["intervals"])
    if "reliability" in tables and "agreement_by_score_gap" in tables:
        figures["calibration"] = plots.plot_calibration(tables["agreement_by_score_gap"], tables["reliability"])
    if "residual_ramp" in tables:
        figures["ramp"] = plots.plot_ramp(tables["residual_ramp"])
    if "budget" in tables:
        figures["budget"] = plots.plot_budget(tables["budget"])
    if "smoothing" in tables:
        figures["smoothing"] = plots.plot_smoothing(tables["smoothing"])
    return figures


@soft_elo_commands.command()
@_FILE
@_COLUMNS
@_FIT
@click.option("--cluster", metavar="COL", help="Battles equal in this column were sampled together: prompts, voters.")
@click.option("--out", required=True, type=OutputFile((".json",)), help="Where to save it, as JSON.")
def calibrate(
    file: Path, *, methods: tuple[str, ...], out: Path, ridge: float, base: float, cluster: str | None, **columns: Any
) -> None:
    """Calibrate a judge on the models in FILE, which has human votes, and save the calibration."""
    from jaxeval.data.judged_battles import read_judged_battles
    from jaxeval.softelo.calibration import SoftEloCalibration

    check_outputs({"--out": out}, [file])
    battles = read_judged_battles(file, **columns)
    calibration = SoftEloCalibration.fit(battles, ridge, methods or ("hard", "soft"), base, cluster=cluster)
    calibration.save(out)
    tell(f"wrote {out}")
    console = stdout_console()
    note(console, battles.report)
    for name, method in calibration.methods.items():
        beta = "" if method.beta is None else f", beta {method.beta:.4f}"
        calibrate = counted(len(method.models), "model calibrates", "models calibrate")
        console.print(
            f"{name}: {counted(len(method.anchors), 'anchor')}, {calibrate} (levels up to "
            f"{calibration.largest_level(name)}){beta}; {_floor(method.floor)}",
            highlight=False,
        )
    warn(console, calibration.warnings)


@soft_elo_commands.command()
@click.argument("calibration", type=FILE)
@_FILE
@_NEW_COLUMNS
@click.option("--cluster", metavar="COL",
              help="Battles equal in this column were sampled together. [the calibration's column]")  # fmt: skip
@click.option("--level", type=SHARE, metavar="L", help=f"Of the intervals. {_DEFAULT_LEVEL}")
@click.option("--human-votes", type=click.FloatRange(0, min_open=True), metavar="N",
              help="Predict the board's rating after so many votes on the new model; inf: its true strength. "
              "[the median of the calibration models]")  # fmt: skip
@click.option("--method", default="soft", metavar="NAME")
@click.option("--out", type=OutputFile((".csv",)), help="Write the table as CSV.")
@raw_names_option
def predict(
    calibration: Path,
    file: Path,
    *,
    cluster: str | None,
    level: float | None,
    human_votes: float | None,
    method: str,
    out: Path | None,
    **columns: Any,
) -> None:
    """Rate the new models in FILE, which needs no human votes, with a saved CALIBRATION.

    Human labels in FILE are not read. Verdicts are read where --method needs them, with the labels of the calibration
    unless --labels names others.
    """
    from jaxeval.softelo.calibration import SoftEloCalibration

    check_outputs({"--out": out}, [calibration, file])
    loaded = SoftEloCalibration.load(calibration)
    new = loaded.read_new_battles(file, method, **columns)
    table = loaded.predict(new, level, method, human_votes=human_votes, cluster=cluster)
    if out is not None:
        write_table(table, out)
        tell(f"wrote {out}")
    settings, console = table.attrs["settings"], stdout_console()
    print_table(console, table, f"Ratings on the human scale with {settings['level']:g} intervals (Elo)", _cell)
    votes, error = settings["human_votes"], settings["human_error"]
    endless = "the intervals are for the model's true strength"
    finite = f"the intervals are for the board's rating after {votes:g} human votes (their error: {error:.1f} Elo)"
    note(console, f"{finite if error else endless}; {_floor(settings['floor'])}")
    note(
        console,
        f"{counted(settings['n_calibration'], 'model calibrates', 'models calibrate')}: expected coverage "
        f"{settings['expected_coverage']:.4f}, nominal {settings['level']:g}; ridge {settings['ridge']:g}; "
        f"method {method}",
    )
    warn(console, table.attrs["warnings"])


def _floor(tau: float) -> str:
    if tau == 0:
        return "tau 0: sampling explains the calibration residuals, no error of the judge's own is seen"
    return f"tau {tau:.1f} Elo: the judge's own error, a floor that no number of battles removes"


def _cell(name: Any, value: Any) -> str:
    if isinstance(value, float):
        if value != value:
            return "-"
        text = str(name)
        elo = any(
            part in text for part in ("mae", "width", "elo", "narrow", "wide", "rating", "lower", "upper", "error")
        )
        return f"{value:.1f}" if elo and abs(value) >= 3 else short_number(value)
    return plain_cell(value)
