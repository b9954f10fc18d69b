"""Verdicts of several judges and labels of several people on the same battles, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float
from jaxeval.data import human_labels
from jaxeval.data.columns import (
    codes_of,
    encode_models,
    factorize_sorted,
    first_place,
    reject_again,
    require_column,
    rows_of,
    without_blanks,
)
from jaxeval.data.judge_outputs import JudgeOutputs
from jaxeval.data.labels import Labels
from jaxeval.data.nested_columns import LaterColumns
from jaxeval.data.numbers import finite_or_nan, reject_values
from jaxeval.data.presentation_orders import order_column, pairs_of, told_order
from jaxeval.data.roles import ORDERS, usual_column
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.wording import counted, listed

_LENGTHS = ("length_a", "length_b")


@dataclass(frozen=True, eq=False)
class LabelledVerdicts:
    """N battles as J judges and R raters see them. Targets are those that the first of the two models wins.

    If raters have no names, ``human`` holds the first label of a battle, its second label and so on: a column of it is
    then no person.
    """

    models: pd.Index
    model_a: NDArray[np.intp]  # (N,)
    model_b: NDArray[np.intp]
    item: NDArray[np.intp]  # (N,) number of the item
    judges: list[Any]
    raters: list[Any] | None  # None if they have no names
    verdict: Float  # (N, J) 1, 1/2, 0; NaN where there is none
    orders: Float  # (N, J, 2) verdicts with the first model shown first, and with the second
    human: Float  # (N, R)
    confidence: Float  # (N, J) in [0, 1]; NaN where none was stated
    longer: Float  # (N,) 1 if the first model's answer is longer, -1 if the second's is, 0 if neither; NaN if unknown
    notes: list[str]
    scale: human_labels.LabelScale = human_labels.PAIRS
    answers_of: NDArray[np.intp] | None = None  # (N,) number of the model whose single answer was labelled
    verdict_column: str | None = None  # of all judges, where another column names them
    facets: Mapping[str, NDArray[np.intp]] = field(default_factory=dict)  # (N,) by column, when it is asked for

    @property
    def people(self) -> Float:
        """(N,) what most people say, a tie if they are split; NaN without a label."""
        return self._most(self.human)

    @property
    def panel(self) -> Float:
        """(N,) what most judges say, a tie if they are split; NaN if a judge has no verdict."""
        whole = ~np.isnan(self.verdict).any(1)
        return np.where(whole, self._most(self.verdict), np.nan)

    def _most(self, labels: Float) -> Float:
        """Return (N,) the most frequent of (N, K) labels."""
        n, k = labels.shape
        return human_labels.most_frequent(np.repeat(np.arange(n), k), labels.reshape(-1), n, self.scale)

    @classmethod
    def of(
        cls, verdicts: JudgeOutputs | Any, human: Any = None, *, judges: Sequence[str] | None = None,
        label_coding: Labels | None = None, shown_first: str | None = None, lengths: tuple[str, str] | None = None,
        model_a: str = "model_a", model_b: str = "model_b", item: str | None = None,
    ) -> LabelledVerdicts:  # fmt: skip
        """Return battles of what `read_judge_outputs` gives, or of tables; arguments are those of `judge_agreement`."""
        table = verdicts.battles if isinstance(verdicts, JudgeOutputs) else verdicts
        frame = rows_of(table, "the table of verdicts has no rows")
        if isinstance(verdicts, JudgeOutputs) and human is None:
            human = verdicts.human
        require_column(frame, model_a, model_b)
        frame, stripped = without_blanks(frame, [model_a, model_b])
        _, first, second = encode_models(frame, model_a, model_b)
        is_self = first == second
        if is_self.all():
            raise DataError(f"no battle is left of {counted(len(frame), 'row')}: all are of a model against itself")
        if judges is None and (verdict := usual_column(frame, None, "verdict")) not in (None, "verdict"):
            frame = frame.rename(columns={verdict: "verdict"})
            stripped = (*stripped, f"verdicts in {verdict!r}")
        reader = _LabelledTable(
            frame[~is_self].reset_index(drop=True), label_coding, (model_a, model_b), usual_column(frame, item, "item"),
            [judges] if isinstance(judges, str) else judges,
        )  # fmt: skip
        reader.notes += stripped
        if is_self.any():
            reader.notes.append(f"{counted(is_self.sum(), 'row')} of a model against itself: left out")
        return reader.read(human, shown_first, lengths)


class _LabelledTable(human_labels.VerdictTable):
    """The same with labels of people, and how its rows are battles."""

    def __init__(
        self, frame: pd.DataFrame, coding: Labels | None, sides: tuple[str, str], item: str | None,
        judges: Sequence[str] | None,
    ) -> None:  # fmt: skip
        super().__init__(frame, coding, sides)
        n = len(frame)
        refuse_columns_twice(judges, "judge", "judges=, --judges")
        self.item, self.columns = item, judges
        self.items = np.arange(n) if item is None else factorize_sorted(frame[item], item)[0]
        #: Of each row (N,): its battle, whether its models are the other way round there, and its judge.
        self.unit, self.flipped = np.arange(n), np.zeros(n, bool)
        self.judge_column = usual_column(frame, None, "judge") if judges is None else None
        self.judge, names = codes_of(frame, self.judge_column, pd.Index(["judge"]))
        self.names = list(names if judges is None else judges)
        if judges is None and item is None and len(self.names) > 1:
            raise DataError(
                "verdicts of several judges need a column of items (item=, --item), which says which verdicts are on "
                "one battle; or name a column of verdicts for each judge (judges=, --judges)"
            )
        if judges is None and item is not None:
            self.unit, turned = pairs_of(self.items, self.first, self.second, len(self.models))
            # If rows write a pair in both ways, the battle has it in the order of names, whatever comes first.
            self.flipped = (np.bincount(self.unit, turned) > 0)[self.unit] & (self.first > self.second)
        self.n = self.unit.max() + 1

    def read(self, human: Any, shown_first: str | None, lengths: tuple[str, str] | None) -> LabelledVerdicts:
        if self.columns is None:
            shown_first = self._order_of_rows(shown_first)
        first, second = np.where(self.flipped, [self.second, self.first], [self.first, self.second])
        start = np.unique(self.unit, return_index=True)[1]
        read = self._verdicts(shown_first)
        longer = np.where(self.flipped, -1, 1)[start] * self._longer(lengths)[start]
        raters, labels = self._human(human)
        whole = LabelledVerdicts(
            models=self.models, model_a=first[start].astype(np.intp), model_b=second[start].astype(np.intp),
            item=pd.factorize(self.items[start])[0], judges=self.names, raters=raters, verdict=read[..., 0],
            orders=read[..., 1:3], confidence=read[..., 3], human=labels, longer=longer, notes=self.notes,
            facets=LaterColumns(self.frame, partial(facet_of, unit=self.unit)),
        )  # fmt: skip
        if np.isnan(whole.verdict).all():
            raise DataError("no battle has a verdict of a judge")
        return whole

    def _order_of_rows(self, shown_first: str | None) -> str | None:
        """Find the column of the side shown first, maybe by its values; rows of one order do not repeat."""
        frame, advice = self.frame, ""
        has_runs = usual_column(frame, None, "run") is not None
        cell = self.unit * (self.judge.max() + 1) + self.judge
        if shown_first is None and self.item is not None and not has_runs:
            besides = [*self.sides, "verdict", self.item, self.judge_column, *ORDERS]
            shown_first, advice = order_column(frame, 2 * cell + self.flipped, besides)
            if shown_first is not None:
                self.notes.append(told_order(shown_first, frame[shown_first]))
        if shown_first in frame:  # a battle has two orders
            cell = 2 * cell + self.b_first(shown_first)
        if not has_runs:
            reject_again(
                pd.Series(cell).duplicated().to_numpy(), "a judge's verdict on an item and pair",
                f". {advice}If they are repeated runs, number them in a column 'run'; if they are different battles, "
                "name another column of items (item=, --item)",
            )  # fmt: skip
        return shown_first

    def _verdicts(self, shown_first: str | None) -> Float:
        """Return verdict, verdicts in both orders, confidence (N, J, 4); of several runs, the most frequent verdict."""
        verdicts = np.full((self.n, len(self.names), 4), np.nan)
        if self.columns is not None:
            for k, column in enumerate(self.columns):
                verdicts[:, k, 0] = self.targets(column)
                verdicts[:, k, 1:3] = self._in_order(verdicts[:, k, 0], shown_first)
            return verdicts
        if "verdict" not in self.frame:
            raise DataError(
                "no column 'verdict' in the table: give the column of verdicts that name, or name a column of verdicts "
                f"for each judge (judges=, --judges); the table's columns are {listed(self.frame)}"
            )
        verdict = self.targets("verdict")
        pair = np.stack([self.targets(name) for name in ORDERS], axis=1) if ORDERS[0] in self.frame else None
        pair = self._in_order(verdict, shown_first) if pair is None else pair
        pair = np.where(self.flipped[:, None], 1 - pair[:, ::-1], pair)
        cell, n_cells = self.unit * len(self.names) + self.judge, self.n * len(self.names)
        for k, values in enumerate([self._turned(verdict), *pair.T]):
            verdicts[..., k] = human_labels.most_frequent(cell, values, n_cells, human_labels.PAIRS).reshape(
                verdicts.shape[:2]
            )
        if "confidence" in self.frame:
            confidence = finite_or_nan(self.frame["confidence"], "confidence")
            odd = (confidence < 0) | (confidence > 1)
            reject_values(confidence, odd, "confidence", "confidence must lie in [0, 1] (divide per cent by 100)")
            means = pd.Series(confidence).groupby(cell).mean()
            verdicts[..., 3].reshape(-1)[means.index] = means  # a view
        return verdicts

    def _turned(self, target: Float) -> Float:
        """Return (N,) targets that the first model of the battle wins, of those that the first one of the row does."""
        return np.where(self.flipped, 1 - target, target)

    def _in_order(self, verdict: Float, shown_first: str | None) -> Float:
        """Return (N, 2) verdicts by the order they were given in; NaN in the other order, and if no order is known."""
        orders = np.full((len(verdict), 2), np.nan)
        if shown_first is not None:
            orders[np.arange(len(verdict)), self.b_first(shown_first).astype(int)] = verdict
        return orders

    def _longer(self, lengths: tuple[str, str] | None) -> Float:
        names = lengths or (_LENGTHS if set(_LENGTHS) <= set(self.frame.columns) else None)
        if names is None:
            return np.full(len(self.frame), np.nan)
        require_column(self.frame, *names)
        a, b = (finite_or_nan(self.frame[name], name) for name in names)
        return np.sign(a - b)

    def _human(self, human: Any) -> tuple[list[Any] | None, Float]:
        """Return names of raters, and (N, R) their labels."""
        if human is None:
            human = usual_column(self.frame, None, "human")
        if human is None:
            return None, np.full((self.n, 0), np.nan)
        if not (isinstance(human, str) or (isinstance(human, Sequence) and all(isinstance(x, str) for x in human))):
            return self._joined(human)
        columns = [human] if isinstance(human, str) else list(human)
        refuse_raters_twice(columns, self.columns or ["verdict"])
        labels = np.full((self.n, len(columns)), np.nan)
        for k, column in enumerate(columns):
            targets = self._turned(self.targets(column))
            known = ~np.isnan(targets)
            # Rows of several judges repeat the label of a battle.
            labels[:, k], disputed = human_labels.agreed(self.unit[known], targets[known], self.n, "majority")
            if disputed:
                self.notes.append(
                    f"column {column!r} has different labels in the rows of {counted(disputed, 'battle')}: the "
                    "majority is taken"
                )
        return columns if len(columns) > 1 else None, labels

    def _joined(self, human: Any) -> tuple[list[Any] | None, Float]:
        """Return labels from a table of their own, joined by item and pair."""
        if self.item is None:
            raise DataError(
                "a table of human labels is joined by items, but the table of verdicts has no column of items: name it "
                "(item=, --item)"
            )
        columns: dict[str, str | None] = {"item": self.item, "model_a": self.sides[0], "model_b": self.sides[1]}
        table, messages = human_labels.human_labels_of(human, self.coding, columns)
        self.notes += messages
        start = np.unique(self.unit, return_index=True)[1]
        battles = self.frame.iloc[start].rename(columns={name: role for role, name in columns.items()})
        of_battle, of_label = human_labels.units_of(battles, table)
        battle = 2 * of_battle.unit + (of_battle.flipped ^ self.flipped[start])
        cell = 2 * of_label.unit + of_label.flipped
        turned = ~np.isin(cell, battle)  # a label may write the pair the other way round
        cell = np.where(turned, cell ^ 1, cell)
        met = np.isin(cell, battle)
        if not met.any():
            raise DataError(
                f"none of the {counted(len(table), 'human label')} is on an item and pair of the verdicts: check that "
                "items and models have the same names in both tables"
            )
        if not met.all():
            self.notes.append(f"{counted((~met).sum(), 'human label')} on items and pairs without a verdict: not used")
        target = human_labels.targets_of(table["verdict"])
        target, cell = np.where(turned, 1 - target, target)[met], cell[met]
        names, rater = None, table["rater"][met]
        slot = pd.Series(cell).groupby(cell).cumcount().to_numpy()
        if rater.notna().all():
            slot, raters = factorize_sorted(rater, "rater")
            names = list(raters)
            twice = pd.Series(cell * len(names) + slot).duplicated()
            if twice.any():
                raise DataError(
                    f"{counted(twice.sum(), 'human label repeats', 'human labels repeat')} a rater's label on an item "
                    "and pair: keep one of them"
                )
        told = np.full((battle.max() + 1, slot.max() + 1), np.nan)
        told[cell, slot] = target
        return names, told[battle]


def facet_of(column: pd.Series, name: str, unit: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return (N,) the value of each battle in a further column; ``unit`` numbers the battle of each row."""
    code, start = factorize_sorted(column, name)[0], np.unique(unit, return_index=True)[1]
    if (several := code != code[start][unit]).any():
        raise DataError(
            f"column {name!r} has several values within a battle, or an item{first_place(several)}, whose verdicts "
            "are taken together: name a column with one value for each (random=, --random)"
        )
    return code[start]


def refuse_columns_twice(columns: Sequence[str] | None, role: str, option: str) -> None:
    """Raise an error where a column is named twice as a ``role``."""
    again = next((name for k, name in enumerate(columns or ()) if name in list(columns or ())[:k]), None)
    if again is not None:
        raise DataError(f"column {again!r} is named twice as a {role} ({option}): name it once")


def refuse_raters_twice(human: Sequence[str], judges: Sequence[str]) -> None:
    """Raise an error where a column of people is named twice, or is also one of the ``judges``."""
    refuse_columns_twice(human, "rater", "human=, --human")
    both = next((name for name in human if name in judges), None)
    if both is not None:
        raise DataError(
            f"column {both!r} is named as a judge's verdicts and as human labels, so that it would agree with itself: "
            "name other columns of labels (human=, --human), or of verdicts (judges=, --judges)"
        )


def family_of(names: Sequence[Any], families: Mapping[Any, str] | None) -> NDArray[Any]:
    """Return (K,) the family of each of the ``names``, None for names without a family."""
    by_name = {str(name): family for name, family in (families or {}).items()}
    return np.array([by_name.get(str(name)) for name in names], object)
