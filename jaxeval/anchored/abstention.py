"""Trust or escalate: leave out what a judge cannot repeat, or is not sure of, and see whether the scores move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from jaxeval.anchored.scores import anchored_scores
from jaxeval.arrays import Float
from jaxeval.checks import checked_finite
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.errors import DataError
from jaxeval.show.shown import Shown


@dataclass(frozen=True, eq=False, repr=False)
class Abstention(Shown):
    """Scores with and without the answers on which a judge's runs disagree, or about which the judge is not sure.

    ``table`` has a row per model, judge and reference: ``coverage``, the share of answers kept; ``probability`` and
    ``rating`` of all and of the ``trusted`` ones, and the shifts. ``summary`` has a row per model and reference: mean
    coverage, and the standard error and the coefficient of variation over judges, before and after.
    """

    table: pd.DataFrame
    summary: pd.DataFrame
    trusted: AnchoredVerdicts
    threshold: float | None
    confidence: float | None = None


def abstain(
    verdicts: AnchoredVerdicts,
    threshold: float = 0.25,
    *,
    confidence: float | None = None,
    by_runs: bool | None = None,
    prior: float = 0.5,
) -> Abstention:
    """Leaves out answers on which a judge's runs disagree, or about which it is unsure (Tables 6 and 12).

    By runs: the outcome varies over a judge's runs by a standard deviation above ``threshold``. The deviation is that
    of K outcomes of 1, 1/2 or 0, with the divisor K. An answer that was judged once has none, and is left out.

    By stated confidence: its mean over a judge's runs is below ``confidence``, or none was stated. Answers are then
    left out by runs, too, only with ``by_runs=True``.

    A model and judge that lose all answers keep a row with coverage 0.

    Raises:
        DataError: there is one run only, no confidence was stated, or nothing is left.
        ValueError: the threshold is negative or not finite, or the confidence is out of [0, 1].
    """
    cell, _ = verdicts.groups(["model", "judge", "anchor", "item"])
    times = np.bincount(cell)
    kept = np.ones(len(times), bool)
    left_out = []
    threshold = checked_finite("threshold", threshold, 0, ": it is a standard deviation")
    runs_count = confidence is None if by_runs is None else by_runs
    if runs_count:
        if len(verdicts.levels["run"]) < 2:
            raise DataError("abstention needs repeated runs: name the column that numbers them (run=, --run)")
        mean = np.bincount(cell, verdicts.outcome) / times
        variance = np.bincount(cell, (verdicts.outcome - mean[cell]) ** 2) / times
        kept &= (times > 1) & (np.sqrt(variance) <= threshold + 1e-12)
        left_out.append(f"vary by more than {threshold:g} between runs, or have one run")
    if confidence is not None:
        if not 0 <= checked_finite("confidence", confidence) <= 1:
            raise ValueError(f"confidence must lie in [0, 1], got {confidence!r}")
        if verdicts.confidence is None:
            raise DataError("no confidence was stated: there is neither a column 'confidence', nor one in the replies")
        stated = np.bincount(cell, verdicts.confidence) / times
        kept &= stated >= confidence - 1e-12
        left_out.append(f"have a confidence below {confidence:g}, or none")
    if not kept.any():
        raise DataError(f"all answers {', or '.join(left_out)}: nothing is left")
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
    return Abstention(
        table.reset_index(), pd.DataFrame(rows, columns=names), trusted, threshold if runs_count else None, confidence
    )


def _spread(probability: pd.Series, error: pd.Series) -> tuple[float, float]:
    values: Float = probability.dropna().to_numpy()
    cv = values.std(ddof=1) / values.mean() if len(values) > 1 else np.nan
    return float(error.mean()), float(cv)
