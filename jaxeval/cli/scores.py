"""``jaxeval scores``: benchmark scores of models on items."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.compiling import CompilingCommand
from jaxeval.cli.declared import options_as
from jaxeval.cli.judged_scores import Labels, how_corrected
from jaxeval.cli.outputs import Outputs, present
from jaxeval.cli.run_options import (
    Command,
    InputFile,
    by_option,
    choice_option,
    cluster_option,
    column_options,
    resampling_options,
    several_options,
    simultaneous_option,
    top_option,
)
from jaxeval.data.remote_names import FileName

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from jaxeval.data.item_scores import ItemScores
    from jaxeval.show.shown import Answer
    from jaxeval.statistics.draws import Draws

_COLUMNS = ("model", "item", "score", "trial", "cluster", "benchmark", "weight")
POINTS = 3  # decimals of scores
_MOST_ANSWERS = 5  # of several boards


def score_columns(command: Command) -> Command:
    """The options that say how files of scores are read."""
    return several_options(
        column_options(
            model="Column of models. [model; else each file is one]",
            item="Column of items: prompts, questions, tasks. [item]",
            score="Column of scores; of a harness, the metric or the scorer. [score]",
            trial="Column of trials: runs of a model on an item. [trial]",
            benchmark="Column of benchmarks. Scores are means over them. [benchmark]",
            weight="Column of weights. [weight]",
        ),
        cluster_option("A resample draws whole clusters. [cluster]"),
        click.option("--wide", is_flag=True, help="A row is an item, and each column of numbers a model."),
        click.option("--filter", "output_filter", metavar="NAME", help="Filter of lm-evaluation-harness."),
        choice_option("--missing", "error", "complete", "available",
                      text="What to do about gaps. error: refuse models that lack scores. complete: take the items "
                      "that all have. available: take each model on the items that it has."),
    )(command)  # fmt: skip


@click.command(cls=CompilingCommand)
@click.argument("files", nargs=-1, required=True, type=InputFile(exists=True, path_type=Path))
@score_columns
@options_as("labels", Labels)
@by_option("Each has a board of its own.")
@choice_option("--population", "items", "trials", "benchmarks",
               text="What the intervals are about: other items like these, new trials of the same items, or other "
               "benchmarks like these.")  # fmt: skip
@choice_option("--benchmark-weights", "equal", "items", text="Benchmarks count alike, or by their items.")
@simultaneous_option()
@click.option("--pass-at", multiple=True, type=click.IntRange(1), metavar="K",
              help="Also: the chance that one of K trials solves an item; may be repeated.")  # fmt: skip
@click.option("--pass-hat", multiple=True, type=click.IntRange(1), metavar="K",
              help="Also: the chance that K trials all solve an item; may be repeated.")  # fmt: skip
@click.option("--items", "with_items", is_flag=True,
              help="Also: what each item tells; items that all or none solve, and items that look "
              "wrong.")  # fmt: skip
@click.option("--irt", type=click.Choice(["rasch", "2pl"]),
              help="Also: abilities of models on one scale by an item response model, where models have different "
              "items.")  # fmt: skip
@click.option("--n", metavar="COLUMN",
              help="Column with the number of questions of each item, for --irt of shares of right "
              "answers.")  # fmt: skip
@click.option("--subset", type=click.IntRange(2), metavar="K",
              help="Also: K weighted items that stand for all of them, and their error for other models.")  # fmt: skip
@resampling_options(drawn="Of items, clusters or benchmarks.")
@top_option()
def scores(
    files: tuple[FileName, ...],
    *,
    by: str | None,
    population: str,
    benchmark_weights: Any,
    simultaneous_ranks: bool,
    pass_at: Sequence[int],
    pass_hat: Sequence[int],
    with_items: bool,
    irt: Any,
    n: str | None,
    subset: int | None,
    missing: Any,
    labels: Labels,
    drawn: dict[str, Any],
    outputs: Outputs,
    top: int | None,
    **columns: Any,
) -> None:
    """A leaderboard of benchmark scores: models, items, trials.

    FILES hold a row for each model and item with its score, or are what an evaluation harness wrote: samples of
    lm-evaluation-harness, logs of Inspect, Every Eval Ever, reports of SWE-bench, results of tau-bench. Items are
    resampled for all models together, so that models are compared on the same items.
    """
    from jaxeval.scores.item_report import item_report
    from jaxeval.scores.score_leaderboard import leaderboard_of, score_boards
    from jaxeval.scores.trials import pass_at_k, pass_hat_k

    if labels.there:
        others = {
            "population": population, "benchmark_weights": benchmark_weights, "pass_at": pass_at, "pass_hat": pass_hat,
            "items": with_items, "irt": irt, "n": n, "subset": subset,
        }  # fmt: skip
        labels.check_without(others)
        accuracy, read = labels.accuracy(files, columns, missing, by, drawn)
        present(_judged(labels.boards(accuracy, simultaneous_ranks), read, accuracy.joint, top), outputs)
        return
    if n is not None and irt is None:
        raise click.UsageError("--n needs --irt: it is the number of questions behind each share")
    given = read_given(files, columns, [name for name in (by, n) if name is not None])
    boards = score_boards(
        given, by=by, population=population, benchmark_weights=benchmark_weights, missing=missing, **drawn
    )
    table = leaderboard_of(boards, drawn["level"], simultaneous_ranks)
    tables = {"scores": table}
    for measure, ks, what in ((pass_at_k, pass_at, "pass_at"), (pass_hat_k, pass_hat, "pass_hat")):
        tables |= {f"{what}_{k}": measure(given, k, missing=missing, level=drawn["level"]) for k in dict.fromkeys(ks)}
    warnings = list(table.attrs["warnings"])
    if with_items:
        tables["items"] = item_report(given, level=drawn["level"])
        warnings += tables["items"].attrs["warnings"]
    notes = [what_was_read(given), _how(table.attrs["settings"])]
    if irt:
        from jaxeval.scores.item_response import fit_item_response

        fitted = fit_item_response(given, kind=irt, n=n, **drawn)
        tables |= {"abilities": fitted.abilities, "difficulties": fitted.items}
        warnings += [f"{irt}: {text}" for text in fitted.warnings]
    if subset is not None:
        from jaxeval.scores.item_subset import item_subset

        few = item_subset(given, subset, missing=missing, seed=drawn["seed"])
        tables |= {"subset": few.items, "subset_errors": few.errors}
        warnings += few.warnings
        notes.append(few.answer.sentences[0])

    def figures() -> dict[str, Figure]:
        from jaxeval.plots.leaderboard import plot_draws

        return {"scores": plot_draws(next(iter(boards.values())).joint)} if len(boards) == 1 else {}

    present(_answer(tables, notes, warnings, top)._replace(figures=figures), outputs)


def _judged(tables: dict[str, pd.DataFrame], read: str, joint: Draws, top: int | None) -> Answer:
    table = tables["scores"]
    settings = table.attrs["settings"]

    def figures() -> dict[str, Figure]:
        from jaxeval.plots.leaderboard import plot_draws

        own = joint.of(estimator=settings["estimator"])
        return {} if "judge" in table else {"scores": plot_draws(own.of(judge=own.names[0][1]))}

    notes = [read, how_corrected(settings)]
    answer = _answer({"scores": table}, notes, table.attrs["warnings"], top)
    return answer._replace(tables=tables, figures=figures)


def read_given(files: Sequence[FileName], columns: dict[str, Any], keep: Sequence[str]) -> ItemScores:
    """The scores in ``files``."""
    from jaxeval.data.score_files import read_scores

    return read_scores(files if len(files) > 1 else files[0], keep=keep, **columns)


def what_was_read(given: ItemScores) -> str:
    """How much there is of everything, in words."""
    from jaxeval.wording import counted

    parts = [counted(len(given.models), "model"), counted(len(given.items), "item")]
    if given.benchmark is not None:
        parts.append(counted(len(given.benchmark.names), "benchmark"))
    if given.cluster is not None:
        parts.append(counted(len(given.cluster.names), "cluster"))
    if given.trials is not None:
        parts.append(f"{len(given.trials.score):,} trials")
    return ", ".join(parts)


def _how(settings: dict[str, Any]) -> str:
    from jaxeval.execution.precision import versions
    from jaxeval.scores.estimates import DrawnAnew

    about = DrawnAnew(settings["population"]).sentence
    return (
        f"{100 * settings['level']:g}% intervals of {about}, {settings['n_resamples']:,} resamples of "
        f"{settings['resampled']}, seed {settings['seed']}; {versions()}"
    )


def _answer(tables: dict[str, pd.DataFrame], notes: list[str], warnings: list[str], top: int | None) -> Answer:
    from jaxeval.show.boards import rank_spread, score_answers
    from jaxeval.show.shown import Answer, Part

    table = tables["scores"]
    shown = table.assign(spread=[rank_spread(row) for row in table.to_dict("records")])
    shown = shown.drop(columns=["rank_best", "rank_worst"])
    first = ["judge", "category", "rank", "model_name", "score", "score_lower", "score_upper", "spread"]
    first = [x for x in first if x in shown]
    shown = shown[[*first, *(x for x in shown if x not in first)]]
    parts = [Part("Scores", shown, rows="model", kept=("model_name", "score"), least=("n_items",))]
    for name, further in tables.items():
        if name != "scores":
            title = name.replace("_at_", "@").replace("_hat_", "^").capitalize()
            parts.append(Part(title, further.drop(columns="fewest_trials", errors="ignore"), rows="row"))
    sentences = score_answers(table)[:_MOST_ANSWERS]
    answer = Answer("Scores", table, table.attrs["settings"], warnings, sentences=sentences, notes=notes, parts=parts)
    return answer._replace(tables=tables).with_top(top)
