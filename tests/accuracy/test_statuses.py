"""Statuses: one sentence each, in one place, and no table with another word."""

import pytest
from answers import CALIBRATION, SETTINGS, TEST, read

from jaxeval.accuracy import statuses
from jaxeval.accuracy.model_comparison import compare_models
from jaxeval.accuracy.statuses import STATUSES


def test_every_status_has_a_sentence():
    words = set(statuses.Status)
    assert words == set(STATUSES)
    assert len(set(STATUSES.values())) == len(STATUSES)
    assert all(type(word) is str for word in STATUSES)
    for group in (statuses.BOUNDED, statuses.UNBOUNDED, statuses.HAVE_NUMBERS, statuses.WITHOUT_RESAMPLES):
        assert set(group) <= words


@pytest.mark.parametrize("change", [{}, {"human": 1.0}, {"good": 1.0}])
def test_tables_have_no_other_words(change):
    found = compare_models(read(CALIBRATION.assign(**change)), read(TEST), by="topic", **SETTINGS)
    for table in (found.table, found.accuracy.table, found.accuracy.rates):
        assert set(table["status"]) <= set(STATUSES)
