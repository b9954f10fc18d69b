"""What the labels of a column of results mean, by their own words or by what the user says of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import check_choice
from jaxeval.data.columns import Rows, count_rows, distinct_values, factorized, first_place, plain, reject_missing
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.wording import counted, did_you_mean

#: Numbers: "a_wins_1" is 1 for a win of side A and 0 for one of side B, "a_wins_0" the reverse, 0.5 a tie; or words.
LabelCoding = Literal["a_wins_1", "a_wins_0", "labels"]
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
#: Words for ties.
TIES = {
    **{label: result for label, result in STANDARD.items() if result.target == 0.5},
    **dict.fromkeys(["tied", "draw", "drawn", "equal", "both", "gleich", "unentschieden", "empate"], _TIE),
    **dict.fromkeys(["no preference", "both equal", "both are equal", "equally good", "same", "both good"], _TIE),
    **dict.fromkeys(["both bad", "bothbad", "neither", "both are bad"], _BOTH_BAD),
}
#: A strong preference counts as three: arXiv:2406.11939, section 5.
STRONG = 3.0
_GRADES = {
    "a>>b": Graded(1.0, STRONG), "a>b": _A, "a=b": _TIE, "b=a": _TIE, "b>a": _B, "b>>a": Graded(0.0, STRONG),
    "a<<b": Graded(0.0, STRONG), "a<b": _B, "b<a": _A, "b<<a": Graded(1.0, STRONG),
}  # fmt: skip
#: Families of words for the sides in the files of others; each takes any of the words above for ties.
FAMILIES: dict[str, dict[str, Graded]] = {
    "the sides model_a and model_b": STANDARD | TIES,
    "the sides A and B": {"a": _A, "b": _B, **TIES},
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
}
#: What people, judges and harnesses call right and wrong answers.
RIGHT_OR_WRONG = {
    **dict.fromkeys(["yes", "true", "correct", "right", "pass", "passed", "success", "y", "t"], 1.0),
    **dict.fromkeys(["no", "false", "incorrect", "wrong", "fail", "failed", "failure", "n", "f"], 0.0),
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


def in_numbers(column: Any, words: Mapping[str, float] = RIGHT_OR_WRONG) -> tuple[Any, str]:
    """Return a column of text all of which is among ``words`` as numbers, and what was read as what; else as it is."""
    if getattr(column.dtype, "kind", "O") not in "OTU":
        return column, ""
    try:
        distinct = distinct_values(column)
    except (NotImplementedError, TypeError):  # of lists or objects
        return column, ""
    read = {value: words.get(bare_word(value)) for value in distinct if isinstance(value, str)}
    if not read or len(read) < len(distinct) or None in read.values():
        return column, ""
    numbers = np.array([read.get(value, np.nan) if isinstance(value, str) else np.nan for value in column], float)
    meanings = ", ".join(f"{value!r} as {number:g}" for value, number in list(read.items())[:_MOST_SHOWN])
    return (numbers if isinstance(column, np.ndarray) else pd.Series(numbers, column.index, name=column.name)), meanings


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


class _Column(NamedTuple):
    """Labels, each value once."""

    name: Any
    codes: NDArray[np.intp]  # (N,) number of each row's label, -1 where it is missing
    distinct: list[Any]
    rows: Rows | None

    @property
    def numbers(self) -> list[float]:
        """The labels that are numbers, as numbers."""
        return [number for number in map(_number, self.distinct) if number is not None]

    @property
    def numeric(self) -> bool:
        """Whether all labels are numbers."""
        return bool(self.distinct) and len(self.numbers) == len(self.distinct)

    def counted(self, which: list[int]) -> str:
        """Some of the labels, and how often each occurs: "'A' (1,200), 'B' (800)"."""
        there = self.codes >= 0
        times = None if self.rows is None else self.rows.times[there]
        counts = np.bincount(self.codes[there], times, minlength=len(self.distinct)).astype(int)
        text = ", ".join(f"{_shown(self.distinct[k])!r} ({counts[k]:,})" for k in which[:_MOST_SHOWN])
        return text if len(which) <= _MOST_SHOWN else f"{text} and {len(which) - _MOST_SHOWN} more"

    @property
    def all(self) -> str:
        return self.counted(list(range(len(self.distinct))))

    def results(self, of_label: list[Graded], message: str) -> LabelledResults:
        """Return the results of the rows, from the result ``of_label`` that each label stands for."""
        each = np.array([*of_label, Graded(np.nan)], float).reshape(-1, len(Graded._fields))[self.codes]
        weight = each[:, 1] if any(result.weight != 1 for result in of_label) else None
        return LabelledResults(each[:, 0], each[:, 2] > 0, weight, message)

    def known(self, of_label: list[Graded | None], knows: str, advice: str = "") -> list[Graded]:
        """Return the results of all labels, or an error about the unknown ones."""
        unknown = [k for k, result in enumerate(of_label) if result is None]
        if unknown:
            raise DataError(f"column {self.name!r} has unknown labels: {self.counted(unknown)}; {knows}{advice}")
        return [result for result in of_label if result is not None]


def read_labels(
    column: pd.Series, labels: Labels | None = None, sides: Sides | None = None, rows: Rows | None = None, *,
    may_miss: bool = False, option: str = "labels", advice: str = "",
) -> LabelledResults:  # fmt: skip
    """Return what a column of labels (N,) says, by what ``labels`` mean; by default their words say it, but no numbers.

    With ``sides``, a label may be the winner's name. Errors call the argument ``labels`` as its caller does, by
    ``option``; those on unknown labels end with ``advice``.

    Raises:
        DataError: labels are unknown, missing, numbers without a meaning, or can be read in two ways.
        ValueError: ``labels`` is no coding, or maps to other words than the standard ones.
    """
    if labels is not None:
        check_labels(labels, option)
    try:
        codes, distinct = factorized(column)
    except TypeError as error:
        raise DataError(f"column {column.name!r} holds values that are no labels: {error}") from error
    if not may_miss:
        reject_missing(codes < 0, str(column.name), rows)
    values = _Column(column.name, codes, [plain(value) for value in distinct], rows)
    if isinstance(labels, Mapping):
        word_of = {word: word for word in STANDARD} | {_form(label): word for label, word in labels.items()}
        words = [word_of.get(_form(value)) for value in values.distinct]
        mapped = ", ".join(repr(str(label)) for label in labels)
        results = values.known([None if word is None else STANDARD[word] for word in words], f"{option}= maps {mapped}")
        meanings = [f"{str(value)!r} as {word}" for value, word in zip(values.distinct, words, strict=True)]
        return values.results(results, f"column {values.name!r}: read {', '.join(meanings[:_MOST_SHOWN])}")
    if labels in CODINGS and values.numeric:
        coding = CODINGS[labels]
        numbers = [coding.get(number) for number in values.numbers]
        return values.results(values.known(numbers, f"{option}={labels!r} knows 0, 0.5 and 1"), "")
    return _recognised(values, sides, option, advice)


def spoken_results(words: Sequence[str], labels: Mapping[Any, str] | None) -> list[Graded | None]:
    """What each word that a judge printed means for the side shown first, by ``labels``, then by `SPOKEN`; or None."""
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


def _as_codes(column: _Column) -> dict[str, str]:
    """Return what two or three numbers may mean: of 0, 1 and 2 the tie is often 0, else it lies between the sides."""
    labels = [str(_shown(column.distinct[k])) for k in np.argsort(column.numbers, kind="stable")]
    if sorted(column.numbers) == [0, 1, 2]:
        labels = [labels[1], labels[0], labels[2]]
    if len(labels) not in (2, 3):
        return {"1": "model_a", "2": "model_b"}
    return dict(zip(labels, ("model_a", "model_b") if len(labels) == 2 else ("model_a", "tie", "model_b"), strict=True))


def _recognised(column: _Column, sides: Sides | None, option: str, advice: str) -> LabelledResults:
    """Return the results of labels by their own words: all are words of one family, or all are names of the winners."""
    readings = [] if column.numeric else _by_words(column, sides)
    if sides is not None and not (column.numeric and set(column.numbers) <= _CODED):
        readings += _by_names(column, sides)
    if column.numeric and not readings:
        sides_of = _as_codes(column)
        meant = ",".join(f"{label}={side}" for label, side in sides_of.items())
        raise DataError(
            f"column {column.name!r} has numeric labels ({column.all}), and numbers are never guessed: say what they "
            f"mean with {option}='a_wins_1' (1 is a win of side A), {option}='a_wins_0' (0 is one), or a mapping such "
            f"as {option}={sides_of}; on the command line --labels a_wins_1, --labels "
            f"a_wins_0 or --labels {meant} (or the sides the other way round){advice}"
        )
    if not readings:
        results = [STANDARD.get(value) if isinstance(value, str) else None for value in column.distinct]
        if sides is not None:  # where some labels are names of winners, only the others are unknown
            named = _models_named(column, sides) >= 0
            odd = [not name and _key(value) not in TIES for name, value in zip(named, column.distinct, strict=True)]
            if (
                named.any()
                and any(odd)
                and not any(value in STANDARD for value in np.array(column.distinct, object)[odd])
            ):
                results = [None if is_odd else _TIE for is_odd in odd]
        first = next(value for value, result in zip(column.distinct, results, strict=True) if result is None)
        example = f"{option}={{{str(first)!r}: 'model_a', ...}}, on the command line --labels '{first}=model_a,...'"
        whole = f"whole columns of {'; '.join(FAMILIES)}{_neither(column, sides)}"
        column.known(
            results,
            f"known are {', '.join(map(repr, STANDARD))}, and {whole}",
            f". Say what they mean ({example}){advice}{did_you_mean(first, STANDARD)}",
        )
    reading, *others = readings
    for other in others:
        if not np.array_equal(reading.target, other.target, equal_nan=True):
            label = str(column.distinct[0])
            advice = (
                f"say what the labels mean, {option}={{{label!r}: 'model_a', ...}}, on the command line --labels "
                f"'{label}=model_a,...'"
            )
            if reading.told == _NAMES:
                advice = "a model's name is also a word for ties, so give the model another name in the file"
            raise DataError(
                f"column {column.name!r} ({column.all}) may hold {reading.told}, or {other.told}, with different "
                f"results: {advice}"
            )
    is_standard = all(value in STANDARD for value in column.distinct)
    message = "" if is_standard else f"column {column.name!r}: read {column.all} as {reading.told}"
    return reading._replace(told=message, families=tuple(one.told for one in readings))


def _by_words(column: _Column, sides: Sides | None) -> list[LabelledResults]:
    """One reading by each family that has all the labels, and by the names of the sides' columns."""
    keys = [_key(value) for value in column.distinct]
    families = dict(FAMILIES)
    a, b = ("", "") if sides is None else sides.columns
    if a and not {_key(a), _key(b)} & set(STANDARD):
        families[f"the columns {a} and {b}"] = {_key(a): _A, _key(b): _B, **TIES}
    return [
        column.results([family[key] for key in keys], words)
        for words, family in families.items()
        if all(key in family for key in keys)
    ]


