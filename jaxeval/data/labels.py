"""What the labels of a column of results mean, by their own words or by what the user says of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import check_choice
from jaxeval.data.columns import Rows, count_rows, distinct_values, factorized, first_place, plain, reject_missing
from jaxeval.data.numbers import GAPS, numbers_or_nan
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.wording import counted, did_you_mean, named

#: Numbers: "a_wins_1" is 1 for a win of side A and 0 for one of side B, "a_wins_0" the reverse, 0.5 a tie; or words, or
#: names of winners, and no words but those for ties.
LabelCoding = Literal["a_wins_1", "a_wins_0", "labels", "names"]
#: A coding, or what each label means: "model_a", "model_b", "tie", or a spelling of both-bad.
Labels: TypeAlias = LabelCoding | Mapping[Any, str]


class Graded(NamedTuple):
    """What one label says."""

    target: float  # probability that side A wins
    weight: float = 1.0
    both_bad: bool = False


_A, _B, _TIE, _BOTH_BAD = Graded(1.0), Graded(0.0), Graded(0.5), Graded(0.5, both_bad=True)
#: The standard labels: users map their labels to them, and they need no mapping themselves.
STANDARD = {
    "model_a": _A, "model_b": _B, "tie": _TIE,
    "tie (bothbad)": _BOTH_BAD, "tie_bothbad": _BOTH_BAD, "both_bad": _BOTH_BAD,
}  # fmt: skip
#: What numbers mean, by the name of their coding.
CODINGS = {"a_wins_1": {1.0: _A, 0.0: _B, 0.5: _TIE}, "a_wins_0": {0.0: _A, 1.0: _B, 0.5: _TIE}}
#: What the numbers 0, 1 and 2 may mean together.
ONE_TWO_LABELS = {"1": "model_a", "2": "model_b", "0": "tie"}
#: What the numbers -1, 0 and 1 may mean together.
SIGNED_LABELS = {"1": "model_a", "-1": "model_b", "0": "tie"}
#: Words for ties.
TIES = {
    **{label: result for label, result in STANDARD.items() if result.target == 0.5},
    **dict.fromkeys(["tied", "draw", "drawn", "equal", "both", "gleich", "unentschieden", "empate", "égalité"], _TIE),
    **dict.fromkeys(["no preference", "both equal", "both are equal", "equally good", "same", "both good"], _TIE),
    **dict.fromkeys(["the same", "about the same", "about equal"], _TIE),
    **dict.fromkeys(["both bad", "bothbad", "neither", "both are bad"], _BOTH_BAD),
}
#: A strong preference counts as three: arXiv:2406.11939, section 5.
STRONG = 3.0
_GRADES = {
    "a>>b": Graded(1.0, STRONG), "a>b": _A, "a=b": _TIE, "b=a": _TIE, "b>a": _B, "b>>a": Graded(0.0, STRONG),
    "a<<b": Graded(0.0, STRONG), "a<b": _B, "b<a": _A, "b<<a": Graded(1.0, STRONG),
}  # fmt: skip
_DEGREES = {
    **dict.fromkeys(["", "slightly ", "marginally ", "a bit ", "a little ", "somewhat "], 1.0),
    **dict.fromkeys(["much ", "significantly ", "clearly ", "strongly ", "far ", "a lot "], STRONG),
}
#: What annotators choose from side by side: "A is much better", "Response B slightly better".
_NOUNS = ("", "response ", "answer ", "model ", "assistant ")
_PHRASES = {
    f"{noun}{letter} {degree}better": Graded(target, weight)
    for noun in _NOUNS
    for letter, target in (("a", 1.0), ("b", 0.0))
    for adverb, weight in _DEGREES.items()
    for degree in (f"is {adverb}", adverb)
}
_STANDARD = "the sides model_a and model_b"
#: Families of words for the sides in the files of others; each takes any of the words above for ties.
FAMILIES: dict[str, dict[str, Graded]] = {
    _STANDARD: STANDARD | TIES,
    "the sides A and B": {
        **{f"{noun}{side}": result for noun in _NOUNS for side, result in (("a", _A), ("b", _B))},
        **TIES,
    },
    "the sides left and right": {"left": _A, "right": _B, "l": _A, "r": _B, **TIES},
    "the sides first and second": {"first": _A, "second": _B, **TIES},
    "wins and losses of the first side": {
        **dict.fromkeys(["win", "won"], _A),
        **dict.fromkeys(["loss", "lose", "lost"], _B),
        **TIES,
    },
    "home and away, the first side being at home": {"home": _A, "away": _B, "h": _A, "a": _B, "d": _TIE, **TIES},
    "results of chess games": {"1-0": _A, "0-1": _B, "1/2-1/2": _TIE, "½-½": _TIE, "0.5-0.5": _TIE},
    "grades from A>>B to B>>A": _GRADES,
    'phrases from "A is much better" to "B is much better"': {**_PHRASES, **TIES},
    "good, same and bad, of the first side (GSB)": {"g": _A, "s": _TIE, "b": _B},
}
#: What people, judges and harnesses call right and wrong answers.
RIGHT_OR_WRONG = {
    **dict.fromkeys(["yes", "true", "correct", "right", "pass", "passed", "success", "y", "t"], 1.0),
    **dict.fromkeys(["ja", "richtig", "oui", "sí", "✓", "✔", "✅"], 1.0),
    **dict.fromkeys(["no", "false", "incorrect", "wrong", "fail", "failed", "failure", "n", "f"], 0.0),
    **dict.fromkeys(["nein", "falsch", "non", "✗", "✘", "❌"], 0.0),
}
#: Scores in words, also in Inspect's letters: correct, incorrect, partly correct, no answer.
SCORES_IN_WORDS = {**RIGHT_OR_WRONG, "c": 1.0, "i": 0.0, "p": 0.5}
#: Words for the verdict that a judge prints. Each means the same in all families used here. "C" is the tie that prompts
#: ask for (arXiv:2306.05685); it is no family's word, as in a table it may be a model's name.
SPOKEN: dict[str, Graded] = {
    **{
        f"{noun}{letter}": result
        for noun in ("", "assistant ", "completion ", "response ", "answer ", "model ", "output ")
        for letter, result in (("a", _A), ("b", _B), ("c", _TIE))
    },
    **{word: result for name in ("model_a and model_b", "A and B", "left and right", "first and second")
       for word, result in FAMILIES[f"the sides {name}"].items()},
    **_GRADES,
}  # fmt: skip
_LETTER = re.compile(r"^(.*?)\(([abc])\)$")
_SIGNS = re.compile(r"\s*([<>=]+)\s*")
_NAMES = "names of the winners"
#: Numbers that two codings read in opposite ways.
_CODED = {-1.0, 0.0, 0.5, 1.0, 2.0}
_MOST_SHOWN = 10


def bare_word(value: Any) -> str:
    """Return a word without case, blanks, and the signs around it."""
    return str(value).strip().strip("[]*.\"'").strip().casefold()


def _distinct(column: Any) -> Sequence[Any]:
    """Return the values of a column, each once; none of lists or objects."""
    try:
        return distinct_values(column)
    except (NotImplementedError, TypeError):
        return ()


def in_numbers(column: Any, words: Mapping[str, float] = RIGHT_OR_WRONG) -> tuple[Any, str]:
    """Return a column of text all of which is among ``words`` as numbers, and what was read as what; else as it is."""
    if getattr(column.dtype, "kind", "O") not in ("O", "T", "U"):
        return column, ""
    distinct = _distinct(column)
    read = {value: words.get(bare_word(value)) for value in distinct if isinstance(value, str) and value not in GAPS}
    if not read or len(read) < sum(value not in GAPS for value in distinct) or None in read.values():
        return column, ""
    numbers = np.array([read.get(value, np.nan) if isinstance(value, str) else np.nan for value in column], float)
    meanings = ", ".join(f"{value!r} as {number:g}" for value, number in list(read.items())[:_MOST_SHOWN])
    return (numbers if isinstance(column, np.ndarray) else pd.Series(numbers, column.index, name=column.name)), meanings


def numbers_of_words(column: Any, name: str, words: Mapping[str, float] = RIGHT_OR_WRONG) -> tuple[Float, str]:
    """Return (N,) numbers of a column of numbers or of ``words``, NaN where missing, and what was read as what."""
    in_points, meanings = in_numbers(column, words)
    try:
        return numbers_or_nan(in_points, name), meanings
    except DataError:
        texts = [value for value in _distinct(column) if isinstance(value, str) and value not in GAPS]
        known = [value for value in texts if bare_word(value) in words]
        other = [value for value in texts if value not in known]
        if not (known and other):
            raise
        advice = ""
        if all(numeric is not None for numeric in map(_number, other)):
            points = [f"{value!r} as {words[bare_word(value)]:g}" for value in known[:_MOST_SHOWN]]
            advice = f": write all of it in numbers, {', '.join(points)}"
        raise DataError(
            f"column {name!r} holds {named(list(map(repr, other)), _MOST_SHOWN)} beside "
            f"{named(list(map(repr, known)), _MOST_SHOWN)}, which alone would be read as right and wrong{advice}"
        ) from None


def spoken_label(word: str) -> str | None:
    """Return the standard label of a word of `SPOKEN`; None for another."""
    result = SPOKEN.get(word.casefold())
    if result is None:
        return None
    return {1.0: "model_a", 0.0: "model_b"}.get(result.target, "tie (bothbad)" if result.both_bad else "tie")


class Sides(NamedTuple):
    """Who met whom."""

    models: pd.Index  # (M,)
    first: NDArray[np.int32]  # (N,)
    second: NDArray[np.int32]
    columns: tuple[str, str] = ("", "")  # that name them, whose names may be labels


class LabelledResults(NamedTuple):
    """N results, each of one battle or of several equal ones."""

    target: Float  # (N,) probability that side A wins; NaN where the label is missing
    both_bad: Bool  # (N,)
    weight: Float | None  # (N,) None: 1 each
    told: str = ""  # how labels were read that are not the standard ones, in words; of one way to read them, its name
    families: tuple[str, ...] = ()  # all families that fit the labels, and agree; none where the user said the meaning
    row: NDArray[np.intp] | None = None  # (N,) row of the table that each is from; None: result n is from row n
    times: Int | None = None  # (N,) number of battles in a row of the input, which may be 0; None: one each


class LabelColumn(NamedTuple):
    """Labels, each value once."""

    name: Any
    codes: NDArray[np.intp]  # (N,) number of each row's label, -1 where it is missing
    distinct: list[Any]
    keys: list[str]  # in lower case, without blanks and brackets around them
    rows: Rows | None
    sides: Sides | None

    @classmethod
    def of(
        cls, column: Any, name: Any, coded: tuple[NDArray[np.intp], Any] | None = None, rows: Rows | None = None,
        sides: Sides | None = None,
    ) -> LabelColumn:  # fmt: skip
        """Return the labels in a column (N,) of this name, whose codes and values may be known."""
        try:
            codes, values = coded or factorized(column)
        except TypeError as error:
            raise DataError(f"column {name!r} holds values that are no labels: {error}") from error
        distinct = [plain(value) for value in values]
        return cls(name, codes, distinct, list(map(_key, distinct)), rows, sides)

    def counted(self, which: Sequence[int] | None = None) -> str:
        """Name some of the labels, or all, and how often each occurs: "'A' (1,200), 'B' (800)"."""
        which, there = range(len(self.distinct)) if which is None else which, self.codes >= 0
        times = None if self.rows is None else self.rows.times[there]
        counts = np.bincount(self.codes[there], times, minlength=len(self.distinct)).astype(int)
        text = ", ".join(f"{_shown(self.distinct[k])!r} ({counts[k]:,})" for k in which[:_MOST_SHOWN])
        return text if len(which) <= _MOST_SHOWN else f"{text} and {len(which) - _MOST_SHOWN} more"

    def results(self, of_label: Sequence[Graded | None], message: str, knows: str = "") -> LabelledResults:
        """Return the results of the rows, from those that each label stands for; an error about labels without one."""
        unknown = [k for k, result in enumerate(of_label) if result is None]
        if unknown:
            raise DataError(f"column {self.name!r} has unknown labels: {self.counted(unknown)}; {knows}")
        known = [result for result in of_label if result is not None]
        each = np.array([*known, Graded(np.nan)], float).reshape(-1, len(Graded._fields))[self.codes]
        weight = each[:, 1] if any(result.weight != 1 for result in known) else None
        return LabelledResults(each[:, 0], each[:, 2] > 0, weight, message)

    def models_named(self) -> NDArray[np.intp]:
        """Return the number of the model that each label names, in upper or lower case; -1 if it names none."""
        assert self.sides is not None
        models = self.sides.models
        of_label = models.get_indexer(pd.Index(self.distinct, dtype=object))
        folded = pd.Index([_key(model) for model in models])
        return np.where(of_label >= 0, of_label, folded.get_indexer(self.keys)) if folded.is_unique else of_label


def read_labels(
    column: Any, labels: Labels | None = None, sides: Sides | None = None, rows: Rows | None = None, *,
    name: Any = None, may_miss: bool = False, option: str = "labels", advice: str = "",
) -> LabelledResults:  # fmt: skip
    """Return what a column of labels (N,) says, by what ``labels`` mean; by default their words say it, but no numbers.

    With ``sides``, a label may be the winner's name. Errors call the argument ``labels`` as its caller does, by
    ``option``, and the column by its own ``name`` unless one is given; those on unknown labels end with ``advice``.
    """
    if labels is not None:
        check_labels(labels, option)
    coded, name = None, column.name if name is None else name
    with suppress(NotImplementedError, TypeError):  # lists and the like, which are reported below
        coded = factorized(column) if isinstance(column, np.ndarray) else pd.factorize(column)
    if labels is None and coded is not None and (may_miss or coded[0].min(initial=0) >= 0):
        spoken, names = {*coded[1]}, " ".join(map(str, () if sides is None else sides.models)).casefold()
        # The words that most tables have, of which none may be a model's: they have no other meaning.
        if spoken <= STANDARD.keys() and spoken & {"model_a", "model_b"} and not any(x in names for x in spoken):
            each = np.array([*(STANDARD[word] for word in coded[1]), Graded(np.nan)], float)[coded[0]]
            return LabelledResults(each[:, 0], each[:, 2] > 0, None, families=(_STANDARD,))
    values = LabelColumn.of(column, name, coded, rows, sides)
    codes, distinct = values.codes, values.distinct
    if not may_miss:
        reject_missing(codes < 0, str(name), rows)
    if isinstance(labels, Mapping):
        word_of = {word: word for word in STANDARD} | {_form(label): word for label, word in labels.items()}
        words = [word_of.get(_form(value)) for value in distinct]
        meanings = [f"{str(value)!r} as {word}" for value, word in zip(distinct, words, strict=True)]
        mapped = ", ".join(repr(str(label)) for label in labels)
        return values.results(
            [None if word is None else STANDARD[word] for word in words],
            f"column {values.name!r}: read {', '.join(meanings[:_MOST_SHOWN])}", f"{option}= maps {mapped}",
        )  # fmt: skip
    numbers = [number for number in map(_number, distinct) if number is not None]
    numeric = len(numbers) == len(distinct) > 0
    if labels in CODINGS and numeric:
        of_label = [CODINGS[labels].get(number) for number in numbers]
        return values.results(of_label, "", f"{option}={labels!r} knows 0, 0.5 and 1")
    by_names = labels == "names"
    readings = [] if numeric or by_names else list(_by_words(values))
    if sides is not None and (by_names or not (numeric and {*numbers} <= _CODED)):
        readings += _by_names(values)
    if numeric and not readings:
        raise _numeric_error(values, numbers, option, advice)
    if not readings and by_names:
        raise DataError(
            f"column {values.name!r} ({values.counted()}): {option}='names' takes the name of either side of the row, "
            f"or a word for ties, and some labels are neither{advice}"
        )
    if not readings:
        return _unknown(values, option, advice)
    reading, *others = readings
    for other in others:
        if not np.array_equal(reading.target, other.target, equal_nan=True):
            label = str(distinct[0])
            what = (
                f"say {option}='names' (--labels names) if they are names of the winners, else what they mean, "
                f"{option}={{{label!r}: 'model_a', ...}}, on the command line --labels '{label}=model_a,...'"
            )
            if reading.told == _NAMES:
                what = "a model's name is also a word for ties, so give the model another name in the file"
            raise DataError(
                f"column {name!r} ({values.counted()}) may hold {reading.told}, or {other.told}, with different "
                f"results: {what}"
            )
    is_standard = all(value in STANDARD for value in distinct)
    message = "" if is_standard else f"column {name!r}: read {values.counted()} as {reading.told}"
    return reading._replace(told=message, families=tuple(one.told for one in readings))


def _by_words(column: LabelColumn) -> Iterator[LabelledResults]:
    """Yield a reading by each family that has all the labels, and by the names of the sides' columns."""
    families = dict(FAMILIES)
    one, other = ("", "") if column.sides is None else column.sides.columns
    if one and not {_key(one), _key(other)} & set(STANDARD):
        families[f"the columns {one} and {other}"] = {_key(one): _A, _key(other): _B, **TIES}
    for words, family in families.items():
        if all(key in family for key in column.keys):
            yield column.results([family[key] for key in column.keys], words)


