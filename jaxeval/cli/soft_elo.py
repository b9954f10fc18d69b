"""The command line of Soft-Elo: ``jaxeval soft-elo FILE``, ``soft-elo calibrate``, ``predict`` and ``merge``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from jaxeval.cli.compiling import CompilingCommand
from jaxeval.cli.outputs import (
    OutputFile,
    Outputs,
    check_outputs,
    full_option,
    output_options,
    present,
    quiet_option,
    show,
)
from jaxeval.cli.reading import labels_option, lengths_option, reply_options
from jaxeval.cli.run_options import (
    FILE,
    base_option,
    by_option,
    cluster_option,
    column_options,
    draw_options,
    level_option,
    ridge_option,
    run_options,
    several_options,
    side_options,
    strata_option,
)
from jaxeval.cli.terminal import tell
from jaxeval.data.remote_names import FileName

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from jaxeval.data.judged_battles import JudgedBattles
    from jaxeval.execution.runs import RunOptions
    from jaxeval.show.shown import Answer

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
    comes to the humans. `calibrate` and `predict` rate new models that have no human votes; `merge` places them on the
    board of human votes.
    """


_NEW_COLUMNS = several_options(
    side_options,
    column_options(
        scores_a="Column of A's scores: numbers, or dicts by criterion. [scores_a]",
        scores_b="Column of B's scores. [scores_b]",
        scores_a_swapped="Column of A's scores when shown second.",
        scores_b_swapped="Column of B's scores when shown first.",
        score_difference="Column of A's score minus B's, instead of scores.",
        verdict="Column of a judge's verdicts. [verdict or judge_pref]",
        verdict_swapped="Column of its verdicts with B shown first.",
    ),
    click.option("--hard-label", type=click.Choice(["scores", "verdict"]),
                 help="What the hard label is. [scores if given in both orders, else verdict if there is one]"),
    labels_option("label_coding"),
    click.option("--judge-name", metavar="NAME", help="What to call a judge without a name. [judge]"),
    click.option("--only-judge", metavar="NAME", help="Read this judge only, of several."),
    reply_options,
)  # fmt: skip
_COLUMNS = several_options(_NEW_COLUMNS, column_options(human="Column of human labels. [human or human_pref]"))
_FIT = several_options(
    ridge_option(0.01),
    base_option(1500.0),
    click.option("--method", "methods", multiple=True, metavar="NAME",
                 help="What a verdict counts for: hard, soft or smooth:c. May be repeated. [hard, soft]"),
)  # fmt: skip
_FILE = click.argument("file", type=FILE)
_ONE_METHOD = click.option(
    "--method", default="soft", metavar="NAME", help="What a verdict counts for: hard, soft or smooth:c."
)


@soft_elo_commands.command()
@_FILE
@_COLUMNS
@_FIT
@draw_options()
@level_option(_DEFAULT_LEVEL, None)
@click.option("--splits", default=5, type=click.IntRange(1), metavar="K",
              help="Random calibration and test splits of the models.")  # fmt: skip
@cluster_option("A resample draws whole clusters, and all errors and intervals over battles allow for them.")
@strata_option("battles")
@by_option("Each is also rated on its own.")
@lengths_option
@click.option("--budget", is_flag=True, help="Also sweep the annotation budget (seconds to minutes).")
@click.option("--smoothing", is_flag=True, help="Also sweep the constant of label smoothing.")
@output_options
@run_options
def report(
    file: FileName,
    *,
    outputs: Outputs,
    checkpoint: Path | None,
    memory_limit: int | None,
    lengths: tuple[str, str] | None,
    **options: Any,
) -> None:
    """Hold every model in FILE out in turn: judge against human ratings, conformal intervals, diagnostics.

    FILE holds scores or verdicts of a judge, or what judges printed, in a column such as output.
    """
    from jaxeval.data.judged_files import read_judges
    from jaxeval.lab.held_out import error_of, held_out_answer, of_several

    options["length_a"], options["length_b"] = lengths or (None, None)
    study = {name: options.pop(name) for name in _STUDY}
    judges = read_judges(file, **options)
    for battles in judges.values():
        for column in filter(None, (study[name] for name in ("by", "length_a", "length_b"))):
            battles.column(column)  # which must be there, before anything is computed
        for column in filter(None, (study["cluster"], study["strata"])):
            battles.codes(column)

    def held_out(judge: str, battles: JudgedBattles) -> Answer:
        folder = checkpoint if checkpoint is None or len(judges) == 1 else checkpoint / quote(judge, safe=" ")
        running: RunOptions = {"memory_limit": memory_limit, "checkpoint": folder, "progress": outputs.progress}
        return held_out_answer(battles, running, **study)

    each = {judge: held_out(judge, battles) for judge, battles in judges.items()}
    best = min(each.values(), key=error_of)
    present(of_several(each)._replace(figures=lambda: _figures(best.tables)), outputs)


