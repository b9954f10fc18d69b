"""Labels of judges and people where no models are named: which columns hold them, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.data.columns import (
    distinct_values,
    factorize_sorted,
    factorized,
    folded,
    group_numbers,
    reject_again,
    require_column,
    rows_of,
    seen_before,
)
from jaxeval.data.human_labels import MOST_LABELS, LabelScale, most_frequent, read_scale
from jaxeval.data.labelled_verdicts import LabelledVerdicts, facet_of, refuse_columns_twice, refuse_raters_twice
from jaxeval.data.labels import Labels
from jaxeval.data.nested_columns import LaterColumns
from jaxeval.data.presentation_orders import (
    numbered_orders,
    of_both_orders,
    order_column,
    rows_by_order,
    second_side_first,
)
from jaxeval.data.roles import JUDGES, ONE_PERSON, ROLES, TOGETHER, usual_column
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import Names, PlainTable
from jaxeval.wording import counted, listed, named, words_of

#: Words by which two columns are the two orders of one judge.
_ORDERS = (("orig", "swap"), ("original", "swapped"), ("ab", "ba"), ("a_first", "b_first"))
_MODEL = (*ROLES["model"].names, "system")
#: Columns that name judges, unless their values are those of people's labels.
_NAMES = set(map(folded, ROLES["judge"].names))
#: Columns of the labels, where a table has a row for each rater and item.
_LABELS = {"label", "verdict", "judgment", "rating", "grade", "answer", "choice", "vote", "value", "annotation"}
_RATERS = set(map(folded, ROLES["rater"].names))
_FEWEST_RATERS = 2  # a judge and a person
_NO_ORDER = 2  # beside the numbers of the two orders
_OF_ROWS = ("id", "index", "row", "idx", "item_no", "sample", "fold", "split", "batch", "turn", "attempt", "shots")
#: Columns that say of a row where it comes from, though they may hold 0 and 1 only.
NO_LABELS = {*map(folded, (*ROLES["item"].names, *_MODEL, *ROLES["run"].names, *ROLES["run"].also, *_OF_ROWS))}


def plain_labels(
    verdicts: Any, human: str | Sequence[str] | None, judges: Sequence[str] | None,
    labels: Labels | Literal["grades"] | None, item: str | None, shown_first: str | None = None,
) -> LabelledVerdicts:  # fmt: skip
    """Return labels of judges and people without pairs of models; arguments as in `jaxeval.judge_agreement`."""
    frame = verdicts if isinstance(verdicts, PlainTable) else rows_of(verdicts, "the table of verdicts has no rows")
    messages = list[str]()
    if human is None and (called := names_of_raters(frame)) is not None:
        frame, judges, human, messages = _column_each(frame, *called, judges, item)
    human_columns, of_people = _people(frame, human, judges or ())
    require_column(frame, *human_columns)
    judge_columns, more = _judges(frame, judges, human_columns)
    messages += [*of_people, *more]
    refuse_columns_twice(judge_columns, "judge", "judges=, --judges")
    refuse_raters_twice(human_columns, judge_columns)
    require_column(frame, *judge_columns)
    columns = [*judge_columns, *human_columns]
    scale, values, sentences = read_scale({name: frame[name] for name in columns}, labels)
    names, judge_of, order_of = _columns_of_judges(judge_columns, scale)
    in_columns = bool((order_of < _NO_ORDER).any())
    if shown_first is not None and (scale.kind != "sides" or in_columns):
        raise DataError(
            f"shown_first={shown_first!r} (--shown-first) is about labels of two sides in rows of one order, and the "
            f"labels are {'in columns of both orders' if scale.kind == 'sides' else scale.kind}: leave it out"
        )
    unit, order = np.arange(len(frame)), np.full(len(frame), _NO_ORDER)
    if scale.kind == "sides" and not in_columns:
        by_people = values[:, len(judge_columns) :]
        unit, order, mirrored, more = _orders_in_rows(frame, by_people, columns, item, shown_first)
        values, messages = np.where(mirrored[:, None], 1 - values, values), [*messages, *more]
    rows = np.lexsort([order, unit])
    start = rows[np.unique(unit[rows], return_index=True)[1]]
    told = np.full((len(start), len(names), _NO_ORDER + 1), np.nan)
    for column, judge, its_order in zip(values.T, judge_of, order_of, strict=False):
        told[unit, judge, np.minimum(order, its_order)] = column
    orders, verdict = told[..., :_NO_ORDER], told[..., _NO_ORDER]
    verdict = np.where(np.isnan(verdict), of_both_orders(orders), verdict)
    people = values[rows, len(judge_columns) :]
    if len(start) < len(rows):
        people = _first_labels(people, unit[rows])
    frame = frame[start] if isinstance(frame, PlainTable) else frame.iloc[start].reset_index(drop=True)
    if scale.has_middle and not (verdict == 0.5).any() and not (people == 0.5).any():
        scale = scale.without_middle()
    item_column = usual_column(frame, item, "item")
    model = usual_column(frame, None, _MODEL)
    items = np.arange(len(frame)) if item_column is None else factorize_sorted(frame[item_column], item_column)[0]
    models, of_model = Names([]), None
    if model is not None and scale.kind in ("answers", "grades"):
        of_model, models = factorize_sorted(frame[model], model)
    whole = LabelledVerdicts(
        models=models, model_a=np.zeros(len(frame), np.intp), model_b=np.zeros(len(frame), np.intp), item=items,
        judges=names, raters=human_columns if len(human_columns) > 1 else None, verdict=verdict, orders=orders,
        human=people, confidence=np.full(verdict.shape, np.nan), longer=np.full(len(frame), np.nan),
        notes=[*messages, *sentences], scale=scale, answers_of=of_model,
        facets=LaterColumns(frame, partial(facet_of, unit=np.arange(len(frame)))),
    )  # fmt: skip
    column = usual_column(frame, None, "judge")
    if column is not None and column not in judge_columns:
        whole = _by_judge(whole, frame, column, item_column)
    if np.isnan(whole.verdict).all():
        raise DataError("no row has a verdict of a judge")
    return whole


def names_of_raters(frame: pd.DataFrame) -> tuple[str, str] | None:
    """Return the columns of names and of labels, where each row is one label of one rater, people and judges alike."""
    labels = [str(name) for name in frame.columns if folded(name) in _LABELS and _few(frame[name])]
    for role in ("rater", "judge"):
        name = usual_column(frame, None, role)
        if len(labels) != 1 or name is None or _n_distinct(frame[name]) < _FEWEST_RATERS:
            continue
        beside = [str(other) for other in frame.columns if str(other) not in (name, labels[0])]
        if not any(_about_people(other) for other in beside) and not _texts(frame[name]) & _texts(frame[labels[0]]):
            return name, labels[0]
    return None


def _column_each(
    frame: Any, name: str, label: str, judges: Sequence[str] | None, item: str | None
) -> tuple[Any, list[str], list[str], list[str]]:
    """Return a table with a column of labels for each rater, the judges and the people among them, and notes."""
    item_column = usual_column(frame, item, "item")
    if item_column is None:
        raise DataError(
            f"column {name!r} names raters, a row each: name the column of what they labelled with item= (--item)"
        )
    model = usual_column(frame, None, _MODEL)
    keys = [item_column, *([model] if model else [])]
    *of_keys, (rater, found) = (factorize_sorted(frame[column], column) for column in (*keys, name))
    unit = group_numbers(*(codes for codes, _ in of_keys))
    advice = ": name another column of items (item=, --item), or keep one of the labels"
    reject_again(seen_before(unit * len(found) + rater), "a rater's label of an item", advice)
    there = factorized(frame[label])[0] >= 0
    kept, rater = np.unique(rater[there], return_inverse=True)
    frame, unit, raters = frame[there], group_numbers(unit[there]), [str(found[k]) for k in kept]
    if judges is None:
        judges = [rater for rater in raters if any(word in rater.casefold() for word in JUDGES)]
    people = [rater for rater in raters if rater not in judges]
    absent = [rater for rater in judges if rater not in raters]
    if absent or not judges or not people:
        what = f"{absent[0]!r} is none of them" if absent else f"{'all are' if judges else 'none is'} called a judge"
        raise DataError(
            f"column {name!r} names the raters {named(list(map(repr, raters)), 10)}, and {what}: say which of them are "
            "judges with judges= (on the command line --judges A,B); the others are people. Where all are people, one "
            "of them may stand for a judge"
        )
    message = f"a row for each label in {label!r}, by rater in {name!r}: judges {named(judges)}, people {named(people)}"
    first = np.unique(unit, return_index=True)[1]
    row = np.full((len(raters), len(first)), -1)
    row[rater, unit] = np.arange(len(frame))
    of_raters = {x: _of_rows(frame[label], rows) for x, rows in zip(raters, row, strict=True)}
    wide = {**{key: _of_rows(frame[key], first) for key in keys}, **of_raters}
    return PlainTable(wide) if isinstance(frame, PlainTable) else pd.DataFrame(wide), list(judges), people, [message]


def _of_rows(column: Any, rows: NDArray[np.intp]) -> Any:
    """Return the values of some rows of a column, missing for row -1."""
    if not isinstance(column, np.ndarray):
        return column.reset_index(drop=True).reindex(rows).reset_index(drop=True)
    found = column[rows]
    absent: Any = np.nan if column.dtype.kind in "iuf" else None
    return np.where(rows < 0, absent, found) if (rows < 0).any() else found


def _first_labels(people: Float, unit: NDArray[np.intp]) -> Float:
    """Return (n, R) the first label of each rater in the rows (N,) of each unit, from 0 on."""
    first = np.full((unit.max() + 1, people.shape[1]), np.nan)
    for row in reversed(range(len(people))):
        there = ~np.isnan(people[row])
        first[unit[row], there] = people[row, there]
    return first


def _people(
    frame: pd.DataFrame, human: str | Sequence[str] | None, judges: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Find columns of people's labels, and what to tell of the choice; one named as a judge's is none of them."""
    if human is not None:
        return [human] if isinstance(human, str) else list(human), []
    about = [
        name for name in map(str, frame.columns) if name not in judges and _about_people(name) and _few(frame[name])
    ]
    single = [name for name in about if {*words_of(name)} & ONE_PERSON]
    together = [name for name in about if name not in single]
    numbered = [name for name in single if folded(name) not in ("human", "humans")]
    chosen = numbered if len(numbered) > 1 else single or together[:1]
    if not chosen:
        raise DataError(
            "no column of people's labels, such as 'human' or 'annotator_1': name it with human= (on the command line "
            f"--human); the table's columns are {listed(frame)}"
        )
    left = [name for name in (*single, *together) if name not in chosen]
    beside = f" ({named(left)} beside them not used)" if left else ""
    return chosen, [f"people's labels in {named(chosen)}{beside}"]


