"""What was read of a table, and what was left out, in numbers and in words."""

from __future__ import annotations

import shlex
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from string import Formatter
from typing import Any, ClassVar, Literal, NamedTuple, Self

from jaxeval.options.columns import BothBad
from jaxeval.show.shown import Answer, Shown
from jaxeval.wording import MODEL, Noun, counted

#: What to do about missing judgments.
MissingJudgment = Literal["error", "drop", "complete", "incorrect"]
#: Votes of a person are alike. Where each stands beside four or more others of its voter, on average, intervals that
#: take votes as independent are some 10 % too short at a correlation of .05 (Kish 1965: 1 + .05 (n / n_eff - 1)).
_VOTES_OF_A_VOTER = 5
UNPARSED = "{:reply|replies} that cannot be read left out on request"


class Voters(NamedTuple):
    """A column that says who voted."""

    column: str
    n: int
    n_effective: float  # how many voters of equal numbers of votes hold as much (Kish 1965)
    n_votes: int

    @property
    def advice(self) -> list[str]:
        """A sentence if voters cast so many votes each that intervals should not take votes as independent."""
        if self.n < 2 or self.n_votes < _VOTES_OF_A_VOTER * self.n_effective:
            return []
        worth = max(round(self.n_effective), 1)
        unequal = f", worth {worth:,} of equal numbers of votes" if worth < 0.9 * self.n else ""
        return [
            f"column {self.column!r} says who voted: {self.n_votes:,} votes of {self.n:,} voters{unequal}. Intervals "
            f"take all votes as independent, and are too short where votes of one voter are alike: "
            f"cluster={self.column!r} (on the command line --cluster {shlex.quote(self.column)}) draws whole voters"
        ]


class _Sentence(Formatter):
    """Format reports: {n_rows:row} is a number and its noun, {n:reply|replies} has a plural, {:row} is of the field."""

    def get_field(self, field_name: str, args: Sequence[Any], _: Mapping[str, Any]) -> Any:
        report, value = args
        return value if field_name.isdigit() else attrgetter(field_name)(report), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        noun, _, plural = format_spec.partition("|")
        return counted(value, noun, plural or None) if noun[:1].isalpha() else format(value, format_spec)


_SENTENCE = _Sentence()


def told(text: str, default: Any = 0) -> Any:
    """Give a field with the sentence that a report says of it where it is not 0, in the words of `_Sentence`."""
    return field(default=default, metadata={"text": text})


def told_by(report: Any, first: str) -> list[str]:
    """Return the ``first`` line of a dataclass, a sentence for each of its `told` fields, and how it was read."""
    texts = [(entry.metadata.get("text"), getattr(report, entry.name)) for entry in fields(report)]
    lines = [_SENTENCE.format(text, report, value) for text, value in texts if text and value]
    return [_SENTENCE.format(first, report, 0), *lines, *report.read_as]


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """A first line, and a sentence for each number that is not 0, in the order of the fields; then how it was read."""

    n_rows: int = 0  # of the input; a row may stand for several judgments
    read_as: tuple[str, ...] = ()  # how labels, replies and names of columns were read that are not jaxeval's own
    _first: ClassVar[str]

    def _shown(self) -> Answer:
        return Answer(f"{type(self).__name__}: {self}")

    def _last_lines(self) -> list[str]:
        return []

    def __str__(self) -> str:
        return "\n".join([*told_by(self, self._first), *self._last_lines()])


class Reported(Shown):
    """Judgments with a ``report`` of how they were read: a frozen dataclass."""

    report: Any

    def reporting(self, *sentences: str, first: bool = False, **changes: Any) -> Self:
        """Return the same with further sentences on how it was read, at the end or ``first``, and ``changes``."""
        before, after = (sentences, ()) if first else ((), sentences)
        report = replace(self.report, read_as=(*before, *self.report.read_as, *after), **changes)
        own: Any = self
        return replace(own, report=report)


