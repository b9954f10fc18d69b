"""``jaxeval scores`` and ``jaxeval compare-scores``: benchmark scores of models on items."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.compiling import CompilingCommand
from jaxeval.cli.outputs import Findings, Outputs, output_options, present
from jaxeval.cli.reading import Scale
from jaxeval.cli.run_options import (
    SHARE,
    Command,
    InputFile,
    choice_option,
    column_options,
    resampling_options,
    several_options,
)
from jaxeval.cli.terminal import named_model
from jaxeval.data.remote_names import FileName

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from jaxeval.cli.screens import Screen
    from jaxeval.data.item_scores import ItemScores
    from jaxeval.scores.compare_scores import ScoreComparison

_COLUMNS = ("model", "item", "score", "trial", "cluster", "benchmark", "weight")
_POINTS = 3  # decimals of scores


def score_columns(command: Command) -> Command:
    """The options that say how files of scores are read."""
    return several_options(
        column_options(
            model="Models. [model; else each file is one]",
            item="Items: questions, tasks. [item]",
            score="Scores; of a harness, the metric or the scorer. [score]",
            trial="Tells runs of a model on an item apart. [trial]",
            cluster="Groups of items that belong together, drawn whole. [cluster]",
            benchmark="Benchmarks: items within, an average over. [benchmark]",
            weight="Weights of items. [weight]",
        ),
        click.option("--wide", is_flag=True, help="A row is an item, and each column of numbers a model."),
        click.option("--filter", "output_filter", metavar="NAME", help="Filter of lm-evaluation-harness."),
        choice_option("--missing", "error", "complete", "available",
                      text="Where models lack scores: an error; the items that all have; or each on its own."),
    )(command)  # fmt: skip


@click.command(cls=CompilingCommand)
@click.argument("files", nargs=-1, required=True, type=InputFile(exists=True, path_type=Path))
@score_columns
@click.option("--by", metavar="COL", help="A board for each group of COL.")
@choice_option("--population", "items", "trials", "benchmarks",
               text="What another evaluation would draw anew, which intervals are about: new items like these; these "
               "items, new trials; or new benchmarks like these.")  # fmt: skip
@choice_option("--benchmark-weights", "equal", "items", text="Benchmarks count alike, or by their items.")
@click.option("--simultaneous-ranks", is_flag=True, help="The rank sets of all models hold the true ranks at once.")
@click.option("--pass-at", multiple=True, type=click.IntRange(1), metavar="K",
              help="Also: the chance that one of K trials solves an item; may be repeated.")  # fmt: skip
@click.option("--pass-hat", multiple=True, type=click.IntRange(1), metavar="K",
              help="Also: the chance that K trials all solve an item; may be repeated.")  # fmt: skip
@click.option("--items", "with_items", is_flag=True,
              help="Also: every item, with what it tells; items that all or none solve, and those that look "
              "wrong.")  # fmt: skip
@click.option("--irt", type=click.Choice(["rasch", "2pl"]),
              help="Also: abilities of models on one scale, whichever items each has, by an item response "
              "model.")  # fmt: skip
@click.option("--subset", type=click.IntRange(2), metavar="K",
              help="Also: K items with weights that stand for all, and their error for other models.")  # fmt: skip
@resampling_options(drawn="Of items, clusters or benchmarks.")
@click.option("--top", type=click.IntRange(1), metavar="K",
              help="Print the first K models; by default as many as a screen holds.")  # fmt: skip
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
    subset: int | None,
    missing: Any,
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

    given = _read(files, columns, [] if by is None else [by])
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
    notes = [_what_was_read(given), _how(table.attrs["settings"])]
    if irt:
        from jaxeval.scores.item_response import fit_item_response

        fitted = fit_item_response(given, kind=irt, **drawn)
        tables |= {"abilities": fitted.abilities, "difficulties": fitted.items}
        warnings += [f"{irt}: {text}" for text in fitted.warnings]
    if subset is not None:
        from jaxeval.scores.item_subset import item_subset

        few = item_subset(given, subset, missing=missing, seed=drawn["seed"])
        tables |= {"subset": few.items, "subset_errors": few.errors}
        warnings += few.warnings
        notes.append(_error_of(few.errors))

    def figures() -> dict[str, Figure]:
        from jaxeval.plots.draws import plot_draws

        return {"scores": plot_draws(next(iter(boards.values())).joint)} if len(boards) == 1 else {}

    present(
        Findings(
            screen=lambda: _screen(tables, notes, warnings, top),
            tables=tables,
            warnings=warnings,
            title="Scores",
            notes=notes,
            figures=figures,
            settings=table.attrs["settings"],
        ),
        outputs,
    )


@click.command("compare-scores", cls=CompilingCommand)
@click.argument("a")
@click.argument("b", metavar="B|all")
@click.argument("files", nargs=-1, required=True, type=InputFile(exists=True, path_type=Path))
@score_columns
@click.option("--margin", type=click.FloatRange(0, min_open=True), metavar="POINTS",
              help="A difference that would matter: tests that A is not worse than B by it, and that both are within "
              "it.")  # fmt: skip
@choice_option("--alternative", "two-sided", "greater", "less", text="Of the tests: A differs, is above, is below.")
@click.option("--bounds", type=Scale(), metavar="LOW:HIGH",
              help="The least and the greatest score, for a p-value that holds at every look. [0:1 where all are "
              "within]")  # fmt: skip
@click.option("--level", default=0.95, type=SHARE, metavar="L", help="Level of the intervals.")
@click.option("--seed", default=0, type=click.IntRange(0), metavar="S", help="Of random sign flips.")
@output_options
def compare_scores(
    a: str,
    b: str,
    files: tuple[FileName, ...],
    *,
    margin: float | None,
    alternative: Any,
    bounds: tuple[float, float] | None,
    level: float,
    seed: int,
    missing: str,
    outputs: Outputs,
    **columns: Any,
) -> None:
    """Is model A better than model B? Paired, on the items that both have.

    With "all" in place of B every model is compared with A, the baseline. FILES are read as by `jaxeval scores`.
    """
    from jaxeval.scores.compare_scores import compare_scores as compared
    from jaxeval.scores.compare_scores import compare_with_baseline

    given = _read(files, columns, [])
    options: dict[str, Any] = {"margin": margin, "alternative": alternative, "level": level, "seed": seed}
    if missing == "complete":
        given = _complete(given)
    one = named_model(given.models, a)
    if b == "all" and "all" not in given.models:
        table = compare_with_baseline(given, one, **options)
        answer, warnings = [_of_many(table, one, level)], table.attrs["warnings"]
    else:
        found = compared(given, one, named_model(given.models, b), bounds=bounds, **options)
        table, answer, warnings = _row(found), _sentences(found), list(found.status)
    notes = [_what_was_read(given), f"{100 * level:g}% intervals, tests {alternative}, seed {seed}"]
    present(
        Findings(
            screen=lambda: _comparison_screen(table, answer, notes, warnings),
            tables={"comparison": table},
            warnings=warnings,
            title="Scores compared",
            notes=notes,
            texts={"answer.txt": "".join(f"{sentence}\n" for sentence in answer)},
            settings=options,
        ),
        outputs,
    )


def _read(files: Sequence[FileName], columns: dict[str, Any], keep: Sequence[str]) -> ItemScores:
    from jaxeval.data.score_files import read_scores

    return read_scores(files if len(files) > 1 else files[0], keep=keep, **columns)


def _complete(given: ItemScores) -> ItemScores:
    """The scores of the items that all models have."""
    from jaxeval.scores.estimates import kept_items, of_items

    return of_items(given, kept_items(given, "complete")[0])


def _what_was_read(given: ItemScores) -> str:
    from jaxeval.wording import counted

    parts = [counted(len(given.models), "model"), counted(len(given.items), "item")]
    if given.benchmark is not None:
        parts.append(counted(len(given.benchmark.names), "benchmark"))
    if given.cluster is not None:
        parts.append(counted(len(given.cluster.names), "cluster"))
    if given.trials is not None:
        parts.append(f"{len(given.trials.score):,} trials")
    return ", ".join(parts)


def _error_of(errors: pd.DataFrame) -> str:
    """Of a subset, in words."""
    own, random = errors.to_dict("records")
    return (
        f"scores on the subset, of models that had no part in its choice: off by {own['mean_absolute_error']:.3f} on "
        f"average, tau {own['tau']:.3f}; on random items off by {random['mean_absolute_error']:.3f}, tau "
        f"{random['tau']:.3f}"
    )


def _how(settings: dict[str, Any]) -> str:
    from jaxeval.execution.precision import versions
    from jaxeval.scores.estimates import DrawnAnew

    about = DrawnAnew(settings["population"]).sentence
    return (
        f"{100 * settings['level']:g}% intervals of {about}, {settings['n_resamples']:,} resamples of "
        f"{settings['resampled']}, seed {settings['seed']}; {versions()}"
    )


def _cell(name: Any, value: Any) -> str:
    """A cell of a score with its decimals, of a p-value, or of anything else."""
    import pandas as pd

    from jaxeval.cli.tables import one_line_cell

    if value is pd.NA:
        return one_line_cell(name, float("nan"))
    if not isinstance(value, float) or value != value:
        return one_line_cell(name, value)
    return f"{value:.2g}" if str(name).startswith("p") and not str(name).startswith("pass") else f"{value:.{_POINTS}f}"


def _screen(tables: dict[str, pd.DataFrame], notes: list[str], warnings: list[str], top: int | None) -> Screen:
    from jaxeval.cli.screens import Screen, grid_of
    from jaxeval.tables.boards import rank_spread
    from jaxeval.wording import counted, visible_line

    table = tables["scores"]
    shown = table.assign(spread=[rank_spread(row) for row in table.to_dict("records")]).drop(
        columns=["rank_best", "rank_worst"]
    )
    first = [
        x for x in ("category", "rank", "model_name", "score", "score_lower", "score_upper", "spread") if x in shown
    ]
    empty = [x for x in ("flags",) if not shown[x].any()]
    shown = shown[[*first, *(x for x in shown if x not in (*first, *empty))]]
    main = grid_of(shown, "Scores", _cell, rows="model", kept=("model_name", "score"), least=("n_items",))
    grids = [main._replace(top=top) if top else main]
    others = {name.replace("_at_", "@").replace("_hat_", "^"): own for name, own in tables.items() if name != "scores"}
    more = [
        grid_of(own.drop(columns="fewest_trials", errors="ignore"), name.capitalize(), _cell, rows="row")
        for name, own in others.items()
    ]
    best = table.iloc[0]
    answer = f"{visible_line(str(best['model_name']))} is first with {best['score']:.{_POINTS}f}"
    tied = int((table["tier"] == 1).sum()) - 1 if "category" not in table else 0
    if tied > 0:
        answer += f"; {counted(tied, 'other is', 'others are')} not told apart from it"
    return Screen([answer], [*grids, *more], notes=notes, warnings=warnings)


def _row(found: ScoreComparison) -> pd.DataFrame:
    from dataclasses import fields

    import pandas as pd

    names = [own.name for own in fields(found) if own.name not in ("settings", "status")]
    row = {name: [getattr(found, name)] for name in names}
    return pd.DataFrame({**row, "status": ["; ".join(found.status)]})


def _sentences(found: ScoreComparison) -> list[str]:
    """The answer in words."""
    from jaxeval.wording import visible_line

    a, b = visible_line(str(found.a)), visible_line(str(found.b))
    p, test = (found.p_mcnemar, "McNemar's exact test")
    if p != p:
        p, test = found.p_sign_flip, "sign flips"
    side = "above" if found.difference > 0 else "below" if found.difference < 0 else "equal to"
    ends = "" if found.lower != found.lower else f" [{found.lower:+.{_POINTS}f}, {found.upper:+.{_POINTS}f}]"
    told = [
        f"{a} is {side} {b} by {abs(found.difference):.{_POINTS}f}: difference "
        f"{found.difference:+.{_POINTS}f}{ends}, p {p:.2g} by {test} ({found.only_a:,} items for {a}, "
        f"{found.only_b:,} for {b}, of {found.n_items:,})"
    ]
    margin = found.settings["margin"]
    if margin is not None:
        ps = f"not worse p {found.p_non_inferior:.2g}, equivalent p {found.p_equivalent:.2g}"
        told.append(f"with a margin of {margin:g}: {ps}")
    return told


def _of_many(table: pd.DataFrame, baseline: Any, level: float) -> str:
    from jaxeval.wording import visible_line

    apart = table[table["p_holm"] <= 1 - level]
    above, below = int((apart["difference"] > 0).sum()), int((apart["difference"] < 0).sum())
    told = f"of {len(table):,} models {above:,} are above {visible_line(str(baseline))} and {below:,} below it"
    return f"{told}, by Holm's steps at {level:g}"


def _comparison_screen(table: pd.DataFrame, answer: list[str], notes: list[str], warnings: list[str]) -> Screen:
    from jaxeval.cli.screens import Screen, grid_of

    shown = table.drop(columns=["n_flips", "status"], errors="ignore")
    shown = shown.dropna(axis="columns", how="all")
    if "flags" in shown and not shown["flags"].any():
        shown = shown.drop(columns="flags")
    grid = grid_of(shown, "Scores compared", _cell, rows="comparison", kept=("difference",), least=("n_left_out",))
    return Screen(answer, [grid], notes=notes, warnings=warnings)
