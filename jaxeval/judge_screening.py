"""Which judges repeat themselves: reliability of their runs, their agreement with each other, and what pooling buys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from jaxeval.anchored import Link, anchored_elo
from jaxeval.anchored_scores import COUNTS, count_verdicts
from jaxeval.anchored_verdicts import AnchoredVerdicts
from jaxeval.columns import DataError
from jaxeval.gauge import ELO_PER_LOGIT
from jaxeval.icc import Icc3, icc3, single_run_reliability
from jaxeval.item_resampling import resampled_sums
from jaxeval.progress import progress_bar
from jaxeval.quantiles import bounds_with_failures

Float = NDArray[np.float64]
Int = NDArray[np.int64]

STRONG = 0.9


@dataclass(frozen=True, eq=False)
class JudgeScreen:
    """Judges by the reliability of their runs.

    ``table`` has a row per judge: ``single`` and ``average``, ICC(3,1) and ICC(3,k), with F intervals and percentile
    intervals of resampled items (``boot_``); ``n`` answers judged in every run, ``n_incomplete`` left out; ``strong``.
    ``correlation`` is what judges' run means of the same answers correlate by; ``bound`` what it would be at least,
    sqrt(rho_j rho_j'), if all judges shared the same item effects, which no run of one judge can show.
    """

    table: pd.DataFrame
    correlation: pd.DataFrame
    bound: pd.DataFrame
    warnings: list[str]
    threshold: float
    k: int

    @property
    def strong(self) -> list[Any]:
        """Judges that pass."""
        return list(self.table.index[self.table["strong"]])


def screen_judges(
    verdicts: AnchoredVerdicts,
    threshold: float = STRONG,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    progress: bool | None = None,
) -> JudgeScreen:
    """Reliability of every judge's repeated runs over all answers; judges with ICC(3,k) of ``threshold`` are strong.

    Items are resampled whole, with all judges, models and references, in one batched call.

    Raises:
        DataError: there is one run only.
        ValueError: ``n_resamples`` is less than 1.
    """
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1, got {n_resamples}")
    panel, tables = _panel(verdicts)
    k = tables.shape[-1]
    if k < 2:
        raise DataError("reliability needs repeated runs: name the column that numbers them with run=")
    found = icc3(tables, level, missing="complete")
    with progress_bar(n_resamples, "resamples", progress) as advance:
        draws = _resampled_icc(panel, tables, n_resamples, seed, advance)
    table: dict[str, Any] = {}
    for name, drawn, least in zip(("single", "average"), draws, (-1.0, -np.inf), strict=True):
        table[name], table[f"{name}_lower"], table[f"{name}_upper"] = (
            getattr(found, name), getattr(found, f"{name}_lower"), getattr(found, f"{name}_upper"),
        )  # fmt: skip
        _, lower, upper, _ = bounds_with_failures(drawn, level, least, 1.0)
        table[f"{name}_boot_lower"], table[f"{name}_boot_upper"] = lower, upper
    judges = verdicts.levels["judge"].rename("judge")
    frame = pd.DataFrame(table, judges)
    runs = (~np.isnan(tables)).sum(-1)
    frame["n"], frame["n_incomplete"], frame["status"] = found.n, ((runs > 0) & (runs < k)).sum(1), found.status
    frame["strong"] = frame["average"] >= threshold
    correlation = _correlation(_run_means(tables))
    rho = np.sqrt(np.maximum(frame["average"].to_numpy(), 0))
    bound = np.outer(rho, rho)
    np.fill_diagonal(bound, 1.0)
    return JudgeScreen(
        frame,
        pd.DataFrame(correlation, judges, judges),
        pd.DataFrame(bound, judges, judges),
        list(_warnings(found, frame, correlation, bound, threshold)),
        threshold,
        k,
    )


def _warnings(found: Icc3, table: pd.DataFrame, correlation: Float, bound: Float, threshold: float) -> Iterator[str]:
    n_judges = len(table)
    partial = table[table["n_incomplete"] > 0]
    if len(partial):
        yield (
            f"{partial['n_incomplete'].sum():,} answers that {len(partial)} judges judged in some runs, not in all "
            f"{found.k}, are left out of their reliability"
        )
    none = partial.index[partial["n"] == 0]
    if len(none):
        yield (
            f"no answer has all {found.k} runs of {', '.join(map(str, none[:5]))}, whose reliability is unknown: "
            "number the runs alike for all judges, and screen judges with fewer runs on their own"
        )
    unclear = table.index[(table["average_lower"] < threshold) & table["strong"]]
    if len(unclear):
        yield f"the intervals of {', '.join(map(str, unclear[:5]))} reach below {threshold:g}: more answers would tell"
    low = [
        (table.index[i], table.index[j], correlation[i, j], bound[i, j])
        for i in range(n_judges) for j in range(i) if correlation[i, j] < bound[i, j] - 0.02
    ]  # fmt: skip
    if low:
        i, j, seen, promised = max(low, key=lambda x: x[3] - x[2])
        yield (
            f"{len(low):,} of {n_judges * (n_judges - 1) // 2:,} pairs of judges correlate less than their "
            f"reliabilities promise ({j} and {i}: {seen:.2f}, promised {promised:.2f}): judges repeat themselves, but "
            "differ from each other, so that one is not as good as several"
        )


def _panel(verdicts: AnchoredVerdicts) -> tuple[Int, Float]:
    """(R,) item of every judged answer, and (J, R, K) outcomes by judge and run, NaN where there is none."""
    number, answers = verdicts.groups(["model", "anchor", "item"])
    items = np.empty(len(answers), np.int64)
    items[number] = verdicts.number["item"]
    tables = np.full((len(verdicts.levels["judge"]), len(answers), len(verdicts.levels["run"])), np.nan)
    tables[verdicts.number["judge"], number, verdicts.number["run"]] = verdicts.outcome
    return items, tables


def _run_means(tables: Float) -> Float:
    """(J, R) means over the runs that there are, NaN where there is none."""
    there = ~np.isnan(tables)
    with np.errstate(invalid="ignore"):
        return np.where(there, tables, 0.0).sum(-1) / there.sum(-1)


def _resampled_icc(items: Int, tables: Float, n_resamples: int, seed: int, advance: Any) -> tuple[Float, Float]:
    """(B, J) ICC(3,1) and ICC(3,k) of resampled items."""
    n_judges, _, k = tables.shape
    complete = np.asarray(~np.isnan(tables).any(-1))
    used = np.where(complete[..., None], tables, 0.0)
    with np.errstate(invalid="ignore"):
        centre = used.sum((1, 2)) / (complete.sum(1) * k)
    used = np.where(complete[..., None], used - centre[:, None, None], 0.0)
    mean = used.mean(-1)
    sums = np.stack([complete, mean, mean**2, (used**2).sum(-1)], -1)
    columns = np.concatenate([sums, used], -1)
    number, _ = pd.factorize(items, sort=True)
    per_item = np.zeros((number.max() + 1, n_judges, 4 + k))
    np.add.at(per_item, number, columns.transpose(1, 0, 2))
    drawn = resampled_sums(per_item.reshape(len(per_item), -1), n_resamples, seed, "icc", advance=advance)
    drawn = drawn.reshape(n_resamples, n_judges, 4 + k)
    n, total, squares, all_squares = np.moveaxis(drawn[..., :4], -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        between = k * (squares - total**2 / n)
        of_runs = (drawn[..., 4:] ** 2).sum(-1) / n - k * total**2 / n
        error = np.maximum(all_squares - k * total**2 / n - between - of_runs, 0.0)
        ratio = (between / (n - 1)) / (error / ((n - 1) * (k - 1)))
        single = np.where(np.isinf(ratio), 1.0, (ratio - 1) / (ratio + k - 1))
        return single, 1 - 1 / ratio


def _correlation(means: Float) -> Float:
    """(J, J) correlations of (J, R) run means over the answers that both judges have."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return pd.DataFrame(means.T).corr().to_numpy()


# --- agreement and pooling ----------------------------------------------------------------------


def judge_kappas(verdicts: AnchoredVerdicts) -> pd.DataFrame:
    """(J, J) Cohen's kappa between judges over win, tie and loss of the same answers in the same run.

    Raises:
        DataError: outcomes are no verdicts.
    """
    if not np.isin(verdicts.outcome, (0.0, 0.5, 1.0)).all():
        raise DataError("Cohen's kappa needs verdicts of win, tie and loss, and some outcomes lie between")
    _, tables = _panel(verdicts)
    answers = tables.reshape(len(tables), -1)
    there = ~np.isnan(answers)
    one_hot = np.stack([(answers == c) & there for c in (0.0, 0.5, 1.0)], -1).astype(float)  # (J, R K, 3)
    both = np.einsum("iab,jac->ijbc", one_hot, one_hot)
    n = both.sum((2, 3))
    with np.errstate(invalid="ignore", divide="ignore"):
        agreed = np.einsum("ijbb->ij", both) / n
        chance = (both.sum(3) * both.sum(2)).sum(-1) / n**2
        kappa = np.where(chance < 1, (agreed - chance) / (1 - chance), np.nan)
    judges = verdicts.levels["judge"].rename("judge")
    return pd.DataFrame(kappa, judges, judges)


def reliability_factor(kappas: pd.DataFrame) -> float:
    """Root of the mean Cohen's kappa over pairs of judges, the ``kappa`` of `anchored_elo`.

    It is an empirical shrinkage of standard errors, not a correction: the less judges agree, the shorter it makes them.

    Raises:
        ValueError: there is one judge only, or the mean is negative.
    """
    values = kappas.to_numpy()
    pairs = values[np.triu_indices(len(values), 1)]
    mean = np.nanmean(pairs) if np.isfinite(pairs).any() else np.nan
    if not mean >= 0:
        raise ValueError(f"the mean kappa of {len(pairs)} pairs of judges is {mean:.3g}: there is no such factor")
    return float(np.sqrt(mean))


def pooled_variance(variance: ArrayLike, rho: ArrayLike, n_judges: ArrayLike) -> Any:
    """Variance of the mean of ``n_judges`` ratings: variance (rho + (1 - rho) / J) (Proposition 2)."""
    variance, rho, n = (np.asarray(x, float) for x in (variance, rho, n_judges))
    return variance * (rho + (1 - rho) / n)


def pooled_scores(
    verdicts: AnchoredVerdicts,
    judges: Sequence[Any] | None = None,
    *,
    screen: JudgeScreen,
    level: float = 0.95,
    prior: float = 0.5,
    pool_size: float | None = None,
    link: str | Link = "logit",
) -> pd.DataFrame:
    """Mean rating over ``judges`` (by default the strong ones) of every model and reference.

    ``prior``, ``pool_size`` and ``link`` are as in `anchored_elo`.

    Returns:
        A row per model and anchor: ``n_judges, rating``; ``rating_se`` by Proposition 2 with the judges' mean ICC(3,k),
        ``rating_se_observed`` with their observed mean correlation; ``spread``, the standard deviation between judges.

    Raises:
        DataError: no judge is left, or one is unknown.
    """
    from scipy.stats import norm

    chosen = screen.strong if judges is None else list(dict.fromkeys(judges))
    unknown = [judge for judge in chosen if judge not in screen.table.index]
    if unknown:
        raise DataError(f"no judge {unknown[0]!r}; there are {', '.join(map(repr, screen.table.index))}")
    if not chosen:
        raise DataError(f"no judge reaches an ICC(3,k) of {screen.threshold:g}: choose judges, or a lower threshold")
    counts = count_verdicts(verdicts, ["model", "anchor", "judge"])
    counts = counts[counts["judge"].isin(chosen)].reset_index(drop=True)
    wins, ties, losses = (counts[c].to_numpy() for c in COUNTS)
    found = anchored_elo(wins, ties, losses, prior, level, pool_size, link=link)
    counts = counts.assign(rating=found.rating, variance=np.asarray(found.rating_se) ** 2)
    rho = float(screen.table.loc[chosen, "average"].mean())
    observed = _mean_correlation(screen, chosen) if len(chosen) > 1 else rho
    grouped = counts.groupby(["model", "anchor"], sort=False)
    table = grouped.agg(n_judges=("rating", "size"), rating=("rating", "mean"), spread=("rating", "std"),
                        variance=("variance", "mean")).reset_index()  # fmt: skip
    table["rating_se"] = np.sqrt(pooled_variance(table["variance"], rho, table["n_judges"]))
    table["rating_se_observed"] = np.sqrt(pooled_variance(table["variance"], observed, table["n_judges"]))
    z = norm.ppf((1 + level) / 2)
    table["rating_lower"] = table["rating"] - z * table["rating_se"]
    table["rating_upper"] = table["rating"] + z * table["rating_se"]
    return table.drop(columns="variance")


def pooling_curve(verdicts: AnchoredVerdicts, model: Any, anchor: Any = None, *, screen: JudgeScreen,
                  n_resamples: int = 1000, seed: int = 0) -> pd.DataFrame:  # fmt: skip
    """Variance of the pooled rating of a model against the number of strong judges (Figure 5).

    ``empirical`` is the mean over all sets of J strong judges of the variance of their mean rating in resampled items,
    ``predicted`` Proposition 2's with the judges' mean ICC(3,k), ``predicted_observed`` with their mean correlation.

    Raises:
        DataError: the model or the reference is unknown, or fewer than two strong judges have judged it.
    """
    rows = np.ones(len(verdicts.outcome), bool)
    for role, name in (("model", model), ("anchor", anchor)):
        if name is None:
            continue
        levels = verdicts.levels[role]
        if name not in levels:
            raise DataError(f"no {role} {name!r}; there are {', '.join(map(repr, levels))}")
        rows &= verdicts.number[role] == levels.get_loc(name)
    part = verdicts.take(rows)
    seen_by = set(verdicts.levels["judge"][np.unique(part.number["judge"])])
    chosen = [judge for judge in screen.strong if judge in seen_by]
    if len(chosen) < 2:
        raise DataError(f"{len(chosen)} judges reach an ICC(3,k) of {screen.threshold:g}; a curve needs two")
    items, tables = _panel(part)
    means = _run_means(tables)[verdicts.levels["judge"].get_indexer(chosen)]
    there = ~np.isnan(means)
    columns = np.concatenate([there, np.where(there, means, 0.0)]).T
    number, _ = pd.factorize(items, sort=True)
    per_item = np.zeros((number.max() + 1, columns.shape[1]))
    np.add.at(per_item, number, columns)
    drawn = resampled_sums(per_item, n_resamples, seed, "pooling")
    n, total = np.split(drawn, 2, axis=1)
    rated = (n > 0).all(1)  # without those in which some judge has no item
    if rated.sum() < 2:
        raise DataError("too few resamples have items of every judge: a curve needs more items or resamples")
    p = (total[rated] + 0.5) / (n[rated] + 1)
    covariance = np.cov(ELO_PER_LOGIT * np.log(p / (1 - p)), rowvar=False)
    variance = np.diag(covariance).mean()
    off = covariance[~np.eye(len(chosen), dtype=bool)].mean()
    j = np.arange(1, len(chosen) + 1)
    return pd.DataFrame(
        {
            "n_judges": j,
            "empirical": variance / j + (j - 1) / j * off,
            "predicted": pooled_variance(variance, screen.table.loc[chosen, "average"].mean(), j),
            "predicted_observed": pooled_variance(variance, _mean_correlation(screen, chosen), j),
        }
    )


def _mean_correlation(screen: JudgeScreen, judges: list[Any]) -> float:
    """Over the pairs that share answers; NaN if none does."""
    pairs = screen.correlation.loc[judges, judges].to_numpy()[np.triu_indices(len(judges), 1)]
    return float(np.nanmean(pairs)) if np.isfinite(pairs).any() else float("nan")


def width_by_threshold(verdicts: AnchoredVerdicts, screen: JudgeScreen, thresholds: ArrayLike | None = None,
                       level: float = 0.95) -> pd.DataFrame:  # fmt: skip
    """Median width of the probability's interval where judges pass a threshold, by threshold (Figure 3).

    Runs are averaged first, and the interval is the Beta one: reliability enters by the probabilities alone.
    """
    scores = count_verdicts(verdicts, ["model", "judge", "anchor"])
    wins, ties, losses = (scores[c].to_numpy() for c in COUNTS)
    found = anchored_elo(wins, ties, losses, level=level)
    width = np.asarray(found.probability_upper) - np.asarray(found.probability_lower)
    icc = screen.table["average"].reindex(scores["judge"]).to_numpy()
    grid = np.linspace(0, 1, 21) if thresholds is None else np.asarray(thresholds, float)
    rows = []
    for t in grid:
        passing = icc >= t
        rows.append((t, scores["judge"][passing].nunique(), np.median(width[passing]) if passing.any() else np.nan))
    return pd.DataFrame(rows, columns=["threshold", "n_judges", "median_width"])


def task_heterogeneity(estimates: ArrayLike, standard_errors: ArrayLike) -> Any:
    """Between-task variance tau^2 of (..., T) estimates by DerSimonian and Laird (DOI 10.1016/0197-2456(86)90046-2)."""
    y, s = np.broadcast_arrays(np.asarray(estimates, float), np.asarray(standard_errors, float))
    if y.shape[-1] < 2 or not (s > 0).all():
        raise ValueError("two tasks at least are needed, with positive standard errors")
    w = 1 / s**2
    mean = (w * y).sum(-1, keepdims=True) / w.sum(-1, keepdims=True)
    q = (w * (y - mean) ** 2).sum(-1)
    return np.maximum(0.0, (q - (y.shape[-1] - 1)) / (w.sum(-1) - (w**2).sum(-1) / w.sum(-1)))


__all__ = [
    "JudgeScreen", "judge_kappas", "pooled_scores", "pooled_variance", "pooling_curve", "reliability_factor",
    "screen_judges", "single_run_reliability", "task_heterogeneity", "width_by_threshold",
]  # fmt: skip
