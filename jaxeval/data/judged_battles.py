"""Judged battles: score differences of an LLM judge, in one or both presentation orders, with human labels of some."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.checks import check_choice
from jaxeval.data.columns import Rows, first_place, require_column, rows_of, under_names, without_blanks
from jaxeval.data.groups import Grouped
from jaxeval.data.human_labels import VerdictTable
from jaxeval.data.labels import Labels, Sides, check_labels
from jaxeval.data.nested_columns import with_fields
from jaxeval.data.numbers import finite_or_nan
from jaxeval.data.presentation_orders import OneOrder, in_turn, one_label, orders_in_rows
from jaxeval.data.report import JudgedReport, Reported
from jaxeval.data.roles import ROLES, SCORES, usual_column
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.show.shown import ROWS_OF_DATA, Answer
from jaxeval.wording import counted, listed

Scores = str | Sequence[str]
HardLabel = Literal["scores", "verdict"]


@dataclass(frozen=True, eq=False, repr=False)
class JudgedBattles(Grouped, Reported):
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
    _no_column: ClassVar[str] = "beside the battles; the columns there are: {}"

    def _shown(self) -> Answer:
        first = slice(None, ROWS_OF_DATA)
        columns = self._sides(first) | {
            name: getattr(self, name)[first] for name in ("score_difference", "human", "judge")
        }
        title = f"JudgedBattles: {self.report}"
        return Answer(title, pd.DataFrame(columns), f"judge: {self.judge_name}", n_rows=self.n_battles)

    @classmethod
    def from_pandas(
        cls, df: Any, *, scores_a: Scores | None = None, scores_b: Scores | None = None,
        scores_a_swapped: Scores | None = None, scores_b_swapped: Scores | None = None,
        score_difference: str | None = None, human: str | Literal[False] | None = None,
        verdict: str | Literal[False] | None = None, verdict_swapped: str | None = None,
        hard_label: HardLabel | None = None, label_coding: Labels | None = None, model_a: str = "model_a",
        model_b: str = "model_b", item: str | None = None, one_order: OneOrder | Literal["separate"] | None = None,
        judge_name: str = "judge",
    ) -> JudgedBattles:  # fmt: skip
        """Read judged battles from a DataFrame, or any table with the Arrow interface.

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
        frame = rows_of(df, "the table has no rows: nothing to rate")
        check_labels(label_coding, "label_coding")
        scores = [scores_a, scores_b, scores_a_swapped, scores_b_swapped]
        named = [x for names in scores for x in ([names] if isinstance(names, str) else names or ())]
        named += [x for x in (model_a, model_b, score_difference, human, verdict, verdict_swapped, item) if x]
        unnamed = [ROLES[role].names for role, x in (("human", human), ("verdict", verdict)) if x is None]
        frame, renamed = under_names(frame, [*named, *(x for names in (*unnamed, SCORES) for x in names)])
        frame = with_fields(frame, named)
        human, verdict = (
            usual_column(frame, column or None, role) if column is not False else None
            for column, role in ((human, "human"), (verdict, "verdict"))
        )
        if scores_a is None and scores_b is None and score_difference is None:
            score_columns = [c for c in SCORES if c in frame.columns]
            if len(score_columns) == 2:
                scores_a, scores_b = score_columns
        if verdict_swapped is not None and verdict is None:
            raise ValueError("verdicts of the swapped order need those of the other order: name verdict=")
        used = [*dict.fromkeys([*named, *(x for x in (scores_a, scores_b, human, verdict) if isinstance(x, str))])]
        require_column(frame, *used)

        frame, stripped = without_blanks(frame, [model_a, model_b])
        advice = ", and mark battles without a label as missing"
        labels = VerdictTable(frame, label_coding, (model_a, model_b), advice)
        models, first, second, missing = labels.models, labels.first, labels.second, np.full(len(frame), np.nan)
        humans = missing if human is None else labels.targets(human)
        verdicts = [labels.targets(column) for column in (verdict, verdict_swapped) if column is not None]
        messages = (*renamed, *stripped, *dict.fromkeys(labels.notes))
        pairs = [(scores_a, scores_b), (scores_a_swapped, scores_b_swapped)]
        each = score_differences(frame, pairs, score_difference, verdicts)
        n_rows = len(frame)
        judges = usual_column(frame, None, "judge")
        if judges is not None and (n_judges := frame[judges].nunique()) > 1:
            messages += (
                f"column {judges!r} names {n_judges:,} judges, but all battles are read as those of one judge: "
                "read_judges tells them apart",
            )
        in_rows = None
        if len(each) == len(verdicts or each) == 1 and one_order != "separate":
            in_rows, sentence = orders_in_rows(frame, item, Sides(models, first, second), one_order)
            messages += (sentence,) if sentence else ()
        if in_rows is not None:
            each, verdicts = in_turn(in_rows, each, 0.0), in_turn(in_rows, verdicts, 0.5)
            humans, base = one_label(in_rows, humans), in_rows[:, 0]
            frame, first, second = frame.iloc[base], first[base], second[base]
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
        kept = whole.subset(~(is_self | unscored)).reporting(
            n_rows=n_rows, n_self_battles=int(is_self.sum()), n_without_score=int((unscored & ~is_self).sum())
        )
        return replace(kept, columns=kept.columns[[c for c in frame.columns if c not in used]])

    @property
    def n_battles(self) -> int:
        """The number of battles with a score of the judge."""
        return len(self.score_difference)

    @property
    def hard(self) -> Float:
        """(N,) hard label of the judge: the sign of its scores, or its own verdict, as ``hard_label`` says."""
        if self.hard_label == "scores" or self.verdict is None:
            return self.judge
        return np.where(np.isnan(self.verdict), self.judge, self.verdict)

    @property
    def rows(self) -> Rows:
        """The rows of the table that was read, for errors to name."""
        return Rows(np.ones(self.n_battles, np.int64), self.columns.index.to_numpy())

    def subset(self, mask: Bool | NDArray[np.intp]) -> JudgedBattles:
        """Return battles that ``mask`` (or row numbers) selects, with the models that met in them."""
        rows = np.arange(self.n_battles)[mask]
        names = ("score_difference", "human", "judge", "verdict", "verdict_orders", "orders")
        parts = {name: value[rows] for name in names if (value := getattr(self, name)) is not None}
        columns = self.columns.iloc[rows]
        result = replace(self, **self._met_in(rows), columns=columns, **parts)
        beside = np.zeros(len(rows), bool) if result.verdict is None or not self.scored else ~np.isnan(result.verdict)
        report = JudgedReport(
            n_rows=len(rows), n_battles=len(rows), n_models=result.n_models,
            n_human=int(np.count_nonzero(~np.isnan(result.human))),
            n_human_ties=int(np.count_nonzero(result.human == 0.5)),
            n_judge_ties=int(np.count_nonzero(result.hard == 0.5)), hard_label=_hard_label_text(result),
            n_verdicts=int(beside.sum()),
            n_verdict_differs=int(np.count_nonzero(beside & (result.verdict != result.judge))),
            read_as=self.report.read_as,
        )  # fmt: skip
        return replace(result, report=report)


