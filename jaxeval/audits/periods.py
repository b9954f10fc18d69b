"""Read when votes were cast, cut times into periods, and test what may depend on time.

That is every model's rating, for a step at some time, where errors over models and splits are controlled; and who meets
whom, which may follow from the results so far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import check_choice, checked_integer
from jaxeval.data.battles import Battles
from jaxeval.data.cells import Cells, compressed
from jaxeval.data.columns import reject_missing
from jaxeval.data.numbers import reject_infinite
from jaxeval.errors import DataError
from jaxeval.ratings.boards import Board, fit_boards
from jaxeval.ratings.options import FitOptions
from jaxeval.statistics.clusters import cluster_factors, degrees_of_freedom, numbered
from jaxeval.wording import counted

_ROUNDING = 1e-9  # of scores, which sum to 0: their squares have no root of full rank
_LANES = 2**24  # numbers of draws that are in memory at once
#: Windows of time within which models are taken to play equally often, and the fewest rows of one.
_MOST_WINDOWS, _FEWEST_ROWS = 50, 20
#: Parts of the time within which models are compared with themselves, as what models there are may change, and the
#: fewest windows of one: results so far differ between windows.
_MOST_ERAS, _FEWEST_WINDOWS = 4, 5
#: Information (logits^-2) that draws an error of few votes towards 0: that of four even votes.
_PRIOR = 1.0


@dataclass(frozen=True, eq=False)
class TimedVotes:
    """Votes by T periods: E distinct (period, cluster, pair, target, weight), between U units.

    A unit is a model, or a model within a range of periods, once a change of it is found.
    """

    period: NDArray[np.intp]  # (E,)
    first: NDArray[np.int32]  # (E,) units
    second: NDArray[np.int32]
    target: Float
    weight: Float
    count: Float
    cluster: NDArray[np.intp] | None  # (E,)
    n_periods: int
    n_units: int

    def cluster_sizes(self) -> Float:
        """Return (K,) votes of each cluster."""
        return np.bincount(np.asarray(self.cluster), self.count).astype(np.float64)

    def cells(self) -> tuple[Cells, NDArray[np.intp]]:
        """Return all votes as cells, and the cell of each entry."""
        count = self.count.astype(np.int64)
        return compressed(self.n_units, self.first, self.second, self.target, self.weight, count)

    def split(self, unit: int, period: int) -> TimedVotes:
        """Return the same votes, with a unit of its own for ``unit`` from ``period`` on."""
        later = self.period >= period
        first, second = (
            np.where(later & (side == unit), self.n_units, side).astype(np.int32) for side in (self.first, self.second)
        )
        return replace(self, first=first, second=second, n_units=self.n_units + 1)

    def per_unit(self) -> Float:
        """Return (T, U) votes."""
        return self.by_unit(self.count, self.count)

    def by_unit(self, of_first: Float, of_second: Float) -> Float:
        """Return (T, U) sums of what the entries (E,) add to their first units, and to their second ones."""
        place, size = self.period * self.n_units, self.n_periods * self.n_units
        both = np.concatenate([place + self.first, place + self.second])
        sums = np.bincount(both, np.concatenate([of_first, of_second]), size)
        return np.asarray(sums, np.float64).reshape(self.n_periods, self.n_units)


class StepTest(NamedTuple):
    """A test of a step of every unit before every period but the first, all other units held."""

    z: Float  # (T - 1, U) standard scores of a step up before period t + 1; NaN where either side has too few votes
    step: Float  # (T - 1, U) the size of the step, logits (first order)
    step_error: Float  # (T - 1, U) its standard error
    largest: Float  # (B,) largest |z| over all units and splits of each draw without a change
    of_unit: Float  # (U, B) largest |z| over the splits of each unit
    board: Board


def fit_timed(votes: TimedVotes) -> Board:
    """Return the board of all units, which are called by their numbers."""
    cells, _ = votes.cells()
    return fit_boards([(pd.RangeIndex(votes.n_units), cells)], FitOptions())[0]


def step_test(votes: TimedVotes, board: Board, min_votes: int, n_draws: int, rng: np.random.Generator) -> StepTest:
    """Return standardised sums of scores until every split, and what they are without a change.

    Let S_t be the scores of period t at the fit, I_t their information, I the sum of all. A step of unit m before
    period t + 1 has the score - sum_{s <= t} S_sm. Draws of S_t are normal, with the variance that the residuals of the
    votes (or of whole clusters of them, by `cluster_factors`) have, less what the fit takes out:
    sum_{s <= t} I_s I^-1 sum_s S_s. All sums are divided by their standard deviation over the draws.
    """
    t, u = votes.n_periods, votes.n_units
    p = scipy.special.expit(board.theta[votes.first] - board.theta[votes.second])
    rated = board.active[votes.first] & board.active[votes.second]
    residual = np.where(rated, votes.weight * (votes.target - p), 0.0)
    information = np.where(rated, votes.weight * p * (1 - p), 0.0)
    score = votes.by_unit(votes.count * residual, -votes.count * residual)
    informed = _squares(votes, votes.count * information).cumsum(0)
    total = informed[-1]
    inverse = _pseudo_inverse(total, board.active)
    removed = np.stack([until @ inverse for until in informed[:-1]])  # (T - 1, U, U)
    effective = np.stack([np.diag(until) for until in informed[:-1]])
    effective = effective - np.einsum("tij,tij->ti", removed, informed[:-1])
    if votes.cluster is None:
        shape: tuple[int, ...] = (t, u)
        squares = _squares(votes, votes.count * residual**2)
        largest = np.maximum(np.diagonal(squares, axis1=1, axis2=2).max(1), 1e-300)
        root = np.linalg.cholesky(squares + _ROUNDING * largest[:, None, None] * np.eye(u)).astype(np.float32)
    else:
        factor = cluster_factors(votes.cluster_sizes())[votes.cluster]
        root = _by_cluster(votes, votes.count * residual * factor).astype(np.float32)
        shape = root.shape[1:]
    sums = np.empty((t - 1, u, n_draws), np.float32)  # of draws, whose own error is far larger
    removing = removed.astype(np.float32)
    step = max(_LANES // max(t * u, shape[0]), 1)
    for start in range(0, n_draws, step):
        n = min(step, n_draws - start)
        draws = np.asarray(root @ rng.standard_normal((*shape, n), np.float32)).reshape(t, u, n).cumsum(0)
        sums[..., start : start + step] = draws[:-1] - removing @ draws[-1]
    spread = sums.std(-1, dtype=np.float64)
    before = votes.per_unit().cumsum(0)
    enough = (before[:-1] >= min_votes) & (before[-1] - before[:-1] >= min_votes) & board.active
    enough &= (spread > 0) & (effective > 1e-9 * np.maximum(np.diag(total), 1e-300))
    divisor = np.where(enough, spread, np.inf)
    sums /= divisor[..., None].astype(np.float32)
    of_unit = np.abs(sums, out=sums).max(0).astype(np.float64)
    z = np.where(enough, -score.cumsum(0)[:-1] / divisor, np.nan)
    effective = np.where(enough, effective, np.nan)
    error = spread / effective
    return StepTest(z, z * error, error, of_unit.max(0), of_unit, board)


def _squares(votes: TimedVotes, values: Float) -> Float:
    """Sum ``values`` (E,) times outer products of slopes, 1 for the first unit and -1 for the second: (T, U, U)."""
    u = votes.n_units
    place = votes.period.astype(np.int64) * u * u
    sums = np.zeros(votes.n_periods * u * u)
    for one, other, sign in ((votes.first, votes.first, 1), (votes.second, votes.second, 1),
                             (votes.first, votes.second, -1), (votes.second, votes.first, -1)):  # fmt: skip
        sums += np.bincount(place + one.astype(np.int64) * u + other, sign * values, len(sums))
    return sums.reshape(votes.n_periods, u, u)


def _by_cluster(votes: TimedVotes, values: Float) -> scipy.sparse.csr_array:
    """Return (T U, K) scores of each cluster in each period."""
    place = votes.period * votes.n_units
    columns = np.concatenate([place + votes.first, place + votes.second])
    rows = np.tile(np.asarray(votes.cluster), 2)
    shape = (votes.n_periods * votes.n_units, int(rows.max()) + 1)
    return scipy.sparse.csr_array((np.concatenate([values, -values]), (columns, rows)), shape)


def _pseudo_inverse(information: Float, active: Bool) -> Float:
    """Return (U, U) inverse among the ``active`` units, whose common level is free; 0 elsewhere."""
    inverse = np.zeros_like(information)
    there = np.flatnonzero(active)
    if len(there) > 1:
        level = 1 / len(there)
        inverse[np.ix_(there, there)] = np.linalg.inv(information[np.ix_(there, there)] + level) - level
    return inverse


def timed_votes(
    first: NDArray[np.int32], second: NDArray[np.int32], target: Float, weight: Float | None, count: Int | None,
    period: NDArray[np.intp], cluster: NDArray[np.intp] | None, *, n_periods: int, n_models: int,
) -> TimedVotes:  # fmt: skip
    """Return rows of votes (R,), equal ones merged."""
    cells, cell = compressed(n_models, first, second, target, weight, None)
    key = period.astype(np.int64) * len(cells.count) + cell
    if cluster is not None:
        key = key * (int(cluster.max()) + 1) + cluster
    row, keys = pd.factorize(key)
    first_row = np.empty(len(keys), np.intp)
    first_row[row] = np.arange(len(row))
    cell = cell[first_row]
    pair, times = cells.pair[cell], np.bincount(row, None if count is None else count.astype(float), len(keys))
    return TimedVotes(
        period=period[first_row], first=cells.first[pair], second=cells.second[pair], target=cells.target[cell],
        weight=cells.weight[cell], count=times.astype(float), n_periods=n_periods, n_units=n_models,
        cluster=None if cluster is None else cluster[first_row],
    )  # fmt: skip


Every = Literal["hour", "day", "week", "month", "quarter", "year"] | int

_CODES = {"hour": "h", "day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}
_YEARS = 2000, 2100  # in which numbers are taken for seconds since 1970


def period_word(every: Every) -> str:
    """Return what a period is called."""
    return every if isinstance(every, str) else "period"


class Periods(NamedTuple):
    """T periods with votes, in order."""

    number: NDArray[np.intp]  # (R,) of each row
    starts: pd.DatetimeIndex  # (T,) UTC; of equal shares of the votes, the time of the first vote

    @property
    def names(self) -> pd.Index:
        """The starts as text: days, or minutes where periods begin within a day."""
        whole_days = bool((self.starts == self.starts.normalize()).all())
        return pd.Index(self.starts.strftime("%Y-%m-%d" if whole_days else "%Y-%m-%d %H:%M"), name="period")


def vote_seconds(battles: Battles, column: str) -> Int:
    """Return (R,) seconds since 1970 UTC of every row, from times, texts in ISO 8601, or numbers of such seconds."""
    values = battles.column(column)
    if isinstance(values.dtype, pd.CategoricalDtype):
        codes, kinds = values.cat.codes.to_numpy(), _as_times(values.cat.categories.to_series(), column)
        seconds = np.append(kinds.to_numpy(), np.datetime64("NaT"))[codes]
    else:
        seconds = _as_times(values, column).to_numpy()
    lacking = np.isnat(seconds)
    if lacking.any():
        first = values.iloc[int(lacking.argmax())]
        raise DataError(
            f"column {column!r}: {counted(int(lacking.sum()), 'row holds', 'rows hold')} no time (the "
            f"first: {first!r}); write times as 2026-01-31T12:00:00Z, or leave those rows out (where=, on "
            "the command line --where)"
        )
    return np.asarray(seconds.astype("datetime64[s]").astype(np.int64))


def vote_times(battles: Battles, column: str) -> Float:
    """Return (R,) the time of every row: numbers as they are, whatever they count, else `vote_seconds`."""
    values = battles.column(column)
    if not pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_bool_dtype(values.dtype):
        return vote_seconds(battles, column).astype(np.float64)
    numbers = values.to_numpy(np.float64, na_value=np.nan)
    reject_missing(np.isnan(numbers), column, battles.rows)
    reject_infinite(np.isinf(numbers), f"column {column!r}", rows=battles.rows)
    return numbers


def _as_times(values: pd.Series, column: str) -> pd.Series:
    """Return times without a zone, in UTC; NaT for values that are no times."""
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        low, high = (pd.Timestamp(year, 1, 1).timestamp() for year in _YEARS)
        seconds = values.astype(float)
        if ((seconds < low) | (seconds > high)).any():
            raise DataError(
                f"column {column!r} holds numbers from {seconds.min():g} to {seconds.max():g}: numbers are taken for "
                f"seconds since 1970, and those of {_YEARS[0]} to {_YEARS[1]} lie between {low:.0f} and {high:.0f}; "
                "convert them to times first"
            )
        return pd.to_datetime(seconds, unit="s")
    if pd.api.types.is_bool_dtype(values.dtype):
        raise DataError(f"column {column!r} holds true and false, and no times")
    if not pd.api.types.is_datetime64_any_dtype(values.dtype):
        values = values.astype(str).where(values.notna())
        return pd.to_datetime(values, utc=True, errors="coerce", format="ISO8601").dt.tz_localize(None)
    return values if values.dt.tz is None else values.dt.tz_convert("UTC").dt.tz_localize(None)


def usual_period(seconds: Int) -> Every:
    """Choose days, weeks or months by the time that votes span; ten equal shares of votes if it is under five days."""
    days = np.ptp(seconds) / 86_400
    lengths: dict[float, Every] = {5: 10, 35: "day", 1_800: "week", np.inf: "month"}
    return next(every for most, every in lengths.items() if days < most)


def cut_periods(seconds: Int, every: Every) -> Periods:
    """Return periods of the calendar (UTC, weeks from Monday), or ``every`` = K shares of about equally many rows."""
    if isinstance(every, str):
        check_choice("every", every, _CODES, ", or a number of periods")
        # Many votes fall into few distinct hours: only these are converted.
        hours, row = np.unique(seconds // 3600, return_inverse=True)
        start = pd.DatetimeIndex(pd.to_datetime(hours * 3600, unit="s")).to_period(_CODES[every]).start_time
        starts, number = np.unique(start.to_numpy(), return_inverse=True)
        return Periods(number[row], pd.DatetimeIndex(starts))
    n_periods = checked_integer("every", every, 2)
    ordered = np.sort(seconds)
    ends = np.unique(ordered[(np.arange(1, n_periods) * len(ordered)) // n_periods])
    number = np.searchsorted(ends, seconds, side="right")
    present, number = np.unique(number, return_inverse=True)
    firsts = np.append(ordered[0], ends)[present]
    return Periods(number, pd.DatetimeIndex(pd.to_datetime(firsts, unit="s")))


def followed(battles: Battles, board: Board, times: Float, cluster: Int | None = None) -> tuple[float, float, float]:
    """Return how the strengths of opponents depend on the errors of running ratings.

    The error e of a model before a vote is the sum of its residuals so far, at the fit of all votes, divided by their
    information. x is the strength of its opponent, less the mean of those that play at that time, each as often as it
    does. Both are centred by model within each of a few parts of the time. If results do not choose pairs, the sum of
    e x over the two sides of a vote has mean 0, however unequal models' shares are; so the sum over votes is divided by
    the root of its squares. With ``cluster`` (R,), the number of each row's cluster, squares are those of whole
    clusters, with the factors and the degrees of freedom of a mean over clusters of unequal size.
    """
    active = board.active[battles.model_a] & board.active[battles.model_b] & np.isfinite(times)
    a, b, when = battles.model_a[active], battles.model_b[active], times[active]
    n, m = len(a), len(board.theta)
    if n == 0:
        return np.nan, np.nan, np.nan
    theta = np.where(board.active, board.theta, 0.0)
    count = np.ones(n) if battles.count is None else battles.count[active].astype(float)
    weight = count if battles.weight is None else count * battles.weight[active]
    p = scipy.special.expit(theta[a] - theta[b])
    residual, information = weight * (battles.target[active] - p), weight * p * (1 - p)
    model, opponent, vote = np.concatenate([a, b]), np.concatenate([b, a]), np.tile(np.arange(n), 2)
    order = np.lexsort((when[vote], model))
    signed = np.concatenate([residual, -residual])[order]
    model, opponent, vote = model[order], opponent[order], vote[order]
    error = _before(signed, model, when[vote]) / (_before(information[vote], model, when[vote]) + _PRIOR)
    k = int(np.clip(n // _FEWEST_ROWS, 1, _MOST_WINDOWS))
    ends = np.sort(when)[np.arange(1, k) * n // k]
    window = np.searchsorted(np.unique(ends), when, side="right")  # of time, with about as many rows each
    strength = theta[opponent] - _expected(theta, model, window[vote], count[vote], m)
    k = int(window.max()) + 1
    eras = int(np.clip(k // _FEWEST_WINDOWS, 1, _MOST_ERAS))
    era = model * eras + (eras * window // k)[vote]
    e, x = (_centred(values, era, count[vote]) for values in (error, strength))
    products = np.bincount(vote, e * x, n)
    squared, freedom = (count * products**2).sum(), np.inf
    if cluster is not None:
        of_cluster = numbered(cluster[active])
        size = np.bincount(of_cluster, count)
        sums, freedom = np.bincount(of_cluster, count * products), degrees_of_freedom(size)
        squared = ((cluster_factors(size) * sums) ** 2).sum() if len(size) > 1 else 0.0
    spread = np.sqrt(squared)
    squares = (count[vote] * e**2).sum()
    if not (spread > 1e-12 and squares > 1e-12):
        return np.nan, np.nan, np.nan
    total = float((count * products).sum())
    z = float(total / spread)
    return float(total / squares), z, float(2 * scipy.special.stdtr(float(freedom), -abs(z)))


def _before(values: Float, model: Int, when: Float) -> Float:
    """Return sums of ``values`` of the same model at earlier times; rows are sorted by model and time."""
    place = np.arange(len(values))
    starts = np.append(True, model[1:] != model[:-1])
    later = starts | np.append(True, when[1:] != when[:-1])
    total = np.cumsum(values) - values
    latest, first = (np.maximum.accumulate(np.where(new, place, 0)) for new in (later, starts))
    return np.asarray(total[latest] - total[first])


def _expected(theta: Float, model: Int, window: Int, count: Float, m: int) -> Float:
    """Return the mean strength of those that play in the window, without the model itself."""
    k = int(window.max()) + 1
    plays = np.bincount(window * m + model, count, k * m).reshape(k, m)
    total, strong = plays.sum(1), plays @ theta
    of_itself = plays[window, model]
    return np.asarray((strong[window] - of_itself * theta[model]) / np.maximum(total[window] - of_itself, 1.0))


def _centred(values: Float, group: Int, count: Float) -> Float:
    """Return the values less their mean by group."""
    mean = np.bincount(group, count * values) / np.maximum(np.bincount(group, count), 1e-300)
    return np.asarray(values - mean[group])
