"""Judged answers: right or wrong by the verdict of one or several judges, item by item, with human labels of some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import check_choice, checked_finite
from jaxeval.data.columns import (
    codes_of,
    factorize_sorted,
    factorized,
    first_place,
    is_missing,
    plain,
    reject_repeats,
    require_column,
    rows_of,
    seen_before,
    under_names,
)
from jaxeval.data.file_lists import local_file
from jaxeval.data.judge_calls import OR_POSITIVE, holds_text, replied_grades, usual_replies
from jaxeval.data.labels import numbers_of_words
from jaxeval.data.nested_columns import LaterColumns, levels_in_pandas, with_fields
from jaxeval.data.numbers import finite_or_nan
from jaxeval.data.report import AnswersReport, MissingJudgment, Reported
from jaxeval.data.roles import ANSWER_LABELS, ROLES, usual_column, usual_columns
from jaxeval.data.table_files import read_as, told_of
from jaxeval.errors import DataError
from jaxeval.execution.signatures import with_options_of
from jaxeval.lazy_names import pd
from jaxeval.options.boards import CalibrationSampling
from jaxeval.options.columns import Unparsed
from jaxeval.plain_tables import Names, PlainTable, RowNumbers, in_pandas
from jaxeval.show.shown import ROWS_OF_DATA, Answer
from jaxeval.wording import counted, did_you_mean, listed

ONLY_MODEL = "all answers"


class Covariate(NamedTuple):
    """A further column: its sorted values, and the (N, M) number of each answer's value; -1 without an answer."""

    levels: pd.Index
    number: Int


def _of_items(covariate: Covariate, items: Bool | NDArray[np.intp]) -> Covariate:
    return covariate._replace(number=covariate.number[items])