def _by_names(column: LabelColumn) -> Iterator[LabelledResults]:
    """Yield readings as names of winners and words for ties; two if a word for ties is also a model's name."""
    assert column.sides is not None
    first, second, of_label = column.sides.first, column.sides.second, column.models_named()
    missing, ties = column.codes < 0, np.array([key in TIES for key in column.keys], bool)
    for words, chosen in ((_NAMES, of_label), ("the same with words for ties", np.where(ties, -1, of_label))):
        winner = np.append(chosen, -1)[column.codes]
        is_first, is_second = winner == first, winner == second
        # A word for ties says a tie also where a third model has that name.
        is_tie = np.append(ties, False)[column.codes] & ~(is_first | is_second)
        if (chosen >= 0).any() and (is_first | is_second | is_tie | missing).all():
            even = is_tie | (is_first & is_second)
            target = np.select([even, is_first, is_second], [0.5, 1.0, 0.0], np.nan)
            bad = np.array([*(key in TIES and TIES[key].both_bad for key in column.keys), False])
            yield LabelledResults(target, bad[column.codes] & is_tie, None, words)


def _numeric_error(column: LabelColumn, numbers: list[float], option: str, advice: str) -> DataError:
    """Return the error about numbers without a meaning: of 0, 1 and 2 the tie is often 0, else between the sides."""
    order = np.argsort(numbers, kind="stable")
    labels = [str(_shown(column.distinct[k])) for k in (order[[1, 0, 2]] if sorted(numbers) == [0, 1, 2] else order)]
    words = {2: ("model_a", "model_b"), 3: ("model_a", "tie", "model_b")}.get(len(labels))
    sides_of = {"1": "model_a", "2": "model_b"} if words is None else dict(zip(labels, words, strict=True))
    meant = ",".join(f"{label}={side}" for label, side in sides_of.items())
    return DataError(
        f"column {column.name!r} has numeric labels ({column.counted()}), and numbers are never guessed: say what they "
        f"mean with {option}='a_wins_1' (1 is a win of side A), {option}='a_wins_0' (0 is one), or a mapping such "
        f"as {option}={sides_of}; on the command line --labels a_wins_1, --labels "
        f"a_wins_0 or --labels {meant} (or the sides the other way round){advice}"
    )


