"""What competes in a table of battles, in a word: as its columns are called, or as somebody says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxeval.wording import LONGEST_WORD, Noun

#: Words of side A and of side B. They say where the competitors stand, and not what these are.
_SIDES = (
    ("a", "b"), ("1", "2"), ("one", "two"), ("first", "second"), ("left", "right"), ("home", "away"),
    ("white", "black"), ("red", "blue"), ("winner", "loser"), ("winning", "losing"),
)  # fmt: skip
#: Words beside the one that says what is rated: ``player_name_a`` holds players.
_FORMS = {"name", "id"}
#: Words that say nothing of what is rated, and other words for a model.
_UNCLEAR = {"side", "label", "key", "code", "number", "column", "lm", "llm", "models", "entry", "object", "value"}

#: What competes where the columns' names are those of sides and nothing else, as usual in data of chess and of sports.
_OF_SIDES: dict[tuple[str, ...], str] = {("white", "black"): "player", ("home", "away"): "team"}
#: The words of the columns that are read unless others are named.
_DEFAULTS = [["model", "a"], ["model", "b"]]


def competitor_word(given: str | Sequence[str] | None, *columns: str) -> Noun | None:
    """What competes: as somebody says, or as the ``columns`` are called that hold it; None where neither is clear.

    Columns model_a and model_b say nothing: jaxeval expects these names of every table.

    Args:
        given: a word, a word and its plural, or None.
        columns: those of side A and side B, as player_1 and player_2; or a single one.

    Raises:
        TypeError: ``given`` is no text.
        ValueError: ``given`` is no word, or too long a one.
    """
    if given is not None:
        return Noun.of(given)
    return None if columns == ("model_a", "model_b") else _word_of(columns)


def _word_of(columns: Sequence[str]) -> Noun | None:
    words = [_words(name) for name in columns]
    if words == _DEFAULTS:
        return None
    if len(columns) == 2:
        if (usual := _OF_SIDES.get(_named_sides(words))) is not None:
            return Noun.of(usual)
        words = next((rest for side in _SIDES if (rest := _without(words, side)) is not None), [])
    left = {tuple(word for word in own if word not in _FORMS) for own in words}
    if len(left) != 1:
        return None
    word = " ".join(left.pop())
    clear = re.fullmatch(r"[a-z]{2,}( [a-z]+)?", word) is not None and word not in _UNCLEAR
    clear &= len(word) <= LONGEST_WORD
    # "players_1" is a plural already, "class_1" is none.
    return Noun.of(word) if clear and (not word.endswith("s") or word.endswith("ss")) else None


def _named_sides(words: Sequence[list[str]]) -> tuple[str, ...]:
    """What is left of columns such as White and Black, or home_id and away_id, without the forms."""
    return tuple(" ".join(word for word in own if word not in _FORMS) for own in words)


def _words(name: str) -> list[str]:
    """The words of a column's name: player1_id, Player 1 and playerOne have two or three."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z0-9])", " ", str(name))
    return re.findall(r"[^\W_]+", apart.casefold())


def _without(words: Sequence[list[str]], sides: tuple[str, str]) -> list[list[str]] | None:
    """The words of two columns without those of their sides; None where they have not one each, at one place."""
    first, second = words
    if first.count(sides[0]) != 1 or second.count(sides[1]) != 1 or first.index(sides[0]) != second.index(sides[1]):
        return None
    return [[word for word in own if word != side] for own, side in zip(words, sides, strict=True)]
