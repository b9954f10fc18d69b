"""Study held-out ratings: subsets of a budget, slices by a column, label smoothing, and conformal intervals.

A part is rated by the two steps of Algorithm 1 (arXiv:2606.13221): per held-out model a temperature and anchor
strengths from the part's battles without it, then its strength alone. All folds of many parts are fitted in one call.

Split conformal intervals hold for models with as many battles as the calibration models have.
`jaxeval.softelo.calibrated_methods` is for new models with any number of battles.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.checks import checked_integer, checked_positive
from jaxeval.data.groups import members_by, told_overlap
from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.kernels.solve import Status
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.show.cells import with_kinds
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
from jaxeval.softelo.held_out import Folds, above_human, hold_out, n_lanes
from jaxeval.softelo.judge_agreement import grouping, usable_models
from jaxeval.softelo.soft_elo import HeldOutRatings, soft_elo
from jaxeval.softelo.temperature import compress, smoothing
from jaxeval.statistics.clusters import numbered
from jaxeval.wording import counted, named


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
    settings: dict[str, Any]  # level, n_repeats, seed; n_calibration and n_test models of each split
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
        if not scores.any():
            warnings.append(
                f"{counted(len(scores), 'model')}, and the judge is off none by {block['method'].iloc[0]} ratings: "
                "intervals of no length say that no error was seen, not that there is none"
            )
    result = pd.concat(blocks, ignore_index=True)
    result.attrs |= {"warnings": warnings, "settings": {"level": float(exact_level(level)), "design": "leave-one-out"}}
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
    settings = {
        "level": float(exact_level(level)), "n_repeats": n_repeats, "seed": seed, "n_calibration": n_cal,
        "n_test": n - n_cal,
    }  # fmt: skip
    return ConformalStudy(splits, intervals, _summary(splits, keys, level, n_cal), settings, warnings)


def _summary(splits: pd.DataFrame, keys: list[str], level: Level, n_calibration: int) -> pd.DataFrame:
    summary = splits.groupby(keys, sort=False).agg(
        coverage=("coverage", "mean"), median_width=("median_width", "mean"), narrowest=("median_width", "min"),
        widest=("median_width", "max"), quantile=("quantile", "mean"),
        median_standard_error=("median_standard_error", "mean"),
    )  # fmt: skip
    summary.insert(1, "expected_coverage", expected_coverage(n_calibration, level))
    summary.insert(2, "nominal", float(exact_level(level)))
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
    return int(table.groupby(grouping(table), sort=False).size().min())


def _with_intervals(block: pd.DataFrame, quantile: Float) -> pd.DataFrame:
    columns = [*grouping(block), "model", "human_elo", "judge_elo", "standard_error"]
    # An infinite quantile leaves an infinite interval also where there is no spread.
    finite, error = np.isfinite(quantile), block["standard_error"].to_numpy(float)
    half = np.where(finite, 2 * np.where(finite, quantile, 0.0) * error, np.inf) / 2
    rating = block["judge_elo"].to_numpy(float)
    ends = {"quantile": quantile, "lower": rating - half, "upper": rating + half, "width": 2 * half}
    return with_kinds(block[columns].assign(**ends), ends_of="judge_elo")


def _too_small(n: int, level: Level, block: pd.DataFrame | None = None) -> str:
    whose = "" if block is None else f" ({', '.join(str(block[k].iloc[0]) for k in grouping(block))})"
    return (
        f"{counted(n, 'calibration model')}{whose} {'supports' if n == 1 else 'support'} levels up to "
        f"{supported_level_text(n)}, so intervals at {float(exact_level(level)):g} are infinite; "
        f"{counted(smallest_calibration(level), 'model is', 'models are')} needed"
    )


Rows = NDArray[np.intp]

#: Budgets of Figure 6, battles per model.
BUDGETS = (5, 10, 20, 50, 100, 200)
_METHODS = ("hard", "soft")
#: Constants of label smoothing, those of Table 8.
_SMOOTHING = (0.55, 0.65, 0.75, 0.85, 0.95)


@spelled_out()
def budget_sweep(
    battles: JudgedBattles, budgets: Sequence[float] = BUDGETS, n_repeats: int = 20, ridge: float = 0.01,
    seed: int = 0, *, cluster: str | None = None, **running: Unpack[RunOptions],
) -> pd.DataFrame:  # fmt: skip
    """Return the temperature and held-out MAE against the annotation budget b = N / M (Figure 6).

    Each repeat draws round(b M) of the battles, or whole clusters of them, without replacement. The judge's rating
    rests on that subset alone: on its scores, and on the human labels that the temperature needs. It is compared with
    the human rating from all battles.

    Args:
        battles: with human labels.
        budgets: battles per model; those beyond the data are left out. All battles make one more row.
        n_repeats: number of subsets per budget.
        ridge: > 0, as in `soft_elo`.
        seed: of the subsets.
        cluster: column of the clusters (prompts, voters) that subsets hold whole. They are added in random order until
            the budget is reached; the last one may exceed it.

    Returns:
        One row per method, budget and repeat: ``method, budget, repeat, n_battles, beta`` (mean over folds, NaN for
        hard), ``mae`` (Elo), ``n_models`` in it, ``n_left_out`` (no battles, anchors apart, or no temperature).
        ``attrs["warnings"]`` says what was left out.
    """
    checked_positive("ridge", ridge, ": subsets separate models")
    checked_integer("n_repeats", n_repeats, 1)
    n, m = len(battles.model_a), len(battles.models)
    sizes = {float(b): round(float(b) * m) for b in budgets}
    fitting = {b: size for b, size in sizes.items() if 0 < size < n}
    warnings = []
    if len(fitting) < len(sizes):
        beyond = ", ".join(f"{b:g}" for b in sizes if b not in fitting)
        warnings.append(
            f"left out: budgets of {beyond} battles per model, since {counted(n, 'battle')} between "
            f"{counted(m, 'model')} are {n / m:.1f} per model"
        )
    rng = np.random.default_rng(seed)
    drawn = numbered(np.arange(n) if cluster is None else battles.codes(cluster)[0])
    n_of = np.bincount(drawn)
    parts, labels = [], []
    for budget, size in fitting.items():
        for repeat in range(n_repeats):
            parts.append(np.flatnonzero(_first_to_reach(size, rng.permutation(len(n_of)), n_of)[drawn]))
            labels.append((budget, repeat))
    parts.append(np.arange(n))
    labels.append((n / m, 0))

    sets = [compress(battles, rows) for rows in parts]
    settings = {"ridge": ridge, "seed": seed, "n_repeats": n_repeats, "cluster": cluster}
    with open_run(
        lambda: Identity({**settings, "budgets": list(fitting)}, sets, noun="battles"),
        n_lanes(sets, _METHODS), "folds of subsets", **running,
    ) as run:  # fmt: skip
        all_folds = hold_out(sets, _METHODS, float(ridge), run=run)
    whole = all_folds[-1]
    human = _placed(whole, whole)[0]  # of all battles
    table = []
    for rows, (budget, repeat), folds in zip(parts, labels, all_folds, strict=True):
        placed, betas = _placed(folds, whole), _positive(folds)
        for method, theta in zip(_METHODS, placed[1:], strict=True):
            error = np.abs(ELO_PER_LOGIT * (theta - human))
            used = np.isfinite(error)
            known = np.isfinite(betas) & (method == "soft")
            beta = betas[known].mean() if known.any() else np.nan
            mae = error[used].mean() if used.any() else np.nan
            table.append((method, budget, repeat, len(rows), beta, mae, int(used.sum()), int(m - used.sum())))
    columns = ["method", "budget", "repeat", "n_battles", "beta", "mae", "n_models", "n_left_out"]
    result = pd.DataFrame(table, columns=columns)
    lost = result[result["n_left_out"] > 0]
    if len(lost):
        warnings.append(
            f"in {len(lost):,} of {counted(len(result), 'row')} some models (at most {lost['n_left_out'].max():,}) "
            "have no held-out rating: no battles in the subset, anchors that fall apart, or no temperature; MAE is "
            "over the others"
        )
    result.attrs = {"warnings": warnings, "settings": settings}
    return with_kinds(result, elo="mae")


def _first_to_reach(size: int, order: Rows, n_of: Rows) -> Bool:
    """Return (G,) clusters of (G,) ``n_of`` battles that, taken in ``order``, hold ``size`` battles or just more."""
    chosen = np.zeros(len(order), bool)
    chosen[order[: np.searchsorted(np.cumsum(n_of[order]), size) + 1]] = True
    return chosen


@spelled_out()
def slice_ratings(
    battles: JudgedBattles, by: str, ridge: float = 0.01, *, min_battles: int = 5, min_models: int = 3,
    full: bool = False, **running: Unpack[RunOptions],
) -> pd.DataFrame:  # fmt: skip
    """Give held-out accuracy in slices of a column, such as languages, against the *global* human rating (Appendix E).

    A slice in which only some models met has a zero of its own. The rating of each model is moved to the global scale
    by the mean of the slice's other models.

    Args:
        battles: with human labels.
        by: column of the slices, whose categories may overlap as in `bootstrap`.
        ridge: > 0, as in `soft_elo`.
        min_battles: models with fewer battles in a slice are not rated there.
        min_models: slices in which fewer models can be rated are left out, and named.
        full: return the ratings, one row per slice, method and model, instead of their summary.

    Returns:
        One row per slice and method: ``slice, method, n_battles, n_models, mae`` (Elo), ``spearman``, ``kendall``,
        ``beta`` (mean over folds). Methods: hard; soft, with the temperature of all battles; and soft_own, with the
        slice's own. ``attrs`` holds ``warnings`` and ``settings``.
    """
    checked_positive("ridge", ridge, ": slices separate models")
    members = members_by(battles.column(by), by, "drop", battles.rows)
    codes, names = members.codes, members.groups
    parts = [compress(battles, members.rows(np.flatnonzero(codes == k))) for k in range(len(names))]
    sets = [*parts, compress(battles)]
    with open_run(
        lambda: Identity({"ridge": ridge}, sets, noun="battles"),
        n_lanes(sets, _METHODS) + n_lanes(parts, ("soft",)), "folds of slices", **running,
    ) as run:  # fmt: skip
        *of_slices, whole = hold_out(sets, _METHODS, float(ridge), run=run)
        human, pooled = _placed(whole, whole)[0], _positive(whole)
        with_pooled = hold_out(parts, ("soft",), float(ridge), beta=pooled, run=run, section="pooled-")
    labels, warnings = [], []
    small: dict[Hashable, None] = {}  # in order
    n_grouped = len(np.unique(members.rows(codes >= 0)))
    if n_grouped < battles.n_battles:
        without = counted(battles.n_battles - n_grouped, "battle")
        warnings.append(f"in no slice: {without} without a value of {by!r}")
    warnings += filter(None, [told_overlap(members.overlapping, n_grouped, int((codes >= 0).sum()))])
    for name, mine, theirs in zip(names, of_slices, with_pooled, strict=True):
        n_of, (_, hard, soft_own), (_, soft) = mine.n[1].sum(1), _placed(mine, whole), _placed(theirs, whole)
        labels += [
            (name, "hard", n_of, np.full(len(n_of), np.nan), hard),
            (name, "soft", n_of, pooled, soft),
            (name, "soft_own", n_of, _positive(mine), soft_own),
        ]
    summary, ratings = [], []
    for name, method, n_of, beta, theta in labels:
        used = np.flatnonzero(np.isfinite(theta) & np.isfinite(human) & (n_of >= min_battles))
        if len(used) < min_models:
            small[name] = None
            continue
        judge_elo, human_elo = ELO_PER_LOGIT * theta[used], ELO_PER_LOGIT * human[used]
        of_part, residual = {"slice": name, "method": method}, judge_elo - human_elo
        ratings.append(pd.DataFrame({**of_part, "model": battles.models[used], "residual": residual}))
        varied = np.ptp(judge_elo) > 0 and np.ptp(human_elo) > 0
        summary.append({
            **of_part, "n_battles": int(n_of.sum() / 2), "n_models": len(used), "mae": np.abs(residual).mean(),
            "spearman": scipy.stats.spearmanr(judge_elo, human_elo).statistic if varied else np.nan,
            "kendall": scipy.stats.kendalltau(judge_elo, human_elo).statistic if varied else np.nan,
            "beta": np.nan if method == "hard" else float(np.mean(beta[used])),
        })  # fmt: skip
    if small:
        warnings.append(
            f"left out: slices in which fewer than {counted(min_models, 'model')} can be rated: {named(list(small))}"
        )
    if not summary:
        raise ValueError(
            f"no slice of {by!r} rates {counted(min_models, 'model')}: slices are too small; join some of them, "
            "or in Python lower min_battles= and min_models="
        )
    result = pd.concat(ratings, ignore_index=True) if full else pd.DataFrame(summary)
    result.attrs = {"warnings": warnings, "settings": {"by": by, "ridge": ridge}}
    return with_kinds(result, elo="mae residual")


def label_smoothing_sweep(
    battles: JudgedBattles, constants: Sequence[float] = _SMOOTHING, ridge: float = 0.01
) -> pd.DataFrame:
    """Return the held-out accuracy of label smoothing by its constant, all in one call (Table 8 of arXiv:2606.13221).

    A hard label 1 or 0 becomes c or 1 - c: this is Soft-Elo from the sign of the score difference alone. The constant
    with the least error is known only from the errors themselves. Unlike the temperature, it is no estimate from the
    battles. Constants c lie in [0.5, 1]; hard, of constant 1, and soft, of none, come first. The error is in Elo, with
    its 95 % interval over models.
    """
    names = [f"smooth:{float(c)!r}" for c in dict.fromkeys(constants)]
    held_out = soft_elo(battles, ridge, 0, methods=("hard", "soft", *names))
    table = held_out.summary.reset_index()
    table.insert(1, "constant", [np.nan if name == "soft" else smoothing(name) for name in table["method"]])
    table = table[["method", "constant", "n_models", "mae", "mae_lower", "mae_upper", "spearman", "kendall"]]
    table.attrs = {"warnings": held_out.warnings, "settings": {"ridge": ridge}}
    return with_kinds(table, elo="mae")


def _positive(folds: Folds) -> Float:
    """Return (M,) temperatures that mean agreement with the scores; NaN where the battles do not determine one."""
    usable = (folds.beta_status == Status.CONVERGED) & (folds.beta > 0)
    return np.where(usable, folds.beta, np.nan)


def _placed(folds: Folds, whole: Folds) -> Float:
    """Return (K, M) held-out log-strengths, the judge's on the scale of the human ones of the ``whole`` data.

    NaN where the part cannot place the model. Soft targets come last.
    """
    theta = np.where(folds.converged & ~folds.apart, folds.theta, np.nan)
    theta[1:] -= above_human(folds, whole)
    theta[-1] = np.where(np.isnan(_positive(folds)) & (len(theta) > 1), np.nan, theta[-1])
    return theta
