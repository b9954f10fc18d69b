"""Judged battles: score differences of an LLM judge, one or both presentation orders, and human labels beside them."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval import readers
from jaxeval.battles import DataError, _as_frame, _encode_models, _require_column

LabelCoding = Literal["a_wins_1", "a_wins_0", "labels"]
Scores = str | Sequence[str]
Float = NDArray[np.float64]

#: Columns taken where none is named and the table has one of them.
DEFAULT_SCORES = ("scores_a", "scores_b")
DEFAULT_HUMAN = ("human", "human_pref")
DEFAULT_VERDICT = ("verdict", "judge_pref")

_TARGET_OF_LABEL = {
    "model_a": 1.0,
    "model_b": 0.0,
    "tie": 0.5,
    "tie (bothbad)": 0.5,
    "tie_bothbad": 0.5,
    "both_bad": 0.5,
}
_LONGEST_TEXT = 10_000  # characters of one cell of scores
# Means of integer scores on a lattice differ in their last bits; equal levels must be equal numbers.
_DECIMALS = 9


@dataclass(frozen=True)
class JudgedReport:
    """What was read and what was left out, in battles."""

    n_rows: int
    n_battles: int
    n_models: int
    n_human: int  # battles with a human label
    n_human_ties: int
    n_judge_ties: int  # hard label 1/2, flips included
    n_self_battles: int  # a model against itself: left out
    n_without_score: int  # no score or verdict of the judge: left out

    def __str__(self) -> str:
        lines = [
            f"{self.n_rows:,} rows: {self.n_battles:,} judged battles between {self.n_models:,} models, "
            f"{self.n_human:,} with a human label ({self.n_human_ties:,} ties)"
        ]
        if self.n_self_battles:
            lines.append(f"{self.n_self_battles:,} battles of a model against itself left out")
        if self.n_without_score:
            lines.append(f"{self.n_without_score:,} battles without a judge's score left out")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class JudgedBattles:
    """N battles between M models as one judge saw them.

    ``models`` are sorted. ``score_difference`` is A minus B: the mean over criteria, averaged over both presentation
    orders where both were judged; +1, 0 or -1 for a judge that gives verdicts only. ``judge`` is its sign as a target
    (1, 1/2, 0), a tie where the sign flips between the orders. ``human`` is the target that A wins, NaN without a
    human label. ``verdict`` is the judge's own printed verdict where a column gives one (NaN where it is missing).
    """

    models: pd.Index
    model_a: NDArray[np.int32]
    model_b: NDArray[np.int32]
    score_difference: Float
    human: Float
    judge: Float
    verdict: Float | None
    orders: Float | None  # (N, 2) score differences A minus B as judged with A first and with B first
    columns: pd.DataFrame = field(repr=False)  # further columns, row by row with the battles
    judge_name: str
    report: JudgedReport
    scored: bool = True  # False for a judge that gives verdicts only

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
        human: str | None = None,
        verdict: str | None = None,
        label_coding: LabelCoding | None = None,
        model_a: str = "model_a",
        model_b: str = "model_b",
        judge_name: str = "judge",
    ) -> JudgedBattles:
        """Judged battles from a DataFrame, or any table with the Arrow interface.

        Scores come from ``scores_a`` and ``scores_b`` (by default the columns of these names), from
        ``score_difference`` (A minus B), or, for a judge that gives verdicts only, from ``verdict`` as +1, 0, -1.

        Args:
            df: one row a battle.
            scores_a: column with the scores of side A: dicts of criteria, such dicts as text, or numbers; or a list
                of numeric columns, one a criterion.
            scores_b: likewise for side B, with the same criteria.
            scores_a_swapped: scores of model A when it was shown second; with it, ``scores_a`` are those when it was
                shown first, and the score difference is the mean of both orders.
            scores_b_swapped: scores of model B when it was shown first.
            human: column of human labels, missing where there is none; by default "human" or "human_pref" if there.
            verdict: column of the judge's own verdicts; by default "verdict" or "judge_pref" if there.
            label_coding: what the labels of ``human`` and ``verdict`` mean: "a_wins_1" (1 = A wins, 0 = B wins),
                "a_wins_0" (0 = A wins, 1 = B wins), both with 0.5 = tie, or "labels" (model_a, model_b, tie and three
                spellings of both-bad, all ties). Numbers are never guessed: without it they are an error.
            model_a: column of the model on side A.
            model_b: column of the model on side B.
            judge_name: how results call this judge.

        Raises:
            DataError: a column is missing, scores or labels cannot be read, or no battle is left. The message says
                how many rows, where the first is, and what to do.
        """
        frame = _as_frame(df)
        if len(frame) == 0:
            raise DataError("the table has no rows: nothing to rate")
        if label_coding not in (None, "a_wins_1", "a_wins_0", "labels"):
            raise ValueError(f"label_coding must be 'a_wins_1', 'a_wins_0' or 'labels', got {label_coding!r}")
        human = human or next((c for c in DEFAULT_HUMAN if c in frame.columns), None)
        verdict = verdict or next((c for c in DEFAULT_VERDICT if c in frame.columns), None)
        if scores_a is None and scores_b is None and score_difference is None:
            found = [c for c in DEFAULT_SCORES if c in frame.columns]
            if len(found) == 2:
                scores_a, scores_b = found
        columns = (scores_a, scores_b, scores_a_swapped, scores_b_swapped, score_difference, human, verdict)
        used = [model_a, model_b]
        for given in columns:
            used += [] if given is None else [given] if isinstance(given, str) else list(given)
        for column in used:
            _require_column(frame, column)

        models, first, second = _encode_models(frame, model_a, model_b)
        missing = np.full(len(frame), np.nan)
        humans = missing if human is None else _labels(frame[human], label_coding)
        verdicts = None if verdict is None else _labels(frame[verdict], label_coding)
        difference, orders = _differences(
            frame, scores_a, scores_b, scores_a_swapped, scores_b_swapped, score_difference, verdicts
        )
        judge = (1 + np.sign(difference)) / 2
        if orders is not None:
            judge[orders[:, 0] * orders[:, 1] < 0] = 0.5
        scored = scores_a is not None or score_difference is not None
        whole = cls(
            models, first, second, difference, humans, judge, verdicts, orders, frame, judge_name, _NO_REPORT, scored
        )
        is_self, unscored = first == second, np.isnan(difference)
        if (is_self | unscored).all():
            raise DataError(
                f"no battle is left of {len(frame):,} rows: {is_self.sum():,} of a model against itself, "
                f"{unscored.sum():,} without a score of the judge"
            )
        kept = whole.subset(~(is_self | unscored))
        report = replace(
            kept.report,
            n_rows=len(frame),
            n_self_battles=int(is_self.sum()),
            n_without_score=int((unscored & ~is_self).sum()),
        )
        rest = kept.columns[[c for c in frame.columns if c not in used]]
        return replace(kept, columns=rest, report=report)

    @property
    def n_battles(self) -> int:
        """Battles with a score of the judge."""
        return len(self.score_difference)

    @property
    def n_models(self) -> int:
        """Models with at least one such battle."""
        return len(self.models)

    @property
    def hard(self) -> Float:
        """(N,) hard label of the judge: its own verdict where there is one, else the sign of its scores."""
        if self.verdict is None:
            return self.judge
        return np.where(np.isnan(self.verdict), self.judge, self.verdict)

    def column(self, name: str) -> pd.Series:
        """(N,) a column beside the battles.

        Raises:
            DataError: there is none of that name.
        """
        if name not in self.columns.columns:
            have = ", ".join(map(repr, self.columns.columns))
            raise DataError(f"no column {name!r} beside the battles; there are {have or 'none'}")
        return self.columns[name]

    def subset(self, mask: NDArray[np.bool_] | NDArray[np.intp]) -> JudgedBattles:
        """The battles that ``mask`` (or row numbers) selects, and the models that have some."""
        rows = np.arange(self.n_battles)[mask]
        a, b = self.model_a[rows], self.model_b[rows]
        met = np.zeros(len(self.models), bool)
        met[a] = met[b] = True
        number = (np.cumsum(met) - 1).astype(np.int32)
        human, judge = self.human[rows], self.judge[rows]
        result = replace(
            self,
            models=self.models[met],
            model_a=number[a],
            model_b=number[b],
            score_difference=self.score_difference[rows],
            human=human,
            judge=judge,
            verdict=None if self.verdict is None else self.verdict[rows],
            orders=None if self.orders is None else self.orders[rows],
            columns=self.columns.iloc[rows],
        )
        report = JudgedReport(
            n_rows=len(rows),
            n_battles=len(rows),
            n_models=int(met.sum()),
            n_human=int(np.count_nonzero(~np.isnan(human))),
            n_human_ties=int(np.count_nonzero(human == 0.5)),
            n_judge_ties=int(np.count_nonzero(result.hard == 0.5)),
            n_self_battles=0,
            n_without_score=0,
        )
        return replace(result, report=report)


_NO_REPORT = JudgedReport(0, 0, 0, 0, 0, 0, 0, 0)


def read_judged_battles(
    path: str | Path,
    *,
    scores_a: Scores | None = None,
    scores_b: Scores | None = None,
    scores_a_swapped: Scores | None = None,
    scores_b_swapped: Scores | None = None,
    score_difference: str | None = None,
    human: str | None = None,
    verdict: str | None = None,
    label_coding: LabelCoding | None = None,
    model_a: str = "model_a",
    model_b: str = "model_b",
    judge_name: str = "judge",
) -> JudgedBattles:
    """Judged battles from a Parquet, CSV (or TSV, gzipped or not) or JSON-lines file, with all its columns.

    The sample of the Soft-Elo paper reads with ``label_coding="a_wins_0"``.

    Args:
        path: the format follows from its ending, as in `read_battles`.
        scores_a: as in `JudgedBattles.from_pandas`, like the other arguments.

    Raises:
        DataError: the file cannot be read as a table of judged battles.
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
    try:
        table = readers.read_whole_table(path, text=(model_a, model_b))
        return JudgedBattles.from_pandas(
            table.to_pandas(),
            scores_a=scores_a,
            scores_b=scores_b,
            scores_a_swapped=scores_a_swapped,
            scores_b_swapped=scores_b_swapped,
            score_difference=score_difference,
            human=human,
            verdict=verdict,
            label_coding=label_coding,
            model_a=model_a,
            model_b=model_b,
            judge_name=judge_name,
        )
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from error


