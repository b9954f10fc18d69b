"""Shapes of curves: how much tasks of one length differ, and which shape forecasts tasks that it has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp, xlog1py, xlogy

from jaxeval.arrays import Float, as_leaf
from jaxeval.capability.tasks import Tasks
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import horizons as kernel

_FOLDS = 10


def estimated_spread(x: Float, share: Float, runs: Float) -> float:
    """Return the standard deviation (logits) of how difficult tasks of one length are for an agent.

    It maximises the likelihood of the runs of each agent on each task, from which normal difficulties are integrated
    out. Tasks with one run by an agent say little of it.
    """
    nodes, shares = np.polynomial.hermite_e.hermegauss(31)
    log_shares = np.log(shares / shares.sum())

    weight, wins = runs / np.maximum(runs.sum(0), 1), share * runs
    usable = (wins.sum(0) > 0) & (wins.sum(0) < runs.sum(0))

    def loss(spread: float) -> float:
        with double_precision():
            weighed, shares, lengths, ridge, sd = (as_leaf(v, np.float64) for v in (weight, share, x, 1e-5, spread))
            parts = kernel.line(weighed, shares, lengths, ridge, sd, "of tasks")
        intercept, slope, centre = map(np.asarray, parts)
        p = expit((intercept + slope * (x[:, None] - centre))[:, :, None] + spread * nodes)
        each = xlogy(wins[:, :, None], p) + xlog1py((runs - wins)[:, :, None], -p) + log_shares
        return -float(logsumexp(each, axis=2)[:, usable].sum())

    return float(minimize_scalar(loss, bounds=(0.0, 6.0), method="bounded", options={"xatol": 0.01}).x)


def compared_curves(tasks: Tasks, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Return what `TimeHorizons.curves` does."""
    family = pd.factorize(tasks.table["family"])[0]
    fold = np.random.default_rng(settings["seed"]).permutation(family.max() + 1)[family] % _FOLDS
    x, scores = tasks.x, {}
    for curve in ("logistic", "probit", "asymmetric"):
        of_task = np.zeros(len(x))
        for k in range(fold.max() + 1):
            held = fold == k
            weight = np.where(held[:, None], 0.0, tasks.weight)
            with double_precision():
                values = weight, tasks.share, x, settings["ridge"], 0.0
                weighed, share, lengths, ridge, none = (as_leaf(v, np.float64) for v in values)
                parts = kernel.line(weighed, share, lengths, ridge, none, curve)
                intercept, slope, centre = parts
                p = np.asarray(kernel.success(curve, intercept + slope * (x[:, None] - centre)))
            p = np.clip(p, 1e-4, 1 - 1e-4)
            each = tasks.weight * (xlogy(tasks.share, p) + xlog1py(1 - tasks.share, -p))
            solved = (weight * tasks.share).sum(0)
            usable = (solved > 0) & (solved < weight.sum(0))  # other agents have no curve
            of_task += np.where(held, each[:, usable].sum(1), 0.0)
        scores[curve] = np.bincount(family, of_task) / len(tasks.agents)
    total = {curve: x.sum() for curve, x in scores.items()}
    best = max(total, key=lambda name: total[name])
    rows = [
        {
            "curve": curve,
            "log_score": total[curve],
            "worse_by": total[best] - total[curve],
            "standard_error": float(np.std(scores[best] - scores[curve], ddof=1) * np.sqrt(len(scores[best]))),
        }
        for curve in sorted(total, key=lambda name: -total[name])
    ]
    return pd.DataFrame(rows)