#: Options of the study of a judge.
_STUDY = (
    "level", "splits", "methods", "cluster", "strata", "by", "length_a", "length_b", "budget", "smoothing", "ridge",
    "n_resamples", "seed", "base",
)  # fmt: skip


def _figures(tables: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
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
@cluster_option("Intervals allow for them.")
@click.option("--out", required=True, type=OutputFile((".json",)), help="Where to save it, as JSON.")
@quiet_option
@full_option
def calibrate(
    file: FileName,
    *,
    methods: tuple[str, ...],
    out: Path,
    quiet: bool,
    full: bool,
    ridge: float,
    base: float,
    cluster: str | None,
    **columns: Any,
) -> None:
    """Calibrate a judge on the models in FILE, which has human votes, and save the calibration."""
    from jaxeval.data.judged_files import read_judged_battles
    from jaxeval.softelo.calibration import SoftEloCalibration

    check_outputs({"--out": out}, [file])
    battles = read_judged_battles(file, **columns)
    calibration = SoftEloCalibration.fit(battles, ridge, methods or ("hard", "soft"), base, cluster=cluster)
    calibration.save(out)
    tell(f"wrote {out}")
    show(calibration.answer._replace(table=None, notes=[str(battles.report)]), quiet, full)


@soft_elo_commands.command()
@click.argument("calibration", type=FILE)
@_FILE
@_NEW_COLUMNS
@cluster_option("Intervals allow for them. [the calibration's column]")
@level_option(_DEFAULT_LEVEL, None)
@click.option("--human-votes", type=click.FloatRange(0, min_open=True), metavar="N",
              help="Predict the board's rating after so many votes on the new model; inf: its true strength. "
              "[the median of the calibration models]")  # fmt: skip
@_ONE_METHOD
@output_options
def predict(
    calibration: FileName,
    file: FileName,
    *,
    cluster: str | None,
    level: float | None,
    human_votes: float | None,
    method: str,
    outputs: Outputs,
    **columns: Any,
) -> None:
    """Rate the new models in FILE, which needs no human votes, with a saved CALIBRATION.

    Human labels in FILE are not read. Verdicts are read where --method needs them, with the labels of the calibration
    unless --labels names others.
    """
    from jaxeval.softelo.calibration import SoftEloCalibration, prediction_answer

    check_outputs({"--out": outputs.out}, [calibration, file])
    loaded = SoftEloCalibration.load(calibration)
    new = loaded.read_new_battles(file, method, **columns)
    table = loaded.predict(new, level, method, human_votes=human_votes, cluster=cluster)
    present(prediction_answer(table), outputs)


@soft_elo_commands.command()
@_FILE
@_COLUMNS
@click.option(
    "--new",
    type=FILE,
    metavar="FILE",
    help="Judged battles of the new models, in the same columns; human labels are not read. [FILE itself]",
)
@click.option(
    "--votes",
    type=FILE,
    metavar="FILE",
    help="Votes of people, as `leaderboard` reads them. [the human labels of FILE]",
)
@_ONE_METHOD
@level_option(f"Also of rank spreads and tiers. {_DEFAULT_LEVEL}", None)
@ridge_option(0.01, "Of the judge's ratings.")
@base_option()
@cluster_option("In all files; intervals allow for them.")
@click.option(
    "--min-votes",
    default=1,
    type=click.IntRange(1),
    metavar="N",
    help="Models with fewer votes stand apart. They are new, and their human labels are not used.",
)
@click.option(
    "--min-anchors",
    default=5,
    type=click.IntRange(1),
    metavar="N",
    help="New models that met fewer models of the people's board are named and not placed.",
)
@draw_options()
@output_options
@run_options
def merge(
    file: FileName, *, new: FileName | None, votes: FileName | None, human: str | None, outputs: Outputs, **options: Any
) -> None:
    """Place new models on the board of human votes, from a judge's scores alone.

    FILE has judged battles, some with human labels. Models without any are new. The models that people voted on keep
    the ratings of `leaderboard`.
    """
    from jaxeval.data.judged_files import read_judged_battles
    from jaxeval.data.readers import read_battles
    from jaxeval.softelo.merged_board import merge_boards

    check_outputs({"--out": outputs.out}, [path for path in (file, new, votes) if path])
    merging = {name: options.pop(name) for name in _MERGING}
    merged = merge_boards(
        read_judged_battles(file, human=human, **options),
        None if new is None else read_judged_battles(new, **{**options, "human": False, "human_labels": None}),
        None if votes is None else read_battles(votes),
        progress=outputs.progress,
        **merging,
    )

    def figures() -> dict[str, Figure]:
        from jaxeval.plots.leaderboard import plot_leaderboard

        return {"leaderboard": plot_leaderboard(merged.table)}

    present(merged.answer._replace(figures=figures), outputs)


_MERGING = (
    "level", "method", "n_resamples", "seed", "base", "ridge", "cluster", "min_votes", "min_anchors", "checkpoint",
    "memory_limit",
)  # fmt: skip