def _differences(
    frame: pd.DataFrame,
    scores_a: Scores | None,
    scores_b: Scores | None,
    scores_a_swapped: Scores | None,
    scores_b_swapped: Scores | None,
    score_difference: str | None,
    verdicts: Float | None,
) -> tuple[Float, Float | None]:
    """(N,) score differences A minus B, NaN without a score, and (N, 2) those of the two orders if both are given."""
    pairs = [(scores_a, scores_b), (scores_a_swapped, scores_b_swapped)]
    for a, b in pairs:
        if (a is None) != (b is None):
            raise ValueError(f"scores are needed for both sides, got {a!r} for A and {b!r} for B")
    given = [(a, b) for a, b in pairs if a is not None and b is not None]
    if score_difference is not None:
        if given:
            raise ValueError("give score_difference= or columns of scores, not both")
        return _rounded(_numbers(frame[score_difference], score_difference)), None
    if scores_a is None and given:
        raise ValueError("scores of the swapped order need scores_a= and scores_b= of the other beside them")
    if not given:
        if verdicts is None:
            have = ", ".join(map(repr, frame.columns))
            raise DataError(
                "no scores of a judge: name them with scores_a= and scores_b=, score_difference=, or verdict= for a "
                f"judge that gives verdicts only; the table has {have}"
            )
        return 2 * verdicts - 1, None
    each = [_rounded(_criteria_difference(frame, a, b)) for a, b in given]
    if len(each) == 1:
        return each[0], None
    orders = np.stack(each, axis=1)
    return _rounded(orders.mean(1)), orders


