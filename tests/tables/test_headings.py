"""Headings of columns."""

import pytest

from jaxeval.tables.headings import heading


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("rank_deviation", "Rank deviation"),
        ("n_left_out", "Left out"),
        ("mae_lower", "MAE lower"),
        ("< 5", "< 5"),
        ("model_name", "Model"),
        (7, "7"),
    ],
)
def test_headings_begin_with_a_capital(name, head):
    assert heading(name) == head
