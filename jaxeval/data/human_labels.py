"""Labels of people and judges: their scale, who said what about which pair, and the one label that people agree on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.data.columns import as_frame, distinct_values, encode_models, factorized, plain, require_column, texts_of
from jaxeval.data.judge_replies import read_reply
from jaxeval.data.labels import RIGHT_OR_WRONG, Labels, Sides, bare_word, read_labels, spoken_results
from jaxeval.data.presentation_orders import Pairs, pairs_of, second_side_first
from jaxeval.data.roles import PAIR_LABELS, ROLES, usual_column
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import objects
from jaxeval.wording import counted, listed, named

#: What labels are: of pairs of named models; of two sides without names; right and wrong; grades; other words.
Kind = Literal["pairs", "sides", "answers", "grades", "categories"]
_NEITHER = ("not attempted", "not_attempted", "notattempted", "abstain", "abstained", "unsure", "partial")
_GRADED = {**RIGHT_OR_WRONG, **dict.fromkeys(_NEITHER, 0.5)}
#: More different labels than this are measurements.
MOST_LABELS = 21


class LabelScale(NamedTuple):
    """L labels, as numbers."""

    kind: Kind
    values: tuple[float, ...]  # (L,) sorted
    sides: tuple[int, ...]  # places of the labels that decide: all but ties and answers that were not attempted
    names: tuple[str, ...]  # (L,)

    @property
    def has_middle(self) -> bool:
        """Whether a label says neither one nor the other."""
        return len(self.sides) < len(self.values)

    def without_middle(self) -> LabelScale:
        """Return the scale of the labels that decide."""
        values, names = tuple(self.values[k] for k in self.sides), tuple(self.names[k] for k in self.sides)
        return LabelScale(self.kind, values, tuple(range(len(values))), names)


_HALVES = (0.0, 0.5, 1.0)
#: Which of two named models is better.
PAIRS = LabelScale("pairs", _HALVES, (0, 2), ("model_b", "tie", "model_a"))
SIDES = LabelScale("sides", _HALVES, (0, 2), ("the second side", "tie", "the first side"))
ANSWERS = LabelScale("answers", _HALVES, (0, 2), ("wrong", "neither", "right"))


def read_scale(
    columns: Mapping[str, Any], labels: Labels | Literal["grades"] | None
) -> tuple[LabelScale, Float, list[str]]:
    """Give the scale of all columns, (N, K) labels as its numbers (NaN: missing), and how they were read, in words.

    Columns are those of pandas, or arrays.
    """
    words = [_spoken(column, name) for name, column in columns.items()]
    names = named(list(columns))
    if labels is not None and labels != "grades":
        flat = pd.concat(list(map(pd.Series, words)), ignore_index=True).rename(names)
        read = read_labels(flat, labels, may_miss=True, option="label_coding")
        return SIDES, read.target.reshape(len(columns), -1).T, [read.told] if read.told else []
    codes, distinct = _factorized(words)
    numbers = [_number(value) for value in distinct]
    if not len(distinct):
        raise DataError(f"columns {names} have no labels")
    if all(number is not None for number in numbers):
        scale, of_label, message = _of_numbers([float(number or 0) for number in numbers], names, labels)
    elif labels == "grades":
        word = str(next(value for value, number in zip(distinct, numbers, strict=True) if number is None))
        raise DataError(f"columns {names} hold words, such as {word!r}, so they are no grades")
    else:
        scale, of_label, message = _of_words([str(plain(value)) for value in distinct], names)
    values = np.append(of_label, np.nan)[codes]
    return scale, values.reshape(len(columns), -1).T, [message] if message else []


def _factorized(columns: Sequence[Any]) -> tuple[NDArray[np.intp], Sequence[Any]]:
    """Return codes of the values of all columns, one after the other, -1 where one is missing, and the values."""
    if not all(isinstance(column, np.ndarray) for column in columns):
        return pd.factorize(pd.concat(list(map(pd.Series, columns)), ignore_index=True))
    return factorized(objects([value for column in columns for value in column.tolist()]))


def most_frequent(cell: NDArray[np.intp], values: Float, n_cells: int, scale: LabelScale) -> Float:
    """Return (n_cells,) the most frequent of the labels (E,) in each cell; NaN without one.

    Of several, it is the label that names no side, if the scale has one.
    """
    counts, known = np.zeros((n_cells, len(scale.values))), ~np.isnan(values)
    np.add.at(counts, (cell[known], np.searchsorted(scale.values, values[known])), 1)
    most = counts == counts.max(1, keepdims=True)
    split = 0.5 if scale.has_middle else np.nan
    label = np.where(most.sum(1) == 1, np.array(scale.values)[most.argmax(1)], split)
    return np.where(counts.any(1), label, np.nan)


def _of_numbers(numbers: list[float], columns: str, labels: Any) -> tuple[LabelScale, list[float], str]:
    different = set(numbers)
    if labels != "grades":
        if different <= {0.0, 0.5, 1.0}:
            return ANSWERS, numbers, f"labels: 1 is read as right, 0 as wrong ({columns})"
        if different == {1.0, 2.0}:
            return SIDES, [2 - number for number in numbers], "labels: 1 is read as the first side, 2 as the second"
        if different <= {-1.0, 0.0, 1.0, 2.0}:
            raise DataError(
                f"columns {columns} hold {named([f'{x:g}' for x in sorted(different)])}, which may be sides or grades: "
                "say label_coding={'1': 'model_a', '2': 'model_b', '0': 'tie'} (on the command line --labels "
                "1=model_a,2=model_b,0=tie), where model_a is the first side, or label_coding='grades' (--labels "
                "grades)"
            )
    values = sorted(different)
    if len(values) > MOST_LABELS:
        raise DataError(
            f"columns {columns} hold {len(values):,} numbers, from {values[0]:g} to {values[-1]:g}: agreement "
            f"is that of labels, so round them to {MOST_LABELS} grades or fewer, or make them right and wrong (1 and 0)"
        )
    return (
        LabelScale("grades", tuple(values), tuple(range(len(values))), tuple(f"{x:g}" for x in values)),
        numbers,
        f"labels: grades from {values[0]:g} to {values[-1]:g}",
    )


def _of_words(words: list[str], columns: str) -> tuple[LabelScale, list[float], str]:
    keys = list(map(bare_word, words))
    graded = [_GRADED.get(key) for key in keys]
    if all(grade is not None for grade in graded):
        return ANSWERS, [float(grade or 0) for grade in graded], ""
    spoken = spoken_results(words, None)
    if all(result is not None for result in spoken):
        return SIDES, [result.target for result in spoken if result is not None], ""
    names = sorted(set(keys))
    if len(names) > MOST_LABELS:
        raise DataError(
            f"columns {columns} hold {len(names):,} different words, such as {words[0][:40]!r} and {words[1][:40]!r}: "
            f"labels are at most {MOST_LABELS}; name other columns (human=, judges=; --human, --judges)"
        )
    place = {name: float(k) for k, name in enumerate(names)}
    scale = LabelScale("categories", tuple(place.values()), tuple(range(len(names))), tuple(names))
    return scale, [place[key] for key in keys], f"labels: {named(names)}"


def _spoken(column: Any, name: str) -> Any:
    """Return a column with what its replies say, where it holds what a judge printed."""
    nested = any(isinstance(value, dict | list) for value in column[:50])
    texts = None if nested else [value for value in distinct_values(column) if isinstance(value, str)]
    if texts is not None and not any("{" in text or "\n" in text or ":" in text for text in texts):
        return column
    column = pd.Series(column)
    replies = {k: read_reply(value) for k, value in column.items() if value is not None and value == value}
    wrong = {k: reply.wrong or "no verdict" for k, reply in replies.items() if reply.wrong or not reply.word}
    if wrong:
        row, why = next(iter(wrong.items()))
        raise DataError(
            f"column {name!r}: {len(wrong):,} of {len(replies):,} replies cannot be read (first in row {row}: "
            f"{why}; rows count from 0): correct or empty them"
        )
    return pd.Series([replies[k].word if k in replies else None for k in column.index], dtype=object)


def _number(value: Any) -> float | None:
    if isinstance(value, Mapping):
        return None
    try:
        number = float(str(plain(value)).strip()) if not isinstance(value, bool | np.bool_) else float(value)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


#: What to do about items on which people contradict each other.
People = Literal["error", "majority", "drop"]
_WORDS = np.array(["model_b", "tie", "model_a"], object)


def words_of(target: Float) -> NDArray[Any]:
    """Return (N,) "model_a", "model_b" or "tie" of targets that the first model wins, None where they are missing."""
    known = ~np.isnan(target)
    words = np.full(len(target), None, object)
    words[known] = _WORDS[(1 + np.sign(target[known] - 0.5)).astype(int)]
    return words


def targets_of(words: pd.Series) -> Float:
    """Return (N,) targets of the words that `words_of` gives, NaN where they are missing."""
    return words.map(dict(zip(_WORDS, (0.0, 0.5, 1.0), strict=True))).to_numpy(float)


class VerdictTable:
    """A table of verdicts on pairs of models, and how its columns are read."""

    def __init__(self, frame: pd.DataFrame, coding: Labels | None, sides: tuple[str, str], advice: str = "") -> None:
        self.frame, self.coding, self.sides, self.advice, self.notes = frame, coding, sides, advice, list[str]()
        self.models, self.first, self.second = encode_models(frame, *sides)

    def targets(self, column: str) -> Float:
        """Return (N,) targets that the first model wins; NaN where there is no verdict."""
        require_column(self.frame, column)
        sides = Sides(self.models, self.first, self.second)
        read = read_labels(
            self.frame[column], self.coding, sides, may_miss=True, option="label_coding", advice=self.advice
        )
        self.notes += [read.told] if read.told else []
        return read.target

    def b_first(self, shown_first: str | None) -> Bool:
        """Return (N,) whether the second model was shown first."""
        if shown_first in (None, self.sides[0]):
            return np.zeros(len(self.frame), bool)
        require_column(self.frame, str(shown_first))
        return second_side_first(self.frame[shown_first], str(shown_first), self.models, self.first, self.second)


def human_labels_of(
    table: Any, coding: Labels | None, columns: dict[str, str | None]
) -> tuple[pd.DataFrame, list[str]]:
    """Return labels as ``item, model_a, model_b, rater, verdict`` from a table, and how they were read, in words.

    The index holds the row of the table that each label is from. ``columns`` are the names of item, model_a and model_b
    in the table of calls: the table of labels may use the same; otherwise the usual names are looked for.
    """
    frame = as_frame(table).reset_index(drop=True)
    usual = {"item": ROLES["item"].names, "model_a": ("model_a",), "model_b": ("model_b",), "label": PAIR_LABELS}
    named = {}
    for role, names in usual.items():
        column = columns.get(role)
        names = names if column is None else (column, *names)
        named[role] = usual_column(frame, None, names)
        if named[role] is None:
            raise DataError(
                f"the table of human labels has no column of the {role.replace('_', ' ')}: call it "
                f"{' or '.join(map(repr, dict.fromkeys(names[:3])))}; its columns are {listed(frame)}"
            )
    item, a, b, label = (frame[named[role]] for role in usual)
    reader = VerdictTable(frame, coding, (str(a.name), str(b.name)))
    target = reader.targets(str(label.name))
    rater = usual_column(frame, None, "rater")
    labels = pd.DataFrame({"item": item, "model_a": a, "model_b": b, "rater": None if rater is None else frame[rater]})
    labels = labels.assign(verdict=words_of(target))[~np.isnan(target)]
    return labels, [f"human labels: {note}" for note in reader.notes]


def joined_labels(
    labels: pd.DataFrame, battles: pd.DataFrame, people: People, *, beside: bool
) -> tuple[pd.DataFrame, NDArray[Any], int, int]:
    """Return human labels with pairs written as in battles, and the word that people agree on for each battle.

    Also the number of labels on items and pairs that no judge saw, and the number of items and pairs on which people
    contradict each other. Labels ``beside`` the calls are repeated at each call of an item, and count once.
    """
    of_battle, of_label = units_of(battles, labels)
    turned = of_label.flipped  # all battles of an item write the pair in one order
    sides = labels[["model_a", "model_b"]].to_numpy(object)
    sides = np.where(turned[:, None], sides[:, ::-1], sides)
    target = targets_of(labels["verdict"])
    target = np.where(turned, 1 - target, target)
    labels = labels.assign(
        model_a=sides[:, 0], model_b=sides[:, 1], verdict=words_of(target), _unit=of_label.unit, _row=labels.index
    )
    if beside:
        labels = labels.drop_duplicates(["_unit", "verdict"], ignore_index=True)
    seen = np.isin(labels["_unit"], of_battle.unit)
    if len(labels) and not seen.any():
        raise DataError(
            f"none of the {counted(len(labels), 'human label')} is on an item and pair that was judged: labels have "
            f"items such as {str(labels['item'].iloc[0])[:40]!r}, calls have items such as "
            f"{str(battles['item'].iloc[0])[:40]!r}"
        )
    used = labels[seen]
    n_units, row = int(of_battle.unit.max()) + 1, used["_row"].to_numpy()
    label, disputed = agreed(used["_unit"].to_numpy(), targets_of(used["verdict"]), n_units, people, row)
    words = words_of(label[of_battle.unit])
    return used.drop(columns=["_unit", "_row"]).reset_index(drop=True), words, int((~seen).sum()), disputed


def units_of(battles: pd.DataFrame, labels: pd.DataFrame) -> tuple[Pairs, Pairs]:
    """Give the item and pair of each battle and of each label; a pair is written as in its first battle, else label."""
    tables = (battles, labels)
    item = pd.factorize(np.concatenate([texts_of(table["item"]) for table in tables]))[0]
    a, b = (np.concatenate([table[side].astype(str) for table in tables]) for side in ("model_a", "model_b"))
    first, second = pd.factorize(np.concatenate([a, b]))[0].reshape(2, -1).astype(np.int32)
    unit, flipped = pairs_of(item, first, second, int(max(first.max(), second.max())) + 1)
    n = len(battles)
    return Pairs(unit[:n], flipped[:n]), Pairs(unit[n:], flipped[n:])


def agreed(
    unit: NDArray[np.intp], target: Float, n_units: int, people: People, row: NDArray[np.intp] | None = None
) -> tuple[Float, int]:
    """Return each unit's label (n_units,) from labels (N,) of people, NaN without one; and how many are disputed.

    The majority is the verdict that most people give; if several verdicts have the most votes, it is a tie. Errors name
    the ``row`` (N,) of a label in its table, by default its position.
    """
    votes = np.zeros((n_units, 3))
    np.add.at(votes, (unit, np.rint(2 * target).astype(int)), 1)
    disputed = (votes > 0).sum(1) > 1
    n = int(disputed.sum())
    if n and people == "error":
        first = int(disputed.argmax())
        n_labels, place = counted(int(votes[first].sum()), "label"), int((unit == first).argmax())
        where = place if row is None else row[place]
        counts = ", ".join(f"{word} ({count:g})" for word, count in zip(_WORDS, votes[first], strict=True) if count)
        raise DataError(
            f"people contradict each other on {counted(n, 'item and pair', 'items and pairs')} (the first has "
            f"{n_labels}, from row {where} on: {counts}; rows count from 0); take the majority with people='majority', "
            "or leave out their labels with people='drop' (on the command line --people)"
        )
    label = most_frequent(unit, target, n_units, PAIRS)
    return np.where(disputed & (people == "drop"), np.nan, label), n