def _unknown(column: LabelColumn, option: str, advice: str) -> LabelledResults:
    """Raise the error about labels that no family has, nor the models; without labels there are no results."""
    results = [STANDARD.get(value) if isinstance(value, str) else None for value in column.distinct]
    neither = ""
    if (sides := column.sides) is not None:
        chosen = column.models_named()
        ties = np.array([key in TIES for key in column.keys], bool)
        odd = [not (is_tie or name >= 0) for is_tie, name in zip(ties, chosen, strict=True)]
        standard = [result is not None for result in results]
        # Where some labels are names of winners, only the others are unknown.
        if (chosen >= 0).any() and any(odd) and not any(np.array(standard)[odd]):
            results = [None if is_odd else _TIE for is_odd in odd]
        winner = np.append(chosen, -1)[column.codes]
        lost = ~np.append(ties, True)[column.codes] & (winner != sides.first) & (winner != sides.second)
        neither = "; or of the winners' names"
        if (winner >= 0).any():
            n, place = counted(count_rows(lost, column.rows), "row"), first_place(lost, column.rows)
            rows = f", but the label names neither side in {n}{place}" if lost.any() else ""
            neither += f". Some of the labels are names of models{rows}"
    first = next((str(x) for x, result in zip(column.distinct, results, strict=True) if result is None), "")
    example = f"{option}={{{first!r}: 'model_a', ...}}, on the command line --labels '{first}=model_a,...'"
    known = f"known are {', '.join(map(repr, STANDARD))}, and whole columns of {'; '.join(FAMILIES)}{neither}"
    return column.results(
        results, "", f"{known}. Say what they mean ({example}){advice}{did_you_mean(first, STANDARD)}"
    )


