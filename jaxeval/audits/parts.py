"""The parts of an audit: each answers one question, by a function and a result of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from jaxeval.audits.audited import Audited
from jaxeval.errors import DataError
from jaxeval.show.shown import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Severity(IntEnum):
    """How much a finding takes away from what a reader believes of a leaderboard."""

    REASSURING = 0
    """The board passed a check that could have failed."""
    NOTE = 1
    """A reader should know it; no rank depends on it."""
    CAUTION = 2
    """Some of the board's statements are weaker than they look."""
    SERIOUS = 3
    """Some of the board's statements do not hold, or cannot be checked."""


class Finding(NamedTuple):
    """One sentence of an audit's verdict."""

    part: str
    """The part of the audit that found it, such as "fewest votes"."""
    severity: Severity
    text: str
    """A whole sentence, which holds the number that it rests on."""


class PartResult(Result):
    """What a part of an audit found. A part's own class has ``table``, and says in words what it means."""

    table: pd.DataFrame

    def findings(self) -> list[Finding]:
        """Return what it found, in sentences, each with its number."""
        raise NotImplementedError

    def _sentences(self) -> list[str]:
        return [finding.text for finding in sorted(self.findings(), key=lambda finding: -finding.severity)]

    @property
    def tables(self) -> Mapping[str, pd.DataFrame]:
        """All tables, by what is added to the part's name; the first one has no name of its own."""
        return {"": self.table}

    def figures(self) -> dict[str, Figure]:
        """Return figures by what is added to the part's name; none by default."""
        return {}


class NotAnsweredError(ValueError):
    """A question that these battles, or this model of them, do not answer; the message says why."""


def check_plain(audited: Audited) -> None:
    """Refuse other models, in parts that look at ratings with ties as half a win and without covariates.

    Raises:
        NotAnsweredError: the audit is asked for another model.
    """
    options = audited.options
    if options.features or options.ties != "half":
        raise NotAnsweredError(
            "it looks at ratings with ties as half a win and without covariates: leave ties= and features= out (on the "
            "command line --ties, --features)"
        )


class Absent(NamedTuple):
    """A part of an audit without an answer."""

    reason: str
    asked: bool = True  # False where a column that it needs was not named


class Part(NamedTuple):
    """One question of an audit."""

    name: str  # that of its function
    question: str
    run: Callable[[Audited], PartResult]
    needs: tuple[str, ...] = ()  # options of an audit without which there is nothing to answer

    def answer(self, audited: Audited) -> PartResult | Absent:
        """Return what the part finds, or why it finds nothing."""
        lacking = [name for name in self.needs if not getattr(audited.options, name)]
        if lacking:
            names = " and ".join(f"{name}= (on the command line --{name})" for name in lacking)
            return Absent(f"it needs a column that nobody named: say {names}", asked=False)
        try:
            return self.run(audited)
        except (NotAnsweredError, DataError) as error:
            return Absent(str(error))
