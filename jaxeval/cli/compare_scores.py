"""``jaxeval compare-scores``, its gate, ``plan-scores``, ``error-budget``: differences of scores and their errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast
from xml.etree import ElementTree

import click

from jaxeval.cli.commands import ERROR_STATUS
from jaxeval.cli.compiling import CompilingCommand
from jaxeval.cli.declared import Answer, Files, FilesIfAny, Plot, command
from jaxeval.cli.judged_scores import Labels, warnings_of
from jaxeval.cli.next_battles import GoalOptions, VotePlan
from jaxeval.cli.outputs import Outputs, present
from jaxeval.cli.scores import ScoreReading, what_was_read
from jaxeval.cli.terminal import named_model, numbers_by_name, tell
from jaxeval.data.remote_names import is_remote
from jaxeval.execution.atomic_write import whole_file
from jaxeval.options.columns import Bounds, FacetOptions, ItemScoreColumns, Names, Pair, VoteReading
from jaxeval.options.field import SHOWN, Options, again, option
from jaxeval.options.resampling import ResamplingOptions, Share
from jaxeval.wording import visible

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.data.item_scores import ItemScores
    from jaxeval.plain_tables import PlainTable
    from jaxeval.scores.compare_scores import ScoreComparison
    from jaxeval.scores.gate import ScoreGate


Json: TypeAlias = Path
TextOutput: TypeAlias = Path
Alternative = Literal["two-sided", "greater", "less"]
#: What a gate ends with where it could not be asked: 0, 1 and 2 are its verdicts.
COULD_NOT_RUN = 3


class GateCommand(CompilingCommand):
    """A command that ends with `COULD_NOT_RUN` after bad input, if it was asked for a gate."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return what was typed."""
        if "--gate" in args:
            ctx.meta[ERROR_STATUS] = COULD_NOT_RUN
        return super().parse_args(ctx, args)


class Comparing(FacetOptions):
    """What is asked of two models, and a decision for a CI job."""

    gate: bool = option(
        False, "Decide whether A may replace B, by task. Ends with 0: PASS, A is not worse by the margin; 1: FAIL, it "
        "is worse by more; 2: INCONCLUSIVE, the data show neither; 3: there was an error.",
        needs="margin: the smallest loss that matters",
    )  # fmt: skip
    peek: bool = option(
        False, "With --gate: decide by p-values that hold at every look, if you look again as items come in.",
        needs="gate",
    )  # fmt: skip
    summary: TextOutput | None = option(
        None, "With --gate: write the verdict and its table as Markdown, as for $GITHUB_STEP_SUMMARY.", "FILE",
        section=SHOWN, needs="gate",
    )  # fmt: skip
    junit: TextOutput | None = option(
        None, "With --gate: write a JUnit report, with a test case for each task.", "FILE", section=SHOWN, needs="gate"
    )
    json: Json | None = option(
        None, "With --gate: write the verdict, the tasks and the settings as JSON.", "FILE", section=SHOWN, needs="gate"
    )
    margin: float | None = option(
        None, "The smallest difference that matters. Adds tests that A is not worse than B by it, and that A and B are "
        "equivalent within it.", "POINTS", least=0, open=True,
    )  # fmt: skip
    alternative: Alternative = option(
        "two-sided", "What the tests look for: A differs from B, is above B, or is below B."
    )
    bounds: Bounds | None = option(
        None, "The least and the greatest possible score; the p-value that holds at every look needs them. [0:1 if all "
        "scores are within]", "LOW:HIGH",
    )  # fmt: skip
    level: Share = again(ResamplingOptions, "level")
    seed: int = again(ResamplingOptions, "seed")

    def write(self, gate: ScoreGate) -> None:
        """Write the reports."""
        for path, text in ((self.summary, _summary), (self.junit, _junit), (self.json, _json)):
            if path is not None:
                with whole_file(path) as file:
                    file.write(text(gate).encode())
                tell(f"wrote {path}")


def _summary(gate: ScoreGate) -> str:
    from jaxeval.show.documents import markdown_table, markdown_text

    answer = gate._plain_answer()
    first, *further = map(markdown_text, answer.sentences)
    notes = [*further, *(markdown_text(f"warning: {text}") for text in gate.warnings)]
    (part,) = answer.parts
    table = markdown_table(cast("PlainTable", part.table))
    return "\n\n".join([f"**{first}**", table.rstrip(), *notes]) + "\n"


def _junit(gate: ScoreGate) -> str:
    """Write tests that fail, and those that are open, which JUnit knows as errors."""
    rows = gate.rows.records()
    totals = {name: str(sum(row["verdict"] == verdict for row in rows)) for name, verdict in _OF_JUNIT.items()}
    suite = ElementTree.Element("testsuite", {"name": "jaxeval gate", "tests": str(len(rows)), **totals})
    for row in rows:
        name = f"{gate.a} beside {gate.b}" if row["task"] is None else str(row["task"])
        case = ElementTree.SubElement(suite, "testcase", classname="jaxeval.gate", name=visible(name))
        for kind, verdict in _OF_JUNIT.items():
            if row["verdict"] == verdict:
                known = [key for key in ("difference", "p_pass", "p_fail") if row[key] == row[key]]
                numbers = [f"{key} {row[key]:.3g}" for key in known]
                text = ", ".join([*numbers, *filter(None, [row["flags"]])])
                ElementTree.SubElement(case, kind.removesuffix("s"), message=visible(f"{verdict}: {text}"))
    output = ElementTree.SubElement(suite, "system-out")
    output.text = visible("\n".join(gate._plain_answer().sentences))
    return ElementTree.tostring(suite, "unicode", xml_declaration=True) + "\n"


