"""Battles with human outcomes and a judge's verdicts, and battles with verdicts alone, as rows of one table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import check_choice
from jaxeval.data.battles import Battles
from jaxeval.data.cells import Cells, count_by
from jaxeval.data.columns import first_place, reject_missing
from jaxeval.data.report import DataReport
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.wording import counted, visible

#: What to do about people's battles that the judge did not judge.
WithoutVerdict = Literal["error", "drop"]
#: The column that says which sample a row belongs to.
SAMPLE = "(sample)"
#: What both samples add up to in a report.
_SUMS = ("n_rows", "n_battles", "n_ties", "n_both_bad", "n_self_battles", "n_missing")


@dataclass(frozen=True, eq=False)
class VerdictCells(Cells):
    """Rows compressed: equal rows of one sample are a cell. The target of unlabelled rows is the judge's verdict.

    Cells are sorted by sample, the labelled one first, and then like `Cells`.
    """

    labelled: Bool  # (C,)
    verdict: Float  # (C,) of the judge, for `first`

    @property
    def hard(self) -> bool:
        """Whether cells are only wins, ties and losses of pairs: they also differ by the verdict."""
        return False

    @cached_property
    def used(self) -> Bool:
        """(C,) whether people judged battles of both models: about other models they have said nothing."""
        seen = self.by_people(int(self.second.max()) + 1) > 0
        return np.asarray((seen[self.first] & seen[self.second])[self.pair])

    def by_sample(self, n_pairs: int) -> Cells:
        """Return the same cells, where the pairs of the unlabelled sample have other numbers, higher by ``n_pairs``."""
        pair = self.pair + n_pairs * ~self.labelled
        first, second = (np.tile(np.pad(x, (0, n_pairs - len(x))), 2) for x in (self.first, self.second))
        return replace(self, first=first, second=second, pair=pair)

    @property
    def of_people(self) -> Cells:
        """The same cells, where those without a human outcome hold no battles."""
        count = np.where(self.labelled, self.count, 0)
        return Cells(self.first, self.second, self.pair, self.target, self.weight, count)

    def by_people(self, n_models: int) -> Float:
        """Return (M,) number of battles of each model that people judged."""
        model = np.concatenate([self.first[self.pair], self.second[self.pair]])
        return np.asarray(np.bincount(model, np.tile(self.count * self.labelled, 2), n_models), np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class VerdictRows(Battles):
    """Both samples as rows that are grouped, drawn and compressed like battles, the labelled rows first."""

    verdict: Float = field(default_factory=lambda: np.zeros(0), repr=False)  # (R,) of the judge, for side A
    labelled: Bool = field(default_factory=lambda: np.zeros(0, bool), repr=False)  # (R,)

    def has_votes(self, model: Any) -> bool:
        """Return whether people judged a battle of the ``model``."""
        number = self.models.get_loc(model)
        return bool((self.labelled & ((self.model_a == number) | (self.model_b == number))).any())

    def compress(self, rows: slice | NDArray[np.intp]) -> tuple[VerdictCells, NDArray[np.intp]]:
        """Return cells of some rows, and the cell of each."""
        a, b, labelled = self.model_a[rows].astype(np.int64), self.model_b[rows], self.labelled[rows]
        swap = a > b
        human, judge = (np.where(swap, 1 - x[rows], x[rows]) for x in (self.target, self.verdict))
        outcome = (np.where(labelled, 6 * human, 0) + 2 * judge).astype(np.int64)  # of nine
        pair = np.where(swap, b, a) * self.n_models + np.where(swap, a, b)
        n_pairs = self.n_models**2
        keys, cell_of_row = np.unique((~labelled * n_pairs + pair) * 9 + outcome, return_inverse=True)
        sample, pair = np.divmod(keys // 9, n_pairs)
        pairs, of_pair = np.unique(pair, return_inverse=True)
        outcome = keys % 9
        first, second = (x.astype(np.int32) for x in divmod(pairs, self.n_models))
        judge = outcome % 3 / 2
        times = None if self.count is None else self.count[rows]
        cells = VerdictCells(
            first=first, second=second, pair=of_pair, target=np.where(sample == 0, outcome // 3 / 2, judge),
            weight=np.ones(len(keys)), count=count_by(cell_of_row, times, len(keys)), labelled=sample == 0,
            verdict=judge,
        )  # fmt: skip
        return cells, cell_of_row


def verdict_rows(human: Battles, judged: Battles, unlabelled: Battles) -> VerdictRows:
    """Return the rows of both samples: people's outcomes with the verdicts on them row by row, and further verdicts."""
    samples = {"human": human, "judged": judged, "unlabelled": unlabelled}
    for name, sample in samples.items():
        _check_hard(name, sample)
    for name in ("human", "judged"):
        _check_all_rows(name, samples[name])
    _check_names(human, judged, unlabelled)
    flipped = _same_battles(human, judged)
    models = pd.Index(sorted({*human.models, *unlabelled.models}, key=str), name="model")
    sides = [
        np.concatenate([models.get_indexer(sample.models)[side(sample)] for sample in (human, unlabelled)])
        for side in (lambda x: x.model_a, lambda x: x.model_b)
    ]
    labelled = np.arange(human.n_rows + unlabelled.n_rows) < human.n_rows
    count = None
    if human.count is not None or unlabelled.count is not None:
        count = np.concatenate([_count(human), _count(unlabelled)])
    target = np.concatenate([human.target, unlabelled.target])
    report = replace(
        human.report,
        **{name: getattr(human.report, name) + getattr(unlabelled.report, name) for name in _SUMS},
        n_models=len(models),
        read_as=(
            *human.report.read_as,
            *(f"the judge's verdicts: {sentence}" for sentence in unlabelled.report.read_as),
        ),
        models_left_out=tuple(m for m in human.report.models_left_out if m not in models),
    )
    return VerdictRows(
        models=models, model_a=sides[0].astype(np.int32), model_b=sides[1].astype(np.int32), target=target, weight=None,
        report=report, columns=pd.DataFrame({SAMPLE: np.where(labelled, "human", "judge")}), count=count,
        further=partial(_of_both, human, unlabelled),
        verdict=np.concatenate([np.where(flipped, 1 - judged.target, judged.target), unlabelled.target]),
        labelled=labelled,
    )  # fmt: skip


