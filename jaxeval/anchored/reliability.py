"""How far judges agree: with themselves over repeated runs, ICC(3,1) and ICC(3,k), and with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike, NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import check_choice, scalars_or_arrays
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.errors import DataError
from jaxeval.show.shown import Result
from jaxeval.statistics.item_weights import means_over_weights
from jaxeval.statistics.quantiles import checked_level
from jaxeval.statistics.rater_agreement import cohen_kappa
from jaxeval.wording import counted

OK, NO_ITEMS, NO_VARIATION, NO_ERROR = "ok", "fewer than two complete items", "items do not vary", "runs never differ"
F_RATIO, WEIGHTED = "F", "weighted items"
_FEW_VALUES = 5  # that scores take: verdicts, and grades of few steps
_STEPS = 64


@dataclass(frozen=True, repr=False)
class Icc3(Result):
    """Consistency of k runs over n items; scalars, or arrays of the leading shape of the table.

    ``single`` is the reliability of one run, ICC(3,1). ``average`` is that of the mean of all k runs, ICC(3,k).
    ``status`` is "ok" or one of these. "runs never differ": both are 1. "items do not vary" or "fewer than two complete
    items": both are NaN. ``interval`` is "F" or "weighted items", see `icc3`.

    Examples:
        >>> import jaxeval
        >>> result = jaxeval.icc3([[1, 1, 1], [0, 0, 0], [1, 1, 1]])
        >>> result.average, result.status
        (1.0, 'runs never differ')
    """

    status: str | NDArray[np.str_]
    interval: str | NDArray[np.str_]
    single: float | Float
    single_lower: float | Float
    single_upper: float | Float
    average: float | Float
    average_lower: float | Float
    average_upper: float | Float
    ms_items: float | Float  # mean square between items
    ms_error: float | Float  # mean square of the residual of items and runs
    n: int | Int  # complete items
    n_incomplete: int | Int  # items left out as some run is missing
    k: int
    level: float

    def _sentences(self) -> list[str]:
        if np.ndim(self.average):
            return list(super()._sentences())
        if self.status != "ok":
            return [f"the reliability is not known: {self.status}" if np.isnan(self.average) else str(self.status)]
        return [
            f"the mean of {self.k} runs has a reliability of {self.average:.2f} ({self.average_lower:.2f} to "
            f"{self.average_upper:.2f}), a single run one of {self.single:.2f}"
        ]


def icc3(table: ArrayLike | pd.DataFrame, level: float = 0.95, missing: Literal["error", "complete"] = "error") -> Icc3:
    """Return ICC(3,1) and ICC(3,k) of items x runs, with intervals.

    ICC(3,1) = (MS_items - MS_error) / (MS_items + (k - 1) MS_error) and ICC(3,k) = (MS_items - MS_error) / MS_items,
    from the two-way table without interaction: differences between runs' means do not count as error.

    Intervals are those of the F distribution, which needs normal scores. Verdicts are not, nor are grades of at most
    five values, nor runs that never differ: of 5 to 60 items with a reliability of .96, F missed it in .6 to 1. Theirs
    are quantiles over weights of the items (the Bayesian bootstrap), with half an item each of the least score, of the
    greatest, and of runs that differ between them. They missed it in .01 to .1.

    Args:
        table: (..., n, k) scores of n items in k runs, or a DataFrame with a row per item; leading axes are judges.
        level: level of the intervals.
        missing: what to do about items that lack a run: "error", or "complete", leave them out and count them.

    Raises:
        ValueError: there are fewer than two runs, scores are infinite, or some are missing.

    Examples:
        Six answers, each judged in three runs:

        >>> import jaxeval
        >>> result = jaxeval.icc3([[1, 1, 1], [0, 0, 0], [1, 1, 0], [0.5, 0.5, 1], [0, 0, 0], [1, 1, 1]])
        >>> round(result.single, 3), round(result.average, 3)
        (0.691, 0.871)
    """
    checked_level(level)
    check_choice("missing", missing, ("error", "complete"))
    scores = _scores(table)
    complete = np.asarray(~np.isnan(scores).any(axis=-1))
    if missing == "error" and not complete.all():
        raise ValueError(
            f"{counted((~complete).sum(), 'item lacks', 'items lack')} {counted(np.isnan(scores).sum(), 'score')}: "
            "leave those items out with missing='complete', which counts them"
        )
    n, k = complete.sum(-1), scores.shape[-1]
    used, rounding = centred_runs(scores, complete)
    with np.errstate(invalid="ignore", divide="ignore"):
        of_items = used.mean(-1)
        ms_items = k * (of_items**2).sum(-1) / (n - 1)
        residual = np.where(complete[..., None], used - of_items[..., None], 0.0)
        ms_error = (residual**2).sum((-1, -2)) / ((n - 1) * (k - 1))
        # Rounding leaves a trace where items do not vary, or runs never differ.
        ms_items = np.where(ms_items <= k * rounding**2, 0.0, ms_items)
        ms_error = np.where(ms_error <= np.maximum(rounding**2, 1e-24 * ms_items), 0.0, ms_error)
        status = np.select([n < 2, ms_items == 0, ms_error == 0], [NO_ITEMS, NO_VARIATION, NO_ERROR], OK)
        ratio = ms_items / ms_error
        tail = (1 - level) / 2
        df_items, df_error = np.maximum(n - 1, 1), np.maximum((n - 1) * (k - 1), 1)
        low = np.asarray(ratio / scipy.special.fdtri(df_items, df_error, 1 - tail))
        high = np.asarray(ratio * scipy.special.fdtri(df_error, df_items, 1 - tail))
        interval = np.full(np.shape(n), F_RATIO, f"U{len(WEIGHTED)}")
        there = (n >= 2) & (ms_items > 0)
        for at in np.ndindex(np.shape(n)):
            items = scores[at][complete[at]]
            if there[at] and (ms_error[at] == 0 or len(np.unique(items)) <= _FEW_VALUES):
                ends = _ends_over_weights(items, float(ms_error[at]), tail)
                low[at], high[at] = min(ends[0], ratio[at]), max(ends[1], ratio[at])
                interval[at] = WEIGHTED
        bounds = {"": ratio, "_lower": low, "_upper": high}
        values = {"ms_items": ms_items, "ms_error": ms_error}
        values |= {f"single{end}": np.where(np.isinf(x), 1.0, (x - 1) / (x + k - 1)) for end, x in bounds.items()}
        values |= {f"average{end}": 1 - 1 / x for end, x in bounds.items()}
    values = {name: np.where(there, x, np.nan) for name, x in values.items()}
    counts = {"n": np.asarray(n), "n_incomplete": np.asarray((~complete).sum(-1))}
    return Icc3(**scalars_or_arrays(**values, **counts, status=status, interval=interval), k=k, level=level)


def _ends_over_weights(items: Float, ms_error: float, tail: float) -> tuple[float, float]:
    """Return quantiles of the ratio MS_items / MS_error over weights of the (n, k) items; without error, inf above.

    An item of each kind that a few may lack has half a weight: its runs all give the least score or the greatest, or
    some give one and some the other.
    """
    n, k = items.shape
    least, greatest = (0.0, 1.0) if np.isin(items, (0.0, 0.5, 1.0)).all() else (items.min(), items.max())
    items = (items - least) / (greatest - least)
    ms_error /= (greatest - least) ** 2
    between_runs = max(items.mean(0).var(ddof=1) - ms_error / n, 0.0)  # beyond chance
    mean, error = items.mean(1), items.var(1, ddof=1)
    if ms_error == 0:
        mean, error = np.round(mean * _STEPS) / _STEPS, np.full(n, between_runs)
    seen, count = np.unique(np.column_stack([mean, error]), axis=0, return_counts=True)
    split = np.arange(1, k) / k
    mean = np.concatenate([seen[:, 0], [0.0, 1.0], split])
    error = np.concatenate([seen[:, 1], [0.0, 0.0], split * (1 - split) * k / (k - 1)])
    shape = np.concatenate([count, [0.5, 0.5], np.full(k - 1, 0.5 / (k - 1))])
    mean, square, error = means_over_weights(shape, np.column_stack([mean, mean**2, error])).T
    drawn = k * (square - mean**2) / np.maximum(error - between_runs, 0.0)
    low, high = np.quantile(drawn, [tail, 1 - tail], method="inverted_cdf")
    return float(low), float("inf") if ms_error == 0 else float(high)


def centred_runs(scores: Float, complete: Bool) -> tuple[Float, Float]:
    """Return scores (..., n, k) less their run's mean, 0 where incomplete, and the (...) size of their rounding errors.

    Reliability does not depend on the runs' means, and sums of squares of centred scores do not cancel.
    """
    there = np.asarray(complete)[..., None]
    largest = np.where(there, np.abs(scores), 0.0).max((-1, -2), initial=0.0)
    used = np.where(there, scores, 0.0)
    if scores.shape[-2]:  # less one of the items first, so that constant scores become exactly 0
        used = np.where(there, used - np.take_along_axis(used, there.argmax(-2)[..., None], axis=-2), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = used.sum(-2, keepdims=True) / there.sum(-2, keepdims=True)
    return np.where(there, used - means, 0.0), 16 * np.finfo(float).eps * largest


def _scores(table: ArrayLike | pd.DataFrame) -> Float:
    try:
        values = (
            table.to_numpy(np.float64, na_value=np.nan) if isinstance(table, pd.DataFrame) else np.asarray(table, float)
        )
        values = np.ascontiguousarray(values)  # sums in one order
    except (TypeError, ValueError) as error:
        raise ValueError(f"scores must be numeric: {error}") from error
    if values.ndim < 2 or values.shape[-1] < 2:
        raise ValueError(f"a table of items and at least two runs is needed, got shape {values.shape}")
    if np.isinf(values).any():
        raise ValueError(f"{counted(np.isinf(values).sum(), 'score is', 'scores are')} infinite")
    return values


@dataclass(frozen=True, eq=False)
class PanelRuns:
    """Outcomes (J, R, K) of R answers by judge and run, NaN where there is none; ``item`` (R,) of every answer.

    Runs are numbered within each judge, so that judges need not name them alike; judge j has ``n_runs[j]`` of them.
    """

    item: Int
    outcome: Float
    n_runs: Int

    def run_means(self) -> Float:
        """Return (J, R) means over the runs that there are, NaN where there is none."""
        there = ~np.isnan(self.outcome)
        with np.errstate(invalid="ignore"):
            return np.where(there, self.outcome, 0.0).sum(-1) / there.sum(-1)


def judge_panel(verdicts: AnchoredVerdicts) -> PanelRuns:
    """Return the verdicts by judge, answer and run."""
    number, answers = verdicts.groups(["model", "anchor", "item"])
    items = np.empty(len(answers), np.int64)
    items[number] = verdicts.number["item"]
    run, n_runs = runs_of_judges(verdicts)
    tables = np.full((len(n_runs), len(answers), n_runs.max()), np.nan)
    tables[verdicts.number["judge"], number, run] = verdicts.outcome
    return PanelRuns(items, tables, n_runs)


def runs_of_judges(verdicts: AnchoredVerdicts) -> tuple[Int, Int]:
    """Return (N,) number of each verdict's run among those of its judge, and (J,) how many each judge has."""
    judge = verdicts.number["judge"]
    used = np.zeros((len(verdicts.levels["judge"]), len(verdicts.levels["run"])), bool)
    used[judge, verdicts.number["run"]] = True
    return (used.cumsum(1) - 1)[judge, verdicts.number["run"]], used.sum(1)


