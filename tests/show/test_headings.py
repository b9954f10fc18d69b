"""Headings of columns."""

import pytest

from jaxeval.show.cells import heading
from jaxeval.wording import Noun


@pytest.mark.parametrize(("name", "head"), [
    ("rank_deviation", "Rank deviation"),
    ("n_left_out", "Left out"),
    ("mae_lower", "MAE lower"),
    ("< 5", "< 5"),
    ("model", "Model"),
    (7, "7"),
])  # fmt: skip
def test_headings_begin_with_a_capital(name, head):
    assert heading(name) == head


@pytest.mark.parametrize(("name", "head"), [
    ("model", "City"),
    ("model_b", "City b"),
    ("n_models", "Cities"),
    ("model_error", "Model error"),
    ("rating", "Rating"),
])  # fmt: skip
def test_columns_of_competitors_have_their_word(name, head):
    assert heading(name, Noun.of("city")) == head


def test_numbers_of_votes_on_a_competitor():
    assert (heading("n_on_model"), heading("n_on_model", Noun.of("city"))) == ("On model", "On city")
