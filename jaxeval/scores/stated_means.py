"""Means and errors that a harness states, beside those of its samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from jaxeval.data.item_scores import ItemScores
from jaxeval.scores.estimates import estimate_scores, of_items


def beside_stated(scores: ItemScores, stated: pd.DataFrame, metric: str | None) -> pd.DataFrame:
    """Return the mean and the standard error of each model on each task, and what the harness states of them.

    A group of tasks is the mean of all their items, as the harness weighs tasks by their sizes.

    Args:
        scores: with a benchmark for each task.
        stated: as `jaxeval.data.score_files.stated_means` gives it.
        metric: the one that was read, or several with commas between them: the first that a task has; None for all.

    Returns:
        ``model``, ``benchmark``, ``metric``, ``filter``, ``score``, ``standard_error``, ``stated_score``,
        ``stated_standard_error`` (NaN where none is stated) and ``n_items``, for tasks with samples.
    """
    rows = []
    metrics = None if metric is None else [part.strip() for part in metric.split(",")]
    groups = scores.benchmark
    names = [] if groups is None else [str(name) for name in groups.names]
    for (model, benchmark), part in stated.groupby(["model", "benchmark"], sort=False):
        if metrics is not None:
            first = next((name for name in metrics if name in set(part["metric"])), None)
            part = part[part["metric"] == first]
        places = [names.index(task) for task in part["tasks"].iloc[0] if task in names] if len(part) else []
        if groups is None or not places or model not in scores.models:
            continue
        chosen = of_items(scores, np.isin(groups.number, places))
        m = int(chosen.models.get_loc(model))
        chosen = replace(
            chosen, scores=chosen.scores[:, :, [m]], models=chosen.models[[m]], trials=None, benchmark=None
        )
        there = ~np.isnan(chosen.scores[:, 0, 0])
        if not there.any():
            continue
        estimates = estimate_scores(chosen, there)
        score, error = float(estimates.score[0]), float(estimates.standard_errors[0])
        rows += [
            {"model": model, "benchmark": benchmark, "metric": row["metric"], "filter": row["filter"],
             "score": score, "standard_error": error, "stated_score": row["stated_score"],
             "stated_standard_error": row["stated_standard_error"], "n_items": int(there.sum())}
            for row in part.to_dict("records")
        ]  # fmt: skip
    columns = ["model", "benchmark", "metric", "filter", "score", "standard_error", "stated_score",
               "stated_standard_error", "n_items"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)
