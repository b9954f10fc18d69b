"""Options of files: which column holds what, and how it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from jaxeval.options.field import COLUMNS, ROWS, Options, again, option
from jaxeval.options.resampling import DrawnTogether

#: Names of types on the command line.
File: TypeAlias = str | Path
Labels: TypeAlias = str | Mapping[Any, str]
ColumnPair: TypeAlias = tuple[str, str]
ColumnTriple: TypeAlias = tuple[str, str, str]
Names: TypeAlias = Sequence[str]
Bounds: TypeAlias = tuple[float, float]
Pair: TypeAlias = tuple[str, str]  # two names, one after the other

BothBad = Literal["half", "drop"]
MissingResult = Literal["error", "drop"]
Stated = Literal["share", "percent"]
Unparsed = Literal["error", "drop"]
OneOrder = Literal["error", "keep", "drop", "separate"]


class SideColumns(Options, section=COLUMNS):
    """The models of a battle."""

    model_a: str = option("model_a", "Column of the models of side A.", "COL")
    model_b: str = option("model_b", "Column of the models of side B.", "COL")


class VoteReading(SideColumns):
    """How files of battles are read: arguments of `read_battles`."""

    winner: str | None = option(None, "Column of labels. [winner, or one-hot columns]", "COL")
    target: str | None = option(None, "Column of soft targets in [0, 1] instead of labels.", "COL")
    weight: str | None = option(None, "Column of weights. [of scores: weight, if there]", "COL")
    propensity: str | None = option(
        None, "Column of propensities: the chance that a battle was of its pair, as the command next writes it. Its "
        "inverse is a weight.", "COL",
    )  # fmt: skip
    count: str | None = option(None, "Column of counts: how many equal rows a row stands for.", "COL")
    labels: Labels | None = option(
        None, "What labels mean, where they are not words that are known. For numbers: a_wins_1 or a_wins_0, which is "
        "never guessed. For words: a list such as A=model_a,B=model_b,C=tie; or names, of models that won.",
        "CODING|L=MEANING,...",
    )  # fmt: skip
    winner_model: str | None = option(None, "Column of the model that won. Such files have no ties.", "COL")
    loser_model: str | None = option(None, "Column of the model that lost.", "COL")
    scores: ColumnPair | None = option(None, "Columns of the scores of both sides: the larger wins.", "A:B")
    counts: ColumnTriple | None = option(
        None, "Columns of the numbers of battles that side A won, of ties, and of battles that side B won. [wins_a, "
        "ties, wins_b, if there]", "A:TIES:B",
    )  # fmt: skip
    tie_within: float = option(0.0, "With --scores: the largest difference that counts as a tie.", "D", least=0)
    both_bad: BothBad = option("half", "Votes that both sides are bad: half a win each, or left out.")
    baseline: str | None = option(
        None, "The model that all others met, for files of Arena-Hard that do not name it.", "NAME"
    )
    missing: MissingResult = option(
        "error", "What to do about gaps. error: refuse rows without a value that is needed. drop: leave them out.",
        section=ROWS,
    )  # fmt: skip
    where: str | None = option(
        None, "Read only rows that meet a condition, such as \"language = 'en' AND turn = 1\". This needs the extra "
        "jaxeval[sql].", "SQL", section=ROWS,
    )  # fmt: skip


class VoteColumns(Options, section=COLUMNS):
    """Who voted, and when."""

    voter: str | None = option(None, "Column that names who voted.", "COL")
    time: str | None = option(None, "Column of the time of each vote: dates, or numbers.", "COL")


class CallReading(Options, section=COLUMNS):
    """How what judges printed is read, in the words of `JudgeOutputs.from_pandas`; nothing is given by default."""

    item: str | None = option(
        None, "Column of items: prompts, questions, tasks. Judgments of one item belong together. [item, if there; of "
        "replies also question_id]", "COL",
    )  # fmt: skip
    judge: str | None = option(None, "Column of judges. Each is read by itself. [judge, if there]", "COL")
    run: str | None = option(None, "Column of repeated runs. [run, if there]", "COL")
    output: str | None = option(
        None, "Column of what the judge printed: JSON, fenced or not, or text. [output or reply, if there are no "
        "scores]", "COL",
    )  # fmt: skip
    shown_first: str | None = option(
        None, "Column of the side that was shown first. [of replies: shown_first, order or swapped, else model_a; of "
        "tables: none]", "COL",
    )  # fmt: skip
    criteria: Names | None = option(None, "Criteria that count. [those that most replies have]", "NAME,...")
    scale: Bounds | None = option(None, "Least and greatest score of a criterion. [1:10]", "LOW:HIGH")
    confidence: Stated | None = option(None, "How judges state their confidence. [share]")
    unparsed: Unparsed | None = option(None, "Replies that cannot be read: an error, or left out. [error]")
    one_order: OneOrder | None = option(
        None, "Battles that were judged in one order only: refused, kept, left out; or (separate) each row of a table "
        "is a battle. [error]",
    )  # fmt: skip
    repeats: str | None = option(
        None, "Orders that were judged twice: refused; the first call counts; or each call is a run. [error]",
        choices=("error", "first", "runs"),
    )  # fmt: skip


class ReplyReading(CallReading):
    """The same, with words of verdicts and labels of people beside them."""

    labels: Labels | None = option(
        None, "What other verdicts mean, such as 1=model_a,2=model_b; model_a is the side that was shown first.",
        "L=MEANING,...", flag="--words",
    )  # fmt: skip
    human_labels: File | None = option(
        None, "A table of human labels, joined by item and pair: item, model_a, model_b, winner, and rater.", "FILE"
    )
    people: str | None = option(
        None, "What to do where people contradict each other on an item. [error]",
        choices=("error", "majority", "drop"),
    )  # fmt: skip


class FacetOptions(Options):
    """What was sampled besides items."""

    random: Names | None = option(
        None, "Columns of what another evaluation would draw anew besides items: judges, prompts, seeds. Errors then "
        "count them.", "COL,...", section=COLUMNS,
    )  # fmt: skip

    @property
    def facets(self) -> list[str]:
        """Names of columns."""
        return list(self.random or ())


class ItemScoreColumns(Options, section=COLUMNS):
    """How files of scores are read: arguments of `read_scores`."""

    model: str | None = option(None, "Column of models. [model, if there; of scores each file is else one]", "COL")
    item: str | None = again(CallReading, "item")
    score: str | None = option(None, "Column of scores; of a harness the metric, or several: a,b. [score]", "COL")
    trial: str | None = option(None, "Column of trials: runs of a model on an item. [trial]", "COL")
    benchmark: str | None = option(None, "Column of benchmarks. Scores are means over them. [benchmark]", "COL")
    weight: str | None = again(VoteReading, "weight")
    cluster: str | None = again(DrawnTogether, "cluster")
    wide: bool = option(
        False,
        "A row is an item, and each column of numbers a model. Or a row is a model, that of --model, or of a "
        "column of text called model, and each column of numbers an item.",
    )
    output_filter: str | None = option(
        None, "Filter of lm-evaluation-harness; of several, a,b, the first that a task has.", "NAME", flag="--filter"
    )


class AnchoredReading(Options, section=COLUMNS):
    """How files of verdicts against a reference are read: arguments of `AnchoredVerdicts.from_pandas`."""

    verdict: str | None = option(
        None, "Column of a judge's verdicts. They are win, tie and loss of the model, or outcomes in [0, 1]; of "
        "battles the better side. [verdict; of battles also judge_pref]", "COL",
    )  # fmt: skip
    model: str | None = again(ItemScoreColumns, "model")
    judge: str | None = again(CallReading, "judge")
    anchor: str | None = option(None, "Column of references. [anchor, if there]", "COL")
    task: str | None = option(None, "Column of tasks. [task, if there; of runs also task_id]", "COL")
    item: str | None = again(CallReading, "item")
    run: str | None = again(CallReading, "run")
    labels: Labels | None = again(VoteReading, "labels", more="Here: good=win,bad=loss,same=tie.")
    missing: MissingResult = option(
        "error", "What to do about gaps. error: refuse rows without a verdict. drop: leave them out.", section=ROWS,
    )  # fmt: skip
    reference: str | None = option(
        None, "The side of the reference, where a column holds what judges printed. A: they saw it first, as in the "
        "paper. Or a column of sides.", "A|B|COL",
    )  # fmt: skip
    confidence: Stated | None = again(CallReading, "confidence")
    unparsed: Unparsed | None = again(CallReading, "unparsed")