def _rounded(values: Float) -> Float:
    return np.round(values, _DECIMALS) + 0.0


def _criteria_difference(frame: pd.DataFrame, scores_a: Scores, scores_b: Scores) -> Float:
    """(N,) mean over criteria of the score of A minus that of B."""
    if isinstance(scores_a, str) and isinstance(scores_b, str):
        if all(pd.api.types.is_numeric_dtype(frame[c]) for c in (scores_a, scores_b)):
            return _numbers(frame[scores_a], scores_a) - _numbers(frame[scores_b], scores_b)
        a, b = _score_table(frame[scores_a], scores_a), _score_table(frame[scores_b], scores_b)
        if set(a.columns) != set(b.columns):
            raise DataError(
                f"columns {scores_a!r} and {scores_b!r} score different criteria: {', '.join(map(str, a.columns))} and "
                f"{', '.join(map(str, b.columns))}"
            )
        difference = (a - b[a.columns]).to_numpy(float)
    else:
        names_a = [scores_a] if isinstance(scores_a, str) else list(scores_a)
        names_b = [scores_b] if isinstance(scores_b, str) else list(scores_b)
        if len(names_a) != len(names_b) or not names_a:
            raise ValueError(f"as many score columns are needed for A as for B, got {names_a} and {names_b}")
        difference = np.stack(
            [_numbers(frame[a], a) - _numbers(frame[b], b) for a, b in zip(names_a, names_b, strict=True)], axis=1
        )
    scored = ~np.isnan(difference).all(1)
    partial = scored & np.isnan(difference).any(1)
    if partial.any():
        raise DataError(
            f"{partial.sum():,} rows have scores for some criteria only (first in row {int(partial.argmax())}); a mean "
            "over other criteria is another scale: fill them or drop those rows first"
        )
    # In order of size, so that the order of the criteria cannot move the last bit.
    return np.sort(difference, axis=1).mean(1)


