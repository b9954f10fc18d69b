"""The audit of a leaderboard: one question after the other, on one fit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd

from jaxeval.audits import fewest_votes
from jaxeval.audits.fewest_votes import LEVEL
from jaxeval.audits.goodness_of_fit import audited_goodness_of_fit
from jaxeval.audits.over_time import audited_anytime, audited_drift
from jaxeval.audits.parts import (
    Answered,
    Audited,
    AuditOptions,
    Finding,
    NotAnsweredError,
    Question,
    Severity,
    check_plain,
)
from jaxeval.audits.periods import followed, vote_times
from jaxeval.audits.rank_evidence import audited_ranks
from jaxeval.audits.replication import replicated
from jaxeval.audits.who_votes import audited_votes
from jaxeval.data.battles import Battles
from jaxeval.execution.precision import versions
from jaxeval.execution.progress import progress_bar
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.options.resampling import RunningOptions
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.show.cells import heading, with_kinds
from jaxeval.show.files import html_page, json_digest, markdown_page, plain_values, write_answer
from jaxeval.show.shown import Answer, Part, Result, settings_line
from jaxeval.show.table import Table
from jaxeval.statistics.quantiles import normal_quantile
from jaxeval.wording import MODEL, Noun, competitor_settings, counted, did_you_mean, named, visible_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxeval.options.arguments import AuditArguments

#: The most sentences of a verdict. Each part that answers has one, if there is room.
_MOST_SENTENCES = 10
#: Rows of each table on the page; the files hold all.
_ROWS_OF_PAGE = 20
#: What the columns of a table say, on a screen, and those that stay there.
_MEANING = {
    "fewest_votes": "dropped, flipped, added: so many votes changed in this way put the one below above; at least: "
    "fewer cannot; without: whose removal does it, too"
}
_KEPT = {"fewest_votes": ("below", "gap", "dropped", "flipped", "added")}


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Result):
    """What an audit found, part by part.

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.audit(jaxeval.simulate_battles(2_000, 4, seed=0), parts=["board"], progress=False)
        >>> found.verdict
        ['Of 2,000 votes between 4 models, model-1 leads model-2 by 105.8 Elo (standard error 12.4).']
        >>> list(found.parts), list(found.tables)
        (['board'], ['board'])
    """

    parts: Mapping[str, Answered | str]
    questions: Mapping[str, str]  # of the parts, by their names
    settings: Mapping[str, Any]  # options, the digest of the votes, and versions
    notes: tuple[str, ...]  # what was read
    warnings: tuple[str, ...] = field(default=())
    competitor: Noun = MODEL  # what is rated, in words

    def _shown(self) -> Answer:
        first = f": {self.verdict[0]}" if self.verdict else ""
        title = f"Audit of {counted(len(self.parts), 'question')}, {len(self.answers)} answered{first}"
        kinds = {kind.name.lower(): [self._number(name, kind) for name in self.parts] for kind in reversed(Severity)}
        table = pd.DataFrame(kinds, pd.Index(self.parts, name="sentences"))
        return Answer(title, table, self.settings, self.warnings)

    def _in_full(self, view: Answer) -> Answer:
        noun = self.competitor

        def part(name: str, table: pd.DataFrame) -> Part:
            words = [noun.many if word == "models" else word for word in name.split("_")]
            title = self.questions.get(name, " ".join(words).capitalize())
            more = name not in self.questions
            return Part(title, table, _MEANING.get(name, ""), kept=_KEPT.get(name, ()), competitor=noun, more=more)

        return view._replace(
            title="Verdict",
            settings={**self.settings, **competitor_settings(noun)},
            advice=[f"{self.questions[name]} No answer: {reason}" for name, reason in self.absent.items()],
            notes=self.rests_on,
            parts=[part(name, table) for name, table in self.tables.items() if len(table)],
            tables={"verdict": self.table, **self.tables},
            figures=self.figures,
            texts=lambda: self.texts,
        )

    def _sentences(self) -> list[str]:
        return self.verdict

    def _number(self, part: str, kind: Severity) -> int:
        return sum((finding.part, finding.severity) == (part, kind) for finding in self._findings)

    def __getitem__(self, name: str) -> Answered:
        """Return the result of a part.

        Raises:
            KeyError: there is no such part.
            ValueError: the part has no answer; the message says why.
        """
        part = self.parts[name]
        if isinstance(part, str):
            raise NotAnsweredError(f"the audit has no {name}: {part}")
        return part

    @property
    def fewest_votes(self) -> pd.DataFrame:
        """How few votes swap neighbours: a row for each adjacent pair of models, see `jaxeval.fewest_votes`."""
        return self["fewest_votes"].table

    @property
    def goodness_of_fit(self) -> Any:
        """Whether one number per model fits: `statistic`, `dof` and `p_value` among others."""
        return self["goodness_of_fit"]

    @property
    def answers(self) -> dict[str, Answered]:
        """The results of the parts that have one, by name."""
        return {name: result for name, result in self.parts.items() if not isinstance(result, str)}

    @property
    def absent(self) -> dict[str, str]:
        """Why parts have no answer, by name."""
        return {name: result for name, result in self.parts.items() if isinstance(result, str)}

    def findings(self) -> list[Finding]:
        """Return all sentences of all parts, the most serious first, and then in the order of the parts."""
        return list(self._findings)

    @cached_property
    def _findings(self) -> list[Finding]:
        findings = [sentence for part in self.answers.values() for sentence in part.findings()]
        return sorted(findings, key=lambda finding: -finding.severity)

    @property
    def verdict(self) -> list[str]:
        """At most ten sentences, the most serious first.

        The most serious sentence of each part has a place, and the most serious of the others fill the rest.
        """
        first = [next(f for f in self._findings if f.part == part) for part in {f.part: 0 for f in self._findings}]
        others = [finding for finding in self._findings if finding not in first]
        chosen = [*first, *others][:_MOST_SENTENCES]
        return [finding.text for finding in self._findings if finding in chosen]

    @property
    def table(self) -> pd.DataFrame:
        """All `findings`: how serious each is, the part that found it, and its sentence."""
        rows = [(finding.severity.name.lower(), finding.part, finding.text) for finding in self._findings]
        return pd.DataFrame(rows, columns=["severity", "part", "finding"])

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables of all parts, by the names of their files."""
        return self._by_file(lambda part: part.tables)

    def figures(self) -> dict[str, Figure]:
        """Return all figures of all parts, by the names of their files."""
        return self._by_file(lambda part: part.figures())

    def _by_file(self, of: Callable[[Answered], Mapping[str, Any]]) -> dict[str, Any]:
        each = [(part, name, x) for part, result in self.answers.items() for name, x in of(result).items()]
        return {f"{part}_{name}" if name else part: x for part, name, x in each}

    def to_json(self) -> str:
        """Return all of it: settings, versions, the digest of the votes, findings, tables, and why parts are absent.

        ``digest`` shows damage: it is the digest of the object without this entry, as in `write_table`. Numbers that
        are missing or infinite are null.
        """
        content = plain_values({
            "settings": {**self.settings, **competitor_settings(self.competitor)},
            "read": list(self.notes),
            "warnings": list(self.warnings),
            "verdict": self.verdict,
            "findings": [{**f._asdict(), "severity": f.severity.name.lower()} for f in self._findings],
            "parts": {name: self._record(name) for name in self.parts},
        })  # fmt: skip
        content["digest"] = json_digest(content)
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def _record(self, name: str) -> dict[str, Any]:
        question = {"question": self.questions[name]}
        if name in self.absent:
            return {**question, "absent": self.absent[name]}
        tables = self.answers[name].tables.items()
        return {**question, "tables": {key or name: table.to_dict("records") for key, table in tables}}

    def _sections(self) -> list[Part]:
        sections = [Part("Can this leaderboard be believed?", below=self.verdict)]
        for name, question in self.questions.items():
            if name in self.absent:
                sections.append(Part(question, below=[f"No answer: {self.absent[name]}"]))
            else:
                part = self.answers[name]
                sections.append(Part(question, part.table, below=[finding.text for finding in part.findings()]))
        basis = [*self.rests_on, *(f"warning: {sentence}" for sentence in self.warnings)]
        return [*sections, Part("What it rests on", below=basis)]

    def to_markdown(self) -> str:
        """Return one page: the verdict, each question with its findings and first table, and what they rest on."""
        return markdown_page(*self._sections(), **self._page)

    def to_html(self) -> str:
        """Return the same page as HTML, with bars in its tables."""
        return html_page(*self._sections(), **self._page)

    @property
    def _page(self) -> dict[str, Any]:
        return {"rows": _ROWS_OF_PAGE, "heading": partial(heading, competitor=self.competitor)}

    @property
    def rests_on(self) -> list[str]:
        """What was read, and what made the numbers."""
        votes = f"digest of the votes {self.settings['votes']}"
        return [*self.notes, settings_line(self.settings), votes, str(self.settings["versions"])]

    @property
    def texts(self) -> dict[str, str]:
        """The page and the JSON, by the names of their files."""
        return {"audit.md": self.to_markdown(), "audit.html": self.to_html(), "audit.json": self.to_json()}

    def write(self, folder: str | Path) -> None:
        """Write ``audit.md`` and ``audit.html`` to read, ``audit.json``, a CSV for each table, and figures as PNG.

        Raises:
            OSError: a file cannot be written.
        """
        write_answer(self.answer, folder)


