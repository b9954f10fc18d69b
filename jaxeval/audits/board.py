"""The board that is audited: its models, and by how much the first leads."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from jaxeval.audits.audited import Audited
from jaxeval.audits.fewest_result import LEVEL
from jaxeval.audits.findings import Finding, Severity
from jaxeval.audits.parts import PartResult
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.statistics.quantiles import normal_quantile
from jaxeval.tables.shown import Answer, settings_line
from jaxeval.wording import counted, named, visible_line

_PART = "board"


@dataclass(frozen=True, eq=False, repr=False)
class AuditedBoard(PartResult):
    """The models of an audited board, best first, with intervals from the errors of the fit."""

    table: pd.DataFrame
    fit: BradleyTerryFit = field(repr=False)
    level: float

    def _shown(self) -> Answer:
        title = f"AuditedBoard: {self.fit.competitor.counted(len(self.table))}"
        return Answer(title, self.table, settings_line(self.fit.settings), self.fit.warnings)

    def findings(self) -> list[Finding]:
        """How large the board is, by how much the first model leads, and which models have no rating."""
        fit, table, own = self.fit, self.table, self.fit.competitor
        votes = f"{counted(int(fit.n_battles.sum()) // 2, 'vote')} between {own.counted(len(table))}"
        if len(table) - table["rank"].isna().sum() < 2:
            return [Finding(_PART, Severity.SERIOUS, f"No two {own.many} of {votes} have comparable ratings.")]
        first, second = table["model_name"][:2]
        gap = fit.ratings[first] - fit.ratings[second]
        error = fit.difference_standard_errors.loc[first, second]
        known = f"standard error {error:.1f}" if np.isfinite(error) else "its standard error is not known"
        lead = f"{visible_line(first)} leads {visible_line(second)} by {gap:.1f} Elo ({known})"
        if not gap > normal_quantile(self.level) * error:  # also where the error is not known
            lead = f"{visible_line(first)} is {gap:.1f} Elo above {visible_line(second)} ({known}), statistically tied"
        rated = table["rating"][table["rank"].notna()]
        level = table["model_name"][: int((rated >= rated.iloc[0] - LEVEL).sum())]
        if len(level) > 1:
            which = f"all {own.counted(len(level))}" if len(level) == len(table) else named([*map(visible_line, level)])
            lead = f"{which} are level, and none leads"
        found = [Finding(_PART, Severity.NOTE, f"Of {votes}, {lead}.")]
        outside = table.loc[table["rank"].isna(), "model_name"]
        if len(outside):
            names, has = named(list(map(visible_line, outside))), own.counted(len(outside), "has", "have")
            it = "it" if len(outside) == 1 else "them"
            text = f"{has} no finite rating, and no part of the audit says more about {it}: {names}."
            found.append(Finding(_PART, Severity.CAUTION, text))
        return found


def audited_board(audited: Audited) -> AuditedBoard:
    """The ``rank``, ``rating``, interval and votes of each model, best first; models without a rating come last."""
    fit, level = audited.fit, audited.options.level
    finite = fit.ratings.where(np.isfinite(fit.ratings))
    ends = fit.interval(level).where(finite.notna(), np.nan)
    table = pd.DataFrame({
        "rank": finite.rank(ascending=False, method="min").astype("Int64").to_numpy(),
        "model_name": fit.ratings.index,
        "rating": fit.ratings.to_numpy(),
        **{f"rating_{end}": column.to_numpy() for end, column in ends.items()},
        "vote_count": fit.n_battles.to_numpy(),
    })  # fmt: skip
    table = table.sort_values(["rank", "rating"], ascending=[True, False], kind="stable", ignore_index=True)
    return AuditedBoard(table, fit, level)
