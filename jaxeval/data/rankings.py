"""Rankings: which items were put in which order, encoded once and compressed to cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float
from jaxeval.data.battles import Battles
from jaxeval.data.cells import Cells, count_by
from jaxeval.data.columns import as_frame, renumbered, require_column
from jaxeval.data.equal_rows import reject_same_tables
from jaxeval.data.file_formats import Kind, format_of
from jaxeval.data.file_lists import files_of
from jaxeval.data.numbers import weights_of, whole_numbers
from jaxeval.data.ranking_places import (
    REST,
    Found,
    Places,
    first_rows,
    from_lists,
    from_places,
    has_places,
    lists_in_columns,
    sorted_places,
    varying_columns,
)
from jaxeval.data.remote_names import FileName, label_of
from jaxeval.data.report import DataReport
from jaxeval.data.table_files import naming, read_as
from jaxeval.errors import DataError, NoRowsError
from jaxeval.execution.signatures import with_options_of
from jaxeval.lazy_names import pd
from jaxeval.show.shown import ROWS_OF_DATA, Answer, Shown
from jaxeval.wording import MODEL, Noun, competitor_word, counted

#: What is ranked, where nobody says otherwise.
ITEM = Noun.of("item")


@dataclass(frozen=True, eq=False)
class RankingCells(Cells):
    """Rankings compressed: equal rankings of one weight are a cell, sorted by length, items, ties and weight.

    Cells of rankings belong to no pair of models and have no target; all are in one group.
    """

    places: Places  # places of the C rankings

    @property
    def hard(self) -> bool:
        """Whether cells are wins, ties and losses of pairs: those of rankings are not."""
        return False

    def localise(self, models: pd.Index) -> tuple[pd.Index, RankingCells]:
        """Return the items among ``models`` that are ranked here, and the cells renumbered to them."""
        present, (item,) = renumbered(len(models), self.places.item)
        return models[present], replace(self, places=self.places._replace(item=item))

    def pair_sums(self) -> tuple[Float, Float]:
        """Raise an error: rankings have no sums by pair."""
        raise TypeError("rankings are no battles: fit them with fit_plackett_luce, or resample them with bootstrap")

    def per_item(self, n_items: int) -> Float:
        """Return (M,) number of rankings that hold each item."""
        return np.bincount(self.places.item, self.count[self.places.ranking], n_items).astype(np.float64)


@dataclass(frozen=True, repr=False)
class RankingsReport(DataReport):
    """What was read of rankings, and what was left out; where `DataReport` counts battles, this counts rankings."""

    n_places: int = 0  # items of all rankings together

    def __str__(self) -> str:
        left_out = f"\n{counted(self.n_zero_weight, 'ranking')} of weight 0 left out" if self.n_zero_weight else ""
        items = ITEM if self.competitor == MODEL else self.competitor
        return (
            f"{counted(self.n_rows, 'row')}: {counted(self.n_battles, 'ranking')} of {items.counted(self.n_models)}, "
            f"{self.n_places / max(self.n_battles, 1):.4g} {items.many} in each on average, {self.n_ties:,} with ties"
            f"{left_out}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class RankingRows(Battles):
    """Rankings as rows that are grouped, drawn and compressed like battles. Nothing else of battles holds for them.

    ``model_a`` and ``model_b`` are the first and the last item of each ranking.
    """

    places: Places = field(default_factory=lambda: Places(*np.zeros((3, 1), np.int64)), repr=False)
    varying: dict[str, str] = field(default_factory=dict, repr=False)  # columns that differ within a ranking, and where
    _no_column: ClassVar[str] = (
        "to group rankings by; the further columns are: {} (those of items, ranks and weights do not count)"
    )

    def column(self, name: str) -> pd.Series:
        """Return a column as `Battles` does, with an error for one that differs within a ranking."""
        if name in self.varying:
            raise DataError(f"column {name!r} differs within {self.varying[name]}, so that it cannot group rankings")
        return super().column(name)

    def compress(self, rows: slice | NDArray[np.intp]) -> tuple[Cells, NDArray[np.intp]]:
        """Return cells of some rankings, and the cell of each."""
        chosen = np.arange(self.n_rows)[rows]
        places = self.places.of(chosen)
        weight = np.ones(len(chosen)) if self.weight is None else self.weight[chosen]
        weights, of_weight = np.unique(weight, return_inverse=True)
        # One number per place says its item, and whether it ties with the place before, or is of the rest. Rankings of
        # one length make a table.
        kind = np.where(places.level == REST, 2, np.diff(places.level, prepend=-1) == 0)
        kind[places.start[:-1]] = 0
        code, length = 3 * places.item.astype(np.int64) + kind, places.length
        cell_of_row, first, n_cells = np.empty(len(chosen), np.intp), [], 0
        for size in np.unique(length):
            of_size = np.flatnonzero(length == size)
            table = np.column_stack([code[places.start[of_size][:, None] + np.arange(size)], of_weight[of_size]])
            _, one, cell = np.unique(table, axis=0, return_index=True, return_inverse=True)
            first.append(of_size[one])
            cell_of_row[of_size] = n_cells + cell.reshape(-1)
            n_cells += len(one)
        one = np.concatenate(first)
        count = count_by(cell_of_row, None if self.count is None else self.count[chosen], n_cells)
        cells = RankingCells(
            first=np.array([0], np.int32), second=np.array([1], np.int32), pair=np.zeros(n_cells, np.int64),
            target=np.zeros(n_cells), weight=weights[of_weight[one]], count=count, places=places.of(one),
        )  # fmt: skip
        return cells, cell_of_row


@dataclass(frozen=True, eq=False, repr=False)
class Rankings(Shown):
    """N rankings of two items or more, out of M items. A ranking need not hold all items, and items may tie.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> table = pd.DataFrame({"ranking": [["a", "b", "c"], ["b", ["a", "c"]], ["c", "a"]]})
        >>> rankings = jaxeval.Rankings.from_pandas(table)
        >>> print(rankings.report)
        3 rows: 3 rankings of 3 items, 2.667 items in each on average, 1 with ties
        >>> rankings.to_lists()
        [['a', 'b', 'c'], ['b', ['a', 'c']], ['c', 'a']]
    """

    rows: RankingRows

    @classmethod
    def from_pandas(
        cls, df: Any, *, ranking: str = "ranking", item: str | None = None, rank: str | None = None,
        weight: str | None = None, count: str | None = None, cluster: str | None = None,
        competitor: str | Sequence[str] | None = None, first: int | None = None,
    ) -> Rankings:  # fmt: skip
        """Read rankings from a DataFrame, or any table with the Arrow interface (polars, pyarrow, DuckDB).

        A table holds ordered lists, one row per ranking; or items and their ranks, one row per place. It is read in the
        second way if ``item`` or ``rank`` is named, or if it has the columns "item" and "rank". Without a column
        "ranking" a row may also hold its ranking in columns: rank1, rank2 and so on with the items in these places; the
        best and the worst of item1, item2 and so on (best-worst scaling); or a column of ranks for each item, where all
        columns of numbers hold ranks.

        Args:
            df: the table.
            ranking: column of ordered lists, the best item first. Items that tie are a list within the list. A list may
                be text: ``a > b = c``, or JSON. In a table of items and ranks: the column that names the ranking of
                each row.
            item: column of items; by default "item".
            rank: column of ranks, 1 for the best; by default "rank". Items of one rank tie. After a tie of two, the
                next rank is one more (1, 2, 2, 3) or two more (1, 2, 2, 4), alike in all places of a ranking.
            weight: column of weights >= 0; none by default. A weight of 2 counts double in the fit, but stays one
                ranking.
            count: column of the number of equal rankings that a list, or all places of a ranking, stand for.
            cluster: column that the cluster bootstrap resamples by default (prompts, voters, sessions).
            competitor: what is ranked, in a word for tables, figures and messages, as of `Battles.from_pandas`; by
                default what ``item`` is called, or "model".
            first: how many first places were chosen; the items below were there, and their order says nothing. 1 is
                "the best of n". By default all places count.

        Raises:
            DataError: a column, an item or a rank is missing; a ranking holds one item only, or an item twice; more
                than ten items tie; ranks have gaps; or a weight, a count or a cluster differs within a ranking. The
                message names the column, and says how many rankings are wrong and in which row the first is.

        Examples:
            >>> import jaxeval
            >>> import pandas as pd
            >>> places = pd.DataFrame({"ranking": [7, 7, 7, 8, 8], "item": [*"abcab"], "rank": [1, 2, 2, 2, 1]})
            >>> jaxeval.Rankings.from_pandas(places).to_lists()
            [['a', ['b', 'c']], ['b', 'a']]
        """
        frame = as_frame(df)
        if len(frame) == 0:
            raise NoRowsError("the table has no rows: nothing to rate")
        if ranking == "ranking" and ranking not in frame and not has_places(frame, item, rank):
            found = lists_in_columns(frame)
            frame = frame if found is None else frame.assign(ranking=pd.Series(found[0], frame.index, dtype=object))
        if has_places(frame, item, rank):
            entries = from_places(frame, ranking, item or "item", rank or "rank")
        else:
            entries = from_lists(frame, ranking)
        if first is not None and first < 1:
            raise ValueError(f"first must be a number of places >= 1, got {first!r}")
        rows = _rows(entries, weight, count, cluster, first)
        named = () if item in (None, "item") else (item,)
        report = replace(rows.report, _said=competitor_word(competitor, *named))
        return cls(replace(rows, report=report))

    @property
    def items(self) -> pd.Index:
        """The M items, sorted by name."""
        return self.rows.models

    @property
    def competitor(self) -> Noun:
        """What is ranked, in a word and its plural."""
        return self.rows.competitor

    @property
    def n_rankings(self) -> int:
        """The number of rankings that take part in fits."""
        return self.rows.n_battles

    @property
    def report(self) -> DataReport:
        """What was read, and what was left out."""
        return self.rows.report

    def __len__(self) -> int:
        return self.n_rankings

    def to_lists(self) -> list[list[Any]]:
        """Return the rankings as lists, the best item first; items that tie are a list within the list."""
        return [
            [level[0] if len(level) == 1 else level for level in levels] for levels in self._levels(self.rows.n_rows)
        ]

    def _levels(self, n: int) -> list[list[list[Any]]]:
        """Return the items on each level of the first ``n`` rankings."""
        places, levels = self.rows.places, []
        for start, end in zip(places.start[:-1][:n], places.start[1 : n + 1], strict=True):
            ends = np.flatnonzero(np.diff(places.level[start:end])) + 1
            levels.append([list(level) for level in np.split(self.items[places.item[start:end]], ends)])
        return levels

    def _shown(self) -> Answer:
        first = [" > ".join(" = ".join(map(str, level)) for level in levels) for levels in self._levels(ROWS_OF_DATA)]
        table = pd.DataFrame({"ranking": first})
        return Answer(f"Rankings: {self.report}", table, n_rows=self.rows.n_rows)


@with_options_of(Rankings.from_pandas)
def read_rankings(path: FileName | Sequence[FileName], **columns: Any) -> Rankings:
    r"""Read rankings from files in the formats of `read_battles`.

    Args:
        path: a file, a folder, a glob such as ``days/*.csv``, or a list of those; their endings say the formats, as in
            `read_battles`. Rankings in two files are always two rankings, even under the same name.
        **columns: ``ranking``, ``item``, ``rank``, ``weight``, ``count``, ``cluster``, ``competitor`` and ``first``, as
            in `Rankings.from_pandas`. Of PrefLib's files the counts count.
            In a CSV file a list is text, such as ``a > b = c``. In JSON lines and Parquet a ranking with ties is a list
            of lists, such as ``[["a"], ["b", "c"]]``.

    Raises:
        DataError: a file cannot be read as a table of rankings; the error names it.
        FileNotFoundError: there is no such file.

    Examples:
        >>> import jaxeval
        >>> from pathlib import Path
        >>> _ = Path("rankings.csv").write_text("ranking,judge\na > b > c,x\nb > a = c,y\n")
        >>> jaxeval.read_rankings("rankings.csv").n_rankings
        2
    """
    if hasattr(path, "__arrow_c_stream__"):
        raise TypeError(f"read_rankings reads files, got a {type(path).__name__}: Rankings.from_pandas reads tables")
    files, text = files_of(path), [columns.get("item") or "item"]
    if all(format_of(file).kind == Kind.PREFLIB for file in files):
        columns.setdefault("count", "count")
    frames = [read_as(as_frame, file, text, {}) for file in files]
    reject_same_tables(frames, [file.name for file in files])
    table, ranking = pd.concat(frames, ignore_index=True), columns.get("ranking", "ranking")
    if len(files) > 1 and ranking in table and has_places(table, columns.get("item"), columns.get("rank")):
        of_file = np.repeat([f"file {k}" for k in range(1, len(files) + 1)], [len(frame) for frame in frames])
        there = table[ranking].notna()
        table[ranking] = (table[ranking].astype(str) + " of " + of_file).where(there)
    with naming(label_of(files)):
        return Rankings.from_pandas(table, **columns)


def as_rankings(rankings: Any) -> Rankings:
    """Return ``rankings`` itself; or read rankings from a table with the standard column names."""
    return rankings if isinstance(rankings, Rankings) else Rankings.from_pandas(rankings)


def _rows(entries: Found, weight: str | None, count: str | None, cluster: str | None, first: int | None) -> RankingRows:
    """Return the rankings of a table, with their weights, counts and further columns."""
    frame, n = entries.frame, len(entries.names)
    every = sorted_places(entries, first)
    varying = varying_columns(entries)
    for name in (weight, count, cluster):
        if name is not None:
            require_column(frame, name)
        if name in varying:
            raise DataError(f"column {name!r} differs within {varying[name]}: give all places of a ranking one value")
    of_rankings = frame.iloc[first_rows(entries)].reset_index(drop=True)
    weights = np.ones(n) if weight is None else weights_of(of_rankings[weight], weight)
    counts = np.ones(n, np.int64) if count is None else whole_numbers(of_rankings[count], count)
    n_zero = int(counts[weights == 0].sum())
    kept = np.flatnonzero((weights > 0) & (counts > 0))
    if len(kept) == 0:
        raise DataError(
            f"no ranking is left of {counted(n, 'ranking')}: {n_zero:,} of weight 0, and the others have count 0"
        )
    places, weights, counts = every.of(kept), weights[kept], counts[kept]
    present, (item,) = renumbered(len(entries.items), places.item)
    same = (np.diff(places.level, prepend=-1) == 0) & (places.level < REST)
    same[places.start[:-1]] = False
    has_ties = np.bincount(places.ranking, same, len(kept)) > 0
    report = RankingsReport(
        n_rows=len(frame), n_battles=int(counts.sum()), n_models=int(present.sum()), n_ties=int(counts[has_ties].sum()),
        n_zero_weight=n_zero, models_left_out=tuple(entries.items[~present]), n_places=int(counts @ places.length),
    )  # fmt: skip
    return RankingRows(
        models=entries.items[present].rename("model"), model_a=item[places.start[:-1]],
        model_b=item[places.start[1:] - 1], target=np.ones(len(kept)), weight=None if np.all(weights == 1) else weights,
        report=report, columns=of_rankings.loc[:, ~of_rankings.columns.isin([*entries.roles, *varying, weight, count])],
        kept=kept, cluster=cluster, count=None if np.all(counts == 1) else counts, places=places._replace(item=item),
        varying=varying,
    )  # fmt: skip
