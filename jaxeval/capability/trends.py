"""A line through estimates by date, with the errors of estimates that share what was drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from jaxeval.arrays import Float, Int
from jaxeval.errors import DataError
from jaxeval.statistics.draws import Draws
from jaxeval.wording import counted, named


class Line(NamedTuple):
    """A line by date."""

    slope: tuple[float, float, float]  # a day: estimate, lower, upper
    points: pd.DataFrame  # name, released, estimate, fitted
    forecast: pd.DataFrame  # date, estimate, lower, upper
    warnings: tuple[str, ...]


def line_by_date(
    draws: Draws, noun: str, released: Mapping[str, Any], frontier: bool, since: Any, until: Any, at: Sequence[Any],
    level: float,
) -> Line:  # fmt: skip
    """Fit a line by least squares to the estimates, and to each draw of them.

    ``noun`` is what the names are, ``released`` the date of each. ``frontier`` takes only those whose estimate is the
    largest up to their date; its slope is above 0 where some are told to be above the first. The line is read ``at``
    some dates.
    """
    unknown = [name for name in released if name not in draws.names]
    if unknown:
        raise DataError(f"no {noun} called {named(unknown)}; there are {named(draws.names)}")
    drawn = np.isfinite(draws.draws).any(0)  # those without an interval take no part
    known = pd.Series(draws.estimate, draws.names)[drawn]
    table = pd.DataFrame({"released": dated(released), "estimate": known}).dropna()
    table = table[np.isfinite(table["estimate"])].sort_values("released", kind="stable")
    first, last = (None if date is None else dated({"": date}).iloc[0] for date in (since, until))
    table = table[table["released"].between(first or table["released"].min(), last or table["released"].max())]
    rises = True
    if frontier and len(table):
        rises = _rises(draws, draws.names.get_indexer(table.index), level)
        table = table[table["estimate"] >= table["estimate"].cummax()]
    if len(table) < 2 or table["released"].nunique() < 2:
        raise DataError(f"a trend needs two {noun}s or more, and two dates, got {counted(len(table), noun)}")
    start = table["released"].iloc[0]

    def basis(dates: pd.Series) -> Float:
        days = (dates - start).dt.days.to_numpy(float) if len(dates) else np.zeros(0)
        return np.stack([np.ones(len(days)), days], 1)

    which, when = draws.names.get_indexer(table.index), dated(dict(enumerate(at)))
    values = np.concatenate([draws.estimate[None, which], draws.draws[:, which]])
    usable = np.isfinite(values).all(1)
    lines = values[usable] @ np.linalg.pinv(basis(table["released"])).T  # (1 + B, 2)
    far = lines @ basis(when).T
    all_numbers = np.concatenate([lines[:, 1:], far], axis=1)
    names = pd.RangeIndex(all_numbers.shape[1])
    ends = Draws(names, all_numbers[0], all_numbers[1:], freedom=draws.freedom).interval(level)
    forecast = pd.DataFrame({"date": when.to_numpy(), "estimate": far[0]})
    for end in ("lower", "upper"):
        forecast[end] = ends[end].to_numpy()[1:]
    points = pd.DataFrame(
        {noun: table.index, "released": table["released"].to_numpy(), "estimate": table["estimate"].to_numpy(),
         "fitted": basis(table["released"]) @ lines[0]}
    )  # fmt: skip
    warnings = []
    if len(table) < 5:
        warnings.append(f"the trend rests on {counted(len(table), noun)}: whether it is a line cannot be seen")
    lost = int((~usable).sum())
    if lost:
        warnings.append(f"{counted(lost, 'resample')} without an estimate of every {noun} left out")
    slope = (float(lines[0, 1]), float(ends["lower"].iloc[0]), float(ends["upper"].iloc[0]))
    if not rises and slope[1] > 0:
        slope = (slope[0], 0.0, slope[2])
        warnings.append(f"no {noun} is told apart from the first: a frontier never falls, and may rise by chance alone")
    return Line(slope, points, forecast, tuple(warnings))


def _rises(draws: Draws, dated: Int, level: float) -> bool:
    """Return whether some of those ``dated``, in order, is told to be above the first, all at once (Bonferroni).

    A frontier holds the largest up to their dates, and never falls: the intervals of its slope, which take it as given,
    said that it rises in .24 of 1,000 simulations of 30 equals, and in .15 of 10.
    """
    values = np.concatenate([draws.estimate[None, dated], draws.draws[:, dated]])
    with np.errstate(invalid="ignore"):
        above = values[:, 1:] - values[:, :1]
    n = above.shape[1]
    apart = Draws(pd.RangeIndex(n), above[0], above[1:], freedom=draws.freedom).interval(1 - (1 - level) / max(n, 1))
    return bool((apart["lower"] > 0).any())


def dated(values: Mapping[Any, Any]) -> pd.Series:
    """Return dates by name, missing where there is none. A number is a year."""
    column = pd.Series(dict(values), dtype=object).map(_year)
    dates = pd.to_datetime(column, errors="coerce", utc=True, format="mixed").dt.tz_localize(None)
    bad = dates.isna() & column.notna()
    if bad.any():
        name = column.index[bad.to_numpy().argmax()]
        raise DataError(f"the date of {name!r} must be one such as 2025-12-31, got {column[name]!r}")
    return dates


def _year(value: Any) -> Any:
    if isinstance(value, bool | np.bool_ | Number) and not pd.isna(value):  # else nanoseconds since 1970
        return f"{value:.0f}" if value in range(1900, 2200) else f"{value}, a number"
    return value
