"""Split conformal intervals of models that humans have rated, too: the retrospective study, and widths taken apart.

They hold for models with as many battles as the calibration models have. `jaxeval.softelo.calibrated_methods` is for
new models with any number of battles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from jaxeval.arrays import Float
from jaxeval.checks import checked_integer
from jaxeval.show.shown import Shown
from jaxeval.softelo.calibrated_methods import (
    Level,
    chosen_level,
    conformal_quantile,
    conformal_rank,
    conformity_scores,
    exact_level,
    expected_coverage,
    smallest_calibration,
    supported_level_text,
)
from jaxeval.softelo.residuals import grouping, usable_models
from jaxeval.softelo.soft_elo import HeldOutRatings
from jaxeval.wording import counted


@dataclass(frozen=True)
class ConformalSettings:
    """What made a retrospective study."""

    level: float
    n_repeats: int
    n_calibration: int  # models of each split that calibrate
    n_test: int  # and that are tested
    seed: int


@dataclass(frozen=True, eq=False, repr=False)
class ConformalStudy(Shown):
    """Random splits of the models into calibration and test halves, the same splits for every method.

    ``splits`` has one row per method and split: ``quantile``, ``coverage``, ``median_width`` (Elo),
    ``median_standard_error`` (Elo, test models). ``summary`` has one row per method: means over the splits, the range
    of the median widths, and beside the ``nominal`` level the ``expected_coverage`` that the ranks allow.
    """

    splits: pd.DataFrame
    intervals: pd.DataFrame  # one row per method, split and test model: lower, upper (Elo), covered
    summary: pd.DataFrame
    settings: ConformalSettings
    warnings: list[str]


def leave_one_out_intervals(soft_elo: HeldOutRatings, level: Level | None = None) -> pd.DataFrame:
    """Return the interval of every model, calibrated on all others (Figure 1c).

    How many of these intervals hold the human rating is arithmetic: ceil(level * M) of M, whatever the judge. That
    number is no evidence, and not in the table. `conformal_study` tests coverage.

    Args:
        soft_elo: a `SoftElo`, or its ``models`` table.
        level: 1 - alpha; by default .9, or the largest level that the models support.

    Returns:
        One row per model and method: ``model, method, human_elo, judge_elo, standard_error, quantile, lower, upper,
        width`` (Elo); models without a residual or a standard error are left out. ``attrs`` holds ``warnings`` and
        ``settings``.
    """
    table, warnings = usable_models(soft_elo)
    level, lowered = chosen_level(level, _fewest(table) - 1, "leave-one-out intervals")
    warnings += lowered
    blocks = []
    for _, block in table.groupby(grouping(table), sort=False):
        scores = conformity_scores(block["residual"], block["standard_error"])
        # Without score i the k-th smallest is the k-th or, if i was among the first k, the (k + 1)-th.
        rank, order = conformal_rank(len(scores) - 1, level), np.sort(scores)
        padded = np.append(order, np.inf)
        own_place = np.argsort(np.argsort(scores, kind="stable"), kind="stable")
        quantile = np.where(own_place < rank, padded[min(rank, len(scores))], padded[rank - 1])
        if rank > len(scores) - 1:
            quantile = np.full(len(scores), np.inf)
            warnings.append(_too_small(len(scores) - 1, level, block))
        blocks.append(_with_intervals(block, quantile))
    result = pd.concat(blocks, ignore_index=True)
    result.attrs = {"warnings": warnings, "settings": {"level": float(exact_level(level)), "design": "leave-one-out"}}
    return result


def conformal_study(
    soft_elo: HeldOutRatings,
    level: Level | None = None,
    n_repeats: int = 5,
    n_calibration: int | None = None,
    seed: int = 0,
) -> ConformalStudy:
    """Return the coverage and width over random splits of the models into calibration and test (section 5.3, Table 3).

    Args:
        soft_elo: a `SoftElo`, or its ``models`` table. Only models with a residual and a standard error under every
            method take part.
        level: 1 - alpha; by default .9, or the largest level that the calibration half supports.
        n_repeats: random splits.
        n_calibration: models that calibrate; half of them by default (27 of the paper's 55).
        seed: of the splits.

    Raises:
        ValueError: a bad level, too few models, or a split that leaves none on one side.
    """
    table, warnings = usable_models(soft_elo)
    keys = grouping(table)
    groups = list(table.groupby(keys, sort=False))
    common = set.intersection(*(set(block["model"]) for _, block in groups))
    models = sorted(common, key=str)
    dropped = table["model"].nunique() - len(models)
    if dropped:
        warnings.append(
            f"{counted(dropped, 'model has', 'models have')} no residual or standard error under some method and take "
            "no part"
        )
    n = len(models)
    if n < 2:
        raise ValueError(f"a split needs at least 2 models with a residual and a standard error, found {n}")
    n_cal = n // 2 if n_calibration is None else n_calibration
    if not 1 <= n_cal < n:
        raise ValueError(
            f"n_calibration must lie between 1 and {n - 1} (of {counted(n, 'model')}), got {n_calibration}"
        )
    checked_integer("n_repeats", n_repeats, 1)
    level, lowered = chosen_level(level, n_cal, "random splits")
    warnings += lowered
    order = np.random.default_rng(seed).permuted(np.tile(np.arange(n), (n_repeats, 1)), axis=1)
    calibration, test = order[:, :n_cal], order[:, n_cal:]

    rank = conformal_rank(n_cal, level)
    blocks = []
    for _, unsorted in groups:
        block = unsorted.set_index("model").loc[models].reset_index()
        scores = conformity_scores(block["residual"], block["standard_error"])
        ordered = np.sort(scores[calibration], axis=1)
        quantile = ordered[:, rank - 1] if rank <= n_cal else np.full(n_repeats, np.inf)
        part = _with_intervals(block.iloc[test.ravel()], np.repeat(quantile, n - n_cal))
        covered = scores[test] <= quantile[:, None]
        blocks.append(part.assign(split=np.repeat(np.arange(n_repeats), n - n_cal), covered=covered.ravel()))
    if rank > n_cal:
        warnings.append(_too_small(n_cal, level))
    intervals = pd.concat(blocks, ignore_index=True)
    of_split = intervals.groupby([*keys, "split"], sort=False)
    splits = of_split.agg(
        quantile=("quantile", "first"), coverage=("covered", "mean"), median_width=("width", "median"),
        median_standard_error=("standard_error", "median"),
    ).reset_index()  # fmt: skip
    splits.insert(len(keys) + 1, "n_calibration", n_cal)
    splits.insert(len(keys) + 2, "n_test", n - n_cal)
    return ConformalStudy(
        splits=splits,
        intervals=intervals,
        summary=_summary(splits, keys, level, n_cal),
        settings=ConformalSettings(
            level=float(exact_level(level)), n_repeats=n_repeats, n_calibration=n_cal, n_test=n - n_cal, seed=seed
        ),
        warnings=warnings,
    )


def _summary(splits: pd.DataFrame, keys: list[str], level: Level, n_calibration: int) -> pd.DataFrame:
    grouped = splits.groupby(keys, sort=False)
    summary = pd.DataFrame(
        {
            "coverage": grouped["coverage"].mean(),
            "expected_coverage": expected_coverage(n_calibration, level),
            "nominal": float(exact_level(level)),
            "median_width": grouped["median_width"].mean(),
            "narrowest": grouped["median_width"].min(),
            "widest": grouped["median_width"].max(),
            "quantile": grouped["quantile"].mean(),
            "median_standard_error": grouped["median_standard_error"].mean(),
        }
    )
    # Intervals of infinite length hold everything: no evidence either.
    endless = ~np.isfinite(summary["quantile"])
    return summary.assign(coverage=summary["coverage"].mask(endless))


def width_decomposition(soft_elo: HeldOutRatings, level: Level | None = None) -> pd.DataFrame:
    """Return the width of the intervals as 2 * quantile * standard error (Figure 17), with all models calibrating.

    Args:
        soft_elo: a `SoftElo`, or its ``models`` table.
        level: 1 - alpha; by default .9, or the largest level that the models support.

    Returns:
        One row per method: ``quantile``, ``median_standard_error`` (Elo), ``width`` (Elo), and the last three relative
        to the first method's: ``quantile_ratio``, ``standard_error_ratio``, ``width_ratio`` (their product).
    """
    table, warnings = usable_models(soft_elo)
    level, lowered = chosen_level(level, _fewest(table), "widths")
    warnings += lowered
    keys = grouping(table)
    rows = []
    for key, block in table.groupby(keys, sort=False):
        scores = conformity_scores(block["residual"], block["standard_error"])
        quantile = conformal_quantile(scores, level)
        if not np.isfinite(quantile):
            warnings.append(_too_small(len(scores), level, block))
        error = float(block["standard_error"].median())
        names = dict(zip(keys, key, strict=True))
        rows.append({**names, "quantile": quantile, "median_standard_error": error, "width": 2 * quantile * error})
    result = pd.DataFrame(rows)
    columns = {"quantile_ratio": "quantile", "standard_error_ratio": "median_standard_error", "width_ratio": "width"}
    for ratio, column in columns.items():
        first = result.groupby("judge")[column].transform("first") if "judge" in keys else result[column].iloc[0]
        values = result[column] / first
        result[ratio] = values.where(np.isfinite(result["quantile"]) | (column == "median_standard_error"))
    result = result.set_index(keys)
    result.attrs = {"warnings": warnings, "settings": {"level": float(exact_level(level))}}
    return result


def _fewest(table: pd.DataFrame) -> int:
    """Return models of the method that has the fewest."""
    return int(table.groupby(grouping(table), sort=False).size().min())


def _with_intervals(block: pd.DataFrame, quantile: Float) -> pd.DataFrame:
    columns = [*grouping(block), "model", "human_elo", "judge_elo", "standard_error"]
    half = _width(quantile, block["standard_error"].to_numpy(float)) / 2
    rating = block["judge_elo"].to_numpy(float)
    return block[columns].assign(quantile=quantile, lower=rating - half, upper=rating + half, width=2 * half)


def _width(quantile: Float, standard_error: Float) -> Float:
    # An infinite quantile leaves an infinite interval also where there is no spread.
    finite = np.isfinite(quantile)
    return np.where(finite, 2 * np.where(finite, quantile, 0.0) * standard_error, np.inf)


def _too_small(n: int, level: Level, block: pd.DataFrame | None = None) -> str:
    whose = "" if block is None else f" ({', '.join(str(block[k].iloc[0]) for k in grouping(block))})"
    return (
        f"{counted(n, 'calibration model')}{whose} {'supports' if n == 1 else 'support'} levels up to "
        f"{supported_level_text(n)}, so intervals at {float(exact_level(level)):g} are infinite; "
        f"{counted(smallest_calibration(level), 'model is', 'models are')} needed"
    )
