"""Judged battles: score differences of an LLM judge, in one or both presentation orders, with human labels of some."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.checks import check_choice
from jaxeval.data.columns import (
    Rows,
    as_frame,
    encode_models,
    factorize_sorted,
    renames,
    renumbered,
    require_column,
    told_renames,
    without_blanks,
)
from jaxeval.data.judge_scores import Scores, over_orders, score_differences, sign_labels
from jaxeval.data.labels import Labels, Sides, check_labels, read_labels
from jaxeval.data.nested_columns import with_fields, within
from jaxeval.data.presentation_orders import OneOrder, orders_in_rows
from jaxeval.data.report import JudgedReport
from jaxeval.data.roles import SCORES, usual_column, usual_names
from jaxeval.errors import DataError
from jaxeval.show.shown import ROWS_OF_DATA, Answer, Shown
from jaxeval.wording import counted, did_you_mean

HardLabel = Literal["scores", "verdict"]

#: Names of columns that are taken if the user names none.
DEFAULT_HUMAN, DEFAULT_VERDICT = usual_names("human"), usual_names("verdict")
_UNLABELLED = ", and mark battles without a label as missing"


@dataclass(frozen=True, eq=False, repr=False)
class JudgedBattles(Shown):
    """N battles between M models as one judge saw them.

    ``models`` are sorted. ``score_difference`` is A minus B: the mean over criteria, averaged over both presentation
    orders if both were judged. For a judge that gives verdicts only, it is +1, 0 or -1, averaged likewise. ``judge`` is
    its sign as a target (1, 1/2, 0), and a tie if the sign flips between the orders: the paper's hard label (section
    3.2 of arXiv:2606.13221). ``human`` is the target that A wins, NaN without a human label. ``verdict`` is the judge's
    own printed verdict, if a column gives one (NaN where it is missing); of two orders, it is the side that both name,
    or that one names and the other calls a tie, or a tie if they name different sides. ``hard_label`` says which of
    ``judge`` and ``verdict`` is `hard`.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> table = pd.DataFrame({"model_a": [*"xy"], "model_b": [*"yz"], "human": ["model_a", None]})
        >>> table = table.assign(scores_a=[8.0, 5.5], scores_b=[6.5, 7.0])
        >>> battles = jaxeval.JudgedBattles.from_pandas(table, label_coding="labels")
        >>> battles.score_difference.tolist(), battles.hard.tolist()
        ([1.5, -1.5], [1.0, 0.0])
        >>> battles.report.n_human
        1
    """

    models: pd.Index
    model_a: NDArray[np.int32]
    model_b: NDArray[np.int32]
    score_difference: Float
    human: Float
    judge: Float
    verdict: Float | None
    orders: Float | None  # (N, 2) score differences A minus B, with A shown first and with B shown first
    columns: pd.DataFrame = field(repr=False)  # further columns, row by row with the battles
    judge_name: str
    report: JudgedReport
    scored: bool = True  # False for a judge that gives verdicts only
    verdict_orders: Float | None = None  # (N, 2) verdicts, as targets that A wins, with A first and with B first
    hard_label: HardLabel = "scores"
    label_coding: Labels | None = None  # what human labels and verdicts mean, as the user gave it

    def _shown(self) -> Answer:
        first = slice(None, ROWS_OF_DATA)
        columns = {"model_a": self.models[self.model_a[first]], "model_b": self.models[self.model_b[first]]}
        columns |= {name: getattr(self, name)[first] for name in ("score_difference", "human", "judge")}
        title = f"JudgedBattles: {self.report}"
        return Answer(title, pd.DataFrame(columns), f"judge: {self.judge_name}", n_rows=self.n_battles)

    @classmethod
    def from_pandas(
        cls,
        df: Any,
        *,
        scores_a: Scores | None = None,
        scores_b: Scores | None = None,
        scores_a_swapped: Scores | None = None,
        scores_b_swapped: Scores | None = None,
        score_difference: str | None = None,
        human: str | Literal[False] | None = None,
        verdict: str | Literal[False] | None = None,
        verdict_swapped: str | None = None,
        hard_label: HardLabel | None = None,
        label_coding: Labels | None = None,
        model_a: str = "model_a",
        model_b: str = "model_b",
        item: str | None = None,
        one_order: OneOrder | Literal["separate"] | None = None,
        judge_name: str = "judge",
    ) -> JudgedBattles:
        """Judged battles from a DataFrame, or any table with the Arrow interface.

        Scores come from ``scores_a`` and ``scores_b`` (by default the columns of these names), from
        ``score_difference`` (A minus B), or, for a judge that gives verdicts only, from ``verdict`` as +1, 0, -1.

        Args:
            df: a table with one row per battle.
            scores_a: column with the scores of side A: dicts of criteria, such dicts as text, or numbers; or a list
                of numeric columns, one per criterion.
            scores_b: likewise for side B, with the same criteria.
            scores_a_swapped: scores of model A when it was shown second. ``scores_a`` are then those when it was shown
                first, and the score difference is the mean of both orders.
            scores_b_swapped: scores of model B when it was shown first.
            human: column of human labels, missing where there is none; by default "human" or "human_pref" if there.
                False reads none.
            verdict: column of the judge's own verdicts; by default "verdict" or "judge_pref" if there. False reads
                none.
            verdict_swapped: verdicts with B shown first, in the same coding: A is still the model of column
                ``model_a``. ``verdict`` are then those with A shown first.
            hard_label: what the hard label is: "scores", the sign of the score difference, which is a tie if the sign
                flips between the orders; or "verdict", with the sign where a verdict is missing. By default "scores"
                if the scores of both orders are given, as in section 3.2 of the paper; else "verdict" if there is one,
                since averaged scores do not show flips, but a verdict may.
            label_coding: what the labels of ``human`` and the verdicts mean: "a_wins_1" (1 = A wins, 0 = B wins),
                "a_wins_0" (0 = A wins, 1 = B wins), both with 0.5 = tie; a mapping such as ``{"1": "model_a", "2":
                "model_b"}``; or "labels" (model_a, model_b, tie and three spellings of both-bad, which are ties, or the
                other words of `Battles.from_pandas`). Numbers are never guessed: without a coding they are an error.
            model_a: column of the model on side A.
            model_b: column of the model on side B.
            item: column of the prompts. Two rows of one prompt with the models in both orders are one battle:
                ``model_a`` of a row is the side that was shown first. Columns "judge" and "run", if there, keep rows
                apart. By default "item", "question_id" or another usual name, if most pairs of models have both orders
                there, once each.
            one_order: what to do about battles with one order, if others have both: an error (None), "keep", or "drop";
                "separate" takes each row as a battle of its own. With columns of both orders, "keep" also takes a
                battle that lacks the scores of one order; otherwise it has no score.
            judge_name: the name of this judge in results.

        Raises:
            DataError: a column is missing, scores or labels cannot be read, or no battle is left. The message says
                how many rows, where the first is, and what to do.
            ValueError: options do not go together, or have unknown values.
        """
        frame = as_frame(df)
        if len(frame) == 0:
            raise DataError("the table has no rows: nothing to rate")
        check_labels(label_coding, "label_coding")
        scores = [scores_a, scores_b, scores_a_swapped, scores_b_swapped]
        named = [x for names in scores for x in ([names] if isinstance(names, str) else names or ())]
        named += [x for x in (model_a, model_b, score_difference, human, verdict, verdict_swapped, item) if x]
        unnamed = [DEFAULT_HUMAN if human is None else (), DEFAULT_VERDICT if verdict is None else (), SCORES]
        renamed = renames([*named, *(x for defaults in unnamed for x in defaults)], frame.columns)
        frame = with_fields(frame.rename(columns=renamed), named)
        human = _column(human, DEFAULT_HUMAN, frame)
        verdict = _column(verdict, DEFAULT_VERDICT, frame)
        if scores_a is None and scores_b is None and score_difference is None:
            score_columns = [c for c in SCORES if c in frame.columns]
            if len(score_columns) == 2:
                scores_a, scores_b = score_columns
        if verdict_swapped is not None and verdict is None:
            raise ValueError("verdicts of the swapped order need those of the other order: name verdict=")
        used = [*dict.fromkeys([*named, *(x for x in (scores_a, scores_b, human, verdict) if isinstance(x, str))])]
        require_column(frame, *used)

        frame, stripped = without_blanks(frame, [model_a, model_b])
        models, first, second = encode_models(frame, model_a, model_b)
        missing = np.full(len(frame), np.nan)
        labelled = [column for column in (human, verdict, verdict_swapped) if column is not None]
        sides = Sides(models, first, second)
        read = {
            column: read_labels(
                frame[column], label_coding, sides, may_miss=True, option="label_coding", advice=_UNLABELLED
            )
            for column in labelled
        }
        messages = (*told_renames(renamed), *stripped, *(results.told for results in read.values() if results.told))
        humans = missing if human is None else read[human].target
        verdicts = [read[column].target for column in (verdict, verdict_swapped) if column is not None]
        each = score_differences(
            frame, scores_a, scores_b, scores_a_swapped, scores_b_swapped, score_difference, verdicts
        )
        n_rows = len(frame)
        judges = usual_column(frame, None, "judge")
        if judges is not None and (n_judges := frame[judges].nunique()) > 1:
            messages += (
                f"column {judges!r} names {n_judges:,} judges, but all battles are read as those of one judge: "
                "read_judges tells them apart",
            )
        in_rows = None
        if len(each) == len(verdicts or each) == 1 and one_order != "separate":
            in_rows, sentence = orders_in_rows(frame, item, sides, one_order)
            messages += (sentence,) if sentence else ()
        if in_rows is not None:
            each, verdicts = in_rows.turned(each, 0.0), in_rows.turned(verdicts, 0.5)
            humans = in_rows.one_label(humans)
            frame, first, second = frame.iloc[in_rows.base], first[in_rows.base], second[in_rows.base]
        keep = one_order == "keep"
        difference, orders = over_orders(each, keep)
        scored = scores_a is not None or score_difference is not None
        printed, verdict_orders = (
            over_orders([2 * label - 1 for label in verdicts], keep) if verdicts else (missing, None)
        )
        whole = cls(
            models=models, model_a=first, model_b=second, score_difference=difference, human=humans,
            judge=sign_labels(difference, orders), orders=orders,
            verdict_orders=None if verdict_orders is None else (1 + verdict_orders) / 2,
            verdict=sign_labels(printed, None) if verdicts else None,
            columns=frame.reset_index(drop=True), judge_name=judge_name, report=JudgedReport(read_as=messages),
            scored=scored,
            hard_label=_hard_label(hard_label, bool(verdicts), scored, orders is not None), label_coding=label_coding,
        )  # fmt: skip
        is_self, unscored = first == second, np.isnan(difference)
        if (is_self | unscored).all():
            raise DataError(
                f"no battle is left of {counted(n_rows, 'row')}: {is_self.sum():,} of a model against itself, "
                f"{unscored.sum():,} without a score of the judge"
            )
        kept = whole.subset(~(is_self | unscored))
        report = replace(
            kept.report,
            n_rows=n_rows,
            n_self_battles=int(is_self.sum()),
            n_without_score=int((unscored & ~is_self).sum()),
        )
        rest = kept.columns[[c for c in frame.columns if c not in used]]
        return replace(kept, columns=rest, report=report)

    @property
    def n_battles(self) -> int:
        """The number of battles with a score of the judge."""
        return len(self.score_difference)

    @property
    def n_models(self) -> int:
        """The number of models with at least one such battle."""
        return len(self.models)

    @property
    def hard(self) -> Float:
        """(N,) hard label of the judge: the sign of its scores, or its own verdict, as ``hard_label`` says."""
        if self.hard_label == "scores" or self.verdict is None:
            return self.judge
        return np.where(np.isnan(self.verdict), self.judge, self.verdict)

    def column(self, name: str) -> pd.Series:
        """(N,) a column beside the battles, or a field within one, by its path.

        Raises:
            DataError: there is no such column or field.
        """
        if name in self.columns.columns:
            return self.columns[name]
        field = within(self.columns, name)
        if field is None:
            have = ", ".join(map(repr, self.columns.columns))
            raise DataError(
                f"no column {name!r} beside the battles; the columns there are: {have or 'none'}"
                f"{did_you_mean(name, self.columns)}"
            )
        return field

    def codes(self, name: str) -> tuple[NDArray[np.intp], pd.Index]:
        """Group number of each battle (N,) and the sorted groups of a column beside the battles.

        Raises:
            DataError: there is no such column, or it has missing values.
        """
        return factorize_sorted(self.column(name), name, self.rows)

    @property
    def rows(self) -> Rows:
        """The rows of the table that was read, for errors to name."""
        return Rows(np.ones(self.n_battles, np.int64), self.columns.index.to_numpy())

    def subset(self, mask: Bool | NDArray[np.intp]) -> JudgedBattles:
        """The battles that ``mask`` (or row numbers) selects, with the models that met in them."""
        rows = np.arange(self.n_battles)[mask]
        met, (a, b) = renumbered(len(self.models), self.model_a[rows], self.model_b[rows])
        names = ("score_difference", "human", "judge", "verdict", "verdict_orders", "orders")
        parts = {name: value[rows] for name in names if (value := getattr(self, name)) is not None}
        columns = self.columns.iloc[rows]
        result = replace(self, models=self.models[met], model_a=a, model_b=b, columns=columns, **parts)
        beside = np.zeros(len(rows), bool) if result.verdict is None or not self.scored else ~np.isnan(result.verdict)
        report = JudgedReport(
            n_rows=len(rows),
            n_battles=len(rows),
            n_models=int(met.sum()),
            n_human=int(np.count_nonzero(~np.isnan(result.human))),
            n_human_ties=int(np.count_nonzero(result.human == 0.5)),
            n_judge_ties=int(np.count_nonzero(result.hard == 0.5)),
            hard_label=_hard_label_text(result),
            n_verdicts=int(beside.sum()),
            n_verdict_differs=int(np.count_nonzero(beside & (result.verdict != result.judge))),
            read_as=self.report.read_as,
        )
        return replace(result, report=report)


def _hard_label(choice: HardLabel | None, has_verdict: bool, scored: bool, both_orders: bool) -> HardLabel:
    """The hard label to use: the one that was asked for, or the paper's if there are scores of both orders."""
    if choice is not None:
        check_choice("hard_label", choice, HardLabel)
    if choice == "verdict" and not has_verdict:
        raise DataError(
            "hard_label='verdict' needs a column of verdicts: name it with verdict= (on the command line --verdict)"
        )
    if choice == "scores" and not scored:
        raise DataError(
            "hard_label='scores' needs scores, but the judge gives verdicts only: name columns of scores, or leave the "
            "option out"
        )
    if choice is not None:
        return choice
    return "scores" if not has_verdict or (scored and both_orders) else "verdict"


def _hard_label_text(battles: JudgedBattles) -> str:
    """What the hard label of a judge is, in words."""
    if battles.hard_label == "scores" or battles.verdict is None:
        return "sign of the scores" + (", a tie where it flips with the order" if battles.orders is not None else "")
    text = "the judge's verdict"
    if battles.verdict_orders is not None:
        text += ", a tie where it changes sides with the order"
    n_missing = int(np.isnan(battles.verdict).sum())
    return text + (f", and the sign of the scores in {counted(n_missing, 'battle')} without one" if n_missing else "")


def _column(name: str | Literal[False] | None, defaults: tuple[str, ...], frame: pd.DataFrame) -> str | None:
    """The column that is named, or else the first default that the table has; None if ``name`` is False."""
    return next((c for c in defaults if c in frame.columns), None) if name is None else name or None
