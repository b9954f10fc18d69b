"""Declare what is audited, and what a part of an audit is: one question, its function and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd

from jaxeval.audits.periods import vote_times
from jaxeval.data.battles import Battles, as_battles
from jaxeval.data.columns import reject_missing
from jaxeval.data.features import FeatureLike, design
from jaxeval.errors import DataError
from jaxeval.execution.runs import RunOptions, digest_of, of_run
from jaxeval.options.boards import ResponseOptions, SliceOptions, Ties
from jaxeval.options.columns import VoteColumns
from jaxeval.options.field import again, option
from jaxeval.options.resampling import DrawnTogether, DrawOptions
from jaxeval.ratings.bootstrap import bootstrap, fit_bradley_terry
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.ratings.vote_groups import cluster_rows
from jaxeval.show.shown import Result, figures_of
from jaxeval.statistics.quantiles import checked_level
from jaxeval.wording import MODEL, Noun

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class AuditOptions(VoteColumns):
    """What an audit is asked for, besides how it runs: columns by name, the model, and what is resampled."""

    cluster: str | None = again(DrawnTogether, "cluster")
    by: str | Sequence[str] | None = again(SliceOptions, "by")
    lengths: tuple[str, str] | None = option(None, "Columns of the lengths of both answers.", flag="")
    families: Mapping[Any, str] | None = option(None, "The families of models, by their names.", flag="")
    ties: Ties = again(ResponseOptions, "ties")
    features: Sequence[FeatureLike] = option((), "Covariates of the battles, as in `bootstrap`.", flag="")
    level: float = again(DrawOptions, "level")
    n_resamples: int = again(DrawOptions, "n_resamples", 500, least=20)
    seed: int = again(DrawOptions, "seed")

    def checked(self, battles: Battles) -> Self:
        """Return the same options, with plain Python numbers and lists.

        Raises:
            TypeError: an option has the wrong type.
            ValueError: a bad number.
            DataError: there is no such column, or it has missing values. Some voters may be missing. So may times: only
                the part on drift needs all of them.
        """
        if not isinstance(self.families, Mapping | None):
            raise TypeError(f"families= maps the names of models to their families, got {self.families!r}")
        if self.lengths is not None:
            if isinstance(self.lengths, str) or len(self.lengths) != 2:
                raise TypeError(f"lengths= takes two columns, of side A and of side B, got {self.lengths!r}")
            design(battles, [(self.lengths[0], self.lengths[1])], normalize=True)
        by = [self.by] if isinstance(self.by, str) else list(self.by or [])
        for name in by:
            battles.members(name)
        if self.cluster is not None:
            battles.codes(self.cluster)
        if self.voter is not None:
            lacking = battles.codes(self.voter, "drop")[0] < 0
            if lacking.all():
                reject_missing(lacking, self.voter, battles.rows)
        if self.time is not None:
            battles.column(self.time)
        numbers = self.checked_values() | {"level": checked_level(self.level)}
        return replace(self, by=by, features=tuple(self.features), **numbers)


@dataclass(frozen=True, eq=False)
class Audited:
    """A board that is audited. All parts of an audit get the same one, so that each thing is computed once."""

    battles: Battles
    options: AuditOptions
    running: RunOptions

    @classmethod
    def of(cls, battles: Battles | Any, arguments: Mapping[str, Any]) -> Self:
        """Return the battles, or a table of them, with the ``arguments`` of a call, checked."""
        checked = as_battles(battles)
        return cls(checked, AuditOptions.of(arguments).checked(checked), of_run(arguments))

    @cached_property
    def fit(self) -> BradleyTerryFit:
        """The board, fitted to all battles; its sandwich errors take ``cluster`` as independent, else battles."""
        return fit_bradley_terry(self.battles, **self._model)

    @cached_property
    def resampled(self) -> Bootstrap:
        """The joint draws of the board, by clusters where there are any."""
        options = self.options
        return bootstrap(self.battles, options.n_resamples, options.seed, **self._model, **self.running)

    @cached_property
    def time(self) -> str | None:
        """The column of times, if they can be read and differ. If not, the part on drift says so."""
        name = self.options.time
        try:
            return name if name is not None and np.ptp(vote_times(self.battles, name)) > 0 else None
        except DataError:
            return None

    @property
    def settings(self) -> dict[str, Any]:
        """The options, covariates by their names."""
        return vars(self.options) | {"features": list(self.fit.settings.features)}

    @cached_property
    def digest(self) -> str:
        """A digest of the votes: how often each result came out between any two models, in all and for each voter."""
        cells, number = self.battles.compress(slice(None))
        names = [name for name in (self.options.voter, self.options.cluster) if name is not None]
        groups = [cluster_rows(self.battles.codes(name, "drop")[0], number, self.battles.count) for name in names]
        return digest_of([self.battles.models, cells, groups])

    @property
    def _model(self) -> dict[str, Any]:
        return {name: getattr(self.options, name) for name in ("features", "ties", "cluster")}


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


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answered(Result):
    """What a part of an audit found. A part's own class says in words what its ``table`` means."""

    part: ClassVar[str]  # its name
    table: pd.DataFrame
    settings: Any = None
    warnings: Sequence[str] = ()
    competitor: Noun = MODEL  # what is rated, in words

    def findings(self) -> list[Finding]:
        """Return what it found, in sentences, each with its number."""
        return [Finding(self.part, severity, text) for severity, text in self._said()]

    def _said(self) -> Iterator[tuple[Severity, str]]:
        raise NotImplementedError

    def _sentences(self) -> list[str]:
        return [finding.text for finding in sorted(self.findings(), key=lambda finding: -finding.severity)]

    @property
    def tables(self) -> Mapping[str, pd.DataFrame]:
        """All tables, by what is added to the part's name; the first one has no name of its own."""
        held = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"" if name == "table" else name: x for name, x in held.items() if isinstance(x, pd.DataFrame)}

    def figures(self) -> dict[str, Figure]:
        """Return figures by what is added to the part's name; none by default."""
        return figures_of(self)


class NotAnsweredError(ValueError):
    """A question that these battles, or this model of them, do not answer; the message says why."""


def check_plain(audited: Audited) -> None:
    """Refuse other models, in parts that look at ratings with ties as half a win and without covariates."""
    options = audited.options
    if options.features or options.ties != "half":
        raise NotAnsweredError(
            "it looks at ratings with ties as half a win and without covariates: leave ties= and features= out (on the "
            "command line --ties, --features)"
        )


class Question(NamedTuple):
    """One question of an audit."""

    name: str  # that of its function
    question: str
    run: Callable[[Audited], Answered]
    needs: tuple[str, ...] = ()  # options of an audit without which there is nothing to answer

    def answer(self, audited: Audited) -> Answered | str:
        """Return what the part finds, or why it finds nothing."""
        lacking = [name for name in self.needs if not getattr(audited.options, name)]
        if lacking:
            names = " and ".join(f"{name}= (on the command line --{name})" for name in lacking)
            return f"it needs a column that nobody named: say {names}"
        try:
            return self.run(audited)
        except (NotAnsweredError, DataError) as error:
            return str(error)