def _judges(frame: pd.DataFrame, judges: Sequence[str] | None, human: Sequence[str]) -> tuple[list[str], list[str]]:
    """Find columns of judges' labels, and what to tell of the choice."""
    if judges is not None:
        return list(judges), []
    if "verdict" in frame:
        return ["verdict"], []
    known = set().union(*(_texts(frame[name]) for name in human))
    flags = all(frame[name].dtype.kind == "b" for name in human)
    alike = [
        str(name)
        for name in frame.columns
        if name not in human
        and folded(name) not in NO_LABELS
        and not _about_people(name)
        and (frame[name].dtype.kind == "b") == flags
        and _few(frame[name])
        and _texts(frame[name])
        and (
            _texts(frame[name]) <= known
            or (folded(name) not in _NAMES and any(word in folded(name) for word in JUDGES))
        )
    ]
    chosen = [name for name in alike if any(word in folded(name) for word in JUDGES)] or alike
    if not chosen:
        names = [name for name in human if folded(name) in _RATERS]
        item = usual_column(frame, None, "item")
        if names and item is not None and len(distinct_values(frame[item])) < len(frame):
            raise DataError(
                f"column {names[0]!r} seems to name who gave the label of each row, and no column of labels is called "
                f"{named(sorted(_LABELS), 12)}: call it so, or name columns of labels, one for each judge and person, "
                "with judges= and human= (on the command line --judges, --human)"
            )
        stand_in = f"; where all are people, one of them may stand for a judge: {human[0]}" if len(human) > 1 else ""
        raise DataError(
            f"no column of a judge's labels beside people's in {named(list(map(repr, human)))}: name it with judges= "
            f"(on the command line --judges){stand_in}; the table's columns are {listed(frame)}"
        )
    return chosen, [f"judges in {named(chosen)}"]