@dataclass(frozen=True, eq=False, repr=False)
class AuditedBoard(Answered):
    """The models of an audited board, best first, with intervals from the errors of the fit."""

    part = "board"
    fit: BradleyTerryFit = field(repr=False)
    level: float

    def _shown(self) -> Answer:
        title = f"AuditedBoard: {self.fit.competitor.counted(len(self.table))}"
        return Answer(title, self.table, self.fit.settings, self.fit.warnings)

    def _said(self) -> Iterator[tuple[Severity, str]]:
        fit, table, noun = self.fit, self.table, self.fit.competitor
        votes = f"{counted(int(fit.n_battles.sum()) // 2, 'vote')} between {noun.counted(len(table))}"
        if len(table) - table["rank"].isna().sum() < 2:
            yield Severity.SERIOUS, f"No two {noun.many} of {votes} have comparable ratings."
            return
        first, second = table["model"][:2]
        gap = fit.ratings[first] - fit.ratings[second]
        error = fit.difference_standard_errors.loc[first, second]
        known = f"standard error {error:.1f}" if np.isfinite(error) else "its standard error is not known"
        lead = f"{visible_line(first)} leads {visible_line(second)} by {gap:.1f} Elo ({known})"
        if not gap > normal_quantile(self.level) * error:  # also where the error is not known
            lead = f"{visible_line(first)} is {gap:.1f} Elo above {visible_line(second)} ({known}), statistically tied"
        rated = table["rating"][table["rank"].notna()]
        level = table["model"][: int((rated >= rated.iloc[0] - LEVEL).sum())]
        if len(level) > 1:
            some = named(sorted(map(visible_line, level)))
            which = f"all {noun.counted(len(level))}" if len(level) == len(table) else some
            lead = f"{which} are level, and none leads"
        yield Severity.NOTE, f"Of {votes}, {lead}."
        outside = table.loc[table["rank"].isna(), "model"]
        if len(outside):
            names, has = named(list(map(visible_line, outside))), noun.counted(len(outside), "has", "have")
            it = "it" if len(outside) == 1 else "them"
            yield Severity.CAUTION, f"{has} no finite rating, and no part of the audit says more about {it}: {names}."


