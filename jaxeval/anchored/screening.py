"""Which judges repeat themselves: reliability of their repeated runs, and who passes a threshold."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Unpack

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike, NDArray

from jaxeval.anchored.elo import anchored_elo
from jaxeval.anchored.reliability import NO_VARIATION, OK, PanelRuns, centred_runs, icc3, judge_panel
from jaxeval.anchored.scores import COUNTS, count_verdicts, prompt_strata
from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import checked_finite, checked_integer
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.errors import DataError
from jaxeval.execution.lanes import LaneRun
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.resampling.rows import resampled_sums, sums_by
from jaxeval.resampling.units import small_strata_text
from jaxeval.show.shown import Answer, Result
from jaxeval.statistics.clusters import widening_of_draws
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import bounds_with_failures
from jaxeval.wording import counted, named, visible_line

STRONG = 0.9
_ONE_RUN = "one run"
_SLACK = 0.02  # a shortfall of the correlation that does not matter
_MOST = 1 - 1e-9  # correlations that Fisher's z is taken of
_ROUNDING = 1e-12
_MEASURES, _LEAST = ("single", "average"), (-1.0, -np.inf)  # ICC(3,1) and ICC(3,k), and the least that they can be
#: Judges of a reliability of .9 never differ over 10 items in up to .4 of the tables, over this many in .06.
_SURE = 30
_ENDS = ("", "_lower", "_upper", "_boot_lower", "_boot_upper")


@dataclass(frozen=True, eq=False, repr=False)
class JudgeScreen(Result):
    """Judges by the reliability of their runs.

    ``table`` has a row per judge. ``single`` and ``average`` are ICC(3,1) and ICC(3,k), with k the judge's own number
    of runs ``n_runs``. Each has the interval of `icc3`, which takes answers for independent, and one of resampled items
    (``boot_``), with all their answers. It is longer by Student's t, on the scale of log(1 - ICC(3,k)). ``n`` answers
    were judged in every run, ``n_incomplete`` are left out. ``strong`` says which judges pass by their ICC(3,k), and
    ``sure`` which pass by the lower ends of both intervals, with runs that differ somewhere or 30 items.

    ``correlation`` holds the correlations of judges' run means over the same answers. ``bound``, sqrt(rho_j rho_j'), is
    the least that they would be if all judges shared the same item effects, which no run of one judge can show.
    ``warnings`` name pairs that correlate less, by more than 0.02 and by more than chance explains. The test is of the
    difference of Fisher's z of bound and correlation: divided by its standard error over resampled items, it must
    exceed the upper (1 - level) / pairs quantile of Student's t.

    Examples:
        >>> import jaxeval
        >>> from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts
        >>> frame = simulate_anchored_verdicts(n_items=40, n_judges=3, run_sd=(0.2, 0.3, 2.0), seed=1)
        >>> screen = jaxeval.screen_judges(jaxeval.AnchoredVerdicts.from_pandas(frame), n_resamples=100)
        >>> screen.strong
        ['judge-1', 'judge-2']
        >>> screen.correlation["judge-1"].round(2).tolist()
        [1.0, 0.9, 0.56]
    """

    table: pd.DataFrame
    correlation: pd.DataFrame
    bound: pd.DataFrame
    warnings: list[str]
    threshold: float
    joint: Draws = field(repr=False)  # of the reliabilities: the names have the levels ``measure`` and ``judge``

    def _shown(self) -> Answer:
        strong = f"{len(self.strong):,} strong (ICC(3,k) of {self.threshold:g} or more)"
        title = f"JudgeScreen: {counted(len(self.table), 'judge')}, {strong}"
        columns = [c for c in ("strong", "average", "average_lower", "average_upper") if c in self.table]
        table = self.table[[*columns, *self.table.columns.drop(columns)]]
        table = table.sort_values("average", ascending=False, kind="stable")
        return Answer(title, table, self.joint.settings, self.warnings)

    def _sentences(self) -> list[str]:
        return [reliable_sentence(self.table.reset_index())]

    @property
    def strong(self) -> list[Hashable]:
        """Judges that pass."""
        return list(self.table.index[self.table["strong"]])


def reliable_sentence(judges: pd.DataFrame) -> str:
    """Say who of the ``judges``, of a screen's table, is surely strong, and who is by the estimate alone."""
    strong, sure = (judges[name].astype(bool) for name in ("strong", "sure"))
    passing, unsure = (list(judges.loc[which, "judge"].map(visible_line)) for which in (sure, strong & ~sure))
    whose = f": {named(passing, 4)}" if passing else ""
    others = f"; unsure: {named(unsure, 4)}" if unsure else ""
    return f"{len(passing):,} of {counted(len(judges), 'judge')} repeat themselves reliably{whose}{others}"