def _about_people(name: Any) -> bool:
    """Return whether a column is called after a person, or after several; judge_label is after a judge."""
    people = {*words_of(name)} & (ONE_PERSON | TOGETHER)
    return bool(people) and not (people == {"label"} and any(word in folded(name) for word in JUDGES))


def _n_distinct(column: Any) -> int:
    """Return how many values a column has; 0 of lists and objects, which cannot be told apart."""
    try:
        return len(distinct_values(column))
    except TypeError:
        return 0


def _few(column: Any) -> bool:
    return 0 < _n_distinct(column) <= MOST_LABELS


def _texts(column: Any) -> set[str]:
    return {str(value).strip().casefold().removesuffix(".0") for value in distinct_values(column)}


def _columns_of_judges(columns: list[str], scale: LabelScale) -> tuple[list[Any], NDArray[np.intp], NDArray[np.intp]]:
    """Return judges' names, and each column's judge and order (J,); two columns may be both orders of a judge."""
    pairs = [
        (name, other, one) for name in columns for other in columns for one, two in _ORDERS
        if scale.kind == "sides" and name.casefold().endswith(one) and other.casefold().endswith(two)
        and name[: -len(one)] == other[: -len(two)]
    ]  # fmt: skip
    first = {x: name for name, other, _ in pairs for x in (name, other)}
    order = {x: k for pair in pairs for k, x in enumerate(pair[:2])}
    called = {name: name[: -len(one)].rstrip("_-. ") or name for name, _, one in pairs}
    judges = list(dict.fromkeys(first.get(name, name) for name in columns))
    names = [called.get(name, name) for name in judges]
    judge_of = np.array([judges.index(first.get(name, name)) for name in columns])
    return names, judge_of, np.array([order.get(name, _NO_ORDER) for name in columns])


