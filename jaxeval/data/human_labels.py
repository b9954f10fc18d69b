"""Human labels of pairs: who said what about which item, and the one label that people agree on."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Float
from jaxeval.data.columns import as_frame, encode_models, require_column
from jaxeval.data.label_scales import PAIRS, most_frequent
from jaxeval.data.labels import Labels, Sides, read_labels
from jaxeval.data.presentation_orders import Pairs, pairs_of
from jaxeval.data.roles import usual_names
from jaxeval.errors import DataError
from jaxeval.wording import counted

#: What to do about items on which people contradict each other.
People = Literal["error", "majority", "drop"]
#: Names of columns of labels that are taken if the user names none.
LABEL = (*usual_names("human"), "winner", "verdict", "label")
_WORDS = np.array(["model_b", "tie", "model_a"], object)


def words_of(target: Float) -> NDArray[Any]:
    """(N,) "model_a", "model_b" or "tie" of targets that the first model wins, None where they are missing."""
    known = ~np.isnan(target)
    words = np.full(len(target), None, object)
    words[known] = _WORDS[(1 + np.sign(target[known] - 0.5)).astype(int)]
    return words


def targets_of(words: pd.Series) -> Float:
    """(N,) targets of the words that `words_of` gives, NaN where they are missing."""
    return words.map(dict(zip(_WORDS, (0.0, 0.5, 1.0), strict=True))).to_numpy(float)


def human_labels_of(
    table: Any, coding: Labels | None, columns: dict[str, str | None]
) -> tuple[pd.DataFrame, list[str]]:
    """Labels as ``item, model_a, model_b, rater, verdict`` from a table, and how they were read, in words.

    The index holds the row of the table that each label is from.

    Args:
        table: one row per label: an item, two models, the label, and who gave it if there is a column.
        coding: what labels mean.
        columns: names of the columns ``item``, ``model_a`` and ``model_b`` in the table of calls. The table of labels
            may use the same names; otherwise the usual names are looked for.

    Raises:
        DataError: a column is missing, or labels cannot be read.
    """
    frame = as_frame(table).reset_index(drop=True)
    usual = {"item": usual_names("item"), "model_a": ("model_a",), "model_b": ("model_b",), "label": LABEL}
    named = {}
    for role, names in usual.items():
        column = columns.get(role)
        names = names if column is None else (column, *names)
        named[role] = next((name for name in names if name in frame.columns), None)
        if named[role] is None:
            have = ", ".join(map(repr, frame.columns))
            raise DataError(
                f"the table of human labels has no column of the {role.replace('_', ' ')}: call it "
                f"{' or '.join(map(repr, dict.fromkeys(names[:3])))}; its columns are {have}"
            )
        require_column(frame, str(named[role]))
    item, a, b, label = (frame[named[role]] for role in usual)
    models, first, second = encode_models(frame, str(a.name), str(b.name))
    read = read_labels(label, coding, Sides(models, first, second), may_miss=True, option="label_coding")
    rater = next((frame[name] for name in usual_names("rater") if name in frame.columns), None)
    labels = pd.DataFrame({"item": item, "model_a": a, "model_b": b, "rater": rater, "verdict": words_of(read.target)})[
        ~np.isnan(read.target)
    ]
    return labels, [f"human labels: {read.told}"] if read.told else []


def joined_labels(
    labels: pd.DataFrame, battles: pd.DataFrame, people: People, *, beside: bool
) -> tuple[pd.DataFrame, NDArray[Any], int, int]:
    """Human labels with pairs written as in battles, and the word that people agree on for each battle.

    Also the number of labels on items and pairs that no judge saw, and the number of items and pairs on which people
    contradict each other. Labels ``beside`` the calls are repeated at each call of an item, and count once.

    Raises:
        DataError: no label is on an item and pair that was judged, or people contradict each other and ``people`` is
            "error".
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
    """The item and pair of each battle and of each label; a pair is written as in its first battle, else label."""
    tables = (battles, labels)
    item = pd.factorize(np.concatenate([_item_keys(table["item"]) for table in tables]))[0]
    a, b = (np.concatenate([table[side].astype(str) for table in tables]) for side in ("model_a", "model_b"))
    first, second = pd.factorize(np.concatenate([a, b]))[0].reshape(2, -1).astype(np.int32)
    unit, flipped = pairs_of(item, first, second, int(max(first.max(), second.max())) + 1)
    n = len(battles)
    return Pairs(unit[:n], flipped[:n]), Pairs(unit[n:], flipped[n:])


def _item_keys(items: pd.Series) -> NDArray[Any]:
    """(N,) items as text, in which items of two tables are compared: 7, 7.0 and "7" are the same."""
    if pd.api.types.is_float_dtype(items) and (items == items.round()).all():
        items = items.astype(np.int64)
    return items.astype(str).to_numpy(object)


def agreed(
    unit: NDArray[np.intp], target: Float, n_units: int, people: People, row: NDArray[np.intp] | None = None
) -> tuple[Float, int]:
    """(n_units,) the label of each unit from the labels (N,) of people, NaN without one; and how many are disputed.

    The majority is the verdict that most people give; if several verdicts have the most votes, it is a tie.

    Args:
        unit: (N,) number of the unit of each label.
        target: (N,) targets that the first model wins.
        n_units: how many units there are.
        people: what to do where people contradict each other.
        row: (N,) row of each label in its table, for errors; by default its position.

    Raises:
        DataError: people contradict each other, and ``people`` is "error".
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
