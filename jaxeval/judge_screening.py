"""Which judges repeat themselves: reliability of their repeated runs, and who passes a threshold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from jaxeval.anchored import anchored_elo
from jaxeval.anchored_scores import COUNTS, count_verdicts
from jaxeval.anchored_verdicts import AnchoredVerdicts
from jaxeval.columns import DataError
from jaxeval.icc import icc3
from jaxeval.item_resampling import resampled_sums
from jaxeval.judge_panel import judge_panel
from jaxeval.progress import progress_bar
from jaxeval.quantiles import bounds_with_failures

Float = NDArray[np.float64]

STRONG = 0.9
_ONE_RUN = "one run"
_ENDS = ("", "_lower", "_upper", "_boot_lower", "_boot_upper")


@dataclass(frozen=True, eq=False)
class JudgeScreen:
    """Judges by the reliability of their runs.

    ``table`` has a row per judge: ``single`` and ``average``, ICC(3,1) and ICC(3,k) with k the judge's own number of
    runs ``n_runs``, with F intervals and percentile intervals of resampled items (``boot_``); ``n`` answers judged in
    every run, ``n_incomplete`` left out; ``strong``.
    ``correlation`` is what judges' run means of the same answers correlate by; ``bound`` what it would be at least,
    sqrt(rho_j rho_j'), if all judges shared the same item effects, which no run of one judge can show.
    """

    table: pd.DataFrame
    correlation: pd.DataFrame
    bound: pd.DataFrame
    warnings: list[str]
    threshold: float

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
    panel = judge_panel(verdicts)
    if panel.n_runs.max() < 2:
        raise DataError("reliability needs repeated runs: name the column that numbers them with run=")
    judges = verdicts.levels["judge"].rename("judge")
    frame = pd.DataFrame(np.nan, judges, [f"{name}{end}" for name in ("single", "average") for end in _ENDS])
    frame["n"], frame["status"] = 0, _ONE_RUN
    drawn = np.full((2, n_resamples, len(judges)), np.nan)
    repeated = [int(k) for k in np.unique(panel.n_runs) if k > 1]
    with progress_bar(n_resamples * len(repeated), "resamples", progress) as advance:
        for k in repeated:  # as a rule all judges have as many runs
            own = np.flatnonzero(panel.n_runs == k)
            found = icc3(panel.outcome[own, :, :k], level, missing="complete")
            for name in ("single", "average"):
                for end in ("", "_lower", "_upper"):
                    frame.loc[judges[own], f"{name}{end}"] = getattr(found, f"{name}{end}")
            frame.loc[judges[own], "n"], frame.loc[judges[own], "status"] = found.n, found.status
            drawn[..., own] = _resampled_icc(panel.item, panel.outcome[own, :, :k], n_resamples, seed, advance)
    for name, draws, least in zip(("single", "average"), drawn, (-1.0, -np.inf), strict=True):
        _, lower, upper, _ = bounds_with_failures(draws, level, least, 1.0)
        frame[f"{name}_boot_lower"], frame[f"{name}_boot_upper"] = lower, upper
    runs = (~np.isnan(panel.outcome)).sum(-1)
    frame.insert(frame.columns.get_loc("n"), "n_runs", panel.n_runs)
    frame["n_incomplete"] = ((runs > 0) & (runs < panel.n_runs[:, None])).sum(1)
    frame["strong"] = frame["average"] >= threshold
    correlation = _correlation(panel.run_means())
    rho = np.sqrt(np.maximum(frame["average"].to_numpy(), 0))
    bound = np.outer(rho, rho)
    np.fill_diagonal(bound, 1.0)
    return JudgeScreen(
        frame,
        pd.DataFrame(correlation, judges, judges),
        pd.DataFrame(bound, judges, judges),
        list(_warnings(frame, correlation, bound, threshold)),
        threshold,
    )


def _warnings(table: pd.DataFrame, correlation: Float, bound: Float, threshold: float) -> Iterator[str]:
    n_judges = len(table)
    partial = table[(table["n_incomplete"] > 0) & (table["n_runs"] > 1)]
    if len(partial):
        yield (
            f"{partial['n_incomplete'].sum():,} answers that {len(partial)} judges judged in some of their runs, not "
            "in all, are left out of their reliability"
        )
    once = table.index[table["n_runs"] == 1]
    if len(once):
        yield f"{_names(once)} judged in one run only: their reliability is unknown, and they are not strong"
    none = table.index[(table["n_runs"] > 1) & (table["n"] == 0)]
    if len(none):
        yield f"no answer has all runs of {_names(none)}: their reliability is unknown; are runs numbered alike?"
    fewest, most = table["n_runs"].min(), table["n_runs"].max()
    if fewest < most:
        yield (
            f"judges have {fewest} to {most} runs: ICC(3,k) is that of the mean over each judge's own, and grows with "
            "them; ICC(3,1) compares judges"
        )
    unclear = table.index[(table["average_lower"] < threshold) & table["strong"]]
    if len(unclear):
        yield f"the intervals of {_names(unclear)} reach below {threshold:g}: more answers would tell"
    low = [
        (table.index[i], table.index[j], correlation[i, j], bound[i, j])
        for i in range(n_judges) for j in range(i) if correlation[i, j] < bound[i, j] - 0.02
    ]  # fmt: skip
    if low:
        i, j, seen, promised = max(low, key=lambda x: x[3] - x[2])
        yield (
            f"{len(low):,} of {n_judges * (n_judges - 1) // 2:,} pairs of judges correlate less than their "
            f"reliabilities promise (the worst pair, {j} and {i}: {seen:.2f}, promised {promised:.2f}): judges repeat "
            "themselves, but differ from each other, so that one is not as good as several"
        )


def _names(judges: pd.Index) -> str:
    return ", ".join(map(str, judges[:5])) + (f" and {len(judges) - 5} more" if len(judges) > 5 else "")


def _resampled_icc(items: NDArray[np.int64], tables: Float, n_resamples: int, seed: int, advance: Any) -> Float:
    """(2, B, J) ICC(3,1) and ICC(3,k) of resampled items."""
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
        error = all_squares - k * total**2 / n - between - of_runs
        error = np.where(error <= 1e-12 * between, 0.0, error)  # rounding, where runs never differ
        ratio = (between / (n - 1)) / (error / ((n - 1) * (k - 1)))
        single = np.where(np.isinf(ratio), 1.0, (ratio - 1) / (ratio + k - 1))
        return np.stack([single, 1 - 1 / ratio])


def _correlation(means: Float) -> Float:
    """(J, J) correlations of (J, R) run means over the answers that both judges have."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return pd.DataFrame(means.T).corr().to_numpy()


def width_by_threshold(verdicts: AnchoredVerdicts, screen: JudgeScreen, thresholds: ArrayLike | None = None,
                       level: float = 0.95) -> pd.DataFrame:  # fmt: skip
    """Median width of the probability's intervals where judges pass a threshold, by threshold (Figure 3).

    Runs are averaged first. ``median_width`` is of the Beta interval, into which reliability enters by the
    probabilities alone; ``median_own_width`` of the one by the prompts' own variance, of which a wavering judge has
    less, as its averages over runs lie closer together.
    """
    scores = count_verdicts(verdicts, ["model", "judge", "anchor"])
    wins, ties, losses = (scores[c].to_numpy() for c in COUNTS)
    found = anchored_elo(wins, ties, losses, level=level, squares=scores["squares"].to_numpy())
    ends = (found.probability_lower, found.probability_upper), (found.own_lower, found.own_upper)
    widths = [np.asarray(upper) - np.asarray(lower) for lower, upper in ends]
    icc = screen.table["average"].reindex(scores["judge"]).to_numpy()
    grid = np.linspace(0, 1, 21) if thresholds is None else np.asarray(thresholds, float)
    rows = []
    for t in grid:
        passing = icc >= t
        medians = [np.median(width[passing]) if passing.any() else np.nan for width in widths]
        rows.append((t, scores["judge"][passing].nunique(), *medians))
    return pd.DataFrame(rows, columns=["threshold", "n_judges", "median_width", "median_own_width"])
