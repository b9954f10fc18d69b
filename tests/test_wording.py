"""Words that messages share."""

import pytest

from jaxeval.wording import counted, did_you_mean, shortened, visible, visible_line


@pytest.mark.parametrize(
    ("n", "words", "text"),
    [
        (1, ("file",), "1 file"),
        (0, ("file",), "0 files"),
        (2000, ("file",), "2,000 files"),
        (1.0, ("point",), "1 point"),
        (3.0, ("point",), "3 points"),
        (2.5, ("point",), "2.5 points"),
        (12345.678, ("vote",), "12,345.7 votes"),
        (1, ("row has", "rows have"), "1 row has"),
        (2, ("row has", "rows have"), "2 rows have"),
    ],
)
def test_counted(n, words, text):
    assert counted(n, *words) == text


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("winer", ["winner", "model_a"], "; did you mean 'winner'?"),
        ("GPT-4", ["gpt-4", "claude"], "; did you mean 'gpt-4'?"),
        ("gpt", ["gpt-4-turbo-2024-04-09", "claude"], "; did you mean 'gpt-4-turbo-2024-04-09'?"),
        ("model_c", ["model_a", "model_b"], "; did you mean 'model_b' or 'model_a'?"),
        ("colour", ["language", "voter"], ""),
        ("x", [], ""),
        ("", ["a"], ""),
        (12, [1, 12.0], "; did you mean '12.0'?"),
    ],
)
def test_did_you_mean(name, known, hint):
    assert did_you_mean(name, known) == hint


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 模型　\u00a0 m²", "plain é 模型　\u00a0 m²"),
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\x9b31mb", r"a\x9b31mb"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\rb\tc\x00", r"a\rb\tc\x00"),
        ("a\u202eb\u2066c\u200bd\ufeff", r"a\u202eb\u2066c\u200bd\ufeff"),
        ("a\u2028b\ud800", r"a\u2028b\ud800"),
        ("a\nb", "a\nb"),
    ],
)
def test_visible(text, shown):
    assert visible(text) == shown


def test_visible_line():
    assert visible_line("a\nb\x1b") == r"a\nb\x1b"
    assert visible_line(3) == "3"


@pytest.mark.parametrize(("most", "shown"), [(10, "0123456789"), (9, "0123…6789"), (8, "0123…789")])
def test_long_texts_lose_their_middle(most, shown):
    assert shortened("0123456789", most) == shown
