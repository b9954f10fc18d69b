"""Which votes two boards share: by a column that names votes, by the table that both come from, or by all columns.

Nothing is guessed: if none of these says it, no vote is shared, and `look_equal` counts the rows that look alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Int
from jaxeval.checks import check_choice
from jaxeval.data.battle_rows import n_battles_of
from jaxeval.data.battles import Battles
from jaxeval.data.columns import first_place, folded, reject_missing, texts_of
from jaxeval.data.file_lists import names_of
from jaxeval.data.published_formats import format_of_names
from jaxeval.data.table_files import head_names
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.wording import counted, named


def votes_once(battles: Battles, column: str, before: Battles | None = None) -> tuple[Battles | None, list[str]]:
    """Return the votes whose id is not met before, and sentences on the others; None for the votes if there are none.

    Ids are compared as text, which their ``column`` then holds: 7 of a CSV file and 7.0 of a column with gaps are the
    same. Votes ``before`` count already, and have such a column of text.

    Raises:
        DataError: an id is missing, or rows stand for several votes.
    """
    ids = _ids(battles, column)
    battles = _single(battles, column, ids)
    again = pd.Series(ids).duplicated().to_numpy()
    known = np.zeros(len(ids), bool) if before is None else pd.Index(before.column(column)).get_indexer(ids) >= 0
    notes = []
    if n := battles.report.n_repeated + int((again & ~known).sum()):
        notes.append(f"{counted(n, 'vote is', 'votes are')} left out, as other rows have the same {column}")
    if before is not None and known.any():
        n, differ = int(known.sum()), _n_differ(battles, ids, known, before, column)
        changed = f"; {differ:,} of them differ from the vote of that id, which stays" if differ else ""
        notes.append(f"{counted(n, 'vote is', 'votes are')} there already, by {column}{changed}")
    new = ~again & ~known
    if new.all():
        return battles, notes
    if not new.any():
        return None, notes
    n_repeated, n_excluded = battles.report.n_repeated + int((~new).sum()), battles.report.n_excluded
    kept = battles.filter(new)
    return replace(kept, report=replace(kept.report, n_repeated=n_repeated, n_excluded=n_excluded)), notes


def _ids(battles: Battles, column: str) -> NDArray[np.object_]:
    values = battles.column(column)
    if (missing := values.isna().to_numpy()).any():
        n = counted(int(missing.sum()), "vote has", "votes have")
        place = first_place(missing, battles.rows)
        raise DataError(f"{n} no {column!r}{place}: a vote without an id cannot be told from others; add it, or leave "
                        "--id out")  # fmt: skip
    return texts_of(values)


def _single(battles: Battles, column: str, ids: NDArray[np.object_]) -> Battles:
    """Return one vote for each row, where reading has merged equal rows, which here have the same id."""
    times = np.ones(battles.n_rows, np.int64) if battles.rows is None else battles.rows.times
    count = np.ones(battles.n_rows, np.int64) if battles.count is None else battles.count
    kept = np.arange(battles.n_rows) if battles.kept is None else battles.kept
    if (count != times).any() or len(np.unique(kept)) < len(kept):
        raise DataError(f"rows stand for several votes, and cannot have one {column!r} each: leave --id out")
    n_more = int(times.sum()) - battles.n_rows
    columns = battles.columns.iloc[kept].reset_index(drop=True).assign(**{column: ids})
    battles = replace(battles, columns=columns, kept=None, count=None)
    if not n_more:
        return battles
    report = replace(
        battles.report, n_battles=battles.n_rows, n_ties=n_battles_of(battles.target == 0.5, None), n_repeated=n_more
    )
    return replace(battles, report=report, rows=None)


def _n_differ(
    battles: Battles, ids: NDArray[np.object_], known: NDArray[np.bool_], before: Battles, column: str
) -> int:
    """Count votes that are known, and were between other models or had another result then."""
    there = pd.Index(before.column(column)).get_indexer(ids[known])

    def votes(battles: Battles, rows: NDArray[np.intp]) -> pd.DataFrame:
        first, second = (battles.models[side[rows]].astype(str) for side in (battles.model_a, battles.model_b))
        swap = np.asarray(first > second)
        target = battles.target[rows]
        return pd.DataFrame({
            "first": np.where(swap, second, first),
            "second": np.where(swap, first, second),
            "target": np.where(swap, 1 - target, target),
        })  # fmt: skip

    return int((votes(battles, np.flatnonzero(known)) != votes(before, there)).any(axis=1).sum())


#: Shared are votes that are equal in all columns, or that have the same label in the index; or no votes.
Sharing = Literal["rows", "index", "none"]
#: The same column in both tables.
Pair: TypeAlias = "tuple[pd.Series, pd.Series]"
#: The most rows of a table: two numbers below it fit in one.
_MOST_ROWS = 2**31
#: Columns that may name a vote, in folded spelling. Only a warning uses them.
_MAY_NAME_VOTES = {"id", "voteid", "battleid", "conversationid", "questionid", "uuid", "item", "tstamp", "timestamp",
                   "time", "date", "judge", "voter", "user", "evaluationsessionid", "evaluationorder"}  # fmt: skip


class SharedVotes(NamedTuple):
    """Battles on both boards: ``times`` (K,) are in row ``a`` (K,) of one table and in row ``b`` (K,) of the other."""

    a: NDArray[np.intp]
    b: NDArray[np.intp]
    times: Int
    known: str = ""  # by what they are known to be shared, in words

    @property
    def n_battles(self) -> int:
        """The number of shared battles."""
        return int(self.times.sum())

    def same_result(self, a: Battles, b: Battles) -> Bool:
        """Return (K,) whether both boards hold the same result of a vote."""
        first = np.asarray(a.models[a.model_a[self.a]] == b.models[b.model_a[self.b]])
        target = b.target[self.b]
        return np.asarray(a.target[self.a] == np.where(first, target, 1 - target))


#: No battle is shared.
NO_VOTES = SharedVotes(*np.zeros((3, 0), np.intp))


def shared_votes(a: Battles, b: Battles, sharing: Sharing | None = None, id: Sequence[str] = ()) -> SharedVotes:
    """Return the battles that two tables share.

    Args:
        a: battles of one board.
        b: battles of the other.
        sharing: "rows": rows that are equal in all columns that both tables have are one vote, as often as both have
            it; "index": rows with the same label in the index of their table are one vote; "none": no vote is shared.
            By default, votes are shared if `Battles.filter` or `Battles.rename` made both from one table of battles.
        id: columns that name a vote, instead of ``sharing``.
    """
    if sharing is not None:
        check_choice("shared", sharing, Sharing)
    if sharing is not None and id:
        raise ValueError(f"id= and shared={sharing!r} both say which votes are shared: leave one out")
    if id:
        columns = [(a.column(name), b.column(name)) for name in id]
        for name, pair in zip(id, columns, strict=True):
            for battles, column in zip((a, b), pair, strict=True):
                reject_missing(column.isna().to_numpy(), name, battles.rows)
        what = f"the {'columns' if len(id) > 1 else 'column'} {named(list(map(repr, id)))}"
        return _checked(a, b, _alike(_named_once(a, b, _codes(columns, id), what), what))
    if sharing == "index":
        what = "the labels of the rows"
        codes = _codes([(_label(a), _label(b))], ["index"])
        return _checked(a, b, _alike(_named_once(a, b, codes, what), what))
    if sharing == "rows":
        return _equal(a, b)
    if sharing is None and a.columns is b.columns:
        shared = _alike((_place(a), _place(b)), "the one table that both are parts of")
        return _checked(a, b, shared if a.count is None else shared._replace(times=a.count[shared.a]))
    return NO_VOTES


def _equal(a: Battles, b: Battles, may_fail: bool = False) -> SharedVotes:
    """Return the votes of equal rows; ``may_fail`` as in `_common`."""
    names, columns = _common(a, b, may_fail)
    rows = [np.repeat(np.arange(x.n_rows), 1 if x.count is None else x.count) for x in (a, b)]
    codes = _codes([*columns, *_results(a, b)], names)
    keys = [_joint(code[row], _before(code[row])) for code, row in zip(codes, rows, strict=True)]
    shared = _alike((keys[0], keys[1]), f"equal rows, in {named([*names, 'models', 'result'], 6)}")
    return shared._replace(a=rows[0][shared.a], b=rows[1][shared.b])


def all_equal(a: Battles, b: Battles) -> bool:
    """Return whether both tables hold the same rows, as often, in all columns that both have."""
    same = a.n_battles == b.n_battles and a.models.equals(b.models)
    return same and _equal(a, b, may_fail=True).n_battles == a.n_battles


def look_equal(a: Battles, b: Battles) -> int:
    """Count rows that look like one vote in both tables: equal in all columns, and unlike other rows of their table.

    Columns that only one table has do not count. Without common further columns the answer is 0: nothing then tells
    votes apart.
    """
    if a.columns.columns.intersection(b.columns.columns).empty:
        return 0
    names, columns = _common(a, b, may_fail=True)
    if not names:
        return 0
    alone = [code[np.bincount(code)[code] == 1] for code in _codes([*columns, *_results(a, b)], names)]
    return len(np.intersect1d(alone[0], alone[1], assume_unique=True))


def columns_for_votes(a: Any, b: Any, sharing: Sharing | None) -> list[str]:
    """Return columns of two files, or lists of files, to compare votes by: all for "rows", else those for a warning."""
    if sharing not in (None, "rows"):
        return []
    first, second = (head_names(names_of(file)[0]) for file in (a, b))
    if format_of_names(first, "pair") or format_of_names(second, "pair"):
        return []  # their columns get other names, or are not read
    common = [name for name in first if name in second]
    return [name for name in common if sharing == "rows" or folded(name) in _MAY_NAME_VOTES]


def joint_codes(pair: Pair, name: str) -> tuple[tuple[NDArray[np.intp], NDArray[np.intp]], pd.Index]:
    """Return numbers of the values of a column of both tables, and the values."""
    both = pd.concat([x.astype(object) if isinstance(x.dtype, pd.CategoricalDtype) else x for x in pair])
    try:
        codes, values = pd.factorize(both, use_na_sentinel=False)
    except TypeError as error:
        raise DataError(
            f"column {name!r} holds values that cannot be compared ({error}): name the columns that name a vote with "
            "id= (on the command line --id)"
        ) from error
    return (codes[: len(pair[0])], codes[len(pair[0]) :]), pd.Index(values)


def _codes(pairs: Sequence[Pair], names: Sequence[str]) -> tuple[Int, Int]:
    """Give a number for each row of both tables, the same for rows that are equal in all columns, and only for them."""
    called = [*names, *[""] * (len(pairs) - len(names))]
    codes = [joint_codes(pair, name)[0] for pair, name in zip(pairs, called, strict=True)]
    both = pd.DataFrame({k: np.concatenate(pair) for k, pair in enumerate(codes)})
    number, n = both.groupby(list(both), sort=False).ngroup().to_numpy(), len(pairs[0][0])
    return number[:n], number[n:]


def _joint(code: Int, other: Int) -> Int:
    """Return one number for each pair of two numbers below 2**31."""
    return np.asarray(code * _MOST_ROWS + other)


def _before(code: Int) -> Int:
    """Return how often the number of each row occurs in the rows before it."""
    return np.asarray(pd.Series(code).groupby(code).cumcount())


def _common(a: Battles, b: Battles, may_fail: bool = False) -> tuple[list[str], list[Pair]]:
    """Return the further columns that both have; with ``may_fail``, without those whose values cannot be compared."""
    names, pairs = [], []
    for name in a.columns.columns.intersection(b.columns.columns):
        pair = a.column(name), b.column(name)
        try:
            joint_codes(pair, name)
        except DataError:
            if not may_fail:
                raise
            continue
        names.append(name)
        pairs.append(pair)
    return names, pairs


def _results(a: Battles, b: Battles) -> list[Pair]:
    ones = [np.ones(x.n_rows) if x.weight is None else x.weight for x in (a, b)]
    columns = [
        [x.models[x.model_a], x.models[x.model_b], x.target, weight] for x, weight in zip((a, b), ones, strict=True)
    ]
    return [(pd.Series(one), pd.Series(other)) for one, other in zip(*columns, strict=True)]


def _label(battles: Battles) -> pd.Series:
    """Return the label of each row in the index of the table that it was read from."""
    index = battles.columns.index
    return pd.Series(index if battles.kept is None else index[battles.kept])


def _place(battles: Battles) -> Int:
    """Return the row of the input of each row, told apart by result: a row of counts has wins, ties and losses."""
    kept = np.arange(battles.n_rows) if battles.kept is None else battles.kept
    return _joint(kept, np.searchsorted([0.5, 1.0], battles.target, side="right"))


def _named_once(a: Battles, b: Battles, codes: tuple[Int, Int], what: str) -> tuple[Int, Int]:
    """Return the ``codes`` themselves, or an error if several battles of a table have the same code."""
    for battles, code, board in zip((a, b), codes, "ab", strict=True):
        several = np.bincount(code)[code] > 1
        if battles.count is not None:
            several |= battles.count > 1
        if several.any():
            n = int(several.sum())
            raise DataError(
                f"{what}: {counted(n, 'row')} of board {board} {'shares its' if n == 1 else 'share their'} value with "
                f"other votes{first_place(several)}, so that it names no single vote: name further columns"
            )
    return codes


def _alike(keys: tuple[Int, Int], known: str) -> SharedVotes:
    """Return rows with the same key in both tables; each table has a key once."""
    _, a, b = np.intersect1d(*keys, assume_unique=True, return_indices=True)
    return SharedVotes(a, b, np.ones(len(a), np.int64), known)


def _checked(a: Battles, b: Battles, shared: SharedVotes) -> SharedVotes:
    """Return the votes themselves, or an error if some of them are between other models on the other board."""
    sides = [np.stack([x.models[x.model_a[rows]], x.models[x.model_b[rows]]])
             for x, rows in ((a, shared.a), (b, shared.b))]  # fmt: skip
    one, other = sides
    differ = ~(((one == other) | (one == other[::-1])).all(0))
    if differ.any():
        k = int(differ.argmax())
        pairs = [f"{x[0, k]!s} and {x[1, k]!s}" for x in sides]
        raise DataError(
            f"{shared.known}: {differ.sum():,} of {counted(shared.n_battles, 'shared vote')} "
            f"{'is' if differ.sum() == 1 else 'are'} between other models on board b (first in row {int(shared.a[k])} "
            f"of a, between {pairs[0]}, and in row {int(shared.b[k])} of b, between {pairs[1]}; rows count from 0): "
            "name other columns, or rename the models first"
        )
    return shared
