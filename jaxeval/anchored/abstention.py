"""Trust or escalate: leave out what a judge cannot repeat, and see whether the scores move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from jaxeval.anchored.scores import anchored_scores
from jaxeval.arrays import Float
from jaxeval.checks import checked_finite
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.errors import DataError
from jaxeval.tables.shown import Shown


@dataclass(frozen=True, eq=False, repr=False)
class Abstention(Shown):
    """Scores with and without the answers on which a judge's runs disagree.

    ``table`` has a row per model, judge and reference: ``coverage``, the share of answers kept; ``probability`` and
    ``rating`` of all and of the ``trusted`` ones, and the shifts. ``summary`` has a row per model and reference: mean
    coverage, and the standard error and the coefficient of variation over judges, before and after.
    """

    table: pd.DataFrame
    summary: pd.DataFrame
    trusted: AnchoredVerdicts
    threshold: float


def abstain(verdicts: AnchoredVerdicts, threshold: float = 0.25, *, prior: float = 0.5) -> Abstention:
    """Leaves out every answer whose outcome varies over a judge's runs by a standard deviation above ``threshold``.

    The deviation is that of K outcomes of 1, 1/2 or 0, with the divisor K. An answer that was judged once has none, and
    is left out. A model and judge that lose all answers keep a row with coverage 0.

    Raises:
        DataError: there is one run only, or nothing is left.
        ValueError: the threshold is negative or not finite.
    """
    threshold = checked_finite("threshold", threshold, 0, ": it is a standard deviation")
    if len(verdicts.levels["run"]) < 2:
        raise DataError("abstention needs repeated runs: name the column that numbers them with run=")
    cell, _ = verdicts.groups(["model", "judge", "anchor", "item"])
    times = np.bincount(cell)
    mean = np.bincount(cell, verdicts.outcome) / times
    variance = np.bincount(cell, (verdicts.outcome - mean[cell]) ** 2) / times
    kept = (times > 1) & (np.sqrt(variance) <= threshold + 1e-12)
    if not kept.any():
        raise DataError(f"all answers vary by more than {threshold:g} between runs, or have one run: nothing is left")
    trusted = verdicts.take(kept[cell])
    by = ["model", "judge", "anchor"]
    before, after = (anchored_scores(v, by, prior=prior).set_index(by) for v in (verdicts, trusted))
    columns = ["n_items", "probability", "probability_se", "rating"]
    table = before[columns].join(after[columns].add_suffix("_trusted"))
    table["n_items_trusted"] = table["n_items_trusted"].fillna(0).astype(int)
    table.insert(0, "coverage", table["n_items_trusted"] / table["n_items"])
    table["probability_shift"] = table["probability_trusted"] - table["probability"]
    table["rating_shift"] = table["rating_trusted"] - table["rating"]
    rows = []
    for key, block in table.groupby(level=["model", "anchor"], sort=False):
        rows.append((*key, block["coverage"].mean(), *_spread(block["probability"], block["probability_se"]),
                     *_spread(block["probability_trusted"], block["probability_se_trusted"])))  # fmt: skip
    names = ["model", "anchor", "coverage", "standard_error", "cv", "standard_error_trusted", "cv_trusted"]
    return Abstention(table.reset_index(), pd.DataFrame(rows, columns=names), trusted, threshold)


def _spread(probability: pd.Series, error: pd.Series) -> tuple[float, float]:
    values: Float = probability.dropna().to_numpy()
    cv = values.std(ddof=1) / values.mean() if len(values) > 1 else np.nan
    return float(error.mean()), float(cv)