def _hard_label(choice: HardLabel | None, has_verdict: bool, scored: bool, both_orders: bool) -> HardLabel:
    """Choose the hard label to use: the one asked for, or the paper's if there are scores of both orders."""
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
    if battles.hard_label == "scores" or battles.verdict is None:
        return "sign of the scores" + (", a tie where it flips with the order" if battles.orders is not None else "")
    text = "the judge's verdict"
    if battles.verdict_orders is not None:
        text += ", a tie where it changes sides with the order"
    n_missing = int(np.isnan(battles.verdict).sum())
    return text + (f", and the sign of the scores in {counted(n_missing, 'battle')} without one" if n_missing else "")


_LONGEST_TEXT = 10_000  # characters of one cell of scores
# Equal means of integer scores may differ in their last bits; after rounding to this many decimals they are equal.
_DECIMALS = 9


def score_differences(
    frame: pd.DataFrame,
    pairs: Sequence[tuple[Scores | None, Scores | None]],
    score_difference: str | None,
    verdicts: Sequence[Float],
) -> list[Float]:
    """Return (N,) score differences A minus B for each order that is given, one or two; NaN without a score.

    Without scores, the differences come from the ``verdicts`` (N,) of one or both orders: +1, 0 or -1.
    """
    for a, b in pairs:
        if (a is None) != (b is None):
            side, other = ("A", "B") if b is None else ("B", "A")
            raise ValueError(f"scores are needed for both sides, got those of {side} only: name those of {other}, too")
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    if score_difference is not None:
        if both:
            raise ValueError("give score_difference= or columns of scores, not both")
        return [_rounded(finite_or_nan(frame[score_difference], score_difference))]
    if pairs[0][0] is None and both:
        raise ValueError("scores of the swapped order need those of the other order: name scores_a= and scores_b=")
    if not both:
        if not verdicts:
            raise DataError(
                "no scores of a judge: name them with scores_a= and scores_b=, score_difference=, or verdict= for a "
                "judge that gives verdicts only (on the command line --scores-a and so on); the table's columns are "
                f"{listed(frame)}"
            )
        return [2 * label - 1 for label in verdicts]
    return [_rounded(_criteria_difference(frame, a, b)) for a, b in both]


def over_orders(each: Sequence[Float], keep_one: bool = False) -> tuple[Float, Float | None]:
    """Return (N,) means of the values (N,) of one order or both, and the (N, 2) values of both orders if there are two.

    A battle that lacks one order has no mean; with ``keep_one`` it has the value of the other order.
    """
    if len(each) == 1:
        return each[0], None
    orders = np.stack(each, axis=1)
    mean = orders.mean(1)
    if keep_one:
        mean = np.where(np.isnan(mean), np.where(np.isnan(orders[:, 0]), orders[:, 1], orders[:, 0]), mean)
    return _rounded(mean), orders


