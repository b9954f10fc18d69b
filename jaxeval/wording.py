"""Words that messages share: counted things, similar names, and characters that a terminal must not obey."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

_MOST_HINTS = 3
#: Characters of the longest word for what is rated, which heads columns and stands in every sentence.
LONGEST_WORD = 40
_ENDING = 2  # characters that a plural may have more than its word
#: Control and format characters, lone surrogates, line and paragraph separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def counted(n: Any, one: str, many: str | None = None, digits: int = 6) -> str:
    """Return a number and what it counts: "1 file", "2,000 files".

    Args:
        n: the number.
        one: the words after 1.
        many: the words after every other number; by default ``one`` and an s.
        digits: significant digits to which a number that is not whole is rounded.
    """
    number = f"{n:,.0f}" if n == round(n) else f"{n:,.{digits}g}"
    return f"{number} {one if number == '1' else many or f'{one}s'}"


class Noun(NamedTuple):
    """A word for one thing and for several."""

    one: str
    many: str

    @classmethod
    def of(cls, word: str | Sequence[str]) -> Noun:
        """Return the noun of a word such as "player"; "city,cities", or a pair, says both forms.

        Raises:
            TypeError: it is no text.
            ValueError: it is no word, or more than two, or too long a one.
        """
        if not isinstance(word, str | Sequence) or not all(isinstance(form, str) for form in word):
            raise TypeError(
                "the word for what is rated must be text such as 'player', or 'city,cities' with its plural, got "
                f"{word!r}"
            )
        forms = [form.strip() for form in (word.split(",") if isinstance(word, str) else word)]
        if len(forms) not in (1, 2) or not all(form and form == visible_line(form) for form in forms):
            raise ValueError(f"{word!r} is no word such as 'player', nor a word and its plural such as 'city,cities'")
        one, many = forms[0], forms[-1] if len(forms) == 2 else plural(forms[0])
        for what, form, most in (("word", one, LONGEST_WORD), ("plural", many, LONGEST_WORD + _ENDING)):
            if len(form) > most:
                raise ValueError(
                    f"the {what} for what is rated may have {most} characters, and {shortened(form, most)!r} has "
                    f"{len(form):,}"
                )
        return cls(one, many)

    @property
    def head(self) -> str:
        """The word as a heading."""
        return capitalised(self.one)

    @property
    def heads(self) -> str:
        """The plural as a heading."""
        return capitalised(self.many)

    @property
    def a_one(self) -> str:
        """The word with its article: "a model", "an image"."""
        return f"{'an' if self.one[0].casefold() in 'aeio' else 'a'} {self.one}"

    def counted(self, n: Any, one: str = "", many: str | None = None) -> str:
        """Return a number of them, and a verb behind: "1 model", "2 models have"."""
        return counted(n, f"{self.one} {one}".rstrip(), f"{self.many} {one if many is None else many}".rstrip())


#: What a board rates where neither its data nor anybody else says what that is.
MODEL = Noun("model", "models")
#: What a board rates that was put together of data with different words.
COMPETITOR = Noun("competitor", "competitors")


def plural(word: str) -> str:
    """Return the plural of an English word by the usual rules: "players", "classes", "entries"."""
    last = word[-2:].casefold()
    if last.endswith(("s", "x", "z")) or last in ("ch", "sh"):
        return f"{word}es"
    consonant = last[:1].isalpha() and last[:1] not in "aeiou"
    return f"{word[:-1]}ies" if len(last) == 2 and last[1] == "y" and consonant else f"{word}s"


def in_points(score: float, sign: str = "") -> str:
    """Return a score, or a difference of scores, with three decimals; one that is very large with an exponent."""
    return f"{round(score, 3) + 0.0:{sign}.3f}" if abs(score) < 1e15 else f"{score:{sign}.4g}"  # no -0.000


def capitalised(text: str) -> str:
    """Return ``text`` with a capital letter at its beginning, and nothing else changed."""
    return text[:1].upper() + text[1:]


def common_noun(nouns: Iterable[Noun | None]) -> Noun:
    """Return the one that all are, or `COMPETITOR` where they differ; None stands for no word."""
    return said_noun(nouns) or MODEL


def said_noun(nouns: Iterable[Noun | None]) -> Noun | None:
    """Return the only word among the ``nouns``, `COMPETITOR` where there are several, and None where there is none."""
    known = {noun for noun in nouns if noun is not None}
    return (known.pop() if len(known) == 1 else COMPETITOR) if known else None


def competitor_of(settings: Mapping[str, Any] | None) -> Noun:
    """Return what the ``settings`` of a table say that its rows are."""
    return Noun.of((settings or {}).get("competitor", MODEL))


def competitor_settings(noun: Noun) -> dict[str, list[str]]:
    """Return what `competitor_of` reads; nothing for models, so that their tables are what they always were."""
    return {} if noun == MODEL else {"competitor": list(noun)}


def slice_title(name: Hashable, by: Sequence[str]) -> str:
    """Return a slice's name for readers, who may not know which column a number or a truth value is of."""
    return f"{' / '.join(by)} = {name}" if by else str(name)


