"""Times are read from what people have, and cut into periods of the calendar."""

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval.audits.periods import cut_periods, vote_seconds, vote_times
from jaxeval.errors import DataError

MOMENTS = ["2026-01-04T23:59:59Z", "2026-01-05T00:00:00Z", "2026-02-01T12:00:00+02:00"]
SECONDS = [1767571199, 1767571200, 1769940000]


def battles(when):
    votes = pd.DataFrame({"model_a": [*"xyz"], "model_b": [*"yzx"], "winner": "model_a", "when": when})
    return jaxeval.Battles.from_pandas(votes)


@pytest.mark.parametrize("when", [
    MOMENTS,
    pd.to_datetime(MOMENTS, utc=True),
    pd.to_datetime(MOMENTS, utc=True).tz_convert("Asia/Tokyo"),
    pd.to_datetime(MOMENTS, utc=True).tz_localize(None),
    pd.Categorical(MOMENTS),
    SECONDS,
    [float(x) for x in SECONDS],
])  # fmt: skip
def test_times_of_every_kind(when):
    assert vote_seconds(battles(when), "when").tolist() == SECONDS


def test_numbers_may_count_anything():
    assert vote_times(battles([3, 1, 2]), "when").tolist() == [3, 1, 2]
    assert vote_times(battles(MOMENTS), "when").tolist() == SECONDS
    for when, told in (([1.0, np.nan, 2.0], "missing"), ([1.0, np.inf, 2.0], "infinite"), ([*"abc"], "no time")):
        with pytest.raises(DataError, match=told):
            vote_times(battles(when), "when")


@pytest.mark.parametrize(("when", "told"), [
    (["2026-01-04", "yesterday", None], "2 rows hold no time .the first: 'yesterday'."),
    ([1, 2, 3], "holds numbers from 1 to 3: numbers are taken for seconds since 1970"),
    ([True, False, True], "holds true and false, and no times"),
])  # fmt: skip
def test_what_is_no_time_is_told(when, told):
    with pytest.raises(DataError, match=told):
        vote_seconds(battles(when), "when")


def test_periods_of_the_calendar():
    seconds = np.array(SECONDS)
    weeks = cut_periods(seconds, "week")
    assert weeks.number.tolist() == [0, 1, 2]
    assert weeks.names.tolist() == ["2025-12-29", "2026-01-05", "2026-01-26"]
    assert cut_periods(seconds, "month").number.tolist() == [0, 0, 1]
    assert cut_periods(seconds, "hour").names.tolist()[0] == "2026-01-04 23:00"
    with pytest.raises(
        ValueError, match=r"every must be one of 'hour', 'day', .* or a number of periods, got 'fortnight'"
    ):
        cut_periods(seconds, "fortnight")


def test_periods_of_equal_size():
    seconds = np.array([50, 10, 20, 30, 40, 60, 10, 10]) + SECONDS[0]
    cut = cut_periods(seconds, 2)
    assert cut.number.tolist() == [1, 0, 0, 1, 1, 1, 0, 0]
    assert len(cut_periods(np.full(5, SECONDS[0]), 3).starts) == 1