def _score_table(column: pd.Series, name: str) -> pd.DataFrame:
    """One column a criterion, NaN rows where a cell is missing."""
    codes, values = pd.factorize(column) if _hashable(column) else (np.arange(len(column)), list(column))
    parsed, wrong = [], []
    for number, value in enumerate(values):
        scores = None if value is None or (isinstance(value, float) and np.isnan(value)) else _parse_scores(value)
        if isinstance(scores, str):
            wrong.append((number, scores))
        parsed.append(scores if isinstance(scores, dict) else {})
    if wrong:
        bad = np.isin(codes, [number for number, _ in wrong])
        row = int(bad.argmax())
        reason = dict(wrong)[int(codes[row])]
        shown = repr(column.iloc[row])
        raise DataError(
            f"column {name!r}: {bad.sum():,} of {len(bad):,} rows are not scores by criterion (first in row {row}: "
            f"{reason}: {shown[:80]}{'...' if len(shown) > 80 else ''}); expected text or dicts like "
            "{'helpfulness': 8.5, 'clarity': 9}; repair or drop those rows first"
        )
    table = pd.DataFrame.from_records([*parsed, {}], index=range(len(parsed) + 1)).astype(float)
    if table.columns.empty:
        raise DataError(f"column {name!r} holds no scores at all")
    return table.iloc[np.where(codes < 0, len(parsed), codes)].reset_index(drop=True)


def _hashable(column: pd.Series) -> bool:
    return not any(isinstance(value, dict) for value in column)


def _parse_scores(value: Any) -> dict[str, float] | str:
    """Scores by criterion, or what is wrong with ``value``. Text is data: JSON, or a Python literal, never code."""
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
        if not np.isfinite(score):
            return f"criterion {criterion!r} is not finite"
        scores[str(criterion)] = float(score)
    return scores


def _literal(text: str) -> Any:
    if "\\" not in text and '"' not in text:
        try:
            return json.loads(text.replace("'", '"'))
        except ValueError:
            pass
    first: Callable[[str], Any] = json.loads if '"' in text else ast.literal_eval
    try:
        return first(text)
    except ValueError:
        return ast.literal_eval(text)


def _numbers(column: pd.Series, name: str) -> Float:
    """(N,) finite values, NaN where missing."""
    try:
        values = column.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise DataError(f"column {name!r} is not numeric ({column.dtype}): {error}") from error
    if np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        raise DataError(f"column {name!r} has {np.isinf(values).sum():,} infinite values (first in row {row})")
    return values


def _labels(column: pd.Series, coding: LabelCoding | None) -> Float:
    """(N,) targets that A wins, NaN where missing."""
    name = column.name
    codes, values = pd.factorize(column)
    numeric = pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)
    if numeric and len(values) and coding not in ("a_wins_1", "a_wins_0"):
        found = ", ".join(f"{float(v):g}" for v in sorted(values)[:5])
        raise DataError(
            f"column {name!r} has numeric labels ({found}): say what they "
            "mean with label_coding='a_wins_1' (1 = A wins) or label_coding='a_wins_0' (0 = A wins); on the command "
            "line, --labels"
        )
    known = {0.0: 0.0, 0.5: 0.5, 1.0: 1.0} if numeric else _TARGET_OF_LABEL
    unknown = [k for k, value in enumerate(values) if value not in known]
    if unknown:
        counts = np.bincount(codes[codes >= 0], minlength=len(values))
        found = ", ".join(f"{str(values[k])!r} ({counts[k]:,})" for k in unknown[:10])
        raise DataError(
            f"column {name!r} has unknown labels: {found}; known are {', '.join(map(repr, known))}. Map the labels to "
            "these, and mark battles without a label as missing"
        )
    target_of = np.array([known[value] for value in values] + [np.nan])
    if numeric and coding == "a_wins_0":
        target_of = 1 - target_of
    return target_of[codes]