def named(names: pd.Index | Sequence[Any], limit: int = 8) -> str:
    """Return the first ``limit`` names, and how many more there are."""
    shown = ", ".join(map(str, names[:limit]))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit:,} more"


def look_of(name: str) -> str:
    """Return what a reader sees of a name: no case, kinds of dashes, wide forms or invisible characters."""
    kinds = {"Pd": "-", "Cf": ""}  # dashes; characters that only steer how others are shown
    seen = "".join(kinds.get(unicodedata.category(char), char) for char in unicodedata.normalize("NFKC", name))
    return " ".join(seen.split()).casefold()


def alike_names(names: Iterable[Any], many: str = "models") -> list[str]:
    """Return a sentence on names that somebody may have meant as one, if there are any."""
    groups: dict[str, list[str]] = {}
    for name in names:
        if isinstance(name, str):
            groups.setdefault(look_of(name), []).append(name)
    alike = [" and ".join(map(repr, group)) for group in groups.values() if len(group) > 1]
    but_for = "blanks, case, kinds of dashes or invisible characters"
    return [f"names that differ only in {but_for} are taken as different {many}: {named(alike)}"] if alike else []


def listed(columns: Any) -> str:
    """Return the names of the columns of a table, or of a list, in quotes."""
    return ", ".join(map(repr, getattr(columns, "columns", columns))) or "none"


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """Return the end of an error about an unknown ``name``: "; did you mean 'winner'?"; empty if no ``known`` is near.

    Names that contain ``name`` come first, and then names that differ in few letters. Case does not matter.
    """
    by_key: dict[str, list[str]] = {}
    for other in known:
        by_key.setdefault(str(other).casefold(), []).append(repr(other) if isinstance(other, str) else str(other))
    key = str(name).casefold()
    near = [k for k in by_key if key.strip() and key in k]
    near += [k for k in get_close_matches(key, by_key, _MOST_HINTS, 0.7) if k not in near]
    similar = [other for k in near for other in by_key[k]][:_MOST_HINTS]
    return f"; did you mean {' or '.join(similar)}?" if similar else ""


def visible(text: str) -> str:
    r"""Return ``text`` with every invisible character written as Python writes it: \x1b, \r, \u202e.

    Invisible are control characters, which a terminal obeys; format characters, such as overrides of the direction of
    writing and spaces without width, which make one name look like another; and lone surrogates. Line feeds stay.
    """
    if text.isprintable():
        return text
    return "".join(_escaped(sign) if unicodedata.category(sign) in _HIDDEN else sign for sign in text)


def visible_line(value: Any) -> str:
    r"""Return ``value`` as `visible` text on one line, with line feeds written as ``\n``."""
    return visible(str(value)).replace("\n", "\\n")


