"""Judged battles: score differences of an LLM judge, one or both presentation orders, and human labels beside them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.data import table_files
from jaxeval.data.columns import as_frame, encode_models, frame_of, require_column
from jaxeval.data.judge_scores import Scores, score_differences
from jaxeval.data.outcomes import LabelCoding, labels
from jaxeval.errors import DataError

Float = NDArray[np.float64]

#: Columns taken where none is named and the table has one of them.
DEFAULT_SCORES = ("scores_a", "scores_b")
DEFAULT_HUMAN = ("human", "human_pref")
DEFAULT_VERDICT = ("verdict", "judge_pref")


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
    label_coding: LabelCoding | None = None  # of the human labels and verdicts, as it was named

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
                False reads none.
            verdict: column of the judge's own verdicts; by default "verdict" or "judge_pref" if there. False reads
                none.
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
        frame = as_frame(df)
        if len(frame) == 0:
            raise DataError("the table has no rows: nothing to rate")
        if label_coding not in (None, "a_wins_1", "a_wins_0", "labels"):
            raise ValueError(f"label_coding must be 'a_wins_1', 'a_wins_0' or 'labels', got {label_coding!r}")
        human = _column(human, DEFAULT_HUMAN, frame)
        verdict = _column(verdict, DEFAULT_VERDICT, frame)
        if scores_a is None and scores_b is None and score_difference is None:
            found = [c for c in DEFAULT_SCORES if c in frame.columns]
            if len(found) == 2:
                scores_a, scores_b = found
        columns = (scores_a, scores_b, scores_a_swapped, scores_b_swapped, score_difference, human, verdict)
        used = [model_a, model_b]
        for given in columns:
            used += [] if given is None else [given] if isinstance(given, str) else list(given)
        for column in used:
            require_column(frame, column)

        models, first, second = encode_models(frame, model_a, model_b)
        missing = np.full(len(frame), np.nan)
        humans = missing if human is None else labels(frame[human], label_coding)
        verdicts = None if verdict is None else labels(frame[verdict], label_coding)
        difference, orders = score_differences(
            frame, scores_a, scores_b, scores_a_swapped, scores_b_swapped, score_difference, verdicts
        )
        judge = (1 + np.sign(difference)) / 2
        if orders is not None:
            judge[orders[:, 0] * orders[:, 1] < 0] = 0.5
        scored = scores_a is not None or score_difference is not None
        whole = cls(
            models, first, second, difference, humans, judge, verdicts, orders, frame, judge_name, _NO_REPORT, scored,
            label_coding,
        )  # fmt: skip
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


def _column(name: str | Literal[False] | None, defaults: tuple[str, ...], frame: pd.DataFrame) -> str | None:
    """The column that is named, or else the first default that the table has; None where False asks for none."""
    return next((c for c in defaults if c in frame.columns), None) if name is None else name or None


_NO_REPORT = JudgedReport(0, 0, 0, 0, 0, 0, 0, 0)


def read_judged_battles(
    path: str | Path,
    *,
    scores_a: Scores | None = None,
    scores_b: Scores | None = None,
    scores_a_swapped: Scores | None = None,
    scores_b_swapped: Scores | None = None,
    score_difference: str | None = None,
    human: str | Literal[False] | None = None,
    verdict: str | Literal[False] | None = None,
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
        table = table_files.read_whole_table(path, text=(model_a, model_b))
        return JudgedBattles.from_pandas(
            frame_of(table),
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
