"""Which models few items tell apart: Student's t with Holm's steps, where draws of all pairs at once err too often.

In simulations of right and wrong answers by ten equal models, with 400 boards each and a nominal error of .05, the
largest of all differences by draws (max-t) falsely told two models apart on .155 of the boards with 30 items, on .11
with 60, and on .05 to .07 with 100 and more. Student's t with Bonferroni's correction stayed under .05 everywhere;
Holm's steps have the same bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy

from jaxeval.arrays import Bool, Float, Int
from jaxeval.statistics.multiplicity import holm
from jaxeval.statistics.quantiles import checked_level

#: Degrees of freedom from which on differences of all pairs at once keep their level by draws.
ENOUGH_FOR_DRAWS = 99


@dataclass(frozen=True, eq=False)
class StudentDifferences:
    """Differences of all pairs of M models, each tested by Student's t; like `Differences` of draws.

    A pair without observed variance is never told apart.
    """

    estimate: Float  # (M,)
    error: Float  # (M, M) standard errors of differences, NaN without observed variance
    dof: Float  # (M,)

    @property
    def p_values(self) -> Float:
        """(M, M) two-sided p, one pair at a time."""
        dof = np.fmin(self.dof[:, None], self.dof)
        t = np.abs(self.estimate[:, None] - self.estimate) / self.error
        return np.asarray(2 * scipy.special.stdtr(dof, -t))

    def tiers(self, level: float) -> Int:
        """(M,) tiers, 1 = top: each starts at the first model that is told apart from the leader of the tier above."""
        apart = self._apart_at_once(level)
        tier = np.zeros(len(self.estimate), np.int64)
        current, below = 0, np.ones(len(tier), bool)
        for model in np.argsort(-self.estimate, kind="stable"):
            if below[model]:
                current, below = current + 1, apart[model]
            tier[model] = current
        return tier

    def rank_sets(self, level: float, simultaneous: bool = False) -> tuple[Int, Int]:
        """(M,) best and worst ranks that the differences leave open, each set at ``level``, or all at once."""
        if simultaneous:
            apart = self._apart_at_once(level)
        else:
            apart = np.stack([holm(row) for row in self.p_values]) <= 1 - checked_level(level)
        above = self.estimate > self.estimate[:, None]
        below = self.estimate < self.estimate[:, None]
        return 1 + (apart & above).sum(1), len(self.estimate) - (apart & below).sum(1)

    def ranks(self, level: float, simultaneous: bool, models: pd.Index) -> pd.DataFrame:
        """Columns ``rank_best, rank_worst, tier``."""
        best, worst = self.rank_sets(level, simultaneous)
        columns = {"rank_best": best, "rank_worst": worst, "tier": self.tiers(level)}
        return pd.DataFrame(columns, models).astype("Int64")

    def _apart_at_once(self, level: float) -> Bool:
        """(M, M) pairs that are told apart, all at once."""
        first, second = np.triu_indices(len(self.estimate), 1)
        found = np.zeros(self.error.shape, bool)
        found[first, second] = holm(self.p_values[first, second]) <= 1 - checked_level(level)
        return found | found.T