@dataclass(frozen=True, repr=False, kw_only=True)
class DataReport(Report):
    """What was read, what takes part in fits, and what was left out and why (battles unless said otherwise).

    Examples:
        >>> import jaxeval
        >>> report = jaxeval.simulate_battles(200, n_models=3).report
        >>> report.n_battles, report.n_self_battles
        (200, 0)
        >>> print(report)
        200 rows: 200 battles between 3 models, 41 of them ties
        13 both-bad battles counted as ties
    """

    n_battles: int  # that take part in fits
    n_models: int
    n_ties: int  # targets of exactly 1/2 among n_battles, both-bad ones included
    # 0 after a choice of battles, where it is unknown which ties were both-bad
    n_both_bad: int = told("{:both-bad battle} {_done}")
    both_bad: BothBad = "half"  # what was done with them
    # They say nothing about differences.
    n_self_battles: int = told("{:battle} of {competitor.a_one} against itself left out")
    n_zero_weight: int = told("{:battle} of weight 0 left out")
    models_left_out: tuple[Hashable, ...] = ()  # models that are only in rows that were left out
    n_empty_rows: int = told("{:row that counts|rows that count} no battle left out")
    target: str | None = None  # the column of targets, if it was named and there is a column "winner", not used then
    n_opposed: int = 0  # battles in which those two columns name opposite sides
    n_decided: int = 0  # battles in which both columns name a side
    # Rows of the input.
    n_missing: int = told("{:row} without {competitor.a_one} or a result left out on request")
    # Rows of the input if a condition was given for reading, else battles.
    n_excluded: int = told("{:,} left out by a condition or the choice of {competitor.many}")
    n_repeated: int = told("{:vote} left out whose id was there before")
    # Battles of equal weight that say as much, if battles have propensities.
    n_effective: float | None = told(
        "battles count by their inverse propensities, and say about as much as {:,.0f} of equal weight", default=None
    )
    label_families: tuple[str, ...] = ()  # all families of words that fit the labels
    _said: Noun | None = None  # what competes, as somebody or the names of columns say; None where nobody does
    #: Of the input, where a column says who voted and no row stands for several merged ones.
    _voters: Voters | None = field(default=None, compare=False)
    _first: ClassVar[str] = "{n_rows:row}: {n_battles:battle} between {_models}, {n_ties:of them a tie|of them ties}"

    @property
    def competitor(self) -> Noun:
        """What competes, in a word and its plural; models where nobody says."""
        return self._said or MODEL

    @property
    def _models(self) -> str:
        return self.competitor.counted(self.n_models)

    @property
    def _done(self) -> str:
        return "counted as ties" if self.both_bad == "half" else "left out on request"

    @property
    def warnings(self) -> list[str]:
        """A sentence if targets and winners contradict each other."""
        if self.n_opposed == 0:
            return []
        name = self.target
        return [
            f"column {name!r} is used as the probability that side A wins, and column 'winner' is not used: they name "
            f"opposite sides in {self.n_opposed:,} of {counted(self.n_decided, 'battle')} "
            f"({self.n_opposed / self.n_decided:.0%}). If {name!r} says how sure a judge was of the winner, use it as "
            f"a weight: weight={name!r}, on the command line --weight {name}"
        ]

    def _last_lines(self) -> list[str]:
        lines, names = [], ", ".join(map(str, self.models_left_out))
        if self.target:
            lines.append(f"results are those of column {self.target!r}; column 'winner' is not used")
        if names:
            n = self.competitor.counted(len(self.models_left_out))
            lines.append(f"{n} without a usable battle left out: {names}")
        return lines