def _of_both(human: Battles, unlabelled: Battles, name: str) -> pd.Series:
    return pd.Series(np.concatenate([human.column(name), unlabelled.column(name)]))


def _count(battles: Battles) -> Int:
    return np.ones(battles.n_rows, np.int64) if battles.count is None else battles.count


def _check_hard(name: str, battles: Battles) -> None:
    soft = ~np.isin(battles.target, (0.0, 0.5, 1.0))
    if soft.any():
        raise DataError(
            f"{name}: {soft.sum():,} of {counted(len(soft), 'outcome')} {'is' if soft.sum() == 1 else 'are'} neither "
            "0, 1/2 nor 1: this estimate takes wins, ties and losses of people and judge. Round the targets, or give "
            "the winner"
        )
    if battles.weight is not None and not (battles.weight == 1).all():
        raise DataError(
            f"{name}: battles have weights, which this estimate does not take: leave out weight= (on the command line "
            "--weight)"
        )
    if battles.n_processes > 1:
        raise DataError(
            f"{name}: battles gathered from several processes have lost the order of their rows: read them in one "
            "process"
        )


def _left_out(report: DataReport) -> int:
    """Give how many rows were left out, apart from those of a model against itself, which no table of battles keeps."""
    dropped = report.n_both_bad if report.both_bad == "drop" else 0
    return report.n_missing + report.n_zero_weight + report.n_empty_rows + dropped


def _check_all_rows(name: str, battles: Battles) -> None:
    """Raise an error if the rows of the input are not the rows of the battles, one by one."""
    if left_out := _left_out(battles.report):
        raise DataError(
            f"{name}: {counted(left_out, 'row was', 'rows were')} left out when it was read, so that its rows are no "
            "longer beside those of the other table: join both by a column of items (join_verdicts), or leave the same "
            "rows out of both before they are read"
        )
    if battles.count is not None and battles.rows is not None:
        raise DataError(
            f"{name}: equal rows were merged when it was read, so that a row may stand for several battles: read it "
            'with a column that tells battles apart, such as keep=["item"]'
        )


def _check_names(*samples: Battles) -> None:
    """Raise an error if a model is a number in one table, and text in another."""
    names = {name for sample in samples for name in sample.models}
    texts = pd.Series(sorted(names, key=str)).astype(str)
    if (twice := texts.duplicated()).any():
        name = texts[twice].iloc[0]
        n = counted(int(twice.sum()), "model is", "models are")
        raise DataError(
            f"{n} numbers in one table and text in another (the first is {visible(name)}): give models the same type "
            "in all tables"
        )


def _same_battles(human: Battles, judged: Battles) -> Bool:
    """Return (n,) in which rows the judge's table has the sides the other way round."""
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
        n = counted(int(differ.sum()), "row of human and judged is", "rows of human and judged are")
        place = first_place(differ, shown=f": {pairs[0]}, but {pairs[1]}")
        raise DataError(f"{n} of different pairs of models{place}: bring both tables into the same order")
    counts = _count(human), _count(judged)
    if (other := counts[0] != counts[1]).any():
        row = int(other.argmax())
        place = first_place(other, shown=f": {counts[0][row]:,} and {counts[1][row]:,}")
        raise DataError(
            f"in {counted(int(other.sum()), 'row')} human and judged count different numbers of battles{place}: read "
            "both with the same columns"
        )
    return flipped & ~same