@dataclass(frozen=True, eq=False, repr=False)
class JudgedAnswers(Reported):
    """Answers of M models to N items as J judges saw them.

    ``judgment`` (N, M, J) is 1 for right and 0 for wrong, or a score; it is the mean over the runs of a judge, and NaN
    where there is none. ``label`` (N, M) is the human label, 1 or 0, NaN where there is none. ``answered`` (N, M) says
    whether the model has an answer to the item, judged or not. Items and models are sorted. ``sampling`` says how the
    labelled answers were chosen, where that is known: `split` draws them at random.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> table = pd.DataFrame({"item": [1, 2, 3], "judge says": [True, False, True], "human": [1, 0, None]})
        >>> answers = jaxeval.JudgedAnswers.from_pandas(table, judgment="judge says", item="item")
        >>> answers.judgment[:, 0, 0].tolist()
        [1.0, 0.0, 1.0]
        >>> print(answers.report)
        3 rows: 3 items, 1 model, 1 judge; 3 judgments, 2 human labels
    """

    items: pd.Index
    models: pd.Index
    judges: pd.Index
    judgment: Float
    label: Float
    answered: Bool
    binary: Bool  # (J,) whether every run of the judge gave 0 or 1
    answer: Int  # (N, M) number of the answer; models that gave the same answer to an item share a judgment
    covariates: LaterColumns[Covariate] = field(repr=False)  # by name; of the table those that were asked for
    report: AnswersReport
    sampling: CalibrationSampling | None = None

    def _shown(self) -> Answer:
        item, model = np.divmod(np.arange(min(self.label.size, ROWS_OF_DATA)), max(len(self.models), 1))
        names = in_pandas(self.items)[item], in_pandas(self.models)[model]
        columns = {"item": names[0], "model": names[1], "label": self.label[item, model]}
        judgments = pd.DataFrame(self.judgment[item, model], columns=in_pandas(self.judges))
        table = pd.concat([pd.DataFrame(columns), judgments], axis=1)
        return Answer(f"JudgedAnswers: {self.report}", table, n_rows=self.label.size)

    @classmethod
    def from_pandas(
        cls, df: Any, *, judgment: str | Sequence[str] | None = None, label: str | None = None,
        model: str | None = None, judge: str | None = None, item: str | None = None, run: str | None = None,
        answer: str | None = None, keep: Sequence[str] = (), positive: Any = None, threshold: float | None = None,
        missing: MissingJudgment = "error", unparsed: Unparsed = "error",
    ) -> JudgedAnswers:  # fmt: skip
        """Read judged answers from a DataFrame, or any table with the Arrow interface.

        Args:
            df: a table with one row per item, model, judge and run; or per item, model and run with a column per judge.
            judgment: column of judgments, or a list of columns, one per judge: 0, 1, booleans, or scores; or what the
                judge printed: Yes or No, a grade, or JSON with one of these. By default "judgment", "verdict", "output"
                or another usual name of replies. If that column holds replies, the columns "model", "judge", "item" and
                "run" (or other usual names) are also taken, if there.
            label: column of human labels, 0 or 1; by default "human" or "label" if there. It may have missing values.
            model: column that names the model; without it, all answers belong to one model.
            judge: column that names the judge, if ``judgment`` is one column.
            item: column that names the item (question); models are paired by item. Without it, each row is an item.
            run: column that numbers repeated runs of one judge on one answer. They are averaged, so that N counts
                items.
            answer: column that identifies an answer's text: models that gave the same answer to an item share its
                judgment and its label, which must be the same in all of their rows.
            keep: further columns to check at once; the others are read when an estimator asks for them.
            positive: the value of labels and judgments that means right (such as "yes"), if they are not 0 and 1; they
                may have one other value.
            threshold: turns scores into verdicts: scores from this one on count as 1, others as 0.
            missing: what to do about missing judgments: "error"; "drop" leaves the judgment out, but keeps the answer
                and its label; "complete" leaves the item out for all models and judges, also if a model has no answer
                to it; "incorrect" counts it as 0.
            unparsed: what to do about replies that cannot be read: "error"; or "drop", which leaves these judgments out
                and counts them.

        Raises:
            DataError: a column is missing, values cannot be read, an answer is judged twice, or no judgment is left.
                The message says how many rows, where the first is, and what to do.
        """
        check_choice("missing", missing, MissingJudgment)
        if isinstance(keep, str):
            raise TypeError(f"keep must be a list of column names, got the string {keep!r}")
        if threshold is not None:
            checked_finite("threshold", threshold)
        is_plain = isinstance(df, PlainTable) and len(df) > 0 and answer is None
        frame: Any = df if is_plain else rows_of(in_pandas(df))
        index: Any = Names if is_plain else pd.Index
        defaults = [*(ROLES["judgment"].names if judgment is None else ()), *(ANSWER_LABELS if label is None else ())]
        judgment_columns = [judgment] if isinstance(judgment, str) else [*(judgment or ())]
        named = [*judgment_columns, *defaults, *filter(None, (label, model, judge, item, run, answer)), *keep]
        frame, renamed = under_names(frame, named)
        if not is_plain:
            frame = with_fields(frame, [name for name in named if name not in defaults])
        judgments = _judgment_columns(frame, judgment)
        if judgment is None and positive is None and holds_text(frame[judgments[0]]):
            model, judge, item, run = usual_columns(frame, model=model, judge=judge, item=item, run=run).values()
        if judge is not None and len(judgments) > 1:
            raise ValueError(
                f"judge={judge!r} names the judges of one column of judgments, got {len(judgments):,} columns: "
                f"{', '.join(map(repr, judgments))}"
            )
        label = usual_column(frame, label, ANSWER_LABELS)
        require_column(frame, *judgments, *filter(None, (label, model, judge, item, run, answer)), *keep)

        if positive is not None:
            _check_two_values(frame, [*judgments, *([label] if label else [])], positive)

        rows_by_number: Any = RowNumbers(range(len(frame))) if is_plain else pd.RangeIndex(len(frame))
        item_number, items = codes_of(frame, item, rows_by_number)
        model_number, models = codes_of(frame, model, index([ONLY_MODEL]))
        place = item_number * len(models) + model_number
        shape = len(items), len(models)
        if judge is None:
            judges = index(judgments)
            judge_number = np.repeat(np.arange(len(judgments)), len(frame))
        else:
            judge_number, judges = codes_of(frame, judge, index([]))
        rows = np.tile(np.arange(len(frame)), len(judgments))
        read = [_judgments(frame[c], c, positive, threshold, unparsed == "drop") for c in judgments]
        value, unread = (np.concatenate(parts) for parts in list(zip(*read, strict=True))[:2])
        spot = place[rows] * len(judges) + judge_number
        _reject_repeats(frame, spot, rows, [c for c in (item, model, judge) if c], run, model)

        absent = np.isnan(value)
        if missing == "error" and (absent & ~unread).any():
            place = (absent & ~unread).argmax()
            n_missing = int((absent & ~unread).sum())
            raise DataError(
                f"{n_missing:,} of {counted(len(value), 'judgment')} {'is' if n_missing == 1 else 'are'} missing "
                f"(first in row {rows[place]} of {plain(judges[judge_number[place]])!r}; rows count from 0): choose "
                "what to do about them with missing='drop', 'complete' or 'incorrect' (on the command line --missing)"
            )
        if missing == "incorrect":
            value = np.where(absent, 0.0, value)
        there = ~np.isnan(value)
        times = np.bincount(spot[there], minlength=np.prod(shape) * len(judges))
        sums = np.bincount(spot[there], value[there], len(times))
        with np.errstate(invalid="ignore"):
            table = (sums / times).reshape(*shape, len(judges))
        zero_one = there & (value != 0) & (value != 1)
        binary = np.bincount(judge_number[zero_one], minlength=len(judges)) == 0

        labels, words = (np.full(len(frame), np.nan), "") if label is None else _labels(frame[label], label, positive)
        said = [*(message for *_, message in read), words]
        answers = cls(
            items=items.rename("item"), models=models.rename("model"), judges=judges.rename("judge"), judgment=table,
            label=_one_each(labels, place, shape, f"labels {label!r}"), binary=binary,
            answered=np.isin(np.arange(shape[0] * shape[1]), place).reshape(shape),
            answer=np.arange(shape[0] * shape[1]).reshape(shape),
            covariates=LaterColumns(
                frame.drop(columns=[name for name in judgments if name not in keep]),
                partial(_covariate, place=place, shape=shape),
                keep,
            ),
            report=AnswersReport(read_as=(*renamed, *filter(None, said))),
        )  # fmt: skip
        if answer is not None:
            answers = replace(answers, answer=_answers(answers, frame[answer], answer, place))
        complete: Bool = np.logical_not(np.isnan(table).any(axis=(1, 2)))
        whole = complete.all() or missing != "complete"
        if np.isnan(table).all() or not (whole or complete.any()):
            raise DataError(
                f"no judgment is left of {counted(len(frame), 'row')}: "
                f"{counted(absent.sum(), 'judgment is', 'judgments are')} missing"
            )
        answers = answers if whole else answers.take(complete)
        report = replace(
            answers._counts(), n_rows=len(frame), n_runs=int(times.max()), n_missing=int((absent & ~unread).sum()),
            n_unparsed=int(unread.sum()), missing=missing, n_dropped_items=0 if whole else int((~complete).sum()),
        )  # fmt: skip
        return replace(answers, report=report)

    def with_pandas(self) -> JudgedAnswers:
        """Return the same with names as pandas has them."""
        kept = self.covariates.then(levels_in_pandas)
        names = {name: in_pandas(getattr(self, name)) for name in ("items", "models", "judges")}
        return replace(self, covariates=kept, **names)

    @property
    def judged(self) -> Bool:
        """(N, M, J) whether there is a judgment."""
        return ~np.isnan(self.judgment)

    @property
    def shares(self) -> Bool:
        """(J,) whether all judgments of a judge lie in [0, 1], so that their mean is a share."""
        outside = (self.judgment < 0) | (self.judgment > 1)
        return np.asarray(~outside.any(axis=(0, 1)))

    def only(self, chosen: Bool) -> JudgedAnswers:
        """Return the answers ``chosen`` (N, M), and the items that have one."""
        judgment = np.where(chosen[:, :, None], self.judgment, np.nan)
        label = np.where(chosen, self.label, np.nan)
        part = replace(self, judgment=judgment, label=label, answered=self.answered & chosen)
        return part.take(np.flatnonzero(chosen.any(axis=1)))

    def take(self, items: Bool | NDArray[np.intp]) -> JudgedAnswers:
        """Return the items that a mask (N,), or item numbers, select; models and judges stay."""
        kept = self.covariates.then(partial(_of_items, items=items))
        names = ("items", "judgment", "label", "answered", "answer")
        part = replace(self, covariates=kept, sampling=None, **{name: getattr(self, name)[items] for name in names})
        return replace(part, report=part._counts())

    def split(self, calibration_share: float, seed: int = 0) -> tuple[JudgedAnswers, JudgedAnswers]:
        """Draw calibration and test items at random.

        It serves to study an estimator on labelled data: the labels of the test items are the truth to compare with.
        The calibration is marked as a random part, so that `judge_accuracy` need not be told.

        Raises:
            ValueError: the share is not between 0 and 1, or leaves no calibration or no test items.
        """
        if not 0 < calibration_share < 1:
            raise ValueError(f"calibration_share must be between 0 and 1, got {calibration_share!r}")
        order = np.random.default_rng(seed).permutation(len(self.items))
        n = round(calibration_share * len(order))
        if not 0 < n < len(order):
            raise ValueError(
                f"a calibration share of {calibration_share:g} of {counted(len(order), 'item')} leaves no items for "
                "calibration or none for the test"
            )
        calibration, test = (self.take(np.sort(part)) for part in (order[:n], order[n:]))
        return replace(calibration, sampling="random"), test

    def by_label(self, sampling: CalibrationSampling | None = None) -> tuple[JudgedAnswers, JudgedAnswers]:
        """Split into the calibration, answers with a human label, and the test.

        The test are the answers without a label. But where people chose answers "by label", or nobody knows (None),
        the test are all answers, as those without a label are then no sample of all: where people labelled as many
        wrong answers as right ones, few wrong ones are left.

        Args:
            sampling: how the labelled answers were chosen, as in `judge_accuracy`, which the calibration tells it.

        Raises:
            DataError: no answer has a human label, or all answers have one.
        """
        labelled = ~np.isnan(self.label)
        parts = tuple(self.only(subset) for subset in (labelled, self.answered & ~labelled))
        for part, what in zip(parts, ("no answer has a human label", "all answers have a human label"), strict=True):
            if not len(part.items):
                raise DataError(f"{what}: to correct a judge's scores, people must label some answers and not all")
        test = (
            parts[1] if sampling in ("random", "borrowed") else replace(self, label=np.full(self.label.shape, np.nan))
        )
        return replace(parts[0], sampling=sampling), test

    def covariate(self, name: str) -> Covariate:
        """Return a further column of the answers.

        Raises:
            DataError: there is no such column, it has missing values, or an answer has several.
        """
        return self.covariates[name]

    def _counts(self) -> AnswersReport:
        n, m, j = self.judgment.shape
        return AnswersReport(
            n_rows=n * m, n_items=n, n_models=m, n_judges=j, n_judgments=int(self.judged.sum()),
            n_labels=int((~np.isnan(self.label)).sum()), n_absent=int((~self.answered).sum()),
            n_repeated=int(repeated(self.answer, self.answered).sum()), read_as=self.report.read_as,
        )  # fmt: skip


