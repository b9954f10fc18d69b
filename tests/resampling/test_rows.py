"""What is resampled, as one type."""

import numpy as np
import pytest

from jaxeval.kernels.resample import DrawScheme, Packing
from jaxeval.resampling.units import shortfall_of, stream_number, unit_draw

SIZES = np.array([[40, 30], [0, 130]])


@pytest.mark.parametrize("scheme", DrawScheme)
def test_units_of_a_slice(scheme):
    draw = unit_draw(SIZES, scheme, "en", Packing(None))
    np.testing.assert_array_equal(draw.units.size, SIZES)
    assert draw.units.strata.total == [200]
    assert draw.units.strata.limit == [min(2 * shortfall_of(200), 200) if scheme == DrawScheme.MULTINOMIAL else 0]
    assert draw.stream == stream_number("en")
