"""The command line of Soft-Elo: ``jaxeval soft-elo FILE``, ``soft-elo calibrate``, ``predict`` and ``merge``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

import click

from jaxeval import plots
from jaxeval.cli.compiling import CompilingCommand
from jaxeval.cli.declared import Answer, File, Lengths, command
from jaxeval.cli.judged_scores import Labels
from jaxeval.cli.outputs import Outputs, keep_quiet, show
from jaxeval.cli.terminal import tell
from jaxeval.data.remote_names import FileName
from jaxeval.options.boards import GroupOption, ScaleOptions
from jaxeval.options.columns import AnchoredReading, FacetOptions, Names, ReplyReading, SideColumns, VoteReading
from jaxeval.options.columns import Labels as Coding
from jaxeval.options.field import COLUMNS, FIT, INTERVALS, SHOWN, Options, again, option
from jaxeval.options.resampling import DrawnTogether, ResamplingOptions, Share

if TYPE_CHECKING:
    from jaxeval.data.judged_battles import JudgedBattles

Json: TypeAlias = Path


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
    """Rate models on the human scale from LLM judges' scores.

    `soft-elo FILE` (short for `soft-elo report FILE`) holds every model out in turn and prints how close the judge
    comes to the humans. `calibrate` and `predict` rate new models that have no human votes; `merge` places them on the
    board of human votes.
    """


class NewBattles(ReplyReading, SideColumns, section=COLUMNS):
    """How files of judged battles are read."""

    scores_a: str | None = option(None, "Column of A's scores: numbers, or dicts by criterion. [scores_a]", "COL")
    scores_b: str | None = option(None, "Column of B's scores. [scores_b]", "COL")
    scores_a_swapped: str | None = option(None, "Column of A's scores when shown second.", "COL")
    scores_b_swapped: str | None = option(None, "Column of B's scores when shown first.", "COL")
    score_difference: str | None = option(None, "Column of A's score minus B's, instead of scores.", "COL")
    verdict: str | None = again(AnchoredReading, "verdict")
    verdict_swapped: str | None = option(None, "Column of its verdicts with B shown first.", "COL")
    hard_label: str | None = option(
        None, "What the hard label is. [scores if given in both orders, else verdict if there is one]",
        choices=("scores", "verdict"),
    )  # fmt: skip
    label_coding: Coding | None = again(VoteReading, "labels", flag="--labels", kind="Labels")
    judge_name: str | None = option(None, "What to call a judge without a name. [judge]", "NAME")
    only_judge: str | None = again(Labels, "only_judge")


class JudgedBattlesColumns(NewBattles):
    """The same, with labels of people."""

    human: str | None = again(Labels, "human")


class Fitting(Options):
    """How a judge's scores are fitted to people's votes."""

    ridge: float = again(ScaleOptions, "ridge", 0.01)
    base: float = again(ScaleOptions, "base", 1500.0)
    methods: tuple[str, ...] = option(
        (), "What a verdict counts for: hard, soft or smooth:c. May be repeated. [hard, soft]", "NAME", flag="--method",
        section=FIT,
    )  # fmt: skip
    cluster: str | None = again(DrawnTogether, "cluster")


class SoftDraws(ResamplingOptions):
    """Draws, whose level is what the calibration models support."""

    level: Share | None = again(  # type: ignore[assignment]
        ResamplingOptions, "level", None, more="[0.9, or the largest level that the calibration models support]"
    )


class Study(Lengths, Fitting, GroupOption):
    """What is asked of a judge."""

    splits: int = option(5, "Random calibration and test splits of the models.", "K", least=1, section="")
    budget: bool = option(False, "Also sweep the annotation budget (seconds to minutes).", section="")
    smoothing: bool = option(False, "Also sweep the constant of label smoothing.", section="")
    strata: str | None = again(DrawnTogether, "strata")
    random: Names | None = again(FacetOptions, "random", more="Here: prompts, seeds, runs.")


@command("report", group=soft_elo_commands)
def report(file: File, columns: JudgedBattlesColumns, options: Study, drawn: SoftDraws) -> Answer:
    """Hold every model in FILE out in turn: judge against human ratings, conformal intervals, diagnostics.

    FILE holds scores or verdicts of a judge, or what judges printed, in a column such as output.
    """
    from jaxeval.data.judge_outputs import read_judges
    from jaxeval.lab.judge_diagnostics import error_of, held_out_answer, of_several

    study = {**options.arguments(), **drawn.arguments("level", "n_resamples", "seed")}
    del study["lengths"]
    study["length_a"], study["length_b"] = options.lengths or (None, None)
    judges = read_judges(file, **columns.arguments())
    for battles in judges.values():
        for column in filter(None, (study[name] for name in ("by", "length_a", "length_b"))):
            battles.column(column)  # which must be there, before anything is computed
        for column in filter(None, (study["cluster"], study["strata"])):
            battles.codes(column)

    def held_out(judge: str, battles: JudgedBattles) -> Answer:
        folder = drawn.checkpoint
        if folder is not None and len(judges) > 1:
            folder = Path(folder) / quote(judge, safe=" ")
        running: Any = {**drawn.arguments("memory_limit", "progress"), "checkpoint": folder}
        return held_out_answer(battles, running, **study)

    each = {judge: held_out(judge, battles) for judge, battles in judges.items()}
    tables = min(each.values(), key=error_of).tables
    return of_several(each)._replace(figures=lambda: {
        name: getattr(plots, function)(*map(tables.get, names)) for name, (function, *names) in _FIGURES.items()
        if {*names} <= {*tables}
    })  # fmt: skip


#: Figures by the names of their files, of those tables that there are.
_FIGURES = {
    "held_out": ("plot_held_out", "models"), "intervals": ("plot_intervals", "intervals"),
    "calibration": ("plot_calibration", "agreement_by_score_gap", "reliability"),
    "ramp": ("plot_ramp", "residual_ramp"), "budget": ("plot_budget", "budget"),
    "smoothing": ("plot_smoothing", "smoothing"),
}  # fmt: skip


class Saving(Options, section=SHOWN):
    """Where a calibration goes, and what is printed of it."""

    full: bool = again(Outputs, "full")
    quiet: bool = again(Outputs, "quiet")
    out: Json = option(None, "Where to save it, as JSON.", required=True)

    def __post_init__(self) -> None:
        keep_quiet(self.quiet)


@command("calibrate", group=soft_elo_commands)
def calibrate(file: File, columns: JudgedBattlesColumns, options: Fitting, saving: Saving) -> None:
    """Calibrate a judge on the models in FILE, which has human votes, and save the calibration."""
    from jaxeval.data.judge_outputs import read_judged_battles
    from jaxeval.softelo.calibration import SoftEloCalibration

    battles = read_judged_battles(file, **columns.arguments())
    methods = options.methods or ("hard", "soft")
    calibration = SoftEloCalibration.fit(battles, options.ridge, methods, options.base, cluster=options.cluster)
    calibration.save(saving.out)
    tell(f"wrote {saving.out}")
    show(calibration.answer._replace(table=None, settings="", notes=[str(battles.report)]), saving.quiet, saving.full)


class Predicting(Options):
    """What is predicted."""

    level: Share | None = again(SoftDraws, "level")
    human_votes: float | None = option(
        None, "Predict the board's rating after so many votes on the new model; inf: its true strength. [the median of "
        "the calibration models]", "N", least=0, open=True,
    )  # fmt: skip
    method: str = option("soft", "What a verdict counts for: hard, soft or smooth:c.", "NAME", section=FIT)
    cluster: str | None = again(DrawnTogether, "cluster", more="[the calibration's column]")


@command("predict", group=soft_elo_commands)
def predict(calibration: File, file: File, columns: NewBattles, options: Predicting) -> Answer:
    """Rate the new models in FILE, which needs no human votes, with a saved CALIBRATION.

    Human labels in FILE are not read. Verdicts are read where --method needs them, with the labels of the calibration
    unless --labels names others.
    """
    from jaxeval.softelo.calibration import SoftEloCalibration, prediction_answer

    loaded = SoftEloCalibration.load(calibration)
    new = loaded.read_new_battles(file, options.method, **columns.arguments())
    return prediction_answer(loaded.predict(new, **options.arguments()))


class Merging(SoftDraws, section=""):
    """Files beside that of judged battles, and how models are placed: arguments of `merge_boards`."""

    new: FileName | None = option(
        None, "Judged battles of the new models, in the same columns; human labels are not read. [FILE itself]", "FILE"
    )
    votes: FileName | None = option(
        None, "Votes of people, as `leaderboard` reads them. [the human labels of FILE]", "FILE"
    )
    ridge: float = again(ScaleOptions, "ridge", 0.01, more="Of the judge's ratings.")
    base: float = again(ScaleOptions, "base")
    method: str = again(Predicting, "method")
    min_votes: int = option(
        1, "Models with fewer votes stand apart. They are new, and their human labels are not used.", "N", least=1,
        section=INTERVALS,
    )  # fmt: skip
    min_anchors: int = option(
        5, "New models that met fewer models of the people's board are named and not placed.", "N", least=1
    )
    cluster: str | None = again(DrawnTogether, "cluster")


@command("merge", group=soft_elo_commands)
def merge(file: File, columns: JudgedBattlesColumns, merging: Merging) -> Answer:
    """Place new models on the board of human votes, from a judge's scores alone.

    FILE has judged battles, some with human labels. Models without any are new. The models that people voted on keep
    the ratings of `leaderboard`.
    """
    from jaxeval.data.judge_outputs import read_judged_battles
    from jaxeval.data.readers import read_battles
    from jaxeval.softelo.merged_board import merge_boards

    options, placed = columns.arguments(), merging.arguments()
    new, votes = placed.pop("new"), placed.pop("votes")
    judged, unlabelled = read_judged_battles(file, **options), {**options, "human": False, "human_labels": None}
    others = None if new is None else read_judged_battles(new, **unlabelled)
    return merge_boards(judged, others, None if votes is None else read_battles(votes), **placed).answer
