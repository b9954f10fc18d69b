"""Battles with human outcomes and a judge's verdicts, and battles with the verdicts alone, as one table of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.battles import Battles
from jaxeval.data.cells import Cells, count_by
from jaxeval.errors import DataError
from jaxeval.wording import counted, visible

#: The column that says which sample a row is of.
SAMPLE = "(sample)"


@dataclass(frozen=True, eq=False)
class VerdictCells(Cells):
    """Rows compressed: equal ones of one sample are a cell. The target of unlabelled ones is the judge's verdict."""

    labelled: Bool  # (C,)
    verdict: Float  # (C,) of the judge, for `first`

    @property
    def hard(self) -> bool:
        """Whether cells are the wins, ties and losses of pairs: there are more of them."""
        return False

    @cached_property
    def used(self) -> Bool:
        """(C,) whether people judged battles of both models: of others they have said nothing."""
        seen = self.by_people(int(self.second.max()) + 1) > 0
        return np.asarray((seen[self.first] & seen[self.second])[self.pair])

    def by_people(self, n_models: int) -> Float:
        """(M,) battles of each model that people judged."""
        model = np.concatenate([self.first[self.pair], self.second[self.pair]])
        return np.asarray(np.bincount(model, np.tile(self.count * self.labelled, 2), n_models), np.float64)

    @property
    def of_people(self) -> Cells:
        """The same cells, of which those without a human outcome hold no battles."""
        count = np.where(self.labelled, self.count, 0)
        return Cells(self.first, self.second, self.pair, self.target, self.weight, count)