@dataclass(frozen=True, repr=False)
class JudgedReport(Report):
    """What was read of a table of judged battles, and what was left out, in numbers of battles."""

    n_battles: int = 0
    n_models: int = 0
    n_human: int = 0  # battles with a human label
    n_human_ties: int = 0
    n_judge_ties: int = 0  # battles with the hard label 1/2, flips included
    n_self_battles: int = told("{:battle} of a model against itself left out")
    n_without_score: int = told("{:battle} without a judge's score left out")  # no score or verdict
    hard_label: str = ""  # what the hard label is made of, in words
    n_verdicts: int = 0  # battles with a verdict beside their scores
    n_verdict_differs: int = 0  # of those, battles whose verdict is not the label that their scores give
    _first: ClassVar[str] = (
        "{n_rows:row}: {n_battles:judged battle} between {n_models:model}, {n_human:,} with a human label "
        "({n_human_ties:tie})"
    )

    def _last_lines(self) -> list[str]:
        lines = [f"hard label: {self.hard_label} ({counted(self.n_judge_ties, 'tie')})"]
        if self.n_verdicts:
            differ = f"{self.n_verdict_differs:,} of {counted(self.n_verdicts, 'battle')}"
            share = self.n_verdict_differs / self.n_verdicts
            lines.append(f"verdict and label of the scores differ in {differ} ({share:.1%})")
        return lines


@dataclass(frozen=True, repr=False)
class OutputsReport(Report):
    """What was read of the raw outputs of judges, and what was left out, in numbers of calls unless said otherwise."""

    n_calls: int = 0  # calls that are read and used
    n_judges: int = 0
    n_models: int = 0
    n_battles: int = 0
    n_both_orders: int = told(
        "{:battle} judged in both orders; their verdicts name different sides in {_contradictions}, which are ties"
    )
    n_contradictions: int = 0  # of those, battles whose orders name different sides
    n_one_order: int = told("{:battle} judged in one order only {_done}")
    n_unparsed: int = told(UNPARSED)
    n_repaired: int = told("{:reply|replies} read after commas or quotes were mended")
    n_reasoned: int = told("{:reply|replies} with reasoning before the answer, which is not read")
    n_strong: int = told("{:strong grade} counted like the others")  # such as A>>B
    n_self_battles: int = told("{:call} of a model against itself left out")
    n_repeated: int = told("{:call} in an order judged before, treated as requested")
    one_order: str = "keep"  # what was done with battles judged in one order only
    n_against_scores: int = told("{:call} with a verdict for the side with the lower score")
    n_human: int = told("{:human label}; {n_battles_with_human:battle has|battles have} one")
    n_battles_with_human: int = 0
    n_human_unused: int = told("{:human label} on items and pairs without a battle not used")
    n_disputed: int = told("people contradict each other on {:item}")
    _first: ClassVar[str] = (
        "{n_rows:row}: {n_calls:call} of {n_judges:judge}, {n_battles:battle} between {n_models:model}"
    )

    @property
    def _done(self) -> str:
        kept = "kept: a preference for a position does not cancel out in them"
        return kept if self.one_order == "keep" else "left out on request"

    @property
    def _contradictions(self) -> str:
        return f"{self.n_contradictions:,} ({self.n_contradictions / self.n_both_orders:.1%})"


@dataclass(frozen=True, repr=False)
class AnswersReport(Report):
    """What was read of a table of judged answers, and what was left out."""

    n_items: int = 0
    n_models: int = 0
    n_judges: int = 0
    n_judgments: int = 0  # judged answers, each counted once per judge
    n_labels: int = 0  # answers with a human label
    n_runs: int = 1  # the largest number of runs of a judge on one answer
    n_unparsed: int = told(UNPARSED)
    n_missing: int = told("{:judgment is|judgments are} missing: {_done}")  # in the rows read
    missing: MissingJudgment = "error"  # what was done about missing judgments
    n_dropped_items: int = told("{:item} left out, because a model or a judge lacks it")
    n_absent: int = told("{:time} a model has no answer to an item")
    n_repeated: int = told("{:answer shares|answers share} the judgment of another model's same answer")
    _first: ClassVar[str] = (
        "{n_rows:row}: {n_items:item}, {n_models:model}, {n_judges:judge}; {n_judgments:judgment}, "
        "{n_labels:human label}{_runs}"
    )

    @property
    def _done(self) -> str:
        done = {"drop": "left out, and human labels stay", "incorrect": "counted as incorrect"}
        return done.get(self.missing, "items left out")

    @property
    def _runs(self) -> str:
        return f"\nup to {self.n_runs:,} runs of a judge on one answer, averaged" if self.n_runs > 1 else ""