_OF_JUNIT = {"failures": "FAIL", "errors": "INCONCLUSIVE"}


def _json(gate: ScoreGate) -> str:
    return json.dumps(gate.to_dict(), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


_APART = {"peek": "human", "bounds": "human", "random": "human peek bounds"}


@command("compare-scores", GateCommand, metavars={"b": "B|all"}, apart=_APART)
def compare_scores(
    a: str, b: str, files: FilesIfAny, columns: ScoreReading, labels: Labels, comparing: Comparing, outputs: Outputs
) -> Answer:
    """Is model A better than model B? Paired, on the items that both have.

    With "all" in place of B every model is compared with A, the baseline. FILES are read as by `jaxeval scores`.
    Without FILES, A and B are files or folders of one model each.
    """
    from jaxeval.data.score_files import read_two_models
    from jaxeval.scores.compare_scores import compare_scores as compared
    from jaxeval.scores.compare_scores import compare_with_baseline

    level, seed, bounds = comparing.level, comparing.seed, comparing.bounds
    if comparing.random and not files:
        raise click.UsageError("--random and two files do not go together: leave one out")
    if comparing.gate and b == "all":
        raise click.UsageError("--gate is about two models: name the one that A must not be worse than")
    if not files and (labels.human or not (_is_path(a) and _is_path(b))):
        raise click.UsageError("name two models and the FILES that hold their scores, or two files of one model each")
    options: dict[str, Any] = comparing.arguments("margin", "alternative", "level", "seed")
    if comparing.random:
        options["random"] = comparing.facets
    scores: Any
    notes = [f"{100 * level:g}% intervals, tests {comparing.alternative}, seed {seed}"]
    warnings: list[str] = []
    if labels.human:
        drawn = {"level": level, "seed": seed, "n_resamples": 1000, "progress": False if outputs.quiet else None}
        scores, read = labels.accuracy(files, columns.columns, columns.missing, None, drawn)
        options["estimator"] = by = labels.corrected_by(scores)
        if len(scores.judges) > 1:
            raise click.UsageError("several judges gave scores, and one is needed: name it with --only-judge")
        warnings += warnings_of(scores, by)
    else:
        if files:
            scores = columns.read(files, random=comparing.facets)
        else:
            scores, a, b = read_two_models(a, b, **columns.columns)
        read = what_was_read(scores)
        warnings += () if comparing.gate else scores.notes  # a gate has them
        if columns.missing == "complete" and not comparing.random:
            scores = _complete(scores)
    one = named_model(scores.models, a)
    if comparing.gate:
        from jaxeval.scores.gate import score_gate

        arguments = {name: value for name, value in options.items() if name != "alternative"}
        decided = score_gate(
            scores, one, named_model(scores.models, b), bounds=bounds, peek=comparing.peek, **arguments
        )
        _decide(decided, comparing, read, warnings, outputs)
    if b == "all" and "all" not in scores.models:
        table = compare_with_baseline(scores, one, **options)
        answer, cautions = list(table.answer.sentences), table.attrs["warnings"]
    else:
        comparison = compared(scores, one, named_model(scores.models, b), bounds=bounds, **options)
        table, answer, cautions = _row(comparison), list(comparison._plain_answer().sentences), comparison.status
    notes, warnings = [read, *notes], [*warnings, *cautions]
    shown = _answer("Scores compared", "comparison", table, answer, notes, warnings, options)
    return shown._replace(advice=columns.undeclared(files, comparing.facets) if files else [])


def _complete(scores: ItemScores) -> ItemScores:
    """Return the scores of the items that all models have."""
    from jaxeval.scores.estimates import kept_items, of_items

    return of_items(scores, kept_items(scores, "complete")[0])


def _row(comparison: ScoreComparison) -> PlainTable:
    from dataclasses import fields

    from jaxeval.plain_tables import PlainTable
    from jaxeval.show.cells import with_kinds

    names = [field.name for field in fields(comparison) if field.name not in ("settings", "status")]
    row = {name: [getattr(comparison, name)] for name in names}
    return with_kinds(PlainTable({**row, "status": ["; ".join(comparison.status)]}), ends_of="difference", name="a b")


def _is_path(name: str) -> bool:
    return is_remote(name) or Path(name).exists()


def _decide(verdict: ScoreGate, options: Comparing, read: str, warnings: list[str], outputs: Outputs) -> None:
    """Print and write the verdict, and end with its code."""
    options.write(verdict)
    notes = [read, f"PASS and FAIL are one-sided tests at {1 - verdict.settings['level']:.2g}"]
    answer = verdict._plain_answer()._replace(title="Gate", notes=notes)
    present(answer._replace(warnings=[*answer.warnings, *warnings]), outputs)
    click.get_current_context().exit(verdict.exit_code)


def _answer(
    title: str, name: str, table: pd.DataFrame | PlainTable, sentences: list[str], notes: list[str],
    warnings: list[str], settings: Any,
) -> Answer:  # fmt: skip
    from jaxeval.show.shown import Answer, Part

    shown = table.drop(columns=[name for name in ("n_flips", "status") if name in table])
    kept, least = ("difference", "smallest_difference", "items_needed"), ("n_left_out", "sd_between")
    part = Part(title, shown, rows="comparison" if name == "comparison" else "pair", kept=kept, least=least)
    return Answer(
        title, table, settings, warnings, sentences=sentences, notes=notes, parts=[part], tables={name: table}
    )


class ScorePlan(FacetOptions):
    """What a benchmark is to tell."""

    pairs: tuple[Pair, ...] = again(
        GoalOptions, "pair", (), more="May be repeated. [neighbours on the board]", flag="--pair"
    )
    difference: float | None = again(
        VotePlan, "difference", None, metavar="POINTS", text="The smallest difference that matters: report the chance "
        "to find it, and how many items that takes.",
    )  # fmt: skip
    n_items: int | None = option(None, "Plan for a benchmark like this one with N items.", "N", least=2)
    n_trials: tuple[int, ...] = option((), "Plan for K trials of each item; may be repeated.", "K", least=1)
    n_levels: Names | None = option(
        None, "With --random: plan for so many judges, prompts or seeds, such as judge=5. [as many as there are]",
        "NAME=N,...",
    )  # fmt: skip
    gate: bool = option(
        False, "Plan for `compare-scores --gate`: POINTS are its margin, and the chance is that a model as good as the "
        "old one passes.",
    )  # fmt: skip
    power: Share = again(VotePlan, "power", 0.8)
    level: Share = again(ResamplingOptions, "level")


@command("plan-scores")
def plan_scores(files: Files, columns: ScoreReading, options: ScorePlan) -> Answer:
    """Say what a benchmark can tell: the smallest difference it finds, and the items and trials needed.

    FILES are the benchmark or a pilot of it, read as by `jaxeval scores`.
    """
    from jaxeval.scores.plan_scores import planned

    scores = columns.read(files, random=options.facets)
    if columns.missing == "complete" and not options.random:
        scores = _complete(scores)
    chosen = [(named_model(scores.models, a), named_model(scores.models, b)) for a, b in options.pairs] or None
    levels = numbers_by_name(options.n_levels, "--n-levels takes NAME=N, such as judge=5", int)
    arguments: dict[str, Any] = options.arguments("difference", "n_items", "power", "level")
    arguments |= {"random": options.facets, "n_levels": levels}
    table = planned(scores, chosen, n_trials=options.n_trials or None, one_sided=options.gate, **arguments)
    answer = table.attrs["answer"].splitlines()
    sides = "one-sided test" if options.gate else "two-sided test"
    notes = [
        what_was_read(scores),
        f"{100 * options.level:g}% {sides}, power {options.power:g}; one comparison by itself",
    ]
    attrs = table.attrs
    title = "What these scores can tell"
    return _answer(title, "plan", table, answer, notes, attrs["warnings"], attrs["settings"])


class Budgeting(Options):
    """What the decision study is about."""

    pair: Pair | None = again(GoalOptions, "pair", more="[the two best models]")
    target: float = option(
        0.5, "Plan for so much of the present error of the difference.", "SHARE", flag="--shrink-to", least=0, most=1,
        open=True,
    )  # fmt: skip
    price: Names | None = option(
        None, "What a level of a facet, an item or a single score costs, such as judge=20,item=0.5,score=0.01. "
        "[score=1]", "NAME=COST,...",
    )  # fmt: skip
    level: Share = again(ResamplingOptions, "level")
    where: str | None = again(VoteReading, "where")


@command("error-budget")
def error_budget(
    files: Files, columns: ItemScoreColumns, facets: FacetOptions, options: Budgeting, plot: Plot
) -> Answer:
    """Say which error it is: of items, judges, prompts or seeds.

    FILES are read as by `jaxeval scores`, with a column for each facet that --random names. Also: what would make the
    error smaller, and the cheapest way to it.
    """
    from jaxeval.data.score_files import item_scores
    from jaxeval.scores.error_budget import error_budget as budgeted

    read = {"random": facets.facets, "where": options.where, **columns.arguments()}
    scores = item_scores(files, **read)
    pair: Any = None if options.pair is None else tuple(named_model(scores.models, name) for name in options.pair)
    prices = numbers_by_name(options.price, "--price takes NAME=COST, such as judge=20")
    budget = budgeted(scores, facets.facets, pair=pair, target=options.target, prices=prices, level=options.level)
    notes = [what_was_read(scores), f"{100 * options.level:g}% intervals; components by Henderson's first method"]
    return budget.answer._replace(notes=notes)
