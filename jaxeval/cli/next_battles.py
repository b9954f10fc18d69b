"""The command line of battles to come: ``jaxeval next FILES``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from jaxeval.cli.board_options import covariates_of, gauge_of, gauge_option, link_option, pair_options
from jaxeval.cli.compiling import CompilingCommand
from jaxeval.cli.outputs import Outputs, check_outputs, output_options, present
from jaxeval.cli.reading import Reading, battle_options
from jaxeval.cli.run_options import (
    SHARE,
    InputFile,
    choice_option,
    cluster_option,
    features_option,
    level_option,
    ridge_option,
    seed_option,
    several_options,
    top_size_option,
)
from jaxeval.cli.terminal import named_model
from jaxeval.data.remote_names import FileName

_goal_options = several_options(
    click.option("--goal", type=click.Choice(["board", "top", "pair", "newcomer"]),
                 help="What the battles should tell: all ratings (board; random pairs do as well if all have as many "
                 "votes), those of the best (top), a difference (pair), or one rating (newcomer). [the one that "
                 "--top-size, --pair or --newcomer is about, else board]"),
    top_size_option(None, fewest=2, text="By default 10 with --goal top."),
    click.option("--pair", nargs=2, metavar="A B", help="The difference of two models."),
    click.option("--newcomer", metavar="NAME", help="The rating of one model, which alone meets others; the files need "
                 "not hold it."),
    click.option("--random", default=0.2, type=click.FloatRange(0, 1), metavar="SHARE",
                 help="Share of battles between random pairs, which keep all models connected."),
    level_option(),
    seed_option(),
)  # fmt: skip
_plan_options = several_options(
    click.option("--plan", is_flag=True,
                 help="Print no list of battles, but how many votes --width and --difference take, and what --votes "
                 "can tell."),
    click.option("--difference", multiple=True, type=click.FloatRange(0, min_open=True), metavar="ELO",
                 help="With --plan: how many votes tell apart two models that differ by so much; may be repeated."),
    click.option("--votes", multiple=True, type=click.IntRange(1), metavar="N",
                 help="With --plan: what N more votes can tell; may be repeated."),
    click.option("--power", type=SHARE, metavar="P", help="Chance to tell them apart. With --plan; 0.8 by default."),
)  # fmt: skip
_fit_options = several_options(
    cluster_option("Errors allow for them."),
    features_option(),
    ridge_option(),
    link_option(),
    gauge_option("The intervals depend on it."),
    pair_options,
)  # fmt: skip


@click.command("next", cls=CompilingCommand, renamed={"--top": "--top-size"})
@click.argument("files", nargs=-1, required=True, type=InputFile(exists=True, allow_dash=True, path_type=Path))
@click.option("--k", type=click.IntRange(1), metavar="K", help="Number of battles.")
@click.option("--width", multiple=True, type=click.FloatRange(0, min_open=True), metavar="ELO",
              help="In place of --k: as many battles as it takes for intervals of this mean width; with --plan it may "
              "be repeated.")  # fmt: skip
@_goal_options
@_plan_options
@battle_options
@choice_option(
    "--missing",
    "error",
    "drop",
    text="What to do about gaps. error: refuse rows without a model or a result. drop: leave them out.",
)
@_fit_options
@output_options
def next_battles(
    *,
    files: tuple[FileName, ...],
    k: int | None,
    width: tuple[float, ...],
    seed: int,
    plan: bool,
    difference: tuple[float, ...],
    votes: tuple[int, ...],
    power: float | None,
    reading: Reading,
    cluster: str | None,
    features: str | None,
    outputs: Outputs,
    gauge: Any,
    **options: Any,
) -> None:
    """Which battles to judge next, on top of the votes in FILES, so that they tell most.

    Rate the new votes together with the old ones, all with equal weights. Chosen pairs move ratings that misfit: the
    screen names a command that checks it. That fit weighs battles by their propensity, the chance to be chosen. --out
    writes a row for each pair; into a folder it also writes each.csv, with a row for each battle.
    """
    from jaxeval.planning import next_battles as planning
    from jaxeval.planning.vote_counts import plan_votes
    from jaxeval.ratings.bradley_terry import fit_bradley_terry
    from jaxeval.show.shown import Part

    aim = {name: options.pop(name) for name in ("goal", "pair", "newcomer", "random", "level")}
    aim["top"] = options.pop("top_size")
    if aim["top"] is not None and aim["goal"] not in (None, "top"):
        raise click.UsageError(f"--top-size is about --goal top, and the goal is {aim['goal']}: leave one out")
    if plan and k is not None:
        raise click.UsageError("--k and --plan do not go together: with --plan say --votes")
    if not plan and (difference or votes or power is not None):
        raise click.UsageError("--difference, --votes and --power need --plan")
    if (not plan and (k is None) == (not width)) or (len(width) > 1 and not plan):
        raise click.UsageError("give --k, the number of battles, or one --width that they are to reach; or --plan")
    check_outputs({"--out": outputs.out}, [*files, *reading.files])
    covariates, columns = covariates_of(features, False, None, ())
    battles = reading.chosen(reading.read(files, [*columns, *([cluster] if cluster else [])]))
    fit = fit_bradley_terry(battles, features=covariates, cluster=cluster, gauge=gauge_of(battles, gauge), **options)
    aim["pair"] = tuple(named_model(battles.models, name) for name in aim["pair"]) if aim["pair"] else None
    aim["newcomer"] = named_model(battles.models, aim["newcomer"]) if aim["newcomer"] else None
    if plan:
        own: Any = {} if power is None else {"power": power}
        table = plan_votes(fit, width=width, difference=difference, votes=votes, **own, **aim)
        settings = table.attrs["settings"]
        drawn = f"{100 * settings['level']:g}% intervals, power {settings['power']:g}, "
        meaning = "width: mean one of the intervals; difference: that the votes tell from 0 with the power; Elo"
        part = Part(table._title, table, meaning)
        notes = [str(battles.report), f"{drawn}random share {settings['random']:g}"]
        answer = table.answer._replace(notes=notes, warnings=fit.warnings, parts=[part], tables={"votes": table})
        present(answer, outputs)
        return
    found = planning.next_battles(fit, k, width=width[0] if width else None, seed=seed, **aim)
    folder = outputs.out if outputs.to_folder and outputs.out is not None else Path("FOLDER")
    answer = found.answer
    tables, (first, *advice) = dict(answer.tables), answer.sentences
    if outputs.to_folder:
        tables["each"] = found.each()
    if "inverse propensities" in found.expected.index:
        line = shlex.join(["jaxeval", "leaderboard", str(folder / "each.csv"), "--propensity", "propensity"])
        advice.append(f"The check, once each.csv (--out FOLDER) has its winners: {line}")
    notes, warnings = [str(battles.report), *answer.notes], [*found.warnings, *fit.warnings]
    answer = answer._replace(sentences=[first], advice=advice, notes=notes, warnings=warnings, tables=tables)
    present(answer, outputs)
