"""Several judges pooled: mean ratings, and the error that averaging judges leaves (Proposition 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from jaxeval.anchored.elo import Link, anchored_elo
from jaxeval.anchored.judge_panel import judge_panel
from jaxeval.anchored.scores import COUNTS, count_verdicts
from jaxeval.anchored.screening import JudgeScreen, present_judges
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.errors import DataError
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.resampling.items import resampled_sums
from jaxeval.wording import counted, did_you_mean

Float = NDArray[np.float64]


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

    ``prior``, ``pool_size`` and ``link`` are as in `anchored_elo`. Judges are those that the verdicts have; a rating's
    error is by the reliabilities and correlations of the judges that it has.

    Returns:
        A row per model and anchor: ``n_judges, rating``; ``rating_se`` by Proposition 2 with the judges' mean ICC(3,k),
        at least 0, ``rating_se_observed`` with their observed mean correlation; ``spread``, the standard deviation
        between judges. ``attrs["warnings"]`` says which judges are left out, and of which no reliability is known.

    Raises:
        DataError: no judge is left, or one is unknown.
    """
    chosen = screen.strong if judges is None else list(dict.fromkeys(judges))
    unknown = [judge for judge in chosen if judge not in screen.table.index]
    if unknown:
        hint = did_you_mean(unknown[0], screen.table.index)
        raise DataError(f"no judge {unknown[0]!r}; there are {', '.join(map(repr, screen.table.index))}{hint}")
    if not chosen:
        raise DataError(f"no judge reaches an ICC(3,k) of {screen.threshold:g}: choose judges, or a lower threshold")
    counts = count_verdicts(verdicts, ["model", "anchor", "judge"])
    chosen, warnings = present_judges(chosen, counts["judge"], screen)
    unreliable = [judge for judge in chosen if np.isnan(screen.table.loc[judge, "average"])]
    if unreliable:
        least = "the error is by that of the others" if len(unreliable) < len(chosen) else "ratings have no error"
        warnings.append(f"of judges {', '.join(map(str, unreliable))} no reliability is known: {least}")
    counts = counts[counts["judge"].isin(chosen)].reset_index(drop=True)
    wins, ties, losses = (counts[c].to_numpy() for c in COUNTS)
    found = anchored_elo(wins, ties, losses, prior, level, pool_size, link=link)
    # Names as objects: columns of Arrow's strings have no tuples.
    counts = counts.assign(
        judge=counts["judge"].astype(object), rating=found.rating, variance=np.asarray(found.rating_se) ** 2
    )
    grouped = counts.groupby(["model", "anchor"], sort=False)
    table = grouped.agg(n_judges=("rating", "size"), rating=("rating", "mean"), spread=("rating", "std"),
                        variance=("variance", "mean"), judges=("judge", tuple)).reset_index()  # fmt: skip
    rho = {own: _mean_reliability(screen, own) for own in table["judges"].unique()}
    seen = {own: _mean_correlation(screen, own) if len(own) > 1 else rho[own] for own in rho}
    for name, of_judges in (("rating_se", rho), ("rating_se_observed", seen)):
        correlation = table["judges"].map(of_judges).to_numpy(float)
        table[name] = np.sqrt(pooled_variance(table["variance"], correlation, table["n_judges"]))
    z = ndtri((1 + level) / 2)
    table["rating_lower"] = table["rating"] - z * table["rating_se"]
    table["rating_upper"] = table["rating"] + z * table["rating_se"]
    table = table.drop(columns=["variance", "judges"])
    table.attrs["warnings"] = warnings
    return table


def pooling_curve(verdicts: AnchoredVerdicts, model: Any, anchor: Any = None, *, screen: JudgeScreen,
                  n_resamples: int = 1000, seed: int = 0) -> pd.DataFrame:  # fmt: skip
    """Variance of the pooled rating of a model against the number of strong judges (Figure 5).

    ``empirical`` is the mean over all sets of J strong judges of the variance of their mean rating in resampled items,
    ``predicted`` Proposition 2's with the judges' mean ICC(3,k), ``predicted_observed`` with their mean correlation.
    Strong judges that did not see the model, and judges that were not screened, are left out: ``attrs["warnings"]``.

    Raises:
        DataError: the model or the reference is unknown, or fewer than two strong judges have judged it.
        ValueError: there are fewer than two resamples.
    """
    if n_resamples < 2:
        raise ValueError(f"n_resamples must be at least 2, got {n_resamples!r}")
    rows = np.ones(len(verdicts.outcome), bool)
    for role, name in (("model", model), ("anchor", anchor)):
        if name is None:
            continue
        levels = verdicts.levels[role]
        if name not in levels:
            raise DataError(f"no {role} {name!r}; there are {', '.join(map(repr, levels))}")
        rows &= verdicts.number[role] == levels.get_loc(name)
    part = verdicts.take(rows)
    seen_by = verdicts.levels["judge"][np.unique(part.number["judge"])]
    chosen = [judge for judge in screen.strong if judge in seen_by]
    if len(chosen) < 2:
        raise DataError(
            f"{counted(len(chosen), 'judge reaches', 'judges reach')} an ICC(3,k) of {screen.threshold:g}; a curve "
            "needs two"
        )
    panel = judge_panel(part)
    means = panel.run_means()[verdicts.levels["judge"].get_indexer(chosen)]
    there = ~np.isnan(means)
    columns = np.concatenate([there, np.where(there, means, 0.0)]).T
    number, _ = pd.factorize(panel.item, sort=True)
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
    curve = pd.DataFrame(
        {
            "n_judges": j,
            "empirical": variance / j + (j - 1) / j * off,
            "predicted": pooled_variance(variance, _mean_reliability(screen, chosen), j),
            "predicted_observed": pooled_variance(variance, _mean_correlation(screen, chosen), j),
        }
    )
    curve.attrs["warnings"] = present_judges(screen.strong, seen_by, screen)[1]
    return curve


def _mean_reliability(screen: JudgeScreen, judges: Sequence[Any]) -> float:
    """Mean ICC(3,k) of the judges that have one, at least 0: a negative one is no reliability at all."""
    known = screen.table.loc[list(judges), "average"].dropna()
    return max(float(known.mean()), 0.0) if len(known) else float("nan")


def _mean_correlation(screen: JudgeScreen, judges: Sequence[Any]) -> float:
    """Over the pairs that share answers; NaN if none does."""
    pairs = screen.correlation.loc[list(judges), list(judges)].to_numpy()[np.triu_indices(len(judges), 1)]
    return float(np.nanmean(pairs)) if np.isfinite(pairs).any() else float("nan")


def task_heterogeneity(estimates: ArrayLike, standard_errors: ArrayLike) -> Any:
    """Between-task variance tau^2 of (..., T) estimates by DerSimonian and Laird (DOI 10.1016/0197-2456(86)90046-2)."""
    y, s = np.broadcast_arrays(np.asarray(estimates, float), np.asarray(standard_errors, float))
    if y.shape[-1] < 2 or not (s > 0).all():
        raise ValueError("two tasks at least are needed, with positive standard errors")
    w = 1 / s**2
    mean = (w * y).sum(-1, keepdims=True) / w.sum(-1, keepdims=True)
    q = (w * (y - mean) ** 2).sum(-1)
    return np.maximum(0.0, (q - (y.shape[-1] - 1)) / (w.sum(-1) - (w**2).sum(-1) / w.sum(-1)))
