"""Votes as forms write them: a row for each person, and a column for each question between two models."""

from __future__ import annotations

import re
from collections import Counter

import pandas as pd

from jaxeval.data.columns import folded
from jaxeval.data.formats import Format, Source, whole_table
from jaxeval.data.labels import SPOKEN, spoken_label
from jaxeval.data.outcomes import ALL_COLUMNS
from jaxeval.data.roles import voter_columns
from jaxeval.data.same_rows import reject_same_tables
from jaxeval.errors import DataError
from jaxeval.wording import named

_BETWEEN = re.compile(r"\s+(?:vs\.?|versus|or|od(?:\.|er)|gegen|contra)\s+", re.IGNORECASE)
_BEFORE, _BEHIND = r"[:,?!]\s+|\s[-\u2013\u2014]\s", r"[?:,;(]|\s[-\u2013\u2014]\s"
_MOST_WORDS, _LONGEST = 3, 60  # words and letters of a model's name
_ANSWERS = {"yes", "no", "true", "false", "agree", "disagree", "male", "female"}
_FEWEST = 3  # questions whose answers alone name the models
_PEOPLE = ("email", "emailaddress", "username", "participant", "respondent", "name")


def pair_columns(frame: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Questions between two models: the two by the name of the question's column; none where that is not sure.

    The name of a column says them (alpha vs beta; Which is better, alpha or beta?), or its answers are the names of
    models, of which each is in several questions.
    """
    answers = {name: _answers(frame[name]) for name in map(str, frame)}
    texts = {name: values for name, values in answers.items() if values}
    by_header = {name: pair for name in texts if (pair := _pair_of(name)) and _fit(texts[name], pair)}
    if len(by_header) > 1:
        return by_header
    choices = {name: {x for x in values if x.casefold() not in SPOKEN} for name, values in texts.items()}
    pairs = {name: tuple(sorted(values)) for name, values in choices.items()
             if len(values) == 2 and not {x.casefold() for x in values} & _ANSWERS}  # fmt: skip
    times = Counter(model for pair in set(pairs.values()) for model in pair)
    pairs = {name: pair for name, pair in pairs.items() if min(times[model] for model in pair) > 1}
    return {name: (a, b) for name, (a, b) in pairs.items()} if len({*pairs.values()}) >= _FEWEST else {}


def blind_questions(frame: pd.DataFrame) -> list[str]:
    """Columns of answers A or B of several questions, which do not say whose these are."""
    sides = [name for name in map(str, frame) if (answers := _answers(frame[name])) and len(answers) > 1
             and all(x.casefold() in SPOKEN for x in answers)]  # fmt: skip
    return sides if len(sides) >= _FEWEST else []


def about_questions(names: list[str]) -> str:
    """What to do about `blind_questions`."""
    return (
        f"{named([repr(name) for name in names], 3)} hold answers such as A and B, and nothing says which models these "
        "are: call each of these columns 'MODEL vs MODEL', A first, as in 'model-1 vs model-2'"
    )


def _answers(column: pd.Series) -> set[str]:
    """The few short texts that a column holds; none where it holds anything else."""
    values = column.dropna()
    if not len(values) or not all(isinstance(value, str) and len(value) <= _LONGEST for value in values):
        return set()
    texts = {value.strip() for value in values} - {""}
    return texts if len(texts) <= 6 else set()


def _pair_of(name: str) -> tuple[str, str] | None:
    """The two models that the name of a column says; of a grid it stands in brackets."""
    inside = [text for text in re.findall(r"\[(.+?)\]", name) if _BETWEEN.search(text)]
    parts = _BETWEEN.split(inside[-1] if inside else name)
    if len(parts) != 2:
        return None
    first, second = re.split(_BEFORE, parts[0])[-1].strip(), re.split(_BEHIND, parts[1])[0].strip(" .")
    fit = all(0 < len(model.split()) <= _MOST_WORDS for model in (first, second))
    return (first, second) if fit and first.casefold() != second.casefold() else None


def _fit(answers: set[str], pair: tuple[str, str]) -> bool:
    return all(_side(answer, pair) is not None for answer in answers)


def _side(answer: str, pair: tuple[str, str]) -> str | None:
    """Who won, in standard labels; None for an answer that says nothing of it."""
    names = [x.casefold() for x in pair]
    if answer.casefold() in names:
        return ("model_a", "model_b")[names.index(answer.casefold())]
    return spoken_label(answer)


def _read(source: Source) -> pd.DataFrame:
    """A row for each person and question."""
    frames = [source.table] if source.table is not None else [whole_table(x, ALL_COLUMNS, False) for x in source.paths]
    reject_same_tables(frames, [path.name for path in source.paths])
    frame = pd.concat(frames, ignore_index=True)
    pairs = pair_columns(frame)
    if not pairs:
        raise DataError("the first rows are answers to questions between two models, and later ones are not")
    if not voter_columns(list(frame)):
        person = next((name for name in frame if folded(name) in _PEOPLE and frame[name].is_unique), None)
        frame = frame.assign(voter=range(len(frame)) if person is None else frame[person])
    rest = [name for name in frame if name not in pairs]
    long = frame.melt(rest, list(pairs), "item", "winner")
    winners = [None if not isinstance(x, str) or not x.strip() else _side(x.strip(), pairs[name])
            for name, x in zip(long["item"], long["winner"], strict=True)]  # fmt: skip
    sides = [pd.Series([pairs[name][k] for name in long["item"]], long.index) for k in (0, 1)]
    return long.assign(winner=pd.Series(winners, long.index, dtype=object), model_a=sides[0], model_b=sides[1])


FORM = Format(
    "a form with a column for each question between two models", marks=(), read=_read,
    about="'voter' is the person, 'item' the question", asks=lambda rows: ("--cluster", "voter"),
)  # fmt: skip
