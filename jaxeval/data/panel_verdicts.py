"""Verdicts of a panel of judges: rows of battles with the judge of each, from any form in which verdicts come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.battles import Battles
from jaxeval.data.cells import Cells, cells_by_group
from jaxeval.data.columns import reject_missing, require_column, rows_of, without_blanks
from jaxeval.data.human_labels import VerdictTable, targets_of
from jaxeval.data.judge_outputs import JudgeOutputs
from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.data.labelled_verdicts import refuse_columns_twice
from jaxeval.data.labels import Labels
from jaxeval.data.roles import ORDERS, ROLES, usual_column
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.wording import counted, listed

#: The column that numbers the rows of a table in which a row holds the verdicts of several judges on one battle.
ROW = "(row)"
_TARGET = "(target)"


class PanelColumns(NamedTuple):
    """The columns in which a table says who judged what."""

    judge: str | None = None
    item: str | None = None
    judges: Sequence[str] | None = None  # columns of verdicts
    label_coding: Labels | None = None
    shown_first: str | None = None
    model_a: str = "model_a"
    model_b: str = "model_b"


@dataclass(frozen=True, eq=False)
class PanelCells(Cells):
    """Verdicts compressed: equal verdicts of one contest are a cell. A contest is a judge, a side A and a side B.

    ``first`` and ``second`` are the models on sides A and B, and a target is the one that side A wins. Two models may
    have many contests. Cells are sorted by judge, then side A, side B, target and weight.
    """

    judge: Int  # (P,) number of the judge of each contest

    @cached_property
    def pooled(self) -> Cells:
        """The same cells with pairs of two models, whatever the judge and the sides."""
        low, high = np.minimum(self.first, self.second), np.maximum(self.first, self.second)
        pairs, number = np.unique(np.stack([low, high]), axis=1, return_inverse=True)
        target = np.where((self.first > self.second)[self.pair], 1 - self.target, self.target)
        return Cells(pairs[0], pairs[1], number.reshape(-1)[self.pair], target, self.weight, self.count)


@dataclass(frozen=True, eq=False, repr=False)
class PanelRows(Battles):
    """Verdicts as rows that are grouped, drawn and compressed like battles."""

    judge: Int = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)  # (R,) number of the judge
    judges: pd.Index = field(default_factory=lambda: pd.Index([]), repr=False)  # (K,)
    item: str | None = None  # the column of items, if there is one

    def compress(self, rows: slice | NDArray[np.intp]) -> tuple[PanelCells, NDArray[np.intp]]:
        """Return cells of some rows, and the cell of each."""
        contest = (self.judge[rows] * self.n_models + self.model_a[rows]) * self.n_models + self.model_b[rows]
        weight = None if self.weight is None else self.weight[rows]
        times = None if self.count is None else self.count[rows]
        n_contests = len(self.judges) * self.n_models**2
        contests, fields, cell_of_row = cells_by_group(contest, n_contests, self.target[rows], weight, times)
        judge, sides = np.divmod(contests, self.n_models**2)
        first, second = (x.astype(np.int32) for x in np.divmod(sides, self.n_models))
        return PanelCells(first=first, second=second, judge=judge, **fields), cell_of_row


def panel_rows(verdicts: Any, where: PanelColumns) -> PanelRows:
    """Return verdicts of any form that `fit_judge_panel` takes as rows, with the judge of each."""
    battles = panel_battles(verdicts, where)
    name = usual_column(battles.columns, where.judge, "judge")
    if name is None:
        raise DataError(
            "no column says which judge gave each verdict: name it (judge=, --judge), or name a column of verdicts for "
            f"each judge (judges=, --judges); the columns besides models and results are: {listed(battles.columns)}"
        )
    number, judges = battles.codes(name)
    item = usual_column(battles.columns, where.item, "item")
    if item is None and ROW in battles.columns:
        item = ROW
    roles: dict[str, Any] = {role.name: getattr(battles, role.name) for role in fields(Battles)}
    return PanelRows(**roles, judge=number, judges=judges, item=item)


def panel_battles(verdicts: Any, where: PanelColumns) -> Battles:
    """Return the verdicts as `Battles` with a column of judges; arguments and errors as in `panel_rows`."""
    if isinstance(verdicts, Battles):
        return verdicts
    if isinstance(verdicts, JudgeOutputs):
        further = verdicts.battles.columns.difference(verdicts.calls.columns, sort=False)
        keys = ["judge", "item", "model_a", "model_b", "run"]
        calls = verdicts.calls.merge(verdicts.battles[[*keys, *further.difference(ORDERS)]], how="left", on=keys)
        parts = [(None, targets_of(calls["verdict"]), (calls["shown_first"] == "model_b").to_numpy())]
        battles = _rows_of(calls, ("model_a", "model_b"), parts, "judge")
        return battles.reporting(*str(verdicts.report).splitlines())
    if isinstance(verdicts, JudgedBattles):
        verdicts = {verdicts.judge_name: verdicts}
    if isinstance(verdicts, Mapping):
        return _of_judged(verdicts)
    return _of_table(rows_of(verdicts, "the table of verdicts has no rows"), where)


def _of_judged(judged: Mapping[Any, JudgedBattles]) -> Battles:
    """Return battles of several judges, each in a table of its own."""
    frames, messages = [], []
    for name, battles in judged.items():
        if not isinstance(battles, JudgedBattles):
            raise TypeError(
                f"a mapping of judges must hold JudgedBattles by the judges' names, got {type(battles).__name__} for "
                f"{str(name)!r}"
            )
        sides = {"model_a": battles.models[battles.model_a], "model_b": battles.models[battles.model_b]}
        frame = battles.columns.drop(columns=list(sides), errors="ignore").reset_index(drop=True).assign(**sides)
        for target, b_first in _orders_of(battles):
            swapped = np.full(len(frame), b_first)
            frames.append(_long(frame, ("model_a", "model_b"), target, swapped).assign(judge=str(name)))
        messages += [f"{name}: {line}" for line in str(battles.report).splitlines()]
    if not frames:
        raise DataError("the mapping of judges is empty")
    table = pd.concat(frames, ignore_index=True)
    return Battles.from_pandas(table, target=_TARGET).reporting(*messages, target=None)


def _orders_of(battles: JudgedBattles) -> Iterator[tuple[Float, bool]]:
    """Yield targets that A wins, and whether B was shown first: for each order if both are known, else once."""
    if battles.verdict_orders is not None and battles.hard_label == "verdict":
        both = battles.verdict_orders
    elif battles.orders is not None:
        both = np.where(np.isnan(battles.orders), np.nan, (1 + np.sign(battles.orders)) / 2)
    else:
        yield battles.hard, False
        return
    yield both[:, 0], False
    yield both[:, 1], True


def _of_table(frame: pd.DataFrame, where: PanelColumns) -> Battles:
    """Return battles of a long table, with a row for each verdict, or of a wide one, with a column for each judge."""
    sides = where.model_a, where.model_b
    for name in (*sides, where.item):
        if name is not None:
            require_column(frame, name)
    if where.judges is not None and where.judge is not None:
        raise DataError(
            f"judge={where.judge!r} (--judge) is a column that names the judge of each row, and judges= (--judges) are "
            "columns of verdicts of one judge each: leave one out"
        )
    frame, stripped = without_blanks(frame, sides)
    reader = VerdictTable(frame, where.label_coding, sides)
    reader.notes += stripped
    if where.judges is not None:
        names = [where.judges] if isinstance(where.judges, str) else list(where.judges)
        refuse_columns_twice(names, "judge", "judges=, --judges")
        if not names:
            raise DataError("judges= (--judges) names no column of verdicts: name at least one")
        b_first = reader.b_first(where.shown_first)
        parts = [(name, reader.targets(name), b_first) for name in names]
        judge = "judge"
        rest = frame.drop(columns=[*names, judge], errors="ignore").assign(**{ROW: frame.index})
        return _rows_of(rest, sides, parts, judge).reporting(*reader.notes)
    if set(ORDERS) <= set(frame.columns):
        n = len(frame)
        parts_of = [(None, reader.targets(name), np.full(n, k == 1)) for k, name in enumerate(ORDERS)]
        return _rows_of(frame, sides, parts_of, where.judge).reporting(*reader.notes)
    column = usual_column(frame, None, (*ROLES["verdict"].names, "winner"))
    if column is None:  # one-hot columns, scores, counts
        return Battles.from_pandas(frame, model_a=sides[0], model_b=sides[1])
    part = None, reader.targets(column), reader.b_first(where.shown_first)
    return _rows_of(frame, sides, [part], where.judge).reporting(*reader.notes)


def _rows_of(
    frame: pd.DataFrame, sides: tuple[str, str], parts: Sequence[tuple[str | None, Float, Bool]], judge: str | None
) -> Battles:
    """Return battles of a table whose rows hold one verdict or several."""
    frames = []
    for name, target, b_first in parts:
        rows = _long(frame, sides, target, b_first)
        frames.append(rows if name is None else rows.assign(**{judge or "judge": name}))
    table = pd.concat(frames, ignore_index=True)
    if len(table) == 0:
        raise DataError(f"no verdict in the table: all are missing in its {counted(len(frame), 'row')}")
    column = usual_column(table, judge, "judge")
    if column is not None:
        reject_missing(table[column].isna().to_numpy(), column)
    battles = Battles.from_pandas(table, model_a=sides[0], model_b=sides[1], target=_TARGET).reporting(target=None)
    lacking = sum(int(np.isnan(target).sum()) for _, target, _ in parts)
    return battles.reporting(f"{counted(lacking, 'verdict')} missing: left out") if lacking else battles


def _long(frame: pd.DataFrame, sides: tuple[str, str], target: Float, b_first: Bool) -> pd.DataFrame:
    """Return the rows with a verdict, where side A is the side that was shown first."""
    a, b = (frame[name].to_numpy() for name in sides)
    columns = {sides[0]: np.where(b_first, b, a), sides[1]: np.where(b_first, a, b)}
    columns[_TARGET] = np.where(b_first, 1 - target, target)
    return frame.drop(columns=["winner", "target"], errors="ignore").assign(**columns)[~np.isnan(target)]