def spoken_results(words: Sequence[str], labels: Mapping[Any, str] | None) -> list[Graded | None]:
    """Return what each word of a judge means for the side shown first, by ``labels``, then by `SPOKEN`; or None."""
    by_label = {_form(label): STANDARD[word] for label, word in (labels or {}).items()}
    keys = {word: _LETTER.sub(r"\1\2", _key(word)).strip() for word in words}  # "output (a)" is "output a"
    of_word = {word: by_label.get(_form(word)) or SPOKEN.get(unspaced(key)) for word, key in keys.items()}
    return [of_word[word] for word in words]


def check_labels(labels: Any, option: str = "labels") -> None:
    """Raise an error about ``option``, unless ``labels`` is a coding, a mapping to the standard words, or None."""
    if isinstance(labels, Mapping):
        odd = next((word for word in labels.values() if word not in STANDARD), None)
        forms = [_form(label) for label in labels]
        twice = next((label for label, form in zip(labels, forms, strict=True) if forms.count(form) > 1), None)
        if twice is not None:
            raise ValueError(f"{option} maps {str(twice)!r} twice")
        if odd is None and labels:
            return
        shown = "an empty mapping" if odd is None else repr(odd)
        raise ValueError(f"{option} must map each label to one of {', '.join(map(repr, STANDARD))}, got {shown}")
    if labels is not None:
        check_choice(option, labels, LabelCoding, ", or a mapping such as {'A': 'model_a'}")


def _shown(label: Any) -> str:
    """Return a label as it is written: whole numbers without a point."""
    return f"{label:g}" if isinstance(label, float) else str(label)


def _key(value: Any) -> str:
    """Return a label in lower case, without blanks around it and without the brackets that judges print: "[[A]]"."""
    return str(value).strip().strip("[]").strip().casefold()


def unspaced(word: str) -> str:
    """Return a grade without blanks about its signs: "A >> B" is "A>>B"."""
    return _SIGNS.sub(r"\1", word)


def _form(label: Any) -> str | float:
    """Return how a label is looked up in a mapping: by a number's value, or by the text without blanks around it."""
    number = _number(label)
    return str(label).strip() if number is None else number


def _number(value: Any) -> float | None:
    """Return the number that a label is, 1 and 0 for true and false; None for other text."""
    text = str(value).strip().lower()
    if text in ("true", "false"):
        return float(text == "true")
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None
