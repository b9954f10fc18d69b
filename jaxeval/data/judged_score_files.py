"""Files of scores that a judge gave, with human labels of some of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from jaxeval.arrays import Float
from jaxeval.data.columns import factorize_sorted, first_place, numbers_or_nan, plain, require_column
from jaxeval.data.judged_answers import JudgedAnswers
from jaxeval.data.remote_names import FileName
from jaxeval.data.report import MissingJudgment
from jaxeval.data.score_files import ScoreColumns, score_table
from jaxeval.data.table_files import naming
from jaxeval.errors import DataError
from jaxeval.wording import counted, did_you_mean, named

#: What the values of ``missing`` are called in `JudgedAnswers.from_pandas`.
_MISSING: dict[str, MissingJudgment] = {"error": "error", "complete": "complete", "available": "drop"}


def read_judged_scores(
    path: FileName | Sequence[FileName],
    *,
    human: str,
    judge: str | None = None,
    only_judge: str | None = None,
    keep: Sequence[str] = (),
    missing: str = "error",
    **columns: Any,
) -> JudgedAnswers:
    """Scores from files of `read_scores` as judgments, with human labels of some answers in the column ``human``.

    Args:
        path: files, as in `read_scores`.
        human: column of labels, 1 and 0; missing where nobody labelled.
        judge: column of judges; by default there is one judge.
        only_judge: the one judge whose scores are wanted; it needs ``judge``.
        keep: further columns, for slices.
        missing: "error", "complete" or "available", as in `score_leaderboard`.
        columns: as in `read_scores`.

    Raises:
        DataError: the files cannot be read; labels are not 1 and 0; rows repeat; or an option asks for what judged
            scores do not have.
    """
    further = [human, *([judge] if judge else []), *keep]
    asked = ScoreColumns(keep=list(dict.fromkeys(further)), **columns)
    if asked.wide:
        raise DataError(
            "a wide table has no place for labels of single answers: give one row per model and item, without --wide"
        )
    frame, label, _ = score_table(path, asked)
    with naming(label):
        for column in further:
            require_column(frame, column)
        if only_judge is not None:
            names = frame[judge].astype(str)
            if not (names == only_judge).any():
                raise DataError(
                    f"no judge is called {only_judge!r}; there are {named(names.unique())}"
                    f"{did_you_mean(only_judge, names.unique())}"
                )
            frame = frame[names == only_judge].reset_index(drop=True)
        _reject_groups(frame)
        _reject_repeats(frame, judge)
        if pd.api.types.is_bool_dtype(frame["score"]):
            frame["score"] = frame["score"].astype(float)
        answers = JudgedAnswers.from_pandas(
            frame.assign(**{human: _labels(frame[human], human)}),
            judgment="score", label=human, model="model", item="item", judge=judge,
            keep=tuple(dict.fromkeys([*keep, *(["cluster"] if "cluster" in frame else [])])),
            run="trial" if "trial" in frame else None, missing=_MISSING[missing],
        )  # fmt: skip
        lacking = int((~answers.answered).sum())
        if missing == "error" and lacking:
            raise DataError(
                f"models lack answers to items ({counted(lacking, 'pair')} of a model and an item): missing='complete' "
                "(--missing complete) takes the items that all models have, missing='available' (--missing available) "
                "scores each model on its own items"
            )
        return answers


def _labels(column: pd.Series, name: str) -> Float:
    """(rows,) labels as numbers, NaN where no one labelled; words such as yes and no are refused, and shown."""
    try:
        return numbers_or_nan(column, name)
    except DataError as error:
        is_word = (pd.to_numeric(column, errors="coerce").isna() & column.notna()).to_numpy(bool)
        counts = column[is_word].value_counts()
        shown = named([f"{plain(value)!r} ({n:,})" for value, n in counts.items()], 5)
        raise DataError(
            f"column {name!r}: labels must be 1 or 0, and {counted(is_word.sum(), 'is', 'are')} not: {shown}"
            f"{first_place(is_word)}: write 1 where people call the answer right and 0 where they call it wrong, and "
            "leave empty what nobody labelled"
        ) from error


def _reject_repeats(frame: pd.DataFrame, judge: str | None) -> None:
    """Raise DataError where two rows are of one model, item, judge and trial."""
    roles = {"model": "model", "item": "item", "judge": judge, "trial": "trial"}
    there = {role: column for role, column in roles.items() if column is not None and column in frame}
    codes = pd.DataFrame({role: factorize_sorted(frame[column], column)[0] for role, column in there.items()})
    again = codes.duplicated().to_numpy()
    if not again.any():
        return
    first = int(again.argmax())
    shown = ", ".join(f"{role} {plain(frame[column].iloc[first])!r}" for role, column in there.items())
    lacking = {"judges": judge is None, "trials": "trial" not in frame}
    options = [f"of {noun} ({noun[:-1]}=, --{noun[:-1]})" for noun, is_lacking in lacking.items() if is_lacking]
    advice = f"name the column {' or '.join(options)}, or drop the copies" if options else "drop the copies"
    raise DataError(
        f"{counted(int(again.sum()), 'row repeats', 'rows repeat')} another of the same {', '.join(there)} (the first: "
        f"{shown}): {advice}"
    )


def _reject_groups(frame: pd.DataFrame) -> None:
    """Raise DataError if scores have benchmarks or weights, which judged scores do not take."""
    given = [role for role in ("benchmark", "weight") if role in frame and len(frame[role].unique()) > 1]
    if given:
        raise DataError(
            f"the table has a {' and a '.join(given)} column, but scores that human labels correct take none: all "
            "items count alike. Drop the column, or rate its groups separately (--by)"
        )