def _orders_in_rows(
    frame: Any, human: Float, labels: list[str], item: str | None, shown_first: str | None
) -> tuple[NDArray[np.intp], NDArray[np.intp], Bool, list[str]]:
    """Return (N,) the item and order of each row, whether its labels name the other side, and what was read.

    People's labels (N, R) tell what a label names. Where they are the same in both rows of an item, it is an answer;
    where they change sides, it is the place at which an answer was shown.
    """
    item_column = usual_column(frame, item, "item")
    apart = np.arange(len(frame)), np.full(len(frame), _NO_ORDER), np.zeros(len(frame), bool)
    if item_column is None:
        if shown_first is not None:
            raise DataError(
                "shown_first= (--shown-first) needs a column of items (item=, --item), which have two orders"
            )
        return *apart, []
    beside = [name for name in (usual_column(frame, None, role) for role in ("judge", _MODEL, "run")) if name]
    keys = [item_column, *(name for name in beside if name not in labels)]
    cell = group_numbers(*(factorized(frame[key])[0] for key in keys))
    if shown_first is None:
        shown_first, advice = order_column(frame, cell, [*labels, *keys])
        if shown_first is None:
            return *apart, [advice.strip()] if advice else []
    require_column(frame, shown_first)
    nobody = np.full(len(frame), -1, np.int32)
    second = second_side_first(frame[shown_first], shown_first, Names([]), nobody, nobody)
    reject_again(
        seen_before(2 * cell + second), "an item in one order", ": name another column of items (item=, --item)"
    )
    rows = rows_by_order(cell, second)
    both = rows[(rows >= 0).all(1)]
    one, other = human[both[:, 0]], human[both[:, 1]]
    decided = (one != 0.5) & ~np.isnan(one) & ~np.isnan(other)
    same, turned = int((one == other)[decided].sum()), int((one == 1 - other)[decided].sum())
    if min(same, turned) or not max(same, turned):
        why = f"are the same {same:,} times and the other side {turned:,} times" if same else "are not in both"
        raise DataError(
            f"column {shown_first!r} holds the order in which the sides were shown, and people's labels in the rows of "
            f"both orders {why}, so that nobody knows whether a label names an answer or a place: give the verdicts of "
            "both orders in two columns of one row, such as judge_orig and judge_swap, or repeat people's labels"
        )
    meaning = "the place where a side was shown" if turned else "a side, wherever it was shown"
    numbers = numbered_orders(frame[shown_first]).replace("model_a", "the first side").replace("model_b", "the second")
    note = (
        f"column {shown_first!r}: read as the order in which the sides were shown{f' ({numbers})' if numbers else ''}; "
        f"labels name {meaning}, as people's do; {counted(len(both), 'item')} judged in both orders"
    )
    return cell, second.astype(int), second & bool(turned), [note]


