"""How far an evaluator's ranks are from gold's, tier by tier of gold.

These are Eq. 4 and Figures 1 and 2 of Xu, Gaur, Leqi and Goyal, "Revisiting meta-evaluation standards of LLM
evaluators".
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import pandas as pd

from jaxeval.arrays import as_leaf
from jaxeval.checks import checked_integer
from jaxeval.errors import DataError
from jaxeval.evaluators.model_scores import OK, Gold, Scores
from jaxeval.evaluators.rank_correlation import CONSTANT, CONSTANT_GOLD, FEW_SCORED
from jaxeval.evaluators.resamples import Resampling, ResamplingOptions, opened, resampled
from jaxeval.evaluators.tables import evaluator_table, first_reason, interval_columns
from jaxeval.execution.signatures import spelled_out
from jaxeval.kernels.rank_agreement import TierQuestion, tier_changes
from jaxeval.wording import counted

NO_MODEL = "no model of the tier is scored"


@spelled_out(Resampling)
def stratified_rank_change(
    scores: Scores, gold: Gold, n_tiers: int = 4, *, within_tier: bool = False, **options: Unpack[ResamplingOptions]
) -> pd.DataFrame:
    """Mean |rank by the evaluator - rank by gold| of the models in each tier of gold, in places.

    Tier 1 is the best. The tiers split the models that gold and some evaluator scored into equal parts; if they cannot
    be equal, the better tiers have one model more. Models that gold ties stay in one tier. Ties share the average of
    their ranks. A resample of models has tiers and ranks of its own.

    Args:
        scores, gold: as in `kendall_tau_delta`, like all other arguments.
        n_tiers: number of tiers; 1 gives the mean deviation of all ranks.
        within_tier: rank the models of a tier among themselves, instead of among all that the evaluator scored.

    Returns:
        A row per evaluator and tier: ``evaluator`` (if they have names), ``tier``, ``rank_change``, ``n_models`` (those
        of the tier that the evaluator scored), ``n_pairs`` (pairs of models that are ranked against each other, with
        one or both in the tier), ``n_missing`` (models with only one of the two scores) and ``status``. With resamples
        also ``lower``, ``upper`` and ``failed_share``, the share of the resamples without models in the tier; these
        count as 0 in ``lower``, and in ``upper`` as the greatest change that is possible.

    Raises:
        DataError, TypeError, ValueError: as in `kendall_tau_delta`, or there are fewer models than tiers.

    Examples:
        >>> judge, people = [8.1, 7.9, 6.2, 5.0, 4.4, 3.1], [1250, 1270, 1180, 1100, 1090, 1010]
        >>> table = stratified_rank_change(judge, people, n_tiers=2, n_resamples=0)
        >>> table[["tier", "rank_change", "n_models"]].round(2)
           tier  rank_change  n_models
        0     1         0.67         3
        1     2         0.00         3
    """
    n_tiers = checked_integer("n_tiers", n_tiers, 1)
    aligned, settings = opened(scores, gold, options)
    m = len(aligned.gold)
    if m < n_tiers:
        raise DataError(f"{counted(m, 'model')} cannot be split into {counted(n_tiers, 'tier')}: ask for fewer")
    size = 6 * m * (1 if settings.resample == "models" else m)
    asked = TierQuestion(as_leaf(np.arange(n_tiers), np.int64), as_leaf(within_tier, np.bool_))
    found = resampled(tier_changes, aligned, (asked,), settings, size)
    n = aligned.n_models[:, None]
    status = first_reason(
        (n < 2, FEW_SCORED),
        (aligned.constant[:, None], CONSTANT),
        (aligned.constant_gold[:, None], CONSTANT_GOLD),
        (found.models[0] == 0, NO_MODEL),
    )
    of_tier = found.models[0].astype(int)
    inside = of_tier * (of_tier - 1) // 2
    columns: dict[str, Any] = {
        "rank_change": np.where(status == OK, found.change[0], np.nan),
        "n_models": of_tier,
        "n_pairs": inside if within_tier else inside + of_tier * (n - of_tier),
        "n_missing": aligned.n_missing,
        "status": status,
        **interval_columns(np.where(status == OK, found.change, np.nan), settings, 0.0, m - 1.0),
    }
    if settings.n_resamples:  # no model of those that the evaluator scored can move by more
        columns["upper"] = np.minimum(columns["upper"], np.maximum(n - 1.0, 0))
    table = evaluator_table(aligned, [("tier", np.arange(1, n_tiers + 1))], columns, settings)
    table.attrs["settings"] |= {"n_tiers": n_tiers, "within_tier": within_tier}
    return table
