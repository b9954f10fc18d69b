"""Split conformal intervals for ratings: exact quantiles, the retrospective study, and what makes a width.

A model's score is |residual| / standard error; its interval is rating +- q * standard error, with q a conformal
quantile of the scores of other models (arXiv:2606.13221, Eqs. 2-4; DOI 10.1080/01621459.2017.1307116). This holds for
models with as many battles as the others have, as in a retrospective study. `jaxeval.softelo.noise_matching` is for new
models with any number of battles.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, nextafter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from jaxeval.checks import checked_integer
from jaxeval.softelo.residuals import grouping
from jaxeval.wording import counted

Float = NDArray[np.float64]
#: A level as typed: a float is read by its shortest decimal form, so 0.9 is nine tenths.
Level = float | str | Fraction
#: Level of the intervals where none is given and there are enough calibration models for it.
DEFAULT_LEVEL = Fraction(9, 10)


@dataclass(frozen=True)
class ConformalSettings:
    """What made a retrospective study."""

    level: float
    n_repeats: int
    n_calibration: int  # models of each split that calibrate
    n_test: int  # and that are tested
    seed: int


@dataclass(frozen=True, eq=False)
class ConformalStudy:
    """Random splits of the models into calibration and test halves, the same splits for every method.

    ``splits`` has one row a method and split: ``quantile``, ``coverage``, ``median_width`` (Elo),
    ``median_standard_error`` (Elo, test models). ``summary`` has one row a method: means over the splits, the range of
    the median widths, and beside the ``nominal`` level the ``expected_coverage`` that the ranks allow.
    """

    splits: pd.DataFrame
    intervals: pd.DataFrame  # one row a method, split and test model: lower, upper (Elo), covered
    summary: pd.DataFrame
    settings: ConformalSettings
    warnings: list[str]


def exact_level(level: Level) -> Fraction:
    """The level as the fraction that its decimal form says.

    Raises:
        ValueError: it is no number strictly between 0 and 1.
    """
    try:
        exact = Fraction(str(level))
    except ValueError:
        exact = Fraction(0)
    if not 0 < exact < 1:
        raise ValueError(f"level must be a number strictly between 0 and 1, got {level!r}")
    return exact


def conformal_rank(n: int, level: Level) -> int:
    """Rank ceil(level * (n + 1)) of the conformal quantile among n scores, in exact arithmetic; n + 1 if infinite."""
    if n < 0:
        raise ValueError(f"the number of scores must not be negative, got {n}")
    return ceil(exact_level(level) * (n + 1))


def expected_coverage(n: int, level: Level) -> float:
    """Coverage of split conformal intervals from n exchangeable scores: ceil(level * (n + 1)) / (n + 1)."""
    return conformal_rank(n, level) / (n + 1)


def largest_supported_level(n: int) -> float:
    """The largest level, n / (n + 1) rounded down, at which n scores give a finite interval."""
    if n < 1:
        raise ValueError(f"no level is supported without calibration scores, got n={n}")
    level = n / (n + 1)
    while Fraction(str(level)) > Fraction(n, n + 1):
        level = nextafter(level, 0.0)
    return level


def chosen_level(level: Level | None, n: int, use: str) -> tuple[Fraction, list[str]]:
    """The level of intervals from n scores: the one that is given, or the default as far as n scores support it.

    A default that n scores do not support is lowered to the largest level that they do, rounded down to four decimals.
    A level that is given is never changed.

    Args:
        level: 1 - alpha, or None for the default.
        n: scores.
        use: what the level is for, in words.

    Returns:
        The level, and a sentence where it was lowered.
    """
    if level is not None:
        return exact_level(level), []
    if n < 1 or conformal_rank(n, DEFAULT_LEVEL) <= n:
        return DEFAULT_LEVEL, []
    text = supported_level_text(n)
    return Fraction(text), [
        f"{use}: {counted(n, 'calibration model supports', 'calibration models support')} levels up to {text}, so the "
        f"default level of {float(DEFAULT_LEVEL):g} is lowered to {text}; a level that you name is never changed"
    ]


def smallest_calibration(level: Level) -> int:
    """The fewest calibration scores that give a finite interval at ``level``."""
    exact = exact_level(level)
    return ceil(exact / (1 - exact))


def conformal_quantile(
    scores: ArrayLike, level: Level, weights: ArrayLike | None = None, new_weight: float | None = None
) -> float:
    """The conformal quantile of (n,) ``scores``: the ceil(level * (n + 1))-th smallest; infinite when that exceeds n.

    Args:
        scores: finite or +inf; for ratings |residual| / standard error.
        level: 1 - alpha, taken by its decimal form and compared exactly.
        weights: (n,) weights >= 0, for calibration models that are not exchangeable with the new one: likelihood
            ratios of new against calibration population (weighted conformal prediction, arXiv:1904.06019). The
            quantile is then the smallest score up to which the weights reach ``level`` of their sum, the new model's
            included.
        new_weight: the new model's own weight; the mean of ``weights`` by default. Equal weights give the
            unweighted quantile.

    Raises:
        ValueError: a level outside (0, 1), a NaN score, weights of another length, negative, infinite or all zero.
    """
    values = np.asarray(scores, float)
    if values.ndim != 1:
        raise ValueError(f"scores must be one-dimensional, got shape {values.shape}")
    missing = np.isnan(values)
    if missing.any():
        raise ValueError(
            f"{missing.sum():,} of {counted(len(values), 'score is', 'scores are')} NaN (first at "
            f"{int(missing.argmax())}): leave out models without a residual or a standard error"
        )
    if weights is None:
        if new_weight is not None:
            raise ValueError("new_weight has a meaning only beside weights")
        rank = conformal_rank(len(values), level)
        return float(np.partition(values, rank - 1)[rank - 1]) if rank <= len(values) else float("inf")
    return _weighted_quantile(values, exact_level(level), np.asarray(weights, float), new_weight)


def _weighted_quantile(values: Float, level: Fraction, weights: Float, new_weight: float | None) -> float:
    if weights.shape != values.shape:
        raise ValueError(
            f"{counted(len(values), 'score needs', 'scores need')} as many weights, got shape {weights.shape}"
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any() or not weights.any():
        raise ValueError(f"weights must be finite, >= 0 and not all zero; {bad.sum():,} of {len(weights):,} are not")
    exact = [Fraction(float(w)) for w in weights]
    own = sum(exact) / len(exact) if new_weight is None else Fraction(float(new_weight))
    if own < 0:
        raise ValueError(f"new_weight must be >= 0, got {new_weight}")
    needed, reached = level * (sum(exact) + own), Fraction(0)
    for i in np.argsort(values, kind="stable"):
        reached += exact[i]
        if reached >= needed:
            return float(values[i])
    return float("inf")


def conformal_quantile_by_stratum(scores: ArrayLike, strata: ArrayLike, level: Level) -> pd.DataFrame:
    """A conformal quantile for each stratum from its own scores (Mondrian conformal prediction).

    For residuals whose spread differs between strata (model families, strength). Each stratum needs enough scores of
    its own: ``quantile`` is infinite where it has too few.

    Returns:
        One row a stratum: ``n``, ``quantile``, ``expected_coverage`` (NaN where infinite), ``largest_level``.
    """
    values, labels = np.asarray(scores, float), np.asarray(strata)
    if labels.shape != values.shape:
        raise ValueError(
            f"{counted(len(values), 'score needs', 'scores need')} as many strata, got shape {labels.shape}"
        )
    missing = pd.isna(labels)
    if missing.any():
        raise ValueError(
            f"{missing.sum():,} of {counted(len(labels), 'stratum is', 'strata are')} missing: name one for every score"
        )
    rows = {}
    for stratum in pd.unique(labels):
        own = values[labels == stratum]
        quantile = conformal_quantile(own, level)
        coverage = expected_coverage(len(own), level) if np.isfinite(quantile) else np.nan
        rows[stratum] = (len(own), quantile, coverage, largest_supported_level(len(own)))
    columns = ["n", "quantile", "expected_coverage", "largest_level"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return table.rename_axis("stratum").sort_index()


def conformity_scores(residual: ArrayLike, standard_error: ArrayLike) -> Float:
    """|residual| / standard error (Eq. 3). Without spread a miss is infinite and a hit 0; NaN if either is missing."""
    size, error = np.abs(np.asarray(residual, float)), np.asarray(standard_error, float)
    without = np.where(size > 0, np.inf, size)
    return np.where(error > 0, size / np.where(error > 0, error, 1.0), np.where(np.isnan(error), np.nan, without))


def leave_one_out_intervals(soft_elo: Any, level: Level | None = None) -> pd.DataFrame:
    """Interval of every model, calibrated on all others (Figure 1c).

    How many of these intervals hold the human rating is arithmetic: ceil(level * M) of M, whatever the judge. It is
    evidence of nothing and not in the table. `conformal_study` tests coverage.

    Args:
        soft_elo: a `SoftElo`, or its ``models`` table.
        level: 1 - alpha; by default .9, or the largest level that the models support.

    Returns:
        One row a model and method: ``model, method, human_elo, judge_elo, standard_error, quantile, lower, upper,
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
    soft_elo: Any,
    level: Level | None = None,
    n_repeats: int = 5,
    n_calibration: int | None = None,
    seed: int = 0,
) -> ConformalStudy:
    """Coverage and width over random splits of the models into calibration and test (section 5.3, Table 3).

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
    split_rows, interval_rows = [], []
    for key, unsorted in groups:
        block = unsorted.set_index("model").loc[models].reset_index()
        scores = conformity_scores(block["residual"], block["standard_error"])
        ordered = np.sort(scores[calibration], axis=1)
        quantile = ordered[:, rank - 1] if rank <= n_cal else np.full(n_repeats, np.inf)
        error = block["standard_error"].to_numpy()[test]
        covered = scores[test] <= quantile[:, None]
        names = dict(zip(keys, key, strict=True))
        split_rows.append(
            pd.DataFrame(
                {
                    **names,
                    "split": np.arange(n_repeats),
                    "n_calibration": n_cal,
                    "n_test": n - n_cal,
                    "quantile": quantile,
                    "coverage": covered.mean(1),
                    "median_width": _width(quantile, np.median(error, axis=1)),
                    "median_standard_error": np.median(error, axis=1),
                }
            )
        )
        for r in range(n_repeats):
            part = _with_intervals(block.iloc[test[r]], np.full(n - n_cal, quantile[r]))
            interval_rows.append(part.assign(split=r, covered=covered[r]))
    if rank > n_cal:
        warnings.append(_too_small(n_cal, level))
    splits = pd.concat(split_rows, ignore_index=True)
    settings = ConformalSettings(float(exact_level(level)), n_repeats, n_cal, n - n_cal, seed)
    return ConformalStudy(
        splits=splits,
        intervals=pd.concat(interval_rows, ignore_index=True),
        summary=_summary(splits, keys, level, n_cal),
        settings=settings,
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


def width_decomposition(soft_elo: Any, level: Level | None = None) -> pd.DataFrame:
    """Width of the intervals as 2 * quantile * standard error (Figure 17), with all models calibrating.

    Args:
        soft_elo: a `SoftElo`, or its ``models`` table.
        level: 1 - alpha; by default .9, or the largest level that the models support.

    Returns:
        One row a method: ``quantile``, ``median_standard_error`` (Elo), ``width`` (Elo), and the last three relative
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