@spelled_out()
def screen_judges(
    verdicts: AnchoredVerdicts,
    threshold: float = STRONG,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    strata: str | None = None,
    **running: Unpack[RunOptions],
) -> JudgeScreen:
    """Measure the reliability of judges' repeated runs over all answers; an ICC(3,k) of ``threshold`` is strong.

    Items are resampled whole, with all judges, models and references.

    Args:
        verdicts: with runs.
        threshold: of ICC(3,k).
        level: of the intervals.
        n_resamples: at least 1.
        strata: role, as a rule "task": a resample holds as many items of each of its values as there are, as in
            `bootstrap`.

    Raises:
        DataError: there is one run only, an item lies in several strata, or ``checkpoint`` is the folder of another
            run.
        ValueError: ``n_resamples`` is less than 1, or ``threshold`` is no finite number.

    Examples:
        >>> import jaxeval
        >>> from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts
        >>> frame = simulate_anchored_verdicts(n_items=40, n_judges=3, run_sd=(0.2, 0.3, 2.0), seed=1)
        >>> verdicts = jaxeval.AnchoredVerdicts.from_pandas(frame)
        >>> table = jaxeval.screen_judges(verdicts, n_resamples=100).table.reset_index()
        >>> table[["judge", "single", "average", "strong"]].round(2)
             judge  single  average  strong
        0  judge-1    0.89     0.98    True
        1  judge-2    0.87     0.97    True
        2  judge-3    0.13     0.43   False
    """
    checked_finite("threshold", threshold)
    checked_integer("n_resamples", n_resamples, 1)
    checked_integer("seed", seed)
    panel, stratum = judge_panel(verdicts), prompt_strata(verdicts, strata)
    if panel.n_runs.max() < 2:
        raise DataError("reliability needs repeated runs: name the column that numbers them (run=, --run)")
    judges = verdicts.levels["judge"].rename("judge")
    frame = pd.DataFrame(np.nan, judges, [f"{name}{end}" for name in _MEASURES for end in _ENDS])
    frame["n"], frame["status"] = 0, _ONE_RUN
    for k in np.unique(panel.n_runs[panel.n_runs > 1]):  # as a rule all judges have as many runs
        alike = np.flatnonzero(panel.n_runs == k)
        reliability = icc3(panel.outcome[alike, :, :k], level, missing="complete")
        for name in _MEASURES:
            for end in ("", "_lower", "_upper"):
                frame.loc[judges[alike], f"{name}{end}"] = getattr(reliability, f"{name}{end}")
        frame.loc[judges[alike], "n"], frame.loc[judges[alike], "status"] = reliability.n, reliability.status
    varies = (frame["status"] != NO_VARIATION).to_numpy()
    means = np.where(varies[:, None], panel.run_means(), np.nan)
    bound = _bound(frame["average"].to_numpy())
    np.fill_diagonal(bound, 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = pd.DataFrame(means.T).corr().to_numpy()
        pairs = np.argwhere(np.tril(correlation < bound - _SLACK, -1))

    def identity() -> Identity:
        shown = {"threshold": threshold, "level": level, "n_resamples": n_resamples}
        return Identity(
            {"seed": seed, "strata": strata}, (panel, pairs, stratum), shown, measured=judges, noun="verdicts"
        )

    with open_run(identity, n_resamples, "resamples", **running) as run:
        drawn, correlations = _resampled(panel, means, pairs, n_resamples, seed, run, stratum)
    drawn[:, :, ~varies] = np.nan
    runs = (~np.isnan(panel.outcome)).sum(-1)
    n_items = np.array([len(np.unique(panel.item[of_judge])) for of_judge in runs == panel.n_runs[:, None]])
    wider = np.array([widening_of_draws(max(n - 1.0, 1.0), level) for n in n_items])
    spread = _longer(drawn[1], frame["average"].to_numpy(), wider, panel.n_runs)
    for name, draws, least in zip(_MEASURES, spread, _LEAST, strict=True):
        _, lower, upper, _ = bounds_with_failures(draws, level, least, 1.0)
        frame[f"{name}_boot_lower"], frame[f"{name}_boot_upper"] = lower, upper
    frame.insert(frame.columns.get_loc("n"), "n_runs", panel.n_runs)
    frame["n_incomplete"] = ((runs > 0) & (runs < panel.n_runs[:, None])).sum(1)
    frame["strong"] = frame["average"] >= threshold
    passing = frame[["average_lower", "average_boot_lower"]].min(axis=1, skipna=False) >= threshold
    frame["sure"] = passing & ((frame["status"] == OK) | (n_items >= _SURE))
    bounds = _bound(drawn[1])[:, pairs[:, 0], pairs[:, 1]]
    beyond = _beyond_chance(correlation, bound, pairs, correlations, bounds, len(np.unique(panel.item)), level)
    warnings = [
        *_warnings(frame, correlation, bound, pairs[beyond], threshold),
        *small_strata_text(None if stratum is None else np.bincount(stratum), "prompt"),
    ]
    return JudgeScreen(
        table=frame,
        correlation=pd.DataFrame(correlation, judges, judges),
        bound=pd.DataFrame(bound, judges, judges),
        warnings=warnings,
        threshold=threshold,
        joint=Draws(
            pd.MultiIndex.from_product([_MEASURES, judges], names=["measure", "judge"]),
            frame[list(_MEASURES)].to_numpy().T.reshape(-1),
            np.concatenate(spread, axis=1),
            limits=(np.repeat(_LEAST, len(judges)), 1.0),
            status=np.tile(frame["status"].to_numpy(), 2),
            warnings=tuple(warnings),
            settings={"n_resamples": n_resamples, "seed": seed, "strata": strata, "level": level},
        ),
    )


def _longer(drawn: Float, average: Float, wider: Float, n_runs: Int) -> tuple[Float, Float]:
    """Return draws (B, J) of ICC(3,1) and ICC(3,k) from those of ICC(3,k), ``wider`` (J,) times as far from it."""
    with np.errstate(invalid="ignore", divide="ignore"):
        error = 1 - average
        longer = np.where(error > 0, 1 - error * ((1 - drawn) / error) ** wider, drawn)
        single = np.where(np.isneginf(longer), _LEAST[0], longer / (n_runs - (n_runs - 1) * longer))
    return single, longer


def _bound(average: Float) -> Float:
    """Return sqrt(rho_j rho_j') of (..., J) reliabilities; negative ones count as 0."""
    root = np.sqrt(np.maximum(average, 0))
    return root[..., :, None] * root[..., None, :]


def _beyond_chance(
    correlation: Float, bound: Float, pairs: NDArray[np.intp], correlations: Float, bounds: Float, n_items: int,
    level: float,
) -> Bool:  # fmt: skip
    """Give which of the ``pairs`` (P, 2) fall short by more than resamples (B, P) of both numbers vary, all at once."""
    n_tested = int(np.tril(np.isfinite(correlation) & np.isfinite(bound), -1).sum())
    seen, promised = (_fisher(x[pairs[:, 0], pairs[:, 1]]) for x in (correlation, bound))
    draws = _fisher(bounds) - _fisher(correlations)
    there = np.isfinite(draws)
    n = there.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(there, draws, 0.0).sum(0) / n
        error = np.sqrt(np.where(there, (draws - mean) ** 2, 0.0).sum(0) / (n - 1))
        limit = -scipy.special.stdtrit(np.minimum(n, n_items) - 1, (1 - level) / max(n_tested, 1))
        # Two items correlate with 1 or -1: of five judges with equal effects some pair fell short in .41 of 300 tables.
        return (n > 1) & (n_items > 2) & (promised - seen > limit * error)


def _fisher(r: Float) -> Float:
    with np.errstate(invalid="ignore"):
        return np.arctanh(np.clip(r, -_MOST, _MOST))


def _warnings(
    table: pd.DataFrame, correlation: Float, bound: Float, low: NDArray[np.intp], threshold: float
) -> Iterator[str]:
    n_judges = len(table)
    partial = table[(table["n_incomplete"] > 0) & (table["n_runs"] > 1)]
    if len(partial):
        yield (
            f"left out of the reliability of {counted(len(partial), 'judge')}: "
            f"{counted(partial['n_incomplete'].sum(), 'answer')} judged in some runs, not in all"
        )
    once = table.index[table["n_runs"] == 1]
    if len(once):
        yield f"{named(once, 5)} judged in one run only: their reliability is unknown, and they are not strong"
    none = table.index[(table["n_runs"] > 1) & (table["n"] == 0)]
    if len(none):
        yield f"no answer has all runs of {named(none, 5)}: their reliability is unknown; are runs numbered alike?"
    flat = table.index[table["status"] == NO_VARIATION]
    if len(flat):
        yield f"{named(flat, 5)} judged all answers alike: their reliability is unknown, and they are not strong"
    fewest, most = table["n_runs"].min(), table["n_runs"].max()
    if fewest < most:
        yield (
            f"judges have {fewest} to {most} runs: ICC(3,k) is the reliability of the mean over a judge's own runs, "
            "and grows with their number; compare judges by ICC(3,1)"
        )
    unclear = table.index[table["strong"] & ~table["sure"]]
    if len(unclear):
        few = f", or their runs never differ over fewer than {_SURE} items"
        yield f"the intervals of {named(unclear, 5)} reach below {threshold:g}{few}: more answers would show who passes"
    if len(low):
        i, j = max(low, key=lambda pair: bound[*pair] - correlation[*pair])
        verb = "correlates" if len(low) == 1 else "correlate"
        yield (
            f"{len(low):,} of {counted(n_judges * (n_judges - 1) // 2, 'pair')} of judges {verb} less than their "
            f"reliabilities promise, by more than chance (the worst pair, {table.index[j]} and {table.index[i]}: "
            f"{correlation[i, j]:.2f}, promised {bound[i, j]:.2f}): judges repeat themselves, but differ from each "
            "other, so that one is not as good as several"
        )


def _resampled(
    panel: PanelRuns, means: Float, pairs: NDArray[np.intp], n_resamples: int, seed: int, run: LaneRun,
    strata: Int | None = None,
) -> tuple[Float, Float]:  # fmt: skip
    """Return (2, B, J) ICC(3,1) and ICC(3,k) and (B, P) correlations of ``pairs``' run means, of the same resamples."""
    n_judges, numbers = len(panel.n_runs), np.unique(panel.n_runs[panel.n_runs > 1])
    of_icc = [np.flatnonzero(panel.n_runs == k) for k in numbers]
    blocks = [_icc_columns(panel.outcome[j, :, : panel.n_runs[j]]) for judges in of_icc for j in judges]
    blocks += [_correlation_columns(means[i], means[j]) for i, j in pairs]
    per_item = sums_by(panel.item, np.concatenate(blocks, axis=1))
    drawn = resampled_sums(per_item, n_resamples, seed, "icc", run=run, strata=strata)
    icc, start = np.full((2, n_resamples, n_judges), np.nan), 0
    for k, judges in zip(numbers, of_icc, strict=True):
        end = start + len(judges) * (4 + k)
        icc[..., judges] = _icc_of_sums(drawn[:, start:end].reshape(n_resamples, len(judges), 4 + k), int(k))
        start = end
    n, x, y, xx, yy, xy = np.moveaxis(drawn[:, start:].reshape(n_resamples, len(pairs), 6), -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        of_x, of_y = xx - x**2 / n, yy - y**2 / n
        varies = (of_x > _ROUNDING * xx) & (of_y > _ROUNDING * yy)
        return icc, np.where(varies, (xy - x * y / n) / np.sqrt(of_x * of_y), np.nan)


def _icc_columns(table: Float) -> Float:
    """Return (R, 4 + K) columns of answers whose sums give the reliability of K runs (R, K)."""
    complete = np.asarray(~np.isnan(table).any(-1))
    used, _ = centred_runs(table, complete)
    mean = used.mean(-1)
    return np.concatenate([np.stack([complete, mean, mean**2, (used**2).sum(-1)], -1), used], -1)


def _icc_of_sums(drawn: Float, k: int) -> Float:
    """Return (2, B, J) ICC(3,1) and ICC(3,k) of sums (B, J, 4 + K)."""
    n, total, squares, all_squares = np.moveaxis(drawn[..., :4], -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        between = k * (squares - total**2 / n)
        of_runs = (drawn[..., 4:] ** 2).sum(-1) / n - k * total**2 / n
        error = all_squares - k * total**2 / n - between - of_runs
        # What is left by rounding, where items do not vary or runs never differ.
        between = np.where(between <= _ROUNDING * k * squares, np.nan, between)
        error = np.where(error <= _ROUNDING * all_squares, 0.0, error)
        ratio = (between / (n - 1)) / (error / ((n - 1) * (k - 1)))
        single = np.where(np.isinf(ratio), 1.0, (ratio - 1) / (ratio + k - 1))
        return np.stack([single, 1 - 1 / ratio])


def _correlation_columns(x: Float, y: Float) -> Float:
    """Return (R, 6) columns of answers whose sums give the correlation of x and y (R,), where both are there."""
    both = ~(np.isnan(x) | np.isnan(y))
    a, b = (np.where(both, z - np.nanmean(z), 0.0) for z in (x, y))
    return np.stack([both, a, b, a**2, b**2, a * b], -1)


def width_by_threshold(verdicts: AnchoredVerdicts, screen: JudgeScreen, thresholds: ArrayLike | None = None,
                       level: float = 0.95) -> pd.DataFrame:  # fmt: skip
    """Return the median width of the probability's intervals where judges pass a threshold, by threshold (Figure 3).

    Runs are averaged first. ``median_width`` is that of the Beta interval; reliability enters it by the probabilities
    alone. ``median_own_width`` is that of the interval by the prompts' own variance. A wavering judge has a shorter
    one, as its averages over runs lie closer together. Judges that were not screened are left out, and
    ``attrs["warnings"]`` says so.

    Raises:
        DataError: no judge of these verdicts was screened.
    """
    scores = count_verdicts(verdicts, ["model", "judge", "anchor"])
    wins, ties, losses = (scores[c].to_numpy() for c in COUNTS)
    ratings = anchored_elo(wins, ties, losses, level=level, squares=scores["squares"].to_numpy())
    ends = (ratings.probability_lower, ratings.probability_upper), (ratings.own_lower, ratings.own_upper)
    widths = [np.asarray(upper) - np.asarray(lower) for lower, upper in ends]
    _, warnings = present_judges(screen.table.index, scores["judge"], screen)
    icc = screen.table["average"].reindex(scores["judge"]).to_numpy()
    grid = np.linspace(0, 1, 21) if thresholds is None else np.asarray(thresholds, float)
    rows = []
    for t in grid:
        passing = icc >= t
        medians = [np.median(width[passing]) if passing.any() else np.nan for width in widths]
        rows.append((t, scores["judge"][passing].nunique(), *medians))
    table = pd.DataFrame(rows, columns=["threshold", "n_judges", "median_width", "median_own_width"])
    table.attrs["warnings"] = warnings
    return table


def present_judges(
    chosen: Iterable[Hashable], judging: Iterable[Hashable], screen: JudgeScreen
) -> tuple[list[Hashable], list[str]]:
    """Give judges of those ``chosen`` that are among the ``judging`` of some verdicts, and sentences about the others.

    Without any such judge it is a DataError.
    """
    screened, here = pd.Index(list(chosen)), pd.Index(list(dict.fromkeys(judging)))
    there = [judge for judge in screened if judge in here]
    if not there:
        raise DataError(
            f"the screened judges ({named(screened, 5)}) gave none of these verdicts, which are by {named(here, 5)}: "
            "screen these judges"
        )
    absent = screened[[judge not in here for judge in screened]]
    unknown = here[[judge not in screen.table.index for judge in here]]
    of_both = ("left out, as they gave no verdict here: ", absent), ("left out, as they were not screened: ", unknown)
    return there, [f"{why}{named(names, 5)}" for why, names in of_both if len(names)]
