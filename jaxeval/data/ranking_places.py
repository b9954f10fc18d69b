"""The places of items in rankings, read from a table of ordered lists, or of items and ranks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.columns import factorize_sorted, factorized, folded, plain, reject_missing, require_column
from jaxeval.data.numbers import numbers, reject_values
from jaxeval.data.roles import ROLES
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.wording import counted

#: Names of columns of the items in one place: rank1, Rank 2, place_3, 1st.
_PLACE = re.compile(r"(?:rank|place|choice)[ _-]?(\d+)|(\d+)(?:st|nd|rd|th)(?:[ _-](?:place|choice))?")
#: Names of columns of the best and the worst of those shown, folded; and of these: Item1, option_2, model B; or a list.
_BEST, _WORST = (
    (*(word + end for end in ("", "item", "option", "model", "response")), other)
    for word, other in (("best", "most"), ("worst", "least"))
)
_SHOWN = re.compile(r"(?:item|option|model|system|choice|candidate|response|alternative|id)[ _-]?(\d+|[a-h])")
_LISTED = ("items", "options", "models", "systems", "choices", "candidates", "responses", "alternatives")
BEST_AND_WORST = "the best and the worst"
#: Columns of numbers that are no ranks.
_NO_RANKS = ("item", "rater", "judge", "run", "count", "weight", "time", "score")
#: A tie of t items counts as the mean over its orders, which takes sums over 2**t - 1 sets of items.
MOST_TIED = 10
#: Level of items that were there, and that nobody put in an order: of the best of n, the n - 1 others.
REST = 2**30


class Places(NamedTuple):
    """Rankings one after the other: ranking r has the places ``start[r]`` to ``start[r + 1]``, the best item first.

    Items that tie are in the order of their numbers. Those on the level `REST` are below all others, in no order.
    """

    start: Int  # (N + 1,)
    item: NDArray[np.int32]  # (E,) number of the item
    level: Int  # (E,) 0 for the best of a ranking, and one more for each step down

    @property
    def length(self) -> Int:
        """(N,) number of items of each ranking."""
        return np.diff(self.start)

    @property
    def ranking(self) -> NDArray[np.intp]:
        """(E,) the ranking of each place."""
        return np.repeat(np.arange(len(self.start) - 1), self.length)

    def of(self, rankings: NDArray[Any]) -> Places:
        """Return the places of some rankings."""
        length = self.length[rankings]
        end = np.cumsum(length)
        place = np.repeat(self.start[:-1][rankings] - (end - length), length) + np.arange(length.sum())
        return Places(np.concatenate([[0], end]), self.item[place], self.level[place])


def has_places(frame: pd.DataFrame, item: str | None, rank: str | None) -> bool:
    """Return whether a row of a table is one place of a ranking, and not a whole list."""
    return item is not None or rank is not None or {"item", "rank"} <= set(frame.columns)


class Found(NamedTuple):
    """The places of a table, in any order."""

    frame: pd.DataFrame
    roles: tuple[str, ...]  # columns of rankings, items and ranks
    ranking: NDArray[np.intp]  # (E,) number of the ranking of each place
    row: NDArray[np.intp]  # (E,) row of the table
    names: Sequence[Any]  # (N,) of the rankings
    item: NDArray[np.intp]  # (E,)
    items: pd.Index
    rank: Float  # (E,)


def from_places(frame: pd.DataFrame, ranking: str, item: str, rank: str) -> Found:
    """Return the places of a table with one row per place."""
    require_column(frame, ranking, item, rank)
    try:
        number, names = factorized(frame[ranking])
    except TypeError as error:
        raise DataError(f"column {ranking!r} must name the ranking of each row, and holds {error}") from error
    reject_missing(number < 0, ranking)
    ranks = numbers(frame[rank], rank)
    bad = ~((ranks >= 1) & (ranks == np.floor(ranks)) & (ranks < 2**53))
    reject_values(ranks, bad, rank, "ranks must be whole numbers from 1 on, where 1 is the best")
    values = frame[item]
    reject_missing(_blank(values), item)
    codes, items = factorize_sorted(values, item)
    entries = Found(
        frame=frame, roles=(ranking, item, rank), ranking=number, row=np.arange(len(frame)), names=list(names),
        item=codes, items=items, rank=ranks,
    )  # fmt: skip
    _reject_short(entries)
    by_ranking = pd.Series(ranks).groupby(number)
    # After a tie of two, the next rank is one more (dense), or two more, as in sports (min).
    off = [
        np.bincount(number, by_ranking.rank(method=method).to_numpy() != ranks, len(names)) > 0
        for method in ("dense", "min")
    ]
    _reject(
        off[0] & off[1], entries, "has gaps in its ranks", "have gaps in their ranks",
        "give the places of each ranking the ranks 1, 2, 3 and so on, one rank for items that tie",
    )  # fmt: skip
    return entries


def lists_in_columns(frame: pd.DataFrame) -> tuple[list[list[Any]], str] | None:
    """Return the ranking of each row, where places or items have columns, and what was found; None where they do not.

    Columns rank1, rank2, and so on hold names of items. Or the best and the worst of those shown have columns. Or the
    columns of numbers are items, and hold ranks in every row: 1, 2, 3 and so on, one rank for items that tie.

    Raises:
        DataError: the best or the worst was not shown.
    """
    if (chosen := _best_and_worst(frame)) is not None:
        return chosen
    place = {
        int(match[1] or match[2]): name for name in frame if (match := _PLACE.fullmatch(str(name).strip().casefold()))
    }
    if len(place) > 1 and {*place} == {*range(1, len(place) + 1)}:
        columns = [place[k] for k in sorted(place)]
        if not any(pd.api.types.is_numeric_dtype(frame[name]) for name in columns):
            there = ~np.column_stack([_blank(frame[name]) for name in columns])
            # A name after an empty place stays missing in the list, which is refused.
            length = np.where(there, np.arange(1, len(columns) + 1), 0).max(1)
            rows = zip(*(frame[name] for name in columns), strict=True)
            lists = [list(row[:n]) for row, n in zip(rows, length, strict=True)]
            return lists, f"the items in each place in {', '.join(map(repr, columns))}"
    others = {folded(name) for role in _NO_RANKS for name in ROLES[role].names}
    items = [name for name in frame if folded(name) not in others and pd.api.types.is_numeric_dtype(frame[name])
             and not pd.api.types.is_bool_dtype(frame[name])]  # fmt: skip
    ranks = frame[items]
    known = [((ranks.rank(axis=1, method=method) == ranks) | ranks.isna()).all(axis=1) for method in ("dense", "min")]
    if len(items) < 2 or not (known[0] | known[1]).all() or (ranks.nunique(axis=1) < 2).all():
        return None
    lists = [
        [[name for name in items if row[name] == rank] for rank in sorted({x for x in row.values() if x == x})]
        for row in ranks.to_dict("records")
    ]
    return lists, f"ranks of {', '.join(map(repr, items))} in columns"


def _best_and_worst(frame: pd.DataFrame) -> tuple[list[list[Any]], str] | None:
    """Return each row as a ranking: the best, the others in no order, the worst; of best-worst scaling (MaxDiff)."""
    by_name = {folded(name): name for name in frame}
    ends = [next((by_name[name] for name in names if name in by_name), None) for names in (_BEST, _WORST)]
    marks = {name: match[1] for name in frame if (match := _SHOWN.fullmatch(str(name).strip().casefold()))}
    listed = next((by_name[name] for name in _LISTED if name in by_name), None)
    if None in ends or (len(marks) < 2 and listed is None):
        return None
    columns = list(marks) if len(marks) > 1 else [listed]
    rows = frame[columns].to_numpy(object) if len(marks) > 1 else frame[listed]
    rankings = []
    for row, (shown, *said) in enumerate(zip(rows, frame[ends[0]], frame[ends[1]], strict=True)):
        there = [item for item in shown if not pd.isna(item)]
        names = [*columns, *marks.values()] if len(marks) > 1 else []
        by_place = dict(zip(map(folded, names), [*shown] * 2, strict=False))
        best, worst = (None if pd.isna(x) else x if x in there else by_place.get(folded(_text(x)), x) for x in said)
        for name, x in zip(ends, (best, worst), strict=True):
            if x is not None and x not in there:
                raise DataError(
                    f"column {name!r} has {plain(x)!r} in row {row} (rows count from 0), which is none of those shown: "
                    f"{', '.join(map(str, there))}"
                )
        levels = [[best], [item for item in there if item not in (best, worst)], [worst]]
        rankings.append([level for level in levels if level not in ([], [None])])
    return (
        rankings,
        f"{BEST_AND_WORST} in {ends[0]!r} and {ends[1]!r}, of those shown in {', '.join(map(repr, columns))}",
    )


def _text(value: Any) -> str:
    """Return a value as text; numbers beside gaps are whole ones."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def from_lists(frame: pd.DataFrame, ranking: str) -> Found:
    """Return the places of a table with one row per ranking."""
    require_column(frame, ranking)
    values = frame[ranking]
    lists = (list, tuple, np.ndarray)
    reject_missing(np.array([not isinstance(x, lists) and bool(pd.isna(x)) for x in values], bool), ranking)
    rows, ranks, items, missing = [], [], [], np.zeros(len(frame), bool)
    for row, value in enumerate(values):
        for level, tied in enumerate(_levels(value, ranking, row), start=1):
            missing[row] |= len(tied) == 0
            rows += [row] * len(tied)
            ranks += [level] * len(tied)
            items += tied
    row_of = np.array(rows, np.intp)
    named = pd.Series(items, dtype=object).infer_objects()
    missing[row_of[_blank(named)]] = True
    entries = Found(
        frame=frame, roles=(ranking,), ranking=row_of, row=row_of, names=range(len(frame)),
        item=np.zeros(0, np.intp), items=pd.Index([]), rank=np.array(ranks, float),
    )  # fmt: skip
    _reject(
        missing, entries, "holds a missing item, or an empty name", "hold a missing item, or an empty name",
        "name the item, or leave it out of the list",
    )  # fmt: skip
    _reject_short(entries)  # before names are sorted, as there may be none
    codes, names = factorize_sorted(named, ranking)
    return entries._replace(item=codes, items=names)


