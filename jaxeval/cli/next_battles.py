"""The command line of battles to come: ``jaxeval next FILES``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from jaxeval.cli.declared import Answer, Files, command
from jaxeval.cli.outputs import Outputs
from jaxeval.cli.reading import Covariates, Reading, covariates_of, gauge_of
from jaxeval.cli.terminal import named_model
from jaxeval.options.boards import Gauge, LinkName, PairOptions, ResponseOptions, ScaleOptions
from jaxeval.options.columns import Pair
from jaxeval.options.field import Options, again, option
from jaxeval.options.resampling import DrawnTogether, ResamplingOptions, Share


class GoalOptions(Options):
    """What battles should tell."""

    k: int | None = option(None, "Number of battles.", "K", least=1)
    width: tuple[float, ...] = option(
        (), "In place of --k: as many battles as it takes for intervals of this mean width; with --plan it may be "
        "repeated.", "ELO", least=0, open=True,
    )  # fmt: skip
    goal: str | None = option(
        None, "What the battles should tell: all ratings (board; random pairs do as well if all have as many votes), "
        "those of the best (top), a difference (pair), or one rating (newcomer). [the one that --top-size, --pair or "
        "--newcomer is about, else board]", choices=("board", "top", "pair", "newcomer"),
    )  # fmt: skip
    top: int | None = option(
        None, "Number of models in the top. By default 10 with --goal top.", "K", flag="--top-size", least=2
    )
    pair: Pair | None = option(None, "The difference of two models.", "A B")
    newcomer: str | None = option(
        None, "The rating of one model, which alone meets others; the files need not hold it.", "NAME"
    )
    random: float = option(
        0.2, "Share of battles between random pairs, which keep all models connected.", "SHARE", least=0, most=1
    )
    level: Share = again(ResamplingOptions, "level")
    seed: int = again(ResamplingOptions, "seed")

    def __post_init__(self) -> None:
        if self.top is not None and self.goal not in (None, "top"):
            raise click.UsageError(f"--top-size is about --goal top, and the goal is {self.goal}: leave one out")


class VotePlan(Options):
    """How many votes are needed."""

    plan: bool = option(
        False, "Print no list of battles, but how many votes --width and --difference take, and what --votes can tell."
    )
    difference: tuple[float, ...] = option(
        (), "With --plan: how many votes tell apart two models that differ by so much; may be repeated.", "ELO",
        least=0, open=True, needs="plan",
    )  # fmt: skip
    votes: tuple[int, ...] = option(
        (), "With --plan: what N more votes can tell; may be repeated.", "N", least=1, needs="plan"
    )
    power: Share | None = option(None, "Chance to tell them apart. [0.8]", "P", needs="plan")


class NextFit(PairOptions):
    """How the votes are fitted."""

    ridge: float = again(ScaleOptions, "ridge")
    gauge: Gauge = again(ScaleOptions, "gauge")
    link: LinkName = again(ResponseOptions, "link", choices=("logit", "probit"))
    cluster: str | None = again(DrawnTogether, "cluster")


@command("next")
def next_battles(
    files: Files, aim: GoalOptions, targets: VotePlan, reading: Reading, covariates: Covariates,
    fitted: NextFit, outputs: Outputs,
) -> Answer:  # fmt: skip
    """Choose which battles to judge next, on top of the votes in FILES, so that they tell most.

    Rate the new votes together with the old ones, all with equal weights. Chosen pairs move ratings that misfit: the
    screen names a command that checks it. That fit weighs battles by their propensity, the chance to be chosen. --out
    writes a row for each pair; into a folder it also writes each.csv, with a row for each battle.
    """
    from jaxeval.planning import next_battles as planning
    from jaxeval.planning.vote_counts import plan_votes
    from jaxeval.ratings.bootstrap import fit_bradley_terry
    from jaxeval.show.shown import Part

    k, width, seed, plan = aim.k, aim.width, aim.seed, targets.plan
    if plan and k is not None:
        raise click.UsageError("--k and --plan do not go together: with --plan say --votes")
    if (not plan and (k is None) == (not width)) or (len(width) > 1 and not plan):
        raise click.UsageError("give --k, the number of battles, or one --width that they are to reach; or --plan")
    features, columns = covariates_of(covariates.features)
    battles = reading.chosen(reading.read(files, [*columns, *([fitted.cluster] if fitted.cluster else [])]))
    options: dict[str, Any] = {**fitted.arguments(), "gauge": gauge_of(battles, fitted.gauge)}
    fit = fit_bradley_terry(battles, features=features, **options)
    of: dict[str, Any] = aim.arguments("goal", "top", "random", "level")
    of["pair"] = tuple(named_model(battles.models, name) for name in aim.pair) if aim.pair else None
    of["newcomer"] = named_model(battles.models, aim.newcomer) if aim.newcomer else None
    if plan:
        counts = targets.arguments("difference", "votes", "power")
        table = plan_votes(fit, width=width, **{name: x for name, x in counts.items() if x is not None}, **of)
        settings = table.attrs["settings"]
        drawn = f"{100 * settings['level']:g}% intervals, power {settings['power']:g}, "
        meaning = "width: mean one of the intervals; difference: that the votes tell from 0 with the power; Elo"
        part = Part(table._title, table, meaning)
        notes = [str(battles.report), f"{drawn}random share {settings['random']:g}"]
        return table.answer._replace(notes=notes, warnings=fit.warnings, parts=[part], tables={"votes": table})
    chosen = planning.next_battles(fit, k, width=width[0] if width else None, seed=seed, **of)
    folder = outputs.out if outputs.to_folder and outputs.out is not None else Path("FOLDER")
    answer = chosen.answer
    tables, (first, *advice) = dict(answer.tables), answer.sentences
    if outputs.to_folder:
        tables["each"] = chosen.each()
    if "inverse propensities" in chosen.expected.index:
        line = shlex.join(["jaxeval", "leaderboard", str(folder / "each.csv"), "--propensity", "propensity"])
        advice.append(f"The check, once each.csv (--out FOLDER) has its winners: {line}")
    notes, warnings = [str(battles.report), *answer.notes], [*chosen.warnings, *fit.warnings]
    return answer._replace(sentences=[first], advice=advice, notes=notes, warnings=warnings, tables=tables)
