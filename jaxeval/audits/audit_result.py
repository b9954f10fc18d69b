"""The result of an audit: the answers of its parts, a verdict in words, and one page, tables and a JSON of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from jaxeval.audits.findings import Finding, Severity
from jaxeval.audits.parts import Absent, NotAnsweredError, PartResult
from jaxeval.tables.documents import markdown_table, markdown_text
from jaxeval.tables.files import write_table, write_text
from jaxeval.tables.headings import heading
from jaxeval.tables.html import html_table
from jaxeval.tables.records import json_digest, plain_values
from jaxeval.tables.shown import Answer, Result, settings_line
from jaxeval.wording import MODEL, Noun, competitor_settings, counted, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The most sentences of a verdict. Each part that answers has one, if there is room.
_MOST_SENTENCES = 10
#: Rows of each table on the page; the files hold all.
_ROWS_OF_PAGE = 20


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

    parts: Mapping[str, PartResult | Absent]
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
        return Answer(title, table, settings_line(self.settings), self.warnings)

    def _sentences(self) -> list[str]:
        return self.verdict

    def _number(self, part: str, kind: Severity) -> int:
        return sum((finding.part, finding.severity) == (part, kind) for finding in self._findings)

    def __getitem__(self, name: str) -> PartResult:
        """The result of a part.

        Raises:
            KeyError: there is no such part.
            ValueError: the part has no answer; the message says why.
        """
        found = self.parts[name]
        if isinstance(found, Absent):
            raise NotAnsweredError(f"the audit has no {name}: {found.reason}")
        return found

    @property
    def fewest_votes(self) -> pd.DataFrame:
        """How few votes swap neighbours: a row for each adjacent pair of models, see `jaxeval.fewest_votes`."""
        return self["fewest_votes"].table

    @property
    def goodness_of_fit(self) -> Any:
        """Whether one number per model fits: `statistic`, `dof` and `p_value` among others."""
        return self["goodness_of_fit"]

    @property
    def answers(self) -> dict[str, PartResult]:
        """The results of the parts that have one, by name."""
        return {name: found for name, found in self.parts.items() if not isinstance(found, Absent)}

    @property
    def absent(self) -> dict[str, str]:
        """Why parts have no answer, by name."""
        return {name: found.reason for name, found in self.parts.items() if isinstance(found, Absent)}

    def findings(self) -> list[Finding]:
        """All sentences of all parts, the most serious first, and then in the order of the parts."""
        return list(self._findings)

    @cached_property
    def _findings(self) -> list[Finding]:
        found = [sentence for part in self.answers.values() for sentence in part.findings()]
        return sorted(found, key=lambda finding: -finding.severity)

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
        return {
            "_".join(filter(None, (part, name))): table
            for part, found in self.answers.items()
            for name, table in found.tables.items()
        }

    def figures(self) -> dict[str, Figure]:
        """All figures of all parts, by the names of their files."""
        return {
            "_".join(filter(None, (part, name))): figure
            for part, found in self.answers.items()
            for name, figure in found.figures().items()
        }

    def to_json(self) -> str:
        """All of it: settings, versions, the digest of the votes, findings, tables, and why parts are absent.

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

    def to_markdown(self) -> str:
        """One page to read: the verdict, each question with its findings and its first table, and what it rests on."""
        lines = ["# Can this leaderboard be believed?", ""]
        lines += [f"{k}. {markdown_text(sentence)}" for k, sentence in enumerate(self.verdict, 1)]
        for name, question in self.questions.items():
            lines += ["", f"## {question}", ""]
            if name in self.absent:
                lines.append(markdown_text(f"No answer: {self.absent[name]}"))
                continue
            lines += [f"- {markdown_text(f.text)}" for f in self.answers[name].findings()]
            table = self.answers[name].table
            if len(table):
                lines += [
                    "",
                    markdown_table(table.head(_ROWS_OF_PAGE), notes=_more(table, name), heading=self._heading).rstrip(),
                ]
        lines += ["", "## What it rests on", "", *(f"- {markdown_text(note)}" for note in self._told)]
        return "\n".join(lines) + "\n"

    def to_html(self) -> str:
        """The same page as HTML, with bars in its tables."""
        return "\n".join(self._page()) + "\n"

    def _page(self) -> Iterator[str]:
        from html import escape

        def text(tag: str, value: str) -> str:
            return f"<{tag}>{escape(visible(value))}</{tag}>"

        yield '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Audit of a leaderboard</title>'
        yield "<body>"
        yield text("h1", "Can this leaderboard be believed?")
        yield "<ol>" + "".join(text("li", sentence) for sentence in self.verdict) + "</ol>"
        for name, question in self.questions.items():
            yield text("h2", question)
            if name in self.absent:
                yield text("p", f"No answer: {self.absent[name]}")
                continue
            found = self.answers[name]
            yield "<ul>" + "".join(text("li", f.text) for f in found.findings()) + "</ul>"
            if len(found.table):
                yield html_table(found.table, heading=self._heading, most_rows=_ROWS_OF_PAGE)
        yield text("h2", "What it rests on")
        yield "<ul>" + "".join(text("li", note) for note in self._told) + "</ul>"
        yield "</body>\n</html>"

    def _heading(self, name: Any) -> str:
        return heading(name, self.competitor)

    @property
    def rests_on(self) -> list[str]:
        """What was read, and what made the numbers."""
        votes = f"digest of the votes {self.settings['votes']}"
        return [*self.notes, settings_line(self.settings), votes, str(self.settings["versions"])]

    @property
    def _told(self) -> list[str]:
        return [*self.rests_on, *(f"warning: {sentence}" for sentence in self.warnings)]

    @property
    def texts(self) -> dict[str, str]:
        """The page and the JSON, by the names of their files."""
        return {"audit.md": self.to_markdown(), "audit.html": self.to_html(), "audit.json": self.to_json()}

    def write(self, folder: str | Path) -> None:
        """Write ``audit.md`` and ``audit.html`` to read, ``audit.json``, a CSV for each table, and figures as PNG.

        Raises:
            OSError: a file cannot be written.
        """
        from jaxeval.plots.style import save_figures

        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        for name, table in {"verdict": self.table, **self.tables}.items():
            write_table(table, out / f"{name}.csv")
        for name, text in self.texts.items():
            write_text(text, out / name)
        save_figures(self.figures(), out)


def _more(table: pd.DataFrame, name: str) -> list[str]:
    left = len(table) - _ROWS_OF_PAGE
    return [f"and {counted(left, 'more row')} in {name}.csv"] if left > 0 else []