def audited_board(audited: Audited) -> AuditedBoard:
    """Return each model's ``rank``, ``rating``, interval and votes, best first; models without a rating come last."""
    fit, level = audited.fit, audited.options.level
    finite = fit.ratings.where(np.isfinite(fit.ratings))
    ends = fit.interval(level).where(finite.notna(), np.nan)
    table = pd.DataFrame({
        "rank": finite.rank(ascending=False, method="min").astype("Int64").to_numpy(),
        "model": fit.ratings.index,
        "rating": fit.ratings.to_numpy(),
        **{end: column.to_numpy() for end, column in ends.items()},
        "vote_count": fit.n_battles.to_numpy(),
    })  # fmt: skip
    table = table.sort_values(["rank", "rating"], ascending=[True, False], kind="stable", ignore_index=True)
    return AuditedBoard(table=with_kinds(Table(table), ends_of="rating"), fit=fit, level=level)


@dataclass(frozen=True, eq=False, repr=False)
class Pairing(Answered):
    """Whether models met stronger opponents after better results than their ratings say.

    ``table`` has one row: the ``slope`` (by how much stronger opponents are, for each unit by which the rating so far
    is above the final one), its ``z`` and ``p_value``.
    """

    part = "pairing"
    level: float

    def _shown(self) -> Answer:
        return Answer(f"Pairing: slope {self.table['slope'].iloc[0]:.2f}", self.table, self.settings)

    def _said(self) -> Iterator[tuple[Severity, str]]:
        row = self.table.iloc[0]
        test = f"z {row['z']:.1f}, p = {row['p_value']:.2g}"
        if row["p_value"] > 1 - self.level:
            yield Severity.REASSURING, f"Who meets whom does not visibly follow from the results so far ({test})."
            return
        size = f"{100 * abs(row['slope']):.0f} Elo {'stronger' if row['slope'] > 0 else 'weaker'}"
        yield (
            Severity.CAUTION,
            "Who meets whom follows from the results so far: for every 100 Elo that results put a "
            f"{self.competitor.one} too high, its next opponents are {size} ({test}). Intervals take pairs as given: "
            "where running ratings chose them, 95% intervals of simulated boards held 87% to 94%.",
        )