@with_options_of(JudgedAnswers.from_pandas)
def read_judged_answers(path: str | Path, **columns: Any) -> JudgedAnswers:
    r"""Read judged answers from a file in a format of `read_battles`, with options of `JudgedAnswers.from_pandas`.

    Raises:
        DataError: the file cannot be read as a table of judged answers.
        FileNotFoundError: there is no such file.

    Examples:
        >>> import jaxeval
        >>> from pathlib import Path
        >>> _ = Path("answers.csv").write_text("item,judgment,human\n1,1,1\n2,0,\n")
        >>> jaxeval.read_judged_answers("answers.csv", item="item").report.n_labels
        1
    """
    return read_answers(path, **columns).with_pandas()


def read_answers(path: str | Path, **columns: Any) -> JudgedAnswers:
    """Read `read_judged_answers` whose names are those of pandas only where the file is not small."""
    text = [columns[c] for c in ("model", "judge", "item", "answer") if columns.get(c) is not None]
    answers = read_as(JudgedAnswers.from_pandas, path, text, columns, plain=True)
    return answers.reporting(*told_of(local_file(path)))


def _judgment_columns(frame: pd.DataFrame, judgment: str | Sequence[str] | None) -> list[str]:
    if judgment is None:
        column = usual_column(frame, None, "judgment") or usual_replies(frame)
        if column is None:
            raise DataError(
                "no column 'judgment': name the column, or columns, with judgment= (on the command line --judgment); "
                f"the table's columns are {listed(frame)}{did_you_mean('judgment', frame.columns)}"
            )
        return [column]
    names = [judgment] if isinstance(judgment, str) else list(judgment)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"judgment must name one column, or several different ones, got {judgment!r}")
    return names


