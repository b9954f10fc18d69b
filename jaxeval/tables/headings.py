"""Headings of columns, the same on screens and in documents."""

from __future__ import annotations

#: Headings that are no plain words.
_HEADINGS = {
    "mae": "MAE",
    "mae_lower": "MAE lower",
    "mae_upper": "MAE upper",
    "model_name": "Model",
    "vote_count": "Votes",
    "rating_lower": "Lower",
    "rating_upper": "Upper",
}


def heading(name: object) -> str:
    """The heading of a column: its name with spaces and a capital letter, numbers of things by the things' name."""
    text = str(name)
    if text in _HEADINGS:
        return _HEADINGS[text]
    words = text.replace("_", " ").removeprefix("n ")
    return words[:1].upper() + words[1:]