def usable_models(soft_elo: Any) -> tuple[pd.DataFrame, list[str]]:
    """Rows of a `SoftElo` or its table that have a residual and a standard error, and a sentence on the others.

    Rows that `soft_elo` flagged and left out of its averages do not calibrate either.
    """
    table = soft_elo if isinstance(soft_elo, pd.DataFrame) else soft_elo.models
    needed = ["model", "method", "human_elo", "judge_elo", "residual", "standard_error"]
    absent = [c for c in needed if c not in table.columns]
    if absent:
        raise ValueError(f"not a table of held-out ratings: it has no column {', '.join(map(repr, absent))}")
    finite = np.isfinite(table[["residual", "standard_error"]].to_numpy(float)).all(1)
    if "averaged" in table.columns:
        finite &= table["averaged"].to_numpy(bool)
    used = table[finite]
    if len(used) == 0:
        found = {str(f) for f in table.get("flags", []) if f}
        if "n_clusters" in table.columns and (table["n_clusters"] < 2).any():
            found.add("all battles of a model lie in one cluster")
        flags = "; ".join(sorted(found))
        raise ValueError(
            f"none of {len(table):,} held-out ratings has both a residual and a standard error, unflagged: nothing to "
            f"calibrate{f' ({flags})' if flags else ''}"
        )
    warnings = []
    if not finite.all():
        names = ", ".join(map(str, table.loc[~finite, "model"].unique()[:8]))
        warnings.append(
            f"left out: {counted((~finite).sum(), 'row')} without a residual or a standard error, or flagged ({names})"
        )
    return used.reset_index(drop=True), warnings


def _fewest(table: pd.DataFrame) -> int:
    """Models of the method that has the fewest."""
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


def supported_level_text(n: int) -> str:
    """The largest supported level, four decimals, rounded down; in words where there is none."""
    return "none" if n < 1 else f"{int(10_000 * Fraction(n, n + 1)) / 10_000:g}"