def _judgments(
    column: pd.Series, name: str, positive: Any, threshold: float | None, drop: bool
) -> tuple[Float, Bool, str]:
    """Return judgments (rows,), NaN where missing, which are replies that cannot be read (rows,), and what to tell."""
    unread, message = np.zeros(len(column), bool), ""
    if positive is not None:
        values = _two_valued(column, positive)
    elif holds_text(column):
        values, unread, message = replied_grades(column, name, drop)
    else:
        values = finite_or_nan(column, name)
    return values if threshold is None else np.where(np.isnan(values), np.nan, values >= threshold), unread, message


def _labels(column: pd.Series, name: str, positive: Any) -> tuple[Float, str]:
    """Return (rows,) labels 0 and 1, NaN where missing, and which words were read as which."""
    if positive is not None:
        return _two_valued(column, positive), ""
    advice = f"write labels as 1 and 0, {OR_POSITIVE}"
    try:
        values, words = numbers_of_words(column, name)
    except DataError as error:
        raise DataError(f"{error}: {advice}") from error
    wrong = ~np.isnan(values) & (values != 0) & (values != 1)
    if wrong.any():
        counts = pd.Series(values[wrong]).value_counts().head(5)
        shown = ", ".join(f"{value:g} ({count:,})" for value, count in counts.items())
        n = counted(wrong.sum(), "label is", "labels are")
        raise DataError(f"column {name!r}: labels must be 0 or 1, and {n} not: {shown}{first_place(wrong)}; {advice}")
    return values, f"column {name!r}: read {words}" if words else ""