def _levels(value: Any, ranking: str, row: int) -> Iterable[list[Any]]:
    """Return the levels of a list, the best first: the items that tie on each."""
    if isinstance(value, str):
        if not value.lstrip().startswith("["):
            return [[name.strip() for name in level.split("=")] for level in value.split(">")]
        try:
            value = json.loads(value)
        except ValueError as error:
            raise DataError(
                f"column {ranking!r} holds a list that cannot be read as JSON, in row {row} (rows count from 0): "
                f"{error}"
            ) from error
    if not isinstance(value, list | tuple | np.ndarray):
        raise DataError(
            f"column {ranking!r} must hold ordered lists, or text such as 'a > b = c', got {plain(value)!r} in row "
            f"{row} (rows count from 0); if each row is one place of a ranking, name the columns of items and ranks "
            "with item= and rank= (--item and --rank)"
        )
    return [list(level) if isinstance(level, list | tuple | np.ndarray) else [level] for level in value]


def _blank(names: pd.Series) -> Bool:
    blank = names.isna().to_numpy(bool)
    text = names.map(lambda name: isinstance(name, str) and not name.strip())
    return blank | text.to_numpy(bool, na_value=False)


def _reject(bad: Bool, entries: Found, one: str, many: str, advice: str) -> None:
    """Raise an error that counts the ``bad`` rankings (N,), in words for ``one`` or ``many``, and names the first."""
    if bad.any():
        number = int(bad.argmax())
        rows = entries.row[entries.ranking == number]
        row = rows.min() if len(rows) else number  # an empty list has a row, and no place
        called = f", {plain(entries.names[number])!r}," if len(entries.frame) > len(bad) else ""
        raise DataError(
            f"{int(bad.sum()):,} of {counted(len(bad), 'ranking')} {one if bad.sum() == 1 else many} (the "
            f"first{called} is in row {row}; rows count from 0): {advice}"
        )