def join_verdicts(
    human: Battles, judged: Battles, item: str, *, without_verdict: WithoutVerdict = "error"
) -> tuple[Battles, Battles, Battles]:
    """Join people's and a judge's battles by item and pair of models, as `prediction_powered` takes them.

    Each battle of people is joined with the judge's verdict on the same item and the same two models, in either order
    of the sides. Several people may have judged one battle: each of their votes is a row.

    Args:
        human: people's outcomes, with the column ``item``.
        judged: the judge's verdicts, also with the column ``item``.
        item: the column that tells battles of one pair apart, such as a prompt.
        without_verdict: what to do about people's battles that the judge did not judge: "error"; or "drop", which
            leaves them out.

    Returns:
        People's battles, the judge's verdicts on them row by row, and the judge's verdicts on other battles.

    Raises:
        DataError: there is no such column, or it has missing values; the judge has several verdicts on a battle of
            people; no battle was judged by both; a battle of people lacks a verdict, and ``without_verdict`` is
            "error"; or all verdicts are on battles of people.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> rows = [("x", "y", "model_a", 1), ("y", "x", "tie", 2)]
        >>> votes = pd.DataFrame(rows, columns=["model_a", "model_b", "winner", "prompt"])
        >>> more = pd.concat([votes.assign(prompt=votes["prompt"] + k) for k in range(5)]).drop_duplicates("prompt")
        >>> tables = jaxeval.join_verdicts(*map(jaxeval.Battles.from_pandas, (votes, more)), item="prompt")
        >>> [len(table) for table in tables]
        [2, 2, 4]
    """
    check_choice("without_verdict", without_verdict, WithoutVerdict)
    _check_names(human, judged)
    human, judged = _found_by_item(human), _found_by_item(judged)
    keys = [_keys(battles, item) for battles in (human, judged)]
    index = pd.MultiIndex.from_frame(keys[1])
    wanted = pd.MultiIndex.from_frame(keys[0])
    labelled = index.isin(wanted)
    repeated = (index.duplicated() | (_count(judged) > 1)) & labelled
    if repeated.any():
        raise DataError(
            f"the judge has several verdicts on {counted(int(index[repeated].nunique()), 'battle')} of people (the "
            f"first is {_told(keys[1].iloc[int(repeated.argmax())], item)}): keep one of them, or bring both orders "
            "into one battle (read_judge_outputs)"
        )
    at = index[~index.duplicated()].get_indexer(wanted)
    place = np.flatnonzero(~index.duplicated())[at]
    lost = at < 0
    if lost.all():
        raise DataError(
            f"no battle was judged by both: none of the {counted(len(wanted), 'battle')} of people has the {item} and "
            f"the models of one of the judge's {counted(len(index), 'verdict')} (the first battle is "
            f"{_told(keys[0].iloc[0], item)}): check that both tables use the same names"
        )
    if lost.any() and without_verdict == "error":
        raise DataError(
            f"{int(lost.sum()):,} of {counted(len(lost), 'battle')} of people {'has' if lost.sum() == 1 else 'have'} "
            f"no verdict of the judge (the first is {_told(keys[0].iloc[int(lost.argmax())], item)}): judge them, or "
            "leave them out with without_verdict='drop' (--without-verdict drop)"
        )
    if labelled.all():
        raise DataError(
            f"all {counted(len(labelled), 'verdict')} of the judge are on battles of people, but only verdicts on "
            "other battles make the errors smaller: give those, too, or rate people's battles alone"
        )
    people = human if not lost.any() else human.filter(~lost)
    judged_too = judged.take(place[~lost], people.count)
    report = replace(judged_too.report, n_rows=judged_too.n_rows)
    return people, replace(judged_too, rows=None, report=report), judged.filter(~labelled)


def _found_by_item(battles: Battles) -> Battles:
    """Return the same battles, with what was left out as words in the report: rows are joined by item, not position."""
    report, n = battles.report, _left_out(battles.report)
    message = f"{counted(n, 'row')} left out when they were read"
    n_both_bad = 0 if report.both_bad == "drop" else report.n_both_bad
    counts: dict[str, Any] = {"n_missing": 0, "n_zero_weight": 0, "n_empty_rows": 0, "n_both_bad": n_both_bad}
    return battles.reporting(*([message] if n else []), **counts)


def _keys(battles: Battles, item: str) -> pd.DataFrame:
    """Return the item and the two models of each row, the models sorted by name."""
    values = battles.column(item)
    reject_missing(values.isna().to_numpy(), item, battles.rows, "fill in values, or leave those rows out")
    sides = np.stack([battles.models[side].astype(str) for side in (battles.model_a, battles.model_b)])
    first, second = np.sort(sides.astype(object), 0)
    return pd.DataFrame({"item": values.to_numpy(), "first": first, "second": second})


def _told(key: pd.Series, item: str) -> str:
    return f"{item} {visible(str(key['item']))} of {visible(key['first'])} and {visible(key['second'])}"