def _two_valued(column: Any, positive: Any) -> Float:
    codes, values = factorized(column)
    return np.append([float(_is(value, positive)) for value in values], np.nan)[codes]


def _is(value: Any, positive: Any) -> bool:
    """Return whether ``value`` is ``positive``, which the command line gives as text."""
    return bool(value == positive) or (isinstance(positive, str) and str(value) == positive)


def _check_two_values(frame: Any, columns: Sequence[str], positive: Any) -> None:
    """Raise an error unless labels and judgments together hold ``positive`` and at most one other value."""
    counts = Counter(x for c in columns for x in np.asarray(frame[c], object)[~is_missing(frame[c])])
    if len(counts) > 2 or not any(_is(value, positive) for value in counts):
        shown = ", ".join(f"{plain(value)!r} ({count:,})" for value, count in counts.most_common(8))
        more = f" and {len(counts) - 8:,} more" if len(counts) > 8 else ""
        raise DataError(
            f"columns {', '.join(map(repr, columns))}: with positive={positive!r} there may be that value and one "
            f"other, found {shown}{more}; otherwise, map values to 1 and 0 in the table"
        )


def _reject_repeats(
    frame: pd.DataFrame, spot: Int, rows: Int, names: list[str], run: str | None, model: str | None
) -> None:
    key = spot
    if run is not None:
        codes, _ = factorize_sorted(frame[run], run)
        key = spot * (codes.max() + 1) + codes[rows]
    again = seen_before(key)
    by = {name: name for name in ([*names, run] if run else names)}
    why = "a judge judges an answer once in each run"
    if not run:
        why = "name the column that numbers repeated runs with run= (on the command line --run)"
        why = why if model else f"name the column of models with model= (--model), or {why[5:]}"
    reject_repeats(again, rows[again.argmax()], frame, by, ("judgment", "judgments"), why)


