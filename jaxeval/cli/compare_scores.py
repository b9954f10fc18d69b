"""``jaxeval compare-scores`` and ``jaxeval plan-scores``: differences of benchmark scores, and what they need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.compiling import CompilingCommand
from jaxeval.cli.declared import options_as
from jaxeval.cli.judged_scores import Labels, warnings_of
from jaxeval.cli.outputs import Outputs, output_options, present
from jaxeval.cli.reading import Scale
from jaxeval.cli.run_options import SHARE, InputFile, choice_option, level_option, seed_option
from jaxeval.cli.scores import POINTS, read_given, score_columns, what_was_read
from jaxeval.cli.terminal import named_model
from jaxeval.data.remote_names import FileName

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.data.item_scores import ItemScores
    from jaxeval.scores.compare_scores import ScoreComparison
    from jaxeval.show.shown import Answer


@click.command("compare-scores", cls=CompilingCommand)
@click.argument("a")
@click.argument("b", metavar="B|all")
@click.argument("files", nargs=-1, required=True, type=InputFile(exists=True, path_type=Path))
@score_columns
@options_as("labels", Labels)
@click.option("--margin", type=click.FloatRange(0, min_open=True), metavar="POINTS",
              help="The smallest difference that matters. Adds tests that A is not worse than B by it, and that A and "
              "B are equivalent within it.")  # fmt: skip
@choice_option(
    "--alternative",
    "two-sided",
    "greater",
    "less",
    text="What the tests look for: A differs from B, is above B, or is below B.",
)
@click.option("--bounds", type=Scale(), metavar="LOW:HIGH",
              help="The least and the greatest possible score; the p-value that holds at every look needs them. [0:1 "
              "if all scores are within]")  # fmt: skip
@click.option("--gate", is_flag=True, help="End with status 1 unless A is shown not to be worse than B by the margin.")
@click.option("--peek", is_flag=True,
              help="With --gate: decide by the p-value that holds at every look, if you look again as items come "
              "in.")  # fmt: skip
@level_option()
@seed_option()
@output_options
def compare_scores(
    a: str,
    b: str,
    files: tuple[FileName, ...],
    *,
    margin: float | None,
    alternative: Any,
    bounds: tuple[float, float] | None,
    gate: bool,
    peek: bool,
    level: float,
    seed: int,
    missing: str,
    labels: Labels,
    outputs: Outputs,
    **columns: Any,
) -> None:
    """Is model A better than model B? Paired, on the items that both have.

    With "all" in place of B every model is compared with A, the baseline. FILES are read as by `jaxeval scores`.
    """
    from jaxeval.scores.compare_scores import compare_scores as compared
    from jaxeval.scores.compare_scores import compare_with_baseline

    if (gate and margin is None) or (peek and not gate):
        raise click.UsageError("--gate needs a --margin, and --peek a --gate")
    if peek and labels.human is not None:
        raise click.UsageError("--peek and --human do not go together: corrected scores have no p-value for all looks")
    if gate and b == "all":
        raise click.UsageError("--gate is about two models: name the one that A must not be worse than")
    options: dict[str, Any] = {"margin": margin, "alternative": alternative, "level": level, "seed": seed}
    given: Any
    passed, notes = True, [f"{100 * level:g}% intervals, tests {alternative}, seed {seed}"]
    warnings: list[str] = []
    if labels.there:
        if bounds is not None:
            raise click.UsageError("--bounds and --human do not go together: leave one out")
        drawn = {"level": level, "seed": seed, "n_resamples": 1000, "progress": outputs.progress}
        given, read = labels.accuracy(files, columns, missing, None, drawn)
        options["estimator"] = by = labels.corrected_by(given)
        if len(given.judges) > 1:
            raise click.UsageError("several judges gave scores, and one is needed: name it with --only-judge")
        warnings += warnings_of(given, by)
    else:
        given = read_given(files, columns, [])
        read = what_was_read(given)
        if missing == "complete":
            given = _complete(given)
    one = named_model(given.models, a)
    if b == "all" and "all" not in given.models:
        table = compare_with_baseline(given, one, **options)
        answer, told = [_of_many(table, one, level)], table.attrs["warnings"]
    else:
        found = compared(given, one, named_model(given.models, b), bounds=bounds, **options)
        table, answer, told = _row(found), list(found.answer.sentences), found.status
        if gate:
            passed, sentence = _gate(found, 1 - level, peek)
            answer = [sentence, *answer]
    notes, warnings = [read, *notes], [*told, *warnings]
    present(_answer("Scores compared", "comparison", table, answer, notes, warnings, options), outputs)
    if not passed:
        click.get_current_context().exit(1)


def _complete(given: ItemScores) -> ItemScores:
    """The scores of the items that all models have."""
    from jaxeval.scores.estimates import kept_items, of_items

    return of_items(given, kept_items(given, "complete")[0])


def _row(found: ScoreComparison) -> pd.DataFrame:
    from dataclasses import fields

    import pandas as pd

    names = [own.name for own in fields(found) if own.name not in ("settings", "status")]
    row = {name: [getattr(found, name)] for name in names}
    return pd.DataFrame({**row, "status": ["; ".join(found.status)]})


def _gate(found: ScoreComparison, most: float, peek: bool) -> tuple[bool, str]:
    """Whether the gate passes, and that in words."""
    from jaxeval.wording import visible_line

    a, b = visible_line(str(found.a)), visible_line(str(found.b))
    p = found.p_anytime_non_inferior if peek else found.p_non_inferior
    if p != p:
        why = "there are clusters, weights or benchmarks, or --bounds are needed" if peek else "see the warnings"
        return False, f"gate failed: there is no p-value{' that holds at every look' if peek else ''} ({why})"
    claim = f"{a} is not worse than {b} by {found.settings['margin']:g} or more"
    look = " at every look" if peek else ""
    if p <= most:
        return True, f"gate passed: {claim} (p {p:.2g}{look})"
    return False, f"gate failed: it is not shown that {claim} (p {p:.2g}{look})"


def _of_many(table: pd.DataFrame, baseline: Any, level: float) -> str:
    from jaxeval.wording import visible_line

    apart = table[table["p_holm"] <= 1 - level]
    above, below = int((apart["difference"] > 0).sum()), int((apart["difference"] < 0).sum())
    told = f"of {len(table):,} models {above:,} are above {visible_line(str(baseline))} and {below:,} below it"
    return f"{told}, by Holm's steps at {level:g}"


def _answer(
    title: str, name: str, table: pd.DataFrame, said: list[str], notes: list[str], warnings: list[str], settings: Any
) -> Answer:
    from jaxeval.show.shown import Answer, Part

    shown = table.drop(columns=["n_flips", "status"], errors="ignore")
    kept, least = ("difference", "smallest_difference", "items_needed"), ("n_left_out", "sd_between")
    part = Part(title, shown, rows="comparison" if name == "comparison" else "pair", kept=kept, least=least)
    return Answer(title, table, settings, warnings, sentences=said, notes=notes, parts=[part], tables={name: table})


@click.command("plan-scores", cls=CompilingCommand)
@click.argument("files", nargs=-1, required=True, type=InputFile(exists=True, path_type=Path))
@score_columns
@click.option("--pair", "pairs", nargs=2, multiple=True, metavar="A B",
              help="The difference of two models. May be repeated. [neighbours on the board]")  # fmt: skip
@click.option("--difference", type=click.FloatRange(0, min_open=True), metavar="POINTS",
              help="The smallest difference that matters: report the chance to find it, and how many items "
              "that takes.")  # fmt: skip
@click.option("--n-items", type=click.IntRange(2), metavar="N", help="Plan for a benchmark like this one with N items.")
@click.option("--n-trials", multiple=True, type=click.IntRange(1), metavar="K",
              help="Plan for K trials of each item; may be repeated.")  # fmt: skip
@click.option("--gate", is_flag=True,
              help="Plan for `compare-scores --gate`: POINTS are its margin, and the chance is that a model as good as "
              "the old one passes.")  # fmt: skip
@click.option("--power", default=0.8, type=SHARE, metavar="P", help="Chance to tell them apart.")
@level_option("Of the test.")
@output_options
def plan_scores(
    files: tuple[FileName, ...],
    *,
    pairs: tuple[tuple[str, str], ...],
    difference: float | None,
    n_items: int | None,
    n_trials: tuple[int, ...],
    gate: bool,
    power: float,
    level: float,
    missing: str,
    outputs: Outputs,
    **columns: Any,
) -> None:
    """What a benchmark can tell: the smallest difference it finds, and the items and trials needed.

    FILES are the benchmark or a pilot of it, read as by `jaxeval scores`.
    """
    from jaxeval.scores.plan_scores import plan_scores as planned

    given = read_given(files, columns, [])
    if missing == "complete":
        given = _complete(given)
    chosen = [(named_model(given.models, a), named_model(given.models, b)) for a, b in pairs] or None
    table = planned(
        given, chosen, difference=difference, n_items=n_items, n_trials=n_trials or None, one_sided=gate, power=power,
        level=level,
    )  # fmt: skip
    answer = [_plan_in_words(table, difference, gate, power)]
    sides = "one-sided test" if gate else "two-sided test"
    notes = [what_was_read(given), f"{100 * level:g}% {sides}, power {power:g}; one comparison by itself"]
    attrs = table.attrs
    title = "What these scores can tell"
    present(_answer(title, "plan", table, answer, notes, attrs["warnings"], attrs["settings"]), outputs)


def _plan_in_words(table: pd.DataFrame, difference: float | None, gate: bool, power: float) -> str:
    least, most = table["smallest_difference"].min(), table["smallest_difference"].max()
    between = f"{least:.{POINTS}f}" if least == most else f"{least:.{POINTS}f} to {most:.{POINTS}f}"
    what = "a margin of" if gate else "a difference of"
    told = f"found with power {power:g}: {what} {between}"
    if difference is not None:
        told += f"; {difference:g} is found with power {table['power'].min():.2f} to {table['power'].max():.2f}, and "
        told += f"takes {table['items_needed'].min():,} to {table['items_needed'].max():,} items"
    return told
