"""What is resampled, as one type."""

import inspect

import numpy as np
import pytest

from jaxeval.kernels import batch
from jaxeval.kernels.resample import Tally
from jaxeval.resampling.draw import Draw, UnitDraw, unit_draw
from jaxeval.resampling.units import shortfall_of, stream_number

SIZES = np.array([[40, 30], [0, 130]])


@pytest.mark.parametrize("scheme", [batch.MULTINOMIAL, batch.POISSON, batch.BAYESIAN])
def test_units_of_a_slice(scheme):
    draw = unit_draw(SIZES, scheme, "en", Tally(None, 2))
    np.testing.assert_array_equal(draw.units.size, SIZES)
    assert int(draw.units.total) == 200
    assert int(draw.units.shortfall) == (shortfall_of(200) if scheme == batch.MULTINOMIAL else 0)
    assert draw.stream == stream_number("en")
    assert draw.top_up_size >= 2 * shortfall_of(200)


def test_it_is_a_draw():
    asked = {name for name, member in inspect.getmembers(Draw) if isinstance(member, property)}
    assert asked == set(UnitDraw._fields)
