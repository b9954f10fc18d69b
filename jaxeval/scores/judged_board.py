"""Leaderboards of scores that a judge gave, corrected by human labels: judge accuracies, ranked."""

from __future__ import annotations

import numpy as np
import pandas as pd

from jaxeval.accuracy.judge_accuracy import JudgeAccuracy
from jaxeval.tables.table import Table
from jaxeval.wording import counted, did_you_mean, named

_SHOWN_FIRST = ("category", "rank", "model_name", "score", "score_lower", "score_upper", "standard_error", "tier")


def judged_leaderboard(
    accuracy: JudgeAccuracy, judge: str | None, estimator: str, simultaneous_ranks: bool
) -> pd.DataFrame:
    """The table of `score_leaderboard` of judge accuracies: closed-form intervals, and ranks from the joint draws."""
    level = accuracy.settings.level
    judges, estimators = accuracy.table["judge"].unique(), accuracy.table["estimator"].unique()
    if judge is None and len(judges) > 1:
        raise ValueError(f"accuracies by {counted(len(judges), 'judge')}: {named(judges)}; choose one (judge=)")
    judge = judges[0] if judge is None else judge
    for what, own, there in (("judge", judge, judges), ("estimator", estimator, estimators)):
        if own not in there:
            raise ValueError(f"no {what} {own!r}; there are {named(there)}{did_you_mean(own, there)}")
    tables = []
    for name in accuracy.slices:
        part = accuracy.of(name or "all") if len(accuracy.slices) > 1 else accuracy
        joint = part.joint.of(judge=judge, estimator=estimator)
        own = part.table[(part.table["judge"] == judge) & (part.table["estimator"] == estimator)]
        rows = own.set_index("model").loc[joint.names]
        table = pd.DataFrame(
            {
                "model_name": joint.names,
                "score": rows["estimate"].to_numpy(),
                "score_lower": rows["lower"].to_numpy(),
                "score_upper": rows["upper"].to_numpy(),
                "standard_error": joint.standard_errors.to_numpy(),
                "n_items": rows["n_test"].to_numpy(),
                "rank": joint.rank().array,
                **{end: x.array for end, x in joint.rank_sets(level, simultaneous_ranks).items()},
                "tier": joint.tiers(level).array,
                "flags": rows["status"].to_numpy(),
            }
        )
        order = np.lexsort([table["model_name"].astype(str), table["rank"].to_numpy(float, na_value=np.inf)])
        table = table.iloc[order]
        if len(accuracy.slices) > 1:
            table.insert(0, "category", name or "all")
        tables.append(table)
    found = pd.concat(tables, ignore_index=True)
    settings = {"judge": judge, "estimator": estimator, "level": level, "n_resamples": accuracy.settings.n_resamples}
    found.attrs = {"warnings": list(accuracy.warnings), "settings": settings}
    title = f"Scores of {counted(found['model_name'].nunique(), 'model')} by {judge}"
    return Table.of(found, title, _SHOWN_FIRST)
