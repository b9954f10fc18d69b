"""``jaxeval horizons`` and ``jaxeval index``: time horizons of agents, and a capability index of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.declared import Answer, Costs, File, Plot, Top, command
from jaxeval.cli.outputs import beside
from jaxeval.cli.terminal import numbers_by_name, tell
from jaxeval.lazy_names import pd
from jaxeval.options.columns import AnchoredReading, ItemScoreColumns, Names, Pair, VoteReading
from jaxeval.options.field import COLUMNS, FIT, again, option
from jaxeval.options.resampling import ResamplingOptions, Share

if TYPE_CHECKING:
    from jaxeval.capability.capability_index import CapabilityIndex
    from jaxeval.show.shown import Result


#: Options that are no arguments of the estimators.
_FURTHER = ("released", "cost", "budget", "plot", "where", "level", "forecast")


class Horizons(Plot, Costs, section=COLUMNS):
    """What is asked of runs: arguments of `time_horizons`, and of what follows from it."""

    agent: str | None = option(None, "Column of agents. [agent, alias, model]", "COL")
    task: str | None = again(AnchoredReading, "task")
    family: str | None = option(None, "Column of families of tasks, which are resampled. [family, task_family]", "COL")
    minutes: str | None = option(None, "Column of the minutes that people take. [minutes, human_minutes]", "COL")
    success: str | None = option(None, "Column of successes, 0 or 1. [success, score_binarized]", "COL")
    weight: str | None = again(
        VoteReading, "weight", more="Of runs; equal weighs all tasks of an agent alike. [1 / sqrt of the tasks in a "
        "family]",
    )  # fmt: skip
    released: str | None = option(
        None, "Column of release dates. Adds the doubling time of the frontier, or its trend.", "COL"
    )
    where: str | None = again(VoteReading, "where")
    levels: tuple[Share, ...] = option(
        (0.5, 0.8), "Share of successes of a horizon; may be repeated.", flag="--level-of-success", section=FIT
    )
    ridge: float = option(1e-5, "Penalty of the curves' slopes.", "R", flag="--slope-ridge", least=0, section="")
    curve: str = option(
        "logistic", "How success falls with length.", choices=("logistic", "probit", "asymmetric", "monotone"),
        section=FIT,
    )  # fmt: skip
    task_spread: str | None = option(
        None, "Standard deviation of difficulty among tasks of one length, in logits, or estimate: adds the horizon of "
        "a typical task.", "S", section=FIT,
    )  # fmt: skip
    minutes_sd: float = option(
        0.0, "Standard deviation of the errors in log2 of the minutes, which are then undone.", "S", least=0,
        section=FIT,
    )  # fmt: skip
    resample: Names = option(
        ("family",), "What is drawn, outermost first: family, task, run.", "A,B", flag="--stages", section=""
    )


@command("horizons")
def horizons(file: File, options: Horizons, drawn: ResamplingOptions, shown: Top) -> Answer:
    """How long are the tasks that agents solve? Time horizons, in minutes of people.

    FILE has a row for each run: agent, task, its family, the minutes that people take, and success.
    """
    from jaxeval.capability.columns import of_each
    from jaxeval.capability.time_horizons import time_horizons

    frame, task_spread = _table(file, options.where), options.task_spread
    spread: Any = task_spread
    if task_spread not in (None, "estimate"):
        try:
            spread = float(str(task_spread))
        except ValueError:
            raise click.UsageError(f"--task-spread must be a number or estimate, got {task_spread!r}") from None
    names = [name for name in options.arguments() if name not in ("task_spread", *_FURTHER)]
    fit = time_horizons(frame, task_spread=spread, **options.arguments(*names), **drawn.arguments())
    choices = fit.choices().T
    tables = {"choices": choices.reset_index()} if choices.notna().any(axis=None) else {}
    trend = None
    if options.released is not None:
        released = of_each(frame, options.agent, "agent", options.released)
        trend = fit.trend(released)
        tables["doubling"] = fit.trend_choices(released)
    quality = fit.joint.of(level=options.levels[0])
    front = options.front(quality, lambda column: of_each(frame, options.agent, "agent", column), fit.level)
    return beside(_with_settings(fit), trend, front, tables=tables | options.tables(front))


class Index(Plot, Costs, section=COLUMNS):
    """What is asked of shares on benchmarks: arguments of `capability_index`, and of what follows from it."""

    model: str | None = again(ItemScoreColumns, "model")
    benchmark: str | None = again(ItemScoreColumns, "benchmark")
    score: str | None = option(
        None, "Column of shares of right answers. [score, performance, share]", "COL", flag="--share"
    )
    n: str | None = option(None, "Column with the number of questions behind a share.", "COL", flag="--questions")
    unit: str = option(
        "auto", "What scores are; auto: shares, and per cents where each benchmark has a column, and most are above 1.",
        choices=("auto", "share", "percent"),
    )  # fmt: skip
    released: str | None = again(Horizons, "released")
    where: str | None = again(VoteReading, "where")
    forecast: tuple[Pair, ...] = option(
        (), "Also: the share that a model is expected to reach on a benchmark; may be repeated.", "MODEL BENCHMARK"
    )
    level: Share = again(ResamplingOptions, "level", 0.9)
    loss: str = option(
        "likelihood", "What is minimised: a binomial's loss, or squared errors.", choices=("likelihood", "squared"),
        section=FIT,
    )  # fmt: skip
    easiest: str | None = option(None, "Benchmark whose slope is held at 1. [highest mean]", "BENCHMARK", section=FIT)
    ridge: float = option(
        0.1, "Penalty of the mean square of all parameters.", "R", flag="--parameter-ridge", least=0, section=""
    )
    anchors: tuple[str, ...] = option(
        (), "A model and the index that it shall have; two of them make the scale. [mean 100, standard deviation 15]",
        "MODEL=INDEX", flag="--fix", section="",
    )  # fmt: skip
    resample: str = option(
        "cells", "What is drawn: scores within models, or whole benchmarks.", flag="--draw",
        choices=("cells", "benchmarks"), section="",
    )  # fmt: skip


@command("index")
def index(file: File, options: Index, drawn: ResamplingOptions, shown: Top) -> Answer:
    """What do many benchmarks say together? One index for each model.

    FILE has a row for each model and benchmark, and the share of right answers; most pairs may be missing. Or it has a
    row for each model, and a column of shares for each benchmark.
    """
    from jaxeval.capability.capability_index import capability_index
    from jaxeval.capability.columns import of_each

    frame = _table(file, options.where)
    arguments = {name: value for name, value in options.arguments().items() if name not in ("anchors", *_FURTHER)}
    anchors = numbers_by_name(options.anchors, "--fix must be MODEL=INDEX, such as gpt-5=150")
    fit = capability_index(frame, anchors=anchors, **arguments, **drawn.arguments())
    front = options.front(fit, lambda column: of_each(frame, options.model, "model", column), fit.level)
    tables = {
        "choices": fit.choices().T.reset_index(), "most telling": fit.most_telling(),
        "without each benchmark": _left_out(fit),
    }  # fmt: skip
    if options.forecast:
        rows = [{"model": m, "benchmark": b, **fit.forecast(m, b)} for m, b in options.forecast]
        tables["forecast"] = pd.DataFrame(rows)
    if options.released is not None:
        released = of_each(frame, options.model, "model", options.released)
        tables["trend"] = fit.trend(released).rename_axis("what").reset_index()
    return beside(_with_settings(fit), front, tables=tables | options.tables(front))


def _left_out(fit: CapabilityIndex) -> pd.DataFrame:
    """Return the largest change of an index if a benchmark is left out, and whose it is."""
    changed = fit.without_each_benchmark()
    most = changed.abs().idxmax(axis=1)
    change = [changed.loc[name, model] for name, model in most.items()]
    return most.rename("model").reset_index().assign(change=change)


def _table(file: File, where: str | None) -> pd.DataFrame:
    from jaxeval.data.table_files import read_whole_table

    frame = read_whole_table(file, ())
    if where is None:
        return frame
    from jaxeval.data.conditions import rows_that_meet

    chosen, note = rows_that_meet(frame, where)
    tell(note)
    return chosen


def _with_settings(result: Result) -> Answer:
    """Return the answer of a result, whose settings are among what it rests on."""
    from jaxeval.show.shown import settings_line

    answer = result.answer
    return answer._replace(notes=[*answer.notes, settings_line(answer.settings)])