def judge_kappas(verdicts: AnchoredVerdicts) -> pd.DataFrame:
    """Return (J, J) Cohen's kappa between judges over win, tie and loss of the same answers, run by run.

    Raises:
        DataError: outcomes are not verdicts of win, tie and loss.
    """
    if not np.isin(verdicts.outcome, (0.0, 0.5, 1.0)).all():
        raise DataError("Cohen's kappa needs verdicts of win, tie and loss, and some outcomes lie between them")
    tables = judge_panel(verdicts).outcome
    answers = tables.reshape(len(tables), -1)
    one_hot = np.stack([answers == c for c in (0.0, 0.5, 1.0)], -1).astype(float)  # (J, R K, 3)
    _, _, kappa = cohen_kappa(np.einsum("iab,jac->ijbc", one_hot, one_hot))
    judges = verdicts.levels["judge"].rename("judge")
    return pd.DataFrame(kappa, judges, judges)


def reliability_factor(kappas: pd.DataFrame) -> float:
    """Return the root of the mean Cohen's kappa over pairs of judges, the ``kappa`` of `anchored_elo`.

    It is an empirical shrinkage of standard errors, not a correction: the less judges agree, the shorter it makes them.

    Raises:
        ValueError: there is one judge only, or the mean is not positive.
    """
    values = kappas.to_numpy()
    pairs = values[np.triu_indices(len(values), 1)]
    mean = np.nanmean(pairs) if np.isfinite(pairs).any() else np.nan
    if not mean > 0:
        raise ValueError(
            f"the mean kappa of {counted(len(pairs), 'pair')} of judges is {mean:.3g}, and a reliability factor needs "
            "one above 0"
        )
    return float(np.sqrt(mean))
