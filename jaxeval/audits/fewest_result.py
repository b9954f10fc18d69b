"""What few votes decide, as a result: tables, sentences and a figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from jaxeval.audits.findings import Finding, Severity
from jaxeval.audits.parts import PartResult
from jaxeval.tables.shown import Answer, settings_line
from jaxeval.wording import MODEL, Noun, counted, named, visible_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PART = "fewest_votes"
#: If so small a share of the votes decides something, this is serious, or asks for caution; so few voters are serious.
_SERIOUS, _CAUTION, _FEW_VOTERS = 0.001, 0.01, 3
#: Ratings that differ by so little (Elo) are level: a fit leaves this much of no difference.
LEVEL = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class FewestVotes(PartResult):
    """How few votes decide the order of a board.

    Each number is that of a refit in which the second model is ahead of the first: an upper bound, as other votes might
    do with fewer. The columns ``_at_least`` hold what is proved: with fewer votes, whichever they are, the order stays.
    Where both are equal, the number is exact. A number is missing where nothing that was tried swaps the models.

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.fewest_votes(jaxeval.simulate_battles(2_000, 4, seed=0), progress=False)
        >>> found.table[["above", "below", "dropped", "flipped", "added"]].to_numpy().tolist()[1]
        ['model-2', 'model-3', 47, 24, 47]
        >>> found.borders[["border", "dropped", "dropped_for"]].to_numpy().tolist()[0]
        ['#1', 204, 'model-2']
    """

    table: pd.DataFrame
    """A row for each two neighbours, best first: ``above``, ``below``, ``gap`` (Elo), ``dropped``, ``flipped`` and
    ``added`` votes that swap them, each with ``_at_least``; ``voters`` whose votes are dropped, where a column names
    them; and ``without``, a model without whose votes the two swap, else ""."""
    borders: pd.DataFrame
    """A row for #1, each top k and each border of tiers: ``border``, ``top`` (the number of models above it), and the
    fewest ``dropped``, ``flipped`` and ``added`` votes, and ``voters``, that let another model in; ``dropped_for`` and
    so on name that model. Models that are in no tier do not count at borders of tiers."""
    models: pd.DataFrame
    """A row for each model that is ``removed`` with all its votes: ``first``, who is #1 then; ``swapped``, how many
    pairs of the other models change their order; ``moved`` and ``rank_change`` of the model that moves most."""
    changes: pd.DataFrame
    """Which votes these are, for neighbours: ``votes`` with the ``result`` of ``model_a`` against ``model_b`` (1, 1/2,
    0; of flipped ones before that), of the ``change`` that puts ``below`` ahead of ``above``."""
    n_votes: int
    settings: Mapping[str, Any] = field(repr=False)
    competitor: Noun = MODEL  # what is rated, in words

    def _shown(self) -> Answer:
        votes = f"{counted(len(self.table), 'pair')} of neighbours, {counted(self.n_votes, 'vote')}"
        return Answer(f"FewestVotes: {votes}", self.table, settings_line(self.settings))

    @property
    def tables(self) -> Mapping[str, pd.DataFrame]:
        """The neighbours, the borders, the models removed, and the votes that are changed."""
        return {"": self.table, "borders": self.borders, "models": self.models, "changes": self.changes}

    @property
    def _level(self) -> pd.Series:
        """Which neighbours have equal ratings: between them there is no order that votes could change."""
        return self.table["gap"] <= LEVEL

    def findings(self) -> list[Finding]:
        """How few votes change #1 and other places, and what any one model decides."""
        if self._level.all():
            text = f"All {self.competitor.counted(len(self.table) + 1)} are level: there is no order that votes could "
            return [Finding(PART, Severity.SERIOUS, f"{text}change, and any one more win makes one.")]
        return [*self._of_first(), *self._of_neighbours(), *self._of_borders(), *self._of_models()]

    def figures(self) -> dict[str, Figure]:
        """The fewest dropped, flipped and added votes of all neighbours."""
        from jaxeval.plots.audits import plot_fewest_votes

        return {"": plot_fewest_votes(self.table)}

    def _severity(self, n: float) -> Severity:
        share = n / self.n_votes
        return Severity.SERIOUS if share <= _SERIOUS else Severity.CAUTION if share <= _CAUTION else Severity.REASSURING

    def _share(self, n: int) -> str:
        share = n / self.n_votes
        return f"of {self.n_votes:,} ({f'{share:.2%}' if share >= 0.00005 else 'less than 0.01%'})"

    def _of_first(self) -> list[Finding]:
        if self._level.iloc[0]:
            level = [self.table["above"].iloc[0], *self.table["below"][self._level.cummin()]]
            text = f"No {self.competitor.one} is #1 by itself: {named(list(map(visible_line, level)))} are level."
            return [Finding(PART, Severity.SERIOUS, text)]
        row = self.borders.iloc[0]
        first = self.table["above"].iloc[0]
        ways = [name for name in ("dropped", "flipped", "added") if not pd.isna(row[name])]
        if not ways:
            text = f"No number of dropped, flipped or added votes was found that takes #1 from {first}."
            return [Finding(PART, Severity.REASSURING, visible_line(text))]
        numbers = [f"{counted(row[way], f'{way} vote')} ({row[f'{way}_for']})" for way in ways[1:]]
        text = f"It takes {counted(row[ways[0]], f'{ways[0]} vote')} {self._share(row[ways[0]])} to put "
        text += ", or ".join([f"{row[f'{ways[0]}_for']} ahead of #1, {first}", *numbers])
        severity = self._severity(min(int(row[way]) for way in ways))
        found = [Finding(PART, severity, visible_line(f"{text}."))]
        if "voters" in row and not pd.isna(row["voters"]):
            text = f"Without {counted(row['voters'], 'voter')}, {row['voters_for']} is ahead of #1, {first}."
            severity = Severity.SERIOUS if row["voters"] <= _FEW_VOTERS else Severity.NOTE
            found.append(Finding(PART, severity, visible_line(text)))
        return found

    def _of_neighbours(self) -> list[Finding]:
        known = self.table[~self._level].dropna(subset=["dropped"])
        if not len(known):
            return []
        few = int((known["dropped"] <= _SERIOUS * self.n_votes).sum())
        least = known.loc[known["dropped"].astype(float).idxmin()]
        pair = f"{visible_line(least['below'])} passes {visible_line(least['above'])}"
        swap = f"{few:,} of {counted(len(self.table), 'pair')} of neighbours {'swaps' if few == 1 else 'swap'}"
        votes = counted(least["dropped"], "vote is", "votes are")
        text = f"{swap} when {_SERIOUS:.1%} of the votes or fewer are dropped; {pair} when {votes} dropped."
        severity = Severity.CAUTION if 2 * few > len(self.table) else Severity.NOTE
        return [Finding(PART, severity if few else Severity.REASSURING, text)]

    def _of_borders(self) -> list[Finding]:
        others = self.borders[self.borders["top"] > 1].dropna(subset=["dropped"])
        if not len(others):
            return []
        row = others.loc[others["dropped"].astype(float).idxmin()]
        votes = f"it takes {counted(row['dropped'], 'dropped vote')} {self._share(row['dropped'])}"
        name = visible_line(row["dropped_for"])
        text = f"The weakest border below #1 is that of {row['border']}: {votes} to let {name} in."
        return [Finding(PART, min(self._severity(row["dropped"]), Severity.CAUTION), text)]

    def _of_models(self) -> list[Finding]:
        known = self.models.dropna(subset=["swapped"])
        if not len(known):
            return []
        first = self.table["above"].iloc[0]
        other = known[(known["first"] != first) & (known["removed"] != first)]
        swaps = int((known["swapped"] > 0).sum())
        cases = f"{swaps:,} of {counted(len(known), 'case')}"
        text = f"Each {self.competitor.one} removed by itself: others change their order in {cases}"
        if len(other):
            names = f"{visible_line(other['removed'].iloc[0])}, {visible_line(other['first'].iloc[0])} is #1"
            return [Finding(PART, Severity.CAUTION, f"{text}; without {names}.")]
        return [Finding(PART, Severity.NOTE if swaps else Severity.REASSURING, f"{text}; #1 stays.")]
