"""Boards over time: the models whose rating changed, and intervals that stay valid when one looks every day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy

from jaxeval.arrays import Float
from jaxeval.audits import periods
from jaxeval.audits.parts import Answered, Audited, NotAnsweredError, Severity, check_plain
from jaxeval.checks import checked_integer, checked_positive
from jaxeval.data.battles import Battles, as_battles
from jaxeval.errors import DataError
from jaxeval.ratings.boards import Board, battles_per_model, fit_boards, inverse_information
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.ratings.options import FitOptions
from jaxeval.show.cells import with_kinds
from jaxeval.show.shown import Answer
from jaxeval.show.table import Table
from jaxeval.statistics.clusters import cluster_factors, effective_clusters, few_clusters_text
from jaxeval.statistics.quantiles import checked_level, normal_quantile
from jaxeval.wording import counted, visible_line

_BASE = 1000.0
_MOST_NUMBERS = 2**25  # in the tables of all periods: 270 MB
_MOST_TOLD = 3
_OF_CHANGES = ["model", "period", "before", "after", "difference", "lower", "upper", "p_adjusted", "n_before",
               "n_after"]  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Drift(Answered):
    """Whether ratings changed over time. Ratings are in Elo.

    ``changes`` has the steps that were found, in the order in which they were found: the model, the first ``period``
    after the step, ratings ``before`` and ``after`` with all other models held together, their ``difference`` with its
    interval, and ``p_adjusted``. The interval allows for the choice of the largest step among all models and splits.
    The difference itself is too large on average, as it was chosen for its size.

    ``table`` has a row per model: the largest |z| over all splits before any step is taken out, where it is
    (``period``), its ``p_value``, its ``p_adjusted`` over all models, and ``detectable``: the step that would be found
    half of the time.

    ``ratings`` has a row per period and model. The ratings of a period are shifted together so that their mean change
    against the whole board, weighted by battles, is zero: they show only what a model does beside the others.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> votes = jaxeval.simulate_votes(2_000, 4, seed=0)
        >>> votes["day"] = pd.Timestamp("2026-01-05") + pd.to_timedelta(votes.index // 50, unit="D")
        >>> found = jaxeval.drift(votes, "day")
        >>> len(found.changes), found.settings["n_periods"]
        (0, 6)
        >>> found.findings()[0].text[:61]
        'No rating of 4 models over 6 weeks changed: the largest |z| i'
    """

    part = "drift"
    changes: pd.DataFrame
    ratings: pd.DataFrame
    critical: float  # of |z|, over all models and splits

    def _shown(self) -> Answer:
        n = self.settings["n_periods"]
        title = f"Drift: {counted(len(self.changes), 'change')} in {counted(n, 'period')}"
        settings = f"by {visible_line(self.settings['time'])}, every {self.settings['every']}, "
        table = self.table[["model", "z", "period", "p_value", "p_adjusted", "detectable"]]
        return Answer(title, table, f"{settings}any false alarm at most {self.settings['alpha']:g}", self.warnings)

    def _said(self) -> Iterator[tuple[Severity, str]]:
        every, n, noun = self.settings["every"], self.settings["n_periods"], self.competitor
        tested = self.table["p_adjusted"].notna()
        if not tested.any():
            text = f"No {noun.one} has {counted(self.settings['min_votes'], 'vote')} before and after a split of the "
            yield Severity.CAUTION, f"{text}{n} {periods.period_word(every)}s: drift cannot be seen."
            return
        among = f"of {noun.counted(int(tested.sum()))} over {counted(n, periods.period_word(every))}"
        if len(self.changes) == 0:
            best, usual = self.table.loc[tested].iloc[0], self.table.loc[tested, "detectable"].median()
            text = f"No rating {among} changed: the largest |z| is {abs(best['z']):.1f} ({visible_line(best['model'])})"
            text += f", and a change takes {self.critical:.1f}. For the median {noun.one} a step of {usual:.0f} Elo "
            yield Severity.REASSURING, f"{text}would be found half of the time."
            return
        changes = "; ".join(
            f"{visible_line(row.model)} by {row.difference:+.0f} Elo from {row.period} on (p = {row.p_adjusted:.2g})"
            for row in self.changes.head(_MOST_TOLD).itertuples()
        )
        changed = self.changes["model"].nunique()
        text = f"The ratings of {changed:,} {among} changed: {changes}. The board shows averages over these changes."
        yield Severity.SERIOUS if changed > tested.sum() / 10 else Severity.CAUTION, text


class _Change(NamedTuple):
    unit: int
    later: int  # the unit that takes its place
    period: int
    p_adjusted: float


def drift(
    battles: Battles | Any,
    time: str,
    *,
    every: periods.Every = "week",
    cluster: str | None = None,
    min_votes: int = 30,
    alpha: float = 0.05,
    level: float = 0.95,
    most_changes: int = 10,
    n_draws: int = 1000,
    seed: int = 0,
) -> Drift:
    """Return ratings by period, and the models whose rating changed, with a chance of any false alarm of ``alpha``.

    For every model and every split of the periods, a step of the model's rating is tested by its score, divided by its
    standard error (sup-score test; Andrews 1993, DOI 10.2307/2951764). The largest |z| over all models and splits is
    compared with that of draws without a change, which have the variance of the residuals, or of whole clusters. If it
    is too large, the model is split in two there, the board is fitted anew, and the search goes on. So opponents of a
    model that changed raise no alarm of their own.

    docs/drift-and-peeking.md says how often steps are found on simulated boards, how much too large they look, and how
    often false alarms are raised. Voters with tastes who vote many times within minutes raise them: name ``cluster=``.

    Args:
        battles: `Battles`, or a table with the standard columns.
        time: column of when votes were cast: times, texts in ISO 8601, or seconds since 1970.
        every: "hour", "day", "week", "month", "quarter" or "year" (UTC), or a number of periods of equal size.
        cluster: column of voters or prompts, whose votes are not independent.
        min_votes: votes of a model that are needed on either side of a split.
        alpha: the chance of any false alarm, over all models and splits.
        level: of the intervals; those of ``changes`` hold at once for all models and splits.
        most_changes: the most changes that are looked for.
        n_draws: draws of boards without a change; p is at least 1 / (n_draws + 1).
        seed: the same seed gives the same draws.

    Raises:
        DataError: there is no such column, a value is no time, all votes fall into one period or one cluster, or there
            are too many periods and models to hold in memory.
        ValueError: a number out of range.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> early = jaxeval.simulate_votes(1_500, strengths=pd.Series({"a": 0.5, "b": 0.0, "c": -0.5}))
        >>> late = jaxeval.simulate_votes(1_500, strengths=pd.Series({"a": -0.5, "b": 0.0, "c": -0.5}), seed=1)
        >>> votes = pd.concat([early, late], ignore_index=True)
        >>> votes["day"] = pd.Timestamp("2026-01-05") + pd.to_timedelta(votes.index // 100, unit="D")
        >>> found = jaxeval.drift(votes, "day")
        >>> found.changes[["model", "period"]].to_numpy().tolist()
        [['a', '2026-01-19']]
    """
    battles = as_battles(battles)
    alpha, z_level = checked_level(alpha, "alpha"), normal_quantile(level)
    min_votes, n_draws = checked_integer("min_votes", min_votes, 1), checked_integer("n_draws", n_draws, 100)
    most_changes, seed = checked_integer("most_changes", most_changes), checked_integer("seed", seed)
    clusters = None if cluster is None else battles.codes(cluster)[0]
    if clusters is not None and clusters.max() == 0:
        raise DataError(f"column {cluster!r} has one value only: one cluster does not show how far others would differ")
    cut = periods.cut_periods(periods.vote_seconds(battles, time), every)
    n = len(cut.starts)
    if n < 2:
        raise DataError(f"all votes fall into one period (every={every!r}, from {cut.names[0]}): take a shorter one")
    if n * battles.n_models**2 > _MOST_NUMBERS:
        most = max(_MOST_NUMBERS // battles.n_models**2, 2)
        raise DataError(
            f"{n:,} periods of {battles.competitor.counted(battles.n_models)} are too many to compare: take longer "
            f"periods (every={most} makes as many as there is room for), or fewer {battles.competitor.many} "
            "(Battles.filter, on the command line --models)"
        )
    votes = periods.timed_votes(
        battles.model_a, battles.model_b, battles.target, battles.weight, battles.count, cut.number,
        clusters, n_periods=n, n_models=battles.n_models,
    )  # fmt: skip
    first, changes, votes, board = _search(votes, min_votes, alpha, most_changes, n_draws, np.random.default_rng(seed))
    critical = _quantile(first, 1 - alpha)
    warnings = []
    if votes.cluster is not None:
        size = votes.cluster_sizes()
        warnings = few_clusters_text(len(size), effective_clusters(size))
    if len(changes) == most_changes > 0:
        warnings.append(
            f"{counted(most_changes, 'change was', 'changes were')} found, and no more were looked for (most_changes=)"
        )
    return Drift(
        ratings=_ratings(battles, cut, first.board, z_level),
        table=_models_table(first, cut, battles.models, critical),
        changes=_changes_table(changes, votes, board, cut, battles.models, _quantile(first, level)),
        critical=critical,
        settings={"time": time, "every": every, "cluster": cluster, "min_votes": min_votes, "alpha": alpha,
                  "level": level, "n_draws": n_draws, "seed": seed, "n_periods": n},
        warnings=warnings,
        competitor=battles.competitor,
    )  # fmt: skip


def audited_drift(audited: Audited) -> Drift:
    """Return the part of an audit, by weeks, or by what suits the votes."""
    options = audited.options
    check_plain(audited)
    every = periods.usual_period(periods.vote_seconds(audited.battles, str(options.time)))
    return drift(
        audited.battles, str(options.time), every=every, cluster=options.cluster, alpha=1 - options.level,
        level=options.level, seed=options.seed,
    )  # fmt: skip


def _search(
    votes: periods.TimedVotes, min_votes: int, alpha: float, most: int, n_draws: int, rng: np.random.Generator
) -> tuple[periods.StepTest, list[_Change], periods.TimedVotes, Board]:
    """Return the test before any step is taken out, the steps, and the votes and their fit with all steps taken out."""
    changes: list[_Change] = []
    first = test = periods.step_test(votes, periods.fit_timed(votes), min_votes, n_draws, rng)
    while len(changes) < most and not np.isnan(test.z).all():
        split, unit = np.unravel_index(np.nanargmax(np.abs(test.z)), test.z.shape)
        p = (1 + (test.largest >= abs(test.z[split, unit])).sum()) / (n_draws + 1)
        if p > alpha:
            break
        changes.append(_Change(int(unit), votes.n_units, int(split) + 1, float(p)))
        votes = votes.split(int(unit), int(split) + 1)
        test = periods.step_test(votes, periods.fit_timed(votes), min_votes, n_draws, rng)
    return first, changes, votes, test.board


def _quantile(test: periods.StepTest, level: float) -> float:
    """Return what the largest |z| over all models and splits stays below, with this chance."""
    return float(np.quantile(test.largest, level, method="higher"))


def _models_table(test: periods.StepTest, cut: periods.Periods, models: pd.Index, critical: float) -> pd.DataFrame:
    z = np.where(np.isnan(test.z), 0.0, np.abs(test.z))
    tested, best = (z > 0).any(0), z.argmax(0)
    largest = np.take_along_axis(test.z, best[None], 0)[0]
    n = len(test.largest) + 1
    error = np.where(np.isnan(test.step_error), np.inf, test.step_error).min(0)
    error = np.where(tested, error, np.nan)
    table = pd.DataFrame({
        "model": models,
        "z": largest,
        "period": cut.names[best + 1],
        "p_value": np.where(tested, (1 + (test.of_unit >= np.abs(largest)[:, None]).sum(1)) / n, np.nan),
        "p_adjusted": np.where(tested, (1 + (test.largest[:, None] >= np.abs(largest)).sum(0)) / n, np.nan),
        "detectable": critical * error * ELO_PER_LOGIT,
    })  # fmt: skip
    table["period"] = table["period"].where(tested)
    return table.sort_values("z", key=np.abs, ascending=False, na_position="last", kind="stable", ignore_index=True)


def _changes_table(
    changes: list[_Change],
    votes: periods.TimedVotes,
    board: Board,
    cut: periods.Periods,
    models: pd.Index,
    largest: float,
) -> pd.DataFrame:
    """Return the steps, from the fit in which every model that changed counts as several models.

    ``largest`` is the quantile of the largest |z|: intervals of that many errors hold for all models and splits at
    once, and so for those that the data choose.
    """
    covariance = _sandwich(votes, board) if changes else np.zeros((0, 0))
    n_votes = votes.per_unit()
    of_unit: dict[int, Any] = dict(enumerate(models))
    for change in changes:
        of_unit[change.later] = of_unit[change.unit]
    rows = []
    for change in changes:
        before, after = _neighbours(change, changes)
        gap = board.theta[after] - board.theta[before] if board.active[after] & board.active[before] else np.nan
        error = covariance[before, before] + covariance[after, after] - 2 * covariance[before, after]
        half = largest * np.sqrt(max(error, 0.0))
        rows.append((
            of_unit[change.later], cut.names[change.period], _BASE + ELO_PER_LOGIT * board.theta[before],
            _BASE + ELO_PER_LOGIT * board.theta[after], ELO_PER_LOGIT * gap, ELO_PER_LOGIT * (gap - half),
            ELO_PER_LOGIT * (gap + half), change.p_adjusted, int(n_votes[:, before].sum()),
            int(n_votes[:, after].sum()),
        ))  # fmt: skip
    return with_kinds(pd.DataFrame(rows, columns=_OF_CHANGES), ends_of="difference")


def _neighbours(change: _Change, changes: list[_Change]) -> tuple[int, int]:
    """Return the units just before and just after a step, when all steps are taken out.

    A unit that is split later keeps its number before the later step; what comes after it has a new one.
    """
    before = change.unit
    for other in changes:  # a later split of what lies before the step leaves its second part next to it
        if other.later > change.later and other.unit == before:
            before = other.later
    return before, change.later


def _sandwich(votes: periods.TimedVotes, board: Board) -> Float:
    """Return (U, U) sandwich covariance of the strengths, over votes or whole clusters."""
    cells, cell = votes.cells()
    scores = board.scores()
    inverse = board.inverse_information()
    if votes.cluster is None:
        squares = (scores.T @ scores.multiply(cells.count[:, None])).toarray()
    else:
        shape = (int(votes.cluster.max()) + 1, len(cells.count))
        count = votes.count * cluster_factors(votes.cluster_sizes())[votes.cluster]
        of_cluster = scipy.sparse.csr_array((count, (votes.cluster, cell)), shape) @ scores
        squares = (of_cluster.T @ of_cluster).toarray()
    return np.asarray(inverse @ squares @ inverse)


def _ratings(battles: Battles, cut: periods.Periods, whole: Board, z_level: float) -> pd.DataFrame:
    rows = battles.rows_by_group(cut.number, len(cut.starts))
    slices = [battles.compress(period_rows)[0].localise(battles.models) for period_rows in rows]
    boards = fit_boards(slices, FitOptions())
    inverses, _ = inverse_information(boards)
    parts = []
    for period, board, inverse in zip(cut.names, boards, inverses, strict=True):
        m = len(board.models)
        place = battles.models.get_indexer(board.models)
        n = battles_per_model(board.cells, m)
        both = board.active & whole.active[place]
        weight = np.where(both, n, 0.0) / max(n[both].sum(), 1.0)
        theta = board.theta + weight @ (whole.theta[place] - board.theta)
        inverse = inverse[:m, :m]
        shift = inverse @ weight
        variance = np.diag(inverse) - 2 * shift + weight @ shift  # of strengths less their mean by the weights
        error = np.sqrt(np.maximum(variance, 0.0))
        rating = np.where(both, _BASE + ELO_PER_LOGIT * theta, np.nan)
        half = ELO_PER_LOGIT * z_level * error
        parts.append(
            pd.DataFrame({"period": period, "model": board.models, "n_battles": n.astype(np.int64), "rating": rating,
                          "lower": rating - half, "upper": rating + half})
        )  # fmt: skip
    return with_kinds(Table(pd.concat(parts, ignore_index=True)), ends_of="rating")


#: Standard error of a difference, Elo, at which anytime intervals are least wide beside fixed ones.
TUNED_FOR = 10.0


@dataclass(frozen=True, eq=False, repr=False)
class AnytimeIntervals(Answered):
    """Differences of ratings (Elo) with intervals that hold at all looks at once.

    ``table`` has a row for each pair of rated models, by rank: ``above, below, difference, standard_error``, the ends
    ``lower, upper``, and how many ``places`` lie between both. ``width_ratio`` is how many times as wide the interval
    is as a fixed one of the same level. ``apart`` says whether 0 lies outside of it; ``apart_fixed`` says the same of
    the fixed one.

    Examples:
        >>> import jaxeval
        >>> fit = jaxeval.fit_bradley_terry(jaxeval.simulate_battles(2_000, 4, seed=0))
        >>> found = jaxeval.anytime_intervals(fit)
        >>> found.table[["above", "below", "lower", "upper"]].round().to_numpy().tolist()[0]
        ['model-1', 'model-2', 68.0, 144.0]
    """

    part = "anytime_intervals"

    def _shown(self) -> Answer:
        title = f"AnytimeIntervals: {counted(len(self.table), 'pair')}, {self.table['apart'].sum():,} told apart"
        settings = f"{100 * self.settings['level']:g}% at all looks, tuned for {self.settings['tuned_for']:g} Elo"
        return Answer(title, self.table, settings, self.warnings)

    @property
    def tables(self) -> Mapping[str, pd.DataFrame]:
        """The intervals of neighbours, which an audit shows, and those of all pairs."""
        return {"": self.neighbours, "all_pairs": self.table}

    @property
    def neighbours(self) -> pd.DataFrame:
        """The rows of models that stand next to each other."""
        return self.table[self.table["places"] == 1].drop(columns="places").reset_index(drop=True)

    def _said(self) -> Iterator[tuple[Severity, str]]:
        near = self.neighbours
        if len(near) == 0:
            return
        lost = int((near["apart_fixed"] & ~near["apart"]).sum())
        text = f"Somebody who looks every day needs intervals {near['width_ratio'].median():.2f} times as wide: they "
        text += f"tell {near['apart'].sum():,} of {counted(len(near), 'pair')} of neighbours apart. Fixed intervals "
        text += f"tell {near['apart_fixed'].sum():,} apart, but miss at some look more often than they say."
        yield Severity.CAUTION if lost else Severity.NOTE, text


def anytime_intervals(
    board: BradleyTerryFit | Bootstrap,
    *,
    level: float = 0.95,
    tuned_for: float = TUNED_FOR,
    comparisons: int | Literal["all"] = 1,
) -> AnytimeIntervals:
    """Return intervals of all rating differences that hold at all looks at once, however many, at a growing board.

    difference -+ s sqrt((1 + 1 / u) log((1 + u) / alpha^2)), with the sandwich standard error s and u = c (tuned_for /
    s)^2; an asymptotic confidence sequence (Waudby-Smith et al., arXiv:2103.06476). On 300 simulated boards of 6
    models with 100 looks at 60 or 300 to 6,000 votes, intervals of 95 % missed the difference at some look in .01
    to .03 of the boards, and fixed ones in .33 to .39. They are 1.55 times as wide as fixed ones where they are
    tuned, and 1.66 times as wide at a quarter of those votes or at ten times as many. They rest on a normal
    approximation from the first look on: first look when every model has about 20 votes.

    Args:
        board: the fit, or a bootstrap, whose fit is taken. A fit with ``cluster=`` has errors over clusters.
        level: at all looks at once.
        tuned_for: the standard error (Elo) at which intervals are least wide beside fixed ones. Choose it before the
            first look, and keep it: half of the gap that you want to detect is a good choice.
        comparisons: how many pairs share 1 - level as the chance that any interval misses; "all": all pairs of rated
            models. For a board that grows, give the number of pairs that it will have.

    Raises:
        ValueError: a level or a number out of range.

    Examples:
        >>> import jaxeval
        >>> fit = jaxeval.fit_bradley_terry(jaxeval.simulate_battles(2_000, 4, seed=0))
        >>> found = jaxeval.anytime_intervals(fit)
        >>> found.neighbours[["above", "below", "apart", "apart_fixed"]].to_numpy().tolist()[0]
        ['model-1', 'model-2', True, True]
        >>> found.neighbours["width_ratio"].round(2).tolist()
        [1.56, 1.55, 1.56]
    """
    alpha = 1 - checked_level(level)
    tuned_for = checked_positive("tuned_for", tuned_for)
    fit = board.fit if isinstance(board, Bootstrap) else board
    rated = fit.ratings[np.isfinite(fit.ratings)].sort_values(ascending=False, kind="stable")
    errors = fit.difference_standard_errors.loc[rated.index, rated.index].to_numpy()
    above, below = np.triu_indices(len(rated), 1)
    n = len(above) if comparisons == "all" else checked_integer("comparisons", comparisons, 1)
    value, error = rated.to_numpy()[above] - rated.to_numpy()[below], errors[above, below]
    error = np.where(error > 0, error, np.nan)  # without spread, as with ties alone, the error is unknown
    half = error * anytime_factor(error, tuned_for, alpha / max(n, 1))
    fixed = normal_quantile(level) * error
    table = pd.DataFrame({
        "above": rated.index[above], "below": rated.index[below], "difference": value, "standard_error": error,
        "lower": value - half, "upper": value + half, "width_ratio": half / fixed, "apart": value > half,
        "apart_fixed": value > fixed, "places": below - above,
    })  # fmt: skip
    with_kinds(table, ends_of="difference")
    settings = {"level": level, "tuned_for": tuned_for, "comparisons": n}
    return AnytimeIntervals(table=table, settings=settings, warnings=list(fit.warnings))


def audited_anytime(audited: Audited) -> AnytimeIntervals:
    """Return the part of an audit."""
    intervals = anytime_intervals(audited.fit, level=audited.options.level)
    if intervals.table["width_ratio"].isna().all():
        raise NotAnsweredError("no difference of two ratings has a standard error: there are no intervals to widen")
    return intervals


def wider_at_all_looks(lower: Float, upper: Float, level: float) -> float:
    """Return how many times as wide the median interval of ratings is if it holds at all looks; NaN for none."""
    z = normal_quantile(level)
    error = (upper - lower) / (2 * z)
    error = error[np.isfinite(error) & (error > 0)]
    return float(np.median(anytime_factor(error, TUNED_FOR, 1 - level)) / z) if len(error) else np.nan


def anytime_factor(standard_error: Float, tuned_for: float, alpha: float) -> Float:
    """Return half-widths in (present) standard errors, valid at all times with probability 1 - ``alpha``.

    At the standard error ``tuned_for``, chosen before looking, the interval is as narrow as it can be.
    """
    with np.errstate(divide="ignore"):
        # The factor is least at the u with log((1 + u) / alpha^2) = u.
        best = -1 - float(scipy.special.lambertw(-(alpha**2) / np.e, -1).real)
        u = best * (tuned_for / standard_error) ** 2
        # An infinite standard error gives u = 0 and an infinite factor: there is no interval yet. So does one of 0.
        return np.asarray(np.sqrt((1 + 1 / u) * np.log((1 + u) / alpha**2)))
