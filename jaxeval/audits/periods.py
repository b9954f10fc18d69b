"""When votes were cast: times read from a column, and cut into periods."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int
from jaxeval.checks import checked_integer
from jaxeval.data.battles import Battles
from jaxeval.data.columns import reject_infinite, reject_missing
from jaxeval.errors import DataError
from jaxeval.wording import counted

Every = Literal["hour", "day", "week", "month", "quarter", "year"] | int

_CODES = {"hour": "h", "day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}
_YEARS = 2000, 2100  # in which numbers are taken for seconds since 1970


def told_period(every: Every) -> str:
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
    """Give (R,) seconds since 1970 UTC of every row, from times, texts in ISO 8601, or numbers, which are such seconds.

    Raises:
        DataError: there is no such column, or a value is no time.
    """
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
    """Return (R,) the time of every row: numbers as they are, whatever they count, and `vote_seconds` of other values.

    Raises:
        DataError: there is no such column, a value is no time, or a number is missing or infinite.
    """
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
    """Days, weeks or months, the longer the votes span; ten equal shares of the votes if they span under five days."""
    days = np.ptp(seconds) / 86_400
    lengths: dict[float, Every] = {5: 10, 35: "day", 1_800: "week", np.inf: "month"}
    return next(every for most, every in lengths.items() if days < most)


def cut_periods(seconds: Int, every: Every) -> Periods:
    """Give periods of the calendar, in UTC, weeks from Monday; or ``every`` = K: K shares with about equally many rows.

    Raises:
        ValueError: ``every`` is no period.
    """
    if isinstance(every, str):
        if every not in _CODES:
            known = ", ".join(map(repr, get_args(get_args(Every)[0])))
            raise ValueError(f"every must be one of {known}, or a number of periods, got {every!r}")
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
