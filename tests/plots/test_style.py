import pytest

from jaxeval.plots.style import shown_name


@pytest.mark.parametrize(
    ("name", "shown"), [("model-1", "model-1"), ("x" * 40, "x" * 40), (7, "7"), ("a\nb\x1b", r"a\nb\x1b")]
)
def test_names_are_shown(name, shown):
    assert shown_name(name) == shown


def test_long_names_keep_both_ends():
    assert shown_name("meta-llama/" + "x" * 300 + "-2026-11-22") == "meta-llama/xxxxxxxxx…xxxxxxxx-2026-11-22"
    assert len(shown_name("y" * 300)) == 40