def _reject_short(entries: Found) -> None:
    _reject(
        np.bincount(entries.ranking, minlength=len(entries.names)) < 2, entries, "holds fewer than two items",
        "hold fewer than two items", "one item alone says nothing; drop those rankings",
    )  # fmt: skip


def sorted_places(entries: Found, first: int | None = None) -> Places:
    """Return the places of all rankings, the best item of each first; those below the ``first`` places are the rest."""
    n = len(entries.names)
    pairs = pd.Series(entries.ranking * len(entries.items) + entries.item)
    twice = np.bincount(entries.ranking, pairs.duplicated().to_numpy(), n) > 0
    _reject(
        twice, entries, "holds an item twice", "hold an item twice",
        "an item has one place in a ranking; drop all others",
    )  # fmt: skip
    below = np.zeros(len(entries.rank), bool)
    if first is not None:
        below = pd.Series(entries.rank).groupby(entries.ranking).rank(method="max").to_numpy() > first
        kept = np.bincount(entries.ranking, ~below, n)
        _reject(
            kept == 0, entries, f"has a tie across place {first:,}", f"have a tie across place {first:,}",
            "leave those rankings out, or say another number of first places",
        )  # fmt: skip
    ranks = np.where(below, REST, entries.rank)
    order = np.lexsort([entries.item, ranks, entries.ranking])
    ranking, rank = entries.ranking[order], ranks[order]
    start = np.concatenate([[0], np.cumsum(np.bincount(ranking, minlength=n))])
    step = np.diff(rank, prepend=0) != 0
    step[start[:-1]] = True
    number = np.cumsum(step) - 1
    tied = np.maximum.reduceat(np.where(rank == REST, 0, np.bincount(number)[number]), start[:-1])
    _reject(
        tied > MOST_TIED, entries, f"ties more than {MOST_TIED} items ({tied.max():,})",
        f"tie more than {MOST_TIED} items (up to {tied.max():,})",
        f"a tie is the mean over its orders, which takes 2**{tied.max()} sums; break ties, or leave items out",
    )  # fmt: skip
    level = np.where(rank == REST, REST, number - number[start[:-1]][ranking])
    return Places(start, entries.item[order].astype(np.int32), level)


def first_rows(entries: Found) -> NDArray[np.intp]:
    """Return (N,) the first row of each ranking in the table."""
    first = np.full(len(entries.names), len(entries.frame))
    np.minimum.at(first, entries.ranking, entries.row)
    return first


def varying_columns(entries: Found) -> dict[str, str]:
    """Return columns that differ within a ranking, with the number of such rankings in words."""
    frame, first, varying = entries.frame, first_rows(entries), {}
    if len(frame) == len(first):
        return {}
    for name in set(frame.columns[~frame.columns.duplicated(keep=False)]) - set(entries.roles):
        try:
            codes = pd.factorize(frame[name])[0]
        except TypeError:  # lists and the like, which make no groups
            continue
        differs = np.bincount(entries.ranking, codes[entries.row] != codes[first][entries.ranking], len(first)) > 0
        if differs.any():
            one = plain(entries.names[int(differs.argmax())])
            varying[name] = f"{counted(int(differs.sum()), 'ranking')} (the first is {one!r})"
    return varying