def _by_judge(whole: LabelledVerdicts, frame: Any, column: str, item: str | None) -> LabelledVerdicts:
    """Turn rows of one judge each into one row per item, with a column for each judge."""
    if len(whole.judges) > 1:
        raise DataError(
            f"column {column!r} names judges, and there are several columns of verdicts ({named(whole.judges)}): name "
            "one of them (judges=, --judges), or drop the column of judges"
        )
    whole = replace(whole, verdict_column=whole.judges[0])
    number, names = factorize_sorted(frame[column], column)
    if len(names) == 1:
        return replace(whole, judges=list(names))
    if item is None:
        raise DataError(
            "verdicts of several judges need a column of items (item=, --item), which says which verdicts are on one "
            "item; or name a column of verdicts for each judge (judges=, --judges)"
        )
    model = np.zeros(len(frame), np.intp) if whole.answers_of is None else whole.answers_of
    unit = group_numbers(whole.item, model)
    reject_again(
        seen_before(unit * len(names) + number), "a judge's verdict on an item",
        ": name another column of items (item=, --item), or of judges (--judge), in which prompts, samples or runs are "
        "told apart, or choose rows of one of them (--where)",
    )  # fmt: skip
    start = np.unique(unit, return_index=True)[1]
    told = np.full((len(start), len(names), 3), np.nan)
    told[unit, number] = np.dstack([whole.verdict, whole.orders])[:, 0]
    rows = ("item", "model_a", "model_b", "longer", *(["answers_of"] if whole.answers_of is not None else []))
    return replace(
        whole, **{name: getattr(whole, name)[start] for name in rows}, judges=list(names), verdict=told[..., 0],
        orders=told[..., 1:], confidence=np.full(told.shape[:2], np.nan),
        facets=LaterColumns(frame, partial(facet_of, unit=unit)),
        # Rows of several judges repeat people's labels.
        human=np.column_stack([most_frequent(unit, column, len(start), whole.scale) for column in whole.human.T]),
    )  # fmt: skip
