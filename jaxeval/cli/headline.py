"""``jaxeval horizons`` and ``jaxeval index``: time horizons of agents, and a capability index of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.compiling import CompilingCommand
from jaxeval.cli.outputs import Outputs, present
from jaxeval.cli.run_options import FILE, choice_option, column_options, resampling_options, top_option
from jaxeval.data.remote_names import FileName

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from jaxeval.show.shown import Result

_cost_option = click.option(
    "--cost",
    metavar="COL",
    help="Column with the cost of each model, one in all of its rows. Adds who is on the front of cost and quality.",
)


@click.command(cls=CompilingCommand)
@click.argument("file", type=FILE)
@column_options(
    agent="Column of agents. [agent, alias, model]",
    task="Column of tasks. [task, task_id]",
    family="Column of families of tasks, which are resampled. [family, task_family]",
    minutes="Column of the minutes that people take. [minutes, human_minutes]",
    success="Column of successes, 0 or 1. [success, score_binarized]",
    weight="Column of weights. Of runs; equal weighs all tasks of an agent alike. [1 / sqrt of the tasks in a family]",
    released="Column of the release dates of agents: adds the doubling time of the frontier.",
)
@click.option("--level-of-success", "levels", multiple=True, type=click.FloatRange(0, 1, min_open=True, max_open=True),
              default=(0.5, 0.8), help="Share of successes of a horizon; may be repeated.")  # fmt: skip
@click.option(
    "--slope-ridge", "ridge", default=1e-5, type=click.FloatRange(0), metavar="R", help="Penalty of the curves' slopes."
)
@choice_option("--curve", "logistic", "probit", "asymmetric", "monotone", text="How success falls with length.")
@click.option("--task-spread", metavar="S",
              help="Standard deviation of difficulty among tasks of one length, in logits, or estimate: adds the "
              "horizon of a typical task.")  # fmt: skip
@click.option("--minutes-sd", default=0.0, type=click.FloatRange(0), metavar="S",
              help="Standard deviation of the errors in log2 of the minutes, which are then undone.")  # fmt: skip
@click.option("--stages", "resample", default="family", metavar="A,B",
              help="What is drawn, outermost first: family, task, run.")  # fmt: skip
@_cost_option
@resampling_options(drawn="Of families of tasks.")
@top_option()
def horizons(
    file: FileName, *, levels: Sequence[float], task_spread: str | None, resample: str, released: str | None,
    cost: str | None, drawn: dict[str, Any], outputs: Outputs, top: int | None, **options: Any,
) -> None:  # fmt: skip
    """How long are the tasks that agents solve? Time horizons, in minutes of people.

    FILE has a row for each run: agent, task, its family, the minutes that people take, and success.
    """
    from jaxeval.capability.columns import of_each
    from jaxeval.capability.time_horizons import time_horizons

    frame = _table(file)
    spread: Any = task_spread
    if task_spread not in (None, "estimate"):
        try:
            spread = float(str(task_spread))
        except ValueError:
            raise click.UsageError(f"--task-spread must be a number or estimate, got {task_spread!r}") from None
    stages: Any = tuple(part.strip() for part in resample.split(","))
    found = time_horizons(frame, levels=levels, task_spread=spread, resample=stages, **options, **drawn)
    tables = {"horizons": found.table, "choices": found.choices().T.reset_index()}
    notes: list[str] = []
    sentences = list(found.answer.sentences)
    if released is not None:
        trend = found.trend(of_each(frame, options["agent"], "agent", released))
        tables |= {"trend": trend.agents}
        sentences += trend.answer.sentences
        notes += trend.warnings
    _present(found, tables, sentences, notes, outputs, top, "agent", _with_cost(found.joint.of(level=levels[0]), frame,
             options["agent"], "agent", cost))  # fmt: skip


@click.command(cls=CompilingCommand)
@click.argument("file", type=FILE)
@column_options(
    model="Column of models. [model, model_name, model_id]",
    benchmark="Column of benchmarks. [benchmark, benchmark_name, benchmark_id]",
    share="Column of shares of right answers. [score, performance, share]",
    questions="Column with the number of questions behind a share.",
)
@choice_option("--loss", "likelihood", "squared", text="What is minimised: a binomial's loss, or squared errors.")
@click.option("--parameter-ridge", "ridge", default=0.1, type=click.FloatRange(0), metavar="R",
              help="Penalty of the mean square of all parameters.")  # fmt: skip
@click.option("--fix", "anchors", multiple=True, metavar="MODEL=INDEX",
              help="A model and the index that it shall have; two of them make the scale. [mean 100, standard "
              "deviation 15]")  # fmt: skip
@click.option("--easiest", metavar="BENCHMARK", help="Benchmark whose slope is held at 1. [highest mean]")
@choice_option("--draw", "cells", "benchmarks", text="What is drawn: scores within models, or whole benchmarks.")
@_cost_option
@resampling_options(drawn="Of scores, or of benchmarks.")
@top_option()
def index(
    file: FileName, *, anchors: Sequence[str], draw: Any, cost: str | None, drawn: dict[str, Any], outputs: Outputs,
    top: int | None, **options: Any,
) -> None:  # fmt: skip
    """What do many benchmarks say together? One index for each model.

    FILE has a row for each model and benchmark, and the share of right answers; most pairs may be missing.
    """
    from jaxeval.capability.capability_index import capability_index

    frame = _table(file)
    names = {"score": options.pop("share"), "n": options.pop("questions")}
    found = capability_index(frame, anchors=_anchors(anchors), resample=draw, **names, **options, **drawn)
    tables = {"index": found.table, "benchmarks": found.benchmarks, "choices": found.choices().T.reset_index()}
    front = _with_cost(found.joint, frame, options["model"], "model", cost)
    _present(found, tables, list(found.answer.sentences), [], outputs, top, "model", front)


def _table(file: FileName) -> pd.DataFrame:
    from jaxeval.data.columns import frame_of
    from jaxeval.data.table_files import read_whole_table

    return frame_of(read_whole_table(file, ()))


def _anchors(pairs: Sequence[str]) -> dict[str, float] | None:
    anchors = {}
    for pair in pairs:
        name, _, value = pair.rpartition("=")
        try:
            anchors[name] = float(value)
        except ValueError:
            name = ""
        if not name:
            raise click.UsageError(f"--fix must be MODEL=INDEX, such as gpt-5=150, got {pair!r}")
    return anchors or None


def _with_cost(joint: Any, frame: pd.DataFrame, name: str | None, role: str, cost: str | None) -> Any:
    from jaxeval.capability.columns import of_each
    from jaxeval.capability.pareto import pareto_front

    return None if cost is None else pareto_front(joint, of_each(frame, name, role, cost))


def _present(
    found: Result, tables: Mapping[str, pd.DataFrame], sentences: list[str], notes: Sequence[str], outputs: Outputs,
    top: int | None, rows: str, front: Any,
) -> None:  # fmt: skip
    from jaxeval.show.shown import Part, settings_line

    answer, tables, sentences = found.answer, dict(tables), list(sentences)
    warnings: list[str] = list(answer.warnings)
    if front is not None:
        tables["front"] = front.table
        sentences += front.answer.sentences
        warnings += [text for text in front.warnings if text not in warnings]
    first = next(iter(tables))
    estimate, noun = ("horizon", "row") if rows == "agent" else ("index", rows)
    ends = {end: f"{estimate}_{end}" for end in ("lower", "upper")}
    shown = {**tables, first: tables[first].rename(columns=ends)}
    parts = [Part(name.capitalize(), table, rows=noun, kept=tuple(table)[:3]) for name, table in shown.items()]

    def figures() -> dict[str, Figure]:
        from jaxeval.plots.leaderboard import plot_draws

        joint = found.joint  # type: ignore[attr-defined]
        return {first: plot_draws(joint.of(level=answer.settings["levels"][0]) if rows == "agent" else joint)}

    how = [settings_line(answer.settings), *notes]
    answer = answer._replace(
        title=first.capitalize(), sentences=sentences, warnings=warnings, notes=how, parts=parts, tables=tables,
        figures=figures,
    )  # fmt: skip
    present(answer.with_top(top), outputs)
