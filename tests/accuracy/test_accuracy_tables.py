"""Tables of accuracies: their slices, and what a status shows."""

import numpy as np
import pandas as pd
import pytest

from jaxeval.accuracy.accuracy_tables import joined, of_slice, where_defined
from jaxeval.accuracy.statuses import EstimateStatus

TABLE = pd.DataFrame({"x": [1.0, 2.0]})


def test_slices():
    table = joined({"": TABLE, "law": TABLE * 10}, "topic")
    assert of_slice(table, "all")["x"].tolist() == [1, 2]
    assert of_slice(table, "law")["x"].tolist() == [10, 20]
    with pytest.raises(ValueError, match=r"no slice 'laws'; there are 'all', 'law'; did you mean 'law'\?"):
        of_slice(table, "laws")


def test_a_table_without_slices_is_of_all_items():
    table = joined({"": TABLE}, None)
    pd.testing.assert_frame_equal(of_slice(table, "all"), TABLE)
    with pytest.raises(ValueError, match="no slice 'law'; there are 'all'"):
        of_slice(table, "law")


def test_a_status_tells_what_is_shown():
    status = np.array(
        [EstimateStatus.OK, EstimateStatus.NEAR_0, EstimateStatus.ONE_CLASS, EstimateStatus.NO_SKILL], object
    )
    number = np.full(4, 0.5)
    found = where_defined(status, number, (number, number), (number, number, number))
    assert found["estimate"].tolist() == pytest.approx([0.5, 0.5, 0.5, np.nan], nan_ok=True)
    assert found["lower"].tolist() == pytest.approx([0.5, -np.inf, 0.5, np.nan], nan_ok=True)
    assert found["boot_upper"].tolist() == pytest.approx([0.5, np.inf, np.nan, np.nan], nan_ok=True)
    assert found["median"].tolist() == pytest.approx([0.5, 0.5, np.nan, np.nan], nan_ok=True)
    without = where_defined(status, number, (np.full(4, np.nan),) * 2, (number, number, number))
    assert np.isnan(without["lower"]).all()