@dataclass(frozen=True, eq=False, repr=False)
class VerdictRows(Battles):
    """Both samples as rows that are grouped, drawn and compressed as battles are, the labelled ones first."""

    verdict: Float = field(default_factory=lambda: np.zeros(0), repr=False)  # (R,) of the judge, for side A
    labelled: Bool = field(default_factory=lambda: np.zeros(0, bool), repr=False)  # (R,)

    def compress(self, rows: slice | NDArray[np.intp]) -> tuple[VerdictCells, NDArray[np.intp]]:
        """Cells of some rows, and the cell of each."""
        a, b, labelled = self.model_a[rows].astype(np.int64), self.model_b[rows], self.labelled[rows]
        swap = a > b
        human, judge = (np.where(swap, 1 - x[rows], x[rows]) for x in (self.target, self.verdict))
        outcome = np.where(labelled, 3 * np.rint(2 * human) + np.rint(2 * judge), 9 + np.rint(2 * judge))
        pair = np.where(swap, b, a) * self.n_models + np.where(swap, a, b)
        keys, cell_of_row = np.unique(pair * 12 + outcome.astype(np.int64), return_inverse=True)
        pairs, of_pair = np.unique(keys // 12, return_inverse=True)
        outcome = keys % 12
        first, second = (x.astype(np.int32) for x in divmod(pairs, self.n_models))
        judge = outcome % 3 / 2
        times = None if self.count is None else self.count[rows]
        cells = VerdictCells(
            first=first,
            second=second,
            pair=of_pair,
            target=np.where(outcome < 9, outcome // 3 / 2, judge),
            weight=np.ones(len(keys)),
            count=count_by(cell_of_row, times, len(keys)),
            labelled=outcome < 9,
            verdict=judge,
        )
        return cells, cell_of_row


def verdict_rows(human: Battles, judged: Battles, unlabelled: Battles, keep: Sequence[str]) -> VerdictRows:
    """The rows of both samples.

    Args:
        human: people's outcomes.
        judged: the judge's verdicts on the same battles, row by row.
        unlabelled: the judge's verdicts on other battles.
        keep: further columns that are needed of ``human`` and ``unlabelled``.

    Raises:
        DataError: the rows of ``human`` and ``judged`` are not the same battles; outcomes are soft, or weighted; a
            column is not there.
    """
    samples = {"human": human, "judged": judged, "unlabelled": unlabelled}
    for name, sample in samples.items():
        _check_hard(name, sample)
    for name in ("human", "judged"):
        _check_all_rows(name, samples[name])
    flipped = _same_battles(human, judged)
    models = pd.Index(sorted({*human.models, *unlabelled.models}, key=str), name="model")
    sides = [
        np.concatenate([models.get_indexer(sample.models)[side(sample)] for sample in (human, unlabelled)])
        for side in (lambda x: x.model_a, lambda x: x.model_b)
    ]
    labelled = np.arange(human.n_rows + unlabelled.n_rows) < human.n_rows
    columns = {name: np.concatenate([human.column(name), unlabelled.column(name)]) for name in dict.fromkeys(keep)}
    count = None
    if human.count is not None or unlabelled.count is not None:
        count = np.concatenate([_count(human), _count(unlabelled)])
    target = np.concatenate([human.target, unlabelled.target])
    report = replace(
        human.report,
        n_rows=human.report.n_rows + unlabelled.report.n_rows,
        n_battles=human.n_battles + unlabelled.n_battles,
        n_models=len(models),
        n_ties=human.report.n_ties + unlabelled.report.n_ties,
        n_both_bad=human.report.n_both_bad + unlabelled.report.n_both_bad,
        n_self_battles=human.report.n_self_battles + unlabelled.report.n_self_battles,
        models_left_out=tuple(m for m in human.report.models_left_out if m not in models),
    )
    return VerdictRows(
        models=models,
        model_a=sides[0].astype(np.int32),
        model_b=sides[1].astype(np.int32),
        target=target,
        weight=None,
        report=report,
        columns=pd.DataFrame({**columns, SAMPLE: np.where(labelled, "human", "judge")}),
        count=count,
        verdict=np.concatenate([np.where(flipped, 1 - judged.target, judged.target), unlabelled.target]),
        labelled=labelled,
    )


def _count(battles: Battles) -> Int:
    """(R,) battles of each row."""
    return np.ones(battles.n_rows, np.int64) if battles.count is None else battles.count


def _check_hard(name: str, battles: Battles) -> None:
    soft = ~np.isin(battles.target, (0.0, 0.5, 1.0))
    if soft.any():
        raise DataError(
            f"{name}: {soft.sum():,} of {counted(len(soft), 'outcome is', 'outcomes are')} neither 0, 1/2 nor 1: this "
            "estimate takes wins, ties and losses of people and judge. Round the targets, or give the winner"
        )
    if battles.weight is not None and not (battles.weight == 1).all():
        raise DataError(f"{name}: battles have weights, which this estimate does not take: leave weight= out")
    if battles.n_processes > 1:
        raise DataError(f"{name}: battles gathered from several processes have lost the order of their rows")


def _check_all_rows(name: str, battles: Battles) -> None:
    """An error where rows of the input are not rows of the battles, one by one."""
    report = battles.report
    left_out = report.n_missing + report.n_zero_weight + report.n_empty_rows
    left_out += report.n_both_bad if report.both_bad == "drop" else 0
    if left_out:
        raise DataError(
            f"{name}: {counted(left_out, 'row was', 'rows were')} left out when it was read, so that its rows are no "
            "longer beside those of the other table: leave the same rows out of both tables before they are read"
        )
    if battles.count is not None and battles.rows is not None:
        raise DataError(
            f"{name}: equal rows were merged when it was read, so that rows are no longer battle by battle: read it "
            'with keep= a column that tells the battles apart, such as keep=["item"]'
        )


def _same_battles(human: Battles, judged: Battles) -> Bool:
    """(n,) rows in which the judge's table has the sides the other way round.

    Raises:
        DataError: the rows are not the same battles.
    """
    if human.n_rows != judged.n_rows:
        raise DataError(
            f"human has {counted(human.n_rows, 'row')} and judged {judged.n_rows:,}: judged holds the judge's verdicts "
            "on the battles of human, row by row. Verdicts on other battles belong in unlabelled"
        )
    sides = [(x.models[x.model_a], x.models[x.model_b]) for x in (human, judged)]
    same, flipped = (np.asarray((sides[0][0] == a) & (sides[0][1] == b)) for a, b in (sides[1], sides[1][::-1]))
    differ = ~(same | flipped)
    if differ.any():
        row = int(differ.argmax())
        pairs = [f"{visible(str(a[row]))} and {visible(str(b[row]))}" for a, b in sides]
        raise DataError(
            f"{counted(int(differ.sum()), 'row of human and judged is', 'rows of human and judged are')} of different "
            f"pairs of models, first row {row}: {pairs[0]}, but {pairs[1]}. Bring both tables into the same order"
        )
    counts = _count(human), _count(judged)
    if (other := counts[0] != counts[1]).any():
        row = int(other.argmax())
        raise DataError(
            f"in {counted(int(other.sum()), 'row')} human and judged count different numbers of battles, first row "
            f"{row}: {counts[0][row]:,} and {counts[1][row]:,}"
        )
    return flipped & ~same