def _by_names(column: _Column, sides: Sides) -> list[LabelledResults]:
    """Readings of labels as names of the winners and words for ties; two if a word for ties is also a model's name."""
    keys = [_key(value) for value in column.distinct]
    of_label = _models_named(column, sides)
    ties = np.array([key in TIES for key in keys], bool)
    readings = []
    for words, named in ((_NAMES, of_label), ("the same with words for ties", np.where(ties, -1, of_label))):
        winner = np.append(named, -1)[column.codes]
        is_first, is_second, missing = winner == sides.first, winner == sides.second, column.codes < 0
        is_tie = np.append(ties, False)[column.codes] & ~(
            is_first | is_second
        )  # also where a third model has that name
        if (named >= 0).any() and (is_first | is_second | is_tie | missing).all():
            even = is_tie | (is_first & is_second)
            target = np.select([even, is_first, is_second], [0.5, 1.0, 0.0], np.nan)
            bad = np.array([*(key in TIES and TIES[key].both_bad for key in keys), False])
            readings.append(LabelledResults(target, bad[column.codes] & is_tie, None, words))
    return readings


def _models_named(column: _Column, sides: Sides) -> NDArray[np.intp]:
    """Return the number of the model that each label names, in upper or lower case; -1 if it names none."""
    of_label = sides.models.get_indexer(pd.Index(column.distinct, dtype=object))
    folded = pd.Index([_key(model) for model in sides.models])
    if folded.is_unique:
        of_label = np.where(of_label >= 0, of_label, folded.get_indexer([_key(value) for value in column.distinct]))
    return of_label


def _neither(column: _Column, sides: Sides | None) -> str:
    """What to say of names of winners among the labels: whether there are any, and where they name neither side."""
    if sides is None:
        return ""
    named = np.append(_models_named(column, sides), -1)[column.codes]
    ties = np.array([*(_key(value) in TIES for value in column.distinct), True])[column.codes]
    neither = ~ties & (named != sides.first) & (named != sides.second)
    if not (named >= 0).any():
        return "; or of the winners' names"
    n = counted(count_rows(neither, column.rows), "row")
    rows = f", but the label names neither side in {n}{first_place(neither, column.rows)}" if neither.any() else ""
    return f"; or of the winners' names. Some of the labels are names of models{rows}"


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
    """The form in which a label is looked up in a mapping: a number's value, or the text without blanks around it."""
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
