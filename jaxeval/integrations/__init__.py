"""Where evaluations are run: what other programs find by their entry points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxeval.scores.estimates import ScoreEstimates


def estimates_of(scores: Sequence[float], clusters: Sequence[str] | None) -> ScoreEstimates:
    """Return the mean of the scores of samples, which are drawn anew, or their clusters are."""
    import numpy as np
    import pandas as pd

    from jaxeval.data.item_scores import ItemScores
    from jaxeval.scores.estimates import estimate_scores

    rows: dict[str, Any] = {"model": "model", "item": range(len(scores)), "score": scores}
    if clusters is not None:
        rows["cluster"] = clusters
    item_scores = ItemScores.from_pandas(pd.DataFrame(rows), cluster=None if clusters is None else "cluster")
    return estimate_scores(item_scores, np.ones(len(scores), bool))