def sign_labels(difference: Float, orders: Float | None) -> Float:
    """Return signs of differences A minus B as targets (N,) that A wins; a tie if the sign differs by order (N, 2)."""
    label = (1 + np.sign(difference)) / 2
    return label if orders is None else np.where(orders[:, 0] * orders[:, 1] < 0, 0.5, label)


def _rounded(values: Float) -> Float:
    return np.round(values, _DECIMALS) + 0.0


def _criteria_difference(frame: pd.DataFrame, scores_a: Scores, scores_b: Scores) -> Float:
    """Return (N,) mean over criteria of the score of A minus that of B."""
    if isinstance(scores_a, str) and isinstance(scores_b, str):
        if all(pd.api.types.is_numeric_dtype(frame[c]) for c in (scores_a, scores_b)):
            return finite_or_nan(frame[scores_a], scores_a) - finite_or_nan(frame[scores_b], scores_b)
        a, b = _score_table(frame[scores_a], scores_a), _score_table(frame[scores_b], scores_b)
        if set(a.columns) != set(b.columns):
            raise DataError(
                f"columns {scores_a!r} and {scores_b!r} score different criteria: {', '.join(map(str, a.columns))}; "
                f"and {', '.join(map(str, b.columns))}. Both sides need the same"
            )
        difference = (a - b[a.columns]).to_numpy(float)
    else:
        names_a = [scores_a] if isinstance(scores_a, str) else list(scores_a)
        names_b = [scores_b] if isinstance(scores_b, str) else list(scores_b)
        if len(names_a) != len(names_b) or not names_a:
            raise ValueError(
                f"name as many columns of scores for B as for A, at least one each, got {len(names_a):,} for A and "
                f"{len(names_b):,} for B"
            )
        difference = np.stack(
            [finite_or_nan(frame[a], a) - finite_or_nan(frame[b], b) for a, b in zip(names_a, names_b, strict=True)],
            axis=1,
        )
    scored = ~np.isnan(difference).all(1)
    partial = scored & np.isnan(difference).any(1)
    if partial.any():
        raise DataError(
            f"{counted(partial.sum(), 'row has', 'rows have')} scores for some criteria only{first_place(partial)}. "
            "Means over different criteria do not compare: fill the missing scores, or drop those rows first"
        )
    # In order of size, so that the order of the criteria cannot move the last bit.
    return np.sort(difference, axis=1).mean(1)


def _score_table(column: pd.Series, name: str) -> pd.DataFrame:
    """Return one column per criterion, with a row of NaN where a cell is missing."""
    dicts = any(isinstance(value, dict) for value in column)
    codes, values = (np.arange(len(column)), list(column)) if dicts else pd.factorize(column)
    parsed, wrong = [], []
    for number, value in enumerate(values):
        scores = None if value is None or (isinstance(value, float) and np.isnan(value)) else _parse_scores(value)
        if isinstance(scores, str):
            wrong.append((number, scores))
        parsed.append(scores if isinstance(scores, dict) else {})
    if wrong:
        bad = np.isin(codes, [number for number, _ in wrong])
        row, shown = int(bad.argmax()), repr(column.iloc[bad.argmax()])
        shown = f": {dict(wrong)[int(codes[row])]}: {shown[:80]}{'...' if len(shown) > 80 else ''}"
        raise DataError(
            f"column {name!r}: {bad.sum():,} of {counted(len(bad), 'row')} {'holds' if bad.sum() == 1 else 'hold'} no "
            f"scores by criterion{first_place(bad, shown=shown)}; expected text or dicts like {{'helpfulness': 8.5, "
            "'clarity': 9}; repair or drop those rows first"
        )
    table = pd.DataFrame.from_records([*parsed, {}], index=range(len(parsed) + 1)).astype(float)
    if table.columns.empty:
        raise DataError(f"column {name!r} holds no scores: all of its values are missing")
    return table.iloc[np.where(codes < 0, len(parsed), codes)].reset_index(drop=True)


def _parse_scores(value: Any) -> dict[str, float] | str:
    """Read scores by criterion, or say what is wrong with ``value``. Text is JSON or a Python literal, never run."""
    if isinstance(value, str):
        if len(value) > _LONGEST_TEXT:
            return f"longer than {_LONGEST_TEXT:,} characters"
        try:
            value = _literal(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return "cannot be parsed"
    if not isinstance(value, dict):
        return f"a {type(value).__name__}, not a dict"
    if not value:
        return "an empty dict"
    scores = {}
    for criterion, score in value.items():
        if isinstance(score, bool) or not isinstance(score, int | float | np.number):
            return f"criterion {criterion!r} has no number"
        try:
            scores[str(criterion)] = float(score)
        except OverflowError:  # a whole number beyond doubles
            return f"criterion {criterion!r} is too large"
        if not isfinite(scores[str(criterion)]):
            return f"criterion {criterion!r} is not finite"
    return scores


def _literal(text: str) -> Any:
    try:  # which is faster than to read it as Python
        return json.loads(text if "\\" in text or '"' in text else text.replace("'", '"'))
    except ValueError:
        return ast.literal_eval(text)
