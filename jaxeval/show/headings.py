"""Headings of columns, the same on screens and in documents."""

from __future__ import annotations

from jaxeval.wording import MODEL, Noun, capitalised

#: Headings that differ from the words of the column's name.
_HEADINGS = {
    "mae": "MAE",
    "mae_lower": "MAE lower",
    "mae_upper": "MAE upper",
    "vote_count": "Votes",
    "rating_lower": "Lower",
    "rating_upper": "Upper",
}
#: Columns that hold competitors, or their number, whatever these are called.
_OF_COMPETITORS = {
    "model_name": "{one}",
    "model": "{one}",
    **{f"model_{k}": f"{{one}} {k}" for k in ("a", "b", "1", "2", "3")},
    "n_models": "{many}",
    "n_on_model": "on {one}",
}


def heading(name: object, competitor: Noun = MODEL) -> str:
    """The heading of a column: its name with spaces and a capital letter. ``n_votes`` becomes "Votes"."""
    text = str(name)
    if text in _HEADINGS:
        return _HEADINGS[text]
    if text in _OF_COMPETITORS:
        return capitalised(_OF_COMPETITORS[text].format(**competitor._asdict()))
    return capitalised(text.replace("_", " ").removeprefix("n "))
