"""Statuses: one sentence each, in one place, and no table with another word."""

import numpy as np
import pytest
from answers import CALIBRATION, SETTINGS, TEST, read

from jaxeval.accuracy import statuses
from jaxeval.accuracy.model_comparison import compare_models
from jaxeval.accuracy.statuses import STATUSES
from jaxeval.kernels.judge_error import Doubt


def test_every_status_has_a_sentence():
    words = set(statuses.EstimateStatus)
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


def test_every_doubt_has_a_status():
    found = statuses.statuses_of(np.array([[Doubt.OK, Doubt.NO_SKILL], [Doubt.NEAR_0, Doubt.NO_LABELS]], np.int8))
    assert found.tolist() == [["ok", "J <= 0"], ["J near 0", "no calibration items"]]
    assert {doubt.name for doubt in Doubt} <= {status.name for status in statuses.EstimateStatus}
