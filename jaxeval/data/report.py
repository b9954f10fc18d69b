"""What was read of a table, and what was left out, in numbers and in words."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from jaxeval.show.shown import Answer, Shown
from jaxeval.wording import MODEL, Noun, counted

BothBad = Literal["half", "drop"]
#: What to do about rows without a model or a result.
MissingResult = Literal["error", "drop"]
#: What to do about missing judgments.
MissingJudgment = Literal["error", "drop", "complete", "incorrect"]
_SELF = "of a model against itself left out"


@dataclass(frozen=True, repr=False)
class DataReport(Shown):
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

    n_rows: int  # rows of the input; a row may stand for several battles
    n_battles: int  # that take part in fits
    n_models: int
    n_ties: int  # targets of exactly 1/2 among n_battles, both-bad ones included
    n_both_bad: int  # both-bad battles found; 0 after a choice of battles, where it is unknown which ties were both-bad
    both_bad: BothBad  # what was done with them
    n_self_battles: int  # battles of a model against itself: they say nothing about differences
    n_zero_weight: int  # battles of weight 0: they say nothing
    models_left_out: tuple[Hashable, ...] = ()  # models that are only in rows that were left out
    n_empty_rows: int = 0  # rows of the input that count no battle
    target: str | None = None  # the column of targets, if it was named and there is a column "winner", not used then
    n_opposed: int = 0  # battles in which those two columns name opposite sides
    n_decided: int = 0  # battles in which both columns name a side
    n_missing: int = 0  # rows of the input without a model or a result, left out on request
    n_excluded: int = 0  # left out by a condition: rows of the input if it was given for reading, else battles
    n_repeated: int = 0  # votes whose id was met before, left out
    n_effective: float | None = None  # battles of equal weight that say as much, if battles have propensities
    read_as: tuple[str, ...] = ()  # how labels and names of columns were read that are not jaxeval's own
    label_families: tuple[str, ...] = ()  # all families of words that fit the labels
    _said: Noun | None = None  # what competes, as somebody or the names of columns say; None where nobody does

    def _shown(self) -> Answer:
        return Answer(f"{type(self).__name__}: {self}")

    @property
    def competitor(self) -> Noun:
        """What competes, in a word and its plural; models where nobody says."""
        return self._said or MODEL

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

    def __str__(self) -> str:
        done = "counted as ties" if self.both_bad == "half" else "left out on request"
        names, own = ", ".join(map(str, self.models_left_out)), self.competitor
        return _lines(
            f"{counted(self.n_rows, 'row')}: {counted(self.n_battles, 'battle')} between "
            f"{own.counted(self.n_models)}, {counted(self.n_ties, 'of them a tie', 'of them ties')}",
            (self.n_both_bad, f"{counted(self.n_both_bad, 'both-bad battle')} {done}"),
            (self.n_self_battles, f"{counted(self.n_self_battles, 'battle')} of {own.a_one} against itself left out"),
            (self.n_zero_weight, f"{counted(self.n_zero_weight, 'battle')} of weight 0 left out"),
            (
                self.n_empty_rows,
                f"{counted(self.n_empty_rows, 'row that counts', 'rows that count')} no battle left out",
            ),
            (self.n_missing, f"{counted(self.n_missing, 'row')} without {own.a_one} or a result left out on request"),
            (self.n_excluded, f"{self.n_excluded:,} left out by a condition or the choice of {own.many}"),
            (self.n_repeated, f"{counted(self.n_repeated, 'vote')} left out whose id was there before"),
            (
                self.n_effective,
                f"battles count by their inverse propensities, and say about as much as {self.n_effective or 0:,.0f} "
                "of equal weight",
            ),
            *((True, sentence) for sentence in self.read_as),
            (self.target, f"results are those of column {self.target!r}; column 'winner' is not used"),
            (names, f"{own.counted(len(self.models_left_out))} without a usable battle left out: {names}"),
        )


@dataclass(frozen=True, repr=False)
class JudgedReport(Shown):
    """What was read of a table of judged battles, and what was left out, in numbers of battles."""

    n_rows: int = 0
    n_battles: int = 0
    n_models: int = 0
    n_human: int = 0  # battles with a human label
    n_human_ties: int = 0
    n_judge_ties: int = 0  # battles with the hard label 1/2, flips included
    n_self_battles: int = 0  # a model against itself: left out
    n_without_score: int = 0  # no score or verdict of the judge: left out
    hard_label: str = ""  # what the hard label is made of, in words
    n_verdicts: int = 0  # battles with a verdict beside their scores
    n_verdict_differs: int = 0  # of those, battles whose verdict is not the label that their scores give
    read_as: tuple[str, ...] = ()  # how labels were read that are not jaxeval's own

    def _shown(self) -> Answer:
        return Answer(f"{type(self).__name__}: {self}")

    def __str__(self) -> str:
        differ = f"{self.n_verdict_differs:,} of {counted(self.n_verdicts, 'battle')}"
        share = self.n_verdict_differs / max(self.n_verdicts, 1)
        return _lines(
            f"{counted(self.n_rows, 'row')}: {counted(self.n_battles, 'judged battle')} between "
            f"{counted(self.n_models, 'model')}, {self.n_human:,} with a human label "
            f"({counted(self.n_human_ties, 'tie')})",
            (self.n_self_battles, f"{counted(self.n_self_battles, 'battle')} {_SELF}"),
            (self.n_without_score, f"{counted(self.n_without_score, 'battle')} without a judge's score left out"),
            *((True, sentence) for sentence in self.read_as),
            (True, f"hard label: {self.hard_label} ({counted(self.n_judge_ties, 'tie')})"),
            (self.n_verdicts, f"verdict and label of the scores differ in {differ} ({share:.1%})"),
        )


@dataclass(frozen=True, repr=False)
class OutputsReport(Shown):
    """What was read of the raw outputs of judges, and what was left out, in numbers of calls unless said otherwise."""

    n_rows: int = 0
    n_calls: int = 0  # calls that are read and used
    n_judges: int = 0
    n_models: int = 0
    n_battles: int = 0
    n_both_orders: int = 0  # battles judged in both orders
    n_contradictions: int = 0  # of those, battles whose orders name different sides
    n_unparsed: int = 0  # replies that cannot be read, left out on request
    n_repaired: int = 0  # replies that were read after commas or quotes of their JSON were mended
    n_reasoned: int = 0  # replies with reasoning before the answer, which was not read
    n_strong: int = 0  # strong grades such as A>>B, which count like others
    n_self_battles: int = 0  # calls on a model against itself, left out
    n_repeated: int = 0  # calls in an order that was judged before: left out, or counted as runs, on request
    n_one_order: int = 0  # battles judged in one order only, kept or left out on request
    one_order: str = "keep"  # what was done with those battles
    n_against_scores: int = 0  # calls whose verdict names the side with the lower score
    n_human: int = 0  # human labels
    n_battles_with_human: int = 0
    n_human_unused: int = 0  # human labels of items and pairs without a battle
    n_disputed: int = 0  # items and pairs on which people contradict each other
    read_as: tuple[str, ...] = ()  # how columns and replies were read

    def _shown(self) -> Answer:
        return Answer(f"{type(self).__name__}: {self}")

    def __str__(self) -> str:
        kept = "kept: a preference for a position does not cancel out in them"
        done = kept if self.one_order == "keep" else "left out on request"
        unread, mended, reasoned = (
            counted(n, "reply", "replies") for n in (self.n_unparsed, self.n_repaired, self.n_reasoned)
        )
        labelled = counted(self.n_battles_with_human, "battle has", "battles have")
        share = f" ({self.n_contradictions / self.n_both_orders:.1%})" if self.n_both_orders else ""
        return _lines(
            f"{counted(self.n_rows, 'row')}: {counted(self.n_calls, 'call')} of {counted(self.n_judges, 'judge')}, "
            f"{counted(self.n_battles, 'battle')} between {counted(self.n_models, 'model')}",
            (
                self.n_both_orders,
                f"{counted(self.n_both_orders, 'battle')} judged in both orders; their verdicts name different sides "
                f"in {self.n_contradictions:,}{share}, which are ties",
            ),
            (self.n_one_order, f"{counted(self.n_one_order, 'battle')} judged in one order only {done}"),
            (self.n_unparsed, f"{unread} that cannot be read left out on request"),
            (self.n_repaired, f"{mended} read after commas or quotes were mended"),
            (self.n_reasoned, f"{reasoned} with reasoning before the answer, which is not read"),
            (self.n_strong, f"{counted(self.n_strong, 'strong grade')} counted like the others"),
            (self.n_self_battles, f"{counted(self.n_self_battles, 'call')} {_SELF}"),
            (self.n_repeated, f"{counted(self.n_repeated, 'call')} in an order judged before, treated as requested"),
            (
                self.n_against_scores,
                f"{counted(self.n_against_scores, 'call')} with a verdict for the side with the lower score",
            ),
            (self.n_human, f"{counted(self.n_human, 'human label')}; {labelled} one"),
            (
                self.n_human_unused,
                f"{counted(self.n_human_unused, 'human label')} on items and pairs without a battle not used",
            ),
            (self.n_disputed, f"people contradict each other on {counted(self.n_disputed, 'item')}"),
            *((True, sentence) for sentence in self.read_as),
        )


@dataclass(frozen=True, repr=False)
class AnswersReport(Shown):
    """What was read of a table of judged answers, and what was left out."""

    n_rows: int = 0
    n_items: int = 0
    n_models: int = 0
    n_judges: int = 0
    n_judgments: int = 0  # judged answers, each counted once per judge
    n_labels: int = 0  # answers with a human label
    n_runs: int = 1  # the largest number of runs of a judge on one answer
    n_missing: int = 0  # missing judgments in the rows read
    n_unparsed: int = 0  # replies that cannot be read, which count as missing judgments
    missing: MissingJudgment = "error"  # what was done about missing judgments
    n_dropped_items: int = 0  # items left out by missing="complete"
    n_absent: int = 0  # pairs of an item and a model without an answer
    n_repeated: int = 0  # answers that share another model's judgment
    read_as: tuple[str, ...] = ()  # columns that were found under other names

    def _shown(self) -> Answer:
        return Answer(f"{type(self).__name__}: {self}")

    def __str__(self) -> str:
        done = {"drop": "left out, and human labels stay", "incorrect": "counted as incorrect"}
        missing = counted(self.n_missing, "judgment is", "judgments are")
        unread = counted(self.n_unparsed, "reply", "replies")
        shared = counted(self.n_repeated, "answer shares", "answers share")
        return _lines(
            f"{counted(self.n_rows, 'row')}: {counted(self.n_items, 'item')}, {counted(self.n_models, 'model')}, "
            f"{counted(self.n_judges, 'judge')}; {counted(self.n_judgments, 'judgment')}, "
            f"{counted(self.n_labels, 'human label')}",
            (self.n_runs > 1, f"up to {self.n_runs:,} runs of a judge on one answer, averaged"),
            (self.n_unparsed, f"{unread} that cannot be read left out on request"),
            (self.n_missing, f"{missing} missing: {done.get(self.missing, 'items left out')}"),
            (
                self.n_dropped_items,
                f"{counted(self.n_dropped_items, 'item')} left out, because a model or a judge lacks it",
            ),
            (self.n_absent, f"{counted(self.n_absent, 'time')} a model has no answer to an item"),
            (self.n_repeated, f"{shared} the judgment of another model's same answer"),
            *((True, sentence) for sentence in self.read_as),
        )


def _lines(first: str, *others: tuple[object, str]) -> str:
    """The lines of a report: the first, and those of ``others`` whose number is not 0, or whose condition holds."""
    return "\n".join([first, *(line for told, line in others if told)])