def audited_pairing(audited: Audited) -> Pairing:
    """Return the part of an audit: a regression of the strength of opponents on results so far."""
    check_plain(audited)
    options = audited.options
    times = vote_times(audited.battles, str(options.time))
    cluster = None if options.cluster is None else audited.battles.codes(options.cluster)[0]
    slope, z, p_value = followed(audited.battles, audited.fit._board, times, cluster)
    if not np.isfinite(p_value):
        raise NotAnsweredError(
            "no votes came after others, or opponents do not differ: pairs cannot follow from results"
        )
    table = pd.DataFrame([{"slope": slope, "z": z, "p_value": p_value}])
    settings = {"time": options.time, "cluster": options.cluster}
    return Pairing(table=table, level=options.level, settings=settings, competitor=audited.battles.competitor)


#: The parts of an audit, in the order in which they are run and told.
PARTS = (
    Question("board", "What is audited?", audited_board),
    Question("fewest_votes", "How few votes decide?", fewest_votes.of_audited),
    Question("goodness_of_fit", "Does one number per {} fit?", audited_goodness_of_fit),
    Question("rank_evidence", "What can the ranks carry?", audited_ranks),
    Question("replication", "Would it hold again?", replicated),
    Question("who_votes", "Who votes?", audited_votes, needs=("voter",)),
    Question("drift", "Did ratings change over time?", audited_drift, needs=("time",)),
    Question("pairing", "Did results choose who meets whom?", audited_pairing, needs=("time",)),
    Question("anytime_intervals", "What may be said by somebody who looks every day?", audited_anytime),
)


@spelled_out(AuditOptions, RunningOptions)
def audit(battles: Battles | Any, *, parts: Sequence[str] | None = None, **options: Unpack[AuditArguments]) -> Audit:
    """Say whether this leaderboard can be believed: a verdict in words, and a table for each question.

    All parts share one fit. A part whose column nobody named, or that is not defined for these battles, says so in
    ``absent``, and the others go on.

    Args:
        battles: `Battles`, or a table with the standard columns. Verdicts of a judge are battles, too.
        parts: names of the parts to run; all by default.
        voter: column that names who voted.
        cluster: column of the clusters (prompts, voters, sessions) that are resampled, and taken as independent; by
            default battles are.
        by: column, or columns, of groups of battles (languages, categories, sides).
        time: column of the time of each vote: dates, or numbers.
        lengths: columns of the lengths of both answers, of side A and of side B.
        families: the family (organisation) of each model, by name.
        ties: "half": a tie counts half a win; or "davidson" or "rao_kupper", as in `fit_bradley_terry`.
        features: covariates ("style control"), as in `fit_bradley_terry`.
        level: of intervals and tests.
        n_resamples: at least 20, of every part that resamples or simulates.
        chunk_size, memory_limit, checkpoint, progress: as in `bootstrap`, for all parts together.

    Raises:
        TypeError, ValueError: an option has the wrong type, or an impossible value.
        DataError: a column is not there, or the battles cannot be fitted.

    Examples:
        >>> import jaxeval
        >>> votes = jaxeval.simulate_battles(2_000, 4, seed=0)
        >>> found = jaxeval.audit(votes, parts=["board"], progress=False)
        >>> found["board"].table[["rank", "model", "vote_count"]].head(2).to_numpy().tolist()
        [[1, 'model-1', 806], [2, 'model-2', 1254]]
    """
    chosen = _asked(parts)
    audited = Audited.of(battles, options)
    noun = audited.battles.competitor
    chosen = [part._replace(question=part.question.format(noun.one)) for part in chosen]
    warnings = tuple(audited.fit.warnings)  # those of the fit belong to no part
    settings = audited.settings | {"parts": [part.name for part in chosen]}
    answers = {}
    identity = partial(Identity, settings, audited.digest, noun="battles")
    running: RunOptions = {**audited.running, "progress": False}  # of the runs within; there is a bar for each part
    with open_run(identity, len(chosen), "questions", **running):
        for number, part in enumerate(chosen):
            with progress_bar(len(chosen), part.question, audited.running.get("progress"), compiles=False) as advance:
                advance(number)
                answers[part.name] = part.answer(audited)
    return Audit(
        parts=answers, questions={part.name: part.question for part in chosen},
        settings={**settings, "votes": audited.digest, "versions": versions()}, notes=(str(audited.battles.report),),
        warnings=warnings, competitor=noun,
    )  # fmt: skip


def _asked(names: Sequence[str] | None) -> list[Question]:
    known = {part.name: part for part in PARTS}
    if names is None:
        return list(PARTS)
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"parts= takes a list of names, got {names!r}")
    if len(names) == 0:
        raise ValueError(f"parts= names no part; there are {named(list(known), 20)}")
    for name in names:
        if name not in known:
            raise ValueError(f"no part {name!r}; there are {named(list(known), 20)}{did_you_mean(name, known)}")
    return [part for part in PARTS if part.name in names]
