"""Battles: who met whom, and with what result, encoded once; and their compression to cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.battle_rows import BattleReading, effective_battles, n_battles_of, read_battle_rows
from jaxeval.data.cells import Cells, compressed
from jaxeval.data.columns import Rows, as_frame, frame_of
from jaxeval.data.conditions import rows_where
from jaxeval.data.file_lists import check_regular, whole_local_file
from jaxeval.data.groups import Grouped
from jaxeval.data.report import DataReport, Reported
from jaxeval.data.saved_battles import BattleTable, arrow_table, column_roles, concat_tables, read_table, write_table
from jaxeval.errors import DataError
from jaxeval.execution.atomic_write import whole_file
from jaxeval.execution.signatures import spelled_out
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import in_pandas
from jaxeval.show.shown import ROWS_OF_DATA, Answer
from jaxeval.wording import Noun, counted, did_you_mean, named

if TYPE_CHECKING:
    from jaxeval.options.arguments import BattlesArguments

_MOST_TOLD = 5


@dataclass(frozen=True, eq=False, repr=False)
class Battles(Grouped, Reported):
    """Battles between M models, in R rows. A row may stand for several equal battles; no result depends on that.

    ``models`` are sorted by name. ``target`` (R,) in [0, 1] is the probability that side A wins (1, 1/2 and 0 for
    votes), ``weight`` (R,) multiplies a battle's log-likelihood, ``count`` (R,) is the number of battles of a row
    (None: one each). ``columns`` holds further columns of the input for ``by=`` and ``cluster=``; its row ``kept[r]``
    belongs to row r (None: row r).

    Examples:
        >>> import jaxeval
        >>> battles = jaxeval.simulate_battles(1000, n_models=4)
        >>> battles.n_battles, battles.n_models, battles.models[0]
        (1000, 4, 'model-1')
        >>> both_days = jaxeval.Battles.concat([battles, jaxeval.simulate_battles(500, n_models=4, seed=1)])
        >>> both_days.n_battles
        1500
    """

    models: pd.Index
    model_a: NDArray[np.int32]
    model_b: NDArray[np.int32]
    target: Float
    weight: Float | None
    report: DataReport
    columns: pd.DataFrame = field(repr=False)
    kept: NDArray[np.intp] | None = field(default=None, repr=False)
    cluster: str | None = None
    count: Int | None = None
    rows: Rows | None = field(default=None, repr=False)  # of the input, where equal ones were merged: errors name them
    files: dict[str, str] = field(default_factory=dict, repr=False)  # of a state: names by digests of bytes and rows
    names: dict[str, str] = field(default_factory=dict, repr=False)  # new names by old ones that a saved state keeps
    id: str | None = None  # column of the ids by which a saved state knows its votes
    n_processes: int = 1  # that hold these same battles and share the work on them: `gather_battles`
    #: Reads a further column of the file, for all rows of ``columns``; None where there is none.
    further: Callable[[str], pd.Series | None] | None = field(default=None, repr=False, compare=False)
    _no_column: ClassVar[str] = (
        "to group battles by or to adjust for; the further columns are: {} (those of models, results and weights do "
        "not count, and where read_battles merges equal rows it keeps only those named in keep=)"
    )

    def _shown(self) -> Answer:
        table = pd.DataFrame(self._own_columns(ROWS_OF_DATA))
        return Answer(f"Battles: {self.report}", table, warnings=self.report.warnings, n_rows=self.n_rows)

    @classmethod
    @spelled_out(BattleReading, without="baseline")
    def from_pandas(
        cls, df: Any, *, keep: Sequence[str] | None = None, rows: Rows | None = None,
        **options: Unpack[BattlesArguments],
    ) -> Battles:  # fmt: skip
        """Read battles from a DataFrame, or any table with the Arrow interface (polars, pyarrow, DuckDB).

        Columns are found by their names; case, blanks, hyphens and underscores in them do not matter.

        Args:
            df: a table with one row per battle. The result is taken from ``winner``, from the one-hot columns
                ``winner_model_a, winner_model_b, winner_tie``, from ``target``, the probability in [0, 1] that side A
                wins, from ``scores``, or from ``winner_model`` and ``loser_model``. Or a table of counts with the
                columns ``wins_a, ties, wins_b`` (or win_a, tie, win_b), or ``counts``: one row per pair, or per pair
                and group.
            winner: column of labels; by default "winner" where there is one. Labels are model_a, model_b, tie, and
                three spellings of both-bad. A whole column may use one of these instead: A and B, left and right, first
                and second, win and loss (of side A), home and away, 1-0 and 0-1, grades from A>>B to B>>A (a strong one
                gets the weight 3, arXiv:2406.11939), "A is much better" to "B is much better" (much, clearly and the
                like are strong), G, S and B (good, same and bad, of the first side), or the winner's name; each with
                words for ties, in upper or lower case. The report says how labels were read. Numbers are never guessed:
                give ``labels``.
            target: column of soft targets; by default "target" where there is one. A column "winner" beside it is not
                used: the report says so, and a warning of the fit says how often the two name opposite sides.
            labels: what the labels of ``winner`` mean: a mapping such as ``{"1": "model_a", "2": "model_b"}``, or
                "a_wins_1" (1 = A wins, 0 = B wins) or "a_wins_0" (0 = A wins, 1 = B wins), both with 0.5 = tie; or
                "names", of winners, where models are called "a" and "b" as sides are.
            weight: column of weights >= 0; none by default. A weight of 2 counts double in the fit, but stays one
                battle. A factor in all weights changes nothing, unless a fit has a ridge.
            propensity: column of the chance, above 0 and at most 1, that a battle was of its pair, as `next_battles`
                gives it. Each battle then counts by the inverse of its propensity, times its weight if there is one.
                The ratings are as those of pairs drawn at random. The report says what that costs: how many battles of
                equal weight would say as much. Only ratios matter, unless a fit has a ridge.
            keep: further columns to keep, for ``by=`` and the like; by default all.
            competitor: what competes, in a word that tables, figures and messages then use: "player"; or with its
                plural, "city,cities". By default it is what both columns are called, such as player_1 and player_2;
                "player" for white and black, "team" for home and away; "model" where that is not clear.
            rows: the rows of the input that each row of ``df`` stands for, where equal rows are merged already; by
                default each stands for itself. Errors count and name the rows of the input.

        Raises:
            DataError: a column is missing or ambiguous, a label unknown or ambiguous, a value missing or out of range,
                or no battle is left. The message names the column, the values and their counts.
            ValueError: the result is given twice, ``labels`` map to no result, or ``competitor`` is no word.
            TypeError: ``competitor`` is no text.

        Examples:
            >>> import jaxeval
            >>> import pandas as pd
            >>> votes = pd.DataFrame(
            ...     {"model_a": [*"xyx"], "model_b": [*"yzx"], "winner": ["model_a", "tie", "model_b"]}
            ... )
            >>> battles = jaxeval.Battles.from_pandas(votes)
            >>> battles.target.tolist()
            [1.0, 0.5]
            >>> print(battles.report)
            3 rows: 2 battles between 3 models, 1 of them a tie
            1 battle of a model against itself left out
        """
        return cls(**read_battle_rows(as_frame(df), BattleReading(**options), rows, keep))

    @classmethod
    def concat(cls, batches: Sequence[Battles]) -> Battles:
        """Join several batches of battles: models united, equal rows merged, reports added up.

        Estimates from it are those from all the votes read at once, bit for bit. Batches without a word for what
        competes take the word of the others. Where batches have different words, it is a "competitor".

        Raises:
            DataError: the batches differ in their columns, types of columns, clusters, or treatment of both-bad
                battles.
        """
        if not batches:
            raise ValueError("no battles to concatenate: the list is empty")
        weighted = any(battles.weight is not None for battles in batches)
        return cls._of(concat_tables([battles._table(weighted) for battles in batches]))

    def save(self, path: str | Path) -> None:
        """Write the battles, with equal ones merged, to a Parquet file that `load` reads; whole or not at all.

        Raises:
            OSError: the file cannot be written; an earlier file of that name is unchanged.
            DataError: a column, or a model's name, is of a type that cannot be saved.
        """
        with whole_file(path) as file:
            self.write(file)

    def write(self, file: IO[bytes]) -> None:
        """Write battles to an open file, as `save` does.

        Raises:
            DataError: a column, or a model's name, is of a type that cannot be saved.
        """
        merged = Battles.concat([self])
        write_table(merged._table(merged.weight is not None), file)

    @classmethod
    def load(cls, path: str | Path) -> Battles:
        """Read battles from a file that `save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            DataError: it holds no battles, is damaged, or is of a version that this jaxeval does not know.
        """
        path = whole_local_file(path)
        check_regular(path)
        with path.open("rb") as file:
            return cls.parse(file, path.name)

    @classmethod
    def parse(cls, file: IO[bytes], name: str) -> Battles:
        """Read battles from an open file, as `load` does; errors call the file ``name``.

        Raises:
            DataError: it holds no battles, is damaged, or is of a version that this jaxeval does not know.
        """
        table = read_table(file, name)
        try:
            return cls._of(table)
        except (KeyError, TypeError, AttributeError, DataError) as error:
            raise DataError(f"{name} is a broken file of saved battles: {error}") from error

    def _table(self, weighted: bool) -> BattleTable:
        """Return the battles as a table, with a column of weights or without one."""
        roles = column_roles(list(self.columns.columns), weighted)
        values: dict[str, Any] = {
            roles["model_a"]: (in_pandas(self.models), self.model_a),
            roles["model_b"]: (in_pandas(self.models), self.model_b),
            roles["target"]: self.target,
        }
        if weighted:
            values[roles["weight"]] = np.ones(self.n_rows) if self.weight is None else self.weight
        values |= {name: self.column(name) for name in self.columns.columns}
        count = np.ones(self.n_rows, np.int64) if self.count is None else self.count
        table = arrow_table(values, count, roles["count"])
        return BattleTable(table=table, roles=roles, cluster=self.cluster, report=self.report, files=self.files,
                           names=self.names, id=self.id)  # fmt: skip

    @classmethod
    def _of(cls, saved: BattleTable) -> Battles:
        """Return the battles of a saved table; none of its rows is left out."""
        roles = saved.roles
        battles = cls.from_pandas(
            frame_of(saved.table, nested=True), model_a=roles["model_a"], model_b=roles["model_b"],
            target=roles["target"], weight=roles.get("weight"), count=roles["count"], cluster=saved.cluster,
        )  # fmt: skip
        left_out = tuple(sorted(set(saved.report.models_left_out) - set(battles.models), key=str))
        report = replace(saved.report, n_models=battles.n_models, models_left_out=left_out)
        if report.n_effective is not None and battles.weight is not None:
            report = replace(report, n_effective=effective_battles(battles.weight, battles.count))
        return replace(battles, report=report, files=dict(saved.files), names=dict(saved.names), id=saved.id)

    def filter(
        self, where: str | Callable[[pd.DataFrame], Any] | NDArray[Any] | None = None, *,
        models: Sequence[Any] | None = None, exclude: Sequence[Any] = (),
    ) -> Battles:  # fmt: skip
        """Return the battles that meet a condition, or are between some of the models; the report counts the others.

        Args:
            where: a condition in SQL on ``model_a``, ``model_b``, ``target``, ``weight`` and the further columns (it
                needs the extra ``jaxeval[sql]``); a function that takes the table of `to_pandas` and returns (R,)
                booleans; or the (R,) booleans themselves.
            models: the models to keep: battles with any other model are left out. None keeps all models.
            exclude: the models to leave out, with all their battles.

        Raises:
            DataError: there is no such model or column, ``where`` is no condition, or no battle is left.

        Examples:
            >>> import jaxeval
            >>> battles = jaxeval.simulate_battles(1000, n_models=4, seed=0)
            >>> battles.filter(lambda votes: votes["language"] == "English", exclude=["model-4"]).n_models
            3
        """
        keep = np.ones(self.n_rows, bool)
        if where is not None:
            keep &= self._meeting(where)
        for name in [*(models or ()), *exclude]:
            if name not in self.models:
                noun = self.competitor
                there = noun.counted(self.n_models)
                raise DataError(f"no {noun.one} {str(name)!r} among the {there}{did_you_mean(name, self.models)}")
        chosen = ~self.models.isin(list(exclude))
        if models is not None:
            chosen &= self.models.isin(list(models))
        keep &= chosen[self.model_a] & chosen[self.model_b]
        if not keep.any():
            raise DataError(f"no battle is left of {counted(self.n_battles, 'battle')}: none meets all conditions")
        part, before = self.take(np.flatnonzero(keep)), self.report
        report = replace(
            part.report,
            n_both_bad=before.n_both_bad if before.both_bad == "drop" or keep.all() else 0,
            n_excluded=before.n_excluded + self.n_battles - part.n_battles,
            models_left_out=(*before.models_left_out, *self.models[chosen & ~self.models.isin(part.models)]),
        )
        return replace(part, report=report)

    def take(self, rows: NDArray[np.intp], count: Int | None = None) -> Battles:
        """Take some rows, in their order, perhaps repeated, and the models that met in them; the report counts these.

        Each stands for ``count`` (n,) battles, by default for as many as before.
        """
        met = self._met_in(rows)
        count = self.count[rows] if count is None and self.count is not None else count
        target, weight = self.target[rows], None if self.weight is None else self.weight[rows]
        n_battles, n_ties = (n_battles_of(which, count) for which in (np.ones(len(rows), bool), target == 0.5))
        effective = None if weight is None or self.report.n_effective is None else effective_battles(weight, count)
        report = replace(
            self.report, n_battles=n_battles, n_models=len(met["models"]), n_ties=n_ties, n_effective=effective,
        )  # fmt: skip
        return replace(
            self, **met, target=target, weight=weight, count=count, report=report,
            kept=rows if self.kept is None else self.kept[rows], rows=None if self.rows is None else self.rows.of(rows),
        )  # fmt: skip

    def rename(self, names: Mapping[Any, Any]) -> Battles:
        """Return the battles with other names of models; several models may get one name.

        Args:
            names: new names by old ones; a model whose name is not among the old ones keeps it.

        Raises:
            DataError: none of the old names is a model's, a new name is missing or blank, or models that met each other
                would get one name.
        """
        renamed = [name for name in names if name in self.models]
        if not renamed:
            hint = did_you_mean(next(iter(names), ""), self.models)
            old = named([repr(str(name)) for name in names], _MOST_TOLD) or "there are none"
            raise DataError(f"none of the names to replace is {self.competitor.a_one}'s: {old}{hint}")
        odd = next((name for name in renamed if pd.isna(names[name]) or not str(names[name]).strip()), None)
        if odd is not None:
            raise DataError(f"the new name of {str(odd)!r} is missing or blank")
        new = pd.Index([names.get(name, name) for name in self.models])
        merged, models = pd.factorize(new, sort=True)
        first, second = (merged[side].astype(np.int32) for side in (self.model_a, self.model_b))
        if (same := first == second).any():
            row = int(same.argmax())
            pair = " and ".join(repr(str(self.models[side[row]])) for side in (self.model_a, self.model_b))
            n = counted(n_battles_of(same, self.count), "battle is", "battles are")
            raise DataError(
                f"{pair} met each other, and would both be called {str(models[first[row]])!r}: {n} between "
                f"{self.competitor.many} that get one name. Give them two names, or leave one of them out first"
            )
        now = ", ".join(f"{name} is now {names[name]}" for name in renamed[:_MOST_TOLD])
        note = f"{self.competitor.many} renamed: {now}"
        more = f" and {len(renamed) - _MOST_TOLD:,} more" if len(renamed) > _MOST_TOLD else ""
        renamed_models = replace(self, models=pd.Index(models, name="model"), model_a=first, model_b=second)
        return renamed_models.reporting(note + more, n_models=len(models))

    def head(self, n: int = 5) -> pd.DataFrame:
        """Return the first ``n`` rows of `to_pandas`."""
        data = self._own_columns(n)
        columns = in_pandas(self.columns)
        rest = columns[:n] if self.kept is None else columns.iloc[self.kept[:n]]
        rest = rest.rename(columns={name: f"{name}_" for name in data if name in rest})  # of the input
        return pd.concat([pd.DataFrame(data), rest.reset_index(drop=True)], axis=1)

    def _own_columns(self, n: int) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in ("target", "weight", "count")}
        return self._sides(slice(n)) | {name: x[:n] for name, x in values.items() if x is not None}

    def __len__(self) -> int:
        return self.n_battles

    @property
    def competitor(self) -> Noun:
        """What competes, in a word and its plural."""
        return self.report.competitor

    @property
    def n_battles(self) -> int:
        """The number of battles that take part in fits."""
        return len(self.target) if self.count is None else int(self.count.sum())

    @property
    def n_rows(self) -> int:
        """R, the number of rows that hold these battles."""
        return len(self.target)

    def to_pandas(self) -> pd.DataFrame:
        """Return battles that take part in fits: model_a, model_b, target, weight, count, and the further columns.

        Where no equal battles are merged, there is one row per battle and no column ``count``. To read a table that has
        them, name these columns to `from_pandas` or `read_battles`: ``count="count"``, ``weight="weight"``.
        """
        return self.head(self.n_rows)

    def _meeting(self, where: str | Callable[[pd.DataFrame], Any] | NDArray[Any]) -> Bool:
        if isinstance(where, str):
            return rows_where(self.to_pandas(), where, counted=self.count is not None and bool((self.count > 1).any()))
        meets = np.asarray(where(self.to_pandas()) if callable(where) else where)
        if meets.dtype != bool or meets.shape != (self.n_rows,):
            got = f"{meets.dtype} of shape {meets.shape}"
            rows = counted(self.n_rows, "row")
            raise DataError(f"a condition must give true or false for each of the {rows}, got {got}")
        return meets

    @cached_property
    def cells(self) -> Cells:
        """All battles, compressed to cells."""
        return self.compress(slice(None))[0]

    @staticmethod
    def rows_by_group(codes: NDArray[np.intp], n_groups: int) -> list[NDArray[np.intp]]:
        """Return the rows of every group, by the group of each row (R,); rows of the group -1 are in none."""
        order = np.argsort(codes.astype(np.min_scalar_type(-n_groups)), kind="stable")  # small integers are fast
        ends = np.cumsum(np.bincount(codes + 1, minlength=n_groups + 1))
        return np.split(order, ends[:-1])[1:]

    def compress(self, rows: slice | NDArray[np.intp]) -> tuple[Cells, NDArray[np.intp]]:
        """Return cells of some rows, and the cell of each row."""
        weight = None if self.weight is None else self.weight[rows]
        times = None if self.count is None else self.count[rows]
        return compressed(self.n_models, self.model_a[rows], self.model_b[rows], self.target[rows], weight, times)


def as_battles(battles: Any) -> Battles:
    """Return ``battles`` itself, or those of `Judgments`; or read battles from a table with the standard columns."""
    if isinstance(battles, Battles):
        return battles
    if callable(view := getattr(battles, "battles", None)):
        return as_battles(view())
    try:
        return Battles.from_pandas(battles)
    except DataError as error:
        if "=" in str(error):  # estimators do not take what it advises, such as labels=
            error.args = (f"{error} (arguments of Battles.from_pandas, which makes battles of a table)",)
        raise
