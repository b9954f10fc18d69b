"""Verdicts of several judges and labels of several people on the same battles, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.data.columns import (
    as_frame,
    encode_models,
    factorize_sorted,
    finite_or_nan,
    reject_values,
    require_column,
    without_blanks,
)
from jaxeval.data.human_labels import agreed, human_labels_of, targets_of
from jaxeval.data.judge_outputs import JudgeOutputs
from jaxeval.data.label_scales import PAIRS, LabelScale
from jaxeval.data.labels import Labels, Sides, read_labels
from jaxeval.data.presentation_orders import numbered_orders, order_columns, pairs_of, second_side_first, told_apart
from jaxeval.data.roles import ORDERS, usual_column, usual_names
from jaxeval.errors import DataError
from jaxeval.statistics.rater_agreement import label_counts
from jaxeval.wording import counted

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
    scale: LabelScale = PAIRS
    answers_of: NDArray[np.intp] | None = None  # (N,) number of the model whose single answer was labelled
    verdict_column: str | None = None  # of all judges, where another column names them

    @property
    def people(self) -> Float:
        """(N,) what most people say, a tie if they are split; NaN without a label."""
        return most_frequent(self.human, self.scale)

    @property
    def panel(self) -> Float:
        """(N,) what most judges say, a tie if they are split; NaN if a judge has no verdict."""
        whole = ~np.isnan(self.verdict).any(1)
        return np.where(whole, most_frequent(self.verdict, self.scale), np.nan)

    @classmethod
    def of(
        cls,
        verdicts: JudgeOutputs | Any,
        human: Any = None,
        *,
        judges: Sequence[str] | None = None,
        label_coding: Labels | None = None,
        shown_first: str | None = None,
        lengths: tuple[str, str] | None = None,
        model_a: str = "model_a",
        model_b: str = "model_b",
        item: str | None = None,
    ) -> LabelledVerdicts:
        """Battles from what `read_judge_outputs` gives, or from tables; arguments as in `jaxeval.judge_agreement`."""
        frame = as_frame(verdicts.battles if isinstance(verdicts, JudgeOutputs) else verdicts).reset_index(drop=True)
        if len(frame) == 0:
            raise DataError("the table of verdicts has no rows")
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
            frame[~is_self].reset_index(drop=True), label_coding, (model_a, model_b), usual_column(frame, item, "item")
        )
        reader.notes += stripped
        if is_self.any():
            reader.notes.append(f"{counted(is_self.sum(), 'row')} of a model against itself: left out")
        return reader.read(human, [judges] if isinstance(judges, str) else judges, shown_first, lengths)


class VerdictTable:
    """A table of verdicts on pairs of models, and how its columns are read."""

    def __init__(self, frame: pd.DataFrame, coding: Labels | None, sides: tuple[str, str]) -> None:
        self.frame, self.coding, self.sides, self.notes = frame, coding, sides, list[str]()
        self.models, self.first, self.second = encode_models(frame, *sides)

    def targets(self, column: str) -> Float:
        """(N,) targets that the first model wins; NaN where there is no verdict."""
        require_column(self.frame, column)
        sides = Sides(self.models, self.first, self.second)
        read = read_labels(self.frame[column], self.coding, sides, may_miss=True, option="label_coding")
        self.notes += [read.told] if read.told else []
        return read.target

    def b_first(self, shown_first: str | None) -> Bool:
        """(N,) whether the second model was shown first."""
        if shown_first in (None, self.sides[0]):
            return np.zeros(len(self.frame), bool)
        require_column(self.frame, str(shown_first))
        return second_side_first(self.frame[shown_first], self.models, self.first, self.second)


class _LabelledTable(VerdictTable):
    """The same with labels of people, and how its battles are numbered."""

    def __init__(self, frame: pd.DataFrame, coding: Labels | None, sides: tuple[str, str], item: str | None) -> None:
        super().__init__(frame, coding, sides)
        self.item, self.told_apart = item, ""  # what a column that tells repeated rows apart may be

    def read(
        self, human: Any, judges: Sequence[str] | None, shown_first: str | None, lengths: tuple[str, str] | None
    ) -> LabelledVerdicts:
        frame, n = self.frame, len(self.frame)
        refuse_columns_twice(judges, "judge", "judges=, --judges")
        items = np.arange(n) if self.item is None else factorize_sorted(frame[self.item], self.item)[0]
        if judges is not None:
            names, judge = list(judges), np.zeros(n, np.intp)
            unit, flipped = np.arange(n), np.zeros(n, bool)  # each row is a battle
        else:
            column = usual_column(frame, None, "judge")
            judge, judge_names = (
                (np.zeros(n, np.intp), ["judge"]) if column is None else factorize_sorted(frame[column], column)
            )
            names = list(judge_names)
            if self.item is None and len(names) > 1:
                raise DataError(
                    "verdicts of several judges need a column of items (item=, --item), which says which verdicts are "
                    "on one battle; or name a column of verdicts for each judge (judges=, --judges)"
                )
            unit, flipped = np.arange(n), np.zeros(n, bool)
            if self.item is not None:
                unit, turned = pairs_of(items, self.first, self.second, len(self.models))
                # If rows write a pair in both ways, the battle has it in the order of names, whatever comes first.
                flipped = (np.bincount(unit, turned) > 0)[unit] & (self.first > self.second)
            cell = (unit * (judge.max() + 1) + judge) * 2 + flipped
            if shown_first is None and self.item is not None and usual_column(frame, None, "run") is None:
                of_order, is_order = order_columns(frame, cell, [*self.sides, "verdict", self.item, column, *ORDERS])
                self.told_apart = "" if is_order or not of_order else told_apart(of_order)
                if is_order:
                    shown_first = of_order[0]
                    numbers = numbered_orders(frame[shown_first])
                    of_words = f" ({numbers})" if numbers else ""
                    self.notes.append(f"column {shown_first!r}: read as the side shown first{of_words}")
            self._refuse_repeats(unit, judge, shown_first)
        first, second = np.where(flipped, [self.second, self.first], [self.first, self.second])
        start = np.unique(unit, return_index=True)[1]
        read = self._verdicts(judges, shown_first, unit, flipped, judge, len(names))
        longer = np.where(flipped, -1, 1)[start] * self._longer(lengths)[start]
        pairs = pd.DataFrame({"a": first[start], "b": second[start], "unit": np.arange(len(start))})
        raters, labels = self._human(human, unit, flipped, pairs.assign(row=start), judges or ["verdict"])
        whole = LabelledVerdicts(
            models=self.models, model_a=first[start].astype(np.intp), model_b=second[start].astype(np.intp),
            item=pd.factorize(items[start])[0], judges=names, raters=raters, verdict=read[..., 0],
            orders=read[..., 1:3], confidence=read[..., 3], human=labels, longer=longer, notes=self.notes,
        )  # fmt: skip
        if np.isnan(whole.verdict).all():
            raise DataError("no battle has a verdict of a judge")
        return whole

    def _refuse_repeats(self, unit: NDArray[np.intp], judge: NDArray[np.intp], shown_first: str | None) -> None:
        cell = unit * (judge.max() + 1) + judge
        if shown_first in self.frame:  # a battle has two orders
            cell = 2 * cell + self.b_first(shown_first)
        again = pd.Series(cell).duplicated().to_numpy()
        if again.any() and usual_column(self.frame, None, "run") is None:
            row = int(again.argmax())
            raise DataError(
                f"{counted(again.sum(), 'row repeats', 'rows repeat')} a judge's verdict on an item and pair (first in "
                f"row {row}; rows count from 0). {self.told_apart}If they are repeated "
                f"runs, number them in a column 'run'; if they are different battles, name another column of "
                "items (item=, --item)"
            )

    def _verdicts(
        self,
        judges: Sequence[str] | None,
        shown_first: str | None,
        unit: NDArray[np.intp],
        flipped: Bool,
        judge: NDArray[np.intp],
        n_judges: int,
    ) -> Float:
        """(N, J, 4) verdict, verdicts in both orders, and confidence; of several runs, the verdict that most give."""
        verdicts = np.full((unit.max() + 1, n_judges, 4), np.nan)
        if judges is not None:
            for k, column in enumerate(judges):
                verdicts[:, k, 0] = self.targets(column)
                verdicts[:, k, 1:3] = self._in_order(verdicts[:, k, 0], shown_first)
            return verdicts
        if "verdict" not in self.frame:
            have = ", ".join(map(repr, self.frame.columns))
            raise DataError(
                "no column 'verdict' in the table: give the column of verdicts that name, or name a column of verdicts "
                f"for each judge (judges=, --judges); the table's columns are {have}"
            )
        verdict = self.targets("verdict")
        pair = np.stack([self.targets(name) for name in ORDERS], axis=1) if ORDERS[0] in self.frame else None
        pair = self._in_order(verdict, shown_first) if pair is None else pair
        pair = np.where(flipped[:, None], 1 - pair[:, ::-1], pair)
        confidence = finite_or_nan(self.frame["confidence"], "confidence") if "confidence" in self.frame else None
        for k, values in enumerate([np.where(flipped, 1 - verdict, verdict), *pair.T]):
            known = ~np.isnan(values)
            cell = (unit * n_judges + judge)[known]
            verdicts[..., k] = agreed(cell, values[known], verdicts[..., 0].size, "majority")[0].reshape(
                verdicts.shape[:2]
            )
        if confidence is not None:
            odd = (confidence < 0) | (confidence > 1)
            reject_values(confidence, odd, "confidence", "confidence must lie in [0, 1] (divide per cent by 100)")
            means = pd.Series(confidence).groupby(unit * n_judges + judge).mean()
            verdicts[..., 3].reshape(-1)[means.index] = means  # a view
        return verdicts

    def _in_order(self, verdict: Float, shown_first: str | None) -> Float:
        """(N, 2) verdicts by the order in which they were given; NaN in the other order, and if no order is known."""
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

    def _human(
        self, human: Any, unit: NDArray[np.intp], flipped: Bool, pairs: pd.DataFrame, verdicts: Sequence[str]
    ) -> tuple[list[Any] | None, Float]:
        """Names of raters, and (N, R) their labels."""
        n = unit.max() + 1
        if human is None:
            human = next((name for name in usual_names("human") if name in self.frame), None)
        if human is None:
            return None, np.full((n, 0), np.nan)
        if isinstance(human, str) or (isinstance(human, Sequence) and all(isinstance(x, str) for x in human)):
            columns = [human] if isinstance(human, str) else list(human)
            refuse_raters_twice(columns, verdicts)
            labels = np.full((n, len(columns)), np.nan)
            for k, column in enumerate(columns):
                targets = self.targets(column)
                targets = np.where(flipped, 1 - targets, targets)
                known = ~np.isnan(targets)
                # Rows of several judges repeat the label of a battle.
                labels[:, k], disputed = agreed(unit[known], targets[known], n, "majority")
                if disputed:
                    self.notes.append(
                        f"column {column!r} has different labels in the rows of {counted(disputed, 'battle')}: the "
                        "majority is taken"
                    )
            return columns if len(columns) > 1 else None, labels
        return self._joined(human, pairs)

    def _joined(self, human: Any, pairs: pd.DataFrame) -> tuple[list[Any] | None, Float]:
        """Labels from a table of their own, joined by item and pair."""
        if self.item is None:
            raise DataError(
                "a table of human labels is joined by items, but the table of verdicts has no column of items: name it "
                "(item=, --item)"
            )
        columns: dict[str, str | None] = {"item": self.item, "model_a": self.sides[0], "model_b": self.sides[1]}
        table, messages = human_labels_of(human, self.coding, columns)
        self.notes += messages
        known = pairs.assign(item=self.frame[self.item].to_numpy()[pairs["row"]])
        place = self.models.get_indexer
        one = pd.DataFrame({"item": table["item"], "a": place(table["model_a"]), "b": place(table["model_b"])})
        ways = [
            one.merge(known, how="left", on=["item", "a", "b"])
            for one in (one, one.rename(columns={"a": "b", "b": "a"}))
        ]
        swapped = ways[0]["unit"].isna().to_numpy()
        at = ways[0]["unit"].fillna(ways[1]["unit"]).to_numpy(float)
        target = targets_of(table["verdict"])
        target = np.where(swapped, 1 - target, target)
        met = ~np.isnan(at)
        if not met.any():
            raise DataError(
                f"none of the {counted(len(table), 'human label')} is on an item and pair of the verdicts: check that "
                "items and models have the same names in both tables"
            )
        if not met.all():
            self.notes.append(f"{counted((~met).sum(), 'human label')} on items and pairs without a verdict: not used")
        cell, target, rater = at[met].astype(np.intp), target[met], table["rater"][met]
        names: list[Any] | None = None
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
        labels = np.full((len(pairs), slot.max() + 1), np.nan)
        labels[cell, slot] = target
        return names, labels


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


def most_frequent(labels: Float, scale: LabelScale) -> Float:
    """(N,) the most frequent of (N, K) labels; of several, the label that names no side, if the scale has one."""
    codes = np.where(np.isnan(labels), -1, np.searchsorted(scale.values, labels))
    counts = label_counts(codes, len(scale.values))
    first = counts == counts.max(1, keepdims=True)
    split = np.nan
    if scale.has_middle:
        split = 0.5
    values = np.where(first.sum(1) == 1, np.array(scale.values)[first.argmax(1)], split)
    return np.where(counts.sum(1) > 0, values, np.nan)


def family_of(names: Sequence[Any], families: Mapping[Any, str] | None) -> NDArray[Any]:
    """(K,) the family of each of the ``names``, None for names without a family."""
    by_name = {str(name): family for name, family in (families or {}).items()}
    return np.array([by_name.get(str(name)) for name in names], object)