def shortened(text: str, most: int) -> str:
    """Return ``text`` without its middle where it is longer than ``most`` characters."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}…{text[half + 1 - most :]}"


def _escaped(sign: str) -> str:
    return sign if sign == "\n" else repr(sign)[1:-1]


#: Names of the columns of two sides differ by these words, at one place.
_HOSTS = (("home", "away"), ("heim", "gast"), ("heim", "auswärts"), ("heimmannschaft", "gastmannschaft"),
          ("local", "visitante"), ("mandante", "visitante"), ("domicile", "extérieur"), ("casa", "ospite"),
          ("thuis", "uit"))  # fmt: skip
MARKS = (("a", "b"), ("1", "2"), ("x", "y"), ("left", "right"), *_HOSTS, ("first", "second"), ("white", "black"),
         ("red", "blue"), ("heimtore", "gasttore"), ("fthg", "ftag"), ("hg", "ag"))  # fmt: skip
#: Words of side A and of side B. They say where the competitors stand, and not what these are.
_SIDES = (*MARKS, ("one", "two"), ("winner", "loser"), ("winning", "losing"))
#: Where the words of a column's name part: home_team, player1, HomeTeam.
_BETWEEN_WORDS = re.compile(r"[\W_]+|(?<=[a-zA-Z])(?=\d)|(?<=[a-z])(?=[A-Z])")
#: Words beside the one that says what is rated: ``player_name_a`` holds players.
_FORMS = {"name", "id"}
#: Words that say nothing of what is rated, and other words for a model.
_UNCLEAR = {"side", "label", "key", "code", "number", "column", "lm", "llm", "models", "entry", "object", "value"}

#: What competes where the columns' names are those of sides and nothing else, as usual in data of chess and of sports.
_OF_SIDES: dict[tuple[str, ...], str] = {("white", "black"): "player", **dict.fromkeys(_HOSTS, "team")}
#: The words of the columns that are read unless others are named.
_DEFAULTS = [["model", "a"], ["model", "b"]]


def competitor_word(noun: str | Sequence[str] | None, *columns: str) -> Noun | None:
    """Give what competes: as somebody says, or as the ``columns`` are called that hold it; None where neither is clear.

    Columns model_a and model_b say nothing: jaxeval expects these names of every table.

    Args:
        noun: a word, a word and its plural, or None.
        columns: those of side A and side B, as player_1 and player_2; or a single one.

    Raises:
        TypeError: ``noun`` is no text.
        ValueError: ``noun`` is no word, or too long a one.
    """
    if noun is not None:
        return Noun.of(noun)
    if (words := [words_of(name) for name in columns]) == _DEFAULTS:
        return None
    if len(columns) == 2:
        sides = tuple(" ".join(word for word in parts if word not in _FORMS) for parts in words)
        if (usual := _OF_SIDES.get(sides)) is not None:
            return Noun.of(usual)
        words = next((rest for side in _SIDES if (rest := _without(words, side)) is not None), [])
    left = {tuple(word for word in parts if word not in _FORMS) for parts in words}
    if len(left) != 1:
        return None
    word = " ".join(left.pop())
    clear = re.fullmatch(r"[a-z]{2,}( [a-z]+)?", word) is not None and word not in _UNCLEAR
    clear &= len(word) <= LONGEST_WORD
    # "players_1" is a plural already, "class_1" is none.
    return Noun.of(word) if clear and (not word.endswith("s") or word.endswith("ss")) else None


def words_of(name: Any) -> list[str]:
    """Return the words of a column's name, without case: player1_id, Player 1 and playerOne have two or three."""
    return [word.casefold() for word in _BETWEEN_WORDS.split(str(name)) if word]


def _without(words: Sequence[list[str]], sides: tuple[str, str]) -> list[list[str]] | None:
    """Return the words of two columns without those of their sides; None where they have not one each, at one place."""
    first, second = words
    if first.count(sides[0]) != 1 or second.count(sides[1]) != 1 or first.index(sides[0]) != second.index(sides[1]):
        return None
    return [[word for word in parts if word != side] for parts, side in zip(words, sides, strict=True)]
