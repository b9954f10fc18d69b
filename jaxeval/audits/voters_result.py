"""What is said of who votes: the tables of `who_votes`, and its findings in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from jaxeval.audits.findings import Finding, Severity
from jaxeval.audits.parts import PartResult
from jaxeval.audits.periods import told_period
from jaxeval.audits.points import Taste
from jaxeval.audits.repeats import Repeats
from jaxeval.tables.shown import Answer
from jaxeval.wording import MODEL, Noun, counted, visible_line

_PART = "who_votes"
_MOST_TOLD = 3
_SURE_OF_TASTE = 3.0  # standard errors
_MANY_REPEATS = 0.01  # of all votes
_OFTEN = 1.5  # times as often as by chance


@dataclass(frozen=True, eq=False, repr=False)
class WhoVotes(PartResult):
    """What voters do to a board. Ratings and pulls are in Elo.

    ``table`` has a row for each voter of ``min_votes`` decided votes or more, the least likely first:

    - ``pull``, ``pulled``: the largest change of a rating that the voter's votes make, and of which model;
    - ``model, n_on_model, points, expected_points, p_points``: the model that the voter treats most unlike the board,
      and the chance of so many or so few points, corrected for the voter's number of models;
    - ``agreement, expected_agreement, p_honest``: votes for the higher rated model, and the chance that somebody who
      votes as the board does prefers the higher rated models so little;
    - ``p_points_adjusted``, ``p_honest_adjusted``: corrected for all voters; ``verdict`` is empty where both are above
      ``alpha``;
    - ``repeats``: votes on a pair (and prompt, where known) beyond the voter's first; ``busiest_hour``: the most votes
      within an hour, where times are known.

    ``strongest`` has the voters of the largest pulls, with pulls from a fit without each (``pull_refitted``).
    ``blocks`` says about which models voters differ more than about others (`jaxeval.audits.blocks`). ``bursts``
    has the points of models in periods, beside those that the board expects; None without times. ``without`` has
    the ratings without the voters that have a verdict, and changes without repeats. ``taste`` is by how much voters
    differ in what they like (logits).

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.who_votes(jaxeval.simulate_votes(3_000, 4, seed=0).assign(voter=lambda v: v.index % 50))
        >>> (found.table["verdict"] != "").sum()
        np.int64(0)
        >>> found.findings()[0].text[:83]
        'Of the 50 voters with 10 decided votes or more, 0 do not vote as honest voters do ('
    """

    table: pd.DataFrame
    strongest: pd.DataFrame
    blocks: pd.DataFrame
    bursts: pd.DataFrame | None
    without: pd.DataFrame
    taste: Taste
    n_voters: int
    n_votes: int
    n_left_out: int  # votes without a voter
    n_suspect_votes: int
    repeats: Repeats
    settings: dict[str, Any]
    warnings: list[str]
    competitor: Noun = MODEL  # what is rated, in words

    def _shown(self) -> Answer:
        suspects = int((self.table["verdict"] != "").sum())
        title = f"WhoVotes: {suspects:,} of {counted(self.n_voters, 'voter')} stand out"
        columns = ["voter", "verdict", "n_votes", "pull", "pulled", "agreement", "expected_agreement"]
        return Answer(title, self.table[columns], _told(self.settings), self.warnings)

    @property
    def tables(self) -> Mapping[str, pd.DataFrame]:
        """Voters, the strongest, blocks, bursts where times are known, and ratings without those who stand out."""
        more = {} if self.bursts is None else {"bursts": self.bursts}
        return {"": self.table, "strongest": self.strongest, "blocks": self.blocks, **more, "without": self.without}

    def findings(self) -> list[Finding]:
        """What it means for the board, in sentences."""
        return [*self._of_voters(), *self._of_board(), *self._of_repeats(), *self._of_blocks(), *self._of_bursts()]

    def _of_voters(self) -> list[Finding]:
        n, votes = len(self.table), f"{self.settings['min_votes']} decided votes or more"
        if n == 0:
            return [Finding(_PART, Severity.CAUTION, f"0 voters have {votes}: no voter can be tested.")]
        odd = self.table[self.table["verdict"] != ""]
        told = "; ".join(f"voter {visible_line(row.voter)} {row.verdict}" for row in odd.head(_MOST_TOLD).itertuples())
        do = "does" if len(odd) == 1 else "do"
        text = f"Of the {counted(n, 'voter')} with {votes}, {len(odd):,} {do} not vote as honest voters do "
        text += f"({self.settings['correction']} at {self.settings['alpha']:g})" + (f": {told}" if told else "")
        found = [Finding(_PART, Severity.CAUTION if len(odd) else Severity.REASSURING, f"{text}.")]
        if self.taste.z > _SURE_OF_TASTE:
            text = f"Voters' likings of {self.competitor.a_one} differ by {self.taste.logit:.2f} logits (standard "
            text += "deviation), so that the votes of one voter are not independent: cluster by voter."
            found.append(Finding(_PART, Severity.NOTE, text))
        if len(self.strongest):
            found.append(_told_strongest(self.strongest.iloc[0]))
        return found

    def _of_board(self) -> list[Finding]:
        if self.n_suspect_votes == 0 or self.without["change"].isna().all():
            return []
        change = self.without["change"].abs()
        first = self.without.loc[self.without["rank"] == 1, "model"].iloc[0]
        now = self.without.loc[self.without["rank_without"] == 1, "model"].iloc[0]
        moved = int((self.without["rank"] != self.without["rank_without"]).sum())
        lead = f"{visible_line(now)} leads instead of {visible_line(first)}" if now != first else "the leader stays"
        share = self.n_suspect_votes / self.n_votes
        text = f"Without the {self.n_suspect_votes:,} votes of these voters ({share:.1%}) ratings move by "
        text += f"{change.max():.1f} Elo at most, {counted(moved, 'rank changes', 'ranks change')}, and "
        severity = Severity.SERIOUS if now != first else Severity.CAUTION if moved else Severity.NOTE
        return [Finding(_PART, severity, f"{text}{lead}.")]

    def _of_repeats(self) -> list[Finding]:
        again, prompt = int(self.repeats.of_voter.sum()), self.settings["prompt"]
        share = again / self.n_votes
        if prompt is not None:
            severity = Severity.CAUTION if share > _MANY_REPEATS else Severity.NOTE if again else Severity.REASSURING
            text = f"{counted(again, 'vote repeats', 'votes repeat')} an earlier one of the same voter, pair and "
            text += f"{visible_line(prompt)} ({share:.1%})"
            if again and self.without["change_without_repeats"].notna().any():
                text += (
                    f"; ratings move by {self.without['change_without_repeats'].abs().max():.1f} Elo at most without"
                )
            return [Finding(_PART, severity, f"{text}.")]
        times = self.repeats.alike / max(self.repeats.alike_by_chance, 1.0)
        if times < _OFTEN:
            return []
        text = f"Voters meet the same pair again {times:.1f} times as often as if their pairs were drawn as the "
        text += f"board's are: {counted(again, 'vote is', 'votes are')} on a pair that the voter had met before."
        return [Finding(_PART, Severity.NOTE, text)]

    def _of_blocks(self) -> list[Finding]:
        known = self.blocks["p_adjusted"].notna()
        if not known.any():
            return []
        odd = self.blocks[known & (self.blocks["p_adjusted"] <= self.settings["alpha"])]
        if len(odd) == 0:
            text = f"Voters differ about none of {self.competitor.counted(int(known.sum()))} more than about the others"
            return [Finding(_PART, Severity.REASSURING, f"{text}: no block of voters stands out (Holm).")]
        first = odd.iloc[0]
        text = f"Voters differ more about {self.competitor.counted(len(odd))} than about the others, most about "
        text += f"{visible_line(first['model'])} ({first['taste_logit']:.2f} logits, p = {first['p_adjusted']:.2g}): a "
        text += f"block of voters may vote {first['lean']} it."
        return [Finding(_PART, Severity.CAUTION, text)]

    def _of_bursts(self) -> list[Finding]:
        if self.bursts is None or len(self.bursts) == 0:
            return []
        period = told_period(self.settings["every"])
        odd = self.bursts[self.bursts["p_adjusted"] <= self.settings["alpha"]]
        if len(odd) == 0:
            text = f"No {period} gave any {self.competitor.one} more or fewer points than the board expects of it "
            return [Finding(_PART, Severity.REASSURING, f"{text}({len(self.bursts):,} looked at, Holm).")]
        first = odd.iloc[0]
        text = f"{counted(len(odd), 'burst')}: in the {period} of {first['period']} "
        text += f"{visible_line(first['model'])} took {first['points']:g} of {first['n']:g} points, "
        return [Finding(_PART, Severity.CAUTION, f"{text}where the board expects {first['expected']:.0f}.")]


def _told_strongest(top: pd.Series) -> Finding:
    who, votes, model = visible_line(top["voter"]), counted(top["n_votes"], "vote"), visible_line(top["pulled"])
    if np.isnan(top["pull_refitted"]):
        text = f"Without the {votes} of voter {who}, {model} has no rating."
        return Finding(_PART, Severity.SERIOUS, text)
    text = f"The {votes} of voter {who} move {model} by {top['pull_refitted']:+.1f} Elo"
    return Finding(_PART, Severity.NOTE, f"{text}; no other voter moves a rating more.")


def _told(settings: dict[str, Any]) -> str:
    columns = [f"{name} by {visible_line(settings[name])}" for name in ("voter", "time", "prompt") if settings[name]]
    return ", ".join([*columns, f"{settings['correction']} at {settings['alpha']:g}"])