def _one_each(values: Float, place: Int, shape: tuple[int, int], what: str) -> Float:
    """Return (N, M) the value of each answer, which must be the same in all of its rows that have one."""
    there = ~np.isnan(values)
    least, most = np.full(shape[0] * shape[1], np.inf), np.full(shape[0] * shape[1], -np.inf)
    np.minimum.at(least, place[there], values[there])
    np.maximum.at(most, place[there], values[there])
    differ = least < most
    if differ.any():
        n = counted(differ.sum(), "answer has", "answers have")
        raise DataError(f"{what}: {n} several{first_place(differ[place])}: give all rows of an answer the same")
    return np.where(np.isfinite(most), most, np.nan).reshape(shape)


def _covariate(column: pd.Series, name: str, place: Int, shape: tuple[int, int]) -> Covariate:
    codes, levels = factorize_sorted(column, name)
    number = _one_each(codes.astype(float), place, shape, f"values of column {name!r}")
    return Covariate(levels, np.where(np.isnan(number), -1, number).astype(np.int64))


def repeated(answer: Int, used: Bool) -> Bool:
    """Return (N, M) which of the ``used`` answers an earlier model, which is used, gave as well."""
    number = np.where(used, answer, -1).reshape(-1)
    return (seen_before(number) & (number >= 0)).reshape(answer.shape)


def _answers(answers: JudgedAnswers, column: pd.Series, name: str, place: Int) -> Int:
    """Return (N, M) number of the answer, equal for equal answers; an error if these differ in judgment or label."""
    n, m = answers.label.shape
    codes, _ = factorize_sorted(column, name)
    number = _one_each(codes.astype(float), place, (n, m), f"values of column {name!r}")
    group = pd.Series(np.where(np.isnan(number), -1 - np.arange(n * m).reshape(n, m), number).reshape(-1))
    group = pd.Series(pd.factorize(group)[0] * n + np.repeat(np.arange(n), m))
    for values, what in (
        *((answers.judgment[:, :, k], f"judge {judge!r}") for k, judge in enumerate(answers.judges)),
        (answers.label, "the label"),
    ):
        by_group = pd.Series(values.reshape(-1)).groupby(group)
        differ = (by_group.transform("max") > by_group.transform("min")).to_numpy()
        if differ.any():
            item = answers.items[int(differ.argmax()) // m]
            raise DataError(
                f"{counted(differ.sum(), 'answer')} of models that gave the same by column {name!r} differ in "
                f"{what} (first: item {plain(item)!r}): one answer has one judgment. Repair them, or leave out answer= "
                "(on the command line --answer)"
            )
    return group.to_numpy().reshape(n, m)
